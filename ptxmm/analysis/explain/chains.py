"""From derivations to chains of named steps between instructions."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.explain.clauses import CLAUSES, axiom_clause, ground, unfolded
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.phrases import contradiction
from ptxmm.analysis.explain.reasons import Found
from ptxmm.analysis.explain.steps import Absence, Chain, Edge, Reason
from ptxmm.analysis.explain.words import COMPOSITE, CONDITIONS, EDGES, ORDERS, PATTERNS, STATIC, Words, axiom_words
from ptxmm.analysis.result import EventView
from ptxmm.cat.derivation import EDGES as ORDERING
from ptxmm.cat.derivation import Derivations, Proof
from ptxmm.cat.ir import Graph, Model, Node


def reason(model: Model, views: Views, found: Found) -> Reason:
    """What ``found`` says, in words."""
    axiom = found.violation.axiom
    chains = _Chains(views, _named(model), model)
    edges: list[Edge] = []
    member: EventView | None = None
    for step in (unfolded(step, chains.named) for step in found.violation.steps):
        if step.second is None:
            member = views.event(step.first)
            chains.member(step)
        else:
            edges += chains.of(step)
    words = axiom_words(model, axiom)
    closed = bool(edges) and (axiom.kind != "empty" or edges[0].first == edges[-1].second)
    absent = tuple(dict.fromkeys(chains.absent))
    return Reason(
        axiom.name,
        words.text,
        axiom_clause(axiom.name, words.section, (edge.relation for edge in edges)),
        contradiction(axiom.name, tuple(edges), absent, member),
        found.violation.cost,
        closed,
        tuple(edges),
        tuple(dict.fromkeys(chains.beside)),
        absent,
        member,
    )


def derived(model: Model, views: Views, relation: str, first: int, second: int) -> Chain:
    """Why ``relation`` of ``model`` (or a base relation) has this pair of events, by a shortest derivation."""
    evaluator = views.execution.evaluator
    chains = _Chains(views, _named(model), model)
    node = model.definitions.get(relation)
    if node is None:
        words = EDGES.get(relation) or STATIC.get(relation) or Words(relation, None)
        edge = Edge(relation, words.text, words.section, views.event(first), views.event(second))
        return Chain((edge,), (), (), 1)
    proof = Derivations(views.execution.layout.algebra, evaluator.value).pair(node, first, second)
    assert proof is not None
    edges = chains.of(unfolded(proof, chains.named))
    return Chain(tuple(edges), tuple(dict.fromkeys(chains.beside)), tuple(dict.fromkeys(chains.absent)), proof.cost)


def _named(model: Model) -> dict[int, str]:
    """The nodes of the definitions that are steps; of several names of one node, the last here."""
    names = (*reversed(tuple(ORDERS)), *PATTERNS, *COMPOSITE)
    found = {name: model.definitions.get(name) for name in names}
    return {node.index: name for name, node in found.items() if node is not None and not node.is_set}


class _Chains(Struct):
    """Makes the steps of proofs, and keeps what is beside the chains. ``named``: see ``_named``."""

    views: Views
    named: dict[int, str]
    model: Model
    beside: list[Edge] = field(default_factory=list)
    absent: list[Absence] = field(default_factory=list)
    within: list[str] = field(default_factory=list)
    also: list[list[Edge]] = field(default_factory=list)

    def of(self, proof: Proof) -> list[Edge]:
        """The chain from the first to the second event of ``proof``; none from an event to itself."""
        name = self.named.get(proof.node.index)
        if name is not None:
            return self._step(name, proof)
        return self._chain(proof)

    def _chain(self, proof: Proof) -> list[Edge]:
        match proof.node.operator:
            case "base":
                return [self._edge(proof)]
            case "sequence" | "plus" | "star" | "fixpoint" | "union" | "optional":
                return [edge for part in proof.parts for edge in self.of(part)]
            case "intersection":
                return self._both(proof)
            case "restrict" | "difference":
                if proof.node.operator == "difference":
                    self._absence(proof)
                for part in proof.parts[1:]:
                    self.member(part)
                return self.of(proof.parts[0])
            case "inverse":
                return [_turned(edge) for edge in reversed(self.of(proof.parts[0]))]
            case "identity" | "product":
                for part in proof.parts:
                    self.member(part)
                if proof.node.operator == "identity" or proof.second is None:
                    return []
                return [self._plain(proof, "product", Words("any two", None))]
        raise AssertionError(proof.node.operator)

    def _both(self, proof: Proof) -> list[Edge]:
        """The most costly side of an intersection is the chain, but moral strength only if it is alone; of the others,
        what costs anything is beside it."""
        main = max(proof.parts, key=lambda part: (not self._is_strong(part), part.cost))
        strong: list[Edge] = []
        for part in proof.parts:
            if part is main:
                continue
            if self._is_strong(part):
                strong = self.of(part)
            elif part.cost:
                self.beside += self.of(part)
            elif self.also:
                self.also[-1] += self._static(part)
        edges = self.of(main)
        if strong and len(edges) == 1:
            return [replace(edges[0], strong=True, also=(*edges[0].also, *strong))]
        if strong and self.also:
            self.also[-1] += strong
        return edges

    def _is_strong(self, proof: Proof) -> bool:
        return self.named.get(proof.node.index) == "ms"

    def _static(self, proof: Proof) -> Iterator[Edge]:
        """What two instructions are by themselves, as far as there are words for it."""
        stack = [proof]
        while stack:
            part = stack.pop()
            if part.node.operator == "base" and part.node.name in STATIC and part.first != part.second:
                yield self._edge(part)
            stack += reversed(part.parts)

    def member(self, proof: Proof) -> None:
        """Keep what makes an event a member of a set, if that is more than its instruction."""
        if not proof.cost:
            return
        if proof.node.operator == "set_difference":
            self._absence(proof)
        for part in proof.parts:
            if part.second is None:
                self.member(part)
            else:
                self.beside += self.of(part)

    def _step(self, name: str, proof: Proof) -> list[Edge]:
        """A definition as one step with what it stands for."""
        if name == "ms":
            return [self._plain(proof, name, ORDERS[name], also=tuple(self._conditions(proof)))]
        self.within.append(name)
        self.also.append([])
        inner = self._chain(proof)
        also = dict.fromkeys(self.also.pop())
        self.within.pop()
        found = ground(proof, self.named, self._kind, len(inner))
        if name == "precedes" and "rmw" not in found.base:
            return inner  # the whole operation precedes because its read or write does
        words = ORDERS.get(name) or COMPOSITE.get(name) or PATTERNS[name]
        clause = CLAUSES[name](found) if name in CLAUSES else words.section
        detail = self._patterns(proof) if name in COMPOSITE else None
        whole = name in COMPOSITE or name == "obs"
        return [self._plain(proof, name, Words(words.text, clause), tuple(inner), detail, whole, tuple(also))]

    def _kind(self, number: int) -> str:
        return self.views.execution.layout.events[number].kind

    def _conditions(self, proof: Proof) -> Iterator[Edge]:
        """The conditions of morally strong operations that hold, as far as the model has them by name."""
        execution = self.views.execution
        assert proof.second is not None
        a, b = proof.first, proof.second
        algebra, order = execution.layout.algebra, execution.base("po") or 0
        if algebra.has(order, a, b) or algebra.has(order, b, a):
            yield replace(self._plain(proof, "po", CONDITIONS["po"]), backwards=algebra.has(order, b, a))
        else:
            yield from self._condition(proof, "mutual")
        yield from self._condition(proof, "same-proxy")
        if {self._kind(a), self._kind(b)} <= {"R", "W"}:
            yield from self._condition(proof, "complete")

    def _condition(self, proof: Proof, name: str) -> Iterator[Edge]:
        node = self.model.definitions.get(name)
        if node is not None and not node.is_set and proof.second is not None:
            value = self.views.execution.evaluator.value(node)
            if self.views.execution.layout.algebra.has(value, proof.first, proof.second):
                yield self._plain(proof, name, CONDITIONS[name])

    def _patterns(self, proof: Proof) -> str | None:
        """The patterns of a synchronization, by their instructions."""
        patterns: dict[str, str] = {}
        stack = [proof]
        while stack:
            part = stack.pop()
            pattern = self.named.get(part.node.index)
            if pattern is not None and pattern in PATTERNS and part.second is not None:
                patterns.setdefault(pattern, self._span(part))
            stack += part.parts
        return ", ".join(f"{PATTERNS[p].text} {patterns[p]}" for p in PATTERNS if p in patterns) or None

    def _span(self, proof: Proof) -> str:
        first, second = self.views.event(proof.first), self.views.event(proof.second or 0)
        return first.label if first.same == second.same else f"{first.label} to {second.label}"

    def _edge(self, proof: Proof) -> Edge:
        name = proof.node.name
        words = EDGES.get(name) or STATIC.get(name) or Words(name, None)
        if name == "fsc" and "bc" in self.within:
            words = Words(words.text, "8.9.4 (1)")
        return self._plain(proof, name, words)

    def _plain(
        self,
        proof: Proof,
        name: str,
        words: Words,
        inner: tuple[Edge, ...] = (),
        detail: str | None = None,
        whole: bool = True,
        also: tuple[Edge, ...] = (),
    ) -> Edge:
        assert proof.second is not None
        first, second = self.views.event(proof.first), self.views.event(proof.second)
        return Edge(name, words.text, words.section, first, second, inner, detail, whole=whole, also=also)

    def _absence(self, proof: Proof) -> None:
        right = proof.node.operands[1]
        assert right is not None
        if right.depends & ORDERING:
            orders = _orders(right)
            words = orders[0] if len(orders) == 1 else Words("", None)
            second = None if proof.second is None else self.views.event(proof.second)
            first = self.views.event(proof.first)
            both = right.operator == "union"
            self.absent.append(Absence(words.text or None, words.section, both, first, second))


def _orders(node: Node) -> list[Words]:
    """The orders that ``node`` is a union of, each one way or both; none if it is anything else."""
    found: dict[str, Words] = {}
    for part in Graph.flatten(node, "union"):
        inner: Node | None = part
        while inner is not None and inner.operator in ("inverse", "plus"):
            inner = inner.operands[0]
        if inner is None or inner.operator != "base" or inner.name not in EDGES:
            return []
        found[inner.name] = EDGES[inner.name]
    return list(found.values())


def _turned(edge: Edge) -> Edge:
    return replace(
        edge,
        first=edge.second,
        second=edge.first,
        inner=tuple(_turned(e) for e in reversed(edge.inner)),
        backwards=not edge.backwards,
    )
