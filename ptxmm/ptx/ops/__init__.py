"""Resolved instructions: what an instruction of PTX (or of the untyped dialect) does, every default filled in.

``ptxmm.ptx.isa`` makes these from the parsed text; both event layers read nothing else of an instruction.
The operations are in modules by family, each with its place in a union; all are imported from here. Each says how it is
written and what its operands do (``record``). Sources: PTX ISA 8.5 chapter 9, semantics table section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from ptxmm.ptx.ops.basic import *
from ptxmm.ptx.ops.computation import *
from ptxmm.ptx.ops.copies import *
from ptxmm.ptx.ops.matrices import *
from ptxmm.ptx.ops.memory import *
from ptxmm.ptx.ops.synchronization import *
from ptxmm.ptx.ops.tensorcore import *
from ptxmm.ptx.ops.wmma import *

FAMILIES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "CTA barrier": (Barrier, BarrierReduction),
        "warp": (WarpBarrier, WarpExchange),
        "cluster barrier": (ClusterBarrier,),
        "mbarrier": (*get_args(MbarrierOp), MbarrierInitFence),
        "asynchronous": (
            CopyAsync, CopyAsyncArrive, BulkCopy, AsyncStore, AsyncCommit, AsyncWait, WgmmaFence, Wgmma,
            GenericToAsyncFence,
        ),
        "multimem": (Multimem,),
        "tensor memory": (*get_args(TensorOp), *get_args(WholeOnly)),
        "matrix": (LoadMatrix, StoreMatrix, WmmaLoad, WmmaStore, Wmma),
        "registers": (SetMaxRegisters,),
        "tensor map": (TensormapFence, TensormapReplace, TensormapCopyFence),
        "grid": (GridControl,),
    }
)  # fmt: skip
"""The instructions that threads of a grid take part in together or that work beside them, by what they are about."""

Computing = Calculation | AddressValue | PendingCount | Nothing
"""The instructions that do nothing but give registers values."""
COMPUTING: tuple[type, ...] = get_args(Computing)

Addressless = (
    Computing | FenceOp | BarrierOp | GroupOp | GridControl | WarpExchange | WgmmaFence | TensorFence | TensorWait
    | Wmma | SetMaxRegisters | TensorDealloc | TensorRelinquish | Branch | Exit
)  # fmt: skip
"""The instructions without an operand that is an address."""

Straight = (
    Computing | Access | FenceOp | TensormapFence | BarrierOp | MbarrierOp | Copying | GroupOp | GridControl
    | WarpExchange | MatrixAccess | WgmmaFence | Wgmma | TensorOp | WmmaAccess | Wmma | SetMaxRegisters
)  # fmt: skip
"""What the next instruction comes after."""

Op = Straight | WholeOnly | Branch | Exit
"""Every operation; those in ``WholeOnly`` are in no test of the engines. What distinguishes operations ends in
``assert_never``, so that a new one is a type error until all of that knows it."""


def touched(op: Op) -> tuple[Touch, ...]:
    """What ``op`` accesses at its operands that are addresses: every other operation is a type error without it."""
    return () if isinstance(op, Addressless) else op.touches
