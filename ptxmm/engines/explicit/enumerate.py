"""The explicit engine: every final state of a test by search over paths, barrier phases, reads-from and orders.

It shares with the symbolic engine the test, the text of the model and the table of instructions, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.shipped import is_shipped
from ptxmm.engines.explicit.candidates import Candidate, Candidates, relevant_reads
from ptxmm.engines.explicit.cases import Case, Cases
from ptxmm.engines.explicit.final import Finals, memory_terms, restrict
from ptxmm.engines.explicit.independent import independent_candidates
from ptxmm.engines.explicit.orders import Judge, Rules, rules
from ptxmm.engines.explicit.precomputed import precomputed_evaluator
from ptxmm.engines.result import Found, Limits, Observed, Search, Source, Witness
from ptxmm.errors import Timeout
from ptxmm.events.explicit.domains import Domains
from ptxmm.events.explicit.readings import readings
from ptxmm.events.explicit.relations.barriers import phase_relations
from ptxmm.events.explicit.relations.base import WITNESS
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.trace import Cell
from ptxmm.events.explicit.values.node import evaluate as evaluate_expression
from ptxmm.program.condition import Proposition, RegisterTerm, State, evaluate, terms
from ptxmm.program.identity import EventId
from ptxmm.program.shared.launches import held
from ptxmm.program.shared.stopped import known_filter
from ptxmm.program.shared.unseen import open_results
from ptxmm.program.test import Test

_SHORTCUT = 256
"""The largest number of possible final states of one reads-from that are compared with those known."""


def search(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Search:
    """All final states of ``test`` under ``model``, restricted to ``observed``, each with an execution.

    With ``proposition``, whose terms ``observed`` must contain, no more states are listed (not ``exhausted``) once one
    satisfies it and another does not; all else that ``Search`` reports is searched for to the end. Raises
    ``PtxmmError`` (kind ``unsupported``) for instructions that are not supported and for addresses that may take too
    many values.
    """
    return next(stages(test, model, observed, limits, proposition))


def stages(
    test: Test,
    model: Model,
    observed: Observed,
    limits: Limits,
    proposition: Proposition | None = None,
    *,
    each: bool = False,
) -> Iterator[Search]:
    """As ``search``; with ``proposition`` all final states after that; ``each``: those one at a time, without the ones
    that decide it, and at last none."""
    known: set[tuple[int, ...]] = set()
    for wanted in dict.fromkeys((proposition, None)):
        task = _Task(test, model, observed, limits, wanted, known)
        one_by_one = each and wanted is None
        result = task.result
        try:
            for part in held(test, task.readings.next_grid):
                other = _Task(part, model, Observed((), ()), limits, None, set())
                for _ in other.run():
                    pass
                result.undefined = result.undefined or other.result.undefined
                result.flags |= other.result.flags
            for _ in task.run():
                if one_by_one:
                    yield replace(result, found=[result.found.pop()])
            result.exhausted = not task.full()
        except Timeout:
            result.timeout = True
        if not each:
            known = set()
        yield result


class _Place(Struct, frozen=True):
    """A case that is searched: its events, what judges its executions, and their final memory."""

    case: Case
    layout: Layout
    judge: Judge
    finals: Finals


class _End(Struct, frozen=True):
    """The end of a consistent execution: reads-from (``candidate``) and the orders, and the ``last`` write of each slot
    of the final memory."""

    place: _Place
    candidate: Candidate
    fsc: int
    co: int
    last: Mapping[Cell, int]

    def state(self, registers: dict[tuple[int, str], int]) -> State:
        """The final state, with these ``registers``."""
        completed = self.place.case.meeting.completed
        return State(registers, self.place.finals.memory(self.last, self.candidate.values, completed))

    def witness(self) -> Witness:
        """The execution."""
        case, layout, candidate = self.place.case, self.place.layout, self.candidate
        events = layout.events

        def write(w: int) -> EventId | None:
            return None if w >= layout.initial_first else events[w].id

        def pairs(order: int) -> frozenset[tuple[EventId, EventId]]:
            return frozenset(
                (events[a].id, events[b].id) for a, b in layout.algebra.pairs(order) if a < layout.initial_first
            )

        reads = {
            events[r].id: tuple(Source(p.cell[0], p.offset, p.size, write(w)) for p, w in parts.items())
            for r, parts in candidate.sources.items()
        }
        ends: dict[Source, None] = {}
        for part in (p for parts in self.place.finals.pieces.values() for p in parts):
            w = None if part.slot is None else write(self.last[part.slot])
            ends.setdefault(Source(part.key, part.offset, part.size, w))
        values = {events[r].id: candidate.values[r] or 0 for r in layout.reads}
        values |= {id_: case.meeting.tokens[id_] for _, _, id_ in layout.tokens}
        for path in case.paths:
            values |= path.trace.waits
        phases, order = dict(case.meeting.phases), case.meeting.order
        return Witness(values, reads, pairs(self.co), pairs(self.fsc), phases, tuple(ends), order=order)


class _Task:
    """One search: what it is given, and what it has found."""

    def __init__(
        self,
        test: Test,
        model: Model,
        observed: Observed,
        limits: Limits,
        proposition: Proposition | None,
        known: set[tuple[int, ...]],
    ) -> None:
        """``known``: the values of the states that are known, to which those are added that are found."""
        self.test = test
        self.model = model
        self.limits = limits
        self.proposition = proposition
        self.result = Search()
        self.scene = Scene(test)
        self.rules: Rules = rules(model)
        self.flags = {f.name for f in self.rules.flags}
        self.readings = readings(model.readings, is_shipped(model))
        self.known_filter = known_filter(test)
        passing = () if test.filter is None else terms(test.filter)
        open_results(test, (*observed.registers, *observed.memory, *passing, *test.compared))
        self.known = known
        self.verdicts: set[bool] = set()
        self.wanted = list(dict.fromkeys((*observed.memory, *memory_terms(test.filter))))
        filtered = [] if test.filter is None else [t for t in terms(test.filter) if isinstance(t, RegisterTerm)]
        self.registers = list(dict.fromkeys((t.thread, t.register) for t in (*observed.registers, *filtered)))
        self.shown = [(t.thread, t.register) for t in observed.registers], [(t.key, t.index) for t in observed.memory]

    def run(self) -> Iterator[None]:
        """Go through every case, with a stop at every final state that is found."""
        cases = Cases(self.scene, self.model, self.readings, self.registers, self.limits.check)
        paths, domains = cases.paths(self.limits.unroll)
        done: set[tuple[object, ...]] = set()
        layouts: dict[tuple[object, ...], tuple[Layout, Evaluator[int, int]]] = {}
        for choice in product(*paths):
            self.limits.check()
            for case in cases.of(choice):
                if self._settled(case) or case.beginning in done:
                    continue
                done.add(case.beginning)
                known = layouts.get(case.shape)
                if known is None:
                    events = [p.trace.events[: p.length] for p in case.paths]
                    layout = Layout(self.scene, events, case.links, case.open)
                    known = layout, precomputed_evaluator(self.model, layout)
                    layouts = {case.shape: known}  # only meetings of the same paths come again
                yield from self._search(case, *known, domains)

    def full(self) -> bool:
        """Whether the final states found are all that is asked for."""
        return len(self.verdicts) == 2 or (self.proposition is None and len(self.known) == self.limits.states)

    def _settled(self, case: Case) -> bool:
        """Whether nothing that ``case`` could show is still unknown."""
        if case.undefined is not None:
            return self.result.undefined is not None
        if case.complete:
            return self.full() and self._flags_known()
        return self._noted(case) and (not case.begun or self._flags_known())

    def _noted(self, case: Case) -> bool:
        """Whether all is known that an execution in which not every thread ends shows but for flags."""
        result = self.result
        if case.undefined is not None:
            return result.undefined is not None
        return (result.bounded or not case.bounded) and (result.deadlock or not case.deadlocked)

    def _flags_known(self) -> bool:
        return self.flags <= self.result.flags

    def _search(
        self, case: Case, layout: Layout, precomputed: Evaluator[int, int], domains: Domains | None
    ) -> Iterator[None]:
        phases = phase_relations(layout, case.meeting.phases, case.meeting.order)
        judge = Judge(self.rules, layout, precomputed, phases, self.readings.transitive, self.limits.check)
        finals = Finals(self.test, layout, self.wanted, self.readings.tear)
        place = _Place(case, layout, judge, finals)

        def worthwhile(partial: Candidate, evaluator: Evaluator[int, int]) -> bool:
            if case.undefined is not None or not self._noted(case):
                return True  # the first consistent execution shows it
            if not case.complete:
                return case.begun and judge.may_flag(evaluator, self.result.flags, WITNESS)
            return judge.may_flag(evaluator, self.result.flags, WITNESS) or self._news(place, partial)

        relevant = relevant_reads(layout, finals, case.paths, self.registers)
        candidates = Candidates(
            layout, case.paths, judge, self.readings.tear, domains, case.meeting.tokens, relevant, worthwhile
        )
        start = candidates.start()
        if start is None:
            return
        if not case.complete and self._noted(case):
            judged = judge.partial(start.rf)
            if judged is None or not judge.may_flag(judged[1], self.result.flags, WITNESS):
                return
        found = independent_candidates(candidates, start, self.result.flags)
        for candidate in candidates.search(start, self.result.flags) if found is None else found:
            if case.complete:
                yield from self._finish(place, candidate)
            else:
                self._go_on(place, candidate)
            if self._settled(case):
                return

    def _note(self, case: Case) -> None:
        """A consistent execution of ``case`` exists."""
        if case.undefined is not None:  # what such an execution does later is no reason for anything
            self.result.undefined = self.result.undefined or case.undefined
        elif case.bounded:
            self.result.bounded = True
        elif case.deadlocked:
            self.result.deadlock = True

    def _go_on(self, place: _Place, candidate: Candidate) -> None:
        """What a reads-from shows in which not every thread ends. It has no final state, so that the filter leaves out
        what takes the meaning from it, and its flags, only if it is false however the threads go on."""
        case = place.case
        out = self._left_out(case, candidate)
        if out and case.undefined is not None:
            return
        for fsc, co in place.judge.orders(candidate.rf):
            self._note(case)
            if case.undefined is None and case.begun and not out and candidate.flagging:
                self.result.flags |= place.judge.flags(candidate.rf, co, fsc, candidate.values)
            if out or not candidate.flagging or self._settled(case):
                return

    def _finish(self, place: _Place, candidate: Candidate) -> Iterator[None]:
        """All final states of a reads-from in which every thread ends."""
        case, finals = place.case, place.finals
        if case.undefined is None and not candidate.flagging and not self._news(place, candidate):
            return
        registers = _values(case, candidate, self.registers)
        for fsc, co in place.judge.orders(candidate.rf):
            for last in finals.lasts(finals.distinct(finals.options(co), candidate.values)):
                end = _End(place, candidate, fsc, co, last)
                state = end.state(registers)
                if self.test.filter is not None and not evaluate(self.test.filter, state):
                    continue
                if case.undefined is not None:
                    self._note(case)
                    continue
                if self._reached(end, state):
                    yield
                if self.flags:
                    self.result.flags |= place.judge.flags(candidate.rf, co, fsc, candidate.values)
            if case.undefined is not None and self.result.undefined is not None:
                return
            candidate.flagging = candidate.flagging and not self._flags_known()
            if not candidate.flagging and not self._news(place, candidate):
                return

    def _left_out(self, case: Case, candidate: Candidate) -> bool:
        """Whether the filter is false of an execution in which threads stop, however it would go on."""
        if self.known_filter is None:
            return False
        asked = [(t.thread, t.register) for t in terms(self.known_filter) if isinstance(t, RegisterTerm)]
        return not evaluate(self.known_filter, State(_values(case, candidate, asked), {}))

    def _news(self, place: _Place, candidate: Candidate) -> bool:
        """Whether the reads-from may end in a state that is not known and asked for."""
        if self.full():
            return False
        options = place.finals.distinct(place.finals.options(candidate.co), candidate.values)
        if prod(map(len, options.values())) > _SHORTCUT:
            return True
        registers = _values(place.case, candidate, self.registers)
        for last in place.finals.lasts(options):
            state = _End(place, candidate, 0, candidate.co, last).state(registers)
            if self._key(state) not in self.known and (self.test.filter is None or evaluate(self.test.filter, state)):
                return True
        return False

    def _key(self, state: State) -> tuple[int, ...]:
        registers, memory = self.shown
        return *(state.registers[r] for r in registers), *(state.memory[m] for m in memory)

    def _reached(self, end: _End, state: State) -> bool:
        """Record the end of a consistent execution, if its state is a new one."""
        key = self._key(state)
        if key in self.known or self.full():
            return False
        self.known.add(key)
        shown = restrict(state, *self.shown)
        self.result.found.append(Found(shown, end.witness()))
        if self.proposition is not None:
            self.verdicts.add(evaluate(self.proposition, shown))
        return True


def _values(case: Case, candidate: Candidate, registers: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """What ``registers`` hold in the end."""
    found = {}
    for t, name in registers:
        node = case.paths[t].trace.registers.get(name)
        value = 0 if node is None else evaluate_expression(node, candidate.leaves[t])
        assert value is not None
        found[t, name] = value
    return found
