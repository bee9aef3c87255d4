"""Loops in which one thread tells its CTA whether all go round again (``program.shared.broadcasts``): few rounds,
against the reference, which goes round them as round any other."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ptxmm.analysis.observe import observed
from ptxmm.cat import load
from ptxmm.engines.result import Observed
from ptxmm.program.shared.broadcasts import quiet
from ptxmm.program.test import Test
from tests import reference
from tests.reference import everything, restrict
from tests.reference_dependencies import TooSlow
from tests.support import ask, model_named, parse_one
from tests.tally import Tally

LOCKS = """L: atom.acquire.gpu.cas.b32 r, [lock], 0, 1; st.shared.u32 [told], r; barrier.sync 0;
  ld.shared.u32 s, [told]; barrier.sync 0; setp.eq.u32 p, s, 1; @p bra L;"""
POLLS = """L: ld.acquire.gpu.u32 r, [lock]; st.shared.u32 [told], r; barrier.sync 0;
  ld.shared.u32 s, [told]; barrier.sync 0; setp.eq.u32 p, s, 1; @p bra L;"""
FOLLOWS = "L: barrier.sync 0; ld.shared.u32 s, [told]; barrier.sync 0; setp.eq.u32 p, s, 1; @p bra L;"
WRITES = {"cas-failure": "write"}
FRAME = """PTX t
{{
  .global .u32 lock = {2};
  .global .u32 d = 0;
  .shared .u32 told @ cta 0 = 7;
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
  st.release.gpu.u32 [lock], 0;
}}
exists (P0:out == 0 \\/ P1:out == 0)
"""
BEFORE = "barrier.sync 0; L: atom.acquire.gpu.cas.b32 r, [lock], 0, 1;"


def told(test: Test) -> list[list[int]]:
    return [list(found.rounds.values()) for found in quiet(test, 1, True)]


def rounds(first: str, second: str) -> list[list[int]]:
    return told(parse_one(FRAME.format(first, second, 1)))


def test_rounds() -> None:
    assert rounds(LOCKS, FOLLOWS) == [[1], [1], []]
    assert rounds(POLLS, FOLLOWS) == [[1], [1], []]
    assert rounds(LOCKS.replace("setp.eq.u32 p, s, 1", "setp.ne.u32 p, s, 0"), FOLLOWS) == [[], [], []]
    for old, new in (("setp.eq.u32 p, s, 1", "setp.ne.u32 p, s, 0"), ("barrier.sync 0;", "barrier.sync 3;")):
        assert rounds(LOCKS.replace(old, new), FOLLOWS.replace(old, new)) == [[1], [1], []]
    # Triton's: a barrier, the store, a barrier, the load; other things may be there before and after
    first = LOCKS.replace("L: ", "L: barrier.sync 0; ").replace("[told]; barrier.sync 0;", "[told];")
    second = FOLLOWS.replace("[told]; barrier.sync 0;", "[told];").replace("L: ", "L: barrier.sync 0; ")
    assert rounds(first, second) == [[1], [1], []]
    assert rounds("st.shared.u32 [told], 1; " + first, second + " barrier.sync 0; st.shared.u32 [told], 2;")[0] == [1]
    assert rounds(first, "ld.shared.u32 q, [told]; " + second)[0] == [1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LOCKS, "barrier.sync 0; barrier.sync 0;"),  # the other one is in no loop
        (LOCKS, "barrier.sync 0; " + FOLLOWS),  # one phase later
        (LOCKS, FOLLOWS.replace("@p", "@!p")),  # the one goes on where the other one leaves
        (LOCKS, FOLLOWS.replace("s, 1", "s, 0")),
        (LOCKS, FOLLOWS.replace("barrier.sync 0; setp", "setp")),  # a phase less
        (
            LOCKS.replace("barrier.sync 0; setp", "setp"),
            FOLLOWS.replace("barrier.sync 0; setp", "setp"),
        ),  # too early
        (LOCKS, FOLLOWS.replace("barrier.sync 0", "barrier.sync 1")),
        (LOCKS, FOLLOWS.replace("@p", "st.shared.u32 [told], 1; @p")),  # two tell
        (LOCKS, FOLLOWS.replace("@p", "add.u32 n, n, 1; @p")),  # it counts
        (LOCKS, "st.shared.u32 [told], 1; " + FOLLOWS),  # nothing between it and the first store
        (LOCKS, FOLLOWS.replace("L: barrier.sync 0; ld", "L: ld").replace("@p", "barrier.sync 0; @p")),
        (LOCKS, FOLLOWS.replace("@p bra L;", "@p bra L; barrier.sync 0; @!p bra L;")),  # it comes back
        (LOCKS.replace("0, 1;", "1, 1;"), FOLLOWS),  # a round that goes on has taken the lock
        (LOCKS.replace("[told], r", "[told], 1"), FOLLOWS),
        (LOCKS.replace("lock], 0, 1;", "lock], 0, 1; st.relaxed.gpu.u32 [d], 2;"), FOLLOWS),
        (LOCKS.replace("s, [told];", "s, [told]; ld.shared.u32 s, [told];"), FOLLOWS),
        (LOCKS.replace("atom.acquire.gpu.cas.b32 r, [lock], 0, 1", "atom.acquire.gpu.add.u32 r, [lock], 1"), FOLLOWS),
    ],
)
def test_others_are_loops_as_any(first: str, second: str) -> None:
    assert rounds(first, second) == [[], [], []]


def test_a_word_that_others_reach() -> None:
    text = FRAME.format(LOCKS, FOLLOWS, 1)
    shared = text.replace(".shared .u32 told @ cta 0 = 7", ".global .u32 told = 7").replace(".shared.u32", ".u32")
    for new, found in (("st.u32 [d], 2", [[1], [1], []]), ("st.u32 [told], 1", [[], [], []])):
        assert told(parse_one(shared.replace("st.u32 [d], 1", new))) == found
    address = text.replace("st.u32 [d], 1", "ld.u64 w, [d]; st.u32 [w], 1").replace(".u32 d = 0", ".u64 d = 0")
    assert told(parse_one(address.replace("ld.u32 out", "ld.u64 out"))) == [[], [], []]


def test_models_that_may_say_something_else(tmp_path: Path) -> None:
    """Where an axiom may be missing, and where a ``cas`` that fails writes, the loop is one as any."""
    test = parse_one(FRAME.format(LOCKS, FOLLOWS, 1))
    assert not ask("solve", test, load("ptx-8.5")).bounded
    (tmp_path / "own.cat").write_text('include "ptx-8.5.cat"\n')
    for model in (load(str(tmp_path / "own.cat")), load("ptx-8.5", {"without": "Causality"}), load("ptx-8.5", WRITES)):
        for engine in ("solve", "enumerate"):
            assert ask(engine, test, model, unroll=1).bounded, (model, engine)


def test_both_engines() -> None:
    test, model = parse_one(FRAME.format(LOCKS, FOLLOWS, 1)), model_named("ptx-8.5")
    answers = [ask(engine, test, model) for engine in ("solve", "enumerate")]
    assert answers[0].states == answers[1].states
    assert [answer.bounded for answer in answers] == [False, False]


def program(number: int) -> Test:
    """A random test of this kind, or nearly."""
    rng = random.Random(number)
    first, second = rng.choice((LOCKS, POLLS)), FOLLOWS
    if rng.random() < 0.3:
        first, second = (row.replace("setp.eq.u32 p, s, 1", "setp.ne.u32 p, s, 0") for row in (first, second))
    if rng.random() < 0.3:  # as Triton has it
        first = first.replace("L: ", "L: barrier.sync 0; ").replace("[told]; barrier.sync 0;", "[told];")
        second = second.replace("[told]; barrier.sync 0;", "[told];").replace("L: ", "L: barrier.sync 0; ")
    if rng.random() < 0.2:
        first = first.replace("acquire", "relaxed")
    odd = rng.random()
    if odd < 0.1:
        first, second = (row.replace("barrier.sync 0; setp", "setp") for row in (first, second))
    elif odd < 0.2:
        second = "st.shared.u32 [told], 1; " + second
    elif odd < 0.3:
        second += " st.shared.u32 [told], 1;"
    elif odd < 0.4:  # each round writes
        first = first.replace("cas.b32 r, [lock], 0, 1", "add.u32 r, [lock], 1")
        first, second = (re.sub(r"setp.*?;", "setp.ne.u32 p, s, 3;", row) for row in (first, second))
    text = FRAME.format(first, second, rng.choice((0, 1, 1, 1)))
    if rng.random() < 0.3:
        text = text.replace("st.release", "st.relaxed")
    if rng.random() < 0.3:
        text = text.replace("st.u32 [d], 1;", "st.relaxed.gpu.u32 [lock], 2;")
    return parse_one(text)


@pytest.mark.parametrize("amount", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_no_final_state_changes(amount: int, tally: Tally) -> None:
    model, compared, short = model_named("ptx-8.5"), 0, 0
    for seed in range(14, 14 + amount):
        test = program(seed)
        what = Observed(observed(test).registers, everything(test).memory)
        try:
            executions = list(reference.executions(test, "ptx-8.5", unroll=2, seconds=3))
        except TooSlow:
            continue
        states = {restrict(state, what) for state, _ in executions}
        flags = frozenset().union(*(found for _, found in executions))
        for engine in ("solve", "enumerate"):
            found = ask(engine, test, model, observed=what)
            assert found.states >= states, (seed, engine)
            assert found.states == states or found.bounded, (seed, engine)
            assert found.flags >= flags, (seed, engine)
        compared += 1
        short += any(found.rounds for found in quiet(test, 1, True))
    tally.notes.append(f"loops in which one tells the others, in the reference: {compared}, {short} of them short")
    assert compared >= amount // 4 and short >= amount // 6
