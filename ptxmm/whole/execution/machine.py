"""The execution of a launch, all threads at once: those that are at the same instruction execute it together.

It is one interleaving, in which each instruction is executed as a whole: an execution that every model allows. Of the
threads that can go on those go first that are furthest behind in the text, so that what diverged comes together again;
but no thread waits for ever for others that go round.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.launch import ACTIVE_TOGETHER, ELECT_FIRST, WARP_WAIT
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution import matrices
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.allocations import Allocations
from ptxmm.whole.execution.asynchronous.copies import Copies
from ptxmm.whole.execution.asynchronous.products import Products
from ptxmm.whole.execution.asynchronous.tensorcore import Tensorcore
from ptxmm.whole.execution.asynchronous.tensormaps import Tensormaps
from ptxmm.whole.execution.barriers.mbarriers import Mbarriers
from ptxmm.whole.execution.barriers.meeting import Meeting
from ptxmm.whole.execution.deriving import Deriving
from ptxmm.whole.execution.detours import Detours
from ptxmm.whole.execution.grids import Grids
from ptxmm.whole.execution.locations import Locations
from ptxmm.whole.execution.polls import Poll
from ptxmm.whole.execution.scalars import Scalars
from ptxmm.whole.execution.state import ENDED, RUNS, Moment, Stopped
from ptxmm.whole.launched import Launched
from ptxmm.whole.order.history import Kind
from ptxmm.whole.order.strong import Plan
from ptxmm.whole.order.trace import ASYNC

_PATIENCE = 512
"""So many steps a thread waits for others that could go on for ever."""


class Machine(Accessing):
    """An execution of a ``launch``; ``plan``: what is known of others; ``waiting``: its loops that wait;
    ``lenient``: what is assumed (see there), else that of ``before``."""

    def __init__(
        self, launch: Launched, plan: Plan, waiting: Mapping[int, Poll], before: Machine | None = None,
        layout: int = 0, lenient: frozenset[str] | None = None, compared: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(launch, plan, waiting, before, layout, lenient, compared)
        same = isinstance(before, Machine) and before.launch is launch
        self._deriving = Deriving(self)
        self.locations: Locations = Locations(self, self._deriving, before.locations if before and same else None)
        self.scalars = Scalars(self, self.locations)
        self._meeting = Meeting(self, self.leaders, self.strong, self.gathering, self.lenient)
        self.grids = Grids(self)
        self.copies = Copies(self)
        self.products = Products(self, self.copies)
        barred = self.products.touching.keys() | self.kernel.code.refused.keys()
        self._detours = Detours(self, self.scalars, frozenset(barred))
        self.tensormaps = Tensormaps(self)
        self.tensorcore = Tensorcore(self, self.copies)
        self.leads = self.elects and not plan.exact and ELECT_FIRST not in self.lenient
        self.ends = np.zeros(self.every, np.int64)
        """The views of the threads at their ends."""
        self._back: dict[int, tuple[int, bytes]] = {}
        self.steps = 0
        """How often some threads have executed an instruction."""
        self.executed: set[int] = set()
        """The instructions that some thread has executed."""
        self.delayed: tuple[Moment, int] | None = None
        """Where a thread waits as long as others can go on, if that takes no more than so many steps."""
        self._last = np.zeros(self.every, np.int64)
        self._turn = np.zeros(self.every, np.bool_)
        self._idle: tuple[int, dict[int, int]] = 0, {}
        # Lanes of which it is assumed that they come together do not go on alone.
        lanes = WARP_SIZE if self.size > WARP_SIZE or self.lenient & {ACTIVE_TOGETHER, WARP_WAIT} else 1
        self._groups = self.cta if launch.ctas > 1 else np.arange(self.every) // lanes
        self._group = -1

    def tell(self, kind: Kind, what: Hashable, number: int, at: int, agents: Numbers) -> None:
        """``agents`` do something to synchronize."""
        super().tell(kind, what, number, at, agents)
        self.tensorcore.issuing.hear(kind, what, at, agents)

    def run(self, limits: Limits) -> None:
        """Execute all threads to their ends.

        Raises ``Stopped``, and ``Timeout`` at the deadline of ``limits``."""
        while True:
            runs = self.mode == RUNS
            idle = [*self._idle[1]] if self._idle[0] == self.changes else []
            runs[idle] = False
            if self.delayed is not None:
                held, most = self.delayed
                here = self.pc[held.thread] == held.at and self.clocks.clock[held.thread] == held.clock
                runs[held.thread] &= not here or self.steps >= most
            if not runs.any():
                if self._meeting.released() or self.grids.go_on():
                    continue
                if self.delayed is not None:
                    self.delayed = None
                    continue
                if self.locations.hasten() or self.locations.pretend():
                    continue
                if idle:
                    message = (
                        "this loop waits for what another thread does, which is not followed in a whole launch yet"
                    )
                    raise Stopped("unsupported", message, self._idle[1][idle[0]], idle[0])
                if unmet := self.locations.unmet():
                    thread = unmet[0]
                    message = "whether this finds what it looks for depends on more than what others write"
                    raise Stopped("undecided", message, int(self.pc[thread]), thread)
                if self.scalars.later:
                    message = "whether this comes last depends on more than the order of what is done here"
                    raise Stopped("undecided", message, int(self.pc[self.scalars.later[0]]), self.scalars.later[0])
                self.products.check_end()
                self.grids.check_begun()
                self.locations.check_stuck()
                self._meeting.finished(self.mbarriers.lacks, self.grids.begun)
                self.mbarriers.check_end()
                return
            if self.plan.turn:
                runs = self._alone(runs)
            at = self._next(runs)
            threads = np.flatnonzero(runs & (self.pc == at))
            limits.check()
            self.steps += 1
            if (self.plan.chosen or self.plan.plain) and self.steps > self.plan.steps:
                message = "what looks find decides how often this is executed, perhaps for ever"
                raise Stopped("undecided", message, at, int(threads[0]))
            if self.history is not None:
                self.history.begin()
            self._last[threads] = self.steps
            if at == len(self.body):
                self._end(threads)
            else:
                self._execute(at, threads)
            for leader in self.leaders.stopped():
                self._end(np.array([leader]))

    def _alone(self, runs: Flags) -> Flags:
        """Those that have gone on before, else those whose turn it is."""
        here: Flags = runs & (self._groups == self._group)
        if not here.any():
            groups = self._groups[runs]
            self._group = int(groups.min() if self.plan.turn > 0 else groups.max())
            here = runs & (self._groups == self._group)
        return here

    def _next(self, runs: Flags) -> int:
        """Where those are that go on: furthest behind, of those that others have kept waiting if there are some."""
        if self.steps % _PATIENCE == 0:
            self._turn = runs & (self._last < self.steps - _PATIENCE)
        first = runs & self._turn
        return int(self.pc[first if first.any() else runs].min())

    def _execute(self, at: int, threads: Numbers) -> None:
        op = self.body[at]
        self.regions.leave(at, threads)
        if op.guard is not None:
            threads = self._detours.taken(op, op.guard, at, threads)
            if not len(threads):
                return
        chosen = threads
        if op.guard is not None:
            holds = self.truth(at, threads, op.guard.register) ^ op.guard.negated
            chosen = threads[holds]
        self.pc[threads] += 1
        if op.guard is not None and isinstance(op, ops.Branch):
            self.regions.enter(at, op.guard.register, threads)
        if op.guard is not None and self.apart:
            chosen = self.leaders.lead(op, op.guard, at, chosen)
        if not len(chosen):
            return
        self.executed.add(at)
        refused = self.kernel.code.refused.get(at)
        if refused is not None and refused[1]:
            raise Stopped("unsupported", refused[0].message, at)
        execute = _EXECUTE.get(type(op))
        if execute is None:
            words = [word for word in op.source.text.split() if not word.startswith("@")]
            name = words[0] if words else type(op).__name__
            raise Stopped("unsupported", f"`{name.rstrip(';')}` is not followed in a whole launch yet", at)
        if self.doings is not None and not isinstance(op, (*ops.COMPUTING, ops.Branch)):
            self.did(at, chosen, chosen)
        if at in self.products.touching:
            self.products.touch(at, chosen)
        if chosen[-1] >= self.count and isinstance(op, _TOGETHER):
            message = "an elected lane that executes alone what a warp executes together is not followed yet"
            raise Stopped("unsupported", message, at, int(chosen[-1]))
        execute(self, op, at, chosen)

    def lacks(self, thread: int) -> tuple[str, list[int]]:
        """What a thread waits for that has not ended, and the threads that have not come to it."""
        if (found := self._meeting.lacks(thread)) is not None:
            return found
        if (what := self.mbarriers.lacks(thread) or self.grids.lacks(thread)) is not None:
            return what, []
        return self.locations.lacks(thread) or "something that nobody does", []

    def _end(self, threads: Numbers) -> None:
        if len(self.launch.parts) > 1:  # the next grid begins whatever a thread has decided
            self.regions.leave(len(self.body), threads)
        self.mode[threads] = ENDED
        self.tell("end", None, 0, 0, threads)
        self.ends[threads] = self.clocks.views(threads)
        for leader in threads[threads >= self.count].tolist():
            self.leaders.end(leader)

    def compute(self, op: Any, at: int, threads: Numbers) -> None:
        """What only gives registers values."""
        self._deriving.compute(op, at, threads)

    def scalar(self, op: Any, at: int, threads: Numbers) -> None:
        """``ld``, ``st``, ``atom`` and ``red``."""
        _SCALARS[type(op)](self.scalars, op, at, threads)

    def grid_control(self, op: ops.GridControl, at: int, threads: Numbers) -> None:
        """``griddepcontrol``."""
        self.changes += 1
        if op.kind == "wait":
            self.regions.seal(threads)
        self.grids.control(op, threads)

    def exit(self, op: ops.Exit, at: int, threads: Numbers) -> None:
        """``exit`` and ``ret``."""
        self._end(threads)

    def branch(self, op: ops.Branch, at: int, threads: Numbers) -> None:
        """``bra``. Threads that go round a loop in which nothing changes wait until something does."""
        self.pc[threads] = op.target
        if op.target <= at:
            now = self.changes, threads.tobytes()
            if self._back.get(at) == now:
                before = self._idle[1] if self._idle[0] == self.changes else {}
                self._idle = self.changes, {**before, **dict.fromkeys(threads.tolist(), at)}
            self._back[at] = now

    def barrier(self, op: ops.Barrier | ops.BarrierReduction, at: int, threads: Numbers) -> None:
        """``barrier.cta``."""
        self.changes += 1
        if isinstance(op, ops.BarrierReduction) or op.kind != "arrive":
            self.regions.seal(threads)
        self._meeting.ctas.barrier(op, at, threads)

    def cluster_barrier(self, op: ops.ClusterBarrier, at: int, threads: Numbers) -> None:
        """``barrier.cluster``."""
        self.changes += 1
        self._meeting.clusters.barrier(op, at, threads)

    def warp_wide(self, op: ops.WarpBarrier | ops.WarpExchange, at: int, threads: Numbers) -> None:
        """What the lanes of a mask execute together."""
        self.changes += 1
        self._meeting.lanes.execute(op, at, threads)

    def mbarrier(self, op: Any, at: int, threads: Numbers) -> None:
        """What operates on mbarriers, which are in shared memory (PTX ISA 9.7.14.15)."""
        self.changes += 1
        _MBARRIERS[type(op)](self.mbarriers, op, at, self.mbarrier_places(op, at, threads), threads)

    def init_fence(self, op: ops.MbarrierInitFence, at: int, threads: Numbers) -> None:
        """``fence.mbarrier_init``."""
        self.mbarriers.fence(threads)

    def copy(self, op: Any, at: int, threads: Numbers) -> None:
        """Asynchronous copies, their groups, and proxy fences."""
        self.changes += 1
        if isinstance(op, ops.AsyncCommit | ops.AsyncWait) and op.kind == "wgmma":
            self.warpgroup(op, at, threads)
            return
        _COPIES[type(op)](self.copies, op, at, threads)
        if isinstance(op, ops.ProxyFence) and op.kind == ASYNC:
            self.products.issues(threads)
            self.tensorcore.issuing.proxied(threads)

    def warpgroup(self, op: Any, at: int, threads: Numbers) -> None:
        """What the warps of a warpgroup execute together."""
        self.changes += 1
        for group in self.products.together(at, threads):
            match op:
                case ops.WgmmaFence():
                    self.products.fence(op, at, group)
                case ops.Wgmma():
                    self.products.product(op, at, group)
                case ops.AsyncCommit():
                    self.products.commit(group)
                case ops.AsyncWait():
                    self.products.wait(op.pending or 0, group)

    def tensormap(self, op: Any, at: int, threads: Numbers) -> None:
        """What changes tensor maps, and the fences of their proxy."""
        self.changes += 1
        _TENSORMAPS[type(op)](self.tensormaps, op, at, threads)

    def tensor(self, op: Any, at: int, threads: Numbers) -> None:
        """What works on tensor memory."""
        self.changes += 1
        if isinstance(op, ops.TensorFence):
            self.tensorcore.issuing.fence(op, at, threads)
        else:
            _TENSORS[type(op)](self.tensorcore, op, at, threads)

    def allocation(self, op: Any, at: int, threads: Numbers) -> None:
        """What allocates tensor memory."""
        self.changes += 1
        _ALLOCATIONS[type(op)](self.tensorcore.allocations, op, at, threads)

    def matrix(self, op: Any, at: int, threads: Numbers) -> None:
        """What a warp does with matrices."""
        self.changes += 1
        _MATRICES[type(op)](self, op, at, threads)


_TOGETHER = (
    ops.Barrier, ops.BarrierReduction, ops.ClusterBarrier, ops.WarpBarrier, ops.WarpExchange, ops.LoadMatrix,
    ops.StoreMatrix, ops.WmmaLoad, ops.WmmaStore, ops.Wmma, ops.Wgmma, ops.WgmmaFence, ops.SetMaxRegisters,
    ops.TensormapCopyFence,
    ops.TensorAlloc, ops.TensorDealloc, ops.TensorRelinquish, ops.TensorLoad, ops.TensorStore, ops.TensorWait,
)  # fmt: skip
"""What the threads of a warp execute together."""
_MBARRIERS: Mapping[type, Callable[[Mbarriers, Any, int, Numbers, Numbers], None]] = {
    ops.MbarrierInit: Mbarriers.init,
    ops.MbarrierArrive: Mbarriers.arrive,
    ops.MbarrierTx: Mbarriers.count_bytes,
    ops.MbarrierWait: Mbarriers.wait,
}

_COPIES: Mapping[type, Callable[[Copies, Any, int, Numbers], None]] = {
    ops.CopyAsync: Copies.copy,
    ops.CopyAsyncArrive: Copies.arrive,
    ops.AsyncCommit: Copies.commit,
    ops.AsyncWait: Copies.wait,
    ops.BulkCopy: Copies.bulk,
    ops.ProxyFence: Copies.fence,
    ops.AsyncStore: Copies.store,
}

_SCALARS: Mapping[type, Callable[[Scalars, Any, int, Numbers], None]] = {
    ops.Load: Scalars.load,
    ops.Store: Scalars.store,
    ops.Atomic: Scalars.atomic,
    **dict.fromkeys((ops.StoreBulk, ops.Discard), Scalars.fill),
}

_MATRICES: Mapping[type, Callable[[Machine, Any, int, Numbers], None]] = {
    ops.LoadMatrix: matrices.load,
    ops.StoreMatrix: matrices.store,
    ops.WmmaLoad: matrices.load_tile,
    ops.WmmaStore: matrices.store_tile,
    ops.Wmma: matrices.product,
}

_TENSORMAPS: Mapping[type, Callable[[Tensormaps, Any, int, Numbers], None]] = {
    ops.TensormapReplace: Tensormaps.replace,
    ops.TensormapCopyFence: Tensormaps.copy,
    ops.TensormapFence: Tensormaps.fence,
}

_TENSORS: Mapping[type, Callable[[Tensorcore, Any, int, Numbers], None]] = {
    ops.TensorWait: Tensorcore.wait,
    ops.TensorLoad: Tensorcore.load,
    ops.TensorStore: Tensorcore.store,
    ops.TensorCopy: Tensorcore.copy,
    ops.TensorProduct: Tensorcore.product,
    ops.TensorShift: Tensorcore.shift,
    ops.TensorCommit: Tensorcore.commit,
}

_ALLOCATIONS: Mapping[type, Callable[[Allocations, Any, int, Numbers], None]] = {
    ops.TensorAlloc: Allocations.allocate,
    ops.TensorDealloc: Allocations.free,
    ops.TensorRelinquish: Allocations.relinquish,
}

_EXECUTE: Mapping[type, Callable[[Machine, Any, int, Numbers], None]] = {
    **dict.fromkeys(
        (
            ops.Alu, ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Pack, ops.Unpack, ops.Opaque,
            ops.ConvertAddress, ops.IsSpace, ops.Mapa, ops.CtaRank, ops.Nothing, ops.PendingCount,
        ),
        Machine.compute,
    ),
    ops.Branch: Machine.branch,
    ops.Exit: Machine.exit,
    ops.GridControl: Machine.grid_control,
    **dict.fromkeys(_SCALARS, Machine.scalar),
    ops.Fence: Machine.order,
    ops.ClusterBarrier: Machine.cluster_barrier,
    **dict.fromkeys((ops.Barrier, ops.BarrierReduction), Machine.barrier),
    **dict.fromkeys((ops.WarpBarrier, ops.WarpExchange), Machine.warp_wide),
    **dict.fromkeys((ops.MbarrierInit, ops.MbarrierArrive, ops.MbarrierTx, ops.MbarrierWait), Machine.mbarrier),
    **dict.fromkeys(_COPIES, Machine.copy),
    **dict.fromkeys(_MATRICES, Machine.matrix),
    **dict.fromkeys(_TENSORMAPS, Machine.tensormap),
    **dict.fromkeys((ops.TensorFence, *_TENSORS), Machine.tensor),
    **dict.fromkeys(_ALLOCATIONS, Machine.allocation),
    **dict.fromkeys((ops.Wgmma, ops.WgmmaFence, ops.SetMaxRegisters), Machine.warpgroup),
    ops.MbarrierInitFence: Machine.init_fence,
}  # fmt: skip
"""What is followed; every other instruction is refused where it is executed."""
