"""What one instruction does to the state of a path, and the events it gives (PTX ISA chapter 9)."""

from __future__ import annotations

from ptxmm.events.symbolic import copies, matrices, sync
from ptxmm.events.symbolic.accesses import access
from ptxmm.events.symbolic.computed import computed
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.operations import wait
from ptxmm.events.symbolic.tensormaps import copy_fence, replace_field, tensormap_fence
from ptxmm.events.symbolic.values import Reads
from ptxmm.events.symbolic.warps import exchange
from ptxmm.program.test import EventId
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import (
    AsyncStore,
    AsyncWait,
    Atomic,
    Barrier,
    BarrierReduction,
    BulkCopy,
    ClusterBarrier,
    CopyAsync,
    CopyAsyncArrive,
    Fence,
    GridControl,
    Load,
    LoadMatrix,
    MbarrierArrive,
    MbarrierInit,
    MbarrierInitFence,
    MbarrierTx,
    MbarrierWait,
    Op,
    ProxyFence,
    Store,
    StoreMatrix,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    WarpBarrier,
    WarpExchange,
    Wgmma,
    WgmmaFence,
)
from ptxmm.relations.formula import FALSE, Formula

_EVENTS = (
    Load, Store, Atomic, Fence, ProxyFence, TensormapFence, MbarrierInitFence, Barrier, BarrierReduction, WarpBarrier,
    WarpExchange, ClusterBarrier, MbarrierInit, MbarrierArrive, MbarrierTx, MbarrierWait, CopyAsync, CopyAsyncArrive,
    AsyncWait, BulkCopy, AsyncStore, TensormapReplace, TensormapCopyFence, GridControl,
    LoadMatrix, StoreMatrix, WgmmaFence, Wgmma,
)  # fmt: skip


def execute(run: Executor, op: Op, here: EventId, state: State, condition: Formula, reads: Reads) -> None:
    """Execute ``op`` on the path ``state`` under its guard ``condition``, which depends on ``reads``."""
    if not isinstance(op, _EVENTS):
        for name, value in computed(run, op, state):
            run.assign(state, name, value, condition, op)
        return
    presence = run.formulas.both(state.guard, condition)
    if presence == FALSE:
        for name, _ in definitions(op):
            run.absent(state, name, here, op)
        return
    if isinstance(op, Load | Store | Atomic):
        access(run, op, here, state, presence, condition, reads)
        return
    control = run.control(state, reads)
    match op:
        case Fence() | MbarrierInitFence():
            run.event("F", op, here, presence, control)
        case ProxyFence():
            run.event("AF" if op.kind == "alias" else "PF", op, here, presence, control)
        case Barrier():
            sync.barrier(run, op, here, state, presence, control)
        case BarrierReduction():
            sync.barrier_reduction(run, op, here, state, presence, condition, control)
        case WarpExchange():
            exchange(run, op, here, state, presence, condition)
        case WarpBarrier():
            sync.warp_barrier(run, op, here, state, presence, control)
        case ClusterBarrier():
            sync.cluster_barrier(run, op, here, state, presence, control)
        case MbarrierInit():
            sync.mbarrier_init(run, op, here, state, presence, control)
        case MbarrierArrive():
            sync.mbarrier_arrive(run, op, here, state, presence, condition, control)
        case MbarrierTx():
            sync.mbarrier_tx(run, op, here, state, presence, control)
        case MbarrierWait():
            sync.mbarrier_wait(run, op, here, state, presence, condition, control)
        case CopyAsync():
            copies.copy_async(run, op, here, state, presence, control)
        case CopyAsyncArrive():
            copies.copy_async_arrive(run, op, here, state, presence, control)
        case BulkCopy():
            copies.bulk_copy(run, op, here, state, presence, control)
        case AsyncStore():
            copies.async_store(run, op, here, state, presence, control)
        case AsyncWait():
            wait(run, op, here, state, presence, control)
        case LoadMatrix():
            matrices.load_matrix(run, op, here, state, presence, condition, control)
        case StoreMatrix():
            matrices.store_matrix(run, op, here, state, presence, control)
        case WgmmaFence():
            run.event("ISS", op, here, presence, control)
        case Wgmma():
            matrices.wgmma(run, op, here, state, presence, condition, control)
        case TensormapFence():
            tensormap_fence(run, op, here, state, presence, control)
        case TensormapReplace():
            replace_field(run, op, here, state, presence, control)
        case TensormapCopyFence():
            copy_fence(run, op, here, state, presence, control)
        case GridControl() if op.kind == "wait":
            run.event("API", op, here, presence, control)
