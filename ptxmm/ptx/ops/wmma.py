"""Matrices that a warp loads, multiplies and stores together: ``wmma`` (PTX ISA 9.7.15.3)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ptxmm.ptx.ops.basic import (
    CTA,
    UNMARKED,
    Address,
    Guard,
    Imm,
    Operand,
    Reg,
    Rule,
    Source,
    Touch,
    Type,
    Undetermined,
    lies_in,
)


class Tile(Struct, frozen=True):
    """A matrix of a ``wmma`` instruction: ``lines`` rows (``.row``) or columns (``.col``), each of ``length`` elements
    of ``bits`` bits in a row in memory. ``fragment``: the bytes of the part that each thread holds, of which the
    address of every line must be a multiple (9.7.15.3.2)."""

    lines: int
    length: int
    bits: int
    fragment: int

    @property
    def unit(self) -> int:
        """The bytes of one access: an element, or a byte of elements that are smaller."""
        return max(1, self.bits // 8)

    @property
    def line_bytes(self) -> int:
        """The bytes of one line."""
        return self.length * self.bits // 8

    def span(self, stride: int | None = None) -> int:
        """The bytes from the first to the last one where the lines are ``stride`` elements apart (by default their
        length)."""
        return (self.lines - 1) * (self.length if stride is None else stride) * self.bits // 8 + self.line_bytes

    def segments(self, stride: int) -> list[tuple[int, int]]:
        """The bytes as (offset, size) where the lines are ``stride`` elements apart: one if they are contiguous."""
        if stride == self.length:
            return [(0, self.span())]
        return [(line * stride * self.bits // 8, self.line_bytes) for line in range(self.lines)]


def _matrix(op: WmmaLoad | WmmaStore, section: str, writes: bool) -> Touch:
    """The lines of a matrix, where they do not overlap; nothing is seen of what is there."""
    tile = op.tile
    stride = tile.length if op.stride is None else op.stride.value if isinstance(op.stride, Imm) else None
    size = None if stride is None else tile.span(max(stride & 0xFFFFFFFF, tile.length))
    parts = tuple(tile.segments(stride)) if stride is not None and stride >= tile.length else ()
    rule = Rule(op.space, lies_in(op.space, ("global", *CTA)), section, writes)
    return Touch(
        op.address, size, tile.fragment, rule, "matrix", division="tile", reads=False, unit=tile.unit, parts=parts
    )


class WmmaLoad(Struct, frozen=True):
    """``wmma.load`` (9.7.15.3.3): weak reads of the elements of a matrix.

    ``dst``: the registers of type ``type`` for the part of it that the thread holds, None for ``_``; which elements
    that are is unspecified. ``matrix`` is ``a``, ``b`` or ``c``. ``stride``: the elements from one line to the next,
    None for the length of a line; ``qualifiers``: layout, shape and type as they are written.
    """

    roles: ClassVar = "=dst:type* [address] stride:u32"
    dst: tuple[Reg | None, ...]
    address: Address
    type: Type
    tile: Tile
    matrix: str
    stride: Operand | None
    space: str | None
    qualifiers: tuple[str, ...]
    source: Source
    guard: Guard | None = None

    @property
    def opcode(self) -> str:
        layout, shape, element = self.qualifiers
        return f"wmma.load.{self.matrix}.sync.aligned.{layout}.{shape} {{space}} {element}"

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (_matrix(self, "9.7.15.3.3", False),)


class WmmaStore(Struct, frozen=True):
    """``wmma.store`` (9.7.15.3.4): weak writes of the elements of a matrix, of undetermined values, ``content``; the
    rest as in ``WmmaLoad``."""

    roles: ClassVar = "[address] values:type* stride:u32"
    address: Address
    values: tuple[Operand, ...]
    type: Type
    tile: Tile
    stride: Operand | None
    space: str | None
    qualifiers: tuple[str, ...]
    source: Source
    guard: Guard | None = None
    content: Undetermined = UNMARKED

    @property
    def opcode(self) -> str:
        layout, shape, element = self.qualifiers
        return f"wmma.store.d.sync.aligned.{layout}.{shape} {{space}} {element}"

    @property
    def touches(self) -> tuple[Touch, ...]:
        return (_matrix(self, "9.7.15.3.4", True),)


class Wmma(Struct, frozen=True):
    """``wmma.mma`` (9.7.15.3.5) and ``mma`` (9.7.15.4.14), as ``instruction`` says: D = A*B + C.

    ``types``: those of the registers of D, A, B, C; what is computed is not modelled, only that D depends on A, B and
    C. ``qualifiers``: all of them, in the order of the syntax.
    """

    roles: ClassVar = "=dst:types.0* a:types.1* b:types.2* c:types.3*"
    dst: tuple[Reg, ...]
    a: tuple[Operand, ...]
    b: tuple[Operand, ...]
    c: tuple[Operand, ...]
    types: tuple[Type, Type, Type, Type]
    qualifiers: tuple[str, ...]
    source: Source
    guard: Guard | None = None
    instruction: str = "wmma.mma"

    @property
    def opcode(self) -> str:
        return ".".join((self.instruction, *self.qualifiers))


WmmaAccess = WmmaLoad | WmmaStore
