"""Registers that hold a thread's part of a matrix of ``wmma``: which elements these are is unspecified (9.7.15.3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.program.test import Thread
from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.ops import Op, Wmma, WmmaLoad, WmmaStore
from ptxmm.ptx.spelling import refuse


def fragments(thread: Thread) -> frozenset[str]:
    """The registers of ``thread`` that ``wmma`` writes: their values are undetermined."""
    ops = (op for op in thread.body if isinstance(op, WmmaLoad) or _of_fragments(op))
    return frozenset(name for op in ops for name in names_written(op))


def _of_fragments(op: Op) -> bool:
    """Whether ``op`` is ``wmma.mma``: which elements of a matrix ``mma`` has in which registers is specified."""
    return isinstance(op, Wmma) and op.instruction == "wmma.mma"


def check_fragments(threads: Sequence[Thread]) -> None:
    """Refuse every instruction but ``wmma.mma`` and ``wmma.store`` that uses such a register, and ``wmma.load`` and
    ``wmma.store`` by several threads of one warp: which of them accesses an element is unspecified.

    Raises ``PtxmmError`` (kind ``unsupported``).
    """
    for thread in threads:
        _check_uses(thread)
        place = thread.placement
        if place.warp is None or sum(other.placement == place for other in threads) == 1:
            continue
        for op in thread.body:
            if isinstance(op, WmmaLoad | WmmaStore):
                message = "which thread of a warp accesses which elements of a matrix is unspecified"
                hint = "show one thread of the warp, which makes the accesses of all of it"
                raise refuse(op, message, hint)


def _check_uses(thread: Thread) -> None:
    held = fragments(thread)
    if not held:
        return
    for op in thread.body:
        named = [name for name in names_read(op) if name in held]
        guard = op.guard is not None and op.guard.register in held
        base = not (_of_fragments(op) or isinstance(op, WmmaStore)) or guard or _is_place(op, held)
        if named and base:
            message = f"`{named[0]}` holds a part of a matrix, and which one is unspecified"
            hint = "only wmma.mma and wmma.store use the results of wmma.load and wmma.mma"
            raise refuse(op, message, hint)


def _is_place(op: Op, held: frozenset[str]) -> bool:
    """Whether an address or a stride is in one of the registers ``held``."""
    return isinstance(op, WmmaStore) and any(
        getattr(item, "name", None) in held for item in (op.address.base, op.stride)
    )
