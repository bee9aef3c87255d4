"""Instructions that few programs have: barriers, copies, matrices, exchanges, multimem. See ``instructions``."""

from __future__ import annotations

from ptxmm.events.symbolic.accesses.elements import discard, store_bulk
from ptxmm.events.symbolic.accesses.multimem import multimem
from ptxmm.events.symbolic.asynchronous import copies, tensormaps, tensors
from ptxmm.events.symbolic.asynchronous.groups import wait
from ptxmm.events.symbolic.barriers import synchronization
from ptxmm.events.symbolic.executor import Executor
from ptxmm.events.symbolic.matrices import mma, tensorcore, wmma
from ptxmm.ptx.ops import (
    AsyncStore,
    AsyncWait,
    BulkCopy,
    CopyAsync,
    CopyAsyncArrive,
    Discard,
    LoadMatrix,
    Multimem,
    StoreBulk,
    StoreMatrix,
    TensormapCopyFence,
    TensormapFence,
    TensormapReplace,
    TensorOp,
    Wgmma,
    WmmaLoad,
    WmmaStore,
)

Few = (
    AsyncStore | AsyncWait | BulkCopy | CopyAsync | CopyAsyncArrive | Discard | LoadMatrix | Multimem | StoreBulk
    | StoreMatrix | TensormapCopyFence | TensormapFence | TensormapReplace | Wgmma | WmmaLoad | WmmaStore | TensorOp
    | synchronization.Synchronization
)  # fmt: skip


def execute(run: Executor, op: Few) -> None:
    """Execute ``op``."""
    match op:
        case Discard():
            discard(run, op)
        case StoreBulk():
            store_bulk(run, op)
        case Multimem():
            multimem(run, op)
        case CopyAsync():
            copies.copy_async(run, op)
        case CopyAsyncArrive():
            copies.copy_async_arrive(run, op)
        case BulkCopy() if op.tensormap is not None:
            tensors.tensor_copy(run, op, op.tensormap)
        case BulkCopy():
            copies.bulk_copy(run, op)
        case AsyncStore():
            copies.async_store(run, op)
        case AsyncWait():
            wait(run, op)
        case LoadMatrix():
            mma.load_matrix(run, op)
        case StoreMatrix():
            mma.store_matrix(run, op)
        case WmmaLoad():
            wmma.load(run, op)
        case WmmaStore():
            wmma.store(run, op)
        case Wgmma():
            mma.wgmma(run, op)
        case TensormapFence() | TensormapReplace() | TensormapCopyFence():
            tensormaps.execute(run, op)
        case _ if isinstance(op, synchronization.Synchronization):
            synchronization.execute(run, op)
        case _:
            tensorcore.execute(run, op)
