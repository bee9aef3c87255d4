"""The states of the simulation of barriers, and the transitions from one to another.

A transition is one step of a thread, or an asynchronous one that happens now. States are values, so that every order of
transitions can be tried. A misused barrier stays as it is from then on: who comes to it goes no further, the rest goes
on, which is as if it had gone on before the misuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.explicit.barriers.mbarrier import EPOCH, Mbarrier, initial, operate, wait_result
from ptxmm.events.explicit.barriers.plan import ARRIVALS, Plan, Slot
from ptxmm.program.shared.convergence import divergent
from ptxmm.program.test import Test

_T = TypeVar("_T")

_Bar = tuple[int, int, int | None, str]
"""A CTA barrier: its phase, the threads that have arrived in it (bits), the thread count they gave, the reduction."""

_WAITING = ("bar.sync", "bar.red", "warp.sync", "warp.exchange")
"""Steps at which a thread arrives and waits."""

GO, MISUSE, BLOCKED, NEVER, EARLY = "go", "misuse", "blocked", "never", "early"
"""What can become of a step now: it happens; it is undefined; it waits for others; it is a wait for an mbarrier with
another result than it would return now; it is for an mbarrier that some thread has yet to initialise."""


class State(Struct, frozen=True):
    """Where each thread is (``position``: its next step), which threads wait at a barrier (bits), which asynchronous
    steps have happened (bits), the CTA barriers, the mbarriers, the phase of each step that has happened (-1: not yet,
    or not told apart), the tokens that are told apart, the steps that were misuse, with the reason, and, where their
    order is told apart, the chained steps at each mbarrier (waits without an arrival between them by number)."""

    position: tuple[int, ...]
    waiting: int
    done: int
    bars: tuple[_Bar, ...]
    mbarriers: tuple[Mbarrier, ...]
    phases: tuple[int, ...]
    tokens: tuple[int, ...]
    failed: tuple[tuple[int, str], ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()


class Simulation:
    """The transitions that a plan allows."""

    def __init__(self, test: Test, plan: Plan) -> None:
        self.plan = plan
        self.test = test
        self.together = any(plan.aligned)
        self.barriers = {b: initial(test, (str(plan.keys[b][1][0]), plan.keys[b][2])) for b in plan.mbarriers}
        self.initialisers: Mapping[int, tuple[Slot, ...]] = {
            b: tuple(s for s in plan.users[b] if s.step.kind == "mb.init") for b in plan.mbarriers
        }

    def start(self) -> State:
        """The state before the first step."""
        plan = self.plan
        position, unset = (0,) * len(plan.lengths), (-1,) * len(plan.slots)
        bars: tuple[_Bar, ...] = ((0, 0, None, ""),) * len(plan.bars)
        orders: tuple[tuple[int, ...], ...] = ((),) * len(plan.mbarriers) if plan.ordered else ()
        settled = self._settle(State(position, 0, 0, bars, tuple(self.barriers.values()), unset, unset, (), orders))
        assert settled is not None
        return settled

    def pending(self, state: State) -> Iterator[Slot]:
        """What may happen next: the next step of each thread that is not held up, and asynchronous steps under way."""
        plan = self.plan
        halted = self.halted(state)
        for t, position in enumerate(state.position):
            if position < plan.lengths[t] and not (state.waiting | halted) >> t & 1:
                yield plan.slot(t, position)
        for slot in plan.floating:
            if slot.index < state.position[slot.thread] and not state.done >> slot.number & 1:
                yield slot

    def halted(self, state: State) -> int:
        """The threads that go no further after a misuse, as bits."""
        result = 0
        for number, _ in state.failed:
            slot = self.plan.slots[number]
            if not slot.step.asynchronous:
                result |= 1 << slot.thread
        return result

    def exited(self, state: State) -> int:
        """The threads that have ended, as bits: no barrier waits for them."""
        result = 0
        for t, position in enumerate(state.position):
            if position == self.plan.lengths[t]:
                result |= 1 << t
        return result & self.plan.ended & ~state.waiting

    def executed(self, state: State, slot: Slot) -> bool:
        """Whether a step has happened."""
        if slot.step.asynchronous:
            return bool(state.done >> slot.number & 1)
        return slot.index < state.position[slot.thread]

    def outlook(self, state: State, slot: Slot) -> tuple[str, str]:
        """What becomes of a pending step now, and for a misuse the reason."""
        kind = slot.step.kind
        if slot.misuse is not None:
            return MISUSE, slot.misuse
        if state.failed and slot.barrier in self._frozen(state):
            return BLOCKED, ""
        if slot.step.aligned is not None and (reason := self._divergent(state, slot)) is not None:
            return MISUSE, reason
        if kind == "cluster.wait":
            return (GO if self._all_arrived(state, slot) else BLOCKED), ""
        if kind.startswith("bar."):
            reason = self._bar_misuse(state, slot)
            return (GO, "") if reason is None else (MISUSE, reason)
        if kind.startswith("mb."):
            return self._mbarrier_outlook(state, slot)
        return GO, ""

    def _mbarrier_outlook(self, state: State, slot: Slot) -> tuple[str, str]:
        mbarrier = state.mbarriers[self.plan.mbarriers[slot.barrier]]
        if not mbarrier.live and slot.step.kind != "mb.init":
            others = self.initialisers[slot.barrier]
            own = slot.step.asynchronous  # then the thread may initialise it before that happens
            if any((own or s.thread != slot.thread) and s.index >= state.position[s.thread] for s in others):
                return EARLY, ""
            return MISUSE, uninitialised(slot)
        if slot.step.kind != "mb.wait":
            result = operate(mbarrier, slot.step)
            return (MISUSE, result) if isinstance(result, str) else (GO, "")
        token = self.token(state, slot)
        if token is None:
            return NEVER, ""
        found = wait_result(mbarrier, slot.step, token)
        if isinstance(found, str):
            return MISUSE, found
        return (GO if found == slot.step.number else NEVER), ""

    def token(self, state: State, slot: Slot) -> int | None:
        """The phase that a wait by state waits for; None if its token has not been returned yet."""
        if slot.token < 0:
            return slot.step.state // EPOCH if isinstance(slot.step.state, int) else 0
        phase = state.phases[slot.token]
        return None if phase < 0 else phase % EPOCH

    def take(self, state: State, slot: Slot) -> tuple[State, int, int] | None:
        """The state after a step that happens now, its phase and the token it returns (or -1).

        None if that would change a barrier that was misused before.
        """
        bars, mbarriers, waiting, phase, token = state.bars, state.mbarriers, state.waiting, slot.phase, -1
        kind = slot.step.kind
        if kind.startswith("bar."):
            at = self.plan.bars[slot.barrier]
            phase, present, *_ = bars[at]
            bars = _put(bars, at, (phase, present | 1 << slot.thread, slot.step.count, slot.step.operation))
        elif kind.startswith("mb."):
            at = self.plan.mbarriers[slot.barrier]
            mbarrier = mbarriers[at]
            phase = 0 if kind == "mb.init" else mbarrier.record
            if kind in ARRIVALS:
                token = mbarrier.token
            if kind != "mb.wait":
                changed = operate(mbarrier, slot.step)
                assert isinstance(changed, Mbarrier)
                mbarriers = _put(mbarriers, at, changed)
        if kind in _WAITING:
            waiting |= 1 << slot.thread
        position, done = state.position, state.done
        if slot.step.asynchronous:
            done |= 1 << slot.number
        else:
            position = _put(position, slot.thread, slot.index + 1)
        phases = _put(state.phases, slot.number, phase) if slot.recorded and slot.told else state.phases
        tokens = _put(state.tokens, slot.number, token) if slot.observed else state.tokens
        orders = state.orders
        if orders and slot.chained:
            at = self.plan.mbarriers[slot.barrier]
            orders = _put(orders, at, self._after(orders[at], slot))
        settled = self._settle(State(position, waiting, done, bars, mbarriers, phases, tokens, state.failed, orders))
        return None if settled is None else (settled, phase, token)

    def _after(self, order: tuple[int, ...], slot: Slot) -> tuple[int, ...]:
        """``order`` at an mbarrier with a chained step at its end."""
        last = len(order)
        if slot.step.kind == "mb.wait":
            while last and self.plan.slots[order[last - 1]].step.kind == "mb.wait":
                last -= 1
        return (*order[:last], *sorted((*order[last:], slot.number)))

    def fail(self, state: State, slot: Slot, reason: str) -> State:
        """The state after a step that is undefined."""
        return replace(state, failed=tuple(sorted((*state.failed, (slot.number, reason)))))

    def _frozen(self, state: State) -> frozenset[int]:
        """The barriers that a misuse has stopped: none, where it depends on no other thread."""
        slots = (self.plan.slots[number] for number, _ in state.failed)
        return frozenset(s.barrier for s in slots if s.misuse is None)

    # Instructions that the threads of a warp, or a warpgroup, execute together.

    def _divergent(self, state: State, slot: Slot, later: bool = False) -> str | None:
        """Why a step is undefined that threads do together, by what the others have come to. ``later``: it has
        happened."""
        plan = self.plan
        for together, steps in ((plan.mates, plan.aligned), (plan.warpgroup_mates, plan.wide)):
            if slot in steps[slot.thread]:
                mates = [t for t in range(len(steps)) if t != slot.thread and together[slot.thread] >> t & 1]
                other = self._elsewhere(state, slot, steps, mates, later)
                if other is not None:
                    return divergent(self.test, slot.thread, slot.step.id.instruction, other)
        return None

    def _elsewhere(
        self, state: State, slot: Slot, steps: Sequence[Sequence[Slot]], mates: Sequence[int], later: bool
    ) -> int | None:
        """One of ``mates`` that has come to another one of ``steps`` in place of ``slot``, or has exited."""
        turn = steps[slot.thread].index(slot)
        for t in mates:
            theirs = steps[t]
            if turn < len(theirs):
                other = theirs[turn]
                there = state.position[t] > other.index or (
                    state.position[t] == other.index and not state.waiting >> t & 1
                )
                wrong = there and not later and other.step.aligned != slot.step.aligned
            else:
                wrong = bool(self.exited(state) >> t & 1)
            if wrong:
                return t
        return None

    def _left_alone(self, state: State) -> list[tuple[int, str]]:
        """The steps that threads do together, and that some have done while another has exited; with the reason."""
        known = {number for number, _ in state.failed}
        found: list[tuple[int, str]] = []
        if not self.exited(state):
            return found
        for mine in self.plan.aligned:
            for slot in mine:
                if slot.index < state.position[slot.thread] and slot.number not in known:
                    reason = self._divergent(state, slot, later=True)
                    if reason is not None:
                        found.append((slot.number, reason))
        return found

    # CTA, warp and cluster barriers.

    def _all_arrived(self, state: State, slot: Slot) -> bool:
        """Whether all threads of the cluster have arrived in the phase that ``slot`` waits for, or have ended."""
        plan = self.plan
        missing = plan.clusters[slot.thread] & ~self.exited(state)
        return all(
            plan.arrived[t][position] > slot.phase for t, position in enumerate(state.position) if missing >> t & 1
        )

    def _bar_misuse(self, state: State, slot: Slot) -> str | None:
        _, present, count, operation = state.bars[self.plan.bars[slot.barrier]]
        number = slot.step.number
        if not present:
            return None
        if present >> slot.thread & 1 or self._arrived(self.plan.mates[slot.thread], present, self.exited(state)):
            return f"two arrivals of one warp in one phase of barrier {number}"
        if count != slot.step.count:
            return f"two different thread counts in one phase of barrier {number}"
        if operation != slot.step.operation:
            names = sorted((operation or "no reduction", slot.step.operation or "no reduction"))
            return f"{names[1]} and {names[0]} in one phase of barrier {number}"
        return None

    @staticmethod
    def _arrived(warp: int, present: int, exited: int) -> bool:
        """Whether all of a warp that has not exited has arrived, and some of it."""
        return bool(warp & present) and not warp & ~(present | exited)

    def _complete(self, bar: _Bar, exited: int) -> bool:
        """Whether the phase of a CTA barrier at which some thread has arrived is complete (9.7.14.1)."""
        _, present, count, _ = bar
        first = (present & -present).bit_length() - 1
        if count is None:
            return not self.plan.ctas[first] & ~(present | exited)
        warps = {self.plan.mates[t] for t in range(len(self.plan.mates)) if present >> t & 1}
        return 32 * sum(self._arrived(w, present, exited) for w in warps) >= count

    def _settle(self, state: State) -> State | None:
        """Let everyone go on as far as no step is needed: past barriers that are complete and asynchronous steps."""
        plan = self.plan
        frozen = self._frozen(state)
        halted = self.halted(state)
        position, waiting, bars, failed = list(state.position), state.waiting, state.bars, state.failed
        while True:
            exited = self._pass(position, waiting | halted) & plan.ended & ~waiting
            if self.together:
                now = replace(state, position=tuple(position), waiting=waiting, failed=failed)
                alone = self._left_alone(now)
                if alone:
                    failed = tuple(sorted((*failed, *alone)))
                    halted = self.halted(replace(now, failed=failed))
                    frozen |= {plan.slots[number].barrier for number, _ in alone}
            released = 0
            ended = {plan.slots[n].barrier for n, _ in failed if plan.slots[n].index < position[plan.slots[n].thread]}
            for barrier, at in plan.bars.items():
                if bars[at][1] and barrier not in ended and self._complete(bars[at], exited):
                    if barrier in frozen:
                        return None
                    released |= self._waiting_at(position, waiting & bars[at][1], barrier)
                    bars = _put(bars, at, (bars[at][0] + 1, 0, None, ""))
                    break
            else:
                for barrier, lanes in plan.lanes.items():
                    there = self._waiting_at(position, waiting & lanes, barrier)
                    if not there or lanes & ~(there | exited) or barrier in frozen:
                        continue
                    lost = self._lost(position, there)
                    failed = tuple(sorted((*failed, *lost)))
                    if lost:
                        frozen |= {barrier}
                        continue
                    released = there
                    break
                else:
                    break
            waiting &= ~released
        return replace(state, position=tuple(position), waiting=waiting, bars=bars, failed=failed)

    def _pass(self, position: list[int], held: int) -> int:
        """Let all threads but those ``held`` pass their asynchronous steps; who has come to the end of the steps."""
        finished = 0
        for t, length in enumerate(self.plan.lengths):
            if not held >> t & 1:
                while position[t] < length and self.plan.slot(t, position[t]).step.asynchronous:
                    position[t] += 1
            if position[t] == length:
                finished |= 1 << t
        return finished

    def _lost(self, position: Sequence[int], there: int) -> list[tuple[int, str]]:
        """The steps of those ``there``, who meet, that shuffle from a lane that takes no part, and the reason."""
        slots = [self.plan.slot(t, at - 1) for t, at in enumerate(position) if there >> t & 1]
        return [
            (slot.number, f"shfl from lane {slot.step.source[0]}, which takes no part")
            for slot in slots
            if slot.step.source is not None and (slot.step.source[1] < 0 or not there >> slot.step.source[1] & 1)
        ]

    def _waiting_at(self, position: Sequence[int], threads: int, barrier: int) -> int:
        """Those of ``threads``, which wait, that wait at ``barrier``."""
        result = 0
        for t, at in enumerate(position):
            if threads >> t & 1:
                slot = self.plan.slot(t, at - 1)
                if slot.barrier == barrier and slot.step.kind in _WAITING:
                    result |= 1 << t
        return result


def uninitialised(slot: Slot) -> str:
    """Why an operation on an mbarrier that nobody initialises is undefined (9.7.14.15)."""
    assert slot.step.place is not None
    key, offset = slot.step.place
    return f"an operation on mbarrier {key}{f'+{offset}' if offset else ''}, which is not initialised"


def _put(values: tuple[_T, ...], index: int, value: _T) -> tuple[_T, ...]:
    return (*values[:index], value, *values[index + 1 :])
