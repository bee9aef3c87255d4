"""The parsed form of a thread's text: labels and instructions, names and defaults not yet resolved (PTX ISA 4, 6)."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span


class Name(Struct, frozen=True):
    """A register, variable or label. ``name`` is without ``%``; ``percent`` tells whether it had one."""

    name: str
    span: Span
    percent: bool = False

    @property
    def text(self) -> str:
        """The spelling in the input."""
        return ("%" if self.percent else "") + self.name


class Number(Struct, frozen=True):
    """An integer constant (PTX ISA 4.5.1), sums of constants folded."""

    value: int
    span: Span


class Float(Struct, frozen=True):
    """A floating-point constant (PTX ISA 4.5.2). ``bits`` are those of its binary format: single precision for
    ``0f3F800000`` (``single``), else double precision (``0d3FF0000000000000``, ``1.0``; ``exact`` for the first)."""

    bits: int
    single: bool
    exact: bool
    span: Span


class Sum(Struct, frozen=True):
    """A name plus a constant: ``x+4``."""

    base: Name
    offset: int
    span: Span


class AddressOf(Struct, frozen=True):
    """``&x`` or ``&x+4`` of the untyped dialect."""

    base: Name
    offset: int
    span: Span


class Pair(Struct, frozen=True):
    """``p|q``, the two destinations of ``setp``."""

    first: Name
    second: Name
    span: Span


class Negated(Struct, frozen=True):
    """``!p``, a negated source predicate."""

    name: Name
    span: Span


class Vector(Struct, frozen=True):
    """``{a, b}``, a vector of operands."""

    items: tuple[Name | Number | Float | Sum, ...]
    span: Span


class Memory(Struct, frozen=True):
    """``[base]`` or ``[base+offset]``. ``extra`` is a qualifier after it (``.unified``), or ``coordinates`` where
    instructions that are not modelled have further operands inside the brackets; ``coordinates`` is the vector of a
    tensor access, ``[map, {c0, c1}]``."""

    base: Name | Number
    offset: int
    span: Span
    extra: str | None = None
    coordinates: Vector | None = None


Operand = Name | Number | Float | Sum | AddressOf | Memory | Pair | Negated | Vector


def mapped(operand: Operand, name: Callable[[Name], Name]) -> Operand:
    """``operand`` with what ``name`` gives for each name in it."""
    match operand:
        case Name():
            return name(operand)
        case Sum() | AddressOf():
            return replace(operand, base=name(operand.base))
        case Memory(base, coordinates=coordinates):
            vector = None if coordinates is None else _mapped(coordinates, name)
            return replace(operand, base=base if isinstance(base, Number) else name(base), coordinates=vector)
        case Pair(first, second):
            return replace(operand, first=name(first), second=name(second))
        case Negated():
            return replace(operand, name=name(operand.name))
        case Vector():
            return _mapped(operand, name)
    return operand


def _mapped(vector: Vector, name: Callable[[Name], Name]) -> Vector:
    return replace(vector, items=tuple(mapped(item, name) for item in vector.items))


class Guard(Struct, frozen=True):
    """``@p`` or ``@!p`` before an instruction."""

    name: Name
    negated: bool
    span: Span


class Label(Struct, frozen=True):
    """``name:``; it stands for the instruction that follows."""

    name: str
    span: Span


class Instruction(Struct, frozen=True):
    """One instruction. ``qualifiers`` are without the leading dot; ``text`` is the input with single spaces."""

    opcode: str
    qualifiers: tuple[tuple[str, Span], ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    opcode_span: Span
    span: Span
    text: str

    @property
    def mnemonic(self) -> str:
        """The opcode with all its qualifiers."""
        return ".".join((self.opcode, *(q for q, _ in self.qualifiers)))


Statement = Label | Instruction
