"""Spin loops that go round again only if each ``cas`` has failed (``program.shared.failing``): the Z3 engine takes it
from there, the explicit one does not."""

from __future__ import annotations

import pytest

from ptxmm.program.shared.control import control_flow
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.shared.polls import without_repeats
from tests import random_retries, random_spins
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

FRAME = """PTX t
{{
  .global .u32 f = 1;
}}
P0 {{
  {}
}}
exists (f == 1)
"""


@pytest.mark.parametrize(
    ("body", "silent"),
    [
        ("L: atom.cas.b32 r, [f], 0, 1; setp.ne.u32 p, r, 0; @p bra L;", True),
        ("L: atom.cas.b32 r, [f], 0, 1; setp.eq.u32 p, r, 1; @p bra L;", False),  # it follows, but not by this rule
        ("L: ld.relaxed.gpu.u32 s, [f]; atom.cas.b32 r, [f], s, 1; setp.ne.u32 p, r, s; @p bra L;", True),
        ("L: ld.relaxed.gpu.u32 s, [f]; atom.cas.b32 r, [f], s, 1; setp.eq.u32 p, r, s; @p bra L;", False),
        ("L: ld.relaxed.gpu.u32 s, [f]; atom.cas.b32 r, [f], s, 1; setp.eq.u32 p, r, s; @p bra X; bra L; X:", True),
        ("L: ld.relaxed.gpu.u32 s, [f]; setp.eq.u32 q, s, 0; @q bra L; atom.cas.b32 r, [f], s, 1;"
         "setp.ne.u32 p, r, s; @p bra L;", True),
        ("L: ld.relaxed.gpu.u32 s, [f]; ld.relaxed.gpu.u32 t, [f]; atom.cas.b32 r, [f], s, 1;"
         "setp.ne.u32 p, r, t; @p bra L;", False),  # compared with something else
        ("L: ld.relaxed.gpu.u32 s, [f]; setp.eq.u32 q, s, 0; @q atom.cas.b32 r, [f], s, 1;"
         "setp.ne.u32 p, r, s; @p bra L;", False),  # the value of a round before
        ("L: atom.cas.b32 r, [f], 0, 1; setp.ne.u32 p, r, 0; @!p bra M; bra L;"
         "M: atom.cas.b32 s, [f], 1, 2; setp.ne.u32 q, s, 1; @q bra L;", False),  # the first one has not failed
        ("L: atom.exch.b32 r, [f], 1; setp.ne.u32 p, r, 0; @p bra L;", False),
    ],
)  # fmt: skip
def test_which_loops(body: str, silent: bool) -> None:
    test = parse_one(FRAME.format(body.replace("atom.", "atom.relaxed.gpu.")))
    flow = control_flow(test.threads[0], idempotent_atomics(test)[0])
    last = max(flow.backward)
    assert (last in flow.silent) is silent
    assert flow.silent <= flow.spin.keys()


@pytest.mark.parametrize("amount", [10, pytest.param(300, marks=pytest.mark.slow)])
def test_both_engines(amount: int, tally: Tally) -> None:
    model, compared = model_named("ptx-8.5"), 0
    for make in (random_retries.program, random_spins.program):
        for seed in range(amount):
            test = without_repeats(parse_one(make(seed)))
            flows = [control_flow(t, q) for t, q in zip(test.threads, idempotent_atomics(test), strict=True)]
            if not any(flow.silent for flow in flows):
                continue
            answers = [ask(engine, test, model, unroll=1) for engine in ("solve", "enumerate")]
            assert answers[0].states == answers[1].states, (make, seed)
            assert answers[0].bounded <= answers[1].bounded, (make, seed)
            compared += 1
    tally.notes.append(f"loops in which each cas has failed: {compared}")
    assert compared >= amount // 4
