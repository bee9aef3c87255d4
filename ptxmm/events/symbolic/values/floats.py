"""Floating-point instructions and conversions on bit patterns (PTX ISA 9.7.3, 9.7.4, 9.7.7, 9.7.10.20, 9.7.14.5).

A finite number is an integer times a power of two. Quotients and roots are cut off at more bits than any format has,
with a last bit that says whether something was cut off, so that every result is rounded once and exactly. Where the ISA
leaves the NaN open it is the canonical one; double precision keeps the payload of the first operand that is a NaN.
"""

from __future__ import annotations

from math import isqrt

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.ptx.ops import Type

_MODES = ("rn", "rz", "rm", "rp")
_SPARE = 140  # bits of a quotient or of a root: more than twice those of any significand


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


FORMATS = {("f", 16): Format(5, 10), ("bf", 16): Format(8, 7), ("f", 32): Format(8, 23), ("f", 64): Format(11, 52)}


class _Exact(Struct, frozen=True):
    """``(-1)**negative * size * 2**scale``; a zero has its sign."""

    negative: bool
    size: int
    scale: int


def compute_float(op: str, type_: Type, operands: list[int]) -> int:
    """The result of a floating-point instruction or comparison. Raises ``PtxmmError`` for another operation."""
    form = FORMATS[type_.kind, type_.bits]
    name, *modes = op.split(".")
    if "ftz" in modes:
        operands = [_flush(form, x) for x in operands]
    a, b = operands[0], operands[1] if len(operands) > 1 else 0
    if name in ("neg", "abs") and form.is_nan(a):
        return a if form.fraction == 52 else form.canonical
    match name:
        case "neg":
            return a ^ form.sign
        case "abs":
            return a & ~form.sign
        case "copysign":
            return a & form.sign | b & ~form.sign
        case "testp":
            return int(_has_property(form, modes[0], a))
        case "min" | "max":
            return _extreme(form, name, modes, a, b)
        case "add" | "sub" | "mul" | "fma" | "div" | "rcp" | "sqrt":
            mode = next((m for m in modes if m in _MODES), "rn")
            result = _arithmetic(form, name, mode, operands)
        case _:
            return int(_compare(form, name, a, b))
    if "ftz" in modes:
        result = _flush(form, result)
    return _saturate(form, result) if "sat" in modes else result


def _flush(form: Format, bits: int) -> int:
    return bits if bits & form.infinity else bits & form.sign


def _saturate(form: Format, bits: int) -> int:
    one = form.infinity >> 1 & form.infinity
    if bits & form.sign or form.is_nan(bits):
        return 0
    return one if bits > one else bits


def _has_property(form: Format, name: str, bits: int) -> bool:
    exponent, fraction = bits & form.infinity, bits & ((1 << form.fraction) - 1)
    special = exponent == form.infinity
    properties = {
        "finite": not special,
        "infinite": special and fraction == 0,
        "number": not special or fraction == 0,
        "notanumber": special and fraction != 0,
        "normal": not special and (exponent != 0 or fraction == 0),
        "subnormal": exponent == 0 and fraction != 0,
    }
    if name not in properties:
        raise PtxmmError(f"no property {name!r}", kind="internal")
    return properties[name]


def _extreme(form: Format, name: str, modes: list[str], a: int, b: int) -> int:
    signs = (a ^ b) & form.sign
    nans = form.is_nan(a) + form.is_nan(b)
    if nans == 2 or (nans and "NaN" in modes):
        return form.canonical
    if "xorsign" in modes:
        a, b = a & ~form.sign, b & ~form.sign
    if nans:
        result = b if form.is_nan(a) else a
    else:
        below = _rank(form, a) < _rank(form, b)
        result = a if below is (name == "min") else b
    return result & ~form.sign | signs if "xorsign" in modes else result


def _rank(form: Format, bits: int) -> int:
    """A number that is in the order of the values, -0 before +0."""
    return ~(bits ^ form.sign) if bits & form.sign else bits


def _compare(form: Format, name: str, a: int, b: int) -> bool:
    unordered = form.is_nan(a) or form.is_nan(b)
    if name in ("num", "nan"):
        return unordered is (name == "nan")
    if unordered:
        return len(name) == 3
    if (a | b) & ~form.sign == 0:
        a = b = 0
    x, y = _rank(form, a), _rank(form, b)
    truths = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    if name[:2] not in truths:
        raise PtxmmError(f"no floating-point operation {name!r}", kind="internal")
    return truths[name[:2]]


def _invalid(form: Format) -> int:
    return form.sign | form.infinity | form.quiet if form.fraction == 52 else form.canonical


def _arithmetic(form: Format, name: str, mode: str, operands: list[int]) -> int:
    for x in operands:
        if form.is_nan(x):
            return x | form.quiet if form.fraction == 52 else form.canonical
    match name:
        case "add":
            return _add(form, mode, *operands)
        case "sub":
            return _add(form, mode, operands[0], operands[1] ^ form.sign)
        case "mul":
            return _multiply(form, mode, *operands)
        case "fma":
            return _fuse(form, mode, *operands)
        case "div":
            return _divide(form, mode, *operands)
        case "rcp":
            return _divide(form, mode, form.infinity >> 1 & form.infinity, operands[0])
    return _root(form, mode, operands[0])


def _decode(form: Format, bits: int) -> _Exact:
    """A finite number."""
    exponent, fraction = (bits & form.infinity) >> form.fraction, bits & ((1 << form.fraction) - 1)
    if exponent:
        fraction |= 1 << form.fraction
    return _Exact(bool(bits & form.sign), fraction, max(exponent, 1) + form.least - 1)


def _sum(x: _Exact, y: _Exact, mode: str) -> _Exact:
    scale = min(x.scale, y.scale)
    total = sum((-v.size if v.negative else v.size) << (v.scale - scale) for v in (x, y))
    if total:
        return _Exact(total < 0, abs(total), scale)
    same = x.size == 0 and y.size == 0 and x.negative is y.negative
    return _Exact(x.negative if same else mode == "rm", 0, scale)


def _add(form: Format, mode: str, a: int, b: int) -> int:
    if form.is_infinite(a) and form.is_infinite(b):
        return a if a == b else _invalid(form)
    if form.is_infinite(a) or form.is_infinite(b):
        return a if form.is_infinite(a) else b
    return _encode(form, _sum(_decode(form, a), _decode(form, b), mode), mode)


def _times(form: Format, a: int, b: int) -> _Exact:
    x, y = _decode(form, a), _decode(form, b)
    return _Exact(x.negative is not y.negative, x.size * y.size, x.scale + y.scale)


def _multiply(form: Format, mode: str, a: int, b: int) -> int:
    if form.is_infinite(a) or form.is_infinite(b):
        if a & ~form.sign == 0 or b & ~form.sign == 0:
            return _invalid(form)
        return (a ^ b) & form.sign | form.infinity
    return _encode(form, _times(form, a, b), mode)


def _fuse(form: Format, mode: str, a: int, b: int, c: int) -> int:
    if form.is_infinite(a) or form.is_infinite(b):
        product = _multiply(form, mode, a, b)
        return product if form.is_nan(product) else _add(form, mode, product, c)
    if form.is_infinite(c):
        return c
    return _encode(form, _sum(_times(form, a, b), _decode(form, c), mode), mode)


def _divide(form: Format, mode: str, a: int, b: int) -> int:
    sign = (a ^ b) & form.sign
    zeros = a & ~form.sign == 0, b & ~form.sign == 0
    if all(zeros) or (form.is_infinite(a) and form.is_infinite(b)):
        return _invalid(form)
    if zeros[1] or form.is_infinite(a):
        return sign | form.infinity
    if zeros[0] or form.is_infinite(b):
        return sign
    x, y = _decode(form, a), _decode(form, b)
    quotient, rest = divmod(x.size << _SPARE, y.size)
    return _encode(form, _Exact(bool(sign), quotient << 1 | (rest != 0), x.scale - y.scale - _SPARE - 1), mode)


def _root(form: Format, mode: str, a: int) -> int:
    if a & ~form.sign == 0:
        return a
    if a & form.sign:
        return _invalid(form)
    if form.is_infinite(a):
        return a
    x = _decode(form, a)
    shift = 2 * _SPARE + (x.scale & 1)
    size = x.size << shift
    root = isqrt(size)
    return _encode(form, _Exact(False, root << 1 | (root * root != size), (x.scale - shift) // 2 - 1), mode)


def _encode(form: Format, x: _Exact, mode: str) -> int:
    """The number of the format that ``x`` is rounded to."""
    sign = form.sign if x.negative else 0
    if x.size == 0:
        return sign
    # The last bit that the format has at this size, and the exponent field that goes with it.
    unit = max(x.size.bit_length() + x.scale - form.fraction - 1, form.least)
    significand = _cut(x.negative, x.size, unit - x.scale, mode)
    bits = (unit - form.least << form.fraction) + significand  # a leading one counts as one exponent more
    if bits < form.infinity:
        return sign | bits
    inwards = mode == "rz" or (mode == "rm" and not x.negative) or (mode == "rp" and x.negative)
    return sign | form.infinity - inwards


def _cut(negative: bool, size: int, places: int, mode: str) -> int:
    """``size / 2**places`` as an integer, rounded by rn rz rm rp as a number with this sign."""
    if places <= 0:
        return size << -places
    kept, rest, half = size >> places, size & ((1 << places) - 1), 1 << (places - 1)
    if mode == "rn":
        return kept + (rest > half or (rest == half and kept & 1 == 1))
    return kept + (mode != "rz" and negative is (mode == "rm") and rest != 0)


# -- conversions --


def convert_float(value: int, to: Type, frm: Type, saturate: bool, rounding: str | None, flush: bool) -> int:
    """``cvt`` from or to a floating-point type (PTX ISA 9.7.10.20)."""
    source, target = FORMATS.get((frm.kind, frm.bits)), FORMATS.get((to.kind, to.bits))
    value &= (1 << frm.bits) - 1
    if flush and source is not None and frm.bits == 32:
        value = _flush(source, value)
    if target is None:
        assert source is not None
        return _integral(source, value, to, rounding or "rzi")
    if source is None:
        negative = frm.signed and value >> (frm.bits - 1) == 1
        size = (1 << frm.bits) - value if negative else value
        result = _encode(target, _Exact(negative, size, 0), rounding or "rn")
    elif source.is_nan(value):
        result = _converted_nan(source, target, value)
    elif source.is_infinite(value):
        result = (target.sign if value & source.sign else 0) | target.infinity
    else:
        exact = _decode(source, value)
        if rounding is not None and len(rounding) == 3:
            exact = _Exact(exact.negative, _cut(exact.negative, exact.size, -exact.scale, rounding[:2]), 0)
        result = _encode(target, exact, rounding[:2] if rounding is not None else "rn")
    if flush and to.bits == 32:
        result = _flush(target, result)
    return _saturate(target, result) if saturate else result


def _converted_nan(source: Format, target: Format, value: int) -> int:
    """Double precision keeps sign and payload; elsewhere the NaN is unspecified, and the canonical one here."""
    if target.fraction != 52:
        return target.canonical
    payload = (value & ((1 << source.fraction) - 1)) << (52 - source.fraction)
    return (target.sign if value & source.sign else 0) | target.infinity | target.quiet | payload


def _integral(form: Format, value: int, to: Type, rounding: str) -> int:
    """As an integer: within the range, and 0 for a NaN."""
    if form.is_nan(value):
        return 0
    low, high = (-(1 << (to.bits - 1)), (1 << (to.bits - 1)) - 1) if to.signed else (0, (1 << to.bits) - 1)
    if form.is_infinite(value):
        number = low if value & form.sign else high
    else:
        exact = _decode(form, value)
        size = _cut(exact.negative, exact.size, -exact.scale, rounding[:2])
        number = max(low, min(high, -size if exact.negative else size))
    return number & ((1 << to.bits) - 1)
