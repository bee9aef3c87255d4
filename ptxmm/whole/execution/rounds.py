"""What a loop that waits may do, with all values that it may find: where it ends, and whether it does.

A *place* of a thread in such a loop is a load with what the registers are that are needed there. From one place others
follow, by what the load finds; a branch on what is not known goes both ways. A register with too many values (one that
counts rounds) is taken for unknown. The locations that the loads read are numbered, its *slots*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from msgspec import Struct

from ptxmm.ptx import ops
from ptxmm.whole.execution.gathering import voted
from ptxmm.whole.execution.polls import OPAQUE, Outcome, Poll, Round
from ptxmm.whole.execution.state import State, Stopped
from ptxmm.whole.order.origins import Words

_MOST_PLACES = 1024
_MOST_CASES = 4096
_MOST_STEPS = 64
Place: TypeAlias = tuple[int, Words]
_Case: TypeAlias = tuple[int, Place, tuple[int, ...], bool]
"""A loop, a place there, what its load finds, and whether others go on."""
Slots: TypeAlias = Mapping[int, tuple[int, ...]]
"""For each load the slots of its elements."""


class Look(Struct, frozen=True):
    """The last time that a thread has read a slot: from which place, all that the load found there, and of this
    slot the ``value``."""

    place: Place
    found: tuple[int, ...]
    value: int


class Exit(Struct, frozen=True):
    """A way to the end: for each slot the last look at it, if there was one; what the registers are that the loop
    leaves, and the fences behind its last load."""

    looks: tuple[Look | None, ...]
    words: Words
    fences: tuple[int, ...]


class Explored(Struct, frozen=True):
    """All ``places`` of a loop and all its ``exits``; ``loose``: slots of which another value at the last look would
    have made no difference in some of them."""

    places: frozenset[Place]
    exits: frozenset[Exit]
    loose: frozenset[int]


class Rounds:
    """What follows in the loops of the threads of ``state``; ``before``: the same of another execution."""

    def __init__(self, state: State, before: Rounds | None) -> None:
        self._state = state
        self._known: dict[_Case, frozenset[Outcome]] = {} if before is None else before._known
        self._exact: dict[_Case, frozenset[Outcome]] = {} if before is None else before._exact
        self._wide: dict[int, frozenset[str]] = {} if before is None else before._wide

    def after(
        self, poll: Poll, cases: Sequence[tuple[Place, tuple[int, ...]]], others: bool = False
    ) -> list[frozenset[Outcome]]:  # fmt: skip
        """What may follow from places when their loads find these values; ``others``: where threads wait together, and
        others go on. Raises ``Stopped`` where that is too much."""
        keys = [(poll.start, place, found, others) for place, found in cases]
        new: dict[int, list[_Case]] = {}
        for key in dict.fromkeys(keys):
            if key not in self._known:
                new.setdefault(key[1][0], []).append(key)
        for at, each in new.items():
            made = self._made(poll, at, [key[1][1] for key in each], [key[2] for key in each], others, last=False)
            for key, outcomes in zip(each, made, strict=True):
                self._known[key] = frozenset(self._widened(poll, outcome) for outcome in outcomes)
        return [self._known[key] for key in keys]

    def _every(self, poll: Poll, place: Place, every: Sequence[tuple[int, ...]]) -> list[frozenset[Outcome]]:
        """The same with each value from one place on, whatever others do."""
        cases = [(place, found) for found in every]
        alone = self.after(poll, cases)
        if poll.vote is None:
            return alone
        return [one | other for one, other in zip(alone, self.after(poll, cases, others=True), strict=True)]

    def following(self, poll: Poll, place: Place, found: tuple[int, ...]) -> frozenset[Outcome]:
        """What may follow from a place when its load finds this, with all that is known of registers; of threads that
        wait together, which have gone round as often as each other, what is so in the last round. Raises ``Stopped``
        where that is too much."""
        key = poll.start, place, found, False
        if key not in self._exact:
            self._exact[key] = self._made(poll, place[0], [place[1]], [found], others=False, last=True)[0]
        return self._exact[key]

    def _made(
        self, poll: Poll, at: int, words: Sequence[Words], found: Sequence[tuple[int, ...]], others: bool, last: bool
    ) -> list[frozenset[Outcome]]:  # fmt: skip
        if poll.vote is not None:
            return voted(self._state, poll, at, words, found, others, last)
        return Round(self._state, poll.needed[at], words).run(poll, at, found)

    def widen(self, poll: Poll, places: Iterable[Place]) -> None:
        """Take the register that has the most values for unknown. Raises ``Stopped`` where none has more than one."""
        values: dict[str, set[int | None]] = {}
        for at, words in places:
            for name, word in zip(poll.needed[at], words, strict=True):
                values.setdefault(name, set()).add(word)
        name = max(sorted(values), key=lambda name: len(values[name]), default="")
        if len(values.get(name, ())) < 2:
            raise Stopped("undecided", "this loop goes too many ways", poll.start)
        self._wide[poll.start] = self._wide.get(poll.start, frozenset()) | {name}
        for key in [key for key in self._known if key[0] == poll.start]:
            del self._known[key]

    def _widened(self, poll: Poll, outcome: Outcome) -> Outcome:
        wide = self._wide.get(poll.start)
        if not wide or outcome.at == poll.end:
            return outcome
        named = zip(poll.needed[outcome.at], outcome.words, strict=True)
        return Outcome(outcome.at, tuple(None if name in wide else word for name, word in named), outcome.fences)

    def explored(self, poll: Poll, words: Words, slots: Slots, values: Sequence[Collection[int]]) -> Explored:
        """All that a loop may do that begins with registers which are ``words``, and finds in each slot some of these
        ``values``. Raises ``Stopped`` where that is too much."""
        while True:
            reads = {slot: frozenset(at for at in poll.loads if slot in slots[at]) for slot in range(len(values))}
            keeps = {at: [slot for slot, loads in reads.items() if poll.passes(at, loads)] for at in poll.loads}
            first: tuple[Place, tuple[Look | None, ...]] = (poll.start, words), (None,) * len(values)
            seen, work = {first}, [first]
            exits: set[Exit] = set()
            while work and len(seen) <= _MOST_PLACES:
                place, looks = work.pop()
                every = self._findings(place[0], slots, values)
                for found, outcomes in zip(every, self._every(poll, place, every), strict=True):
                    now: list[Look | None] = [*looks]
                    for slot, value in zip(slots[place[0]], found, strict=True):
                        now[slot] = Look(place, found, value)
                    for outcome in outcomes:
                        if outcome.at == poll.end:
                            exits.add(Exit(tuple(now), outcome.words, outcome.fences))
                            continue
                        kept = tuple(look if n in keeps[outcome.at] else None for n, look in enumerate(now))
                        following = (outcome.at, outcome.words), kept
                        if following not in seen:
                            seen.add(following)
                            work.append(following)
            if not work:
                loose = {slot for slot in reads if self._loose(poll, slots, slot, exits, values)}
                return Explored(frozenset(place for place, _ in seen), frozenset(exits), frozenset(loose))
            self.widen(poll, [place for place, _ in seen])

    def stuck(self, poll: Poll, found: Explored, slots: Slots, values: Sequence[Collection[int]]) -> bool:
        """Whether the loop may go round for ever when some of these values stay there."""
        count = 1
        for each in values:
            count *= len(each)
        if count > _MOST_CASES:
            raise Stopped("undecided", "this loop may find too many values", poll.start)
        places = sorted(found.places, key=repr)
        for staying in product(*map(sorted, values)):
            cases = [(place, tuple(staying[slot] for slot in slots[place[0]])) for place in places]
            onward = {
                place: {(outcome.at, outcome.words) for outcome in outcomes if outcome.at != poll.end}
                for place, outcomes in zip(places, self.after(poll, cases), strict=True)
            }
            while done := [place for place, after in onward.items() if not after & onward.keys()]:
                for place in done:
                    del onward[place]
            if onward:
                return True
        return False

    def _findings(self, at: int, slots: Slots, values: Sequence[Collection[int]]) -> list[tuple[int, ...]]:
        """All that the load at ``at`` may find."""
        every = list(product(*(sorted(values[slot]) for slot in slots[at])))
        if len(every) > _MOST_CASES:
            raise Stopped("undecided", "this loop may find too many values", at)
        return every

    def _loose(
        self, poll: Poll, slots: Slots, slot: int, exits: Iterable[Exit], values: Sequence[Collection[int]]
    ) -> bool:
        """Whether in some way to the end another value at the last look at a slot makes no difference."""
        if OPAQUE in values[slot]:
            return True
        ways = {way.looks: way for way in exits}
        return not all(self._decides(poll, slots, slot, way, values) for way in ways.values())

    def _decides(self, poll: Poll, slots: Slots, slot: int, way: Exit, values: Sequence[Collection[int]]) -> bool:
        """Whether with another value at the last look at a slot, and all else as it was, the loop goes on."""
        look = way.looks[slot]
        if look is None:
            return False
        number = slots[look.place[0]].index(slot)
        load = self._state.body[look.place[0]]
        assert isinstance(load, ops.Load)
        width = load.type.bits * len(load.dst) // len(look.found)
        ones = (1 << width) - 1
        others = {*values[slot], 0, ones, *(look.value ^ bit for bit in (1, 2, 1 << width - 1, ones))} - {look.value}
        for other in sorted(others):
            found = (*look.found[:number], other, *look.found[number + 1 :])
            if self._goes_on(poll, slots, slot, way, look.place, found, values):
                return True
        return False

    def _goes_on(
        self, poll: Poll, slots: Slots, slot: int, way: Exit, place: Place, found: tuple[int, ...],
        values: Sequence[Collection[int]],
    ) -> bool:  # fmt: skip
        """Whether from a place all ways come by a slot again before they end; where there was no look, any of some
        ``values`` may be."""
        work, seen = [(place, found)], {place}
        while work:
            if len(seen) > _MOST_STEPS:
                return False
            try:
                outcomes = self.after(poll, [work.pop()])[0]
            except Stopped:  # with what nobody writes
                return False
            for outcome in outcomes:
                if outcome.at == poll.end:
                    return False
                onward = outcome.at, outcome.words
                if slot in slots[outcome.at] or onward in seen:
                    continue
                looks = [way.looks[each] for each in slots[outcome.at]]
                every = [
                    sorted(values[each]) if look is None else [look.value]
                    for each, look in zip(slots[outcome.at], looks, strict=True)
                ]
                seen.add(onward)
                work += [(onward, each) for each in product(*every)]
                if len(work) > _MOST_STEPS:
                    return False
        return True
