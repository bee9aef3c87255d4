"""Waits that give up (``formats.modules.timeouts``): what ``assume = ["no-timeout"]`` leaves out, and what not."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.analysis.result import Result
from ptxmm.cli.app import run
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.modules.launch import parse_launches
from tests.decided import decided_tests

LAUNCH = """// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "out"]
// ptxmm: assume = ["no-timeout"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 42)"
"""
MODULE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d, .param .u64 f, .param .u64 o)
{
  .reg .pred %p<5>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [d];
  ld.param.u64 %rd2, [f];
  ld.param.u64 %rd3, [o];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, 0;
  mov.u64 %rd4, %clock64;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  st.global.u32 [%rd1], 42;
  st.release.gpu.global.u32 [%rd2], 1;
  ret;
WAIT:
  ld.acquire.gpu.global.u32 %r3, [%rd2];
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra DONE;
  COUNT
  bra WAIT;
FAR:
  trap;
DONE:
  ld.global.u32 %r4, [%rd1];
  st.global.u32 [%rd3], %r4;
  ret;
}
"""
ROUNDS = "add.u32 %r2, %r2, 1;\n  setp.gt.u32 %p3, %r2, 100000;\n  @%p3 bra FAR;"
TIME = "mov.u64 %rd5, %clock64;\n  sub.s64 %rd6, %rd5, %rd4;\n  setp.gt.s64 %p3, %rd6, 1000;\n  @%p3 bra FAR;"
OTHER_WAY = ROUNDS.replace("gt", "le").replace("@%p3 bra FAR", "@%p3 bra WAIT;\n  trap")
PREDICATED = ROUNDS.replace("bra FAR", "trap")


def claimed(count: str, launch: str = LAUNCH, module: str = MODULE) -> Result:
    (found,) = decided_tests(parse(launch + module.replace("COUNT", count), "k.ptx"), 20)
    return found


@pytest.mark.parametrize("count", [ROUNDS, TIME, OTHER_WAY, PREDICATED])
def test_no_wait_gives_up(count: str) -> None:
    result = claimed(count)
    assert (result.conclusion, result.status, result.test) == ("expected", "complete", "k (assuming no-timeout)")
    assert any("executions in which that happens were left out (no-timeout)" in note.text for note in result.notes)
    without = claimed(count, LAUNCH.replace('// ptxmm: assume = ["no-timeout"]\n', ""))
    assert (without.conclusion, without.holds, without.test) == ("inconclusive", None, "k")
    assert any('assume = ["no-timeout"] in the launch' in note.text for note in without.notes)


@pytest.mark.parametrize("count", [ROUNDS, TIME])
def test_what_is_wrong_stays_wrong(count: str) -> None:
    result = claimed(count, module=MODULE.replace("ld.acquire", "ld.relaxed"))
    assert (result.conclusion, result.test) == ("contradicted", "k (assuming no-timeout)")


@pytest.mark.parametrize(
    "change",
    [
        (ROUNDS, "  trap;\nDONE", "DONE"),  # it gives up and goes on
        (ROUNDS, "  trap;\nDONE", "  @%p1 bra DONE;\n  trap;\nDONE"),  # perhaps
        (ROUNDS, "  trap;\nDONE", "  bra WAIT;\n  trap;\nDONE"),  # and waits again
        (ROUNDS.replace("%r2, 1;", "%r2, %r3;"), "", ""),  # memory decides how fast
        ("setp.gt.u32 %p3, %r3, 9;\n  @%p3 bra FAR;", "", ""),  # memory decides
        (TIME.replace("1000", "%rd7").replace("mov", "ld.global.u64 %rd7, [%rd1];\n  mov", 1), "", ""),
    ],
)
def test_other_ends_are_no_timeouts(change: tuple[str, str, str]) -> None:
    count, old, new = change
    module = MODULE.replace(old, new) if old else MODULE
    result = claimed(count, module=module)
    assert result.test == "k"
    assert not any("no-timeout" in note.text for note in result.notes)


def test_a_trap_that_no_wait_comes_to_is_no_timeout() -> None:
    """A loop that reads nothing and counts to its trap: no execution goes by it."""
    loop = "FIRST:\n  add.u32 %r5, %r5, 1;\n  setp.eq.u32 %p4, %r5, 3;\n  @%p4 bra FAR;\n  bra FIRST;\nWAIT:"
    result = claimed("", module=MODULE.replace("WAIT:", "  mov.u32 %r5, 0;\n" + loop, 1))
    assert result.test == "k"


def test_the_row_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(LAUNCH + MODULE.replace("COUNT", ROUNDS))
    with pytest.raises(SystemExit) as ended:
        run(["check", str(path)])
    out, err = capsys.readouterr()
    assert (ended.value.code or 0, err) == (0, "")
    assert "forall: yes  [k (assuming no-timeout)]" in out.splitlines()[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('"no-timeout"', "`assume` is a list of names"),
        ('["no-timeouts"]', "`no-timeouts` is no assumption"),
        ("[1]", "`assume` is a list of names"),
    ],
)
def test_mistakes(given: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_launches(f"kernel = 'k'\nassume = {given}\n", "k.toml")
    assert (caught.value.message, caught.value.line) == (message, 2)
