"""Of executions that differ only in which of several interchangeable threads is which, one is kept.

Coherence is a partial order, so the threads of a group can be numbered along it: of some write, that of a later thread
does not come before that of an earlier one, nor is executed where that of the earlier one is not. Where these writes
are always executed and always ordered, as those of atomic operations on a counter, their order is known before anything
else is. So is what follows from it by the axioms that speak of nothing but who reads from whom: each atomic operation
reads from the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import cast

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model
from ptxmm.cat.polarity import lower_bounds
from ptxmm.engines.symbolic.demand import Demand
from ptxmm.engines.symbolic.tearing import STATIC
from ptxmm.events.symbolic.build import skeleton
from ptxmm.events.symbolic.machine import Known, Reading
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Atomic
from ptxmm.relations.closures import closure
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation, SymbolicAlgebra

FEW = 5
"""Of groups of up to so many threads nothing is worked out beforehand."""

_Evaluator = Evaluator[EventSet, Relation]
_CHOSEN = STATIC | {"rf", "co", "fr", "rmw"}


def break_symmetry(
    program: Program, base: Base, evaluator: _Evaluator, groups: Sequence[Sequence[int]], known: Known
) -> None:
    """Number the threads of each of ``groups``; ``known``: as they have been numbered before."""
    formulas, presence, co = program.formulas, program.presence, program.co
    before = {id_.thread: id_ for ids in known.numbered for id_ in ids}
    total = _total(evaluator) if groups else []
    for group in groups:
        if group[0] in before:
            ids = {before[thread] for thread in group}
            chosen = [e.number for e in program.events if e.kind == "W" and e.id in ids]
        else:
            chosen = _writes(program, base, group)
        for one, other in combinations(chosen, 2):
            program.constraints.append(formulas.either(-presence[other], presence[one]))
            if (other, one) in co:
                program.constraints.append(-co[other, one])
                co[other, one] = FALSE
                if _related(program.algebra, total, one, other):
                    program.constraints.append(co[one, other])
                    co[one, other] = TRUE


def _writes(program: Program, base: Base, group: Sequence[int]) -> list[int]:
    """Of each thread of ``group`` the write by which they are numbered; none if there is no write that all have.

    A strong write says most: one that is always executed, else the last, as of a lock that is released.
    """
    strong = cast(EventSet, base("STRONG"))
    found: dict[EventId, dict[int, int]] = {}
    for event in program.events:
        if event.kind == "W" and event.thread in group:
            found.setdefault(event.id._replace(thread=0), {}).setdefault(event.thread, event.number)
    of_first = {writes[group[0]]: writes for writes in found.values() if len(writes) == len(group)}
    best = max(of_first, key=lambda e: (strong.must >> e & 1, e in strong.may, e), default=None)
    return [] if best is None else [of_first[best][thread] for thread in group]


def _total(evaluator: _Evaluator) -> list[Relation]:
    """What coherence relates in one direction or the other, by the axioms."""
    values = [evaluator.value(node) for _, node, both in lower_bounds(evaluator.model, "co") if both]
    return [value for value in values if isinstance(value, Relation)]


def _related(algebra: SymbolicAlgebra, relations: list[Relation], a: int, b: int) -> bool:
    return any(TRUE in (algebra.get(r, a, b), algebra.get(r, b, a)) for r in relations)


def known_before(
    test: Test, model: Model, reading: Reading, groups: Sequence[Sequence[int]], check: Callable[[], None]
) -> Known:
    """What the numbers of the threads of ``groups`` say of their atomic operations.

    Sound for all executions whose threads are so numbered: those that ``model`` allows are executions of the skeleton
    too, and the axioms that are looked at depend on nothing that values decide.
    """
    large = [g for g in groups if len(g) > FEW and any(isinstance(op, Atomic) for op in test.threads[g[0]].body)]
    program = skeleton(test, reading, check) if large else None
    if program is None:
        return Known()
    base = Base(program)
    evaluator = _Evaluator(model, program.algebra, base)
    total = _total(evaluator)
    numbered: list[tuple[EventId, ...]] = []
    for group in large:
        chosen = _writes(program, base, group)
        pairs = list(combinations(chosen, 2))
        always = all(program.presence[write] == TRUE for write in chosen)
        if always and pairs and all(p in program.co and _related(program.algebra, total, *p) for p in pairs):
            numbered.append(tuple(program.events[write].id for write in chosen))
            program.co.update(dict.fromkeys(pairs, TRUE) | {pair[::-1]: FALSE for pair in pairs})
    return Known(tuple(numbered), frozenset(_never(model, program, evaluator, check))) if numbered else Known()


def _never(
    model: Model, program: Program, evaluator: _Evaluator, check: Callable[[], None]
) -> Iterator[tuple[EventId, EventId | None]]:
    """Reads that are always executed, each with a write of the same kind, or the initial one, that no execution has it
    read from."""
    demand = Demand(evaluator, program.algebra)
    false: set[Formula] = set()
    for axiom in model.axioms:
        check()
        if not axiom.flag and not axiom.negated and axiom.body.depends <= _CHOSEN:
            for formula in impossible(axiom, demand.value(axiom)):
                false.update(false_with(program, formula))
    yield from unread(program, false)


def unread(program: Program, false: set[Formula]) -> Iterator[tuple[EventId, EventId | None]]:
    """Reads that are always executed, each with a write of the same kind, or the initial one (None), which it is
    ``false`` that it reads from."""
    for readers in program.rf.values():
        for read, sources in readers.items():
            for write, when in sources.items():
                if when in false and program.presence[read] == TRUE == program.presence[write]:
                    yield (
                        program.events[read].id,
                        program.events[write].id if write < len(program.events) else None,
                    )


def impossible(axiom: Axiom, value: EventSet | Relation) -> Iterator[Formula]:
    """Formulas none of which holds where ``axiom`` does."""
    if isinstance(value, EventSet):
        yield from value.may.values()
        return
    reach = closure(value.must) if axiom.kind == "acyclic" else []
    for x, row in value.may.items():
        for y, when in row.items():
            if axiom.kind == "empty" or x == y or (reach and reach[y] >> x & 1):
                yield when


def false_with(program: Program, formula: Formula) -> Iterator[Formula]:
    """The variables that are false if ``formula`` is."""
    stack = [-formula]
    while stack:
        item = stack.pop()
        inner = program.formulas.arguments[abs(item)]
        if inner is None:
            yield -item
        elif item > 0:
            stack += inner


__all__ = ["break_symmetry", "false_with", "impossible", "known_before", "unread"]
