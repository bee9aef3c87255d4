"""Every way in which the barriers of typed PTX turn out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxmm.events.barriers.choice import Move, necessary
from ptxmm.events.barriers.meeting import Meeting
from ptxmm.events.barriers.moves import BLOCKED, EARLY, GO, MISUSE, NEVER, Simulation, State, uninitialised
from ptxmm.events.barriers.plan import ARRIVALS, Slot
from ptxmm.program.test import EventId


def explore(
    simulation: Simulation,
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None,
    tokens: Mapping[EventId, int] | None,
) -> Iterator[Meeting]:
    """Every meeting, once. ``check``, ``fixed`` and ``tokens`` are as for ``meetings``."""
    start = simulation.start()
    seen = {start}
    # With each state go the phases and tokens of one way to it: those that states do not tell apart are free.
    stack = [(start, start.phases, start.tokens)]
    results: set[tuple[object, ...]] = set()
    while stack:
        check()
        state, phases, returned = stack.pop()
        moves = _moves(simulation, state, fixed)
        if not moves:
            meeting = _end(simulation, state, phases, returned, fixed is not None)
            if meeting is not None:
                key = (
                    meeting.reached,
                    state.phases,
                    state.tokens,
                    meeting.waiting,
                    frozenset(meeting.completed.items()),
                    meeting.misuse,
                )
                if key not in results:
                    results.add(key)
                    yield meeting
            continue
        for slot, kind, reason in necessary(simulation, state, moves):
            following, phase, token = simulation.fail(state, slot, reason), -1, -1
            if kind == GO:
                moved = simulation.move(state, slot)
                if moved is None or not _wanted(slot, moved[1], moved[2], fixed, tokens):
                    continue
                following, phase, token = moved
            if following not in seen:
                seen.add(following)
                stack.append((following, _with(phases, slot.number, phase), _with(returned, slot.number, token)))


def _moves(simulation: Simulation, state: State, fixed: Mapping[EventId, int | None] | None) -> list[Move]:
    """The steps that may happen, or be undefined, in ``state``. No misuse has fixed phases."""
    moves = []
    for slot in simulation.pending(state):
        kind, reason = simulation.outlook(state, slot)
        if kind == GO:
            if not state.failed or simulation.move(state, slot) is not None:
                moves.append((slot, kind, reason))
        elif kind == MISUSE:
            moves.append((slot, kind, reason))
    if fixed is not None and any(kind == MISUSE for _, kind, _ in moves):
        moves = [m for m in moves if m[1] == GO]
    return moves


def _wanted(
    slot: Slot,
    phase: int,
    token: int,
    fixed: Mapping[EventId, int | None] | None,
    tokens: Mapping[EventId, int] | None,
) -> bool:
    """Whether a step of this phase that returns this token agrees with the phases and tokens that are given."""
    if fixed is not None and slot.recorded and fixed.get(slot.step.id) != phase:
        return False
    return tokens is None or token < 0 or tokens.get(slot.step.id, token) == token


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return values if value < 0 else (*values[:index], value, *values[index + 1 :])


def _end(
    simulation: Simulation, state: State, phases: tuple[int, ...], returned: tuple[int, ...], fixed: bool
) -> Meeting | None:
    """The meeting of a state without moves; None if it is no execution."""
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
            return None  # a misuse is no move where phases are fixed
    if not failed and early:
        failed = tuple(early)  # nobody gets as far as the initialisation
    if fixed and failed:
        return None
    for number, _ in failed:
        slot = plan.slots[number]
        if not slot.step.asynchronous:
            reached[slot.thread] += 1
            waiting |= 1 << slot.thread
    executed = [s for s in plan.slots if s.recorded and simulation.executed(state, s)]
    return Meeting(
        tuple(reached),
        {s.step.id: phases[s.number] for s in executed},
        frozenset(t for t in range(len(reached)) if waiting >> t & 1),
        min(failed)[1] if failed else None,
        {s.step.id: returned[s.number] for s in executed if s.step.kind in ARRIVALS},
        {(str(plan.keys[b][1][0]), plan.keys[b][2]): state.mbarriers[at].phase for b, at in plan.mbarriers.items()},
    )
