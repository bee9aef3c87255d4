"""``griddepcontrol.launch_dependents`` of PTX 9.2, where a fence before it releases: both engines and the reference."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from tests import reference
from tests.support import ENGINES, ask, model_named, parse_one

PUT, GET = "st.global.u32 [x], 1;", "ld.global.u32 r0, [x];"
FENCE, LAUNCH = "fence.acq_rel.gpu;", "griddepcontrol.launch_dependents;"
NEXT = f"cta 0, grid 1 overlap: {GET}"

# name, threads, observation of `exists (r0 == 0)` of the last thread
CASES = (
    ("other instructions between", (f"cta 0, grid 0: {PUT} {FENCE} ld.global.u32 r1, [y]; {LAUNCH}", NEXT), "never"),
    ("launch not reached", (f"cta 0, grid 0: {PUT} {FENCE} mov.u32 r1, 0; setp.eq.u32 p, r1, 1; @p {LAUNCH}", NEXT),
     "sometimes"),
    ("launch in a branch that is taken",
     (f"cta 0, grid 0: {PUT} {FENCE} mov.u32 r1, 1; setp.eq.u32 p, r1, 1; @p {LAUNCH}", NEXT), "never"),
    ("first launch not reached", (
        f"cta 0, grid 0: mov.u32 r1, 0; setp.eq.u32 p, r1, 1; @p {LAUNCH} {PUT} {FENCE} {LAUNCH}", NEXT), "never"),
    ("first launch perhaps reached", (
        f"cta 0, grid 0: ld.global.u32 r1, [y]; setp.eq.u32 p, r1, 1; @p {LAUNCH} {PUT} {FENCE} {LAUNCH}",
        "cta 1, grid 0: st.global.u32 [y], 1;", NEXT), "sometimes"),
    ("the second round of a loop is too late", (
        f"cta 0, grid 0: mov.u32 r1, 0; L: setp.eq.u32 q, r1, 1; @q {PUT} {FENCE} {LAUNCH} add.u32 r1, r1, 1; "
        "setp.lt.u32 p, r1, 2; @p bra L;", NEXT), "sometimes"),
    ("every thread of the dependent grid", (
        f"cta 0, grid 0: {PUT} {FENCE} {LAUNCH}", f"cta 0, grid 1 overlap: {GET}", f"cta 1, grid 1 overlap: {GET}"),
     "never"),
    ("every CTA of the grid", (
        f"cta 0, grid 0: {LAUNCH}", f"cta 1, grid 0: {PUT} {FENCE} {LAUNCH}", NEXT), "never"),
    ("a CTA without a launch", (f"cta 0, grid 0: {FENCE} {LAUNCH}", f"cta 1, grid 0: {PUT} {FENCE}", NEXT),
     "sometimes"),
    ("another GPU", (f"cta 0, grid 0: {PUT} fence.sc.sys; {LAUNCH}", f"gpu 1, cta 0, grid 1 overlap: {GET}"),
     "sometimes"),
    ("another GPU between", (f"cta 0, grid 0: {PUT} {FENCE} {LAUNCH}", f"gpu 1, cta 0, grid 1: {GET}",
     f"cta 0, grid 2 overlap: {GET}"), "never"),
    ("a release store is no fence", (f"cta 0, grid 0: {PUT} st.release.gpu.global.u32 [y], 1; {LAUNCH}", NEXT),
     "sometimes"),
    ("a cluster fence is too narrow", (f"cta 0, grid 0: {PUT} fence.acq_rel.cluster; {LAUNCH}", NEXT), "sometimes"),
    ("membar.gl", (f"cta 0, grid 0: {PUT} membar.gl; {LAUNCH}", NEXT), "never"),
    ("a host thread", (f"host: {PUT}", f"cta 0, grid 0: {FENCE} {LAUNCH}", NEXT), "sometimes"),
)  # fmt: skip


@pytest.mark.parametrize("isa", ["9.1", "9.2", "9.4"])
@pytest.mark.parametrize(("threads", "observation"), [
    pytest.param(*case, id=name.replace(" ", "-")) for name, *case in CASES
])  # fmt: skip
def test_by_hand(threads: tuple[str, ...], observation: str, isa: str) -> None:
    """Before 9.2 nothing is ordered."""
    bodies = []
    for number, thread in enumerate(threads):
        place, _, body = thread.partition(":")
        bodies.append(f"P{number} @ {place} {{ {body} }}")
    declared = "{ .global .u32 x = 0; .global .u32 y = 0; }"
    condition = f"exists (P{len(threads) - 1}:r0 == 0)"
    test = parse_one("\n".join(["PTX case", f"ISA={isa}", declared, *bodies, condition, ""]))
    expected = observation if isa >= "9.2" else "sometimes"
    assert check(test, model_named("ptx-8.5")).observation == expected
    for name in ("ptx-8.5", "sc"):
        found, flags = reference.flagged(test, name)
        for engine in ENGINES:
            answer = ask(engine, test, model_named(name))
            assert (answer.complete, answer.states, answer.flags) == (True, found, flags)
