"""Whole launches that hand on data in vectors with a flag in them: what rests on a vector in one piece (A57), and what
is wrong all the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.read import parse_ptx
from ptxmm.whole.result import WholeResult
from tests.random_packets import HEAD, packets
from tests.support import model_named
from tests.test_whole import among, answer

WHOLE = '\n// ptxmm: assume = ["vector=whole"]'
SEND = "st.relaxed.gpu.global.v2.u32 [%d2], {4, 1};\n"
LOOK = "ld.relaxed.gpu.global.v2.u32 {%r3, %r4}, [%d2];\n"
AGAIN = "setp.ne.u32 %p2, %r4, 1; @%p2 bra L;\n"
GET = "L: " + LOOK + AGAIN
KEEP = "st.global.u32 [%d4+4], %r3;\n"
ONLY = "setp.ne.u32 %p4, %r3, 4; @%p4 bra D;\n"
WRITE, READ = "st.global.u32 [%d1], 1;\n", "ld.global.u32 %r9, [%d1];\n"
STOP = (
    "add.u32 %r10, %r10, 1; setp.lt.u32 %p5, %r10, 2000; @%p5 bra S; mov.u32 %r10, 0; ld.global.u64 %d5, [%d3]; "
    "ld.volatile.global.u32 %r11, [%d5]; setp.ne.u32 %p6, %r11, 0; @%p6 bra G; S:\n"
)
FOUR = "st.relaxed.gpu.global.v4.u32 [%d2], {4, 1, 5, 1};\n"
LINE = "L: ld.relaxed.gpu.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d2];\n" + AGAIN + "add.u32 %r3, %r3, %r5;\n"

CASES = {
    # what CTA 0 does and CTA 1, the answer by the letter and in one piece, and whether x[1] is 4 in the end then
    "a packet": (SEND, GET + KEEP, "race-free", "race-free", True),
    "a packet that decides": (SEND, GET + ONLY + KEEP, "undecided", "race-free", True),
    "a packet of 16 bytes": (FOUR, LINE + KEEP, "race-free", "race-free", False),
    "whoever sends one word after the other": (
        "st.relaxed.gpu.global.u32 [%d2], 4; st.relaxed.gpu.global.u32 [%d2+4], 1;\n",
        GET + KEEP, "race-free", "race", None,
    ),
    "one word of 64 bits": (
        "st.relaxed.gpu.global.u64 [%d2], 4294967300;\n", GET + KEEP, "race", "race-free", True,
    ),
    "what it follows": (WRITE + SEND, GET + READ, "race", "race", False),
    "what it follows by fences": (
        WRITE + "fence.acq_rel.gpu;" + SEND, GET + "fence.acq_rel.gpu;" + READ, "race-free", "race-free", False,
    ),
    "what it follows by a release": (
        WRITE + SEND.replace("relaxed", "release"), GET.replace("relaxed", "acquire") + READ,
        "unsupported", "race-free", False,
    ),
    "any packet": (
        SEND, GET.replace("ne.u32 %p2, %r4, 1", "gt.u32 %p2, %r4, 1") + KEEP, "race-free", "race-free", False,
    ),
    "without waiting": (SEND, LOOK + KEEP, "race-free", "race-free", False),
    "without waiting, but looking": (
        SEND, LOOK + AGAIN.replace("bra L", "bra D") + ONLY + WRITE, "undecided", "race-free", False,
    ),
    "too narrow": (SEND, GET.replace("gpu", "cta") + KEEP, "undecided", "undecided", None),
    "giving up": (SEND, "L: " + LOOK + STOP + AGAIN + "G:\n" + KEEP, "race-free", "race-free", True),
    "giving up when nobody sends": ("", "L: " + LOOK + STOP + AGAIN + "G:\n" + KEEP, "deadlock", "deadlock", None),
    "giving up where others say": (
        "st.global.u64 [%d3], %d4;" + SEND, "L: " + LOOK + STOP + AGAIN + "G:\n" + KEEP,
        "unsupported", "unsupported", None,
    ),
    "a counter that is used": (
        SEND, "L: add.u32 %r10, %r10, 1;\n" + LOOK + AGAIN + "st.global.u32 [%d4+4], %r10;\n",
        "race-free", "race-free", False,
    ),
}  # fmt: skip


def _text(first: str, second: str, assumes: str) -> str:
    head = HEAD.format(grid=2, assumes=assumes, condition="forall (x[1] == 4)")
    return (
        head
        + "setp.eq.u32 %p1, %r2, 1; @%p1 bra B;\n".replace("; ", ";\n")
        + (first + "ret;\nB:\n" + second + "D: ret;\n}\n").replace("; ", ";\n")
    )


def _asked(text: str, path: Path, seconds: float = 20) -> tuple[WholeResult, bool]:
    """The answer about a launch, compared with all its executions; whether there was time for these."""
    found = answer(path, text)
    model = model_named("ptx-8.5[vector=whole]" if WHOLE in text else "ptx-8.5")
    (test,) = parse_ptx(text, str(path))
    limits = Limits(deadline=time.monotonic() + 2 * seconds)
    try:
        every, final = races(test, model, limits=limits), check(test, model, limits=limits)
    except Timeout:
        return found, False
    if found.answer == "race-free" and every.status != "bounded":
        assert every.race_free is not False, text
    if found.answer == "race":
        assert every.race_free is not True and among(text, found, every), text
    if found.answer in ("deadlock", "undefined"):
        assert every.race_free is not True, text
    assert None in (found.claims[0].holds, final.holds) or found.claims[0].holds is final.holds, text
    return found, every.status != "timeout"


@pytest.mark.parametrize("name", CASES)
def test_packets(name: str, tmp_path: Path) -> None:
    first, second, letter, whole, kept = CASES[name]
    path = tmp_path / "k.ptx"
    by_letter, _ = _asked(_text(first, second, ""), path)
    assert by_letter.answer == letter, by_letter.reason
    found, _ = _asked(_text(first, second, WHOLE), path)
    assert (found.answer, found.claims[0].holds) == (whole, kept), found.reason
    assert found.model == "ptx-8.5[vector=whole]"
    rests = [note.text for note in by_letter.notes if note.text.startswith("rests on")]
    assert bool(rests) is (by_letter.answer in ("undecided", "race") and found.answer == "race-free")
    assert all("rests on vector: vector=whole gives no race" in text for text in rests)


def test_races_by_the_letter_are_not_those_of_whole_vectors(tmp_path: Path) -> None:
    """Where both readings have races, those of the other reading, a vector and one of its words, are not told."""
    sends = "st.release.gpu.global.u32 [%d2], 1; st.global.u32 [%d1+4], 1; st.release.gpu.global.u32 [%d2+4], 1;\n"
    first, waits = WRITE + sends, GET.replace("ne.u32 %p2, %r4, 1", "eq.u32 %p2, %r3, 0")
    second = waits + "fence.acq_rel.gpu; ld.global.u32 %r9, [%d1+4];\n" + READ
    found, decided = _asked(_text(first, second, ""), tmp_path / "k.ptx")
    assert found.answer == "race" and decided
    assert {race.place for race in found.races} == {"d, byte 4"}


def test_random_packets(tmp_path: Path) -> None:
    assert sum(_asked(packets(seed), tmp_path / "k.ptx", 5)[1] for seed in range(3)) >= 2


@pytest.mark.slow
def test_many_random_packets(tmp_path: Path, shift: int) -> None:
    seeds = range(10_000 + shift, 10_300 + shift)
    assert sum(_asked(packets(seed), tmp_path / "k.ptx")[1] for seed in seeds) >= 240
