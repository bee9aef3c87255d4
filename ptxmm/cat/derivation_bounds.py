"""What some facts of an execution prove: every relation of a model between a lower and an upper bound.

The lower bound of a base relation that orders events has only the pairs that are given, its upper bound all pairs: what
is between them counts as unknown, and the right side of a difference takes away its upper bound. That a relation does
not have a pair is known only where it is given as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ptxmm.cat.derivation import EDGES, BaseFact
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model, Node
from ptxmm.relations.concrete import Concrete

Bound = tuple[int, int]
"""The lower and the upper bound of a set or a relation; the one is contained in the other."""


class Bounds:
    """The algebra of bounds; implements ``relations.algebra.Algebra``."""

    __slots__ = ("_concrete",)

    def __init__(self, concrete: Concrete) -> None:
        self._concrete = concrete

    def _apply(self, call: Callable[..., int], *given: Bound) -> Bound:
        low = call(*(a for a, _ in given))
        return low, low if all(a == b for a, b in given) else call(*(b for _, b in given))

    def universe(self) -> Bound:
        """``_``."""
        return self._concrete.universe(), self._concrete.universe()

    def empty_set(self) -> Bound:
        """``emptyset``."""
        return 0, 0

    def empty_relation(self) -> Bound:
        """``0``."""
        return 0, 0

    def union(self, a: Bound, b: Bound) -> Bound:
        """``a | b``."""
        return a[0] | b[0], a[1] | b[1]

    def intersection(self, a: Bound, b: Bound) -> Bound:
        """``a & b``."""
        return a[0] & b[0], a[1] & b[1]

    def difference(self, a: Bound, b: Bound) -> Bound:
        """``a \\ b``."""
        return a[0] & ~b[1], a[1] & ~b[0]

    set_union, set_intersection, set_difference = union, intersection, difference

    def sequence(self, a: Bound, b: Bound) -> Bound:
        """``a ; b``."""
        return self._apply(self._concrete.sequence, a, b)

    def plus(self, a: Bound) -> Bound:
        """``a+``."""
        return self._apply(self._concrete.plus, a)

    def star(self, a: Bound) -> Bound:
        """``a*``."""
        return self._apply(self._concrete.star, a)

    def optional(self, a: Bound) -> Bound:
        """``a?``."""
        return self._apply(self._concrete.optional, a)

    def inverse(self, a: Bound) -> Bound:
        """``a^-1``."""
        return self._apply(self._concrete.inverse, a)

    def identity(self, a: Bound) -> Bound:
        """``[a]``."""
        return self._apply(self._concrete.identity, a)

    def product(self, a: Bound, b: Bound) -> Bound:
        """``a * b``."""
        return self._apply(self._concrete.product, a, b)

    def domain(self, a: Bound) -> Bound:
        """``domain(a)``."""
        return self._apply(self._concrete.domain, a)

    def range(self, a: Bound) -> Bound:
        """``range(a)``."""
        return self._apply(self._concrete.range, a)

    def restrict(self, left: Bound | None, a: Bound, right: Bound | None) -> Bound:
        """``[left]; a; [right]``."""
        low = self._concrete.restrict(left and left[0], a[0], right and right[0])
        same = a[0] == a[1] and (left is None or left[0] == left[1]) and (right is None or right[0] == right[1])
        return low, low if same else self._concrete.restrict(left and left[1], a[1], right and right[1])

    def same(self, a: Bound, b: Bound) -> bool:
        """Whether two bounds are equal."""
        return a == b

    def fixpoint_bound(self) -> int:
        """Lower and upper bounds grow together."""
        return 2 * self._concrete.fixpoint_bound()


class Recheck:
    """Evaluates checks of ``model`` from some facts of one execution, whose base values ``base`` gives."""

    __slots__ = ("_base", "_concrete", "_evaluator", "_values")

    def __init__(self, model: Model, concrete: Concrete, base: Callable[[str], int | None]) -> None:
        self._concrete = concrete
        self._base = base
        self._values: dict[str, int | None] = {}
        self._evaluator: Evaluator[Bound, Bound] = Evaluator(model, Bounds(concrete), self._whole)

    def _value(self, name: str) -> int | None:
        """What the execution has, asked for once."""
        if name not in self._values:
            self._values[name] = self._base(name)
        return self._values[name]

    def _whole(self, name: str) -> Bound | None:
        value = self._value(name)
        return None if value is None else (value, value)

    def known(self, facts: Collection[BaseFact]) -> Callable[[Node], Bound]:
        """The bounds of every node if nothing is known of the relations in ``EDGES`` but ``facts``: the pairs they
        have, and those that relations made of them do not have."""
        pairs: dict[str, int] = {}
        absent: dict[int, tuple[Node, int]] = {}
        for fact in facts:
            if isinstance(fact.relation, Node):
                node = fact.relation
                absent[node.index] = node, absent.get(node.index, (node, 0))[1] | self._bit(fact)
            elif fact.holds and fact.relation in EDGES and fact.second is not None:
                pairs[fact.relation] = pairs.get(fact.relation, 0) | self._bit(fact)
        everything = self._concrete.product(self._concrete.universe(), self._concrete.universe())

        def base(name: str) -> Bound | None:
            value = self._value(name)
            if value is None or name not in EDGES:
                return None if value is None else (value, value)
            return pairs.get(name, 0), everything

        evaluator = self._evaluator.changed(EDGES, base)
        for _, (node, bits) in sorted(absent.items(), key=lambda item: item[0]):  # operands come before what has them
            low, high = evaluator.value(node)
            evaluator._memo[node.index] = low, high & ~bits
        return evaluator.value

    def _bit(self, fact: BaseFact) -> int:
        return 1 << fact.first if fact.second is None else self._concrete.relation([(fact.first, fact.second)])

    def violated(self, axiom: Axiom, facts: Collection[BaseFact]) -> bool:
        """Whether ``facts`` alone prove that ``axiom`` (not one of the negated checks) does not hold."""
        low = self.known(facts)(axiom.body)[0]
        return not self._concrete.satisfies(axiom.kind, False, low)


def informative(fact: BaseFact) -> bool:
    """Whether ``fact`` is about what orders events, and not about two instructions by themselves."""
    if isinstance(fact.relation, Node):
        return bool(fact.relation.depends & EDGES)
    return fact.relation in EDGES


def reduce(recheck: Recheck, axiom: Axiom, facts: tuple[BaseFact, ...]) -> tuple[BaseFact, ...]:
    """``facts`` without those about ``EDGES`` that the violation of ``axiom`` does not need: dropping any one of those
    left ends the proof."""
    kept = list(facts)
    for fact in facts:
        if informative(fact):
            fewer = [f for f in kept if f is not fact]
            if recheck.violated(axiom, fewer):
                kept = fewer
    return tuple(kept)
