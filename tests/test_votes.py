"""Loops in which the lanes of a warp go round until all are done (``program.shared.votes``): few rounds, against the
engines that go round them as round any other."""

from __future__ import annotations

import pytest

from ptxmm.cat import load
from ptxmm.program.shared import broadcasts
from ptxmm.program.shared.control import NOTHING
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.shared.votes import short_votes
from ptxmm.program.test import Test
from tests.random_votes import program
from tests.support import Answer, ask, model_named, parse_one
from tests.tally import Tally

LANE = """activemask.b32 m; vote.sync.ballot.b32 a, 1, m;
L0: atom.acquire.gpu.global.exch.b32 r, [lock], 1; setp.eq.u32 p, r, 0; @p bra L2;
  vote.sync.ballot.b32 v, 0, m; setp.ne.b32 w, v, a; @w bra L0; bra L5;
L2: ld.u32 c, [d]; add.u32 c, c, 1; st.u32 [d], c; atom.release.gpu.global.exch.b32 o, [lock], 0;
L3: vote.sync.ballot.b32 v, 1, m; setp.ne.b32 w, v, a; @w bra L3;
L5: mov.u32 e, 1;"""
CAS = LANE.replace("exch.b32 r, [lock], 1", "cas.b32 r, [lock], 0, 1")
FRAME = """PTX t
{{
  .global .u32 lock = {2};
  .global .u32 d = 0;
}}
P0 @ warp 0, cta 0 {{
  {0}
}}
P1 @ warp 0, cta 0 {{
  {1}
}}
P2 @ cta 1 {{
  st.relaxed.gpu.u32 [lock], {3};
}}
exists (d == 1)
"""


def _made(first: str, second: str | None = None, initial: int = 0, other: int = 0) -> Test:
    return parse_one(FRAME.format(first, second or first, initial, other))


def _short(test: Test) -> list[int]:
    return [len(rounds) for rounds in short_votes(test, idempotent_atomics(test), 1)]


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [("setp.ne.b32 w, v, a", "setp.ne.b32 w, v, m")],
        [("setp.ne.b32 w, v, a; @w", "setp.eq.b32 w, a, v; @!w")],
        [("activemask.b32 m; vote.sync.ballot.b32 a, 1, m;", ""), (", m;", ", 3;"), ("v, a", "v, 3")],
        [("vote.sync.ballot.b32 v, ", "vote.sync.all.pred w, "), ("setp.ne.b32 w, v, a; @w", "@!w")],
        [("v, 0, m", "v, 2, m"), ("v, 1, m", "v, 0, m"), ("v, 2, m", "v, 1, m"), ("v, a", "v, 0")],
        [("vote.sync.ballot.b32 v, 0", "fence.acq_rel.gpu; vote.sync.ballot.b32 v, 0")],
        [("L5:", "L5: bar.warp.sync m;")],  # behind the loop, when all are done
    ],
)
def test_which_loops(changes: list[tuple[str, str]]) -> None:
    for lane in (LANE, CAS):
        for old, new in changes:
            assert old in lane
            lane = lane.replace(old, new)
        assert _short(_made(lane)) == [2, 2, 0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("L0:", "L0: ld.u32 z, [d];"),  # a weak load, which may race with a lane that goes round as well
        ("L0:", "L0: add.u32 n, n, 1;"),  # it counts its rounds
        ("setp.ne.b32 w, v, a; @w bra L0;", "add.u32 n, n, 1; setp.ne.b32 w, v, a; @w bra L0;"),
        ("L3:", "L3: add.u32 n, n, 1;"),  # it counts those of the others
        ("L3:", "L3: ld.relaxed.gpu.u32 z, [lock];"),
        ("L2:", "L2: bar.warp.sync m;"),  # lanes meet elsewhere before all are done
        ("L0:", "L0: bar.warp.sync m;"),
        ("v, 0, m;", "v, 0, m; st.relaxed.gpu.u32 [lock], 1;"),  # a round writes
        ("setp.eq.u32 p, r, 0", "setp.eq.u32 p, r, 2"),  # it goes round with the lock
        ("v, 0, m", "v, 1, m"),  # who is not done says that it is
        ("v, 0, m", "v, p, m"),
        ("vote.sync.ballot.b32 v, 0, m", "vote.sync.ballot.b32 v, 0, 3"),
        ("activemask.b32 m;", "activemask.b32 m; activemask.b32 k;"),
        ("activemask.b32 m;", "mov.u32 m, 3;"),  # only constants are known
        ("vote.sync.ballot.b32 a, 1, m;", "vote.sync.ballot.b32 a, 0, m;"),
        ("vote.sync.ballot.b32 a, 1, m;", "setp.eq.u32 q, m, 1; @q vote.sync.ballot.b32 a, 1, m;"),
        ("bra L0; bra L5", "bra L6; bra L5; L6: ld.relaxed.gpu.u32 z, [d]; setp.eq.u32 q, z, 0; @q bra L0; bra L5"),
        ("L5:", "ld.relaxed.gpu.u32 z, [d]; setp.eq.u32 q, z, 0; @q bra L0; L5:"),  # it comes back
        ("a, 1, m; ", "a, 1, m; ld.relaxed.gpu.u32 z, [d]; setp.eq.u32 q, z, 0; @q bra L5; "),  # all may be there alone
    ],
)
def test_others_are_loops_as_any(old: str, new: str) -> None:
    lane = LANE.replace("\n ", "").replace("\n", " ")
    if "bra L5" in new and "a, 1, m" in new:
        lane = lane.replace("L5:", "L5: bar.warp.sync m;")
    assert old in lane
    assert _short(_made(lane.replace(old, new))) == [0, 0, 0]


def test_lanes_that_differ() -> None:
    later = LANE.replace("L0:", "vote.sync.ballot.b32 q, 0, m; L0:", 1)
    for other in (later, LANE.replace("v, a", "v, m"), "mov.u32 e, 1;", "vote.sync.ballot.b32 v, 1, 3;"):
        assert _short(_made(LANE, other)) == [0, 0, 0]
    known = LANE[LANE.index("L0:") :].replace("v, a", "v, 3")
    assert _short(_made(known.replace(", m;", ", 3;"), known.replace(", m;", ", 7;"))) == [0, 0, 0]


def test_what_an_exchange_may_change() -> None:
    """A lane that finds another value than those of the lock goes round and has changed it: no round of it is short."""
    assert _short(_made(LANE, initial=1)) == [2, 2, 0]
    assert _short(_made(LANE, initial=2)) == _short(_made(LANE, other=2)) == [0, 0, 0]
    assert _short(_made(CAS, initial=2, other=2)) == [2, 2, 0]


def _all(test: Test, engine: str, unroll: int, seconds: float) -> Answer | None:
    found = ask(engine, test, model_named("ptx-8.5"), unroll=unroll, seconds=seconds)
    return found if found.complete else None


def test_models_that_may_say_something_else() -> None:
    known = LANE[LANE.index("L0:") :].replace("v, a", "v, 3").replace(", m;", ", 3;")
    test = _made(known)
    assert not ask("solve", test, load("ptx-8.5"), unroll=1).bounded
    for model in (load("ptx-8.5", {"without": "Causality"}), load("ptx-8.5", {"cas-failure": "write"})):
        for engine in ("solve", "enumerate"):
            assert ask(engine, test, model, unroll=1, seconds=60).bounded


def _compare(first: int, many: int, tally: Tally, seconds: float) -> int:
    """How many random programs have the same final states and flags with these rounds and without, in both engines."""
    compared = 0
    for seed in range(first, first + many):
        test = parse_one(program(seed))
        if not any(_short(test)):
            continue
        short = [_all(test, engine, 1, seconds) for engine in ("solve", "enumerate")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(broadcasts, "short_votes", lambda test, *_: (NOTHING,) * len(test.threads))
            long = _all(test, "solve", 2, seconds)
        if long is None or None in short:
            continue
        for answer in short:
            assert answer is not None and not answer.bounded, seed
            assert answer.states >= long.states and answer.flags >= long.flags, seed
            assert long.bounded or (answer.states, answer.flags) == (long.states, long.flags), seed
        compared += 1
    tally.notes.append(f"loops with votes, compared with more rounds: {compared}")
    return compared


def test_no_final_state_changes(tally: Tally) -> None:
    assert _compare(7, 5, tally, 5) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_no_final_state_of_many_changes(share: int, tally: Tally, shift: int) -> None:
    assert _compare(1000 + 100 * share + shift, 100, tally, 20) >= 15
