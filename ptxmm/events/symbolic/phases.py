"""Barriers of the symbolic side: every way in which a choice of paths forms the phases of its barriers.

Sources: PTX ISA 9.7.14.1 (bar), 8.9.4(2); a phase of a barrier ends when its arrivals reach the count (A27).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product

from ptxmm.events.symbolic.event import BarrierEvent, ThreadEvents
from ptxmm.program.test import EventId, Test
from ptxmm.ptx.ops import Barrier, Imm
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas


@dataclass(frozen=True, slots=True)
class Arrival:
    """One barrier instruction on a path, with the values its operands have there."""

    id: EventId
    sync: bool
    barrier: int
    count: int | None
    instance: int | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The barrier instructions of one path of a thread, if nothing blocks it.

    ``ends``: whether it reaches its end or the bound; None: neither, it goes round a spin loop for ever.
    """

    when: Formula
    arrivals: tuple[Arrival, ...]
    ends: bool | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way the barriers of a choice of traces turn out.

    ``arrivals`` are those that happen, ``phases`` gives the phase of each, None for one that takes part in none;
    ``stuck``: where threads wait for ever. ``ends``: for each thread whether its trace reaches its end, or the bound,
    or (None) neither. ``undefined``: why the program has no meaning, or None; then ``stuck`` is where threads were.
    """

    arrivals: frozenset[Arrival]
    phases: tuple[tuple[EventId, int | None], ...]
    stuck: frozenset[EventId]
    ends: tuple[bool | None, ...]
    undefined: str | None = None


def traces(formulas: Formulas, thread: ThreadEvents, check: Callable[[], None]) -> list[Trace]:
    """The traces of a thread: one for each choice of the barrier instructions on its path and of their operands."""
    lost = formulas.both(-thread.completed, -thread.cut) if thread.barriers else FALSE
    paths: list[tuple[Formula, tuple[Arrival, ...]]] = [(TRUE, ())]
    for event in thread.barriers:
        longer: list[tuple[Formula, tuple[Arrival, ...]]] = []
        for when, arrivals in paths:
            check()
            longer.append((formulas.both(when, -event.presence), arrivals))
            here = formulas.both(when, event.presence)
            counts = {None: TRUE} if event.count is None else dict(event.count.items())
            for (barrier, b), (count, c) in product(event.barrier.items(), counts.items()):
                arrival = Arrival(event.id, event.op.kind == "sync", barrier, count, event.op.instance)
                longer.append((formulas.all([here, b, c]), (*arrivals, arrival)))
        paths = [path for path in longer if path[0] != FALSE]
    return [
        Trace(total, arrivals, ends)
        for when, arrivals in paths
        for ends, how in ((True, thread.completed), (False, thread.cut), (None, lost))
        if (total := formulas.both(when, how)) != FALSE
    ]


def scenarios(test: Test, formulas: Formulas, threads: list[ThreadEvents], check: Callable[[], None]) -> list[Scenario]:
    """Every scenario of every choice of traces, one trace a thread."""
    found: dict[Scenario, None] = {}
    members = _members(test)
    simulate = _groups if test.dialect else _phases
    for choice in product(*[traces(formulas, t, check) for t in threads]):
        check()
        if formulas.all([t.when for t in choice]) == FALSE:
            continue
        for arrivals, phases, stuck, undefined in simulate(test, choice, members, check):
            waiting = {id_[0] for id_ in stuck}
            ends = tuple(True if t in waiting else trace.ends for t, trace in enumerate(choice))
            if undefined is not None or None not in ends:
                found[Scenario(arrivals, phases, stuck, ends, undefined)] = None
    return list(found)


def cta_key(test: Test, thread: int) -> tuple[object, ...]:
    """The CTA of a thread: its whole path, or the thread itself where none is named."""
    place = test.threads[thread].placement
    if place.host or place.cta is None:
        return ("own", thread)
    return (place.gpu, place.grid, place.cluster, place.cta)


def _members(test: Test) -> list[tuple[tuple[object, ...], tuple[object, ...]]]:
    """The CTA and the warp of each thread."""
    found = []
    for index, thread in enumerate(test.threads):
        cta, warp = cta_key(test, index), thread.placement.warp
        found.append((cta, (*cta, "warp", warp) if warp is not None else (*cta, "thread", index)))
    return found


_Result = tuple[frozenset[Arrival], tuple[tuple[EventId, int | None], ...], frozenset[EventId], str | None]
_Cta = tuple[object, ...]
_Key = tuple[_Cta, int]


@dataclass(frozen=True, slots=True)
class _Barrier:
    """The phase that a barrier of a CTA collects arrivals for: the warps that arrived, and its count."""

    phase: int = 0
    arrived: frozenset[tuple[object, ...]] = frozenset()
    count: int | None = None


@dataclass(frozen=True, slots=True)
class _Node:
    """A moment of a run: how many barrier instructions each thread has begun, which threads wait, what barriers hold.

    ``pending``: (thread, index) of arrivals whose warp has not arrived as a whole; ``phases``: of those it has.
    """

    position: tuple[int, ...]
    waits: tuple[bool, ...]
    barriers: frozenset[tuple[_Key, _Barrier]] = frozenset()
    pending: frozenset[tuple[int, int]] = frozenset()
    phases: frozenset[tuple[EventId, int]] = frozenset()


def _phases(
    test: Test,
    choice: tuple[Trace, ...],
    members: list[tuple[tuple[object, ...], tuple[object, ...]]],
    check: Callable[[], None],
) -> Iterator[_Result]:
    """Run the traces with the barriers of PTX, in every order of arrivals that can matter."""
    run = _Run(choice, members)
    confluent = _confluent(choice, members)
    results: dict[_Result, None] = {}
    start = _Node((0,) * len(choice), (False,) * len(choice))
    seen = {start}
    stack = [start]
    while stack:
        check()
        node = stack.pop()
        ready = [t for t, trace in enumerate(choice) if not node.waits[t] and node.position[t] < len(trace.arrivals)]
        if not ready:
            stuck = frozenset(run.current(node, t).id for t, waits in enumerate(node.waits) if waits)
            results[run.before(node), tuple(sorted(node.phases)), stuck, None] = None
        for t in ready[:1] if confluent else ready:
            begun = run.begin(node, t)
            misuse = run.misuse(node, t)
            if misuse is not None:
                results[(*run.stopped(begun, t), misuse)] = None
                continue
            settled = run.settle(begun)
            if settled not in seen:
                seen.add(settled)
                stack.append(settled)
    yield from results


class _Run:
    """The steps of a run of ``choice``, the barrier instructions of each thread on its path."""

    def __init__(self, choice: tuple[Trace, ...], members: list[tuple[tuple[object, ...], tuple[object, ...]]]) -> None:
        self.choice = choice
        self.members = members
        self.warps: dict[tuple[object, ...], list[int]] = {}
        for t, (_, warp) in enumerate(members):
            self.warps.setdefault(warp, []).append(t)

    def current(self, node: _Node, t: int) -> Arrival:
        """The barrier instruction that thread ``t`` began last."""
        return self.choice[t].arrivals[node.position[t] - 1]

    def before(self, node: _Node) -> frozenset[Arrival]:
        """The barrier instructions begun so far."""
        ends = zip(self.choice, node.position, strict=True)
        return frozenset(a for trace, end in ends for a in trace.arrivals[:end])

    def stopped(
        self, node: _Node, last: int
    ) -> tuple[frozenset[Arrival], tuple[tuple[EventId, int | None], ...], frozenset[EventId]]:
        """All ends at ``node``: thread ``last`` where it is, who waits there too, others at their next barrier."""
        stuck = {self.current(node, last)}
        for t, trace in enumerate(self.choice):
            if node.waits[t]:
                stuck.add(self.current(node, t))
            elif t != last and node.position[t] < len(trace.arrivals):
                stuck.add(trace.arrivals[node.position[t]])
        return self.before(node) | stuck, tuple(sorted(node.phases)), frozenset(a.id for a in stuck)

    def exited(self, node: _Node, t: int) -> bool:
        """Whether thread ``t`` has reached its end."""
        trace = self.choice[t]
        return trace.ends is True and node.position[t] == len(trace.arrivals) and not node.waits[t]

    def begin(self, node: _Node, t: int) -> _Node:
        """Thread ``t`` begins its next barrier instruction."""
        index = node.position[t]
        position = (*node.position[:t], index + 1, *node.position[t + 1 :])
        waits = (*node.waits[:t], self.choice[t].arrivals[index].sync, *node.waits[t + 1 :])
        return replace(node, position=position, waits=waits, pending=node.pending | {(t, index)})

    def misuse(self, node: _Node, t: int) -> str | None:
        """Why the next barrier instruction of thread ``t`` has no meaning, or None."""
        arrival = self.choice[t].arrivals[node.position[t]]
        cta, warp = self.members[t]
        state = dict(node.barriers).get((cta, arrival.barrier), _Barrier())
        pending = [
            (u, other)
            for u, index in node.pending
            if self.members[u][0] == cta and (other := self.choice[u].arrivals[index]).barrier == arrival.barrier
        ]
        if warp in state.arrived or any(u == t for u, _ in pending):
            return f"two arrivals of one warp in one phase of barrier {arrival.barrier}"
        counts = {other.count for _, other in pending} | ({state.count} if state.arrived else set())
        if counts - {arrival.count}:
            return f"two different thread counts in one phase of barrier {arrival.barrier}"
        return None

    def settle(self, node: _Node) -> _Node:
        """Let warps arrive whose threads all did, end the phases that are full and let their threads go on."""
        while True:
            following = self._complete(self._arrive(node))
            if following == node:
                return node
            node = following

    def _arrive(self, node: _Node) -> _Node:
        for warp, mates in self.warps.items():
            live = [t for t in mates if not self.exited(node, t)]
            first: dict[int, dict[int, int]] = {}
            for t, index in sorted(node.pending):
                if t in mates:
                    first.setdefault(self.choice[t].arrivals[index].barrier, {}).setdefault(t, index)
            for barrier, lanes in first.items():
                if not lanes.keys() >= set(live):
                    continue
                arrivals = [self.choice[t].arrivals[index] for t, index in lanes.items()]
                key = (self.members[mates[0]][0], barrier)
                state = dict(node.barriers).get(key, _Barrier())
                joined = _Barrier(state.phase, state.arrived | {warp}, arrivals[0].count)
                return replace(
                    node,
                    barriers=frozenset({**dict(node.barriers), key: joined}.items()),
                    pending=node.pending - set(lanes.items()),
                    phases=node.phases | {(a.id, state.phase) for a in arrivals},
                )
        return node

    def _complete(self, node: _Node) -> _Node:
        for key, state in node.barriers:
            if not state.arrived:
                continue
            if state.count is None:
                cta = key[0]
                live = {m[1] for t, m in enumerate(self.members) if m[0] == cta and not self.exited(node, t)}
                full = live <= state.arrived
            else:
                full = 32 * len(state.arrived) >= state.count
            if not full:
                continue
            # Threads of a warp that is not there as a whole go on with the phase that they arrived in.
            early = {(t, n) for t, n in node.pending if key == (self.members[t][0], self.choice[t].arrivals[n].barrier)}
            phases = node.phases | {(self.choice[t].arrivals[n].id, state.phase) for t, n in early}
            waits = tuple(
                w
                and (
                    key != (self.members[t][0], (a := self.current(node, t)).barrier)
                    or (a.id, state.phase) not in phases
                )
                for t, w in enumerate(node.waits)
            )
            barriers = frozenset({**dict(node.barriers), key: _Barrier(state.phase + 1)}.items())
            return replace(node, waits=waits, barriers=barriers, pending=node.pending - early, phases=phases)
        return node


def _confluent(choice: tuple[Trace, ...], members: list[tuple[tuple[object, ...], tuple[object, ...]]]) -> bool:
    """Whether the order of arrivals can't matter: each barrier needs all of the warps that ever arrive at it."""
    counts: dict[tuple[object, int], set[int | None]] = {}
    users: dict[tuple[object, int], set[tuple[object, ...]]] = {}
    for t, trace in enumerate(choice):
        for arrival in trace.arrivals:
            key = (members[t][0], arrival.barrier)
            counts.setdefault(key, set()).add(arrival.count)
            users.setdefault(key, set()).add(members[t][1])
            if not arrival.sync:
                return False
    return all(c == {None} or c == {32 * len(users[key])} for key, c in counts.items())


def _groups(
    test: Test,
    choice: tuple[Trace, ...],
    members: list[tuple[tuple[object, ...], tuple[object, ...]]],
    check: Callable[[], None],
) -> Iterator[_Result]:
    """Run the traces with the barriers of the untyped dialect: groups by instance and barrier, quorums of threads."""
    position = [0] * len(choice)
    waits = [False] * len(choice)
    group_of: dict[EventId, tuple[_Cta, int | None, int]] = {}
    arrived: dict[tuple[_Cta, int | None, int], list[tuple[int, Arrival]]] = {}
    moved = True
    while moved:
        moved = False
        for t, trace in enumerate(choice):
            while not waits[t] and position[t] < len(trace.arrivals):
                arrival = trace.arrivals[position[t]]
                key = (members[t][0], arrival.instance, arrival.barrier)
                group_of[arrival.id] = key
                arrived.setdefault(key, []).append((t, arrival))
                position[t] += 1
                waits[t] = arrival.sync
                moved = True
            if waits[t]:
                arrival = trace.arrivals[position[t] - 1]
                key = group_of[arrival.id]
                present = {u for u, _ in arrived[key]}
                if arrival.count is not None:
                    passes = len(present) >= arrival.count
                else:
                    passes = _needed(test, members, key) <= present
                if passes:
                    waits[t] = False
                    moved = True
    stuck = frozenset(choice[t].arrivals[position[t] - 1].id for t in range(len(choice)) if waits[t])
    reached = frozenset(a for trace, end in zip(choice, position, strict=True) for a in trace.arrivals[:end])
    options: list[list[tuple[tuple[EventId, int | None], ...]]] = []
    for events in arrived.values():
        quorums = {a.count for _, a in events}
        if len(quorums) > 1:
            yield reached, (), frozenset(), "two different quorums in one group of barriers"
            return
        quorum = quorums.pop()
        ids = [a.id for _, a in events]
        sizes = [len(ids)] if quorum is None else range(min(max(quorum, 0), len(ids)), len(ids) + 1)
        options.append(
            [
                tuple((i, 0 if i in chosen else None) for i in ids)
                for size in sizes
                for chosen in map(frozenset, combinations(ids, size))
            ]
        )
    for selection in product(*options):
        check()
        yield reached, tuple(sorted(p for part in selection for p in part)), stuck, None


def _needed(
    test: Test, members: list[tuple[tuple[object, ...], tuple[object, ...]]], key: tuple[_Cta, int | None, int]
) -> set[int]:
    """The threads that have an instruction of the group: same CTA and instance, and surely the same barrier."""
    cta, instance, barrier = key
    return {
        t
        for t, thread in enumerate(test.threads)
        if members[t][0] == cta
        and any(
            isinstance(op, Barrier)
            and op.instance == instance
            and isinstance(op.barrier, Imm)
            and op.barrier.value == barrier
            for op in thread.body
        )
    }


__all__ = ["BarrierEvent", "Scenario", "cta_key", "scenarios"]
