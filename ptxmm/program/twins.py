"""Stores and arrivals that are made whichever way a branch or a guard goes: both ways have them (reading dep=value).

``@p st X; @!p st X`` makes the store whatever p is, and so does a branch with the store on both of its arms. That it is
made does not depend on what p depends on, and a compiler may put one store in the place of the two. So it is with an
atomic and with an arrival at a barrier or an mbarrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import (
    COMPUTING,
    Atomic,
    Barrier,
    Branch,
    ClusterBarrier,
    Guard,
    Load,
    MbarrierArrive,
    MbarrierTx,
    Op,
    Store,
    WarpBarrier,
)

_PASSED = (*COMPUTING, Load, Store)
"""What may stand before such a store: it is neither order nor the end of anything."""
_Made = Store | Atomic | Barrier | ClusterBarrier | WarpBarrier | MbarrierArrive | MbarrierTx
"""What others may see that it is made."""


def twins(body: Sequence[Op], join: Mapping[int, int]) -> dict[int, int]:
    """For the pc of each such instruction that of the branch whose way makes no difference; its own for its guard.

    ``join``: where the ways of a branch meet again. Between the branch, or the first of two with opposite guards, and
    the other there is nothing but what computes, reads or writes, no other way to come in between the two, and nothing
    that changes an operand of them.
    """
    found: dict[int, int] = {}
    targets = {op.target for op in body if isinstance(op, Branch)}
    for pc, op in enumerate(body):
        if isinstance(op, _Made) and op.guard is not None and pc not in found:
            other = _opposite(body, pc, op, targets)
            if other is not None:
                found |= {pc: pc, other: other}
    for pc, op in enumerate(body):
        if isinstance(op, Branch) and pc in join and op.target > pc:
            rest = list(_made(body, op.target, join[pc]))
            for place, store in _made(body, pc + 1, join[pc]):
                match = next((other for other in rest if other[1] == store), None)
                if match is not None:
                    rest.remove(match)
                    found.setdefault(place, pc)
                    found.setdefault(match[0], pc)
    return found


def _opposite(body: Sequence[Op], pc: int, store: _Made, targets: set[int]) -> int | None:
    """Where the same as at ``pc`` follows with the opposite guard."""
    assert store.guard is not None
    wanted = replace(store, guard=Guard(store.guard.register, not store.guard.negated))
    used = _names(store)
    for other in range(pc + 1, len(body)):
        op = body[other]
        if other in targets:
            return None
        if isinstance(op, _Made) and replace(op, source=store.source) == wanted:
            return other
        if not isinstance(op, _PASSED) or used & {name for name, _ in definitions(op)}:
            return None
    return None


def _made(body: Sequence[Op], pc: int, end: int) -> Iterator[tuple[int, _Made]]:
    """What is made on the way from ``pc`` to ``end`` with the operands that there are at ``pc``; all with the same
    source, so that they can be compared."""
    changed: set[str] = set()
    while pc < end:
        op = body[pc]
        if isinstance(op, Branch) and op.guard is None and op.condition is None and op.target > pc:
            pc = op.target
            continue
        if isinstance(op, _Made) and not changed & _names(op):
            yield pc, replace(op, source=body[0].source)
        if not isinstance(op, _PASSED):
            return
        changed |= {name for name, _ in definitions(op)}
        pc += 1


def _names(op: Op) -> set[str]:
    return {name for name, _ in uses(op)}
