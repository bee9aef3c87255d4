"""The registers that the products of a warpgroup use: facts of a thread (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Op, Wgmma

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


def accessed(op: Op, among: frozenset[str]) -> list[str]:
    """Those of ``among`` that ``op``, which is no product, reads or writes."""
    return sorted(among & ({name for name, _ in uses(op)} | {name for name, _ in definitions(op)}))
