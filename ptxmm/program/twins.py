"""Stores that are made whichever way a branch or a guard goes: both ways have the same store (reading dep=value).

``@p st X; @!p st X`` makes the store whatever p is, and so does a branch with the store on both of its arms. That it is
made does not depend on what p depends on, and a compiler may put one store in the place of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import COMPUTING, Branch, Exit, Guard, Load, Op, Store

_PASSED = (*COMPUTING, Load, Store)
"""What may stand before such a store: it is neither order nor the end of anything."""


def twins(body: Sequence[Op], join: Mapping[int, int]) -> dict[int, int]:
    """For the pc of each such store that of the branch whose way makes no difference to it; its own for its guard.

    ``join``: where the ways of a branch meet again. Between the branch, or the first of two stores with opposite
    guards, and the store there is nothing but what computes, reads or writes, no other way to come in between two such
    stores, and nothing that changes an operand of them.
    """
    found: dict[int, int] = {}
    targets = {op.target for op in body if isinstance(op, Branch)}
    for pc, op in enumerate(body):
        if isinstance(op, Store) and op.guard is not None and pc not in found:
            other = _opposite(body, pc, op, targets)
            if other is not None:
                found |= {pc: pc, other: other}
    for pc, op in enumerate(body):
        if isinstance(op, Branch) and pc in join and op.target > pc:
            rest = list(_stores(body, op.target, join[pc]))
            for place, store in _stores(body, pc + 1, join[pc]):
                match = next((other for other in rest if other[1] == store), None)
                if match is not None:
                    rest.remove(match)
                    found.setdefault(place, pc)
                    found.setdefault(match[0], pc)
    return found


def _opposite(body: Sequence[Op], pc: int, store: Store, targets: set[int]) -> int | None:
    """Where the same store as at ``pc`` follows with the opposite guard."""
    assert store.guard is not None
    wanted = replace(store, guard=Guard(store.guard.register, not store.guard.negated))
    used = _names(store)
    for other in range(pc + 1, len(body)):
        op = body[other]
        if other in targets or not isinstance(op, _PASSED):
            return None
        if isinstance(op, Store) and replace(op, source=store.source) == wanted:
            return other
        if used & {name for name, _ in definitions(op)}:
            return None
    return None


def _stores(body: Sequence[Op], pc: int, end: int) -> Iterator[tuple[int, Store]]:
    """The stores that are made on the way from ``pc`` to ``end`` with the operands that there are at ``pc``; all with
    the same source, so that they can be compared."""
    changed: set[str] = set()
    while pc < end:
        op = body[pc]
        if isinstance(op, Branch) and op.guard is None and op.condition is None and op.target > pc:
            pc = op.target
            continue
        if isinstance(op, Branch | Exit) or not isinstance(op, _PASSED):
            return
        if isinstance(op, Store) and not changed & _names(op):
            yield pc, replace(op, source=body[0].source)
        changed |= {name for name, _ in definitions(op)}
        pc += 1


def _names(op: Op) -> set[str]:
    return {name for name, _ in uses(op)}
