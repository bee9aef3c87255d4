"""Floating-point add, min and max on bit patterns, exactly (PTX ISA 8.5, 9.7.12.5, 9.7.12.6): round to nearest even.

A number is a ``Fraction``; zeros, infinities and not-a-numbers are dealt with by themselves.
"""

from __future__ import annotations

from fractions import Fraction

from ptxmm.ptx.ops import Type

OPERATIONS = ("add", "add.ftz", "min", "max")
FORMATS = {("f", 16): (5, 10), ("bf", 16): (8, 7), ("f", 32): (8, 23), ("f", 64): (11, 52)}


def compute(op: str, kind: Type, args: list[int]) -> int:
    """``op`` of two numbers of type ``kind``; ``add.ftz`` takes subnormal arguments and results for zeros."""
    exponents, digits = FORMATS[kind.kind, kind.bits]
    sign = 1 << (exponents + digits)
    infinity = ((1 << exponents) - 1) << digits
    a, b = args
    if op == "add.ftz":
        a, b = (v & sign if v & (sign - 1) < 1 << digits else v for v in (a, b))
    nans = [v for v in (a, b) if v & (sign - 1) > infinity]
    if nans:
        if op.startswith("add") or len(nans) == 2:
            # payloads are kept in double precision; elsewhere the not-a-number is unspecified (9.7.3)
            return nans[0] | 1 << (digits - 1) if kind.bits == 64 else sign - 1
        return b if nans[0] == a else a
    if op in ("min", "max"):
        # the order of the bits is that of the numbers, -0 before +0
        keys = {v: -(v & (sign - 1)) - 1 if v & sign else v for v in (a, b)}
        return min((a, b), key=keys.__getitem__) if op == "min" else max((a, b), key=keys.__getitem__)
    if infinity in (a & (sign - 1), b & (sign - 1)):
        infinite = [v for v in (a, b) if v & (sign - 1) == infinity]
        invalid = sign | infinity | 1 << (digits - 1) if kind.bits == 64 else sign - 1
        return invalid if len(set(infinite)) > 1 else infinite[0]
    total = number(a, exponents, digits) + number(b, exponents, digits)
    if total == 0:
        return sign if a & sign and b & sign else 0
    result = rounded(abs(total), exponents, digits) | (sign if total < 0 else 0)
    return result & sign if op == "add.ftz" and result & (sign - 1) < 1 << digits else result


def number(bits: int, exponents: int, digits: int) -> Fraction:
    """The number that the finite pattern ``bits`` stands for."""
    field = bits >> digits & ((1 << exponents) - 1)
    mantissa = bits & ((1 << digits) - 1)
    if field:
        mantissa |= 1 << digits
    size = mantissa * Fraction(2) ** (max(field, 1) - (1 << (exponents - 1)) + 1 - digits)
    return -size if bits >> (exponents + digits) & 1 else size


def rounded(size: Fraction, exponents: int, digits: int) -> int:
    """The pattern of the number nearest to ``size`` > 0, an even one on a tie; infinity from half a step above the
    greatest number on."""
    low, high = 0, ((1 << exponents) - 1) << digits  # patterns of numbers are in the order of the numbers
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if number(middle, exponents, digits) <= size else (low, middle)
    below, above = size - number(low, exponents, digits), number(high, exponents, digits) - size
    return low if below < above or (below == above and low % 2 == 0) else high
