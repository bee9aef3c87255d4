"""The tensor core of the 5th generation and its tensor memory (PTX ISA 8.6 for sm_100a; 9.7.16 of PTX ISA 9.0).

Addresses in tensor memory name a variable, or are numbers in registers (9.7.16.1.1 of PTX ISA 9.0): ``Address`` is in
bytes, four for each column; a variable stands for one lane. What is in ``WholeOnly``, and addresses in registers, whole
launches alone know.
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


SHAPE_BITS = 0x1F7E0000
"""Where an instruction descriptor of tcgen05 has M and N (9.7.16.4.2 of PTX ISA 9.0: bits 17-22 and 24-28)."""


class TensorProduct(Struct, frozen=True):
    """``tcgen05.mma.cta_group::1.kind::KIND``: D = A*B or A*B+D, with D and perhaps A in tensor memory.

    ``dst``: the column of D. ``a``: an address in tensor memory, or the descriptor of A; ``b``: that of B: addresses in
    shared memory, as of ``Wgmma``. ``descriptor``: of the instruction; ``enable``: the predicate whether D is added;
    ``disabled``: the mask of lanes of D that are left as they are, in four words, () if there is none; ``scale``: D is
    divided by two to the power of it.
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
    disabled: tuple[Operand, ...] = ()
    scale: int | None = None

    @property
    def roles(self) -> str:
        a = "[a/]" if isinstance(self.a, Address) else "a:b64"
        lanes = "disabled:b32* " if self.disabled else ""
        scale = " #scale" if self.scale is not None else ""
        return f"[dst/] {a} b:b64 descriptor:u32 {lanes}enable:pred!enable_negated{scale}"

    @property
    def touches(self) -> tuple[Touch, ...]:
        own = Touch(self.dst, COLUMN_BYTES, COLUMN_BYTES, _WRITTEN, "accumulator")
        if not isinstance(self.a, Address):
            return (own,)
        return own, Touch(self.a, COLUMN_BYTES, COLUMN_BYTES, _READ, "matrix A")


class TensorCommit(Struct, frozen=True):
    """``tcgen05.commit.cta_group::1.mbarrier::arrive::one``: an arrival on the mbarrier at ``address`` once all earlier
    ``tcgen05.mma``, ``.cp`` and ``.shift`` of the thread are complete; ``mask``: the CTAs of the cluster at whose
    mbarriers there is one (``.multicast::cluster``), None: no others."""

    roles: ClassVar = "[address] mask:u16"
    address: Address
    space: str | None
    source: Source
    guard: Guard | None = None
    mask: Operand | None = None

    @property
    def opcode(self) -> str:
        several = "" if self.mask is None else " multicast::cluster"
        return f"tcgen05.commit.cta_group::1.mbarrier::arrive::one {{space}}{several} b64"

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (mbarrier_touch(self.address, Rule(self.space, CLUSTER, _SECTION, writes=True), "shared::cluster"),)


class TensorAlloc(Struct, frozen=True):
    """``tcgen05.alloc``: the warp gets so many ``columns`` of tensor memory, and their address is stored in shared
    memory."""

    opcode: ClassVar = "tcgen05.alloc.cta_group::1.sync.aligned {space} b32"
    roles: ClassVar = "[address] columns:u32"
    address: Address
    columns: Operand
    space: str | None
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        rule = Rule(self.space, CTA, _SECTION, writes=True)
        return (Touch(self.address, COLUMN_BYTES, COLUMN_BYTES, rule, "destination"),)


class TensorDealloc(Struct, frozen=True):
    """``tcgen05.dealloc``: the tensor memory at the ``start`` is no longer allocated."""

    opcode: ClassVar = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"
    roles: ClassVar = "start:b32 columns:u32"
    start: Operand
    columns: Operand
    source: Source
    guard: Guard | None = None


class TensorRelinquish(Struct, frozen=True):
    """``tcgen05.relinquish_alloc_permit``: the CTA allocates no more."""

    opcode: ClassVar = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"
    roles: ClassVar = ""
    source: Source
    guard: Guard | None = None


class TensorShift(Struct, frozen=True):
    """``tcgen05.shift.down``: 32 bytes of each lane but the last one go to the next lane (9.7.16.9)."""

    opcode: ClassVar = "tcgen05.shift.cta_group::1.down"
    roles: ClassVar = "[address/]"
    address: Address
    source: Source
    guard: Guard | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (Touch(self.address, COLUMN_BYTES, COLUMN_BYTES, _WRITTEN),)


TensorAccess = TensorLoad | TensorStore | TensorCopy | TensorProduct | TensorCommit
TensorOp = TensorAccess | TensorFence | TensorWait
WholeOnly = TensorAlloc | TensorDealloc | TensorRelinquish | TensorShift
