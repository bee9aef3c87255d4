"""Declarations of litmus files: types, vectors, initial values, mbarriers, tensor maps, overlapping grids; and back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmm import formats
from ptxmm.formats import litmus
from ptxmm.program.condition import Comparison, IntegerTerm
from ptxmm.program.floats import real_bits, real_text
from ptxmm.program.shared.tensors import Tensor, decode
from ptxmm.program.test import MemoryObject, TensorMap, Test
from ptxmm.ptx.ops import Type

F16, F32, F64 = (Type("f", bits) for bits in (16, 32, 64))
ONE = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}


def read(declarations: str, head: str = "P0 @ cta 0", rest: str = "") -> Test:
    """A test of one thread with these declarations."""
    (test,) = formats.parse(f"PTX t\n{{ {declarations} }}\n {head} ;\n fence.sc.gpu ;\n{rest}\n")
    return test


def declared(text: str) -> MemoryObject:
    (found,) = (item for item in read(text).objects.values() if item.name == "x")
    return found


def same_again(test: Test) -> None:
    """Writing and reading gives the same test."""
    text = litmus.write(test)
    (again,) = formats.parse(text)
    assert litmus.same(test, again), text


@pytest.mark.parametrize(
    ("text", "type_", "initial"),
    [
        (".global .f32 x = 1.0", F32, (ONE[32],)),
        (".global .f32 x = 0f3F800000", F32, (ONE[32],)),
        (".global .f32 x = -0f3F800000", F32, (ONE[32] | 1 << 31,)),
        (".global .f32 x = 0d3FF0000000000000", F32, (ONE[32],)),
        (".global .f32 x = 1", F32, (ONE[32],)),
        (".global .f32 x = 0x3F800000", F32, (ONE[32],)),
        (".global .f32 x = -1", F32, (ONE[32] | 1 << 31,)),
        (".global .f32 x = -0.0", F32, (1 << 31,)),
        (".global .f32 x = 1e10", F32, (0x501502F9,)),
        (".global .f32 x = 1.e39", F32, (0x7F800000,)),
        (".global .f32 x", F32, (0,)),
        (".global .f64 x = 1.0", F64, (ONE[64],)),
        (".global .f64 x = 0f3F800000", F64, (ONE[64],)),
        (".global .f16 x = 1.0", F16, (ONE[16],)),
        (".global .b32 x = 1.0", Type("b", 32), (ONE[32],)),
        (".global .b32 x = 0f7FC00000", Type("b", 32), (0x7FC00000,)),
        (".global .f16x2 x = 65537", Type("b", 32), (65537,)),
        (".global .b128 x = 0xffffffffffffffffffffffffffffffff", Type("b", 128), ((1 << 128) - 1,)),
        (".global .b128 x = 18446744073709551616", Type("b", 128), (1 << 64,)),
        (".global .v4 .f32 x = {1.0, 2.0}", F32, (ONE[32], 1 << 30, 0, 0)),
        (".global .v2 .u32 x[2] = {{1, 2}, {3}}", Type("u", 32), (1, 2, 3, 0)),
        (".global .v2 .u32 x[] = {{1, 2}, {3}}", Type("u", 32), (1, 2, 3, 0)),
        (".global .v2 .u32 x[] = {1, 2, 3}", Type("u", 32), (1, 2, 3, 0)),
        (".global .align 16 .v2 .u32 x", Type("u", 32), (0, 0)),
        (".global .v2 .u32 x[2]", Type("u", 32), (0, 0, 0, 0)),
        (".param .u32 x = 7", Type("u", 32), (7,)),
        (".param::entry .u64 x[2] = {7}", Type("u", 64), (7, 0)),
        (".shared::cta .b64 x @ cta 0 = 3", Type("b", 64), (3,)),
    ],
)
def test_values(text: str, type_: Type, initial: tuple[int, ...]) -> None:
    item = declared(f"{text};")
    assert (item.type, item.initial) == (type_, initial)
    assert item.count == len(initial)
    same_again(read(f"{text};"))


def test_mbarriers() -> None:
    assert declared(".shared .b64 x @ cta 0 = mbarrier(2);").mbarrier == ((2, 0),)
    assert declared(".shared .b64 x @ cta 0 = mbarrier(0, 16);").mbarrier == ((0, 16),)
    assert declared(".shared .b64 x @ cta 0 = mbarrier(0, -16);").mbarrier == ((0, -16),)
    array = declared(".shared .b64 x[4] @ cta 0 = {mbarrier(1), 5, mbarrier(0, 16)};")
    assert array.mbarrier == ((1, 0), None, (0, 16), None)
    assert array.initial == (0, 5, 0, 0)
    assert declared(".shared .b64 x[2] @ cta 0 = {1, 2};").mbarrier == ()
    same_again(read(".shared .b64 x[4] @ cta 0 = {mbarrier(1), 5, mbarrier(0, 16)};"))
    same_again(read(".shared .b64 x @ cta 0 = mbarrier(3);"))


def test_mbarriers_of_several_ctas() -> None:
    text = (
        "PTX t\n{ .shared .b64 x = mbarrier(1); }\n P0 @ cta 0, cluster 0 | P1 @ cta 1, cluster 0 ;\n"
        " mbarrier.arrive.shared.b64 _, [x] | mbarrier.arrive.shared.b64 _, [x] ;\n"
        "exists (cta 0:x == 1 /\\ cta 1:x == 1)"
    )
    (test,) = formats.parse(text)
    assert {key: item.mbarrier for key, item in test.objects.items()} == {"cta 0:x": ((1, 0),), "cta 1:x": ((1, 0),)}
    same_again(test)


@pytest.mark.parametrize("space", [".global .align 64", ".const", ".param", ".shared"])
@pytest.mark.parametrize("shape", [".b8 x[128]", ".b64 x[16]", ".u8 x[]", ".v2 .u64 x[8]"])
def test_tensor_maps(space: str, shape: str) -> None:
    owner = " @ cta 0" if space == ".shared" else ""
    text = f".global .u32 g[4]; {space} {shape}{owner} = tensormap(g, u32, 4);"
    test = read(text)
    item = test.objects["x"]
    assert item.tensormap == TensorMap("g", Type("u", 32), (4,), (4,))
    assert item.size == 128
    content = b"".join(value.to_bytes(item.type.bytes, "little") for value in item.initial)
    address = test.objects["g"].address
    assert content[:8] == address.to_bytes(8, "little")
    assert decode(int.from_bytes(content, "little"), 1, None) == Tensor(address, Type("u", 32), (4,), (4,), (), (1,))
    same_again(test)


def test_tensor_map_of_a_later_variable() -> None:
    test = read(".global .b8 x[128] = tensormap(g, .f32, 4); .global .f32 g[4];")
    assert test.objects["x"].tensormap == TensorMap("g", F32, (4,), (4,))
    same_again(test)


def test_overlapping_grids() -> None:
    text = (
        "PTX t\n{ }\n P0 @ cta 0, grid 0, gpu 0 | P1 @ cta 0, grid 1 overlap, gpu 0 | P2 @ grid  0   overlap, gpu 1 ;\n"
        " fence.sc.gpu | fence.sc.gpu | fence.sc.gpu ;\n"
    )
    (test,) = formats.parse(text)
    assert [(t.placement.grid, t.placement.overlap) for t in test.threads] == [(0, False), (1, True), (0, True)]
    same_again(test)


def test_conditions_on_floats_compare_bits() -> None:
    rest = "exists (x == 1.0 /\\ x != -1 /\\ 0f7FC00000 == x /\\ y == 1.0 /\\ z == 0x10000000000000000 /\\ P0:r == 2.0)"
    test = read(".global .f32 x; .global .b64 y; .global .b128 z; .reg .f32 P0:r = 2.0;", rest=rest)
    assert test.condition is not None
    values: list[int] = []
    for item in test.condition.proposition.items:  # type: ignore[union-attr]
        assert isinstance(item, Comparison)
        values += [t.value for t in (item.left, item.right) if isinstance(t, IntegerTerm)]
    assert values == [ONE[32], ONE[32] | 1 << 31, 0x7FC00000, ONE[64], 1 << 64, 1 << 30]
    assert test.threads[0].initial == {"r": 1 << 30}
    same_again(test)


def test_registers_of_128_bits() -> None:
    test = read(".reg .b128 P0:q = 0x10000000000000001; .reg .f64 P0:d;")
    assert test.threads[0].registers["q"] == Type("b", 128)
    assert test.threads[0].initial == {"q": (1 << 64) + 1}
    same_again(test)


@given(st.integers(0, (1 << 32) - 1))
def test_every_float_has_a_spelling(bits: int) -> None:
    assert real_bits(real_text(bits, F32), F32) == (bits or 0) or real_text(bits, F32) == "0"
    double = bits << 32 | bits
    assert real_bits(real_text(double, F64), F64) == double or double == 0
    value = struct.unpack(">f", bits.to_bytes(4, "big"))[0]
    if value == value:
        assert real_bits(repr(value), F32) == bits or "e" in repr(value) or "inf" in repr(value)


@given(st.integers(0, (1 << 16) - 1))
def test_every_half_has_a_spelling(bits: int) -> None:
    text = real_text(bits, F16)
    assert bits == int(text, 16) if text.startswith("0x") else real_bits(text, F16) == bits or text == "0"


@pytest.mark.parametrize("text", ["mbarrier", "tensormap", "overlap", "generic"])
def test_words_of_the_format_are_names_too(text: str) -> None:
    test = read(f".global .u32 {text} = 1; .global .u64 p = {text};")
    assert test.objects["p"].initial == (test.objects[text].address,)


def test_expectations_keep_their_readings() -> None:
    text = "PTX t\nExpect=ptx-8.5:never ptx-8.5[sc-acqrel=off,tear=off]:sometimes\n{ }\n P0 ;\n fence.sc.gpu ;\n"
    (test,) = formats.parse(text)
    assert dict(test.info)["Expect"] == "ptx-8.5:never ptx-8.5[sc-acqrel=off,tear=off]:sometimes"
    same_again(test)


def test_pairs_of_destinations_are_written_in_blocks() -> None:
    (test,) = formats.parse("PTX t\n{ }\nP0 { mov.u32 r0, 1; setp.eq.u32 p|q, r0, 1; }\nP1 { fence.sc.gpu; }\n")
    assert "P0 {" in litmus.write(test)
    same_again(test)
