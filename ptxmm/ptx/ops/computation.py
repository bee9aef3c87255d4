"""Values and control flow: arithmetic, comparisons, exchanges between lanes, what addresses are, branches (PTX ISA
9.7.1 to .9, 9.7.10.4, .6, .18 to .23, 9.7.13, 9.7.14.9 to .14)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ptxmm.ptx.ops.basic import B32, PREDICATE, U32, Guard, Operand, Reg, Source, Type
from ptxmm.ptx.ops.signatures import result_type, source_types

_PACKED = ("u16x2", "s16x2")


class WarpExchange(Struct, frozen=True):
    """Lanes of a warp give each other values, without memory ordering (9.7.10.6, 9.7.14.9 to .12, .14).

    ``op``: shfl.up shfl.down shfl.bfly shfl.idx vote.all vote.any vote.uni vote.ballot match.any match.all redux.OP
    activemask elect. ``dst`` and ``predicate`` (the ``|p``) are what it writes; ``operands`` as in the text, membermask
    last (for activemask none, or the mask that it gives: ``unspecified.active``); ``negated``: the source predicate of
    a vote is ``!p``. ``type`` is that in the text (of the source); pred for elect, which has none. ``leaders``: masks
    and the lanes that ``elect`` elects of them (``unspecified.elected``); of another mask it is the lowest lane.
    ``absent``: what it gives is made of values of lanes that are not in the test; any value stands for that.
    """

    roles: ClassVar = "=dst:result|predicate:pred operands:read!negated"
    op: str
    type: Type
    dst: Reg | None
    predicate: Reg | None
    operands: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    negated: bool = False
    leaders: tuple[tuple[int, int], ...] = ()
    absent: bool = False

    @property
    def opcode(self) -> str:
        first, _, mode = self.op.partition(".")
        return {"activemask": "activemask.b32", "elect": "elect.sync", "match": f"match.{mode}.sync {{type}}"}.get(
            first, f"{first}.sync {mode} {{type}}"
        )

    @property
    def result(self) -> Type:
        """The type of ``dst``."""
        return B32 if self.op in ("match.any", "match.all", "elect") else self.type

    @property
    def read(self) -> tuple[Type, ...]:
        """The types of ``operands``: all but the first are numbers of lanes and masks."""
        first = PREDICATE if self.op.startswith("vote.") else U32 if self.op == "elect" else self.type
        return (first, *(U32 for _ in self.operands[1:]))[: len(self.operands)]


class Pack(Struct, frozen=True):
    """``mov`` to a scalar of ``type`` from a vector of ``sources``, the lowest bits first (9.7.10.4)."""

    opcode: ClassVar = "mov {type}"
    roles: ClassVar = "=dst:type sources:part"
    dst: Reg
    type: Type
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None

    @property
    def part(self) -> Type:
        """The type of an element."""
        return Type("b", self.type.bits // len(self.sources))


class Unpack(Struct, frozen=True):
    """``mov`` from a scalar of ``type`` to a vector, the lowest bits first (9.7.10.4); None for ``_``."""

    opcode: ClassVar = "mov {type}"
    roles: ClassVar = "=dst:part value:type"
    dst: tuple[Reg | None, ...]
    type: Type
    value: Operand
    source: Source
    guard: Guard | None = None

    @property
    def part(self) -> Type:
        """The type of an element."""
        return Type("b", self.type.bits // len(self.dst))


class Alu(Struct, frozen=True):
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

    roles: ClassVar = "=dst:result sources:given!negated"
    op: str
    type: Type
    dst: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        """As in ``record``; where the syntax has the type is up to the operation."""
        first, *words = self.op.split(".")
        last = words[-1] if words else ""
        match first:
            case "prmt":
                return f"prmt {{type}} {last}"
            case "dp4a" | "dp2a" | "slct":
                return " ".join((first, *words[:-1], "{type}", last))
            case "set":
                return " ".join((first, *(word.removesuffix("_not") for word in words), "{type}"))
            case "cvt":
                return f"cvt.pack.sat {last} s32{'' if last.endswith('16') else '.b32'}"
            case _:
                return self.op if last in _PACKED else f"{self.op} {{type}}"

    @property
    def result(self) -> Type:
        """The type of ``dst``."""
        return result_type(self.op, self.type)

    @property
    def given(self) -> tuple[Type, ...]:
        """The types of ``sources``."""
        return source_types(self.op, self.type)

    @property
    def negated(self) -> bool:
        """Whether the source predicate of ``set`` is negated."""
        return "_not" in self.op


class AluPair(Struct, frozen=True):
    """Two results of the same sources: ``dst = op(...)`` as ``Alu``, and ``predicate = second(sources)``.

    That is the carry flag of ``add.cc`` and its like (``op`` add, ``second`` add.cc; 9.7.2), and the predicate of
    ``lop3.and`` and ``lop3.or`` (9.7.9.6), whose last source, another predicate, ``op`` does not take. ``dst`` is None
    for ``_``.
    """

    opcode: ClassVar = "{second} {type}"
    roles: ClassVar = "=dst:result|predicate:pred sources:given"
    op: str
    second: str
    type: Type
    dst: Reg | None
    predicate: Reg
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None

    @property
    def result(self) -> Type:
        """The type of ``dst``."""
        return result_type(self.op, self.type)

    @property
    def given(self) -> tuple[Type, ...]:
        """The types of ``sources``."""
        return source_types(self.second, self.type)


class Convert(Struct, frozen=True):
    """``cvt.to.from`` (``saturate`` for ``.sat``); with floating-point types ``rounding``, which is that to an
    integral value for rni rzi rmi rpi, and ``flush`` for ``.ftz`` (9.7.10.20)."""

    opcode: ClassVar = "cvt {rounding} {flush?ftz} {saturate?sat} {to} {frm}"
    roles: ClassVar = "=dst:to value:frm"
    dst: Reg
    value: Operand
    to: Type
    frm: Type
    saturate: bool
    source: Source
    guard: Guard | None = None
    rounding: str | None = None
    flush: bool = False


class SetPredicate(Struct, frozen=True):
    """``setp.cmp{.boolop}.type dst|complement, a, b{, {!}c}``; ``cmp``: eq ne lt le gt ge (signedness from the type;
    lo ls hi hs are resolved to an unsigned type); of floating-point types, where these are false of a NaN, also
    equ neu ltu leu gtu geu num nan, each maybe with ``.ftz``: ``lt.ftz``."""

    roles: ClassVar = "=dst:pred|complement:pred a:type b:type c:pred!c_negated"
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

    @property
    def opcode(self) -> str:
        cmp, _, ftz = self.cmp.partition(".")
        return f"setp.{cmp} {{boolop}} {ftz} {{type}}"


class Select(Struct, frozen=True):
    """``selp.type dst, a, b, p``: a if p else b."""

    opcode: ClassVar = "selp {type}"
    roles: ClassVar = "=dst:type a:type b:type predicate:pred"
    type: Type
    dst: Reg
    a: Operand
    b: Operand
    predicate: Reg
    source: Source
    guard: Guard | None = None


class Opaque(Struct, frozen=True):
    """A function of registers whose result is not worked out (9.7.3, 9.7.4, 9.7.8, 9.7.10.20): ``dst = name(sources)``.

    It is the same for the same operands, may be anything else, and depends on all of them. ``name``: the opcode with
    its qualifiers; ``result`` and ``given``: the types of ``dst`` and ``sources``; ``second``: the other predicate of
    ``p|q``; ``negated``: the source predicate is ``!c``. ``free``: of predicates, which may be either each time: every
    execution says which (``unspecified.undecided``).
    """

    opcode: ClassVar = "{name}"
    roles: ClassVar = "=dst:result|second:pred sources:given!negated"
    name: str
    result: Type
    given: tuple[Type, ...]
    dst: Reg | None
    second: Reg | None
    sources: tuple[Operand, ...]
    source: Source
    guard: Guard | None = None
    negated: bool = False
    free: bool = False


class Compare(Struct, frozen=True):
    """The comparison of the dialect's ``beq bne blt ble bgt bge``."""

    cmp: str
    type: Type
    a: Operand
    b: Operand


class Branch(Struct, frozen=True):
    """A jump to the instruction with index ``target`` of the thread's body (``len(body)`` is the end).

    It is taken iff the guard holds and, in the dialect, ``condition`` does; without either it always is.
    """

    opcode: ClassVar = "bra"
    target: int
    condition: Compare | None
    source: Source
    guard: Guard | None = None

    @property
    def roles(self) -> str:
        return "" if self.condition is None else "(compared:number)"

    @property
    def compared(self) -> tuple[Operand, ...]:
        """What ``condition`` compares."""
        return () if self.condition is None else (self.condition.a, self.condition.b)

    @property
    def number(self) -> Type | None:
        """The type in which it does."""
        return None if self.condition is None else self.condition.type


class Exit(Struct, frozen=True):
    """``ret`` or ``exit``: the thread ends."""

    opcode: ClassVar = "exit"
    roles: ClassVar = ""
    source: Source
    guard: Guard | None = None


class Mapa(Struct, frozen=True):
    """``mapa`` (9.7.10.22): the address in CTA ``rank`` of the cluster of the shared variable at ``value``.

    ``space``: ``shared::cluster`` or None (generic); a litmus thread's addresses are the same in both (A26).
    """

    opcode: ClassVar = "mapa {space} {type}"
    roles: ClassVar = "=dst:type value:type rank:u32"
    dst: Reg
    type: Type
    value: Operand
    rank: Operand
    space: str | None
    source: Source
    guard: Guard | None = None


class CtaRank(Struct, frozen=True):
    """``getctarank`` (9.7.10.23): the rank in its cluster of the CTA that the shared address ``value`` lies in."""

    opcode: ClassVar = "getctarank {space} {type}"
    roles: ClassVar = "=dst:u32 value:type"
    dst: Reg
    type: Type
    value: Operand
    source: Source
    guard: Guard | None = None
    space: str | None = None


class ConvertAddress(Struct, frozen=True):
    """``cvta`` (9.7.10.19): the generic address of the byte at ``value`` in the window of ``space``, or with ``to`` the
    address in that window of a generic one.

    That of ``.global`` memory, where both are the same, is a ``mov``.
    """

    opcode: ClassVar = "cvta {to} {space} {type}"
    roles: ClassVar = "=dst:type value:type"
    dst: Reg
    type: Type
    value: Operand
    space: str
    source: Source
    guard: Guard | None = None
    to: bool = False


class IsSpace(Struct, frozen=True):
    """``isspacep.SPACE`` (9.7.10.18): whether the generic address ``value`` lies in ``space``."""

    opcode: ClassVar = "isspacep {space}"
    roles: ClassVar = "=dst:pred value:b64"
    dst: Reg
    space: str
    value: Operand
    source: Source
    guard: Guard | None = None


Calculation = Alu | AluPair | Convert | SetPredicate | Select | Pack | Unpack | Opaque
AddressValue = Mapa | CtaRank | ConvertAddress | IsSpace
