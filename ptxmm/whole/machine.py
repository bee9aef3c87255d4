"""The execution of a launch, all threads at once: those that are at the same instruction execute it together.

It is one interleaving, in which each instruction is executed as a whole: an execution that every model allows. Of the
threads that can go on those go first that are furthest behind in the text, so that what diverged comes together again;
but no CTA waits for ever for others that go round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ptxmm.analysis.claims import BOUNDS, TRAPS
from ptxmm.engines.result import Limits
from ptxmm.events.explicit.values import arithmetic
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.formats.modules.launch import ELECT_FIRST
from ptxmm.program.test import TRAP
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole import matrices
from ptxmm.whole.accessing import Accessing
from ptxmm.whole.computing import results
from ptxmm.whole.copies import Copies
from ptxmm.whole.leaders import Leaders
from ptxmm.whole.mbarriers import Mbarriers
from ptxmm.whole.meeting import Meeting
from ptxmm.whole.memory import Flags, Numbers
from ptxmm.whole.options import ORDERLESS
from ptxmm.whole.origins import Derived, Inputs, Origin, Result, Words, concrete
from ptxmm.whole.polls import Outcome, Poll, Round
from ptxmm.whole.products import Products
from ptxmm.whole.state import ENDED, RUNS, WAITS, Stopped
from ptxmm.whole.strong import Arrival, Location, Plan, Strong
from ptxmm.whole.trace import ASYNC, ATOMIC, READ, WRITE, Trace
from ptxmm.whole.values import Value, extended, mask, unknown

_OTHER = 255
_PATIENCE = 512
"""So many steps a CTA waits for others that could go on for ever."""


def _picked(choice: Words, words: tuple[int, int]) -> int | None:
    return None if choice[0] is None else words[choice[0]]


def _cut(words: Words, bits: int) -> int | None:
    return None if words[0] is None else words[0] & mask(bits)


class Machine(Accessing):
    """An execution of a launch of ``kernel``; ``plan``: what is known of others; ``waiting``: its loops that wait;
    ``lenient``: what is assumed (see there), else that of ``before``."""

    def __init__(
        self, kernel: Kernel, plan: Plan, waiting: Mapping[int, Poll], before: Machine | None = None,
        turned: bool = False, lenient: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(kernel, before, turned)
        self.lenient = lenient if lenient is not None else before.lenient if before else frozenset()
        self.trace = Trace(self.clocks)
        self.plan, self.waiting, self.exact = plan, waiting, plan.exact
        self.strong = Strong(self.clocks, self.clusters, plan)
        self._later: list[int] = []
        self._arrived: set[Arrival] = set()
        self._arrivals: dict[tuple[Location, int], int] = {}
        self._known_origins: dict[tuple[int, str, Inputs], Origin | None] = {}
        self._stored: dict[Location, Origin] = {}
        self._keeps = np.zeros(len(self.memory.bytes), np.bool_)
        self._parked: dict[Location, list[tuple[int, Poll, int, Inputs]]] = {}
        self.watched = np.zeros(len(self.memory.bytes), np.bool_)
        for location in sorted(plan.watched):
            self._watch(location)
        self.leaders = Leaders(self)
        self.racing = kernel.same_value
        self.stored: dict[tuple[int, int, int, int, int], set[int | None]] = {}
        """What is written by stores that may race with the same value: by the instruction, the place, the size, and the
        thread with its clock."""
        self._meeting = Meeting(self, self.leaders)
        self.mbarriers = Mbarriers(self, self.strong, self.leaders)
        self.copies = Copies(self)
        self.products = Products(self, self.copies)
        self.leads = self.elects and not plan.exact and ELECT_FIRST not in self.lenient
        self.ends = np.zeros(self.every, np.int64)
        """The views of the threads at their ends."""
        self._atomics = np.zeros(len(self.memory.bytes), np.uint8)
        self._back: dict[int, tuple[int, bytes]] = {}
        self._rounds: dict[tuple[int, int, Words, int, bool], Outcome] = (
            before._rounds if isinstance(before, Machine) and before.kernel is kernel else {}
        )
        self._steps = 0
        self.executed: set[int] = set()
        """The instructions that some thread has executed."""
        self._last = np.zeros(self.every, np.int64)
        self._turn: int | None = None

    def run(self, limits: Limits) -> None:
        """Execute all threads to their ends.

        Raises ``Stopped``, and ``Timeout`` at the deadline of ``limits``."""
        while True:
            runs = self.mode == RUNS
            if not runs.any():
                if self._meeting.released(self.strong):
                    continue
                if self._later:
                    message = "whether this comes last depends on more than the order of what is done here"
                    raise Stopped("undecided", message, int(self.pc[self._later[0]]), self._later[0])
                self.products.check_end()
                self._meeting.finished(self.mbarriers.lacks)
                self.mbarriers.check_end()
                return
            at = self._next(runs)
            threads = np.flatnonzero(runs & (self.pc == at))
            if self._steps & 0xFF == 0:
                limits.check()
            self._steps += 1
            if self.history is not None:
                self.history.begin()
            self._last[threads] = self._steps
            if at == len(self.body):
                self._end(threads)
            else:
                self._execute(at, threads)
            for leader in self.leaders.stopped():
                self._end(np.array([leader]))

    def _next(self, runs: Flags) -> int:
        """Where those are that go on: furthest behind, of a CTA that the others have kept waiting if there is one."""
        if self._steps % _PATIENCE == 0:
            first = int(np.where(runs, self._last, self._steps).argmin())
            self._turn = int(self.cta[first]) if self._last[first] < self._steps - _PATIENCE else None
        if self._turn is not None:
            here = runs & (self.cta == self._turn)
            if here.any():
                return int(self.pc[here].min())
        return int(self.pc[runs].min())

    def _execute(self, at: int, threads: Numbers) -> None:
        op = self.body[at]
        chosen = threads
        if op.guard is not None:
            holds = self.truth(at, threads, op.guard.register) ^ op.guard.negated
            chosen = threads[holds]
        self.pc[threads] += 1
        if op.guard is not None and self.apart:
            chosen = self._lead(op, op.guard, at, chosen)
        if not len(chosen):
            return
        self.executed.add(at)
        refused = self.kernel.code.refused.get(at)
        if refused is not None and refused[1]:
            raise Stopped("unsupported", refused[0].message, at)
        execute = _EXECUTE.get(type(op))
        if execute is None:
            words = [word for word in op.source.text.split() if not word.startswith("@")]
            name = words[0] if words else type(op).__name__
            raise Stopped("unsupported", f"`{name.rstrip(';')}` is not followed in a whole launch yet", at)
        if at in self.products.touching:
            self.products.touch(at, chosen)
        if chosen[-1] >= self.count and isinstance(op, _TOGETHER):
            message = "an elected lane that executes alone what a warp executes together is not followed yet"
            raise Stopped("unsupported", message, at, int(chosen[-1]))
        execute(self, op, at, chosen)

    def lacks(self, thread: int) -> tuple[str, list[int]]:
        """What a thread waits for that has not ended, and the threads that have not come to it."""
        if (found := self._meeting.lacks(thread)) is not None:
            return found
        if (what := self.mbarriers.lacks(thread)) is not None:
            return what, []
        for location, parked in self._parked.items():
            if any(thread == waiter for waiter, _, _, _ in parked):
                return f"another value of {self.memory.name(location[0])}", []
        return "something that nobody does", []

    def _lead(self, op: ops.Op, guard: ops.Guard, at: int, chosen: Numbers) -> Numbers:
        """The leaders of warps that execute an instruction which their lanes do not, or the other way round, begin;
        those of the threads ``chosen`` that execute it all the same."""
        for leader, word in self.leaders.split(self.apart, at):
            lanes, holds = self.leaders.lanes[leader], word ^ guard.negated
            if isinstance(op, ops.Branch):
                self.leaders.branch(leader, at, holds)
                chosen = np.setdiff1d(chosen, lanes)
            elif isinstance(op, ops.COMPUTING):
                self._choose(op, at, leader, holds)
                chosen = np.setdiff1d(chosen, lanes)
            elif holds:
                self.leaders.alone(leader, at, guard.register, word)
            else:
                message = "which lane is elected makes a difference here (9.7.14.14)"
                raise Stopped("undecided", message, at, int(lanes[0]))
        return chosen

    def _choose(self, op: ops.Op, at: int, leader: int, holds: bool) -> None:
        """What the lanes of a leader compute, if they are elected and ``holds``, or if they are not and it does not."""
        lanes, elected = self.leaders.lanes[leader], self.leaders.elected(at, self.leaders.lanes[leader])
        for register, value in results(self, op, lanes):
            assert register is not None
            before = self.register(register.name, lanes)
            self.assign(register, lanes, unknown(len(lanes)))
            for number in np.flatnonzero(value.known & before.known).tolist():
                words = int(before.words[number]), int(value.words[number])
                chosen = words if holds else words[::-1]
                origin = Derived(partial(_picked, words=chosen), (elected,), chosen[0])
                self.origins.setdefault(register.name, {})[int(lanes[number])] = origin

    def _end(self, threads: Numbers) -> None:
        self.mode[threads] = ENDED
        self.tell("end", None, 0, 0, threads)
        self.ends[threads] = self.clocks.views(threads)
        for leader in threads[threads >= self.count].tolist():
            self.leaders.end(leader)

    def places(
        self, address: ops.Address, space: str | None, size: int, at: int, threads: Numbers, alignment: int = 0
    ) -> Numbers:
        """Where in the arena the ``size`` bytes at an operand are.

        Raises ``Stopped`` where they are in no variable, or their address is no multiple of ``alignment``, or of their
        size."""
        value = self.operand(address.base, ops.U64, threads)
        words = self.sure(value, at, "the address") + np.uint64(address.offset & (1 << 64) - 1)
        window = space
        if isinstance(address.base, ops.Sym):
            window = self.kernel.variables[address.base.name].space
        if (words == np.uint64(TRAP)).any():
            message, refuted = "a trap is executed, which ends the launch", TRAPS if self.exact else None
            raise Stopped("undecided", message, at, int(threads[0]), refuted)
        if window is not None:
            words, valid = self.memory.generic(words, window, threads)
            if (wrong := np.flatnonzero(~valid)).size:
                message = "an address of another CTA, or of none, in shared memory (5.1.7)"
                raise Stopped("undefined", message, at, int(threads[wrong[0]]))
        if (wrong := np.flatnonzero(words % np.uint64(alignment or size) != 0)).size:
            message = f"an address that is no multiple of {alignment or size}"
            raise Stopped("undefined", message, at, int(threads[wrong[0]]))
        _, places = self.memory.find(words, size, threads)
        if (wrong := np.flatnonzero(places < 0)).size:
            raise Stopped("outside", "an access outside of all variables", at, int(threads[wrong[0]]), BOUNDS)
        self._check_alive(places, at, threads)
        return places

    def _check_alive(self, places: Numbers, at: int, threads: Numbers) -> None:
        """Raise ``Stopped`` where the CTA has ended whose shared memory another one accesses."""
        ctas = self.memory.remote(places, self.cta[threads])
        for cta in np.unique(ctas[ctas >= 0]).tolist():
            thread = int(threads[ctas == cta][0])
            if not isinstance(self.body[at], _REMOTE):
                raise Stopped("undefined", "an operation on shared memory of another CTA (9.7.14.15.8)", at, thread)
            if (self.mode[cta * self.size : (cta + 1) * self.size] == ENDED).all():
                raise Stopped("undefined", "shared memory of a CTA that has ended (5.1.7)", at, thread)

    def check_writable(self, places: Numbers, at: int, threads: Numbers) -> None:
        """Nothing writes constants and parameters of kernels."""
        for number in np.unique(self.memory.instance_of(places)).tolist():
            if (space := self.memory.instances[number].variable.space) in ("const", "param"):
                raise Stopped("undefined", f"a write of memory in .{space}", at, int(threads[0]))

    def load(self, op: ops.Load, at: int, threads: Numbers) -> None:
        """``ld``."""
        size = op.type.bytes
        places = self.places(op.address, op.space, size * len(op.dst), at, threads)
        if at in self.waiting:
            poll = self.waiting[at]
            for thread, place in zip(threads.tolist(), places.tolist(), strict=True):
                self._look(thread, poll, at, (place, size), self._inputs(poll, thread))
            return
        for number, register in enumerate(op.dst):
            here = places + number * size
            self._find(op, at, here, threads)
            self.trace.add(at, READ, here, size, threads)
            if register is not None:
                words, known = self.memory.load(here, min(size, 8))
                if op.type.signed:
                    words = extended(words, op.type.bits, self.bits(register))
                self.assign(register, threads, Value(words, known & (size <= 8) & (at not in self.plan.unknown)))
                if not op.type.signed and at not in self.plan.unknown:
                    self._recall(register.name, here, size, threads)

    def store(self, op: ops.Store, at: int, threads: Numbers) -> None:
        """``st``."""
        size = op.type.bytes
        places = self.places(op.address, op.space, size * len(op.values), at, threads)
        self.check_writable(places, at, threads)
        self.changes += 1
        level = self.strong.level(op.scope)
        for number, operand in enumerate(op.values):
            here = places + number * size
            if level:
                for place in here.tolist():
                    self._watch((place, size))
            self.trace.add(at, WRITE, here, size, threads)
            value = self.operand(operand, op.type, threads)
            known = value.known & (size <= 8)
            if self.racing is not None and not level and self.racing.allows(op.source.span.line):
                self._compare(at, here, size, threads, Value(value.words, known))
            for part in range(0, size, 8):
                self.memory.store(here + part, min(size, 8), value.words, known)
            span = here[:, None] + np.arange(size)
            self._atomics[span.ravel()] = 0
            self._keep(operand, op.type, here, threads)
            for row in np.flatnonzero(self.watched[span].any(axis=1)).tolist():
                word = int(value.words[row]) if known[row] else None
                self.tell("write", ("flag", int(here[row])), size, at, threads[row : row + 1])
                self._written((int(here[row]), size), int(threads[row]), word, level, op.sem == "release")

    def _compare(self, at: int, places: Numbers, size: int, threads: Numbers, value: Value) -> None:
        """Keep what is stored where others may store the same."""
        rows = zip(places.tolist(), threads.tolist(), value.words.tolist(), value.known.tolist(), strict=True)
        for place, thread, word, known in rows:
            key = at, place, size, thread, int(self.clocks.clock[thread])
            self.stored.setdefault(key, set()).add(word if known else None)

    def overwrite(self, places: Numbers, size: int, at: int) -> None:
        """A copy has written ``size`` bytes at each place. Raises ``Stopped`` where strong accesses find that."""
        span = (places[:, None] + np.arange(size)).ravel()
        self._atomics[span] = 0
        self._forget(places, size)
        if self.watched[span].any():
            raise Stopped("unsupported", "a copy to what strong accesses access is not followed yet", at)

    def _keep(self, operand: ops.Operand, type_: ops.Type, places: Numbers, threads: Numbers) -> None:
        """What is stored has the origin of its register."""
        self._forget(places, type_.bytes)
        origins = self.origins.get(operand.name, {}) if isinstance(operand, ops.Reg) else {}
        if not origins:
            return
        for place, thread in zip(places.tolist(), threads.tolist(), strict=True):
            if (origin := origins.get(thread)) is not None and type_.bytes <= 8:
                word = origin.word & mask(type_.bits)
                self._stored[place, type_.bytes] = Derived(partial(_cut, bits=type_.bits), (origin,), word)
                self._keeps[place : place + type_.bytes] = True

    def _forget(self, places: Numbers, size: int) -> None:
        """What was stored here is there no longer."""
        kept = self._keeps[places[:, None] + np.arange(size)].any(axis=1)
        for place in places[kept].tolist():
            for location in [(at, width) for at, width in self._stored if at < place + size and place < at + width]:
                del self._stored[location]

    def _recall(self, register: str, places: Numbers, size: int, threads: Numbers) -> None:
        """What is loaded has the origin of what was stored."""
        for row in np.flatnonzero(self._keeps[places]).tolist():
            if (origin := self._stored.get((int(places[row]), size))) is not None:
                self.origins.setdefault(register, {})[int(threads[row])] = origin

    def atomic(self, op: ops.Atomic, at: int, threads: Numbers) -> None:
        """``atom`` and ``red``: what they return depends on the order in which threads come, so that it is not known;
        what they leave does not, if all do the same orderless operation."""
        size = op.type.bytes
        if len(op.operands) > 1 or op.packed > 1 or size > 8:
            raise Stopped("unsupported", "atomic operations on vectors are not followed in a whole launch yet", at)
        places = self.places(op.address, op.space, size, at, threads)
        self.check_writable(places, at, threads)
        self.changes += 1
        if self.plan.last:
            every = zip(places.tolist(), threads.tolist(), strict=True)
            goes = np.array([self._comes((place, size), at, thread) for place, thread in every], np.bool_)
            places, threads = places[goes], threads[goes]
        level = self.strong.level(op.scope)
        value = self.operand(op.operands[0][-1], op.type, threads)
        orderless = op.op in ORDERLESS and op.type.kind not in ("f", "bf")
        same = ORDERLESS.index(op.op) + 1 + 8 * op.type.signed if orderless else _OTHER
        found: dict[int, Origin] = {}
        self._forget(places, size)
        for number, place in enumerate(places.tolist()):
            thread, here, location = int(threads[number]), np.array([place]), (place, size)
            self._watch(location)
            old = self.held(location)
            self.tell("read", ("flag", place), size, at, threads[number : number + 1])
            if op.returns:
                key = self.strong.read("atomic", at, location, thread, level, op.sem in ("acquire", "acq_rel"))
                if old is not None:
                    found[thread] = Result(key, old)
            swapped = self._swapped(op, old, thread)
            self.trace.add(at, READ if swapped is False else ATOMIC, here, size, threads[number : number + 1])
            if swapped is False:
                continue
            words, known = self.memory.load(here, size)
            before = set(self._atomics[place : place + size].tolist())
            certain = bool(known[0] and value.known[number] and orderless and before <= {0, same})
            word = arithmetic.compute(op.op, op.type, int(words[0]), int(value.words[number])) if certain else 0
            self.memory.store(here, size, np.array([word], np.uint64), np.array([certain]))
            self._atomics[place : place + size] = same
            operand = int(value.words[number]) if value.known[number] and (op.op != "cas" or swapped) else None
            new = operand if swapped else None
            if old is not None and operand is not None and not swapped and op.type.kind not in ("f", "bf"):
                new = arithmetic.compute(op.op, op.type, old, operand)
            change = op.op, op.type, operand
            self.tell("write", ("flag", place), size, at, threads[number : number + 1])
            self._written(location, thread, new, level, op.sem in ("release", "acq_rel"), change)
        for register in op.dst:
            self.assign(register, threads, unknown(len(threads)))
            if register is not None:
                self.origins.setdefault(register.name, {}).update(found)

    def _swapped(self, op: ops.Atomic, old: int | None, thread: int) -> bool | None:
        """Whether a ``cas`` writes, if that is known; of other executions it is not."""
        if op.op != "cas" or old is None or not self.plan.exact:
            return None
        self.strong.swaps = True
        compared = self.operand(op.operands[0][0], op.type, np.array([thread]))
        return bool(int(compared.words[0]) == old) if compared.known[0] else None

    def _comes(self, location: Location, at: int, thread: int) -> bool:
        """Whether a thread does an atomic operation now, and does not wait for those that it is to come after."""
        number = self._arrivals.get((location, thread), 0) + 1
        arrival = location, thread, number
        if not self.plan.last.get(arrival, frozenset()) <= self._arrived:
            self.mode[thread], self.pc[thread] = WAITS, at
            self._later.append(thread)
            return False
        self._arrivals[location, thread] = number
        self._arrived.add(arrival)
        self.mode[self._later] = RUNS
        self._later = []
        return True

    def _find(self, op: ops.Load, at: int, places: Numbers, threads: Numbers) -> None:
        """Threads read what there is a log of, or will be."""
        level, size = self.strong.level(op.scope), op.type.bytes
        if level:
            for place in places.tolist():
                self._watch((place, size))
        chosen = np.flatnonzero(self.watched[places[:, None] + np.arange(size)].any(axis=1))
        for place, thread in zip(places[chosen].tolist(), threads[chosen].tolist(), strict=True):
            self.tell("read", ("flag", place), size, at, np.array([thread]))
            for location in sorted(self.strong.overlapping(place, size)):
                self.strong.read("load", at, location, thread, level, op.sem == "acquire")

    def _watch(self, location: Location) -> None:
        """Keep a log of what is written at a location."""
        if location not in self.strong.logs:
            place, size = location
            words, known = self.memory.load(np.array([place]), min(size, 8))
            self.strong.log(location, int(words[0]) if known[0] and size <= 8 else None)
            self.watched[place : place + size] = True

    def held(self, location: Location) -> int | None:
        """What is at a location of which there is a log."""
        log = self.strong.logs[location]
        if not log.mixed:
            return log.writes[-1].value
        words, known = self.memory.load(np.array([location[0]]), location[1])
        return int(words[0]) if known[0] else None

    def _written(
        self, location: Location, thread: int, value: int | None, level: int, releases: bool,
        change: tuple[str, ops.Type, int | None] | None = None,
    ) -> None:  # fmt: skip
        """A thread has written a location; who waits for that looks again."""
        for other in sorted(self.strong.overlapping(*location)):
            if other == location:
                self.strong.write(location, thread, value, level, releases, change)
            else:
                self.strong.logs[other].mixed = True
            parked, self._parked[other] = self._parked.get(other, []), []
            for waiter, poll, at, inputs in parked:
                self._look(waiter, poll, at, other, inputs)

    def _inputs(self, poll: Poll, thread: int) -> Inputs:
        return tuple(self._part(name, thread) for name in poll.inputs)

    def _look(self, thread: int, poll: Poll, at: int, location: Location, inputs: Inputs) -> None:
        """A thread reads what a loop waits for: it goes on, or waits for somebody to write there."""
        self._watch(location)
        value = self.held(location)
        if value is None:
            raise Stopped("undecided", "what this loop finds is not worked out", at, thread)
        again, words, tried = bool(self.mode[thread] != RUNS), concrete(inputs), {at}
        found = self.round(poll, at, words, value, again)
        while found.at not in (poll.end, *tried):
            at = found.at
            tried.add(at)
            found = self.round(poll, at, words, value, again=True)
        self.changes += 1
        if found.at != poll.end:
            self.mode[thread], self.pc[thread] = WAITS, found.at + 1
            self._parked.setdefault(location, []).append((thread, poll, found.at, inputs))
            return
        one = np.array([thread])
        self.mode[thread], self.pc[thread] = RUNS, poll.end
        looked = {poll.start, *(tried if self.exact else poll.again)}
        for load in (at, *sorted(other for other in looked if self.ends_with(other)[0] != self.ends_with(at)[0])):
            self.trace.add(load, READ, one * 0 + location[0], location[1], one)
        self.tell("read", ("flag", location[0]), location[1], at, one)
        level, acquires = self.plan.weakest.get(poll.start) or self.ends_with(at)
        self.strong.read("poll", at, location, thread, level, acquires, (poll.start, inputs))
        forgotten = self.plan.forgotten.get(poll.start, set())
        for name in poll.outputs & (found.registers.keys() | forgotten):
            word, known = found.registers.get(name, (0, False))
            known = known and name not in forgotten
            self.assign(ops.Reg(name), one, Value(np.array([word], np.uint64), np.array([known])))
        for fence in found.fences:
            self.order(self.body[fence], fence, one)

    def ends_with(self, at: int) -> tuple[int, bool]:
        """How wide the scope of a load is, and whether it acquires."""
        op = self.body[at]
        assert isinstance(op, ops.Load)
        return self.strong.level(op.scope), op.sem == "acquire"

    def round(self, poll: Poll, at: int, inputs: Words, value: int, again: bool) -> Outcome:
        """Where a round of a loop that waits leads from the load at ``at``; ``again``: it is not the first one."""
        return self.rounds(poll, at, [(inputs, value)], again)[0]

    def rounds(self, poll: Poll, at: int, cases: Sequence[tuple[Words, int]], again: bool) -> list[Outcome]:
        """The same of several ``cases``: what the registers are, and what the load finds."""
        keys = [(poll.start, at, inputs, value, again) for inputs, value in cases]
        new = list(dict.fromkeys(key for key in keys if key not in self._rounds))
        if new:
            made = Round(self, poll.inputs, [key[2] for key in new])
            if again:
                made.forget(poll.written)
            self._rounds.update(zip(new, made.run(poll, at, [key[3] for key in new]), strict=True))
        return [self._rounds[key] for key in keys]

    def compute(self, op: Any, at: int, threads: Numbers) -> None:
        """What only gives registers values."""
        derived = self._derived(op, at, threads) if self.origins else []
        for register, value in results(self, op, threads):
            self.assign(register, threads, value)
        for name, thread, origin in derived:
            if not self.register(name, np.array([thread])).known[0]:
                self.origins.setdefault(name, {})[thread] = origin

    def _derived(self, op: ops.Op, at: int, threads: Numbers) -> list[tuple[str, int, Origin]]:
        """What an instruction computes from registers with origins, in each thread that has some."""
        used = tuple(dict.fromkeys(name for name, _ in uses(op)))
        if isinstance(op, ops.AddressValue) or not any(self.origins.get(name) for name in used):
            return []
        found = []
        for thread in threads.tolist():
            parts = tuple(self._part(name, thread) for name in used)
            if None in parts or all(isinstance(part, int) for part in parts):
                continue
            for name, _ in definitions(op):
                key = at, name, parts
                if key not in self._known_origins:
                    self._known_origins[key] = self._derive(op, name, used, parts)
                if (origin := self._known_origins[key]) is not None:
                    found.append((name, thread, origin))
        return found

    def _part(self, name: str, thread: int) -> Origin | int | None:
        """What a register is in a thread: its origin if it has one, its value if that is known."""
        value = self.register(name, np.array([thread]))
        return int(value.words[0]) if value.known[0] else self.origins.get(name, {}).get(thread)

    def _derive(self, op: ops.Op, name: str, used: tuple[str, ...], parts: Inputs) -> Origin | None:
        """What ``op`` computes for the register ``name``; None where nobody knows."""

        def function(words: Words) -> int | None:
            return Round(self, used, [words]).computed(op, name)

        word = function(concrete(parts))
        return None if word is None else Derived(function, parts, word)

    def exit(self, op: ops.Exit, at: int, threads: Numbers) -> None:
        """``exit`` and ``ret``."""
        self._end(threads)

    def branch(self, op: ops.Branch, at: int, threads: Numbers) -> None:
        """``bra``. Raises ``Stopped`` where threads go round a loop in which nothing changes."""
        self.pc[threads] = op.target
        if op.target <= at:
            now = self.changes, threads.tobytes()
            if self._back.get(at) == now:
                message = "this loop waits for what another thread does, which is not followed in a whole launch yet"
                raise Stopped("unsupported", message, at, int(threads[0]))
            self._back[at] = now

    def barrier(self, op: ops.Barrier | ops.BarrierReduction, at: int, threads: Numbers) -> None:
        """``barrier.cta``."""
        self.changes += 1
        self._meeting.barrier(op, at, threads)

    def cluster_barrier(self, op: ops.ClusterBarrier, at: int, threads: Numbers) -> None:
        """``barrier.cluster``."""
        self.changes += 1
        self._meeting.cluster(op, at, threads, self.strong)

    def warp_wide(self, op: ops.WarpBarrier | ops.WarpExchange, at: int, threads: Numbers) -> None:
        """What the lanes of a mask execute together."""
        self.changes += 1
        self._meeting.warp_wide(op, at, threads)

    def mbarrier(self, op: Any, at: int, threads: Numbers) -> None:
        """What operates on mbarriers, which are in shared memory (PTX ISA 9.7.14.15)."""
        self.changes += 1
        _MBARRIERS[type(op)](self.mbarriers, op, at, self.mbarrier_places(op, at, threads), threads)

    def mbarrier_places(self, op: Any, at: int, threads: Numbers) -> Numbers:
        """Where the mbarriers at the address of ``op`` are."""
        places = self.places(op.address, op.space, ops.MBARRIER_BYTES, at, threads)
        for number in np.unique(self.memory.instance_of(places)).tolist():
            if self.memory.instances[number].variable.space != "shared":
                raise Stopped("undefined", "an mbarrier that is not in shared memory", at, int(threads[0]))
        return places

    def init_fence(self, op: ops.MbarrierInitFence, at: int, threads: Numbers) -> None:
        """``fence.mbarrier_init``."""
        self.mbarriers.fence(threads)

    def copy(self, op: Any, at: int, threads: Numbers) -> None:
        """Asynchronous copies, their groups, and proxy fences."""
        self.changes += 1
        if isinstance(op, ops.AsyncCommit | ops.AsyncWait) and op.kind == "wgmma":
            self.warpgroup(op, at, threads)
            return
        _COPIES[type(op)](self.copies, op, at, threads)
        if isinstance(op, ops.ProxyFence) and op.kind == ASYNC:
            self.products.issues(threads)

    def warpgroup(self, op: Any, at: int, threads: Numbers) -> None:
        """What the warps of a warpgroup execute together."""
        self.changes += 1
        for group in self.products.together(at, threads):
            match op:
                case ops.WgmmaFence():
                    self.products.fence(op, at, group)
                case ops.Wgmma():
                    self.products.product(op, at, group)
                case ops.AsyncCommit():
                    self.products.commit(group)
                case ops.AsyncWait():
                    self.products.wait(op.pending or 0, group)

    def order(self, op: Any, at: int, threads: Numbers) -> None:
        """``fence``, ``membar``."""
        if op.restrict is not None:
            raise Stopped("unsupported", "`.sync_restrict` is not followed in a whole launch yet", at)
        self.tell("fence", None, 0, at, threads)
        self.strong.fence(op, threads.tolist())

    def matrix(self, op: Any, at: int, threads: Numbers) -> None:
        """What a warp does with matrices."""
        self.changes += 1
        _MATRICES[type(op)](self, op, at, threads)


_TOGETHER = (
    ops.Barrier, ops.BarrierReduction, ops.ClusterBarrier, ops.WarpBarrier, ops.WarpExchange, ops.LoadMatrix,
    ops.StoreMatrix, ops.Wmma, ops.Wgmma, ops.WgmmaFence, ops.SetMaxRegisters,
)  # fmt: skip
"""What the threads of a warp execute together."""
_REMOTE = (ops.Load, ops.Store, ops.Atomic, ops.MbarrierArrive, ops.MbarrierTx, ops.BulkCopy, ops.AsyncStore)
"""What may access shared memory of other CTAs of the cluster."""
_MBARRIERS: Mapping[type, Callable[[Mbarriers, Any, int, Numbers, Numbers], None]] = {
    ops.MbarrierInit: Mbarriers.init,
    ops.MbarrierArrive: Mbarriers.arrive,
    ops.MbarrierTx: Mbarriers.count_bytes,
    ops.MbarrierWait: Mbarriers.wait,
}

_COPIES: Mapping[type, Callable[[Copies, Any, int, Numbers], None]] = {
    ops.CopyAsync: Copies.copy,
    ops.CopyAsyncArrive: Copies.arrive,
    ops.AsyncCommit: Copies.commit,
    ops.AsyncWait: Copies.wait,
    ops.BulkCopy: Copies.bulk,
    ops.ProxyFence: Copies.fence,
    ops.AsyncStore: Copies.store,
}

_MATRICES: Mapping[type, Callable[[Machine, Any, int, Numbers], None]] = {
    ops.LoadMatrix: matrices.load,
    ops.StoreMatrix: matrices.store,
    ops.Wmma: matrices.product,
}

_EXECUTE: Mapping[type, Callable[[Machine, Any, int, Numbers], None]] = {
    **dict.fromkeys(
        (
            ops.Alu, ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Pack, ops.Unpack, ops.Opaque,
            ops.ConvertAddress, ops.IsSpace, ops.Mapa, ops.CtaRank, ops.Nothing, ops.PendingCount, ops.GridControl,
        ),
        Machine.compute,
    ),
    ops.Branch: Machine.branch,
    ops.Exit: Machine.exit,
    ops.Load: Machine.load,
    ops.Store: Machine.store,
    ops.Atomic: Machine.atomic,
    ops.Fence: Machine.order,
    ops.ClusterBarrier: Machine.cluster_barrier,
    **dict.fromkeys((ops.Barrier, ops.BarrierReduction), Machine.barrier),
    **dict.fromkeys((ops.WarpBarrier, ops.WarpExchange), Machine.warp_wide),
    **dict.fromkeys((ops.MbarrierInit, ops.MbarrierArrive, ops.MbarrierTx, ops.MbarrierWait), Machine.mbarrier),
    **dict.fromkeys(_COPIES, Machine.copy),
    **dict.fromkeys(_MATRICES, Machine.matrix),
    **dict.fromkeys((ops.Wgmma, ops.WgmmaFence, ops.SetMaxRegisters), Machine.warpgroup),
    ops.MbarrierInitFence: Machine.init_fence,
}  # fmt: skip
"""What is followed; every other instruction is refused where it is executed."""
