"""``activemask`` names lanes that came to the instruction, in any groups of them (PTX ISA 9.7.14.11)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.instruction import bound_reached
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.program.test import Test
from ptxmm.program.unspecified.active import untried_masks, with_masks
from ptxmm.ptx.ops import Branch, Imm, WarpExchange
from tests.decided import decided_tests
from tests.kernels import launched
from tests.support import model_named, parse_one

STORE = "st.global.u32 [%rd3], %r2;"
DYNAMIC = "ld.global.u32 %r3, [%rd0]; setp.ne.u32 %p2, %r3, 0;"


def kernel(body: str, condition: str, block: int = 2) -> list[Test]:
    start = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; setp.eq.u32 %p1, %r1, 0;"
    objects = dict.fromkeys(("x", "out"), '{ type = "u32", count = 4 }')
    return launched(f"{start} {body}", objects, f"condition = '{condition}'", launch=f"block = {block}")


def conclusions(body: str, condition: str, block: int = 2) -> set[str]:
    return {found.conclusion for found in decided_tests(kernel(body, condition, block), 100, "both")}


# What a lane may see, where the lanes that come to the instruction are known.
KNOWN = [
    ("activemask.b32 %r2;" + STORE, "forall (out[0] == 3 /\\ out[1] == 3)", "contradicted"),
    ("activemask.b32 %r2;" + STORE, "exists (out[0] == 1 /\\ out[1] == 2)", "expected"),
    ("activemask.b32 %r2;" + STORE, "~exists (out[0] == 1 /\\ out[1] == 3)", "expected"),
    ("activemask.b32 %r2;" + STORE, "forall (out[0] == 3 \\/ out[0] == 1)", "expected"),
    ("@!%p1 bra E; activemask.b32 %r2;" + STORE + "\nE:", "forall (out[0] == 1 /\\ out[1] == 0)", "expected"),
    ("@!%p1 bra E; activemask.b32 %r2;" + STORE + "\nE:", "forall (out[0] == 3)", "contradicted"),
    ("@%p1 bra A; activemask.b32 %r2; bra B;\nA: activemask.b32 %r2;\nB: " + STORE,
     "forall (out[0] == 1 /\\ out[1] == 2)", "expected"),
    ("@%p1 activemask.b32 %r2; @!%p1 mov.u32 %r2, 7;" + STORE, "forall (out[0] == 1)", "expected"),
    # A leader adds for its group: right in every grouping.
    ("activemask.b32 %r2; popc.b32 %r4, %r2; mov.u32 %r5, %lanemask_lt; and.b32 %r5, %r5, %r2; setp.eq.u32 %p2, %r5, 0;"
     " @%p2 red.global.add.u32 [%rd0], %r4;", "forall (x[0] == 2)", "expected"),
    # As if the whole warp were there: the leader is lane 0, which adds for itself only where it is alone.
    ("activemask.b32 %r2; popc.b32 %r4, %r2; @%p1 red.global.add.u32 [%rd0], %r4;", "forall (x[0] == 2)",
     "contradicted"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "condition", "wanted"), KNOWN)
def test_lanes_that_are_known(body: str, condition: str, wanted: str) -> None:
    assert conclusions(body, condition) == {wanted}


def test_a_shuffle_from_a_lane_that_may_not_be_there() -> None:
    body = "activemask.b32 %r2; shfl.sync.idx.b32 %r3, %r1, 1, 31, %r2;" + STORE
    assert "expected" not in conclusions(body, "exists (out[0] == 3)")


def test_three_lanes_in_five_ways() -> None:
    body = "activemask.b32 %r2;" + STORE
    (test,) = kernel(body, "forall (out[0] == 7)", 3)
    masks = {
        tuple(
            op.operands[0].value
            for thread in chosen.threads
            for op in thread.body
            if isinstance(op, WarpExchange) and isinstance(op.operands[0], Imm)
        )
        for chosen in with_masks(test)
    }
    assert masks == {(7, 7, 7), (1, 6, 6), (5, 2, 5), (3, 3, 4), (1, 2, 4)}
    assert untried_masks(test) == []


@pytest.mark.parametrize("body", [
    f"{DYNAMIC} @%p2 bra E; activemask.b32 %r2; {STORE}\nE: st.relaxed.gpu.global.u32 [%rd0], 0;",
    f"{DYNAMIC} @!%p2 activemask.b32 %r2; @!%p2 {STORE} st.relaxed.gpu.global.u32 [%rd0], 0;",
    "mov.u32 %r4, 0;\nL: activemask.b32 %r2; ld.relaxed.gpu.global.u32 %r3, [%rd0];"
    f" st.relaxed.gpu.global.u32 [%rd0], 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra L; {STORE}",
])  # fmt: skip
def test_where_memory_decides_nothing_is_certain(body: str) -> None:
    assert conclusions(body, "forall (out[0] == 3 \\/ out[0] == 1)") == {"inconclusive"}
    assert conclusions(body, "forall (out[0] == 3)") == {"contradicted"}


def test_races_and_litmus_tests() -> None:
    text = """PTX t
{{ .global .u32 x = 0; }}
 P0 @ cta 0, warp 0 | P1 @ cta 0, warp 0 ;
 activemask.b32 r0 | {} ;
 setp.eq.u32 p0, r0, 3 | {} ;
 @p0 st.global.u32 [x], 1 | st.global.u32 [x], 2 ;
exists (x == 1)
"""
    model = model_named("ptx-8.5")
    alone = parse_one(text.format("mov.u32 r0, 0", "mov.u32 r1, 0"))
    assert [o.satisfies for o in check(alone, model, engine="both").outcomes] == [False]
    assert races(alone, model, limits=Limits()).race_free is True
    both = parse_one(text.format("activemask.b32 r0", "mov.u32 r1, r0"))
    assert {o.satisfies for o in check(both, model, engine="both").outcomes} == {False, True}
    assert races(both, model, limits=Limits()).race_free is False


@pytest.mark.parametrize(("vote", "told"), [("vote.sync.any.pred %p2, %p2, 3;", True), ("", False)])
def test_lanes_that_go_round_by_what_they_tell_each_other(vote: str, told: bool) -> None:
    """No bound need be enough there, and the note says what would be."""
    body = f"L: atom.global.add.u32 %r3, [%rd0], 1; setp.lt.u32 %p2, %r3, 9; {vote} @%p2 bra L;"
    (test,) = kernel(body, "exists (x[0] == 99)")
    (back,) = [pc for pc, op in enumerate(test.threads[0].body) if isinstance(op, Branch)]
    assert ("need not be enough" in bound_reached(test, 3)) is told
    assert ("need not be enough" in bound_reached(test, 3, [(0, back)])) is told
