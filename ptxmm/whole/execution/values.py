"""Arithmetic of all threads at once: a value is an array of unsigned numbers, with a flag for each that is known.

Integers of up to 64 bits that many programs compute with have functions of arrays. Everything else goes through the
arithmetic of the interpreter, number by number. Of floating-point numbers most are data that nobody knows; those that
are known are arguments of the launch, and what is computed with them may decide what a kernel does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from ptxmm.events.explicit.values import arithmetic
from ptxmm.ptx.ops import Convert, Type
from ptxmm.whole.arrays import Flags, Words

_REALS = (32, 64)


class Value(Struct, frozen=True):
    """What a register holds in each of some threads: ``words``, unsigned; ``known``: which of them are known."""

    words: Words
    known: Flags

    def at(self, chosen: Flags) -> Value:
        """The same of the ``chosen`` threads."""
        return Value(self.words[chosen], self.known[chosen])


def constant(value: int, bits: int, count: int) -> Value:
    """The lowest ``bits`` bits of ``value`` in ``count`` threads."""
    return Value(np.full(count, value & mask(bits), np.uint64), np.ones(count, np.bool_))


def unknown(count: int) -> Value:
    """Anything, in ``count`` threads."""
    return Value(np.zeros(count, np.uint64), np.zeros(count, np.bool_))


def mask(bits: int) -> int:
    """The number with the lowest ``bits`` bits, 64 at most."""
    return (1 << min(bits, 64)) - 1


def cut(words: Words, bits: int) -> Words:
    """The lowest ``bits`` bits of each."""
    return words if bits >= 64 else words & np.uint64(mask(bits))


def extended(words: Words, bits: int, to: int) -> Words:
    """Signed numbers of ``bits`` bits with ``to`` bits."""
    if bits >= to:
        return cut(words, to)
    sign = np.uint64(1 << bits - 1)
    return cut((cut(words, bits) ^ sign) - sign, to)


def _numbers(words: Words, type_: Type) -> Words:
    """As 64-bit numbers in two's complement."""
    return extended(words, type_.bits, 64) if type_.signed else cut(words, type_.bits)


def _less(type_: Type, a: Words, b: Words) -> Flags:
    if type_.signed:
        found: Flags = _numbers(a, type_).view(np.int64) < _numbers(b, type_).view(np.int64)
        return found
    less: Flags = cut(a, type_.bits) < cut(b, type_.bits)
    return less


def _shifted_left(type_: Type, a: Words, b: Words) -> Words:
    amount = cut(b, 32)
    return np.where(amount < type_.bits, a << np.minimum(amount, np.uint64(63)), np.uint64(0))


def _shifted_right(type_: Type, a: Words, b: Words) -> Words:
    amount = np.minimum(cut(b, 32), np.uint64(63))
    if type_.signed:
        return (_numbers(a, type_).view(np.int64) >> amount.view(np.int64)).view(np.uint64)
    return np.where(cut(b, 32) < type_.bits, cut(a, type_.bits) >> amount, np.uint64(0))


def _product(type_: Type, a: Words, b: Words) -> Words:
    return _numbers(a, type_) * _numbers(b, type_)


def _chosen(which: Flags, a: Words, b: Words) -> Words:
    found: Words = np.where(which, a, b)
    return found


_FUNCTIONS: Mapping[str, Callable[..., Words]] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul.lo": lambda t, a, b: a * b,
    "mad.lo": lambda t, a, b, c: a * b + c,
    "and": lambda t, a, b: a & b,
    "or": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
    "not": lambda t, a: ~a,
    "neg": lambda t, a: np.uint64(0) - a,
    "shl": _shifted_left,
    "shr": _shifted_right,
    "min": lambda t, a, b: _chosen(_less(t, a, b), a, b),
    "max": lambda t, a, b: _chosen(_less(t, a, b), b, a),
    "eq": lambda t, a, b: (cut(a, t.bits) == cut(b, t.bits)).astype(np.uint64),
    "ne": lambda t, a, b: (cut(a, t.bits) != cut(b, t.bits)).astype(np.uint64),
    "lt": lambda t, a, b: _less(t, a, b).astype(np.uint64),
    "ge": lambda t, a, b: (~_less(t, a, b)).astype(np.uint64),
    "gt": lambda t, a, b: _less(t, b, a).astype(np.uint64),
    "le": lambda t, a, b: (~_less(t, b, a)).astype(np.uint64),
}
_SETTLED: Mapping[str, int] = {"and": 0, "or": -1}
"""What one operand alone gives as the result."""
_WIDE: Mapping[str, Callable[..., Words]] = {
    "mul.wide": _product,
    "mad.wide": lambda t, a, b, c: _product(t, a, b) + c,
}


def computed(op: str, type_: Type, given: Sequence[Value]) -> Value:
    """``op`` in ``type_`` on values of its source types, as the interpreter computes it (``arithmetic.compute``)."""
    count = len(given[0].words)
    known = np.logical_and.reduce([value.known for value in given])
    if op == "mov":
        return Value(cut(given[0].words, type_.bits), known)
    if op in _SETTLED and type_.bits <= 64:
        alone = np.uint64(_SETTLED[op] & mask(type_.bits))
        settled = np.logical_or.reduce([value.known & (cut(value.words, type_.bits) == alone) for value in given])
        if (settled & ~known).any():  # whatever the other one is
            both = cut(_FUNCTIONS[op](type_, *(value.words for value in given)), type_.bits)
            return Value(np.where(settled, alone, both), known | settled)
    real = type_.kind in ("f", "bf")
    if type_.bits > 64 or not known.any() or (real and type_.bits not in _REALS):
        return unknown(count)
    words = [value.words for value in given]
    bits = arithmetic.result_bits(op, type_)
    if real:
        return Value(one_by_one(lambda *each: arithmetic.compute(op, type_, *each), words, known), known)
    wide = _WIDE.get(op) if type_.bits <= 32 else None
    function = wide or _FUNCTIONS.get(op)
    if function is not None and bits <= 64:
        return Value(cut(function(type_, *words), bits), known)
    if bits > 64:
        return unknown(count)
    if op.partition(".")[0] in ("div", "rem"):  # by 0 it is unspecified (PTX ISA 9.7.1.8)
        known = known & (cut(words[1], type_.bits) != 0)
    return Value(one_by_one(lambda *each: arithmetic.compute(op, type_, *each), words, known), known)


def converted(value: Value, op: Convert, bits: int) -> Value:
    """``cvt`` to a register of ``bits`` bits."""
    to, frm, saturate = op.to, op.frm, op.saturate
    if max(to.bits, frm.bits) > 64 or not value.known.any():
        return unknown(len(value.words))
    if {to.kind, frm.kind} & {"f", "bf"}:

        def number(word: int) -> int:
            return arithmetic.convert(word, to, frm, saturate, op.rounding, op.flush)

        words = one_by_one(number, [cut(value.words, frm.bits)], value.known)
        return Value(extended(words, to.bits, bits) if to.signed else words, value.known)
    words = _numbers(value.words, frm)
    if saturate:
        words = one_by_one(lambda n: arithmetic.convert(n, to, frm, True), [cut(value.words, frm.bits)], value.known)
    words = extended(words, to.bits, bits) if to.signed else cut(words, to.bits)
    return Value(words, value.known)


def one_by_one(function: Callable[..., int], words: Sequence[Words], known: Flags) -> Words:
    """``function`` of Python's integers in each thread in which its operands are ``known``."""
    found = np.zeros(len(known), np.uint64)
    if known.all() and all((array == array[0]).all() for array in words):
        found[:] = function(*(int(array[0]) for array in words))
        return found
    memo: dict[tuple[int, ...], int] = {}
    rows = zip(*(array.tolist() for array in words), strict=True)
    for at, (row, sure) in enumerate(zip(rows, known.tolist(), strict=True)):
        if sure:
            if row not in memo:
                memo[row] = function(*row)
            found[at] = memo[row]
    return found
