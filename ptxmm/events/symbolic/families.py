"""Instructions that few programs have: barriers, copies, matrices, exchanges, multimem. See ``instructions``."""

from __future__ import annotations

from ptxmm.events.symbolic import copies, matrices, sync, tensorcore, tensors, wmma
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.multimem import multimem
from ptxmm.events.symbolic.operations import wait
from ptxmm.events.symbolic.tensormaps import copy_fence, replace_field, tensormap_fence
from ptxmm.events.symbolic.undetermined import discard
from ptxmm.events.symbolic.values import Reads
from ptxmm.events.symbolic.warps import exchange
from ptxmm.program.test import EventId
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
    Op,
    StoreMatrix,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    TensorProduct,
    TensorStore,
    TensorWait,
    WarpBarrier,
    WarpExchange,
    Wgmma,
    WmmaLoad,
    WmmaStore,
)
from ptxmm.relations.formula import Formula


def execute(
    run: Executor, op: Op, here: EventId, state: State, presence: Formula, condition: Formula, control: Reads
) -> None:
    """Execute ``op`` where ``presence`` holds."""
    match op:
        case Discard():
            discard(run, op, here, state, presence, control)
        case Multimem():
            multimem(run, op, here, state, presence, condition, control)
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
        case BulkCopy() if op.tensormap is not None:
            tensors.tensor_copy(run, op, op.tensormap, here, state, presence, control)
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
        case WmmaLoad():
            wmma.load(run, op, here, state, presence, condition, control)
        case WmmaStore():
            wmma.store(run, op, here, state, presence, control)
        case Wgmma():
            matrices.wgmma(run, op, here, state, presence, condition, control)
        case (
            TensorFence() | TensorWait() | TensorLoad() | TensorStore() | TensorCopy() | TensorProduct()
            | TensorCommit()
        ):  # fmt: skip
            tensorcore.execute(run, op, here, state, presence, condition, control)
        case TensormapFence():
            tensormap_fence(run, op, here, state, presence, control)
        case TensormapReplace():
            replace_field(run, op, here, state, presence, control)
        case TensormapCopyFence():
            copy_fence(run, op, here, state, presence, control)
