"""Whole launches in which the threads of a CTA wait together, by votes at a barrier: the last round stands for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.execution.gathering import gathers
from ptxmm.whole.execution.polls import polls
from tests import random_gathers
from tests.random_gathers import HEAD
from tests.random_whole import Maker
from tests.test_whole import among, answer, both, compare

LOOK = "ld.acquire.gpu.global.u32 %r3, [%d2];"
FIRST = "setp.ne.u32 %p5, %r1, 0; mov.u32 %r3, 0;"
"""Thread 0 looks alone."""
USE = "ld.global.u32 %r5, [%d1];"


def waiting(loop: str, gives: str = "@%p0 st.release.gpu.global.u32 [%d2], 1;") -> str:
    """CTA 0 writes the data and ``gives`` the flag a value, CTA 1 waits in a ``loop`` and reads the data."""
    first = f"@%p1 bra WAIT; @%p0 st.global.u32 [%d1], 1; {gives} ret;"
    return f"{HEAD} setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r2, 1; {first}\nWAIT: {loop} {USE}\n    ret;\n}}\n"


ALL = f"L: {LOOK} setp.eq.u32 %p3, %r3, 1; bar.red.and.pred %p7, 0, %p3; @!%p7 bra L;"
ONE = f"{FIRST} L: @%p5 bra S; {LOOK} S: setp.eq.u32 %p3, %r3, 1; bar.red.or.pred %p7, 0, %p3; @!%p7 bra L;"
TURNED = f"{FIRST} L: setp.ne.u32 %p3, %r3, 1; bar.red.and.pred %p7, 0, %p3; @!%p7 bra E; @%p5 bra L; {LOOK} bra L; E:"
COUNTS = "add.u32 %r9, %r9, 1; setp.gt.u32 %p4, %r9, 1; or.pred %p3, %p3, %p4;"
OTHER = ONE.replace("bar.red", "@%p5 add.u32 %r9, %r9, 1; setp.gt.u32 %p4, %r9, 1; or.pred %p3, %p3, %p4; bar.red")
GIVES = "@%p0 st.release.gpu.global.u32 [%d2], 1;"
STORES = waiting(ONE.replace("S:", "S: st.shared.u32 [s], %r3;")).replace(".reg .pred", ".shared .u32 s; .reg .pred")
COUNTED = ONE.replace("bar.red", f"{COUNTS} bar.red", 1)
EARLY = (
    f"{FIRST} setp.ne.u32 %p6, %r2, 1; @%p6 bra X; @%p5 bra X; {LOOK} X: ld.param.u64 %d6, [pd]; add.u64 %d6, %d6, 4; "
    f"@%p6 bra E; {TURNED[TURNED.index('L:') :]}"
)
"""It has looked before, and knows from a branch before that it will wait; parameters are loaded between."""
CASES = {
    "one has looked before": (waiting(EARLY), "race-free"),
    "one has looked before, relaxed": (waiting(EARLY.replace("acquire", "relaxed")), "race"),
    "one has looked before, and loads what is written": (
        waiting(EARLY.replace("X:", "X: ld.global.u32 %r5, [%d1];")), "race",
    ),
    "one has looked before, and it is left open whether it waits": (
        waiting(EARLY.replace("@%p6 bra E", "setp.ne.u32 %p6, %r1, 0; @%p6 bra E")), None,
    ),
    "all look": (waiting(ALL), "race-free"),
    "one looks": (waiting(ONE), "race-free"),
    "the vote comes first": (waiting(TURNED), "race-free"),
    "one of several is enough": (waiting(ALL.replace("and", "or")), "undecided"),
    "one of several did not acquire": (waiting(ALL.replace("acquire", "relaxed").replace("and", "or")), "race"),
    "the others end it after some rounds": (waiting(COUNTED), "undecided"),
    "all look once only": (waiting(f"{LOOK} L: setp.eq.u32 %p3, %r3, 1; {ALL[ALL.index('bar'):]}"), "undecided"),
    "the value may be missed": (waiting(ALL, f"{GIVES} {GIVES.replace(', 1', ', 2')}"), "deadlock"),
    "a store is in each round": (STORES, "race"),
    "nobody gives it": (waiting(ALL, ""), "deadlock"),
    "nobody gives it to one": (waiting(ONE, ""), "deadlock"),
    "nobody gives it, and the thread that looks ends it": (waiting(COUNTED, ""), "undecided"),
    "nobody gives it, and the other one ends it": (waiting(OTHER, ""), "undecided"),
}  # fmt: skip
LANES = f"L: {LOOK} setp.ne.u32 %p3, %r3, 1; vote.sync.any.pred %p7, %p3, 3; @%p7 bra L;"
ALONE = ONE.replace("bar.red.or.pred %p7, 0, %p3;", "vote.sync.any.pred %p7, %p3, 3;")
PAIR = LANES.replace("u32 %r3,", "v2.u32 {%r3, %r4},").replace("acquire", "relaxed") + " fence.acq_rel.gpu;"
PAIRED = (
    "atom.relaxed.gpu.global.add.u32 %r12, [%d1+8], 1; fence.acq_rel.gpu; "
    "@%p0 st.relaxed.gpu.global.v2.u32 [%d2], {1, %r12};"
)
OWN = LANES.replace("[%d2]", "[%d4]").replace("ne.u32 %p3, %r3, 1", "eq.u32 %p3, %r3, 0")
EACH = f"@!%p0 st.relaxed.gpu.global.u32 [%d4], 2; {GIVES} st.release.gpu.global.u32 [%d4], 2;"
FENCED = "@!%p7 bra M; fence.acq_rel.gpu; bra L; M:"
BETWEEN = (
    "mov.u32 %r3, 0; L: setp.ne.u32 %p3, %r3, 1; vote.sync.any.pred %p7, %p3, 3; @!%p7 bra M; "
    f"{LOOK.replace('acquire', 'relaxed')} fence.acq_rel.gpu; bra L; M:"
)
SETTLED = "setp.ne.u32 %p6, %r3, 2; vote.sync.all.pred %p8, %p6, 3; @%p8 bra E; setp.ne.u32 %p6, %r1, 0; @%p6 bra E;"
FENCE_ON = "fence.acq_rel.gpu; ld.relaxed.gpu.global.u32 %r4"
GIVES_UP = (
    "setp.lt.u32 %p6, %r9, 2; @%p6 bra S; ld.relaxed.gpu.global.u32 %r5, [%d1+8]; setp.eq.u32 %p6, %r5, 0; "
    "@%p6 bra S; st.global.u32 [%d5], %r5; or.b32 %r10, %r10, 1; S: setp.eq.u32 %p8, %r10, 0; and.pred %p3, %p3, %p8;"
)
LINES = (
    "mov.u32 %r10, 0; L: add.u32 %r9, %r9, 1; ld.acquire.gpu.global.u32 %r3, [%d2]; "
    "ld.relaxed.gpu.global.u32 %r4, [%d1+4]; setp.ne.u32 %p3, %r3, 1; setp.ne.u32 %p4, %r4, 1; or.pred %p3, %p3, %p4; "
    f"{GIVES_UP} vote.sync.any.pred %p7, %p3, 3; @%p7 bra L;"
)
BOTH = f"@!%p0 st.relaxed.gpu.global.u32 [%d1+4], 1; {GIVES}"
MINE = LINES.replace("or.pred %p3, %p3, %p4", "and.pred %p3, %p3, %p0")
ROUNDS = (
    "mov.u64 %d6, %d2; mov.u32 %r8, 1; setp.eq.u32 %p6, %r1, 1; @%p6 mov.u64 %d6, %d4; @%p6 mov.u32 %r8, 0; "
    "L: add.u32 %r9, %r9, 1; ld.acquire.gpu.global.u32 %r3, [%d6]; setp.ne.u32 %p3, %r3, %r8; "
    "vote.sync.any.pred %p7, %p3, 3; @%p7 bra L; @!%p6 bra E; setp.eq.u32 %p5, %r9, 1; @%p5 bra E;"
)
BALLOTS = {
    "several words, and a way to give up": (waiting(LINES, BOTH), "race-free"),
    "several words, and some thread gives up": (
        waiting(LINES, BOTH + " @%p0 st.relaxed.gpu.global.u32 [%d1+8], 1;"), "undecided",
    ),
    "one word twice, of which one look does not acquire": (
        waiting(LINES.replace("[%d1+4]", "[%d2]"), GIVES), "undecided",
    ),
    "several words, relaxed": (waiting(LINES.replace("acquire", "relaxed"), BOTH), "race"),
    "several words, which matter to one lane": (waiting(MINE, BOTH), "race"),
    "several words, which matter to one lane, and the lanes meet": (
        waiting(MINE + " bar.warp.sync 3;", BOTH), "race-free",
    ),
    "several words, and a fence between them": (
        waiting(LINES.replace("acquire", "relaxed").replace("ld.relaxed.gpu.global.u32 %r4", FENCE_ON), BOTH),
        "undecided",
    ),
    "how often they go round decides": (
        waiting(ROUNDS).replace("    ret;\n}", "    E: ret;\n}"), "undecided",
    ),
    "all lanes look": (waiting(LANES), "race-free"),
    "all lanes look, relaxed": (waiting(LANES.replace("acquire", "relaxed")), "race"),
    "all lanes look, and say that they have it": (
        waiting(LANES.replace("any.pred %p7, %p3", "all.pred %p7, !%p3").replace("@", "@!")), "race-free",
    ),
    "one of the lanes is enough": (waiting(LANES.replace("any", "all")), "undecided"),
    "a vote orders nothing": (waiting(ALONE), "race"),
    "a barrier behind the vote does": (waiting(ALONE + " bar.warp.sync 3;"), "race-free"),
    "a fence in each round": (waiting(LANES.replace("@%p7 bra L;", FENCED)), "race-free"),
    "only a fence in each round": (
        waiting(LANES.replace("acquire", "relaxed").replace("@%p7 bra L;", FENCED)), "race",
    ),
    "a fence between each look and the vote": (waiting(BETWEEN), "race-free"),
    "a fence between each look and the vote, not with the scope": (
        waiting(BETWEEN.replace("acq_rel.gpu", "acq_rel.cta")), "race",
    ),
    "a fence between each look but the first one and the vote": (
        waiting(BETWEEN.replace("mov.u32 %r3, 0;", LOOK.replace("acquire", "relaxed"))), "race",
    ),
    "the lanes of a mask that is loaded": (
        waiting("ld.global.u32 %r10, [%d1+12]; " + LANES.replace(", 3;", ", %r10;")), "undefined",
    ),
    "the lanes of a mask": (waiting("mov.u32 %r10, 3; " + LANES.replace(", 3;", ", %r10;")), "race-free"),
    "lanes count": (waiting(LANES.replace("vote", f"{COUNTS.replace('or.pred', 'and.pred')} vote")), "race"),
    "nobody gives it to the lanes": (waiting(LANES, ""), "deadlock"),
    "the lanes may miss it": (waiting(LANES, f"{GIVES} {GIVES.replace(', 1', ', 2')}"), "deadlock"),
    "beside it what is not known": (waiting(PAIR, PAIRED), "race-free"),
    "beside it what is not known, without the fence": (waiting(PAIR[: PAIR.rindex(" fence")], PAIRED), "race"),
    "what is not known decides": (waiting(PAIR.replace("%p3, %r3", "%p3, %r4"), PAIRED), "undecided"),
    "a vote that one lane settles": (waiting(OWN + SETTLED, EACH).replace("    ret", "E: ret"), "race-free"),
    "a vote that none settles": (
        waiting(OWN + SETTLED, f"@!%p0 st.release.gpu.global.u32 [%d4], 1; {EACH}").replace("    ret", "E: ret"),
        "undecided",
    ),
}  # fmt: skip
"""The same of the lanes of a warp, which vote."""


@pytest.mark.parametrize("name", CASES)
def test_loops(name: str, tmp_path: Path) -> None:
    text, wanted = CASES[name]
    assert wanted in (None, answer(tmp_path / "k.ptx", text).answer)
    compare(tmp_path / "k.ptx", text, 10)


def agree(text: str, path: Path, seconds: float) -> bool:
    """Whether there was time to list executions up to some rounds, of which none is other than the answer says."""
    found, every = both(path, text, seconds)
    if every is None:
        return False
    assert found.answer != "race-free" or every.race_free is not False, text
    assert found.answer != "race" or (every.race_free is False and among(text, found, every)), text
    assert found.answer not in ("deadlock", "undefined") or every.race_free is not True, text
    return every.status != "timeout"


@pytest.mark.parametrize("name", BALLOTS)
def test_ballots(name: str, tmp_path: Path) -> None:
    text, wanted = BALLOTS[name]
    found = answer(tmp_path / "k.ptx", text)
    assert found.answer == wanted, found.reason
    agree(text, tmp_path / "k.ptx", 10)


def test_random_ballots(tmp_path: Path) -> None:
    assert sum(agree(random_gathers.ballots(seed), tmp_path / "k.ptx", 5) for seed in range(12)) >= 8


@pytest.mark.slow
def test_many_random_ballots(tmp_path: Path, shift: int) -> None:
    made = (random_gathers.ballots(seed) for seed in range(10_000 + shift, 10_300 + shift))
    assert sum(agree(text, tmp_path / "k.ptx", 20) for text in made) >= 240


def test_random_lines(tmp_path: Path) -> None:
    assert sum(agree(random_gathers.lines(seed), tmp_path / "k.ptx", 5) for seed in range(12)) >= 8


@pytest.mark.slow
def test_many_random_lines(tmp_path: Path, shift: int) -> None:
    made = (random_gathers.lines(seed) for seed in range(10_000 + shift, 10_300 + shift))
    assert sum(agree(text, tmp_path / "k.ptx", 20) for text in made) >= 240


def test_what_is_written_late(tmp_path: Path) -> None:
    """The flag does not release: that what is behind it is read before it is written is what some execution does."""
    text = waiting(f"{LANES} ld.relaxed.gpu.global.u32 %r5, [%d1+4]; st.global.u32 [%d5+8], %r5;", (
        f"@!%p0 st.relaxed.gpu.global.u32 [%d5], 1; {GIVES}"
    )).replace("@%p0 st.global.u32 [%d1], 1;", "").replace(USE, "")  # fmt: skip
    claim = '// ptxmm: condition = "forall (d[2] == 1)"\n// ptxmm: races'
    found = answer(tmp_path / "k.ptx", text.replace("// ptxmm: races", claim))
    assert found.answer == "race-free" and [claim.holds for claim in found.claims] == [False, True]
    assert "d[2]=0: line " in found.claims[0].notes[-1].text and " comes before line " in found.claims[0].notes[-1].text
    ordered = text.replace(GIVES, f"bar.warp.sync 3; {GIVES}").replace("// ptxmm: races", claim)
    assert [claim.holds for claim in answer(tmp_path / "k.ptx", ordered).claims] == [True, True]


@pytest.mark.parametrize("make", [random_gathers.gathers, random_gathers.lasts])
def test_random_votes(make: Maker, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 5) for seed in range(20)) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_gathers.gathers, random_gathers.lasts])
def test_many_random_votes(make: Maker, tmp_path: Path, shift: int) -> None:
    made = (make(seed) for seed in range(10_000 + shift, 10_500 + shift))
    assert sum(compare(tmp_path / "k.ptx", text, 20) for text in made) >= 400


def test_who_stops_is_named(tmp_path: Path) -> None:
    """A vote about what was found in the round before: the thread is the one that is in the loop."""
    loop = f"mov.u32 %r3, 0; L: setp.eq.u32 %p3, %r3, 1; {LOOK} bar.red.and.pred %p7, 0, %p3; @!%p7 bra L;"
    found = answer(tmp_path / "k.ptx", waiting(loop))
    assert found.answer == "undecided" and found.spot is not None and found.spot.cta == 1
    assert found.choice is not None and (found.choice.kind, found.choice.operation.cta) == ("look", 1)


def test_what_can_be_listed_of_lanes(tmp_path: Path) -> None:
    """The commands that list executions need all lanes of a warp in which an ``activemask`` is executed."""
    body = "activemask.b32 %r4; bar.warp.sync %r4; ret;\n}\n"
    text = HEAD.replace("block = 2", "block = 32").replace('"all"', '"lane 0-1"') + body
    found = answer(tmp_path / "k.ptx", text)
    assert found.choice is not None and found.choice.kind == "active-lanes"
    assert found.choice.advice.startswith("make the block a few threads")


@pytest.mark.parametrize(
    ("text", "count"), [(EARLY, 2), (EARLY.replace("@%p6 bra E", "setp.ne.u32 %p6, %r1, 0; @%p6 bra E"), 1)]
)
def test_looks_before_the_loop_are_of_it(text: str, count: int, tmp_path: Path) -> None:
    """So what a look before the loop finds is no choice of its own, of which there were two for each CTA."""
    path = tmp_path / "k.ptx"
    path.write_text(waiting(text))
    ((kernel,),) = kernels(path)
    body = kernel.code.body
    assert len(gathers(body, frozenset(), polls(body, frozenset()))) == count
