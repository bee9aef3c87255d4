"""What a shell gives and asks for: standard input as a file, and completion."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxmm.cli import stdin
from ptxmm.cli.app import run
from tests.support import ROOT

LITMUS = ROOT / "litmus" / "mp" / "MP+rel+acq.litmus"
KERNEL = ROOT / "tests" / "cuda" / "mp_release_acquire_gpu.ptx"


def _stdin(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data))


def _ptxmm(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(list(arguments))
    captured = capsys.readouterr()
    return ended.value.code if isinstance(ended.value.code, int) else 0, captured.out, captured.err


@pytest.mark.parametrize("command", ["check", "outcomes", "explain", "races", "robust", "fences", "scopes", "progress"])
def test_standard_input(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As from a file, under another name."""
    monkeypatch.setattr(sys, "stdin", _stdin(LITMUS.read_bytes()))
    one = _ptxmm(capsys, command, "-", "--json")
    two = _ptxmm(capsys, command, str(LITMUS), "--json")
    found = [json.loads(out)["results"] for _, out, _ in (one, two)]
    for entries in found:
        for entry in entries:
            assert "error" not in entry, entry
            entry.pop("seconds")
    assert {entry.pop("file") for entry in found[0]} == {"<stdin>"}
    for entry in found[1]:
        entry.pop("file")
    assert found[0] == found[1] and one[0] == two[0]


def test_a_kernel_and_a_conversion(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", _stdin(KERNEL.read_bytes()))
    launch = ["--launch", str(KERNEL.with_suffix(".cu"))]
    code, out, _ = _ptxmm(capsys, "check", "-", *launch, "--json")
    entries = json.loads(out)["results"]
    assert code == 0 and all(entry["conclusion"] == "expected" for entry in entries)
    monkeypatch.setattr(sys, "stdin", _stdin(LITMUS.read_bytes()))
    code, out, _ = _ptxmm(capsys, "convert", "-")
    assert code == 0 and out.startswith("PTX MP+rel+acq\n")


def test_extract_and_versions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    launch = ["--launch", str(KERNEL.with_suffix(".cu"))]
    monkeypatch.setattr(sys, "stdin", _stdin(KERNEL.read_bytes()))
    code, out, _ = _ptxmm(capsys, "extract", "-", *launch)
    assert code == 0 and out.replace("<stdin>", KERNEL.name) == _ptxmm(capsys, "extract", str(KERNEL), *launch)[1]
    other = LITMUS.with_name("MP.litmus")
    for files in (("-", str(other)), (str(other), "-")):
        monkeypatch.setattr(sys, "stdin", _stdin(LITMUS.read_bytes()))
        code, out, _ = _ptxmm(capsys, "compare", *files)
        old, new = ("<stdin>" if file == "-" else file for file in files)
        assert code == 1 and f"\nOld {old}: " in out and f"\nNew {new}: " in out
    assert "only one of the two versions" in _ptxmm(capsys, "compare", "-", "-")[2]


@pytest.mark.parametrize("command", ["check", "extract", "races"])
def test_a_source_has_to_be_a_file(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", _stdin(KERNEL.with_suffix(".cu").read_bytes()))
    code, _, err = _ptxmm(capsys, command, "-")
    assert code == 2 and "a CUDA source can't be read from standard input: nvcc needs its file" in err
    monkeypatch.setattr(sys, "stdin", _stdin(KERNEL.read_bytes()))
    code, _, err = _ptxmm(capsys, command, "-")
    assert code == 2 and "hint: say how its kernel is launched: --launch FILE, or comments" in err


@pytest.mark.parametrize("command", ["check", "extract", "convert", "lint"])
def test_no_standard_input(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, _, err = _ptxmm(capsys, command, "-")
    assert code == 2 and err == "<stdin>: error: standard input is closed\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "<stdin>: error: the file is empty"),
        (b"x\xff", "<stdin>:1: error: the file is not UTF-8 text: byte 0xff"),
        (b" " * (stdin.MOST + 1), f"<stdin>: error: standard input has more than {stdin.MOST} bytes"),
        (b"PTX t\n{ }\n", "<stdin>:2:4: error: there are no threads"),
    ],
)
def test_wrong_input(
    data: bytes, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", _stdin(data))
    code, _, err = _ptxmm(capsys, "check", "-", str(LITMUS))
    assert code == 2 and err.split("\n")[0] == message


def test_no_input_and_no_launch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert _ptxmm(capsys, "check", "-")[2] == "<stdin>: error: standard input is closed\n"
    code, _, err = _ptxmm(capsys, "check", "-", "--launch", "-")
    assert (code, err.split("\n")[0]) == (2, "error: --launch can't be standard input")


# -- completion ----------------------------------------------------------------------------------------------------


def _complete(shell: str, line: str, folder: Path) -> list[str]:
    """What the shell is given for the last word of ``line``."""
    words = line.split(" ")
    environment = os.environ | {"_PTXMM_COMPLETE": f"complete_{shell}", "PYTHONPATH": str(ROOT)}
    if shell == "bash":
        environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    else:
        environment |= {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run([sys.executable, "-m", "ptxmm"], env=environment, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [word.split("\t")[0].split(":")[0].strip('()" ') for word in done.stdout.replace("_arguments '*: :((", "")
            .replace("))'", "").split("\n") if word.strip()]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ptxmm ou", {"outcomes"}),
        ("ptxmm check --all-r", {"--all-readings"}),
        ("ptxmm check --model ptx", {"ptx-6.0", "ptx-7.5", "ptx-8.5"}),
        ("ptxmm races --model mi", {"mine.cat"}),
        ("ptxmm models s", {"sc"}),
        ("ptxmm check --reading rmw-", {"rmw-dep=on", "rmw-dep=off"}),
        ("ptxmm check --without Caus", {"Causality"}),
        ("ptxmm outcomes --engine e", {"enumerate"}),
    ],
)
def test_completion(shell: str, line: str, expected: set[str], tmp_path: Path) -> None:
    (tmp_path / "mine.cat").write_text("acyclic po\n")
    assert set(_complete(shell, line, tmp_path)) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The shell takes it, where it is installed. (The shell is named here, and not the one that runs the tests.)"""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    code, out, err = _ptxmm(capsys, "--show-completion", shell)
    assert (code, err) == (0, "") and "_PTXMM_COMPLETE=complete_" in out and "ptxmm" in out
    program = shutil.which(shell)
    if program is not None:
        done = subprocess.run([program, "-n"], input=out, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
