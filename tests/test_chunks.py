"""How copies and vectors are divided, and which objects are mbarriers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmm import formats
from ptxmm.errors import PtxmmError
from ptxmm.program.shared.chunks import Chunk, Chunks
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.test import Test

DECLARED = (
    ".global .align 16 .u32 g[8]; .shared .align 16 .u32 s[8] @ cta 0 = {0}; .shared .b64 b @ cta 0 = mbarrier(1);"
)


def read(*code: str, declared: str = DECLARED) -> Test:
    """A test of threads in one CTA, each with its instructions."""
    blocks = "\n".join(f"P{i} @ cta 0, cluster 0, gpu 0 {{ {text} }}" for i, text in enumerate(code))
    (test,) = formats.parse(f"PTX t\n{{ {declared} }}\n{blocks}\n".replace("@ cta 0 =", "@ cta 0, cluster 0 ="))
    return test


def chunks(test: Test, key: str, offset: int, size: int) -> tuple[Chunk, ...]:
    return Chunks(test).of(key, offset, size)


def is_mbarrier(test: Test, key: str) -> bool:
    return key in mbarriers(test.threads, test.objects)


def sizes(test: Test, key: str, offset: int = 0, size: int = 32) -> list[int]:
    found = chunks(test, key, offset, size)
    assert found[0][0] == offset and sum(length for _, length in found) == size
    return [length for _, length in found]


LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];"


def test_what_nothing_else_accesses_is_one_chunk() -> None:
    assert sizes(read(LOAD), "s") == [16, 16]
    assert sizes(read(LOAD, declared=DECLARED.replace(".u32 s[8]", ".b64 s[4]")), "s") == [16, 16]


def test_bytes_are_not_divided() -> None:
    bytes_ = DECLARED.replace(".u32 s[8]", ".b8 s[32]")
    assert sizes(read(LOAD, declared=bytes_), "s") == [16, 16]
    assert sizes(read("ld.shared.u32 r0, [s+4];", declared=bytes_), "s") == [4, 4, 24]
    assert sizes(read(LOAD, "ld.shared.u32 r0, [s+4];", declared=bytes_), "s", 0, 16) == [4, 4, 8]


def test_scalar_accesses_divide() -> None:
    test = read(LOAD, "ld.shared.u64 r0, [s];", "ld.shared.u8 r0, [s+8];")
    assert sizes(test, "s", 0, 16) == [8, 1, 7]
    assert chunks(test, "s", 4, 8) == ((4, 4), (8, 1), (9, 3))
    assert sizes(read("ld.shared.u64 r0, [s];", "ld.shared.u32 r0, [s];"), "s", 0, 8) == [4, 4]
    assert sizes(read("st.shared.v2.u64 [s], {0, 0};", "ld.shared.u32 r0, [s];"), "s", 0, 16) == [4, 4, 8]


def test_a_scalar_of_16_bytes() -> None:
    test = read("ld.relaxed.gpu.global.b128 r0, [g];")
    assert Chunks(test).of("g", 0, 16) == ((0, 16),)
    assert Chunks(test, split=True).of("g", 0, 16) == ((0, 8), (8, 8))


def test_registers_with_one_address_name_their_variable() -> None:
    for code in ("mov.u64 rd, s; ld.shared.u8 r0, [rd];", "mov.u64 ra, s; add.u64 rd, ra, 3; ld.shared.u8 r0, [rd-3];"):
        assert sizes(read(LOAD, code), "s", 0, 8) == [1, 7]
    assert sizes(read(LOAD, "ld.shared.u8 r0, [rd];", declared=DECLARED + " P1:rd = s;"), "s", 0, 8) == [1, 7]


def test_accesses_by_register() -> None:
    byte = "mov.u64 rd, s; add.u64 rd, rd, 0; ld.shared.u8 r0, [rd];"
    word = "mov.u64 rd, s; add.u64 rd, rd, 0; ld.shared.u32 r0, [rd];"
    double = "mov.u64 rd, s; add.u64 rd, rd, 0; ld.shared.u64 r0, [rd];"
    assert sizes(read(LOAD, byte), "s", 0, 8) == [1] * 8
    assert sizes(read(LOAD, byte, word), "s", 0, 8) == [4, 4]
    assert sizes(read(LOAD, double), "s", 0, 16) == [8, 8]
    assert sizes(read(LOAD, byte, double), "s", 0, 8) == [1] * 8
    assert sizes(read(LOAD, byte, "ld.shared.u64 r0, [s];"), "s", 0, 16) == [8, *[1] * 8]
    assert sizes(read(LOAD, byte), "g", 0, 8) == [8], "an access to .shared divides nothing in .global"
    generic = "mov.u64 rd, s; add.u64 rd, rd, 0; ld.u8 r0, [rd];"
    assert sizes(read(LOAD, generic), "g", 0, 4) == [1] * 4, "a generic one may"


def test_vectors_and_copies_divide_where_no_scalar_access_is() -> None:
    bytes_ = DECLARED.replace(".u32 s[8]", ".b8 s[32]")
    assert sizes(read(LOAD, "ld.shared.v2.u32 {r0, r1}, [s];", declared=bytes_), "s", 0, 16) == [4, 4, 8]
    assert (
        sizes(read("ld.shared.v2.u64 {r0, r1}, [s];", "ld.shared.v4.u32 {r0, r1, r2, r3}, [s];"), "s", 0, 16) == [4] * 4
    )
    assert sizes(read(LOAD, "ld.shared.v2.u64 {r0, r1}, [s];"), "s", 0, 16) == [8, 8], "not by the declared elements"
    copies = "cp.async.ca.shared.global [s+4], [g], 4;"
    assert sizes(read(LOAD, copies, declared=bytes_), "s", 0, 16) == [4, 4, 8]
    assert sizes(read("cp.async.ca.shared.global [s], [g], 8;", "ld.shared.u64 r0, [s];"), "s", 0, 8) == [8]


def test_a_reduction_divides_by_its_elements() -> None:
    bytes_ = DECLARED.replace(".u32 g[8]", ".b8 g[32]")
    reduction = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], 16;"
    assert sizes(read(reduction, declared=bytes_), "g") == [4, 4, 4, 4, 16]


def test_a_tensor_copy_is_a_copy_of_its_box() -> None:
    declared = DECLARED.replace(".u32 s[8]", ".b8 s[32]").replace(".u32 g[8]", ".b8 g[64]")
    declared += ".global .b8 tm[128] = tensormap(g, u32, 4);"
    copy = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [tm, {4}], [b];"
    test = read(copy, declared=declared)
    assert sizes(test, "s") == [16, 16]
    assert sizes(test, "g", 0, 64) == [16, 16, 32]
    assert sizes(test, "tm", 0, 128) == [128]


def test_a_multicast_divides_the_objects_of_all_ctas() -> None:
    text = (
        "PTX t\n{ .global .b8 g[32]; .shared .b8 s[32] = {0}; .shared .b64 b = mbarrier(1); }\n"
        "P0 @ cta 0, cluster 0 { "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [b], 3; }\n"
        "P1 @ cta 1, cluster 0 { ld.shared.u8 r0, [s+24]; mbarrier.arrive.shared.b64 _, [b]; }\n"
    )
    (test,) = formats.parse(text)
    assert sizes(test, "cta 1:s") == [16, 8, 1, 7]
    assert sizes(test, "cta 0:s") == [16, 16]


def test_mbarriers_and_aliases() -> None:
    declared = DECLARED + ".shared .b64 c @ cta 0 = 0; y @ generic aliases g; .global .u64 h;"
    test = read(
        "mbarrier.init.shared.b64 [c], 1; ld.global.u64 r1, [h];", "ld.global.u32 r0, [y+4];", declared=declared
    )
    assert [key for key in test.objects if is_mbarrier(test, key)] == ["b", "c"]
    assert sizes(test, "g", 0, 12) == sizes(test, "y", 0, 12) == [4, 4, 4]
    assert sizes(test, "c", 0, 8) == [8]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mov.u64 rd, c; mbarrier.init.b64 [rd], 1;", True),
        ("mov.u64 rd, c; ld.u64 r0, [rd];", False),
        ("ld.shared.u64 r0, [c];", False),
    ],
)
def test_an_mbarrier_that_only_a_register_names(code: str, expected: bool) -> None:
    declared = ".shared .b64 c @ cta 0 = 0; .shared .u32 d @ cta 0 = 0; .global .b64 g;"
    test = read(f"{code} mov.u64 re, d; mov.u64 rf, g;", declared=declared)
    assert is_mbarrier(test, "c") == expected
    assert not is_mbarrier(test, "d") and not is_mbarrier(test, "g")


def test_an_mbarrier_that_a_register_names_is_no_memory() -> None:
    declared = ".shared .b64 c @ cta 0 = 0; .shared .u32 d @ cta 0 = 0; .global .b64 g;"
    with pytest.raises(PtxmmError, match="c is an mbarrier"):
        read("mov.u64 rd, c; mbarrier.init.b64 [rd], 1; ld.shared.u64 r0, [c];", declared=declared)


def test_the_same_variable_in_another_cta() -> None:
    text = (
        "PTX t\n{ .shared .b64 b = 0; }\nP0 @ cta 0, cluster 0 { mbarrier.init.shared.b64 [b], 1; }\n"
        "P1 @ cta 1, cluster 0 { mov.u64 rd, b; mapa.u64 re, rd, 0; mbarrier.arrive.shared::cluster.b64 _, [re]; }\n"
    )
    (test,) = formats.parse(text)
    assert is_mbarrier(test, "cta 0:b") and is_mbarrier(test, "cta 1:b")


@given(
    st.lists(st.tuples(st.sampled_from((1, 2, 4, 8)), st.integers(0, 7)), max_size=6),
    st.integers(0, 31),
    st.integers(1, 32),
)
def test_every_scalar_is_respected(accesses: list[tuple[int, int]], offset: int, size: int) -> None:
    size = min(size, 32 - offset)
    code = " ".join(f"ld.shared.u{8 * n} r{8 * n}_{i}, [s+{(n * k) % 32}];" for i, (n, k) in enumerate(accesses))
    found = Chunks(read(code or "fence.sc.gpu;")).of("s", offset, size)
    assert found[0][0] == offset and found[-1][0] + found[-1][1] == offset + size
    assert all(a + n == b for (a, n), (b, _) in pairwise(found))
    for width, index in accesses:
        begin = (width * index) % 32
        for low, length in found:
            inside = begin <= low and low + length <= begin + width
            assert inside or low + length <= begin or begin + width <= low
