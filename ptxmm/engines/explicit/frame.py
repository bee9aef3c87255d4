"""What the witnesses of one layout have in common, and what each of them says of it: who reads from whom, the orders.

All of it is checked against the events; what was checked for one witness is not checked again for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.engines.explicit.final import Finals
from ptxmm.engines.explicit.kept import Kept
from ptxmm.engines.explicit.orders import overlapping_writes
from ptxmm.engines.explicit.precomputed import evaluator_of
from ptxmm.engines.result import Observed, Source, Witness
from ptxmm.events.explicit.barriers import Meeting
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.relations.barriers import PHASES, phase_relations
from ptxmm.events.explicit.relations.base import WITNESS, base_of, makes_values, scoped_fences
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom, initial_value
from ptxmm.events.explicit.trace import Cell
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.identity import EventId

_MOST = 1 << 12
"""The most sources, and the most orders, that are remembered."""

Pairs = frozenset[tuple[EventId, EventId]]


class Unconfirmed(Exception):
    """A witness that is not an execution of the program under the model; the argument says why."""


class _Taken(Struct, frozen=True, eq=False):
    """What a read takes from its sources: ``parts`` are writes, and of the value of each the lowest bit, a mask, and
    where that goes in the value read; ``cells`` the pairs of reads-from by cell, ``union`` all of them."""

    parts: tuple[tuple[int, int, int, int], ...]
    cells: tuple[tuple[Cell, int], ...]
    union: int

    def value(self, written: Sequence[int]) -> int:
        """The value read; ``written``: the value of each write, by number."""
        value = 0
        for w, lowest, mask, shift in self.parts:
            value |= (written[w] >> lowest & mask) << shift
        return value


class Frame:
    """A layout, and all that no witness decides.

    ``initial``: the values of the initial writes. ``total``: Fence-SC order is.
    """

    __slots__ = (
        "_coherence", "_fences", "_finals", "_first", "_model", "_overlapping", "_phased", "_phases", "_readings",
        "_scoped", "_taken", "_total", "_writes", "initial", "layout", "makes_values",
    )  # fmt: skip

    def __init__(self, layout: Layout, model: Model, readings: Readings, total: bool) -> None:
        self.layout = layout
        self._model = model
        self._first: Evaluator[int, int] | None = None
        self.makes_values = makes_values(layout)
        self.initial = [initial_value(layout.scene.test, cell) for cell in layout.cells]
        self._finals: dict[Observed, Finals] = {}
        self._phases: Kept[int, tuple[Meeting, dict[str, int]]] = Kept(_MOST)
        self._readings = readings
        self._total = total
        self._phased = False
        events = layout.events[: layout.initial_first]
        self._writes = {e.id: i for i, e in enumerate(events) if e.kind == "W"}
        self._fences = {e.id: i for i, e in enumerate(events) if e.kind == "F"}
        self._scoped: list[int] | None = None
        self._overlapping: int | None = None
        self._taken: Kept[tuple[int, tuple[Source, ...]], _Taken] = Kept(_MOST)
        self._coherence: Kept[Pairs, int] = Kept(_MOST)

    def finals(self, observed: Observed, others: Sequence[MemoryTerm]) -> Finals:
        """The final memory, as far as ``observed`` and ``others`` show it."""
        found = self._finals.get(observed)
        if found is None:
            wanted = dict.fromkeys((*observed.memory, *others))
            found = self._finals[observed] = Finals(self.layout.scene.test, self.layout, wanted, self._readings.tear)
        return found

    def phases(self, meeting: Meeting) -> dict[str, int]:
        """What the barriers relate."""
        known = self._phases.get(id(meeting))
        if known is None:  # an id stays the same as long as the object is kept
            known = meeting, phase_relations(self.layout, meeting.phases, meeting.order)
            self._phases.keep(id(meeting), known)
        return known[1]

    def evaluator(self, meeting: Meeting, base: Callable[[str], int | None]) -> Evaluator[int, int]:
        """An evaluator of the model in an execution, with values that it has in common with the first one."""
        self._phased = self._phased or bool(meeting.phases)
        if self._first is not None:
            return self._first.changed(WITNESS | PHASES if self._phased else WITNESS, base)
        self._first = evaluator_of(self._model, self.layout, base)
        self._first.constraints()
        return self._first

    def reads_from(self, written: Sequence[int], witness: Witness) -> ReadsFrom:
        """Reads-from, of bytes that hold the values read; ``written``: the value of each write, by number."""
        layout = self.layout
        if len(witness.reads) != len(layout.reads):
            raise Unconfirmed("the reads with sources are not those executed")
        union = 0
        cells: dict[Cell, int] = {}
        for r in layout.reads:
            read = layout.events[r].id
            taken = self._sources(r, witness)
            if taken.value(written) != witness.values[read]:
                raise Unconfirmed(f"the read {read} returns another value than its sources hold")
            union |= taken.union
            for cell, pairs in taken.cells:
                cells[cell] = cells.get(cell, 0) | pairs
        return ReadsFrom(union, cells)

    def settled(self, written: Sequence[int], witness: Witness) -> dict[EventId, int]:
        """The values of the witness, with what the sources of its open reads hold."""
        events = self.layout.events
        open_ = (r for r in self.layout.reads if events[r].id in witness.open)
        return {**witness.values, **{events[r].id: self._sources(r, witness).value(written) for r in open_}}

    def _sources(self, r: int, witness: Witness) -> _Taken:
        key = r, witness.reads.get(self.layout.events[r].id, ())
        return self._taken.get(key) or self._taken.keep(key, self._take(*key))

    def _take(self, r: int, given: tuple[Source, ...]) -> _Taken:
        """What the read ``r`` takes from these sources, which must cover its bytes once."""
        layout = self.layout
        event = layout.events[r]
        sources = sorted(given, key=_offset)
        if not sources or event.cell is None:
            raise Unconfirmed(f"the read {event.id} has no source")
        _check_cover(event.id, event.cell, sources)
        parts, cells, union = [], [], 0
        for cell in layout.made_of[r]:
            pairs = 0
            for source in sources:
                first = max(source.offset, cell[1])
                size = min(source.offset + source.size, cell[1] + cell[2]) - first
                if size <= 0:
                    continue
                w = self._write(cell, source.write)
                of = layout.events[w].cell
                assert of is not None
                parts.append((w, 8 * (first - of[1]), (1 << 8 * size) - 1, 8 * (first - event.cell[1])))
                pairs |= 1 << (w * layout.algebra.n + r)
            if pairs & pairs - 1 and not self._readings.tear:
                raise Unconfirmed(f"the read {event.id} takes bytes of several writes")
            cells.append((cell, pairs))
            union |= pairs
        return _Taken(tuple(parts), tuple(cells), union)

    def _write(self, cell: Cell, write: EventId | None) -> int:
        """The number of the write ``write`` (None: the initial one) of ``cell``."""
        if write is None:
            return self.layout.cells[cell]
        found = self._writes.get(write)
        if found is None or found not in self.layout.writes[cell]:
            raise Unconfirmed(f"there is no write {write} of these bytes of {cell[0]}")
        return found

    def coherence(self, given: Pairs) -> int:
        """Coherence order with the initial writes; ``given``, without them, must be a strict partial order."""
        found = self._coherence.get(given)
        if found is None:
            pairs = []
            for a, b in given:
                x, y = self._writes.get(a), self._writes.get(b)
                if x is None or y is None:
                    raise Unconfirmed(f"coherence order can't relate {a} and {b}")
                pairs.append((x, y))
            found = self._coherence.keep(given, self._with_initial(self.layout.algebra.relation(pairs)), 1 + len(given))
        return found

    def _with_initial(self, co: int) -> int:
        """Coherence order ``co`` and the initial writes. Writes that do not overlap are related only through others."""
        algebra, transitive = self.layout.algebra, self._readings.transitive
        if self._overlapping is None:
            pairs = overlapping_writes(self.layout)
            self._overlapping = algebra.relation(pair for a, b in pairs for pair in ((a, b), (b, a)))
        direct = co & self._overlapping
        closed = algebra.plus(direct)
        if not algebra.irreflexive(closed):
            raise Unconfirmed("coherence order is not a strict partial order")
        if co != (closed if transitive else direct):
            if transitive and closed != algebra.plus(co):
                raise Unconfirmed("coherence order can't relate writes that do not overlap")
            raise Unconfirmed("coherence order is not a strict partial order")
        initial = self.layout.initial_order()
        return algebra.plus(co | initial) if transitive else co | initial

    def in_line(self, written: Sequence[int], witness: Witness, meeting: Meeting) -> Pairs:
        """The Fence-SC order of the witness, if it relates all fences; else one with which all happens one after the
        other. Raises ``Unconfirmed`` where it does not."""
        layout, algebra = self.layout, self.layout.algebra
        self._scoped = algebra.rows(scoped_fences(layout)) if self._scoped is None else self._scoped
        numbers = self._fences
        given = algebra.relation((numbers.get(a, 0), numbers.get(b, 0)) for a, b in witness.fence_sc)
        if algebra.rows(given | algebra.inverse(given)) == self._scoped:
            return witness.fence_sc
        rf, co, phases = self.reads_from(written, witness), self.coherence(witness.co), self.phases(meeting)
        base = base_of(layout, rf, co, 0, phases, written)
        first = rf.union | co | phases["barphase"] | phases["warpphase"] | phases["cluphase"] | phases["mbphase"]
        before = algebra.plus(first | (base("po") or 0) | (base("fr") or 0))
        if not algebra.irreflexive(before):
            raise Unconfirmed("not all happens one after the other")
        # Of two of which one comes before the other more come before the second.
        place = [row.bit_count() for row in algebra.rows(algebra.inverse(before))]
        pairs = ((a, b) for a, row in enumerate(self._scoped) for b in algebra.members(row))
        events = layout.events
        return frozenset((events[a].id, events[b].id) for a, b in pairs if (place[a], a) < (place[b], b))

    def fence_sc(self, given: Pairs) -> int:
        """Fence-SC order, of fences that are mutually in scope."""
        if not given and not self._total:
            return 0
        algebra = self.layout.algebra
        if self._scoped is None:
            self._scoped = algebra.rows(scoped_fences(self.layout))
        pairs, fences = [], self._fences
        for a, b in given:
            x, y = fences.get(a, -1), fences.get(b, -1)
            if min(x, y) < 0 or not self._scoped[x] >> y & 1:
                raise Unconfirmed(f"Fence-SC order can't relate {a} and {b}")
            pairs.append((x, y))
        fsc = algebra.relation(pairs)
        if self._total and (algebra.rows(fsc | algebra.inverse(fsc)) != self._scoped or not algebra.acyclic(fsc)):
            raise Unconfirmed("Fence-SC order is not a total order")
        return fsc


def _offset(source: Source) -> int:
    return source.offset


def _check_cover(read: EventId, cell: Cell, sources: Sequence[Source]) -> None:
    """Raise unless the ``sources``, in order, cover the bytes of a read once."""
    ends = [cell[1], *(s.offset + s.size for s in sources)]
    joined = all(s.key == cell[0] and s.size > 0 and s.offset == end for s, end in zip(sources, ends, strict=False))
    if not joined or ends[-1] != cell[1] + cell[2]:
        raise Unconfirmed(f"the sources of the read {read} do not cover its bytes once")
