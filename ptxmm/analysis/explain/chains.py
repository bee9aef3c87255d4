"""From derivations to chains of named edges between instructions."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.reasons import Found
from ptxmm.analysis.explain.words import COMPOSITE, EDGES, MORALLY_STRONG, PATTERNS, STATIC, Words, axiom_words
from ptxmm.analysis.result import EventView, Execution
from ptxmm.cat.derivation import EDGES as ORDERS
from ptxmm.cat.derivation import Derivations, Proof
from ptxmm.cat.ir import Graph, Model, Node


class Edge(Struct, frozen=True):
    """One edge of a chain: ``relation`` is the name of a base relation or a definition of the model, ``text`` and
    ``section`` (of PTX ISA 8.5) say what it is. ``inner``: the chain that a definition stands for; ``detail``: the
    patterns that synchronize. ``backwards``: the chain goes against its direction; then ``first`` is where the
    chain comes from all the same. ``strong``: the derivation needs the two to be morally strong (8.7)."""

    relation: str
    text: str
    section: str | None
    first: EventView
    second: EventView
    inner: tuple[Edge, ...] = ()
    detail: str | None = None
    backwards: bool = False
    strong: bool = False


class Absence(Struct, frozen=True):
    """That ``first`` does not come before ``second`` (None: is not in a set) in the order that ``text`` names, nor
    (``unrelated``) the other way round. ``text`` None: in what the axiom demands. ``section`` of PTX ISA 8.5."""

    text: str | None
    section: str | None
    unrelated: bool
    first: EventView
    second: EventView | None


class Reason(Struct, frozen=True, omit_defaults=True):
    """Why the model forbids an execution: ``axiom`` with what it says and its section (of PTX ISA 8.5).

    ``edges`` is a chain, which ``closed`` makes a cycle; ``beside`` are edges that hold as well, ``absent`` what
    the axiom demands and the execution does not have. ``member``: the event, where the axiom is about a set.
    ``length``: how many base edges and absences that are. ``execution``: one that it forbids, where that is asked for.
    """

    axiom: str
    text: str
    section: str | None
    length: int
    closed: bool
    edges: tuple[Edge, ...]
    beside: tuple[Edge, ...]
    absent: tuple[Absence, ...]
    member: EventView | None
    execution: Execution | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """What equal reasons of different events have in common."""
        return self.axiom, _shape(self.edges), _shape(self.beside), tuple(a.text for a in self.absent)


def _shape(edges: tuple[Edge, ...]) -> tuple[object, ...]:
    return tuple((e.relation, e.backwards, _shape(e.inner)) for e in edges)


def reason(model: Model, views: Views, found: Found) -> Reason:
    """What ``found`` says, in words."""
    axiom = found.violation.axiom
    chains = _Chains(views, _named(model), model.definitions.get("ms"))
    edges: list[Edge] = []
    member: EventView | None = None
    for step in found.violation.steps:
        if step.second is None:
            member = views.event(step.first)
            chains.member(step)
        else:
            edges += chains.of(step)
    words = axiom_words(model, axiom)
    closed = bool(edges) and (axiom.kind != "empty" or edges[0].first == edges[-1].second)
    return Reason(
        axiom.name,
        words.text,
        words.section,
        found.violation.cost,
        closed,
        tuple(edges),
        tuple(dict.fromkeys(chains.beside)),
        tuple(dict.fromkeys(chains.absent)),
        member,
    )


class Chain(Struct, frozen=True):
    """A chain of ``edges``, with what is ``beside`` it and what is ``absent`` (see ``Reason``). ``cost``: how many base
    edges and absences that are."""

    edges: tuple[Edge, ...]
    beside: tuple[Edge, ...]
    absent: tuple[Absence, ...]
    cost: int


def derived(model: Model, views: Views, relation: str, first: int, second: int) -> Chain:
    """Why ``relation`` of ``model`` (or a base relation) has this pair of events, by a shortest derivation."""
    evaluator = views.execution.evaluator
    chains = _Chains(views, _named(model), model.definitions.get("ms"))
    node = model.definitions.get(relation)
    if node is None:
        words = EDGES.get(relation) or STATIC.get(relation) or Words(relation, None)
        edge = Edge(relation, words.text, words.section, views.event(first), views.event(second))
        return Chain((edge,), (), (), 1)
    proof = Derivations(views.execution.layout.algebra, evaluator.value).pair(node, first, second)
    assert proof is not None
    edges = chains.of(proof)
    return Chain(tuple(edges), tuple(dict.fromkeys(chains.beside)), tuple(dict.fromkeys(chains.absent)), proof.cost)


def _named(model: Model) -> dict[int, str]:
    """The nodes of the definitions that are shown by name."""
    return {model.definitions[name].index: name for name in (*COMPOSITE, *PATTERNS) if name in model.definitions}


class _Chains(Struct):
    """Makes the edges of proofs, and keeps what is beside the chains."""

    views: Views
    named: dict[int, str]
    strong: Node | None
    beside: list[Edge] = field(default_factory=list)
    absent: list[Absence] = field(default_factory=list)

    def of(self, proof: Proof) -> list[Edge]:
        """The chain from the first to the second event of ``proof``; none from an event to itself."""
        name = self.named.get(proof.node.index)
        if name is not None and name in COMPOSITE:
            return [self._composite(name, proof)]
        if proof.node is self.strong and not proof.cost:
            return [self._plain(proof, "ms", MORALLY_STRONG)]
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
        """The most costly side of an intersection is the chain; of the others, what costs anything is beside it."""
        main = max(proof.parts, key=lambda part: part.cost)
        for part in proof.parts:
            if part is not main and part.cost:
                self.beside += self.of(part)
        edges = self.of(main)
        if len(edges) == 1 and any(part.node is self.strong for part in proof.parts):
            return [replace(edges[0], strong=True)]
        return edges

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

    def _composite(self, name: str, proof: Proof) -> Edge:
        words = COMPOSITE[name]
        patterns: dict[str, str] = {}
        stack = [proof]
        while stack:
            part = stack.pop()
            pattern = self.named.get(part.node.index)
            if pattern is not None and pattern in PATTERNS and part.second is not None:
                patterns.setdefault(pattern, self._span(part))
            stack += part.parts
        detail = ", ".join(f"{PATTERNS[p].text} {patterns[p]}" for p in PATTERNS if p in patterns)
        return self._plain(proof, name, words, tuple(self._chain(proof)), detail or None)

    def _span(self, proof: Proof) -> str:
        first, second = self.views.event(proof.first), self.views.event(proof.second or 0)
        return first.label if first.same == second.same else f"{first.label} to {second.label}"

    def _edge(self, proof: Proof) -> Edge:
        name = proof.node.name
        words = EDGES.get(name) or STATIC.get(name) or Words(name, None)
        return self._plain(proof, name, words)

    def _plain(
        self, proof: Proof, name: str, words: Words, inner: tuple[Edge, ...] = (), detail: str | None = None
    ) -> Edge:
        assert proof.second is not None
        first, second = self.views.event(proof.first), self.views.event(proof.second)
        return Edge(name, words.text, words.section, first, second, inner, detail)

    def _absence(self, proof: Proof) -> None:
        right = proof.node.operands[1]
        assert right is not None
        if right.depends & ORDERS:
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
