"""Instructions that few programs have: barriers, copies, matrices, exchanges, multimem. See ``instructions``."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import store_bulk
from ptxmm.events.symbolic.accesses.multimem import multimem
from ptxmm.events.symbolic.asynchronous import copies, tensors
from ptxmm.events.symbolic.asynchronous.groups import wait
from ptxmm.events.symbolic.asynchronous.tensormaps import copy_fence, replace_field, tensormap_fence
from ptxmm.events.symbolic.barriers import synchronization
from ptxmm.events.symbolic.barriers.warps import exchange
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.matrices import mma, tensorcore, wmma
from ptxmm.events.symbolic.values.domain import Reads
from ptxmm.events.symbolic.values.undetermined import discard
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import (
    AsyncStore,
    AsyncWait,
    Barrier,
    BarrierReduction,
    BulkCopy,
    ClusterBarrier,
    CopyAsync,
    CopyAsyncArrive,
    Discard,
    LoadMatrix,
    MbarrierArrive,
    MbarrierInit,
    MbarrierTx,
    MbarrierWait,
    Multimem,
    StoreBulk,
    StoreMatrix,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    TensorOp,
    WarpBarrier,
    WarpExchange,
    Wgmma,
    WmmaLoad,
    WmmaStore,
)
from ptxmm.relations.formula import Formula

Few = (
    AsyncStore | AsyncWait | Barrier | BarrierReduction | BulkCopy | ClusterBarrier | CopyAsync | CopyAsyncArrive
    | Discard | LoadMatrix | MbarrierArrive | MbarrierInit | MbarrierTx | MbarrierWait | Multimem | StoreBulk
    | StoreMatrix |
    TensormapCopyFence | TensormapFence | TensormapReplace | WarpBarrier | WarpExchange | Wgmma | WmmaLoad |
    WmmaStore | TensorOp
)  # fmt: skip


def execute(
    run: Executor, op: Few, here: EventId, state: State, presence: Formula, condition: Formula, control: Reads
) -> None:
    """Execute ``op`` where ``presence`` holds."""
    match op:
        case Discard():
            discard(run, op, here, state, presence, control)
        case StoreBulk():
            store_bulk(run, op, here, state, presence, control)
        case Multimem():
            multimem(run, op, here, state, presence, condition, control)
        case Barrier():
            synchronization.barrier(run, op, here, state, presence, control)
        case BarrierReduction():
            synchronization.barrier_reduction(run, op, here, state, presence, condition, control)
        case WarpExchange():
            exchange(run, op, here, state, presence, condition)
        case WarpBarrier():
            synchronization.warp_barrier(run, op, here, state, presence, control)
        case ClusterBarrier():
            synchronization.cluster_barrier(run, op, here, state, presence, control)
        case MbarrierInit():
            synchronization.mbarrier_init(run, op, here, state, presence, control)
        case MbarrierArrive():
            synchronization.mbarrier_arrive(run, op, here, state, presence, condition, control)
        case MbarrierTx():
            synchronization.mbarrier_tx(run, op, here, state, presence, control)
        case MbarrierWait():
            synchronization.mbarrier_wait(run, op, here, state, presence, condition, control)
        case CopyAsync():
            copies.copy_async(run, op, here, state, presence, control)
        case CopyAsyncArrive():
            copies.copy_async_arrive(run, op, here, state, presence, control)
        case BulkCopy() if op.tensormap is not None:
            tensors.tensor_copy(run, op, op.tensormap, here, state, presence, control)
        case BulkCopy():
            copies.bulk_copy(run, op, here, state, presence, control)
        case AsyncStore():
            copies.async_store(run, op, here, state, presence, control)
        case AsyncWait():
            wait(run, op, here, state, presence, control)
        case LoadMatrix():
            mma.load_matrix(run, op, here, state, presence, condition, control)
        case StoreMatrix():
            mma.store_matrix(run, op, here, state, presence, control)
        case WmmaLoad():
            wmma.load(run, op, here, state, presence, condition, control)
        case WmmaStore():
            wmma.store(run, op, here, state, presence, control)
        case Wgmma():
            mma.wgmma(run, op, here, state, presence, condition, control)
        case TensormapFence():
            tensormap_fence(run, op, here, state, presence, control)
        case TensormapReplace():
            replace_field(run, op, here, state, presence, control)
        case TensormapCopyFence():
            copy_fence(run, op, here, state, presence, control)
        case _:
            tensorcore.execute(run, op, here, state, presence, condition, control)
