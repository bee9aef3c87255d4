"""Locations that strong accesses access: what is written there is kept in a log, and loops wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from msgspec import Struct

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.deriving import Deriving
from ptxmm.whole.execution.handshakes import Swap, same_turns
from ptxmm.whole.execution.polls import OPAQUE, Outcome, Poll
from ptxmm.whole.execution.rounds import Place, Rounds, Slots
from ptxmm.whole.execution.state import RUNS, WAITS, Stopped
from ptxmm.whole.execution.values import Value
from ptxmm.whole.lenient import VECTOR
from ptxmm.whole.order.origins import Derived, Inputs, Key, Origin, Result, Words, concrete
from ptxmm.whole.order.strong import Chosen, Glance, Location, Waited
from ptxmm.whole.order.trace import ATOMIC, READ

_MOST_PLACES = 256
"""So many places a thread comes to in a loop before it waits for what others do."""


def _left(words: Words, left: Mapping[int, int | None]) -> int | None:
    """What a loop that waits leaves in a register, by what its last look has found."""
    return None if words[0] is None else left.get(words[0])


class Waiter(Struct):
    """A thread in a loop that waits: its ``place`` there, the loads that have looked at each slot, the ``locations`` of
    these, the ``slots`` of each load, and the registers that it began with; which ``glance`` it is, if it is one; what
    it compares with and writes if it finds that (``swap``)."""

    thread: int
    poll: Poll
    place: Place
    looked: dict[int, list[int]]
    locations: tuple[Location, ...]
    slots: Slots
    inputs: Inputs
    glance: Glance | None
    swap: tuple[int, int] | None = None


class Locations:
    """The locations of ``machine`` of which there is a log."""

    def __init__(self, machine: Accessing, deriving: Deriving, before: Locations | None) -> None:
        """``before``: those of another execution of the same kernel."""
        self.machine, self._deriving = machine, deriving
        self._parked: dict[Location, dict[int, Waiter]] = {}
        self._glances: dict[tuple[int, int], int] = {}
        self._older: dict[int, int] = {}
        self._patient: list[int] = []
        self._hasty = False
        self._counting: set[int] = set()
        self._choosy: dict[int, tuple[Waiter, int | None]] = {}
        self._swaps: dict[Location, list[Swap]] = {}
        self.expecting: dict[Location, dict[int, int | None]] = {}
        """The threads that wait until they find what is chosen for them, with a word of that if one is known."""
        self.rounds: Rounds = Rounds(machine, before.rounds if before else None)
        for location in sorted(machine.plan.watched):
            self.watch(location)

    def meets(self, at: int, location: Location, thread: int) -> bool:
        """Whether a thread looks now; else it waits until it finds there what is chosen for it."""
        number = self._glances.get((thread, at), 0) + 1
        chosen = self.machine.plan.chosen.get((thread, at, number))
        if chosen is not None and thread not in self._older:
            self.watch(location)
            value = self.held(location)
            if value is None or not chosen.likes(value):
                older = None if self.machine.exact else self._liked(location, chosen)
                if older is None:
                    self.machine.mode[thread], self.machine.pc[thread] = WAITS, at
                    self.expecting.setdefault(location, {})[thread] = chosen.word
                    return False
                self._older[thread] = older
        self._glances[thread, at] = number
        self._resume()
        return True

    def lets(self, at: int, location: Location, thread: int) -> bool:
        """Whether a thread writes a location now; else it waits for those who are to find what is there."""
        for (other, load, number), chosen in self.machine.plan.chosen.items():
            if chosen.location == location and self._glances.get((other, load), 0) < number and other != thread:
                self.watch(location)
                value = None if self._hasty else self.held(location)
                if value is not None and chosen.likes(value):
                    self.machine.mode[thread], self.machine.pc[thread] = WAITS, at
                    self._patient.append(thread)
                    return False
        return True

    def hasten(self) -> bool:
        """Nobody waits before he writes any longer; whether somebody has."""
        self._hasty = True
        return self._resume()

    def _resume(self) -> bool:
        found, self._patient = self._patient, []
        self.machine.mode[found] = RUNS
        return bool(found)

    def pretend(self) -> bool:
        """Let a thread find what is chosen for it though nobody has written that; whether there is one. If nobody does
        later, there is no such execution."""
        for waiter, word in [*self._choosy.values()]:
            if not self.machine.exact and self._finds(waiter, word):
                for watched in waiter.locations:
                    self._parked.get(watched, {}).pop(waiter.thread, None)
                return True
        for threads in self.expecting.values():
            for thread, word in threads.items():
                if word is not None and not self.machine.exact:
                    self._older[thread], self.machine.mode[thread] = word, RUNS
                    del threads[thread]
                    return True
        return False

    def unmet(self) -> list[int]:
        """The threads that wait until they find what is chosen for them."""
        return [*self._choosy, *(thread for each in self.expecting.values() for thread in each)]

    def _liked(self, location: Location, chosen: Chosen) -> int | None:
        """What was there before of what is chosen."""
        writes = reversed(self.machine.strong.logs[location].writes)
        return next((w.value for w in writes if w.value is not None and chosen.likes(w.value)), None)

    def pieces(self, op: ops.Load | ops.Store) -> tuple[ops.Element, ...]:
        """The accesses of a load or a store: those of its elements, or of the pieces of its vector (A57)."""
        return ops.elements(op, whole=VECTOR in self.machine.lenient)

    def find(self, op: ops.Load, at: int, places: Numbers, size: int, threads: Numbers) -> dict[int, Origin]:
        """Threads read ``size`` bytes of which there is a log, or will be; what they find, by thread, where one
        location is read whose value may be another one in other executions."""
        level = self.machine.strong.level(op.scope)
        if level:
            for place in places.tolist():
                self.watch((place, size))
        found: dict[int, Origin] = {}
        chosen = np.flatnonzero(self.machine.watched[places[:, None] + np.arange(size)].any(axis=1))
        for place, thread in zip(places[chosen].tolist(), threads[chosen].tolist(), strict=True):
            self.machine.tell("read", ("flag", place), size, at, np.array([thread]))
            one = level and len(self.pieces(op)) == 1
            glance = (thread, at, self._glances.get((thread, at), 0)) if one else None
            for location in sorted(self.machine.strong.overlapping(place, size)):
                older = self._older.pop(thread, None)
                key = self.machine.strong.read(
                    "load", at, location, thread, level, op.sem == "acquire", looked=older is None, glance=glance
                )  # fmt: skip
                value = self.held(location) if older is None else older
                if level and location == (place, size) and value is not None and op.type.bytes <= 8:
                    found[thread] = Result(key, value)
        return found

    def watch(self, location: Location) -> None:
        """Keep a log of what is written at a location."""
        if location not in self.machine.strong.logs:
            place, size = location
            self.machine.strong.log(location, self.machine.memory.word(place, size))
            self.machine.watched[place : place + size] = True

    def held(self, location: Location) -> int | None:
        """What is at a location of which there is a log."""
        log = self.machine.strong.logs[location]
        if not log.mixed:
            return log.writes[-1].value
        return self.machine.memory.word(*location)

    def written(
        self, location: Location, thread: int, value: int | None, level: int, releases: bool,
        change: tuple[str, ops.Type, int | None] | None = None,
    ) -> None:  # fmt: skip
        """A thread has written a location; who waits for that looks again."""
        for other in sorted(self.machine.strong.overlapping(*location)):
            if other == location:
                self.machine.strong.write(location, thread, value, level, releases, change)
            else:
                self.machine.strong.logs[other].mixed = True
            self.machine.mode[[*self.expecting.pop(other, {})]] = RUNS
            waiters = [*self._parked.get(other, {}).values()]
            for waiter in waiters:
                for watched in waiter.locations:
                    del self._parked[watched][waiter.thread]
            for waiter in waiters:
                self._goes(waiter)

    def compute(self, op: ops.Op, at: int, threads: Numbers) -> None:
        """Threads compute what a loop that waits needs in every round."""
        self._deriving.compute(op, at, threads)

    def look(self, op: ops.Load, poll: Poll, at: int, threads: Numbers) -> None:
        """Threads come to a loop that waits."""
        if poll.divided:
            message = "what a fence orders that is between two loads of this loop is not followed yet"
            raise Stopped("undecided", message, max(poll.loads), int(threads[0]))
        places = self._places(poll, op, at, threads)
        for number, thread in enumerate(threads.tolist()):
            slots: dict[Location, int] = {}
            found = {
                load: tuple(
                    slots.setdefault((int(here[number]) + piece.offset, piece.type.bytes), len(slots))
                    for piece in self.pieces(self._load(load))
                )
                for load, here in places.items()
            }
            if poll.vote is not None and any(
                self.ends_with(one) != self.ends_with(other) and set(found[one]) & set(found[other])
                for one in poll.loads
                for other in poll.loads
            ):
                raise Stopped("undecided", "looks at one location in a round acquire differently", at, thread)
            inputs = tuple(self._deriving.part(name, thread) for name in poll.inputs)
            glance = thread, at, self._glances.get((thread, at), 0) + 1
            swap = self._swap(at, thread, inputs) if at in self.machine.launch.swapping else None
            one = glance if len(slots) == 1 and poll.vote is None and swap is None else None
            self._goes(Waiter(thread, poll, (at, concrete(inputs)), {}, tuple(slots), found, inputs, one, swap))

    def _swap(self, at: int, thread: int, inputs: Inputs) -> tuple[int, int]:
        """What a ``cas`` that is tried until it succeeds compares with, and what it writes."""
        op = self.machine.launch.swapping[at]
        compared, new = (self.machine.operand(part, op.type, np.array([thread])) for part in op.operands[0])
        if not (compared.known[0] and new.known[0]) or any(isinstance(part, Result | Derived) for part in inputs):
            raise Stopped("undecided", "what this loop waits for is not worked out", at, thread)
        ones = (1 << op.type.bits) - 1
        return int(compared.words[0]) & ones, int(new.words[0]) & ones

    def _places(self, poll: Poll, op: ops.Load, at: int, threads: Numbers) -> dict[int, Numbers]:
        """Where the loads of a loop are: none of their addresses changes in it."""
        found = {at: self.machine.places(op.address, op.space, op.type.bytes * len(op.dst), at, threads)}
        for load in sorted(poll.loads - {at}):
            other = self._load(load)
            if (other.address, other.space, other.type, len(other.dst)) == (op.address, op.space, op.type, len(op.dst)):
                found[load] = found[at]
                continue
            try:
                size = other.type.bytes * len(other.dst)
                found[load] = self.machine.places(other.address, other.space, size, load, threads)
            except Stopped as stop:  # perhaps it does not come there
                raise Stopped("undecided", f"this loop may come to {stop.message}", load, stop.thread) from None
        return found

    def _goes(self, waiter: Waiter) -> None:
        """A thread in a loop that waits goes on, or waits for somebody to write what it reads."""
        try:
            self._follow(waiter)
        except Stopped as stop:  # what is said of the loop alone names no thread
            stop.thread = waiter.thread if stop.thread is None else stop.thread
            raise

    def _follow(self, waiter: Waiter) -> None:
        """The rounds of a thread in a loop that waits, until it leaves it or finds nothing new."""
        thread, poll = waiter.thread, waiter.poll
        for location in waiter.locations:
            self.watch(location)
        self.machine.changes += 1
        visited: set[Place] = set()
        first = poll.start, concrete(waiter.inputs)
        again = poll.vote is not None and waiter.place != first
        place, looks = waiter.place, {slot: [*loads] for slot, loads in waiter.looked.items()}
        while waiter.place not in visited:
            if len(visited) == _MOST_PLACES:  # it counts its rounds: let it be slower, and not have looked yet
                waiter.place, waiter.looked = place, looks
                self._counting.add(thread)
                break
            visited.add(waiter.place)
            at = waiter.place[0]
            found = []
            for slot in waiter.slots[at]:
                value = self.held(waiter.locations[slot])
                if value is None and len(waiter.slots[at]) == 1:
                    raise Stopped("undecided", "what this loop finds is not worked out", at, thread)
                if at not in waiter.looked.setdefault(slot, []) and at in self.machine.launch.unchanging:
                    self._traced(at, waiter.locations[slot], np.array([thread]))
                waiter.looked[slot].append(at)
                found.append(OPAQUE if value is None else value)
            try:
                outcomes = self.rounds.following(poll, waiter.place, tuple(found))
            except Stopped:
                if not again:
                    raise
                outcomes = frozenset()
            if again and len(outcomes) != 1:
                waiter.place, waiter.looked = first, {}
                self._counting.add(thread)  # how often it goes round is not known: let it have looked once only
                break
            if len(outcomes) > 1:
                raise Stopped(
                    "undecided", "whether this loop ends depends on a value that is not worked out", at, thread
                )
            (outcome,) = outcomes
            if waiter.swap is not None and (outcome.at == poll.end) != (found[0] == waiter.swap[0]):
                raise Stopped("undecided", "whether this loop ends does not tell whether it writes", at, thread)
            if outcome.at == poll.end:
                chosen = None if waiter.glance is None else self.machine.plan.chosen.get(waiter.glance)
                if chosen is None or chosen.likes(found[0]):
                    self._ends(waiter, outcome, found[0])
                    return
                older = None if self.machine.exact else self._liked(waiter.locations[0], chosen)
                if self._finds(waiter, older):
                    return
                self._choosy[thread] = waiter, chosen.word
                break
            waiter.place = outcome.at, outcome.words
            again |= poll.vote is not None and outcome.at == poll.vote.load
        self.machine.mode[thread], self.machine.pc[thread] = WAITS, waiter.place[0] + 1
        for location in waiter.locations:
            self._parked.setdefault(location, {})[thread] = waiter

    def kind(self, load: int) -> int:
        """What a load is in the trace: if it is an atomic operation in the text it has also written what it reads."""
        return ATOMIC if load in self.machine.launch.unchanging else READ

    def _traced(self, load: int, location: Location, thread: Numbers) -> None:
        """A thread reads a location in a loop that waits."""
        self.machine.trace.add(load, self.kind(load), thread * 0 + location[0], location[1], thread)

    def _finds(self, waiter: Waiter, word: int | None) -> bool:
        """A loop that waits finds what is not there, if that ends it; whether it does."""
        if word is None:
            return False
        outcomes = self.rounds.following(waiter.poll, waiter.place, (word,))
        ends = [outcome for outcome in outcomes if outcome.at == waiter.poll.end]
        if len(ends) != len(outcomes) or len(ends) != 1:
            return False
        self._ends(waiter, ends[0], word, there=False)
        return True

    def _ends(self, waiter: Waiter, outcome: Outcome, value: int, there: bool = True) -> None:
        """A loop that waits ends, if it waits for one location with a ``value`` that is ``there`` or not."""
        if waiter.swap is not None:
            self._succeeds(waiter, waiter.swap, outcome)
            return
        thread, poll, machine = waiter.thread, waiter.poll, self.machine
        self._choosy.pop(thread, None)
        self._counting.discard(thread)
        self._glances[thread, poll.start] = self._glances.get((thread, poll.start), 0) + 1
        self._resume()
        one = np.array([thread])
        machine.mode[thread], machine.pc[thread] = RUNS, poll.end
        parties = [
            tuple(load for load, slots in sorted(waiter.slots.items()) if n in slots)
            for n in range(len(waiter.locations))
        ]
        every = zip(parties, waiter.locations, strict=True)
        free = [poll.late or (poll.start, loads, thread, there) in machine.plan.loose for loads, there in every]
        if not all(free):
            machine.regions.seal(one)
        if poll.vote is not None:
            machine.gathering.looked.add(thread)
        party: Key | None = None
        acquired = []
        for slot, (location, loads) in enumerate(zip(waiter.locations, parties, strict=True)):
            looked = waiter.looked.get(slot, [])
            ends = self.ends_with(looked[-1]) if looked else (0, False)
            others = looked if machine.exact else loads
            narrow = sorted({load for load in others if self.ends_with(load)[0] != ends[0]})
            for load in (*looked[-1:], *narrow):
                self._traced(load, location, one)
            at = looked[-1] if looked else loads[0]
            if looked:
                machine.tell("read", ("flag", location[0]), location[1], at, one)
            level, acquires = machine.plan.weakest.get((poll.start, loads)) or ends
            waited = Waited(poll.start, waiter.inputs, slot, waiter.slots)
            key = machine.strong.read(
                "poll", at, location, thread, level, False, waited, free[slot], party, bool(looked) and there,
                waiter.glance,
            )  # fmt: skip
            party = party or key
            acquired += [(location, level)] if acquires and looked else []
        for location, level in acquired:  # none of the reads comes after what another one acquires
            machine.strong.acquire(thread, location, level)
        forgotten = set() if party is None else machine.plan.forgotten.get(party, set())
        given = dict(zip(poll.inputs, waiter.inputs, strict=True))
        for name, word in zip(poll.outputs, outcome.words, strict=True):
            known = word is not None and name not in forgotten
            known &= name not in poll.kept or isinstance(given.get(name), int)
            machine.assign(ops.Reg(name), one, Value(np.array([word or 0], np.uint64), np.array([known])))
            left = None if known or party is None else machine.plan.left.get((party, name))
            if party is not None and left is not None and (now := left.get(value)) is not None:
                origin = Derived(partial(_left, left=left), (Result(party, value),), now)
                machine.origins.setdefault(name, {})[thread] = origin
        for fence in outcome.fences:
            machine.order(machine.body[fence], fence, one)

    def _succeeds(self, waiter: Waiter, swap: tuple[int, int], outcome: Outcome) -> None:
        """A loop ends as its ``cas`` finds what it compares with."""
        thread, poll, machine, (location,) = waiter.thread, waiter.poll, self.machine, waiter.locations
        (place, size), at, (compared, new), one = location, poll.start, swap, np.array([thread])
        here, op = np.array([place]), machine.launch.swapping[poll.start]
        self._counting.discard(thread)
        self._resume()
        machine.mode[thread], machine.pc[thread] = RUNS, poll.end
        machine.regions.seal(one)
        machine.trace.add(at, ATOMIC, here, size, one)
        machine.tell("read", ("flag", place), size, at, one)
        level, acquires = self.ends_with(at)
        machine.strong.read("swap", at, location, thread, level, acquires, late=False)
        for name, word in zip(poll.outputs, outcome.words, strict=True):
            known = word is not None and (name not in poll.kept or name in poll.inputs)
            machine.assign(ops.Reg(name), one, Value(np.array([word or 0], np.uint64), np.array([known])))
        machine.kept.forget(here, size)
        machine.memory.store(here, size, np.array([new], np.uint64), np.array([True]))
        machine.changed[place : place + size] = 0
        machine.tell("write", ("flag", place), size, at, one)
        self._swaps.setdefault(location, []).append(Swap(thread, poll, (at, concrete(waiter.inputs)), compared))
        self.written(location, thread, new, level, op.sem in ("release", "acq_rel"), ("exch", op.type, new))
        for fence in outcome.fences:
            machine.order(machine.body[fence], fence, one)

    def refuse_turns(self) -> None:
        """Raise ``Stopped`` where loops that end by a ``cas`` may end in another order."""
        for location, swaps in self._swaps.items():
            same_turns(location, self.machine.strong.logs[location], swaps, self.rounds)

    def check_stuck(self) -> None:
        """Raise ``Stopped`` where threads that wait may end their loop after all."""
        for parked in self._parked.values():
            for waiter in parked.values():
                if waiter.thread in self._counting and self._may_end(waiter):
                    message = "whether this loop ends depends on how often it goes round"
                    raise Stopped("undecided", message, waiter.place[0], waiter.thread)
                if waiter.poll.vote is not None:
                    self.machine.gathering.stuck(waiter.thread, waiter.poll.vote)

    def _may_end(self, waiter: Waiter) -> bool:
        """Whether a thread may leave a loop with what is there now, however often it has gone round."""
        there = [self.held(location) for location in waiter.locations]
        values = [{OPAQUE if value is None else value} for value in there]
        words = concrete(waiter.inputs)
        return bool(self.rounds.explored(waiter.poll, words, waiter.slots, values).exits)

    def lacks(self, thread: int) -> str | None:
        """What a thread waits for in a loop."""
        for location, parked in self._parked.items():
            if thread in parked:
                return f"another value of {self.machine.memory.name(location[0])}"
        return None

    def ends_with(self, at: int) -> tuple[int, bool]:
        """How wide the scope of a load is, and whether it acquires."""
        op = self._load(at)
        return self.machine.strong.level(op.scope), op.sem == "acquire"

    def _load(self, at: int) -> ops.Load:
        op = self.machine.body[at]
        assert isinstance(op, ops.Load)
        return op
