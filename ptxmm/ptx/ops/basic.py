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


MBARRIER_BYTES, TENSORMAP_BYTES = 8, 128
CTA, CLUSTER, GLOBAL = ("shared::cta",), ("shared::cluster",), ("global",)
"""State spaces where the bytes of an operand have to lie."""

Role = Literal["data", "source", "destination", "mbarrier", "tensor map", "tensor", "matrix"]
"""Which operand of an instruction an address is; ``data`` where there is but one. ``tensor``: what a tensor map
describes; ``matrix``: what a matrix descriptor does."""

Division = Literal["", "scalar", "copy", "tile", "elements"]
"""How an instruction divides the bytes that it accesses, and what the other accesses of them are divided by, which
``ptxmm.program.shared.chunks`` describes. ``elements``: as ``ops.elements`` says; ``""``: by nothing."""


class Rule(Struct, frozen=True):
    """What holds of an operand that is an address, or of what a descriptor or a tensor map describes.

    ``form``: the state space whose addresses it takes; None: a generic address. ``spaces``: where the bytes have to
    lie, ``shared::cta`` being the memory of the CTA of the thread and ``shared::cluster`` that of all CTAs of its
    cluster; ``section``: of the PTX ISA. ``writes``: whether memory changes there; ``away``: it is in another CTA than
    the thread.
    """

    form: str | None
    spaces: tuple[str, ...]
    section: str
    writes: bool = False
    away: bool = False


class Touch(Struct, frozen=True):
    """What an instruction accesses at one of its operands that is an address: facts of its text.

    ``size`` in bytes, None where only the execution knows it; ``alignment``: what the address of a variable that is
    named has to be a multiple of; ``what``: the operand in an error. ``reads``: whether what is there may make a
    difference (true also where nobody has looked into it). ``near``: the state space that it has there, where that is
    not the one of its addresses. ``unit``: the bytes of the pieces that are written, if that is known; ``parts``: the
    lines of a ``tile``, as (offset, size).
    """

    address: Address
    size: int | None
    alignment: int
    rule: Rule
    what: str = "access"
    role: Role = "data"
    division: Division = ""
    reads: bool = True
    near: str | None = None
    unit: int = 0
    parts: tuple[tuple[int, int], ...] = ()

    @property
    def writes(self) -> bool:
        """Whether memory changes there, as that of an mbarrier may in every operation on it."""
        return self.rule.writes or self.role == "mbarrier"

    @property
    def space(self) -> str | None:
        """The state space that the instruction says or has at this operand, None where it takes a generic address."""
        return self.near or self.rule.form

    @property
    def is_data(self) -> bool:
        """Whether the bytes are no mbarrier or tensor map that the instruction only uses."""
        return self.role in ("data", "source", "destination", "matrix")


def lies_in(space: str | None, generic: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Where the bytes lie that an instruction names the state space of; ``.shared`` is ``.shared::cta`` (5.1.7)."""
    if space is None:
        return generic
    return CTA if space == "shared" else (space.partition("::")[0] if space.startswith("param") else space,)


def mbarrier_touch(address: Address, rule: Rule, near: str = "shared::cta", reads: bool = True) -> Touch:
    """An mbarrier operand (9.7.14.15.8: remote ones can be arrived at only)."""
    size = MBARRIER_BYTES
    return Touch(address, size, size, rule, "mbarrier operand", "mbarrier", "scalar", reads, near)


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
