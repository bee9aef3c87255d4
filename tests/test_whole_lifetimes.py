"""Whole launches that use an mbarrier, or shared memory of another CTA, for longer than it is there (PTX ISA 5.1.7,
9.7.14.15.10): what is undefined names both operations, and the engines that list all executions say so too."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.formats.modules.read import parse_ptx
from ptxmm.whole.result import WholeResult
from tests import random_pipelines
from tests.random_pipelines import HEAD
from tests.test_cta_exit import CHAIN, DEFINED, UNDEFINED, kernel
from tests.test_whole_pipelines import agrees, compare, judged

INIT = "mbarrier.init.shared.b64 [full], 1; "
START = f"setp.ne.u32 %p1, %r1, 0; @%p1 bra A; {INIT}A: barrier.sync 0; @%p1 bra B; "
ARRIVE, INVAL = "mbarrier.arrive.shared.b64 %d9, [full]; ", "mbarrier.inval.shared.b64 [full]; "
ASK = "W: mbarrier.test_wait.parity.shared.b64 %p2, [full], 0; @!%p2 bra W; "
MEET = "barrier.sync 0; "
TELL = "st.{}.cta.shared.u32 [s], 1; "
LOOK = "L: ld.{}.cta.shared.u32 %r5, [s]; setp.ne.u32 %p2, %r5, 1; @%p2 bra L; "
COPY = (
    "mbarrier.arrive.expect_tx.shared.b64 %d9, [full], 16; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+16], [%d1], 16, [full]; "
)
ASYNC = "cp.async.ca.shared.global [s], [%d1], 4; cp.async.mbarrier.arrive.noinc.shared.b64 [full]; "

CASES = {
    "before": (INVAL, ARRIVE, "undefined"),
    "after, and nothing says so": (ARRIVE, INVAL, "undefined"),
    "behind a barrier": (ARRIVE + MEET, MEET + INVAL, "race-free"),
    "behind a release": (ARRIVE + TELL.format("release"), LOOK.format("acquire") + INVAL, "race-free"),
    "behind a flag alone": (ARRIVE + TELL.format("relaxed"), LOOK.format("relaxed") + INVAL, "undecided"),
    "behind a wait": (ARRIVE, ASK + INVAL, "race-free"),
    "while another one waits": (ASK, INVAL, "undefined"),
    "before another one has asked": (ARRIVE + ASK, ASK.replace("W", "V") + INVAL, "undefined"),
    "while a copy is to arrive": (ASYNC + MEET, MEET + INVAL, "undecided"),
    "when they have come": (COPY, ASK + INVAL, "race-free"),
    "twice": (INVAL + MEET + INVAL, MEET, "undefined"),
    "and again, behind what was done": (ARRIVE + MEET, MEET + INVAL + INIT, "race-free"),
    "and again, beside what was done": (
        ARRIVE + TELL.format("release") + MEET, LOOK.format("acquire") + INVAL + MEET + INIT, "race-free",
    ),
}  # fmt: skip
"""What the first thread does with the mbarrier that it has initialised, and what the other one does."""


def ready(first: str, other: str) -> str:
    body = f"{START}{first}ret; B: {other}ret; }}"
    return HEAD.format(block=2) + body.replace("; ", ";\n").replace(": ", ":\n") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_an_mbarrier_that_is_invalidated(name: str, tmp_path: Path) -> None:
    first, other, answer = CASES[name]
    text = ready(first, other)
    found = judged(tmp_path / "k.ptx", text)
    (test,) = parse_ptx(text, str(tmp_path / "k.ptx"))
    assert agrees(found, test, text, 20)
    assert found.answer == answer, found.reason
    if answer != "race-free":
        assert found.spot is not None and found.other is not None
        assert INVAL[:-2] in (found.spot.text, found.other.text) and found.spot != found.other


def test_a_lane_that_is_late_is_not_apart_from_its_warp(tmp_path: Path) -> None:
    # One lane is held at its arrival, to see whether the mbarrier may be invalidated before; that the others come to
    # an aligned barrier without it meanwhile is nothing that the kernel does wrong.
    body = (
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra A; mbarrier.init.shared.b64 [full], 32; A: barrier.sync 0; "
        f"setp.ge.u32 %p3, %r1, 32; @%p3 bra B; {ARRIVE}bar.arrive 1, 64; @!%p1 {TELL.format('relaxed')}ret; "
        f"B: setp.ne.u32 %p1, %r1, 32; @%p1 bra C; {LOOK.format('relaxed')}{INVAL}C: bar.warp.sync -1; "
        "bar.sync 1, 64; ret; }"
    )
    text = HEAD.format(block=64) + body.replace("; ", ";\n").replace(": ", ":\n") + "\n"
    assert judged(tmp_path / "k.ptx", text).answer == "undecided"


def users(body: str, ctas: int, path: Path) -> WholeResult:
    """The answer about all threads of CTAs of a cluster that use each other's shared memory."""
    return judged(path, kernel(body, ctas).text.replace("// ptxmm: args", '// ptxmm: threads = "all"\n// ptxmm: args'))


@pytest.mark.parametrize("name", DEFINED)
def test_a_cta_that_lives_long_enough(name: str, tmp_path: Path) -> None:
    expected = "undecided" if name == "a store that the owner sees last" else "race-free"
    assert users(DEFINED[name], 2, tmp_path / "k.ptx").answer == expected


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_cta_that_may_have_ended(name: str, tmp_path: Path) -> None:
    found = users(UNDEFINED[name], 2, tmp_path / "k.ptx")
    assert found.answer == "undefined" and found.reason is not None and "5.1.7" in found.reason
    assert found.spot is not None and found.other is not None
    assert (found.other.text, found.other.cta) == ("ret", 1 if name == "a copy, the source of which exits" else 0)


def test_who_is_seen_by_another_cta(tmp_path: Path) -> None:
    # What rank 1 stores is seen by rank 2, which tells rank 0; what rank 2 reads is known to be done only by a release.
    assert users(CHAIN, 3, tmp_path / "k.ptx").answer == "undecided"
    assert users(CHAIN.replace("release", "relaxed"), 3, tmp_path / "k.ptx").answer == "undefined"


MAKERS = [random_pipelines.invalidations, random_pipelines.exits]


@pytest.mark.parametrize("make", MAKERS)
def test_random_lifetimes(make: random_pipelines.Maker, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 5) for seed in range(15)) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_many_random_lifetimes(make: random_pipelines.Maker, tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 20) for seed in range(10_000 + shift, 10_300 + shift)) >= 260
