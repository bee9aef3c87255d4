"""Whole launches in which ``fence.sc`` order what one thread hands on for all of its CTA (PTX ISA 8.9.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.random_sequential import sequential
from tests.random_whole import FLAGS_HEAD
from tests.test_whole import answer, compare

STORE = "shl.b32 %r8, %r4, 2; cvt.u64.u32 %d5, %r8; add.u64 %d5, %d1, %d5; st.global.u32 [%d5], 1;\n"
FENCE = "fence.sc.gpu;\n"
GIVE = "red.relaxed.gpu.global.add.u32 [%d2], 1;\n"
WAIT = "W: ld.relaxed.gpu.global.u32 %r7, [%d2]; setp.lt.u32 %p1, %r7, 2; @%p1 bra W;\n"
READ = "xor.b32 %r8, %r8, 8; cvt.u64.u32 %d6, %r8; add.u64 %d6, %d1, %d6; ld.global.u32 %r9, [%d6];\n"
MEET = (
    "setp.ne.u32 %p2, %r1, 0;\n" + STORE + FENCE + "bar.sync 0;\n@%p2 bra B;\n" + GIVE + WAIT + FENCE
    + "B: bar.sync 0;\n" + READ
)  # fmt: skip
"""All threads store a word and fence; one of each CTA counts it, and waits for the other CTA."""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", "race-free"),
        (STORE + FENCE, STORE, "race"),
        (STORE + FENCE, FENCE + STORE, "race"),
        (STORE + FENCE, STORE + "fence.sc.cta;\n", "race"),
        (STORE + FENCE, STORE + "fence.acq_rel.gpu;\n", "race"),
        (STORE + FENCE, STORE + "fence.sc.sys;\n", "race-free"),
        (STORE + FENCE, STORE + "@%p2 bra F; " + FENCE + "F:\n", "race"),
        (WAIT + FENCE, WAIT, "race"),
        (WAIT + FENCE, FENCE + WAIT, None),
        (WAIT + FENCE, WAIT + "fence.acq_rel.gpu;\n", "race"),
        (WAIT + FENCE, WAIT + "fence.sc.cta;\n", "race"),
        (WAIT, WAIT.replace("%r7, 2", "%r7, 1"), None),
        (WAIT, WAIT.replace("relaxed", "acquire"), "race-free"),
        (WAIT + FENCE, WAIT.replace("relaxed", "acquire"), "race"),
        (GIVE, GIVE.replace("relaxed.gpu", "relaxed.cta"), None),
        (GIVE, GIVE.replace("relaxed", "release"), "race-free"),
        (WAIT + FENCE + "B: bar.sync 0;\n", WAIT + "B: bar.sync 0;\n" + FENCE, None),
    ],
)  # fmt: skip
def test_who_fences(old: str, new: str, expected: str | None, tmp_path: Path) -> None:
    """None: whatever is not refuted."""
    text = FLAGS_HEAD.format(grid=2, block=2) + MEET.replace(old, new, 1) + "ret;\n}\n"
    assert compare(tmp_path / "k.ptx", text, 20)
    assert expected in (None, answer(tmp_path / "k.ptx", text).answer)


def test_random_kernels(tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", sequential(seed), 5) for seed in range(25)) >= 22


@pytest.mark.slow
def test_many_random_kernels(tmp_path: Path, shift: int) -> None:
    assert (
        sum(compare(tmp_path / "k.ptx", sequential(seed), 20) for seed in range(10_000 + shift, 10_500 + shift)) >= 450
    )
