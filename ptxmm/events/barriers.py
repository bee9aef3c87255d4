"""Barriers on plain integers: every way in which given sequences of arrivals form phases, and who waits for ever.

Typed PTX (semantics A27): barriers of a CTA by id; a phase ends when its arrivals reach the count. The untyped
dialect (semantics 1.7): groups by instance and id. PTX ISA 9.7.14.1, 8.9.4(2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ptxmm.events.scopes import Place
from ptxmm.events.trace import Event
from ptxmm.program.test import EventId, Test
from ptxmm.ptx.ops import Barrier, Imm

_Key = tuple[tuple[object, ...], int]
"""A barrier of typed PTX: its CTA and its id."""

_Group = tuple[tuple[object, ...], int | None, int]
"""A group of the dialect: CTA, instance, barrier."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """How the barriers of one choice of paths turn out.

    ``reached``: for each thread the number of its barrier instructions that it arrives at. ``phases``: the phase that
    each of these takes part in; in the dialect 0, or None outside the chosen subset. ``waiting``: threads that wait
    for ever at the last one they reached. ``misuse``: why the program has no meaning, or None.
    """

    reached: tuple[int, ...]
    phases: Mapping[EventId, int | None]
    waiting: frozenset[int] = frozenset()
    misuse: str | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """Of the simulation: arrivals made by each thread, which threads wait, and for each barrier (CTA, id) its phase,
    the threads that arrived in it and its count."""

    reached: tuple[int, ...]
    waiting: frozenset[int]
    barriers: tuple[tuple[_Key, int, frozenset[int], int | None], ...]
    phases: tuple[tuple[EventId, int], ...]


def meetings(
    test: Test,
    places: Sequence[Place],
    arrivals: Sequence[Sequence[Event]],
    ended: Sequence[bool],
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None = None,
) -> Iterator[Meeting]:
    """Every way the barriers turn out, each once.

    ``arrivals``: the BA events of each thread's path; ``ended``: whether the path reaches the end of the thread (so
    that it exits after them). ``fixed``: only ways in which each arrival has this phase. ``check`` is called often.
    """
    if not any(arrivals):
        yield Meeting((0,) * len(arrivals), {})
    elif test.dialect:
        yield from _groups(test, places, arrivals, check, fixed)
    else:
        yield from _phases(places, arrivals, ended, check, fixed)


def _phases(
    places: Sequence[Place],
    arrivals: Sequence[Sequence[Event]],
    ended: Sequence[bool],
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None,
) -> Iterator[Meeting]:
    simulation = _Simulation(places, arrivals, ended)
    start = _State((0,) * len(arrivals), frozenset(), (), ())
    seen = {start}
    stack = [start]
    results: set[tuple[object, ...]] = set()
    while stack:
        check()
        state = stack.pop()
        movable = [t for t in range(len(arrivals)) if simulation.can_move(state, t)]
        if not movable:
            yield Meeting(state.reached, dict(state.phases), state.waiting, None)
        for t in simulation.branches(movable) if movable else ():
            misuse = simulation.misuse(state, t)
            if misuse is not None:
                reached = tuple(n + (u == t) for u, n in enumerate(state.reached))
                ended_here = state.waiting | {t}  # the thread goes no further than its misuse
                key = (reached, frozenset(state.phases), ended_here, misuse)
                if key not in results:
                    results.add(key)
                    yield Meeting(reached, dict(state.phases), ended_here, misuse)
                continue
            following = simulation.arrive(state, t)
            if fixed is not None and fixed.get(following.phases[-1][0]) != following.phases[-1][1]:
                continue
            following = simulation.settle(following)
            if following not in seen:
                seen.add(following)
                stack.append(following)


class _Simulation:
    """The moves of typed barriers; states are values, so that every order of arrivals can be tried."""

    def __init__(self, places: Sequence[Place], arrivals: Sequence[Sequence[Event]], ended: Sequence[bool]) -> None:
        self.places = places
        self.arrivals = arrivals
        self.ended = ended
        self.warps: dict[object, list[int]] = {}
        self.ctas: dict[object, list[int]] = {}
        for t, place in enumerate(places):
            self.warps.setdefault(place.warp, []).append(t)
            self.ctas.setdefault(place.cta, []).append(t)
        self.confluent = self._confluent()

    def can_move(self, state: _State, t: int) -> bool:
        """Whether thread ``t`` has an arrival to make now."""
        return t not in state.waiting and state.reached[t] < len(self.arrivals[t])

    def branches(self, movable: list[int]) -> list[int]:
        """The threads of which one must be tried next: those of one CTA, and one where the order can't matter."""
        cta = self.places[movable[0]].cta
        return movable[:1] if cta in self.confluent else [t for t in movable if self.places[t].cta == cta]

    def _confluent(self) -> frozenset[object]:
        """The CTAs where all arrivals wait, for all that ever arrive at the barrier or for all of the CTA."""
        counts: dict[_Key, set[int | None]] = {}
        users: dict[_Key, set[object]] = {}
        ordered: set[object] = set()
        for t, events in enumerate(self.arrivals):
            for event in events:
                assert event.barrier is not None and isinstance(event.op, Barrier)
                key = (self.places[t].cta, event.barrier[0])
                counts.setdefault(key, set()).add(event.barrier[1])
                users.setdefault(key, set()).add(self.places[t].warp)
                if event.op.kind == "arrive":
                    ordered.add(key[0])
        for key, found in counts.items():
            if found != {None} and found != {32 * len(users[key])}:
                ordered.add(key[0])
        return frozenset(self.ctas) - ordered

    def exited(self, state: _State, t: int) -> bool:
        """Whether thread ``t`` has ended: then no barrier waits for it."""
        return self.ended[t] and t not in state.waiting and state.reached[t] == len(self.arrivals[t])

    def next_barrier(self, state: _State, t: int) -> tuple[_Key, int | None, bool]:
        """The barrier, count and kind (waits or not) of the next arrival of ``t``."""
        event = self.arrivals[t][state.reached[t]]
        assert event.barrier is not None and isinstance(event.op, Barrier)
        return (self.places[t].cta, event.barrier[0]), event.barrier[1], event.op.kind == "sync"

    def misuse(self, state: _State, t: int) -> str | None:
        """Why the next arrival of ``t`` has no meaning, or None."""
        barrier, count, _ = self.next_barrier(state, t)
        for key, _, present, expected in state.barriers:
            if key == barrier and present:
                if t in present or self._arrived(state, self.places[t].warp, present):
                    return f"two arrivals of one warp in one phase of barrier {barrier[1]}"
                if count != expected:
                    return f"two different thread counts in one phase of barrier {barrier[1]}"
        return None

    def arrive(self, state: _State, t: int) -> _State:
        """The state after the next arrival of ``t``; its phase is the last of ``phases``."""
        barrier, count, waits = self.next_barrier(state, t)
        phase, present = 0, frozenset[int]()
        others = []
        for entry in state.barriers:
            if entry[0] == barrier:
                phase, present = entry[1], entry[2]
            else:
                others.append(entry)
        entries = (*others, (barrier, phase, present | {t}, count))
        event = self.arrivals[t][state.reached[t]]
        return _State(
            (*state.reached[:t], state.reached[t] + 1, *state.reached[t + 1 :]),
            state.waiting | {t} if waits else state.waiting,
            tuple(sorted(entries, key=lambda e: (str(e[0][0]), e[0][1]))),
            (*state.phases, (event.id, phase)),
        )

    def settle(self, state: _State) -> _State:
        """End every phase that is complete: who waits in it goes on."""
        changed = True
        barriers, waiting = state.barriers, state.waiting
        while changed:
            changed = False
            for i, (key, phase, present, count) in enumerate(barriers):
                current = _State(state.reached, waiting, barriers, ())
                if present and self._complete(current, key[0], present, count):
                    waiting = waiting - frozenset(t for t in present if self._waits_at(current, t, key))
                    entry = (key, phase + 1, frozenset[int](), None)
                    barriers = (*barriers[:i], entry, *barriers[i + 1 :])
                    changed = True
                    break
        return _State(state.reached, waiting, barriers, tuple(sorted(state.phases)))

    def _waits_at(self, state: _State, t: int, key: _Key) -> bool:
        event = self.arrivals[t][state.reached[t] - 1]
        return t in state.waiting and event.barrier is not None and event.barrier[0] == key[1]

    def _arrived(self, state: _State, warp: object, present: frozenset[int]) -> bool:
        """Whether all of a warp that has not exited has arrived, and some of it."""
        mates = self.warps[warp]
        return any(t in present for t in mates) and all(t in present or self.exited(state, t) for t in mates)

    def _complete(self, state: _State, cta: object, present: frozenset[int], count: int | None) -> bool:
        warps = {self.places[t].warp for t in present}
        if count is None:
            return all(t in present or self.exited(state, t) for t in self.ctas[cta])
        return 32 * sum(self._arrived(state, w, present) for w in warps) >= count


def _groups(
    test: Test,
    places: Sequence[Place],
    arrivals: Sequence[Sequence[Event]],
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None,
) -> Iterator[Meeting]:
    reached, waiting, members = _pass_groups(test, places, arrivals)
    choices: list[list[dict[EventId, int | None]]] = []
    for events in members.values():
        quorums = {e.barrier[1] for e in events if e.barrier is not None}
        if len(quorums) > 1:
            yield Meeting(reached, {}, frozenset(), "two different quorums in one group of barriers")
            return
        ids = [e.id for e in events]
        quorum = quorums.pop()
        least = len(ids) if quorum is None else min(max(quorum, 0), len(ids))
        subsets = [frozenset(s) for size in range(least, len(ids) + 1) for s in combinations(ids, size)]
        options = [{i: 0 if i in chosen else None for i in ids} for chosen in subsets]
        if fixed is not None:
            options = [o for o in options if all(i in fixed and fixed[i] == phase for i, phase in o.items())]
        choices.append(options)
    for selection in product(*choices):
        check()
        phases = {i: phase for part in selection for i, phase in part.items()}
        yield Meeting(reached, phases, waiting)


def _pass_groups(
    test: Test, places: Sequence[Place], arrivals: Sequence[Sequence[Event]]
) -> tuple[tuple[int, ...], frozenset[int], dict[_Group, list[Event]]]:
    """Let every thread go on while its group lets it pass. Arrivals only ever help, so the order does not matter."""
    reached = [0] * len(arrivals)
    waits: dict[int, _Group] = {}
    members: dict[_Group, list[Event]] = {}
    threads_in: dict[_Group, set[int]] = {}
    counts: dict[int, int | None] = {}
    moved = True
    while moved:
        moved = False
        for t, events in enumerate(arrivals):
            while t not in waits and reached[t] < len(events):
                event = events[reached[t]]
                assert event.barrier is not None and isinstance(event.op, Barrier)
                key = (places[t].cta, event.op.instance, event.barrier[0])
                members.setdefault(key, []).append(event)
                threads_in.setdefault(key, set()).add(t)
                reached[t] += 1
                moved = True
                if event.op.kind == "sync":
                    waits[t], counts[t] = key, event.barrier[1]
        for t, key in list(waits.items()):
            count = counts[t]
            needed = _needed(test, places, key)
            if threads_in[key] >= needed if count is None else len(threads_in[key]) >= count:
                del waits[t]
                moved = True
    return tuple(reached), frozenset(waits), members


def _needed(test: Test, places: Sequence[Place], key: _Group) -> set[int]:
    """The threads that surely have an instruction of the group: one whose barrier is a register is not counted."""
    cta, instance, number = key
    return {
        t
        for t, thread in enumerate(test.threads)
        if places[t].cta == cta
        and any(
            isinstance(op, Barrier) and op.instance == instance and op.barrier == Imm(number)
            for op in thread.body
        )
    }
