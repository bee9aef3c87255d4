"""Barriers of CTAs, warps and clusters on the symbolic side (PTX ISA 9.7.14.1 to .3; A27, A29, A30).

A phase of a CTA's barrier ends when its arrivals reach the count; a warp arrives when all its lanes did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec.structs import replace

from ptxmm.events.symbolic.barriers import facts
from ptxmm.events.symbolic.barriers.lanes import LANES, source_lane
from ptxmm.events.symbolic.barriers.paths import Object, Step
from ptxmm.events.symbolic.barriers.state import Barrier, Log, Members, State, Turn
from ptxmm.program.shared.convergence import wide

_T = TypeVar("_T")

BARRIERS = 16
"""How many barriers a CTA has (9.7.14.1)."""


def cta_misuse(shared: Members, state: State, thread: int, arrival: Step) -> str | None:
    """Why an arrival of ``thread`` at a barrier of its CTA has no meaning now, or None."""
    key = shared.object_of(thread, arrival)
    barrier = dict(state.ctas).get(key, Barrier())
    pending = [(u, other) for u, other in state.pending if shared.object_of(u, other) == key]
    if shared.warp_of[thread] in barrier.arrived or any(u == thread for u, _ in pending):
        return f"two arrivals of one warp in one phase of barrier {arrival.barrier}"
    others = {(other.count, other.operation) for _, other in pending}
    if barrier.arrived:
        others.add((barrier.count, barrier.operation))
    if any(count != arrival.count for count, _ in others):
        return f"two different thread counts in one phase of barrier {arrival.barrier}"
    operations = {operation for _, operation in others}
    if operations - {arrival.operation}:
        mixed = "" in operations or not arrival.operation
        which = "a reduction and a plain synchronization" if mixed else "two different reductions"
        return f"{which} in one phase of barrier {arrival.barrier}"
    return None


def own_misuse(shared: Members, state: State, thread: int, arrival: Step) -> str | None:
    """Why an arrival at a barrier has no meaning, whatever the other threads do, or None."""
    if arrival.kind.startswith("bar."):
        return _operand_misuse(arrival)
    if arrival.kind.startswith("warp."):
        return _warp_misuse(shared, thread, arrival)
    if shared.hosts[thread]:
        return "barrier.cluster in a host thread"
    arrived = state.rounds[thread] & 1
    if arrival.kind == "cluster.arrive":
        return "two barrier.cluster.arrive of one thread without barrier.cluster.wait between them" if arrived else None
    return None if arrived else "barrier.cluster.wait without barrier.cluster.arrive before it"


def _operand_misuse(arrival: Step) -> str | None:
    """Operands in registers that no barrier of a CTA has (9.7.14.1)."""
    if not 0 <= arrival.barrier < BARRIERS:
        return f"barrier {arrival.barrier}, but a CTA has the barriers 0 to {BARRIERS - 1}"
    count = arrival.count
    if count is None or (count > 0 and count % LANES == 0):
        return None
    return f"{count} threads at a barrier, which is no {'' if count else 'positive '}multiple of {LANES}"


def _warp_misuse(shared: Members, thread: int, arrival: Step) -> str | None:
    if arrival.mask >> shared.lanes(thread).index(thread) & 1:
        return None
    what = "bar.warp.sync" if arrival.kind == "warp.sync" else arrival.operation.partition(".")[0] + ".sync"
    return f"a thread at {what} that is not in its own mask"


def turn(shared: Members, arrival: Step) -> Turn | None:
    """What a step is told from others by that threads execute together; None if they need not."""
    if arrival.aligned is None:
        return None
    thread, pc, *_ = arrival.id
    return pc, (arrival.aligned, arrival.barrier, arrival.count), wide(shared.test, thread, pc)


def _mates(
    shared: Members, state: State, thread: int, mine: Turn, among: frozenset[int] | None = None
) -> Iterator[tuple[int, int, tuple[Turn, ...]]]:
    """The threads (``among`` these) that execute ``mine`` with ``thread``, how many such steps this one has begun, and
    those that the other has come to: of the warp all, of the rest of the warpgroup its own."""
    before = state.together or ((),) * len(state.nodes)
    for t in shared.lanes(thread):
        if among is None or t in among:
            yield t, len(before[thread]), (*before[t], *_next_turn(shared, state, t))
    for t in shared.warpgroup_mates[thread] if mine[2] else ():
        if among is not None and t not in among:
            continue
        theirs = (*before[t], *_next_turn(shared, state, t))
        yield t, sum(m[2] for m in before[thread]), tuple(m for m in theirs if m[2])


def _next_turn(shared: Members, state: State, thread: int) -> tuple[Turn, ...]:
    """The next step of ``thread`` where it has come to one that it executes together with others."""
    node = state.nodes[thread]
    if state.waits[thread] is not None or node.step is None:
        return ()
    mine = turn(shared, node.step)
    return () if mine is None else (mine,)


def divergent(shared: Members, state: State, thread: int, arrival: Step) -> int | None:
    """A thread that does another step in place of ``arrival``, or has exited; None if there is none."""
    mine = turn(shared, arrival)
    if mine is None:
        return None
    for t, number, theirs in _mates(shared, state, thread, mine):
        if t != thread and (theirs[number][1] != mine[1] if number < len(theirs) else state.exited(t)):
            return t
    return None


def left_alone(shared: Members, state: State, waiting: bool = False) -> Iterator[tuple[int, int, int]]:
    """A thread (``waiting``: that waits), an instruction that it executes together with others, and one of these that
    has exited."""
    threads = [t for t in range(len(state.together)) if not waiting or state.waits[t] is not None]
    exited = frozenset(t for t in range(len(state.together)) if state.exited(t)) if threads else frozenset[int]()
    for thread in threads if exited else ():
        done = state.together[thread]
        for mine in dict.fromkeys((*done[-1:], *[m for m in done if m[2]][-1:])):
            for t, number, theirs in _mates(shared, state, thread, mine, exited):
                if len(theirs) < number:
                    alike = [m for m in done if m[2]] if t not in shared.lanes(thread) else done
                    yield thread, alike[len(theirs)][0], t
                    break


def lost(shared: Members, state: State) -> Iterator[tuple[int, str]]:
    """The threads that would get a value from a lane that is not there, and what is wrong with that."""
    for key in {key for key in state.waits if key is not None and key[0] == "warp"}:
        there = _gathered(shared, state, key)
        for t in there:
            step, lanes = state.step(t), shared.lanes(t)
            if step.operation.startswith("shfl."):
                source, _ = source_lane(step.operation.split(".")[1], lanes.index(t), *step.operands)
                if source >= len(lanes) or lanes[source] not in there:
                    yield t, f"shfl from lane {source}, which takes no part"


def _gathered(shared: Members, state: State, key: Object) -> tuple[int, ...]:
    """The threads that wait at a barrier or an exchange of their warp, once all are there that have not exited."""
    there = tuple(t for t, at in enumerate(state.waits) if at == key)
    mask, lanes = state.step(there[0]).mask, shared.lanes(there[0])
    complete = all(t in there or state.exited(t) for lane, t in enumerate(lanes) if mask >> lane & 1)
    return there if complete else ()


def begin(shared: Members, state: State, thread: int, arrival: Step, log: Log) -> tuple[State, bool]:
    """``thread`` begins a step at a barrier; whether it goes on at once."""
    key = shared.object_of(thread, arrival)
    mine = turn(shared, arrival)
    if mine is not None:
        before = state.together or ((),) * len(state.nodes)
        state = replace(state, together=_put(before, thread, (*before[thread], mine)))
    family, _, kind = arrival.kind.partition(".")
    goes_on = kind == "arrive"
    if not goes_on:
        state = replace(state, waits=_put(state.waits, thread, key))
    if family == "bar":
        state = replace(state, pending=state.pending | {(thread, arrival)})
    elif family == "warp":
        log.add(facts.InPhase(arrival.id, dict(state.warps).get(key, 0)))
    elif goes_on:
        state = _in_cluster(state, thread, arrival, log)
    return state, goes_on


def complete(shared: Members, state: State, log: Log) -> tuple[State, tuple[int, ...]]:
    """Let warps arrive whose threads all did, and end a phase that is full; the threads that may go on then.

    The caller lets them go on and calls again, until nothing changes.
    """
    if state.pending:
        state = _join(shared, state, log)
    misused = {t for t, _ in lost(shared, state)} | {t for t, *_ in left_alone(shared, state, waiting=True)}
    stopped = {state.waits[t] for t in misused}
    for key, barrier in state.ctas:
        if key not in stopped and barrier.arrived and _full(shared, state, key, barrier):
            return _end_phase(shared, state, key, barrier, log)
    for key in {key for key in state.waits if key is not None} - stopped:
        if key[0] == "warp" and (there := _gathered(shared, state, key)):
            warps = _with(state.warps, key, dict(state.warps).get(key, 0) + 1)
            return _go_on(replace(state, warps=warps), there), there
        if key[0] == "cluster" and (waits := _last_of_cluster(shared, state, key)) is not None:
            return _go_on(_in_cluster(state, waits, state.step(waits), log), (waits,)), (waits,)
    return state, ()


def _last_of_cluster(shared: Members, state: State, key: Object) -> int | None:
    """A thread that waits for its cluster, all of which have arrived or exited."""
    mates = [t for t, cluster in enumerate(shared.clusters) if cluster == key[1] and not state.exited(t)]
    there = (t for t, at in enumerate(state.waits) if at == key)
    return next((t for t in there if all(state.rounds[u] > state.rounds[t] - 1 for u in mates)), None)


def _in_cluster(state: State, thread: int, step: Step, log: Log) -> State:
    """``thread`` has arrived at its cluster or waited for it."""
    log.add(facts.InPhase(step.id, state.rounds[thread] >> 1))
    return replace(state, rounds=_put(state.rounds, thread, state.rounds[thread] + 1))


def _put(items: tuple[_T, ...], index: int, new: _T) -> tuple[_T, ...]:
    return (*items[:index], new, *items[index + 1 :])


def _with(pairs: frozenset[tuple[Object, _T]], key: Object, new: _T) -> frozenset[tuple[Object, _T]]:
    return frozenset({**dict(pairs), key: new}.items())


def _go_on(state: State, threads: tuple[int, ...]) -> State:
    return replace(state, waits=tuple(None if t in threads else key for t, key in enumerate(state.waits)))


def _join(shared: Members, state: State, log: Log) -> State:
    """Let one warp arrive whose threads all did."""
    begun = {shared.warp_of[t] for t, _ in state.pending}
    for warp, mates in shared.warps.items():
        if warp not in begun:
            continue
        live = {t for t in mates if not state.exited(t)}
        lanes: dict[Object, dict[int, Step]] = {}
        for t, arrival in sorted(state.pending, key=lambda item: (item[0], item[1].id)):
            if t in mates:
                lanes.setdefault(shared.object_of(t, arrival), {}).setdefault(t, arrival)
        for key, found in lanes.items():
            if not found.keys() >= live:
                continue
            barrier = dict(state.ctas).get(key, Barrier())
            first = next(iter(found.values()))
            joined = Barrier(barrier.phase, barrier.arrived | {warp}, first.count, first.operation)
            log.add(*(facts.InPhase(a.id, barrier.phase) for a in found.values()))
            return replace(state, ctas=_with(state.ctas, key, joined), pending=state.pending - set(found.items()))
    return state


def _full(shared: Members, state: State, key: Object, barrier: Barrier) -> bool:
    if barrier.count is not None:
        return 32 * len(barrier.arrived) >= barrier.count
    arrived, ctas = barrier.arrived, shared.ctas
    return all(w in arrived or ctas[t] != key[1] or state.exited(t) for t, w in enumerate(shared.warp_of))


def _end_phase(shared: Members, state: State, key: Object, barrier: Barrier, log: Log) -> tuple[State, tuple[int, ...]]:
    """The next phase begins. Threads of a warp that is not there as a whole go on with the phase they arrived in."""
    early = {(t, a) for t, a in state.pending if shared.object_of(t, a) == key}
    log.add(*(facts.InPhase(a.id, barrier.phase) for _, a in early))
    there = tuple(t for t, at in enumerate(state.waits) if at == key)
    ctas = _with(state.ctas, key, Barrier(barrier.phase + 1))
    return _go_on(replace(state, ctas=ctas, pending=state.pending - early), there), there
