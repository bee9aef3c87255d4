"""What there is before anything is read: a path of each thread, and a way in which the barriers turn out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ptxmm.cat import Model
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.explicit.prefixes import awaited
from ptxmm.events.explicit.barriers import Meeting, meetings
from ptxmm.events.explicit.barriers.exchanges import Links, resolve
from ptxmm.events.explicit.domains import Domains, possible_values, traces
from ptxmm.events.explicit.interpreter import Undecided, programs
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.refusals import refuse_noncoherent_loads
from ptxmm.events.explicit.relations.execution import Scene
from ptxmm.events.explicit.trace import Position, Trace
from ptxmm.events.explicit.values.node import Node, leaves_of
from ptxmm.program.identity import EventId
from ptxmm.program.latest import Latest

_EVENT_AT_BLOCK = ("bar.sync", "bar.arrive", "bar.red", "warp.sync")
"""Steps whose arrival happens although the thread waits for ever at them."""


class Path(Struct, frozen=True):
    """What is executed of a thread's trace: its first ``length`` events, and of its steps at barriers those that
    complete, ``passed`` (a thread may wait for ever half-way)."""

    trace: Trace
    length: int
    passed: int

    @property
    def constraints(self) -> list[tuple[Node, int]]:
        """What the values must meet for the thread to come this far."""
        return [(node, value) for node, value, position in self.trace.constraints if self.reaches(position)]

    def reaches(self, position: Position) -> bool:
        """Whether the thread comes to ``position``."""
        return position[0] <= self.length and position[1] <= self.passed

    @property
    def beginning(self) -> tuple[object, ...]:
        """What tells the executed parts of two paths of a thread apart."""
        if self.length == len(self.trace.events):
            return id(self.trace), self.length
        return (
            tuple((e.id, e.kind, e.cell, e.barrier, e.mbarrier) for e in self.trace.events[: self.length]),
            len(self.constraints),
            tuple(value for _, value in self.constraints),
        )


def executed(trace: Trace, meeting: Meeting, length: int | None = None, steps: int | None = None) -> Path:
    """What is executed of ``trace``, or of its first ``length`` events and ``steps`` steps: up to the barrier where the
    thread waits, or which it never comes to."""
    reached = meeting.reached[trace.thread]
    if trace.thread in meeting.waiting:
        step = trace.steps[reached - 1]
        return Path(trace, step.event + (step.kind in _EVENT_AT_BLOCK), reached - 1)
    length = len(trace.events) if length is None else length
    if reached < (len(trace.steps) if steps is None else steps):
        length = min(length, trace.steps[reached].event)
    return Path(trace, length, reached)


def outcome(meeting: Meeting) -> tuple[object, ...]:
    """What tells two meetings of the same paths apart."""
    return *(frozenset(m.items()) for m in (meeting.phases, meeting.tokens, meeting.completed)), meeting.order


def links_of(paths: Sequence[Path], meeting: Meeting) -> Links:
    """The results that are made of values of several threads."""
    if not any(path.trace.exchanges for path in paths):
        return {}
    return resolve([path.trace for path in paths], [path.passed for path in paths], meeting.phases)[0]


def needed_tokens(trace: Trace, registers: Sequence[str] = ()) -> Iterator[EventId]:
    """The arrivals of a path whose tokens decide anything: a choice, a value written or what ``registers`` hold."""
    if not trace.tokens:
        return
    nodes = [node for node, _, _ in trace.constraints]
    nodes += [e.value for e in trace.events if e.kind == "W" and e.value is not None]
    nodes += [x.operand for x in trace.exchanges]
    nodes += [trace.registers[name] for name in registers if name in trace.registers]
    needed = {number for node in nodes for number in leaves_of(node)}
    yield from (i for i, number in trace.tokens.items() if number in needed)


class Case(Struct, frozen=True):
    """A choice of paths and of a meeting of barriers.

    ``meeting``: phases, tokens and completed mbarriers. ``bounded``: some thread is cut by the bound; ``deadlocked``:
    none is, none spins, and some thread waits for ever. ``undefined``: why it has no meaning, or None. ``open``: the
    threads that do not end; without any there is a final state. ``begun``: no thread runs that waits for the end of one
    of these, so that what is executed is the beginning of an execution. ``links``: the results made of values of
    several threads.
    """

    paths: tuple[Path, ...]
    meeting: Meeting
    bounded: bool
    deadlocked: bool
    undefined: str | None
    open: frozenset[int]
    begun: bool
    links: Links

    @property
    def complete(self) -> bool:
        """Whether every thread ends."""
        return self.meeting.misuse is None and not self.open

    @property
    def sources(self) -> tuple[tuple[int, ...], ...]:
        """What tells the links of two cases apart."""
        return tuple((*place, *map(id, link.nodes)) for place, link in self.links.items())

    @property
    def beginning(self) -> tuple[object, ...]:
        """What tells two cases apart: threads that end early have a beginning in common on many paths."""
        return *(p.beginning for p in self.paths), *outcome(self.meeting), self.undefined, self.sources

    @property
    def shape(self) -> tuple[object, ...]:
        """What tells the events of two cases apart."""
        return *((id(p.trace), p.length) for p in self.paths), self.sources, self.open


_Paths = tuple[list[list[Trace]], Domains | None]
_latest: Latest[_Paths] = Latest(2)


class Cases:
    """The cases of one test. ``registers``: those whose final values matter, each with its thread; ``check`` is called
    often."""

    __slots__ = ("_check", "_ordered", "_readings", "_registers", "_scene", "_test", "_told")

    def __init__(
        self,
        scene: Scene,
        model: Model,
        readings: Readings,
        registers: Sequence[tuple[int, str]],
        check: Callable[[], None],
    ) -> None:
        self._test = scene.test
        self._scene = scene
        self._readings = readings
        self._registers = registers
        self._check = check
        self._ordered = in_order(scene.test, model)
        self._told = "mblate" in model.names()

    def paths(self, unroll: int) -> _Paths:
        """The paths of each thread, with domains where a choice or torn reads need them."""
        key = self._readings, unroll
        return _latest.get(self._test, key) or _latest.keep(self._test, key, self._executed(unroll))

    def _executed(self, unroll: int) -> _Paths:
        test, readings, check = self._test, self._readings, self._check
        ready = programs(test, readings)
        domains = None
        try:
            found = [traces(p, None, unroll, readings, check) for p in ready]
            needed = any(len(f) > 1 for f in found) or (readings.tear and _open_writes(found))
        except Undecided:
            needed = True
        if needed:
            domains = possible_values(test, ready, unroll, readings, check)
            found = [traces(p, domains, unroll, readings, check) for p in ready]
        possible = [[t for t in f if t.end != "impossible"] for f in found]
        refuse_noncoherent_loads(test, possible)
        return possible, domains

    def of(self, choice: tuple[Trace, ...]) -> Iterator[Case]:
        """The ways in which the barriers turn out along these paths."""
        steps, ended = [t.steps for t in choice], [t.end == "end" for t in choice]
        registers = [[name for t, name in self._registers if t == trace.thread] for trace in choice]
        tokens = {i for t, names in zip(choice, registers, strict=True) for i in needed_tokens(t, names)}
        for meeting in meetings(
            self._test, self._scene.places, steps, ended, self._check,
            observed=tokens, ordered=self._ordered, told=self._told,
        ):  # fmt: skip
            yield self._case(choice, meeting)

    def _case(self, choice: tuple[Trace, ...], meeting: Meeting) -> Case:
        paths = tuple(executed(t, meeting) for t in choice)
        going = [p.trace for p in paths if p.length == len(p.trace.events) and p.trace.thread not in meeting.waiting]
        ends = {trace.end for trace in going}
        open_ = frozenset(range(len(paths))) - {trace.thread for trace in going if trace.end == "end"}
        defined = meeting.misuse is None
        return Case(
            paths,
            meeting,
            bounded=defined and "cut" in ends,
            deadlocked=defined and bool(meeting.waiting) and not ends & {"cut", "spin"},
            undefined=meeting.misuse or next((text for p in paths for text in self._strays(p, open_)), None),
            open=open_,
            begun=not open_ or not any(self._awaits(p, p.length, open_) for p in paths),
            links=links_of(paths, meeting),
        )

    def _strays(self, path: Path, open_: frozenset[int]) -> Iterator[str]:
        """The first stray access of a thread, if it comes to it where the threads ``open_`` do not end."""
        if path.trace.outside is not None:
            text, position = path.trace.outside
            if path.reaches(position) and not self._awaits(path, position[0], open_):
                yield text

    def _awaits(self, path: Path, length: int, open_: frozenset[int]) -> bool:
        """Whether some thread of ``open_`` must have ended for a thread to come as far as ``length`` events."""
        threads, direct = self._test.threads, self._readings.next_grid
        events = path.trace.events[:length] if open_ else ()
        return any(not open_.isdisjoint(awaited(e, threads, path.trace.thread, direct)) for e in events)


def _open_writes(found: Sequence[Sequence[Trace]]) -> bool:
    """Whether some thread writes a value of several bytes that it has read or computed from reads."""
    return any(
        e.kind == "W" and e.value is not None and e.value.value is None and e.cell is not None and e.cell[2] > 1
        for paths in found
        for t in paths
        for e in t.events
    )
