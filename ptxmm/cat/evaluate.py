"""Evaluation of a model over a carrier of the relation algebra: each node once, and only if it is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache, reduce
from operator import or_
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
_NAME, _EMPTY, _ALL, _FIRST, _ANY = "name", "empty", "all", "first", "any"
_EMPTY_IF = {
    "base": _NAME,
    **dict.fromkeys(("empty_set", "empty_relation"), _EMPTY),
    **dict.fromkeys(("union", "set_union"), _ALL),
    **dict.fromkeys(("difference", "set_difference", "domain", "range", "inverse", "plus", "identity"), _FIRST),
    **dict.fromkeys(("intersection", "set_intersection", "sequence", "product", "restrict"), _ANY),
}
"""Which operands must be empty for the value of an operator to be empty in every execution."""
_Step = tuple[int, int, int, int, int]
"""How many operands, the number of the operator (of the node itself for a base or a fixpoint), and the operands."""


class _Plans:
    """What all evaluators of one model share: a step for each node, and orders of evaluation.

    ``void``: whether a node is a set, if it is empty in every execution because the base sets and relations ``absent``
    are, else None. ``needed``: the nodes that a node needs, itself included, as bits, without those that are void.
    (Those of a fixpoint are evaluated with it, void ones too.) ``constraints``: the checks but for flags, and the nodes
    that all of them need.
    """

    __slots__ = ("_affected", "_found", "constraints", "model", "needed", "steps", "void")

    def __init__(self, model: Model, absent: frozenset[str]) -> None:
        self.model = model
        self.steps = _steps(model)
        self._found: dict[int, tuple[int, ...]] = {}
        self._affected: dict[frozenset[str], int] = {}
        empty = [False] * (len(model.nodes) + 1)  # as of memos, the last slot is that of no operand
        self.needed = needed = [0] * (len(model.nodes) + 1)
        for i, (node, rule, (_, _, a, b, c)) in enumerate(zip(model.nodes, _rules(model), self.steps, strict=True)):
            if rule == _ANY:
                empty[i] = empty[a] or empty[b] or empty[c]
            elif rule == _ALL:
                empty[i] = empty[a] and empty[b]
            elif rule == _FIRST:
                empty[i] = empty[a]
            else:
                empty[i] = rule == _EMPTY or (rule == _NAME and node.name in absent)
            if node.operator == "fixpoint":
                needed[i] = node.reach | 1 << i
            elif not empty[i]:
                needed[i] = needed[a] | needed[b] | needed[c] | 1 << i
        self.void = [node.is_set if void else None for node, void in zip(model.nodes, empty, strict=False)]
        checks = tuple(axiom for axiom in model.axioms if not axiom.flag)
        self.constraints = checks, reduce(or_, (needed[axiom.body.index] for axiom in checks), 0)

    def plan(self, nodes: int) -> tuple[int, ...]:
        """The indices of ``nodes``, which are given as bits: operands come first."""
        plan = self._found.get(nodes)
        if plan is None:
            plan = self._found[nodes] = _indices(nodes)
        return plan

    def affected(self, changed: frozenset[str]) -> int:
        """The nodes whose values depend on the base names ``changed``, as bits."""
        found = self._affected.get(changed)
        if found is None:
            found = self._affected[changed] = sum(
                1 << node.index
                for node in self.model.nodes
                if not node.open and node.depends & changed and self.void[node.index] is None
            )
        return found


_plans = lru_cache(maxsize=256)(_Plans)
"""Tests with the same kinds of events under the same model have the same."""


@lru_cache(maxsize=64)
def _bases(model: Model) -> frozenset[str]:
    """The base names in ``model``."""
    return frozenset(node.name for node in model.nodes if node.operator == "base")


@lru_cache(maxsize=64)
def _steps(model: Model) -> tuple[_Step, ...]:
    return tuple(map(_step, model.nodes))


def _step(node: Node) -> _Step:
    if node.operator == "base":
        return _BASE, node.index, -1, -1, -1
    if node.operator in ("fixpoint", "variable"):
        return _FIXPOINT, node.index, -1, -1, -1
    # The index -1 is a slot of the memo that always holds None.
    a, b, c = ((*(-1 if o is None else o.index for o in node.operands), -1, -1, -1))[:3]
    return len(node.operands), _OPERATORS.index(node.operator), a, b, c


@lru_cache(maxsize=64)
def _rules(model: Model) -> tuple[str, ...]:
    """Which operands of each node must be empty for it to be."""
    return tuple("" if node.open else _EMPTY_IF.get(node.operator, "") for node in model.nodes)


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

    __slots__ = ("_algebra", "_base", "_before", "_calls", "_memo", "_missing", "_plans")

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
        self._plans = _plans(model, absent & _bases(model))
        empty = {None: None, False: algebra.empty_relation(), True: algebra.empty_set()}
        self._memo: list[S | R | None] = [*map(empty.__getitem__, self._plans.void), None]
        self._before: list[S | R | None] = [None] * len(self._memo)  # of the evaluator that this one is made of
        self._missing = (1 << len(model.nodes)) - 1  # nodes without a value, as bits

    @property
    def model(self) -> Model:
        """The model."""
        return self._plans.model

    def changed(self, changed: Collection[str], base: Callable[[str], S | R | None]) -> Evaluator[S, R]:
        """An evaluator over ``base``, which differs from this one's in the base names ``changed`` only.

        Values that do not depend on those names are kept, and so are those of which all operands turn out to be what
        they were. This evaluator stays usable.
        """
        result: Evaluator[S, R] = object.__new__(Evaluator)
        result._algebra, result._calls, result._plans = self._algebra, self._calls, self._plans
        result._base = base
        result._before = self._memo
        result._memo = memo = self._memo.copy()
        affected = self._plans.affected(frozenset(changed))
        result._missing = self._missing | affected
        for index in self._plans.plan(affected):
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
        if value is None:
            self._complete(self._plans.needed[item.index])
            value = self._memo[item.index]
        return value  # type: ignore[return-value]

    def axioms(self, *, flags: bool = True) -> Iterator[tuple[Axiom, S | R]]:
        """Each check with the value it is about, in the order of the text; ``flags=False`` leaves flags out."""
        for axiom in self.model.axioms:
            if flags or not axiom.flag:
                yield axiom, self.value(axiom.body)

    def constraints(self) -> list[tuple[Axiom, S | R]]:
        """All of ``axioms``, without flags."""
        checks, needed = self._plans.constraints
        self._complete(needed)
        memo: list[Any] = self._memo
        return [(axiom, memo[axiom.body.index]) for axiom in checks]

    def _complete(self, needed: int) -> None:
        """See that the nodes ``needed``, which are given as bits, have their values."""
        if missing := needed & self._missing:
            self._evaluate(self._plans.plan(missing))
            self._missing ^= missing

    def _evaluate(self, plan: tuple[int, ...]) -> None:
        memo: list[Any] = self._memo
        before: list[Any] = self._before
        steps, calls = self._plans.steps, self._calls
        for i in plan:
            if memo[i] is not None:
                continue
            count, operator, a, b, c = steps[i]
            old = before[i]
            if count < 0:
                if count == _FIXPOINT:
                    self._fixpoint(self.model.nodes[i])
                    continue
                value = self._named(self.model.nodes[i].name)
            elif old is not None and memo[a] is before[a] and memo[b] is before[b] and memo[c] is before[c]:
                value = old
            elif count == 2:
                value = calls[operator](memo[a], memo[b])
            elif count == 1:
                value = calls[operator](memo[a])
            elif count == 3:
                value = calls[operator](memo[a], memo[b], memo[c])
            else:
                value = calls[operator]()
            memo[i] = value if old is None or value != old else old

    def _named(self, name: str) -> S | R:
        if name in names.CONSTANTS:
            value: S | R = getattr(self._algebra, names.CONSTANTS[name])()
            return value
        if name == "id":
            return self._algebra.identity(self._algebra.universe())
        found = self._base(name)
        if found is None:
            raise PtxmmError(f"the events of an execution have no set or relation `{name}`", kind="model")
        return found

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
            self._evaluate(tuple(inside))
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
