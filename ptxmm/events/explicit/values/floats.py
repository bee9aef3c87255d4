"""Floating-point arithmetic on bit patterns (PTX ISA 9.7.3, 9.7.4.1, 9.7.4.7, 9.7.7, 9.7.10.20, 9.7.14.5, 9.7.14.6).

Numbers are exact fractions in between, rounded once. A result that is not a number is the canonical NaN of its type;
double precision keeps the payload of the first operand that is one (PTX ISA 9.7.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

from ptxmm.ptx.ops import Type

_EXPONENT_BITS = {("f", 16): 5, ("bf", 16): 8, ("f", 32): 8, ("f", 64): 11}
_ROUNDING = frozenset(("rn", "rz", "rm", "rp"))
_SQRT_BITS = 80
_SINGLE = Type("f", 32)


def is_float(type_: Type) -> bool:
    """Whether values of ``type_`` are floating-point numbers."""
    return type_.kind in ("f", "bf")


def operate(op: str, type_: Type, *args: int) -> int:
    """``op`` on bit patterns: an operation of ``Alu`` or ``Atomic``, or a comparison of ``SetPredicate``.

    Words after the first: the rounding (to nearest if there is none), ``.ftz`` flushes subnormal numbers, ``.sat``
    limits to 0 to 1. Raises ``KeyError`` for an operation or a type that does not exist.
    """
    first, *modes = op.split(".")
    args = tuple(x & ((1 << type_.bits) - 1) for x in args)
    flush = "ftz" in modes
    if flush:
        args = tuple(_flushed(type_, x) for x in args)
    if first in _COMPARISONS:
        return int(_compare(first, type_, *args))
    if first in _SIGNS:
        return _SIGNS[first](type_, modes, *args)
    rounding = next((mode for mode in modes if mode in _ROUNDING), "rn")
    result = _ARITHMETIC[first](type_, rounding, *args)
    if flush:
        result = _flushed(type_, result)
    return _limited(type_, result) if "sat" in modes else result


def _limited(type_: Type, a: int) -> int:
    """Clamped to 0 to 1; what is not a number becomes 0."""
    if _not_a_number(type_, a) or a >> type_.bits - 1:
        return 0
    return min(a, _pattern(type_, Fraction(1), "rn"))


_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_COMPARISONS = frozenset(("num", "nan", *_UNORDERED, *_UNORDERED.values()))


def _compare(cmp: str, type_: Type, a: int, b: int) -> bool:
    """A comparison; those that end in u are true where an operand is not a number (9.7.7.1)."""
    if _not_a_number(type_, a) or _not_a_number(type_, b):
        return cmp == "nan" or cmp in _UNORDERED
    if cmp in ("num", "nan"):
        return cmp == "num"
    x, y = (_order(type_, v) for v in (a, b))
    match _UNORDERED.get(cmp, cmp):
        case "eq":
            return x == y
        case "ne":
            return x != y
        case "lt":
            return x < y
        case "le":
            return x <= y
        case "gt":
            return x > y
        case _:
            return x >= y


def _order(type_: Type, a: int) -> int:
    """A number in the order of the values: both zeros are 0."""
    return -_magnitude(type_, a) if a >> type_.bits - 1 else _magnitude(type_, a)


# Operations on signs and classes, which do not round.


def _negated(type_: Type, modes: list[str], a: int) -> int:
    return _kept(type_, a) if _not_a_number(type_, a) else a ^ 1 << type_.bits - 1


def _absolute(type_: Type, modes: list[str], a: int) -> int:
    return _kept(type_, a) if _not_a_number(type_, a) else _magnitude(type_, a)


def _kept(type_: Type, a: int) -> int:
    """What neg and abs make of a NaN: in double precision they leave it as it is (9.7.3.9)."""
    return a if type_.bits == 64 else _undefined(type_)


def _with_sign_of(type_: Type, modes: list[str], a: int, b: int) -> int:
    """``copysign``: the value of b with the sign of a (9.7.3.2)."""
    return (a & 1 << type_.bits - 1) | _magnitude(type_, b)


def _property(type_: Type, modes: list[str], a: int) -> int:
    """``testp``: zeros are normal (9.7.3.1)."""
    size, infinity = _magnitude(type_, a), _infinity(type_)
    match modes[0]:
        case "finite":
            return int(size < infinity)
        case "infinite":
            return int(size == infinity)
        case "number":
            return int(size <= infinity)
        case "notanumber":
            return int(size > infinity)
        case "normal":
            return int(size == 0 or 1 << _fraction_bits(type_) <= size < infinity)
        case "subnormal":
            return int(0 < size < 1 << _fraction_bits(type_))
    raise KeyError(modes[0])


def _least(type_: Type, modes: list[str], a: int, b: int) -> int:
    return _extreme("min", type_, modes, a, b)


def _greatest(type_: Type, modes: list[str], a: int, b: int) -> int:
    return _extreme("max", type_, modes, a, b)


_SIGNS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "neg": _negated, "abs": _absolute, "copysign": _with_sign_of, "testp": _property,
        "min": _least, "max": _greatest,
    }
)  # fmt: skip


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


# Arithmetic, rounded once.


def _sum(type_: Type, rounding: str, a: int, b: int) -> int:
    return _fused(type_, rounding, a, _pattern(type_, Fraction(1), "rn"), b)


def _difference(type_: Type, rounding: str, a: int, b: int) -> int:
    if _not_a_number(type_, b):
        return _undefined(type_, a, b)  # with its own sign
    return _sum(type_, rounding, a, b ^ 1 << type_.bits - 1)


def _product(type_: Type, rounding: str, a: int, b: int) -> int:
    sign = (a ^ b) & 1 << type_.bits - 1
    if _not_a_number(type_, a) or _not_a_number(type_, b):
        return _undefined(type_, a, b)
    if _infinity(type_) in (_magnitude(type_, a), _magnitude(type_, b)):
        zero = 0 in (_magnitude(type_, a), _magnitude(type_, b))
        return _undefined(type_) if zero else sign | _infinity(type_)
    return _signed_pattern(type_, sign, _value(type_, a) * _value(type_, b), rounding)


def _fused(type_: Type, rounding: str, a: int, b: int, c: int) -> int:
    """``a * b + c``, rounded once (9.7.3.6)."""
    top, infinity = 1 << type_.bits - 1, _infinity(type_)
    if any(_not_a_number(type_, x) for x in (a, b, c)):
        return _undefined(type_, a, b, c)
    sign = (a ^ b) & top
    if infinity in (_magnitude(type_, a), _magnitude(type_, b)):
        if 0 in (_magnitude(type_, a), _magnitude(type_, b)) or c == infinity | (sign ^ top):
            return _undefined(type_)
        return sign | infinity
    if _magnitude(type_, c) == infinity:
        return c
    product = _value(type_, a) * _value(type_, b)
    exact = product + _value(type_, c)
    if exact:
        return _signed_pattern(type_, 0, exact, rounding)
    if product == 0 and sign == c & top:
        return sign  # of zeros with one sign the result has it
    return top if rounding == "rm" else 0


def _quotient(type_: Type, rounding: str, a: int, b: int) -> int:
    sign = (a ^ b) & 1 << type_.bits - 1
    if _not_a_number(type_, a) or _not_a_number(type_, b):
        return _undefined(type_, a, b)
    x, y, infinity = _magnitude(type_, a), _magnitude(type_, b), _infinity(type_)
    if x == y and x in (0, infinity):
        return _undefined(type_)
    if x == infinity or y == 0:
        return sign | infinity
    if y == infinity:
        return sign
    return _signed_pattern(type_, sign, _value(type_, a) / _value(type_, b), rounding)


def _reciprocal(type_: Type, rounding: str, a: int) -> int:
    one = _pattern(type_, Fraction(1), "rn")
    return _undefined(type_, a) if _not_a_number(type_, a) else _quotient(type_, rounding, one, a)


def _root(type_: Type, rounding: str, a: int) -> int:
    if _not_a_number(type_, a):
        return _undefined(type_, a)
    if _magnitude(type_, a) == 0 or a == _infinity(type_):
        return a
    if a >> type_.bits - 1:
        return _undefined(type_)
    exact = _value(type_, a)
    # An even power of two makes it an integer with many bits; what is left over is less than half of the last.
    shift = 2 * max(0, _SQRT_BITS + exact.denominator.bit_length())
    scaled = exact * Fraction(2) ** shift
    root = math.isqrt(scaled.numerator)
    inexact = root * root != scaled.numerator
    return _pattern(type_, (root + Fraction(int(inexact), 2)) / Fraction(2) ** (shift // 2), rounding)


_ARITHMETIC: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "add": _sum, "sub": _difference, "mul": _product, "fma": _fused, "div": _quotient, "rcp": _reciprocal,
        "sqrt": _root,
    }
)  # fmt: skip


def _signed_pattern(type_: Type, sign: int, exact: Fraction, rounding: str) -> int:
    """The pattern of ``exact``; ``sign``: the sign of a zero."""
    if exact == 0:
        return sign
    top = 1 << type_.bits - 1
    if exact > 0:
        return _pattern(type_, exact, rounding)
    return top | _pattern(type_, -exact, {"rm": "rp", "rp": "rm"}.get(rounding, rounding))


def _pattern(type_: Type, exact: Fraction, rounding: str) -> int:
    """The pattern of the positive number ``exact`` after rounding (of a magnitude, ``rm`` is ``rz``)."""
    fraction_bits = _fraction_bits(type_)
    bias = (1 << _EXPONENT_BITS[type_.kind, type_.bits] - 1) - 1
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    if exact < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    significand = _integral(exact / Fraction(2) ** (exponent - fraction_bits), rounding)
    # A carry into the next power of two moves the exponent by itself; a subnormal has no leading bit.
    pattern = (exponent + bias - 1 << fraction_bits) + significand
    if pattern < _infinity(type_):
        return pattern
    return _infinity(type_) - (1 if rounding in ("rz", "rm") else 0)  # too large: infinity, or the largest number


def _integral(exact: Fraction, rounding: str) -> int:
    """``exact`` rounded to an integer by rn, rz, rm or rp, or rni and so on."""
    match rounding[:2]:
        case "rn":
            return round(exact)  # of a Fraction: to the nearest, ties to even
        case "rz":
            return math.trunc(exact)
        case "rm":
            return math.floor(exact)
        case _:
            return math.ceil(exact)


def _extreme(op: str, type_: Type, modes: list[str], a: int, b: int) -> int:
    """min or max: of a number and a NaN the number, except with ``.NaN``; -0 is less than +0 (9.7.3.11)."""
    canonical, top = (1 << type_.bits - 1) - 1, 1 << type_.bits - 1
    missing = [_not_a_number(type_, x) for x in (a, b)]
    if all(missing) or ("NaN" in modes and any(missing)):
        return canonical
    sign = (a ^ b) & top
    if "xorsign" in modes:
        a, b = _magnitude(type_, a), _magnitude(type_, b)

    def rank(x: int) -> int:
        return -_magnitude(type_, x) - 1 if x >> type_.bits - 1 else _magnitude(type_, x)

    result = (b if missing[0] else a) if any(missing) else (min if op == "min" else max)(a, b, key=rank)
    return _magnitude(type_, result) | sign if "xorsign" in modes else result


# Conversions (9.7.10.20).


def convert(value: int, to: Type, frm: Type, saturate: bool, rounding: str | None, flush: bool) -> int:
    """``cvt`` from or to a floating-point type. ``rounding``: rn rz rm rp, or to an integral value rni rzi rmi rpi.

    Integers are clamped to their range, and what is not a number becomes 0; ``flush`` is about single precision.
    """
    value &= (1 << frm.bits) - 1
    if not is_float(frm):
        exact = Fraction(value - (1 << frm.bits) if frm.signed and value >> frm.bits - 1 else value)
        result = _signed_pattern(to, 0, exact, rounding or "rn")
        return _limited(to, result) if saturate else result
    if flush and frm == _SINGLE:
        value = _flushed(frm, value)
    if not is_float(to):
        return _to_integer(value, to, frm, rounding or "rzi")
    result = _between(value, to, frm, rounding)
    if flush and to == _SINGLE:
        result = _flushed(to, result)
    return _limited(to, result) if saturate else result


def _to_integer(value: int, to: Type, frm: Type, rounding: str) -> int:
    low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.signed else (0, (1 << to.bits) - 1)
    if _not_a_number(frm, value):
        return 0
    if _magnitude(frm, value) == _infinity(frm):
        number = low if value >> frm.bits - 1 else high
    else:
        number = min(max(_integral(_value(frm, value), rounding), low), high)
    return number & ((1 << to.bits) - 1)


def _between(value: int, to: Type, frm: Type, rounding: str | None) -> int:
    """From one floating-point type to another, or to an integral value of the same one."""
    sign = value >> frm.bits - 1 << to.bits - 1
    if _not_a_number(frm, value):
        if to.bits < 64:
            return _undefined(to)
        payload = value & ((1 << _fraction_bits(frm)) - 1)
        return _undefined(to, sign | _infinity(to) | payload << _fraction_bits(to) - _fraction_bits(frm))
    if _magnitude(frm, value) == _infinity(frm):
        return sign | _infinity(to)
    exact = _value(frm, value)
    if rounding is not None and len(rounding) == 3:
        return _signed_pattern(to, sign, Fraction(_integral(exact, rounding)), "rn")
    return _signed_pattern(to, sign, exact, rounding or "rn")
