"""``elect.sync`` elects any lane of its mask, the same one for the same mask every time (PTX ISA 9.7.14.14)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.explain.analysis import explain
from ptxmm.analysis.fences import fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.program.test import Test
from ptxmm.program.unspecified.elected import untried_leaders, with_leaders
from ptxmm.ptx.ops import WarpExchange
from tests.decided import decided_tests
from tests.kernels import launched
from tests.support import model_named, parse_one

ELECT = "elect.sync %r2|%p2, 0xffffffff;"
INIT = "@%p1 st.shared.u32 [s], 7;"
USE = "@%p2 ld.shared.u32 %r4, [s]; @%p2 st.global.u32 [%rd0], %r4;"


def kernel(body: str, condition: str, block: int = 2) -> list[Test]:
    start = ".shared .align 4 .u32 s; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 3;"
    return launched(f"{start} {body}", {"x": '"u32"'}, f"condition = '{condition}'", launch=f"block = {block}")


def conclusions(body: str, condition: str, block: int = 2) -> set[str]:
    return {found.conclusion for found in decided_tests(kernel(body, condition, block), 100, "both")}


KERNELS = [
    # The store writes 0 only where lane 0 is elected.
    (ELECT + "@%p2 st.global.u32 [%rd0], %r1;", "forall (x == 0)", "contradicted"),
    (ELECT + "@%p2 st.global.u32 [%rd0], %r1;", "forall (x == 0 \\/ x == 1)", "expected"),
    # So with the number that lane 0 is told.
    (ELECT + "@%p1 st.global.u32 [%rd0], %r2;", "exists (x == 1)", "expected"),
    (ELECT + "@%p2 red.global.add.u32 [%rd0], 1;", "forall (x == 1)", "expected"),
    # The same lane twice, also where the second mask is in a register; another one for another mask.
    (ELECT + "elect.sync _|%p3, -1; @%p2 red.global.add.u32 [%rd0], 1; @%p3 red.global.add.u32 [%rd0], 2;"
     " and.pred %p2, %p2, %p3; @%p2 red.global.add.u32 [%rd0], 4;", "forall (x == 7)", "expected"),
    ("elect.sync _|%p2, 3; elect.sync _|%p3, %r3; xor.pred %p2, %p2, %p3; @%p2 red.global.add.u32 [%rd0], 1;",
     "forall (x == 0)", "expected"),
    (ELECT + "elect.sync _|%p3, 3; xor.pred %p2, %p2, %p3; @%p2 red.global.add.u32 [%rd0], 1;", "exists (x == 2)",
     "expected"),
    # Only lane 1 comes.
    ("@%p1 bra E; elect.sync %r2|%p2, 3; @%p2 st.global.u32 [%rd0], 5;\nE:", "forall (x == 5)", "expected"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "condition", "wanted"), KERNELS)
def test_any_lane(body: str, condition: str, wanted: str) -> None:
    assert conclusions(body, condition) == {wanted}


def test_a_missing_warp_barrier_is_a_race() -> None:
    """Lane 0 initialises, the elected lane uses it (9.7.14.2: ``bar.warp.sync`` would order that)."""
    assert conclusions(INIT + ELECT + USE, "forall (x == 7)") == {"contradicted"}
    assert conclusions(INIT + "bar.warp.sync 0xffffffff;" + ELECT + USE, "forall (x == 7)") == {"expected"}
    (test,) = kernel(INIT + ELECT + USE, "forall (x == 7)")
    assert races(test, model_named("ptx-8.5"), limits=Limits()).race_free is False


def test_who_initialises_uses() -> None:
    """Two elections with one mask need no barrier between them."""
    init, again = "@%p2 st.shared.u32 [s], 7;", ELECT.replace("%p2", "%p3") + USE.replace("%p2", "%p3")
    assert conclusions(ELECT + init + again, "forall (x == 7)") == {"expected"}
    assert conclusions(ELECT + init + again.replace("0xffffffff", "3"), "forall (x == 7)") == {"contradicted"}


def leaders(test: Test, asked: tuple[int, ...] = ()) -> list[dict[int, int]]:
    """What each choice says of the first warp."""
    tests = with_leaders(test, asked)
    return [dict(next(op.leaders for op in t.threads[0].body if isinstance(op, WarpExchange))) for t in tests]


def test_one_stands_for_lanes_that_are_alike() -> None:
    add = ELECT.replace("%r2", "_") + "@%p2 red.global.add.u32 [%rd0], 1;"
    (test,) = kernel(add, "forall (x == 1)", 32)
    assert leaders(test) == [{0xFFFFFFFF: 0}]
    assert len(leaders(test, (5,))) == 2
    assert len(leaders(test, tuple(range(32)))) == 8
    assert untried_leaders(test) == []
    assert len(untried_leaders(test, tuple(range(32)))) == 1
    assert len(list(with_leaders(test, every=True))) == 32
    assert conclusions(add, "forall (x == 1)", 32) == {"expected"}
    # Lane 0 has other code; two masks of alike lanes have one leader, or two.
    (test,) = kernel(INIT + ELECT + USE, "forall (x == 7)", 32)
    assert leaders(test) == [{0xFFFFFFFF: 0}, {0xFFFFFFFF: 1}]
    (test,) = kernel(add + "elect.sync _|%p3, 0xffff; @%p3 red.global.add.u32 [%rd0], 1;", "forall (x == 2)", 16)
    assert leaders(test) == [{0xFFFFFFFF: 0, 0xFFFF: 0}, {0xFFFFFFFF: 0, 0xFFFF: 1}]


@pytest.mark.parametrize("other", [
    "elect.sync %r4|%p3, 0xffffffff; st.global.u32 [%rd0], %r4;",  # the number of the lane
    "shfl.sync.idx.b32 %r4, %r4, 2, 31, 0xffffffff; st.global.u32 [%rd0], %r4;",
    "vote.sync.ballot.b32 %r4, %p2, 0xffffffff; st.global.u32 [%rd0], %r4;",
    "match.any.sync.b32 %r4, %r1, 0xffffffff; st.global.u32 [%rd0], %r4;",
    "mul.lo.u32 %r4, %r1, 3; @%p2 st.global.u32 [%rd0], %r4;",
])  # fmt: skip
def test_what_tells_lanes_apart(other: str) -> None:
    (test,) = kernel(ELECT + other, "forall (x == 1)", 4)
    assert len(leaders(test)) == 4


def test_more_leaders_than_are_tried() -> None:
    body = ELECT + "@%p2 st.global.u32 [%rd0], %r1;"
    assert conclusions(body, "forall (x < 32)", 32) == {"inconclusive"}
    assert conclusions(body, "forall (x == 0)", 32) == {"contradicted"}
    (test,) = kernel(body, "forall (x < 32)", 32)
    result = check(test, model_named("ptx-8.5"))
    assert result.status == "bounded"
    assert [n.text for n in result.notes if n.kind == "open"] == [
        "which lane is elected is left open (P0 line 14: elect): not all were tried"
    ]
    assert explain(test, model_named("ptx-8.5")).status == "bounded"


LITMUS = """PTX t
{{ .global .u32 x = {start}; .global .u32 y = 0; }}
P0 @ warp 0, cta 0 {{ ld.relaxed.cta.global.u32 r1, [x]; elect.sync r0|p, r1; @p st.global.u32 [y], 1; }}
P1 @ warp 0, cta 0 {{ mov.u32 r1, 3; elect.sync r0|p, r1; @p st.global.u32 [y], 2; }}
{condition}
"""


def test_a_mask_from_memory() -> None:
    """A refutation is certain, a claim is not: other masks than those tried may be there."""
    model = model_named("ptx-8.5")
    found = check(parse_one(LITMUS.format(start=3, condition="forall (y == 1)")), model, engine="both")
    assert {o.satisfies for o in found.outcomes} == {False, True}
    found = check(parse_one(LITMUS.format(start=3, condition="forall (y == 1 \\/ y == 2)")), model, engine="both")
    assert found.status == "bounded"


def test_a_lane_that_is_alone_stands_for_its_warp() -> None:
    text = "PTX t\n{ }\nP0 @ cta 0 { elect.sync r0|p, 0xffffffff; selp.u32 r1, 1, 0, p; }\nforall (P0:r1 == 1)\n"
    for place in ("@ cta 0", "@ cta 0, warp 0"):
        found = check(parse_one(text.replace("@ cta 0", place)), model_named("ptx-8.5"), engine="both")
        assert (found.status, [o.satisfies for o in found.outcomes]) == ("complete", [True])


def test_barriers_are_needed_whoever_is_elected() -> None:
    """Not only for the lane that stands for others: a barrier of another lane may be the one that goes."""
    text = """PTX t
{ .shared .u32 s = 0; .global .u32 x = 0; }
P0 @ warp 0, cta 0 { elect.sync _|p, 3; @p st.relaxed.cta.shared.u32 [s], 1; fence.acq_rel.cta;
  @p st.relaxed.cta.global.u32 [x], 1; }
P1 @ warp 0, cta 0 { elect.sync _|p, 3; @p st.relaxed.cta.shared.u32 [s], 1; fence.acq_rel.cta;
  @p st.relaxed.cta.global.u32 [x], 1; }
P2 @ warp 1, cta 0 { ld.relaxed.cta.global.u32 r0, [x]; fence.acq_rel.cta; ld.relaxed.cta.shared.u32 r1, [s]; }
exists (P2:r0 == 1 /\\ P2:r1 == 0)
"""
    test = parse_one(text)
    assert len(leaders(test)) == 1
    found = fences(test, model_named("ptx-8.5"))
    assert [item.verdict for item in found.items if item.text.startswith("fence")] == ["needed"] * 3
