"""Whether the barriers of a test let everybody through: a GPU would wait for ever."""

from __future__ import annotations

from ptxmm.hardware.refusal import refused
from ptxmm.hardware.seats import Seating
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.spelling import refuse


def check_barriers(test: Test, seats: Seating) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) if some thread of ``test`` waits for ever at a barrier, or if a
    cluster has warps that take no part in a cluster barrier. The threads that have barriers have no branches."""
    for _, op in test.instructions:
        if seats.lanes > 1 and isinstance(op, ops.Barrier | ops.ClusterBarrier):
            raise refuse(op, "a barrier is not run where threads share a warp: lanes of other instances are in it")
    _check_clusters(test, seats)
    left = [[op for op in thread.body if isinstance(op, ops.Barrier)] for thread in test.threads]
    arrived: dict[tuple[tuple[int, int, int], int], int] = {}
    waiting: dict[int, tuple[tuple[int, int, int], int]] = {}
    moved = True
    while moved:
        moved = False
        for number, ahead in enumerate(left):
            if number in waiting or not ahead:
                continue
            moved = True
            op = ahead.pop(0)
            cta = seats.seats[number].cta
            if not isinstance(op.barrier, ops.Imm):
                continue
            name = cta, op.barrier.value
            warps = sum(seat.cta == cta for seat in seats.seats)
            needed = op.count.value // 32 if isinstance(op.count, ops.Imm) else warps
            arrived[name] = arrived.get(name, 0) + 1
            if op.kind == "sync":
                waiting[number] = name
            if arrived[name] == needed:
                arrived[name] = 0
                waiting = {other: at for other, at in waiting.items() if at != name}
    if waiting:
        thread = test.threads[min(waiting)]
        raise refused(test, thread.name, "this thread may wait for ever at a barrier: a GPU would, too")


def _check_clusters(test: Test, seats: Seating) -> None:
    """All warps of a cluster with a cluster barrier take part in it as often."""
    counts: dict[tuple[int, int], set[int]] = {}
    for thread, seat in zip(test.threads, seats.seats, strict=True):
        kinds = [op.kind for op in thread.body if isinstance(op, ops.ClusterBarrier)]
        counts.setdefault((seat.device, seat.unit), set()).add(len(kinds))
        if kinds != ["arrive", "wait"] * (len(kinds) // 2):
            raise refused(test, thread.name, "a cluster barrier that is not waited for is not run")
    used = {unit for unit, found in counts.items() if max(found)}
    for unit in used:
        inside = [seat for seat in seats.seats if (seat.device, seat.unit) == unit]
        name = test.threads[seats.seats.index(inside[0])].name
        if len(counts[unit]) > 1 or len(inside) != seats.ranks * seats.width:
            message = "a cluster barrier is run where all CTAs of the cluster have as many threads, which all take part"
            raise refused(test, name, message)
