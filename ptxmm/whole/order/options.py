"""What a read may find in any execution, from the log of one (docs/whole.md says why that is all).

A read may find every write that does not come after it in base causality order and that no other write hides which
comes before it. Atomic operations on one location that may be done in any order are taken together: what the read may
find is what some of them leave, those among them that must come before it, and with each one all that come before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from msgspec import Struct, field

from ptxmm.events.explicit.values import arithmetic
from ptxmm.ptx.ops import Type
from ptxmm.whole.arrays import Flags
from ptxmm.whole.order.clocks import NOTHING, Release
from ptxmm.whole.order.strong import (
    ALL,
    CLUSTER,
    GPU,
    INITIAL,
    WEAK,
    Arrival,
    Location,
    Log,
    Read,
    Strong,
    Write,
    arrivals,
)

ORDERLESS = ("add", "and", "max", "min", "or", "xor")
"""What atomic operations on integers may be done in any order with the same result."""
_MOST_WRITES, _MOST_VALUES = 4096, 20_000
Kind = tuple[str, Type, int | None]


class Unclear(Exception):
    """It is not known what a read may find."""


class Option(Struct, frozen=True):
    """A write that does not depend on what was there before (by its number in the log), and the atomic operations
    behind it: ``sure`` are those that a read which likes what it finds comes after; ``values``: what it may find."""

    base: int
    sure: tuple[int, ...]
    values: frozenset[int]


class Options:
    """Of the reads of one execution."""

    def __init__(self, strong: Strong) -> None:
        self._strong = strong
        self._orders: dict[Location, Flags] = {}
        self._heard: dict[tuple[frozenset[Release], int], int] = {}
        self._sights: dict[int, _Sight] = {}

    def of(self, read: Read, likes: Callable[[int], bool]) -> list[Option]:
        """What ``read`` may find that it ``likes``. Raises ``Unclear``."""
        log = self._strong.logs[read.location]
        if log.mixed:
            raise Unclear("accesses of other sizes overlap it")
        if len(log.writes) > _MOST_WRITES:
            raise Unclear("it is written too often")
        sight = self._sight(read, log)
        return [option for base in sight.bases for option in self._behind(sight, base, likes)]

    def last(self, location: Location) -> frozenset[int]:
        """What may be there when all threads have ended. Raises ``Unclear``."""
        log = self._strong.logs[location]
        if log.mixed:
            raise Unclear("accesses of other sizes overlap it")
        if len(log.writes) > _MOST_WRITES:
            raise Unclear("it is written too often")
        every = np.ones(len(log.writes), np.bool_)
        sight = _Sight(log, self._ordered(location, log), every, every)
        found = [option.values for base in sight.bases for option in self._behind(sight, base, lambda _: True)]
        return frozenset[int]().union(*found)

    def closed(self, location: Location) -> bool:
        """Whether a counter is stored to behind the atomic operation that is to come last there, and nowhere else,
        whatever this acquires.

        The last one finds what the one before it leaves, and so on down to the first: each is observed by the next
        (8.9.2), so that it precedes what is stored in causality order (8.9.5), and does not find it."""
        log, strong = self._strong.logs[location], self._strong
        here = arrivals(location, log)
        every = frozenset(arrival for arrival in here if arrival is not None)
        last = [at for at, one in enumerate(here) if one and strong.plan.last.get(one, frozenset()) == every - {one}]
        stored = [at for at, one in enumerate(here) if one is None and log.writes[at].thread != INITIAL]
        if log.mixed or len(last) != 1 or not _order(strong, log)[last[0], stored].all():
            return False
        ends = {(write.level, write.thread) for write, one in zip(log.writes, here, strict=True) if one}
        return all(strong.mutual(*one, *other) for one in ends for other in ends if one != other)

    def lasting(self, read: Read) -> frozenset[int]:
        """What a loop that waits may find for ever, beyond what has been found. Raises ``Unclear``."""
        log = self._strong.logs[read.location]
        sight = self._sight(read, log)
        last = max(at for at in range(read.seen) if _is_base(log.writes[at]))
        values: set[int] = set()
        for base in sight.bases:
            forced, free = sight.segment(base)
            if base < last and sight.order[base, last]:
                continue
            done = [at for at in free if at < read.seen] if base == last else []
            rest = [at for at in free if at not in done]
            values |= _values(log, base, [*forced, *done], _counted(log, rest))
        return frozenset(values)

    def covered(self, read: Read, option: Option, level: int) -> Callable[[Release], bool]:
        """Whether who finds something of ``option`` and acquires from it, in a scope so wide, gets a release too."""
        strong, clocks = self._strong, self._strong.clocks
        log = strong.logs[read.location]
        found: set[Release] = set()
        forced, free = self._sight(read, log).segment(option.base)
        if self._observed([log.writes[at] for at in (option.base, *forced, *free)], read):
            for at in (option.base, *option.sure):
                found |= strong.usable(log.writes[at].heads, level, read.thread)
        home = int(clocks.cta[read.thread])
        key = frozenset(found), home
        if key not in self._heard:
            self._heard[key] = clocks.joined(home, NOTHING, found) if found else NOTHING
        view = np.array([self._heard[key]])

        def told(release: Release) -> bool:
            if release in found or release.fenced:
                return release in found
            agent, clock = np.array([release.agent]), np.array([release.clock])
            return bool(clocks.after(view, agent - agent - 1, agent, clock)[0])

        return told

    def _observed(self, writes: list[Write], read: Read) -> bool:
        """Whether all of ``writes`` that are strong, and ``read``, are in each other's scope."""
        clocks, strong = self._strong.clocks, self._strong
        ends = [(read.level, read.thread), *((w.level, w.thread) for w in writes if w.level != WEAK)]
        ctas = {int(clocks.cta[thread]) for _, thread in ends}
        level = min(level for level, _ in ends)
        if level == ALL or len(ctas) == 1:
            return level != WEAK
        first = min(ctas)
        return level in (CLUSTER, GPU) and all(strong.includes(level, first, cta) for cta in ctas)

    def _ordered(self, location: Location, log: Log) -> Flags:
        if location not in self._orders:
            order = _order(self._strong, log)
            self._orders[location] = order if not self._strong.plan.last else self._with_last(order, location)
        return self._orders[location]

    def _sight(self, read: Read, log: Log) -> _Sight:
        """How a read of this execution sees a log."""
        if id(read) not in self._sights:
            self._sights[id(read)] = self._seen(read, log)
        return self._sights[id(read)]

    def _seen(self, read: Read, log: Log) -> _Sight:
        clocks = self._strong.clocks
        order = self._ordered(read.location, log)
        thread, clock, view = (np.array([getattr(w, name) for w in log.writes]) for name in ("thread", "clock", "view"))
        own, same = np.maximum(thread, 0), np.full(len(thread), read.thread)
        number = np.arange(len(thread))
        before = (number < read.seen) & clocks.after(np.full(len(own), read.view), same, own, clock)
        before[thread == INITIAL] = True
        behind = (number >= read.seen) & clocks.after(view, own, same, np.full(len(own), read.clock))
        if read.kind == "atomic":
            before |= self._sooner(order, read)
            behind |= order[read.seen]
            behind[read.seen] = True
        return _Sight(log, order, before, ~behind)

    def _sooner(self, order: Flags, read: Read) -> Flags:
        """The writes before an atomic operation that comes last: the others, and what comes before these. What it
        comes after as it has acquired it does not count."""
        found = np.zeros(len(order), np.bool_)
        if self._strong.plan.last:
            here = arrivals(read.location, self._strong.logs[read.location])
            own = here[read.seen]
            others = frozenset() if own is None else self._strong.plan.last.get(own, frozenset())
            for at, other in enumerate(here):
                if other in others:
                    found |= order[:, at]
                    found[at] = True
        return found

    def _with_last(self, order: Flags, location: Location) -> Flags:
        """The order of writes with that of the atomic operations that come last, which is one of coherence only."""
        found = order.copy()
        here = arrivals(location, self._strong.logs[location])
        for arrival, others in self._strong.plan.last.items():
            if arrival in here:
                last = here.index(arrival)
                behind = found[last].copy()
                behind[last] = True
                for at, other in enumerate(here):
                    if other in others:
                        before = found[:, at].copy()
                        before[at] = True
                        found |= np.outer(before, behind)
        return found

    def together(self, read: Read) -> frozenset[Arrival] | None:
        """The atomic operations that may come before or after that of ``read``, and this, whatever they acquire; None
        if some of them are ordered."""
        log = self._strong.logs[read.location]
        order = self._unacquired(read.location, log)
        here = arrivals(read.location, log)
        every = [at for at, arrival in enumerate(here) if arrival and not order[at, read.seen] | order[read.seen, at]]
        if order[np.ix_(every, every)].any():
            return None
        return frozenset(arrival for at in every if (arrival := here[at]) is not None)

    def _unacquired(self, location: Location, log: Log) -> Flags:
        """The order of writes without what atomic operations acquire themselves."""
        clocks = self._strong.clocks
        found = _order(self._strong, log)
        thread, clock = (np.array([getattr(w, name) for w in log.writes]) for name in ("thread", "clock"))
        for read in self._strong.reads:
            if read.kind == "atomic" and read.location == location:
                same, view = np.full(read.seen, read.thread), np.full(read.seen, read.view)
                before = clocks.after(view, same, np.maximum(thread[: read.seen], 0), clock[: read.seen])
                found[1 : read.seen, read.seen] = before[1:]
        return self._with_last(found, location)

    def _behind(self, sight: _Sight, base: int, likes: Callable[[int], bool]) -> Iterator[Option]:
        """What may be found of one base, if it may be liked."""
        log = sight.log
        forced, free = sight.segment(base)
        every = _counted(log, free)
        values = frozenset(filter(likes, sight.values(base, every)))
        if not values:
            return
        sure = list(forced)
        known: dict[tuple[tuple[Kind, int], ...], bool] = {}
        order = sight.order[np.ix_(free, free)] if free else np.zeros((0, 0), np.bool_)
        for number, at in enumerate(free):
            gone = _counted(log, [at, *(free[other] for other in np.flatnonzero(order[number]).tolist())])
            left = ((kind, count - gone.get(kind, 0)) for kind, count in every.items())
            key = tuple(sorted((item for item in left if item[1]), key=repr))
            if key not in known:
                known[key] = any(map(likes, sight.values(base, dict(key))))
            if not known[key]:
                sure.append(at)
        yield Option(base, tuple(sure), values)


class _Sight(Struct):
    """The writes of a log as a read sees them: which come one before the other, which come ``before`` the read, and
    which it may find."""

    log: Log
    order: Flags
    before: Flags
    possible: Flags
    _bases: list[int] | None = None
    _segments: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    _values: dict[tuple[int, frozenset[tuple[Kind, int]]], set[int]] = field(default_factory=dict)

    @property
    def bases(self) -> list[int]:
        """The writes that do not depend on others and that nothing hides. Raises ``Unclear``."""
        if self._bases is None:
            self._bases = self._unhidden()
        return self._bases

    def values(self, base: int, free: dict[Kind, int]) -> set[int]:
        """What is there after a base, the operations of its segment that come before the read, and any of ``free``.
        Raises ``Unclear``."""
        key = base, frozenset(free.items())
        if key not in self._values:
            self._values[key] = _values(self.log, base, self.segment(base)[0], free)
        return self._values[key]

    def _unhidden(self) -> list[int]:
        writes, possible = self.log.writes, self.possible
        every = [at for at in np.flatnonzero(possible).tolist() if _is_base(writes[at])]
        hiding = [at for at in every if self.before[at]]
        found = [at for at in every if not self.order[at, hiding].any()]
        for at in np.flatnonzero(possible).tolist():
            if not _is_base(writes[at]):
                others = np.array([base for base in found if base != at], np.int64)
                if not np.where(others < at, self.order[others, at], self.order[at, others]).all():
                    raise Unclear("stores and atomic operations are not ordered")
        return found

    def segment(self, base: int) -> tuple[list[int], list[int]]:
        """The atomic operations behind a base and before the next one: those that are before the read, the others."""
        if base not in self._segments:
            self._segments[base] = self._divided(base)
        return self._segments[base]

    def _divided(self, base: int) -> tuple[list[int], list[int]]:
        writes = self.log.writes
        every = np.flatnonzero(self.possible & self.order[base])
        between = np.array([at for at in every.tolist() if _is_base(writes[at])], np.int64)
        here = [at for at in every.tolist() if not _is_base(writes[at]) and not self.order[between, at].any()]
        return [at for at in here if self.before[at]], [at for at in here if not self.before[at]]


def _is_base(write: Write) -> bool:
    return write.change is None or write.change[0] == "exch"


def _order(strong: Strong, log: Log) -> Flags:
    """Which writes of a log come before which, in base causality order."""
    clocks = strong.clocks
    thread, clock, view = (np.array([getattr(w, name) for w in log.writes]) for name in ("thread", "clock", "view"))
    count = len(thread)
    found = np.zeros((count, count), np.bool_)
    own = np.maximum(thread, 0)
    for at in range(count):
        earlier = slice(0, at)
        found[earlier, at] = clocks.after(np.full(at, view[at]), np.full(at, own[at]), own[earlier], clock[earlier])
    found[0, 1:] = True
    return found


def _counted(log: Log, numbers: list[int]) -> dict[Kind, int]:
    """How many of each kind some atomic operations are."""
    found: dict[Kind, int] = {}
    for at in numbers:
        change = log.writes[at].change
        assert change is not None
        found[change] = found.get(change, 0) + 1
    return found


def _values(log: Log, base: int, forced: list[int], free: dict[Kind, int]) -> set[int]:
    """What is there after ``base``, all of ``forced`` and any of ``free``. Raises ``Unclear``."""
    start = log.writes[base].value
    kinds = {**_counted(log, forced), **free}
    if start is None or any(operand is None or type_.kind in ("f", "bf") for _, type_, operand in kinds):
        raise Unclear("what is written there is not worked out")
    names = {(op, type_.signed, type_.bits) for op, type_, _ in kinds}
    if len(kinds) > 1 and (len(names) > 1 or not all(op in ORDERLESS for op, _, _ in kinds)):
        raise Unclear("its atomic operations give another result in another order")
    for at in forced:
        change = log.writes[at].change
        assert change is not None
        start = _changed(start, change)
    found = {start}
    for kind, count in free.items():
        grown = set(found)
        for _ in range(count):
            found = {_changed(value, kind) for value in found}
            grown |= found
            if len(grown) > _MOST_VALUES:
                raise Unclear("too many values may be there")
        found = grown
    return found


def _changed(value: int, kind: Kind) -> int:
    op, type_, operand = kind
    assert operand is not None
    return arithmetic.compute(op, type_, value, operand)
