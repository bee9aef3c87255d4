"""Confirms an execution: runs the program again with the values its reads returned, and checks everything anew.

Nothing of the engine that found the witness is trusted: values, sources, orders, phases, final values and every
axiom of the model are checked from the instructions and from the text of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.explicit.candidates import Path, executed
from ptxmm.engines.explicit.final import Finals, memory_terms
from ptxmm.engines.explicit.orders import overlapping_writes
from ptxmm.engines.explicit.precomputed import precomputed_evaluator
from ptxmm.engines.explicit.prefixes import awaited
from ptxmm.engines.result import Observed, Source, Witness
from ptxmm.events.explicit import barriers
from ptxmm.events.explicit.barriers import Meeting
from ptxmm.events.explicit.barriers.exchanges import Links, resolve
from ptxmm.events.explicit.interpreter import Missing, programs
from ptxmm.events.explicit.readings import readings
from ptxmm.events.explicit.relations.barriers import PHASES, phase_relations
from ptxmm.events.explicit.relations.base import WITNESS, base_of, fence_sc_pairs, makes_values
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom, Scene, initial_value
from ptxmm.events.explicit.together import exchanged_as_given, run_together
from ptxmm.events.explicit.trace import Cell, Trace
from ptxmm.program.condition import State, evaluate
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test

# Far beyond any bound of a search, so that only a bogus witness meets it.
_UNROLL = 1 << 16
_DYNAMIC = WITNESS | PHASES


class Unconfirmed(Exception):
    """A witness that is not an execution of the program under the model; the argument says why."""


class _Known(Struct):
    """What is kept of a choice of paths: its layout, an evaluator with the precomputed values, final cells."""

    layout: Layout
    evaluator: Evaluator[int, int]
    makes_values: int
    finals: dict[Observed, Finals]


class Rebuilt(Struct, frozen=True):
    """An execution rebuilt from a witness: its events (``layout``), the values of its relations (``evaluator``; those
    that are not defined in the model by name through ``base``), what each write has written, by number (0 for other
    events), and coherence order. ``misuse``: what it does that has no meaning beside flags of the model, or None."""

    layout: Layout
    evaluator: Evaluator[int, int]
    base: Callable[[str], int | None]
    written: Sequence[int]
    co: int
    traces: Sequence[Trace]
    meeting: Meeting
    finals: dict[Observed, Finals]
    misuse: str | None = None


class Confirmer:
    """Confirms witnesses of one test under one model; keeps what does not change between them."""

    __slots__ = ("_filter", "_known", "_model", "_ordered", "_programs", "_readings", "_scene", "_test", "_total")

    def __init__(self, test: Test, model: Model) -> None:
        self._test = test
        self._model = model
        self._scene = Scene(test)
        self._readings = readings(model.readings)
        self._programs = programs(test, self._readings)
        self._total = "sync_fence" in model.names()
        self._ordered = in_order(test, model)
        self._filter = memory_terms(test.filter)
        self._known: dict[object, _Known] = {}

    def confirm(self, observed: Observed, witness: Witness) -> State:
        """The observed part of the final state of the execution that ``witness`` describes.

        Raises ``Unconfirmed`` if it is no consistent execution, ends in no final state, or fails the test's filter.
        """
        if witness.unroll is not None:
            raise Unconfirmed("the beginning of an execution has no final state")
        return self._state(self.allowed(witness), observed, witness)

    def allowed(self, witness: Witness) -> Rebuilt:
        """As ``rebuild``, of what the model allows."""
        rebuilt = self.rebuild(witness)
        algebra = rebuilt.layout.algebra
        for axiom, value in rebuilt.evaluator.axioms(flags=False):
            if not algebra.satisfies(axiom.kind, axiom.negated, value):
                raise Unconfirmed(f"axiom {axiom.name} of {self._model.name} does not hold")
        return rebuilt

    def rebuild(self, witness: Witness) -> Rebuilt:
        """The execution that ``witness`` describes, or the beginning of one, whether the model allows it or not.

        Raises ``Unconfirmed`` if the program has no such execution.
        """
        if witness.deadlocked and witness.unroll is None:
            raise Unconfirmed("an execution in which a thread waits for ever has no final state")
        traces = self._run(witness)
        meeting = self._meeting(traces, witness)
        paths = [executed(t, meeting) for t in traces]
        open_ = frozenset(p.trace.thread for p in paths if not _ends(p, meeting))
        known = self._layout(paths, self._exchanges(paths, witness), open_)
        written = self._written(known.layout, paths)
        rf = self._reads_from(known.layout, written, witness)
        co = self._coherence(known.layout, witness)
        fsc = self._fence_sc(known.layout, witness)
        algebra = known.layout.algebra
        if not algebra.acyclic(rf.union | known.makes_values):
            raise Unconfirmed("a value is made of itself")
        base = base_of(known.layout, rf, co, fsc, phase_relations(known.layout, meeting.phases, meeting.order))
        evaluator = known.evaluator.changed(_DYNAMIC, base)
        misuse = meeting.misuse or self._stray(paths, open_)
        return Rebuilt(known.layout, evaluator, base, written, co, traces, meeting, known.finals, misuse)

    def _stray(self, paths: Sequence[Path], open_: frozenset[int]) -> str | None:
        """The first thing without meaning that a thread does, if any, in a beginning of an execution; no thread may
        run that waits for the end of one of ``open_``."""
        for path in paths:
            for event in path.trace.events[: path.length] if open_ else ():
                if open_.intersection(awaited(event, self._test.threads, path.trace.thread, self._readings.next_grid)):
                    raise Unconfirmed("a grid begins that waits for one that does not end")
        found = (p.trace.outside for p in paths)
        return next((o[0] for p, o in zip(paths, found, strict=True) if o is not None and p.reaches(o[1])), None)

    def _run(self, witness: Witness) -> list[Trace]:
        beginning = witness.unroll is not None
        unroll = _UNROLL if witness.unroll is None else witness.unroll
        try:
            traces = run_together(self._programs, witness.values, witness.phases, unroll, self._readings, beginning)
        except Missing as missing:
            raise Unconfirmed(f"the read {missing.args[0]} has no value") from None
        needed: set[EventId] = set()
        for trace in traces:
            if trace.end != "end" and not beginning:
                raise Unconfirmed(f"thread {trace.thread} does not reach its end")
            if trace.outside is not None and not beginning:
                raise Unconfirmed(trace.outside[0])
            needed.update(e.id for e in trace.reads if e.kind != "X")
            needed.update(trace.waits)
        if (not needed >= set(witness.values)) if beginning else needed != set(witness.values):
            raise Unconfirmed("a read or wait that is not executed has a value")
        return traces

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

    def _layout(self, paths: Sequence[Path], links: Links, open_: frozenset[int]) -> _Known:
        threads = [p.trace.events[: p.length] for p in paths]
        key = (
            *(
                (e.id, e.kind, e.cell, e.place, e.addr, e.data, e.ctrl, e.left, e.barrier, e.mbarrier, e.completes)
                for events in threads
                for e in events
            ),
            *(link.shape for link in links.values()),
            open_,
        )
        known = self._known.get(key)
        if known is None:
            layout = Layout(self._scene, threads, links, open_)
            evaluator = precomputed_evaluator(self._model, layout, flags=False)
            known = self._known[key] = _Known(layout, evaluator, makes_values(layout), {})
        return known

    def _meeting(self, traces: Sequence[Trace], witness: Witness) -> Meeting:
        """The run of the barriers that has the phases of the witness, with its tokens and results of waits."""
        steps = [t.steps for t in traces]
        everyone = tuple(map(len, steps))
        phases = _phases(traces, witness)
        if witness.misuse:
            return self._misuse(traces, phases)
        tokens = {i: witness.values[i] for t in traces for i in t.tokens}
        for meeting in barriers.meetings(
            self._test,
            self._scene.places,
            steps,
            [t.end == "end" for t in traces],
            _no_check,
            phases,
            tokens=tokens,
            order=witness.order if self._ordered else None,
        ):
            over = witness.unroll is not None or (not meeting.waiting and meeting.reached == everyone)
            alike = meeting.phases == phases and tokens.items() <= meeting.tokens.items()
            if meeting.misuse is None and over and alike:
                return meeting
        raise Unconfirmed("the barriers can't form these phases")

    def _misuse(self, traces: Sequence[Trace], phases: Mapping[EventId, int | None]) -> Meeting:
        """A run of the barriers in which one is misused, of those with these phases one that goes as far."""
        steps, ended = [t.steps for t in traces], [t.end == "end" for t in traces]
        found = barriers.meetings(self._test, self._scene.places, steps, ended, _no_check, told=True)
        misused = (m for m in found if m.misuse is not None)
        alike = [m for m in misused if all(phases.get(i, p) == p for i, p in m.phases.items())]
        if not alike:
            raise Unconfirmed("the barriers can't be misused like this")
        return max(alike, key=lambda m: len(phases.keys() & m.phases.keys()))

    def _written(self, layout: Layout, paths: Sequence[Path]) -> list[int]:
        """The value of each write, by number (0 for other events). A layout is kept, its first run's values not."""
        events = (e for p in paths for e in p.trace.events[: p.length])
        values = [e.value.value or 0 if e.kind == "W" and e.value is not None else 0 for e in events]
        return values + [initial_value(self._test, cell) for cell in layout.cells]

    def _reads_from(self, layout: Layout, written: Sequence[int], witness: Witness) -> ReadsFrom:
        if len(witness.reads) != len(layout.reads):
            raise Unconfirmed("the reads with sources are not those executed")
        cells: dict[Cell, int] = {}
        for r in layout.reads:
            event = layout.events[r]
            sources = sorted(witness.reads.get(event.id, ()), key=_offset)
            if not sources or event.cell is None:
                raise Unconfirmed(f"the read {event.id} has no source")
            _check_cover(event.id, event.cell, sources)
            value = 0
            for cell in layout.made_of[r]:
                writes = set()
                for source in sources:
                    first = max(source.offset, cell[1])
                    size = min(source.offset + source.size, cell[1] + cell[2]) - first
                    if size <= 0:
                        continue
                    w = _write(layout, cell, source.write)
                    of = layout.events[w].cell
                    assert of is not None
                    part = written[w] >> 8 * (first - of[1]) & ((1 << 8 * size) - 1)
                    value |= part << 8 * (first - event.cell[1])
                    writes.add(w)
                    cells[cell] = cells.get(cell, 0) | 1 << (w * layout.algebra.n + r)
                if len(writes) > 1 and not self._readings.tear:
                    raise Unconfirmed(f"the read {event.id} takes bytes of several writes")
            if value != witness.values[event.id]:
                raise Unconfirmed(f"the read {event.id} returns another value than its sources hold")
        union = 0
        for relation in cells.values():
            union |= relation
        return ReadsFrom(union, cells)

    def _coherence(self, layout: Layout, witness: Witness) -> int:
        """Coherence order with the initial writes, checked to be a strict partial order.

        Writes that do not overlap are related only through others.
        """
        algebra = layout.algebra
        numbers: Mapping[tuple[EventId, str], int] = layout.numbers
        pairs = []
        for a, b in witness.co:
            x, y = numbers.get((a, "W")), numbers.get((b, "W"))
            if x is None or y is None:
                raise Unconfirmed(f"coherence order can't relate {a} and {b}")
            pairs.append((x, y))
        overlapping = {pair for a, b in overlapping_writes(layout) for pair in ((a, b), (b, a))}
        co = algebra.relation(pairs)
        direct = algebra.relation(p for p in pairs if p in overlapping)
        closed = algebra.plus(direct)
        if not algebra.irreflexive(closed):
            raise Unconfirmed("coherence order is not a strict partial order")
        if self._readings.transitive and closed != algebra.plus(co):
            raise Unconfirmed("coherence order can't relate writes that do not overlap")
        if co != (closed if self._readings.transitive else direct):
            raise Unconfirmed("coherence order is not a strict partial order")
        initial = layout.initial_order()
        return algebra.plus(co | initial) if self._readings.transitive else co | initial

    def _fence_sc(self, layout: Layout, witness: Witness) -> int:
        if not witness.fence_sc and not self._total:
            return 0
        algebra = layout.algebra
        allowed = set(fence_sc_pairs(layout))
        pairs = []
        for a, b in witness.fence_sc:
            x, y = layout.numbers.get((a, "F"), -1), layout.numbers.get((b, "F"), -1)
            if (min(x, y), max(x, y)) not in allowed:
                raise Unconfirmed(f"Fence-SC order can't relate {a} and {b}")
            pairs.append((x, y))
        fsc = algebra.relation(pairs)
        if self._total:
            related = {(min(p), max(p)) for p in pairs}
            if related != allowed or not algebra.acyclic(fsc):
                raise Unconfirmed("Fence-SC order is not a total order")
        return fsc

    def _state(self, rebuilt: Rebuilt, observed: Observed, witness: Witness) -> State:
        layout, traces, co = rebuilt.layout, rebuilt.traces, rebuilt.co
        finals = rebuilt.finals.get(observed)
        if finals is None:
            wanted = list(dict.fromkeys((*observed.memory, *self._filter)))
            finals = rebuilt.finals[observed] = Finals(self._test, layout, wanted, self._readings.tear)
        chosen = _last_writes(layout, finals, co, observed, witness)
        # Every leaf has a value in a run with given values.
        registers = {(t.thread, n): v.value or 0 for t in traces for n, v in t.registers.items()}
        for last in finals.lasts(finals.distinct(co, rebuilt.written), chosen):
            memory = finals.memory(last, rebuilt.written, rebuilt.meeting.completed)
            if self._test.filter is None or evaluate(self._test.filter, State(registers, memory)):
                return State(
                    {(r.thread, r.register): registers.get((r.thread, r.register), 0) for r in observed.registers},
                    {(m.key, m.index): memory[m.key, m.index] for m in observed.memory},
                )
        raise Unconfirmed("the final state fails the filter of the test")


def _phases(traces: Sequence[Trace], witness: Witness) -> dict[EventId, int | None]:
    """The phases of the steps of barriers that the threads execute; exchanges are known from the threads alone."""
    steps = [s for trace in traces for s in trace.steps]
    known, loose = {s.id for s in steps}, {s.id for s in steps if s.kind == "warp.exchange"}
    phases = {i: phase for i, phase in witness.phases.items() if i not in loose}
    if witness.misuse or (witness.unroll is not None and any(t.outside is not None for t in traces)):
        return {i: phase for i, phase in phases.items() if i in known}  # without what comes after that
    if not known >= phases.keys():
        raise Unconfirmed("the phases are not those of the barriers executed")
    return phases


def _ends(path: Path, meeting: Meeting) -> bool:
    """Whether a thread reaches its end."""
    complete = path.length == len(path.trace.events) and path.trace.thread not in meeting.waiting
    return complete and path.trace.end == "end"


def _last_writes(layout: Layout, finals: Finals, co: int, observed: Observed, witness: Witness) -> dict[Cell, int]:
    """The last write of each slot that the witness names; every observed byte must be among them."""
    allowed = finals.options(co)
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


def confirm(test: Test, model: Model, observed: Observed, witness: Witness) -> State:
    """``Confirmer(test, model).confirm(observed, witness)``, for a single witness."""
    return Confirmer(test, model).confirm(observed, witness)


def _no_check() -> None:
    """No deadline: the simulation of given phases is short."""


def _offset(source: Source) -> int:
    return source.offset


def _check_cover(read: EventId, cell: Cell, sources: Sequence[Source]) -> None:
    """Raise unless the ``sources``, in order, cover the bytes of a read once."""
    ends = [cell[1], *(s.offset + s.size for s in sources)]
    joined = all(s.key == cell[0] and s.size > 0 and s.offset == end for s, end in zip(sources, ends, strict=False))
    if not joined or ends[-1] != cell[1] + cell[2]:
        raise Unconfirmed(f"the sources of the read {read} do not cover its bytes once")


def _write(layout: Layout, cell: Cell, write: EventId | None) -> int:
    """The number of the write ``write`` (None: the initial one) of ``cell``."""
    if write is None:
        return layout.cells[cell]
    found = layout.numbers.get((write, "W"))
    if found is None or found not in layout.writes[cell]:
        raise Unconfirmed(f"there is no write {write} of these bytes of {cell[0]}")
    return found
