"""Stores and arrivals that are made whichever way a branch or a guard goes: both ways have them (reading dep=value).

``@p st X; @!p st X`` makes the store whatever p is, and so does a branch with the store on both of its arms. That it is
made does not depend on what p depends on, and a compiler may put one store in the place of the two. So it is with an
atomic and with an arrival at a barrier or an mbarrier. Two are the same if they have the same values as operands, in
whatever registers, and guards are opposite if one of them holds of all values (see ``numbering``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ptxmm.program.graph import Graph
from ptxmm.program.shared.numbering import Described, Numbering
from ptxmm.program.test import Thread
from ptxmm.ptx import ops

_PASSED = (*ops.COMPUTING, ops.Load, ops.Store)
"""What may stand before such a store: it is neither order nor the end of anything."""
_Made = (
    ops.Store | ops.Atomic | ops.Barrier | ops.ClusterBarrier | ops.WarpBarrier | ops.MbarrierArrive | ops.MbarrierTx
)
"""What others may see that it is made."""


class Alike(NamedTuple):
    """What is the same whichever way a branch goes.

    ``twins``: for the pc of each instruction that is made either way that of the branch; its own for its guard.
    ``same``: for each branch the registers that hold the same value at its join (see ``Numbering``).
    """

    twins: Mapping[int, int]
    same: Mapping[int, frozenset[str]]


def alike(thread: Thread, graph: Graph, join: Mapping[int, int]) -> Alike:
    """What is the same whichever way the branches of ``thread`` go; ``join``: where their ways meet again."""
    body = thread.body
    places = {pc for pc, op in enumerate(body) if isinstance(op, _Made)}
    if len(places) < 2 or not (join or sum(body[pc].guard is not None for pc in places) > 1):
        places = set()
    if not places and not any(isinstance(body[pc], ops.Branch) for pc in join):
        return Alike({}, {})
    numbering = Numbering(thread, graph, places)
    return Alike(_twins(thread, join, numbering.described), numbering.same_either_way(join))


def _twins(thread: Thread, join: Mapping[int, int], known: Mapping[int, Described]) -> dict[int, int]:
    """Between the branch, or the first of two with opposite guards, and the other there is nothing but what computes,
    reads or writes, and no other way to come in between the two."""
    body = thread.body
    targets = {op.target for op in body if isinstance(op, ops.Branch)}
    found: dict[int, int] = {}
    for pc in sorted(known):
        other = None if pc in found else _opposite(thread, pc, known, targets, found)
        if other is not None:
            found |= {pc: pc, other: other}
    for pc, op in enumerate(body):
        if isinstance(op, ops.Branch) and pc in join and op.target > pc:
            rest = list(_made(thread, op.target, join[pc], known))
            for place, store in _made(thread, pc + 1, join[pc], known):
                match = next((other for other in rest if other[1] == store), None)
                if match is not None:
                    rest.remove(match)
                    found.setdefault(place, pc)
                    found.setdefault(match[0], pc)
    return found


def _opposite(
    thread: Thread, pc: int, known: Mapping[int, Described], targets: set[int], found: Collection[int]
) -> int | None:
    """Where the same as at ``pc`` follows with the opposite guard, which is not that of another one (``found``)."""
    what, guard = known[pc]
    if guard is None:
        return None
    wanted = Described(what, (guard[0], not guard[1]))
    for other in range(pc + 1, len(thread.body)):
        if other in targets:
            return None
        if known.get(other) == wanted and other not in found:
            return other
        if not isinstance(thread.body[other], _PASSED):
            return None
    return None


def _made(thread: Thread, pc: int, end: int, known: Mapping[int, Described]) -> Iterator[tuple[int, Described]]:
    """What is made on the way from ``pc`` to ``end``."""
    while pc < end:
        op = thread.body[pc]
        if isinstance(op, ops.Branch) and op.guard is None and op.condition is None and op.target > pc:
            pc = op.target
            continue
        if pc in known:
            yield pc, known[pc]
        if not isinstance(op, _PASSED):
            return
        pc += 1
