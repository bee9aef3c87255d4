"""Instructions that few programs have: copies, matrices, exchanges of warps, multimem. See ``interpreter``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxmm.events import asynchronous, matrices, multimem, tensorcore, tensors, warps, wmma
from ptxmm.events.machine import Machine
from ptxmm.ptx import ops

EFFECTS: Mapping[type, Callable[[Machine, Any], None]] = {
    ops.CopyAsync: asynchronous.copy_async,
    ops.CopyAsyncArrive: asynchronous.copy_async_arrive,
    ops.AsyncCommit: asynchronous.commit,
    ops.AsyncWait: asynchronous.wait,
    ops.BulkCopy: tensors.bulk_copy,
    ops.AsyncStore: asynchronous.async_store,
    ops.TensormapReplace: tensors.tensormap_replace,
    ops.TensormapCopyFence: tensors.tensormap_copy_fence,
    ops.Multimem: multimem.multimem,
    ops.BarrierReduction: warps.barrier_reduction,
    ops.WarpExchange: warps.exchange,
    ops.LoadMatrix: matrices.load_matrix,
    ops.StoreMatrix: matrices.store_matrix,
    ops.WmmaLoad: wmma.load,
    ops.WmmaStore: wmma.store,
    ops.Wmma: wmma.multiply,
    ops.WgmmaFence: matrices.wgmma_fence,
    ops.Wgmma: matrices.wgmma,
    ops.TensorFence: tensorcore.tensor_fence,
    ops.TensorWait: tensorcore.tensor_wait,
    ops.TensorLoad: tensorcore.tensor_load,
    ops.TensorStore: tensorcore.tensor_store,
    ops.TensorCopy: tensorcore.tensor_copy,
    ops.TensorProduct: tensorcore.tensor_product,
    ops.TensorCommit: tensorcore.tensor_commit,
}
