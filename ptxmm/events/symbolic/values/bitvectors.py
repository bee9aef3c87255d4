"""Expressions of integers as bit vectors of Z3: for which of their leaves they differ (see ``essential``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import z3

from ptxmm.events.symbolic.values.operation import Operation
from ptxmm.program.shared.refusals import UNDECIDABLE, refusal
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import source_types

_MILLISECONDS = 4000
_WIDE = 128
"""All vectors have this width; what an operation gives is cut to its own."""


def proved(
    order: Sequence[int],
    made: Mapping[int, Operation],
    constants: Mapping[int, int],
    widths: Mapping[int, int],
    asked: Sequence[int],
) -> set[int]:
    """Those of the leaves ``asked`` for two values of which the last of ``order`` differs; ``widths``: of all leaves.

    Raises ``PtxmmError`` (kind ``unsupported``) where that is too hard to tell.
    """
    used = {o for n in order for o in made[n].operands}
    known: dict[int, Any] = {c: _number(v) for c, v in constants.items() if c in used}
    known |= {leaf: _leaf(f"v{leaf}", width) for leaf, width in widths.items()}
    first = _translated(order, made, known)
    found: set[int] = set()
    for leaf in asked:
        other = _translated(order, made, known | {leaf: _leaf(f"w{leaf}", widths[leaf])})
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", _MILLISECONDS)
        solver.add(first != other)
        answer = solver.check()
        if answer == z3.unknown:
            raise refusal(UNDECIDABLE)
        if answer == z3.sat:
            found.add(leaf)
    return found


def _leaf(name: str, width: int) -> Any:
    vector = z3.BitVec(name, width)
    return z3.ZeroExt(_WIDE - width, vector) if width < _WIDE else vector


def _number(value: int) -> Any:
    return z3.BitVecVal(value, _WIDE)


def _low(vector: Any, bits: int) -> Any:
    return z3.ZeroExt(_WIDE - bits, z3.Extract(bits - 1, 0, vector)) if bits < _WIDE else vector


def _truth(condition: Any) -> Any:
    return z3.If(condition, _number(1), _number(0))


def _translated(order: Sequence[int], made: Mapping[int, Operation], known: Mapping[int, Any]) -> Any:
    vectors = dict(known)
    for n in order:
        vectors[n] = z3.simplify(_vector(made[n], [vectors[o] for o in made[n].operands]))
    return vectors[order[-1]]


def _vector(made: Operation, operands: list[Any]) -> Any:
    match made.name:
        case "select":
            return z3.If(operands[2] != 0, operands[0], operands[1])
        case "cut":
            shift, width = made.arguments
            return _low(z3.LShR(operands[0], shift), width)
        case "join":
            return operands[0] | operands[1] << made.arguments[0]
        case "extend":
            frm, bits = made.arguments
            return _low(_typed(operands[0], frm), bits)
        case "cvt":
            to, frm, saturate = made.arguments
            value = _typed(operands[0], frm)
            if saturate:
                low = -(1 << (to.bits - 1)) if to.signed else 0
                high = (1 << (to.bits - 1)) - 1 if to.signed else (1 << to.bits) - 1
                value = z3.If(value < low, _number(low), z3.If(value > high, _number(high), value))
            return _low(value, to.bits)
        case "inc" | "dec":
            a, b = (_low(o, made.type.bits) for o in operands)
            if made.name == "inc":
                return z3.If(z3.UGE(a, b), _number(0), a + 1)
            return z3.If(z3.Or(a == 0, z3.UGT(a, b)), b, a - 1)
    types = source_types(made.name, made.type) if made.name not in _COMPARISONS else (made.type, made.type)
    bits = made.type.bits
    given = [_typed(o, t) for o, t in zip(operands, types, strict=True)]
    if made.name in _COMPARISONS:
        return _truth(_COMPARISONS[made.name](*given))
    plain = [_low(o, t.bits) for o, t in zip(operands, types, strict=True)]
    name, *modes = made.name.split(".")
    made_of = _integer(name, modes, made.type, given, plain)
    if made_of is None:
        raise refusal(UNDECIDABLE)
    result, width = made_of if isinstance(made_of, tuple) else (made_of, bits)
    return _low(result, width)


def _typed(vector: Any, type_: Type) -> Any:
    """The number that the lower bits are in ``type_``, in all bits."""
    if type_.signed and type_.bits < _WIDE:
        return z3.SignExt(_WIDE - type_.bits, z3.Extract(type_.bits - 1, 0, vector))
    return _low(vector, type_.bits)


# Numbers of all bits are compared as signed ones: the widest has 64 bits, and is no less than 0 where it is unsigned.
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _integer(name: str, modes: list[str], type_: Type, given: list[Any], plain: list[Any]) -> Any:
    """An operation on ``given`` numbers, which are ``plain`` as unsigned ones; with its width where that is not that of
    the type. None for one that is not among these."""
    bits = type_.bits
    a, b, c = (*given, None, None)[:3]
    match name, modes:
        case "mov", []:
            return a
        case "add", []:
            return a + b
        case "sub", []:
            return a - b
        case "mul", ["lo"]:
            return a * b
        case "mul", ["hi"]:
            return a * b >> bits
        case "mul", ["wide"]:
            return a * b, 2 * bits
        case "and", []:
            return a & b
        case "or", []:
            return a | b
        case "xor", []:
            return a ^ b
        case "not", []:
            return ~a
        case "cnot", []:
            return _truth(a == 0)
        case "neg", []:
            return -a
        case "abs", []:
            signed = _typed(a, Type("s", bits))
            return z3.If(signed < 0, -signed, signed)
        case "shl", []:
            return z3.If(z3.UGE(plain[1], bits), _number(0), a << plain[1])
        case "shr", []:
            return z3.If(z3.UGE(plain[1], bits), a >> bits, a >> plain[1])
        case "min", []:
            return z3.If(b < a, b, a)
        case "max", []:
            return z3.If(b > a, b, a)
        case "div" | "rem", []:
            return _divided(name, type_, a, b, plain[0])
        case "sad", []:
            return c + z3.If(a < b, b - a, a - b)
        case "popc", []:
            return _sum([_bit(plain[0], i) for i in range(bits)]), 32
        case "clz", []:
            result = _number(bits)
            for i in range(bits):
                result = z3.If(_bit(plain[0], i) == 1, _number(bits - 1 - i), result)
            return result, 32
        case "brev", []:
            return _sum([_bit(plain[0], i) << (bits - 1 - i) for i in range(bits)])
        case "bfe", []:
            return _extracted(type_, a, plain)
        case "bfi", []:
            first, length = plain[2] & 0xFF, plain[3] & 0xFF
            hole = z3.If(z3.UGE(length, _WIDE), _number(-1), (_number(1) << length) - 1) << first
            return plain[1] & ~hole | plain[0] << first & hole
        case "lop3", _:
            result = _number(0)
            for row in range(8):
                parts = [p if row & m else ~p for p, m in zip(plain[:3], (4, 2, 1), strict=True)]
                chosen = z3.If(_bit(plain[3], row) == 1, _number(-1), _number(0))
                result = result | parts[0] & parts[1] & parts[2] & chosen
            if not modes:
                return result
            some = _truth(_low(result, 32) != 0)
            return (some & plain[4] if modes == ["and"] else some | plain[4]), 1
        case "shf", _:
            amount = z3.If(z3.UGT(plain[2], 32), _number(32), plain[2]) if modes[1] == "clamp" else plain[2] & 31
            both = plain[1] << 32 | plain[0]
            return z3.LShR(both << amount, 32) if modes[0] == "l" else z3.LShR(both, amount)
        case "prmt", []:
            return _permuted(plain)
        case "slct", ["s32"]:
            return z3.If(c >= 0, a, b)
        case "set", _:
            truth = _truth(_COMPARISONS[modes[0]](a, b))
            for mode in modes[1:-1]:
                word, _, negated = mode.partition("_")
                other = plain[2] ^ 1 if negated else plain[2]
                if word in ("and", "or", "xor"):
                    truth = {"and": truth & other, "or": truth | other, "xor": truth ^ other}[word]
            return z3.If(truth != 0, _number(0x3F800000 if modes[-1] == "f32" else 0xFFFFFFFF), _number(0)), 32
    return None


def _bit(vector: Any, i: int) -> Any:
    return z3.LShR(vector, i) & 1


def _sum(parts: list[Any]) -> Any:
    total = _number(0)
    for part in parts:
        total = total + part
    return total


def _divided(name: str, type_: Type, a: Any, b: Any, dividend: Any) -> Any:
    """In the width of the type, where division is quicker. By 0: all ones, and the dividend."""
    bits = type_.bits
    x, y = z3.Extract(bits - 1, 0, a), z3.Extract(bits - 1, 0, b)
    if type_.signed:
        result = x / y if name == "div" else z3.SRem(x, y)
    else:
        result = z3.UDiv(x, y) if name == "div" else z3.URem(x, y)
    by_zero = _number(-1) if name == "div" else dividend
    return z3.If(b == 0, by_zero, z3.ZeroExt(_WIDE - bits, result))


def _extracted(type_: Type, a: Any, plain: list[Any]) -> Any:
    first, length = plain[1] & 0xFF, plain[2] & 0xFF
    # Of a signed number the sign goes on above; of a field of the whole width or more nothing is cut off.
    field = z3.If(z3.UGE(first, _WIDE), a >> _WIDE - 1, a >> first)
    rest = z3.If(z3.UGE(length, type_.bits), _number(0), _number(_WIDE) - length)
    unsigned = z3.LShR(field << rest, rest)
    cut = (field << rest) >> rest if type_.signed else unsigned
    return z3.If(length == 0, _number(0), cut)


def _permuted(plain: list[Any]) -> Any:
    both = plain[1] << 32 | plain[0]
    result = _number(0)
    for i in range(4):
        selector = z3.LShR(plain[2], 4 * i)
        byte = z3.LShR(both, (selector & 7) << 3) & 0xFF
        sign = z3.If(byte & 0x80 != 0, _number(0xFF), _number(0))
        result = result | z3.If(selector & 8 != 0, sign, byte) << (8 * i)
    return result
