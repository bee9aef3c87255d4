"""Runs all threads with given values; where they give each other values at an exchange, each waits for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from msgspec import Struct, field

from ptxmm.events.explicit.barriers.exchanges import Link, resolve
from ptxmm.events.explicit.interpreter import run
from ptxmm.events.explicit.program import Program
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.trace import Event, Exchange, Trace
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import BarrierReduction, Imm

_MOST = 1 << 14
"""The most questions and events of runs that are kept, and the most shapes."""

_UNROLL = 1 << 16
"""Far beyond any bound of a search, so that only a bogus witness meets it."""


class Run(Struct, frozen=True, eq=False):
    """What a thread does with given values. ``needed``: the events whose values it takes; ``written``: the value of
    each event that is a write, 0 of others; ``shape``: as in ``Together.shape``; ``steps``: a number that is the same
    for runs that look alike to barriers."""

    trace: Trace
    needed: frozenset[EventId]
    written: tuple[int, ...]
    shape: int
    steps: int


class _Question(Struct, frozen=True, eq=False):
    """What all runs ask for that have had the same answers so far: a value, or the results of an exchange."""

    event: EventId
    exchange: bool
    answers: dict[object, _Question | Run] = field(default_factory=dict)


class _Asked(dict[EventId, Any]):
    """What is given to a run; each question of it is noted in ``log``, with its answer."""

    __slots__ = ("exchange", "log")

    def __init__(
        self, given: Mapping[EventId, object], exchange: bool, log: list[tuple[EventId, bool, object]]
    ) -> None:
        super().__init__(given)
        self.exchange = exchange
        self.log = log

    def get(self, event: EventId, default: Any = None) -> Any:
        answer = super().get(event, default)
        self.log.append((event, self.exchange, answer))
        return answer


class Together:
    """All threads, to be run together with many values; what a thread has done once with some is not done again."""

    __slots__ = ("_kept", "_known", "_numbered", "_numbers", "_programs", "_readings")

    def __init__(self, programs: Sequence[Program], readings: Readings) -> None:
        self._programs = programs
        self._readings = readings
        self._known: dict[object, _Question | Run] = {}  # by thread and bound
        self._kept = 0
        self._numbered: dict[object, int] = {}
        self._numbers = count(1)

    def run(
        self, values: Mapping[EventId, int], phases: Mapping[EventId, int | None], unroll: int | None = None
    ) -> list[Run]:
        """One path of each thread; ``values``: as for ``interpreter.run``, ``phases``: those of the barriers.
        ``unroll``: the bound of loops of the beginning of an execution; None: every thread runs to its end.

        A thread stops at an exchange (``Trace.end``) that can't take place. What exchanges give follows from the
        phases: whether the barriers can form these is not checked here. Raises ``Missing`` as ``interpreter.run`` does.
        """
        given: dict[EventId, tuple[int, int]] = {}
        while True:
            runs = [self._run(thread, values, given, unroll) for thread in range(len(self._programs))]
            waiting = {t: r.trace.exchanges[-1] for t, r in enumerate(runs) if r.trace.end == "exchange"}
            if not waiting:
                return runs
            # As if each of them took place with those that have come there.
            traces = [r.trace for r in runs]
            links, _ = resolve(traces, [len(t.steps) for t in traces], phases)
            ready = [t for t in waiting if _ready(self._programs, traces, t, links, phases)]
            if not ready:
                return runs
            given |= {waiting[t].id: _results(t, waiting[t], links) for t in ready}

    def shape(self, events: Sequence[Event]) -> int:
        """A number that is the same for events of a thread that differ in values only."""
        fields = (
            (e.id, e.kind, e.cell, e.place, e.addr, e.data, e.ctrl, e.left, e.barrier, e.mbarrier, e.completes)
            for e in events
        )
        return self._number(tuple(fields))

    def _number(self, key: object) -> int:
        if len(self._numbered) > _MOST:
            self._numbered.clear()  # numbers are not used again
        return self._numbered.get(key) or self._numbered.setdefault(key, next(self._numbers))

    def _run(
        self,
        thread: int,
        values: Mapping[EventId, int],
        given: Mapping[EventId, tuple[int, int]],
        unroll: int | None,
    ) -> Run:
        key: object = thread, unroll
        known = self._known.get(key)
        while isinstance(known, _Question):
            known = known.answers.get((given if known.exchange else values).get(known.event))
        if known is not None:
            return known
        log: list[tuple[EventId, bool, object]] = []
        trace = run(
            self._programs[thread],
            values=_Asked(values, False, log),
            exchanged=_Asked(given, True, log),
            unroll=_UNROLL if unroll is None else unroll,
            readings=self._readings,
            spinning=unroll is None,
            beginning=unroll is not None,
        )
        needed = frozenset((*(e.id for e in trace.reads if e.kind != "X"), *trace.waits))
        tokens = tuple((event, values[event]) for event in trace.tokens)
        steps = self._number((tuple(trace.steps), trace.end == "end", trace.outside is None, tokens))
        found = Run(trace, needed, tuple(map(_written, trace.events)), self.shape(trace.events), steps)
        self._kept += len(log) + len(trace.events)
        if self._kept > _MOST:
            self._known, self._kept = {}, 0
        answers = self._known
        for event, exchange, answer in log:
            question = answers.setdefault(key, _Question(event, exchange))
            assert isinstance(question, _Question)
            answers, key = question.answers, answer
        answers[key] = found
        return found


def _written(event: Event) -> int:
    return event.value.value or 0 if event.kind == "W" and event.value is not None else 0


def exchanged_as_given(traces: Sequence[Trace], links: Mapping[tuple[int, int], Link]) -> bool:
    """Whether every result in ``traces``, which have all values, is what ``links`` make of the operands."""
    for t, trace in enumerate(traces):
        for x in trace.exchanges:
            for number in x.numbers:
                if number >= 0 and ((t, number) not in links or _value(links[t, number]) != trace.given[number]):
                    return False
    return True


def _value(link: Link) -> int:
    return link.value([node.value or 0 for node in link.nodes])


def _results(thread: int, this: Exchange, links: Mapping[tuple[int, int], Link]) -> tuple[int, int]:
    first, second = (_value(links[thread, n]) if n >= 0 else 0 for n in this.numbers)
    return first, second


def _ready(
    programs: Sequence[Program],
    traces: Sequence[Trace],
    thread: int,
    links: Mapping[tuple[int, int], Link],
    phases: Mapping[EventId, int | None],
) -> bool:
    """Whether all that take part in the last exchange of ``thread`` have come to it."""
    this = traces[thread].exchanges[-1]
    number = next(n for n in this.numbers if n >= 0)
    present = {t for t, _ in links[thread, number].sources}
    for t, _ in this.threads:
        if t in present or traces[t].end != "exchange":
            continue
        if this.source >= 0 and t != this.source:
            continue
        if not this.barrier or _comes(programs[t], traces[t], this, phases):
            return False
    return True


def _comes(program: Program, trace: Trace, this: Exchange, phases: Mapping[EventId, int | None]) -> bool:
    """Whether a thread may still come to the reduction ``this``: it has an event of its phase ahead."""
    done = {s.id for s in trace.steps}
    for event, phase in phases.items():
        if event.thread != program.thread or event in done or phase != phases.get(this.id):
            continue
        op = program.test.threads[event.thread].body[event.instruction]
        if isinstance(op, BarrierReduction) and (not isinstance(op.barrier, Imm) or op.barrier.value == this.key[1]):
            return True
    return False
