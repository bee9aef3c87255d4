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
_Step = tuple[int, Any, int, int, int]


class _Compiled:
    """What evaluators of one model over one algebra share: a call for each node, and orders of evaluation.

    ``void``: the nodes that are empty in every execution, because the base sets ``absent`` are.
    """

    __slots__ = ("affected", "model", "plans", "steps", "void")

    def __init__(self, model: Model, algebra: Algebra[Any, Any], absent: frozenset[str]) -> None:
        self.model = model
        self.steps: list[_Step] = [_step(node, algebra) for node in model.nodes]
        self.plans: dict[int, tuple[int, ...]] = {}
        self.affected: dict[frozenset[str], tuple[int, ...]] = {}
        self.void = _void(model, absent) if absent else frozenset()

    def plan(self, node: Node) -> tuple[int, ...]:
        """The indices of the nodes that ``node`` needs, operands first, itself last."""
        plan = self.plans.get(node.index)
        if plan is None:
            plan = self.plans[node.index] = tuple(sorted(self._needed(node))) if self.void else _indices(node.reach)
        return plan

    def _needed(self, node: Node) -> set[int]:
        found: set[int] = set()
        stack = [node]
        while stack:
            item = stack.pop()
            if item.index in found or item.index in self.void:
                continue
            found.add(item.index)
            if item.operator == "fixpoint":
                found.update(_indices(item.reach))
            else:
                stack.extend(operand for operand in item.operands if operand is not None)
        return found


@lru_cache(maxsize=256)
def _void(model: Model, absent: frozenset[str]) -> frozenset[int]:
    """The nodes that are empty where the base sets ``absent`` are."""
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


def _step(node: Node, algebra: Algebra[Any, Any]) -> _Step:
    if node.operator == "base":
        return _BASE, node, 0, 0, 0
    if node.operator in ("fixpoint", "variable"):
        return _FIXPOINT, node, 0, 0, 0
    # The index -1 is a slot of the memo that always holds None.
    a, b, c = ((*(-1 if o is None else o.index for o in node.operands), 0, 0, 0))[:3]
    return len(node.operands), getattr(algebra, node.operator), a, b, c


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
    each name, when it is first needed. ``absent``: base sets that are empty in every execution; what they make empty
    is not evaluated.
    """

    __slots__ = ("_algebra", "_base", "_compiled", "_memo")

    def __init__(
        self,
        model: Model,
        algebra: Algebra[S, R],
        base: Callable[[str], S | R | None],
        absent: frozenset[str] = frozenset(),
    ) -> None:
        self._algebra = algebra
        self._base = base
        self._compiled = _Compiled(model, algebra, absent)
        self._memo: list[S | R | None] = [None] * (len(model.nodes) + 1)
        for index in self._compiled.void:
            is_set = model.nodes[index].is_set
            self._memo[index] = algebra.empty_set() if is_set else algebra.empty_relation()

    @property
    def model(self) -> Model:
        """The model."""
        return self._compiled.model

    def changed(self, changed: Collection[str], base: Callable[[str], S | R | None]) -> Evaluator[S, R]:
        """An evaluator over ``base``, which differs from this one's in the base names ``changed`` only.

        Values that do not depend on those names are kept. This evaluator stays usable.
        """
        result: Evaluator[S, R] = object.__new__(Evaluator)
        result._algebra = self._algebra
        result._base = base
        compiled = result._compiled = self._compiled
        key = frozenset(changed)
        affected = compiled.affected.get(key)
        if affected is None:
            affected = tuple(
                node.index
                for node in compiled.model.nodes
                if not node.open and node.depends & key and node.index not in compiled.void
            )
            compiled.affected[key] = affected
        memo = self._memo.copy()
        for index in affected:
            memo[index] = None
        result._memo = memo
        return result

    def value(self, item: str | Node) -> S | R:
        """The value of a node, or of a name: the model's last definition of it, else the base set or relation.

        Raises ``PtxmmError`` (kind ``model``) for a name that neither the model nor ``base`` knows.
        """
        if isinstance(item, str):
            definition = self._compiled.model.definitions.get(item)
            if definition is None:
                return self._named(item)
            item = definition
        value = self._memo[item.index]
        return self._evaluate(self._compiled.plan(item), item.index) if value is None else value

    def axioms(self, *, flags: bool = True) -> Iterator[tuple[Axiom, S | R]]:
        """Each check with the value it is about, in the order of the text; ``flags=False`` leaves flags out."""
        for axiom in self._compiled.model.axioms:
            if flags or not axiom.flag:
                yield axiom, self.value(axiom.body)

    def _evaluate(self, plan: tuple[int, ...], index: int) -> S | R:
        memo: list[Any] = self._memo
        steps = self._compiled.steps
        for i in plan:
            if memo[i] is not None:
                continue
            count, call, a, b, c = steps[i]
            if count == 2:
                memo[i] = call(memo[a], memo[b])
            elif count == 1:
                memo[i] = call(memo[a])
            elif count == 3:
                memo[i] = call(memo[a], memo[b], memo[c])
            elif count == 0:
                memo[i] = call()
            elif count == _BASE:
                memo[i] = self._named(call.name)
            else:
                self._fixpoint(call)
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
        for other in self._compiled.model.nodes:
            if other.operator == "fixpoint" and other.operands[0] is node.operands[0]:
                memo[other.index] = values[int(other.name)]
