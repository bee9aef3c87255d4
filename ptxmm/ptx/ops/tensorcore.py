"""The tensor core of the 5th generation and its tensor memory (PTX ISA 8.6 for sm_100a; 9.7.16 of PTX ISA 9.0).

Addresses in tensor memory name a variable: ``Address`` is in bytes, four for each column of the one lane that a
variable stands for.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from ptxmm.ptx.ops.basic import CLUSTER, CTA, Address, Guard, Operand, Reg, Rule, Source, Touch, mbarrier_touch

COLUMN_BYTES = 4
_SECTION = "9.7.16 of version 9.0"
_READ, _WRITTEN = (Rule("tmem", ("tmem",), _SECTION, writes) for writes in (False, True))
_MATRIX = Rule("shared::cta", CTA, _SECTION)


class TensorFence(Struct, frozen=True):
    """``tcgen05.fence::before_thread_sync`` and ``::after_thread_sync`` (9.7.16.11)."""

    opcode: ClassVar = "tcgen05.fence::{kind}_thread_sync"
    roles: ClassVar = ""
    kind: Literal["before", "after"]
    source: Source
    guard: Guard | None = None


class TensorWait(Struct, frozen=True):
    """``tcgen05.wait::ld`` and ``::st`` (9.7.16.8): waits for what earlier ``tcgen05.ld``, or ``.st``, access."""

    opcode: ClassVar = "tcgen05.wait::{kind} sync.aligned"
    roles: ClassVar = ""
    kind: Literal["ld", "st"]
    source: Source
    guard: Guard | None = None


class TensorLoad(Struct, frozen=True):
    """``tcgen05.ld.sync.aligned.32x32b.xN.b32``: reads a column of the own lane for each register, asynchronously."""

    opcode: ClassVar = "tcgen05.ld.sync.aligned.32x32b x{dst} b32"
    roles: ClassVar = "=dst:b32* [address/]"
    dst: tuple[Reg, ...]
    address: Address
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (Touch(self.address, COLUMN_BYTES * len(self.dst), COLUMN_BYTES, _READ),)


class TensorStore(Struct, frozen=True):
    """``tcgen05.st.sync.aligned.32x32b.xN.b32``: writes a column for each value, asynchronously."""

    opcode: ClassVar = "tcgen05.st.sync.aligned.32x32b x{values} b32"
    roles: ClassVar = "[address/] values:b32*"
    address: Address
    values: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (Touch(self.address, COLUMN_BYTES * len(self.values), COLUMN_BYTES, _WRITTEN),)


class TensorCopy(Struct, frozen=True):
    """``tcgen05.cp.cta_group::1.SHAPE``: copies ``size`` bytes for the lane from shared memory to tensor memory.

    ``src``: the descriptor of the matrix, here the 64-bit address of what the lane gets.
    """

    opcode: ClassVar = "tcgen05.cp.cta_group::1 {shape}"
    roles: ClassVar = "[dst/] src:b64"
    described: ClassVar = _MATRIX
    dst: Address
    src: Operand
    size: int
    shape: str
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (Touch(self.dst, self.size, COLUMN_BYTES, _WRITTEN, "destination"),)


class TensorProduct(Struct, frozen=True):
    """``tcgen05.mma.cta_group::1.kind::KIND``: D = A*B or A*B+D, with D and perhaps A in tensor memory.

    ``dst``: the column of D. ``a``: an address in tensor memory, or the descriptor of A; ``b``: that of B: addresses in
    shared memory, as of ``Wgmma``. ``descriptor``: of the instruction; ``enable``: the predicate whether D is added.
    """

    opcode: ClassVar = "tcgen05.mma.cta_group::1 {kind}"
    described: ClassVar = _MATRIX
    dst: Address
    a: Address | Operand
    b: Operand
    descriptor: Operand
    enable: Reg
    kind: str
    source: Source
    guard: Guard | None = None
    enable_negated: bool = False

    @property
    def roles(self) -> str:
        a = "[a/]" if isinstance(self.a, Address) else "a:b64"
        return f"[dst/] {a} b:b64 descriptor:u32 enable:pred!enable_negated"

    @property
    def touches(self) -> tuple[Touch, ...]:
        own = Touch(self.dst, COLUMN_BYTES, COLUMN_BYTES, _WRITTEN, "accumulator")
        if not isinstance(self.a, Address):
            return (own,)
        return own, Touch(self.a, COLUMN_BYTES, COLUMN_BYTES, _READ, "matrix A")


class TensorCommit(Struct, frozen=True):
    """``tcgen05.commit.cta_group::1.mbarrier::arrive::one``: an arrival on the mbarrier at ``address`` once all earlier
    ``tcgen05.mma`` and ``.cp`` of the thread are complete."""

    opcode: ClassVar = "tcgen05.commit.cta_group::1.mbarrier::arrive::one {space} b64"
    roles: ClassVar = "[address]"
    address: Address
    space: str | None
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (mbarrier_touch(self.address, Rule(self.space, CLUSTER, _SECTION, writes=True), "shared::cluster"),)


TensorAccess = TensorLoad | TensorStore | TensorCopy | TensorProduct | TensorCommit
TensorOp = TensorAccess | TensorFence | TensorWait
