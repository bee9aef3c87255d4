"""Loops in which threads wait together (``program.shared.collective``): few rounds, against the reference, which goes
round them as round any other."""

from __future__ import annotations

import random

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Limits, Observed
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.machine import Reading
from ptxmm.program.shared.collective import collective
from ptxmm.program.test import Test
from tests import reference
from tests.reference import everything, restrict
from tests.reference_dependencies import TooSlow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

PLAIN = """L: ld.acquire.gpu.u32 r, [f]; setp.eq.u32 p, r, 0;
  barrier.red.or.pred q, 0, p; @q bra L;"""
ROTATED = """ld.acquire.gpu.u32 r, [f]; setp.eq.u32 p, r, 0;
  L: barrier.red.or.pred q, 0, p; @!q bra X;
  ld.acquire.gpu.u32 r, [f]; setp.eq.u32 p, r, 0; bra L; X:"""
FOLLOWS = """setp.eq.u32 p, 0, 1; L: barrier.red.or.pred q, 0, p; @!q bra X; setp.eq.u32 p, 0, 1; bra L; X:"""
WATCHES = "L: setp.eq.u32 p, 0, 1;\n  barrier.red.or.pred q, 0, p; @q bra L;"
PEELED = """setp.eq.u32 p, 0, 0; barrier.red.or.pred q, 0, p; @!q bra X;
  L: ld.acquire.gpu.u32 r, [f]; setp.eq.u32 p, r, 0;
  barrier.red.or.pred q, 0, p; @q bra L; X:"""
FRAME = """PTX t
{{
  .global .u32 f = 0;
  .global .u32 d = 0;
}}
P0 @ warp 0, cta 0 {{
  {0}
  ld.u32 out, [d];
}}
P1 @ warp 1, cta 0 {{
  {1}
  ld.u32 out, [d];
}}
P2 @ cta 1 {{
  st.u32 [d], 1;
  st.release.gpu.u32 [f], 1;
}}
exists (P0:out == 0 \\/ P1:out == 0)
"""


def voting(text: str) -> str:
    """``text`` with votes of the lanes of one warp in place of barriers of a CTA of two."""
    for op, vote in (("or", "any"), ("and", "all")):
        text = text.replace(f"barrier.red.{op}.pred q, 0, p", f"vote.sync.{vote}.pred q, p, 0xffffffff")
    return text.replace("barrier.sync 0", "bar.warp.sync 0xffffffff").replace("warp 1", "warp 0")


def rounds(first: str, second: str) -> list[list[int]]:
    return [list(found.values()) for found in collective(parse_one(FRAME.format(first, second)), 1)]


def test_rounds() -> None:
    assert rounds(PLAIN, WATCHES) == [[1], [1], []]
    assert rounds(PLAIN, PLAIN) == [[1], [1], []]
    assert rounds(ROTATED, FOLLOWS) == [[2], [2], []]
    assert rounds(PEELED, WATCHES) == [[1], [2], []]
    assert rounds(PEELED, PEELED) == [[1], [1], []]
    assert rounds(PEELED, "barrier.sync 0; " + PEELED) == [[], [], []]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PLAIN, "barrier.sync 0;"),  # the other one is in no loop
        (PLAIN, "barrier.sync 0; " + WATCHES),  # one phase later
        (PLAIN, WATCHES.replace("@q", "@!q")),  # the one goes on where the other one leaves
        (PLAIN, WATCHES.replace("red.or", "red.and")),
        (PLAIN, WATCHES.replace("q, 0", "q, 1")),  # another barrier
        (PLAIN, WATCHES.replace("@q", "st.relaxed.gpu.u32 [d], 2; @q")),
        (PLAIN, WATCHES.replace("@q", "add.u32 n, n, 1; @q")),  # it counts
        (PLAIN, "O: " + WATCHES + " ld.relaxed.gpu.u32 s, [d]; setp.eq.u32 t, s, 0; @t bra O;"),
        (PEELED.replace("@!q", "@q"), WATCHES),  # the first round goes on where the others leave
        (PEELED.replace("red.or.pred q, 0, p; @!q bra X;", "red.and.pred q, 0, p; @!q bra X;"), WATCHES),
        (PEELED.replace("L: ld", "@p barrier.sync 0; L: ld"), WATCHES),  # and another barrier before the second one
        (PEELED.replace("L: ld", "barrier.sync 0; L: ld"), "barrier.sync 0; " + WATCHES),
        (PEELED.replace("@!q bra X;", "setp.eq.u32 s, 0, 0; @!s bra X;"), WATCHES),
        (PEELED.replace("X:", "X: ld.u32 s, [d]; setp.eq.u32 t, s, 0; @t bra L;"), WATCHES),  # it comes back
        (PLAIN.replace("@q", "setp.eq.u32 q, r, 0; @q"), PLAIN),  # each goes on by what it has read itself
        (PLAIN.replace("@q bra L;", "@p bra L;"), PLAIN.replace("@q bra L;", "@p bra L;")),
    ],
)
def test_others_are_loops_as_any(first: str, second: str) -> None:
    assert rounds(first, second) == [[], [], []]


def test_votes() -> None:
    for first, second, found in ((PLAIN, WATCHES, 1), (ROTATED, FOLLOWS, 2)):
        test = parse_one(voting(FRAME.format(first, second)))
        assert [list(r.values()) for r in collective(test, 1)] == [[found], [found], []]
    apart = voting(FRAME.format(PLAIN, WATCHES))
    for old, new in (("0xffffffff; @q", "1; @q"), ("L: setp", "bar.warp.sync 0xffffffff; L: setp"), ("any", "all")):
        head, tail = apart.split("P1 @")
        assert old in tail
        assert collective(parse_one(f"{head}P1 @{tail.replace(old, new)}"), 1) == ({}, {}, {})


@pytest.mark.parametrize("votes", [False, True])
def test_both_engines(votes: bool) -> None:
    text, model = FRAME.format(ROTATED, FOLLOWS), model_named("ptx-8.5")
    test = parse_one(voting(text) if votes else text)
    answers = [ask(engine, test, model) for engine in ("solve", "enumerate")]
    assert answers[0].states == answers[1].states
    assert [answer.bounded for answer in answers] == [False, False]


def test_threads_that_get_the_same_meet_in_few_ways() -> None:
    """Without it 37,000 ways for two CTAs: in most a thread goes on where the other leaves, which has no meaning."""
    head, tail = FRAME.format(ROTATED, FOLLOWS).split("P2 @")
    again = head[head.index("P0 @") :].replace("cta 0", "cta 2").replace("P1", "P4").replace("P0", "P3")
    text = head + "P2 @" + tail.replace("exists", again + "exists")
    scenarios = build(parse_one(text), (), Reading(unroll=3, tear=False, simplify=True), Limits().check).scenarios
    assert len(scenarios) == 8
    assert {(scenario.group, scenario.misuse) for scenario, _ in scenarios} == {(0, None), (1, None)}


def program(number: int) -> Test:
    """A random test of this kind."""
    rng = random.Random(number)
    order = rng.choice(("acquire.gpu", "relaxed.gpu"))
    rotated = rng.random() < 0.5
    other = rng.choice((FOLLOWS, ROTATED) if rotated else (WATCHES, PLAIN))
    rows = [(ROTATED if rotated else rng.choice((PLAIN, PEELED))).replace("acquire.gpu", order), other]
    if rng.random() < 0.3:
        rows = [row.replace("red.or", "red.and").replace("@q", "@!q").replace("@!!q", "@q") for row in rows]
    if rng.random() < 0.3:
        rows = ["barrier.sync 0; " + row for row in rows]
    text = FRAME.format(*rows)
    if rng.random() < 0.4:
        text = text.replace("st.release", "st.relaxed")
    if rng.random() < 0.3:
        text = text.replace("f = 0", "f = 1")
    if rng.random() < 0.3:
        text = text.replace("st.u32 [d], 1;", "st.relaxed.gpu.u32 [f], 2;")
    return parse_one(voting(text) if rng.random() < 0.5 else text)


def test_no_final_state_changes(tally: Tally) -> None:
    model, compared = model_named("ptx-8.5"), 0
    for seed in range(40):
        test = program(seed)
        what = Observed(observed(test).registers, everything(test).memory)
        try:
            executions = list(reference.executions(test, "ptx-8.5", unroll=2, seconds=3))
        except TooSlow:
            continue
        found = ask("solve", test, model, observed=what)
        assert found.states == {restrict(state, what) for state, _ in executions}, seed
        assert found.flags >= frozenset().union(*(flags for _, flags in executions)), seed
        compared += 1
    tally.notes.append(f"loops in which threads wait together, in the reference: {compared}")
    assert compared >= 10
