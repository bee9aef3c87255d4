"""What the documentation shows is real: its sessions, its examples, and what it says is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from ptxmm.cli.app import application, run
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from tests.commands import steady
from tests.support import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
TUTORIAL = ROOT / "docs" / "learn" / "message-passing.md"
_BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r'(?<=^```)(litmus|ptx|cuda) title="([^"]+)"\n(.*?)(?=^```$)', re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ptxmm .*$", re.MULTILINE)

# A row of the table of docs/formats.md on what is refused: what it names, and an instruction of that kind.
REFUSED = (
    ("results of `wmma`", "wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {r1}, [s]; add.u32 r0, r1, 1"),
    ("multimem.ld_reduce.add", "multimem.ld_reduce.add.f32 f, [m]"),
    ("`discard` and `wmma.store` in a loop", "L: discard.global.L2 [g], 128; setp.eq.u32 p, r0, 0; @p bra L"),
    (
        "`.im2col`",
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [tm, {0, 0, 0}], [s]",
    ),
    (
        "not declared",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g, {0}], [b]",
    ),
    ("interleaved", "tensormap.replace.tile.interleave_layout.global.b1024.b32 [tm], 1"),
    ("swizzled", "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [tm], 1"),
    ("filling with NaN", "tensormap.replace.tile.fill_mode.global.b1024.b32 [tm], 1"),
    ("`.tf32`", "tensormap.replace.tile.elemtype.global.b1024.b32 [tm], 11"),
    ("`vadd`", "vadd.s32.s32.s32 r0, r0, r0"),
    ("%tid.x", "mov.u32 r0, %tid.x"),
    ("tex", "tex.1d.v4.f32.s32 {f, f, f, f}, [g, {r0}]"),
    ("suld", "suld.b.1d.b32.trap r0, [g, r0]"),
    ("call", "call foo"),
    ("brx", "brx.idx r0, foo"),
    ("trap", "trap"),
    ("access to an mbarrier", "ld.shared.b64 rd, [b]"),
    ("tcgen05", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32"),
    ("clusterlaunchcontrol", "clusterlaunchcontrol.try_cancel.async.shared::cta.b128 [s], [b]"),
    ("new forms of `st.async`", "st.async.mmio.release.gpu.global.u32 [g], 1"),
)
OPEN = (
    *((f"`{name}`", f"{name}.f32 f, f, f") for name in ("div.approx", "div.full")),
    *((f"`{name}.approx`", f"{name}.approx.f32 f, f") for name in ("rcp", "sqrt", "rsqrt")),
    *((f"`{name}`", f"{name}.approx.f32 f, f") for name in ("ex2", "lg2", "sin", "cos", "tanh")),
    ("`add.f16`", "add.f16 h, h, h"),
    ("`fma.rn.f16x2`", "fma.rn.f16x2 r0, r0, r0, r0"),
    ("`setp.lt.bf16`", "setp.lt.bf16 p, h, h"),
    ("`.relu`", "cvt.rn.relu.f16.f32 h, f"),
    ("`.satfinite`", "cvt.rn.satfinite.e4m3x2.f32 h, f, f"),
    ("`mma`", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {r0, r1}, {r0}, {r0}, {r0, r0}"),
)
_PROGRAM = """PTX refused
ISA=8.7
{{
  .shared .align 128 .u32 s[32] @ cta 0 = {{0}};
  .global .align 128 .u32 g[32] = {{0}};
  .global .align 128 .b8 tm[128] = tensormap(g, u32, 4);
  .shared .b64 b @ cta 0 = mbarrier(1);
  .global .f32 u = 0.0;
  .global .f32 v = 0.0;
  .global .f32 w = 0.0;
  m @ multimem u, v, w;
}}
P0 @ cta 0, cluster 0 {{
  .reg .pred p; .reg .b16 h; .reg .b32 r0; .reg .b32 r1; .reg .f32 f;
  mov.b16 h, 0;
  mov.b32 r0, 0;
  setp.eq.u32 p, r0, 0;
  mov.f32 f, 0f00000000;
  {};
}}
locations [g[0]; s[0]; b;]
"""


def _page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


Show = Callable[[str], str]
"""What a command line prints."""


def _in_the_tree(capsys: pytest.CaptureFixture[str]) -> Show:
    """In this process, in the root of the tree: ``ptxmm ...``, and ``cat FILE``."""

    def show(line: str) -> str:
        program, *arguments = line.split()
        if program == "cat":
            return _page(ROOT / arguments[0])
        assert program == "ptxmm", line
        with pytest.raises(SystemExit):
            run(arguments)
        return capsys.readouterr().out

    return show


def _in_a_shell(folder: Path) -> Show:
    """In an empty folder, with an environment that has nothing but the programs."""
    path = f"{Path(sys.executable).parent}:{os.defpath}"

    def show(line: str) -> str:
        command = ["bash", "-c", line]
        return subprocess.run(command, cwd=folder, env={"PATH": path}, stdout=subprocess.PIPE, text=True).stdout

    return show


def _replayed(session: str, show: Show) -> str:
    """A session as it is now. What is shown stays where only times differ."""
    start, *parts = re.split(r"^(\$ .*\n)", session, flags=re.MULTILINE)
    assert not start and parts
    now = ""
    for n in range(0, len(parts), 2):
        command, shown = parts[n : n + 2]
        printed = re.sub(r"^ *nvcc was not found: .*\n", "", show(command[2:].strip()), flags=re.MULTILINE).rstrip("\n")
        if steady(printed) != steady(shown).rstrip("\n"):
            shown = printed + "\n" * bool(printed) + "\n" * (bool(printed) and n + 2 < len(parts))
        now += command + shown
    return now


@pytest.mark.parametrize("path", [path for path in PAGES if _SESSION.search(_page(path))], ids=_name)
def test_sessions(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], update: bool
) -> None:
    """Every block ``console`` is what a shell shows; ``--update-golden`` writes what it shows now."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", "")  # CUDA is checked as the PTX beside it, whichever nvcc there is
    monkeypatch.delenv("COLUMNS", raising=False)
    show = _in_a_shell(tmp_path) if path == TUTORIAL else _in_the_tree(capsys)
    page = _page(path)
    now = _SESSION.sub(lambda session: _replayed(session[1], show), page)
    if update:
        path.write_text(now, encoding="utf-8")
    assert now == page or update


@pytest.mark.parametrize("path", [path for path in PAGES if _FILE.search(_page(path))], ids=_name)
def test_files(path: Path, update: bool) -> None:
    """A block whose title is the name of a file is that file."""
    page = _page(path)
    now = _FILE.sub(lambda file: f'{file[1]} title="{file[2]}"\n{_page(ROOT / file[2])}', page)
    if update:
        path.write_text(now, encoding="utf-8")
    assert now == page or update


def test_no_session_is_left_out() -> None:
    """A block that begins with a prompt says that it is a session."""
    for path in PAGES:
        assert not re.search(r"^```(?!console\n).*\n\$ ", _page(path), re.MULTILINE), path


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_commands_without_output(path: Path) -> None:
    """Of what is shown without its output, the command and its options are there."""
    known = typer.main.get_command(application())
    assert isinstance(known, typer.core.TyperGroup)
    for block in _BLOCK.findall(_SESSION.sub("", _page(path))):
        for line in _COMMAND.findall(block):
            words = [word.strip("[]()|") for word in line.partition(" #")[0].split()[1:]]
            command = known.commands.get(words[0], known)
            options = {option for item in command.params for option in (*item.opts, *item.secondary_opts)}
            assert command is not known or words[0].startswith("-"), line
            assert {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= options | {
                "--help",
                "-h",
            }, line


def test_examples_of_the_formats() -> None:
    """A whole test that a page shows can be read, and has the verdict it expects."""
    from ptxmm.analysis.expectation import expectations
    from ptxmm.analysis.outcomes import check
    from ptxmm.cat import index, load

    blocks = _BLOCK.findall(_page(ROOT / "docs" / "formats.md"))
    read = [test for b in blocks for kind, start in (("litmus", "PTX "), ("nvlitmus", ".global"))
            if b.startswith(start) for test in parse(b, "page", format=kind)]  # fmt: skip
    assert [test.name for test in read] == ["MP+release+acquire", "page.example"]
    for test in read:
        for name, expected in expectations(test, index().models.keys()).items():
            assert check(test, load(name), expectation=expected).conclusion == "expected"


def test_the_json_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example has the keys that the document has."""
    (block,) = [b for b in _BLOCK.findall(_page(ROOT / "docs" / "results.md")) if b.startswith("{")]
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        run(["check", "litmus/coherence/A10-unknown-but-constant.litmus", "--reading", "dep=syn", "--json"])
    document, example = json.loads(capsys.readouterr().out), json.loads(block)
    entries = document["results"][0], example["results"][0]
    assert document["schema"] == example["schema"]
    assert entries[0].keys() == entries[1].keys()
    assert entries[0]["outcomes"][0].keys() == entries[1]["outcomes"][0].keys()
    assert entries[0]["outcomes"][0]["registers"]["P1:r0"] == {"unknown": "s"}
    assert entries[0]["notes"] == entries[1]["notes"]


@pytest.mark.parametrize("what,instruction", OPEN, ids=[row[0] for row in OPEN])
def test_what_is_not_worked_out(what: str, instruction: str) -> None:
    """Everything is decided but what depends on it: here the register that it writes."""
    from ptxmm.analysis.outcomes import check
    from ptxmm.cat import load
    from ptxmm.program.shared.refusals import OPAQUE

    section = _page(ROOT / "docs" / "formats.md").partition("**What is not worked out.**")[2].partition("\n\n")[0]
    assert what in section
    written = re.findall(r"[a-z]\w*", instruction.partition(" ")[2])[0]
    text = _PROGRAM.format(f"{instruction};\n  st.global.b32 [g+4], {'r0' if written == 'r0' else 0}")
    for engine in ("z3", "enumerate"):
        (test,) = parse(text, "open.litmus")
        assert check(test, load("ptx-8.5"), engine=engine).conclusion == "unchecked"
        (test,) = parse(text.replace("locations [", f"locations [P0:{written}; "), "open.litmus")
        if instruction.startswith("setp"):
            assert check(test, load("ptx-8.5"), engine=engine).conclusion == "inconclusive"
            continue
        with pytest.raises(PtxmmError) as caught:
            check(test, load("ptx-8.5"), engine=engine)
        assert caught.value.message == OPAQUE


@pytest.mark.parametrize("what,instruction", REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_refused(what: str, instruction: str) -> None:
    """Every row says what the checker does; when something is no longer refused, the page has to say so."""
    from ptxmm.analysis.outcomes import check
    from ptxmm.cat import load

    section = _page(ROOT / "docs" / "formats.md").partition("## What is refused")[2]
    assert what in section
    for engine in ("z3", "enumerate"):
        with pytest.raises(PtxmmError) as caught:
            (test,) = parse(_PROGRAM.format(instruction), "refused.litmus")
            check(test, load("ptx-8.5"), engine=engine)
        assert caught.value.kind == "unsupported", caught.value
        assert caught.value.line is not None
