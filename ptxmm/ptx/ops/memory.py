"""Loads, stores, atomics and reductions (PTX ISA 9.7.10, 9.7.14.5 to .7)."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from msgspec import Struct

from ptxmm.ptx.ops.basic import (
    CLUSTER,
    CTA,
    GLOBAL,
    UNMARKED,
    Address,
    Guard,
    Imm,
    Operand,
    Proxy,
    Reg,
    Rule,
    Scope,
    Source,
    Touch,
    Type,
    Undetermined,
    lies_in,
    mbarrier_touch,
)
from ptxmm.ptx.tables.form import COMPLETE_TX

_READABLE = ("global", "const", "param", "local", "shared::cluster")
_WRITABLE = ("global", "local", "shared::cluster")
_STRONG = ("global", "shared::cluster")


def access_order(op: Load | Store, weak: str | None = None) -> str | None:
    """The qualifiers for the memory order of a load or store; ``weak`` is how a weak access is marked."""
    if op.volatile:
        return "volatile"
    if op.sem == "weak":
        return weak
    return f"{'mmio.' if op.mmio else ''}{op.sem}.{op.scope}"


class Load(Struct, frozen=True, dict=True):
    """``ld`` (and the dialect's ``tld suld cold``). ``sem``: weak, relaxed, acquire; ``scope`` is None iff weak.

    ``dst`` has a register for each element (``.v2 .v4 .v8``; one for a scalar), None for ``_``; ``type`` is that of an
    element. ``.volatile`` is relaxed.sys with ``volatile`` set (A23), ``.mmio`` relaxed.sys with ``mmio`` set (A24).
    ``nc``: ``ld.global.nc`` or ``ldu``, which the memory model does not cover (A41).
    """

    roles: ClassVar = "=dst:type [address]"
    dst: tuple[Reg | None, ...]
    address: Address
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    volatile: bool = False
    mmio: bool = False
    nc: bool = False

    @property
    def opcode(self) -> str:
        return "ldu v{+dst} {type}" if self.nc and self.space is None else "ld {order} {space} {nc} v{+dst} {type}"

    @property
    def order(self) -> str | None:
        """The qualifiers for the memory order."""
        return access_order(self)

    @cached_property
    def touches(self) -> tuple[Touch, ...]:
        return (scalars(self, Rule(self.space, self._spaces, "9.7.10.9" if self.nc else "9.7.10.8")),)

    @property
    def _spaces(self) -> tuple[str, ...]:
        """Where the bytes may lie."""
        if self.mmio or self.nc:
            return GLOBAL
        # The window of kernel parameters is a part of that of .global (6.4.1.1).
        if self.space == "global" and self.scope is None:
            return ("global", "param")
        return lies_in(self.space, _READABLE if self.scope is None or self.volatile else _STRONG)


class Store(Struct, frozen=True, dict=True):
    """``st`` (and the dialect's ``sust``). ``sem``: weak, relaxed, release; ``values``: one for each element; the rest
    as in ``Load``."""

    opcode: ClassVar = "st {order} {space} v{+values} {type}"
    roles: ClassVar = "[address] values:type"
    address: Address
    values: tuple[Operand, ...]
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    volatile: bool = False
    mmio: bool = False

    @property
    def order(self) -> str | None:
        """The qualifiers for the memory order."""
        return access_order(self)

    @cached_property
    def touches(self) -> tuple[Touch, ...]:
        generic = GLOBAL if self.mmio else _WRITABLE if self.scope is None or self.volatile else _STRONG
        return (scalars(self, Rule(self.space, lies_in(self.space, generic), "9.7.10.11", writes=True), reads=False),)


class Atomic(Struct, frozen=True, dict=True):
    """``atom`` (``returns`` true) or ``red`` (``returns`` false, ``dst`` empty).

    ``op``: add sub inc dec and or xor min max exch cas. ``operands``: for each register element (one for a scalar) its
    operands: (value,), for cas (compare, new). ``dst``: a register, or None for ``_``, for each of them. ``type``: that
    of one atomic access, a scalar; ``packed``: how many of those one register holds (2 for ``f16x2`` and ``bf16x2``).
    ``sem``: relaxed, acquire, release, acq_rel. The proxy is ``surface`` for the dialect's ``suatom``/``sured``.
    """

    dst: tuple[Reg | None, ...]
    op: str
    address: Address
    operands: tuple[tuple[Operand, ...], ...]
    type: Type
    sem: str
    scope: Scope
    space: str | None
    returns: bool
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    packed: int = 1

    @property
    def opcode(self) -> str:
        half = "noftz" if self.type.bits == 16 and self.type.kind in ("f", "bf") else ""
        packed = "x2" if self.packed == 2 else ""
        return (
            f"{'atom' if self.returns else 'red'} {{sem}} {{scope}} {{space}} {{op}} {half} v{{+operands}} "
            f"{{type}}{packed}"
        )

    @property
    def roles(self) -> str:
        return "=dst:register [address] sources:registers" if self.returns else "[address] sources:registers"

    @property
    def register(self) -> Type:
        """The type of a register: of packed types that of all its halves."""
        return self.type if self.packed == 1 else Type("b", self.type.bits * self.packed)

    @property
    def sources(self) -> tuple[tuple[Operand, ...], ...]:
        """The source operands as they are written, each with its elements."""
        return tuple(zip(*self.operands, strict=True))

    @property
    def registers(self) -> tuple[Type, ...]:
        """The types of ``sources``."""
        return (self.register,) * len(self.sources)

    @cached_property
    def touches(self) -> tuple[Touch, ...]:
        spaces = lies_in(self.space, GLOBAL if len(self.operands) > 1 else _STRONG)
        return (scalars(self, Rule(self.space, spaces, "9.7.14.5" if self.returns else "9.7.14.6", writes=True)),)


class Multimem(Struct, frozen=True):
    """``multimem.ld_reduce``, ``.st`` and ``.red`` (9.7.10.13): an access of every location of a multimem address.

    ``kind``: ld_reduce st red. ``op``: add and or xor min max, None for st. ``dst``: the registers of ld_reduce,
    ``values``: the operands of st and red, one for each register element; ``type`` and ``packed`` as in ``Atomic``.
    ``sem``: weak relaxed acquire release; ``scope`` is None iff weak. ``single``: ld_reduce adds in single precision
    (``.acc::f32``).
    """

    roles: ClassVar = "=dst:register [address] values:register"
    kind: str
    op: str | None
    dst: tuple[Reg | None, ...]
    address: Address
    values: tuple[Operand, ...]
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    packed: int = 1
    single: bool = False

    @property
    def opcode(self) -> str:
        vector, packed = "dst" if self.dst else "values", "x2" if self.packed == 2 else ""
        return (
            f"multimem {{kind}} {{sem}} {{scope}} {{space}} {{op}} {{single?acc::f32}} v{{+{vector}}} {{type}}{packed}"
        )

    @property
    def register(self) -> Type:
        """The type of a register: of packed types that of all its halves."""
        return self.type if self.packed == 1 else Type("b", self.type.bits * self.packed)

    @property
    def touches(self) -> tuple[Touch, ...]:
        rule = Rule(self.space, GLOBAL, "9.7.10.13", writes=self.kind != "ld_reduce")
        return (scalars(self, rule, reads=self.kind != "st", near="global"),)


class Element(Struct, frozen=True):
    """One access of a memory instruction, of a scalar (PTX ISA 8.2.3, 8.2.4; decision A13) or of a vector (A57).

    ``offset``: bytes from the address of the instruction; ``type``: of the access; ``item``: which register of the
    vector it belongs to; ``shift``: its lowest bit in that register; ``items``: how many registers of a vector it is
    for, ``item`` and those after it, the lowest bits first.
    """

    offset: int
    type: Type
    item: int
    shift: int
    items: int = 1


PIECE_BYTES = 16
"""The size of the largest access of a vector in one piece (reading ``vector=whole``)."""


def elements(
    op: Load | Store | Atomic | Multimem | AsyncStore, split: bool = False, whole: bool = False
) -> tuple[Element, ...]:
    """The accesses of ``op`` (of ``Multimem``: at each location), one for each scalar, in ascending order of address.

    ``split``: a 16-byte scalar is two accesses of 8 bytes (reading ``b128=split``). ``whole``: what ``ld`` and ``st``
    access of a vector, which is aligned, is one access, of more than 16 bytes one for each 16 (``vector=whole``).
    """
    if whole and isinstance(op, Load | Store):
        total = op.type.bytes * len(op.dst if isinstance(op, Load) else op.values)
        size = min(total, PIECE_BYTES)
        items = size // op.type.bytes
        if items > 1:
            piece = Type("b", 8 * size)
            return tuple(Element(at, piece, at // op.type.bytes, 0, items) for at in range(0, total, size))
    packed = op.packed if isinstance(op, Atomic | Multimem) else 1
    type_ = op.type
    if split and type_.bits == 128:
        packed, type_ = 2, Type("b", 64)
    match op:
        case Atomic():
            count = len(op.operands)
        case Store() | AsyncStore():
            count = len(op.values)
        case Load():
            count = len(op.dst)
        case Multimem():
            count = len(op.dst) or len(op.values)
    if count == packed == 1:
        return (Element(0, type_, 0, 0),)
    return tuple(
        Element((item * packed + part) * type_.bytes, type_, item, part * type_.bits)
        for item in range(count)
        for part in range(packed)
    )


def access_bytes(op: Load | Store | Atomic | Multimem | AsyncStore) -> int:
    """The number of bytes that all scalar accesses of ``op`` take."""
    last = elements(op)[-1]
    return last.offset + last.type.bytes


def scalars(op: Load | Store | Atomic | Multimem, rule: Rule, *, reads: bool = True, near: str | None = None) -> Touch:
    """What ``op`` accesses, element by element."""
    size = access_bytes(op)
    return Touch(op.address, size, size, rule, division="elements", reads=reads, near=near)


class AsyncStore(Struct, frozen=True):
    """``st.async`` (``reduction`` None) and ``red.async`` (9.7.10.12, 9.7.14.7): a weak store, or a relaxed reduction
    at cluster scope, of ``values`` to shared memory of the cluster, then complete_tx of its bytes on ``mbarrier``."""

    roles: ClassVar = "[address] values:type [mbarrier]"
    address: Address
    values: tuple[Operand, ...]
    type: Type
    mbarrier: Address
    reduction: str | None
    source: Source
    guard: Guard | None = None
    space: str | None = None

    @property
    def opcode(self) -> str:
        order = "st.async.weak" if self.reduction is None else "red.async.relaxed.cluster"
        return f"{order} {{space}} {COMPLETE_TX} {{reduction}} v{{+values}} {{type}}"

    @property
    def touches(self) -> tuple[Touch, ...]:
        size, near = self.type.bytes * len(self.values), "shared::cluster"
        rule = Rule(self.space, CLUSTER, "9.7.10.12" if self.reduction is None else "9.7.14.7", writes=True, away=True)
        reads = self.reduction is not None
        return (
            Touch(self.address, size, size, rule, "destination", "destination", "elements", reads, near),
            mbarrier_touch(self.mbarrier, rule, near, reads=False),
        )


class Nothing(Struct, frozen=True):
    """An instruction without effect on memory: ``prefetch``, ``applypriority``, ``createpolicy``, ``nanosleep``, ....

    ``dst``: a register it writes with a value of no meaning here (0), such as a cache policy; or None.
    """

    dst: Reg | None
    type: Type | None
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        """That of one which does as little."""
        return "nanosleep.u32" if self.dst is None else "createpolicy.fractional.L2::evict_normal.b64"

    @property
    def roles(self) -> str:
        return "0" if self.dst is None else "=dst:type"


class Discard(Struct, frozen=True):
    """``discard.global.L2 [a], 128`` (9.7.10.16): a weak write of an undetermined value, ``content``."""

    opcode: ClassVar = "discard {space} L2"
    roles: ClassVar = "[address] #size"
    address: Address
    size: int
    source: Source
    guard: Guard | None = None
    space: str | None = None
    content: Undetermined = UNMARKED

    @property
    def touches(self) -> tuple[Touch, ...]:
        rule = Rule(self.space, GLOBAL, "9.7.10.16", writes=True)
        return (Touch(self.address, self.size, self.size, rule, division="copy", reads=False, near="global"),)


class StoreBulk(Struct, frozen=True):
    """``st.bulk [a], size, 0`` (9.7.9.13 of PTX ISA 9.0): weak writes of zeros to ``size`` bytes of shared memory of
    the CTA, a multiple of ``BULK_UNIT``."""

    opcode: ClassVar = "st.bulk.weak {space}"
    roles: ClassVar = "[address] size:u64~9.0 0"
    misaligned: ClassVar = "st.bulk at an address that is no multiple of 8 is not supported: what it does is not said"
    """The section says nothing of alignment, and 6.4.1 speaks of the size of an access."""
    address: Address
    size: Operand
    source: Source
    guard: Guard | None = None
    space: str | None = None

    @property
    def touches(self) -> tuple[Touch, ...]:
        size = self.size.value if isinstance(self.size, Imm) else None
        rule = Rule(self.space, CTA, "9.7.9.13 of version 9.0", writes=True)
        return (Touch(self.address, size, 1, rule, division="copy", reads=False, near="shared::cta", unit=BULK_UNIT),)


BULK_UNIT, MOST_BULK = 8, 1 << 24


Access = Load | Store | Atomic | Multimem | AsyncStore | Discard | StoreBulk
