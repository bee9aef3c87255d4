"""One concrete execution: its events with their tags, and every base set and relation of the model language.

Semantics 1.1. What does not depend on the witness (reads-from, coherence, Fence-SC order, phases) is computed once
for a choice of paths, lazily and by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from ptxmm.errors import PtxmmError
from ptxmm.events.scopes import Place, places
from ptxmm.events.trace import Cell, Event
from ptxmm.program.accesses import partial_overlap
from ptxmm.program.test import EventId, MemoryObject, Test
from ptxmm.ptx.ops import Atomic, Barrier, Fence, Load, ProxyFence, Store
from ptxmm.relations.concrete import Concrete

MOST_EVENTS = 2048
"""More events than this are refused: a relation on them takes n * n bits."""

WITNESS = frozenset(("rf", "co", "fr", "fsc", "sync_fence"))
"""The base relations that the order-finding part of a witness decides."""

PHASES = frozenset(("barphase", "syncbar", "sync_barrier"))
"""The base relations that the phases of barriers decide."""

_PROXY = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}


class Scene:
    """The threads of a test, placed; shared by all its executions."""

    __slots__ = ("includes", "places", "scopes", "test")

    def __init__(self, test: Test) -> None:
        self.test = test
        self.places: tuple[Place, ...] = places(test)
        self.scopes: dict[tuple[int, str], tuple[int, ...]] = {}

    def threads_in(self, thread: int, scope: str) -> tuple[int, ...]:
        """The threads that ``scope`` of an operation of ``thread`` contains."""
        found = self.scopes.get((thread, scope))
        if found is None:
            mine = self.places[thread]
            found = tuple(t for t, other in enumerate(self.places) if mine.includes(scope, other))
            self.scopes[thread, scope] = found
        return found


def initial_bytes(item: MemoryObject) -> bytes:
    """The bytes of an object at the start (little-endian)."""
    return b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)


def initial_value(test: Test, cell: Cell) -> int:
    """The unsigned value of ``cell`` at the start."""
    key, offset, size = cell
    return int.from_bytes(initial_bytes(test.objects[key])[offset : offset + size], "little")


class Layout:
    """The events of one choice of paths, numbered, and what follows from them alone.

    ``threads`` gives each thread's events in program order. Numbers go through the threads in order, then come the
    initial writes, one for each accessed cell. ``leaves[t][i]`` is the number of the read that thread t calls i.
    Raises ``PtxmmError`` (kind ``unsupported``) where two accesses overlap partially or the events are too many.
    """

    __slots__ = (
        "_sets", "_static", "algebra", "cells", "events", "leaves", "numbers", "reads", "scene", "spans", "thread_of",
        "writes",
    )  # fmt: skip

    def __init__(self, scene: Scene, threads: Sequence[Sequence[Event]]) -> None:
        self.scene = scene
        self.events: list[Event] = [e for events in threads for e in events]
        self.thread_of = [e.id[0] for e in self.events]
        self.spans: list[tuple[int, int]] = []
        self.leaves: list[list[int]] = []
        first = 0
        for events in threads:
            self.spans.append((first, first + len(events)))
            self.leaves.append([first + i for i, e in enumerate(events) if e.kind == "R"])
            first += len(events)
        self.cells: dict[Cell, int] = {}
        for e in self.events:
            if e.cell is not None and e.cell not in self.cells:
                self.cells[e.cell] = first + len(self.cells)
        _refuse_partial_overlap(scene.test, self.events, self.cells)
        if first + len(self.cells) > MOST_EVENTS:
            raise PtxmmError(
                f"an execution has {first + len(self.cells)} events; at most {MOST_EVENTS} are supported",
                kind="unsupported",
            )
        self.events += [Event((-1, i, 0), "W", None, cell) for i, cell in enumerate(self.cells)]
        self.algebra = Concrete(len(self.events))
        self.numbers: dict[tuple[EventId, str], int] = {(e.id, e.kind): i for i, e in enumerate(self.events)}
        self.reads = [i for i, e in enumerate(self.events) if e.kind == "R"]
        self.writes: dict[Cell, list[int]] = {cell: [initial] for cell, initial in self.cells.items()}
        for i in range(first):
            e = self.events[i]
            if e.kind == "W" and e.cell is not None:
                self.writes[e.cell].append(i)
        self._sets: dict[str, int] | None = None
        self._static: dict[str, int] = {}

    @property
    def initial_first(self) -> int:
        """The number of the first initial write; those of threads are smaller."""
        return len(self.thread_of)

    # Base sets and relations.

    def static(self, name: str) -> int | None:
        """The base set or relation ``name`` if the witness does not decide it; None if it is unknown."""
        found = self._static.get(name)
        if found is None:
            found = self._compute(name)
            if found is not None:
                self._static[name] = found
        return found

    def _compute(self, name: str) -> int | None:
        if self._sets is None:
            self._sets = self._tags()
        if name in self._sets:
            return self._sets[name]
        algebra = self.algebra
        if name == "id":
            return algebra.identity(algebra.universe())
        if name == "sr":
            strong = self._sets["STRONG"]
            scoped = self._get("inscope")
            return algebra.restrict(strong, scoped & algebra.inverse(scoped), strong)
        if name == "po-loc":
            return self._get("po") & self._get("loc")
        if name == "ext":
            return algebra.product(algebra.universe(), algebra.universe()) & ~self._get("int")
        build = _BUILDERS.get(name)
        return None if build is None else algebra.from_rows(build(self))

    def _get(self, name: str) -> int:
        value = self.static(name)
        assert value is not None
        return value

    def _tags(self) -> dict[str, int]:
        sets = dict.fromkeys(_SETS, 0)
        for i, event in enumerate(self.events):
            bit = 1 << i
            for tag in _event_tags(event):
                sets[tag] |= bit
            if i < self.initial_first and self.scene.test.threads[event.id[0]].placement.host:
                sets["HOST"] |= bit
        return sets

    # The relations of a witness.

    def fr(self, rf: int, co: int) -> int:
        """From-reads, summed over the bytes: no two cells overlap partially, so cells will do."""
        algebra = self.algebra
        return algebra.sequence(algebra.inverse(rf), co)

    def initial_order(self) -> int:
        """Coherence order that always holds: initial writes before the others of their cell."""
        n = self.algebra.n
        result = 0
        for ws in self.writes.values():
            for w in ws[1:]:
                result |= 1 << (ws[0] * n + w)
        return result

    def barphase(self, phases: Mapping[EventId, int | None]) -> int:
        """Arrivals related to the waits of the same phase of the same barrier."""
        groups: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
        for i, event in enumerate(self.events):
            if event.kind not in ("BA", "BW") or event.barrier is None:
                continue
            phase = phases.get(event.id)
            if phase is None:
                continue
            assert isinstance(event.op, Barrier)
            key = (self.scene.places[event.id[0]].cta, event.op.instance, event.barrier[0], phase)
            groups.setdefault(key, ([], []))[event.kind == "BW"].append(i)
        return self.algebra.relation((a, b) for ba, bw in groups.values() for a in ba for b in bw)

    def fence_sc_pairs(self) -> list[tuple[int, int]]:
        """Pairs (a < b) of fence.sc events that are mutually in scope: those Fence-SC order may relate."""
        algebra = self.algebra
        scoped = self._get("inscope")
        both = scoped & algebra.inverse(scoped)
        both = algebra.restrict(self._get("FSC"), both, self._get("FSC"))
        return [(a, b) for a, b in algebra.pairs(both) if a < b]

    def makes_values(self) -> int:
        """``addr | data``: what with reads-from makes the values of an execution, so that it can't be cyclic.

        Whether ``ctrl`` and ``rmw`` can be is for the model to say (PTX ISA 8.10.4).
        """
        return self._get("addr") | self._get("data")

    def base(self, rf: int, co: int, fsc: int, barphase: int) -> Callable[[str], int | None]:
        """The base sets and relations of an execution, by name."""

        def lookup(name: str) -> int | None:
            if name == "rf":
                return rf
            if name == "co":
                return co
            if name == "fr":
                return self.fr(rf, co)
            if name in ("fsc", "sync_fence"):
                return fsc
            if name in PHASES:
                return barphase
            return self.static(name)

        return lookup


def _refuse_partial_overlap(test: Test, events: Iterable[Event], cells: Mapping[Cell, int]) -> None:
    """Raise where two cells have common bytes without being equal."""
    ordered = sorted(cells)
    for a, b in pairwise(ordered):
        if a[0] == b[0] and b[1] < a[1] + a[2]:
            first, second = (next(e.op for e in events if e.cell == cell) for cell in (a, b))
            assert first is not None and second is not None
            raise partial_overlap(test, a[0], first, second)


# The sets.

_SETS = (
    "R", "W", "M", "IW", "F", "FSC", "FAR", "PF", "AF", "BA", "BW", "B", "STRONG", "REL", "ACQ", "NORET", "AMO",
    "GEN", "SUR", "TEX", "CON", "ASY", "TMP", "RLX", "ACQ_REL", "SC", "WEAK", "VOL", "MMIO", "ALIAS", "CTA",
    "CLUSTER", "GPU", "SYS", "HOST", "CA", "CW", "MBA", "MBW", "MBI", "FMBI", "TMREL", "TMACQ", "ISS",
)  # fmt: skip


def _event_tags(event: Event) -> tuple[str, ...]:
    """The base sets that contain ``event`` (semantics 1.1, section 3)."""
    op = event.op
    if op is None:
        return ("W", "M", "IW")
    if isinstance(op, Load | Store):
        tags = (event.kind, "M", _PROXY[op.proxy])
        if op.scope is None:
            return (*tags, "WEAK")
        order = {"relaxed": "RLX", "acquire": "ACQ", "release": "REL"}[op.sem]
        extra = ("VOL",) * op.volatile + ("MMIO",) * op.mmio
        return (*tags, "STRONG", op.scope.upper(), order, *extra)
    if isinstance(op, Atomic):
        return (event.kind, "M", _PROXY[op.proxy], "STRONG", op.scope.upper(), "AMO", *_atomic_order(event.kind, op))
    if isinstance(op, Fence):
        kinds = ("FSC", "SC") if op.sem == "sc" else ("FAR", "ACQ_REL")
        return ("F", "GEN", "STRONG", op.scope.upper(), *kinds)
    if isinstance(op, ProxyFence):
        if op.kind == "alias":
            return ("F", "AF", "ALIAS")
        return ("F", "PF") if op.kind == "generic" else ("F", "PF", _PROXY[op.kind])
    return (event.kind, "B")


def _atomic_order(kind: str, op: Atomic) -> tuple[str, ...]:
    """A read acquires, a write releases; the read of a release also heads a release pattern (A14)."""
    acquires = kind == "R" and op.sem in ("acquire", "acq_rel")
    releases = op.sem in ("release", "acq_rel")
    relaxed = not acquires and not (releases and kind == "W") and op.sem != "acq_rel"
    silent = kind == "R" and not op.returns
    return ("ACQ",) * acquires + ("REL",) * releases + ("RLX",) * relaxed + ("NORET",) * silent


# The relations that follow from the events, row by row.


def _po(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for first, end in layout.spans:
        for i in range(first, end):
            rows[i] = (1 << end) - (1 << (i + 1))
    return rows


def _rmw(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i in layout.reads:
        other = layout.numbers.get((layout.events[i].id, "W"))
        if other is not None:
            rows[i] = 1 << other
    return rows


def _dependency(which: str) -> Callable[[Layout], list[int]]:
    def build(layout: Layout) -> list[int]:
        rows = [0] * len(layout.events)
        for i in range(layout.initial_first):
            reads = getattr(layout.events[i], which)
            if reads:
                leaves = layout.leaves[layout.thread_of[i]]
                for number, leaf in enumerate(leaves):
                    if reads >> number & 1:
                        rows[leaf] |= 1 << i
        return rows

    return build


def _threads_of(layout: Layout, threads: Iterable[int]) -> int:
    """The events of the given threads."""
    result = 0
    for t in threads:
        first, end = layout.spans[t]
        result |= (1 << end) - (1 << first)
    return result


def _inscope(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i in range(layout.initial_first):
        op = layout.events[i].op
        scope = op.scope if isinstance(op, Load | Store | Atomic | Fence) else None
        if scope is not None:
            rows[i] = _threads_of(layout, layout.scene.threads_in(layout.thread_of[i], scope))
    return rows


def _scta(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i in range(layout.initial_first):
        rows[i] = _threads_of(layout, layout.scene.threads_in(layout.thread_of[i], "cta"))
    return rows


def _int(layout: Layout) -> list[int]:
    return [
        _threads_of(layout, (layout.thread_of[i],)) if i < layout.initial_first else 1 << i
        for i in range(len(layout.events))
    ]


def _loc(layout: Layout) -> list[int]:
    members: dict[Cell, int] = {}
    for i, e in enumerate(layout.events):
        if e.cell is not None:
            members[e.cell] = members.get(e.cell, 0) | 1 << i
    return [0 if e.cell is None else members[e.cell] for e in layout.events]


def _vloc(layout: Layout) -> list[int]:
    members: dict[Cell, int] = {}
    for i, e in enumerate(layout.events):
        if e.place is not None and e.cell is not None:
            members[e.place] = members.get(e.place, 0) | 1 << i
    physical = _loc(layout)
    rows = [0] * len(layout.events)
    for i, e in enumerate(layout.events):
        if e.cell is None:
            continue
        # An initial write is of the same address as every access of its bytes, through whatever alias.
        rows[i] = physical[i] if e.op is None else members[e.place] | 1 << layout.cells[e.cell]  # type: ignore[index]
    return rows


def _pfence(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i, e in enumerate(layout.events):
        if isinstance(e.op, ProxyFence) and e.op.kind != "alias":
            for j, access in enumerate(layout.events):
                if isinstance(access.op, Load | Store | Atomic) and access.op.proxy == e.op.kind:
                    rows[i] |= 1 << j
    return rows


def _empty(layout: Layout) -> list[int]:
    return [0] * len(layout.events)


_BUILDERS: Mapping[str, Callable[[Layout], list[int]]] = {
    "po": _po,
    "rmw": _rmw,
    "addr": _dependency("addr"),
    "data": _dependency("data"),
    "ctrl": _dependency("ctrl"),
    "inscope": _inscope,
    "scta": _scta,
    "int": _int,
    "loc": _loc,
    "ovl": _loc,
    "vloc": _vloc,
    "vovl": _vloc,
    "pfence": _pfence,
    "warpphase": _empty,
    "api": _empty,
}
