"""Which of the values in an expression make a difference, for the reference (reading dep=value).

A source is what an expression is made of that is not looked into: a read, a value from another thread, a register that
a branch decided, the result of a floating-point operation. It makes a difference if the expression has two values for
two values of it. That is tried out; where nothing is found, every bit of the expression is written as a polynomial over
the bits of the sources (a sum modulo 2 of products, each bit once: the one such form that there is), in which the
sources that make a difference are those that are left.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping

from ptxmm.ptx.ops import Type
from tests.reference_expressions import (
    COMPARE,
    Expr,
    apply,
    as_typed,
    clamp,
    compute,
    const,
    joined_bytes,
    mask,
    result_bits,
)

Polynomial = frozenset[frozenset[tuple[Expr, int]]]
"""Products to be added up; a product is a set of bits of sources."""

ZERO: Polynomial = frozenset()
ONE: Polynomial = frozenset({frozenset()})
MOST_PRODUCTS = 4000
EXHAUSTIVE_BITS = 12


class TooSlow(Exception):
    """The reference gave up: the program is not a small one."""


def is_source(expr: Expr) -> bool:
    """Whether ``expr`` is not looked into."""
    if expr[0] in ("read", "token", "given", "joined", "absent", "call"):
        return True
    if expr[0] in ("const", "bytes", "extend", "saturate", "select"):
        return False
    op, kind = expr[0], expr[1]
    return bool(op.endswith("f32") if op.startswith("slct.") else kind.kind in ("f", "bf"))


def operands(expr: Expr) -> tuple[Expr, ...]:
    match expr[0]:
        case "const":
            return ()
        case "bytes":
            return tuple(e for e, _, _ in expr[1])
        case "extend" | "saturate":
            return (expr[3],)
    return expr[2:]


def sources(expr: Expr) -> set[Expr]:
    if is_source(expr):
        return {expr}
    return set().union(*(sources(e) for e in operands(expr)))


def rebuilt(expr: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """``expr`` with something in the place of some sources."""
    if is_source(expr):
        return known.get(expr, expr)
    match expr[0]:
        case "const":
            return expr
        case "bytes":
            return joined_bytes(*((rebuilt(e, known), first, count) for e, first, count in expr[1]))
        case "extend":
            inner = rebuilt(expr[3], known)
            return const(mask(as_typed(inner[1], expr[1]), expr[2])) if inner[0] == "const" else (*expr[:3], inner)
        case "saturate":
            inner = rebuilt(expr[3], known)
            if inner[0] == "const":
                return const(mask(clamp(inner[1], expr[1], expr[2]), expr[2].bits))
            return (*expr[:3], inner)
    return apply(expr[0], expr[1], *(rebuilt(e, known) for e in expr[2:]))


def constants(expr: Expr) -> set[int]:
    if is_source(expr):
        return set()
    return {expr[1]} if expr[0] == "const" else set().union(*(constants(e) for e in operands(expr)))


def settled(expr: Expr, width: Callable[[Expr], int]) -> Expr:
    """``expr`` with 0 in the place of every source that makes no difference; ``width``: the bits of a source."""
    if is_source(expr) or expr[0] == "const":
        return expr
    every = sorted(sources(expr), key=repr)
    left = [s for s in every if not seen_to_matter(expr, s, every, width)]
    if left:
        matter = {source for bit in bits_of(expr, width) for product in bit for source, _ in product}
        expr = rebuilt(expr, {s: const(0) for s in left if s not in matter})
    return expr


def seen_to_matter(expr: Expr, source: Expr, every: list[Expr], width: Callable[[Expr], int]) -> bool:
    chance = random.Random(len(every))
    near = [c + k for c in sorted(constants(expr))[:8] for k in (-1, 0, 1)]
    tried = [[chance.choice((0, 1, chance.getrandbits(64), *near)) for _ in every] for _ in range(12)]
    named = sorted(constants(expr))[:4]
    if len(named) ** len(every) <= 256:
        tried += map(list, itertools.product(named, repeat=len(every)))
    for values in tried:
        env = {s: const(mask(v, width(s))) for s, v in zip(every, values, strict=True)}
        corners = (0, 1, -1, 1 << width(source) - 1, *near, *(chance.getrandbits(64) for _ in range(4)))
        found = {rebuilt(expr, {**env, source: const(mask(v, width(source)))})[1] for v in corners}
        if len(found) > 1:
            return True
    return False


# ---- polynomials -----------------------------------------------------------------------------------------------------


def plus(a: Polynomial, b: Polynomial) -> Polynomial:
    return a ^ b


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) * len(b) > MOST_PRODUCTS:
        raise TooSlow
    found: set[frozenset[tuple[Expr, int]]] = set()
    for x, y in itertools.product(a, b):
        found ^= {x | y}
    return frozenset(found)


def inverse(a: Polynomial) -> Polynomial:
    return a ^ ONE


def either(a: Polynomial, b: Polynomial) -> Polynomial:
    return a ^ b ^ times(a, b)


def choose(c: Polynomial, a: Polynomial, b: Polynomial) -> Polynomial:
    return b if c == ZERO else a if c == ONE or a == b else b ^ times(c, a ^ b)


Bits = list[Polynomial]


def total(a: Bits, b: Bits, carry: Polynomial = ZERO) -> tuple[Bits, Polynomial]:
    result = []
    for x, y in zip(a, b, strict=True):
        result.append(x ^ y ^ carry)
        carry = choose(x ^ y, carry, x)
    return result, carry


def constant_bits(value: int, width: int) -> Bits:
    return [ONE if value >> i & 1 else ZERO for i in range(width)]


def less(a: Bits, b: Bits, signed: bool) -> Polynomial:
    if signed:
        a, b = ([*v[:-1], inverse(v[-1])] for v in (a, b))
    return inverse(total(a, [inverse(x) for x in b], ONE)[1])


def fit(bits: Bits, width: int, top: Polynomial = ZERO) -> Bits:
    return [*bits[:width], *[top] * (width - len(bits))]


def some(bits: Bits) -> Polynomial:
    found = ZERO
    for bit in bits:
        found = either(found, bit)
    return found


def bits_of(expr: Expr, width: Callable[[Expr], int]) -> Bits:
    """The bits of ``expr``, the lowest first. ``TooSlow`` where they are too long."""
    if is_source(expr):
        return [frozenset({frozenset({(expr, i)})}) for i in range(width(expr))]
    match expr[0]:
        case "const":
            return constant_bits(expr[1], 128)
        case "bytes":
            pieces = [fit(bits_of(e, width)[8 * first :], 8 * count) for e, first, count in expr[1]]
            return [bit for piece in pieces for bit in piece]
        case "extend":
            inner = fit(bits_of(expr[3], width), expr[1].bits)
            return fit(inner, expr[2], inner[-1] if expr[1].signed else ZERO)
        case "select":
            condition, a, b = (bits_of(e, width) for e in expr[2:])
            longest = max(len(a), len(b))
            return [choose(some(condition), x, y) for x, y in zip(fit(a, longest), fit(b, longest), strict=True)]
    found = None if expr[0] == "saturate" else operation(expr[0], expr[1], [bits_of(e, width) for e in expr[2:]])
    return tabulated(expr, width) if found is None else found


def tabulated(expr: Expr, width: Callable[[Expr], int]) -> Bits:
    """By its value for every value of its sources, if these are few."""
    every = sorted(sources(expr), key=repr)
    inputs = [(s, i) for s in every for i in range(width(s))]
    if len(inputs) > EXHAUSTIVE_BITS:
        raise TooSlow
    result = [ZERO] * 64
    for choice in itertools.product((0, 1), repeat=len(inputs)):
        known = dict.fromkeys(every, 0)
        here = ONE
        for (source, i), bit in zip(inputs, choice, strict=True):
            known[source] |= bit << i
            one: Polynomial = frozenset({frozenset({(source, i)})})
            here = times(here, one if bit else inverse(one))
        value = rebuilt(expr, {s: const(v) for s, v in known.items()})[1]
        result = [r ^ here if value >> i & 1 else r for i, r in enumerate(result)]
    return result


def operation(op: str, kind: Type, args: list[Bits]) -> Bits | None:
    """The bits of an integer operation; None for one that is not among these."""
    n = kind.bits
    a = fit(args[0], n)
    b = fit(args[1], n) if len(args) > 1 else []
    if op in COMPARE:
        same = inverse(some([x ^ y for x, y in zip(a, b, strict=True)])) if op in ("eq", "ne") else ZERO
        below = less(a, b, kind.signed) if op in ("lt", "ge") else ZERO
        below = less(b, a, kind.signed) if op in ("gt", "le") else below
        truth = {"eq": same, "lt": below, "gt": below}.get(op)
        return [truth if truth is not None else inverse(same if op == "ne" else below)]
    match op:
        case "mov":
            return a
        case "and":
            return [times(x, y) for x, y in zip(a, b, strict=True)]
        case "or":
            return [either(x, y) for x, y in zip(a, b, strict=True)]
        case "xor":
            return [x ^ y for x, y in zip(a, b, strict=True)]
        case "not":
            return [inverse(x) for x in a]
        case "cnot":
            return fit([inverse(some(a))], n)
        case "add":
            return total(a, b)[0]
        case "sub":
            return total(a, [inverse(y) for y in b], ONE)[0]
        case "neg":
            return total([ZERO] * n, [inverse(x) for x in a], ONE)[0]
        case "min" | "max":
            first = less(a, b, kind.signed) if op == "min" else less(b, a, kind.signed)
            return [choose(first, x, y) for x, y in zip(a, b, strict=True)]
        case "mul.lo":
            result = [ZERO] * n
            for i, bit in enumerate(b):
                if bit != ZERO:
                    result = total(result, fit([ZERO] * i + [times(bit, x) for x in a], n))[0]
            return result
        case "shl" | "shr":
            amount = fit(args[1], 32)
            if any(bit not in (ZERO, ONE) for bit in amount):
                return None
            by = min(sum((bit == ONE) << i for i, bit in enumerate(amount)), n)
            top = a[-1] if op == "shr" and kind.signed else ZERO
            return fit([ZERO] * by + a, n) if op == "shl" else fit(a[by:], n, top)
        case "lop3":
            c, table = fit(args[2], n), fit(args[3], 8)
            rows = [
                (choose(x, table[4 + i], table[i]) for i in range(4)) for x in a
            ]  # by the bit of a, then by those of b and c
            return [_row(list(row), y, z) for row, y, z in zip(rows, b, c, strict=True)]
    if all(bit in (ZERO, ONE) for arg in args for bit in arg):
        values = [sum((bit == ONE) << i for i, bit in enumerate(arg)) for arg in args]
        return constant_bits(mask(compute(op, kind, values), result_bits(op, kind)), 64)
    return None


def _row(row: list[Polynomial], y: Polynomial, z: Polynomial) -> Polynomial:
    return choose(y, choose(z, row[3], row[2]), choose(z, row[1], row[0]))
