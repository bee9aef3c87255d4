"""Values and control flow: arithmetic, comparisons, exchanges between lanes, branches (PTX ISA 9.7.1 to .9,
9.7.10.4, .6, .20, 9.7.13, 9.7.14.9 to .14)."""

from __future__ import annotations

from dataclasses import dataclass

from ptxmm.ptx.ops.basic import Guard, Operand, Reg, Source, Type


@dataclass(frozen=True, slots=True)
class WarpExchange:
    """Lanes of a warp give each other values, without memory ordering (9.7.10.6, 9.7.14.9 to .12, .14).

    ``op``: shfl.up shfl.down shfl.bfly shfl.idx vote.all vote.any vote.uni vote.ballot match.any match.all redux.OP
    activemask elect. ``dst`` and ``predicate`` (the ``|p``) are what it writes; ``operands`` as in the text, membermask
    last (none for activemask); ``negated``: the source predicate of a vote is ``!p``. ``type`` is that in the text
    (of the source); pred for elect, which has none.
    """

    op: str
    type: Type
    dst: Reg | None
    predicate: Reg | None
    operands: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Pack:
    """``mov`` to a scalar of ``type`` from a vector of ``sources``, the lowest bits first (9.7.10.4)."""

    dst: Reg
    type: Type
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Unpack:
    """``mov`` from a scalar of ``type`` to a vector, the lowest bits first (9.7.10.4); None for ``_``."""

    dst: tuple[Reg | None, ...]
    type: Type
    value: Operand
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
