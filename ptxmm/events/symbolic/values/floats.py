"""Floating-point arithmetic of atomic operations on bit patterns (PTX ISA 9.7.4, 9.7.14.5 atom, 9.7.14.6 red).

Sums are exact and then rounded to nearest, ties to even. Where the ISA leaves the NaN open (single precision), it is
the canonical one of all ones but the sign; a double-precision sum keeps the payload of its first NaN.
"""

from __future__ import annotations

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.ptx.ops import Type


class Format(Struct, frozen=True):
    """An IEEE 754 binary format: widths of the exponent and of the stored significand."""

    exponent: int
    fraction: int

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def canonical(self) -> int:
        return self.sign - 1

    @property
    def quiet(self) -> int:
        """The bit of a NaN that does not signal."""
        return 1 << (self.fraction - 1)

    @property
    def least(self) -> int:
        """The smallest positive number is two to this."""
        return 2 - (1 << (self.exponent - 1)) - self.fraction

    def is_nan(self, bits: int) -> bool:
        return bits & (self.sign - 1) > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & (self.sign - 1) == self.infinity

    def scaled(self, bits: int) -> int:
        """A finite number as a multiple of the smallest subnormal one."""
        magnitude = bits & (self.sign - 1)
        exponent, fraction = magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1)
        size = fraction if exponent == 0 else (fraction | 1 << self.fraction) << (exponent - 1)
        return -size if bits & self.sign else size

    def rounded(self, number: int) -> int:
        """The number of the format nearest to a multiple of its smallest subnormal one, ties to even."""
        size = abs(number)
        sign = self.sign if number < 0 else 0
        excess = size.bit_length() - (self.fraction + 1)
        if excess <= 0:
            return sign | size
        kept, rest = size >> excess, size & ((1 << excess) - 1)
        half = 1 << (excess - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1  # it may become a power of two, which carries into the exponent
        return sign | min((excess << self.fraction) + kept, self.infinity)


FORMATS = {("f", 16): Format(5, 10), ("bf", 16): Format(8, 7), ("f", 32): Format(8, 23), ("f", 64): Format(11, 52)}


def is_float(op: str, type_: Type) -> bool:
    """Whether the atomic operation ``op`` computes in floating point."""
    return op in ("add", "min", "max") and (type_.kind, type_.bits) in FORMATS


def compute_float(op: str, type_: Type, a: int, b: int, flush: bool) -> int:
    """``a op b`` for add, min and max on bit patterns.

    ``flush``: subnormal inputs and results become zeros of the same sign (atomic ``.f32`` addition in global memory).
    Raises ``PtxmmError`` for another operation.
    """
    form = FORMATS[type_.kind, type_.bits]
    if flush:
        a, b = _flushed(form, a), _flushed(form, b)
    if op == "add":
        result = _add(form, a, b)
    elif op in ("min", "max"):
        result = _extreme(form, op, a, b)
    else:
        raise PtxmmError(f"no floating-point operation {op!r}", kind="internal")
    return _flushed(form, result) if flush else result


def _flushed(form: Format, bits: int) -> int:
    return bits & form.sign if bits & form.infinity == 0 else bits


def _add(form: Format, a: int, b: int) -> int:
    for operand in (a, b):
        if form.is_nan(operand):
            return operand | 1 << (form.fraction - 1) if form.fraction == 52 else form.canonical
    if form.is_infinite(a) or form.is_infinite(b):
        if form.is_infinite(a) and form.is_infinite(b) and a != b:
            return form.sign | form.infinity | 1 << (form.fraction - 1) if form.fraction == 52 else form.canonical
        return a if form.is_infinite(a) else b
    total = form.scaled(a) + form.scaled(b)
    if total == 0:
        return a & b & form.sign  # -0 only from two of them
    return form.rounded(total)


def _extreme(form: Format, op: str, a: int, b: int) -> int:
    """The lesser or greater; a NaN counts only if both are, and -0 is less than +0."""
    if form.is_nan(a) or form.is_nan(b):
        return form.canonical if form.is_nan(a) and form.is_nan(b) else b if form.is_nan(a) else a
    less = _rank(form, a) < _rank(form, b)
    return a if less == (op == "min") else b


def _rank(form: Format, bits: int) -> int:
    return -1 - (bits ^ form.sign) if bits & form.sign else bits
