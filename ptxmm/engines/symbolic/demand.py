"""The values of a model's checks in all executions, worked out only where the check asks for them.

Compositions cost most where there are many events: each pair of them is a disjunction over all events between.
Where one is intersected with a relation of few pairs, as in ``((ms & fr); (ms & co)) & rmw``, its other pairs are
nobody's. What several parts of the model share is evaluated once and in full.
"""

from __future__ import annotations

from functools import lru_cache

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model, Node
from ptxmm.relations.closures import bits, inverted
from ptxmm.relations.symbolic import EventSet, Relation, SymbolicAlgebra

MANY = 24
"""With fewer events everything is evaluated in full."""

_WRAPPERS = frozenset(("union", "intersection", "difference", "restrict", "inverse", "optional"))

_Pairs = list[int] | None
"""The pairs that are asked for, a bit row for each event; None: all."""


class Demand:
    """Values by ``evaluator``, of the pairs that are asked for."""

    def __init__(self, evaluator: Evaluator[EventSet, Relation], algebra: SymbolicAlgebra) -> None:
        self._evaluator = evaluator
        self._algebra = algebra
        self._apart = _apart(evaluator.model)

    def value(self, axiom: Axiom) -> EventSet | Relation:
        """What the check ``axiom`` is about; of an irreflexive relation only the pairs of an event and itself."""
        if axiom.body.is_set or self._algebra.size < MANY:
            return self._evaluator.value(axiom.body)
        asked = [1 << x for x in range(self._algebra.size)] if axiom.kind == "irreflexive" else None
        return self._within(axiom.body, asked)

    def _within(self, node: Node, asked: _Pairs) -> Relation:
        algebra = self._algebra
        if node.index not in self._apart:
            value = self._evaluator.value(node)
            assert isinstance(value, Relation)
            return value if asked is None else _only(value, asked)
        match node.operator, node.operands:
            case "union", (Node() as a, Node() as b):
                return algebra.union(self._within(a, asked), self._within(b, asked))
            case "intersection", (Node() as a, Node() as b):
                if a.index in self._apart:
                    a, b = b, a  # the other one says what is asked of it
                first = self._within(a, asked)
                return algebra.intersection(first, self._within(b, _pairs(first)))
            case "difference", (Node() as a, Node() as b):
                first = self._within(a, asked)
                return algebra.difference(first, self._within(b, _pairs(first)))
            case "restrict", (a, Node() as b, c):
                left, right = self._set(a), self._set(c)
                ends = [_members(right) if _members(left) >> x & 1 else 0 for x in range(algebra.size)]
                both = ends if asked is None else [x & y for x, y in zip(ends, asked, strict=True)]
                return algebra.restrict(left, self._within(b, both), right)
            case "inverse", (Node() as a,):
                return algebra.inverse(self._within(a, None if asked is None else inverted(asked)))
            case "optional", (Node() as a,):
                whole = algebra.optional(self._within(a, asked))
                return whole if asked is None else _only(whole, asked)
            case "sequence", (Node() as a, Node() as b):
                return self._sequence(a, b, asked)
        raise AssertionError(node.operator)

    def _sequence(self, a: Node, b: Node, asked: _Pairs) -> Relation:
        algebra = self._algebra
        if asked is None:
            return algebra.sequence(self._within(a, None), self._within(b, None))
        if a.index in self._apart and b.index not in self._apart:
            second = self._within(b, None)
            onward = _pairs(second)
            first = self._within(a, [sum(1 << y for y, row in enumerate(onward) if row & z) if z else 0 for z in asked])
        else:
            everything = (1 << algebra.size) - 1
            first = self._within(a, [everything if row else 0 for row in asked])
            wanted = [0] * algebra.size
            for row, z in zip(_pairs(first), asked, strict=True):
                for y in bits(row):
                    wanted[y] |= z
            second = self._within(b, wanted)
        return algebra.sequence(first, second, asked)

    def _set(self, node: Node | None) -> EventSet:
        value = self._algebra.universe() if node is None else self._evaluator.value(node)
        assert isinstance(value, EventSet)
        return value


@lru_cache(maxsize=64)
def _apart(model: Model) -> frozenset[int]:
    """The nodes with compositions in them that no other node needs twice."""
    uses = [0] * len(model.nodes)
    for node in model.nodes:
        for operand in node.operands:
            if operand is not None:
                uses[operand.index] += 1
    for axiom in model.axioms:
        uses[axiom.body.index] += 1
    found: set[int] = set()
    for node in model.nodes:
        inside = any(o is not None and o.index in found for o in node.operands)
        if (
            uses[node.index] == 1
            and not node.open
            and (node.operator == "sequence" or (node.operator in _WRAPPERS and inside))
        ):
            found.add(node.index)
    return frozenset(found)


def _members(value: EventSet) -> int:
    """The events that are in it in some execution, as bits."""
    return value.must | sum(1 << event for event in value.may)


def _pairs(value: Relation) -> list[int]:
    """The pairs that are in it in some execution."""
    rows = list(value.must)
    for x, entries in value.may.items():
        rows[x] |= sum(1 << y for y in entries)
    return rows


def _only(value: Relation, asked: list[int]) -> Relation:
    may = {x: row for x, e in value.may.items() if (row := {y: f for y, f in e.items() if asked[x] >> y & 1})}
    return Relation([row & z for row, z in zip(value.must, asked, strict=True)], may)
