"""Arithmetic of PTX on plain unsigned Python integers (PTX ISA 9.7.1, 9.7.6, 9.7.8, 9.7.9.21, 9.7.13.5)."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ptxmm.ptx.ops import Type

U32 = (1 << 32) - 1


def as_signed(value: int, bits: int) -> int:
    """The two's complement reading of the low ``bits`` bits of ``value``."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def number(value: int, type_: Type) -> int:
    """The integer that ``value`` stands for in ``type_``: signed for ``s`` types, unsigned otherwise."""
    return as_signed(value, type_.bits) if type_.signed else value & ((1 << type_.bits) - 1)


def _shift_left(type_: Type, a: int, b: int) -> int:
    amount = b & U32
    return a << amount if amount < type_.bits else 0


def _shift_right(type_: Type, a: int, b: int) -> int:
    # Amounts of the width or more give 0 or all copies of the sign: what Python's >> gives, if kept small.
    return number(a, type_) >> min(b & U32, type_.bits)


def _increment(type_: Type, a: int, b: int) -> int:
    return 0 if number(a, type_) >= number(b, type_) else a + 1


def _decrement(type_: Type, a: int, b: int) -> int:
    return b if number(a, type_) == 0 or number(a, type_) > number(b, type_) else a - 1


def _product_high(type_: Type, a: int, b: int) -> int:
    return (number(a, type_) * number(b, type_)) >> type_.bits


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
COMPARISONS = frozenset(_COMPARE)

_SAME_WIDTH: dict[str, Callable[..., int]] = {
    "mov": lambda t, a: a,
    "exch": lambda t, a, b: b,
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul.lo": lambda t, a, b: a * b,
    "mul.hi": _product_high,
    "mad.lo": lambda t, a, b, c: a * b + c,
    "mad.hi": lambda t, a, b, c: _product_high(t, a, b) + c,
    "and": lambda t, a, b: a & b,
    "or": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
    "not": lambda t, a: ~a,
    "neg": lambda t, a: -a,
    "abs": lambda t, a: abs(as_signed(a, t.bits)),
    "shl": _shift_left,
    "shr": _shift_right,
    "min": lambda t, a, b: min(number(a, t), number(b, t)),
    "max": lambda t, a, b: max(number(a, t), number(b, t)),
    "inc": _increment,
    "dec": _decrement,
}


def result_bits(op: str, type_: Type) -> int:
    """The width of what ``op`` in ``type_`` gives."""
    if op in COMPARISONS:
        return 1
    return 2 * type_.bits if op.endswith(".wide") else type_.bits


def compute(op: str, type_: Type, *args: int) -> int:
    """``op`` in ``type_`` on unsigned operands, as an unsigned value of ``result_bits`` bits.

    ``op``: an operation of ``ptx.ops.Alu`` or ``Atomic`` (``inc``, ``dec``, ``exch`` take the old value first), or a
    comparison of ``SetPredicate``. Shift amounts are unsigned 32-bit numbers and clamp at the width. Values of
    floating-point types are bit patterns (``floats.operate``). Raises ``KeyError`` for an operation that does not
    exist.
    """
    if type_.kind in ("f", "bf"):
        from ptxmm.events import floats  # fractions take time to load

        if op in floats.OPERATIONS:
            return floats.operate(op, type_, *args)
    if op in _COMPARE:
        return int(_COMPARE[op](number(args[0], type_), number(args[1], type_)))
    if op == "mul.wide":
        result = number(args[0], type_) * number(args[1], type_)
    elif op == "mad.wide":
        result = number(args[0], type_) * number(args[1], type_) + args[2]
    else:
        result = _SAME_WIDTH[op](type_, *args)
    return result & ((1 << result_bits(op, type_)) - 1)


def convert(value: int, to: Type, frm: Type, saturate: bool = False) -> int:
    """``cvt{.sat}.to.frm``: sign- or zero-extended by ``frm``, clamped to ``to`` if ``saturate``, or cut off."""
    result = number(value, frm)
    if saturate:
        low, high = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if to.signed else (0, (1 << to.bits) - 1)
        result = min(max(result, low), high)
    return result & ((1 << to.bits) - 1)
