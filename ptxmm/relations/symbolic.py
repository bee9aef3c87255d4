"""The symbolic carrier of the relation algebra: all executions of a program at once.

A relation is a pair of what must hold and what may: ``must`` has a bit row for each event, ``may`` maps the pairs
that some executions have and others don't to a formula. Absent pairs hold in no execution. Nearly everything of a
litmus test is in ``must``, where the operations are those of bitsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ptxmm.relations.closures import Order, Paths, bits, closure
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas


class EventSet(Struct, frozen=True):
    """A set of events: ``must`` is a bitset, ``may`` maps the events in some executions only to a formula."""

    must: int
    may: dict[int, Formula]


class Relation(Struct, frozen=True):
    """A relation: ``must[a]`` is the bitset of successors of ``a`` in every execution, ``may[a][b]`` a formula."""

    must: list[int]
    may: dict[int, dict[int, Formula]]


class SymbolicAlgebra:
    """The operations on ``EventSet`` and ``Relation`` over ``size`` events; ``presence[e]``: when ``e`` is executed."""

    def __init__(self, formulas: Formulas, presence: list[Formula]) -> None:
        self.formulas = formulas
        self.size = len(presence)
        self.orders: list[Order] = []
        self._presence = presence
        self._universe = self.event_set(enumerate(presence))
        self._identity = self.identity(self._universe)
        self._no_rows = [0] * self.size

    def event_set(self, items: Iterable[tuple[int, Formula]]) -> EventSet:
        """The set in which each event is under its formula."""
        must = 0
        may: dict[int, Formula] = {}
        for event, formula in items:
            if formula == TRUE:
                must |= 1 << event
            elif formula != FALSE:
                may[event] = formula
        return EventSet(must, may)

    def relation(self, items: Iterable[tuple[int, int, Formula]]) -> Relation:
        """The relation in which each pair is under its formula (the disjunction where a pair is given twice)."""
        must = [0] * self.size
        may: dict[int, dict[int, Formula]] = {}
        for a, b, formula in items:
            if formula == TRUE:
                must[a] |= 1 << b
            elif formula != FALSE:
                row = may.setdefault(a, {})
                row[b] = self.formulas.either(row[b], formula) if b in row else formula
        return _normal(must, may)

    def pairs(self, a: Relation) -> Iterator[tuple[int, int, Formula]]:
        """Every pair that some execution has, with its formula."""
        for x, row in enumerate(a.must):
            for y in bits(row):
                yield x, y, TRUE
        for x, entries in a.may.items():
            for y, formula in entries.items():
                yield x, y, formula

    def get(self, a: Relation, x: int, y: int) -> Formula:
        """When ``a`` relates ``x`` to ``y``."""
        if a.must[x] >> y & 1:
            return TRUE
        return a.may.get(x, {}).get(y, FALSE)

    def universe(self) -> EventSet:
        return self._universe

    def empty_set(self) -> EventSet:
        return EventSet(0, {})

    def empty_relation(self) -> Relation:
        return Relation(self._no_rows, {})

    def set_union(self, a: EventSet, b: EventSet) -> EventSet:
        must = a.must | b.must
        if not a.may and not b.may:
            return EventSet(must, {})
        may = {e: f for e, f in a.may.items() if not must >> e & 1}
        for e, f in b.may.items():
            if not must >> e & 1:
                may[e] = self.formulas.either(may[e], f) if e in may else f
        return self.event_set([*((e, TRUE) for e in bits(must)), *may.items()])

    def set_intersection(self, a: EventSet, b: EventSet) -> EventSet:
        may: dict[int, Formula] = {}
        for e, f in a.may.items():
            other = TRUE if b.must >> e & 1 else b.may.get(e, FALSE)
            both = self.formulas.both(f, other)
            if both != FALSE:
                may[e] = both
        for e, f in b.may.items():
            if a.must >> e & 1:
                may[e] = f
        return EventSet(a.must & b.must, may)

    def set_difference(self, a: EventSet, b: EventSet) -> EventSet:
        must = a.must & ~b.must
        if not a.may and not b.may:
            return EventSet(must, {})
        items = [(e, -b.may.get(e, FALSE)) for e in bits(must)]
        items += [(e, self.formulas.both(f, -b.may.get(e, FALSE))) for e, f in a.may.items() if not b.must >> e & 1]
        return self.event_set(items)

    def union(self, a: Relation, b: Relation) -> Relation:
        must = [x | y for x, y in zip(a.must, b.must, strict=True)]
        if not a.may and not b.may:
            return Relation(must, {})
        may: dict[int, dict[int, Formula]] = {}
        for x, entries in a.may.items():
            may[x] = dict(entries)
        for x, entries in b.may.items():
            row = may.get(x)
            if row is None:
                may[x] = dict(entries)
                continue
            for y, f in entries.items():
                row[y] = self.formulas.either(row[y], f) if y in row else f
        return _normal(must, may)

    def intersection(self, a: Relation, b: Relation) -> Relation:
        must = [x & y for x, y in zip(a.must, b.must, strict=True)]
        may: dict[int, dict[int, Formula]] = {}
        for x, entries in a.may.items():
            other_must, other_may = b.must[x], b.may.get(x)
            row: dict[int, Formula] = {}
            for y, f in entries.items():
                if other_must >> y & 1:
                    row[y] = f
                elif other_may and y in other_may:
                    f = self.formulas.both(f, other_may[y])
                    if f != FALSE:
                        row[y] = f
            if row:
                may[x] = row
        for x, entries in b.may.items():
            mine = a.must[x]
            if mine:
                for y, f in entries.items():
                    if mine >> y & 1:
                        may.setdefault(x, {})[y] = f
        return Relation(must, may)

    def difference(self, a: Relation, b: Relation) -> Relation:
        must = [x & ~y for x, y in zip(a.must, b.must, strict=True)]
        if not a.may and not b.may:
            return Relation(must, {})
        may: dict[int, dict[int, Formula]] = {}
        for x, entries in a.may.items():
            row = {y: f for y, f in entries.items() if not b.must[x] >> y & 1}
            if row:
                may[x] = row
        for x, entries in b.may.items():
            for y, f in entries.items():
                if must[x] >> y & 1:
                    must[x] &= ~(1 << y)
                    may.setdefault(x, {})[y] = -f
                elif y in may.get(x, ()):
                    f = self.formulas.both(may[x][y], -f)
                    if f == FALSE:
                        del may[x][y]
                    else:
                        may[x][y] = f
        return Relation(must, may)

    def sequence(self, a: Relation, b: Relation, asked: list[int] | None = None) -> Relation:
        """``asked``: the pairs that are wanted, as bit rows; None: all."""
        formulas = self.formulas
        must = [0] * self.size
        rows = b.must
        for x, row in enumerate(a.must):
            out = 0
            while row:
                low = row & -row
                out |= rows[low.bit_length() - 1]
                row ^= low
            must[x] = out if asked is None else out & asked[x]
        if not a.may and not b.may:
            return Relation(must, {})
        may: dict[int, dict[int, Formula]] = {}
        onward = sum(1 << y for y in b.may)
        for x in range(self.size):
            done = must[x] if asked is None else must[x] | ~asked[x]
            through = [*bits(a.must[x] & onward)]
            first = a.may.get(x)
            if not first and len(through) == 1:
                may[x] = {z: f for z, f in b.may[through[0]].items() if not done >> z & 1}
                continue
            found: dict[int, list[Formula]] = {}
            for y in through:
                for z, f in b.may[y].items():
                    if not done >> z & 1:
                        found.setdefault(z, []).append(f)
            for y, f in first.items() if first else ():
                for z in bits(rows[y] & ~done):
                    found.setdefault(z, []).append(f)
                for z, g in b.may.get(y, {}).items():
                    if not done >> z & 1:
                        found.setdefault(z, []).append(formulas.both(f, g))
            if found:
                may[x] = {z: formulas.any(fs) if len(fs) > 1 else fs[0] for z, fs in found.items()}
        return _normal(must, may)

    def plus(self, a: Relation) -> Relation:
        fixed, may = self._settled(a)
        reach = closure(fixed)
        paths = Paths(self.formulas, reach, may, self.orders)
        must, result = self._executed(reach)
        for x in range(self.size):
            firsts = paths.firsts(x)
            if len(firsts) == 1 and not self._universe.may:
                result[x] = {z: f for z, f in paths.after[firsts[0]].items() if not reach[x] >> z & 1}
                continue
            found: dict[int, list[Formula]] = {}
            for u in firsts:
                for z, f in paths.after[u].items():
                    if not reach[x] >> z & 1:
                        found.setdefault(z, []).append(f)
            row = result.setdefault(x, {}) if found else {}
            for z, fs in found.items():
                row[z] = self.formulas.all([self.formulas.any(fs), self._presence[x], self._presence[z]])
        return _normal(must, result)

    def _settled(self, a: Relation) -> tuple[list[int], dict[int, dict[int, Formula]]]:
        """The pairs of ``a`` that hold whenever both events are executed, as bit rows, and all others.

        Only if those pairs are transitive, as program order is: then a path through events that are not executed
        can do without them, and their presence need not be asked for on the way.
        """
        if not a.may or not self._universe.may:
            return a.must, a.may
        fixed = list(a.must)
        rest: dict[int, dict[int, Formula]] = {}
        presence, both = self._presence, self.formulas.both
        for x, entries in a.may.items():
            for y, f in entries.items():
                if f == both(presence[x], presence[y]):
                    fixed[x] |= 1 << y
                else:
                    rest.setdefault(x, {})[y] = f
        return (fixed, rest) if closure(fixed) == fixed else (a.must, a.may)

    def _executed(self, rows: list[int]) -> tuple[list[int], dict[int, dict[int, Formula]]]:
        """``rows`` where both events are executed: the pairs of events that always are, and the others."""
        always = self._universe.must
        must = [row & always if always >> x & 1 else 0 for x, row in enumerate(rows)]
        may: dict[int, dict[int, Formula]] = {}
        for x, row in enumerate(rows):
            for y in bits(row & ~must[x]):
                may.setdefault(x, {})[y] = self.formulas.both(self._presence[x], self._presence[y])
        return must, may

    def ordered(self, a: int, b: int) -> bool:
        """Whether ``a`` and ``b`` are in one of ``orders``."""
        return any((a, b) in order for order in self.orders)

    def star(self, a: Relation) -> Relation:
        return self.optional(self.plus(a))

    def optional(self, a: Relation) -> Relation:
        return self.union(a, self._identity)

    def inverse(self, a: Relation) -> Relation:
        must = [0] * self.size
        for x, row in enumerate(a.must):
            bit = 1 << x
            for y in bits(row):
                must[y] |= bit
        may: dict[int, dict[int, Formula]] = {}
        for x, entries in a.may.items():
            for y, f in entries.items():
                may.setdefault(y, {})[x] = f
        return Relation(must, may)

    def identity(self, a: EventSet) -> Relation:
        return Relation([a.must & 1 << x for x in range(self.size)], {x: {x: f} for x, f in a.may.items()})

    def product(self, a: EventSet, b: EventSet) -> Relation:
        must = [b.must if a.must >> x & 1 else 0 for x in range(self.size)]
        may: dict[int, dict[int, Formula]] = {}
        if b.may:
            for x in bits(a.must):
                may[x] = dict(b.may)
        for x, f in a.may.items():
            row = dict.fromkeys(bits(b.must), f)
            for y, g in b.may.items():
                h = self.formulas.both(f, g)
                if h != FALSE:
                    row[y] = h
            if row:
                may[x] = row
        return Relation(must, may)

    def domain(self, a: Relation) -> EventSet:
        must = 0
        for x, row in enumerate(a.must):
            if row:
                must |= 1 << x
        may = {x: self.formulas.any(row.values()) for x, row in a.may.items() if not must >> x & 1 and row}
        return self.event_set([*((e, TRUE) for e in bits(must)), *may.items()])

    def range(self, a: Relation) -> EventSet:
        return self.domain(self.inverse(a))

    def restrict(self, left: EventSet | None, a: Relation, right: EventSet | None) -> Relation:
        if (left is None or not left.may) and (right is None or not right.may):
            rows = -1 if left is None else left.must
            columns = -1 if right is None else right.must
            must = [row & columns if rows >> x & 1 else 0 for x, row in enumerate(a.must)]
            may: dict[int, dict[int, Formula]] = {}
            for x, entries in a.may.items():
                if rows >> x & 1:
                    row = entries if right is None else {y: f for y, f in entries.items() if columns >> y & 1}
                    if row:
                        may[x] = row
            return Relation(must, may)
        full = self._universe
        return self.intersection(a, self.product(full if left is None else left, full if right is None else right))

    def same(self, a: Relation, b: Relation) -> bool:
        return a.must == b.must and {x: r for x, r in a.may.items() if r} == {x: r for x, r in b.may.items() if r}

    def fixpoint_bound(self) -> int:
        return self.size * self.size + 1


def _normal(must: list[int], may: dict[int, dict[int, Formula]]) -> Relation:
    """Drop from ``may`` what ``must`` has or what turned out constant."""
    clean: dict[int, dict[int, Formula]] = {}
    for x, entries in may.items():
        known, formulas = must[x], entries.values()
        if not known and TRUE not in formulas and FALSE not in formulas:
            if entries:
                clean[x] = entries
            continue
        row: dict[int, Formula] = {}
        for y, f in entries.items():
            if known >> y & 1 or f == FALSE:
                continue
            if f == TRUE:
                must[x] |= 1 << y
            else:
                row[y] = f
        if row:
            clean[x] = row
    return Relation(must, clean)
