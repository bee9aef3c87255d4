"""Barriers of a CTA (PTX ISA 9.7.14.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from msgspec import Struct

from ptxmm.analysis.claims import BARRIERS
from ptxmm.formats.modules.launch import ARRIVES_AGAIN
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.gathering import Gathering
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, State, Stopped
from ptxmm.whole.execution.values import constant, unknown
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.origins import Derived, Origin, Words, concrete

_LAST_BARRIER = 15
BarrierOp = ops.Barrier | ops.BarrierReduction
_APART = "an aligned barrier that not all threads of a warp execute together (9.7.14.1)"


class Phase(Struct):
    """The threads at a barrier of a CTA: those that wait, at which instruction, and those that only arrived, with what
    precedes their arrivals (``released``): they go on, and what they do then does not. What the barrier is asked for:
    the number of threads (None: all that have not ended) and the ``operation``. ``again``: of how many threads those
    are who have come more than once, for each time before the last."""

    count: int | None
    operation: str
    waiting: dict[int, int]
    arrived: set[int]
    released: list[Release]
    aligned: bool = False
    again: int = 0

    def has(self, thread: int) -> bool:
        """Whether a thread has come."""
        return thread in self.waiting or thread in self.arrived


class CtaBarriers:
    """The barriers of the CTAs of ``state``; ``lenient``: what is assumed (see there)."""

    def __init__(self, state: State, leaders: Leaders, gathering: Gathering, lenient: frozenset[str]) -> None:
        self.state, self._leaders, self._gathering, self._lenient = state, leaders, gathering, lenient
        self._barriers: dict[tuple[int, int], Phase] = {}
        self._passed: dict[tuple[int, int], dict[int, int]] = {}
        self._numbers: dict[tuple[int, int], int] = {}

    def barrier(self, op: BarrierOp, at: int, threads: Numbers) -> None:
        """``barrier.cta``."""
        state = self.state
        names = state.sure(
            state.operand(op.barrier, ops.U32, threads), at, "the number of the barrier", threads
        ).tolist()
        counts: list[int | None] = [None] * len(threads)
        if op.count is not None:
            value = state.operand(op.count, ops.U32, threads)
            counts = state.sure(value, at, "the count of the barrier", threads).tolist()
            if any(state.own_size(cta) % WARP_SIZE for cta in np.unique(state.cta[threads]).tolist()):
                message = "a barrier with a count in a CTA that is not made of whole warps is not followed yet"
                raise Stopped("unsupported", message, at)
        for thread, name, count in zip(threads.tolist(), names, counts, strict=True):
            if name > _LAST_BARRIER:
                raise Stopped("undefined", f"there is no barrier {name} (9.7.14.1)", at, thread, BARRIERS)
            if count is not None and (count == 0 or count % WARP_SIZE):
                message = f"a barrier of {count} threads, no multiple of {WARP_SIZE}"
                raise Stopped("undefined", message, at, thread, BARRIERS)
        waits = not (isinstance(op, ops.Barrier) and op.kind == "arrive")
        if op.aligned and not waits:
            check_together(state, at, threads)
        groups: dict[tuple[tuple[int, int], int | None, int], list[int]] = {}
        for thread, name, count in zip(threads.tolist(), names, counts, strict=True):
            groups.setdefault(((thread // state.size, int(name)), count, state.warp(thread)), []).append(thread)
        if op.aligned:
            self._check_one(at, groups)
        for (key, count, _), lanes in groups.items():
            self._arrive(key, count, op, lanes, at, waits)
            if count is not None:
                self.complete_all(key[0])
        if op.count is None:  # all threads have to come
            for cta in dict.fromkeys(key[0] for key, _, _ in groups):
                self.complete_all(cta)

    def _check_one(self, at: int, groups: Mapping[tuple[tuple[int, int], int | None, int], list[int]]) -> None:
        """All threads of a warp come to one barrier, if it is aligned (9.7.14.1)."""
        come: dict[int, tuple[int, int]] = {}
        for (key, _, warp), lanes in groups.items():
            members = self.state.members(warp)
            waiting = (other for other, phase in self._barriers.items() if not phase.waiting.keys().isdisjoint(members))
            if come.setdefault(warp, key) != key or any(other != key for other in waiting):
                raise Stopped("undefined", _APART, at, lanes[0], BARRIERS)

    def _arrive(
        self, key: tuple[int, int], count: int | None, op: BarrierOp, lanes: list[int], at: int, waits: bool
    ) -> None:
        """Threads of one warp come to a barrier."""
        operation = op.op if isinstance(op, ops.BarrierReduction) else ""
        phase = self._barriers.setdefault(key, Phase(count, operation, {}, set(), []))
        if (phase.count is None) != (count is None):
            message = "barriers with and without a count in one phase are not followed yet"
            raise Stopped("unsupported", message, at, lanes[0])
        if phase.count != count:
            raise Stopped("undefined", "two different thread counts in one phase of a barrier", at, lanes[0], BARRIERS)
        if phase.operation != operation:
            raise Stopped("undefined", "two different operations in one phase of a barrier", at, lanes[0], BARRIERS)
        if any(map(phase.has, lanes)) or self._counted(phase, self.state.warp(lanes[0])):
            self._again(phase, lanes[0], at)
        phase.aligned = phase.aligned or op.aligned
        for lane in lanes:
            self._check_order(key, lane, at)
            if waits:
                phase.waiting[lane] = at
                self.state.mode[lane] = WAITS
            else:
                phase.arrived.add(lane)
        self.state.tell(
            "wait" if waits else "arrive", ("barrier", *key), self._numbers.get(key, 0), at, np.array(lanes)
        )
        if not waits:
            arriving = np.array(lanes)
            arriving = np.concatenate((arriving, self._leaders.among(arriving)))
            phase.released.append(self.state.clocks.release_all(arriving))

    def _again(self, phase: Phase, thread: int, at: int) -> None:
        """A warp that has arrived comes again. Raises ``Stopped`` unless it is assumed that this counts again."""
        warp = self.state.warp(thread)
        members = set(self.state.members(warp))
        able = phase.count is not None and self._counted(phase, warp) and members.isdisjoint(phase.waiting)
        if not able or ARRIVES_AGAIN not in self._lenient:
            message = "two arrivals of one warp in one phase of a barrier"
            raise Stopped("undefined", message, at, thread, BARRIERS, frozenset({ARRIVES_AGAIN} if able else ()))
        phase.again += WARP_SIZE
        phase.arrived -= members

    def _counted(self, phase: Phase, warp: int) -> bool:
        """Whether all of a warp that have not ended are there, and some of it."""
        members = self.state.members(warp)
        there = list(map(phase.has, members))
        return any(there) and all(here or self.state.mode[t] == ENDED for t, here in zip(members, there, strict=True))

    def _check_order(self, key: tuple[int, int], thread: int, at: int) -> None:
        """An arrival belongs to the same phase in every execution: it comes after a wait for the phase before."""
        last = self._passed.get(key)
        if last is None or thread in last:
            return
        others, clocks = np.array(list(last), np.int64), np.array(list(last.values()), np.int64)
        own = np.full(len(last), thread)
        if not self.state.clocks.after(self.state.clocks.views(own), own, others, clocks).any():
            message = "in which phase of the barrier this thread is counted depends on the schedule"
            raise Stopped("undecided", message, at, thread)

    def complete_all(self, cta: int) -> bool:
        """Complete the barriers of a CTA to which as many threads have come as they are for."""
        state, found = self.state, False
        first = cta * state.size
        warps = range(state.warp(first), state.warp(first + state.size - 1) + 1)
        for key, phase in list(self._barriers.items()):
            if key[0] != cta:
                continue
            if phase.count is None:
                alive = np.flatnonzero(state.mode[first : first + state.size] != ENDED) + first
                complete = len(phase.waiting) + len(phase.arrived) >= len(alive) and all(map(phase.has, alive.tolist()))
            else:
                counted = WARP_SIZE * sum(self._counted(phase, warp) for warp in warps)
                complete = counted + phase.again >= phase.count
            if complete:
                self._complete(key)
                found = True
        return found

    def _complete(self, key: tuple[int, int]) -> None:
        phase = self._barriers.pop(key)
        if phase.count is not None:
            self._check_whole_warps(phase)
        waiting = np.array(list(phase.waiting), np.int64)
        if phase.aligned:
            self._check_aligned(phase)
        self._reduce(phase)
        self.state.clocks.synchronize(np.concatenate((waiting, self._leaders.among(waiting))))
        self.state.clocks.acquire(waiting, phase.released)
        self.state.mode[waiting] = RUNS
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        for at in sorted(set(phase.waiting.values())):
            threads = np.array([thread for thread, place in phase.waiting.items() if place == at])
            self.state.tell("pass", ("barrier", *key), number - 1, at, threads)
        self._passed[key] = {thread: int(self.state.clocks.clock[thread]) for thread in phase.waiting}

    def _check_aligned(self, phase: Phase) -> None:
        """All threads of a warp execute an aligned barrier together (9.7.14.1)."""
        warps: dict[int, set[int]] = {}
        for thread, at in phase.waiting.items():
            warps.setdefault(self.state.warp(thread), set()).add(at)
        for warp, places in warps.items():
            members = self.state.members(warp)
            if not all(getattr(self.state.body[at], "aligned", False) for at in places):
                message = "an aligned barrier that other threads of a warp come to by another instruction"
                raise Stopped("unsupported", f"{message} is not followed yet", min(places), members[0])
            if len(places) > 1 or not all(map(phase.has, members)):
                raise Stopped("undefined", _APART, min(places), members[0], BARRIERS)

    def _check_whole_warps(self, phase: Phase) -> None:
        """A barrier with a count counts warps: of one that has not come as a whole some lanes are in it by chance."""
        for thread in (*phase.waiting, *phase.arrived):
            if not self._counted(phase, self.state.warp(thread)):
                message = "in which phase of the barrier this thread is counted depends on the schedule"
                raise Stopped("undecided", message, phase.waiting.get(thread), thread)

    def _reduce(self, phase: Phase) -> None:
        """What ``barrier.red`` gives: the same in all threads of the phase, wherever in the text it stands."""
        places: dict[int, list[int]] = {}
        for thread, at in phase.waiting.items():
            places.setdefault(at, []).append(thread)
        truths, known = 0, not phase.arrived
        parts: list[Origin] = []
        negated: list[bool] = []
        made: list[tuple[ops.BarrierReduction, Numbers]] = []
        self._gathering.meet(places)
        for at, members in places.items():
            op = self.state.body[at]
            if isinstance(op, ops.BarrierReduction):
                threads = np.array(members)
                given = self.state.operand(op.predicate, ops.PREDICATE, threads)
                truths += int(((given.words != 0) ^ op.negated)[given.known].sum())
                origins = self.state.origins.get(op.predicate.name, {})
                unsure = [origins.get(thread) for thread in threads[~given.known].tolist()]
                known = known and None not in unsure
                parts += [origin for origin in unsure if origin is not None]
                negated += [op.negated] * len(unsure)
                made.append((op, threads))
        if not made or not known:
            for op, threads in made:
                self.state.assign(op.dst, threads, unknown(len(threads)))
            return
        result = partial(_voted, phase.operation, truths, len(phase.waiting), negated)
        word = result(concrete(tuple(parts))) or 0
        origin = Derived(result, tuple(parts), word)
        for op, threads in made:
            self.state.assign(op.dst, threads, unknown(len(threads)) if parts else constant(word, 32, len(threads)))
            if parts:
                self.state.origins.setdefault(op.dst.name, {}).update(dict.fromkeys(threads.tolist(), origin))

    def lacks(self, thread: int) -> tuple[str, list[int]] | None:
        """What a thread waits for at a barrier, and the threads that have not come to it."""
        state = self.state
        cta = thread // state.size
        for (where, name), phase in self._barriers.items():
            if where == cta and thread in phase.waiting:
                every = range(cta * state.size, (cta + 1) * state.size)
                wanted = "" if phase.count is None else f" of {phase.count}"
                text = f"barrier {name}, to which {len(phase.waiting) + len(phase.arrived)}{wanted} threads have come"
                return text, [other for other in every if not phase.has(other)]
        return None


def _voted(operation: str, truths: int, count: int, negated: list[bool], words: Words) -> int | None:
    """What ``barrier.red`` gives ``count`` threads, of which ``truths`` say true for sure, and the others what depends
    on ``words``."""
    if None in words:
        return None
    truths += sum((word != 0) != turned for word, turned in zip(words, negated, strict=True))
    return {"popc": truths, "and": int(truths == count), "or": int(truths > 0)}[operation]


def check_together(state: State, at: int, threads: Numbers) -> None:
    """Raise ``Stopped`` unless those of ``threads`` that are of one warp are all of it (9.7.14.1)."""
    here = set(threads.tolist())
    for thread in here:
        if any(t not in here for t in state.members(state.warp(thread))):
            raise Stopped("undefined", _APART, at, thread, BARRIERS)
