"""Why a pair is in a relation of a model, or a check fails: shortest derivations in one execution.

A derivation goes from a node of the model down to base sets and relations. Its cost is the number of pairs of ``EDGES``
that it uses; what follows from two instructions alone (their addresses, scopes, proxies, threads) costs nothing.
A union takes its cheapest branch, a sequence its cheapest event between, a closure its cheapest path (Dijkstra),
an intersection needs both sides, a difference its left side and that the pair is not in the right one, and a recursive
definition is unfolded by rank.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ptxmm.cat.ir import Axiom, Graph, Node, open_below
from ptxmm.relations.concrete import Concrete

EDGES = frozenset(
    (
        "po", "po-loc", "rf", "co", "fr", "fsc", "sync_fence", "rmw", "addr", "data", "ctrl", "barphase", "syncbar",
        "sync_barrier", "warpphase", "cluphase", "exitphase", "mbphase", "mbnext", "mbcount", "mbpassed", "mblate",
        "issue", "issue-all", "aord", "acomp", "api", "api-indirect", "trigger",
    )
)  # fmt: skip
"""The base relations that order events. All others say something about two instructions by themselves."""


class Proof(Struct, frozen=True, eq=False):
    """That ``node`` relates ``first`` to ``second``, or (``second`` None) is a set with ``first`` in it.

    ``parts`` are the proofs that it is made of, in the order of the operands or of the path.
    """

    node: Node
    first: int
    second: int | None
    parts: tuple[Proof, ...]
    cost: int


class Violation(Struct, frozen=True, eq=False):
    """That ``axiom`` does not hold: a cycle of steps of its relation, or one member of it. ``cost``: see ``Proof``."""

    axiom: Axiom
    steps: tuple[Proof, ...]
    cost: int


class BaseFact(Struct, frozen=True):
    """What a derivation rests on: ``relation`` is the name of a base set or relation, or (not ``holds``) the node that
    does not have the pair. ``second`` is None for sets."""

    relation: str | Node
    first: int
    second: int | None
    holds: bool = True


def _no_check() -> None:
    """Nothing ends the search."""


class Derivations:
    """Shortest derivations in one execution; ``value`` gives the value of each node that is not open in it.

    ``check`` is called now and then; what it raises ends the search.
    """

    __slots__ = ("_algebra", "_check", "_closures", "_memo", "_value", "_values", "_variables")

    def __init__(self, algebra: Concrete, value: Callable[[Node], int], check: Callable[[], None] = _no_check) -> None:
        self._algebra = algebra
        self._value = value
        self._check = check
        self._values: dict[int, int] = {}
        self._memo: dict[tuple[int, int, int], Proof | None] = {}
        self._closures: dict[tuple[int, int], dict[int, tuple[int, int, int, Proof]]] = {}
        self._variables: dict[int, dict[tuple[int, int], Proof]] = {}

    def violation(self, axiom: Axiom) -> Violation | None:
        """The cheapest violation of ``axiom`` (not one of the negated checks), or None if it holds."""
        assert not axiom.negated
        body = axiom.body
        value = self._of(body)
        if axiom.kind == "acyclic":
            return self._cycle(axiom)
        if body.is_set:
            found: Iterable[Proof | None] = (self.member(body, x) for x in self._algebra.members(value))
        elif axiom.kind == "irreflexive":
            diagonal = value & self._algebra.identity(self._algebra.universe())
            found = (self.pair(body, x, y) for x, y in self._algebra.pairs(diagonal))
        else:
            found = (self.pair(body, x, y) for x, y in self._algebra.pairs(value))
        best = min((p for p in found if p is not None), key=_cost, default=None)
        return None if best is None else Violation(axiom, (best,), best.cost)

    def _cycle(self, axiom: Axiom) -> Violation | None:
        algebra = self._algebra
        body = axiom.body
        cyclic = algebra.plus(self._of(body)) & algebra.identity(algebra.universe())
        best: tuple[Proof, ...] | None = None
        least = (0, 0)
        for x, _ in algebra.pairs(cyclic):
            reached = self._paths(body, x)
            if x in reached and (best is None or reached[x][:2] < least):
                least, best = reached[x][:2], _path(reached, x, x)
        return None if best is None else Violation(axiom, best, least[0])

    def pair(self, node: Node, x: int, y: int) -> Proof | None:
        """The cheapest derivation of (x, y) in the relation ``node``, or None if it is not in it."""
        if not node.open and not self._of(node) >> (x * self._algebra.n + y) & 1:
            return None
        if node.operator == "variable":
            return self._variables[node.index].get((x, y))
        key = node.index, x, y
        if key in self._memo:
            return self._memo[key]
        proof = self._memo[key] = self._derive(node, x, y)
        return proof

    def member(self, node: Node, x: int) -> Proof | None:
        """The cheapest derivation of ``x`` in the set ``node``, or None if it is not in it."""
        if not node.open and not self._of(node) >> x & 1:
            return None
        key = node.index, x, -1
        if key in self._memo:
            return self._memo[key]
        proof = self._memo[key] = self._derive_member(node, x)
        return proof

    def _of(self, node: Node) -> int:
        value = self._values.get(node.index)
        if value is None:
            value = self._values[node.index] = self._value(node)
        return value

    def _derive(self, node: Node, x: int, y: int) -> Proof | None:
        match node.operator:
            case "base":
                return Proof(node, x, y, (), 1 if node.name in EDGES else 0)
            case "union":
                return _cheapest(node, x, y, (self.pair(part, x, y) for part in Graph.flatten(node, "union")))
            case "intersection":
                return self._all(node, x, y, (self.pair(o, x, y) for o in _operands(node)))
            case "difference":
                return _difference(node, x, y, lambda part: self.pair(part, x, y))
            case "sequence":
                return self._sequence(node, x, y)
            case "plus":
                return self._closed(node, x, y)
            case "star" | "optional":
                if x == y:
                    return Proof(node, x, y, (), 0)
                (inner,) = _operands(node)
                if node.operator == "star":
                    return self._closed(node, x, y)
                return _wrap(node, x, y, self.pair(inner, x, y))
            case "inverse":
                return _wrap(node, x, y, self.pair(_operands(node)[0], y, x))
            case "identity":
                return _wrap(node, x, y, self.member(_operands(node)[0], x) if x == y else None)
            case "product":
                left, right = _operands(node)
                return self._all(node, x, y, (self.member(left, x), self.member(right, y)))
            case "restrict":
                return self._restricted(node, x, y)
            case "fixpoint":
                return self._fixpoint(node).get((x, y))
        raise AssertionError(node.operator)

    def _derive_member(self, node: Node, x: int) -> Proof | None:
        match node.operator:
            case "base" | "universe":
                return Proof(node, x, None, (), 0)
            case "set_union":
                return _cheapest(node, x, None, (self.member(o, x) for o in _operands(node)))
            case "set_intersection":
                return self._all(node, x, None, (self.member(o, x) for o in _operands(node)))
            case "set_difference":
                return _difference(node, x, None, lambda part: self.member(part, x))
            case "domain" | "range":
                (inner,) = _operands(node)
                others = range(self._algebra.n)
                pairs = ((x, y) for y in others) if node.operator == "domain" else ((y, x) for y in others)
                return _cheapest(node, x, None, (self.pair(inner, a, b) for a, b in pairs))
        raise AssertionError(node.operator)

    def _all(self, node: Node, x: int, y: int | None, parts: Iterable[Proof | None]) -> Proof | None:
        found = []
        for part in parts:
            if part is None:
                return None
            found.append(part)
        return Proof(node, x, y, tuple(found), sum(p.cost for p in found))

    def _restricted(self, node: Node, x: int, y: int) -> Proof | None:
        left, inner, right = node.operands
        assert inner is not None
        parts = [] if left is None else [self.member(left, x)]
        if right is not None:
            parts.append(self.member(right, y))
        return self._all(node, x, y, (self.pair(inner, x, y), *parts))

    def _sequence(self, node: Node, x: int, y: int) -> Proof | None:
        algebra = self._algebra
        left, right = _operands(node)
        between = algebra.universe()
        if not left.open:
            between &= algebra.successors(self._of(left), x)
        if not right.open:
            between &= algebra.successors(algebra.inverse(self._of(right)), y)
        best: Proof | None = None
        for z in algebra.members(between):
            first = self.pair(left, x, z)
            if first is None or (best is not None and first.cost >= best.cost):
                continue
            second = self.pair(right, z, y)
            if second is not None and (best is None or first.cost + second.cost < best.cost):
                best = Proof(node, x, y, (first, second), first.cost + second.cost)
        return best

    def _closed(self, node: Node, x: int, y: int) -> Proof | None:
        (inner,) = _operands(node)
        reached = self._paths(inner, x)
        return Proof(node, x, y, _path(reached, x, y), reached[y][0]) if y in reached else None

    def _paths(self, node: Node, x: int) -> dict[int, tuple[int, int, int, Proof]]:
        """For each event that steps of ``node`` lead to from ``x``: the least cost, then the number of steps, the
        event before, and the last step."""
        key = node.index, x
        known = self._closures.get(key)
        if known is not None:
            return known
        self._check()
        found: dict[int, tuple[int, int, int, Proof]] = {}
        heap: list[tuple[int, int, int]] = [(0, 0, x)]
        done: set[int] = set()
        while heap:
            cost, length, u = heapq.heappop(heap)
            if u in done and length:
                continue
            if length:
                done.add(u)
            for v in self._next(node, u):
                if v in done:
                    continue
                step = self.pair(node, u, v)
                if step is None:
                    continue
                reached = cost + step.cost, length + 1
                if v not in found or reached < found[v][:2]:
                    found[v] = (*reached, u, step)
                    heapq.heappush(heap, (*reached, v))
        if not node.open:
            self._closures[key] = found
        return found

    def _next(self, node: Node, x: int) -> Iterator[int]:
        algebra = self._algebra
        return algebra.members(algebra.universe() if node.open else algebra.successors(self._of(node), x))

    def _fixpoint(self, node: Node) -> dict[tuple[int, int], Proof]:
        """The derivations of all pairs of the recursive definitions of ``node``: from those of no rank on, until no
        further unfolding makes one cheaper."""
        half = len(node.operands) // 2
        variables = [o for o in node.operands[:half] if o is not None]
        bodies = [o for o in node.operands[half:] if o is not None]
        if variables[0].index not in self._variables:
            for variable in variables:
                self._variables[variable.index] = {}
            inside = open_below(bodies)
            changed = True
            while changed:
                changed = False
                self._memo = {k: p for k, p in self._memo.items() if k[0] not in inside}
                for variable, body in zip(variables, bodies, strict=True):
                    known = self._variables[variable.index]
                    for x in range(self._algebra.n):
                        for y in range(self._algebra.n):
                            proof = self.pair(body, x, y)
                            if proof is not None and ((x, y) not in known or proof.cost < known[x, y].cost):
                                known[x, y] = proof
                                changed = True
        return self._variables[variables[int(node.name)].index]


def base_facts(violation: Violation) -> tuple[BaseFact, ...]:
    """Everything that ``violation`` rests on, each once, in the order of its steps."""
    found: dict[tuple[str | int, int, int | None, bool], BaseFact] = {}
    stack = list(reversed(violation.steps))
    while stack:
        proof = stack.pop()
        node = proof.node
        if node.operator == "base":
            fact = BaseFact(node.name, proof.first, proof.second)
            found.setdefault((node.name, proof.first, proof.second, True), fact)
        elif node.operator in ("difference", "set_difference"):
            absent = _operands(node)[1]
            key = (absent.index, proof.first, proof.second, False)
            found.setdefault(key, BaseFact(absent, proof.first, proof.second, False))
        stack.extend(reversed(proof.parts))
    return tuple(found.values())


def _path(reached: dict[int, tuple[int, int, int, Proof]], start: int, end: int) -> tuple[Proof, ...]:
    """The steps from ``start`` to ``end``; events after the first are followed back to it."""
    steps = []
    length, at = reached[end][1], end
    for _ in range(length):
        _, _, before, step = reached[at]
        steps.append(step)
        at = before
    assert at == start
    return tuple(reversed(steps))


def _operands(node: Node) -> tuple[Node, ...]:
    return tuple(o for o in node.operands if o is not None)


def _cheapest(node: Node, x: int, y: int | None, found: Iterable[Proof | None]) -> Proof | None:
    return _wrap(node, x, y, min((p for p in found if p is not None), key=_cost, default=None))


def _difference(node: Node, x: int, y: int | None, prove: Callable[[Node], Proof | None]) -> Proof | None:
    left, right = _operands(node)
    kept = prove(left)
    if kept is None or (node.open and prove(right) is not None):
        return None
    return Proof(node, x, y, (kept,), kept.cost + (1 if right.depends & EDGES else 0))


def _wrap(node: Node, x: int, y: int | None, part: Proof | None) -> Proof | None:
    return None if part is None else Proof(node, x, y, (part,), part.cost)


def _cost(proof: Proof) -> int:
    return proof.cost
