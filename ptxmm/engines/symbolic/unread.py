"""What no read reads from because of the barriers that all threads come to, before any value is known.

In the code of a block (scans, reductions, tiles) each thread reads what others wrote before a barrier. Who comes to the
barriers and what is accessed is known there from the text alone, and with it most of causality order. So writes that
are overwritten before a read, or come after it, need not be tried, nor the values that they would have.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model, Node
from ptxmm.cat.names import absent
from ptxmm.cat.polarity import antitone, lower_bounds
from ptxmm.engines.symbolic.demand import Demand
from ptxmm.engines.symbolic.numbering import false_with, impossible, unread
from ptxmm.events.symbolic.build import skeleton
from ptxmm.events.symbolic.machine import Reading
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, BarrierReduction, WarpBarrier
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation

FEW = 5
"""In tests of up to so many threads nothing is worked out beforehand."""

_BARRIERS = (Barrier, BarrierReduction, WarpBarrier)
_VALUES = frozenset(("addr", "data", "ctrl"))
"""Base relations that the executions of the skeleton need not have as the test does, since its values are not known."""

_FEWER = ("rf", "co", "fr", "fsc")
"""Those that may have fewer pairs in the skeleton than in the test."""

_Evaluator = Evaluator[EventSet, Relation]


def never_read(
    test: Test, model: Model, reading: Reading, check: Callable[[], None]
) -> frozenset[tuple[EventId, EventId | None]]:
    """Reads that are always executed, each with a write of the same kind, or the initial one (None), that no execution
    which ``model`` allows has it read from.

    Every execution of ``test`` is one of its skeleton (``events.symbolic.build``), with fewer pairs in some relations:
    only what weak reads read is looked at, and no Fence-SC order. So only those axioms count that more pairs can't make
    true.
    """
    meet = any(isinstance(op, _BARRIERS) for thread in test.threads for op in thread.body)
    program = skeleton(test, reading, check) if meet and len(test.threads) > FEW else None
    if program is None:
        return frozenset()
    base = Base(program)
    strong = base("STRONG")
    assert isinstance(strong, EventSet)
    program.rf = {
        cell: {read: sources for read, sources in readers.items() if read not in strong.may}
        for cell, readers in program.rf.items()
    }
    evaluator = _Evaluator(model, program.algebra, base, absent(base.empty_sets()))
    _order(program, evaluator, [node for _, node, both in lower_bounds(model, "co") if not both])
    demand = Demand(evaluator, program.algebra)
    false: set[Formula] = set()
    for axiom in model.axioms:
        check()
        if _certain(model, axiom):
            for formula in impossible(axiom, demand.value(axiom)):
                false.update(false_with(program, formula))
    return frozenset(unread(program, false))


def _certain(model: Model, axiom: Axiom) -> bool:
    """Whether what ``axiom`` says of the skeleton it says of the test."""
    depends = axiom.body.depends
    return not (axiom.flag or axiom.negated or depends & _VALUES) and antitone(model, axiom, _FEWER)


def _order(program: Program, evaluator: _Evaluator, bounds: list[Node]) -> None:
    """Note in ``program`` what coherence order surely has, by the axioms that bound it from below."""
    for node in bounds:
        below = None if node.depends & _VALUES else evaluator.value(node)
        if isinstance(below, Relation):
            for one, other in [pair for pair, when in program.co.items() if when not in (TRUE, FALSE)]:
                if program.algebra.get(below, one, other) == TRUE:
                    program.co.update({(one, other): TRUE, (other, one): FALSE})
