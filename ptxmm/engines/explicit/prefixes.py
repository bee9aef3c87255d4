"""What one thread does in an execution that may never end: a path, or its beginning, and what becomes of it then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ptxmm.engines.fairness import State
from ptxmm.events.explicit.trace import Event, Trace
from ptxmm.program.shared.spinning import SPINS, Loop, Spinning
from ptxmm.program.test import Test, Thread

_UNNOTICED = ("R", "F", "PF", "MBW", "MBP", "AW", "GD")
"""Events that no other thread notices."""


class Run(Struct, frozen=True):
    """The first ``length`` events and ``steps`` steps of ``trace``; ``state`` unless a barrier holds the thread up
    before. ``spin``: the program that the trace is of, if it is that of a thread that spins."""

    trace: Trace
    state: State
    length: int
    steps: int
    spin: Spinning | None = None

    @property
    def is_fixpoint(self) -> bool:
        """Whether the two last rounds of a run that spins look at the same in the same order, and do nothing else."""
        spin, trace = self.spin, self.trace
        if spin is None or trace.registers[SPINS].value != 1 or trace.outside is not None:
            return False
        for step in trace.steps:
            if spin.rounds(step.id.instruction) and step.kind != "mb.wait":
                return False
        if any(spin.rounds(x.id.instruction) for x in trace.exchanges):
            return False
        first, second = self.rounds()
        reads = {e.id for e in first if e.kind == "R"}
        quiet = all(e.kind in ("R", "F", "MBW", "MBP", "GD") or (e.kind == "W" and e.id in reads) for e in first)
        return quiet and [self.place(e) for e in first] == [self.place(e) for e in second]

    def rounds(self) -> tuple[list[Event], list[Event]]:
        """The events of the two last rounds of a run that spins."""
        if self.spin is None:
            return [], []
        events = self.trace.events[: self.length]
        first = [e for e in events if e.id.instruction in self.spin.first]
        return first, [e for e in events if e.id.instruction in self.spin.second]

    @property
    def looks(self) -> bool:
        """Whether a run that spins reads something, or asks an mbarrier, in each round."""
        return any(e.kind in ("R", "MBW", "MBP") for e in self.rounds()[0])

    def place(self, event: Event) -> tuple[object, ...]:
        """What an event of one round has in common with that of the other round."""
        assert self.spin is not None
        return self.spin.original(event.id), event.kind, event.cell, event.mbarrier

    def beginning(self, length: int, passed: int) -> tuple[object, ...]:
        """What tells the executed beginnings of two runs of a thread apart."""
        if length == len(self.trace.events):
            return id(self.trace), length, passed
        limits = [c for c in self.trace.constraints if c[2][0] <= length and c[2][1] <= passed]
        events = (
            (e.id, e.kind, e.cell, e.barrier, e.mbarrier, None if e.value is None else e.value.value)
            for e in self.trace.events[:length]
        )
        return id(self.spin), tuple(events), tuple((id(node), value) for node, value, _ in limits), passed

    def awaits(self, threads: Sequence[Thread], thread: int, length: int, direct: bool) -> set[int]:
        """The threads that must have ended for this run of ``thread`` to come as far as ``length`` events."""
        return {u for e in self.trace.events[:length] for u in awaited(e, threads, thread, direct)}

    def is_held(self, threads: Sequence[Thread], thread: int, states: Sequence[State], direct: bool) -> bool:
        """Whether an earlier grid keeps this run of ``thread`` from going on."""
        event = self.trace.events[self.length]
        return any(states[u] != "ends" for u in awaited(event, threads, thread, direct))


def idles(run: Run, found: Sequence[Loop]) -> bool:
    """Whether ``run`` goes round one of the loops ``found`` of its thread, before it leaves it or spins there for ever,
    without doing anything but look: then the run without that round shows as much (docs/progress.md)."""
    for loop in found:
        if not plainly_repeats(loop, found):
            continue
        quiet: dict[int, bool] = {}
        for event in run.trace.events:
            pc = event.id.instruction
            if run.spin is not None and event.op is not None:  # not the start or the end of the thread
                pc = -1 if pc in run.spin.first or pc in run.spin.second else run.spin.origin[pc]
            if pc in loop.body and event.kind != "MBP":
                quiet[event.id.round] = quiet.get(event.id.round, True) and event.kind in ("R", "F")
        spins_here = run.spin is not None and run.spin.loop == loop
        rounds = sorted(quiet) if spins_here or run.state == "cut" else sorted(quiet)[:-1]
        if any(quiet[number] for number in rounds):
            return True
    return False


def plainly_repeats(loop: Loop, found: Sequence[Loop]) -> bool:
    """Whether all rounds of ``loop`` begin alike, and its rounds can be told apart by their numbers: no loop of
    ``found`` is in another."""
    apart = not any(set(other.body) & set(loop.body) for other in found if other is not loop)
    return apart and not loop.carried and not loop.again


def complete_run(trace: Trace, state: State, spin: Spinning | None = None) -> Run:
    """The run of all of ``trace``. A thread that spins has no end that others could wait for."""
    events = trace.events
    length = len(events)
    while state != "ends" and length and _is_end(events[length - 1]):
        length -= 1
    return Run(trace, state, length, len(trace.steps), spin)


def _is_end(event: Event) -> bool:
    """Whether ``event`` is the end of its thread: its exit, or that in API synchronization."""
    return event.kind in ("API", "EX") and event.op is None and event.id.instruction >= 0


def held(test: Test, thread: int, run: Run) -> Iterator[Run]:
    """The beginnings of ``run`` up to where it waits for earlier grids to end."""
    for i, event in enumerate(run.trace.events[: run.length]):
        if awaited(event, test.threads, thread, direct=True):
            yield Run(run.trace, "held", i, _steps(run.trace, i), run.spin)


def stops(runs: Sequence[Run], never: bool) -> Iterator[Run]:
    """The beginnings at which a thread may be left out of the schedule: before it begins, or (unless ``never``) after
    an instruction that others notice. Stopping later, before the next such one, only adds what must hold."""
    seen: set[tuple[object, ...]] = set()
    for run in runs:
        events = [e for e in run.trace.events[: run.length] if e.kind != "EX"]  # who has done all else exits too
        lengths = [0]
        if not never:
            lengths += [
                i
                for i in range(1, len(events))
                if events[i - 1].kind not in _UNNOTICED and events[i - 1].id.instance != events[i].id.instance
            ]
        for length in lengths:
            steps = _steps(run.trace, length)
            key = run.beginning(length, steps) if length else ()
            if length < len(events) and key not in seen:
                seen.add(key)
                yield Run(run.trace, "stops", length, steps, run.spin)


def awaited(event: Event, threads: Sequence[Thread], thread: int, direct: bool) -> list[int]:
    """The threads that must have ended before ``event`` of ``thread``: before its start, unless its grid may overlap
    others, all those of earlier grids; before ``griddepcontrol.wait`` those of the grid before its own (``direct``), or
    all of them too (9.7.14.13)."""
    waits = event.kind == "API" and event.op is not None
    if not waits and (event.kind != "API" or event.id.instruction != -1 or threads[thread].placement.overlap):
        return []
    found = _earlier(threads, thread)
    last = max((threads[u].placement.grid for u in found), default=0)
    return [u for u in found if threads[u].placement.grid == last or not (waits and direct)]


def _earlier(threads: Sequence[Thread], thread: int) -> list[int]:
    """The threads of earlier grids of the GPU of ``thread``."""
    mine = threads[thread].placement
    if mine.host:
        return []
    return [
        u
        for u, other in enumerate(threads)
        if not other.placement.host and other.placement.gpu == mine.gpu and other.placement.grid < mine.grid
    ]


def _steps(trace: Trace, length: int) -> int:
    """How many steps the first ``length`` events contain (asynchronous ones with what issues them)."""
    return sum(step.event < length for step in trace.steps)
