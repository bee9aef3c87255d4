"""Arithmetic of PTX on plain unsigned Python integers (PTX ISA 9.7.1 to .3, 9.7.7, 9.7.9, 9.7.10.20, 9.7.14.5)."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import result_type

U32 = (1 << 32) - 1


def as_signed(value: int, bits: int) -> int:
    """The two's complement reading of the low ``bits`` bits of ``value``."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def bounds(type_: Type) -> tuple[int, int]:
    """The least and the greatest integer of ``type_``."""
    return (-(1 << type_.bits - 1), (1 << type_.bits - 1) - 1) if type_.signed else (0, (1 << type_.bits) - 1)


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
_EVERY_COMPARISON = COMPARISONS | {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}
_UPDATES = frozenset(("exch", "inc", "dec"))
_ON_BITS = frozenset(("mov", "exch", "set", "slct"))
_ONE = 0x3F800000

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


_BOOLEAN: dict[str, Callable[[int, int], int]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def result_bits(op: str, type_: Type) -> int:
    """The width of what ``op`` in ``type_`` gives."""
    if is_comparison(op):
        return 1
    return type_.bits if op in _UPDATES else result_type(op, type_).bits


def is_comparison(op: str) -> bool:
    """Whether ``op`` is a comparison of ``SetPredicate``."""
    return op.partition(".")[0] in _EVERY_COMPARISON


def compute(op: str, type_: Type, *args: int) -> int:
    """``op`` in ``type_`` on unsigned operands, as an unsigned value of ``result_bits`` bits.

    ``op``: an operation of ``ptx.ops.Alu``, ``AluPair`` or ``Atomic`` (``inc``, ``dec``, ``exch`` take the old value
    first), or a comparison of ``SetPredicate``. Shift amounts are unsigned 32-bit numbers and clamp at the width.
    Values of floating-point types are bit patterns (``floats.operate``). What the ISA leaves unspecified (division by
    0) has some value. Raises ``KeyError`` for an operation that does not exist.
    """
    return _result(op, type_, args) & ((1 << result_bits(op, type_)) - 1)


def _result(op: str, type_: Type, args: tuple[int, ...]) -> int:
    plain = _SAME_WIDTH.get(op)
    if type_.kind in ("f", "bf"):
        first = op.partition(".")[0]
        if first not in _ON_BITS:
            from ptxmm.events.explicit.values import floats  # fractions take time to load

            return floats.operate(op, type_, *args)
    elif plain is not None:
        return plain(type_, *args)
    elif op in _COMPARE:
        return int(_COMPARE[op](number(args[0], type_), number(args[1], type_)))
    if op in ("mov", "exch"):
        return _SAME_WIDTH[op](type_, *args)
    first, *modes = op.split(".")
    if first == "set":
        return _set(modes, type_, args)
    if first == "slct":
        return args[0] if _not_negative(modes, args[2]) else args[1]
    if op == "mul.wide":
        return number(args[0], type_) * number(args[1], type_)
    if op == "mad.wide":
        return number(args[0], type_) * number(args[1], type_) + args[2]
    from ptxmm.events.explicit.values import bits  # few programs have these

    found = bits.find(op)
    if found is None:
        raise KeyError(op)
    function, rest = found
    return function(type_, rest, *args)


def _set(modes: list[str], type_: Type, args: tuple[int, ...]) -> int:
    """All ones, or 1.0, if the comparison holds (9.7.7.1)."""
    *words, to = modes
    cmp = ".".join((words[0], *(["ftz"] if "ftz" in words else [])))
    truth = compute(cmp, type_, *args[:2])
    boolop = next((word for word in words[1:] if word != "ftz"), None)
    if boolop is not None:
        name, _, negated = boolop.partition("_")
        truth = _BOOLEAN[name](truth, args[2] ^ 1 if negated else args[2])
    return (_ONE if to == "f32" else U32) if truth else 0


def _not_negative(modes: list[str], c: int) -> bool:
    """Whether the last operand of ``slct`` is 0 or more; a NaN is not (9.7.7.4)."""
    if modes[-1] == "s32":
        return not c >> 31
    return bool(compute("ge.ftz" if "ftz" in modes else "ge", Type("f", 32), c, 0))


def convert(
    value: int, to: Type, frm: Type, saturate: bool = False, rounding: str | None = None, flush: bool = False
) -> int:
    """``cvt{.sat}.to.frm``: sign- or zero-extended by ``frm``, clamped to ``to`` if ``saturate``, or cut off; with
    floating-point types as ``floats.convert``."""
    if to.kind in ("f", "bf") or frm.kind in ("f", "bf"):
        from ptxmm.events.explicit.values import floats

        return floats.convert(value, to, frm, saturate, rounding, flush)
    result = number(value, frm)
    if saturate:
        low, high = bounds(to)
        result = min(max(result, low), high)
    return result & ((1 << to.bits) - 1)
