"""Expressions of integers as bit vectors of Z3: for which of their leaves they differ (see ``essential``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import z3

from ptxmm.events.symbolic.values.arithmetic import COMPARISONS, OPERATIONS, bounds
from ptxmm.events.symbolic.values.computation import Computation, dependents
from ptxmm.program.shared.refusals import UNDECIDABLE, refusal
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import source_types

_MILLISECONDS = 4000
WIDE = 128
"""All vectors have this width; what an operation gives is cut to its own."""


def proved(
    order: Sequence[int],
    made: Mapping[int, Computation],
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
        other = _translated(dependents(leaf, order, made), made, first | {leaf: _leaf(f"w{leaf}", widths[leaf])})
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", _MILLISECONDS)
        solver.add(first[order[-1]] != other[order[-1]])
        answer = solver.check()
        if answer == z3.unknown:
            raise refusal(UNDECIDABLE)
        if answer == z3.sat:
            found.add(leaf)
    return found


def _leaf(name: str, width: int) -> Any:
    vector = z3.BitVec(name, width)
    return z3.ZeroExt(WIDE - width, vector) if width < WIDE else vector


def _number(value: int) -> Any:
    return z3.BitVecVal(value, WIDE)


def _low(vector: Any, bits: int) -> Any:
    return z3.ZeroExt(WIDE - bits, z3.Extract(bits - 1, 0, vector)) if bits < WIDE else vector


def _truth(condition: Any) -> Any:
    return z3.If(condition, _number(1), _number(0))


def _translated(order: Sequence[int], made: Mapping[int, Computation], known: Mapping[int, Any]) -> dict[int, Any]:
    """``known`` with the expressions of ``order`` that are made of it."""
    vectors = dict(known)
    for n in order:
        vectors[n] = z3.simplify(vector(made[n], [vectors[o] for o in made[n].operands]))
    return vectors


def vector(made: Computation, operands: list[Any]) -> Any:
    """What an operation gives for vectors. Raises ``PtxmmError`` (kind ``unsupported``) for one that is not on
    integers."""
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
                low, high = bounds(to)
                value = z3.If(value < low, _number(low), z3.If(value > high, _number(high), value))
            return _low(value, to.bits)
        case "inc" | "dec":
            a, b = (_low(o, made.type.bits) for o in operands)
            if made.name == "inc":
                return z3.If(z3.UGE(a, b), _number(0), a + 1)
            return z3.If(z3.Or(a == 0, z3.UGT(a, b)), b, a - 1)
    types = (made.type, made.type) if made.name in COMPARISONS else source_types(made.name, made.type)
    given = [_typed(o, t) for o, t in zip(operands, types, strict=True)]
    unsigned = [_low(o, t.bits) for o, t in zip(operands, types, strict=True)]
    found = _integer(made, given, unsigned)
    if found is None:
        raise refusal(UNDECIDABLE)
    result, width = found if isinstance(found, tuple) else (found, made.type.bits)
    return _low(result, width)


def _typed(vector: Any, type_: Type) -> Any:
    """The number that the lower bits are in ``type_``, in all bits."""
    if type_.signed and type_.bits < WIDE:
        return z3.SignExt(WIDE - type_.bits, z3.Extract(type_.bits - 1, 0, vector))
    return _low(vector, type_.bits)


def _compare(name: str, a: Any, b: Any) -> Any:
    """Numbers of all bits are compared as signed ones: the widest has 64 bits, and is no less than 0 if unsigned."""
    return _truth(OPERATIONS[name](a, b, None, 0))


_ALIKE = ("mov", "add", "sub", "mul.lo", "mul.hi", "and", "or", "xor", "not", "neg")
"""What is written of vectors as it is of integers."""

# By name: of numbers of the type.
_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "cnot": lambda a: _truth(a == 0),
    "min": lambda a, b: z3.If(b < a, b, a),
    "max": lambda a, b: z3.If(b > a, b, a),
    "sad": lambda a, b, c: c + z3.If(a < b, b - a, a - b),
    "slct.s32": lambda a, b, c: z3.If(c >= 0, a, b),
}

# By name: of the type, the numbers, and the same as unsigned ones.
_TYPED: Mapping[str, Callable[[Type, list[Any], list[Any]], Any]] = {
    "mul.wide": lambda type_, given, unsigned: (given[0] * given[1], 2 * type_.bits),
    "abs": lambda type_, given, unsigned: _absolute(type_, given[0]),
    "shl": lambda type_, given, unsigned: z3.If(z3.UGE(unsigned[1], type_.bits), _number(0), given[0] << unsigned[1]),
    "shr": lambda type_, given, unsigned: z3.If(
        z3.UGE(unsigned[1], type_.bits), given[0] >> type_.bits, given[0] >> unsigned[1]
    ),
    "div": lambda type_, given, unsigned: _divided("div", type_, given[0], given[1], unsigned[0]),
    "rem": lambda type_, given, unsigned: _divided("rem", type_, given[0], given[1], unsigned[0]),
    "popc": lambda type_, given, unsigned: (_sum([_bit(unsigned[0], i) for i in range(type_.bits)]), 32),
    "clz": lambda type_, given, unsigned: (_leading_zeros(type_.bits, unsigned[0]), 32),
    "brev": lambda type_, given, unsigned: _sum(
        [_bit(unsigned[0], i) << (type_.bits - 1 - i) for i in range(type_.bits)]
    ),
    "bfe": lambda type_, given, unsigned: _extracted(type_, given[0], unsigned),
    "bfi": lambda type_, given, unsigned: _inserted(*unsigned),
    "prmt": lambda type_, given, unsigned: _permuted(unsigned),
}

# By the first word of the name: of its further qualifiers, the numbers, and the same as unsigned ones.
_QUALIFIED: Mapping[str, Callable[[list[str], list[Any], list[Any]], Any]] = {
    "lop3": lambda modes, given, unsigned: _looked_up(modes, unsigned),
    "shf": lambda modes, given, unsigned: _funnelled(modes, *unsigned),
    "set": lambda modes, given, unsigned: _compared(modes, given, unsigned),
}


def _integer(made: Computation, given: list[Any], unsigned: list[Any]) -> Any:
    """An operation on ``given`` numbers, or the same as ``unsigned`` ones; with its width where that is not that of the
    type. None for one that is not among these."""
    if made.name in COMPARISONS:
        return _compare(made.name, given[0], given[1]), 1
    if made.name in _ALIKE:
        a, b = (*given, None)[:2]
        return OPERATIONS[made.name](a, b, None, made.type.bits)
    if made.name in _NUMBERS:
        return _NUMBERS[made.name](*given)
    if made.name in _TYPED:
        return _TYPED[made.name](made.type, given, unsigned)
    name, *modes = made.name.split(".")
    return _QUALIFIED[name](modes, given, unsigned) if name in _QUALIFIED else None


def _absolute(type_: Type, a: Any) -> Any:
    number = _typed(a, Type("s", type_.bits))
    return z3.If(number < 0, -number, number)


def _leading_zeros(bits: int, vector: Any) -> Any:
    result = _number(bits)
    for i in range(bits):
        result = z3.If(_bit(vector, i) == 1, _number(bits - 1 - i), result)
    return result


def _inserted(a: Any, b: Any, c: Any, d: Any) -> Any:
    first, length = c & 0xFF, d & 0xFF
    hole = z3.If(z3.UGE(length, WIDE), _number(-1), (_number(1) << length) - 1) << first
    return b & ~hole | a << first & hole


def _looked_up(modes: list[str], operands: list[Any]) -> Any:
    result = _number(0)
    for row in range(8):
        parts = [p if row & m else ~p for p, m in zip(operands[:3], (4, 2, 1), strict=True)]
        chosen = z3.If(_bit(operands[3], row) == 1, _number(-1), _number(0))
        result = result | parts[0] & parts[1] & parts[2] & chosen
    if not modes:
        return result
    some = _truth(_low(result, 32) != 0)
    return (some & operands[4] if modes == ["and"] else some | operands[4]), 1


def _funnelled(modes: list[str], low: Any, high: Any, shift: Any) -> Any:
    amount = z3.If(z3.UGT(shift, 32), _number(32), shift) if modes[1] == "clamp" else shift & 31
    both = high << 32 | low
    return z3.LShR(both << amount, 32) if modes[0] == "l" else z3.LShR(both, amount)


def _compared(modes: list[str], given: list[Any], unsigned: list[Any]) -> Any:
    """``set``: all ones or 1.0 where the comparison holds, joined with a predicate."""
    truth = _compare(modes[0], given[0], given[1])
    for mode in modes[1:-1]:
        word, _, negated = mode.partition("_")
        if word in ("and", "or", "xor"):
            other = unsigned[2] ^ 1 if negated else unsigned[2]
            truth = {"and": truth & other, "or": truth | other, "xor": truth ^ other}[word]
    return z3.If(truth != 0, _number(0x3F800000 if modes[-1] == "f32" else 0xFFFFFFFF), _number(0)), 32


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
    return z3.If(b == 0, by_zero, z3.ZeroExt(WIDE - bits, result))


def _extracted(type_: Type, a: Any, unsigned: list[Any]) -> Any:
    first, length = unsigned[1] & 0xFF, unsigned[2] & 0xFF
    # Of a signed number the sign goes on above; of a field of the whole width or more nothing is cut off.
    field = z3.If(z3.UGE(first, WIDE), a >> WIDE - 1, a >> first)
    rest = z3.If(z3.UGE(length, type_.bits), _number(0), _number(WIDE) - length)
    cut = (field << rest) >> rest if type_.signed else z3.LShR(field << rest, rest)
    return z3.If(length == 0, _number(0), cut)


def _permuted(operands: list[Any]) -> Any:
    both = operands[1] << 32 | operands[0]
    result = _number(0)
    for i in range(4):
        selector = z3.LShR(operands[2], 4 * i)
        byte = z3.LShR(both, (selector & 7) << 3) & 0xFF
        sign = z3.If(byte & 0x80 != 0, _number(0xFF), _number(0))
        result = result | z3.If(selector & 8 != 0, sign, byte) << (8 * i)
    return result
