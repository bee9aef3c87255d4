"""All errors of a litmus file, each once, and none that another one makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxmm import formats
from ptxmm.cli.app import run
from ptxmm.errors import MOST, PtxmmError
from ptxmm.formats.further import further
from ptxmm.formats.text import open_text
from tests.support import CORPORA, ROOT

MANY = """PTX t
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cta 0                 | P1 @ cta 1                   ;
 st.relaxed.device.global.u32 [x], 1 | ld.global.u32 r0, [x] ;
 st.global.u23 [y], 1       | ld.global.u32 r1, [y]        ;
 st.global.u32 [y], 1       | ld.global.u32 r1 [y]         ;
 __threadfence()            | ld.global.u32 r2, [y]        ;
 st.global.u32 [y], 4294967296 |                           ;
exists (P1:r0 == 1 && P1:r1 == 0)
"""
BLOCK = """PTX t
{ .global .u32 x = 0; }
P0 {
  .reg .u32 a;
L: ld.global.u32 a, [x]
  st.global.u32 [x], 1;
  st.relaxed.block.global.u32 [x], 1; mov.u23 a, 1;
  @p bra M;
}
exists (x == 1)
"""
FRAME = """PTX t
ISA=foo
{ .global .u23 x = 0; .global .u32 flag = 0; .global .u32 y = ; .shared .b64 bar; }
 P0 @ block 0                           | P1 @ cta 99999999999                 ;
 st.relaxed.device.global.u32 [flga], 1 | ld.global.u32 r0, [x]                ;
 st.global.u32 [falg], 1                | ld.global.u32 r1, [y]                ;
 @p st.global.u23 [flag], 1             | cp.async.ca.shared.global [x], [y], 5 ;
 st.global.u32 [flga], 2                | ld.global.u32 r2, [zz]               ;
 st.global.u32 [flag], 1  st.global.u32 [flag], 1                              ;
 st.global.u32 [flag], 4294967296       |                                      ;
exist (P1:r0 == 1 && P1:r1 == 0)
"""
NAMES = """PTX t
{ .global .u32 x = 0; .global .u32 flag = 0; }
P0 @ cta 0 {
  .reg .pred p; .reg .u99 q;
  setp.eq.u32 p, r0, 1;
  @p st.global.u32 [flag], 1;
  @z st.relaxed.global.u32 [flag], 1;
  st.global.u32 [flga], 1;
  st.global.u32 [flga], 2;
  st.global.u32 [y], 2;
  mov.u32 r2, q;
  bra LOOP;
}
exists (P0:r9 == 1 /\\ P7:r0 == 0 /\\ xx == 3 /\\ x == 4294967296)
locations [abc; x;]
"""
ONE_DECLARATION = "PTX t\n{ .global .u23 x = 0; }\nP0 {\n" + "  st.global.u32 [x], 1;\n" * 30 + "}\nexists (x == 1)\n"
UNKNOWN = "PTX t\n{ .global .u32 y = 0; }\nP0 {\n" + "  st.global.u32 [x], 1;\n" * 30 + "}\nexists (y == 1)\n"


def errors(text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(PtxmmError) as caught:
        formats.parse(text, "t.litmus")
    return [(e.line, e.message) for e in (caught.value, *caught.value.more)]


def test_all_are_told() -> None:
    found = errors(MANY)
    assert {line for line, _ in found} == {4, 5, 6, 7, 8, 9}
    assert dict(found)[4] == "`.device` is no scope of PTX" and dict(found)[5] == "`.u23` is no type of PTX"
    assert dict(found)[7].startswith("`__threadfence()` is CUDA C++")
    assert len(found) == len({line for line, _ in found})


def test_a_missing_end_makes_one_error() -> None:
    assert [line for line, _ in errors(BLOCK)] == [5, 7, 7, 8]


def test_frame_and_threads_together() -> None:
    """In order of place; what is declared, written or placed by what is wrong makes no error."""
    found = errors(FRAME)
    assert [line for line, _ in found] == [2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 10, 11]
    messages = [message for _, message in found]
    assert messages[0] == "this is not a version of the PTX ISA"
    assert messages[3].startswith("expected `warp`") and messages[4] == "`.device` is no scope of PTX"
    assert messages[5].startswith("`falg`") and messages[6] == "`.u23` is no type of PTX"
    assert messages[7] == "the size of `cp.async.ca` is 4, 8 or 16, not 5"
    assert messages[8].startswith("`zz`") and messages[9] == "a `|` is missing before `st.global.u32`"
    assert messages[11] == "`exist` begins no condition"


def test_every_unknown_name_is_told_once() -> None:
    found = errors(NAMES)
    assert [line for line, _ in found] == [4, 5, 7, 8, 10, 12, 14, 14, 14, 14, 15]
    names = ["r0", "flga", "y", "LOOP", "P7", "xx", "abc"]
    assert [name for _, message in found for name in names if f"`{name}`" in message] == names


@pytest.mark.parametrize("text", [ONE_DECLARATION, UNKNOWN])
def test_no_false_ones_follow(text: str) -> None:
    assert len(errors(text)) == 1


def test_there_is_a_limit() -> None:
    wrong = "PTX t\n{ .global .u32 x = 0; }\nP0 {\n" + "  st.global.u23 [x], 1;\n" * 50 + "}\nexists (x == 1)\n"
    assert len(errors(wrong)) == MOST


def test_nothing_is_wrong_with_what_is_right() -> None:
    """Read piece by piece, a test without errors has none."""
    paths = sorted((ROOT / "litmus").glob("**/*.litmus"))
    paths += sorted(CORPORA.glob("**/*.litmus")) if CORPORA.is_dir() else []
    for path in paths:
        text = open_text(path.read_text(encoding="utf-8"), str(path))
        assert further(text, None, PtxmmError("")) == [], path


def test_json_lists_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.litmus"
    path.write_text(MANY)
    with pytest.raises(SystemExit):
        run(["check", str(path), "--json"])
    (entry,) = json.loads(capsys.readouterr().out)["results"]
    assert entry["errors"][0] == entry["error"] and len(entry["errors"]) == 6
    with pytest.raises(SystemExit) as ended:
        run(["check", str(path)])
    assert ended.value.code == 2 and capsys.readouterr().err.count(": error: ") == 6


KERNEL = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p0)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p0];
  st.global.u32 [%rd1], 1;
  ret;
}
"""
LAUNCH = 'args = ["x"]\n[objects]\nx = "u32"\n[check]\ncondition = "exists (x == 1)"\n'


def of_kernel(folder: Path, body: str, launch: str = LAUNCH) -> list[tuple[int | None, str]]:
    (folder / "k.ptx").write_text(KERNEL.replace("  st.global.u32 [%rd1], 1;\n", body))
    (folder / "k.toml").write_text(launch)
    with pytest.raises(PtxmmError) as caught:
        formats.read(folder / "k.ptx")
    for error in (caught.value, *caught.value.more):
        assert error.file is not None and error.source is not None
    return [(e.line, e.message) for e in (caught.value, *caught.value.more)]


def test_modules(tmp_path: Path) -> None:
    """Of statements that can't be read, then of names, then of instructions that there are not."""
    body = "  st.global.u32 [%rd1, 1;\n  mov.u32 %r1 5;\n  .rege .b32 %q<2>;\n  add.s32 %r1, %r1, , 2;\n"
    assert [line for line, _ in of_kernel(tmp_path, body)] == [9, 10, 11, 12]
    body = "  st.global.u32 [%rdd1], 1;\n  st.global.u32 [%rx], 1;\n  st.global.u32 [%rdd1], 1;\n"
    found = of_kernel(tmp_path, body)
    assert [line for line, _ in found] == [9, 10] and all("neither a register nor" in message for _, message in found)
    body = "  st.global.u23 [%rd1], 1;\n  st.relaxed.device.u32 [%rd1], 1;\n  bra.uni L;\n  st.u99 [%rd1], 1;\nL:\n"
    assert [line for line, _ in of_kernel(tmp_path, body)] == [9, 10, 12]


def test_launches(tmp_path: Path) -> None:
    wrong = (
        'grid = 0\nblok = 32\nargs = 5\n[objects]\nx = "u33"\ny = 5\n[check]\nraces = "all"\ncond = "exists"\n'
        'robust = 1\ncondition = "exist (x == 1)"\n'
    )
    found = of_kernel(tmp_path, "", wrong)
    assert [line for line, _ in found] == [1, 2, 3, 5, 6, 8, 9, 10, 11]
    two = 'args = ["x"]\nobjects.x = "u32"\n[[launch]]\ngird = 1\n[[launch]]\nblock = 9999\ncheck.unroll = -1\n'
    assert [line for line, _ in of_kernel(tmp_path, "", two)] == [4, 6, 7]


MODEL = """let a = po & foo
let b = [R]; a
let c = R ; po
acyclic b as A
acyclic rff as B
acyclic c | co as C
flag ~empty po
show foo
let rec d = d ; a
"""


def test_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a wrong definition defines makes no errors where it is used; an unknown name is told once."""
    path = tmp_path / "m.cat"
    path.write_text(MODEL)
    with pytest.raises(SystemExit) as ended:
        run(["check", str(ROOT / "litmus" / "mp" / "MP.litmus"), "--model", str(path)])
    err = capsys.readouterr().err
    assert ended.value.code == 2
    assert [line.split(":")[1] for line in err.splitlines() if ": error: " in line] == ["1", "3", "5", "7"]
