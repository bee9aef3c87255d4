"""Lanes that are active together, in whole launches: what is assumed, and what their exchanges order in time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.whole.result import WholeResult
from tests.random_actives import ACTIVE, HEAD, actives
from tests.test_whole import among, answer, both


def agree(path: Path, seed: int) -> WholeResult | None:
    """The answer about a random kernel, None if there was no time to list all executions, of which none is other."""
    text, given = actives(seed)
    found = answer(path, text)
    try:
        _, every = both(path, given, 5)
    except PtxmmError as refused:  # dependencies are too much to decide
        assert refused.kind == "unsupported", refused
        return None
    if every is None or every.status == "timeout":
        return None
    if found.answer == "race-free":
        assert every.race_free is True and every.status == "complete", given
    if found.answer == "race":
        assert among(given, found, every), given
    return found


@pytest.mark.share(5)
@pytest.mark.parametrize("seed", range(18))
def test_random_actives(seed: int, tmp_path: Path) -> None:
    agree(tmp_path / "k.ptx", seed)


@pytest.mark.slow
def test_many_random_actives(shift: int, tmp_path: Path) -> None:
    found = [agree(tmp_path / "k.ptx", seed) for seed in range(10_000 + shift, 10_300 + shift)]
    assert sum(each is not None for each in found) >= 200
    assert {each.answer for each in found if each is not None} >= {"race-free", "race", "deadlock", "undecided"}


ASSUMES = '// ptxmm: assume = ["active-together"]\n'
MEET = "match.any.sync.b32 %r5, 7, 3;"
COMES = f"{ACTIVE} setp.ne.u32 %p1, %r4, 3; @%p1 st.global.u32 [%d1], 1; "
ARRIVE = "mbarrier.arrive.shared.b64 %d8, [b];"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p7, [b], 0; @!%p7 bra W; "
CASES = [
    # All lanes come at once; with one alone each would store.
    (COMES, "race-free"),
    (COMES.replace("4, 3;", "4, 1;"), "race"),
    (f"@%q1 bra N; {COMES.replace('4, 3;', '4, 1;')} N: ", "race-free"),
    # As often as each other, in a loop that one leaves before.
    (f"add.u32 %r6, %r1, 1; L: {COMES.replace('ne.u32 %p1, %r4, 3', 'eq.u32 %p1, %r4, 1')} "
     "add.u32 %r6, %r6, -1; setp.ne.u32 %p2, %r6, 0; @%p2 bra L; ", "race-free"),
    # One comes only when the other has been there.
    (f"@!%q1 bra A; {WAIT} A: {COMES} @%q0 {ARRIVE}", "undecided"),
    # So no lane goes on alone where one execution does not decide.
    ("@%q1 st.global.u32 [%d1], 1; activemask.b32 %r4; setp.eq.u32 %p1, %r4, 1; @%p1 ld.global.u32 %r3, [%d1]; "
     "atom.relaxed.gpu.global.cas.b32 %r6, [%d1+4], 0, 7; setp.eq.u32 %p2, %r6, 5; "
     "@%p2 st.relaxed.gpu.global.u32 [%d1+4], 5; ", "undecided"),
    # What a lane did before they meet has been, and is not known.
    (f"@%q1 {ARRIVE} {MEET} @%q0 mbarrier.inval.shared.b64 [b]; ", "race-free"),
    (f"{MEET} @%q1 {ARRIVE} @%q0 mbarrier.inval.shared.b64 [b]; ", "undefined"),
    (f"@%q1 {ARRIVE} {MEET.replace('3;', '1;')} @%q0 mbarrier.inval.shared.b64 [b]; ".replace("match", "@%q0 match"),
     "undefined"),
    (f"@%q1 st.global.u32 [%d1], 1; {MEET} @%q0 ld.global.u32 %r3, [%d1]; ", "race"),
    (f"@%q1 st.global.u32 [%d1], 1; @%q1 {ARRIVE} {MEET} @%q0 ld.global.u32 %r3, [%d1]; ", "race"),
    # The phase is complete when lane 0 arrives for the next one.
    (f"@%q1 {ARRIVE} {MEET} @%q0 {ARRIVE} ", "race-free"),
    (f"@%q1 {ARRIVE} @%q0 {ARRIVE} {MEET} ", "undecided"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "word"), CASES)
def test_what_is_ordered(body: str, word: str, tmp_path: Path) -> None:
    text = f"{HEAD.format(lanes=2, count=1)}{body}ret;\n}}\n"
    found = answer(tmp_path / "k.ptx", text)
    assert found.answer == word, found
    if ACTIVE in text and word != "undecided":
        open_ = answer(tmp_path / "k.ptx", text.replace(ASSUMES, ""))
        told = [note.text.partition(":")[0] for note in open_.notes]
        # An execution in which all come together is one of all. Stores of one value race, and it is said that they do.
        rests, same = ["rests on active-together"], ["rests on active-together", "rests on same-value-races"]
        assert (open_.answer, told) in ([(word, []), (word, same)] if word == "race" else [("undecided", rests)])


@pytest.mark.parametrize(
    ("made", "open_"),
    [
        ("mov.b64 %d2, %d1;", False),
        ("cvta.to.global.u64 %d3, %d1; add.u64 %d2, %d3, 8;", False),
        ("mul.wide.u32 %d3, %r1, 4; add.u64 %d2, %d1, %d3;", True),
        ("mov.b64 %d2, %d1; @%q0 mov.b64 %d2, b;", True),
    ],
)
def test_whether_lanes_have_the_same_address(made: str, open_: bool, tmp_path: Path) -> None:
    """A match of one address is the same wherever that is, of several it may not be."""
    text = f"{HEAD.format(lanes=2, count=1)}{made} match.any.sync.b64 %r5, %d2, 3; popc.b32 %r6, %r5; ret;\n}}\n"
    found = answer(tmp_path / "k.ptx", text)
    assert found.answer == "race-free", found
    assert any("where its variables lie" in note.text for note in found.notes) is open_, found
