"""Cases that ``fences``, ``scopes`` and ``robust`` get wrong, each derived by hand or confirmed by ``check``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from ptxmm.analysis.fences import FencesResult, fences
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.robust import robust
from ptxmm.analysis.scopes import ScopesResult, scopes
from ptxmm.analysis.words import Property
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from tests.support import model_named, parse_one

MODEL = "ptx-8.5"
T = TypeVar("T")


def _judged(text: str, wanted: Property = Property.never, most: int | None = None) -> FencesResult:
    return _without_bug(lambda test: fences(test, model_named(MODEL), wanted=wanted, most=most), text)


def _placed(text: str, wanted: Property = Property.never) -> ScopesResult:
    return _without_bug(lambda test: scopes(test, model_named(MODEL), wanted=wanted), text)


def _without_bug(analysis: Callable[[Test], T], text: str) -> T:
    """The result; an error is reported without its frames, since a model among their arguments takes for ever to
    show."""
    test, message = parse_one(text), ""
    try:
        return analysis(test)
    except Exception as error:
        message = repr(error)
    pytest.fail(message, pytrace=False)


def _never(text: str, unroll: int = 3) -> bool | None:
    """Whether the condition holds in no final state; None: not known."""
    result = check(parse_one(text), model_named(MODEL), limits=Limits(unroll=unroll))
    if any(o.satisfies for o in result.outcomes):
        return False
    return True if result.status == "complete" else None


def _repairable(broken: str, fixed: str, cost: int) -> None:
    """``fixed`` repairs ``broken`` at ``cost``, so ``fences`` must list a repair that costs no more."""
    assert _never(broken) is False and _never(fixed) is True
    found = _judged(broken)
    assert found.holds is False
    assert found.repairs and found.repairs[0].cost <= cost


UNKNOWN = """PTX unknown
{ .global .u32 x = 0; .shared .u32 s @ cta 0; }
P0 @ cta 0 { ld.shared.u32 r0, [s]; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [x]; }
"""


@pytest.mark.parametrize("condition", ["exists (P0:r0 == 5)", "forall (P0:r0 != 5)"])
def test_a_condition_on_an_unknown_value(condition: str) -> None:
    # s holds an unknown constant (8.2.6), which may be 5: `check` says sometimes.
    assert _judged(UNKNOWN + condition + "\n").holds is False


def test_scopes_with_an_unknown_value() -> None:
    found = _placed(UNKNOWN + "exists (P0:r0 == 5)\n")
    assert found.placements[0].holds is False
    with pytest.raises(PtxmmError, match="a program with unknown values"):
        scopes(parse_one(UNKNOWN + "exists (P0:r0 == 5)\n"), model_named(MODEL), wanted=Property.robust)


def test_robust_with_an_unknown_value() -> None:
    text = """PTX copy
{ .global .u32 x = 0; .shared .u32 s @ cta 0; }
P0 @ cta 0 { ld.shared.u32 r0, [s]; st.relaxed.gpu.global.u32 [x], r0; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [x]; }
exists (P1:r1 == 5)
"""
    assert robust(parse_one(text), model_named(MODEL)).robust
    with pytest.raises(PtxmmError, match="a program with unknown values"):
        fences(parse_one(text), model_named(MODEL), wanted=Property.robust)


BOUNDED = """PTX bounded
{ .global .u32 x = 0; .global .u32 f = 0; }
P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; st.release.gpu.global.u32 [f], 1; }
P1 @ cta 1 {
  mov.u32 i, 0;
  ld.acquire.gpu.global.u32 r0, [f];
  setp.eq.u32 q, r0, 0;
  @q bra E;
L:
  add.u32 i, i, 1;
  ld.relaxed.gpu.global.u32 r1, [x];
  setp.eq.u32 p, r1, 0;
  @p bra L;
E:
  mov.u32 r2, 0;
}
exists (P1:i == 6)
"""


def test_a_weaker_form_is_not_judged_by_a_bounded_search() -> None:
    assert _never(BOUNDED) is True
    assert _never(BOUNDED.replace("ld.acquire", "ld.relaxed")) is None
    assert _never(BOUNDED.replace("ld.acquire", "ld.relaxed"), unroll=7) is False
    found = _judged(BOUNDED)
    item = next(item for item in found.items if "[f]" in item.text and item.thread == "P1")
    assert item.verdict not in ("weaker", "removable") or found.status == "bounded"


def test_a_barrier_is_not_needed_because_of_a_bound() -> None:
    # i is 1, 2, 3, ... without the barrier, never 0.
    found = _judged("""PTX bounded
{ .global .u32 x = 0; }
P0 @ cta 0 { st.relaxed.cta.global.u32 [x], 1; bar.sync 0; }
P1 @ cta 0 {
  mov.u32 i, 1;
  bar.sync 0;
L:
  add.u32 i, i, 2;
  ld.relaxed.cta.global.u32 r1, [x];
  setp.eq.u32 p, r1, 0;
  @p bra L;
}
exists (P1:i == 20)
""")
    item = next(item for item in found.items if "bar.sync" in item.text)
    assert item.verdict != "needed"


def test_a_scope_is_not_narrowed_by_a_bounded_search() -> None:
    narrow = BOUNDED.replace("ld.acquire.gpu", "ld.acquire.cta")
    assert _never(narrow, unroll=7) is False
    found = _placed(BOUNDED)
    item = next(n for n in found.narrowings if "ld.acquire" in n.instruction.text)
    assert item.alone is None
    assert (found.status, found.listed) == ("bounded", False)
    assert "cta" not in {scopes[-1] for scopes in found.joint}


SB_LOOP = """PTX SB-loop
{ .global .u32 x = 0; .global .u32 y = 0; }
P0 @ cta 0 {
  mov.u32 i, 0;
L:
  ld.relaxed.gpu.global.u32 r0, [x];
  st.relaxed.gpu.global.u32 [y], 1;
  add.u32 i, i, 1;
  setp.lt.u32 p, i, 2;
  @p bra L;
}
P1 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r1, [y]; }
exists (P0:r0 == 0 /\\ P1:r1 == 0)
"""
SB = """PTX SB
ISA=8.6
{ .global .u32 x = 0; .global .u32 y = 0; P0:r9 = 1; }
P0 @ cta 0 {
  setp.ne.u32 p, r9, 1;
  st.relaxed.gpu.global.u32 [x], 1;
  HERE
  ld.relaxed.gpu.global.u32 r0, [y];
}
P1 @ cta 1 { st.relaxed.gpu.global.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r1, [x]; }
exists (P0:r0 == 0 /\\ P1:r1 == 0)
"""


def test_a_fence_at_the_head_of_a_loop() -> None:
    _repairable(SB_LOOP, SB_LOOP.replace("L:\n", "L:\n  fence.sc.gpu;\n"), 11)


@pytest.mark.parametrize(
    "beside",
    [
        "@p fence.sc.gpu;",
        "@!p bra L; fence.sc.gpu; L:",
        "fence.release.sync_restrict::shared::cta.cluster;",
    ],
    ids=["guarded", "jumped-over", "restricted"],
)
def test_a_fence_beside_another(beside: str) -> None:
    _repairable(SB.replace("HERE", beside), SB.replace("HERE", f"fence.sc.gpu; {beside}"), 11)


def test_a_wait_and_a_release() -> None:
    text = """PTX bulk-store
{
  .shared .align 16 .u32 s[4] @ cta 0 = {1, 1, 1, 1};
  .global .align 16 .u32 g[4] = {0, 0, 0, 0};
  .global .u32 f = 0;
}
P0 @ cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  st.relaxed.gpu.global.u32 [f], 1;
}
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [g]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    _repairable(text, text.replace("  st.relaxed", "  cp.async.bulk.wait_group 0;\n  st.release"), 7)


def test_a_barrier_in_a_long_thread() -> None:
    padding = "  mov.u32 r9, 1;\n" * 15
    text = (
        "PTX long\n{ .global .u32 x = 0; }\n"
        f"P0 @ cta 0 {{\n  st.global.u32 [x], 1;\n{padding}A}}\nP1 @ cta 0 {{\n{padding}B  ld.global.u32 r1, [x];\n}}\n"
        "exists (P1:r1 == 0)\n"
    )
    plain = text.replace("A}", "}").replace("B  ", "  ")
    fixed = text.replace("A}", "bar.sync 0;}").replace("B  ", "bar.sync 0;  ")
    assert _never(plain) is False and _never(fixed) is True
    found = _judged(plain)
    assert found.repairs or not found.listed


def test_no_barrier_is_left() -> None:
    bars = " ".join(f"bar.sync {number}, 32;" for number in range(16))
    _judged(
        f"PTX sixteen\n{{ .global .u32 x = 0; }}\nP0 @ cta 0 {{ {bars} st.global.u32 [x], 1; }}\n"
        "P1 @ cta 0 { ld.global.u32 r1, [x]; }\nexists (P1:r1 == 0)\n"
    )


def test_expect_tx() -> None:
    _judged("""PTX expect
{ .shared .b64 b @ cta 0 = mbarrier(1); }
P0 @ cta 0 { mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 16; }
P1 @ cta 0 { mov.u32 r0, 0; }
exists (b == 1)
""")


def test_an_acquire_load_of_a_vector() -> None:
    _judged("""PTX vector
{ .global .align 8 .u32 x[2] = {0, 0}; }
P0 @ cta 0 { st.relaxed.gpu.global.u32 [x], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.v2.u32 {r1, r2}, [x]; ld.relaxed.gpu.global.u32 r3, [x]; }
exists (P1:r1 == 1 /\\ P1:r3 == 0)
""")


def test_a_weak_vector_as_a_flag() -> None:
    text = """PTX weak-vector
{ .global .u32 x = 0; .global .align 8 .u32 f[2] = {0, 0}; }
P0 @ cta 0 { st.global.u32 [x], 1; fence.acq_rel.gpu; st.global.v2.u32 [f], {1, 1}; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [f]; fence.acq_rel.gpu; ld.global.u32 r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    _repairable(text, text.replace("st.global.v2", "st.relaxed.gpu.global.v2"), 2)


def test_the_order_of_an_arrival() -> None:
    text = """PTX arrive
ISA=8.6
{ .shared .u32 x @ cta 0 = 0; .shared .b64 b @ cta 0 = mbarrier(1); }
P0 @ cta 0 { st.shared.u32 [x], 1; mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [b]; }
P1 @ cta 0 { mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0; ld.shared.u32 r1, [x]; }
exists (P1:p == 1 /\\ P1:r1 == 0)
"""
    _repairable(text, text.replace("arrive.relaxed", "arrive.release"), 2)


def test_a_release_fence_is_enough() -> None:
    text = """PTX MP
ISA=8.6
{ .global .u32 x = 0; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [f], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    assert _never(text.replace("fence.acq_rel", "fence.release"))
    item = next(item for item in _judged(text).items if "fence" in item.text)
    assert item.verdict == "weaker"


MULTIMEM = """PTX multimem
{ .global .u32 x0 = 0; .global .u32 x1 = 0; m @ multimem x0, x1; .global .u32 d = 0; }
P0 @ cta 0 { st.global.u32 [d], 1; multimem.st.release.sys.global.u32 [m], 1; }
P1 @ cta 1 { multimem.ld_reduce.acquire.sys.global.and.b32 r0, [m]; ld.global.u32 r1, [d]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


def test_orders_of_multimem() -> None:
    assert _never(MULTIMEM.replace(".sys", ".gpu"))
    assert [item.verdict for item in _judged(MULTIMEM).items] == ["weaker", "weaker"]


def test_scopes_of_multimem() -> None:
    found = _placed(MULTIMEM)
    assert [item.alone for item in found.narrowings] == ["gpu", "gpu"]


def test_a_barrier_that_reduces() -> None:
    found = _judged("""PTX bar-red
{ .shared .u32 x @ cta 0 = 0; }
P0 @ cta 0 { setp.eq.u32 q, 1, 1; st.shared.u32 [x], 1; bar.red.popc.u32 r0, 0, q; }
P1 @ cta 0 { setp.eq.u32 q, 1, 1; bar.red.popc.u32 r0, 0, q; ld.shared.u32 r1, [x]; }
exists (P1:r1 == 0)
""")
    assert found.items or found.notes


def test_a_reading_in_which_strength_is_no_chain() -> None:
    text = """PTX MP
{ .global .u32 x = 0; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; st.relaxed.gpu.global.u32 [f], 1; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [f]; ld.global.u32 r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    model = load(MODEL, {"sc-acqrel": "off"})
    with pytest.raises(PtxmmError, match=r"a fence\.sc is no stronger than a fence\.acq_rel"):
        fences(parse_one(text), model, most=None)


def test_robust_and_deadlock() -> None:
    text = """PTX wait
{ .global .u32 x = 0; .global .u32 f = 0; }
P0 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; st.relaxed.gpu.global.u32 [f], 1; }
P1 @ cta 0 {
  ld.relaxed.gpu.global.u32 r0, [f];
  ld.relaxed.gpu.global.u32 r1, [x];
  sub.u32 r2, r0, r1;
  setp.eq.u32 p, r2, 1;
  @p bra E;
  bar.sync 0, 64;
E:
  mov.u32 r3, 0;
}
P2 @ cta 0 { bar.sync 0, 64; }
exists (P1:r0 == 5)
"""
    answer = robust(parse_one(text), model_named(MODEL)).robust
    assert answer is False
    assert _judged(text, Property.robust, 1).holds is answer


def test_scopes_of_nothing() -> None:
    text = """PTX vacuous
{ .global .u32 x = 0; }
P0 @ cta 0 { st.release.gpu.global.u32 [x], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [x]; }
filter (P1:r0 == 7)
exists (P1:r0 == 0)
"""
    assert _judged(text).holds is None
    found = _placed(text)
    assert found.finding is None
    assert not found.narrowings
    assert any(note.kind == "vacuous" for note in found.notes)
    assert robust(parse_one(text), model_named(MODEL)).robust is None
