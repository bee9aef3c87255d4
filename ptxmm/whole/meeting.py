"""Where threads wait for each other: barriers of a CTA, and what the lanes of a warp execute together (PTX ISA
9.7.14.1, 9.7.14.2, 9.7.14.9 to .14, 9.7.10.6)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from ptxmm.analysis.claims import BARRIERS
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.clocks import NOTHING, Release
from ptxmm.whole.exchanges import exchanged
from ptxmm.whole.leaders import Leaders
from ptxmm.whole.memory import Numbers
from ptxmm.whole.state import ENDED, RUNS, WAITS, State, Stopped
from ptxmm.whole.strong import CLUSTER, Head, Strong
from ptxmm.whole.values import constant, unknown

_LAST_BARRIER = 15
BarrierOp = ops.Barrier | ops.BarrierReduction
_BARRIERS = {ops.Barrier, ops.BarrierReduction, ops.ClusterBarrier, ops.WarpBarrier}
_APART = "an aligned barrier that not all threads of a warp execute together (9.7.14.1)"


class Phase(Struct):
    """The threads at a barrier of a CTA: those that wait, at which instruction, and those that only arrived, with what
    precedes their arrivals (``released``): they go on, and what they do then does not. What the barrier is asked for:
    the number of threads (None: all that have not ended) and the ``operation``."""

    count: int | None
    operation: str
    waiting: dict[int, int]
    arrived: set[int]
    released: list[Release]
    aligned: bool = False

    def has(self, thread: int) -> bool:
        """Whether a thread has come."""
        return thread in self.waiting or thread in self.arrived


class ClusterPhase(Struct):
    """A phase of the barrier of a cluster: what each thread that has arrived releases; for each CTA the view of who has
    waited for the phase, once it is complete."""

    arrived: dict[int, tuple[Head, ...]]
    complete: bool = False
    views: dict[int, int] = {}


class Meeting:
    """Who waits for whom, of the threads of ``state``, and the leaders of its warps."""

    def __init__(self, state: State, leaders: Leaders) -> None:
        self.state, self._leaders = state, leaders
        self._barriers: dict[tuple[int, int], Phase] = {}
        self._passed: dict[tuple[int, int], dict[int, int]] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._parked: dict[int, dict[int, int]] = {}
        self._phases: dict[int, list[ClusterPhase]] = {}
        self._arrivals: dict[int, int] = {}
        self._waiting: dict[int, int] = {}

    def barrier(self, op: BarrierOp, at: int, threads: Numbers) -> None:
        """``barrier.cta``."""
        state = self.state
        names = state.sure(state.operand(op.barrier, ops.U32, threads), at, "the number of the barrier").tolist()
        counts: list[int | None] = [None] * len(threads)
        if op.count is not None:
            counts = state.sure(state.operand(op.count, ops.U32, threads), at, "the count of the barrier").tolist()
            if self.state.size % WARP_SIZE:
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
            self._check_together(at, threads)
        groups: dict[tuple[tuple[int, int], int | None, int], list[int]] = {}
        for thread, name, count in zip(threads.tolist(), names, counts, strict=True):
            groups.setdefault(((thread // state.size, int(name)), count, state.warp(thread)), []).append(thread)
        for (key, count, _), lanes in groups.items():
            self._arrive(key, count, op, lanes, at, waits)
            if count is not None:
                self._complete_all(key[0])
        if op.count is None:  # all threads have to come
            for cta in dict.fromkeys(key[0] for key, _, _ in groups):
                self._complete_all(cta)

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
            raise Stopped("undefined", "two arrivals of one warp in one phase of a barrier", at, lanes[0], BARRIERS)
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

    def _complete_all(self, cta: int) -> bool:
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
                complete = WARP_SIZE * sum(self._counted(phase, warp) for warp in warps) >= phase.count
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

    def _check_together(self, at: int, threads: Numbers) -> None:
        """Those of ``threads`` that are of one warp are all of it."""
        here = set(threads.tolist())
        for thread in here:
            if any(t not in here for t in self.state.members(self.state.warp(thread))):
                raise Stopped("undefined", _APART, at, thread, BARRIERS)

    def _reduce(self, phase: Phase) -> None:
        """What ``barrier.red`` gives: the same in all threads of the phase, wherever in the text it stands."""
        places: dict[int, list[int]] = {}
        for thread, at in phase.waiting.items():
            places.setdefault(at, []).append(thread)
        truths, known = 0, not phase.arrived
        made: list[tuple[ops.BarrierReduction, Numbers]] = []
        for at, members in places.items():
            op = self.state.body[at]
            if isinstance(op, ops.BarrierReduction):
                threads = np.array(members)
                given = self.state.operand(op.predicate, ops.PREDICATE, threads)
                truths += int(((given.words != 0) ^ op.negated).sum())
                known = known and bool(given.known.all())
                made.append((op, threads))
        for op, threads in made:
            count = len(phase.waiting)
            result = {"popc": truths, "and": int(truths == count), "or": int(truths > 0)}[op.op]
            value = constant(result, 32, len(threads)) if known else unknown(len(threads))
            self.state.assign(op.dst, threads, value)

    def warp_wide(self, op: ops.WarpBarrier | ops.WarpExchange, at: int, threads: Numbers) -> None:
        """What the lanes of a mask execute together: each waits for the others."""
        if isinstance(op, ops.WarpExchange) and op.op == "activemask":
            self.state.assign(op.dst, threads, unknown(len(threads)))
            return
        self.state.mode[threads] = WAITS
        for thread in threads.tolist():
            self._parked.setdefault(self.state.warp(thread), {})[thread] = at
        for warp in sorted({self.state.warp(thread) for thread in threads.tolist()}):
            self._meet(warp)

    def cluster(self, op: ops.ClusterBarrier, at: int, threads: Numbers, strong: Strong) -> None:
        """``barrier.cluster``."""
        state = self.state
        if op.aligned:
            self._check_together(at, threads)
        for thread in threads.tolist():
            cluster = int(state.clusters[thread // state.size])
            phases = self._phases.setdefault(cluster, [ClusterPhase({})])
            if op.kind == "wait":
                if thread not in self._arrivals:
                    message = "a wait of a thread that has not arrived (9.7.14.3)"
                    raise Stopped("undefined", message, at, thread, BARRIERS)
                state.mode[thread] = WAITS
                self._waiting[thread] = self._arrivals.pop(thread)
                state.tell("wait", ("cluster", cluster), self._waiting[thread], at, np.array([thread]))
            elif thread in self._arrivals:
                raise Stopped("undefined", "two arrivals without a wait between (9.7.14.3)", at, thread, BARRIERS)
            else:
                self._arrivals[thread] = len(phases) - 1
                state.tell("arrive", ("cluster", cluster), len(phases) - 1, at, np.array([thread]))
                phases[-1].arrived[thread] = strong.released(thread, op.sem == "release")
                self._arrive_leader(phases[-1], thread, op, strong)
                self._complete_cluster(cluster)
        self._go_on(strong)

    def _arrive_leader(self, phase: ClusterPhase, thread: int, op: ops.ClusterBarrier, strong: Strong) -> None:
        """The leader of a warp arrives with the last of its lanes."""
        leader = self.state.count + self.state.warp(thread)
        lanes = self._leaders.lanes.get(leader)
        if lanes is not None and all(lane in phase.arrived for lane in lanes.tolist()):
            phase.arrived[leader] = strong.released(leader, op.sem == "release")

    def _complete_cluster(self, cluster: int) -> None:
        """Complete the phase of a cluster to which all threads have come that have not ended."""
        state, phase = self.state, self._phases[cluster][-1]
        ctas = np.flatnonzero(state.clusters == cluster)
        members = (ctas[:, None] * state.size + np.arange(state.size)).ravel()
        alive = members[state.mode[members] != ENDED]
        if phase.arrived and all(thread in phase.arrived for thread in alive.tolist()):
            phase.complete = True
            self._phases[cluster].append(ClusterPhase({}))

    def _go_on(self, strong: Strong) -> None:
        """Let those go on whose phase is complete."""
        state = self.state
        for thread, number in list(self._waiting.items()):
            cta = thread // state.size
            phase = self._phases[int(state.clusters[cta])][number]
            if not phase.complete:
                continue
            if cta not in phase.views:
                heads = [head for given in phase.arrived.values() for head in given]
                found = strong.usable(heads, CLUSTER, thread)
                phase.views[cta] = state.clocks.joined(cta, NOTHING, found) if found else NOTHING
            if phase.views[cta] != NOTHING:
                state.clocks.acquire(np.array([thread]), [Release(phase.views[cta], thread, 0)])
            state.mode[thread] = RUNS
            what = "cluster", int(state.clusters[cta])
            state.tell("pass", what, number, int(state.pc[thread]) - 1, np.array([thread]))
            del self._waiting[thread]

    def _mask(self, at: int, thread: int) -> int:
        op = self.state.body[at]
        assert isinstance(op, ops.WarpBarrier | ops.WarpExchange)
        operand = op.mask if isinstance(op, ops.WarpBarrier) else op.operands[-1]
        return int(self.state.sure(self.state.operand(operand, ops.U32, np.array([thread])), at, "the mask")[0])

    def _meet(self, warp: int) -> None:
        """Let those lanes of a warp go on whose mask is complete."""
        parked, members = self._parked.get(warp, {}), self.state.members(warp)
        groups: dict[tuple[int, int], list[int]] = {}
        for thread, at in parked.items():
            mask, lane = self._mask(at, thread), thread % self.state.size % WARP_SIZE
            if not mask >> lane & 1:
                raise Stopped("undefined", "the mask does not have the lane itself", at, thread, BARRIERS)
            # Barriers of one mask may stand at several places of the text (9.7.14.2); exchanges are one instruction.
            place = -1 if isinstance(self.state.body[at], ops.WarpBarrier) else at
            groups.setdefault((place, mask), []).append(thread)
        for (_, mask), threads in groups.items():
            wanted = [t for t in members if mask >> t % self.state.size % WARP_SIZE & 1]
            ended = [t for t in wanted if self.state.mode[t] == ENDED]
            if len(threads) + len(ended) < len(wanted):
                continue
            together = np.array(sorted(threads))
            op = self.state.body[parked[threads[0]]]
            for thread in threads:
                del parked[thread]
            self.state.mode[together] = RUNS
            if isinstance(op, ops.WarpBarrier):
                self.state.clocks.synchronize(np.concatenate((together, self._leaders.among(together))))
                self.state.tell("pass", ("warp", warp), 0, int(self.state.pc[together[0]]) - 1, together)
            else:
                assert isinstance(op, ops.WarpExchange)
                self._exchange(op, together)

    def _exchange(self, op: ops.WarpExchange, threads: Numbers) -> None:
        given = [self.state.operand(o, t, threads) for o, t in zip(op.operands[:-1], op.read[:-1], strict=True)]
        lanes = [thread % self.state.size % WARP_SIZE for thread in threads.tolist()]
        first, second = exchanged(op, lanes, given)
        if op.op == "elect" and len(lanes) > 1:
            self._elect(op, threads)
            if self.state.leads:
                return
        self.state.assign(op.dst, threads, first)
        self.state.assign(op.predicate, threads, second)

    def _elect(self, op: ops.WarpExchange, threads: Numbers) -> None:
        """Lanes elect one of them; nobody knows which, unless this is one execution (9.7.14.14)."""
        state = self.state
        result = self._leaders.elected(int(state.pc[threads[0]]) - 1, threads)
        if state.leads:
            for register in (op.dst, op.predicate):
                state.assign(register, threads, unknown(len(threads)))
            if op.predicate is not None:
                state.origins.setdefault(op.predicate.name, {}).update(dict.fromkeys(threads.tolist(), result))

    def released(self, strong: Strong) -> bool:
        """Whether somebody need not wait any longer because threads have ended."""
        before = int((self.state.mode == RUNS).sum())
        for warp in list(self._parked):
            self._meet(warp)
        for cta in range(self.state.count // self.state.size):
            self._complete_all(cta)
        for cluster in list(self._phases):
            self._complete_cluster(cluster)
        self._go_on(strong)
        return int((self.state.mode == RUNS).sum()) > before

    def finished(self, lacks: Callable[[int], str | None]) -> None:
        """Raises ``Stopped`` if some threads wait when nothing else can be done; ``lacks``: what one waits for at an
        mbarrier."""
        waiting = np.flatnonzero(self.state.mode != ENDED)
        if waiting.size:
            thread = int(waiting[0])
            at = int(self.state.pc[thread]) - 1
            if isinstance(self.state.body[at], ops.WarpExchange):
                message = "lanes that come to an exchange at several places of the text are not followed yet"
                raise Stopped("unsupported", message, at, thread)
            message = f"{len(waiting)} threads wait here for ever" if len(waiting) > 1 else "a thread waits for ever"
            if (what := lacks(thread)) is not None:
                message += f": for {what}"
            places = {type(self.state.body[at]) for at in (self.state.pc[waiting] - 1).tolist()}
            refuted = BARRIERS if places <= _BARRIERS else None
            raise Stopped("deadlock", message, int(self.state.pc[thread]) - 1, thread, refuted)

    def lacks(self, thread: int) -> tuple[str, list[int]] | None:
        """What a thread waits for, of barriers and lanes of its warp, and the threads that have not come to it."""
        state = self.state
        cta = thread // state.size
        for (where, name), phase in self._barriers.items():
            if where == cta and thread in phase.waiting:
                every = range(cta * state.size, (cta + 1) * state.size)
                wanted = "" if phase.count is None else f" of {phase.count}"
                text = f"barrier {name}, to which {len(phase.waiting) + len(phase.arrived)}{wanted} threads have come"
                return text, [other for other in every if not phase.has(other)]
        if thread in self._waiting:
            cluster = int(state.clusters[cta])
            phase_ = self._phases[cluster][self._waiting[thread]]
            every = range(state.count)
            rest = [t for t in every if state.clusters[t // state.size] == cluster and t not in phase_.arrived]
            return f"the barrier of the cluster, to which {len(phase_.arrived)} threads have come", rest
        warp = state.warp(thread)
        if thread in self._parked.get(warp, {}):
            mask = self._mask(self._parked[warp][thread], thread)
            wanted_ = [t for t in state.members(warp) if mask >> t % state.size % WARP_SIZE & 1]
            return "other lanes of its mask", [t for t in wanted_ if t not in self._parked[warp]]
        return None
