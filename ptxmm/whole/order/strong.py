"""Strong accesses as synchronization: what writes release, what reads find and acquire (PTX ISA 8.8, 8.9.2, 8.9.4).

For each location that a strong access or an atomic operation touches there is a log of all its writes. A write carries
*heads*, the first operations of the release patterns that it ends: itself, if it releases; releases of the location by
the same thread before it; fences of the thread before it. Along a chain of atomic operations they are handed on. A
read with an acquire, or a fence behind it, acquires from them if both are in each other's scope.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.order.clocks import NOTHING, SEQUENTIAL, Clocks, Release
from ptxmm.whole.order.origins import Inputs, Key

WEAK, CTA, CLUSTER, GPU, ALL = range(5)
"""How wide a scope is; a weak access has none. Where there is one device only, the scope of a GPU is that of all."""
Location: TypeAlias = tuple[int, int]
"""The place in the arena and the size."""
Arrival: TypeAlias = tuple[Location, int, int]
"""An atomic operation: its location, the thread, and the number of it among those of the thread there, from 1."""
_NONE: Mapping[Arrival, frozenset[Arrival]] = {}
Glance: TypeAlias = tuple[int, int, int]
"""A load that is in no loop which waits, or the last look of a loop that waits for one location: the thread, the
instruction that it comes to first, and the number of it among those of the thread there, from 1."""
INITIAL = -1
"""The thread of what is there before the launch."""


class Chosen(Struct, frozen=True, eq=False):
    """Of what a glance at a location may find, that which gives a ``function`` this result; some ``word`` does, if one
    is known."""

    location: Location
    function: Callable[[int], bool]
    result: bool
    word: int | None

    def likes(self, value: int) -> bool:
        """Whether a value is of those."""
        return self.function(value) == self.result


_ALL: Mapping[Glance, Chosen] = {}
_FENCE_SC = ALL + 1
"""As what acquires: a ``fence.sc`` whose scope includes all threads, where Fence-SC order counts."""


class Head(Struct, frozen=True):
    """The first operation of a release pattern: what it releases, and how wide its scope is."""

    release: Release
    level: int


class Write(Struct, frozen=True):
    """A write of a location: the thread with its clock and view, the place of the write in the execution; what it
    leaves there (None: unknown); how wide its scope is, its ``heads``; of an atomic operation that depends on what was
    there before, what it does with it (``change``)."""

    thread: int
    clock: int
    view: int
    order: int
    value: int | None
    level: int
    heads: tuple[Head, ...]
    change: tuple[str, ops.Type, int | None] | None = None


class Waited(Struct, frozen=True):
    """A loop that waits: the load at its ``start``, the registers that it began with; which slot was read, and which
    slots each of its loads reads (``rounds``)."""

    start: int
    inputs: Inputs
    slot: int
    slots: Mapping[int, tuple[int, ...]]

    @property
    def loads(self) -> tuple[int, ...]:
        """The loads that read the slot."""
        return tuple(at for at, slots in sorted(self.slots.items()) if self.slot in slots)


class Read(Struct):
    """A read of a location whose result may depend on the schedule: by the instruction ``at``, ``kind``: ``poll``,
    ``load`` or ``atomic``; the number of its location's writes before it; the tails that acquired from it, by how wide
    their scopes are; of a loop that has waited, which it was, and in ``party`` its first read. ``late``: nothing behind
    it depends on what it finds (8.10.4), as it is not in a loop that it ends."""

    kind: str
    at: int
    thread: int
    clock: int
    view: int
    order: int
    location: Location
    level: int
    seen: int
    key: Key
    tails: set[int]
    heads: tuple[Head, ...]
    waited: Waited | None = None
    late: bool = False
    party: Key | None = None
    glance: Glance | None = None
    trusted: bool = False


class Log(Struct):
    """The writes of a location; the heads that its last one carries; ``mixed``: whether accesses of other bytes
    overlap it."""

    writes: list[Write]
    chain: list[Head]
    mixed: bool = False


def arrivals(location: Location, log: Log) -> list[Arrival | None]:
    """For each write of a log the atomic operation that it is, None for those that are none."""
    counts: dict[int, int] = {}
    found: list[Arrival | None] = []
    for write in log.writes:
        if write.change is not None:
            counts[write.thread] = counts.get(write.thread, 0) + 1
        found.append(None if write.change is None else (location, write.thread, counts[write.thread]))
    return found


class Plan(Struct):
    """What is known of the other executions, from runs before: for each read, and each width of the scope of what
    acquires behind it, the releases that it has acquired whatever it found; instructions whose results differ, and
    registers that loops leave different, by their first reads. ``exact``: follow this one execution, all that it
    acquires. ``last``: atomic operations that come last, and those that they come after. ``weakest``: of loops that
    wait, by their starts and the loads of a slot, how wide the scope is at least of the last one, and whether it
    acquires; ``loose``: of those, with the thread and the location, the ones whose last value need not decide that
    it ends. ``late``: as ``allowed``, of late reads whatever depends on them (None: all that they find); ``open``:
    bytes whose values are not known, as they may race without these. ``left``: of loops that wait, and registers
    that they leave different, what these are by what the last look has found. ``chosen``: what glances find, of all
    that they may; then nobody takes more than so many ``steps``. ``plain``: of this one
    execution, values are what they are, and nothing is kept of others; ``turn``: in it the first CTA, warp of the only
    CTA or lane of the only warp goes on as long as it can (-1: the last one; 0: all go on together)."""

    exact: bool
    allowed: dict[tuple[Key, int], frozenset[Release]]
    unknown: set[int]
    forgotten: dict[Key, set[str]]
    watched: set[Location]
    last: Mapping[Arrival, frozenset[Arrival]] = _NONE
    weakest: dict[tuple[int, tuple[int, ...]], tuple[int, bool]] = {}
    late: dict[tuple[Key, int], frozenset[Release]] | None = {}
    open: set[int] = set()
    loose: set[tuple[int, tuple[int, ...], int, Location]] = set()
    left: dict[tuple[Key, str], dict[int, int | None]] = {}
    chosen: Mapping[Glance, Chosen] = _ALL
    steps: int = 0
    sequential: bool = False
    plain: bool = False
    turn: int = 0


def follow(
    last: Mapping[Arrival, frozenset[Arrival]] = _NONE, chosen: Mapping[Glance, Chosen] = _ALL, steps: int = 0
) -> Plan:
    """The plan of one execution as it is; ``last``, ``chosen``, ``steps``: as of ``Plan``."""
    return Plan(True, {}, set(), {}, set(), last, late=None, chosen=chosen, steps=steps)


class Held(Struct):
    """What a thread comes after, and what it releases, at some place: its view, its fences, and its releases of each
    location."""

    view: int
    fences: dict[int, Head]
    released: dict[Location, dict[int, Head]]


class Strong:
    """The logs of one execution; ``clusters``, ``devices``: for each CTA the number of its cluster, and of
    the GPU that it runs on. ``swaps``: whether it was this
    execution that told whether a ``cas`` writes."""

    def __init__(self, clocks: Clocks, clusters: Numbers, devices: Numbers, plan: Plan) -> None:
        self.clocks, self.plan = clocks, plan
        self._clusters, self._devices = clusters, devices
        self._several = len(np.unique(devices)) > 1
        self.logs: dict[Location, Log] = {}
        self.reads: list[Read] = []
        self.order = 0
        self._at: dict[int, set[Location]] = {}
        self._fences: dict[int, dict[int, Head]] = {}
        self._inits: dict[int, Head] = {}
        self._released: dict[int, dict[Location, dict[int, Head]]] = {}
        self._pending: dict[int, list[Read]] = {}
        self._trusted: dict[int, frozenset[Key]] = {}
        self._deferred: dict[int, list[tuple[int, Read]]] = {}
        self._count: dict[int, int] = {}
        self._sequential: dict[tuple[int, int], Release] = {}
        self.swaps = False

    def level(self, scope: str | None) -> int:
        """How wide a scope is in this launch."""
        gpu = GPU if self._several else ALL
        return {None: WEAK, "cta": CTA, "cluster": CLUSTER, "gpu": gpu}.get(scope, ALL)

    def includes(self, level: int, one: int, other: int) -> bool:
        """Whether threads of two CTAs are in a scope of the one."""
        if level == CLUSTER:
            return bool(self._clusters[one] == self._clusters[other])
        if level == GPU:
            return bool(self._devices[one] == self._devices[other])
        return level >= ALL or (level != WEAK and one == other)

    def mutual(self, level: int, thread: int, other_level: int, other: int) -> bool:
        """Whether strong operations of two threads are in each other's scope."""
        one, two = int(self.clocks.cta[thread]), int(self.clocks.cta[other])
        return self.includes(level, one, two) and self.includes(other_level, two, one)

    def log(self, location: Location, value: int | None) -> Log:
        """The log of a location, which begins with the ``value`` that is there."""
        if location not in self.logs:
            self.logs[location] = Log([Write(INITIAL, 0, 0, self.order, value, WEAK, ())], [])
            place, size = location
            for byte in range(place, place + size):
                for other in self._at.setdefault(byte, set()):
                    self.logs[other].mixed = self.logs[location].mixed = True
                self._at[byte].add(location)
        return self.logs[location]

    def overlapping(self, place: int, size: int) -> set[Location]:
        """The locations with a log that have one of some bytes."""
        return {location for byte in range(place, place + size) for location in self._at.get(byte, ())}

    def write(
        self, location: Location, thread: int, value: int | None, level: int, releases: bool,
        change: tuple[str, ops.Type, int | None] | None = None,
    ) -> None:  # fmt: skip
        """A thread writes a location that has a log."""
        log = self.logs[location]
        view = int(self.clocks.views(np.array([thread]))[0])
        clock = int(self.clocks.clock[thread])
        heads: tuple[Head, ...] = ()
        if level != WEAK:
            mine = self._released.setdefault(thread, {}).setdefault(location, {})
            if releases:
                mine[level] = Head(self.clocks.release(thread), level)
            heads = (*mine.values(), *self._fences.get(thread, {}).values())
            if self.plan.sequential and (layer := self.clocks.layer(view, SEQUENTIAL)) != NOTHING:
                heads = (*heads, Head(Release(layer, thread, clock, fenced=True), ALL))
        last = log.writes[-1]
        linked = change is not None and last.thread != INITIAL and self._linked(last, thread, level)
        log.chain = [*log.chain, *heads] if linked and heads else log.chain if linked else [*heads]
        self.order += 1
        log.writes.append(Write(thread, clock, view, self.order, value, level, heads, change))

    def _linked(self, write: Write, thread: int, level: int) -> bool:
        """Whether a read of ``thread`` observes a write (8.9.2)."""
        return write.thread == thread or self.mutual(write.level, write.thread, level, thread)

    def read(
        self, kind: str, at: int, location: Location, thread: int, level: int, acquires: bool,
        waited: Waited | None = None, late: bool = True, party: Key | None = None, looked: bool = True,
        glance: Glance | None = None,
    ) -> Key:  # fmt: skip
        """A thread reads what was written last; the key of the read. If it has not ``looked`` there, but might have,
        nothing is acquired."""
        log = self.logs[location]
        self.order += 1
        number = self._count[thread] = self._count.get(thread, 0) + 1
        last = log.writes[-1]
        linked = looked and last.thread != INITIAL and self._linked(last, thread, level)
        heads = tuple(log.chain) if linked else ()
        view, clock = int(self.clocks.views(np.array([thread]))[0]), int(self.clocks.clock[thread])
        found = Read(
            kind, at, thread, clock, view, self.order, location, level, len(log.writes), (thread, number), set(), heads,
            waited, late, party or (thread, number), glance,
        )  # fmt: skip
        self.reads.append(found)
        pending = self._pending.setdefault(thread, [])
        if heads:
            pending.append(found)
        if acquires:
            self.acquire(thread, location, level)
        return found.key

    def acquire(self, thread: int, location: Location, level: int) -> None:
        """The last read of a location by a thread acquires."""
        pending = self._pending.get(thread, [])
        if pending:
            # A strong read before it of the same location is in the pattern too (8.8).
            self._acquire(thread, level, [read for read in pending if read.location == location])
            if level == ALL and not self.plan.sequential:
                self._pending[thread] = [read for read in pending if read.location != location]

    def _acquire(self, thread: int, level: int, reads: Iterable[Read]) -> None:
        chosen: set[Release] = set()
        for read in reads:
            read.tails.add(level)
            allowed = self.plan.allowed.get((read.key, level))
            if read.late and self.plan.late is not None:
                if read.key not in self._trusted.get(thread, ()):
                    self._deferred.setdefault(thread, []).append((level, read))
                    allowed = self.plan.late.get((read.key, level), frozenset())
                else:
                    read.trusted = True
            heads = (*read.heads, *self._earlier(read, allowed or ()))
            usable = self.usable(heads, level, thread)
            chosen |= usable if allowed is None else usable & allowed
        self.clocks.acquire(np.array([thread]), chosen)

    def _earlier(self, read: Read, allowed: Collection[Release]) -> Iterator[Head]:
        """The heads of what a read may have found, of what was there before; of these those that are ``allowed``."""
        if len(allowed) and not {head.release for head in read.heads}.issuperset(allowed):
            for write in self.logs[read.location].writes[: read.seen] if read.location in self.logs else ():
                yield from (head for head in write.heads if head.release in allowed)

    def trust(self, thread: int, keys: frozenset[Key]) -> Held:
        """What a thread does from here on depends on what the late reads ``keys`` have found, so that it comes after
        what they acquire; how it is without that."""
        released = {location: dict(heads) for location, heads in self._released.get(thread, {}).items()}
        view = int(self.clocks.views(np.array([thread]))[0])
        held = Held(view, dict(self._fences.get(thread, {})), released)
        self._trusted[thread] = self._trusted.get(thread, frozenset()) | keys
        for level, read in self._deferred.get(thread, ()):
            if read.key in keys:
                self._acquire(thread, level, [read])
        return held

    def distrust(self, thread: int, held: Held | None, keys: frozenset[Key]) -> None:
        """What a thread does now depends on no late reads but ``keys``; it is as it was ``held``, if that is known."""
        self._trusted[thread] = keys
        if held is not None:
            self.clocks.back(thread, held.view)
            self._fences[thread] = held.fences
            self._released[thread] = held.released

    @property
    def choices(self) -> bool:
        """Whether another execution may have been ordered, or found something, that this one has not."""
        if self._sequential or self.swaps or any(read.kind != "atomic" or read.tails for read in self.reads):
            return True
        return any(write.level and write.change is None for log in self.logs.values() for write in log.writes)

    def usable(self, heads: Iterable[Head], level: int, thread: int) -> set[Release]:
        """What of ``heads`` an operation of ``thread`` that ends an acquire pattern gets."""
        return {
            head.release
            for head in heads
            if self.mutual(head.level, head.release.agent, level, thread)
            and (level == _FENCE_SC or not head.release.fenced)
        }

    def fenced(self, thread: int) -> Iterable[Head]:
        """The fences of a thread that release what comes before them."""
        return self._fences.get(thread, {}).values()

    def released(self, thread: int, releases: bool) -> tuple[Head, ...]:
        """What an arrival at a barrier of a cluster releases (8.9.4 (3)); without ``.release`` that of fences."""
        heads = (*self.fenced(thread), *filter(None, [self._inits.get(thread)]))
        return (*heads, Head(self.clocks.release(thread), CLUSTER)) if releases else heads

    def initialised(self, thread: int, release: Release) -> None:
        """A thread hands on by barriers of its cluster which mbarriers it has initialised (9.7.14.4)."""
        self._inits[thread] = Head(release, CLUSTER)

    def pend(self, thread: int, head: Head) -> None:
        """A thread comes after ``head`` from its next fence on that acquires."""
        location = (-1, 0)
        read = Read("mbarrier", 0, thread, 0, 0, 0, location, ALL, 0, (thread, 0), set(), (head,))
        self._pending.setdefault(thread, []).append(read)

    def fence(self, op: ops.Fence, threads: Sequence[int]) -> None:
        """``fence``, ``membar``."""
        level = self.level(op.scope)
        sequential = self.plan.sequential and op.sem == "sc" and level == ALL
        for thread in threads:
            if op.sem != "release" and self._pending.get(thread):
                self._acquire(thread, _FENCE_SC if sequential else level, self._pending[thread])
                if level == ALL and sequential == self.plan.sequential:
                    del self._pending[thread]
            if sequential:
                self.clocks.leave(np.array([thread]), SEQUENTIAL[0])
            if op.sem == "sc" and self.plan.exact:
                self._order(thread, level)
            elif op.sem != "acquire":
                self._fences.setdefault(thread, {})[level] = Head(self.clocks.release(thread), level)

    def _order(self, thread: int, level: int) -> None:
        """Fence-SC order is that of the execution (8.9.3); each fence comes after the one before it in its scope."""
        cta = int(self.clocks.cta[thread])
        here = {CTA: cta, CLUSTER: int(self._clusters[cta]), GPU: int(self._devices[cta]), ALL: 0}
        keys = [(width, here[width]) for width in (CTA, CLUSTER, GPU, ALL) if width <= level]
        self.clocks.acquire(np.array([thread]), {self._sequential[key] for key in keys if key in self._sequential})
        released = self.clocks.release(thread)
        self._fences.setdefault(thread, {})[level] = Head(released, level)
        for key in keys:
            self._sequential[key] = released
