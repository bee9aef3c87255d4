"""Which transitions of a state must be tried, so that all ways of ending are found (partial-order reduction).

The transitions chosen are a persistent set: whatever the others do first commutes with them. Only wholly independent
orders are left out, so that each end is reached with the same phases and tokens, and each misuse with the longest runs
of the other threads before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.events.explicit.barriers.mbarrier import most_completions, one_phase, wait_result
from ptxmm.events.explicit.barriers.plan import ARRIVALS, Slot
from ptxmm.events.explicit.barriers.transitions import GO, Simulation, State

Transition = tuple[Slot, str, str]
"""A pending step, what becomes of it (``GO`` or ``MISUSE``) and the reason of a misuse."""


def necessary(simulation: Simulation, state: State, transitions: Sequence[Transition]) -> Sequence[Transition]:
    """Those of ``transitions``, the transitions that ``state`` has, that must be tried."""
    if len(transitions) == 1:
        return transitions
    plan = simulation.plan
    for transition in transitions:
        slot, kind, _ = transition
        if slot.misuse is not None:
            return (transition,)  # whatever others do before or after it is the same
        if slot.group & plan.free or (
            kind == GO and slot.group & plan.mbarrier_only and _stable(simulation, state, slot)
        ):
            return (transition,)
    best = transitions
    tried = 0
    for transition in transitions:
        if transition[0].group & tried:
            continue
        closed = _closure(simulation, state, transition[0].group)
        tried |= transition[0].group
        chosen = [t for t in transitions if t[0].group & closed]
        if len(chosen) < len(best):
            best = chosen
    return best


def _closure(simulation: Simulation, state: State, group: int) -> int:
    """``group`` and the classes where threads are held up, or are now, that come to one of them later."""
    plan = simulation.plan
    halted = simulation.halted(state)
    ahead: list[tuple[int, int]] = []
    for t, position in enumerate(state.position):
        if halted >> t & 1 or position == plan.lengths[t]:
            continue
        at = plan.slot(t, position - 1) if state.waiting >> t & 1 else plan.slot(t, position)
        ahead.append((plan.later[t][position], at.group))
    changed = True
    while changed:
        changed = False
        for later, here in ahead:
            if later & group and not here & group:
                group |= here
                changed = True
    return group


def _remaining(simulation: Simulation, state: State, barrier: int) -> list[Slot]:
    """The steps at ``barrier`` that have not happened and may."""
    found = []
    halted = simulation.halted(state)
    for slot in simulation.plan.users[barrier]:
        passed = slot.index < state.position[slot.thread]
        if not simulation.executed(state, slot) and (passed or not halted >> slot.thread & 1):
            found.append(slot)
    return found


def _stable(simulation: Simulation, state: State, slot: Slot) -> bool:
    """Whether a step at an mbarrier that can happen now may as well do so: no other order lets anything else happen."""
    plan = simulation.plan
    steps = _remaining(simulation, state, slot.barrier)
    if plan.ordered and slot.chained:
        # Whatever another thread does there, now or later, makes another order, and so do asynchronous steps.
        return not any(s.thread != slot.thread or _loose(s, slot) for s in steps if s is not slot)
    if slot.step.kind == "mb.wait":
        return _stable_wait(simulation, state, slot, steps)
    mbarrier = state.mbarriers[plan.mbarriers[slot.barrier]]
    if not mbarrier.live:
        return len(steps) == 1
    waits, others = ([s for s in steps if (s.step.kind == "mb.wait") is wanted] for wanted in (True, False))
    arrivals = [s.step.number for s in others if s.step.kind in ARRIVALS]
    if any(s.observed for s in others) and len(arrivals) > 1:
        return False
    if not one_phase(mbarrier, [s.step for s in others]):
        return False
    # The last of them may complete the phase: then each wait must be one for this phase to be complete.
    return sum(arrivals) < mbarrier.pending or all(_awaits(simulation, state, s) for s in waits)


def _loose(one: Slot, other: Slot) -> bool:
    return one.step.asynchronous or other.step.asynchronous


def _stable_wait(simulation: Simulation, state: State, slot: Slot, steps: Sequence[Slot]) -> bool:
    """Whether a wait that returns its result now would not do so in another phase, nor become undefined."""
    mbarrier = state.mbarriers[simulation.plan.mbarriers[slot.barrier]]
    # What the thread itself does comes later, but for its asynchronous steps.
    before = [s for s in steps if s.thread != slot.thread or s.step.asynchronous]
    most = most_completions(mbarrier, (s.step for s in before))
    late = slot.step.parity is None and slot.step.number == 1  # the phase waited for is the one before
    return most == 0 if late else most <= 1


def _awaits(simulation: Simulation, state: State, slot: Slot) -> bool:
    """Whether ``slot`` can happen in the phase after the present one of its mbarrier, and not in this one."""
    mbarrier = state.mbarriers[simulation.plan.mbarriers[slot.barrier]]
    if slot.step.number != 1:
        return False
    token = simulation.token(state, slot)
    if token is None:
        arrival = simulation.plan.slots[slot.token]
        if arrival.barrier != slot.barrier:
            return False
        token = mbarrier.phase
    if slot.step.parity is None and token != mbarrier.phase:
        return False
    return wait_result(mbarrier, slot.step, token) == 0
