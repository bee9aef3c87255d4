"""Floating-point arithmetic of atomic operations on bit patterns (PTX ISA 9.7.12.5, 9.7.12.6, 9.7.4.1, 9.7.4.7).

Numbers are exact fractions in between, rounded once, to the nearest and ties to even. A result that is not a number is
the canonical NaN of its type; double precision keeps the payload of an operand (PTX ISA 9.7.3).
"""

from __future__ import annotations

from fractions import Fraction

from ptxmm.ptx.ops import Type

_EXPONENT_BITS = {("f", 16): 5, ("bf", 16): 8, ("f", 32): 8, ("f", 64): 11}
OPERATIONS = frozenset(("add", "add.ftz", "sub", "min", "max"))


def is_float(type_: Type) -> bool:
    """Whether values of ``type_`` are floating-point numbers."""
    return type_.kind in ("f", "bf")


def operate(op: str, type_: Type, a: int, b: int) -> int:
    """``op`` on the bit patterns ``a`` and ``b``: one of ``OPERATIONS``; ``.ftz`` flushes subnormal numbers.

    Raises ``KeyError`` for an operation or a type that does not exist.
    """
    if op not in OPERATIONS:
        raise KeyError(op)
    a, b = (x & ((1 << type_.bits) - 1) for x in (a, b))
    if op in ("min", "max"):
        return _extreme(op, type_, a, b)
    if op == "sub":
        b ^= 1 << type_.bits - 1
    flush = op == "add.ftz"
    if flush:
        a, b = _flushed(type_, a), _flushed(type_, b)
    result = _sum(type_, a, b)
    return _flushed(type_, result) if flush else result


def _fraction_bits(type_: Type) -> int:
    return type_.bits - 1 - _EXPONENT_BITS[type_.kind, type_.bits]


def _infinity(type_: Type) -> int:
    return ((1 << _EXPONENT_BITS[type_.kind, type_.bits]) - 1) << _fraction_bits(type_)


def _magnitude(type_: Type, a: int) -> int:
    return a & ((1 << type_.bits - 1) - 1)


def _not_a_number(type_: Type, a: int) -> bool:
    return _magnitude(type_, a) > _infinity(type_)


def _undefined(type_: Type, *operands: int) -> int:
    """The NaN that an operation on ``operands`` gives."""
    if type_.bits < 64:
        return (1 << type_.bits - 1) - 1
    quiet = 1 << _fraction_bits(type_) - 1
    for a in operands:
        if _not_a_number(type_, a):
            return a | quiet
    return 1 << 63 | _infinity(type_) | quiet


def _flushed(type_: Type, a: int) -> int:
    """``a``, or the zero of its sign if it is subnormal."""
    smallest_normal = 1 << _fraction_bits(type_)
    return a if _magnitude(type_, a) >= smallest_normal else a & 1 << type_.bits - 1


def _value(type_: Type, a: int) -> Fraction:
    """The number that the pattern ``a`` of a finite number stands for."""
    fraction_bits = _fraction_bits(type_)
    exponent = _magnitude(type_, a) >> fraction_bits
    significand = a & ((1 << fraction_bits) - 1)
    bias = (1 << _EXPONENT_BITS[type_.kind, type_.bits] - 1) - 1
    if exponent:
        significand |= 1 << fraction_bits
    scale = max(exponent, 1) - bias - fraction_bits
    magnitude = Fraction(significand) * (Fraction(2) ** scale)
    return -magnitude if a >> type_.bits - 1 else magnitude


def _sum(type_: Type, a: int, b: int) -> int:
    infinity = _infinity(type_)
    if _not_a_number(type_, a) or _not_a_number(type_, b):
        return _undefined(type_, a, b)
    infinite = [x for x in (a, b) if _magnitude(type_, x) == infinity]
    if infinite:
        return infinite[0] if len(set(infinite)) == 1 else _undefined(type_)
    exact = _value(type_, a) + _value(type_, b)
    if exact == 0:
        return a & b & 1 << type_.bits - 1  # only -0 + -0 is -0
    sign = 1 << type_.bits - 1 if exact < 0 else 0
    return sign | _rounded(type_, abs(exact))


def _rounded(type_: Type, exact: Fraction) -> int:
    """The pattern of the positive number nearest to ``exact``, ties to even; an infinity if that is too large."""
    fraction_bits = _fraction_bits(type_)
    bias = (1 << _EXPONENT_BITS[type_.kind, type_.bits] - 1) - 1
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if exact < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    scaled = exact / Fraction(2) ** (exponent - fraction_bits)
    significand = round(scaled)  # of a Fraction: to the nearest, ties to even
    # A carry into the next power of two moves the exponent by itself; a subnormal has no leading bit.
    pattern = (exponent + bias - 1 << fraction_bits) + significand
    return min(pattern, _infinity(type_))


def _extreme(op: str, type_: Type, a: int, b: int) -> int:
    """min or max: of a number and a NaN the number; -0 is less than +0."""
    if _not_a_number(type_, a) or _not_a_number(type_, b):
        if _not_a_number(type_, a) and _not_a_number(type_, b):
            return (1 << type_.bits - 1) - 1
        return b if _not_a_number(type_, a) else a

    def rank(x: int) -> int:
        return -_magnitude(type_, x) - 1 if x >> type_.bits - 1 else _magnitude(type_, x)

    return (min if op == "min" else max)(a, b, key=rank)
