"""Instructions that compute: values by hand, of a machine, and of three implementations; programs, forms, refusals."""

from __future__ import annotations

import itertools
import random

import pytest
from msgspec.structs import replace

from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.values import arithmetic
from ptxmm.events.symbolic.values import arithmetic as values
from ptxmm.ptx.isa import definitions, resolve, uses
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.ops.signatures import CARRY, result_type
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.qualifiers import parse_type
from ptxmm.ptx.syntax import Instruction
from tests import machine, reference, reference_expressions, reference_floats
from tests.machine import REAL_COMPARISONS, ROUNDING, drawn, operations, value_of
from tests.support import ENGINES, ask, model_named, parse_one, run


def result(op: str, type_: Type, operands: list[int]) -> int:
    """What both event layers compute, which has to be the same."""
    found = arithmetic.compute(op, type_, *operands)
    assert found == values.compute(op, type_, list(operands)), (op, type_.name, [hex(v) for v in operands])
    return found


# -- by hand -----------------------------------------------------------------------------------------------------------

# What the pseudo-code and the examples of the ISA give: operation, type, operands, result.
BY_HAND: list[tuple[str, str, list[int], int]] = [
    # 9.7.1.1, .2: saturation to MININT..MAXINT, halves side by side
    ("add.sat", "s32", [0x7FFFFFFF, 1], 0x7FFFFFFF),
    ("add.sat", "s32", [0x80000000, 0xFFFFFFFF], 0x80000000),
    ("add.sat", "s32", [5, 0xFFFFFFFE], 3),
    ("sub.sat", "s32", [0x80000000, 1], 0x80000000),
    ("sub.sat", "s32", [0x7FFFFFFF, 0xFFFFFFFF], 0x7FFFFFFF),
    ("add.u16x2", "b32", [0x0001FFFF, 0x00020001], 0x00030000),
    ("add.s16x2", "b32", [0xFFFF7FFF, 0x00010001], 0x00008000),
    # 9.7.1.4 to .6: the high half and its saturation; factors of 24 bits
    ("mad.hi.sat", "s32", [0x40000000, 4, 0x7FFFFFFF], 0x7FFFFFFF),
    ("mad.hi.sat", "s32", [0x40000000, 4, 5], 6),
    ("mul24.lo", "u32", [0xFF000002, 3], 6),
    ("mul24.lo", "s32", [0x00FFFFFF, 3], 0xFFFFFFFD),
    ("mul24.hi", "u32", [0xFFFFFF, 0xFFFFFF], 0xFFFFFE00),
    ("mad24.lo", "u32", [2, 3, 0xFFFFFFFF], 5),
    ("mad24.hi.sat", "s32", [0x7FFFFF, 0x7FFFFF, 0x7FFFFFFF], 0x7FFFFFFF),
    # 9.7.1.7 to .9
    ("sad", "u32", [3, 10, 100], 107),
    ("sad", "s32", [0xFFFFFFFF, 1, 0], 2),
    ("sad", "u32", [0xFFFFFFFF, 1, 0], 0xFFFFFFFE),
    ("div", "s32", [0xFFFFFFF9, 2], 0xFFFFFFFD),  # -7 / 2 is -3, towards zero
    ("div", "u32", [0xFFFFFFF9, 2], 0x7FFFFFFC),
    ("rem", "s32", [0xFFFFFFF9, 2], 0xFFFFFFFF),
    ("rem", "s32", [7, 0xFFFFFFFE], 1),
    ("rem", "u64", [100, 7], 2),
    # 9.7.1.12, .13
    ("min.relu", "s32", [0xFFFFFFFF, 4], 0),
    ("max.relu", "s32", [0xFFFFFFFF, 0xFFFFFFF0], 0),
    ("max.relu", "s32", [0xFFFFFFFF, 4], 4),
    ("min.u16x2", "b32", [0x0001FFFF, 0xFFFF0001], 0x00010001),
    ("min.s16x2", "b32", [0x0001FFFF, 0xFFFF0001], 0xFFFFFFFF),
    ("min.relu.s16x2", "b32", [0x0005FFFF, 0x00070001], 0x00050000),
    ("max.s16x2", "b32", [0x80000001, 0x00008000], 0x00000001),
    # 9.7.1.14 to .17
    ("popc", "b32", [0], 0),
    ("popc", "b64", [0xFFFFFFFFFFFFFFFF], 64),
    ("popc", "b32", [0xF0F0], 8),
    ("clz", "b32", [0], 32),
    ("clz", "b32", [1], 31),
    ("clz", "b64", [1 << 63], 0),
    ("bfind", "u32", [0], 0xFFFFFFFF),
    ("bfind", "u32", [0x00010000], 16),
    ("bfind", "s32", [0xFFFFFFFF], 0xFFFFFFFF),
    ("bfind", "s32", [0xFFFFFFF0], 3),
    ("bfind.shiftamt", "u32", [0x00010000], 15),
    ("bfind.shiftamt", "s64", [1], 63),
    ("bfind.shiftamt", "u32", [0], 0xFFFFFFFF),
    ("fns", "b32", [0xAAAAAAAA, 3, 1], 3),
    ("fns", "b32", [0xAAAAAAAA, 3, 0xFFFFFFFF], 3),
    ("fns", "b32", [0xAAAAAAAA, 2, 1], 3),
    ("fns", "b32", [0xAAAAAAAA, 2, 0xFFFFFFFF], 1),
    ("fns", "b32", [0xAAAAAAAA, 3, 2], 5),
    ("fns", "b32", [0xAAAAAAAA, 2, 0], 0xFFFFFFFF),
    ("fns", "b32", [0xAAAAAAAA, 1, 0], 1),
    # 9.7.1.18 to .22
    ("brev", "b32", [1], 0x80000000),
    ("brev", "b64", [0x8000000000000001], 0x8000000000000001),
    ("brev", "b32", [0x12345678], 0x1E6A2C48),
    ("bfe", "u32", [0xABCD1234, 8, 8], 0x12),
    ("bfe", "u32", [0xABCD1234, 16, 255], 0xABCD),
    ("bfe", "s32", [0xABCD1234, 28, 4], 0xFFFFFFFA),
    ("bfe", "s32", [0x80000000, 40, 4], 0xFFFFFFFF),  # beyond the top: copies of the sign
    ("bfe", "s32", [0x80000000, 40, 0], 0),
    ("bfe", "u32", [0xFFFFFFFF, 256 + 4, 4], 0xF),  # positions and lengths have 8 bits
    ("bfe", "s64", [0x00000000000000F0, 4, 4], 0xFFFFFFFFFFFFFFFF),
    ("bfi", "b32", [0xF, 0x12345678, 8, 4], 0x12345F78),
    ("bfi", "b32", [0xFF, 0, 28, 8], 0xF0000000),
    ("bfi", "b32", [0xFF, 7, 32, 8], 7),
    ("bfi", "b32", [0xFF, 7, 3, 0], 7),
    ("bfi", "b64", [0xFFFF, 0, 56, 255], 0xFF00000000000000),
    ("szext.wrap", "u32", [0xFFFFFFFF, 0], 0),
    ("szext.clamp", "s32", [0x80, 8], 0xFFFFFF80),
    ("szext.clamp", "u32", [0xFF80, 8], 0x80),
    ("szext.clamp", "s32", [0x12345678, 32], 0x12345678),
    ("szext.wrap", "s32", [0x12345678, 36], 0xFFFFFFF8),
    ("bmsk.wrap", "b32", [1, 2], 6),
    ("bmsk.clamp", "b32", [1, 32], 0xFFFFFFFE),
    ("bmsk.clamp", "b32", [32, 4], 0),
    ("bmsk.wrap", "b32", [33, 34], 6),
    ("bmsk.clamp", "b32", [30, 4], 0xC0000000),
    ("bmsk.clamp", "b32", [3, 0], 0),
    # 9.7.1.23, .24
    ("dp4a.u32", "u32", [0x01020304, 0x01010101, 10], 20),
    ("dp4a.s32", "u32", [0xFF000000, 0xFF000000, 0], 0xFFFFFF01),  # 255 * -1
    ("dp4a.s32", "s32", [0xFFFFFFFF, 0xFFFFFFFF, 0], 4),
    ("dp2a.lo.u32", "u32", [0x00020003, 0x0A0B0405, 1], 24),
    ("dp2a.hi.u32", "u32", [0x00020003, 0x0A0B0405, 1], 54),
    ("dp2a.lo.s32", "s32", [0xFFFF0001, 0x000001FF, 0], 0xFFFFFFFE),  # 1 * -1 + -1 * 1
    # 9.7.2
    ("add.cc", "u32", [0xFFFFFFFF, 1], 1),
    ("add.cc", "s32", [0x7FFFFFFF, 1], 0),
    ("addc", "u32", [1, 2, 1], 4),
    ("addc.cc", "u64", [0xFFFFFFFFFFFFFFFF, 0, 1], 1),
    ("sub.cc", "u32", [0, 1], 1),
    ("sub.cc", "u32", [1, 1], 0),
    ("subc", "u32", [5, 3, 1], 1),
    ("subc.cc", "u32", [5, 5, 1], 1),
    ("mad.lo.cc", "u32", [0x10000, 0xFFFF, 0x10000], 1),
    ("mad.hi.cc", "u32", [0xFFFFFFFF, 0xFFFFFFFF, 1], 0),
    ("madc.hi", "u32", [0x10000, 0x10000, 5, 1], 7),
    ("madc.lo.cc", "u32", [1, 0xFFFFFFFF, 0, 1], 1),
    # 9.7.7
    ("set.lt.u32", "s32", [0xFFFFFFFF, 0], 0xFFFFFFFF),
    ("set.lt.u32", "u32", [0xFFFFFFFF, 0], 0),
    ("set.eq.f32", "u32", [4, 4], 0x3F800000),
    ("set.eq.and_not.s32", "u32", [4, 4, 1], 0),
    ("set.ne.or.s32", "u32", [4, 4, 1], 0xFFFFFFFF),
    ("set.nan.u32", "f32", [0x7FC00000, 0], 0xFFFFFFFF),
    ("slct.s32", "u32", [1, 2, 0x80000000], 2),
    ("slct.s32", "u64", [1, 2, 0], 1),
    ("slct.f32", "u32", [1, 2, 0x80000000], 1),  # negative zero equals zero
    ("slct.f32", "u32", [1, 2, 0x7FC00000], 2),  # unordered
    ("slct.f32", "u32", [1, 2, 0x80000001], 2),
    ("slct.ftz.f32", "u32", [1, 2, 0x80000001], 1),
    ("lt", "f32", [0x7FC00000, 0x3F800000], 0),
    ("ltu", "f32", [0x7FC00000, 0x3F800000], 1),
    ("ne", "f32", [0x7FC00000, 0x7FC00000], 0),
    ("neu", "f32", [0x7FC00000, 0x7FC00000], 1),
    ("eq", "f32", [0x80000000, 0], 1),
    ("lt", "f64", [0x8000000000000000, 0], 0),
    ("lt", "f32", [0xFF800000, 0xFF7FFFFF], 1),
    ("eq", "f32", [1, 0], 0),
    ("eq.ftz", "f32", [1, 0x80000002], 1),
    ("num", "f64", [0, 0x7FF0000000000000], 1),
    # 9.7.9
    ("cnot", "b16", [0], 1),
    ("cnot", "b64", [1 << 63], 0),
    *(("lop3", "b32", [0xF0, 0xCC, 0xAA, table], table) for table in (0, 0x80, 0x1A)),
    ("lop3", "b32", [0xF0, 0xCC, 0xAA, 1], 0xFFFFFF01),
    ("lop3", "b32", [0xFF00FF00, 0xF0F0F0F0, 0xCCCCCCCC, 0x80], 0xC000C000),
    ("lop3", "b32", [0xFF00FF00, 0xF0F0F0F0, 0xCCCCCCCC, 0xFE], 0xFFFCFFFC),
    ("lop3", "b32", [0xFF00FF00, 0xF0F0F0F0, 0xCCCCCCCC, 0x40], 0x30003000),
    ("lop3.and", "b32", [1, 1, 1, 0x80, 0], 0),
    ("lop3.and", "b32", [1, 1, 1, 0x80, 1], 1),
    ("lop3.or", "b32", [0, 0, 0, 0x80, 0], 0),
    ("lop3.or", "b32", [0, 0, 0, 0x80, 1], 1),
    ("shf.l.clamp", "b32", [0x80000001, 0x12345678, 4], 0x23456788),
    ("shf.l.wrap", "b32", [0x80000001, 0x12345678, 36], 0x23456788),
    ("shf.l.clamp", "b32", [0x80000001, 0x12345678, 99], 0x80000001),
    ("shf.r.clamp", "b32", [0x80000001, 0x12345678, 4], 0x88000000),
    ("shf.r.wrap", "b32", [0x80000001, 0x12345678, 32], 0x80000001),
    ("shf.r.clamp", "b32", [0x80000001, 0x12345678, 32], 0x12345678),
    # 9.7.10.7: bytes 7 to 0 are those of b and a
    ("prmt", "b32", [0x33221100, 0x77665544, 0x5410], 0x55441100),
    ("prmt", "b32", [0x33221100, 0x77665544, 0x3210], 0x33221100),
    ("prmt", "b32", [0x80FF7F01, 0, 0xBA98], 0xFFFF0000),  # the sign of each byte
    ("prmt.f4e", "b32", [0x33221100, 0x77665544, 3], 0x66554433),
    ("prmt.b4e", "b32", [0x33221100, 0x77665544, 1], 0x66770011),
    ("prmt.rc8", "b32", [0x33221100, 0x77665544, 6], 0x22222222),
    ("prmt.ecl", "b32", [0x33221100, 0x77665544, 2], 0x33222222),
    ("prmt.ecr", "b32", [0x33221100, 0x77665544, 1], 0x11111100),
    ("prmt.rc16", "b32", [0x33221100, 0x77665544, 3], 0x33223322),
    # 9.7.10.21
    ("cvt.pack.s16", "b32", [0xFFFFFFFF, 0x00010000], 0xFFFF7FFF),
    ("cvt.pack.u16", "b32", [0xFFFFFFFF, 0x00010000], 0x0000FFFF),
    ("cvt.pack.u8", "b32", [300, 2, 0x12345678], 0x5678FF02),
    ("cvt.pack.s2", "b32", [5, 0xFFFFFFFE, 1], 0x16),
    # 9.7.3: 1 + 2**-24 is half-way, 1 + 2**-23 the next number
    ("add.rn", "f32", [0x3F800000, 0x33800000], 0x3F800000),
    ("add.rp", "f32", [0x3F800000, 0x33800000], 0x3F800001),
    ("add.rz", "f32", [0x3F800000, 0x33800001], 0x3F800000),
    ("add.rm", "f32", [0xBF800000, 0xB3800000], 0xBF800001),
    ("add.rm", "f32", [0x3F800000, 0xBF800000], 0x80000000),  # x - x is -0 when rounding down
    ("add.rn.sat", "f32", [0x3F800000, 0x3F800000], 0x3F800000),
    ("add.rn.sat", "f32", [0x7FC00000, 0], 0),
    ("sub.rn.sat", "f32", [0, 0x3F800000], 0),
    ("add.rn.ftz", "f32", [1, 1], 0),
    ("mul.rn", "f32", [0x7F7FFFFF, 0x40000000], 0x7F800000),
    ("mul.rz", "f32", [0x7F7FFFFF, 0x40000000], 0x7F7FFFFF),
    ("mul.rn", "f32", [0x7F800000, 0], 0x7FFFFFFF),
    ("mul.rn", "f64", [0x3FF8000000000000, 0x4000000000000000], 0x4008000000000000),
    ("fma.rn", "f32", [0x3F800001, 0x3F800001, 0xBF800002], 0x28800000),  # (1+e)**2 - (1+2e) is e**2 = 2**-46
    ("div.rn", "f32", [0x3F800000, 0x40400000], 0x3EAAAAAB),
    ("div.rz", "f32", [0x3F800000, 0x40400000], 0x3EAAAAAA),
    ("div.rn", "f32", [0x3F800000, 0x80000000], 0xFF800000),
    ("rcp.rn", "f64", [0x4000000000000000], 0x3FE0000000000000),
    ("sqrt.rn", "f32", [0x40000000], 0x3FB504F3),
    ("sqrt.rp", "f32", [0x40000000], 0x3FB504F4),
    ("sqrt.rn", "f32", [0x80000000], 0x80000000),
    ("sqrt.rn", "f32", [0xBF800000], 0x7FFFFFFF),
    ("neg", "f32", [0x3F800000], 0xBF800000),
    ("abs", "f64", [0xBFF0000000000000], 0x3FF0000000000000),
    ("abs", "f64", [0xFFF8000000000001], 0xFFF8000000000001),  # a NaN is passed through unchanged
    ("neg.ftz", "f32", [1], 0x80000000),
    ("min.NaN", "f32", [0x7FC00000, 0], 0x7FFFFFFF),
    ("min", "f32", [0x7FC00000, 0x3F800000], 0x3F800000),
    ("max", "f32", [0x80000000, 0], 0),
    ("min.xorsign.abs", "f32", [0xBF800000, 0x40000000], 0xBF800000),
    ("max.xorsign.abs", "f32", [0xBF800000, 0xC0000000], 0x40000000),
    ("copysign", "f32", [0x80000000, 0x3F800000], 0xBF800000),
    ("testp.normal", "f32", [0], 1),
    ("testp.subnormal", "f32", [1], 1),
    ("testp.infinite", "f64", [0xFFF0000000000000], 1),
    ("testp.finite", "f32", [0x7F800000], 0),
    ("testp.notanumber", "f32", [0x7F800001], 1),
    ("testp.number", "f32", [0x7F800000], 1),
]  # fmt: skip


@pytest.mark.parametrize(("op", "name", "operands", "expected"), BY_HAND)
def test_by_hand(op: str, name: str, operands: list[int], expected: int) -> None:
    assert result(op, parse_type(name), operands) == expected


def test_the_product_of_two_words_of_the_isa() -> None:
    """The example of 9.7.2.6: [r3, r2, r1, r0] = [r5, r4] * [r7, r6]."""
    u32 = Type("u", 32)
    r4, r5, r6, r7 = 0x89ABCDEF, 0xFEDCBA98, 0x76543210, 0xF0E1D2C3
    r0, r1 = result("mul.lo", u32, [r4, r6]), result("mul.hi", u32, [r4, r6])
    r1, carry = result("mad.lo", u32, [r5, r6, r1]), result("mad.lo.cc", u32, [r5, r6, r1])
    r2 = result("madc.hi", u32, [r5, r6, 0, carry])
    r1, carry = result("mad.lo", u32, [r4, r7, r1]), result("mad.lo.cc", u32, [r4, r7, r1])
    r2, carry = result("madc.hi", u32, [r4, r7, r2, carry]), result("madc.hi.cc", u32, [r4, r7, r2, carry])
    r3 = result("addc", u32, [0, 0, carry])
    r2, carry = result("mad.lo", u32, [r5, r7, r2]), result("mad.lo.cc", u32, [r5, r7, r2])
    r3 = result("madc.hi", u32, [r5, r7, r3, carry])
    assert r3 << 96 | r2 << 64 | r1 << 32 | r0 == (r5 << 32 | r4) * (r7 << 32 | r6)


@pytest.mark.parametrize(
    ("value", "to", "frm", "rounding", "saturate", "flush", "expected"),
    [
        (0x40200000, "s32", "f32", "rni", False, False, 2),  # 2.5: to the even one
        (0x40600000, "s32", "f32", "rni", False, False, 4),
        (0xC0200000, "s32", "f32", "rzi", False, False, 0xFFFFFFFE),
        (0xC0200000, "s32", "f32", "rmi", False, False, 0xFFFFFFFD),
        (0x40200000, "u8", "f32", "rpi", False, False, 3),
        (0xBF800000, "u32", "f32", "rzi", False, False, 0),  # clamped by default
        (0x7F800000, "s8", "f32", "rzi", False, False, 0x7F),
        (0x7FC00000, "s64", "f32", "rzi", False, False, 0),  # NaN becomes 0
        (1, "u32", "f32", "rpi", False, True, 0),
        (1, "u32", "f32", "rpi", False, False, 1),
        (0xFFFFFFFF, "f32", "u32", "rn", False, False, 0x4F800000),
        (0xFFFFFFFF, "f32", "u32", "rz", False, False, 0x4F7FFFFF),
        (0xFFFFFFFF, "f32", "s32", "rn", False, False, 0xBF800000),
        (7, "f32", "u32", "rn", True, False, 0x3F800000),
        (0xBE99999A, "f32", "f32", "rni", False, False, 0x80000000),  # -0.3
        (0x3FC00000, "f32", "f32", "rpi", False, False, 0x40000000),
        (0x3FF0000000000001, "f32", "f64", "rp", False, False, 0x3F800001),
        (0x3FF0000000000001, "f32", "f64", "rn", False, False, 0x3F800000),
        (0x3F800000, "f64", "f32", None, False, False, 0x3FF0000000000000),
        (1, "f64", "f32", None, False, True, 0),
        (0x477FF000, "f16", "f32", "rn", False, False, 0x7C00),  # 65520 is half-way to the next power of two
        (0x477FF000, "f16", "f32", "rz", False, False, 0x7BFF),
        (0x3C00, "f32", "f16", None, False, False, 0x3F800000),
        (0x3F808000, "bf16", "f32", "rn", False, False, 0x3F80),
        (0x40000000, "f32", "f32", None, True, False, 0x3F800000),
        (0xFFC00000, "f32", "f32", None, True, False, 0),
    ],
)
def test_conversions_by_hand(
    value: int, to: str, frm: str, rounding: str | None, saturate: bool, flush: bool, expected: int
) -> None:
    asked = value, parse_type(to), parse_type(frm), saturate, rounding, flush
    assert arithmetic.convert(*asked) == expected
    assert values.convert(*asked) == expected


# -- a machine ---------------------------------------------------------------------------------------------------------


def test_results_of_a_machine() -> None:
    """What instructions give on a GPU, of every operation and type."""
    found = machine.read()
    for form, rows in found.items():
        for operands, expected in rows:
            assert machine.expected(form, operands) == expected, (form, operands)
            if machine.is_conversion(form):
                to, (frm,) = machine.types_of(form)
                assert values.convert(operands[0], to, frm, *machine.modes_of(form[0])) == expected, (form, operands)
            else:
                assert values.compute(form[0], parse_type(form[1]), operands) == expected, (form, operands)
    assert list(found) == machine.forms()


def test_the_results_of_a_machine_are_of_the_operands_that_are_drawn() -> None:
    for form, rows in machine.read().items():
        given, wanted = [operands for operands, _ in rows], machine.rows_of(form)
        assert all(operands in wanted for operands in given), form
        assert all(operands in given or machine.left_open(form, operands) for operands in wanted), form


# -- three implementations ---------------------------------------------------------------------------------------------


def test_three_implementations() -> None:
    """Both event layers and the reference give the same, within the width of the result."""
    rng = random.Random(1)
    for op, type_ in operations():
        bits = 1 if arithmetic.is_comparison(op) else result_type(op, type_).bits
        for _ in range(12):
            operands = drawn(rng, op, type_)
            found = result(op, type_, operands)
            again = reference_expressions.compute(op, type_, list(operands)) & ((1 << bits) - 1)
            assert found == again and 0 <= found < 1 << bits, (op, type_.name, [hex(v) for v in operands])


def test_three_implementations_of_conversions() -> None:
    rng = random.Random(2)
    names = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "bf16", "f32", "f64")
    for to, frm in itertools.product(map(parse_type, names), repeat=2):
        real = to.kind in ("f", "bf"), frm.kind in ("f", "bf")
        roundings: tuple[str | None, ...] = (None,)
        if any(real):
            integral = tuple(f"{r}i" for r in ROUNDING)
            roundings = (*ROUNDING, *(integral if to == frm else ())) if real[0] else integral
        for rounding, saturate, flush in itertools.product(roundings, (False, True), (False, True)):
            modes = (saturate, rounding, flush)
            for _ in range(3):
                value = value_of(rng, frm)
                found = arithmetic.convert(value, to, frm, *modes)
                assert values.convert(value, to, frm, *modes) == found, (to, frm, modes, hex(value))
                if any(real):
                    again = reference_floats.convert(value, to, frm, *modes) & ((1 << to.bits) - 1)
                    assert again == found, (to, frm, modes, hex(value))


# -- programs ----------------------------------------------------------------------------------------------------------

TEXTS = [
    *(f"{op}.sat.s32 d, a, b" for op in ("add", "sub")),
    *(f"{op}.{t} d, a, b" for op in ("add", "min", "max") for t in ("u16x2", "s16x2")),
    *(f"{op}.cc.{t} d, a, b" for op in ("add", "sub", "addc", "subc") for t in ("u32", "s64")),
    *(f"{op}.u32 d, a, b" for op in ("addc", "subc")),
    "mad.lo.cc.u32 d, a, b, c", "mad.hi.cc.s64 d, a, b, c", "madc.lo.u32 d, a, b, c", "madc.hi.cc.u64 d, a, b, c",
    "mad.hi.sat.s32 d, a, b, c", "mul24.lo.u32 d, a, b", "mul24.hi.s32 d, a, b", "mad24.lo.s32 d, a, b, c",
    "mad24.hi.sat.s32 d, a, b, c", "sad.u16 d, a, b, c", "sad.s64 d, a, b, c",
    "div.s32 d, a, b", "rem.u64 d, a, b", "min.relu.s32 d, a, b", "max.relu.s16x2 d, a, b",
    "popc.b64 d, a", "popc.b32 d, a", "clz.b64 d, a", "bfind.s64 d, a", "bfind.shiftamt.u32 d, a",
    "fns.b32 d, a, b, c", "brev.b64 d, a", "bfe.s64 d, a, b, 8", "bfe.u32 d, a, 4, c", "bfi.b64 d, a, b, 3, 4",
    "szext.clamp.s32 d, a, b", "szext.wrap.u32 d, a, b", "bmsk.clamp.b32 d, a, b", "bmsk.wrap.b32 d, 1, b",
    "dp4a.u32.s32 d, a, b, c", "dp2a.lo.s32.u32 d, a, b, c", "dp2a.hi.u32.u32 d, a, b, c",
    "cnot.b16 d, a", "lop3.b32 d, a, b, c, 64", "lop3.or.b32 d|p, a, b, c, 63, q", "lop3.and.b32 _|p, a, b, c, 255, q",
    "shf.l.wrap.b32 d, a, b, c", "shf.r.clamp.b32 d, a, b, 7", "prmt.b32 d, a, b, 21520", "prmt.b32.f4e d, a, b, c",
    "prmt.b32.rc16 d, a, b, c", "cvt.pack.sat.s16.s32 d, a, b", "cvt.pack.sat.u8.s32.b32 d, a, b, c",
    "set.lt.u32.s32 d, a, b", "set.hi.u32.u32 d, a, b", "set.ne.xor.s32.u64 d, a, b, !q",
    "set.geu.ftz.f32.f32 d, a, b", "set.num.and.f32.f64 d, a, b, q", "slct.u64.s32 d, a, b, c",
    "slct.ftz.b32.f32 d, a, b, c", "slct.f64.f32 d, a, b, c",
    *(f"setp.{c}.f64 p, a, b" for c in REAL_COMPARISONS.split()),
    "setp.ltu.ftz.f32 p|q, a, b", "setp.num.or.f32 p, a, b, !q",
    "add.rn.f32 d, a, b", "add.rz.ftz.sat.f32 d, a, 0f3F800000", "sub.rp.f64 d, a, b", "mul.rm.f32 d, a, b",
    "add.rm.f64 d, a, b", "sub.rn.ftz.f32 d, a, b", "mul.rn.f64 d, a, b",
    "fma.rn.f32 d, a, b, c", "fma.rz.f64 d, a, b, c", "mad.rn.f32 d, a, b, c", "mad.rp.f64 d, a, b, c",
    "div.rn.f32 d, a, b", "div.rz.f64 d, a, b", "rcp.rn.ftz.f32 d, a", "rcp.rp.f64 d, a", "sqrt.rn.f32 d, a",
    "sqrt.rm.f64 d, a", "neg.f32 d, a", "neg.f64 d, a", "abs.ftz.f32 d, a", "abs.f64 d, a",
    "min.f32 d, a, b", "max.ftz.NaN.f32 d, a, b", "min.xorsign.abs.f32 d, a, b", "max.f64 d, a, b", "min.f64 d, a, b",
    "copysign.f32 d, a, b", "testp.normal.f32 p, a", "testp.notanumber.f64 p, a",
    "cvt.rn.f32.u64 d, a", "cvt.rzi.ftz.s32.f32 d, a", "cvt.rni.f64.f64 d, a", "cvt.f64.f32 d, a",
    "cvt.sat.f32.f32 d, a", "cvt.rz.f16.f64 d, a", "cvt.rn.bf16.f32 d, a", "cvt.f32.bf16 d, a", "cvt.rpi.u8.f16 d, a",
]  # fmt: skip


def parsed(text: str) -> Op:
    (item,) = parse_statements(text + ";")
    assert isinstance(item, Instruction)
    return resolve(item, dialect=False, variables=(), labels={})


@pytest.mark.parametrize("text", TEXTS)
def test_printing_and_parsing_again_changes_nothing(text: str) -> None:
    op = parsed(text)
    printed = instruction_text(op, True, str)
    again = parsed(printed)
    assert replace(again, source=op.source) == op
    assert instruction_text(again, True, str) == printed
    expected = text.replace("mad.r", "fma.r").replace("set.hi.", "set.gt.")
    assert printed == expected


@pytest.mark.parametrize("text", TEXTS)
def test_a_program_with_each_form(text: str) -> None:
    """The final registers of a thread whose operands come from memory: both engines and the reference."""
    op = parsed(text)
    rng = random.Random(text)
    read = dict(uses(op))
    written = dict(definitions(op))
    lines, places, prints = [], [], []
    for name, type_ in read.items():
        if name == CARRY:
            lines.append(f"{'sub' if text.startswith('sub') else 'add'}.cc.u32 junk, one, 0xffffffff")
            continue
        bits = max(8, type_.bits)
        number = 3 if name == "b" and text.startswith("fns") else value_of(rng, type_) or 1
        places.append(f".global .b{bits} v{name} = {number};")
        if type_.kind == "pred":
            lines += [f"ld.weak.global.b8 t{name}, [v{name}]", f"setp.ne.u16 {name}, t{name}, 0"]
        else:
            lines.append(f"ld.weak.global.b{bits} {name}, [v{name}]")
    widths = {**read, **written}
    registers = [f".reg .{'pred' if t.kind == 'pred' else f'b{t.bits}'} {n};" for n, t in widths.items() if n != CARRY]
    registers += [f".reg .b16 t{n};" for n, t in read.items() if t.kind == "pred" and n != CARRY]
    for name in written:
        if name == CARRY:
            prints.append("addc.u32 junk, 0, 0" if "add" in text or "mad" in text else "subc.u32 junk, 0, 0")
    registers += [".reg .u32 junk;", ".reg .u32 one;"] if CARRY in widths else []
    first = "v" + min(name for name in read if name != CARRY)
    code = ["mov.u32 one, 1" if CARRY in widths else "", *lines, text, *prints]
    body = "\n".join([*registers, *(f"{line};" for line in code if line)])
    test = parse_one(f"PTX t\n{{\n{' '.join(places)}\n}}\nP0 @ cta 0 {{\n{body}\n}}\nexists ({first} == 0)\n")
    model = model_named("ptx-8.5")
    found = [ask(engine, test, model) for engine in ENGINES]
    assert found[0].complete and not found[0].undefined
    assert found[0].comparable() == found[1].comparable()
    # One thread, so that dependencies make no difference: those by values take long for products.
    assert reference.flagged(test, f"{model.name}[dep=sem]")[0] == found[0].states


def outcome(engine: str, body: str) -> tuple[bool, list[dict[str, int]]]:
    """Whether a test is undefined, and the final registers of a thread that executes ``body`` after reading 0 or 6."""
    test = parse_one(
        "PTX t\n{\n.global .u32 x = 0; .global .f32 f = 1.0;\n}\nP0 @ cta 0 {\n st.relaxed.gpu.u32 [x], 6;\n}\n"
        f"P1 @ cta 1 {{\n ld.relaxed.gpu.u32 a, [x];\n {body}\n}}\nexists (x == 0)\n"
    )
    found = run(engine, test, model_named("ptx-8.5"), reference.everything(test), Limits())
    return bool(found.undefined), [{name: v for (_, name), v in f.state.registers.items()} for f in found.found]


@pytest.mark.parametrize("engine", ENGINES)
def test_division_by_zero_is_undefined(engine: str) -> None:
    assert outcome(engine, "div.u32 b, 12, a;")[0]
    assert outcome(engine, "rem.u32 b, 12, a;")[0]
    assert outcome(engine, "add.u32 a, a, 31; fns.b32 b, 5, a, 1;")[0]
    assert not outcome(engine, "max.u32 a, a, 1; div.u32 b, 12, a;")[0]
    assert not outcome(engine, "setp.ne.u32 p, a, 0; @p div.u32 b, 12, a;")[0]
    assert outcome(engine, "setp.eq.u32 p, a, 0; @p div.u32 b, 12, a;")[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_that_is_not_equal_to_itself(engine: str) -> None:
    """The rewrites of integers are none of floating-point numbers: x - x and x == x."""
    states = outcome(engine, "ld.weak.f32 b, [f]; sub.f32 c, b, b; setp.eq.f32 p, b, b; selp.u32 d, 1, 0, p;")[1]
    assert len(states) == 2
    nan = "mov.b32 b, 0f7FC00000; setp.eq.f32 p, b, b; selp.u32 d, 1, 0, p; sub.f32 c, b, b; mov.b32 e, c;"
    assert {(found["d"], found["e"]) for found in outcome(engine, nan)[1]} == {(0, 0x7FFFFFFF)}


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "kind"),
    [
        ("add.sat.u32 d, a, b", "`add.sat` takes no `.u32`", "isa"),
        ("add.sat.f64 d, a, b", "`add.f64` takes no `.sat`", "isa"),
        ("fma.rn.ftz.f64 d, a, b, c", "`fma` of .f64 takes no `.ftz`", "isa"),
        ("fma.f32 d, a, b, c", "`fma` needs a rounding mode: .rn .rz .rm .rp", "isa"),
        ("div.f32 d, a, b", "`div.f32` needs a rounding mode: .rn .rz .rm .rp", "isa"),
        ("min.xorsign.f32 d, a, b", "`.xorsign` needs `.abs`", "isa"),
        ("popc.u32 d, a", "`popc` takes no `.u32`", "isa"),
        ("lop3.b32 d, a, b, c, 256", "the look-up table of lop3 is a number from 0 to 255, not 256", "isa"),
        ("lop3.b32 d, a, b, c, e", "the look-up table of lop3 must be an integer constant, found `e`", "isa"),
        ("lop3.and.b32 d, a, b, c, 1, p", "`lop3.and` has two destinations", "isa"),
        ("bfe.u32 d, a, 0, 256", "the position or length of a field of `bfe` is from 0 to 255, not 256", "isa"),
        ("slct.u32.u32 d, a, b, c", "`slct` chooses by the sign of .s32 or .f32, not of .u32", "isa"),
        ("set.eq.u16.u32 d, a, b", "the result of `set` is no .u16", "isa"),
        ("set.ltu.u32.s32 d, a, b", "`set.ltu` has no type .s32", "isa"),
        ("setp.lo.f32 p, a, b", "`setp.f32` takes no `.lo`", "isa"),
        ("cvt.f32.u32 d, a", "`cvt.f32.u32` needs a rounding mode: .rn .rz .rm .rp", "isa"),
        ("cvt.rn.u32.f32 d, a", "`cvt.u32.f32` takes no `.rn`", "isa"),
        ("cvt.rn.f64.f32 d, a", "`cvt.f64.f32` takes no `.rn`", "isa"),
        ("cvt.ftz.u32.u64 d, a", "`cvt.u32.u64` takes no `.ftz`", "isa"),
        ("cvt.pack.sat.u16.s32.b32 d, a, b, c", "`cvt.pack.sat.u16` takes .s32", "isa"),
        ("cvt.pack.u16.s32 d, a, b", "`cvt.pack` needs `.sat`", "isa"),
        ("shf.l.b32 d, a, b, c", "`shf` needs a mode: .clamp .wrap", "isa"),
        ("dp4a.u32 d, a, b, c", "`dp4a` needs two types", "isa"),
        ("mad.cc.u32 d, a, b, c", "`mad.cc` needs a mode: .lo .hi", "isa"),
        ("fma.rn.f32x2 d, a, b, c", "`.f32x2` is not supported yet (`fma.f32x2`)", "unsupported"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str, kind: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        parsed(text)
    assert (caught.value.message, caught.value.kind) == (message, kind)
    assert caught.value.line == 1 and caught.value.width >= 1


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("sub.cc", "addc", "`addc` after `sub.cc`: what a borrow means for it is not said"),
        ("add.cc", "subc", "`subc` after `add.cc`: what a carry means for it is not said"),
        ("sub.cc.u32 r, 1, 2; add.cc", "addc", None),
        ("add.cc.u32 r, 1, 2; sub.cc", "subc", None),
    ],
)
def test_a_borrow_is_no_carry(first: str, second: str, message: str | None) -> None:
    body = f"{first}.u32 r, 1, 2;\n {second}.u32 r, 1, 2;"
    text = f"PTX t\n{{ .global .u32 x = 0; }}\nP0 @ cta 0 {{\n {body}\n}}\nexists (x == 0)\n"
    if message is None:
        assert parse_one(text).threads
        return
    with pytest.raises(PtxmmError) as caught:
        parse_one(text)
    assert (caught.value.message, caught.value.kind, caught.value.line) == (message, "unsupported", 5)


def test_reading_the_carry_flag_before_writing_it() -> None:
    with pytest.raises(PtxmmError) as caught:
        parse_one("PTX t\n{\n.global .u32 x = 0;\n}\nP0 @ cta 0 {\n addc.u32 r, 1, 2;\n}\nexists (x == 0)\n")
    assert caught.value.message == "no instruction of P0 writes the carry flag"
    assert caught.value.line == 6
