"""What the lanes of a warp execute together: barriers of a mask, and exchanges (PTX ISA
9.7.10.6, 9.7.14.2, 9.7.14.9 to .14)."""

from __future__ import annotations

import numpy as np

from ptxmm.analysis.claims import BARRIERS
from ptxmm.formats.modules.launch import ACTIVE_TOGETHER
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.barriers.exchanges import exchanged
from ptxmm.whole.execution.gathering import Gathering
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, State, Stopped
from ptxmm.whole.execution.values import Value, unknown
from ptxmm.whole.order.origins import Origin


class Lanes:
    """The lanes of the warps of ``state`` that wait for others; ``lenient``: what is assumed (see there)."""

    def __init__(self, state: State, leaders: Leaders, gathering: Gathering, lenient: frozenset[str]) -> None:
        self.state, self._leaders, self._gathering = state, leaders, gathering
        self._parked: dict[int, dict[int, tuple[int, int]]] = {}
        """Of each warp the lanes that wait, each with where, and for which mask."""
        self._together = ACTIVE_TOGETHER in lenient
        self._active: dict[tuple[int, int], dict[int, int]] = {}
        """Of each ``activemask`` and warp how often each lane has executed it."""
        self._timed = any(isinstance(op, ops.MbarrierInit) for op in state.body)

    def execute(self, op: ops.WarpBarrier | ops.WarpExchange, at: int, threads: Numbers) -> None:
        """What the lanes of a mask execute together: each waits for the others."""
        if isinstance(op, ops.WarpExchange) and op.op == "activemask":
            self.state.assign(op.dst, threads, self._actives(at, threads))
            return
        member = self.state.operand(op.mask if isinstance(op, ops.WarpBarrier) else op.operands[-1], ops.U32, threads)
        self.state.did(at, threads, member.words)
        self.state.mode[threads] = WAITS
        masks = self.state.sure(member, at, "the mask")
        lanes = (threads % self.state.size % WARP_SIZE).astype(np.uint64)
        if (apart := np.flatnonzero(masks >> lanes & np.uint64(1) == 0)).size:
            message = "the mask does not have the lane itself"
            raise Stopped("undefined", message, at, int(threads[apart[0]]), BARRIERS)
        warps = np.array([*map(self.state.warp, threads.tolist())])
        bounds = np.flatnonzero(np.diff(warps)) + 1
        for here, wanted in zip(np.split(threads, bounds), np.split(masks, bounds), strict=True):
            warp, mask = self.state.warp(int(here[0])), int(wanted[0])
            if not self._parked.get(warp) and mask.bit_count() == len(here) and (wanted == wanted[0]).all():
                self._pass(op, at, here, warp)
                continue
            new = zip(here.tolist(), wanted.tolist(), strict=True)
            self._parked.setdefault(warp, {}).update((thread, (at, mask)) for thread, mask in new)
            self._meet(warp)

    def _actives(self, at: int, threads: Numbers) -> Value:
        """The masks of those that execute an ``activemask`` together. Where nothing is assumed these may be any of the
        lanes that come to it (9.7.14.11)."""
        if not self._together:
            return unknown(len(threads))
        warps = np.array([*map(self.state.warp, threads.tolist())])
        lanes, words = threads % self.state.size % WARP_SIZE, np.zeros(len(threads), np.uint64)
        for warp in np.unique(warps).tolist():
            here = warps == warp
            words[here] = sum(1 << lane for lane in lanes[here].tolist())
            times = self._active.setdefault((at, warp), {})
            for thread in threads[here].tolist():
                times[thread] = times.get(thread, 0) + 1
            now = times[int(threads[here][0])]
            if [thread for thread, count in times.items() if count >= now] != sorted(threads[here].tolist()):
                message = "lanes of a warp come to this one after the other, so that they are not active together"
                raise Stopped("undecided", message, at, int(threads[here][0]))
        return Value(words, np.ones(len(threads), np.bool_))

    def _meet(self, warp: int) -> None:
        """Let those lanes of a warp go on whose mask is complete."""
        parked, members = self._parked.get(warp, {}), self.state.members(warp)
        groups: dict[tuple[int, int], list[int]] = {}
        for thread, (at, mask) in parked.items():
            # Barriers of one mask may stand at several places of the text (9.7.14.2); exchanges are one instruction.
            place = -1 if isinstance(self.state.body[at], ops.WarpBarrier) else at
            groups.setdefault((place, mask), []).append(thread)
        for (_, mask), threads in groups.items():
            wanted = [t for t in members if mask >> t % self.state.size % WARP_SIZE & 1]
            ended = [t for t in wanted if self.state.mode[t] == ENDED]
            if len(threads) + len(ended) < len(wanted):
                continue
            together = np.array(sorted(threads))
            at = int(self.state.pc[together[0]]) - 1
            op = self.state.body[at]
            if ended and isinstance(op, ops.WarpExchange) and op.op == "elect":
                message = "an election of a mask in which lanes have ended is not followed yet"
                raise Stopped("unsupported", message, at, int(together[0]))
            for thread in threads:
                del parked[thread]
            self._pass(op, at, together, warp)

    def _pass(self, op: ops.Op, at: int, threads: Numbers, warp: int) -> None:
        """All lanes of a mask go on together."""
        self.state.mode[threads] = RUNS
        if isinstance(op, ops.WarpBarrier):
            self.state.clocks.synchronize(np.concatenate((threads, self._leaders.among(threads))))
            self.state.tell("pass", ("warp", warp), 0, at, threads)
        else:
            assert isinstance(op, ops.WarpExchange)
            if self._timed:  # they wait for each other, which orders no memory (9.7.14.9 to .14)
                self.state.clocks.acquire(threads, [self.state.clocks.issued(threads)])
            self._gathering.meet({at: threads.tolist()})
            self._exchange(op, threads)

    def _exchange(self, op: ops.WarpExchange, threads: Numbers) -> None:
        given = [self.state.operand(o, t, threads) for o, t in zip(op.operands[:-1], op.read[:-1], strict=True)]
        lanes = [thread % self.state.size % WARP_SIZE for thread in threads.tolist()]
        first, second = exchanged(op, lanes, given)
        if op.op == "elect" and len(lanes) > 1:
            self._elect(op, threads)
            if self.state.leads:
                return
        origins = self._shuffled(op, threads, lanes, given) if op.op.startswith("shfl") else {}
        self.state.assign(op.dst, threads, first)
        self.state.assign(op.predicate, threads, second)
        if origins and op.dst is not None:
            self.state.origins.setdefault(op.dst.name, {}).update(origins)

    def _shuffled(
        self, op: ops.WarpExchange, threads: Numbers, lanes: list[int], given: list[Value]
    ) -> dict[int, Origin]:
        """What lanes get that depends on what reads found."""
        register = op.operands[0]
        origins = self.state.origins.get(register.name, {}) if isinstance(register, ops.Reg) else {}
        if not origins:
            return {}
        numbers = Value(np.arange(len(lanes), dtype=np.uint64), np.ones(len(lanes), np.bool_))
        where, _ = exchanged(op, lanes, [numbers, *given[1:]])
        taken = zip(threads.tolist(), where.words.tolist(), where.known.tolist(), strict=True)
        found = {thread: origins.get(int(threads[number])) for thread, number, known in taken if known}
        return {thread: origin for thread, origin in found.items() if origin is not None}

    def _elect(self, op: ops.WarpExchange, threads: Numbers) -> None:
        """Lanes elect one of them; nobody knows which, unless this is one execution (9.7.14.14)."""
        state = self.state
        result = self._leaders.elected(int(state.pc[threads[0]]) - 1, threads)
        if state.leads:
            for register in (op.dst, op.predicate):
                state.assign(register, threads, unknown(len(threads)))
            if op.predicate is not None:
                state.origins.setdefault(op.predicate.name, {}).update(dict.fromkeys(threads.tolist(), result))

    def ended(self) -> None:
        """Let those go on that wait for threads which have ended."""
        for warp in list(self._parked):
            self._meet(warp)

    def lacks(self, thread: int) -> tuple[str, list[int]] | None:
        """What a lane waits for, and the threads that have not come to it."""
        state = self.state
        warp = state.warp(thread)
        if thread not in self._parked.get(warp, {}):
            return None
        _, mask = self._parked[warp][thread]
        wanted = [t for t in state.members(warp) if mask >> t % state.size % WARP_SIZE & 1]
        return "other lanes of its mask", [t for t in wanted if t not in self._parked[warp]]
