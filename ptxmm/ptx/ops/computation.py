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
    last (for activemask none, or the mask that it gives: ``program.active``); ``negated``: the source predicate of a
    vote is ``!p``. ``type`` is that in the text (of the source); pred for elect, which has none. ``leaders``: masks and
    the lanes that ``elect`` elects of them (``program.elected``); of another mask it is the lowest lane.
    """

    op: str
    type: Type
    dst: Reg | None
    predicate: Reg | None
    operands: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    negated: bool = False
    leaders: tuple[tuple[int, int], ...] = ()


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
    """Arithmetic, logic, shifts, bit fields: ``dst = op(sources)`` in ``type`` (9.7.1 to .3, 9.7.7, 9.7.9, 9.7.10.7).

    ``op`` is the opcode with its modes in the order of the syntax, without the type: ``add``, ``mul.wide``,
    ``shf.l.wrap``, ``bfind.shiftamt``, ``prmt.f4e``. Packed integers have type b32 and their name in ``op``:
    ``min.relu.s16x2``. A second type is the last word: ``dp4a.s32`` (of b), ``slct.f32`` (of c), ``set.lt.and.u32`` (of
    the result; ``and_not`` for a negated predicate). Floating-point operations have their rounding: ``fma.rn.ftz``.
    The table of lop3 is a source, and so is the carry flag (``signatures.CARRY``) where it is read: ``addc``.
    ``wide`` forms take sources of ``type`` and give twice the width. Shift amounts are u32; a shift by the width or
    more gives 0 (or the sign for ``shr`` of a signed type). Predicates have type pred and the values 0 and 1.
    The types of sources and result are in ``signatures.py``.
    """

    op: str
    type: Type
    dst: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class AluPair:
    """Two results of the same sources: ``dst = op(...)`` as ``Alu``, and ``predicate = second(sources)``.

    That is the carry flag of ``add.cc`` and its like (``op`` add, ``second`` add.cc; 9.7.2), and the predicate of
    ``lop3.and`` and ``lop3.or`` (9.7.9.6), whose last source, another predicate, ``op`` does not take. ``dst`` is None
    for ``_``.
    """

    op: str
    second: str
    type: Type
    dst: Reg | None
    predicate: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Convert:
    """``cvt.to.from`` (``saturate`` for ``.sat``); with floating-point types ``rounding``, which is that to an
    integral value for rni rzi rmi rpi, and ``flush`` for ``.ftz`` (9.7.10.20)."""

    dst: Reg
    value: Operand
    to: Type
    frm: Type
    saturate: bool
    source: Source
    guard: Guard | None = None
    rounding: str | None = None
    flush: bool = False


@dataclass(frozen=True, slots=True)
class SetPredicate:
    """``setp.cmp{.boolop}.type dst|complement, a, b{, {!}c}``; ``cmp``: eq ne lt le gt ge (signedness from the type;
    lo ls hi hs are resolved to an unsigned type); of floating-point types, where these are false of a NaN, also
    equ neu ltu leu gtu geu num nan, each maybe with ``.ftz``: ``lt.ftz``."""

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
