"""Addresses of the reference: the numbers by which an operand finds a variable (PTX ISA 6.4.1.1, 9.7.10.19, .22).

Where the variables lie in each window is taken from the test; which number means which variable is stated here again.
"""

from __future__ import annotations

from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from tests.reference_legality import kind_of

WINDOWS = {"shared", "local", "const", "param"}
MINE = {"own", "local", "const", "param"}
LOST = 1 << 63


def name_of(test: Test, thread: int, item: MemoryObject) -> int:
    """What ``mov`` gives for the name of ``item``."""
    if not item.window:
        return item.address
    return item.window if kind_of(test, thread, item) in MINE else item.mapped


def form_of(op: ops.Op, operand: str) -> str | None:
    """The state space whose addresses an operand takes, None for generic ones."""
    match op:
        case ops.BulkCopy() if operand in ("dst", "src", "mbarrier"):
            return {"dst": op.dst_space, "src": op.src_space, "mbarrier": "shared"}[operand]
        case ops.BulkCopy():
            return None
        case ops.CopyAsync() | ops.TensormapCopyFence():
            return "shared" if (operand == "dst") == isinstance(op, ops.CopyAsync) else "global"
    return getattr(op, "space", None)


def starts(test: Test, thread: int, op: ops.Op, operand: str, item: MemoryObject) -> list[int]:
    """The addresses by which the operand finds the first byte of ``item``."""
    form = form_of(op, operand)
    space = None if form is None else form.partition("::")[0]
    inside = [item.window] if item.window and kind_of(test, thread, item) in MINE else []
    inside += [item.mapped] if item.mapped else []
    if operand == "matrix":
        return [item.address, *inside]
    if space in WINDOWS:
        return inside if space == item.space else []
    return [item.address]


def convert(test: Test, thread: int, op: ops.ConvertAddress, address: int) -> int:
    """``cvta`` and ``cvta.to``; what is in no such window is lost."""
    space = op.space.partition("::")[0]
    for item in test.objects.values():
        if address == 0 or item.space != space or item.virtual != item.key or not item.window:
            continue
        kind = kind_of(test, thread, item)
        if op.to:
            if address - item.address in range(item.size + 1):
                to = item.window if kind in MINE else item.mapped
                return to + address - item.address if to else address | LOST
            continue
        froms = [item.window] if kind in MINE else []
        froms += [item.mapped] if kind == "own" or op.space == "shared::cluster" else []
        for start in froms:
            if address - start in range(item.size + 1):
                return item.address + address - start
    return address | LOST if address else 0


def whole(test: Test, thread: int, op: ops.Mapa | ops.CtaRank, address: int) -> int:
    """The generic address of what ``op`` is about."""
    if op.type.bits == 64 and op.space is None:
        return address
    for item in test.objects.values():
        own = kind_of(test, thread, item) in MINE
        for start in (item.mapped, item.window if own else 0):
            if item.space == "shared" and start and address - start in range(item.size + 1):
                return item.address + address - start
    return LOST
