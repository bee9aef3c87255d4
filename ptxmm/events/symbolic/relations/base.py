"""The base sets and relations of the models on the symbolic side, by the names that cat files use.

Sources: PTX ISA 8.2 (overlap), 8.4 (operation types), 8.5 (scopes), 8.6 (proxies), 8.9.1, 8.9.7.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from types import MappingProxyType

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.barriers.scenarios import cta_key
from ptxmm.events.symbolic.event import Event, Place
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.events.symbolic.relations.barriers import Related, unready_mbarriers
from ptxmm.events.symbolic.relations.scopes import in_scope, includes, scope_of, thread_site
from ptxmm.events.symbolic.relations.structure import RELATIONS, VARYING
from ptxmm.events.symbolic.relations.tags import TAGS, tags_of
from ptxmm.events.symbolic.variants import NONE, Alternatives
from ptxmm.ptx.ops import AsyncStore, Atomic, BulkCopy, Multimem
from ptxmm.relations.closures import bits
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation


class Base:
    """Gives the base set or relation of a name, each computed once. Raises ``PtxmmError`` for an unknown name.

    ``alternatives``: the instructions of the program that take one of several forms.
    """

    def __init__(self, program: Program, alternatives: Alternatives = NONE) -> None:
        self.program = program
        self.alternatives = alternatives
        self.algebra = program.algebra
        self.formulas = program.formulas
        self._cache: dict[str, EventSet | Relation] = {}
        self._always = sum(1 << i for i, p in enumerate(program.presence) if p == TRUE)
        self._sometimes = [i for i, p in enumerate(program.presence) if p != TRUE]
        self._varying: dict[str, dict[int, Formula]] = {}

    def __call__(self, name: str) -> EventSet | Relation:
        """The base set or relation called ``name``."""
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = self._make(name)
        return found

    def relation(self, name: str) -> Relation:
        """The base relation called ``name``."""
        found = self(name)
        if not isinstance(found, Relation):
            raise PtxmmError(f"`{name}` is a set, not a relation", kind="model")
        return found

    def empty_sets(self) -> set[str]:
        """The base sets in which no event ever is."""
        never = sum(1 << i for i in self._sometimes if self.program.presence[i] == FALSE)
        found = {name for name, mask in self._masks.items() if not mask & ~never and name not in self._varying}
        unready = self("MBX")
        assert isinstance(unready, EventSet)
        return found if unready.must or unready.may else found | {"MBX"}

    def _make(self, name: str) -> EventSet | Relation:
        if name in ("_", "E"):
            return self.algebra.universe()
        if name == "emptyset":
            return self.algebra.empty_set()
        if name == "0":
            return self.algebra.empty_relation()
        if name in _OWN:
            return _OWN[name](self)
        if name in VARYING:
            return self._executed(VARYING[name](self.program, self.alternatives))
        if name in RELATIONS:
            return self._executed(RELATIONS[name](self.program))
        if name == "MBX":
            return self.algebra.event_set(unready_mbarriers(self.program))
        if name not in self._masks:
            raise PtxmmError(f"no base set or relation is called `{name}`", kind="model")
        tagged = self._present(self._masks[name])
        varying = self._varying.get(name)
        return self.algebra.set_union(tagged, self.algebra.event_set(varying.items())) if varying else tagged

    def _present(self, mask: int) -> EventSet:
        return EventSet(
            mask & self._always,
            {e: self.program.presence[e] for e in bits(mask & ~self._always) if self.program.presence[e] != FALSE},
        )

    def _rows(self, rows: list[int]) -> Relation:
        """The relation with the given bit rows, between executed events."""
        presence, always = self.program.presence, self._always
        must = [row & always if always >> x & 1 else 0 for x, row in enumerate(rows)]
        if not self._sometimes:
            return Relation(must, {})
        may: dict[int, dict[int, Formula]] = {}
        for x, row in enumerate(rows):
            for y in bits(row & ~must[x]):
                both = self.formulas.both(presence[x], presence[y])
                if both != FALSE:
                    may.setdefault(x, {})[y] = both
        return (
            self.algebra.relation(
                [(x, y, TRUE) for x, row in enumerate(must) for y in bits(row)]
                + [(x, y, f) for x, entries in may.items() for y, f in entries.items()]
            )
            if any(f == TRUE for entries in may.values() for f in entries.values())
            else Relation(must, may)
        )

    @cached_property
    def _masks(self) -> dict[str, int]:
        """The events of each set that follows from an instruction alone, as bits."""
        tags = dict.fromkeys(TAGS, 0)
        for event in self.program.events:
            forms = self.alternatives.of(event)
            if forms is not None:
                self._tag_forms(event, forms)
                continue
            for tag in tags_of(self.program.test, event):
                tags[tag] |= 1 << event.number
        for number in self.program.initial.values():
            for tag in ("IW", "W", "M"):
                tags[tag] |= 1 << number
        return tags

    def _tag_forms(self, event: Event, forms: Iterable[tuple[Event, Formula]]) -> None:
        """Note when an event that takes one of several forms is in each set."""
        found: dict[str, list[Formula]] = {}
        for form, when in forms:
            for tag in tags_of(self.program.test, form):
                found.setdefault(tag, []).append(when)
        for tag, whens in found.items():
            when = self.formulas.both(event.presence, self.formulas.any(whens))
            self._varying.setdefault(tag, {})[event.number] = when

    def _executed(self, items: Iterable[Related]) -> Relation:
        """The relation with the given pairs, between executed events."""
        presence, all_of = self.program.presence, self.formulas.all
        whens: dict[tuple[int, int], list[Formula]] = {}
        for a, b, when in items:
            whens.setdefault((a, b), []).append(when)
        found = [
            (a, b, all_of([self.formulas.any(when) if len(when) > 1 else when[0], presence[a], presence[b]]))
            for (a, b), when in whens.items()
        ]
        return self.algebra.relation(found) if found else self.algebra.empty_relation()

    def _po(self) -> Relation:
        rows = [0] * self.algebra.size
        seen: dict[int, int] = {}
        ordered = [e for e in reversed(self.program.events) if not e.asynchronous]
        for _, parts in groupby(ordered, key=lambda e: e.id.instance):
            group = list(parts)  # the last part first
            after = seen.get(group[0].thread, 0)
            everything = after
            for i, event in enumerate(group):
                row = after
                for later in group[:i]:
                    if later.id == event.id or later.stage > event.stage:
                        row |= 1 << later.number
                rows[event.number] = row
                everything |= 1 << event.number
            seen[group[0].thread] = everything
        return self._rows(rows)

    def _rf(self) -> Relation:
        return self.algebra.relation(
            (write, read, when)
            for reads in self.program.rf.values()
            for read, writes in reads.items()
            for write, when in writes.items()
        )

    def _writes(self) -> dict[tuple[str, int, int], dict[int, Formula]]:
        """For each cell the writes of threads to it and when."""
        found: dict[tuple[str, int, int], dict[int, Formula]] = {c: {} for c in self.program.initial}
        for event in self.program.events:
            if event.kind == "W":
                for cell in dict.fromkeys(c for p in event.places for c in self.program.cells_of(p)):
                    when = self.formulas.both(event.presence, self.program.covers(event.number, cell))
                    found[cell][event.number] = when
        return found

    def _co(self) -> Relation:
        both = self.formulas.both
        items: list[tuple[int, int, Formula]] = []
        for cell, writes in self._writes().items():
            initial = self.program.initial[cell]
            items += [(initial, write, when) for write, when in writes.items()]
            if cell[0] in self.program.mixed:
                items += [
                    (initial, b, both(writes[a], f))
                    for (a, b), f in self.program.co.items()
                    if a in writes and b not in writes
                ]
        return self.algebra.relation([*items, *((a, b, f) for (a, b), f in self.program.co.items())])

    def _fr(self) -> Relation:
        both, co = self.formulas.both, self.program.co
        items: list[tuple[int, int, Formula]] = []
        writers = self._writes()
        for cell, reads in self.program.rf.items():
            initial = self.program.initial[cell]
            for read, sources in reads.items():
                for write, when in writers[cell].items():
                    for source, chosen in sources.items():
                        order = when if source == initial else co.get((source, write), FALSE)
                        if source != write and order != FALSE:
                            items.append((read, write, both(chosen, both(order, when))))
        return self.algebra.relation(items)

    def _fsc(self) -> Relation:
        return self.algebra.relation((a, b, f) for (a, b), f in self.program.fsc.items())

    def _rmw(self) -> Relation:
        events = self.program.events
        return self.algebra.relation(
            (a.number, b.number, b.presence)
            for a, b in pairwise(events)
            if a.kind == "R" and b.kind == "W" and a.id == b.id
            if isinstance(a.op, Atomic | BulkCopy | AsyncStore | Multimem)
        )

    def _inscope(self) -> Relation:
        test = self.program.test
        moved = [e for e in self.program.events if e.home is not None]
        away = sum(1 << e.number for e in moved)
        by_thread = {thread: mask & ~away for thread, mask in self._by_thread().items()}
        sites = {thread: thread_site(test, thread) for thread in by_thread}
        rows = [0] * self.algebra.size
        items: list[Related] = []

        def row(event: Event) -> int:
            scope, found = scope_of(event), 0
            if scope is None:
                return 0
            for thread, mask in by_thread.items():
                mine = event.home is None and event.thread == thread
                if mine or (event.home is None and includes(scope, sites[event.thread], sites[thread])):
                    found |= mask
            for other in self.program.events if event.home is not None else moved:
                if in_scope(test, event, other):
                    found |= 1 << other.number
            return found

        for event in self.program.events:
            forms = self.alternatives.of(event)
            if forms is None:
                rows[event.number] = row(event)
            else:
                items += [(event.number, other, when) for form, when in forms for other in bits(row(form))]
        fixed = self._rows(rows)
        return self.algebra.union(fixed, self._executed(items)) if items else fixed

    def _same_scope(self) -> Relation:
        inscope = self.relation("inscope")
        mutual = self.algebra.intersection(inscope, self.algebra.inverse(inscope))
        strong = self("STRONG")
        assert isinstance(strong, EventSet)
        return self.algebra.restrict(strong, mutual, strong)

    def _by_thread(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for event in self.program.events:
            found[event.thread] = found.get(event.thread, 0) | 1 << event.number
        return found

    def _same_cta(self) -> Relation:
        ctas: dict[object, int] = {}
        for thread, mask in self._by_thread().items():
            key = cta_key(self.program.test, thread)
            ctas[key] = ctas.get(key, 0) | mask
        rows = [0] * self.algebra.size
        for event in self.program.events:
            rows[event.number] = ctas[cta_key(self.program.test, event.thread)]
        return self._rows(rows)

    def _memory(self) -> Iterator[tuple[int, list[Place]]]:
        for event in self.program.events:
            if event.places:
                yield event.number, event.places

    def _where(self, related: Callable[[Place, Place], bool], key: str) -> Relation:
        """Pairs of memory events whose places are ``related``, which only those with a byte in common are, in the same
        physical or virtual object."""
        items: list[tuple[int, int, Formula]] = []
        rows = [0] * self.algebra.size
        memory = dict(self._memory())
        presence = self.program.presence
        near = _Near((getattr(place, key), place, x) for x, places in memory.items() for place in places)
        for x, places in memory.items():
            for y in sorted({y for place in places for y in near(getattr(place, key), place) if y >= x}):
                others = memory[y]
                if len(places) == 1 and len(others) == 1 and places[0].when == TRUE and others[0].when == TRUE:
                    if related(places[0], others[0]):
                        rows[x] |= 1 << y
                        rows[y] |= 1 << x
                    continue
                for p in places:
                    for q in others:
                        if getattr(p, key) == getattr(q, key) and related(p, q):
                            when = self.formulas.all([p.when, q.when, presence[x], presence[y]])
                            items += [(x, x, when)] if x == y else [(x, y, when), (y, x, when)]
        items += self._with_initial(memory, rows)
        fixed = self._rows(rows)
        return self.algebra.union(fixed, self.algebra.relation(items)) if items else fixed

    def _with_initial(self, memory: Mapping[int, list[Place]], rows: list[int]) -> Iterator[tuple[int, int, Formula]]:
        """The pairs of an initial write and an event that covers its cell; in ``rows`` those that always do."""
        covering: dict[Cell, dict[int, None]] = {}
        for x, places in memory.items():
            for cell in (cell for place in places for cell in self.program.cells_of(place)):
                covering.setdefault(cell, {})[x] = None
        for cell, number in self.program.initial.items():
            rows[number] |= 1 << number
            for x in covering.get(cell, ()):
                covered = self.formulas.any([p.when for p in memory[x] if cell in self.program.cells_of(p)])
                if covered == TRUE:
                    rows[number] |= 1 << x
                    rows[x] |= 1 << number
                elif covered != FALSE:
                    when = self.formulas.both(covered, self.program.presence[x])
                    yield from ((number, x, when), (x, number, when))

    def _control(self) -> Relation:
        """Dependencies of guards, and for ever on what decided that a loop was left, weak reads excepted (8.10.4)."""
        algebra = self.algebra
        left = self._dependency("left")
        if any(left.must) or left.may:
            reads, strong = self("R"), self("STRONG")
            assert isinstance(reads, EventSet) and isinstance(strong, EventSet)
            weak = algebra.set_difference(reads, strong)
            left = algebra.restrict(algebra.set_difference(algebra.universe(), weak), left, algebra.universe())
        return algebra.union(self._dependency("control"), left)

    def _dependency(self, name: str) -> Relation:
        events = self.program.events
        items: list[tuple[int, int, Formula]] = []
        for event in events:
            for read, when in getattr(event, name).items():
                if read != event.number:
                    items.append((read, event.number, self.formulas.all([when, events[read].presence, event.presence])))
        return self.algebra.relation(items)

    def _identity(self) -> Relation:
        return self.algebra.identity(self.algebra.universe())

    def _internal(self) -> Relation:
        """Pairs of one thread; an initial write is of a thread of its own."""
        by_thread = self._by_thread()
        rows = [by_thread[event.thread] for event in self.program.events]
        rows += [1 << number for number in self.program.initial.values()]
        return self._rows(rows)

    def _external(self) -> Relation:
        full = self.algebra.product(self.algebra.universe(), self.algebra.universe())
        return self.algebra.difference(full, self.relation("int"))


_OWN: Mapping[str, Callable[[Base], Relation]] = MappingProxyType(
    {
        "po": Base._po,
        "rf": Base._rf,
        "co": Base._co,
        "fr": Base._fr,
        "fsc": Base._fsc,
        "sync_fence": Base._fsc,
        "rmw": Base._rmw,
        "inscope": Base._inscope,
        "sr": Base._same_scope,
        "scta": Base._same_cta,
        "loc": lambda base: base._where(_coincide, "physical"),
        "ovl": lambda base: base._where(_intersect, "physical"),
        "vloc": lambda base: base._where(_coincide, "virtual"),
        "vovl": lambda base: base._where(_intersect, "virtual"),
        "addr": lambda base: base._dependency("address"),
        "data": lambda base: base._dependency("data"),
        "ctrl": Base._control,
        "syncbar": lambda base: base.relation("barphase"),
        "sync_barrier": lambda base: base.relation("barphase"),
        "id": Base._identity,
        "int": Base._internal,
        "ext": Base._external,
        "po-loc": lambda base: base.algebra.intersection(base.relation("po"), base.relation("loc")),
    }
)
"""What the methods of ``Base`` give."""


class _Near:
    """The events with places, each of an object, that may have a byte in common with a place."""

    def __init__(self, places: Iterable[tuple[str, Place, int]]) -> None:
        self._longest: dict[str, int] = {}
        self._at: dict[str, list[tuple[int, int]]] = {}
        for name, place, event in places:
            self._longest[name] = max(self._longest.get(name, 1), place.size)
            self._at.setdefault(name, []).append((place.offset, event))
        for found in self._at.values():
            found.sort()

    def __call__(self, name: str, place: Place) -> Iterator[int]:
        found = self._at[name]
        first = bisect_left(found, (place.offset - self._longest[name] + 1,))
        return (event for _, event in found[first : bisect_left(found, (place.offset + max(1, place.size),))])


def _coincide(p: Place, q: Place) -> bool:
    return p.offset == q.offset and p.size == q.size


def _intersect(p: Place, q: Place) -> bool:
    return p.offset < q.offset + q.size and q.offset < p.offset + p.size


__all__ = ["Base"]
