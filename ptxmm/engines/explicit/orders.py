"""Fence-SC and coherence orders that a model allows for given reads-from, on the concrete carrier.

Where the model asks for an order only from below (``empty X \\ co``, ``empty X \\ (co | co^-1)``) and all else can
only suffer from more of it, the least orders decide (decision A6): what X says, and one direction for
each pair of the symmetric kind. Otherwise every partial order is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ptxmm.cat import Axiom, Model, Node
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Graph
from ptxmm.cat.polarity import Polarity, acyclic_orders, antitone, lower_bounds, polarity
from ptxmm.events.explicit.relations.barriers import PHASES
from ptxmm.events.explicit.relations.base import WITNESS, base_of, fence_sc_pairs
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom
from ptxmm.relations.concrete import Concrete

_FSC = ("fsc", "sync_fence")
_CO = ("co", "fr")
_SOURCES = ("rf", "fr")
_LATE = frozenset(("co", "fr"))


class Rules(Struct, frozen=True):
    """What the text of a model says about its witnesses.

    ``required``: the checks that are no flags; ``early``: those of them that more of any witness can only break.
    ``co_below`` and ``co_between``: what coherence order contains, and what it relates either way; ``least_co``: the
    least such order decides. ``fsc_between`` and ``least_fsc`` the same for Fence-SC order; ``fsc_total``: it relates
    all pairs in scope (the model speaks of ``sync_fence``); ``fsc_antisymmetric``: no pair both ways needs trying;
    ``uses_fsc``: the model speaks of it at all.
    """

    model: Model
    required: tuple[Axiom, ...]
    early: tuple[Axiom, ...]
    flags: tuple[Axiom, ...]
    co_below: tuple[Node, ...]
    co_between: tuple[Node, ...]
    least_co: bool
    fsc_between: tuple[Node, ...]
    least_fsc: bool
    fsc_total: bool
    fsc_antisymmetric: bool
    uses_fsc: bool


def rules(model: Model) -> Rules:
    """The rules of ``model``."""
    required = tuple(a for a in model.axioms if not a.flag)
    co = [b for b in lower_bounds(model, "co") if not b[1].depends & _LATE]
    fsc = [b for b in lower_bounds(model, "fsc") if not b[1].depends & {*_FSC, *_CO}]
    least_fsc = all(b[2] for b in fsc) and _least(model, [b[0] for b in fsc], _FSC)
    total = "sync_fence" in model.names()
    return Rules(
        model,
        required,
        tuple(a for a in required if antitone(model, a, WITNESS)),
        tuple(a for a in model.axioms if a.flag),
        _nodes(co, False),
        _nodes(co, True),
        _least(model, [b[0] for b in co], _CO),
        _nodes(fsc, True),
        least_fsc,
        total,
        least_fsc or total or any(a.body.name in _FSC for a in acyclic_orders(model)),
        any(a.body.depends & set(_FSC) for a in model.axioms),
    )


def _nodes(bounds: Iterable[tuple[Axiom, Node, bool]], between: bool) -> tuple[Node, ...]:
    """What must be in the order, or (``between``) in it one way or the other."""
    return tuple(node for _, node, symmetric in bounds if symmetric == between)


def _least(model: Model, bounding: Collection[Axiom], order: Collection[str]) -> bool:
    """Whether every axiom holds of the least such order if it holds of one: all but the ``bounding`` ones shrink."""
    return all(any(a is b for b in bounding) or antitone(model, a, order) for a in model.axioms)


class Independent(Struct, frozen=True):
    """What reads-from have in common that differ in values only: coherence order ``co``; ``chains``: relations that
    must have no cycle with reads-from; ``flagging``: some flag that is not known holds in all of them."""

    co: int
    chains: tuple[int, ...]
    flagging: bool


class Judge:
    """Decides executions of one layout with given phases of barriers (``events.phases``).

    ``transitive``: coherence order is closed. Two writes that do not overlap are related by transitivity only.
    """

    __slots__ = (
        "_algebra", "_allowed_co", "_evaluator", "_initial", "_pairs", "_phases", "_rules", "_transitive", "check",
        "layout",
    )  # fmt: skip

    def __init__(
        self,
        rules: Rules,
        layout: Layout,
        precomputed: Evaluator[int, int],
        phases: Mapping[str, int],
        transitive: bool,
        check: Callable[[], None],
    ) -> None:
        self._rules = rules
        self.layout = layout
        self.check = check
        self._algebra: Concrete = layout.algebra
        self._phases = phases
        self._transitive = transitive
        self._initial = layout.initial_order()
        self._evaluator = precomputed.changed(PHASES, base_of(layout, ReadsFrom(), 0, 0, phases))
        self._pairs = fence_sc_pairs(layout) if rules.uses_fsc else []
        self._allowed_co = self._initial | self._algebra.relation(
            pair for a, b in overlapping_writes(layout) for pair in ((a, b), (b, a))
        )

    def _at(self, rf: ReadsFrom, co: int, fsc: int) -> Evaluator[int, int]:
        return self._evaluator.changed(WITNESS, base_of(self.layout, rf, co, fsc, self._phases))

    def _later(self, evaluator: Evaluator[int, int], rf: ReadsFrom, co: int, fsc: int) -> Evaluator[int, int]:
        """``evaluator`` with the coherence order ``co``."""
        return evaluator.changed(_LATE, base_of(self.layout, rf, co, fsc, self._phases))

    def _closed(self, co: int) -> int | None:
        """The least coherence order that contains ``co``, or None if there is none."""
        closed = self._algebra.plus(co)
        if not self._algebra.irreflexive(closed):
            return None
        return closed if self._transitive else co

    def _least_co(self, evaluator: Evaluator[int, int]) -> int | None:
        """Coherence order as far as the model asks for it outright; None if no order contains it."""
        co = self._initial
        for node in self._rules.co_below:
            co |= evaluator.value(node)
        return None if co & ~self._allowed_co else self._closed(co)

    def _holds(self, evaluator: Evaluator[int, int], axioms: tuple[Axiom, ...]) -> bool:
        satisfies = self._algebra.satisfies
        return all(satisfies(a.kind, a.negated, evaluator.value(a.body)) for a in axioms)

    def partial(self, rf: ReadsFrom) -> tuple[int, Evaluator[int, int]] | None:
        """Coherence order so far and an evaluator, or None if no reads-from that contains ``rf`` is allowed."""
        evaluator = self._at(rf, 0, 0)
        co = self._least_co(evaluator)
        if co is None:
            return None
        if co:
            evaluator = self._later(evaluator, rf, co, 0)
        return (co, evaluator) if self._holds(evaluator, self._rules.early) else None

    def independent(self, everything: ReadsFrom, names: set[str]) -> Independent | None:
        """What all reads-from within ``everything`` (which gives each read all its sources) have in common, if the
        model can't tell them apart but for cycles of reads-from with dependencies; else None.

        ``names``: flags that are known already.
        """
        rules_ = self._rules
        nothing, evaluator = self._at(ReadsFrom(), 0, 0), self._at(everything, 0, 0)
        co = self._least_co(nothing)
        if self._pairs or not rules_.least_co or co is None or self._least_co(evaluator) != co:
            return None
        nothing = self._later(nothing, ReadsFrom(), co, 0)
        evaluator = self._later(evaluator, everything, co, 0)
        if any(evaluator.value(node) & ~(co | self._algebra.inverse(co)) for node in rules_.co_between):
            return None
        satisfies = self._algebra.satisfies
        chains = []
        for axiom in rules_.required:
            rest = _beside_rf(axiom)
            if rest is not None:
                chain = 0
                for node in rest:
                    chain |= evaluator.value(node)
                chains.append(chain)
            elif not antitone(rules_.model, axiom, _SOURCES) or not satisfies(
                axiom.kind, axiom.negated, evaluator.value(axiom.body)
            ):
                return None
        flagging = False
        for flag in rules_.flags:
            if flag.name not in names:
                ends = [satisfies(flag.kind, flag.negated, e.value(flag.body)) for e in (nothing, evaluator)]
                if ends[0] is not ends[1] or not _one_way(rules_.model, flag):
                    return None
                flagging = flagging or ends[0]
        return Independent(co, tuple(chains), flagging)

    def may_flag(self, evaluator: Evaluator[int, int], names: set[str], later: Collection[str] = (*_FSC, *_CO)) -> bool:
        """Whether an execution with more of the relations ``later`` than ``evaluator``'s may hold a flag that is not in
        ``names``."""
        satisfies = self._algebra.satisfies
        for flag in self._rules.flags:
            if flag.name in names:
                continue
            if satisfies(flag.kind, flag.negated, evaluator.value(flag.body)):
                return True
            if not antitone(self._rules.model, flag, later):
                return True
        return False

    def flags(self, rf: ReadsFrom, co: int, fsc: int, values: Sequence[int | None]) -> set[str]:
        """The flags that hold; ``values``: what is written, by number."""
        evaluator = self._evaluator.changed(WITNESS, base_of(self.layout, rf, co, fsc, self._phases, values))
        satisfies = self._algebra.satisfies
        return {f.name for f in self._rules.flags if satisfies(f.kind, f.negated, evaluator.value(f.body))}

    def orders(self, rf: ReadsFrom) -> Iterator[tuple[int, int]]:
        """Every Fence-SC and coherence order (``fsc``, ``co``) to try that makes a consistent execution."""
        for fsc in self._fence_orders(rf):
            evaluator = self._at(rf, 0, fsc)
            co = self._least_co(evaluator)
            if co is not None:
                for order in self._coherence_orders(evaluator, rf, co, fsc):
                    self.check()
                    final = self._later(evaluator, rf, order, fsc)
                    if self._holds(final, self._rules.required):
                        yield fsc, order

    def _fence_orders(self, rf: ReadsFrom) -> Iterator[int]:
        if not self._pairs:
            yield 0
            return
        n = self._algebra.n
        between = 0
        evaluator = self._at(rf, 0, 0)
        for node in self._rules.fsc_between:
            between |= evaluator.value(node)
        needed = [
            self._rules.fsc_total or bool((between >> (a * n + b) | between >> (b * n + a)) & 1) for a, b in self._pairs
        ]

        def extend(k: int, fsc: int) -> Iterator[int]:
            if k == len(self._pairs):
                yield fsc
                return
            a, b = self._pairs[k]
            if not needed[k]:
                yield from extend(k + 1, fsc)
                if self._rules.least_fsc:
                    return
            there, back = 1 << (a * n + b), 1 << (b * n + a)
            both = () if self._rules.fsc_antisymmetric else (there | back,)
            for added in (there, back, *both):
                if self._possible(rf, fsc | added):
                    yield from extend(k + 1, fsc | added)

        yield from extend(0, 0)

    def _possible(self, rf: ReadsFrom, fsc: int) -> bool:
        """Whether Fence-SC orders that contain ``fsc`` may still be allowed."""
        if self._rules.fsc_total and not self._algebra.acyclic(fsc):
            return False
        evaluator = self._at(rf, 0, fsc)
        co = self._least_co(evaluator)
        if co is None:
            return False
        evaluator = self._later(evaluator, rf, co, fsc)
        return self._holds(evaluator, self._rules.early)

    def _coherence_orders(self, evaluator: Evaluator[int, int], rf: ReadsFrom, co: int, fsc: int) -> Iterator[int]:
        """The orders that contain ``co`` (closed) and relate what must be related; all of them if not ``least_co``."""
        n = self._algebra.n
        between = 0
        for node in self._rules.co_between:
            between |= evaluator.value(node)
        if between & ~(self._allowed_co | self._algebra.inverse(self._allowed_co)):
            return
        least = self._rules.least_co or not self._transitive
        pairs = []
        for a, b in overlapping_writes(self.layout):
            either = 1 << (a * n + b) | 1 << (b * n + a)
            if between & either or not least:
                pairs.append((a, b, either, bool(between & either)))

        def extend(order: int, apart: int, rest: list[tuple[int, int, int, bool]]) -> Iterator[int]:
            rest = [p for p in rest if not order & p[2]]
            if not rest:
                yield order
                return
            a, b, _, needed = rest[0]
            for x, y in ((a, b), (b, a)):
                following = self._closed(order | 1 << (x * n + y))
                if following is None or following & apart:
                    continue
                later = self._later(evaluator, rf, following, fsc) if len(rest) > 1 else None
                if later is not None and not self._holds(later, self._rules.early):
                    continue
                yield from extend(following, apart, rest[1:])
            if not needed:
                yield from extend(order, apart | rest[0][2], rest[1:])

        yield from extend(co, 0, pairs)


def _one_way(model: Model, flag: Axiom) -> bool:
    """Whether more of reads-from can turn ``flag`` only one way."""
    found = {polarity(model, flag, name) for name in _SOURCES} - {Polarity.ABSENT}
    return len(found) < 2 and Polarity.BOTH not in found


def _beside_rf(axiom: Axiom) -> list[Node] | None:
    """What an axiom ``acyclic rf | ...`` joins with reads-from, if the witness does not decide that; else None."""
    if axiom.kind != "acyclic" or axiom.negated:
        return None
    parts = Graph.flatten(axiom.body, "union")
    rest = [node for node in parts if node.operator != "base" or node.name != "rf"]
    return rest if len(rest) < len(parts) and not any(node.depends & WITNESS for node in rest) else None


def overlapping_writes(layout: Layout) -> list[tuple[int, int]]:
    """Pairs (a < b) of writes of threads that have bytes in common."""
    found: dict[tuple[int, int], None] = {}
    for ws in layout.writes.values():
        for i, a in enumerate(ws[1:], 1):
            for b in ws[i + 1 :]:
                found.setdefault((a, b))
    return list(found)
