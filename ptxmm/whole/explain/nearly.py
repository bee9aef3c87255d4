"""What almost orders two accesses that race: the synchronization between them, and what of it fails (PTX ISA 8.8, 8.9).

Two accesses ``a`` and ``b`` are almost ordered where ``a`` comes before something that one thread does to synchronize,
``b`` after something that another one does, and these two would order what is before and behind them but for a
condition or two: a scope that is too narrow, a release or an acquire that is missing, a wait for another phase, a
copy of which nobody waits to be done, a proxy fence. Of all such pairs the one of which least fails is told.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator

import numpy as np
from msgspec import Struct

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.explain.tensors import apart
from ptxmm.whole.order.conflicts import Accesses
from ptxmm.whole.order.history import Event, History
from ptxmm.whole.order.strong import WEAK
from ptxmm.whole.order.trace import READ

_BARRIERS = ops.Barrier | ops.BarrierReduction
Step = tuple[int, int]
"""An instruction and the agent that executes it."""


class Nearly(Struct, frozen=True):
    """The ``steps`` between two accesses that almost order them, and what ``fails``, in words; ``what``: the barrier or
    location that it is about."""

    steps: tuple[Step, ...]
    fails: tuple[str, ...]
    what: Hashable = None


class _One(Struct, frozen=True):
    """An event of one agent."""

    kind: str
    what: Hashable
    number: int
    at: int
    agent: int
    clock: int
    view: int
    moment: int
    turn: int

    @property
    def step(self) -> Step:
        return self.at, self.agent


class _Access(Struct, frozen=True):
    """One of the two accesses, in which turn of the execution it is made, what place and bytes it has in memory."""

    turn: int
    extent: tuple[int, int]
    at: int
    agent: int
    clock: int
    view: int
    row: int
    proxy: int
    reads: bool


class Told(Struct, frozen=True):
    """The ``events`` of a history, agent by agent: ``which`` event each row is of, and what is told of the agent."""

    events: list[Event]
    which: Numbers
    agents: Numbers
    clocks: Numbers
    views: Numbers
    moments: Numbers

    def kept(self, rows: Numbers) -> list[_One]:
        """Some of the rows, each as what one agent does."""
        columns = (self.which, self.agents, self.clocks, self.views)
        found = []
        for which, agent, clock, view in zip(*(column[rows].tolist() for column in columns), strict=True):
            it = self.events[which]
            found.append(_One(it.kind, it.what, it.number, it.at, agent, clock, view, it.moment, it.step))
        return found


def told(history: History) -> Told:
    """What a history tells."""
    events = history.events
    which = np.repeat(np.arange(len(events)), [len(event.agents) for event in events])
    none = np.zeros(0, np.int64)
    agents, clocks, views = (
        np.concatenate([none, *(getattr(event, name) for event in events)]) for name in ("agents", "clocks", "views")
    )
    return Told(events, which, agents, clocks, views, np.array([event.moment for event in events], np.int64)[which])


def nearly(machine: Machine, found: Accesses, every: Told, a: int, b: int) -> Nearly:
    """What almost orders the accesses ``a`` and ``b`` of ``found``, which race in the execution of ``machine``, of
    whose history is ``every``."""
    return _Search(machine, every, _access(machine, found, a), _access(machine, found, b)).best()


def _access(machine: Machine, found: Accesses, number: int) -> _Access:
    assert machine.history is not None
    turn = int(np.searchsorted(machine.history.starts, found.row[number], "right"))
    extent = int(found.place[number]), int(found.size[number])
    columns = (found.instruction, found.agent, found.clock, found.view, found.row, found.proxy)
    at, agent, clock, view, row, proxy = (int(column[number]) for column in columns)
    return _Access(turn, extent, at, agent, clock, view, row, proxy, bool(found.kind[number] == READ))


class _Search:
    def __init__(self, machine: Machine, every: Told, a: _Access, b: _Access) -> None:
        self.machine, self.every, self.a, self.b = machine, every, a, b
        self.last: Hashable = None
        """What the other thread has waited for last."""
        self.early: list[_One] = []
        self.behind: dict[str, list[_One]] = {}
        self.before: dict[str, list[_One]] = {}

    def _look(self) -> None:
        """What is told of events behind the one access and before the other."""
        every, thread = self.every, self.machine.copies.thread(self.b.agent)
        ahead = self._before()
        behind, before = every.kept(np.flatnonzero(self._behind())), every.kept(np.flatnonzero(ahead))
        passed = [item for item in before if item.kind in ("pass", "read") and item.agent == thread]
        self.last = passed[-1].what if passed else None
        # What comes before both accesses, and is done by the thread of the first one.
        early = ahead & (every.agents == self.a.agent) & (every.moments <= self.a.row)
        self.early = every.kept(np.flatnonzero(early))
        self.behind = {
            kind: [item for item in behind if item.kind == kind]
            for kind in ("arrive", "write", "wait", "fence", "pass")
        }
        self.before = {
            kind: [item for item in before if item.kind == kind]
            for kind in ("pass", "read", "arrive", "wait", "fence", "write")
        }

    def best(self) -> Nearly:
        """The pair of which least fails."""
        if (ordered := self._proxies()) is not None:
            return ordered
        rows = ((x.at, x.agent, x.clock, x.row) for x in (self.a, self.b))
        if (text := apart(self.machine, self.every.events, *rows)) is not None:
            return Nearly((), (text,))
        self._look()
        ways = self._scopes(), self._groups(), self._flags(), self._phases(), self._too_early(), self._unwaited()
        every = [item for way in ways for item in way]

        def rank(item: Nearly) -> tuple[int, bool]:
            return len(item.fails), item.what is not None and item.what != self.last

        return min(every, key=rank, default=Nearly((), (self._nothing(),)))

    # -- what comes behind one access, or before the other --

    def _behind(self) -> Flags:
        """For which agents an event comes after the access ``a``."""
        every = self.every
        same = every.agents == self.a.agent
        if self.a.agent < self.machine.clocks.threads:
            own = same & (self.a.row < every.moments)
        else:
            own = same & (self.a.clock <= every.clocks)
        count = len(every.agents)
        others = np.full(count, self.a.agent), np.full(count, self.a.clock)
        found: Flags = own | (~same & self.machine.clocks.after(every.views, every.agents, *others))
        return found

    def _before(self) -> Flags:
        """For which agents an event comes before the access ``b``."""
        every = self.every
        same = every.agents == self.b.agent
        count = len(every.agents)
        own = np.full(count, self.b.view), np.full(count, self.b.agent)
        known = ~same & self.machine.clocks.after(*own, every.agents, every.clocks)
        found: Flags = (same & (every.moments <= self.b.row)) | known
        return found

    # -- the pairs --

    def _proxies(self) -> Nearly | None:
        """Accesses that base causality order relates, but for a proxy fence (8.9.5)."""
        machine, one = self.machine, np.array([self.b.agent])
        view, other, clock = (np.array([number]) for number in (self.b.view, self.a.agent, self.a.clock))
        if self.a.proxy == self.b.proxy or not machine.clocks.after(view, one, other, clock)[0]:
            return None
        names = [machine.trace.proxies[access.proxy] or "generic" for access in (self.a, self.b)]
        first, second = (name.partition(".")[0] for name in names)
        text = f"no proxy fence between the {first} and the {second} proxy is between them (8.9.5)"
        return Nearly((), (text,))

    def _scopes(self) -> Iterator[Nearly]:
        """Strong accesses of the same bytes, which need no order if they are in each other's scope (8.7)."""
        if self.a.proxy or self.b.proxy or self.a.extent != self.b.extent:
            return
        if all(self._level(access.at) != WEAK for access in (self.a, self.b)):
            pairs = (self.a, self.b), (self.b, self.a)
            fails = [
                self._narrow(one.at, other.agent)
                for one, other in pairs
                if not self._includes(self._level(one.at), one.agent, other.agent)
            ]
            if fails:
                yield Nearly((), tuple(fails))

    def _flags(self) -> Iterator[Nearly]:
        """Writes behind the one access that are read before the other."""
        last: dict[Hashable, list[_One]] = {}
        for write in self.behind["write"]:
            if (write.agent, write.turn) != (self.a.agent, self.a.turn):
                last.setdefault(write.what, []).append(write)
        for read in self.before["read"]:
            if (read.agent, read.turn) == (self.b.agent, self.b.turn):
                continue
            for write in last.get(read.what, ()):
                if write.agent != read.agent and write.moment <= read.moment:
                    yield Nearly((write.step, read.step), tuple(self._unsynchronized(write, read)))

    def _unsynchronized(self, write: _One, read: _One) -> Iterator[str]:
        """Why a write and a read do not synchronize what is before the one with what is behind the other."""
        body = self.machine.body
        for one, other in ((write, read), (read, write)):
            level = self._level(one.at)
            if level == WEAK:
                yield f"`{_text(body[one.at])}` is weak (8.4)"
            elif not self._includes(level, one.agent, other.agent):
                yield self._narrow(one.at, other.agent)
        releases = [f for f in self.behind["fence"] if f.agent == write.agent and f.moment <= write.moment]
        acquires = [f for f in reversed(self.before["fence"]) if f.agent == read.agent and f.moment >= read.moment]
        yield from self._pattern("release", write, read, releases, f"line {_line(body[self.a.at])} and it")
        yield from self._pattern("acquire", read, write, acquires, f"it and line {_line(body[self.b.at])}")

    def _pattern(self, sem: str, one: _One, other: _One, fences: list[_One], between: str) -> Iterator[str]:
        """Why an access is no release or acquire pattern (8.8) for the other thread, with one of ``fences`` beside it,
        the nearest last."""
        body = self.machine.body
        able = [f for f in fences if getattr(body[f.at], "sem", "") in (sem, "acq_rel", "sc")]
        if getattr(body[one.at], "sem", "") in (sem, "acq_rel"):
            return
        if not able:
            text = f"`{_text(body[one.at])}` is no {sem}, and no memory fence is between {between}"
            yield f"no {sem} pattern (8.8): {text}"
        elif not any(self._includes(self._level(f.at), f.agent, other.agent) for f in able):
            yield self._narrow(able[-1].at, other.agent)

    def _arrivals(self) -> Iterator[_One]:
        """For each barrier the first arrival at it behind the one access."""
        first: dict[Hashable, _One] = {}
        for arrival in (*self.behind["arrive"], *self.behind["wait"]):
            if arrival.kind == "wait" and not isinstance(self.machine.body[arrival.at], _BARRIERS):
                continue
            held = first.get(arrival.what)
            if held is None or (arrival.number, self._far(arrival)) < (held.number, self._far(held)):
                first[arrival.what] = arrival
        return iter(first.values())

    def _waits(self, arrival: _One) -> list[_One]:
        """Of each thread the last wait for a phase of a barrier before the other access."""
        found: dict[int, _One] = {}
        for item in self.before["pass"]:
            if item.what == arrival.what and item.agent != arrival.agent:
                found[item.agent] = item
        return sorted(found.values(), key=lambda item: (-item.number, self._far(item)))

    def _phases(self) -> Iterator[Nearly]:
        """Arrivals behind the one access at a phase for which somebody waits before the other."""
        body = self.machine.body
        for arrival in self._arrivals():
            for item in self._waits(arrival)[:1]:
                if item.number >= arrival.number:
                    yield Nearly((arrival.step, item.step), tuple(self._weak(arrival, item)))
                elif isinstance(body[item.at], ops.MbarrierWait):
                    parity = " (by parity)" if getattr(body[item.at], "parity", None) is not None else ""
                    name = self._name(arrival.what)
                    text = f"the wait{parity} passes with phase {item.number} of {name}, and this counts in phase"
                    if item.number < 0:
                        text = (
                            f"the wait{parity} passes before any phase of {name} is complete, and this counts in phase"
                        )
                    yield Nearly((arrival.step, item.step), (f"{text} {arrival.number}",), arrival.what)
            for item in self.before["arrive"]:
                same = item.what == arrival.what and item.number >= arrival.number and item.agent == self.b.agent
                if same and isinstance(body[item.at], ops.Barrier | ops.ClusterBarrier):
                    text = f"`{_text(body[item.at])}` does not wait for {self._name(item.what)}"
                    yield Nearly((arrival.step, item.step), (text,))

    def _too_early(self) -> Iterator[Nearly]:
        """What orders both accesses behind something else that the thread of the first one did before."""
        body = self.machine.body
        for item in reversed(self.early):
            if item.kind in ("arrive", "write") and not isinstance(body[item.at], _BARRIERS):
                text = f"`{_text(body[item.at])}` comes before line {_line(body[self.a.at])}, not after it"
                yield Nearly((item.step,), (text,), item.what)
                return

    def _unwaited(self) -> Iterator[Nearly]:
        """Arrivals behind the one access for which nobody waits before the other."""
        body, cta = self.machine.body, self.machine.clocks.cta[self.b.agent]
        line = _line(body[self.b.at])
        for arrival in self._arrivals():
            waits = [item for item in self._waits(arrival) if item.number >= arrival.number]
            assert isinstance(arrival.what, tuple)
            if waits or self._home(arrival.what) not in (None, cta):  # only threads of its own CTA can wait there
                continue
            name = self._name(arrival.what)
            yield Nearly((arrival.step,), (f"no wait for phase {arrival.number} of {name} comes before line {line}",))

    def _home(self, what: tuple[Hashable, ...]) -> int | None:
        """The CTA of which threads wait at a barrier or an mbarrier."""
        if what[0] == "barrier":
            assert isinstance(what[1], int)
            return what[1]
        if what[0] == "mbarrier":
            assert isinstance(what[1], int)
            memory = self.machine.memory
            return memory.instances[int(memory.instance_of(np.array([what[1]]))[0])].owner
        return None

    def _far(self, item: _One) -> bool:
        """Whether an event is of another thread than those of the two accesses."""
        thread = self.machine.copies.thread
        return thread(item.agent) not in (thread(self.a.agent), thread(self.b.agent))

    def _weak(self, arrival: _One, item: _One) -> Iterator[str]:
        """Why an arrival and a wait for its phase do not synchronize."""
        body = self.machine.body
        for one, other in ((arrival, item), (item, arrival)):
            op = body[one.at]
            if getattr(op, "sem", "") == "relaxed":
                yield f"`{_text(op)}` is relaxed"
            if isinstance(op, ops.MbarrierArrive | ops.MbarrierWait):
                level = self.machine.strong.level(op.scope)
                if not self._includes(level, one.agent, other.agent):
                    yield self._narrow(one.at, other.agent)

    def _groups(self) -> Iterator[Nearly]:
        """A copy of a group for which its thread does not wait."""
        machine, body = self.machine, self.machine.body
        op = body[self.a.at]
        kind = "cp.async" if isinstance(op, ops.CopyAsync) else "bulk"
        if not isinstance(op, ops.CopyAsync | ops.BulkCopy) or getattr(op, "mbarrier", None) is not None:
            return
        thread = machine.copies.thread(self.a.agent)
        done = [item for item in self.behind["pass"] if item.what == ("group", kind) and item.agent == thread]
        handed = [item for way in ("arrive", "wait", "write") for item in self.before[way] if item.agent == thread]
        others = [item for item in handed if item.what != ("group", kind) and item.moment > self.a.row]
        if done and machine.copies.thread(self.b.agent) != thread and not others:
            return  # it waits, and hands nothing on
        waits = [item for item in self.before["pass"] if item.what == ("group", kind) and item.agent == thread]
        waits = [item for item in waits if item.moment > self.a.row]
        if not waits:
            text = f"no wait for the group of this copy by its thread comes before line {_line(body[self.b.at])}"
            yield Nearly((), (text,))
            return
        last = max(waits, key=lambda item: item.moment)
        reads = getattr(body[last.at], "read", False) and not self.a.reads
        text = (
            "waits for what this copy reads, not for what it writes" if reads else "leaves the group of this copy open"
        )
        yield Nearly((last.step,), (f"`{_text(body[last.at])}` {text}",))

    # -- in words --

    def _nothing(self) -> str:
        body, clocks = self.machine.body, self.machine.clocks
        same = clocks.cta[self.a.agent] == clocks.cta[self.b.agent]
        near = "barrier, mbarrier or flag" if same else "flag, mbarrier or barrier of the cluster or the grid"
        first, second = _line(body[self.a.at]), _line(body[self.b.at])
        return f"no {near} is between the one thread behind line {first} and the other before line {second}"

    def _narrow(self, at: int, other: int) -> str:
        op = self.machine.body[at]
        return f"the scope .{getattr(op, 'scope', '')} of `{_text(op)}` does not include {self._place(other)} (8.5)"

    def _place(self, agent: int) -> str:
        thread = self.machine.copies.thread(agent)
        cta = thread // self.machine.size
        number = int(self.machine.part[cta])
        part = self.machine.launch.parts[number]
        grid = f" of grid {number}" if len(self.machine.launch.parts) > 1 else ""
        return part.host or f"the threads of CTA {cta - part.first}{grid}"

    def _level(self, at: int) -> int:
        op = self.machine.body[at]
        scope = op.scope if isinstance(op, ops.Load | ops.Store | ops.Atomic | ops.Fence) else None
        return self.machine.strong.level(scope)

    def _includes(self, level: int, one: int, other: int) -> bool:
        cta = self.machine.clocks.cta
        return self.machine.strong.includes(level, int(cta[one]), int(cta[other]))

    def _name(self, what: Hashable) -> str:
        assert isinstance(what, tuple)
        match what[0]:
            case "barrier":
                return f"barrier {what[2]}"
            case "mbarrier":
                return self.machine.mbarriers.name(what[1])
            case "cluster":
                return "the barrier of the cluster"
            case _:
                return f"the {what[0]}"


_SAID = re.compile(r" \((called on line|in [^()]*:[0-9]).*$")
"""What the place of an instruction says beside it (``lower.Locate``)."""


def _text(op: ops.Op) -> str:
    text: str = op.source.text
    return " ".join(_SAID.sub("", text).split()).rstrip(";")


def _line(op: ops.Op) -> int:
    line: int = op.source.span.line
    return line
