"""``fences`` on the real bugs of litmus/bugs: repairs of the buggy versions, judgements on the fixed ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm.analysis.fences import FencesResult, fences
from ptxmm.analysis.property import judge, requirement
from ptxmm.analysis.strength.superposition import Superposition, superposition
from ptxmm.analysis.words import Property
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op, Source
from tests.support import model_named

BUGS = Path(__file__).parent.parent / "litmus" / "bugs"
BUGGY = sorted(path.stem.removesuffix("-buggy") for path in BUGS.glob("*-buggy.litmus"))
FIXED = sorted(path.stem for path in BUGS.glob("*-fixed.litmus") if "ptx-8.5:never" in path.read_text())

NO_BUG = {
    "cub-lookback-cg-weak-flag", "cuml-gridsync-only-master-fences", "cutlass-semaphore-no-threadfence",
    "flashkda-mbarrier-init-vs-complete-tx", "fuser-serialize-release-fence-redundant",
    "llvm-seqcst-store-relaxed-enough", "mbarrier-rmw-chain-negative", "rust-cuda-block-fence-sys-scope",
    "tma-load-then-tma-store-no-proxy-fence",
}  # fmt: skip
"""What is called buggy there meets its condition all the same (see the description of each)."""

UNREPAIRED = {
    "flashmla-arrive-count": "a hang: no execution reaches its end, whatever the orders",
    "nccl-ll-v4-tearing": "the elements of one vector access have no order; the fix is another layout of the data",
    "vllm-allreduce-byte-flags-mixed-size": "the race is between accesses of different sizes; the fix is their type",
}
"""No order, scope, fence, barrier or wait is enough."""

OTHER_FIX = {
    "cccl-remove-if-inplace": "the fix makes the handshake of other instructions",
    "flashinfer-topk-missing-bar": "the fix adds a bar.sync of id 0, the repair one of an id that is not used yet",
    "threadfence-block-is-not-a-barrier": "the fix has bar.sync in the place of a fence, the repair beside it",
    "mscclpp-devicesyncer-relaxed": "the fix polls another location",
    "tcgen05-ld-not-waited-before-release": "the fix adds a fence to the wait, but the arrival releases",
    "te-proxy-fence-wrong-place": "the fix adds a fence in both threads, one of which is enough",
}


def _bare(op: Op) -> Op:
    return replace(op, source=_NOWHERE)


_NOWHERE: Source


def _test(name: str) -> Test:
    global _NOWHERE
    (test,) = read(BUGS / f"{name}.litmus")
    _NOWHERE = next(op.source for thread in test.threads for op in thread.body)
    return test


def _switches(everything: Superposition, wanted: Test) -> frozenset[Switch] | None:
    """The switches that make ``wanted`` of a superposition, None if none do."""
    on: set[Switch] = set()
    for number, (thread, other) in enumerate(zip(everything.test.threads, wanted.threads, strict=True)):
        rest = [_bare(op) for op in other.body]
        for index, op in enumerate(thread.body):
            forms = everything.forms.get(Site(number, index))
            if forms is None:
                if not rest or rest.pop(0) != _bare(op):
                    return None
                continue
            steps = next((needs for form, needs in forms.forms if form and rest and _bare(form) == rest[0]), None)
            if steps is not None:
                del rest[0]
                on.update(Switch(number, index, step) for step in steps)
            elif forms.forms[0][0] is not None:
                return None
        if rest:
            return None
    return frozenset(on)


def _judged(name: str, most: int | None = 10) -> FencesResult:
    return fences(_test(name), model_named("ptx-8.5"), most=most)


LONG = ("triton-init-fence-from-other-thread",)
"""All repairs of these take long: three are enough for a share."""


@pytest.mark.share(2)
@pytest.mark.parametrize("name", BUGGY)
def test_repair_of_a_bug(name: str) -> None:
    result = _judged(f"{name}-buggy", 3 if name in LONG else None)
    assert result.status in ("complete", "undefined", "inconclusive")
    if name in NO_BUG:
        assert result.holds
        return
    if name in UNREPAIRED:
        assert not result.holds and not result.repairs
        return
    assert (result.holds is False or result.status == "undefined") and result.repairs
    assert all(variant.engines == ("z3", "enumerate") for variant in result.repairs)
    if name not in LONG and (BUGS / f"{name}-fixed.litmus").exists():
        _some_at_most_as_strong_as_the_fix(name, result)


def test_both_lanes_of_a_warp_arrive_in_another_order() -> None:
    found = _judged("triton-init-fence-from-other-thread-buggy", 3).repairs
    changes = [[(c.thread, c.old, c.new) for c in variant.changes] for variant in found]
    old, new = "barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.release.aligned"
    assert changes[:2] == [
        [("P0", None, "fence.mbarrier_init.release.cluster")],
        [("P0", old, new), ("P1", old, new)],
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_all_repairs_of_a_bug(name: str) -> None:
    _some_at_most_as_strong_as_the_fix(name, _judged(f"{name}-buggy", None))


def _some_at_most_as_strong_as_the_fix(name: str, result: FencesResult) -> None:
    buggy, fixed = _test(f"{name}-buggy"), _test(f"{name}-fixed")
    everything = superposition(buggy, model_named("ptx-8.5").coverage, stronger=True)
    real = _switches(everything, fixed) if len(fixed.threads) == len(buggy.threads) else None
    programs = [variant.program for variant in result.repairs]
    if real is None:
        # The fix is more than a stronger form of what is there: it is found itself, or listed.
        found = any([list(map(_bare, t.body)) for t in p.threads] == [list(map(_bare, t.body)) for t in fixed.threads]
                    for p in programs)  # fmt: skip
        assert found or name in OTHER_FIX, "the fix can't be told from the repairs"
        return
    repairs = [_switches(everything, program) for program in programs]
    assert any(repair is not None and repair <= real for repair in repairs)


@pytest.mark.parametrize("name", FIXED)
def test_judgement_of_a_fix(name: str) -> None:
    test, model = _test(name), model_named("ptx-8.5")
    result = _judged(name)
    assert result.holds, result.notes
    required = requirement(test, model, Property.never, Limits())
    everything = superposition(test, model.coverage, stronger=False)
    given = everything.given
    items = {(item.thread, item.line, item.text): item for item in result.items}
    for site, forms in everything.forms.items():
        place = everything.places[site]
        op = test.at(place.site)
        item = items.get((test.threads[place.site.thread].name, op.source.span.line, " ".join(op.source.text.split())))
        if not forms.given:
            continue
        assert item is not None
        own = frozenset(switch for switch in given if switch.site == site)
        for form, steps in forms.forms:
            if steps == forms.given:
                continue
            weaker = everything.program(given - own | {Switch(*site, step) for step in steps})
            for engine in ("z3", "enumerate"):
                holds = judge(weaker, model, required, Limits(), engine).holds
                if item.verdict == "needed" or (item.verdict == "weaker" and form is None):
                    assert not holds
                if item.verdict == "removable" and form is None:
                    assert holds
