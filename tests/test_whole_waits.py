"""Whole launches of two threads, of which one hands data to the other by an mbarrier: what is race-free, and what only
looks so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from tests.random_pipelines import HEAD
from tests.test_whole_pipelines import agrees, judged

WRITE, READ = "st.shared.u32 [s], 1; ", "ld.shared.u32 %r5, [s]; "
ARRIVE, GIVE_BACK = (f"mbarrier.arrive.shared.b64 %d9, [{where}]; " for where in ("full", "empty"))
LAST = ARRIVE.replace("arrive.", "arrive.relaxed.cta.")
FENCE = "fence.acq_rel.cta; "
PROXY = "fence.proxy.async.shared::cta; "
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 %d9, [full], 16; "
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 16, [full]; "
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%d1], [s], 16; cp.async.bulk.commit_group; "
DONE = "cp.async.bulk.wait_group 0; "
COPY = "cp.async.ca.shared.global [s], [%d1], 4; "
COPIES = COPY + "cp.async.commit_group; " + COPY.replace("[s]", "[s+4]") + "cp.async.commit_group; "


def ask(how: str = "", parity: int = 0, where: str = "full") -> str:
    return f"mbarrier.try_wait.parity{how}.shared.b64 %p4, [{where}], {parity}; "


def wait(how: str = "", parity: int = 0, where: str = "full", label: str = "L") -> str:
    return f"{label}: {ask(how, parity, where)}@!%p4 bra {label}; "


def staged(first: str, then: str, on_first: str = "", on_then: str = "") -> str:
    """A wait, and if it fails others, with what comes after each."""
    return f"{ask(first)}@!%p4 bra S; {on_first}bra D; {wait(then, label='S')}{on_then}D: "


EMPTY = wait(where="empty", label="M")

CASES = {
    "handed on": (WRITE + ARRIVE, wait() + READ, 1, "race-free"),
    "relaxed arrival": (WRITE + LAST, wait() + READ, 1, "race"),
    "relaxed arrival behind a fence": (WRITE + FENCE + LAST, wait() + READ, 1, "race-free"),
    "staged": (WRITE + ARRIVE, staged("", "") + READ, 1, "race-free"),
    "staged, relaxed later": (WRITE + ARRIVE, staged(".acquire.cta", ".relaxed.cta") + READ, 1, "race"),
    "staged, relaxed first": (WRITE + ARRIVE, staged(".relaxed.cta", ".acquire.cta") + READ, 1, "race"),
    "staged, a fence first": (WRITE + ARRIVE, staged(".relaxed.cta", ".relaxed.cta", FENCE) + READ, 1, "race"),
    "staged, a fence later": (WRITE + ARRIVE, staged(".relaxed.cta", ".relaxed.cta", "", FENCE) + READ, 1, "race"),
    "another parity later": (
        WRITE + ARRIVE, f"{ask()}@!%p4 bra S; bra D; {wait(parity=1, label='S')}D: ", 1, "undecided",
    ),
    "asked once": (WRITE + ARRIVE, ask() + READ, 1, "race"),
    "asked once, guarded": (WRITE + ARRIVE, ask() + "@%p4 " + READ, 1, "undecided"),
    "asked five times": (
        WRITE + ARRIVE,
        "mov.u32 %r4, 0; L: " + ask()
        + "@%p4 bra D; add.u32 %r4, %r4, 1; setp.lt.u32 %p5, %r4, 5; @%p5 bra L; D: " + READ, 1, "race",
    ),
    "rounds are counted": (
        WRITE + ARRIVE,
        "mov.u32 %r4, 0; L: add.u32 %r4, %r4, 1; " + ask()
        + "@!%p4 bra L; setp.gt.u32 %p5, %r4, 1; @%p5 st.shared.u32 [s], 2; " + READ, 1, "undecided",
    ),
    "a store in each round": (
        WRITE + ARRIVE, "L: " + ask() + "@%p4 bra D; st.shared.u32 [s+4], 1; bra L; D: " + READ, 1, "undecided",
    ),
    "else nothing": (WRITE + ARRIVE, ask() + "@!%p4 bra D; " + READ + "D: ", 1, "undecided"),
    "a phase too many": (WRITE + ARRIVE + ARRIVE, wait() + READ, 1, "deadlock"),
    "the other parity": (WRITE + ARRIVE, wait(parity=1) + READ, 1, "deadlock"),
    "two arrivals of one": (ARRIVE + WRITE + ARRIVE, wait() + READ, 2, "race-free"),
    "two arrivals too early": (ARRIVE + ARRIVE + WRITE, wait() + READ, 2, "race"),
    "one arrival of two": (WRITE + ARRIVE, wait() + READ, 2, "deadlock"),
    "an arrival of each": (WRITE + ARRIVE, ARRIVE + wait() + READ, 2, "race-free"),
    "invalidated early": (WRITE + ARRIVE + "mbarrier.inval.shared.b64 [full]; ", wait() + READ, 1, "undefined"),
    "used again": (
        WRITE + ARRIVE + EMPTY + WRITE + ARRIVE, wait() + READ + GIVE_BACK + wait(parity=1, label="N") + READ, 1,
        "race-free",
    ),
    "used again, given back early": (
        WRITE + ARRIVE + EMPTY + WRITE + ARRIVE, wait() + GIVE_BACK + READ + wait(parity=1, label="N") + READ, 1,
        "race",
    ),
    "a load": (EXPECT + LOAD, wait() + READ, 1, "race-free"),
    "a load before its bytes": (LOAD + EXPECT, wait() + READ, 1, "race-free"),
    "a load, other bytes": (EXPECT.replace("16", "8") + LOAD, wait() + READ, 1, "deadlock"),
    "a load, relaxed wait": (EXPECT + LOAD, wait(".relaxed.cta") + READ, 1, "race"),
    "a load over what was written": (WRITE + EXPECT + LOAD, wait() + READ, 1, "race"),
    "a load over it, behind a fence": (WRITE + PROXY + EXPECT + LOAD, wait() + READ, 1, "race-free"),
    "a load that nobody waits for": (EXPECT + LOAD, "", 1, "undefined"),
    "a store": (WRITE + PROXY + STORE + DONE + "ld.global.u32 %r5, [%d1]; ", "", 1, "race-free"),
    "a store, no fence": (WRITE + STORE + DONE + "ld.global.u32 %r5, [%d1]; ", "", 1, "race"),
    "a store that has read": (
        WRITE + PROXY + STORE + DONE.replace(" 0", ".read 0") + WRITE + "ld.global.u32 %r5, [%d1]; ", "", 1, "race",
    ),
    "a store by another": (WRITE + ARRIVE + EMPTY, wait() + PROXY + STORE + DONE + GIVE_BACK, 1, "race-free"),
    "a store by another, no fence": (WRITE + ARRIVE + EMPTY, wait() + STORE + DONE + GIVE_BACK, 1, "race"),
    "a copy": (COPY + "cp.async.mbarrier.arrive.noinc.shared.b64 [full]; ", wait() + READ, 1, "race-free"),
    "a copy, plain arrival": (COPY + ARRIVE, wait() + READ, 1, "race"),
    "a copy of no group": (COPY + "cp.async.wait_group 0; " + ARRIVE, wait() + READ, 1, "race"),
    "the first copy": (COPIES + "cp.async.wait_group 1; " + ARRIVE, wait() + READ, 1, "race-free"),
    "the second copy": (
        COPIES + "cp.async.wait_group 1; " + ARRIVE, wait() + "ld.shared.u32 %r5, [s+4]; ", 1, "race",
    ),
}  # fmt: skip
"""What thread 0 does, what thread 1 does, the arrivals that the mbarrier is for, and the answer."""


def text_of(name: str) -> str:
    first, other, count, _ = CASES[name]
    init = f"mbarrier.init.shared.b64 [full], {count}; mbarrier.init.shared.b64 [empty], 1; "
    body = f"setp.ne.u32 %p1, %r1, 0; @%p1 bra I; {init}I: bar.sync 0; @%p1 bra B; {first}ret; B: {other}ret; }}"
    return HEAD.format(block=2) + body.replace("; ", ";\n").replace(": ", ":\n") + "\n"


@pytest.mark.parametrize("name", CASES)
def test_waits(name: str, tmp_path: Path) -> None:
    path, text, expected = tmp_path / "k.ptx", text_of(name), CASES[name][3]
    found = judged(path, text)
    assert found.answer == expected, found.reason
    # What the engines that list all executions say is the same.
    (test,) = parse_ptx(text, str(path))
    assert agrees(found, test, text, 20)


@pytest.mark.parametrize(
    ("name", "reason", "next_"),
    [
        ("another parity later", "another wait comes next", ask(parity=1)[:-2]),
        ("asked once, guarded", "may come next", "@%p4 " + READ[:-2]),
    ],
)
def test_what_is_done_after_a_wait_that_fails_is_named(name: str, reason: str, next_: str, tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", text_of(name))
    assert found.reason is not None and found.reason.endswith(reason)
    assert found.other is not None and (found.other.text, found.other.thread) == (next_, 1)


def test_a_loop_that_waits_for_what_has_been_ends_with_the_time(tmp_path: Path) -> None:
    """What a wait knows does not grow with the times that it is asked again."""
    body = (
        "setp.ne.u32 %p1, %r1, 0; @%p1 bra I; mbarrier.init.shared.b64 [full], 1; I: bar.sync 0; @%p1 bra L; "
        + ARRIVE + ask() + "@%p4 bra L; L: " + ask() + "add.u32 %r4, %r4, 1; bra L; }"
    )  # fmt: skip
    path = tmp_path / "k.ptx"
    path.write_text(HEAD.format(block=256) + body.replace("; ", ";\n").replace(": ", ":\n") + "\n")
    (kernel,) = kernels(path)
    start = time.monotonic()
    assert whole(kernel, str(path), Limits(deadline=start + 1)).answer == "timeout"
    assert time.monotonic() < start + 5
