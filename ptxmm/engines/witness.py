"""Confirms an execution: runs the program again with the values its reads returned, and checks everything anew.

Nothing of the engine that found the witness is trusted: values, sources, orders, phases, final values and every
axiom of the model are checked from the instructions and from the text of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.engines.final import Finals, memory_terms
from ptxmm.engines.result import Observed, Source, Witness
from ptxmm.events import barriers
from ptxmm.events.execution import PHASES, WITNESS, Layout, Scene, initial_value
from ptxmm.events.interpreter import Missing, programs, run
from ptxmm.events.trace import Cell, Trace
from ptxmm.program.condition import State, evaluate
from ptxmm.program.test import EventId, Test

# Far beyond any bound of a search, so that only a bogus witness meets it.
_UNROLL = 1 << 16
_DYNAMIC = WITNESS | PHASES


class Unconfirmed(Exception):
    """A witness that is not an execution of the program under the model; the argument says why."""


@dataclass(slots=True)
class _Known:
    """What is kept of a choice of paths: its layout, an evaluator with the static values, final cells."""

    layout: Layout
    evaluator: Evaluator[int, int]
    makes_values: int
    finals: dict[Observed, Finals]


class Confirmer:
    """Confirms witnesses of one test under one model; keeps what does not change between them."""

    __slots__ = ("_filter", "_known", "_model", "_programs", "_scene", "_simplify", "_tear", "_test", "_total")

    def __init__(self, test: Test, model: Model) -> None:
        self._test = test
        self._model = model
        self._scene = Scene(test)
        self._programs = programs(test)
        self._simplify = model.readings.get("dep", "sem") == "sem"
        self._tear = model.readings.get("tear", "off") == "on"
        self._total = "sync_fence" in model.names()
        self._filter = memory_terms(test.filter)
        self._known: dict[object, _Known] = {}

    def confirm(self, observed: Observed, witness: Witness) -> State:
        """The observed part of the final state of the execution that ``witness`` describes.

        Raises ``Unconfirmed`` if it is no consistent execution, ends in no final state, or fails the test's filter.
        """
        if witness.deadlocked:
            raise Unconfirmed("an execution in which a thread waits for ever has no final state")
        traces = self._run(witness)
        known = self._layout(traces)
        self._check_phases(traces, witness)
        written = self._written(known.layout, traces)
        rf = self._reads_from(known.layout, written, witness)
        co = _coherence(known.layout, witness)
        fsc = self._fence_sc(known.layout, witness)
        algebra = known.layout.algebra
        if not algebra.acyclic(rf | known.makes_values):
            raise Unconfirmed("a value is made of itself")
        base = known.layout.base(rf, co, fsc, known.layout.barphase(witness.phases))
        for axiom, value in known.evaluator.changed(_DYNAMIC, base).axioms(flags=False):
            if not algebra.satisfies(axiom.kind, axiom.negated, value):
                raise Unconfirmed(f"axiom {axiom.name} of {self._model.name} does not hold")
        return self._state(known, traces, written, co, observed, witness)

    def _run(self, witness: Witness) -> list[Trace]:
        traces = []
        reads = 0
        for program in self._programs:
            try:
                trace = run(
                    program, values=witness.values, unroll=_UNROLL, simplify=self._simplify, spinning=True
                )
            except Missing as missing:
                raise Unconfirmed(f"the read {missing.args[0]} has no value") from None
            if trace.end != "end":
                raise Unconfirmed(f"thread {trace.thread} does not reach its end")
            if trace.outside is not None:
                raise Unconfirmed(trace.outside[0])
            reads += len(trace.reads)
            traces.append(trace)
        if reads != len(witness.values):
            raise Unconfirmed("a read that is not executed has a value")
        return traces

    def _layout(self, traces: Sequence[Trace]) -> _Known:
        key = tuple(
            (e.id, e.kind, e.cell, e.place, e.addr, e.data, e.ctrl, e.barrier) for t in traces for e in t.events
        )
        known = self._known.get(key)
        if known is None:
            layout = Layout(self._scene, [t.events for t in traces])
            evaluator: Evaluator[int, int] = Evaluator(self._model, layout.algebra, layout.base(0, 0, 0, 0))
            for _ in evaluator.axioms(flags=False):
                pass  # fills in what the witness does not decide
            known = self._known[key] = _Known(layout, evaluator, layout.makes_values(), {})
        return known

    def _check_phases(self, traces: Sequence[Trace], witness: Witness) -> None:
        arrivals = [[e for e in t.events if e.kind == "BA"] for t in traces]
        ids = {e.id for events in arrivals for e in events}
        if ids != set(witness.phases):
            raise Unconfirmed("the phases are not those of the barriers executed")
        if not ids:
            return
        everyone = tuple(len(a) for a in arrivals)
        for meeting in barriers.meetings(
            self._test, self._scene.places, arrivals, [True] * len(traces), _no_check, witness.phases
        ):
            if (
                meeting.misuse is None
                and not meeting.waiting
                and meeting.reached == everyone
                and meeting.phases == witness.phases
            ):
                return
        raise Unconfirmed("the barriers can't form these phases")

    def _written(self, layout: Layout, traces: Sequence[Trace]) -> list[int]:
        """The value of each write, by number (0 for other events). A layout is kept, its first run's values not."""
        values = [
            e.value.value or 0 if e.kind == "W" and e.value is not None else 0 for t in traces for e in t.events
        ]
        return values + [initial_value(self._test, cell) for cell in layout.cells]

    def _reads_from(self, layout: Layout, written: Sequence[int], witness: Witness) -> int:
        n = layout.algebra.n
        rf = 0
        if len(witness.reads) != len(layout.reads):
            raise Unconfirmed("the reads with sources are not those executed")
        for r in layout.reads:
            event = layout.events[r]
            sources = witness.reads.get(event.id)
            if not sources or event.cell is None:
                raise Unconfirmed(f"the read {event.id} has no source")
            key, position, size = event.cell
            end, value = position + size, 0
            writes = set()
            for source in sorted(sources, key=_offset):
                if source.key != key or source.offset != position or source.size <= 0:
                    raise Unconfirmed(f"the sources of the read {event.id} do not cover its bytes once")
                w = _write(layout, event.cell, source.write)
                shift = 8 * (position - event.cell[1])
                value |= (written[w] >> shift & ((1 << 8 * source.size) - 1)) << shift
                position += source.size
                writes.add(w)
                rf |= 1 << (w * n + r)
            if position != end:
                raise Unconfirmed(f"the sources of the read {event.id} do not cover its bytes once")
            if len(writes) > 1 and not self._tear:
                raise Unconfirmed(f"the read {event.id} takes bytes of several writes")
            if value != witness.values[event.id]:
                raise Unconfirmed(f"the read {event.id} returns another value than its sources hold")
        return rf

    def _fence_sc(self, layout: Layout, witness: Witness) -> int:
        if not witness.fence_sc and not self._total:
            return 0
        algebra = layout.algebra
        allowed = set(layout.fence_sc_pairs())
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

    def _state(
        self,
        known: _Known,
        traces: Sequence[Trace],
        written: Sequence[int],
        co: int,
        observed: Observed,
        witness: Witness,
    ) -> State:
        layout = known.layout
        finals = known.finals.get(observed)
        if finals is None:
            wanted = list(dict.fromkeys((*observed.memory, *self._filter)))
            finals = known.finals[observed] = Finals(self._test, layout, wanted)
        registers = {(t.thread, n): v.value or 0 for t in traces for n, v in t.registers.items()}
        chosen: dict[Cell, int] = {}
        shown: set[tuple[str, int]] = set()
        for source in witness.last:
            end = source.offset + source.size
            shown.update((source.key, i) for i in range(source.offset, end))
            for cell in finals.cells:
                if cell[0] == source.key and cell[1] < end and source.offset < cell[1] + cell[2]:
                    w = _write(layout, cell, source.write)
                    if layout.algebra.successors(co, w):
                        raise Unconfirmed(f"the last write of {cell[0]} is not maximal in coherence order")
                    if chosen.setdefault(cell, w) != w:
                        raise Unconfirmed(f"two last writes for one cell of {cell[0]}")
        for term in observed.memory:
            for part in finals.pieces[term]:
                if any((part.key, part.offset + i) not in shown for i in range(part.size)):
                    raise Unconfirmed(f"no last write for {term.key}")
        open_cells = [c for c in finals.cells if c not in chosen]
        choices = [[w for w in layout.writes[c] if not layout.algebra.successors(co, w)] for c in open_cells]
        for selection in product(*choices):
            writes = {**chosen, **dict(zip(open_cells, selection, strict=True))}
            memory = finals.memory({c: written[w] for c, w in writes.items()})
            if self._test.filter is None or evaluate(self._test.filter, State(registers, memory)):
                return State(
                    {(r.thread, r.register): registers.get((r.thread, r.register), 0) for r in observed.registers},
                    {(m.key, m.index): memory[m.key, m.index] for m in observed.memory},
                )
        raise Unconfirmed("the final state fails the filter of the test")


def confirm(test: Test, model: Model, observed: Observed, witness: Witness) -> State:
    """``Confirmer(test, model).confirm(observed, witness)``, for a single witness."""
    return Confirmer(test, model).confirm(observed, witness)


def _no_check() -> None:
    """No deadline: the simulation of given phases is short."""


def _offset(source: Source) -> int:
    return source.offset


def _write(layout: Layout, cell: Cell, write: EventId | None) -> int:
    """The number of the write ``write`` (None: the initial one) of ``cell``."""
    if write is None:
        return layout.cells[cell]
    found = layout.numbers.get((write, "W"))
    if found is None or layout.events[found].cell != cell or layout.events[found].op is None:
        raise Unconfirmed(f"there is no write {write} of these bytes of {cell[0]}")
    return found


def _coherence(layout: Layout, witness: Witness) -> int:
    """Coherence order with the initial writes, checked to be a strict partial order on each cell."""
    algebra = layout.algebra
    numbers: Mapping[tuple[EventId, str], int] = layout.numbers
    pairs = []
    for a, b in witness.co:
        x, y = numbers.get((a, "W")), numbers.get((b, "W"))
        if x is None or y is None or layout.events[x].cell != layout.events[y].cell:
            raise Unconfirmed(f"coherence order can't relate {a} and {b}")
        pairs.append((x, y))
    co = algebra.relation(pairs)
    if not algebra.irreflexive(co) or algebra.plus(co) != co:
        raise Unconfirmed("coherence order is not a strict partial order")
    return co | layout.initial_order()
