"""The parsed form of a thread's text: labels and instructions, names and defaults not yet resolved (PTX ISA 4, 6)."""

from __future__ import annotations

from dataclasses import dataclass

from ptxmm.errors import Span


@dataclass(frozen=True, slots=True)
class Name:
    """A register, variable or label. ``name`` is without ``%``; ``percent`` tells whether it had one."""

    name: str
    span: Span
    percent: bool = False

    @property
    def text(self) -> str:
        """The spelling in the input."""
        return ("%" if self.percent else "") + self.name


@dataclass(frozen=True, slots=True)
class Number:
    """An integer constant (PTX ISA 4.5.1), sums of constants folded."""

    value: int
    span: Span


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant (PTX ISA 4.5.2). ``bits`` are those of its binary format: single precision for
    ``0f3F800000`` (``single``), else double precision (``0d3FF0000000000000``, ``1.0``; ``exact`` for the first)."""

    bits: int
    single: bool
    exact: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Sum:
    """A name plus a constant: ``x+4``."""

    base: Name
    offset: int
    span: Span


@dataclass(frozen=True, slots=True)
class AddressOf:
    """``&x`` or ``&x+4`` of the untyped dialect."""

    base: Name
    offset: int
    span: Span


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``, the two destinations of ``setp``."""

    first: Name
    second: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p``, a negated source predicate."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``, a vector of operands."""

    items: tuple[Name | Number | Float | Sum, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Memory:
    """``[base]`` or ``[base+offset]``. ``extra`` is a qualifier after it (``.unified``), or ``coordinates`` where
    instructions that are not modelled have further operands inside the brackets; ``coordinates`` is the vector of a
    tensor access, ``[map, {c0, c1}]``."""

    base: Name | Number
    offset: int
    span: Span
    extra: str | None = None
    coordinates: Vector | None = None


Operand = Name | Number | Float | Sum | AddressOf | Memory | Pair | Negated | Vector


@dataclass(frozen=True, slots=True)
class Guard:
    """``@p`` or ``@!p`` before an instruction."""

    name: Name
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Label:
    """``name:``; it stands for the instruction that follows."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Instruction:
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
