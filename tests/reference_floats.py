"""Floating-point arithmetic on bit patterns, exactly (PTX ISA 8.5, 9.7.3, 9.7.10.20, 9.7.14.5, 9.7.14.6).

A number is a ``Fraction``; zeros, infinities and not-a-numbers are dealt with by themselves. Results are found by
looking for the neighbours of the exact one among the patterns, which are in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

from ptxmm.ptx.ops import Type

OPERATIONS = ("add", "add.ftz", "min", "max")
FORMATS = {("f", 16): (5, 10), ("bf", 16): (8, 7), ("f", 32): (8, 23), ("f", 64): (11, 52)}


def updated(op: str, kind: Type, args: list[int]) -> int:
    """An atomic ``op`` of two numbers of type ``kind``; ``add.ftz`` takes subnormal arguments and results for zeros."""
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


# ---- instructions (9.7.3): every rounding mode, .ftz and .sat -------------------------------------------------------

ROUNDING = ("rn", "rz", "rm", "rp")
ARITHMETIC = ("add", "sub", "mul", "fma", "div", "rcp", "sqrt")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


class Layout:
    """The numbers of a type."""

    def __init__(self, kind: Type) -> None:
        self.exponents, self.digits = FORMATS[kind.kind, kind.bits]
        self.sign = 1 << (self.exponents + self.digits)
        self.infinity = ((1 << self.exponents) - 1) << self.digits
        self.double = kind.bits == 64

    def nan(self, a: int) -> bool:
        return a % self.sign > self.infinity

    def zero(self, a: int) -> bool:
        return a % self.sign == 0

    def infinite(self, a: int) -> bool:
        return a % self.sign == self.infinity

    def value(self, a: int) -> Fraction:
        return number(a, self.exponents, self.digits)

    def flushed(self, a: int) -> int:
        return a & self.sign if a % self.sign < 1 << self.digits else a

    def invalid(self, *given: int) -> int:
        """What is not a number: canonical; double precision keeps the payload of the first one."""
        if not self.double:
            return self.sign - 1
        return next((a | 1 << 51 for a in given if self.nan(a)), self.sign | self.infinity | 1 << 51)

    def saturated(self, a: int) -> int:
        one = self.between(lambda x: x <= 1, Fraction(1), False, "rz")
        return 0 if self.nan(a) or a & self.sign else min(a, one)

    def between(self, at_most: Callable[[Fraction], bool], exact: Fraction | None, negative: bool, mode: str) -> int:
        """The pattern of a size that is the last one with ``at_most``, or the next, as ``mode`` says. ``exact``: the
        size itself; None: one between two numbers that is no middle."""
        low, high = 0, self.infinity
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if at_most(self.value(middle)) else (low, middle)
        if exact is not None and self.value(low) == exact:
            return low
        if mode == "rn":
            middle_size = (self.value(low) + self.value(high)) / 2
            if exact is not None and exact == middle_size:
                return low if low % 2 == 0 else high
            return high if at_most(middle_size) else low
        return high if mode == ("rm" if negative else "rp") else low

    def nearest(self, exact: Fraction, mode: str, zero: int = 0) -> int:
        """``exact`` rounded; ``zero``: which of them it is if it is one."""
        if exact == 0:
            return zero
        size = abs(exact)
        return self.between(lambda x: x <= size, size, exact < 0, mode) | (self.sign if exact < 0 else 0)


def compute(op: str, kind: Type, args: list[int]) -> int:
    """``op`` on bit patterns: an instruction, a comparison or an atomic operation."""
    name, *modes = op.split(".")
    if name in ("add", "min", "max") and op in OPERATIONS:
        return updated(op, kind, args)
    form = Layout(kind)
    if "ftz" in modes:
        args = [form.flushed(a) for a in args]
    if name in COMPARISONS:
        return int(compared(form, name, *args))
    if name not in ARITHMETIC:
        return sign_work(form, name, modes, args)
    mode = next((m for m in modes if m in ROUNDING), "rn")
    result = form.invalid(*args) if any(map(form.nan, args)) else arithmetic(form, name, mode, args)
    result = form.flushed(result) if "ftz" in modes else result
    return form.saturated(result) if "sat" in modes else result


def sign_work(form: Layout, name: str, modes: list[str], args: list[int]) -> int:
    a, b = args[0], args[-1]
    if name in ("neg", "abs"):
        if form.nan(a):
            return a if form.double else form.sign - 1
        return a ^ form.sign if name == "neg" else a % form.sign
    if name == "copysign":
        return (a & form.sign) + b % form.sign
    if name == "testp":
        small = 0 < a % form.sign < 1 << form.digits
        finite = a % form.sign < form.infinity
        classes = {
            "finite": finite,
            "infinite": form.infinite(a),
            "number": not form.nan(a),
            "notanumber": form.nan(a),
            "normal": finite and not small,
            "subnormal": small,
        }
        return int(classes[modes[0]])
    if name not in ("min", "max"):
        raise NotImplementedError(name)
    sign = (a ^ b) & form.sign
    numbers = [v for v in (a, b) if not form.nan(v)]
    if not numbers or ("NaN" in modes and len(numbers) < 2):
        return form.sign - 1
    if "xorsign" in modes:
        numbers = [v % form.sign for v in numbers]
    numbers.sort(key=lambda v: -1 - v % form.sign if v & form.sign else v)
    result = numbers[0] if name == "min" else numbers[-1]
    return result % form.sign | sign if "xorsign" in modes else result


def compared(form: Layout, name: str, a: int, b: int) -> bool:
    if form.nan(a) or form.nan(b):
        return name.endswith("u") or name == "nan"
    if name in ("num", "nan"):
        return name == "num"
    infinite = [form.infinite(v) * (-1 if v & form.sign else 1) for v in (a, b)]
    x, y = ((i, Fraction(0) if i else form.value(v)) for i, v in zip(infinite, (a, b), strict=True))
    if name[1] == "e" and name[0] in "lg" and x == y:
        return True
    return {"e": x == y, "n": x != y, "l": x < y, "g": x > y}[name[0]]


def arithmetic(form: Layout, name: str, mode: str, args: list[int]) -> int:
    a, b = args[0], args[-1]
    one = form.nearest(Fraction(1), "rn")
    match name:
        case "add":
            return fused(form, mode, a, one, b)
        case "sub":
            return fused(form, mode, a, one, b ^ form.sign)
        case "mul":
            # a sum with a zero of the same sign as the product
            return fused(form, mode, a, b, (a ^ b) & form.sign)
        case "fma":
            return fused(form, mode, *args)
        case "rcp":
            return divided(form, mode, one, a)
        case "div":
            return divided(form, mode, a, b)
    return root(form, mode, a)


def fused(form: Layout, mode: str, a: int, b: int, c: int) -> int:
    sign = (a ^ b) & form.sign
    if form.infinite(a) or form.infinite(b):
        if form.zero(a) or form.zero(b) or (form.infinite(c) and c & form.sign != sign):
            return form.invalid()
        return form.infinity | sign
    if form.infinite(c):
        return c
    exact = form.value(a) * form.value(b) + form.value(c)
    same = (form.zero(a) or form.zero(b)) and form.zero(c) and c == sign
    return form.nearest(exact, mode, sign if same else form.sign if mode == "rm" else 0)


def divided(form: Layout, mode: str, a: int, b: int) -> int:
    sign = (a ^ b) & form.sign
    if (form.zero(a) and form.zero(b)) or (form.infinite(a) and form.infinite(b)):
        return form.invalid()
    if form.infinite(a) or form.zero(b):
        return form.infinity | sign
    return sign if form.infinite(b) else form.nearest(form.value(a) / form.value(b), mode, sign)


def root(form: Layout, mode: str, a: int) -> int:
    if form.zero(a) or a == form.infinity:
        return a
    if a & form.sign:
        return form.invalid()
    square = form.value(a)
    found = form.between(lambda x: x * x <= square, None, False, "rz")
    if form.value(found) ** 2 == square:
        return found
    return form.between(lambda x: x * x <= square, None, False, mode)


def convert(value: int, to: Type, frm: Type, saturate: bool, rounding: str | None, flush: bool) -> int:
    """``cvt`` from or to a floating-point type."""
    mode = (rounding or "rn")[:2]
    value %= 1 << frm.bits
    source = Layout(frm) if frm.kind in ("f", "bf") else None
    if source is not None and flush and frm.bits == 32:
        value = source.flushed(value)
    exact = None
    if source is None:
        exact = Fraction(value - (1 << frm.bits) if frm.signed and value >> (frm.bits - 1) else value)
    elif not source.nan(value) and not source.infinite(value):
        exact = source.value(value)
    negative = source is not None and bool(value & source.sign)
    if exact is not None and rounding is not None and len(rounding) == 3:
        exact = Fraction({"rn": round(exact), "rz": int(exact), "rm": floor(exact), "rp": ceil(exact)}[mode])
        mode = "rn"
    if to.kind not in ("f", "bf"):
        low = -(1 << to.bits - 1) if to.signed else 0
        high = low + (1 << to.bits) - 1
        if exact is None:
            assert source is not None
            return 0 if source.nan(value) else low if negative else high
        return max(low, min(high, int(exact)))
    form = Layout(to)
    if exact is not None:
        result = form.nearest(exact, mode, form.sign if negative else 0)
    else:
        assert source is not None
        payload = (value & ((1 << source.digits) - 1)) << 52 >> source.digits if form.double else 0
        nan = form.infinity | 1 << 51 | payload if form.double else form.sign - 1
        result = nan if source.nan(value) else form.infinity
        result |= form.sign if negative and (form.double or not source.nan(value)) else 0
    if flush and to.bits == 32:
        result = form.flushed(result)
    return form.saturated(result) if saturate else result
