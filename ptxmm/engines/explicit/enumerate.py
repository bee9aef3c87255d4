"""The explicit engine: every final state of a test by search over paths, barrier phases, reads-from and orders.

It shares with the symbolic engine the test, the text of the model and the table of instructions, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from ptxmm.cat import Model
from ptxmm.cat.evaluate import Evaluator
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.explicit.candidates import Candidate, Candidates, Path, executed, relevant_reads
from ptxmm.engines.explicit.final import Finals, memory_terms, restrict
from ptxmm.engines.explicit.independent import independent_candidates
from ptxmm.engines.explicit.orders import Judge, Rules, rules
from ptxmm.engines.explicit.precomputed import precomputed_evaluator
from ptxmm.engines.explicit.prefixes import awaited
from ptxmm.engines.result import Found, Limits, Observed, Search, Source, Witness
from ptxmm.errors import Timeout
from ptxmm.events.explicit.barriers import Meeting, meetings
from ptxmm.events.explicit.barriers.exchanges import Links, resolve
from ptxmm.events.explicit.domains import Domains, possible_values, traces
from ptxmm.events.explicit.interpreter import Undecided, programs
from ptxmm.events.explicit.readings import readings
from ptxmm.events.explicit.refusals import refuse_noncoherent_loads
from ptxmm.events.explicit.relations.barriers import phase_relations
from ptxmm.events.explicit.relations.base import WITNESS
from ptxmm.events.explicit.relations.execution import Layout, Scene
from ptxmm.events.explicit.trace import Cell, Trace
from ptxmm.events.explicit.values.node import evaluate as evaluate_expression
from ptxmm.events.explicit.values.node import leaves_of
from ptxmm.program.condition import Proposition, RegisterTerm, State, evaluate, terms
from ptxmm.program.identity import EventId
from ptxmm.program.shared.launches import held
from ptxmm.program.shared.stopped import known_filter
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
    task = _Task(test, model, observed, limits, proposition)
    try:
        for part in held(test, task.readings.next_grid):
            other = _Task(part, model, Observed((), ()), limits, None)
            other.run()
            task.result.undefined = task.result.undefined or other.result.undefined
            task.result.flags |= other.result.flags
        task.run()
        task.result.exhausted = not task.full()
    except Timeout:
        task.result.timeout = True
    return task.result


def stages(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Iterator[Search]:
    """As ``search``; with ``proposition`` all final states after that."""
    for wanted in dict.fromkeys((proposition, None)):
        yield search(test, model, observed, limits, wanted)


class _Case(Struct, frozen=True):
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


class _Task:
    """One search: what it is given, and what it has found."""

    def __init__(
        self, test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None
    ) -> None:
        self.test = test
        self.model = model
        self.observed = observed
        self.limits = limits
        self.proposition = proposition
        self.result = Search()
        self.scene = Scene(test)
        self.rules: Rules = rules(model)
        self.readings = readings(model.readings)
        self.ordered = in_order(test, model)
        self.told = "mblate" in model.names()
        self.known_filter = known_filter(test)
        self.known: set[tuple[int, ...]] = set()
        self.verdicts: set[bool] = set()
        self.wanted = list(dict.fromkeys((*observed.memory, *memory_terms(test.filter))))
        filtered = [] if test.filter is None else [t for t in terms(test.filter) if isinstance(t, RegisterTerm)]
        self.registers = list(dict.fromkeys((t.thread, t.register) for t in (*observed.registers, *filtered)))

    def run(self) -> None:
        """Go through every case."""
        paths, domains = self._traces()
        done: set[tuple[object, ...]] = set()
        layouts: dict[tuple[object, ...], tuple[Layout, Evaluator[int, int]]] = {}
        for choice in product(*paths):
            self.limits.check()
            for case in self._cases(choice):
                if self._settled(case):
                    continue
                # Threads that end early have a beginning in common on many paths: see each only once.
                sources = tuple((*place, *map(id, link.nodes)) for place, link in case.links.items())
                key = (*map(_beginning, case.paths), *_outcome(case.meeting), case.undefined, sources)
                if key in done:
                    continue
                done.add(key)
                shape = (*((id(p.trace), p.length) for p in case.paths), sources, case.open)
                known = layouts.get(shape)
                if known is None:
                    events = [p.trace.events[: p.length] for p in case.paths]
                    layout = Layout(self.scene, events, case.links, case.open)
                    known = layout, precomputed_evaluator(self.model, layout)
                    layouts = {shape: known}  # only meetings of the same paths come again
                self._search(case, *known, domains)

    def full(self) -> bool:
        """Whether the final states found are all that is asked for."""
        return len(self.verdicts) == 2 or (self.proposition is None and len(self.result.found) == self.limits.states)

    def _traces(self) -> tuple[list[list[Trace]], Domains | None]:
        """The paths of each thread, with domains where a choice or torn reads need them."""
        ready = programs(self.test, self.readings)
        unroll, check = self.limits.unroll, self.limits.check
        domains = None
        try:
            found = [traces(p, None, unroll, self.readings, check) for p in ready]
            needed = any(len(f) > 1 for f in found) or (self.readings.tear and _open_writes(found))
        except Undecided:
            needed = True
        if needed:
            domains = possible_values(self.test, ready, unroll, self.readings, check)
            found = [traces(p, domains, unroll, self.readings, check) for p in ready]
        possible = [[t for t in f if t.end != "impossible"] for f in found]
        refuse_noncoherent_loads(self.test, possible)
        return possible, domains

    def _cases(self, choice: tuple[Trace, ...]) -> Iterator[_Case]:
        steps = [t.steps for t in choice]
        ended = [t.end == "end" for t in choice]
        tokens = {i for t in choice for i in self._needed_tokens(t)}
        places, check = self.scene.places, self.limits.check
        for meeting in meetings(
            self.test, places, steps, ended, check, observed=tokens, ordered=self.ordered, told=self.told
        ):
            yield self._case(choice, meeting)

    def _case(self, choice: tuple[Trace, ...], meeting: Meeting) -> _Case:
        paths = tuple(executed(t, meeting) for t in choice)
        going = [p.trace for p in paths if p.length == len(p.trace.events) and p.trace.thread not in meeting.waiting]
        ends = {trace.end for trace in going}
        open_ = frozenset(range(len(paths))) - {trace.thread for trace in going if trace.end == "end"}
        bounded = meeting.misuse is None and "cut" in ends
        links: Links = {}
        if any(t.exchanges for t in choice):
            links = resolve(choice, [p.passed for p in paths], meeting.phases)[0]
        outside = (p.trace.outside[0] for p in paths if p.trace.outside and self._strays(p, open_))
        undefined = meeting.misuse or next(outside, None)
        stuck = bool(meeting.waiting) and meeting.misuse is None and not ends & {"cut", "spin"}
        begun = not open_ or not any(self._awaited(p, p.length) & open_ for p in paths)
        return _Case(paths, meeting, bounded, stuck, undefined, open_, begun, links)

    def _strays(self, path: Path, open_: frozenset[int]) -> bool:
        """Whether a thread comes to its first stray access, where the threads ``open_`` do not end."""
        assert path.trace.outside is not None
        _, position = path.trace.outside
        return path.reaches(position) and not self._awaited(path, position[0]) & open_

    def _awaited(self, path: Path, length: int) -> set[int]:
        """The threads that must have ended for a thread to come as far as ``length`` events."""
        thread, threads = path.trace.thread, self.test.threads
        return {u for e in path.trace.events[:length] for u in awaited(e, threads, thread, self.readings.next_grid)}

    def _needed_tokens(self, trace: Trace) -> Iterator[EventId]:
        """The arrivals of a path whose tokens decide anything: a choice, a value written or a register observed."""
        if not trace.tokens:
            return
        nodes = [node for node, _, _ in trace.constraints]
        nodes += [e.value for e in trace.events if e.kind == "W" and e.value is not None]
        nodes += [x.operand for x in trace.exchanges]
        nodes += [trace.registers[n] for t, n in self.registers if t == trace.thread and n in trace.registers]
        needed = {number for node in nodes for number in leaves_of(node)}
        yield from (i for i, number in trace.tokens.items() if number in needed)

    def _settled(self, case: _Case) -> bool:
        """Whether nothing that ``case`` could show is still unknown."""
        result = self.result
        if case.undefined is not None:
            return result.undefined is not None
        if case.complete:
            return self.full() and self._flags_known()
        return self._noted(case) and (not case.begun or self._flags_known())

    def _noted(self, case: _Case) -> bool:
        """Whether all is known that an execution in which not every thread ends shows but for flags."""
        result = self.result
        if case.undefined is not None:
            return result.undefined is not None
        return (result.bounded or not case.bounded) and (result.deadlock or not case.deadlocked)

    def _flags_known(self) -> bool:
        return {f.name for f in self.rules.flags} <= self.result.flags

    def _search(self, case: _Case, layout: Layout, precomputed: Evaluator[int, int], domains: Domains | None) -> None:
        phases = phase_relations(layout, case.meeting.phases, case.meeting.order)
        judge = Judge(self.rules, layout, precomputed, phases, self.readings.transitive, self.limits.check)
        finals = Finals(self.test, layout, self.wanted, self.readings.tear)

        def worthwhile(partial: Candidate, evaluator: Evaluator[int, int]) -> bool:
            if case.undefined is not None or not self._noted(case):
                return True  # the first consistent execution shows it
            if not case.complete:
                return case.begun and judge.may_flag(evaluator, self.result.flags, WITNESS)
            return judge.may_flag(evaluator, self.result.flags, WITNESS) or self._news(
                case, finals, partial, self._final_registers(case, partial)
            )

        candidates = Candidates(
            layout,
            case.paths,
            judge,
            self.readings.tear,
            domains,
            case.meeting.tokens,
            relevant_reads(layout, finals, case.paths, self.registers),
            worthwhile,
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
                self._finish(case, layout, judge, finals, candidate)
            else:
                self._go_on(case, judge, candidate)
            if self._settled(case):
                return

    def _note(self, case: _Case) -> None:
        """A consistent execution of ``case`` exists."""
        if case.undefined is not None:  # what such an execution does later is no reason for anything
            self.result.undefined = self.result.undefined or case.undefined
        elif case.bounded:
            self.result.bounded = True
        elif case.deadlocked:
            self.result.deadlock = True

    def _go_on(self, case: _Case, judge: Judge, candidate: Candidate) -> None:
        """What a reads-from shows in which not every thread ends. It has no final state, so that the filter leaves out
        what takes the meaning from it, and its flags, only if it is false however the threads go on."""
        out = self._left_out(case, candidate)
        if out and case.undefined is not None:
            return
        for fsc, co in judge.orders(candidate.rf):
            self._note(case)
            if case.undefined is None and case.begun and not out and candidate.flagging:
                self.result.flags |= judge.flags(candidate.rf, co, fsc)
            if out or not candidate.flagging or self._settled(case):
                return

    def _finish(self, case: _Case, layout: Layout, judge: Judge, finals: Finals, candidate: Candidate) -> None:
        """All final states of a reads-from in which every thread ends."""
        registers = self._final_registers(case, candidate)
        searching = case.undefined is not None or candidate.flagging
        completed = case.meeting.completed
        if not searching and not self._news(case, finals, candidate, registers):
            return
        for fsc, co in judge.orders(candidate.rf):
            for last in finals.lasts(finals.distinct(finals.options(co), candidate.values)):
                state = State(registers, finals.memory(last, candidate.values, completed))
                if self.test.filter is not None and not evaluate(self.test.filter, state):
                    continue
                self._reached(case, layout, candidate, fsc, co, finals, last, state)
                if self.rules.flags and case.undefined is None:
                    self.result.flags |= judge.flags(candidate.rf, co, fsc)
            if case.undefined is not None and self.result.undefined is not None:
                return
            candidate.flagging = candidate.flagging and not {f.name for f in self.rules.flags} <= self.result.flags
            if not candidate.flagging and not self._news(case, finals, candidate, registers):
                return

    def _final_registers(self, case: _Case, candidate: Candidate) -> dict[tuple[int, str], int]:
        """What the observed registers hold in the end."""
        registers = {}
        for t, name in self.registers:
            node = case.paths[t].trace.registers.get(name)
            value = 0 if node is None else evaluate_expression(node, candidate.leaves[t])
            assert value is not None
            registers[t, name] = value
        return registers

    def _left_out(self, case: _Case, candidate: Candidate) -> bool:
        """Whether the filter is false of an execution in which threads stop, however it would go on."""
        if self.known_filter is None:
            return False
        registers = {}
        for term in terms(self.known_filter):
            assert isinstance(term, RegisterTerm)
            node = case.paths[term.thread].trace.registers.get(term.register)
            value = 0 if node is None else evaluate_expression(node, candidate.leaves[term.thread])
            assert value is not None
            registers[term.thread, term.register] = value
        return not evaluate(self.known_filter, State(registers, {}))

    def _news(
        self, case: _Case, finals: Finals, candidate: Candidate, registers: Mapping[tuple[int, str], int]
    ) -> bool:
        """Whether the reads-from may end in a state that is not known and asked for."""
        if self.full():
            return False
        options = finals.distinct(finals.options(candidate.co), candidate.values)
        if prod(map(len, options.values())) > _SHORTCUT:
            return True
        for last in finals.lasts(options):
            state = State(registers, finals.memory(last, candidate.values, case.meeting.completed))
            if self._key(state) not in self.known and (self.test.filter is None or evaluate(self.test.filter, state)):
                return True
        return False

    def _key(self, state: State) -> tuple[int, ...]:
        return (
            *(state.registers[t.thread, t.register] for t in self.observed.registers),
            *(state.memory[t.key, t.index] for t in self.observed.memory),
        )

    def _reached(
        self,
        case: _Case,
        layout: Layout,
        candidate: Candidate,
        fsc: int,
        co: int,
        finals: Finals,
        last: Mapping[Cell, int],
        state: State,
    ) -> None:
        """Record the end of a consistent execution."""
        if case.undefined is not None:
            self._note(case)
            return
        key = self._key(state)
        if key in self.known or self.full():
            return
        self.known.add(key)
        shown = restrict(
            state,
            [(t.thread, t.register) for t in self.observed.registers],
            [(t.key, t.index) for t in self.observed.memory],
        )
        self.result.found.append(Found(shown, self._witness(case, layout, candidate, fsc, co, finals, last)))
        if self.proposition is not None:
            self.verdicts.add(evaluate(self.proposition, shown))

    def _witness(
        self,
        case: _Case,
        layout: Layout,
        candidate: Candidate,
        fsc: int,
        co: int,
        finals: Finals,
        last: Mapping[Cell, int],
    ) -> Witness:
        events = layout.events

        def write(w: int) -> EventId | None:
            return None if w >= layout.initial_first else events[w].id

        reads: dict[EventId, tuple[Source, ...]] = {}
        for r, parts in candidate.sources.items():
            reads[events[r].id] = tuple(Source(p.cell[0], p.offset, p.size, write(w)) for p, w in parts.items())
        ends: dict[Source, None] = {}
        for parts_of in finals.pieces.values():
            for part in parts_of:
                w = None if part.slot is None else write(last[part.slot])
                ends.setdefault(Source(part.key, part.offset, part.size, w))
        between = [(a, b) for a, b in layout.algebra.pairs(co) if a < layout.initial_first]
        values = {events[r].id: candidate.values[r] or 0 for r in layout.reads}
        values |= {id_: case.meeting.tokens[id_] for _, _, id_ in layout.tokens}
        for path in case.paths:
            values |= path.trace.waits
        return Witness(
            values,
            reads,
            frozenset((events[a].id, events[b].id) for a, b in between),
            frozenset((events[a].id, events[b].id) for a, b in layout.algebra.pairs(fsc)),
            dict(case.meeting.phases),
            tuple(ends),
            order=case.meeting.order,
        )


def _open_writes(found: Sequence[Sequence[Trace]]) -> bool:
    """Whether some thread writes a value of several bytes that it has read or computed from reads."""
    return any(
        e.kind == "W" and e.value is not None and e.value.value is None and e.cell is not None and e.cell[2] > 1
        for paths in found
        for t in paths
        for e in t.events
    )


def _outcome(meeting: Meeting) -> tuple[object, ...]:
    """What tells two meetings of the same paths apart."""
    return *(frozenset(m.items()) for m in (meeting.phases, meeting.tokens, meeting.completed)), meeting.order


def _beginning(path: Path) -> tuple[object, ...]:
    """What tells the executed parts of two paths of a thread apart."""
    if path.length == len(path.trace.events):
        return id(path.trace), path.length
    return (
        tuple((e.id, e.kind, e.cell, e.barrier, e.mbarrier) for e in path.trace.events[: path.length]),
        len(path.constraints),
        tuple(value for _, value in path.constraints),
    )
