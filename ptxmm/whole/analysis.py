"""Is a launch free of data races, with all its threads?

What is followed synchronizes by barriers of its CTA and of its warps only. Then one execution tells of all others
(docs/whole.md): no branch, address or operand of a barrier depends on anything that another schedule would change, as
long as nothing races; and who meets at a barrier is the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import Note, Status
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.kernel import Kernel, observed
from ptxmm.formats.modules.launch import DESTINATION_CTA, ELECT_FIRST, SAME_VALUE, WGMMA_SYNC
from ptxmm.formats.modules.module import named_test
from ptxmm.program.condition import Term
from ptxmm.ptx import ops
from ptxmm.whole.claims import Known, Told, verdicts
from ptxmm.whole.conflicts import Accesses, accesses, racing, unordered
from ptxmm.whole.elsewhere import compares, signature
from ptxmm.whole.finals import Final, Finals, finals
from ptxmm.whole.history import History
from ptxmm.whole.lenient import NOTES, PROXY_WAR, assumed
from ptxmm.whole.machine import Machine
from ptxmm.whole.memory import Numbers
from ptxmm.whole.narrowing import Varied, narrowed
from ptxmm.whole.nearly import Nearly, nearly
from ptxmm.whole.polls import polls
from ptxmm.whole.result import Answer, Dimensions, Spot, Waiting, WholeRace, WholeResult
from ptxmm.whole.state import ENDED, Stopped
from ptxmm.whole.strong import WEAK, Arrival, Plan
from ptxmm.whole.timeline import Timeline, timeline
from ptxmm.whole.trace import READ, WRITE

Pairs: TypeAlias = dict[tuple[int, int], list[tuple[int, int]]]
"""By two instructions the pairs of accesses by them."""
_MODEL = "ptx-8.5"
_LAYOUTS = (
    "the kernel compares addresses, stores them or looks at their bits, and where its variables lie is left open: two "
    "layouts were tried, and do the same"
)
_MOST = 20
_MOST_RUNS = 64
"""So many choices of what comes last are tried."""
_PAIRS = 100_000
"""After so many pairs no more are looked for."""
_FOUND: dict[str, bool | None] = {
    "race-free": True, "race": False, "deadlock": False, "outside": False, "undefined": False,
}  # fmt: skip


def whole(kernels: tuple[Kernel, ...], file: str, limits: Limits | None = None) -> WholeResult:
    """Whether the launch of ``kernels``, one for each grid, is free of data races under ptx-8.5 (PTX ISA 8.7.1),
    and its threads come to their ends. Raises ``PtxmmError`` where its memory is too large."""
    return examined(kernels, file, limits or Limits()).result


class Examined(Struct, frozen=True):
    """The ``result`` about a launch, with an execution of it (``machine``), and for each race the instructions of its
    two accesses and of what almost orders them (``clues``)."""

    result: WholeResult
    machine: Machine
    clues: tuple[tuple[int, ...], ...]


def examined(kernels: tuple[Kernel, ...], file: str, limits: Limits, before: Machine | None = None) -> Examined:
    """As ``whole``, with what is needed to change the launch. ``before``: an execution of a launch that differs in some
    of its instructions; then races are not explained, nor what they rest on. Raises ``PtxmmError``."""
    given = assumed(kernels[0].launch)
    run = _Whole(kernels, file, limits, given, before)
    first = found = run.result()
    told = Examined(first, run.machine, tuple(run.clues))
    if given is None or before is not None:
        return told
    lenient = given
    while found.answer in ("race", "undecided") and run.rests - lenient:
        lenient |= run.rests
        if run.enough:
            return replace(told, result=_resting(first, lenient - given))
        run = _Whole(kernels, file, limits, lenient)
        found = run.result()
    if found.answer == "race-free" and found is not first:
        return replace(told, result=_resting(first, lenient - given))
    if first.answer == found.answer == "race":  # what does not rest on anything comes before what does
        return Examined(replace(first, races=found.races), run.machine, tuple(run.clues))
    return told


def _resting(found: WholeResult, names: frozenset[str]) -> WholeResult:
    """An answer with what it rests on."""
    return replace(found, notes=(*found.notes, *(Note("reading", NOTES[name]) for name in sorted(names))))


class Drawn(Struct, frozen=True):
    """The ``result`` about a launch, and the ``timeline`` of an execution of it."""

    result: WholeResult
    timeline: Timeline

    @property
    def finding(self) -> bool | None:
        """As that of the result."""
        return self.result.finding


def drawn(kernels: tuple[Kernel, ...], file: str, limits: Limits) -> Drawn:
    """As ``whole``, with the timeline of the execution that has the races, or of one that is followed as far as it
    goes. Raises ``PtxmmError``."""
    run = _Whole(kernels, file, limits, assumed(kernels[0].launch))
    result = run.result()
    if run.told is None:
        run.told = run.machine = Machine(run.kernel, Plan(True, {}, set(), {}, set()), run.waiting, run.machine)
        run.told.history = History(run.told.clocks, run.told.trace)
        with suppress(Stopped, Timeout):
            run.told.run(limits)
    return Drawn(result, timeline(run.told, run.raced))


class _Whole:
    def __init__(
        self,
        kernels: tuple[Kernel, ...],
        file: str,
        limits: Limits,
        lenient: frozenset[str] | None,
        before: Machine | None = None,
    ) -> None:
        kernel = kernels[0]
        self.kernels, self.kernel, self.file, self.limits = kernels, kernel, file, limits
        self.start = time.perf_counter()
        self.waiting = polls(kernel.code.body, observed(kernel))
        self.finals: Finals | None = None
        self.every: list[Final] = []
        self.some: list[Final] = []
        self.ordered = True
        self.agreeing: set[int] = set()
        """The stores that race with the same value."""
        self.loose: frozenset[Term] | None = None
        self.plan = Plan(True, {}, set(), {}, set())
        self.elsewhere = False
        """Whether other layouts of the variables were tried."""
        self.lenient = lenient
        self.rests: frozenset[str] = frozenset()
        """What may give another answer."""
        self.enough = False
        """Whether that gives no race, as far as it is known already."""
        self.runs = 0
        self.machine = Machine(kernel, self.plan, self.waiting, before, lenient=lenient or frozenset())
        self.explains = before is None
        self.clues: list[tuple[int, ...]] = []
        self.raced: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self.told: Machine | None = None
        """An execution with its history."""

    def result(self) -> WholeResult:
        if len(self.kernels) > 1:
            return self._made("unsupported", Stopped("unsupported", "several grids are not followed yet"))
        if self.kernel.launch.host:
            return self._made("unsupported", Stopped("unsupported", "threads of the host are not followed yet"))
        if self.lenient is None:
            return self._made("unsupported", Stopped("unsupported", "this reading of a launch is not followed yet"))
        try:
            races = self._races({})
            if not races:
                self.rests = frozenset()
                self._refuse_elsewhere()
        except Stopped as stop:
            return self._made(stop.word, stop)
        except Timeout:
            return self._made("timeout", None)
        return self._made("race" if races else "race-free", None, races)

    def _races(self, last: Mapping[Arrival, frozenset[Arrival]]) -> tuple[WholeRace, ...]:
        """The races of the launch, where the atomic operations ``last`` come last. Raises ``Stopped`` where it is not
        known whether there are any."""
        self.plan = Plan(True, {}, set(), {}, set(), last)
        found, groups = self._executed()
        self._note(self.some, every=False)
        if races := self._sure(found, groups):
            return races
        self.ordered &= not self.machine.strong.logs
        elects = bool(self.machine.leaders.lanes)
        elects &= ELECT_FIRST not in self.machine.lenient
        self.enough = False
        if not self.machine.strong.choices and not self.machine.decisions:
            if groups:
                (one, other), pairs = next(iter(groups.items()))
                self._refuse_unsure(one, other, found, pairs[0])
            if not elects:
                return self._free()
            self._refuse_doubts()
            self.enough = not last and not compares(self.kernel.code.body)
        if elects:
            self.rests = frozenset({ELECT_FIRST})
        self.plan = Plan(False, {}, set(), {}, set(self.machine.strong.logs), last)
        while True:
            found, groups = self._executed()
            try:
                if not narrowed(self.machine, self.plan):
                    break
            except Varied as varied:
                return self._each(varied.arrivals, last)
        for (_, other), pairs in groups.items():
            message = "whether this is ordered depends on the schedule"
            raise Stopped("undecided", message, other, int(found.agent[pairs[0][1]]))
        return self._free()

    def _free(self) -> tuple[WholeRace, ...]:
        """There are no races, as the last run says of all executions. Raises ``Stopped`` where it does not."""
        self._refuse_doubts()
        self._note(self.every, every=True)
        return ()

    def _refuse_elsewhere(self) -> None:
        """Raise ``Stopped`` where the launch does something else if its variables lie elsewhere."""
        if not compares(self.kernel.code.body):
            return
        plan = Plan(True, {}, set(), {}, set())
        message = "what the launch does depends on where its variables lie, which is left open"
        here, there = self._places(plan)
        try:
            here.run(self.limits)
            there.run(self.limits)
        except Stopped as stop:
            raise Stopped("undecided", f"{message}: {stop.message}", stop.at, stop.thread) from None
        if signature(here) != signature(there):
            raise Stopped("undecided", message)
        self.elsewhere = True

    def _places(self, plan: Plan) -> tuple[Machine, Machine]:
        """Two executions, still to be run, with the variables at different places."""
        here, there = (
            Machine(self.kernel, plan, self.waiting, turned=turned, lenient=self.lenient) for turned in (False, True)
        )
        return here, there

    def _note(self, states: list[Final], every: bool) -> None:
        """Add to ``states`` what the condition is about at the end of the last run."""
        if self.finals is None:
            self.finals = finals(self.machine)
        if self.finals is not None:
            states.append(self.finals.of(self.machine, every))

    def _fixed(self, states: list[Final]) -> tuple[Final, ...]:
        """``states`` without the values that depend on where the variables of the launch lie."""
        if self.finals is None or not states or not any(self.finals.decides(state) for state in states):
            return tuple(states)
        if self.loose is None:
            self.loose = self._compared(self.finals)
        return tuple({term: None if term in self.loose else word for term, word in s.items()} for s in states)

    def _compared(self, about: Finals) -> frozenset[Term]:
        """What has other values at the end of the first run if the variables lie elsewhere."""
        plan = Plan(True, {}, set(), {}, set())
        here, there = self._places(plan)
        try:
            here.run(self.limits)
            there.run(self.limits)
        except (Stopped, Timeout):
            return frozenset(about.names)
        one, other = (about.at(machine).meanings(machine) for machine in (here, there))
        return frozenset(term for term in about.names if one[term] != other[term])

    def _each(self, arrivals: frozenset[Arrival], last: Mapping[Arrival, frozenset[Arrival]]) -> tuple[WholeRace, ...]:
        """The races of the launch if any of some atomic operations comes last."""
        known = frozenset().union(*last.values(), last)
        self.runs += len(arrivals)
        if arrivals & known or len(arrivals) < 2 or self.runs > _MOST_RUNS:
            message = "whether this is executed depends on the order of atomic operations"
            if self.runs > _MOST_RUNS:
                message += f", of which more than {_MOST_RUNS} may come last"
            decision = next(iter(self.machine.decisions.values()))
            raise Stopped("undecided", message, decision.at, decision.thread)
        for arrival in sorted(arrivals):
            if races := self._races({**last, arrival: arrivals - {arrival}}):
                return races
        return ()

    def _executed(self) -> tuple[Accesses, Pairs]:
        """The accesses of a run, and the pairs of them that nothing orders, by their instructions."""
        machine = self.machine = Machine(self.kernel, self.plan, self.waiting, self.machine)
        try:
            machine.run(self.limits)
        except Stopped as stop:
            if machine.leads and stop.word not in ("undecided", "unsupported"):
                message = f"this may happen if another lane is elected (9.7.14.14): {stop.message}"
                raise Stopped("undecided", message, stop.at, stop.thread) from None
            raise
        found = accesses(machine.memory, machine.trace)
        self._refuse_noncoherent(found)
        self._refuse_opaque()
        groups: Pairs = {}
        same = self._same(found)
        self.agreeing |= racing(found, machine.clocks, same)
        given = machine.clusters, machine.trace.proxies, same, PROXY_WAR in machine.lenient
        every = unordered(found, machine.clocks, self._levels(), *given)
        for number, (a, b) in enumerate(islice(every, _PAIRS)):
            groups.setdefault((int(found.instruction[a]), int(found.instruction[b])), []).append((a, b))
            if number % 4096 == 0:
                self.limits.check()
        return found, groups

    def _refuse_doubts(self) -> None:
        """Raise ``Stopped`` where a run without races says nothing of others, or leaves something undone."""
        self.machine.copies.check_end()
        self.machine.mbarriers.check_ends()
        if self.machine.undecided is not None:
            raise self.machine.undecided
        self._refuse_ended()

    def _refuse_ended(self) -> None:
        """Raise ``Stopped`` where shared memory of a CTA is accessed that may have ended (5.1.7)."""
        machine, columns = self.machine, self.machine.trace.columns()
        owners = machine.memory.remote(columns["place"], machine.clocks.cta[columns["agent"]])
        for cta in np.unique(owners[owners >= 0]).tolist():
            rows = np.flatnonzero(owners == cta)
            agents, clocks = columns["agent"][rows], columns["clock"][rows]
            alive = np.zeros(len(rows), np.bool_)
            for view in np.unique(machine.ends[machine.cta == cta]).tolist():
                alive |= machine.clocks.after(np.full(len(rows), view), agents - agents - 1, agents, clocks)
            if not alive.all():
                row = rows[int(np.flatnonzero(~alive)[0])]
                message = "this accesses shared memory of a CTA that may have ended before"
                raise Stopped("undecided", message, int(columns["instruction"][row]), int(columns["agent"][row]))

    def _sure(self, found: Accesses, groups: Pairs) -> tuple[WholeRace, ...]:
        """Those of the pairs of one execution that race."""
        sure: list[tuple[tuple[int, int], int]] = []
        for _, pairs in sorted(groups.items()):
            for pair in pairs:
                self._refuse_open(found, *pair)
            first = next((pair for pair in pairs[:_MOST] if not self._observed(found, *pair)), None)
            if first is not None:
                sure.append((first, len(pairs)))
        every = np.array([pair for pairs in groups.values() for pair in pairs], np.int64).reshape(-1, 2)
        if sure:
            self.rests = self._patterns(found, *every.T)
        explain = self._explained(found) if sure and self.explains else None
        return tuple(self._race(found, pair, count, explain) for pair, count in sure[:_MOST])

    def _explained(self, found: Accesses) -> Callable[[int, int], Nearly] | None:
        """What tells of a race of this execution, which is done once more with its history, how it is almost ordered;
        None if there is no time for that."""
        machine = Machine(self.kernel, self.plan, self.waiting, self.machine)
        machine.history = History(machine.clocks, machine.trace)
        try:
            machine.run(self.limits)
        except Timeout:
            return None
        self.told = machine
        return partial(nearly, machine, found)

    def _patterns(self, found: Accesses, before: Numbers, behind: Numbers) -> frozenset[str]:
        """Of what pairs of accesses that race look like what programs rely on (``lenient``)."""
        generic, reads = (found.proxy[before] == 0, found.proxy[behind] == 0), found.kind[before] == READ
        there, cta = found.kind[behind], self.machine.clocks.cta
        apart = cta[found.agent[before]] != cta[found.agent[behind]]
        given = found.view[behind], found.agent[behind], found.agent[before], found.clock[before]
        overwrites = reads & generic[0] & ~generic[1] & (there != READ)
        ordered = self.machine.clocks.after(*given)
        names = {
            PROXY_WAR: overwrites & ordered,
            DESTINATION_CTA: apart & ~generic[0] & ~generic[1],
            SAME_VALUE: ~reads & (there == WRITE) & ~generic[0] & ~generic[1],
        }
        if any(isinstance(op, ops.Wgmma) for op in self.kernel.code.body):
            names[WGMMA_SYNC] = overwrites & ~ordered
        return frozenset(name for name, which in names.items() if which.any())

    def _observed(self, found: Accesses, a: int, b: int) -> bool:
        """Whether somebody may have observed a strong write before the other access (8.9.5, causality order (2))."""
        clocks, one = self.machine.clocks, np.array([b])
        if not self._level(int(found.instruction[a])) or found.kind[a] == READ:
            return False
        return any(
            place <= found.cell[a] < place + size
            and clocks.after(found.view[one], found.agent[one], np.array([read.thread]), np.array([read.clock]))[0]
            for read in self.machine.strong.reads
            for place, size in [read.location]
            if read.level != WEAK
        )

    def _refuse_unsure(self, one: int, other: int, found: Accesses, pair: tuple[int, int]) -> None:
        """Raise ``Stopped`` where it is not known whether two accesses race."""
        raise Stopped("undecided", "whether this is ordered depends on the schedule", other, int(found.agent[pair[1]]))

    def _same(self, found: Accesses) -> Numbers:
        """For each access the number of what it writes where writes of the same value may race; -1 for others."""
        same, copies = np.full(len(found), -1, np.int64), self.machine.trace.same
        if self.machine.stored or copies:
            numbers: dict[tuple[int, int, bool, int], int] = {}
            for row in np.flatnonzero(found.kind == WRITE).tolist():
                copy = copies.get(int(found.row[row]))
                words = self._stored(found, row) if copy is None else {copy}
                if words is not None and len(words) == 1 and None not in words:
                    key = int(found.place[row]), int(found.size[row]), copy is None, next(iter(words)) or 0
                    same[row] = numbers.setdefault(key, len(numbers))
        return same

    def _stored(self, found: Accesses, row: int) -> set[int | None] | None:
        """What an access writes that may race with writes of the same value; None if it may not."""
        columns = (found.instruction, found.place, found.size, found.agent, found.clock)
        at, place, size, agent, clock = (int(column[row]) for column in columns)
        return self.machine.stored.get((at, place, size, agent, clock))

    def _refuse_open(self, found: Accesses, a: int, b: int) -> None:
        """Raise ``Stopped`` where it is not known whether two accesses that nothing orders write the same value."""
        one, other = self._stored(found, a), self._stored(found, b)
        alike = found.place[a] == found.place[b] and found.size[a] == found.size[b]
        if alike and one is not None and other is not None and (None in one or None in other):
            message = "this races unless it writes the same value, and what it writes is not worked out"
            raise Stopped("undecided", message, int(found.instruction[b]), int(found.agent[b]))

    def _level(self, at: int) -> int:
        op = self.kernel.code.body[at]
        scope = op.scope if isinstance(op, ops.Load | ops.Store | ops.Atomic) else None
        if isinstance(op, ops.BulkCopy) and op.reduction is not None:
            scope = "gpu"  # of its accesses that are atomic (9.7.10.24.7)
        if isinstance(op, ops.AsyncStore) and op.reduction is not None:
            scope = "cluster"
        return self.machine.strong.level(scope)

    def _levels(self) -> Numbers:
        """For each instruction how wide its scope is."""
        return np.array([self._level(at) for at in range(len(self.kernel.code.body))], np.int64)

    def _refuse_opaque(self) -> None:
        """Raise ``Stopped`` where the memory of an mbarrier is accessed otherwise (9.7.14.15)."""
        places = np.array([-ops.MBARRIER_BYTES, *self.machine.mbarriers.places()], np.int64)
        columns = self.machine.trace.columns()
        ends = columns["place"] + columns["size"]
        last = places[np.searchsorted(places, ends, "left") - 1]
        wrong = np.flatnonzero(last + ops.MBARRIER_BYTES > columns["place"])
        if wrong.size:
            message = "memory that is an mbarrier and something else is not followed yet"
            number = int(wrong[0])
            raise Stopped("unsupported", message, int(columns["instruction"][number]), int(columns["agent"][number]))

    def _refuse_noncoherent(self, found: Accesses) -> None:
        """Raise ``Stopped`` where ``ld.global.nc`` reads what the launch writes (9.7.10.9)."""
        body = self.kernel.code.body
        noncoherent = [at for at, op in enumerate(body) if isinstance(op, ops.Load) and op.nc]
        reads = np.isin(found.instruction, noncoherent) & (found.kind == READ)
        if reads.any():
            number = int(np.flatnonzero(reads)[0])
            message = "a non-coherent load of what the launch writes"
            raise Stopped("undefined", message, int(found.instruction[number]), int(found.agent[number]))

    def _race(
        self, found: Accesses, pair: tuple[int, int], count: int, explain: Callable[[int, int], Nearly] | None
    ) -> WholeRace:
        where = self.machine.memory.name(int(found.cell[pair[1]]))
        first, second = (self._spot(int(found.instruction[n]), int(found.agent[n])) for n in pair)
        if explain is None:
            return WholeRace(first, second, where, count)
        one, other = ((int(found.row[n]), int(found.agent[n])) for n in pair)
        self.raced.append((one, other))
        why = explain(*pair)
        self.clues.append((*(int(found.instruction[n]) for n in pair), *(at for at, _ in why.steps)))
        return WholeRace(first, second, where, count, tuple(self._spot(*step) for step in why.steps), why.fails)

    def _spot(self, at: int, agent: int) -> Spot:
        cta, thread = divmod(self.machine.copies.thread(agent), self.machine.size)
        source, grid = self.kernel.code.body[at].source, self.kernel.grid
        indices = _index(cta, grid.grid), _index(thread, grid.block)
        return Spot(source.span.line, " ".join(source.text.split()), cta, thread, *indices)

    def _waiting(self) -> tuple[Waiting, ...]:
        """Who waits for what, where all that have not ended wait."""
        machine = self.machine
        groups: dict[tuple[int, int], list[int]] = {}
        for thread in np.flatnonzero(machine.mode != ENDED).tolist():
            groups.setdefault((thread // machine.size, int(machine.pc[thread]) - 1), []).append(thread)
        found = []
        for (_, at), threads in list(groups.items())[:_MOST]:
            lacks, others = machine.lacks(threads[0])
            places = {int(machine.pc[other]) - 1: other for other in reversed(others) if machine.mode[other] != ENDED}
            ended = sum(machine.mode[other] == ENDED for other in others)
            lacks += f"; {ended} that have not have ended" if ended else ""
            missing = tuple(self._spot(place, other) for place, other in places.items())
            found.append(Waiting(self._spot(at, threads[0]), len(threads), lacks, missing))
        return tuple(found)

    def _notes(self) -> tuple[Note, ...]:
        notes = [Note("remark", text) for text in self.kernel.remarks]
        body = self.kernel.code.body
        if SAME_VALUE in self.kernel.assumed:
            notes.append(Note("kernel", f"races of writes of the same value are left out ({SAME_VALUE})"))
        raced = {body[at].source.span.line for at in self.agreeing}
        written = {body[key[0]].source.span.line for key in self.machine.stored}
        for item in self.kernel.allowed:
            if item.line in raced:
                text = f"writes of the same value race, which is allowed: {item.why}"
                notes.append(Note("kernel", f"line {item.line}: {text}"))
            elif item.line not in written:
                text = f"no thread writes here, so that nothing is allowed: {item.why}"
                notes.append(Note("kernel", f"line {item.line}: {text}"))
            else:
                notes.append(Note("kernel", f"line {item.line}: no writes of the same value race here: {item.why}"))
        if self.elsewhere:
            notes.append(Note("remark", _LAYOUTS))
        return tuple(notes)

    def _made(self, answer: Answer, stop: Stopped | None, races: tuple[WholeRace, ...] = ()) -> WholeResult:
        spot = None
        if stop is not None and stop.at is not None:
            spot = self._spot(stop.at, stop.thread or 0)
        status: Status = "complete" if answer in _FOUND else "timeout" if answer == "timeout" else "inconclusive"
        launch, notes = self.kernel.launch, self._notes()
        name = named_test(self.kernels, launch)
        reason = "the time limit was reached" if stop is None else f"{spot}: {stop.message}" if spot else stop.message
        if races:
            reason = f"data race of {races[0].place}: {races[0].first} and {races[0].second}"
        free = answer == "race-free"
        known = Known(
            answer, reason, None if stop is None else stop.refutes, self.finals,
            self._fixed(self.every if free else []), self._fixed(self.some if free else self.every + self.some),
            self.ordered,
        )  # fmt: skip
        model = f"{_MODEL}[{PROXY_WAR}=free]" if PROXY_WAR in (self.lenient or ()) else _MODEL
        told = Told(self.file, name, model, notes, time.perf_counter() - self.start)
        return WholeResult(
            self.file, name, model, status, answer, _FOUND.get(answer), self.machine.count, self.kernel.grid.ctas,
            self.machine.trace.count, races, tuple(verdicts(launch, known, told)), spot,
            None if stop is None else stop.message, notes, told.seconds,
            self._waiting() if answer == "deadlock" else (),
        )  # fmt: skip


def _index(number: int, sizes: Dimensions) -> Dimensions:
    """The number of a CTA or of a thread by its three dimensions."""
    x, y, _ = sizes
    return number % x, number // x % y, number // (x * y)
