"""The answer about a launch: an execution of it, and then what of that other executions need not have.

One execution tells of all others (docs/whole.md) where no branch, address or operand of a barrier depends on anything
that another schedule would change, as long as nothing races, and where who meets at a barrier, and what loops that wait
acquire, is the same.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from ptxmm.analysis.result import Note, Status
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats.modules.kernel import Kernel, observed
from ptxmm.formats.modules.launch import ACTIVE_TOGETHER, ELECT_FIRST
from ptxmm.formats.modules.module import hosts, named_test
from ptxmm.program.condition import Term
from ptxmm.ptx import ops
from ptxmm.whole.claims import Known, Told, verdicts
from ptxmm.whole.elsewhere import Layouts
from ptxmm.whole.executed import Executed
from ptxmm.whole.execution.gathering import gathers
from ptxmm.whole.execution.handshakes import taking_turns
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.polls import looks, polls
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.explain.choices import choice
from ptxmm.whole.explain.contents import resting
from ptxmm.whole.explain.nearly import Nearly, nearly, told
from ptxmm.whole.finals import Final, Finals, evaluate, finals
from ptxmm.whole.launched import launched
from ptxmm.whole.layouts import PAIRS
from ptxmm.whole.lenient import VECTOR, model
from ptxmm.whole.narrowing import Glanced, Varied, narrowed, refuse_order, unfound, widened
from ptxmm.whole.older import late
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.history import History
from ptxmm.whole.order.origins import Key
from ptxmm.whole.order.strong import Arrival, Chosen, Glance, Location, Plan, follow
from ptxmm.whole.result import Answer, WholeRace, WholeResult
from ptxmm.whole.spots import notes, spot_of, waiting

_LAYOUTS = (
    "the kernel compares addresses, stores them or looks at their bits, and where its variables lie is left open: "
    f"{2 * PAIRS} layouts were tried, and do the same"
)
_CONTENTS = (
    "`{name}` has no `init`, and is taken to hold 0; what it holds decides {text}: other values may race "
    '(init = "unknown" leaves it open)'
)
_MOST = 20
_MOST_RUNS = 64
"""So many choices of what comes last, or of what looks find, are tried."""
_LARGE = 100_000
"""Of an execution with so many accesses the memory is given back before the next but one."""
_MORE, _FEW = 4, 10_000
"""An execution in which looks find something else takes at most so many times the steps of the first one, and some."""
_SCHEDULE = "whether this is ordered depends on the schedule"
_FOUND: dict[str, bool | None] = {
    "race-free": True, "race": False, "deadlock": False, "outside": False, "undefined": False,
}  # fmt: skip


class Deciding:
    """What is known of a launch of ``kernels``, where ``lenient`` is assumed (None: what is not followed), from one
    execution after the other: the last one is that of ``machine``. ``before``: an execution of a launch that differs in
    some of its instructions; then races are not explained. ``turns``: whether threads may take turns by ``cas``.

    ``rests``: what may give another answer; ``enough``: whether that gives no race, as far as it is known already. Of
    each race, ``clues`` has the instructions of the two accesses and of what almost orders them, and ``raced`` the rows
    and agents of the two. ``told``: an execution with its history."""

    def __init__(
        self, kernels: tuple[Kernel, ...], file: str, limits: Limits, lenient: frozenset[str] | None,
        before: Machine | None = None, layout: int = 0, turns: bool = True,
    ) -> None:  # fmt: skip
        self.launch = launched(kernels, hosts(kernels))
        if turns:
            self.launch = taking_turns(self.launch)
        self.kernels, self.kernel, self.file, self.limits = kernels, self.launch.kernel, file, limits
        self.start = time.perf_counter()
        body, seen = self.kernel.code.body, observed(self.kernel)
        self.waiting = polls(body, seen)
        self.waiting |= gathers(body, seen, self.waiting)
        self.lenient = lenient
        self.plan = follow()
        self.machine = Machine(self.launch, self.plan, self.waiting, before, layout, lenient or frozenset())
        self.rests: frozenset[str] = frozenset()
        self.enough = False
        self.clues: list[tuple[int, ...]] = []
        self.raced: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self.told: Machine | None = None
        self._layout = layout
        self._layouts = Layouts(self.launch, self.waiting, lenient or frozenset(), limits)
        self._elsewhere = self._chooses = False
        self._explains = before is None and not layout
        self._agreeing: set[int] = set()
        self._runs = self._steps = 0
        self._ordered = True
        self._finals: Finals | None = None
        self._every: list[Final] = []
        self._open: list[Final] = []
        self._some: list[Final] = []
        self._loose: frozenset[Term] | None = None
        self._told_late: tuple[Final, str] | None = None

    def result(self) -> WholeResult:
        """The answer."""
        if self.launch.mixed is not None:
            message = f"the register {self.launch.mixed}, which has two widths in two grids, is not followed yet"
            return self._made("unsupported", Stopped("unsupported", message))
        if self.lenient is None:
            return self._made("unsupported", Stopped("unsupported", "this reading of a launch is not followed yet"))
        try:
            races = self._races({}, {})
            if not races:
                self.rests = frozenset()
                self._refuse_elsewhere()
                self._look_late()
        except Stopped as stop:
            races = self._plain() if stop.word == "undecided" and self._explains else ()
            vectors = stop.word == "undecided" and any(looks(op) and len(op.dst) > 1 for op in self.machine.body)
            done = (self.machine.body[at] for at in self.machine.executed)
            masks = stop.word == "undecided" and any(
                isinstance(op, ops.WarpExchange) and op.op == "activemask" for op in done
            )
            self.rests |= stop.rests | ({VECTOR} if vectors else set()) | ({ACTIVE_TOGETHER} if masks else set())
            return self._made("race", None, races) if races else self._made(stop.word, stop)
        except Timeout:
            return self._made("timeout", None)
        return self._made("race" if races else "race-free", None, races)

    def _races(
        self, last: Mapping[Arrival, frozenset[Arrival]], chosen: Mapping[Glance, Chosen]
    ) -> tuple[WholeRace, ...]:
        """The races of the launch, where the atomic operations ``last`` come last, and glances find what is ``chosen``.
        Raises ``Stopped`` where it is not known whether there are any."""
        found = self._found(last, chosen)
        if isinstance(found, Varied):
            return self._each(found.arrivals, last, chosen)
        return self._either(found, last, chosen) if isinstance(found, Glanced) else found

    def _found(
        self, last: Mapping[Arrival, frozenset[Arrival]], chosen: Mapping[Glance, Chosen]
    ) -> tuple[WholeRace, ...] | Varied | Glanced:
        """The same, or of what that depends on."""
        self.plan, one = follow(last, chosen, self._steps), None
        try:
            one = self._executed()
            self._steps = self._steps or _MORE * self.machine.steps + _FEW
            self._note(self._some, every=False)
            if races := self._sure(one):
                return races
            if self.plan.exact:
                one.refuse_ended()
                self._delay()
        except Stopped as failed:
            if one is None and not chosen and not last and failed.word == "undecided" and (races := self._begun()):
                return races
            if not chosen or failed.word != "undecided":
                raise  # else there perhaps is no execution in which all of that is found
        self._ordered &= not self.machine.strong.logs
        elects = bool(self.machine.leaders.lanes)
        elects &= ELECT_FIRST not in self.machine.lenient
        self.enough = False
        chooses = one is None or self.machine.strong.choices or bool(self.machine.decisions)
        self._chooses |= chooses or elects
        if one is not None and not chooses:
            if (stop := one.unsure(_SCHEDULE)) is not None:
                raise stop
            if not elects:
                return self._free(one, self._every)
            one.refuse_doubts()
            self.enough = not last and not self._layouts.matter
        if elects:
            self.rests = frozenset({ELECT_FIRST})
        self.plan = self._planned(set(self.machine.strong.logs), last, chosen, {})
        try:
            if self.machine.decisions:
                self.plan = self._planned(self.plan.watched, last, chosen, None)
                self._executed()
                refuse_order(self.machine, self.plan)
                self.plan = self._planned(self.plan.watched, last, chosen, {})
            run = self._settled()
            if run.groups and self._sequential():
                self.plan = self._planned(self.plan.watched, last, chosen, {})
                self.plan.sequential = True
                run = self._settled()
            if run.groups and (chosen or self._late()):
                run = self._widened(run)
                if chosen and unfound(self.machine, self.plan):
                    return ()
        except (Varied, Glanced) as several:
            return several.with_traceback(None)  # which would keep executions
        if (stop := run.unsure(_SCHEDULE)) is not None:
            raise stop
        return self._free(run, self._open if one is None else self._every)

    def _delay(self) -> None:
        """Raise ``Stopped`` where this execution may not be defined, and one in which something of it comes as late as
        it can is not."""
        one = self.machine
        for moment in () if one.undecided is None else one.undecided.moments:
            self.machine = Machine(self.launch, self.plan, self.waiting, one, self._layout)
            self.machine.delayed = moment, _MORE * one.steps + _FEW
            try:
                self.machine.run(self.limits)
            except Stopped as stop:
                if stop.word == "undefined" and stop.at == moment.at and stop.other is not None:
                    raise
        self.machine = one

    def _planned(
        self, watched: set[Location], last: Mapping[Arrival, frozenset[Arrival]], chosen: Mapping[Glance, Chosen],
        late: dict[tuple[Key, int], frozenset[Release]] | None, opened: Iterable[int] = (),
    ) -> Plan:  # fmt: skip
        """The plan to begin with."""
        looked = {at for _, at, _ in chosen}
        return Plan(
            False, {}, looked, {}, watched, last, {}, late, set(opened), chosen=chosen, steps=self._steps,
            sequential=self.plan.sequential,
        )  # fmt: skip

    def _sequential(self) -> bool:
        """Whether Fence-SC order may order anything (8.9.3)."""
        return any(isinstance(op, ops.Fence) and op.sem == "sc" for op in self.kernel.code.body)

    def _settled(self) -> Executed:
        """A run that tells of all others. Raises ``Stopped``, ``Varied`` and ``Glanced`` where none does."""
        while True:
            run = self._executed()
            if not narrowed(self.machine, self.plan):
                return run

    def _late(self) -> bool:
        """Whether late reads may acquire anything."""
        return any(read.late and read.tails for read in self.machine.strong.reads)

    def _widened(self, run: Executed) -> Executed:
        """The same where what races in ``run`` may be ordered by late reads. What these acquire counts if all accesses
        are the same without that, whatever is found where they race then. Raises ``Stopped`` and ``Varied``."""
        while fresh := run.cells() - self.plan.open:
            self.plan.open |= fresh
            try:
                run = self._settled()
            except Stopped as stop:
                message = f"{stop.message}: it is data of which a thread learns outside of a loop that it is there"
                raise Stopped("undecided", message, stop.at, stop.thread) from None
        if self.machine.undecided is not None:
            raise self.machine.undecided
        given, opened = (self.plan.watched, self.plan.last, self.plan.chosen), self.plan.open
        if unfound(self.machine, self.plan):
            return run
        while run.groups and widened(self.machine, self.plan):
            self.plan = self._planned(*given, self.plan.late, opened)
            run = self._settled()
        if not run.groups:
            self.plan = self._planned(*given, self.plan.late)
            run = self._settled()
        return run

    def _free(self, run: Executed, states: list[Final]) -> tuple[WholeRace, ...]:
        """There are no races, as a run says of all executions, whose final values go to ``states``. Raises ``Stopped``
        where it does not."""
        run.refuse_doubts()
        self._note(states, every=True)
        return ()

    def _either(
        self, glanced: Glanced, last: Mapping[Arrival, frozenset[Arrival]], chosen: Mapping[Glance, Chosen]
    ) -> tuple[WholeRace, ...]:
        """The races of the launch whatever a glance finds."""
        self._runs += 2
        if self._runs > _MOST_RUNS:
            decision = next(iter(self.machine.decisions.values()))
            message = f"whether this is executed depends on what looks find, in more than {_MOST_RUNS} ways together"
            raise Stopped("undecided", message, decision.at, decision.thread)
        for each in glanced.may:
            if races := self._races(last, {**chosen, glanced.glance: each}):
                return races
        return ()

    def _each(
        self, arrivals: frozenset[Arrival], last: Mapping[Arrival, frozenset[Arrival]],
        chosen: Mapping[Glance, Chosen],
    ) -> tuple[WholeRace, ...]:  # fmt: skip
        """The races of the launch if any of some atomic operations comes last."""
        self._runs += len(arrivals)
        if arrivals & last.keys() or len(arrivals) < 2 or self._runs > _MOST_RUNS:
            message = "whether this is executed depends on the order of atomic operations"
            if self._runs > _MOST_RUNS:
                message += f", of which more than {_MOST_RUNS} may come last"
            decision = next(iter(self.machine.decisions.values()))
            raise Stopped("undecided", message, decision.at, decision.thread)
        for arrival in sorted(arrivals):
            if races := self._races({**last, arrival: arrivals - {arrival}}, chosen):
                return races
        return ()

    def _executed(self) -> Executed:
        """A run with the present plan. Raises ``Stopped``."""
        large = self.machine.trace.count > _LARGE
        machine = self.machine = Machine(self.launch, self.plan, self.waiting, self.machine, self._layout)
        if large:
            gc.collect()  # the machine before refers to itself
        try:
            machine.run(self.limits)
            run = Executed(machine, self.limits)
        except Stopped as stop:
            if machine.leads and stop.word not in ("undecided", "unsupported"):
                message = f"this may happen if another lane is elected (9.7.14.14): {stop.message}"
                raise Stopped("undecided", message, stop.at, stop.thread) from None
            if self.plan.chosen and not self.plan.exact and stop.word != "unsupported":  # it may be no execution
                raise Stopped("undecided", stop.message, stop.at, stop.thread) from None
            raise
        self._agreeing |= run.agreeing
        return run

    def _look_late(self) -> None:
        """Where the condition is not decided, note what is there at the end of executions in which what reads have
        found, on which that depends, is written as late as it can be."""
        about, machine, states = self._finals, self.machine, self._every + self._open
        condition = self.kernel.launch.condition
        if about is None or condition is None or all(about.decides(state) for state in states):
            return
        for each in late(machine, [key for state in states for key in about.reads(machine, state)]):
            self.machine = Machine(self.launch, follow(), self.waiting, machine, self._layout)
            self.machine.delayed = each.write, _MORE * machine.steps + _FEW
            with suppress(Stopped):
                self.machine.run(self.limits)
                self._note(self._some, every=False)
                if evaluate(about.proposition, self._some[-1]) is (condition.kind != "forall"):
                    read, write = (spot_of(machine, *step) for step in (each.read, each.write.step))
                    self._told_late = self._some[-1], f"{read} comes before {write}"
                    break
        self.machine = machine

    # -- where the variables lie --

    def _refuse_elsewhere(self) -> None:
        """Raise ``Stopped`` where the launch does something else if its variables lie elsewhere."""
        if not self._layouts.matter:
            return
        message = "what the launch does depends on where its variables lie, which is left open"
        try:
            alike = self._layouts.alike()
            # What one execution of the same instructions does not tell has to be so in each layout.
            others = range(1, 2 * PAIRS) if alike and (self._chooses or self._layouts.choose()) else ()
            given = self.kernels, self.file, self.limits, self.lenient
            alike &= not any(
                Deciding(*given, layout=layout, turns=bool(self.launch.swapping))._races({}, {}) for layout in others
            )
        except Stopped as stop:
            raise Stopped("undecided", f"{message}: {stop.message}", stop.at, stop.thread) from None
        if not alike:
            raise Stopped("undecided", message)
        self._elsewhere = True

    def _note(self, states: list[Final], every: bool) -> None:
        """Add to ``states`` what the condition is about at the end of the last run."""
        if self._finals is None:
            self._finals = finals(self.machine)
        if self._finals is not None:
            states.append(self._finals.of(self.machine, every))

    def _fixed(self, states: list[Final]) -> tuple[Final, ...]:
        """``states`` without the values that depend on where the variables of the launch lie."""
        if self._finals is None or not states or not any(self._finals.decides(state) for state in states):
            return tuple(states)
        if self._loose is None:
            self._loose = self._compared(self._finals)
        return tuple({term: None if term in self._loose else word for term, word in s.items()} for s in states)

    def _compared(self, about: Finals) -> frozenset[Term]:
        """What has other values at the end of the first run if the variables lie elsewhere."""
        try:
            one, *others = (about.at(machine).meanings(machine) for machine in self._layouts.executed())
        except (Stopped, Timeout):
            return frozenset(about.names)
        return frozenset(term for term in about.names if any(one[term] != other[term] for other in others))

    # -- what is told --

    def _sure(self, run: Executed) -> tuple[WholeRace, ...]:
        """Those of the pairs of one execution that race. Raises ``Stopped`` where that is not known."""
        sure = run.sure()
        if sure:
            self.rests = run.patterns()
        explain = self._explained(run) if sure and self._explains else None
        return tuple(self._race(run, pair, count, explain) for pair, count in sure[:_MOST])

    def _plain(self) -> tuple[WholeRace, ...]:
        """The races of an execution in which values are what they are, whatever they depend on, waits at mbarriers fail
        where that decides something, and atomic operations of threads that come together are done in the other order;
        else of one in which one CTA, warp or lane after the other goes on as long as it can, from the last or first."""
        machine, plan = self.machine, self.plan
        for turn in (0, -1, 1):
            self.plan = follow(steps=_MORE * machine.steps + _FEW)
            self.plan.plain, self.plan.turn = True, turn
            self.machine = Machine(self.launch, self.plan, self.waiting, machine, self._layout)
            try:
                with suppress(Stopped):
                    self.machine.run(self._part() if turn else self.limits)
                if races := self._begun():
                    return races
            except Timeout:
                break
        self.machine, self.plan = machine, plan
        return ()

    def _part(self) -> Limits:
        """A quarter of the time that is left, so that what else is tried has some, too."""
        deadline, now = self.limits.deadline, time.monotonic()
        return self.limits if deadline is None else replace(self.limits, deadline=now + (deadline - now) / 4)

    def _begun(self) -> tuple[WholeRace, ...]:
        """The races of an execution as far as it is followed: what comes behind orders nothing that is there already,
        so that each execution that begins so has them."""
        try:
            return self._sure(Executed(self.machine, self.limits))
        except Stopped:
            return ()

    def _explained(self, run: Executed) -> Callable[[int, int], Nearly] | None:
        """What tells of a race of this execution, which is done once more with its history, how it is almost ordered;
        None if there is no time for that."""
        machine = Machine(self.launch, self.plan, self.waiting, self.machine, self._layout)
        machine.history = History(machine.clocks, machine.trace)
        try:
            with suppress(Stopped):  # as the execution did of which this is told
                machine.run(self.limits)
        except Timeout:
            return None
        self.told = machine
        return partial(nearly, machine, run.found, told(machine.history))

    def _race(
        self, run: Executed, pair: tuple[int, int], count: int, explain: Callable[[int, int], Nearly] | None
    ) -> WholeRace:
        found, machine = run.found, self.machine
        where = machine.memory.name(int(found.cell[pair[1]]))
        first, second = (spot_of(machine, int(found.instruction[n]), int(found.agent[n])) for n in pair)
        if explain is None:
            return WholeRace(first, second, where, count)
        one, other = ((int(found.row[n]), int(found.agent[n])) for n in pair)
        self.raced.append((one, other))
        why = explain(*pair)
        self.clues.append((*(int(found.instruction[n]) for n in pair), *(at for at, _ in why.steps)))
        steps = tuple(spot_of(machine, *step) for step in why.steps)
        return WholeRace(first, second, where, count, steps, why.fails)

    def _made(self, answer: Answer, stop: Stopped | None, races: tuple[WholeRace, ...] = ()) -> WholeResult:
        spot = None
        if stop is not None and stop.at is not None:
            spot = spot_of(self.machine, stop.at, stop.thread or 0)
        status: Status = "complete" if answer in _FOUND else "timeout" if answer == "timeout" else "inconclusive"
        launch, said = self.kernel.launch, notes(self.machine, self._agreeing)
        said += (Note("remark", _LAYOUTS),) if self._elsewhere else ()
        name = named_test(self.kernels, launch)
        reason = "the time limit was reached" if stop is None else f"{spot}: {stop.message}" if spot else stop.message
        if races:
            reason = f"data race of {races[0].place}: {races[0].first} and {races[0].second}"
        free = answer == "race-free"
        if free and self._explains and (rest := resting(self.machine)) is not None:
            where = spot_of(self.machine, rest[1], 0)
            text = _CONTENTS.format(name=rest[0], text=f"line {where.line}: {where.text}")
            said += (Note("kernel", text),)
        known = Known(
            answer, reason, None if stop is None else stop.refutes, self._finals,
            self._fixed(self._every if free else []), self._fixed(self._open if free else []),
            self._fixed(self._some if free else self._every + self._some), self._ordered,
            self._told_late,
        )  # fmt: skip
        under = model(self.lenient or frozenset())
        told = Told(self.file, name, under, said, time.perf_counter() - self.start)
        return WholeResult(
            self.file, name, under, status, answer, _FOUND.get(answer), self.launch.threads, self.launch.ctas,
            self.machine.trace.count, races, tuple(verdicts(launch, known, told)), spot,
            None if stop is None else stop.message, said, told.seconds,
            waiting(self.machine) if answer == "deadlock" else (),
            None if stop is None else choice(self.machine, stop, self.file),
            None if stop is None or stop.other is None else spot_of(self.machine, *stop.other),
        )  # fmt: skip
