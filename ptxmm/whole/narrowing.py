"""What one execution tells of the others: after a run, what each read may find in any of them.

A run begins with reads that acquire all that they found in it. What another execution may keep from them is taken
away, and the launch is run again, until nothing changes (docs/whole.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod

from msgspec import Struct

from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.polls import Outcome, Poll
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.options import Option, Options, Unclear
from ptxmm.whole.order.origins import Decision, Derived, Inputs, Key, Result, Words, given
from ptxmm.whole.order.strong import Arrival, Plan, Read

_MOST_CASES = 4096


class Varied(Exception):
    """What is executed depends on which of some atomic operations comes last."""

    def __init__(self, arrivals: frozenset[Arrival]) -> None:
        super().__init__("the order in which threads come")
        self.arrivals = arrivals


class _Trial(Struct):
    """What values do to a loop that waits: those that may be the last that it finds (``ending``), those with which it
    ends if nothing else is there (``lasting``), and where each load leads with which it ends."""

    ending: frozenset[int]
    lasting: frozenset[int]
    ends: list[tuple[int, Outcome]]


def _comes(at: int, onward: Mapping[int, int], end: int) -> bool:
    """Whether a loop comes to its end from a load on when each load leads ``onward``."""
    seen: set[int] = set()
    while at != end and at not in seen and at in onward:
        seen.add(at)
        at = onward[at]
    return at == end


def narrowed(machine: Machine, plan: Plan) -> bool:
    """Take from ``plan`` what other executions than that of ``machine`` need not have; whether that was anything.

    Raises ``Stopped`` where it is not known what they have, and ``Varied`` where they execute something else."""
    return _Narrowing(machine, plan).done()


def refuse_order(machine: Machine, plan: Plan) -> None:
    """Raise ``Varied`` or ``Stopped`` where other executions than that of ``machine`` execute something else, although
    all acquire what it has acquired."""
    _Narrowing(machine, plan).refuse_order()


def widened(machine: Machine, plan: Plan) -> bool:
    """Add to ``plan`` what the late reads of ``machine`` acquire whatever they find; whether that was anything. That is
    sound where the accesses of all executions are those of ``machine``."""
    return _Narrowing(machine, plan).late()


class _Narrowing:
    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine, self.plan = machine, plan
        self.options = Options(machine.strong)
        self.reads = {read.key: read for read in machine.strong.reads}
        self._found: dict[Key, frozenset[int]] = {}
        self._tried: dict[tuple[int, frozenset[Words], frozenset[int]], list[_Trial]] = {}

    def refuse_order(self) -> None:
        """Raise ``Stopped`` where what is executed depends on the order in which atomic operations are done."""
        for decision in self.machine.decisions.values():
            self._check(decision)

    def done(self) -> bool:
        """Whether the plan has changed."""
        self.refuse_order()
        changed = False
        for read in self.machine.strong.reads:
            if read.kind == "poll":
                changed |= self._poll(read)
            elif read.kind == "load":
                changed |= self._load(read)
            if read.late and read.trusted:
                changed |= self._trusted(read)
        return changed

    def _trusted(self, read: Read) -> bool:
        try:
            return self._acquired(read, self._options(read))
        except Unclear:
            return self._acquired(read, None)

    def late(self) -> bool:
        """Whether the plan has changed by what late reads acquire."""
        changed, late = False, self.plan.late
        for read in self.machine.strong.reads:
            if late is None or not (read.late and read.tails):
                continue
            try:
                found = self._options(read)
            except Unclear:
                continue
            for level in read.tails:
                had = late.get((read.key, level), frozenset())
                now = had | self._kept(read, frozenset(head.release for head in read.heads), found, level)
                changed |= now != had
                late[read.key, level] = now
        return changed

    def _options(self, read: Read) -> list[Option]:
        """What a read may find, if it is in a loop then that ends it. Raises ``Unclear``."""
        if read.waited is None:
            return self.options.of(read, lambda _: True)
        start, inputs = read.waited
        trials = self._trials(self.machine.waiting[start], inputs, self._values(read.key))
        return [option for trial in trials for option in self.options.of(read, trial.ending.__contains__)]

    def _values(self, key: Key) -> frozenset[int]:
        """All that a read may find. Raises ``Unclear``."""
        if key not in self._found:
            found = self.options.of(self.reads[key], lambda _: True)
            self._found[key] = frozenset(value for option in found for value in option.values)
        return self._found[key]

    def _cases(self, reads: Iterable[Key]) -> Iterator[dict[Key, int]]:
        """What some reads may find, together. Raises ``Unclear``."""
        keys = list(dict.fromkeys(reads))
        every = [sorted(self._values(key)) for key in keys]
        if prod(map(len, every)) > _MOST_CASES:
            raise Unclear("too many values may be there")
        for values in product(*every):
            yield dict(zip(keys, values, strict=True))

    def _check(self, decision: Decision) -> None:
        """Raise ``Stopped`` where what is executed depends on the order in which atomic operations are done."""
        try:
            same = all(
                (word := decision.origin.given(found)) is not None and (word != 0) == decision.holds
                for found in self._cases(decision.origin.reads())
            )
            reason = "the order in which threads come"
        except Unclear as unclear:
            same, reason = False, str(unclear)
        if not same:
            reads = [self.reads[key] for key in dict.fromkeys(decision.origin.reads())]
            if len(reads) == 1 and (together := self.options.together(reads[0])):
                raise Varied(together)
            message = f"whether this is executed depends on what an atomic operation returns: {reason}"
            raise Stopped("undecided", message, decision.at, decision.thread)

    def _poll(self, read: Read) -> bool:
        assert read.waited is not None
        start, inputs = read.waited
        poll = self.machine.waiting[start]
        every: list[Option] = []
        ends: list[tuple[int, Outcome]] = []
        try:
            for trial in self._trials(poll, inputs, self._values(read.key)):
                every += self.options.of(read, trial.ending.__contains__)
                ends += trial.ends
                if self.options.stuck(read, trial.lasting.__contains__):
                    message = "this loop may miss what it waits for in another schedule"
                    raise Stopped("undecided", message, read.at, read.thread)
        except Unclear as reason:
            message = f"what this loop may find is not known: {reason}"
            raise Stopped("undecided", message, read.at, read.thread) from None
        if len({end.fences for _, end in ends}) > 1:
            message = "which fences come between this loop and what is behind it depends on the schedule"
            raise Stopped("undecided", message, read.at, read.thread)
        changed = self._weaken(start, {self.machine.locations.ends_with(at) for at, _ in ends})
        forgotten = self.plan.forgotten.setdefault(start, set())
        more = {name for name in poll.outputs - forgotten if len({end.registers.get(name) for _, end in ends}) > 1}
        forgotten |= more
        return (not read.late and self._acquired(read, every)) or bool(more) or changed

    def _weaken(self, start: int, loads: set[tuple[int, bool]]) -> bool:
        """Let a loop acquire no more than each load that may end it does; whether that is new."""
        before = self.plan.weakest.get(start)
        loads |= {before} if before else set()
        weakest = min(level for level, _ in loads), all(acquires for _, acquires in loads)
        self.plan.weakest[start] = weakest
        return before != weakest and (before is not None or len(loads) > 1)

    def _trials(self, poll: Poll, inputs: Inputs, values: frozenset[int]) -> list[_Trial]:
        """What a loop does with ``values``, once for all kinds of registers that it may begin with which end it with
        the same. Raises ``Unclear``."""
        reads = (key for part in inputs if isinstance(part, Result | Derived) for key in part.reads())
        key = poll.start, frozenset(given(inputs, case) for case in self._cases(reads)), values
        if key not in self._tried:
            self._tried[key] = self._tries(poll, key[1], values)
        return self._tried[key]

    def _tries(self, poll: Poll, inputs: frozenset[Words], values: frozenset[int]) -> list[_Trial]:
        found: dict[tuple[frozenset[int], frozenset[int]], _Trial] = {}
        every = sorted(values)
        for words in inputs:
            ends: list[tuple[int, Outcome]] = []
            ending, lasting = set(), set()
            cases = [(words, value) for value in every]
            rounds = [(at, self.machine.locations.rounds(poll, at, cases, again=True)) for at in sorted(poll.again)]
            first = self.machine.locations.rounds(poll, poll.start, cases, again=False)
            for number, value in enumerate(every):
                outcomes = [(at, made[number]) for at, made in rounds]
                onward = {at: outcome.at for at, outcome in outcomes}
                outcomes.append((poll.start, first[number]))
                now = [(at, outcome) for at, outcome in outcomes if outcome.at == poll.end]
                ends += now
                if now:
                    ending.add(value)
                if all(_comes(outcome.at, onward, poll.end) for _, outcome in outcomes):
                    lasting.add(value)
            key = frozenset(ending), frozenset(lasting)
            found.setdefault(key, _Trial(*key, [])).ends.extend(ends)
        return list(found.values())

    def _load(self, read: Read) -> bool:
        """A load that does not wait: what it finds is not known if there is a choice; it never orders anything."""
        if read.at in self.plan.unknown:
            return False
        try:
            if len(self._values(read.key)) == 1:
                return False
        except Unclear:
            pass
        self.plan.unknown.add(read.at)
        return True

    def _acquired(self, read: Read, found: list[Option] | None) -> bool:
        """Keep of what a read acquired what it acquires whatever it finds; whether that is less."""
        changed = False
        for level in read.tails:
            had = frozenset(head.release for head in read.heads)
            now = self.plan.allowed.get((read.key, level), had)
            kept = frozenset[Release]() if found is None else self._kept(read, now, found, level)
            if kept != now:
                self.plan.allowed[read.key, level] = kept
                changed = True
        return changed

    def _kept(self, read: Read, some: frozenset[Release], found: list[Option], level: int) -> frozenset[Release]:
        """Of some releases those that a read acquires whatever it finds."""
        tests = [self.options.covered(read, option, level) for option in found]
        return frozenset(release for release in some if all(test(release) for test in tests))
