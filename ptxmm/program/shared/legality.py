"""Which memory an instruction may access: the state spaces of its operands, and whose memory the thread reaches.

An access of any other object has no defined behaviour (PTX ISA 5.1, 8.3, and the section of each instruction). What is
stated here is a fact about an instruction, the place of a thread and an object; when an access is made, and where, is
for the engines to find.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.program.test import MemoryObject, Placement
from ptxmm.ptx import ops

_READ_ONLY = {"const": "5.1.3", "param": "5.1.6"}


def rule(op: ops.Op, role: ops.Role = "data") -> ops.Rule:
    """The rule for the operand of ``op`` that has this ``role``, or for its only one."""
    if role in ("tensor", "matrix"):
        assert isinstance(op, ops.BulkCopy | ops.Wgmma | ops.TensorCopy | ops.TensorProduct)
        return op.described
    found = ops.touched(op)
    return next((touch for touch in found if touch.role == role), found[0]).rule


def refusal(held: ops.Rule, place: Placement, thread: int | None, item: MemoryObject) -> str | None:
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


def meets(held: ops.Rule, space: str) -> bool:
    """Whether an operand with the rule ``held`` may meet memory in ``space``, whosever it is."""
    if held.writes and space in _READ_ONLY:
        return False
    return space in {name.partition("::")[0] for name in held.spaces}


_OWNED = {"local": "5.1.5", "shared": "5.1.7"}


def _shared(held: ops.Rule, place: Placement, thread: int | None, item: MemoryObject, where: str) -> str | None:
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
    if place.host or place.path != item.owner:
        return False
    return place.cta is not None or thread is None or item.thread in (None, thread)


def same_cluster(place: Placement, item: MemoryObject) -> bool:
    """Whether the shared ``item`` lies in a CTA of the named cluster of a thread."""
    if item.owner is None or place.host or place.cluster is None:
        return False
    return (place.gpu, place.grid, place.cluster) == item.owner[:3]


def _listed(spaces: Sequence[str]) -> str:
    return " or ".join(f".{space}" for space in spaces) if spaces else "no memory"
