"""The tensor core of the 5th generation and its tensor memory (PTX ISA 8.6 for sm_100a; 9.7.16 of PTX ISA 9.0).

Addresses in tensor memory name a variable: ``Address`` is in bytes, four for each column of the one lane that a
variable stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxmm.ptx.ops.basic import Address, Guard, Operand, Reg, Source

COLUMN_BYTES = 4


@dataclass(frozen=True, slots=True)
class TensorFence:
    """``tcgen05.fence::before_thread_sync`` and ``::after_thread_sync`` (9.7.16.11)."""

    kind: Literal["before", "after"]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensorWait:
    """``tcgen05.wait::ld`` and ``::st`` (9.7.16.8): waits for what earlier ``tcgen05.ld``, or ``.st``, access."""

    kind: Literal["ld", "st"]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensorLoad:
    """``tcgen05.ld.sync.aligned.32x32b.xN.b32``: reads a column of the own lane for each register, asynchronously."""

    dst: tuple[Reg, ...]
    address: Address
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensorStore:
    """``tcgen05.st.sync.aligned.32x32b.xN.b32``: writes a column for each value, asynchronously."""

    address: Address
    values: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """``tcgen05.cp.cta_group::1.SHAPE``: copies ``size`` bytes for the lane from shared memory to tensor memory.

    ``src``: the descriptor of the matrix, here the 64-bit address of what the lane gets.
    """

    dst: Address
    src: Operand
    size: int
    shape: str
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """``tcgen05.mma.cta_group::1.kind::KIND``: D = A*B or A*B+D, with D and perhaps A in tensor memory.

    ``dst``: the column of D. ``a``: an address in tensor memory, or the descriptor of A; ``b``: that of B: addresses in
    shared memory, as of ``Wgmma``. ``descriptor``: of the instruction; ``enable``: the predicate whether D is added.
    """

    dst: Address
    a: Address | Operand
    b: Operand
    descriptor: Operand
    enable: Reg
    kind: str
    source: Source
    guard: Guard | None = None
    enable_negated: bool = False


@dataclass(frozen=True, slots=True)
class TensorCommit:
    """``tcgen05.commit.cta_group::1.mbarrier::arrive::one``: an arrival on the mbarrier at ``address`` once all earlier
    ``tcgen05.mma`` and ``.cp`` of the thread are complete."""

    address: Address
    space: str | None
    source: Source
    guard: Guard | None = None
