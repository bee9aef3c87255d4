"""Unwanted executions that were met, and which other programs have them too.

To ask a program for an unwanted execution takes a search; whether an execution that is known is one of it takes a
hundredth of that: it is only rebuilt there, and has no fault but what the model says of it there. So what is known of
one program refutes others, with other steps, orders, scopes and fences, without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.barriers import BARRIERS
from ptxmm.analysis.strength.family import Shown
from ptxmm.analysis.strength.joint import Combined
from ptxmm.analysis.strength.superposition import Superposition
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Source, Witness, observing
from ptxmm.program.condition import evaluate, terms
from ptxmm.program.identity import EventId, Site, Switch
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import Branch

_FEW = 6
"""So many executions are tried on each program, those that refuted others last."""


class Placed(Struct, frozen=True):
    """A program made of a test. ``names``: for each instruction of each thread what tells it in all such programs: its
    index in the test, or for a new one where it stands and what put it there."""

    test: Test
    names: tuple[tuple[Hashable, ...], ...]


class Met(Struct, frozen=True):
    """An execution, mostly an unwanted one, and the program that was asked for it."""

    program: Placed
    shown: Shown

    def in_(self, program: Placed) -> Shown | None:
        """The same in another program: None where it is none of it, or not unwanted there, as far as can be told."""
        try:
            confirmer, moved = self._moved(program)
            return moved if _is_unwanted(confirmer, moved) else None
        except (Unconfirmed, _Elsewhere):
            return None

    def fits(self, program: Placed) -> bool:
        """Whether it is one of another program, as far as can be told."""
        try:
            confirmer, moved = self._moved(program)
            return next(confirmer.rebuild(moved.witness).violated(), None) is None
        except (Unconfirmed, _Elsewhere):
            return False

    def _moved(self, program: Placed) -> tuple[Confirmer, Shown]:
        shown, names = self.shown, self.program.names
        index = [{name: n for n, name in enumerate(mine)} for mine in program.names]
        test = _as_shown(self.program, shown.test, program, index)

        def place(event: EventId) -> EventId | None:
            mine = names[event.thread]
            if 0 <= event.instruction < len(mine):
                there = index[event.thread].get(mine[event.instruction])
            else:
                there = -1 if event.instruction < 0 else len(program.names[event.thread])
            return None if there is None else event._replace(instruction=there)

        witness = _moved(shown.witness, place)
        confirmer = Confirmer(test, shown.model)
        return confirmer, Shown(test, shown.model, shown.unwanted, confirmer.completed(witness))

    def waits_in(self, program: Placed) -> bool:
        """Whether a program has the same barriers: in others it is not known where threads wait."""
        return _barriers(program) == _barriers(self.program)


class Executions:
    """Those that were met."""

    def __init__(self) -> None:
        self._met: list[Met] = []

    def add(self, program: Placed, shown: Shown) -> Met:
        """Know an execution of ``program``."""
        self._met.append(Met(program, shown))
        return self._met[-1]

    def of(self, program: Placed) -> Shown | None:
        """An unwanted execution of ``program`` that is like one known; None says nothing."""
        likely = (met for met in reversed(self._met) if not met.shown.witness.deadlocked or met.waits_in(program))
        for met in [*islice(likely, _FEW)]:
            found = met.in_(program)
            if found is not None:
                self._met.remove(met)
                self._met.append(met)
                return found
        return None


class _Elsewhere(Exception):
    """Something has no place in another program."""


def placed(program: Combined, everything: Superposition | None = None, on: frozenset[Switch] = frozenset()) -> Placed:
    """The program of some steps; with the switches ``on`` of its superposition ``everything``, if that is given."""
    names = tuple(
        tuple((o.gap, o.step, o.part) if o.index is None else o.index for o in origins) for origins in program.origins
    )
    if everything is None:
        return Placed(program.test, names)
    return Placed(everything.program(on), tuple(_names(everything, on, t, mine) for t, mine in enumerate(names)))


def _names(
    everything: Superposition, on: frozenset[Switch], thread: int, names: Sequence[Hashable]
) -> tuple[Hashable, ...]:
    found: list[Hashable] = []
    rest = iter(names)
    for index in range(len(everything.test.threads[thread].body)):
        site = Site(thread, index)
        place = everything.places.get(site)
        if place is not None and place.rank is not None:
            name: Hashable = names[place.site.instruction], place.rank
        else:
            name = next(rest)
        if site not in everything.forms or everything.form(site, on) is not None:
            found.append(name)
    return tuple(found)


def _barriers(program: Placed) -> set[tuple[int, Hashable]]:
    return {
        (number, name)
        for number, (thread, names) in enumerate(zip(program.test.threads, program.names, strict=True))
        for name, op in zip(names, thread.body, strict=True)
        if isinstance(op, BARRIERS)
    }


def _as_shown(asked: Placed, shown: Test, program: Placed, index: Sequence[Mapping[Hashable, int]]) -> Test:
    """``program`` with what the program ``asked`` has otherwise where it is ``shown``: initial values, polls that are
    left out, threads that are held back."""
    threads = list(program.test.threads)
    for number, (before, after) in enumerate(zip(asked.test.threads, shown.threads, strict=True)):
        if before is not after:
            threads[number] = _thread(before, after, threads[number], asked.names[number], index[number])
    return replace(program.test, objects=shown.objects, filter=shown.filter, threads=tuple(threads))


def _thread(
    before: Thread, after: Thread, thread: Thread, names: Sequence[Hashable], index: Mapping[Hashable, int]
) -> Thread:
    """``thread`` with the changes that make ``after`` of ``before``, the instructions of which have these ``names``."""
    if len(before.body) != len(after.body):
        raise _Elsewhere
    body = list(thread.body)
    known = set(names)
    others = {n for name, n in index.items() if name not in known}
    for n, (old, new) in enumerate(zip(before.body, after.body, strict=True)):
        if old is new or old == new:
            continue
        here = index.get(names[n])
        if here is None:
            raise _Elsewhere
        if isinstance(new, Branch):
            target = index.get(names[new.target]) if new.target < len(names) else len(body)
            # Nothing else may be in a loop that stands for several rounds of polls.
            if target is None or others.intersection(range(min(target, here), max(target, here) + 1)):
                raise _Elsewhere
            while target - 1 in others:  # what comes before the target is passed too
                target -= 1
            new = replace(new, target=target)
        body[here] = new
    return replace(thread, body=tuple(body), placement=after.placement)


def _moved(witness: Witness, place: Callable[[EventId], EventId | None]) -> Witness:
    """``witness`` with its events where ``place`` has them."""

    def of(event: EventId) -> EventId:
        found = place(event)
        if found is None:
            raise _Elsewhere
        return found

    def sources(given: Sequence[Source]) -> tuple[Source, ...]:
        return tuple(s if s.write is None else replace(s, write=of(s.write)) for s in given)

    fences = ((place(a), place(b)) for a, b in witness.fence_sc)
    phases = ((place(event), phase) for event, phase in witness.phases.items())
    return replace(
        witness,
        values={of(event): value for event, value in witness.values.items()},
        reads={of(event): sources(given) for event, given in witness.reads.items()},
        co=frozenset((of(a), of(b)) for a, b in witness.co),
        fence_sc=frozenset((a, b) for a, b in fences if a is not None and b is not None),
        phases={event: phase for event, phase in phases if event is not None},
        last=sources(witness.last),
        deadlocked=frozenset(map(of, witness.deadlocked)),
        order=tuple(map(of, witness.order)),
        open=frozenset(map(of, witness.open)),
    )


def _is_unwanted(confirmer: Confirmer, shown: Shown) -> bool:
    """Whether the program has the execution ``shown``, and it is unwanted. Raises ``Unconfirmed``."""
    rebuilt, unwanted = confirmer.rebuild(shown.witness), shown.unwanted
    if next(rebuilt.violated(), None) is not None:
        return False
    if unwanted.undefined and rebuilt.misuse is not None:
        return True
    if shown.witness.deadlocked:
        waiting = rebuilt.meeting.waiting
        return unwanted.deadlock and all(t.thread in waiting or t.end == "end" for t in rebuilt.traces)
    satisfies, axioms = rebuilt.layout.algebra.satisfies, rebuilt.evaluator.axioms()
    asked = ((axiom, value) for axiom, value in axioms if axiom.flag and axiom.name in unwanted.flags)
    if any(satisfies(axiom.kind, axiom.negated, value) for axiom, value in asked):
        return True
    if unwanted.proposition is None or shown.witness.unroll is not None:
        return False
    state = confirmer.confirm(observing(terms(unwanted.proposition)), shown.witness)
    return evaluate(unwanted.proposition, state)
