"""What a filter says of an execution in which threads stop before their end, as at a barrier that is misused.

It is about final states, and such an execution has none. What its threads would still write is open, so it is left out
only if the filter is false whatever that is: by registers that are as they will be in the end wherever a thread stops.
"""

from __future__ import annotations

from collections.abc import Collection

from ptxmm.program.condition import Comparison, Conjunction, Disjunction, Negation, Proposition, RegisterTerm, terms
from ptxmm.program.graph import graph_of, reach
from ptxmm.program.shared.control import FENCES
from ptxmm.program.test import Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written

_GOES_ON = (*ops.COMPUTING, *FENCES, ops.Load, ops.Store, ops.Atomic, ops.Exit)


def known_filter(test: Test) -> Proposition | None:
    """What the filter of ``test`` asks of registers that no instruction writes at which a thread may stop, or that may
    come after such a one; where the filter holds this does too. None if there is no filter."""
    if test.filter is None:
        return None
    known = {
        t
        for t in terms(test.filter)
        if isinstance(t, RegisterTerm) and t.register not in _written_late(test.threads[t.thread])
    }
    return weakened(test.filter, known, True)


def _may_stop(pc: int, op: ops.Op) -> bool:
    """Whether a thread may stop at ``op``, or, going back, be cut by the bound there."""
    return op.target <= pc if isinstance(op, ops.Branch) else not isinstance(op, _GOES_ON)


def _written_late(thread: Thread) -> frozenset[str]:
    graph = graph_of(thread.body)
    later = reach(graph.after, [pc for pc, op in enumerate(thread.body) if _may_stop(pc, op)], graph.end)
    return frozenset(name for pc in later for name in names_written(thread.body[pc]))


def weakened(item: Proposition, known: Collection[object], above: bool) -> Proposition:
    """``item`` with true in the place of each comparison of what is not ``known``, or false below a negation."""
    match item:
        case Comparison():
            unknown = any(t not in known for t in terms(item))
            return item if not unknown else Conjunction(()) if above else Disjunction(())
        case Conjunction(items):
            return Conjunction(tuple(weakened(i, known, above) for i in items))
        case Disjunction(items):
            return Disjunction(tuple(weakened(i, known, above) for i in items))
        case Negation(inner):
            return Negation(weakened(inner, known, not above))
