"""One concrete execution: its events, numbered, with their tags, cells and places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.barriers.exchanges import Links
from ptxmm.events.explicit.relations.scopes import SCOPES, Place, owner_place, places
from ptxmm.events.explicit.relations.tags import SETS, tags
from ptxmm.events.explicit.trace import Cell, Event
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx.ops import AsyncStore, BulkCopy
from ptxmm.relations.concrete import Concrete

MOST_EVENTS = 2048
"""More events than this are refused: a relation on them takes n * n bits."""


class Scene:
    """The threads of a test, placed; shared by all its executions."""

    __slots__ = ("places", "test")

    def __init__(self, test: Test) -> None:
        self.test = test
        self.places: tuple[Place, ...] = places(test)

    def place_of_owner(self, item: MemoryObject, thread: int) -> Place:
        """The place of the CTA that the shared ``item`` lies in, which ``thread`` accesses."""
        return owner_place(item.owner, self.places[thread])


class ReadsFrom(Struct, frozen=True):
    """Reads-from: ``union`` over all bytes, and, where accesses overlap partially, by cell."""

    union: int = 0
    cells: Mapping[Cell, int] = field(default_factory=dict)


def initial_value(test: Test, cell: Cell) -> int:
    """The unsigned value of ``cell`` at the start."""
    key, offset, size = cell
    return test.objects[key].initial_value(offset, size)


def split(ranges: Iterable[Cell]) -> list[Cell]:
    """The coarsest cells that every one of ``ranges`` is made of."""
    by_object: dict[str, set[Cell]] = {}
    for cell in ranges:
        by_object.setdefault(cell[0], set()).add(cell)
    found: list[Cell] = []
    for key, members in by_object.items():
        ordered = sorted(members)
        if all(a[1] + a[2] <= b[1] for a, b in pairwise(ordered)):
            found += ordered
            continue
        borders = sorted({end for _, first, size in ordered for end in (first, first + size)})
        found += [
            (key, a, b - a)
            for a, b in pairwise(borders)
            if any(first <= a and b <= first + size for _, first, size in ordered)
        ]
    return found


def _inside(whole: Cell, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Those of ``cells`` that ``whole`` is made of, in order."""
    key, first, size = whole
    return tuple(sorted(c for c in cells if c[0] == key and first <= c[1] and c[1] + c[2] <= first + size))


class Layout:
    """The events of one choice of paths, numbered, and what follows from them alone.

    ``threads`` gives each thread's events in program order. Numbers go through the threads in order, then come the
    initial writes, one for each of ``cells``, the coarsest parts that all accesses are made of. ``made_of[i]`` are the
    cells of access i, ``writes`` the writes that cover a cell, the initial one first. ``leaves[t][i]`` is the number of
    the event that returns what thread t calls i, or -1; ``links``: the results that are made of values of several
    threads; ``open``: the threads that do not end. ``simple``: no two accesses overlap partially; ``aliased``: some
    virtual address is not the physical one. ``places[i]``: where event i counts as performed. ``known``: the base
    relations that were asked for so far (see ``base``). Raises ``PtxmmError`` (kind ``unsupported``) where the events
    are too many.
    """

    __slots__ = (
        "_covering", "_groups", "_sets", "algebra", "aliased", "cells", "events", "known", "leaves", "links", "made_of",
        "numbers", "open", "places", "reads", "scene", "simple", "spans", "thread_of", "tokens", "writes",
    )  # fmt: skip

    def __init__(
        self,
        scene: Scene,
        threads: Sequence[Sequence[Event]],
        links: Links | None = None,
        open_: frozenset[int] = frozenset(),
    ) -> None:
        self.scene = scene
        self.open = open_
        self.links: Links = links or {}
        self.events: list[Event] = [e for events in threads for e in events]
        self.thread_of = [e.id.thread for e in self.events]
        self.spans: list[tuple[int, int]] = []
        self.leaves: list[list[int]] = []
        self.tokens: list[tuple[int, int, EventId]] = []
        first = 0
        for t, events in enumerate(threads):
            self.spans.append((first, first + len(events)))
            self.leaves.append(_leaves(events, first, max((n for u, n in self.links if u == t), default=-1)))
            self.tokens += [(t, e.leaf, e.id) for e in events if e.kind == "MBA" and e.leaf >= 0]
            first += len(events)
        self.aliased = any(e.cell is not None and e.place != e.cell for e in self.events)
        self._set_cells(first)
        if first + len(self.cells) > MOST_EVENTS:
            raise PtxmmError(
                f"an execution has {first + len(self.cells)} events; at most {MOST_EVENTS} are supported",
                kind="unsupported",
            )
        self.events += [Event(EventId(-1, i), "W", None, cell, cell) for i, cell in enumerate(self.cells)]
        self.algebra = Concrete(len(self.events))
        self.numbers: dict[tuple[EventId, str], int] = {(e.id, e.kind): i for i, e in enumerate(self.events)}
        self.reads = [i for i, e in enumerate(self.events) if e.kind == "R"]
        self.places = [self._place(e) for e in self.events[:first]]
        self._covering: dict[Cell, int] = {}
        self._groups: dict[object, int] = {}
        self._sets: dict[str, int] | None = None
        self.known: dict[str, int] = {}

    def _set_cells(self, first: int) -> None:
        accessed = dict.fromkeys(e.cell for e in self.events if e.cell is not None)
        cells = split(accessed)
        self.simple = accessed.keys() == set(cells)
        self.cells: dict[Cell, int] = {c: first + i for i, c in enumerate(accessed if self.simple else cells)}
        parts = {c: (c,) if self.simple else _inside(c, cells) for c in accessed}
        self.made_of: list[tuple[Cell, ...]] = [() if e.cell is None else parts[e.cell] for e in self.events]
        self.made_of += [(c,) for c in self.cells]
        self.writes: dict[Cell, list[int]] = {cell: [initial] for cell, initial in self.cells.items()}
        for i, e in enumerate(self.events):
            if e.kind == "W":
                for cell in self.made_of[i]:
                    self.writes[cell].append(i)

    def _place(self, event: Event) -> Place:
        """The completion of a copy counts as performed by the CTA that owns the mbarrier (decision A32)."""
        thread = event.id.thread
        if event.kind == "MBA" and event.mbarrier is not None and isinstance(event.op, BulkCopy | AsyncStore):
            return self.scene.place_of_owner(self.scene.test.objects[event.mbarrier[0]], thread)
        return self.scene.places[thread]

    @property
    def initial_first(self) -> int:
        """The number of the first initial write; those of threads are smaller."""
        return len(self.thread_of)

    def covering(self, cell: Cell) -> int:
        """The set of the accesses of threads that cover ``cell``."""
        if not self._covering:
            self._covering = dict.fromkeys(self.cells, 0)
            for i in range(self.initial_first):
                for part in self.made_of[i]:
                    self._covering[part] |= 1 << i
        return self._covering[cell]

    def within(self, place: Place, scope: str) -> int:
        """The events that ``scope`` of an operation at ``place`` contains."""
        if not self._groups:
            for i, other in enumerate(self.places):
                for level in SCOPES:
                    group = other.around(level)
                    self._groups[group] = self._groups.get(group, 0) | 1 << i
        return self._groups.get(place.around(scope), 0)

    @property
    def sets(self) -> Mapping[str, int]:
        """The base sets."""
        if self._sets is None:
            self._sets = self._tags()
        return self._sets

    def _tags(self) -> dict[str, int]:
        sets = dict.fromkeys(SETS, 0)
        objects = self.scene.test.objects
        for i, event in enumerate(self.events):
            bit = 1 << i
            for tag in tags(event):
                sets[tag] |= bit
            if i < self.initial_first and self.scene.test.threads[event.id.thread].placement.host:
                sets["HOST"] |= bit
            if event.mbarrier is not None and event.kind != "MBI" and not _initialised(objects, event.mbarrier):
                sets["MBX"] |= bit
        return sets

    def fr(self, rf: ReadsFrom, co: int) -> int:
        """From-reads, summed over the bytes: byte by byte from the write that was read to later writes of that byte."""
        algebra = self.algebra
        if self.simple:
            return algebra.sequence(algebra.inverse(rf.union), co)
        result = 0
        for cell, part in rf.cells.items():
            result |= algebra.restrict(None, algebra.sequence(algebra.inverse(part), co), self.covering(cell))
        return result

    def initial_order(self) -> int:
        """Coherence order that always holds: initial writes before the others of their cell."""
        n = self.algebra.n
        result = 0
        for ws in self.writes.values():
            for w in ws[1:]:
                result |= 1 << (ws[0] * n + w)
        return result


_RETURNING = ("R", "MBA", "MBW", "MBP")
"""Events that return values."""


def _leaves(events: Sequence[Event], first: int, last: int) -> list[int]:
    """For each leaf of a thread, to ``last`` at least, the number of the read, arrival or wait that returns it, or -1
    for what is no event of this execution."""
    found = [-1] * (max([last, *(e.leaf for e in events)]) + 1)
    for i, e in enumerate(events):
        if e.kind in _RETURNING and e.leaf >= 0:
            found[e.leaf] = first + i
    return found


def _initialised(objects: Mapping[str, MemoryObject], place: tuple[str, int]) -> bool:
    """Whether the mbarrier at ``place`` is initialised before the program."""
    item = objects[place[0]]
    index, rest = divmod(place[1], item.type.bytes)
    return rest == 0 and index < len(item.mbarrier) and item.mbarrier[index] is not None
