"""Shuffles from lanes that are not in the test: "results are undefined if a thread sources a register from an inactive
thread" (PTX ISA 9.7.10.6).

Where nothing sees such a result, any value stands for it: the thread takes its own, and waits as before. Where
something does, the program has no meaning, which the engines find out.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ptxmm.program.condition import Term
from ptxmm.program.shared.unseen import unseen
from ptxmm.program.test import Test
from ptxmm.program.unspecified.active import lanes_of
from ptxmm.ptx.ops import Imm, Op, WarpExchange

_FIVE = 31
_Shuffle = tuple[str, int, int]
"""The mode, and the operands that say which lane: ``b`` and ``c``."""


def without_absent(test: Test, asked: Iterable[Term] = ()) -> Test:
    """``test``, in which the shuffles from a lane that is not in it, and whose results nothing sees, take the value of
    the thread itself. ``asked``: the final values that are asked for besides those of the condition."""
    found: dict[int, dict[int, int]] = {}
    for t, thread in enumerate(test.threads):
        if thread.placement.warp is None:
            continue
        lanes: tuple[int, ...] = ()
        for pc, op in enumerate(thread.body):
            known = _shuffle(op)
            if known is not None:
                lanes = lanes or tuple(lanes_of(test, t))
                lane = lanes.index(t)
                own = _own(known, lane)
                if own is not None and _source(*known, lane) >= len(lanes):
                    found.setdefault(t, {})[pc] = own
    if not found:
        return test
    hidden = unseen(test, (*test.named, *asked)).moves
    threads = list(test.threads)
    for t, changes in found.items():
        body = list(threads[t].body)
        for pc in changes.keys() & hidden[t]:
            op = body[pc]
            assert isinstance(op, WarpExchange)
            value, _, *rest = op.operands
            body[pc] = replace(op, operands=(value, Imm(changes[pc]), *rest), absent=True)
        threads[t] = replace(threads[t], body=tuple(body))
    return replace(test, threads=tuple(threads))


def _shuffle(op: Op) -> _Shuffle | None:
    """What ``op`` is if it is a shuffle from a lane that its constants name."""
    if not isinstance(op, WarpExchange) or not op.op.startswith("shfl."):
        return None
    _, b, c, *_ = op.operands
    return (op.op.partition(".")[2], b.value, c.value) if isinstance(b, Imm) and isinstance(c, Imm) else None


def _own(known: _Shuffle, lane: int) -> int | None:
    """The operand ``b`` with which ``lane`` takes its own value, in range; None if there is none."""
    mode, _, c = known
    b = lane if mode == "idx" else 0
    return b if _source(mode, b, c, lane) == lane else None


def _source(mode: str, b: int, c: int, lane: int) -> int:
    """The lane that ``lane`` takes its value from; -1 if none is in range."""
    offset, segment = b & _FIVE, c >> 8 & _FIVE
    low = lane & segment
    last = low | c & _FIVE & ~segment
    source = {"up": lane - offset, "down": lane + offset, "bfly": lane ^ offset}.get(mode, low | offset & ~segment)
    inside = source >= last if mode == "up" else source <= last
    return source if inside else -1
