"""The integer arithmetic of the two event layers, written twice, on the same operands."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm.events.explicit.values import arithmetic, floats
from ptxmm.events.symbolic.values import arithmetic as values
from ptxmm.events.symbolic.values import floats as other_floats
from ptxmm.ptx.ops import Type

TYPES = [Type(kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)]
UNARY = ("mov", "not", "neg", "abs")
BINARY = ("add", "sub", "mul.lo", "mul.hi", "mul.wide", "and", "or", "xor", "shl", "shr", "min", "max")
TERNARY = ("mad.lo", "mad.hi", "mad.wide")
UPDATES = ("add", "sub", "inc", "dec", "and", "or", "xor", "min", "max", "exch")
_EDGES = [2**k - d for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (0, 1)]
NUMBER = st.one_of(st.integers(0, 70), st.sampled_from(_EDGES))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TYPES), NUMBER, NUMBER, NUMBER)
def test_both_layers_compute_the_same(type_: Type, a: int, b: int, c: int) -> None:
    mask = (1 << type_.bits) - 1
    a, b, c = a & mask, b & mask, c & mask
    for op in UNARY:
        assert values.compute(op, type_, [a]) == arithmetic.compute(op, type_, a), op
    for op in (*BINARY, *values.COMPARISONS):
        assert values.compute(op, type_, [a, b]) == arithmetic.compute(op, type_, a, b), op
    for op in TERNARY:
        assert values.compute(op, type_, [a, b, c]) == arithmetic.compute(op, type_, a, b, c), op
    for op in UPDATES:
        if op in ("inc", "dec") and type_.kind != "u":
            continue
        assert values.update(op, type_, a, b) == arithmetic.compute(op, type_, a, b), op


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TYPES), st.sampled_from(TYPES), NUMBER, st.booleans())
def test_both_layers_convert_the_same(to: Type, frm: Type, value: int, saturate: bool) -> None:
    value &= (1 << frm.bits) - 1
    assert values.convert(value, to, frm, saturate) == arithmetic.convert(value, to, frm, saturate)


S32, U32, U8, S8 = Type("s", 32), Type("u", 32), Type("u", 8), Type("s", 8)


@pytest.mark.parametrize(
    ("op", "type_", "operands", "expected"),
    [
        ("add", U32, [0xFFFFFFFF, 1], 0),
        ("sub", U32, [0, 1], 0xFFFFFFFF),
        ("mul.lo", U32, [0x10000, 0x10000], 0),
        ("mul.hi", U32, [0x10000, 0x10000], 1),
        ("mul.hi", S32, [0xFFFFFFFF, 2], 0xFFFFFFFF),
        ("mul.wide", S32, [0xFFFFFFFF, 2], 0xFFFFFFFFFFFFFFFE),
        ("mul.wide", U32, [0xFFFFFFFF, 2], 0x1FFFFFFFE),
        ("mad.lo", U32, [3, 4, 5], 17),
        ("shl", U32, [1, 31], 0x80000000),
        ("shl", U32, [1, 32], 0),
        ("shr", U32, [0x80000000, 32], 0),
        ("shr", S32, [0x80000000, 32], 0xFFFFFFFF),
        ("shr", S32, [0x80000000, 4], 0xF8000000),
        ("min", S32, [0xFFFFFFFF, 1], 0xFFFFFFFF),
        ("min", U32, [0xFFFFFFFF, 1], 1),
        ("max", S32, [0xFFFFFFFF, 1], 1),
        ("abs", S32, [0xFFFFFFFE], 2),
        ("not", U8, [0x0F], 0xF0),
        ("lt", S32, [0xFFFFFFFF, 0], 1),
        ("lt", U32, [0xFFFFFFFF, 0], 0),
        ("ge", S8, [0x80, 0x7F], 0),
    ],
)
def test_integer_instructions(op: str, type_: Type, operands: list[int], expected: int) -> None:
    assert values.compute(op, type_, operands) == expected
    assert arithmetic.compute(op, type_, *operands) == expected


@pytest.mark.parametrize(
    ("op", "old", "operand", "expected"),
    [
        ("inc", 3, 3, 0), ("inc", 2, 3, 3), ("inc", 5, 3, 0), ("inc", 0, 0xFFFFFFFF, 1),
        ("dec", 0, 3, 3), ("dec", 2, 3, 1), ("dec", 4, 3, 3), ("exch", 1, 7, 7),
    ],
)  # fmt: skip
def test_atomic_updates(op: str, old: int, operand: int, expected: int) -> None:
    assert values.update(op, U32, old, operand) == expected
    assert arithmetic.compute(op, U32, old, operand) == expected


@pytest.mark.parametrize(
    ("value", "to", "frm", "saturate", "expected"),
    [
        (0xFF, S32, S8, False, 0xFFFFFFFF),
        (0xFF, U32, U8, False, 0xFF),
        (0x1FF, U8, U32, False, 0xFF),
        (0x1FF, U8, U32, True, 0xFF),
        (0xFFFFFFFF, U8, S32, True, 0),
        (300, S8, S32, True, 127),
    ],
)
def test_conversions(value: int, to: Type, frm: Type, saturate: bool, expected: int) -> None:
    assert values.convert(value, to, frm, saturate) == expected
    assert arithmetic.convert(value, to, frm, saturate) == expected


FLOATS = {Type("f", 16): "e", Type("f", 32): "f", Type("f", 64): "d", Type("bf", 16): None}


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(list(FLOATS)), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 255))
def test_floats_of_both_layers_and_of_the_processor(type_: Type, a: int, b: int, near: int) -> None:
    mask = (1 << type_.bits) - 1
    a &= mask
    for c in (b & mask, a ^ near, a ^ 1 << type_.bits - 1 ^ near, near):
        for op in ("add", "min", "max", "add.ftz"):
            mine = floats.operate(op, type_, a, c)
            assert mine == other_floats.compute_float(op, type_, [a, c]), op
        layout = FLOATS[type_]
        if layout is None:
            continue
        x, y = (struct.unpack(f"<{layout}", v.to_bytes(type_.bytes, "little"))[0] for v in (a, c))
        if not math.isnan(x) and not math.isnan(y) and type_.bits == 64 and not math.isnan(x + y):
            assert floats.operate("add", type_, a, c) == int.from_bytes(struct.pack("<d", x + y), "little")


@pytest.mark.parametrize(
    ("op", "type_", "a", "b", "result"),
    [
        ("add", Type("f", 32), 0x3F800000, 0x40000000, 0x40400000),
        ("add", Type("f", 32), 0x4B800000, 0x3F800000, 0x4B800000),  # 2**24 + 1: a tie goes to the even one
        ("add", Type("f", 32), 0x7F7FFFFF, 0x7F7FFFFF, 0x7F800000),
        ("add", Type("f", 32), 0x7F800000, 0xFF800000, 0x7FFFFFFF),
        ("add", Type("f", 32), 0x80000000, 0x80000000, 0x80000000),
        ("add", Type("f", 32), 0x3F800000, 0xBF800000, 0),
        ("add", Type("f", 32), 1, 1, 2),
        ("add.ftz", Type("f", 32), 0x80000001, 0x80000001, 0x80000000),
        ("add", Type("bf", 16), 0x3F80, 0x3F80, 0x4000),
        ("add", Type("f", 16), 0x7BFF, 0x4C00, 0x7C00),  # 65504 + 16 is half-way to the next power of two
        ("min", Type("f", 16), 0x8000, 0, 0x8000),
        ("max", Type("f", 16), 0x8000, 0, 0),
        ("min", Type("f", 16), 0x7E00, 0x3C00, 0x3C00),
        ("max", Type("bf", 16), 0x7FC0, 0xFFC0, 0x7FFF),
    ],
)
def test_floats_by_hand(op: str, type_: Type, a: int, b: int, result: int) -> None:
    assert floats.operate(op, type_, a, b) == result
