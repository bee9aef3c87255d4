"""Locations that strong accesses access: what is written there is kept in a log, and loops wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.deriving import Deriving
from ptxmm.whole.execution.gathering import voted
from ptxmm.whole.execution.polls import Outcome, Poll, Round
from ptxmm.whole.execution.state import RUNS, WAITS, Stopped
from ptxmm.whole.execution.values import Value
from ptxmm.whole.order.origins import Inputs, Words, concrete
from ptxmm.whole.order.strong import Location
from ptxmm.whole.order.trace import READ


class Locations:
    """The locations of ``machine`` of which there is a log."""

    def __init__(self, machine: Accessing, deriving: Deriving, before: Locations | None) -> None:
        """``before``: those of another execution of the same kernel."""
        self.machine, self._deriving = machine, deriving
        self._parked: dict[Location, list[tuple[int, Poll, int, Inputs]]] = {}
        self._rounds: dict[tuple[int, int, Words, int, bool], Outcome] = {} if before is None else before._rounds
        for location in sorted(machine.plan.watched):
            self.watch(location)

    def find(self, op: ops.Load, at: int, places: Numbers, threads: Numbers) -> None:
        """Threads read what there is a log of, or will be."""
        level, size = self.machine.strong.level(op.scope), op.type.bytes
        if level:
            for place in places.tolist():
                self.watch((place, size))
        chosen = np.flatnonzero(self.machine.watched[places[:, None] + np.arange(size)].any(axis=1))
        for place, thread in zip(places[chosen].tolist(), threads[chosen].tolist(), strict=True):
            self.machine.tell("read", ("flag", place), size, at, np.array([thread]))
            for location in sorted(self.machine.strong.overlapping(place, size)):
                self.machine.strong.read("load", at, location, thread, level, op.sem == "acquire")

    def watch(self, location: Location) -> None:
        """Keep a log of what is written at a location."""
        if location not in self.machine.strong.logs:
            place, size = location
            words, known = self.machine.memory.load(np.array([place]), min(size, 8))
            self.machine.strong.log(location, int(words[0]) if known[0] and size <= 8 else None)
            self.machine.watched[place : place + size] = True

    def held(self, location: Location) -> int | None:
        """What is at a location of which there is a log."""
        log = self.machine.strong.logs[location]
        if not log.mixed:
            return log.writes[-1].value
        words, known = self.machine.memory.load(np.array([location[0]]), location[1])
        return int(words[0]) if known[0] else None

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
            parked, self._parked[other] = self._parked.get(other, []), []
            for waiter, poll, at, inputs in parked:
                self.look(waiter, poll, at, other, inputs)

    def inputs(self, poll: Poll, thread: int) -> Inputs:
        return tuple(self._deriving.part(name, thread) for name in poll.inputs)

    def look(self, thread: int, poll: Poll, at: int, location: Location, inputs: Inputs) -> None:
        """A thread reads what a loop waits for: it goes on, or waits for somebody to write there."""
        self.watch(location)
        value = self.held(location)
        if value is None:
            raise Stopped("undecided", "what this loop finds is not worked out", at, thread)
        again, words, tried = bool(self.machine.mode[thread] != RUNS), concrete(inputs), {at}
        found = self.round(poll, at, words, value, again)
        while found.at not in (poll.end, *tried):
            at = found.at
            tried.add(at)
            found = self.round(poll, at, words, value, again=True)
        self.machine.changes += 1
        if poll.vote is not None and found.at != poll.end:  # a later round does the same, or it is not known
            found = self.round(poll, poll.vote.load, words, value, again=True)
        if found.at != poll.end:
            self.machine.mode[thread], self.machine.pc[thread] = WAITS, found.at + 1
            self._parked.setdefault(location, []).append((thread, poll, found.at, inputs))
            return
        one = np.array([thread])
        self.machine.mode[thread], self.machine.pc[thread] = RUNS, poll.end
        if not poll.late:
            self.machine.regions.seal(one)
        if poll.vote is not None:
            self.machine.gathering.looked.add(thread)
        looked = {poll.start, *(tried if self.machine.exact else poll.again)}
        for load in (at, *sorted(other for other in looked if self.ends_with(other)[0] != self.ends_with(at)[0])):
            self.machine.trace.add(load, READ, one * 0 + location[0], location[1], one)
        self.machine.tell("read", ("flag", location[0]), location[1], at, one)
        level, acquires = self.machine.plan.weakest.get(poll.start) or self.ends_with(at)
        self.machine.strong.read("poll", at, location, thread, level, acquires, (poll.start, inputs), poll.late)
        forgotten = self.machine.plan.forgotten.get(poll.start, set())
        for name in poll.outputs & (found.registers.keys() | forgotten):
            word, known = found.registers.get(name, (0, False))
            known = known and name not in forgotten
            self.machine.assign(ops.Reg(name), one, Value(np.array([word], np.uint64), np.array([known])))
        for fence in found.fences:
            self.machine.order(self.machine.body[fence], fence, one)

    def check_stuck(self) -> None:
        """Raise ``Stopped`` where threads that wait together may end their loop after all."""
        for parked in self._parked.values():
            for thread, poll, _, _ in parked:
                if poll.vote is not None:
                    self.machine.gathering.stuck(thread, poll.vote)

    def lacks(self, thread: int) -> str | None:
        """What a thread waits for in a loop."""
        for location, parked in self._parked.items():
            if any(thread == waiter for waiter, _, _, _ in parked):
                return f"another value of {self.machine.memory.name(location[0])}"
        return None

    def ends_with(self, at: int) -> tuple[int, bool]:
        """How wide the scope of a load is, and whether it acquires."""
        op = self.machine.body[at]
        assert isinstance(op, ops.Load)
        return self.machine.strong.level(op.scope), op.sem == "acquire"

    def round(self, poll: Poll, at: int, inputs: Words, value: int, again: bool) -> Outcome:
        """Where a round of a loop that waits leads from the load at ``at``; ``again``: it is not the first one."""
        return self.rounds(poll, at, [(inputs, value)], again)[0]

    def rounds(self, poll: Poll, at: int, cases: Sequence[tuple[Words, int]], again: bool) -> list[Outcome]:
        """The same of several ``cases``: what the registers are, and what the load finds."""
        keys = [(poll.start, at, inputs, value, again) for inputs, value in cases]
        new = list(dict.fromkeys(key for key in keys if key not in self._rounds))
        if new:
            if poll.vote is not None:
                found = voted(self.machine, poll, at, [key[2:4] for key in new], again)
            else:
                made = Round(self.machine, poll.inputs, [key[2] for key in new])
                if again:
                    made.forget(poll.written)
                found = made.run(poll, at, [key[3] for key in new])
            self._rounds.update(zip(new, found, strict=True))
        return [self._rounds[key] for key in keys]
