"""``ptxmm show`` and ``ptxmm new``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import ptxmm as mm
from ptxmm.cli.new import SKELETONS, Kind
from ptxmm.render import schema
from tests.commands import Run
from tests.support import ROOT

Golden = Callable[[str, str], None]

LOOP = """PTX LOOP
{ .global .u32 x = 0; .shared .u32 s @ cta 0; P1:r1 = 3; }
P0 @ cta 0, warp 0 { A: ld.relaxed.gpu.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra A;
  setp.ne.u32 q, r0, 1; @q bra B; st.shared.u32 [s], 1; B: }
P1 { st.relaxed.gpu.global.u32 [x], r1; }
forall (x == 3)
"""


# -- show ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(version("typer") >= "0.29", reason="typer 0.29 words its help differently")
@pytest.mark.parametrize("command", ["show", "new"])
def test_help(run_command: Run, golden: Golden, command: str) -> None:
    ran = run_command(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    golden(f"help-{command}.txt", ran.out)


def test_show(run_command: Run, golden: Golden) -> None:
    """Litmus tests in PTX, in the dialect, and as a table; a kernel in the lines of its source."""
    Path("loop.litmus").write_text(LOOP)
    shutil.copy(ROOT / "litmus" / "proxies" / "generic-surface.litmus", "dialect.litmus")
    Path("table.test").write_text(_table())
    kernel = ROOT / "tests" / "cuda" / "mp_release_acquire_gpu"
    for suffix in (".cu", ".ptx"):
        shutil.copy(kernel.with_suffix(suffix), f"kernel{suffix}")
    ran = run_command("show", "loop.litmus", "dialect.litmus", "table.test", "kernel.ptx")
    assert (ran.code, ran.err) == (0, "")
    golden("show.txt", ran.out)


def _table() -> str:
    page = (ROOT / "docs" / "formats.md").read_text()
    return next(block.strip("\n") + "\n" for block in page.split("```") if block.lstrip("\n").startswith(".global"))


def test_labels_are_those_of_witnesses(run_command: Run) -> None:
    """Each instruction that an execution names is in the list, by the same label."""
    for name in ("mp/MP+rel+acq", "locks/cas-spinlock", "barriers/BAR-MP", "async/TMA-load"):
        test = mm.library[name]
        ran = run_command("show", test.file)
        shown = {line.split()[0] for line in ran.out.splitlines() if line.startswith("  P")}
        labels = {e.label for x in test.executions() for e in x.events if e.instruction is not None and not e.round}
        assert labels and labels <= shown, name


def test_show_as_json(run_command: Run) -> None:
    Path("loop.litmus").write_text(LOOP)
    ran = run_command("show", "loop.litmus", "missing.litmus", "--json")
    assert ran.code == 2
    document = json.loads(ran.out)
    Draft202012Validator(json.loads(schema.text())).validate(document)
    first, second = document["results"]
    assert (first["analysis"], second["analysis"]) == ("show", "error")
    assert [item["target"] for item in first["threads"][0]["instructions"]] == [
        None, None, "P0:3:25", None, "end", None,
    ]  # fmt: skip
    assert first["threads"][1] == {
        "thread": "P1",
        "placement": "",
        "instructions": [
            {"label": "P1:5", "line": 5, "column": 6, "text": "st.relaxed.gpu.global.u32 [x], r1", "target": None}
        ],
    }


def test_show_tells_what_is_wrong(run_command: Run) -> None:
    Path("bad.litmus").write_text(LOOP.replace("bra A", "bra C"))
    ran = run_command("show", "bad.litmus")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("bad.litmus:3:") and "^" in ran.err


# -- new -----------------------------------------------------------------------------------------------------------


def test_every_skeleton_is_a_kind() -> None:
    assert {path.name for path in SKELETONS.iterdir()} == {f"{kind}{kind.suffix}" for kind in Kind}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.kernel])
def test_a_skeleton_checks_as_it_expects(run_command: Run, kind: Kind) -> None:
    """By both engines; each has an expectation to change, and says what it is about."""
    assert run_command("new", kind, "-o", f"folder/a{kind.suffix}").code == 0
    ran = run_command("check", "folder", "--engine", "both", "--json")
    (entry,) = json.loads(ran.out)["results"]
    assert (ran.code, entry["conclusion"], entry["status"]) == (0, "expected", "complete")
    (test,) = mm.read(f"folder/a{kind.suffix}")
    assert test.description and test.info == (("Expect", f"ptx-8.5:{entry['observation']}"),)


def test_the_skeleton_of_a_kernel(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its comments launch it; without nvcc, with the PTX that this has made of it."""
    assert run_command("new", "kernel", "-o", "mine.cu").code == 0
    shutil.copy(ROOT / "tests" / "modules" / "nvcc" / "skeleton-lineinfo.ptx", "mine.ptx")
    monkeypatch.setenv("PATH", "")
    ran = run_command("check", "mine.cu", "--json")
    found = [(e["condition"], e["holds"], e["conclusion"]) for e in json.loads(ran.out)["results"]]
    assert ran.code == 0
    assert found == [("out == 42", True, "expected"), ("no data races", True, "expected")]
    assert run_command("lint", "mine.cu").code == 0


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not there")
def test_the_skeleton_of_a_kernel_is_compiled(run_command: Run) -> None:
    assert run_command("new", "kernel", "-o", "mine.cu").code == 0
    ran = run_command("check", "mine.cu")
    assert (ran.code, ran.out.count("ok ")) == (0, 2)


def test_new_prints_what_it_would_write(run_command: Run) -> None:
    ran = run_command("new", "mp")
    assert (ran.code, ran.err, ran.out) == (0, "", (SKELETONS / "mp.litmus").read_text())
    assert run_command("new", "mp", "-o", "x.litmus").out == ""
    assert Path("x.litmus").read_text() == ran.out


def test_nothing_is_overwritten(run_command: Run) -> None:
    mine, link = Path("mine.litmus"), Path("link.litmus")
    mine.write_text("mine")
    link.symlink_to("nowhere.litmus")
    for path in (mine, link):
        ran = run_command("new", "sb", "-o", str(path))
        assert (ran.code, ran.out) == (2, "")
        assert (
            ran.err == f"{path}: error: the file is there already\n  hint: give another name: nothing is overwritten\n"
        )
    assert mine.read_text() == "mine" and not Path("nowhere.litmus").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kernel", "-o", "k.litmus"), "this is read from files named *.cu\n  hint: ptxmm new kernel -o k.cu"),
        (("mp", "-o", "k"), "this is read from files named *.litmus\n  hint: ptxmm new mp -o k.litmus"),
        (("mp", "-o", "mine.litmus/x.litmus"), "the file can't be written: "),
        (("nothing",), "'nothing' is not one of 'mp', 'sb'"),
    ],
)
def test_bad_usage_of_new(run_command: Run, arguments: tuple[str, ...], message: str) -> None:
    Path("mine.litmus").write_text("mine")
    ran = run_command("new", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
