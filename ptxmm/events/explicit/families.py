"""Instructions that few programs have: copies, matrices, exchanges of warps, multimem. See ``interpreter``."""

from __future__ import annotations

from typing import assert_never

from ptxmm.events.explicit.accesses import multimem
from ptxmm.events.explicit.asynchronous import copies, tensors
from ptxmm.events.explicit.barriers import warps
from ptxmm.events.explicit.machine import Machine
from ptxmm.events.explicit.matrices import mma, tensorcore, wmma
from ptxmm.ptx import ops

Few = (
    ops.CopyAsync | ops.CopyAsyncArrive | ops.AsyncCommit | ops.AsyncWait | ops.BulkCopy | ops.AsyncStore |
    ops.TensormapReplace | ops.TensormapCopyFence | ops.Multimem | ops.BarrierReduction | ops.WarpExchange |
    ops.LoadMatrix | ops.StoreMatrix | ops.WmmaLoad | ops.WmmaStore | ops.Wmma | ops.WgmmaFence | ops.Wgmma |
    ops.TensorOp
)  # fmt: skip


def execute(machine: Machine, op: Few) -> None:
    """What ``op`` does where it happens."""
    match op:
        case ops.CopyAsync():
            copies.copy_async(machine, op)
        case ops.CopyAsyncArrive():
            copies.copy_async_arrive(machine, op)
        case ops.AsyncCommit():
            copies.commit(machine, op)
        case ops.AsyncWait():
            copies.wait(machine, op)
        case ops.BulkCopy():
            tensors.bulk_copy(machine, op)
        case ops.AsyncStore():
            copies.async_store(machine, op)
        case ops.TensormapReplace():
            tensors.tensormap_replace(machine, op)
        case ops.TensormapCopyFence():
            tensors.tensormap_copy_fence(machine, op)
        case ops.Multimem():
            multimem.multimem(machine, op)
        case ops.BarrierReduction():
            warps.barrier_reduction(machine, op)
        case ops.WarpExchange():
            warps.exchange(machine, op)
        case ops.LoadMatrix():
            mma.load_matrix(machine, op)
        case ops.StoreMatrix():
            mma.store_matrix(machine, op)
        case ops.WmmaLoad():
            wmma.load(machine, op)
        case ops.WmmaStore():
            wmma.store(machine, op)
        case ops.Wmma():
            wmma.multiply(machine, op)
        case ops.WgmmaFence():
            mma.wgmma_fence(machine, op)
        case ops.Wgmma():
            mma.wgmma(machine, op)
        case ops.TensorFence():
            tensorcore.tensor_fence(machine, op)
        case ops.TensorWait():
            tensorcore.tensor_wait(machine, op)
        case ops.TensorLoad():
            tensorcore.tensor_load(machine, op)
        case ops.TensorStore():
            tensorcore.tensor_store(machine, op)
        case ops.TensorCopy():
            tensorcore.tensor_copy(machine, op)
        case ops.TensorProduct():
            tensorcore.tensor_product(machine, op)
        case ops.TensorCommit():
            tensorcore.tensor_commit(machine, op)
        case _:
            assert_never(op)
