"""Whole launches in which atomic operations give threads numbers that pick what they work on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import random_tickets
from tests.random_tickets import HEAD
from tests.random_whole import Maker
from tests.test_whole import answer, compare

DRAW = "atom.relaxed.gpu.global.add.u32 %r3, [%d3], 1;"
PLACE = "mul.wide.u32 %d5, %r3, 4; add.u64 %d6, %d1, %d5; add.u64 %d7, %d2, %d5;"
STORE = "st.global.u32 [%d6], 1;"
HAND = f"@%p0 {DRAW} @%p0 st.shared.u32 [next], %r3; bar.sync 0; ld.shared.u32 %r3, [next]; bar.sync 0;"
TOLD = f"mov.u32 %r3, 5; @%p0 {DRAW}"
LOOP = f"L: {HAND} setp.ge.u32 %p2, %r3, 2; @%p2 bra E; {PLACE} @%p0 {STORE} bra L;"
WAIT = "L: ld.acquire.gpu.global.u32 %r5, [%d7]; setp.eq.u32 %p3, %r5, 0; @%p3 bra L; ld.global.u32 %r6, [%d6];"
GIVE = "st.global.u32 [%d1], 1; st.release.gpu.global.u32 [%d2], 1; "
GIVE += GIVE.replace("d1]", "d1+4]").replace("d2]", "d2+4]")


def kernel(text: str, grid: int = 3, block: int = 1) -> str:
    return f"{HEAD.format(grid=grid, block=block)} {text}\nE: ret;\n}}\n"


CASES = {
    "a word for each": (kernel(f"{DRAW} {PLACE} {STORE}"), "race-free"),
    "one word for two": (kernel(f"{DRAW} and.b32 %r3, %r3, 1; {PLACE} {STORE}"), "race"),
    "one word for two of other numbers": (kernel(f"{DRAW} shr.u32 %r3, %r3, 1; {PLACE} {STORE}"), "race"),
    "the last one looks at the first": (
        kernel(f"{DRAW} {PLACE} {STORE} setp.eq.u32 %p2, %r3, 2; @%p2 ld.global.u32 %r6, [%d1];"), "race",
    ),
    "only CTA 0 draws the number that races": (
        kernel(f"{DRAW} {PLACE} setp.eq.u32 %p2, %r3, 2; and.pred %p2, %p2, %p1; @%p2 st.global.u32 [%d1+40], 1; "
               "setp.eq.u32 %p3, %r2, 1; @%p3 ld.global.u32 %r6, [%d1+40];"), "race",
    ),
    "what is waited for": (kernel(f"@!%p1 bra T; {GIVE} bra E; T: {DRAW} {PLACE} {WAIT}"), "race-free"),
    "what is waited for by too many": (kernel(f"@!%p1 bra T; {GIVE} bra E; T: {DRAW} {PLACE} {WAIT}", 4), "deadlock"),
    "too many orders": (kernel(f"{DRAW} {PLACE} {STORE}", 5), "undecided"),
    "a CTA alone in a loop": (kernel(LOOP, 1, 2), "race-free"),
    "a CTA alone in a loop, without a barrier": (kernel(LOOP.replace("bar.sync 0; setp", "setp"), 1, 2), "race"),
    "two CTAs in a loop": (kernel(LOOP, 2, 2), "undecided"),
    "handed on by a shuffle": (
        kernel(f"{TOLD} shfl.sync.idx.b32 %r3, %r3, 0, 31, 3; {PLACE} @%p0 {STORE}", 2, 2), "race-free",
    ),
    "a shuffle of the lane that did not draw": (
        kernel(f"{TOLD} shfl.sync.idx.b32 %r3, %r3, 1, 31, 3; {PLACE} @%p0 {STORE}", 2, 2), "race",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str, tmp_path: Path) -> None:
    text, wanted = CASES[name]
    found = answer(tmp_path / "k.ptx", text)
    assert found.answer == wanted
    assert wanted != "undecided" or (found.choice and found.choice.kind == "ticket")
    compare(tmp_path / "k.ptx", text, 2)


@pytest.mark.parametrize(("make", "count", "least"), [(random_tickets.tickets, 25, 20), (random_tickets.handed, 5, 1)])
def test_random_numbers(make: Maker, count: int, least: int, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 2) for seed in range(count)) >= least


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_tickets.tickets, random_tickets.handed])
def test_many_random_numbers(make: Maker, tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 10) for seed in range(10_000 + shift, 10_400 + shift)) >= 150
