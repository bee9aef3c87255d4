"""The executions of a space of programs: choices of reads-from, coherence and Fence-SC order, and base relations.

Nothing of a model is asked here but how its readings make the events of executions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations

from ptxmm.cat import names
from ptxmm.errors import PtxmmError
from ptxmm.generate.space import Space
from ptxmm.relations.checks import acyclicity
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation

Pairs = dict[tuple[int, int], Formula]
"""Pairs of events, and when they are related."""


class Choices:
    """The choices of an execution of a program of ``space``; ``constraints`` all hold exactly of executions.

    ``rf[w, r]``, ``co[w, v]`` (strict; writes of threads; transitive unless ``direct``) and ``fsc[f, g]``. ``reads``,
    ``writes``: when an event of a thread is one; ``fences``: what must hold for two fences to be in Fence-SC order.
    """

    def __init__(self, space: Space, direct: bool = False) -> None:
        self.space = space
        self.direct = direct
        self.constraints: list[Formula] = []
        self.reads = _events(space, "R")
        self.writes = _events(space, "W")
        self.rf = self._reads_from()
        self.co = self._coherence(direct)
        self.fences: dict[tuple[int, int], list[Formula]] = {}
        self.fsc = self._fence_sc()
        additions = [space.form_where(i, lambda f: f.kind == "red") for i in range(space.size)]
        makes = [
            (space.first(i), space.second(i), when) for i, when in enumerate(additions) if when != FALSE
        ]  # a sum is made of the value read; no value is made of itself
        made = [*((w, r, when) for (w, r), when in self.rf.items()), *makes]
        self.constraints += acyclicity(space.algebra, space.algebra.relation(made))

    def same(self, e: int, f: int) -> Formula:
        """When two accesses have one location."""
        return self.space.same_location(self.space.instruction_of(e), self.space.instruction_of(f))

    def _reads_from(self) -> Pairs:
        space, formulas = self.space, self.space.formulas
        found: Pairs = {}
        for r, reads in self.reads.items():
            choice = space.new_choice()
            mine: list[Formula] = []
            for w, writes in self.writes.items():
                if w == r:
                    continue
                found[w, r] = when = formulas.variable(choice)
                self.constraints += [formulas.either(-when, f) for f in (reads, writes, self.same(w, r))]
                mine.append(when)
            at = self.space.location[space.instruction_of(r)]
            unread = formulas.all([reads, *(-when for when in mine)])
            for x in range(space.locations):
                found[space.initial(x), r] = formulas.both(unread, at[x])
            space.exclusive += [(a, b) for k, a in enumerate(mine) for b in mine[:k]]
        return found

    def _coherence(self, direct: bool) -> Pairs:
        formulas = self.space.formulas
        found: Pairs = {}
        for a, b in permutations(self.writes, 2):
            found[a, b] = when = formulas.variable()
            both = (self.writes[a], self.writes[b], self.same(a, b))
            self.constraints += [formulas.either(-when, f) for f in both]
        for a, b in found:
            if a < b:
                self.constraints.append(formulas.either(-found[a, b], -found[b, a]))
        if direct:
            pairs = ((a, b, when) for (a, b), when in found.items())
            self.constraints += acyclicity(self.space.algebra, self.space.algebra.relation(pairs))
        else:
            for a, b, c in permutations(self.writes, 3):
                self.constraints.append(formulas.any([-found[a, b], -found[b, c], found[a, c]]))
        return found

    def _fence_sc(self) -> Pairs:
        """Any pairs of fence.sc that include each other in their scopes (8.9.3)."""
        space, formulas = self.space, self.space.formulas
        fences = _events(space, "FSC")
        inscope = in_scope(space)
        found: Pairs = {}
        for a, b in permutations(fences, 2):
            allowed = [fences[a], fences[b], inscope.get((a, b), FALSE), inscope.get((b, a), FALSE)]
            if FALSE in allowed:
                continue
            self.fences[a, b] = allowed
            found[a, b] = when = formulas.variable()
            self.constraints += [formulas.either(-when, f) for f in allowed]
        return found


class Base:
    """Gives the base set or relation of a name in the executions that ``rf``, ``co`` and ``fsc`` make, as an
    ``Evaluator`` asks for it: those of ``RELATIONS``, and those that are ``EMPTY``."""

    def __init__(self, choices: Choices, co: Pairs | None = None, fsc: Pairs | None = None) -> None:
        self._choices = choices
        self._space = choices.space
        self._co = choices.co if co is None else co
        self._fsc = choices.fsc if fsc is None else fsc
        self._cache: dict[str, EventSet | Relation] = {}

    def __call__(self, name: str) -> EventSet | Relation | None:
        """The base set or relation called ``name``, None if there is none."""
        found = self._cache.get(name)
        if found is None and (name in names.SETS or name in names.RELATIONS):
            found = self._cache[name] = self._set(name) if name in names.SETS else self._relation(name)
        return found

    def relation(self, name: str) -> Relation:
        """The base relation called ``name``."""
        found = self(name)
        if not isinstance(found, Relation):
            raise PtxmmError(f"`{name}` is not a base relation", kind="model")
        return found

    def _set(self, name: str) -> EventSet:
        space = self._space
        items = list(enumerate(space.tagged(name)))
        if name in ("IW", "W", "M"):
            items += [(space.initial(x), used) for x, used in enumerate(space.used)]
        return space.algebra.event_set(items)

    def _relation(self, name: str) -> Relation:
        if name in EMPTY:
            return self._space.algebra.empty_relation()
        if name not in RELATIONS:
            raise PtxmmError(f"`{name}` is not defined for the executions of small programs", kind="internal")
        return RELATIONS[name](self)

    def _internal(self) -> Relation:
        space = self._space
        pairs = _together(space, lambda t, u: TRUE if t == u else FALSE)
        pairs |= {(space.initial(x), space.initial(x)): TRUE for x in range(space.locations)}
        return self._pairs(pairs)

    def _external(self) -> Relation:
        algebra = self._space.algebra
        full = algebra.product(algebra.universe(), algebra.universe())
        return algebra.difference(full, self.relation("int"))

    def _strong(self) -> Relation:
        """Operations in the scope of each other (8.7)."""
        scope, both = in_scope(self._space), self._space.formulas.both
        return self._pairs({(e, f): both(when, scope.get((f, e), FALSE)) for (e, f), when in scope.items()})

    def _atomic(self) -> Relation:
        space = self._space
        atomic = [space.form_where(i, lambda f: f.reads and f.writes) for i in range(space.size)]
        return self._pairs({(space.first(i), space.second(i)): when for i, when in enumerate(atomic)})

    def _pairs(self, pairs: Pairs) -> Relation:
        """The relation with these pairs, between executed events."""
        space = self._space
        return space.algebra.relation(
            (a, b, space.formulas.all([when, space.presence[a], space.presence[b]])) for (a, b), when in pairs.items()
        )

    def _overlap(self, physical: bool) -> Relation:
        """Accesses of one location; with the same address of it unless ``physical``. An initial write is of all."""
        space = self._space
        accesses = {**self._choices.reads, **self._choices.writes}
        found: Pairs = {}
        for e, f in ((e, f) for e in accesses for f in accesses):
            i, j = space.instruction_of(e), space.instruction_of(f)
            if i == j:
                found[e, f] = space.accesses[i]
            else:
                same = TRUE if physical else space.same_name(i, j)
                found[e, f] = space.formulas.both(space.same_location(i, j), same)
        for x in range(space.locations):
            initial = space.initial(x)
            found[initial, initial] = TRUE
            for e in accesses:
                found[initial, e] = found[e, initial] = space.location[space.instruction_of(e)][x]
        return self._pairs(found)

    def _coherence(self) -> Pairs:
        space, writes = self._space, self._choices.writes
        found = dict(self._co)
        for w, when in writes.items():
            for x, at in enumerate(space.location[space.instruction_of(w)]):
                found[space.initial(x), w] = space.formulas.both(when, at)
        return found

    def _from_reads(self) -> Pairs:
        formulas, co = self._space.formulas, self._coherence()
        parts: dict[tuple[int, int], list[Formula]] = {}
        for (w, r), source in self._choices.rf.items():
            for v in self._choices.writes:
                after = co.get((w, v), FALSE)
                if after != FALSE and v != w:
                    parts.setdefault((r, v), []).append(formulas.both(source, after))
        return {pair: formulas.any(found) for pair, found in parts.items()}

    def _in_cta(self) -> Relation:
        space = self._space
        return self._pairs(_together(space, lambda t, u: space.near("cta", t, u)))


RELATIONS: Mapping[str, Callable[[Base], Relation]] = {
    "po": lambda base: base._pairs(program_order(base._space)),
    "int": Base._internal,
    "ext": Base._external,
    "scta": Base._in_cta,
    "inscope": lambda base: base._pairs(in_scope(base._space)),
    "sr": Base._strong,
    **dict.fromkeys(("loc", "ovl"), lambda base: base._overlap(physical=True)),
    **dict.fromkeys(("vloc", "vovl"), lambda base: base._overlap(physical=False)),
    "po-loc": lambda base: base._space.algebra.intersection(base.relation("po"), base.relation("loc")),
    "rf": lambda base: base._pairs(base._choices.rf),
    "co": lambda base: base._pairs(base._coherence()),
    "fr": lambda base: base._pairs(base._from_reads()),
    **dict.fromkeys(("fsc", "sync_fence"), lambda base: base._pairs(base._fsc)),
    "rmw": Base._atomic,
}
EMPTY = frozenset(
    {"addr", "data", "ctrl", "lives", "barphase", "warpphase", "cluphase", "exitphase", "mbphase", "mblate", "mbpassed",
     "mbcount", "mbnext", "mbobj", "issue", "issue-all", "aord", "acomp", "pfence", "accum", "tmcov", "rcov", "api",
     "api-indirect", "trigger", "syncbar", "sync_barrier", "same-value"}
)  # fmt: skip
"""Base relations that no program of a vocabulary has."""


def program_order(space: Space) -> Pairs:
    """Program order, the read of an atomic operation before its write."""
    return {
        (e, f): TRUE
        for e in space.events
        for f in space.events
        if e < f and space.thread[space.instruction_of(e)] == space.thread[space.instruction_of(f)]
    }


def in_scope(space: Space) -> Pairs:
    """The strong operations and those of the threads that their scope includes (8.5)."""
    formulas = space.formulas
    found: Pairs = {}
    for scope in space.words.scopes:
        has = space.tagged(scope.upper())
        for e, f in ((e, f) for e in space.events for f in space.events):
            t, u = (space.thread[space.instruction_of(g)] for g in (e, f))
            when = formulas.both(has[e], space.near(scope, t, u))
            found[e, f] = formulas.either(found.get((e, f), FALSE), when)
    return found


def _together(space: Space, when: Callable[[int, int], Formula]) -> Pairs:
    """Pairs of events of threads, by their threads."""
    found: Pairs = {}
    for e in space.events:
        for f in space.events:
            related = when(space.thread[space.instruction_of(e)], space.thread[space.instruction_of(f)])
            if related != FALSE:
                found[e, f] = related
    return found


def _events(space: Space, tag: str) -> dict[int, Formula]:
    """The events of threads that may be in the set ``tag``, and when they are."""
    return {e: when for e, when in enumerate(space.tagged(tag)) if when != FALSE}
