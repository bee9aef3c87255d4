"""Resolved instructions: what an instruction of PTX (or of the untyped dialect) does, every default filled in.

``ptxmm.ptx.isa`` makes these from the parsed text; both event layers read nothing else of an instruction.
The operations are in modules by family; all are imported from here. Each says how it is written and what its operands
do (``record``). Sources: PTX ISA 8.5 chapter 9, semantics table section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from ptxmm.ptx.ops.basic import (
    MBARRIER_BYTES,
    TENSORMAP_BYTES,
    Address,
    Division,
    Guard,
    Imm,
    Operand,
    Proxy,
    Reg,
    Role,
    Rule,
    Scope,
    Source,
    Sym,
    Touch,
    Type,
    Undetermined,
)
from ptxmm.ptx.ops.computation import (
    Alu,
    AluPair,
    Branch,
    Compare,
    Convert,
    Exit,
    Pack,
    Select,
    SetPredicate,
    Unpack,
    WarpExchange,
)
from ptxmm.ptx.ops.copies import (
    AsyncCommit,
    AsyncWait,
    BulkCopy,
    CopyAsync,
    CopyAsyncArrive,
    Place,
    TensormapCopyFence,
    TensormapReplace,
    copied,
)
from ptxmm.ptx.ops.matrices import MATRIX_ROW_BYTES, LoadMatrix, StoreMatrix, Wgmma, WgmmaFence, matrix_bytes
from ptxmm.ptx.ops.memory import (
    BULK_UNIT,
    MOST_BULK,
    AsyncStore,
    Atomic,
    ConvertAddress,
    CtaRank,
    Discard,
    Element,
    IsSpace,
    Load,
    Mapa,
    Multimem,
    Nothing,
    Store,
    StoreBulk,
    access_bytes,
    elements,
)
from ptxmm.ptx.ops.synchronization import (
    Barrier,
    BarrierReduction,
    ClusterBarrier,
    Fence,
    GenericToAsyncFence,
    GridControl,
    MbarrierArrive,
    MbarrierInit,
    MbarrierInitFence,
    MbarrierTx,
    MbarrierWait,
    PendingCount,
    ProxyFence,
    SetMaxRegisters,
    TensormapFence,
    WarpBarrier,
)
from ptxmm.ptx.ops.tensorcore import (
    COLUMN_BYTES,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensorProduct,
    TensorStore,
    TensorWait,
)
from ptxmm.ptx.ops.wmma import Tile, Wmma, WmmaLoad, WmmaStore

__all__ = [
    "BULK_UNIT",
    "COLUMN_BYTES",
    "COMPUTING",
    "FAMILIES",
    "MATRIX_ROW_BYTES",
    "MBARRIER_BYTES",
    "MOST_BULK",
    "TENSORMAP_BYTES",
    "Address",
    "Addressless",
    "Alu",
    "AluPair",
    "AsyncCommit",
    "AsyncStore",
    "AsyncWait",
    "Atomic",
    "Barrier",
    "BarrierReduction",
    "Branch",
    "BulkCopy",
    "ClusterBarrier",
    "Compare",
    "Computing",
    "Convert",
    "ConvertAddress",
    "CopyAsync",
    "CopyAsyncArrive",
    "CtaRank",
    "Discard",
    "Division",
    "Element",
    "Exit",
    "Fence",
    "GenericToAsyncFence",
    "GridControl",
    "Guard",
    "Imm",
    "IsSpace",
    "Load",
    "LoadMatrix",
    "Mapa",
    "MbarrierArrive",
    "MbarrierInit",
    "MbarrierInitFence",
    "MbarrierTx",
    "MbarrierWait",
    "Multimem",
    "Nothing",
    "Op",
    "Operand",
    "Pack",
    "PendingCount",
    "Place",
    "Proxy",
    "ProxyFence",
    "Reg",
    "Role",
    "Rule",
    "Scope",
    "Select",
    "SetMaxRegisters",
    "SetPredicate",
    "Source",
    "Store",
    "StoreBulk",
    "StoreMatrix",
    "Straight",
    "Sym",
    "TensorCommit",
    "TensorCopy",
    "TensorFence",
    "TensorLoad",
    "TensorOp",
    "TensorProduct",
    "TensorStore",
    "TensorWait",
    "TensormapCopyFence",
    "TensormapFence",
    "TensormapReplace",
    "Tile",
    "Touch",
    "Type",
    "Undetermined",
    "Unpack",
    "WarpBarrier",
    "WarpExchange",
    "Wgmma",
    "WgmmaFence",
    "Wmma",
    "WmmaLoad",
    "WmmaStore",
    "access_bytes",
    "copied",
    "elements",
    "matrix_bytes",
    "touched",
]

FAMILIES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "CTA barrier": (Barrier, BarrierReduction),
        "warp": (WarpBarrier, WarpExchange),
        "cluster barrier": (ClusterBarrier,),
        "mbarrier": (MbarrierInit, MbarrierArrive, MbarrierTx, MbarrierWait, MbarrierInitFence),
        "asynchronous": (
            CopyAsync, CopyAsyncArrive, BulkCopy, AsyncStore, AsyncCommit, AsyncWait, WgmmaFence, Wgmma,
            GenericToAsyncFence,
        ),
        "multimem": (Multimem,),
        "tensor memory": (
            TensorFence, TensorWait, TensorLoad, TensorStore, TensorCopy, TensorProduct, TensorCommit,
        ),
        "matrix": (LoadMatrix, StoreMatrix, WmmaLoad, WmmaStore, Wmma),
        "registers": (SetMaxRegisters,),
        "tensor map": (TensormapFence, TensormapReplace, TensormapCopyFence),
        "grid": (GridControl,),
    }
)  # fmt: skip
"""The instructions that threads of a grid take part in together or that work beside them, by what they are about."""

TensorOp = TensorFence | TensorWait | TensorLoad | TensorStore | TensorCopy | TensorProduct | TensorCommit

Computing = (
    Alu | AluPair | Convert | SetPredicate | Select | Pack | Unpack | PendingCount | Mapa | CtaRank | IsSpace
    | ConvertAddress | Nothing
)  # fmt: skip
"""The instructions that do nothing but give registers values."""
COMPUTING: tuple[type, ...] = get_args(Computing)

Straight = (
    Computing | Load | Store | Atomic | Fence | ProxyFence | TensormapFence | GenericToAsyncFence | MbarrierInitFence
    | Barrier | BarrierReduction | WarpBarrier | ClusterBarrier | MbarrierInit | MbarrierArrive | MbarrierTx
    | MbarrierWait | CopyAsync | CopyAsyncArrive | AsyncCommit | AsyncWait | BulkCopy | AsyncStore | TensormapReplace
    | TensormapCopyFence | GridControl | Discard | StoreBulk | WarpExchange | LoadMatrix | StoreMatrix | WgmmaFence
    | Wgmma | TensorOp | Multimem | WmmaLoad | WmmaStore | Wmma | SetMaxRegisters
)  # fmt: skip
"""What the next instruction comes after."""

Addressless = (
    Computing | Fence | ProxyFence | GenericToAsyncFence | MbarrierInitFence | Barrier | BarrierReduction | WarpBarrier
    | ClusterBarrier | AsyncCommit | AsyncWait | GridControl | WarpExchange | WgmmaFence | Wgmma | TensorFence
    | TensorWait | Wmma | SetMaxRegisters | Branch | Exit
)  # fmt: skip
"""The instructions without an operand that is an address."""

Op = Straight | Branch | Exit
"""Every operation. What distinguishes operations ends in ``assert_never``, so that a new one is a type error until all
of that knows it."""


def touched(op: Op) -> tuple[Touch, ...]:
    """What ``op`` accesses at its operands that are addresses: every other operation is a type error without it."""
    return () if isinstance(op, Addressless) else op.touches
