"""Which memory an instruction may access: the state spaces of its operands, and whose memory the thread reaches.

An access of any other object has no defined behaviour (PTX ISA 5.1, 8.3, and the section of each instruction). What is
stated here is a fact about an instruction, the place of a thread and an object; when an access is made, and where, is
for the engines to find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ptxmm.program.test import MemoryObject, Placement
from ptxmm.ptx import ops

Role = Literal["data", "source", "destination", "mbarrier", "tensor map", "tensor", "matrix"]
"""Which operand of an instruction an address is; ``data`` where there is but one. ``tensor``: what a tensor map
describes; ``matrix``: what a matrix descriptor does."""

_CTA, _CLUSTER = ("shared::cta",), ("shared::cluster",)
_READABLE = ("global", "const", "param", "local", "shared::cluster")
_WRITABLE = ("global", "local", "shared::cluster")
_STRONG = ("global", "shared::cluster")
_READ_ONLY = {"const": "5.1.3", "param": "5.1.6"}


class Rule(Struct, frozen=True):
    """What holds of an operand that is an address.

    ``form``: the state space whose addresses it takes; None: a generic address. ``spaces``: where the byte has to lie,
    ``shared::cta`` being the memory of the CTA of the thread and ``shared::cluster`` that of all CTAs of its cluster;
    ``section``: of the PTX ISA. ``writes``: whether memory changes there; ``away``: it is in another CTA than the
    thread.
    """

    form: str | None
    spaces: tuple[str, ...]
    section: str
    writes: bool = False
    away: bool = False


def rule(op: ops.Op, role: Role = "data") -> Rule:
    """The rule for the operand of ``op`` that has this ``role``."""
    match op:
        case ops.Load():
            return Rule(op.space, _read_spaces(op), "9.7.10.9" if op.nc else "9.7.10.8")
        case ops.Store():
            weak = op.scope is None or op.volatile
            generic = ("global",) if op.mmio else _WRITABLE if weak else _STRONG
            return Rule(op.space, _spaces(op.space, generic), "9.7.10.11", writes=True)
        case ops.Atomic():
            vector = len(op.operands) > 1
            section = "9.7.14.5" if op.returns else "9.7.14.6"
            return Rule(op.space, _spaces(op.space, ("global",) if vector else _STRONG), section, writes=True)
        case ops.Multimem():
            return Rule(op.space, ("global",), "9.7.10.13", writes=op.kind != "ld_reduce")
        case ops.Discard():
            return Rule(op.space, ("global",), "9.7.10.16", writes=True)
        case ops.StoreBulk():
            return Rule(op.space, _CTA, "9.7.9.13 of version 9.0", writes=True)
        case ops.AsyncStore():
            section = "9.7.10.12" if op.reduction is None else "9.7.14.7"
            return Rule(op.space, _CLUSTER, section, writes=True, away=True)
        case ops.CopyAsync():
            if role == "destination":
                return Rule("shared::cta", _CTA, "9.7.10.24.3", writes=True)
            return Rule("global", ("global",), "9.7.10.24.3")
        case ops.BulkCopy():
            return _bulk(op, role)
        case ops.TensormapFence():
            return Rule(None, ("global",), "9.7.14.4")
        case ops.TensormapReplace():
            return Rule(op.space, _spaces(op.space, ("global", "shared::cta")), "9.7.10.25", writes=True)
        case ops.TensormapCopyFence():
            if role == "destination":
                return Rule("global", ("global",), "9.7.14.16", writes=True)
            return Rule("shared::cta", _CTA, "9.7.14.16")
        case ops.LoadMatrix() | ops.StoreMatrix():
            stores = isinstance(op, ops.StoreMatrix)
            return Rule(op.space, _spaces(op.space, _CTA), "9.7.15.4.16" if stores else "9.7.15.4.15", writes=stores)
        case ops.WmmaLoad() | ops.WmmaStore():
            stores = isinstance(op, ops.WmmaStore)
            section = "9.7.15.3.4" if stores else "9.7.15.3.3"
            return Rule(op.space, _spaces(op.space, ("global", "shared::cta")), section, writes=stores)
        case ops.Wgmma():
            return Rule("shared::cta", _CTA, "9.7.16.5.2")
        case ops.TensorCopy() | ops.TensorProduct() if role == "matrix":
            return Rule("shared::cta", _CTA, "9.7.16 of version 9.0")
        case _:
            return _mbarrier(op)


_Other = (
    ops.MbarrierInit | ops.MbarrierArrive | ops.MbarrierTx | ops.MbarrierWait | ops.CopyAsyncArrive | ops.TensorOp
    | ops.Addressless
)  # fmt: skip


def _mbarrier(op: _Other) -> Rule:
    """The rule for the operand of an operation on mbarriers (9.7.14.15.8: remote ones can be arrived at only)."""
    match op:
        case ops.MbarrierInit():
            return Rule(op.space, _CTA, "9.7.14.15.10" if op.count is None else "9.7.14.15.9", writes=True)
        case ops.MbarrierArrive():
            here = op.dst is not None or op.no_complete
            section = "9.7.14.15.14" if op.drop else "9.7.14.15.13"
            return Rule(op.space, _CTA if here else _spaces(op.space, _CLUSTER), section, writes=True)
        case ops.MbarrierTx():
            section = "9.7.14.15.11" if op.kind == "expect_tx" else "9.7.14.15.12"
            return Rule(op.space, _spaces(op.space, _CLUSTER), section, writes=True)
        case ops.MbarrierWait():
            return Rule(op.space, _CTA, "9.7.14.15.16")
        case ops.CopyAsyncArrive():
            return Rule(op.space, _CTA, "9.7.14.15.15", writes=True)
        case ops.TensorCommit():
            return Rule(op.space, _CLUSTER, "9.7.16 of version 9.0", writes=True)
    return Rule("tmem", ("tmem",), "9.7.16 of version 9.0")


def _bulk(op: ops.BulkCopy, role: Role) -> Rule:
    tensor = op.tensormap is not None
    if op.reduction is None:
        section = "9.7.10.24.9" if tensor else "9.7.10.24.6"
    else:
        section = "9.7.10.24.10" if tensor else "9.7.10.24.7"
    match role:
        case "tensor map":
            return Rule(None, ("global", "const", "param"), section)
        case "tensor":
            return Rule("global", ("global",), section, writes=op.dst is None)
        case "mbarrier":
            return Rule(op.dst_space, _spaces(op.dst_space, ()), section, writes=True)
        case "source":
            return Rule(op.src_space, _spaces(op.src_space, ()), section)
    away = (op.src_space, op.dst_space) == ("shared::cta", "shared::cluster")
    return Rule(op.dst_space, _spaces(op.dst_space, ()), section, writes=True, away=away)


def _read_spaces(op: ops.Load) -> tuple[str, ...]:
    if op.mmio or op.nc:
        return ("global",)
    # The window of kernel parameters is a part of that of .global (6.4.1.1).
    if op.space == "global" and op.scope is None:
        return ("global", "param")
    return _spaces(op.space, _READABLE if op.scope is None or op.volatile else _STRONG)


def _spaces(space: str | None, generic: tuple[str, ...]) -> tuple[str, ...]:
    """Where the byte lies that an instruction names the state space of; ``.shared`` is ``.shared::cta`` (5.1.7)."""
    if space is None:
        return generic
    return _CTA if space == "shared" else (space.partition("::")[0] if space.startswith("param") else space,)


def refusal(held: Rule, place: Placement, thread: int | None, item: MemoryObject) -> str | None:
    """Why a thread at ``place`` may not access ``item`` with an operand that has the rule ``held``; None if it may.

    ``thread``: its number, or None for one that names the variable, so that it is its own if any is. Proxy aliases and
    multimem addresses have rules besides.
    """
    where = f"{item.key} is .{item.space} memory"
    if place.host and item.space in ("shared", "local"):
        return f"{where}, which host threads have no access to (PTX ISA {_OWNED[item.space]})"
    if item.space == "local" and thread is not None and item.thread not in (None, thread):
        return f"{where} of another thread, and private to it (PTX ISA 5.1.5)"
    if held.writes and item.space in _READ_ONLY:
        return f"{where}, which is read-only (PTX ISA {_READ_ONLY[item.space]})"
    if item.space == "shared":
        return _shared(held, place, thread, item, where)
    if item.space not in held.spaces:
        return f"{where}, but the address has to be in {_listed(held.spaces)} (PTX ISA {held.section})"
    return None


def apart(op: ops.Op, target: MemoryObject, mbarrier: MemoryObject) -> str | None:
    """Why ``op`` may not write to ``target`` and complete a phase of ``mbarrier``; None if it may."""
    if not isinstance(op, ops.AsyncStore) or (target.owner, target.thread) == (mbarrier.owner, mbarrier.thread):
        return None
    return f"{target.key} and the mbarrier {mbarrier.key} are in different CTAs (PTX ISA {rule(op).section})"


def meets(held: Rule, space: str) -> bool:
    """Whether an operand with the rule ``held`` may meet memory in ``space``, whosever it is."""
    if held.writes and space in _READ_ONLY:
        return False
    return space in {name.partition("::")[0] for name in held.spaces}


_OWNED = {"local": "5.1.5", "shared": "5.1.7"}


def _shared(held: Rule, place: Placement, thread: int | None, item: MemoryObject, where: str) -> str | None:
    near = own_cta(place, thread, item)
    if not near and not same_cluster(place, item):
        return f"{where} of a CTA outside the cluster of this thread (PTX ISA 5.1.7)"
    if "shared::cluster" in held.spaces:
        if held.away and near:
            where = f"{item.key} is in the CTA of this thread"
            return f"{where}, but has to be in another one of the cluster (PTX ISA {held.section})"
        return None
    if "shared::cta" not in held.spaces:
        return f"{where}, but the address has to be in {_listed(held.spaces)} (PTX ISA {held.section})"
    if not near:
        spaces = _listed(held.spaces)
        return f"{where} of another CTA, but the address has to be in {spaces} (PTX ISA {held.section}, 5.1.7)"
    return None


def own_cta(place: Placement, thread: int | None, item: MemoryObject) -> bool:
    """Whether the shared ``item`` lies in the CTA of a thread."""
    if item.owner is None:
        return True
    if place.host or (place.gpu, place.grid, place.cluster, place.cta) != item.owner:
        return False
    return place.cta is not None or thread is None or item.thread in (None, thread)


def same_cluster(place: Placement, item: MemoryObject) -> bool:
    """Whether the shared ``item`` lies in a CTA of the named cluster of a thread."""
    if item.owner is None or place.host or place.cluster is None:
        return False
    return (place.gpu, place.grid, place.cluster) == item.owner[:3]


def _listed(spaces: Sequence[str]) -> str:
    return " or ".join(f".{space}" for space in spaces) if spaces else "no memory"
