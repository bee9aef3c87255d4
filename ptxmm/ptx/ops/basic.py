"""What all instructions share: types, operands, addresses, guards, places in the input (PTX ISA 4, 5, 6)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.errors import Span


class Type(Struct, frozen=True):
    """A fundamental type of PTX 5.2: ``kind`` is one of ``b u s f bf pred``, ``bits`` its width (1 for predicates).

    ``bf16`` has kind ``bf``. Values of ``f`` and ``bf`` types are their bit patterns.
    """

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


U32, U64, S64 = Type("u", 32), Type("u", 64), Type("s", 64)
B32, B64 = Type("b", 32), Type("b", 64)
PREDICATE = Type("pred", 1)


class Reg(Struct, frozen=True):
    """A register, by its name without ``%``."""

    name: str


class Imm(Struct, frozen=True):
    """An integer constant as written (may be negative; an operation takes it modulo 2**width)."""

    value: int


class Sym(Struct, frozen=True):
    """The address of a variable plus a constant byte offset; ``name`` is the key of a ``MemoryObject`` of the test."""

    name: str
    offset: int = 0


Operand = Reg | Imm | Sym


class Address(Struct, frozen=True):
    """The operand ``[base+offset]`` of a memory instruction; ``offset`` in bytes."""

    base: Operand
    offset: int = 0


class Guard(Struct, frozen=True):
    """The guard predicate ``@p`` or ``@!p``."""

    register: str
    negated: bool = False


class Undetermined(Struct, frozen=True):
    """What an instruction writes whose value the PTX ISA leaves open: bytes that stand for it.

    ``places``: (key of a physical object, offset in it, byte) for each byte that the program or its condition may see,
    all different from each other and from every byte of a constant of the test; ``rest``: all other bytes.
    """

    places: tuple[tuple[str, int, int], ...] = ()
    rest: int = 0

    def value(self, key: str, offset: int, size: int) -> int:
        """What is written to ``size`` bytes at ``offset`` of the physical object ``key``."""
        own = {where: byte for name, where, byte in self.places if name == key}
        return int.from_bytes(bytes(own.get(offset + i, self.rest) for i in range(size)), "little")


UNMARKED = Undetermined()
"""Before ``ptxmm.program.unspecified.unknown`` has found bytes for it."""


class Source(Struct, frozen=True):
    """Where an instruction stands in the input and its text there.

    ``number``: which instruction of a kernel it is, with all calls inlined: several may stand at one place of a CUDA
    source, or of a function that is called more than once.
    """

    span: Span
    text: str
    number: int = 0


Scope = Literal["cta", "cluster", "gpu", "sys"]
Proxy = Literal["generic", "surface", "texture", "constant"]
