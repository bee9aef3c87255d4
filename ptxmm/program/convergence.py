"""Instructions that all threads of a warp have to execute together: facts of a test (PTX ISA 9.7.14.1, 9.7.14.3)."""

from __future__ import annotations

from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, BarrierReduction, ClusterBarrier, Op

_ALIGNED = (Barrier, BarrierReduction, ClusterBarrier)


def site(test: Test, thread: int, op: Op) -> str | None:
    """What tells an ``.aligned`` barrier of a thread from others that a thread of its warp may execute; None where
    there is no such thread, or no ``.aligned``.

    The threads of a kernel have the same code, so that it is the place in it: one barrier of a function is told apart
    by its calls. In a litmus test each has a text of its own: there the same barrier is the same instruction.
    """
    place = test.threads[thread].placement
    if not isinstance(op, _ALIGNED) or not op.aligned or place.host or place.warp is None or place.cta is None:
        return None
    if sum(other.placement == place for other in test.threads) < 2:
        return None
    name = f"{type(op).__name__} {op.kind if isinstance(op, Barrier | ClusterBarrier) else op.op}"
    source = op.source
    return f"{name} {source.span.line}:{source.span.column} {source.number}" if test.claims is not None else name


def divergent(test: Test, thread: int, pc: int, other: int) -> str:
    """Why the barrier at ``pc`` of ``thread`` is undefined: ``other``, of its warp, does not execute it with it."""
    me, op = test.threads[thread], test.threads[thread].body[pc]
    section = "9.7.14.3" if isinstance(op, ClusterBarrier) else "9.7.14.1"
    return (
        f"{me.name} line {op.source.span.line}: a barrier that all threads of a warp execute together, but "
        f"{test.threads[other].name} does not (PTX ISA {section})"
    )
