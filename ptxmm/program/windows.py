"""32-bit addresses of ``.shared`` memory: offsets in its window, as ``cvta.to.shared`` and ``mov.u32`` give them.

An address in the window is the low half of the 64-bit address of the same byte (PTX ISA 5.1.8, 6.4.1: addresses are
zero-extended to the width that they are used with). Only an operand of ``.shared`` memory takes it; as a generic
address it lies outside every object. A variable has one address in the windows of all CTAs of its cluster (A26).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ptxmm.errors import PtxmmError
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx.ops import (
    Address,
    Alu,
    AsyncStore,
    Atomic,
    BulkCopy,
    Convert,
    CopyAsync,
    CopyAsyncArrive,
    CtaRank,
    Load,
    LoadMatrix,
    Mapa,
    MbarrierArrive,
    MbarrierInit,
    MbarrierTx,
    MbarrierWait,
    Op,
    Reg,
    Store,
    StoreMatrix,
    Sym,
    TensorCommit,
    TensormapCopyFence,
    TensormapReplace,
    WmmaLoad,
    WmmaStore,
)

BITS = 32
MASK = (1 << BITS) - 1
_FAR = 1 << 20
"""An address that far from an object has nothing to do with it."""

MOST_VARIABLES = 255
"""So many variables have addresses that differ in their low halves (``layout.address_of``)."""

_WITH_SPACE = (
    Load, Store, Atomic, MbarrierInit, MbarrierArrive, MbarrierTx, MbarrierWait, CopyAsyncArrive, TensormapReplace,
    LoadMatrix, StoreMatrix, TensorCommit, WmmaLoad, WmmaStore,
)  # fmt: skip


def is_shared(space: str | None) -> bool:
    """Whether ``space`` is one of the windows of shared memory."""
    return space is not None and space.startswith("shared")


def window_operands(op: Op) -> Iterator[Address]:
    """The address operands of ``op`` that are in ``.shared`` memory by the text of the instruction."""
    match op:
        case AsyncStore() if is_shared(op.space):
            yield from (op.address, op.mbarrier)
        case CopyAsync():
            yield op.dst
        case BulkCopy():
            sides = ((op.dst, op.dst_space), (op.src, op.src_space), (op.mbarrier, "shared::cluster"))
            yield from (side for side, space in sides if side is not None and is_shared(space))
        case TensormapCopyFence():
            yield op.src
        case _ if isinstance(op, _WITH_SPACE) and is_shared(op.space):
            yield op.address


def expand(objects: Mapping[str, MemoryObject], address: int) -> int:
    """The 64-bit address of the shared byte whose address in the window is ``address``; any other is unchanged."""
    if address >> BITS:
        return address
    for item in objects.values():
        low = item.address & MASK
        if item.space == "shared" and low <= address <= low + item.size:
            return item.address - low + address
    return address


def outside(objects: Mapping[str, MemoryObject], address: int) -> str:
    """In words: an access at ``address``, where no object is."""
    for item in objects.values():
        low = item.address & MASK
        if item.space == "shared" and low <= address < low + item.size:
            where = f"{address:#x} is an address in the window .shared, which cvta.shared makes a generic one"
            return f"access outside every object (address {where})"
    return f"access outside every object (address {address:#x}{_beside(objects, address)})"


def _beside(objects: Mapping[str, MemoryObject], address: int) -> str:
    """Which object an address is beside, or begins in; nothing where all are far away."""
    found = []
    for key, item in objects.items():
        end = item.address + item.size
        if item.address <= address < end:
            return f", beyond the end of {key}"
        distance = item.address - address if address < item.address else address - end
        found.append((distance, f"before {key}" if address < item.address else f"behind {key}"))
    distance, where = min(found, default=(_FAR, ""))
    if distance >= _FAR:
        return ""
    return f", {distance} bytes {where}" if distance else f", right {where}"


def takes_narrow_address(op: Op) -> bool:
    """Whether ``op`` makes a 32-bit address of a variable that it names."""
    match op:
        case Alu("mov", type_, _, sources):
            return type_.bits == BITS and any(isinstance(source, Sym) for source in sources)
        case Mapa(value=Sym(), type=type_) | CtaRank(value=Sym(), type=type_):
            return type_.bits == BITS
        case _:
            return False


def narrow(threads: Sequence[Thread]) -> bool:
    """Whether a thread may make or use a 32-bit address."""
    for thread in threads:
        for op in thread.body:
            if takes_narrow_address(op) or (isinstance(op, Convert) and (op.frm.bits, op.to.bits) == (64, BITS)):
                return True
            for place in window_operands(op):
                if isinstance(place.base, Reg) and thread.registers[place.base.name].bits == BITS:
                    return True
    return False


def check_windows(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> None:
    """Refuse 32-bit addresses in a test of so many variables that theirs are not distinct.

    Raises ``PtxmmError`` (kind ``unsupported``).
    """
    variables = sum(item.virtual == key for key, item in objects.items())
    if variables > MOST_VARIABLES and narrow(threads):
        message = f"32-bit addresses in a test of {variables} variables; at most {MOST_VARIABLES} are supported"
        raise PtxmmError(message, kind="unsupported")


def narrow_addresses(test: Test) -> dict[str, int]:
    """The address in the window of each shared variable, by key; empty in a test that has no 32-bit addresses."""
    if not narrow(test.threads):
        return {}
    return {
        key: item.address & MASK
        for key, item in test.objects.items()
        if item.space == "shared" and item.virtual == item.key
    }
