"""Values of the reference: expressions over reads, their rewrites, and integer arithmetic.

An expression is a nested tuple: ``("const", value)``, ``("read", (thread, event))``, ``("token", (thread, event))`` for
what an arrival returns, ``("given", (thread, step, which))`` for a value from other threads, ``("joined", expression,
reads, mark)`` for a register that a branch decided, ``("bytes", ((expression, first byte, bytes), ...))`` for what is
put together from pieces, the lowest first, ``("call", function, argument...)``, or ``(operation, type, argument...)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import result_type
from tests import reference_floats, reference_integers

F32 = Type("f", 32)

Leaf = tuple[int, ...]
"""(thread, event), or (thread, step, which) of a value from other threads."""

Expr = tuple[Any, ...]
NOTHING: frozenset[Leaf] = frozenset()

# ---- integer arithmetic (PTX ISA 8.5, 9.7.1, 9.7.7, 9.7.9) -----------------------------------------------------------


def mask(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def as_typed(value: int, kind: Type) -> int:
    """The number that the bits ``value`` stand for in ``kind``."""
    value = mask(value, kind.bits)
    return value - (1 << kind.bits) if kind.signed and value >> (kind.bits - 1) else value


COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def compute(op: str, kind: Type, args: list[int]) -> int:
    """``op`` on unsigned bit patterns; the result still has to be masked to the width of the result."""
    if op == "select":
        return args[1] if args[0] else args[2]
    name, *modes = op.split(".")
    if name == "set":
        return all_ones(modes, kind, args)
    if name == "slct":
        ftz = ".ftz" if "ftz" in modes else ""
        first = args[2] >> 31 == 0 if modes == ["s32"] else compute("ge" + ftz, F32, [args[2], 0])
        return args[0] if first else args[1]
    if kind.kind in ("f", "bf"):
        return reference_floats.compute(op, kind, args)
    if op in ("shl", "shr"):
        amount = mask(args[1], 32)
        return mask(args[0], kind.bits) << min(amount, kind.bits) if op == "shl" else as_typed(args[0], kind) >> amount
    a = as_typed(args[0], kind)
    b = as_typed(args[1], kind) if len(args) > 1 else 0
    if op in COMPARE:
        return int(COMPARE[op](a, b))
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul.lo" | "mul.wide":
            return a * b
        case "mul.hi":
            return (a * b) >> kind.bits
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "not":
            return ~a
        case "neg":
            return -a
        case "abs":
            return abs(a)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "inc":
            return 0 if a >= b else a + 1
        case "dec":
            return b if a == 0 or a > b else a - 1
    return reference_integers.compute(op, kind, args)


def all_ones(modes: list[str], kind: Type, args: list[int]) -> int:
    """``set``: what a comparison gives, maybe together with a predicate."""
    *words, to = modes
    truth = compute(words[0] + ".ftz" * ("ftz" in words), kind, args[:2])
    for word in words[1:]:
        if word != "ftz":
            c = args[2] ^ word.endswith("_not")
            truth = {"and": truth and c, "or": truth or c, "xor": truth != c}[word.removesuffix("_not")]
    return (0x3F800000 if to == "f32" else 0xFFFFFFFF) if truth else 0


def clamp(value: int, frm: Type, to: Type) -> int:
    """``cvt.sat``: the value of ``frm`` brought into the range of ``to``."""
    low, high = (-(1 << (to.bits - 1)), (1 << (to.bits - 1)) - 1) if to.signed else (0, (1 << to.bits) - 1)
    return max(low, min(high, as_typed(value, frm)))


def result_bits(op: str, kind: Type) -> int:
    if op.partition(".")[0] in reference_floats.COMPARISONS:
        return 1
    return kind.bits if op in ("select", "inc", "dec", "exch") else result_type(op, kind).bits


class Impossible(Exception):
    """The value of a read that is not on this path was asked for: the guard holds, against what the path assumes."""


def const(value: int) -> Expr:
    return ("const", value)


def is_const(expr: Expr) -> bool:
    return bool(expr[0] == "const")


def apply(op: str, kind: Type, *args: Expr, sem: bool = True) -> Expr:
    """``op(args)`` after the rewrites that semantic dependencies allow (A21), and no other."""
    if all(is_const(a) for a in args):
        return const(mask(compute(op, kind, [a[1] for a in args]), result_bits(op, kind)))
    if sem and (kind.kind not in ("f", "bf") or op == "select"):
        zero, ones = const(0), const(mask(-1, kind.bits))
        if op == "select" and is_const(args[0]):
            return args[1] if args[0][1] else args[2]
        if op == "select" and args[1] == args[2]:
            return args[1]
        if op in ("xor", "sub") and args[0] == args[1]:
            return zero
        if (op == "and" or op.startswith("mul")) and zero in args:
            return zero
        if op == "or" and ones in args:
            return ones
        if op in COMPARE and args[0] == args[1]:
            return const(int(COMPARE[op](0, 0)))
        shifts_out = op == "shl" or (op == "shr" and not kind.signed)
        if shifts_out and is_const(args[1]) and mask(args[1][1], 32) >= kind.bits:
            return zero
    return (op, kind, *args)


Piece = tuple[Expr, int, int]


def pieces_value(pieces: tuple[Piece, ...], value: Callable[[Expr], int]) -> int:
    result = shift = 0
    for expr, first, count in pieces:
        result |= mask(value(expr) >> 8 * first, 8 * count) << shift
        shift += 8 * count
    return result


def joined_bytes(*pieces: Piece) -> Expr:
    """The value whose bytes are those of ``pieces``, the lowest first."""
    if all(is_const(e) for e, _, _ in pieces):
        return const(pieces_value(pieces, lambda e: int(e[1])))
    return ("bytes", pieces)


def call(function: Callable[..., int], *args: Expr) -> Expr:
    """``function(*args)``"""
    return const(function(*(a[1] for a in args))) if all(is_const(a) for a in args) else ("call", function, *args)


interpretation: ContextVar[int] = ContextVar("interpretation", default=0)
"""Which functions the ``ops.Opaque`` are taken for: every number stands for others."""


def guessed(name: str, number: int, bits: int, *args: int) -> int:
    """Some function: the same for the same operands."""
    text = repr((interpretation.get(), name, number, *map(hex, args)))
    return mask(int.from_bytes(sha256(text.encode()).digest()[:16], "little"), bits)


def reads(expr: Expr) -> frozenset[Leaf]:
    """The reads that occur in ``expr``, and the operations on mbarriers whose results do."""
    match expr[0]:
        case "const" | "absent":
            return NOTHING
        case "bytes":
            return NOTHING.union(*(reads(e) for e, _, _ in expr[1]))
        case "read" | "given" | "token":
            return frozenset({expr[1]})
        case "joined":
            return NOTHING.union(reads(expr[1]), expr[2])
        case "saturate" | "extend":
            return reads(expr[3])
    return NOTHING.union(*(reads(a) for a in expr[2:]))


def evaluate(expr: Expr, leaf: Mapping[Leaf, int]) -> int:
    """The value of ``expr``; KeyError if it needs a read whose value is not known, ``Impossible`` as it says."""
    match expr[0]:
        case "const":
            return int(expr[1])
        case "read" | "token" | "given":
            return leaf[expr[1]]
        case "bytes":
            return pieces_value(expr[1], lambda e: evaluate(e, leaf))
        case "call":
            return int(expr[1](*(evaluate(a, leaf) for a in expr[2:])))
        case "absent":
            raise Impossible
        case "joined":
            return evaluate(expr[1], leaf)
        case "saturate":
            return mask(clamp(evaluate(expr[3], leaf), expr[1], expr[2]), expr[2].bits)
        case "extend":
            return mask(as_typed(evaluate(expr[3], leaf), expr[1]), expr[2])
        case "select":
            return evaluate(expr[3] if evaluate(expr[2], leaf) else expr[4], leaf)
    args = [evaluate(a, leaf) for a in expr[2:]]
    return mask(compute(expr[0], expr[1], args), result_bits(expr[0], expr[1]))


def substitute(expr: Expr, given: Mapping[Leaf, Expr]) -> Expr:
    """``expr`` with values from other threads in place, as far as they are known."""
    match expr[0]:
        case "const" | "absent" | "read" | "token":
            return expr
        case "given":
            return given.get(expr[1], expr)
        case "bytes":
            return joined_bytes(*((substitute(e, given), first, count) for e, first, count in expr[1]))
        case "joined":
            leaves = NOTHING.union(*(reads(given[leaf]) if leaf in given else {leaf} for leaf in expr[2]))
            return ("joined", substitute(expr[1], given), leaves, expr[3]) if leaves else substitute(expr[1], given)
        case "call":
            return call(expr[1], *(substitute(a, given) for a in expr[2:]))
        case "saturate" | "extend":
            inner = substitute(expr[3], given)
            return const(evaluate((*expr[:3], inner), {})) if is_const(inner) else (*expr[:3], inner)
        case "select":
            condition, one, other = (substitute(a, given) for a in expr[2:])
            if is_const(condition):
                return one if condition[1] else other
            return (*expr[:2], condition, one, other)
    return apply(expr[0], expr[1], *(substitute(a, given) for a in expr[2:]), sem=False)
