"""The registers that the products of a warpgroup use: facts of a thread (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Alu, Imm, Op, Reg, Wgmma

UNFENCED = "wgmma.mma_async with no wgmma.fence before it (PTX ISA 9.7.16.7.1)"


def changed(register: str) -> str:
    """Why a product may not use a register."""
    return f"wgmma.mma_async uses register {register}, accessed with no wgmma.fence since (PTX ISA 9.7.16.7.1)"


def unfinished(register: str) -> str:
    """Why an instruction may not access a register."""
    return (
        f"an access of register {register} of a wgmma.mma_async that no wgmma.wait_group has waited for "
        "(PTX ISA 9.7.16.7.3)"
    )


def fragments(op: Wgmma) -> tuple[str, ...]:
    """The registers that hold this thread's part of the matrix A."""
    return tuple(r.name for r in op.a) if isinstance(op.a, tuple) else ()


def registers(body: Sequence[Op]) -> frozenset[str]:
    """The registers of all products of a thread: accumulators and fragments of A."""
    products = [op for op in body if isinstance(op, Wgmma)]
    return frozenset(r.name for op in products for r in op.dst).union(*(fragments(op) for op in products))


def copied(op: Op) -> tuple[str, str | None] | None:
    """For ``mov`` of a whole register or a constant: the register that it writes, and the one that it copies."""
    if not isinstance(op, Alu) or op.op != "mov" or len(op.sources) != 1 or not isinstance(op.sources[0], Reg | Imm):
        return None
    source = op.sources[0]
    return op.dst.name, source.name if isinstance(source, Reg) else None


def feeding(body: Sequence[Op], named: frozenset[str]) -> frozenset[str]:
    """The registers ``named``, and all that are copied to these, by however many ``mov``."""
    copies = [pair for op in body if (pair := copied(op)) is not None]
    found, more = named, named
    while more:
        more = frozenset(source for target, source in copies if target in found and source is not None) - found
        found |= more
    return found


def accessed(op: Op, named: frozenset[str], fed: frozenset[str]) -> list[str]:
    """Those of ``named`` that ``op``, which is no product, reads or writes, and of ``fed`` that it writes."""
    read, written = ({name for name, _ in found} for found in (uses(op), definitions(op)))
    return sorted((named & (read | written)) | (fed & written))
