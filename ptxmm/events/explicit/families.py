"""Instructions that few programs have: copies, matrices, exchanges of warps, multimem. See ``interpreter``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptxmm.events.explicit.accesses import multimem
from ptxmm.events.explicit.asynchronous import copies, tensors
from ptxmm.events.explicit.barriers import warps
from ptxmm.events.explicit.machine import Machine
from ptxmm.events.explicit.matrices import mma, tensorcore, wmma
from ptxmm.ptx import ops

EFFECTS: Mapping[type, Callable[[Machine, Any], None]] = {
    ops.CopyAsync: copies.copy_async,
    ops.CopyAsyncArrive: copies.copy_async_arrive,
    ops.AsyncCommit: copies.commit,
    ops.AsyncWait: copies.wait,
    ops.BulkCopy: tensors.bulk_copy,
    ops.AsyncStore: copies.async_store,
    ops.TensormapReplace: tensors.tensormap_replace,
    ops.TensormapCopyFence: tensors.tensormap_copy_fence,
    ops.Multimem: multimem.multimem,
    ops.BarrierReduction: warps.barrier_reduction,
    ops.WarpExchange: warps.exchange,
    ops.LoadMatrix: mma.load_matrix,
    ops.StoreMatrix: mma.store_matrix,
    ops.WmmaLoad: wmma.load,
    ops.WmmaStore: wmma.store,
    ops.Wmma: wmma.multiply,
    ops.WgmmaFence: mma.wgmma_fence,
    ops.Wgmma: mma.wgmma,
    ops.TensorFence: tensorcore.tensor_fence,
    ops.TensorWait: tensorcore.tensor_wait,
    ops.TensorLoad: tensorcore.tensor_load,
    ops.TensorStore: tensorcore.tensor_store,
    ops.TensorCopy: tensorcore.tensor_copy,
    ops.TensorProduct: tensorcore.tensor_product,
    ops.TensorCommit: tensorcore.tensor_commit,
}
