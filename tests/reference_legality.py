"""What an instruction may access, for the reference: one table of the kinds of memory that each operand may meet.

Memory is of a kind as the executing thread sees it (PTX ISA 5.1): ``own`` shared memory is that of its CTA, ``near``
that of another CTA of its cluster, ``far`` any other; local memory is its own, or ``far``. Host threads have neither.
"""

from __future__ import annotations

from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops

READABLE = {"global", "const", "param", "local", "own", "near"}
WRITABLE = {"global", "local", "own", "near"}
STRONG = {"global", "own", "near"}
NAMED = {
    "global": {"global", "param"},  # the window of parameters is in that of global memory (6.4.1.1)
    "const": {"const"},
    "local": {"local"},
    "param": {"param"},
    "param::entry": {"param"},
    "param::func": {"param"},
    "shared": {"own"},
    "shared::cta": {"own"},
    "shared::cluster": {"own", "near"},
    "tmem": {"tmem"},
}
UNWRITABLE = {"const", "param"}


def kind_of(test: Test, thread: int, item: MemoryObject) -> str:
    place = test.threads[thread].placement
    if item.space == "local":
        return "local" if item.thread in (None, thread) and not place.host else "far"
    if item.space != "shared":
        return item.space
    if place.host or item.owner is None:
        return "far" if place.host else "own"
    if (place.gpu, place.grid, place.cluster, place.cta) == item.owner and (
        place.cta is not None or item.thread in (None, thread)
    ):
        return "own"
    alone = place.cluster is None
    return "far" if alone or (place.gpu, place.grid, place.cluster) != item.owner[:3] else "near"


def named(space: str | None, otherwise: set[str]) -> set[str]:
    """The kinds of memory in a state space; ``otherwise`` where none is written."""
    return otherwise if space is None else NAMED[space]


def allowed(op: ops.Op, operand: str) -> set[str]:
    """The kinds of memory at the operand of ``op`` that is called as its field is; ``matrix``: by a descriptor;
    ``tensor``: by a tensor map."""
    if operand == "matrix":
        return {"own"}
    if operand == "tensor":
        return {"global"}
    if operand == "tensormap":
        return {"global", "const", "param"}
    space: str | None = getattr(op, "space", None)
    match op:
        case ops.Load():
            plain = {"global"} if op.mmio or op.nc else READABLE if op.scope is None or op.volatile else STRONG
            return plain & named(space, READABLE)
        case ops.Store():
            plain = {"global"} if op.mmio else WRITABLE if op.scope is None or op.volatile else STRONG
            return (plain & named(space, WRITABLE)) - UNWRITABLE
        case ops.Atomic():
            return STRONG & named(space, {"global"} if len(op.operands) > 1 else STRONG)
        case ops.Multimem() | ops.Discard() | ops.TensormapFence():
            return {"global"}
        case ops.TensormapReplace():
            return {"global", "own"} & named(space, STRONG)
        case ops.CopyAsync() | ops.TensormapCopyFence():
            into_shared = isinstance(op, ops.CopyAsync)
            return {"own"} if (operand == "dst") == into_shared else {"global"}
        case ops.BulkCopy(src_space=source, dst_space=target):
            there = NAMED[source if operand == "src" else target] - {"param"}
            return {"near"} if operand == "dst" and (source, target) == ("shared::cta", "shared::cluster") else there
        case ops.AsyncStore():
            return {"near"}
        case ops.WmmaLoad() | ops.WmmaStore():
            return {"global", "own"} & named(space, STRONG)
        case ops.MbarrierArrive():
            here = op.dst is not None or op.no_complete
            return {"own"} if here else named(space, {"own", "near"})
        case ops.MbarrierTx():
            return named(space, {"own", "near"})
        case ops.TensorCommit():
            return {"own", "near"}
        case ops.LoadMatrix() | ops.StoreMatrix() | ops.MbarrierInit() | ops.MbarrierWait() | ops.CopyAsyncArrive():
            return {"own"}
        case ops.StoreBulk():
            return {"own"}
    return {"tmem"}


def may(test: Test, thread: int, op: ops.Op, operand: str, item: MemoryObject) -> bool:
    return kind_of(test, thread, item) in allowed(op, operand)


def operand_of(op: ops.Op, address: ops.Address) -> str:
    """The field of ``op`` that holds ``address``."""
    names = ("tensormap", "mbarrier", "dst", "src", "address")
    found = (name for name in names if getattr(op, name, None) is address)
    return next(found, "address")  # one of several
