"""Runs all threads with given values; where they give each other values at an exchange, each waits for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptxmm.events.explicit.barriers.exchanges import Link, resolve
from ptxmm.events.explicit.interpreter import run
from ptxmm.events.explicit.program import Program
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.trace import Exchange, Trace
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import BarrierReduction, Imm

Exchanged = dict[EventId, tuple[int, int]]


def run_together(
    programs: Sequence[Program],
    values: Mapping[EventId, int],
    phases: Mapping[EventId, int | None],
    unroll: int,
    readings: Readings,
    beginning: bool = False,
) -> list[Trace]:
    """One path of each thread; ``values``, ``beginning`` as for ``interpreter.run``, ``phases`` those of the barriers.

    A thread stops at an exchange (``Trace.end``) that can't take place. What exchanges give follows from the phases:
    whether the barriers can form these is not checked here. Raises ``Missing`` as ``run`` does.
    """
    given: Exchanged = {}
    while True:
        traces = [
            run(
                p,
                values=values,
                exchanged=given,
                unroll=unroll,
                readings=readings,
                spinning=not beginning,
                beginning=beginning,
            )
            for p in programs
        ]
        waiting = {t: trace.exchanges[-1] for t, trace in enumerate(traces) if trace.end == "exchange"}
        if not waiting:
            return traces
        # As if each of them took place with those that have come there.
        links, _ = resolve(traces, [len(t.steps) for t in traces], phases)
        ready = [t for t in waiting if _ready(programs, traces, t, links, phases)]
        if not ready:
            return traces
        given |= {waiting[t].id: _results(t, waiting[t], links) for t in ready}


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
