"""The barrier of a cluster (PTX ISA 9.7.14.3)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ptxmm.analysis.claims import BARRIERS
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.barriers.cta import check_together
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, State, Stopped
from ptxmm.whole.order.clocks import NOTHING, Release
from ptxmm.whole.order.strong import CLUSTER, Head, Strong


class ClusterPhase(Struct):
    """A phase of the barrier of a cluster: what each thread that has arrived releases; for each CTA the view of who has
    waited for the phase, once it is complete."""

    arrived: dict[int, tuple[Head, ...]]
    complete: bool = False
    views: dict[int, int] = {}


class ClusterBarriers:
    """The barriers of the clusters of ``state``."""

    def __init__(self, state: State, leaders: Leaders, strong: Strong) -> None:
        self.state, self._leaders, self._strong = state, leaders, strong
        self._phases: dict[int, list[ClusterPhase]] = {}
        self._arrivals: dict[int, int] = {}
        self._waiting: dict[int, int] = {}

    def barrier(self, op: ops.ClusterBarrier, at: int, threads: Numbers) -> None:
        """``barrier.cluster``."""
        state = self.state
        if op.aligned:
            check_together(state, at, threads)
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
                phases[-1].arrived[thread] = self._strong.released(thread, op.sem == "release")
                self._arrive_leader(phases[-1], thread, op)
                self._complete_cluster(cluster)
        self._go_on()

    def _arrive_leader(self, phase: ClusterPhase, thread: int, op: ops.ClusterBarrier) -> None:
        """The leader of a warp arrives with the last of its lanes."""
        leader = self.state.count + self.state.warp(thread)
        lanes = self._leaders.lanes.get(leader)
        if lanes is not None and all(lane in phase.arrived for lane in lanes.tolist()):
            phase.arrived[leader] = self._strong.released(leader, op.sem == "release")

    def _complete_cluster(self, cluster: int) -> None:
        """Complete the phase of a cluster to which all threads have come that have not ended."""
        state, phase = self.state, self._phases[cluster][-1]
        ctas = np.flatnonzero(state.clusters == cluster)
        members = (ctas[:, None] * state.size + np.arange(state.size)).ravel()
        alive = members[state.mode[members] != ENDED]
        if phase.arrived and all(thread in phase.arrived for thread in alive.tolist()):
            phase.complete = True
            self._phases[cluster].append(ClusterPhase({}))

    def _go_on(self) -> None:
        """Let those go on whose phase is complete."""
        state = self.state
        for thread, number in list(self._waiting.items()):
            cta = thread // state.size
            phase = self._phases[int(state.clusters[cta])][number]
            if not phase.complete:
                continue
            if cta not in phase.views:
                heads = [head for given in phase.arrived.values() for head in given]
                found = self._strong.usable(heads, CLUSTER, thread)
                phase.views[cta] = state.clocks.joined(cta, NOTHING, found) if found else NOTHING
            if phase.views[cta] != NOTHING:
                state.clocks.acquire(np.array([thread]), [Release(phase.views[cta], thread, 0)])
            state.mode[thread] = RUNS
            what = "cluster", int(state.clusters[cta])
            state.tell("pass", what, number, int(state.pc[thread]) - 1, np.array([thread]))
            del self._waiting[thread]

    def ended(self) -> None:
        """Let those go on that wait for threads which have ended."""
        for cluster in list(self._phases):
            self._complete_cluster(cluster)
        self._go_on()

    def lacks(self, thread: int) -> tuple[str, list[int]] | None:
        """What a thread waits for at the barrier of its cluster, and the threads that have not come to it."""
        state = self.state
        if thread not in self._waiting:
            return None
        cluster = int(state.clusters[thread // state.size])
        phase = self._phases[cluster][self._waiting[thread]]
        every = range(state.count)
        rest = [t for t in every if state.clusters[t // state.size] == cluster and t not in phase.arrived]
        return f"the barrier of the cluster, to which {len(phase.arrived)} threads have come", rest
