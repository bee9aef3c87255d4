"""Orders of many events that are not written out, with clauses for every three of them, but looked at when the solver
offers an assignment: each cycle becomes a clause, and the solver tries again.

Fence-SC order (PTX ISA 8.9.3) of many fences is one variable for each pair: a model that says that the order is
acyclic, and that it relates every two fences of a kind, makes it total on them. Which pairs matter, the clauses tell:
those whose variable is in one. An assignment in which these have no cycle stands for one in which all others are in
accord with them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import combinations

from msgspec import Struct

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Model
from ptxmm.cat.polarity import acyclic_orders, lower_bounds
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation

FEW = 4
"""Of up to so many fences the order is written out."""


class TotalOrder(Struct, frozen=True):
    """``before[a, b]``: when ``a`` comes before ``b``, for every two of ``events``, in the order of these; when ``b``
    comes before ``a`` is its negation."""

    events: tuple[int, ...]
    before: Mapping[tuple[int, int], Formula]

    def pairs(self) -> Iterator[tuple[tuple[int, int], Formula]]:
        """Every pair and when it is in the order."""
        for (a, b), first in self.before.items():
            yield (a, b), first
            yield (b, a), -first

    def settle(self, values: dict[Formula, bool]) -> list[list[Formula]]:
        """Cycles of the pairs whose variables are in ``values``: formulas that do not hold together in an order. If
        there are none, ``values`` takes the variables of all other pairs, in accord with these."""
        onward: dict[int, dict[int, Formula]] = {event: {} for event in self.events}
        for (a, b), first in self.before.items():
            value = True if abs(first) == TRUE else values.get(abs(first))
            if value is not None:
                one, other, when = (a, b, first) if value == (first > 0) else (b, a, -first)
                onward[one][other] = when
        cycles = _cycles(onward, onward)
        if not cycles:
            after = {event: i for i, event in enumerate(TopologicalSorter(onward).static_order())}
            for (a, b), first in self.before.items():
                values.setdefault(abs(first), (after[a] > after[b]) == (first > 0))
        return cycles


class Acyclic(Struct, frozen=True):
    """A relation that has no cycle: ``onward[a][b]`` is when it relates ``a`` to ``b``."""

    onward: Mapping[int, Mapping[int, Formula]]

    def cycles(self, holds: Callable[[Formula], bool]) -> list[list[Formula]]:
        """Cycles in the assignment in which a formula ``holds``, each as the formulas of its pairs."""
        related = {a: [b for b, when in row.items() if holds(when)] for a, row in self.onward.items()}
        return _cycles(related, self.onward)


def _cycles(related: Mapping[int, Iterable[int]], when: Mapping[int, Mapping[int, Formula]]) -> list[list[Formula]]:
    """Shortest cycles through events that are in none of those before, as the formulas of their pairs."""
    found: list[list[Formula]] = []
    met: set[int] = set()
    for event in related:
        if event not in met and (cycle := _cycle(related, event)):
            met.update(cycle)
            found.append([when[a][b] for a, b in zip(cycle, [*cycle[1:], event], strict=True)])
    return found


def _cycle(onward: Mapping[int, Iterable[int]], start: int) -> list[int]:
    """A shortest cycle through ``start``, which it begins with; empty if there is none."""
    came: dict[int, int] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in onward[node]:
            if other == start:
                path = [node]
                while path[-1] != start:
                    path.append(came[path[-1]])
                return path[::-1]
            if other not in came:
                came[other] = node
                queue.append(other)
    return []


def total_fence_orders(
    model: Model, program: Program, base: Base, evaluator: Evaluator[EventSet, Relation]
) -> list[TotalOrder]:
    """Where Fence-SC order is a total order, by the axioms of ``model``, of more than ``FEW`` fences that are always
    executed. Each pair of these is one variable of ``program`` from now on. (Nowhere if the model speaks of the order
    by two names: what it says of one may be worked out from the other.)"""
    alone = any(a.body.is_base("fsc") for a in acyclic_orders(model)) and "sync_fence" not in model.names()
    groups = _groups(program)
    if not (alone and groups):
        return []
    get = program.algebra.get
    bounds = [evaluator.value(node) for _, node, both in lower_bounds(model, "fsc") if both]
    # What comes before what whatever the order is, as in one thread.
    none = program.algebra.empty_relation()
    free = evaluator.changed({"fsc"}, lambda name: none if name == "fsc" else base(name))
    fixed = [free.value(node) for _, node, both in lower_bounds(model, "fsc", dependent=True) if not both]

    def within(relations: list[EventSet | Relation], a: int, b: int) -> bool:
        return any(isinstance(r, Relation) and get(r, a, b) == TRUE for r in relations)

    found = []
    for group in groups:
        before: dict[tuple[int, int], Formula] = {}
        for a, b in combinations(group, 2):
            forth, back = within(fixed, a, b), within(fixed, b, a)
            if (within(bounds, a, b) or within(bounds, b, a)) and not (forth and back):
                before[a, b] = TRUE if forth else FALSE if back else program.fsc[a, b]
        if len(before) == len(group) * (len(group) - 1) // 2:
            found.append(TotalOrder(tuple(group), before))
            for (a, b), first in before.items():
                program.fsc[a, b], program.fsc[b, a] = first, -first
    return found


def _groups(program: Program) -> list[list[int]]:
    """More than ``FEW`` fences that are always executed, each in the scope of all others of its group, and of no other
    fence."""
    partners: dict[int, set[int]] = {}
    for a, b in program.fsc:
        partners.setdefault(a, {a}).add(b)
    always = {a for a in partners if program.presence[a] == TRUE}
    return [
        sorted(together)
        for a, together in partners.items()
        if len(together) > FEW
        and a == min(together)
        and together <= always
        and all(partners[b] == together for b in together)
    ]
