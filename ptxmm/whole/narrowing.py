"""What one execution tells of the others: after a run, what each read may find in any of them.

A run begins with reads that acquire all that they found in it. What another execution may keep from them is taken
away, and the launch is run again, until nothing changes (docs/whole.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import prod

from msgspec import Struct

from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.polls import OPAQUE, Poll
from ptxmm.whole.execution.rounds import Exit, Explored, Slots
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.options import Option, Options, Unclear
from ptxmm.whole.order.origins import Decision, Derived, Key, Result, Words, given
from ptxmm.whole.order.strong import WEAK, Arrival, Chosen, Glance, Plan, Read

_MOST_CASES = 4096
_MOST_LOOKS = 4
"""How often a thread looks somewhere in a loop with other looks, until its outcomes are no longer tried."""


class Varied(Exception):
    """What is executed depends on which of some atomic operations comes last."""

    def __init__(self, arrivals: frozenset[Arrival]) -> None:
        super().__init__("the order in which threads come")
        self.arrivals = arrivals


class Glanced(Exception):
    """What is executed depends on what a ``glance`` finds: each of what it ``may`` find is to be tried."""

    def __init__(self, glance: Glance, may: tuple[Chosen, Chosen]) -> None:
        super().__init__("what a look finds that does not wait")
        self.glance, self.may = glance, may


class _Trial(Struct, frozen=True):
    """What values do to a loop that waits which begins with some registers: what it may do, those that each slot may
    have at the last look (``ending``, None where there need not be one), and the loads that look last."""

    explored: Explored
    ending: tuple[frozenset[int] | None, ...]
    loads: tuple[frozenset[int], ...]


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


def unfound(machine: Machine, plan: Plan) -> bool:
    """Whether there is no execution in which all glances find what ``plan`` has chosen, if ``machine`` has the accesses
    of each one in which they do."""
    return _Narrowing(machine, plan).unfound()


class _Narrowing:
    def __init__(self, machine: Machine, plan: Plan) -> None:
        self.machine, self.plan = machine, plan
        self.options = Options(machine.strong)
        self.reads = {read.key: read for read in machine.strong.reads}
        self._found: dict[Key, frozenset[int]] = {}
        self._tried: dict[tuple[int, Words, tuple[object, ...], tuple[frozenset[int], ...]], _Trial] = {}
        self._parties: dict[Key | None, list[Read]] = {}
        for read in machine.strong.reads:
            if read.waited is not None:
                self._parties.setdefault(read.party, []).append(read)

    def refuse_order(self) -> None:
        """Raise ``Stopped`` where what is executed depends on the order in which atomic operations are done."""
        for decision in self.machine.decisions.values():
            self._check(decision)

    def done(self) -> bool:
        """Whether the plan has changed."""
        self.refuse_order()
        changed = False
        for read in self.machine.strong.reads:
            if read.party == read.key and read.waited is not None:
                changed |= self._poll(self._parties[read.party])
            elif read.kind == "load":
                changed |= self._load(read)
            if read.late and read.trusted:
                changed |= self._trusted(read)
        return changed

    def unfound(self) -> bool:
        """Whether there is nothing to be found of what is chosen for some glance."""
        for read in self.machine.strong.reads:
            try:
                if read.glance in self.plan.chosen and not self._options(read):
                    return True
            except Unclear:
                pass
        return False

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
            return self.options.of(read, self._likes(read))
        found: list[Option] = []
        for trial in self._trials(self._parties[read.party]):
            ending = trial.ending[read.waited.slot]
            if ending is None:
                raise Unclear("it may not look there")
            liked = {value for value in ending if self._likes(read)(value)}
            found += self.options.of(read, liked.__contains__)
        return found

    def _likes(self, read: Read) -> Callable[[int], bool]:
        """Whether a read may find a value, as far as that is chosen."""
        chosen = None if read.glance is None else self.plan.chosen.get(read.glance)
        return (lambda _: True) if chosen is None else chosen.likes

    def _values(self, key: Key) -> frozenset[int]:
        """All that a read may find, in a loop that waits at any time. Raises ``Unclear``."""
        if key not in self._found:
            read = self.reads[key]
            found = self.options.of(read, self._likes(read) if read.waited is None else lambda _: True)
            self._found[key] = frozenset(value for option in found for value in option.values)
        return self._found[key]

    def _results(self, key: Key) -> frozenset[int]:
        """All that a read may find, in a loop that waits at last. Raises ``Unclear``."""
        read = self.reads[key]
        if read.waited is None:
            return self._values(key)
        return frozenset(value for option in self._options(read) for value in option.values)

    def _cases(self, reads: Iterable[Key]) -> Iterator[dict[Key, int]]:
        """What some reads may find, together. Raises ``Unclear``."""
        keys = list(dict.fromkeys(reads))
        every = [sorted(self._results(key)) for key in keys]
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
            self._refuse_glances(decision, reads)
            if len(reads) == 1 and reads[0].kind == "atomic" and (together := self.options.together(reads[0])):
                raise Varied(together)
            what = "an atomic operation returns" if any(read.kind == "atomic" for read in reads) else "a look finds"
            message = f"whether this is executed depends on what {what}: {reason}"
            raise Stopped("undecided", message, decision.at, decision.thread)

    def _refuse_glances(self, decision: Decision, reads: list[Read]) -> None:
        """Raise ``Glanced`` where a decision depends on what a load finds."""
        read = next((r for r in reads if r.glance is not None and r.glance not in self.plan.chosen), None)
        if read is None or read.glance is None or read.glance[-1] > _MOST_LOOKS:
            return
        origin, key = decision.origin, read.key
        word = next(leaf.word for leaf in origin.leaves() if leaf.key == key)

        def function(found: int) -> bool:
            return bool(origin.given({key: found})) if len(reads) == 1 else found == word

        try:
            words = sorted(self._results(key))
        except Unclear:
            words = [word]
        one, other = (next((w for w in words if function(w) is holds), None) for holds in (True, False))
        at = read.location
        raise Glanced(read.glance, (Chosen(at, function, True, one), Chosen(at, function, False, other)))

    def _poll(self, party: list[Read]) -> bool:
        """A loop that waits, by its reads of each slot."""
        first, waited = party[0], party[0].waited
        assert waited is not None
        poll, rounds = self.machine.waiting[waited.start], self.machine.locations.rounds
        try:
            trials = self._trials(party)
            lasting = [self._open(read, self.options.lasting) for read in party]
        except Unclear as reason:
            message = f"what this loop may find is not known: {reason}"
            raise Stopped("undecided", message, first.at, first.thread) from None
        for trial in trials:
            if rounds.stuck(poll, trial.explored, waited.slots, lasting):
                message = "this loop may miss what it waits for in another schedule"
                raise Stopped("undecided", message, first.at, first.thread)
        exits = [way for trial in trials for way in trial.explored.exits if self._may_end(way, first, party)]
        if len({way.fences for way in exits}) > 1:
            message = "which fences come between this loop and what is behind it depends on the schedule"
            raise Stopped("undecided", message, first.at, first.thread)
        forgotten = self.plan.forgotten.setdefault(first.key, set())
        columns = zip(poll.outputs, zip(*(way.words for way in exits), strict=True), strict=True) if exits else ()
        more = {name for name, words in columns if len(set(words)) > 1 or None in words} - forgotten
        forgotten |= more
        changed = bool(more) | self._leave(poll, first, exits, len(party))
        for slot, read in enumerate(party):
            assert read.waited is not None
            key = poll.start, read.waited.loads
            loads = {self.machine.locations.ends_with(at) for trial in trials for at in trial.loads[slot]}
            if any(trial.ending[slot] is None for trial in trials):
                loads.add((WEAK, False))
            changed |= self._weaken(key, loads)
            loose = *key, read.thread, read.location
            if any(slot in trial.explored.loose for trial in trials) and loose not in self.plan.loose:
                self.plan.loose.add(loose)
                changed = True
            if not read.late:
                try:
                    changed |= self._acquired(read, self._options(read))
                except Unclear:
                    changed |= self._acquired(read, None)
        return changed

    def _may_end(self, way: Exit, read: Read, party: list[Read]) -> bool:
        """Whether a loop may end so, as far as that is chosen."""
        look = way.looks[0] if len(party) == 1 else None
        return look is None or self._likes(read)(look.value)

    def _leave(self, poll: Poll, read: Read, exits: list[Exit], slots: int) -> bool:
        """Keep what registers are by what a loop that waits for one location finds at last; whether that is new."""
        changed = False
        if slots != 1 or any(way.looks[0] is None for way in exits):
            return changed
        for number, name in enumerate(poll.outputs):
            if name in self.plan.forgotten[read.key] - poll.kept:
                found: dict[int, int | None] = {}
                for way in exits:
                    value, word = way.looks[0].value if way.looks[0] else 0, way.words[number]
                    found[value] = word if found.setdefault(value, word) == word else None
                changed |= self.plan.left.get((read.key, name)) != found
                self.plan.left[read.key, name] = found
        return changed

    def _weaken(self, key: tuple[int, tuple[int, ...]], loads: set[tuple[int, bool]]) -> bool:
        """Let a loop acquire no more than each load that may look last does; whether that is new."""
        before = self.plan.weakest.get(key)
        loads |= {before} if before else set()
        if not loads:
            return False
        weakest = min(level for level, _ in loads), all(acquires for _, acquires in loads)
        self.plan.weakest[key] = weakest
        return before != weakest and (before is not None or len(loads) > 1)

    def _trials(self, party: list[Read]) -> list[_Trial]:
        """What a loop does with all that it may find, once for all kinds of registers that it may begin with. Raises
        ``Unclear``."""
        waited = party[0].waited
        assert waited is not None
        values = tuple(self._open(read, lambda read: self._values(read.key)) for read in party)
        reads = (key for part in waited.inputs if isinstance(part, Result | Derived) for key in part.reads())
        slots = tuple(sorted(waited.slots.items()))
        found = {}
        for words in {given(waited.inputs, case) for case in self._cases(reads)}:
            key = waited.start, words, slots, values
            if key not in self._tried:
                self._tried[key] = self._trial(self.machine.waiting[waited.start], words, waited.slots, values)
            trial = self._tried[key]
            found[trial.ending, trial.loads, trial.explored.exits] = trial
        return list(found.values())

    def _open(self, read: Read, find: Callable[[Read], frozenset[int]]) -> frozenset[int]:
        """What a read finds; of an element of a vector that may also be what is not known. Raises ``Unclear``."""
        try:
            return find(read)
        except Unclear:
            waited = read.waited
            if waited is None or not any(len(slots) > 1 and waited.slot in slots for slots in waited.slots.values()):
                raise
            return frozenset({OPAQUE})

    def _trial(self, poll: Poll, words: Words, slots: Slots, values: tuple[frozenset[int], ...]) -> _Trial:
        explored = self.machine.locations.rounds.explored(poll, words, slots, values)
        ending: list[frozenset[int] | None] = []
        loads = []
        for slot in range(len(values)):
            looks = [way.looks[slot] for way in explored.exits]
            ending.append(None if None in looks else frozenset(look.value for look in looks if look is not None))
            loads.append(frozenset(look.place[0] for look in looks if look is not None))
        return _Trial(explored, tuple(ending), tuple(loads))

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
            if kept != now and found is not None and (read.key, level) not in self.plan.allowed:
                # Another execution may find what was there before, and all that is released by that counts here too.
                writes = self.machine.strong.logs[read.location].writes[: read.seen]
                kept = self._kept(read, now.union(*({h.release for h in w.heads} for w in writes)), found, level)
            if kept != now:
                self.plan.allowed[read.key, level] = kept
                changed = True
        return changed

    def _kept(self, read: Read, some: frozenset[Release], found: list[Option], level: int) -> frozenset[Release]:
        """Of some releases those that a read acquires whatever it finds."""
        tests = [self.options.covered(read, option, level) for option in found]
        return frozenset(release for release in some if all(test(release) for test in tests))
