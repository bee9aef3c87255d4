"""Evaluation of a model over a carrier of the relation algebra: each node once, and only if it is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ptxmm.cat import names
from ptxmm.cat.ir import Axiom, Model, Node, open_below
from ptxmm.errors import PtxmmError
from ptxmm.relations.algebra import Algebra

S = TypeVar("S")
R = TypeVar("R")

_BASE = -1
_FIXPOINT = -2
_OPERATORS = (
    "universe", "empty_set", "empty_relation", "set_union", "set_intersection", "set_difference", "union",
    "intersection", "difference", "sequence", "restrict", "product", "identity", "inverse", "domain", "range", "plus",
    "star", "optional",
)  # fmt: skip
"""The methods of an algebra that a node stands for."""
_Step = tuple[int, int, int, int, int]
"""How many operands, the number of the operator (of the node itself for a base or a fixpoint), and the operands."""


class _Plans:
    """What all evaluators of one model share: a step for each node, and orders of evaluation.

    ``void``: the nodes that are empty in every execution, because the base sets and relations ``absent`` are.
    """

    __slots__ = ("_affected", "_found", "_needed", "model", "steps", "void")

    def __init__(self, model: Model, absent: frozenset[str]) -> None:
        self.model = model
        self.steps = _steps(model)
        self.void = _void(model, absent) if absent else frozenset()
        self._needed = self._bits()
        self._found: dict[int, tuple[int, ...]] = {}
        self._affected: dict[frozenset[str], tuple[int, ...]] = {}

    def plan(self, node: Node) -> tuple[int, ...]:
        """The indices of the nodes that ``node`` needs, operands first, itself last."""
        plan = self._found.get(node.index)
        if plan is None:
            plan = self._found[node.index] = _indices(self._needed[node.index])
        return plan

    def affected(self, changed: frozenset[str]) -> tuple[int, ...]:
        """The indices of the nodes whose values depend on the base names ``changed``."""
        found = self._affected.get(changed)
        if found is None:
            found = self._affected[changed] = tuple(
                node.index
                for node in self.model.nodes
                if not node.open and node.depends & changed and node.index not in self.void
            )
        return found

    def _bits(self) -> list[int]:
        """For each node those that it needs, as bits. (Those of a fixpoint are evaluated with it, void ones too.)"""
        found: list[int] = []
        for node in self.model.nodes:
            bits = 0 if node.index in self.void else 1 << node.index
            if node.operator == "fixpoint":
                bits |= node.reach
            elif bits:
                for operand in node.operands:
                    bits |= 0 if operand is None else found[operand.index]
            found.append(bits)
        return found


_plans = lru_cache(maxsize=64)(_Plans)
"""Tests with the same kinds of events under the same model have the same."""


@lru_cache(maxsize=64)
def _steps(model: Model) -> tuple[_Step, ...]:
    return tuple(map(_step, model.nodes))


def _step(node: Node) -> _Step:
    if node.operator == "base":
        return _BASE, node.index, 0, 0, 0
    if node.operator in ("fixpoint", "variable"):
        return _FIXPOINT, node.index, 0, 0, 0
    # The index -1 is a slot of the memo that always holds None.
    a, b, c = ((*(-1 if o is None else o.index for o in node.operands), 0, 0, 0))[:3]
    return len(node.operands), _OPERATORS.index(node.operator), a, b, c


def _void(model: Model, absent: frozenset[str]) -> frozenset[int]:
    """The nodes that are empty where the base sets and relations ``absent`` are."""
    found: set[int] = set()
    for node in model.nodes:
        if node.open:
            continue
        empty = [operand is not None and operand.index in found for operand in node.operands]
        match node.operator:
            case "base":
                is_void = node.name in absent
            case "empty_set" | "empty_relation":
                is_void = True
            case "union" | "set_union":
                is_void = all(empty)
            case "difference" | "set_difference":
                is_void = empty[0]
            case "intersection" | "set_intersection" | "sequence" | "product" | "restrict":
                is_void = any(empty)
            case "domain" | "range" | "inverse" | "plus" | "identity":
                is_void = empty[0]
            case _:
                is_void = False
        if is_void:
            found.add(node.index)
    return frozenset(found)


def _indices(bits: int) -> tuple[int, ...]:
    result = []
    while bits:
        low = bits & -bits
        result.append(low.bit_length() - 1)
        bits ^= low
    return tuple(result)


class Evaluator(Generic[S, R]):
    """The values of a model's sets and relations in one execution (or, symbolically, in all).

    ``base`` gives the base set or relation of a name, None for a name that it does not know; it is asked once for
    each name, when it is first needed. ``absent``: base sets and relations that are empty in every execution; what
    they make empty is not evaluated.
    """

    __slots__ = ("_algebra", "_base", "_calls", "_memo", "_plans")

    def __init__(
        self,
        model: Model,
        algebra: Algebra[S, R],
        base: Callable[[str], S | R | None],
        absent: frozenset[str] = frozenset(),
    ) -> None:
        self._algebra = algebra
        self._base = base
        self._calls: list[Any] = [getattr(algebra, operator) for operator in _OPERATORS]
        self._plans = _plans(model, absent)
        self._memo: list[S | R | None] = [None] * (len(model.nodes) + 1)
        empty = algebra.empty_relation(), algebra.empty_set()
        for index in self._plans.void:
            self._memo[index] = empty[model.nodes[index].is_set]

    @property
    def model(self) -> Model:
        """The model."""
        return self._plans.model

    def changed(self, changed: Collection[str], base: Callable[[str], S | R | None]) -> Evaluator[S, R]:
        """An evaluator over ``base``, which differs from this one's in the base names ``changed`` only.

        Values that do not depend on those names are kept. This evaluator stays usable.
        """
        result: Evaluator[S, R] = object.__new__(Evaluator)
        result._algebra, result._calls, result._plans = self._algebra, self._calls, self._plans
        result._base = base
        result._memo = memo = self._memo.copy()
        for index in self._plans.affected(frozenset(changed)):
            memo[index] = None
        return result

    def value(self, item: str | Node) -> S | R:
        """The value of a node, or of a name: the model's last definition of it, else the base set or relation.

        Raises ``PtxmmError`` (kind ``model``) for a name that neither the model nor ``base`` knows.
        """
        if isinstance(item, str):
            definition = self.model.definitions.get(item)
            if definition is None:
                return self._named(item)
            item = definition
        value = self._memo[item.index]
        return self._evaluate(self._plans.plan(item), item.index) if value is None else value

    def axioms(self, *, flags: bool = True) -> Iterator[tuple[Axiom, S | R]]:
        """Each check with the value it is about, in the order of the text; ``flags=False`` leaves flags out."""
        for axiom in self.model.axioms:
            if flags or not axiom.flag:
                yield axiom, self.value(axiom.body)

    def _evaluate(self, plan: tuple[int, ...], index: int) -> S | R:
        memo: list[Any] = self._memo
        steps, calls = self._plans.steps, self._calls
        for i in plan:
            if memo[i] is not None:
                continue
            count, operator, a, b, c = steps[i]
            if count == 2:
                memo[i] = calls[operator](memo[a], memo[b])
            elif count == 1:
                memo[i] = calls[operator](memo[a])
            elif count == 3:
                memo[i] = calls[operator](memo[a], memo[b], memo[c])
            elif count == 0:
                memo[i] = calls[operator]()
            elif count == _BASE:
                memo[i] = self._named(self.model.nodes[i].name)
            else:
                self._fixpoint(self.model.nodes[i])
        return memo[index]  # type: ignore[no-any-return]

    def _named(self, name: str) -> S | R:
        if name in names.UNIVERSE:
            return self._algebra.universe()
        if name in names.EMPTY_SETS:
            return self._algebra.empty_set()
        if name in names.EMPTY_RELATIONS:
            return self._algebra.empty_relation()
        if name == "id":
            return self._algebra.identity(self._algebra.universe())
        value = self._base(name)
        if value is None:
            raise PtxmmError(f"the events of an execution have no set or relation `{name}`", kind="model")
        return value

    def _fixpoint(self, node: Node) -> None:
        """Kleene iteration of a group of recursive definitions from the empty relations."""
        memo: list[Any] = self._memo
        size = len(node.operands) // 2
        variables = [o.index for o in node.operands[:size] if o is not None]
        bodies = [o.index for o in node.operands[size:] if o is not None]
        inside = sorted(open_below([o for o in node.operands[size:] if o is not None]))
        values: list[Any] = [self._algebra.empty_relation()] * size
        for _ in range(size * self._algebra.fixpoint_bound()):
            for i in inside:
                memo[i] = None
            for variable, value in zip(variables, values, strict=True):
                memo[variable] = value
            self._evaluate(tuple(inside), variables[0])
            following = [memo[body] for body in bodies]
            stable = all(self._algebra.same(a, b) for a, b in zip(values, following, strict=True))
            values = following
            if stable:
                break
        for i in inside:
            memo[i] = None
        for other in self.model.nodes:
            if other.operator == "fixpoint" and other.operands[0] is node.operands[0]:
                memo[other.index] = values[int(other.name)]
