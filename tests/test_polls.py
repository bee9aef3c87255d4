"""Regions of polls of one place (``program.shared.polls``): one load in a loop for all, against the reference, which
executes the program as it is."""

from __future__ import annotations

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.program.shared.control import control_flow
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Branch, Load
from tests import random_polls, reference
from tests.reference import everything, restrict
from tests.reference_dependencies import TooSlow
from tests.reference_flow import Flow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

FRAME = """PTX t
{{
  .global .u32 f = 0;
  .global .u32 d = 0;
}}
P0 @ cta 0 {{
  {0}
  ld.u32 out, [d];
}}
P1 @ cta 1 {{
  st.u32 [d], 1;
  st.release.gpu.u32 [f], 1;
}}
exists (P0:out == 0)
"""
WAIT = """ld.acquire.gpu.u32 r1, [f]; setp.eq.u32 p, r1, 1; @p bra X;
  ld.acquire.gpu.u32 r2, [f]; setp.eq.u32 q, r2, 1; @q bra X;
  L: ld.acquire.gpu.u32 r3, [f]; setp.ne.u32 s, r3, 1; @s bra L;
  X: """


def left(test: Test) -> int:
    """The loads of the first thread that are left."""
    return sum(isinstance(op, Load) for op in without_repeats(test).threads[0].body)


def test_one_load_is_left() -> None:
    test = parse_one(FRAME.format(WAIT))
    made = without_repeats(test)
    assert left(test) == 2
    back = [pc for pc, op in enumerate(made.threads[0].body) if isinstance(op, Branch) and op.target == 0]
    assert len(back) == 1  # so that one round may fail
    assert {op.target for op in made.threads[0].body if isinstance(op, Branch) and op.guard is None} == {0, *back}
    assert 0 in control_flow(made.threads[0]).spin.values()
    assert without_repeats(test) is made
    assert ask("solve", made, model_named("ptx-8.5")).flags == frozenset()


def test_a_load_between_may_be_relaxed() -> None:
    """As in a semaphore of libcu++: what leads out acquires, the loop before it need not."""
    relaxed = "I: ld.relaxed.gpu.u32 r9, [f]; setp.ne.u32 t, r9, 1; @t bra I;"
    text = WAIT.replace("@q bra X;", f"@q bra X; {relaxed}")
    assert left(parse_one(FRAME.format(text))) == 2
    # Here it may go on for another value.
    assert left(parse_one(FRAME.format(text.replace("r9, 1", "r9, 2")))) == 5
    weaker = WAIT.replace("ld.acquire.gpu.u32 r1", "ld.relaxed.gpu.u32 r1")
    assert left(parse_one(FRAME.format(weaker))) == 3  # those that acquire as one, behind the relaxed one


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ld.acquire.gpu.u32 r2", "ld.relaxed.gpu.u32 r2"),  # another order
        ("r2, [f]", "r2, [d]"),  # another place
        ("setp.eq.u32 q, r2, 1", "setp.eq.u32 q, r2, 2"),  # left for another value
        ("@s bra L", "@s bra L; st.u32 [f], 0"),  # a write, before the end
        ("@q bra X;", "@q bra X; add.u32 n, n, 1; setp.eq.u32 t, n, 9; @t bra X;"),  # a counter that decides
        ("@q bra X;", "@q bra X; fence.sc.gpu;"),
        ("@q bra X;", "bra X;"),  # left whatever it returns
        ("X: ", "X: add.u32 m, r2, 0; st.u32 [d], m; "),  # what a poll has read
    ],
)
def test_other_regions_stay(old: str, new: str) -> None:
    text = WAIT.replace(old, new)
    assert text != WAIT
    test = parse_one(FRAME.format(text))
    assert left(test) == 4


def test_registers_that_are_asked_for_stay() -> None:
    test = parse_one(FRAME.format(WAIT).replace("P0:out == 0", "P0:r2 == 0"))
    assert left(test) == 4


def test_no_final_state_changes(monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    monkeypatch.setattr(Flow, "spins", lambda self, pc: None)
    model, compared, raced = model_named("ptx-8.5"), 0, 0
    for seed in range(120):
        test = parse_one(random_polls.program(seed))
        made = without_repeats(test)
        if made is test:
            continue
        what = Observed(observed(test).registers, everything(test).memory)
        try:
            executions = list(reference.executions(test, "ptx-8.5", unroll=2, seconds=2))
        except TooSlow:
            continue
        found = ask("solve", made, model, unroll=2, observed=what)
        plain = ask("solve", test, model, unroll=2, observed=what)
        assert found.states == {restrict(state, what) for state, _ in executions}, seed
        # Those of executions that do not end are flagged, too.
        assert found.flags == plain.flags >= frozenset().union(*(flags for _, flags in executions)), seed
        compared, raced = compared + 1, raced + bool(found.flags)
    tally.notes.append(f"regions of polls in the reference: {compared}, {raced} with races")
    assert compared >= 40 and raced >= 10


PIPELINE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .shared .align 8 .b8 state[16];
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra W;
  mbarrier.init.shared.b64 [state], 2;
  st.shared.u32 [state+8], 7;
W:
  bar.warp.sync 3;
  mov.u64 %rd2, state;
  cvta.shared.u64 %rd3, %rd2;
  add.s64 %rd4, %rd3, 8;
  match.any.sync.b64 %r2, %rd4, 3;
  st.global.u32 [%rd1], %r2;
  mbarrier.arrive.shared.b64 %rd5, [state];
  ld.shared.u32 %r3, [state+8];
  st.global.u32 [%rd1], %r3;
  ret;
}
"""


BY_REGISTER = "  ld.global.u64 %rd6, [%rd1];\n  ld.u32 %r3, [%rd6];\n  st.global.u32 [%rd1], %r3;\n  ret;"


def test_an_address_that_is_only_compared() -> None:
    """``match.any`` of the address of a counter beside an mbarrier, as in ``cuda::pipeline_shared_state``."""
    launch = '// ptxmm: block = 2\n// ptxmm: args = ["out"]\n// ptxmm: [objects]\n// ptxmm: out = "u32"\n'
    (test,) = parse_ptx(launch + PIPELINE, "k.ptx")
    assert "cta 0:state_0" in test.objects or any(key.endswith("state_0") for key in test.objects)
    # Where an access goes by a register, that may be the one.
    with pytest.raises(PtxmmError, match="an mbarrier has the type"):
        parse_ptx(
            launch
            + PIPELINE.replace(
                "  ret;", "  ld.global.u64 %rd6, [%rd1]; ld.u32 %r3, [%rd6];\n  st.global.u32 [%rd1], %r3;\n  ret;"
            ),
            "k.ptx",
        )
