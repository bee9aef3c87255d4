"""The relaxed sibling of a test: all orders relaxed and no fences, for what is never seen to be compared with."""

from __future__ import annotations

from msgspec.structs import replace

from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op


def relaxed(test: Test) -> Test | None:
    """``test`` without what orders its accesses; None where it has nothing of that, or branches or barriers."""
    made = tuple(replace(thread, body=tuple(_weaker(op) for op in thread.body)) for thread in test.threads)
    whole = [op for _, op in test.instructions]
    if any(
        isinstance(op, (ops.Branch, ops.Exit, *ops.FAMILIES["mbarrier"], ops.Barrier, ops.ClusterBarrier))
        for op in whole
    ):
        return None
    threads = tuple(replace(thread, body=tuple(op for op in thread.body if op is not None)) for thread in made)
    return None if threads == test.threads else replace(test, threads=threads)


def _weaker(op: Op) -> Op | None:
    match op:
        case ops.Load(sem="acquire") | ops.Store(sem="release"):
            return replace(op, sem="relaxed")
        case ops.Atomic() if op.sem != "relaxed":
            return replace(op, sem="relaxed")
        case ops.Fence() | ops.ProxyFence() | ops.GenericToAsyncFence() | ops.MbarrierInitFence():
            return None
        case _:
            return op
