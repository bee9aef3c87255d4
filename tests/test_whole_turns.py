"""Threads that take turns by ``cas`` in loops (``whole.execution.handshakes``): the answer is that of the engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.random_turns import HEAD, turns
from tests.test_whole import answer, compare


def test_random_turns(tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", turns(seed), 5) for seed in range(12)) >= 9


@pytest.mark.slow
def test_many_random_turns(tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", turns(seed), 20) for seed in range(1000 + shift, 1200 + shift)) >= 150


PUT = "W{n}: atom.global.{sem}.{scope}.cas.b32 %r8, [%d1], {values}; setp.ne.u32 %p1, %r8, {ends}; @%p1 bra W{n};"
SET, CLEAR = (0, 1), (1, 0)


def _loop(number: int, values: tuple[int, int], sem: str = "acq_rel", scope: str = "gpu", ends: int = -1) -> str:
    compared, new = values
    given = f"{compared}, {new}"
    return PUT.format(n=number, sem=sem, scope=scope, values=given, ends=compared if ends < 0 else ends)


FENCE, WRITE, READ = "fence.acq_rel.gpu;", "st.global.u32 [%d2], 7;", "ld.global.u32 %r20, [%d2];"
RIGHT = [
    WRITE + _loop(1, SET) + _loop(2, (2, 0)) + WRITE,
    _loop(3, (1, 3)) + READ + _loop(4, (3, 2)),
]


@pytest.mark.parametrize(
    ("threads", "word"),
    [
        (RIGHT, "race-free"),
        ([RIGHT[0].replace("acq_rel", "release"), RIGHT[1]], "race"),
        ([RIGHT[0].replace("acq_rel", "relaxed"), RIGHT[1]], "race"),
        ([WRITE + FENCE + _loop(1, SET, "relaxed"), _loop(2, CLEAR, "relaxed") + FENCE + READ], "race-free"),
        ([WRITE + _loop(1, SET) + _loop(2, SET) + WRITE, _loop(3, CLEAR) + READ + _loop(4, CLEAR)], "race"),
        ([WRITE + _loop(1, SET), _loop(2, CLEAR, "relaxed") + READ], "race"),
        ([WRITE + _loop(1, SET, scope="cta"), _loop(2, CLEAR) + READ], "race"),
        # Through a third thread that only hands the word on: a chain of atomic operations.
        ([WRITE + _loop(1, SET), _loop(2, (1, 2), "relaxed"), _loop(3, (2, 3)) + READ], "race-free"),
        # Who is next depends on the schedule.
        ([WRITE + _loop(1, SET) + _loop(2, SET), _loop(3, CLEAR) + READ, _loop(4, CLEAR)], "undecided"),
        ([WRITE + _loop(1, SET), _loop(2, CLEAR) + READ + "st.relaxed.gpu.global.u32 [%d1], 3;"], "undecided"),
        # The loop ends without having written, or has written and goes on.
        ([WRITE + _loop(1, SET), _loop(2, CLEAR, ends=0) + READ], "race"),
        ([_loop(1, SET) + _loop(2, SET), _loop(3, (2, 0))], "deadlock"),
    ],
)  # fmt: skip
def test_turns(threads: list[str], word: str, tmp_path: Path) -> None:
    body = "".join(
        f"    setp.ne.u32 %p2, %r1, {n};\n    @%p2 bra T{n};\n    {own}\nT{n}:\n" for n, own in enumerate(threads)
    )
    text = HEAD.format(grid=len(threads), first=[0, 0]) + body + "    ret;\n}\n"
    assert answer(tmp_path / "k.ptx", text).answer == word
