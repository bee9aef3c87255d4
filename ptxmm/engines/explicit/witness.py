"""Confirms an execution: runs the program again with the values its reads returned, and checks everything anew.

Nothing of the engine that found the witness is trusted: values, sources, orders, phases, final values and every
axiom of the model are checked from the instructions and from the text of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cat import Axiom, Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.shipped import is_shipped
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.explicit.cases import Path, executed
from ptxmm.engines.explicit.final import Finals, memory_terms
from ptxmm.engines.explicit.frame import Frame, Unconfirmed
from ptxmm.engines.explicit.kept import Kept
from ptxmm.engines.explicit.prefixes import awaited
from ptxmm.engines.result import Observed, Witness
from ptxmm.events.explicit import barriers
from ptxmm.events.explicit.barriers import Meeting
from ptxmm.events.explicit.barriers.exchanges import Links, resolve
from ptxmm.events.explicit.interpreter import Missing, programs
from ptxmm.events.explicit.readings import Readings, readings
from ptxmm.events.explicit.relations.base import base_of
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.relations.tags import scope_of
from ptxmm.events.explicit.together import Run, Together, exchanged_as_given
from ptxmm.events.explicit.trace import Cell, Step, Trace
from ptxmm.program.condition import State, evaluate
from ptxmm.program.identity import EventId
from ptxmm.program.latest import Latest
from ptxmm.program.test import Test

__all__ = ("Confirmer", "Rebuilt", "Unconfirmed")

_FRAMES = 1 << 21
"""How much may be kept of choices of paths: of each the bits of a relation, and what goes with any."""
_MEETINGS = 1 << 14
"""How many steps of barriers, in all ways in which they turn out, are remembered."""


_COUNTED = ("warp.sync", "cluster.arrive", "cluster.wait")
_OF_CTA = ("bar.sync", "bar.arrive", "bar.red")
"""Steps at barriers whose phases a thread counts by itself: the former always, these if all threads come each time."""

Phases = Mapping[EventId, int | None]


class Rebuilt(Struct, frozen=True):
    """An execution rebuilt from a witness: its events (``layout``), the values of its relations (``evaluator``; those
    that are not defined in the model by name through ``base``), what each write has written, by number (0 for other
    events), the ``values`` of a witness, all of them known, and coherence order. ``misuse``: what it does that has no
    meaning beside flags of the model, or None."""

    layout: Layout
    evaluator: Evaluator[int, int]
    base: Callable[[str], int | None]
    written: Sequence[int]
    values: Mapping[EventId, int]
    co: int
    traces: Sequence[Trace]
    meeting: Meeting
    misuse: str | None = None

    def violated(self) -> Iterator[tuple[Axiom, int]]:
        """The checks of the model that do not hold, flags left out, each with the value that it is about."""
        satisfies = self.layout.algebra.satisfies
        for axiom, value in self.evaluator.constraints():
            if not satisfies(axiom.kind, axiom.negated, value):
                yield axiom, value

    def scope(self, number: int) -> str | None:
        """The scope of an event, None if it has none."""
        return scope_of(self.layout.events[number])

    def register(self, thread: int, name: str) -> int:
        """What a register holds in the end: every read has a value."""
        node = self.traces[thread].registers.get(name)
        return 0 if node is None else node.value or 0


class _Ground:
    """What no model decides: what the threads do with given values, and the events of their paths."""

    __slots__ = ("layouts", "scene", "together")

    def __init__(self, test: Test, given: Readings) -> None:
        self.scene = Scene(test)
        self.together = Together(programs(test, given), given)
        self.layouts: Kept[object, Layout] = Kept(_FRAMES)


_latest: Latest[_Ground] = Latest(2)


class Confirmer:
    """Confirms witnesses of one test under one model; keeps what does not change between them."""

    __slots__ = (
        "_filter", "_frames", "_layouts", "_meetings", "_model", "_ordered", "_readings", "_scene", "_test",
        "_together", "_total",
    )  # fmt: skip

    def __init__(self, test: Test, model: Model) -> None:
        self._test = test
        self._model = model
        self._readings = given = readings(model.readings, is_shipped(model))
        ground = _latest.get(test, given) or _latest.keep(test, given, _Ground(test, given))
        self._scene, self._together, self._layouts = ground.scene, ground.together, ground.layouts
        self._total = "sync_fence" in model.names()
        self._ordered = in_order(test, model)
        self._filter = memory_terms(test.filter)
        self._frames: Kept[object, Frame] = Kept(_FRAMES)
        self._meetings: Kept[object, Sequence[Meeting]] = Kept(_MEETINGS)

    def confirm(self, observed: Observed, witness: Witness) -> State:
        """The observed part of the final state of the execution that ``witness`` describes.

        Raises ``Unconfirmed`` if it is no consistent execution, ends in no final state, or fails the test's filter.
        """
        if witness.unroll is not None:
            raise Unconfirmed("the beginning of an execution has no final state")
        frame, rebuilt = self._rebuild(witness)
        self._judge(rebuilt)
        return self._state(frame.finals(observed, self._filter), rebuilt, observed, witness)

    def allowed(self, witness: Witness) -> Rebuilt:
        """As ``rebuild``, of what the model allows: where several misuses of barriers are alike, one that it allows."""
        failed: Unconfirmed | None = None
        for number in range(len(self._meetings_of(self._run(witness), witness))):
            try:
                rebuilt = self._rebuild(witness, number)[1]
                self._judge(rebuilt)
                return rebuilt
            except Unconfirmed as error:
                failed = failed or error
        raise failed or Unconfirmed("the barriers can't be misused like this")

    def _judge(self, rebuilt: Rebuilt) -> None:
        for axiom, _ in rebuilt.violated():
            raise Unconfirmed(f"axiom {axiom.name} of {self._model.name} does not hold")

    def rebuild(self, witness: Witness) -> Rebuilt:
        """The execution that ``witness`` describes, or the beginning of one, whether the model allows it or not.

        Raises ``Unconfirmed`` if the program has no such execution.
        """
        return self._rebuild(witness)[1]

    def completed(self, witness: Witness) -> Witness:
        """``witness`` of a program that has other barriers of the warp, the CTA or the cluster, and other fences: with
        phases for these barriers, the k-th for what comes to one for the k-th time, and with a Fence-SC order, if there
        is one in which all happens one after the other. Whether this is an execution ``rebuild`` says.

        Raises ``Unconfirmed`` as ``rebuild`` does.
        """
        if not witness.deadlocked:
            traces = [run.trace for run in self._run(witness)]
            witness = replace(witness, phases=_counted(traces, witness.phases))
        _, meeting, _, _, frame, written = self._executed(witness, 0)
        return replace(witness, fence_sc=frame.in_line(written, witness, meeting))

    def _rebuild(self, witness: Witness, number: int = 0) -> tuple[Frame, Rebuilt]:
        if witness.deadlocked and witness.unroll is None:
            raise Unconfirmed("an execution in which a thread waits for ever has no final state")
        for _ in witness.open:  # each time one more of them is what its sources hold
            *_, frame, written = self._executed(witness, number)
            values = frame.settled(written, witness)
            if values == witness.values:
                break
            witness = replace(witness, values=values)
        runs, meeting, paths, open_, frame, written = self._executed(witness, number)
        traces = [run.trace for run in runs]
        rf = frame.reads_from(written, witness)
        co = frame.coherence(witness.co)
        fsc = frame.fence_sc(witness.fence_sc)
        if not frame.layout.algebra.acyclic(rf.union | frame.makes_values):
            raise Unconfirmed("a value is made of itself")
        base = base_of(frame.layout, rf, co, fsc, frame.phases(meeting), written)
        evaluator = frame.evaluator(meeting, base)
        misuse = meeting.misuse or self._stray(paths, open_)
        return frame, Rebuilt(frame.layout, evaluator, base, written, witness.values, co, traces, meeting, misuse)

    def _executed(
        self, witness: Witness, number: int
    ) -> tuple[list[Run], Meeting, list[Path], frozenset[int], Frame, list[int]]:
        """What the threads do with the values of the witness and the run of the barriers of this ``number``, which of
        them come to no end, and what is written."""
        runs = self._run(witness)
        meetings = self._meetings_of(runs, witness)
        meeting = meetings[min(number, len(meetings) - 1)]
        paths = [executed(run.trace, meeting) for run in runs]
        open_ = frozenset(p.trace.thread for p in paths if not _ends(p, meeting))
        frame = self._frame(runs, paths, self._exchanges(paths, witness), open_)
        written = [value for run, path in zip(runs, paths, strict=True) for value in run.written[: path.length]]
        return runs, meeting, paths, open_, frame, [*written, *frame.initial]

    def _stray(self, paths: Sequence[Path], open_: frozenset[int]) -> str | None:
        """The first thing without meaning that a thread does, if any, in a beginning of an execution; no thread may
        run that waits for the end of one of ``open_``."""
        for path in paths:
            for event in path.trace.events[: path.length] if open_ else ():
                if open_.intersection(awaited(event, self._test.threads, path.trace.thread, self._readings.next_grid)):
                    raise Unconfirmed("a grid begins that waits for one that does not end")
        found = (p.trace.outside for p in paths)
        return next((o[0] for p, o in zip(paths, found, strict=True) if o is not None and p.reaches(o[1])), None)

    def _run(self, witness: Witness) -> list[Run]:
        beginning = witness.unroll is not None
        try:
            runs = self._together.run(witness.values, witness.phases, witness.unroll)
        except Missing as missing:
            raise Unconfirmed(f"the read {missing.args[0]} has no value") from None
        for trace in [run.trace for run in runs if not beginning]:
            if trace.end != "end":
                raise Unconfirmed(f"thread {trace.thread} does not reach its end")
            if trace.outside is not None:
                raise Unconfirmed(trace.outside[0])
        needed = frozenset().union(*(run.needed for run in runs))
        if (not needed >= witness.values.keys()) if beginning else needed != witness.values.keys():
            raise Unconfirmed("a read or wait that is not executed has a value")
        return runs

    def _exchanges(self, paths: Sequence[Path], witness: Witness) -> Links:
        """The results that are made of values of several threads, which must be those of the run."""
        traces = [p.trace for p in paths]
        links, lost = resolve(traces, [p.passed for p in paths], witness.phases)
        if witness.unroll is not None:
            return links
        if lost is not None:
            raise Unconfirmed(lost)
        if not exchanged_as_given(traces, links):
            raise Unconfirmed("threads get other values from each other than they give")
        return links

    def _frame(self, runs: Sequence[Run], paths: Sequence[Path], links: Links, open_: frozenset[int]) -> Frame:
        shapes = [
            run.shape if path.length == len(run.written) else self._together.shape(path.trace.events[: path.length])
            for run, path in zip(runs, paths, strict=True)
        ]
        key = (*shapes, *(link.shape for link in links.values()), open_)
        found = self._frames.get(key)
        if found is None:
            layout = self._layouts.get(key)
            if layout is None:
                layout = Layout(self._scene, [p.trace.events[: p.length] for p in paths], links, open_)
                self._layouts.keep(key, layout, 4096 + layout.algebra.n**2)
            found = Frame(layout, self._model, self._readings, self._total)
            self._frames.keep(key, found, 4096 + layout.algebra.n**2)
        return found

    def _meetings_of(self, runs: Sequence[Run], witness: Witness) -> Sequence[Meeting]:
        """The run of the barriers that has the phases of the witness, with its tokens and results of waits; where one
        is misused, all that it may be, the most likely one first."""
        steps = tuple(run.steps for run in runs)
        order = witness.order if self._ordered else ()
        stopped = witness.deadlocked if witness.misuse else None
        key = steps, frozenset(witness.phases.items()), order, stopped, witness.unroll is None
        found = self._meetings.get(key)
        if found is None:
            traces = [run.trace for run in runs]
            phases = _phases(traces, witness)
            if stopped is None:
                alike: Sequence[Meeting] = [self._simulated(traces, phases, witness)]
            else:
                alike = self._misuses(traces, phases, stopped)
            found = self._meetings.keep(key, alike, len(alike) * (1 + len(phases)))
        return found

    def _simulated(self, traces: Sequence[Trace], phases: Phases, witness: Witness) -> Meeting:
        steps, ended = [t.steps for t in traces], [t.end == "end" for t in traces]
        everyone = tuple(map(len, steps))
        tokens = {i: witness.values[i] for t in traces for i in t.tokens}
        order = witness.order if self._ordered else None
        for meeting in barriers.meetings(
            self._test, self._scene.places, steps, ended, _no_check, phases, tokens=tokens, order=order
        ):
            over = witness.unroll is not None or (not meeting.waiting and meeting.reached == everyone)
            alike = meeting.phases == phases and tokens.items() <= meeting.tokens.items()
            if meeting.misuse is None and over and alike:
                return meeting
        raise Unconfirmed("the barriers can't form these phases")

    def _misuses(self, traces: Sequence[Trace], phases: Phases, stopped: frozenset[EventId]) -> Sequence[Meeting]:
        """The runs of the barriers with these phases in which one is misused and threads go no further than where they
        have ``stopped``; first those that are most like it."""
        last = {i.thread: i for i in stopped}
        steps = [_up_to(t.steps, last.get(t.thread)) for t in traces]
        ended = [t.end == "end" and len(mine) == len(t.steps) for t, mine in zip(traces, steps, strict=True)]
        found = barriers.meetings(self._test, self._scene.places, steps, ended, _no_check, told=True)
        misused = (m for m in found if m.misuse is not None)
        alike = [m for m in misused if all(phases.get(i, p) == p for i, p in m.phases.items())]
        if not alike:
            raise Unconfirmed("the barriers can't be misused like this")

        def held(m: Meeting) -> Meeting:
            there = (
                t for t, i in last.items() if steps[t][-1:] and steps[t][-1].id == i and m.reached[t] == len(steps[t])
            )
            return replace(m, waiting=m.waiting.union(there))

        return sorted(map(held, alike), key=lambda m: len(phases.keys() & m.phases.keys()), reverse=True)

    def _state(self, finals: Finals, rebuilt: Rebuilt, observed: Observed, witness: Witness) -> State:
        for memory in self._memories(finals, rebuilt, observed, witness):
            if self._test.filter is not None:
                registers = {(t.thread, n): v.value or 0 for t in rebuilt.traces for n, v in t.registers.items()}
                if not evaluate(self._test.filter, State(registers, memory)):
                    continue
            return State(
                {(r.thread, r.register): rebuilt.register(r.thread, r.register) for r in observed.registers},
                {(m.key, m.index): memory[m.key, m.index] for m in observed.memory},
            )
        raise Unconfirmed("the final state fails the filter of the test")

    def _memories(
        self, finals: Finals, rebuilt: Rebuilt, observed: Observed, witness: Witness
    ) -> Iterator[dict[tuple[str, int], int]]:
        """The final memories that the last writes of the witness leave; one, where no filter asks for more."""
        completed = rebuilt.meeting.completed
        key = rebuilt.co, witness.last, tuple(rebuilt.written), frozenset(completed.items())
        known = finals.known.get(key)
        if known is not None:
            yield known
            return
        options = finals.options(rebuilt.co)
        chosen = _last_writes(rebuilt.layout, finals, options, observed, witness)
        # Every leaf has a value in a run with given values.
        for last in finals.lasts(finals.distinct(options, rebuilt.written), chosen):
            memory = finals.memory(last, rebuilt.written, completed)
            if self._test.filter is None:
                finals.known.keep(key, memory)
            yield memory


def _counted(traces: Sequence[Trace], phases: Phases) -> Phases:
    """``phases``, with those of warp and cluster barriers, and of barriers of CTAs that have none, counted anew."""
    found = dict(phases)
    for trace in traces:
        count = Counter[tuple[str, str, int]]()
        for step in trace.steps:
            if step.kind in _COUNTED or (step.kind in _OF_CTA and step.id not in phases):
                key = step.kind, step.operation, step.number
                found[step.id] = count[key]
                count[key] += 1
    return found


def _phases(traces: Sequence[Trace], witness: Witness) -> Phases:
    """The phases of the steps of barriers that the threads execute; exchanges are known from the threads alone."""
    steps = [s for trace in traces for s in trace.steps]
    known, loose = {s.id for s in steps}, {s.id for s in steps if s.kind == "warp.exchange"}
    phases = {i: phase for i, phase in witness.phases.items() if i not in loose}
    if witness.misuse or (witness.unroll is not None and any(t.outside is not None for t in traces)):
        return {i: phase for i, phase in phases.items() if i in known}  # without what comes after that
    if not known >= phases.keys():
        raise Unconfirmed("the phases are not those of the barriers executed")
    return phases


def _up_to(steps: Sequence[Step], last: EventId | None) -> Sequence[Step]:
    """``steps`` to the ``last`` one that a thread comes to; all where it is not among them."""
    return next((steps[: at + 1] for at, step in enumerate(steps) if step.id == last), steps)


def _ends(path: Path, meeting: Meeting) -> bool:
    """Whether a thread reaches its end."""
    complete = path.length == len(path.trace.events) and path.trace.thread not in meeting.waiting
    return complete and path.trace.end == "end"


def _last_writes(
    layout: Layout, finals: Finals, allowed: Mapping[Cell, Sequence[int]], observed: Observed, witness: Witness
) -> dict[Cell, int]:
    """The last write of each slot that the witness names; every observed byte must be among them."""
    chosen: dict[Cell, int] = {}
    shown: set[tuple[str, int]] = set()
    for source in witness.last:
        end = source.offset + source.size
        shown.update((source.key, i) for i in range(source.offset, end))
        for slot, writes in allowed.items():
            if slot[0] != source.key or slot[1] >= end or source.offset >= slot[1] + slot[2]:
                continue
            w = None if source.write is None else layout.numbers.get((source.write, "W"))
            if w is None or w not in writes:
                raise Unconfirmed(f"the last write of {slot[0]} is not maximal in coherence order")
            if chosen.setdefault(slot, w) != w:
                raise Unconfirmed(f"two last writes for one location of {slot[0]}")
    for term in observed.memory:
        for part in finals.pieces.get(term, ()):
            if any((part.key, part.offset + i) not in shown for i in range(part.size)):
                raise Unconfirmed(f"no last write for {term.key}")
    return chosen


def _no_check() -> None:
    """No deadline: the simulation of given phases is short."""
