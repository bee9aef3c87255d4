"""Where threads wait for each other, of all kinds: who goes on when others have ended, and who waits for ever."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptxmm.analysis.claims import BARRIERS
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags
from ptxmm.whole.execution.barriers.clusters import ClusterBarriers
from ptxmm.whole.execution.barriers.cta import CtaBarriers
from ptxmm.whole.execution.barriers.lanes import Lanes
from ptxmm.whole.execution.gathering import Gathering
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.state import ENDED, RUNS, State, Stopped
from ptxmm.whole.order.strong import Strong

_BARRIERS = {ops.Barrier, ops.BarrierReduction, ops.ClusterBarrier, ops.WarpBarrier}


class Meeting:
    """Who waits for whom, of the threads of ``state``, and the leaders of its warps: at barriers of their ``ctas`` and
    ``clusters``, and as ``lanes`` of a warp."""

    def __init__(
        self, state: State, leaders: Leaders, strong: Strong, gathering: Gathering, lenient: frozenset[str]
    ) -> None:
        self.state = state
        self.ctas = CtaBarriers(state, leaders, gathering, lenient)
        self.lanes = Lanes(state, leaders, gathering, lenient)
        self.clusters = ClusterBarriers(state, leaders, strong)

    def released(self) -> bool:
        """Whether somebody need not wait any longer because threads have ended."""
        before = int((self.state.mode == RUNS).sum())
        self.lanes.ended()
        for cta in range(self.state.count // self.state.size):
            self.ctas.complete_all(cta)
        self.clusters.ended()
        return int((self.state.mode == RUNS).sum()) > before

    def finished(self, lacks: Callable[[int], str | None], begun: Flags) -> None:
        """Raises ``Stopped`` if some threads wait when nothing else can be done; ``lacks``: what one waits for at an
        mbarrier; ``begun``: the threads that have begun."""
        waiting = np.flatnonzero((self.state.mode != ENDED) & begun)
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
        return self.ctas.lacks(thread) or self.clusters.lacks(thread) or self.lanes.lacks(thread)
