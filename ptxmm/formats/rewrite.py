"""What both directions of the conversion between typed PTX and the untyped dialect need."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import Barrier, Branch, Exit, Imm, Op

Cta = tuple[int, int, int | None, int]


def refuse(message: str, op: Op | None = None, hint: str | None = None) -> PtxmmError:
    """An error of kind ``unsupported``, at ``op`` where one is to blame."""
    error = PtxmmError(message, kind="unsupported", hint=hint)
    return error if op is None else error.at(op.source.span)


def barriers(test: Test) -> Iterator[tuple[Cta, list[tuple[int, list[Barrier]]]]]:
    """For each CTA that has barriers, its threads with their barrier instructions, in order.

    Raises ``PtxmmError`` for barriers whose meaning is not that each thread of a fixed group arrives once and waits
    for all the others: the two languages agree on no others (A27).
    """
    ctas: dict[Cta, list[tuple[int, list[Barrier]]]] = {}
    for index, thread in enumerate(test.threads):
        place = thread.placement
        cta = -1 - index if place.cta is None else place.cta
        found = [op for op in thread.body if isinstance(op, Barrier)]
        ctas.setdefault((place.gpu, place.grid, place.cluster, cta), []).append((index, found))
        for op in found:
            if op.kind == "arrive":
                raise refuse("only barriers at which every thread waits can be converted", op)
            if not isinstance(op.barrier, Imm) or (op.count is not None and not isinstance(op.count, Imm)):
                raise refuse("a barrier that is chosen at run time can't be converted", op)
            if loops(thread):
                raise refuse("a barrier in a thread with a loop can't be converted", op)
            if place.warp is not None:
                raise refuse("barriers of threads in a named warp can't be converted", op)
    for path, threads in ctas.items():
        if any(found for _, found in threads):
            yield path, threads


def loops(thread: Thread) -> bool:
    """Whether ``thread`` has a backward branch."""
    return any(isinstance(op, Branch) and op.target <= pc for pc, op in enumerate(thread.body))


def branches(thread: Thread) -> bool:
    """Whether ``thread`` may leave out instructions."""
    return any(isinstance(op, Branch | Exit) for op in thread.body[:-1])
