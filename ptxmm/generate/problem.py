"""One model that allows an execution of a program of a vocabulary, and another that does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model
from ptxmm.cat.polarity import lower_bounds
from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.generate.executions import Base, Choices, Pairs
from ptxmm.generate.realize import written_values
from ptxmm.generate.skeleton import Skeleton
from ptxmm.generate.space import Space
from ptxmm.generate.vocabulary import Vocabulary
from ptxmm.relations.checks import acyclicity, cyclic, non_empty, reflexive
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas
from ptxmm.relations.symbolic import EventSet, Relation

Orders = tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]
"""Coherence and Fence-SC order as pairs of instructions, numbered through the threads."""


class Candidate(Struct, frozen=True):
    """A program, and the final state of an execution of it that only one of the models allows: the value that each
    loading instruction returns, by thread and position, and the last value of each location."""

    skeleton: Skeleton
    returned: Mapping[tuple[int, int], int]
    last: Mapping[int, int]


_MOST_ORDERS = 8
"""So many orders of other executions are used to leave out candidates: each adds the whole model to the problem."""


class Separation:
    """The executions of the programs of ``words`` with threads of these sizes that ``allowing`` allows and
    ``forbidding`` does not.

    That an execution is forbidden does not mean that its final state is: another one with other orders may end in it.
    ``refute`` leaves out candidates for which given orders show that.
    """

    def __init__(
        self, words: Vocabulary, sizes: tuple[int, ...], allowing: Model, forbidding: Model, limits: Limits
    ) -> None:
        size = sum(sizes)
        most = size // 2 if words.locations is None else min(words.locations, size // 2)
        self._space = space = Space(words, sizes, most)
        self._forbidding = forbidding
        self._choices = choices = Choices(space, direct=_direct(allowing))
        self._limits = limits
        self._solver = Solver(space.formulas, limits)
        self._base = Base(choices)
        self._last = self._last_writes()
        self._program: Formula | None = None
        for formula in (*space.constraints, *choices.constraints):
            self._solver.require(formula)
        for a, b in space.exclusive:
            self._solver.exclude(a, b)
        self._held: list[tuple[str, bool, EventSet | Relation]] = []
        for axiom, value in Evaluator(allowing, space.algebra, self._base).axioms(flags=False):
            limits.check()
            self._held.append((axiom.kind, axiom.negated, value))
            for formula in _holds(space, axiom, value):
                self._solver.require(formula)
        if "sync_fence" in allowing.names():
            self._require_total_fence_order()
        self._evaluator = self._other(self._co_of_other(choices.co), choices.fsc)
        self._goals = list(self._violations(self._evaluator, self._held))
        self._refined = False
        self._given_orders = 0

    def next(self) -> Candidate | None:
        """Another candidate, or None if there is none. Raises ``Timeout``."""
        while self._goals:
            self._limits.check()
            if self._solver.satisfiable(self._goals[-1]):
                return self._candidate()
            self._solver.require(-self._goals.pop())
        return None

    def skip(self) -> None:
        """Leave out the program of the last candidate."""
        assert self._program is not None
        self._solver.require(-self._program)

    def refute(self, orders: Orders | None) -> None:
        """Leave out the program of the last candidate, which does not separate the models; and every candidate whose
        final state the forbidding model allows with the least coherence order that it asks for and one of a few
        Fence-SC orders, or (later) with ``orders``, those of an execution that ends in the same final state."""
        self.skip()
        if not self._refined:
            self._refined = True
            for fsc in self._fence_orders():
                self._exclude(self._least_coherence(fsc), fsc)
        elif orders is not None and self._given_orders < _MOST_ORDERS:
            self._given_orders += 1
            self._exclude(*self._given(orders))

    def _candidate(self) -> Candidate:
        value = self._solver.value
        space = self._space
        skeleton = space.skeleton(value)
        self._program = space.is_program(skeleton)
        written = written_values(skeleton)
        places = [(t, p) for t, size in enumerate(space.sizes) for p in range(size)]
        sources = {r: w for (w, r), when in self._choices.rf.items() if value(when)}

        def held(write: int) -> int:
            if write >= space.initial(0):
                return 0
            i = space.instruction_of(write)
            t, p = places[i]
            added = skeleton.threads[t][p].form.kind == "red"
            return written[t, p] + (held(sources[space.first(i)]) if added else 0)

        returned = {
            places[space.instruction_of(r)]: held(w)
            for r, w in sources.items()
            if skeleton.threads[places[space.instruction_of(r)][0]][places[space.instruction_of(r)][1]].form.kind
            in ("ld", "atom")
        }
        last: dict[int, int] = {}
        for w, when in self._last.items():
            if value(when):
                t, p = places[space.instruction_of(w)]
                last[skeleton.threads[t][p].location] = held(w)
        return Candidate(skeleton, returned, last)

    def _last_writes(self) -> dict[int, Formula]:
        """For each location that is written one write, maximal in coherence order: it leaves the final value (A7)."""
        choices, formulas = self._choices, self._space.formulas
        found: dict[int, Formula] = {w: formulas.variable() for w in choices.writes}
        for w, chosen in found.items():
            self._solver.require(formulas.either(-chosen, choices.writes[w]))
            for v in choices.writes:
                if v != w:
                    self._solver.require(formulas.either(-chosen, -choices.co[w, v]))
                    at_once = formulas.all([chosen, found[v], choices.same(w, v)])
                    self._solver.require(-at_once)
            others = [formulas.both(found[v], choices.same(w, v)) for v in choices.writes if v != w]
            self._solver.require(formulas.any([-choices.writes[w], chosen, *others]))
        return found

    # -- the forbidding model --

    def _other(self, co: Pairs, fsc: Pairs) -> Evaluator[EventSet, Relation]:
        return Evaluator(self._forbidding, self._space.algebra, Base(self._choices, co, fsc))

    def _violations(
        self, evaluator: Evaluator[EventSet, Relation], held: Sequence[tuple[str, bool, EventSet | Relation]] = ()
    ) -> Iterator[Formula]:
        """Formulas of which some holds iff an axiom does not hold. Axioms about the same set or relation as one that is
        ``held``, which is required to hold, are left out: equal values are the same formulas on the same pairs."""
        space = self._space
        for axiom, value in evaluator.axioms(flags=False):
            self._limits.check()
            if (axiom.kind, axiom.negated, value) in held:
                continue
            broken = _fails(space, axiom, value)
            parts = space.formulas.arguments[-broken] if broken < 0 else None
            yield from [-part for part in parts] if parts else [broken]
        if "sync_fence" in self._forbidding.names():
            yield from (-f for f in self._total(self._choices.fsc))

    def _co_of_other(self, co: Pairs) -> Pairs:
        """Coherence order as the forbidding model takes it: transitive, unless its reading is another."""
        if _direct(self._forbidding) or not self._choices.direct:
            return co
        return self._closed(co)

    def _closed(self, co: Pairs) -> Pairs:
        algebra = self._space.algebra
        closed = algebra.plus(algebra.relation((a, b, when) for (a, b), when in co.items()))
        return {(a, b): when for a, b, when in algebra.pairs(closed)}

    def _exclude(self, co: Pairs, fsc: Pairs) -> None:
        """Leave out candidates whose final state has an execution with these orders that the model does not forbid."""
        space, formulas = self._space, self._space.formulas
        parts = list(self._violations(self._other(co, fsc)))
        relation = space.algebra.relation((a, b, when) for (a, b), when in co.items())
        parts.append(cyclic(space.algebra, relation))
        for (w, _), when in co.items():
            if w in self._last:
                parts.append(formulas.both(self._last[w], when))
        parts.append(cyclic(space.algebra, space.algebra.relation((a, b, f) for (a, b), f in fsc.items())))
        self._solver.require(formulas.any(parts))

    def _least_coherence(self, fsc: Pairs) -> Pairs:
        """What the axioms of the forbidding model ask to be in coherence order, with the directions of this one for
        pairs that they ask to be related either way."""
        space, choices = self._space, self._choices
        algebra, formulas = space.algebra, space.formulas
        evaluator = self._other(choices.co, fsc)
        found: dict[tuple[int, int], list[Formula]] = {}
        for _, node, symmetric in lower_bounds(self._forbidding, "co"):
            if node.depends & {"co", "fr"}:
                continue
            value = evaluator.value(node)
            assert isinstance(value, Relation)
            for pair in choices.co:
                when = algebra.get(value, *pair)
                if symmetric:
                    when = formulas.either(when, algebra.get(value, pair[1], pair[0]))
                    when = formulas.both(when, choices.co[pair])
                found.setdefault(pair, []).append(formulas.both(when, choices.same(*pair)))
        co = {pair: formulas.any(whens) for pair, whens in found.items()}
        return co if _direct(self._forbidding) else self._closed(co)

    def _fence_orders(self) -> Iterator[Pairs]:
        """Fence-SC orders that most often show that a final state is allowed: the one chosen, its inverse, and those
        that differ from the one chosen as little as the axioms of the forbidding model ask for."""
        fsc = self._choices.fsc
        yield fsc
        if fsc:
            yield {(a, b): fsc[b, a] for a, b in fsc}
            yield from self._extensions()

    def _extensions(self) -> Iterator[Pairs]:
        """Two linear extensions of what the axioms ask to be in Fence-SC order whatever that order is. In the first a
        fence comes as early in the chosen order as the first of those that must be after it, in the second as late as
        the last of those that must be before it; among equals the one with fewer before it comes first.

        Both are extensions: what must be after a fence must be after all that must be before that fence, since what is
        asked for is closed transitively. Where it has cycles they are orders of the fences all the same.
        """
        formulas, algebra = self._space.formulas, self._space.algebra
        asked: list[tuple[int, int, Formula]] = []
        evaluator = self._other(self._choices.co, {})
        for _, node, symmetric in lower_bounds(self._forbidding, "fsc", dependent=True):
            value = evaluator.value(node)
            if not symmetric and isinstance(value, Relation):
                asked += algebra.pairs(value)
        must = algebra.plus(algebra.relation(asked))
        chosen = algebra.plus(algebra.relation((a, b, when) for (a, b), when in self._choices.fsc.items()))
        fences = sorted({a for a, _ in self._choices.fences})

        def numbers(relation: Relation) -> dict[int, list[Formula]]:
            """How many fences are before each one; for each number whether they are so many."""
            return {b: _at_least(formulas, [algebra.get(relation, a, b) for a in fences if a != b]) for b in fences}

        rank, before = numbers(chosen), numbers(must)
        levels = range(len(fences) - 1)
        early = {
            a: [
                formulas.all([rank[a][n], *(formulas.either(-algebra.get(must, a, b), rank[b][n]) for b in fences)])
                for n in levels
            ]
            for a in fences
        }
        late = {
            b: [
                formulas.any([rank[b][n], *(formulas.both(algebra.get(must, a, b), rank[a][n]) for a in fences)])
                for n in levels
            ]
            for b in fences
        }
        for place in (early, late):
            found: Pairs = {}
            for (a, b), allowed in self._choices.fences.items():
                first = TRUE if a < b else FALSE
                for key in (rank, before, place):
                    less, more = _less(formulas, key[a], key[b]), _less(formulas, key[b], key[a])
                    first = formulas.either(less, formulas.both(-more, first))
                found[a, b] = formulas.all([*allowed, first])
            yield found

    def _given(self, orders: Orders) -> tuple[Pairs, Pairs]:
        """``orders`` as far as they apply to a program."""
        space, choices = self._space, self._choices
        of = space.instruction_of
        co = {
            (a, b): space.formulas.all([choices.same(a, b), choices.writes[a], choices.writes[b]])
            for a, b in choices.co
            if (of(a), of(b)) in orders[0]
        }
        fsc = {(a, b): space.formulas.all(choices.fences[a, b]) for a, b in choices.fsc if (of(a), of(b)) in orders[1]}
        return co, fsc

    def _total(self, fsc: Pairs) -> list[Formula]:
        """Fence-SC order relates every pair of fence.sc in each other's scopes, without a cycle: formulas that all
        hold iff it does."""
        space, formulas = self._space, self._space.formulas
        found = []
        for a, b in fsc:
            if a < b:
                related = formulas.either(fsc[a, b], fsc[b, a])
                found.append(formulas.any([-formulas.all(self._choices.fences[a, b]), related]))
        relation = space.algebra.relation((a, b, when) for (a, b), when in fsc.items())
        return [*found, -cyclic(space.algebra, relation)]

    def _require_total_fence_order(self) -> None:
        for formula in self._total(self._choices.fsc):
            self._solver.require(formula)


def _at_least(formulas: Formulas, items: list[Formula]) -> list[Formula]:
    """For each number from 1 on whether so many of ``items`` hold."""
    found: list[Formula] = []
    for item in items:
        carried = [formulas.both(item, more) for more in [TRUE, *found]]
        found = [formulas.either(a, b) for a, b in zip([*found, FALSE], carried, strict=True)]
    return found


def _less(formulas: Formulas, one: list[Formula], other: list[Formula]) -> Formula:
    """When a number, given by whether it is at least 1, 2, ..., is less than another one."""
    return formulas.any([formulas.both(-a, b) for a, b in zip(one, other, strict=True)])


def _direct(model: Model) -> bool:
    return model.readings.get("co") == "direct"


def _holds(space: Space, axiom: Axiom, value: EventSet | Relation) -> list[Formula]:
    """Formulas that all hold, for some values of variables of their own, iff ``axiom`` does."""
    if axiom.kind == "acyclic" and not axiom.negated:
        assert isinstance(value, Relation)
        return acyclicity(space.algebra, value)
    return [-_fails(space, axiom, value)]


def _fails(space: Space, axiom: Axiom, value: EventSet | Relation) -> Formula:
    """When ``axiom`` does not hold."""
    if axiom.kind == "empty":
        some = non_empty(space.algebra, value)
    else:
        assert isinstance(value, Relation)
        some = cyclic(space.algebra, value) if axiom.kind == "acyclic" else reflexive(space.algebra, value)
    return -some if axiom.negated else some


__all__ = ["Candidate", "Orders", "Separation"]
