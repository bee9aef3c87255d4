"""Bit fields, byte permutations, packed and extended-precision integers (PTX ISA 9.7.1, 9.7.2, 9.7.9, 9.7.10.7, .21).

Every function takes the type of the operation, the modes in its name, and the operands as unsigned numbers; results are
cut to their width by ``arithmetic.compute``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ptxmm.ptx.ops import Type

_Modes = tuple[str, ...]
_NOT_FOUND = 0xFFFFFFFF


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _typed(type_: Type, value: int) -> int:
    return _signed(value, type_.bits) if type_.signed else value


def saturated(value: int, low: int, high: int) -> int:
    """``value``, or the limit that it is beyond."""
    return min(max(value, low), high)


def _to_s32(value: int) -> int:
    return saturated(value, -(1 << 31), (1 << 31) - 1)


def _popc(type_: Type, modes: _Modes, a: int) -> int:
    return a.bit_count()


def _clz(type_: Type, modes: _Modes, a: int) -> int:
    return type_.bits - a.bit_length()


def _bfind(type_: Type, modes: _Modes, a: int) -> int:
    if type_.signed and a >> (type_.bits - 1):
        a ^= (1 << type_.bits) - 1
    if a == 0:
        return _NOT_FOUND
    position = a.bit_length() - 1
    return type_.bits - 1 - position if modes else position


def _fns(type_: Type, modes: _Modes, mask: int, base: int, offset: int) -> int:
    """The n-th set bit; a base beyond the mask is undefined behaviour, and finds nothing."""
    number = _signed(offset, 32)
    if number == 0:
        positions = [base]
    else:
        positions = list(range(base, 32) if number > 0 else range(base, -1, -1) if base < 32 else ())
    found = [p for p in positions if mask >> p & 1]
    index = max(abs(number) - 1, 0)
    return found[index] if index < len(found) else _NOT_FOUND


def _brev(type_: Type, modes: _Modes, a: int) -> int:
    return int(f"{a:0{type_.bits}b}"[::-1], 2)


def _bfe(type_: Type, modes: _Modes, a: int, start: int, length: int) -> int:
    start, length = start & 0xFF, length & 0xFF
    if length == 0:
        return 0
    # Python's shift of a signed number repeats the sign; a field that reaches beyond the top ends with it.
    field = _typed(type_, a) >> start
    width = min(length, type_.bits)
    if not type_.signed:
        return field & ((1 << width) - 1)
    return _signed(field, width)


def _bfi(type_: Type, modes: _Modes, a: int, b: int, start: int, length: int) -> int:
    hole = ((1 << (length & 0xFF)) - 1) << (start & 0xFF)
    return (b & ~hole) | (a << (start & 0xFF) & hole)


def _szext(type_: Type, modes: _Modes, a: int, b: int) -> int:
    if modes == ("clamp",) and b >= 32:
        return a
    width = b & 31
    if width == 0:
        return 0
    return _signed(a, width) if type_.signed else a & ((1 << width) - 1)


def _bmsk(type_: Type, modes: _Modes, a: int, b: int) -> int:
    if modes == ("clamp",):
        return ((1 << min(b, 32)) - 1) << a if a < 32 else 0
    return ((1 << (b & 31)) - 1) << (a & 31)


def _lop3(type_: Type, modes: _Modes, a: int, b: int, c: int, table: int) -> int:
    ones = (1 << type_.bits) - 1
    result = 0
    for row in range(8):
        if table >> row & 1:
            result |= (a ^ (0 if row & 4 else ones)) & (b ^ (0 if row & 2 else ones)) & (c ^ (0 if row & 1 else ones))
    return result


def _lop3_predicate(type_: Type, modes: _Modes, a: int, b: int, c: int, table: int, q: int) -> int:
    result = int(_lop3(type_, (), a, b, c, table) != 0)
    return result & q if modes == ("and",) else result | q


def _lop3_any(type_: Type, modes: _Modes, *args: int) -> int:
    return _lop3_predicate(type_, modes, *args) if modes else _lop3(type_, modes, *args)


def _shf(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    direction, mode = modes
    amount = min(c, 32) if mode == "clamp" else c & 31
    both = b << 32 | a
    return both << amount >> 32 if direction == "l" else both >> amount


_BYTES: Mapping[str, Callable[[int], tuple[int, int, int, int]]] = MappingProxyType(
    {
        # The bytes of the result from the lowest on, by the two low bits of the selector (table of 9.7.10.7).
        "f4e": lambda s: (s, s + 1, s + 2, s + 3),
        "b4e": lambda s: (s, (s - 1) % 8, (s - 2) % 8, (s - 3) % 8),
        "rc8": lambda s: (s, s, s, s),
        "ecl": lambda s: (s, max(s, 1), max(s, 2), 3),
        "ecr": lambda s: (0, min(s, 1), min(s, 2), s),
        "rc16": lambda s: (2 * (s & 1), 2 * (s & 1) + 1) * 2,
    }
)


def _prmt(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    given = (b << 32 | a).to_bytes(8, "little")
    if modes:
        return int.from_bytes(bytes(given[i] for i in _BYTES[modes[0]](c & 3)), "little")
    result = 0
    for i in range(4):
        selector = c >> (4 * i) & 15
        byte = given[selector & 7]
        result |= (0xFF * (byte >> 7) if selector & 8 else byte) << (8 * i)
    return result


def _cnot(type_: Type, modes: _Modes, a: int) -> int:
    return int(a == 0)


def _sad(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    return c + abs(_typed(type_, a) - _typed(type_, b))


def _quotient(type_: Type, modes: _Modes, a: int, b: int) -> int:
    """Rounded towards zero. Division by zero gives no specified value: all ones here, as nothing looks at it."""
    x, y = _typed(type_, a), _typed(type_, b)
    if y == 0:
        return -1
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def _remainder(type_: Type, modes: _Modes, a: int, b: int) -> int:
    """With the sign of the dividend."""
    if b == 0:
        return a
    return _typed(type_, a) - _quotient(type_, modes, a, b) * _typed(type_, b)


def _factor24(type_: Type, value: int) -> int:
    return _signed(value, 24) if type_.signed else value & 0xFFFFFF


def _mul24(type_: Type, modes: _Modes, a: int, b: int) -> int:
    product = _factor24(type_, a) * _factor24(type_, b)
    return product >> 16 if modes[0] == "hi" else product


def _mad24(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    high = _mul24(type_, modes, a, b)
    return _to_s32(_signed(high, 32) + _signed(c, 32)) if "sat" in modes else high + c


def _dot(a: int, b: int, c: int, widths: tuple[int, int], types: tuple[bool, bool], count: int) -> int:
    def parts(value: int, bits: int, signed: bool) -> list[int]:
        pieces = [value >> (i * bits) & ((1 << bits) - 1) for i in range(count)]
        return [_signed(p, bits) if signed else p for p in pieces]

    return c + sum(x * y for x, y in zip(parts(a, widths[0], types[0]), parts(b, widths[1], types[1]), strict=True))


def _dp4a(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    return _dot(a, b, c, (8, 8), (type_.signed, modes[0] == "s32"), 4)


def _dp2a(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    half, other = modes
    return _dot(a, b >> (16 if half == "hi" else 0), c, (16, 8), (type_.signed, other == "s32"), 2)


def _pack(type_: Type, modes: _Modes, a: int, b: int, c: int = 0) -> int:
    part = modes[1]
    bits = int(part[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if part[0] == "s" else (0, (1 << bits) - 1)
    x, y = (saturated(_signed(v, 32), low, high) & ((1 << bits) - 1) for v in (a, b))
    return c << 2 * bits | x << bits | y


# 9.7.2: sums with a carry, of which ``.cc`` is the carry itself.


def _with_carry(type_: Type, modes: _Modes, total: int) -> int:
    return int(not 0 <= total < 1 << type_.bits) if modes[-1:] == ("cc",) else total


def _addc(type_: Type, modes: _Modes, a: int, b: int, carry: int = 0) -> int:
    return _with_carry(type_, modes, a + b + carry)


def _subc(type_: Type, modes: _Modes, a: int, b: int, borrow: int = 0) -> int:
    return _with_carry(type_, modes, a - (b + borrow))


def _madc(type_: Type, modes: _Modes, a: int, b: int, c: int, carry: int = 0) -> int:
    product = _typed(type_, a) * _typed(type_, b)
    half = product >> type_.bits if modes[0] == "hi" else product
    return _with_carry(type_, modes, (half & ((1 << type_.bits) - 1)) + c + carry)


def _mad_saturated(type_: Type, modes: _Modes, a: int, b: int, c: int) -> int:
    return _to_s32((_signed(a, 32) * _signed(b, 32) >> 32) + _signed(c, 32))


def _sum_saturated(type_: Type, modes: _Modes, a: int, b: int) -> int:
    return _to_s32(_signed(a, 32) + _signed(b, 32))


def _difference_saturated(type_: Type, modes: _Modes, a: int, b: int) -> int:
    return _to_s32(_signed(a, 32) - _signed(b, 32))


def _limits(pick: Callable[[int, int], int]) -> Callable[..., int]:
    """min or max with ``.relu``, and of packed halves."""

    def of(type_: Type, modes: _Modes, a: int, b: int) -> int:
        low = 0 if "relu" in modes else None
        if modes[-1] not in ("u16x2", "s16x2"):
            found = pick(_typed(type_, a), _typed(type_, b))
            return found if low is None else max(found, low)
        half = Type(modes[-1][0], 16)
        result = 0
        for shift in (0, 16):
            found = pick(*(_typed(half, v >> shift & 0xFFFF) for v in (a, b)))
            result |= ((found if low is None else max(found, low)) & 0xFFFF) << shift
        return result

    return of


def _add_halves(type_: Type, modes: _Modes, a: int, b: int) -> int:
    return (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) & 0xFFFF) << 16


_LEAST, _GREATEST = _limits(min), _limits(max)

OPERATIONS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "popc": _popc, "clz": _clz, "bfind": _bfind, "fns": _fns, "brev": _brev, "bfe": _bfe, "bfi": _bfi,
        "szext": _szext, "bmsk": _bmsk, "lop3": _lop3_any, "shf": _shf, "prmt": _prmt, "cnot": _cnot, "sad": _sad,
        "div": _quotient, "rem": _remainder, "mul24": _mul24, "mad24": _mad24, "dp4a": _dp4a, "dp2a": _dp2a,
        "cvt.pack": _pack, "add.sat": _sum_saturated, "sub.sat": _difference_saturated, "mad.hi.sat": _mad_saturated,
        "add.u16x2": _add_halves, "add.s16x2": _add_halves, "addc": _addc, "subc": _subc, "madc": _madc,
        "add.cc": _addc, "sub.cc": _subc, "mad.lo.cc": _madc, "mad.hi.cc": _madc,
        "min.u16x2": _LEAST, "min.s16x2": _LEAST, "min.relu": _LEAST,
        "max.u16x2": _GREATEST, "max.s16x2": _GREATEST, "max.relu": _GREATEST,
    }
)  # fmt: skip
"""By the whole name of an operation, or by its first word; each takes the words after the first as modes."""


def find(op: str) -> tuple[Callable[..., int], _Modes] | None:
    """The function for the operation ``op`` and its modes; None if it is not one of these."""
    first, *modes = op.split(".")
    function = OPERATIONS.get(op) or OPERATIONS.get(f"{first}.{modes[0]}" if modes else first) or OPERATIONS.get(first)
    return None if function is None else (function, tuple(modes))
