"""Every way in which the barriers of typed PTX turn out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from ptxmm.events.explicit.barriers.choice import Transition, necessary
from ptxmm.events.explicit.barriers.meeting import Meeting
from ptxmm.events.explicit.barriers.plan import ARRIVALS, CHANGES, Slot
from ptxmm.events.explicit.barriers.transitions import (
    BLOCKED,
    EARLY,
    GO,
    MISUSE,
    NEVER,
    Simulation,
    State,
    uninitialised,
)
from ptxmm.program.identity import EventId


class Wanted(Struct, frozen=True):
    """What meetings must agree with: phases, tokens and the order at mbarriers, each as for ``meetings``."""

    fixed: Mapping[EventId, int | None] | None = None
    tokens: Mapping[EventId, int] | None = None
    order: Sequence[EventId] | None = None


class _Way(Struct, frozen=True):
    """One way to a state: the phases and tokens by step, those too that states do not tell apart, and the operations on
    mbarriers as they ran."""

    phases: tuple[int, ...]
    tokens: tuple[int, ...]
    ran: tuple[EventId, ...] = ()


def explore(simulation: Simulation, check: Callable[[], None], wanted: Wanted) -> Iterator[Meeting]:
    """Every meeting that agrees with ``wanted``, once. ``check`` is called often."""
    start = simulation.start()
    seen = {start}
    fixed = wanted.fixed
    ranks = None if wanted.order is None else _ranks(simulation, wanted.order)
    stack = [(start, _Way(start.phases, start.tokens))]
    results: set[tuple[object, ...]] = set()
    while stack:
        check()
        state, way = stack.pop()
        transitions = _transitions(simulation, state, fixed)
        if not transitions:
            meeting = _end(simulation, state, way, fixed is not None)
            if meeting is not None:
                key = (
                    meeting.reached,
                    state.phases,
                    state.tokens,
                    state.orders,
                    meeting.waiting,
                    frozenset(meeting.completed.items()),
                    meeting.misuse,
                )
                if key not in results:
                    results.add(key)
                    yield meeting
            continue
        for slot, kind, reason in necessary(simulation, state, transitions):
            following, then = simulation.fail(state, slot, reason), way
            if kind == GO:
                moved = simulation.take(state, slot)
                if moved is None or not _agrees(slot, moved[1], moved[2], wanted):
                    continue
                if ranks is not None and slot.chained and ranks.get(slot.number) != _changes(simulation, state, slot):
                    continue
                following = moved[0]
                ran = slot.recorded and slot.step.place is not None and simulation.plan.ordered
                then = _Way(
                    _with(way.phases, slot.number, moved[1]),
                    _with(way.tokens, slot.number, moved[2]),
                    (*way.ran, slot.step.id) if ran else way.ran,
                )
            if following not in seen:
                seen.add(following)
                stack.append((following, then))


def _ranks(simulation: Simulation, order: Sequence[EventId]) -> dict[int, int]:
    """For each chained step in ``order`` how many arrivals at its mbarrier come before it there."""
    slots = {s.step.id: s for s in simulation.plan.slots if s.chained}
    counts: dict[int, int] = {}
    found: dict[int, int] = {}
    for event in order:
        slot = slots.get(event)
        if slot is not None:
            found[slot.number] = counts.get(slot.barrier, 0)
            counts[slot.barrier] = found[slot.number] + (slot.step.kind in CHANGES)
    return found


def _changes(simulation: Simulation, state: State, slot: Slot) -> int:
    """How many arrivals at the mbarrier of ``slot`` have happened."""
    order = state.orders[simulation.plan.mbarriers[slot.barrier]]
    return sum(simulation.plan.slots[number].step.kind in CHANGES for number in order)


def _transitions(simulation: Simulation, state: State, fixed: Mapping[EventId, int | None] | None) -> list[Transition]:
    """The steps that may happen, or be undefined, in ``state``. No misuse has fixed phases."""
    transitions = []
    for slot in simulation.pending(state):
        kind, reason = simulation.outlook(state, slot)
        if kind == GO:
            if not state.failed or simulation.take(state, slot) is not None:
                transitions.append((slot, kind, reason))
        elif kind == MISUSE:
            transitions.append((slot, kind, reason))
    if fixed is not None and any(kind == MISUSE for _, kind, _ in transitions):
        transitions = [m for m in transitions if m[1] == GO]
    return transitions


def _agrees(slot: Slot, phase: int, token: int, wanted: Wanted) -> bool:
    """Whether a step of this phase that returns this token agrees with the phases and tokens that are given."""
    if wanted.fixed is not None and slot.recorded and wanted.fixed.get(slot.step.id) != phase:
        return False
    return wanted.tokens is None or token < 0 or wanted.tokens.get(slot.step.id, token) == token


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return values if value < 0 else (*values[:index], value, *values[index + 1 :])


def _end(simulation: Simulation, state: State, way: _Way, fixed: bool) -> Meeting | None:
    """The meeting of a state without transitions; None if it is no execution."""
    plan = simulation.plan
    reached, waiting, failed = list(state.position), state.waiting, state.failed
    early: list[tuple[int, str]] = []
    for slot in simulation.pending(state):
        kind, _ = simulation.outlook(state, slot)
        if kind == EARLY:
            early.append((slot.number, uninitialised(slot)))
        elif kind == BLOCKED and slot.step.kind == "cluster.wait":
            reached[slot.thread] += 1
            waiting |= 1 << slot.thread
        elif (kind == NEVER and not failed) or kind == MISUSE:
            return None  # a misuse is no transition where phases are fixed
    if not failed and early:
        failed = tuple(early)  # nobody gets as far as the initialisation
    if fixed and failed:
        return None
    for number, _ in failed:
        slot = plan.slots[number]
        if not slot.step.asynchronous and not simulation.executed(state, slot):
            reached[slot.thread] = slot.index + 1
            waiting |= 1 << slot.thread
    return _meeting(simulation, state, way, reached, waiting, min(failed)[1] if failed else None)


def _meeting(
    simulation: Simulation, state: State, way: _Way, reached: Sequence[int], waiting: int, misuse: str | None
) -> Meeting:
    plan = simulation.plan
    executed = [s for s in plan.slots if s.recorded and simulation.executed(state, s)]
    return Meeting(
        tuple(reached),
        {s.step.id: way.phases[s.number] for s in executed},
        frozenset(t for t in range(len(reached)) if waiting >> t & 1),
        misuse,
        {s.step.id: way.tokens[s.number] for s in executed if s.step.kind in ARRIVALS},
        {(str(plan.keys[b][1][0]), plan.keys[b][2]): state.mbarriers[at].phase for b, at in plan.mbarriers.items()},
        way.ran,
    )
