"""What a command reads and writes: regular files of a bounded size, TOML of any kind, names of any kind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ptxmm import files
from ptxmm.analysis.expectation import Expectation
from ptxmm.analysis.outcomes import check as decide
from ptxmm.analysis.search import engine_named
from ptxmm.cat import load
from ptxmm.cli.app import run
from ptxmm.cli.files import write_file
from ptxmm.engines.result import Search
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from tests.support import ROOT

MP = ROOT / "litmus" / "mp" / "MP.litmus"
KERNEL = ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n"
LONG = "9" * 5000


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        run(list(arguments))
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(KERNEL)
    return tmp_path


@pytest.mark.parametrize("name", ["f.litmus", "f.test", "f.ptx", "f.cu"])
@pytest.mark.parametrize("device", [False, True], ids=["pipe", "device"])
def test_an_input_is_a_regular_file(here: Path, capsys: pytest.CaptureFixture[str], name: str, device: bool) -> None:
    if device:
        (here / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(here / name)
    code, _, err = command(capsys, "check", name)
    assert (code, err) == (2, f"{name}: error: the file can't be read: Not a regular file\n")
    command(capsys, "check", ".")  # does not wait either
    for reader in (("convert", name), ("extract", name), ("compare", str(MP), name), ("compare", name, str(MP))):
        code, _, err = command(capsys, *reader)
        assert code == 2 and "Not a regular file" in err, reader


@pytest.mark.parametrize("device", [False, True], ids=["pipe", "device"])
def test_what_an_input_names_is_a_regular_file(here: Path, capsys: pytest.CaptureFixture[str], device: bool) -> None:
    for name in ("m.cat", "l.toml", "s.cu"):
        if device:
            (here / name).symlink_to("/dev/zero")
        else:
            os.mkfifo(here / name)
    (here / "i.cat").write_text('include "m.cat"\n')
    for arguments in (
        ("check", str(MP), "--model", "m.cat"),
        ("check", str(MP), "--model", "i.cat"),
        ("models", "m.cat"),
        ("check", "k.ptx", "--launch", "l.toml"),
        ("extract", "k.ptx", "--launch", "l.toml"),
        ("lint", "s.cu"),
        ("lint", "."),
    ):
        code, _, err = command(capsys, *arguments)
        expected = "there is no model file `m.cat`" if "i.cat" in arguments else "Not a regular file"
        assert code == 2 and expected in err, (arguments, err)


def test_a_size_that_is_said(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = here / "long"
    path.write_bytes(b"x" * 101)
    assert len(files.read_bytes(path)) == 101
    with pytest.raises(PtxmmError, match="the file has more than 100 bytes"):
        files.read_bytes(path, 100)
    with pytest.raises(PtxmmError, match="the file can't be read: embedded null byte"):
        files.read_bytes("a\0b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"\nx = {LONG}\n", "a number has too many digits (at line 2, column 5)"),
        (f"x = {'[' * 20000}", "the document is nested too deeply"),
        ("x = [", "Invalid value (at end of document)"),
    ],
)
def test_toml_that_is_none(here: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    with pytest.raises(files.NotToml) as caught:
        files.toml(text)
    assert str(caught.value) == message
    (here / "a.cu").write_text("int x;\n")
    (here / "k.toml").write_text(text)
    code, _, err = command(capsys, "check", "k.ptx")
    assert code == 2 and "this is not TOML: " in err
    for name in ("pyproject.toml", "ptxmm.toml"):
        (here / name).write_text(text)
        code, _, err = command(capsys, "lint", "a.cu")
        assert (code, err) == (2, f"{here / name}: error: not read: {message}\n")
        (here / name).unlink()


def test_a_cost_of_many_digits(capsys: pytest.CaptureFixture[str]) -> None:
    for value in (LONG, "-1", "0", "1000001", "²"):
        code, _, err = command(capsys, "fences", str(MP), "--cost", f"fence={value}")
        assert code == 2 and "expected NAME=N with N from 1 to 1000000" in err


def test_names_that_begin_with_a_dash(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "-m.litmus").write_bytes(MP.read_bytes())
    assert command(capsys, "check", "--model", "ptx-8.5", "--", "-m.litmus")[0] == 0
    assert command(capsys, "convert", "-o", "out.litmus", "--", "-m.litmus")[0] == 0
    assert command(capsys, "lint", "--", "-m.litmus")[0] == 0


def test_names_that_steer_a_terminal_or_are_no_text(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'void f(int *p) { asm("st.global.u32 [%0], 1;" :: "l"(p)); }\n'
    for name in ("a\x1b[31m\nb.cu", "c\udcff.cu"):
        (here / name).write_text(text)
    for form in ("text", "github", "json", "sarif"):
        code, out, _ = command(capsys, "lint", ".", "--output-format", form)
        assert code == 1 and "\x1b" not in out and out


def test_help_that_nobody_reads() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for arguments in (["--help"], ["check", "--help"], ["--version"], ["lint", "--list-rules"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "ptxmm", *arguments],
            env=environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b""), arguments


def test_writing(here: Path) -> None:
    path = here / "new" / "a"
    write_file(path, "x\n")
    assert path.read_text() == "x\n"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o751)
    link = here / "link"
    link.symlink_to(path)
    write_file(link, "y\n")
    assert link.is_symlink() and path.read_text() == "y\n" and stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listdir(path.parent) == ["a"]
    write_file(Path("/dev/null"), "z\n")
    with pytest.raises(PtxmmError, match="the file can't be written"):
        write_file(path / "b", "x\n")
    with pytest.raises(PtxmmError, match="the file can't be written"):
        write_file(path, "\udcff")


# -- both engines --------------------------------------------------------------------------------------------------

ONE = """PTX one
{{ .global .u32 x = 0; }}
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u32 [x], 1 | ld.global.u32 r0, [x] ;
{}
"""


@pytest.mark.parametrize("condition", ["exists (P1:r0 == 1)", "~exists (P1:r0 == 2)", "forall (P1:r0 <= 1)"])
def test_one_of_two_engines_runs_out_of_time(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    (test,) = parse(ONE.format(condition))
    late = {"enumerate": lambda *_, **__: iter([Search(timeout=True)])}
    monkeypatch.setattr("ptxmm.analysis.search.engine_named", lambda name, **_: late.get(name) or engine_named(name))
    result = decide(test, load("ptx-8.5"), engine="both")
    assert (result.status, result.holds, result.observation) == ("timeout", None, None)
    (note,) = (note for note in result.notes if note.kind == "timeout")
    text = "the time limit ended the search of enumerate, so the engines were not compared in full"
    assert note.text.startswith(text)


def test_a_counterexample_of_one_engine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was confirmed, so that it needs no other engine."""
    (test,) = parse(ONE.format("~exists (P1:r0 == 1)"))
    late = {"enumerate": lambda *_, **__: iter([Search(timeout=True)])}
    monkeypatch.setattr("ptxmm.analysis.search.engine_named", lambda name, **_: late.get(name) or engine_named(name))
    result = decide(test, load("ptx-8.5"), engine="both", expectation=Expectation("holds", None))
    assert (result.status, result.holds, result.conclusion) == ("timeout", False, "contradicted")


class TestRaceClaims:
    """``--engine both`` asks the explicit engine about races too."""

    RIGHT, WRONG = "mp_release_acquire_gpu", "mp_release_acquire_gpu.wrong_relaxed_store"

    def decided(self, name: str) -> tuple[str, bool | None, str, str]:
        from ptxmm.analysis.claims import RACES
        from ptxmm.analysis.kernel import decide as claim
        from ptxmm.engines.result import Limits
        from ptxmm.formats import read

        (test,) = read(ROOT / "tests" / "cuda" / f"{name}.ptx")
        result = claim(test, load("ptx-8.5"), RACES, Limits(), "both")
        return result.engine, result.holds, result.status, result.conclusion

    def test_they_agree(self) -> None:
        assert self.decided(self.RIGHT) == ("both", True, "complete", "expected")
        assert self.decided(self.WRONG) == ("both", False, "complete", "contradicted")

    def test_the_explicit_engine_disagrees(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "ptxmm.analysis.races.engine_named",
            lambda name: lambda *_: iter([Search(exhausted=True, flags={"data-race"})]),
        )
        with pytest.raises(PtxmmError, match="a data race only in enumerate, not in z3"):
            self.decided(self.RIGHT)
        monkeypatch.setattr("ptxmm.analysis.races.engine_named", lambda name: lambda *_: iter([Search(exhausted=True)]))
        with pytest.raises(PtxmmError, match="a data race only in z3, not in enumerate"):
            self.decided(self.WRONG)

    def test_the_explicit_engine_runs_out_of_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ptxmm.analysis.races.engine_named", lambda name: lambda *_: iter([Search(timeout=True)]))
        assert self.decided(self.RIGHT) == ("both", None, "timeout", "inconclusive")
        assert self.decided(self.WRONG) == ("both", False, "timeout", "contradicted")
