"""Resolved instructions: what an instruction of PTX (or of the untyped dialect) does, every default filled in.

``ptxmm.ptx.isa`` makes these from the parsed text; both event layers read nothing else of an instruction.
Sources: PTX ISA 8.5 chapter 9, semantics table section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ptxmm.errors import Span


@dataclass(frozen=True, slots=True)
class Type:
    """A fundamental type of PTX 5.2: ``kind`` is one of ``b u s f pred``, ``bits`` its width (1 for predicates)."""

    kind: str
    bits: int

    @property
    def name(self) -> str:
        """The spelling in PTX, without the dot."""
        return "pred" if self.kind == "pred" else f"{self.kind}{self.bits}"

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return self.bits // 8

    @property
    def signed(self) -> bool:
        """Whether values are ordered and printed as signed integers."""
        return self.kind == "s"


@dataclass(frozen=True, slots=True)
class Reg:
    """A register, by its name without ``%``."""

    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """An integer constant as written (may be negative; an operation takes it modulo 2**width)."""

    value: int


@dataclass(frozen=True, slots=True)
class Sym:
    """The address of a variable plus a constant byte offset; ``name`` is the key of a ``MemoryObject`` of the test."""

    name: str
    offset: int = 0


Operand = Reg | Imm | Sym


@dataclass(frozen=True, slots=True)
class Address:
    """The operand ``[base+offset]`` of a memory instruction; ``offset`` in bytes."""

    base: Operand
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard predicate ``@p`` or ``@!p``."""

    register: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where an instruction stands in the input and its text there."""

    span: Span
    text: str


Scope = Literal["cta", "cluster", "gpu", "sys"]
Proxy = Literal["generic", "surface", "texture", "constant"]


@dataclass(frozen=True, slots=True)
class Load:
    """``ld`` (and the dialect's ``tld suld cold``). ``sem``: weak, relaxed, acquire; ``scope`` is None iff weak.

    ``.volatile`` is relaxed.sys with ``volatile`` set (A23), ``.mmio`` relaxed.sys with ``mmio`` set (A24).
    """

    dst: Reg
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


@dataclass(frozen=True, slots=True)
class Store:
    """``st`` (and the dialect's ``sust``). ``sem``: weak, relaxed, release; the rest as in ``Load``."""

    address: Address
    value: Operand
    type: Type
    sem: str
    scope: Scope | None
    space: str | None
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"
    volatile: bool = False
    mmio: bool = False


@dataclass(frozen=True, slots=True)
class Atomic:
    """``atom`` (``returns`` true; ``dst`` may still be None for ``_``) or ``red`` (``returns`` false, ``dst`` None).

    ``op``: add sub inc dec and or xor min max exch cas. ``operands``: one value; for cas (compare, new).
    ``sem``: relaxed, acquire, release, acq_rel. The proxy is ``surface`` for the dialect's ``suatom``/``sured``.
    """

    dst: Reg | None
    op: str
    address: Address
    operands: tuple[Operand, ...]
    type: Type
    sem: str
    scope: Scope
    space: str | None
    returns: bool
    source: Source
    guard: Guard | None = None
    proxy: Proxy = "generic"


@dataclass(frozen=True, slots=True)
class Fence:
    """``fence.sem.scope`` or ``membar`` (= fence.sc, A19). ``sem``: sc, acq_rel."""

    sem: str
    scope: Scope
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class ProxyFence:
    """``fence.proxy.KIND``: alias, or (dialect, nvlitmus) surface, texture, constant, generic."""

    kind: str
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Barrier:
    """``bar/barrier.sync`` and ``.arrive`` (``kind``).

    Typed PTX: ``barrier`` is the id 0..15, ``count`` the number of threads (a multiple of 32) or None for all;
    ``instance`` is None. Untyped dialect (semantics 1.7): ``instance`` is the constant I, ``barrier`` is B
    (default I), ``count`` is the quorum Q or None.
    """

    kind: Literal["sync", "arrive"]
    barrier: Operand
    count: Operand | None
    instance: int | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Alu:
    """Integer arithmetic and logic: ``dst = op(sources)`` in ``type``.

    ``op``: mov add sub mul.lo mul.hi mul.wide mad.lo mad.hi mad.wide and or xor not neg abs shl shr min max.
    ``wide`` forms take sources of ``type`` and give twice the width. Shift amounts are u32; a shift by the width or
    more gives 0 (or the sign for ``shr`` of a signed type). Predicates have type pred and the values 0 and 1.
    """

    op: str
    type: Type
    dst: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """``cvt.to.from`` between integer types (``saturate`` for ``.sat``)."""

    dst: Reg
    value: Operand
    to: Type
    frm: Type
    saturate: bool
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """``setp.cmp{.boolop}.type dst|complement, a, b{, {!}c}``; ``cmp``: eq ne lt le gt ge (signedness from the type;
    lo ls hi hs are resolved to an unsigned type)."""

    cmp: str
    type: Type
    dst: Reg
    complement: Reg | None
    a: Operand
    b: Operand
    source: Source
    guard: Guard | None = None
    boolop: str | None = None
    c: Reg | None = None
    c_negated: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """``selp.type dst, a, b, p``: a if p else b."""

    type: Type
    dst: Reg
    a: Operand
    b: Operand
    predicate: Reg
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Compare:
    """The comparison of the dialect's ``beq bne blt ble bgt bge``."""

    cmp: str
    type: Type
    a: Operand
    b: Operand


@dataclass(frozen=True, slots=True)
class Branch:
    """A jump to the instruction with index ``target`` of the thread's body (``len(body)`` is the end).

    It is taken iff the guard holds and, in the dialect, ``condition`` does; without either it always is.
    """

    target: int
    condition: Compare | None
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """``ret`` or ``exit``: the thread ends."""

    source: Source
    guard: Guard | None = None


Op = Load | Store | Atomic | Fence | ProxyFence | Barrier | Alu | Convert | SetPredicate | Select | Branch | Exit
