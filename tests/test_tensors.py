"""Tensor copies of one to five dimensions, and changes of tensor maps (PTX ISA 5.5, 9.7.10.24.9, .10, 9.7.10.25).

What a box holds is worked out by hand for each case; both engines answer.
"""

from __future__ import annotations

from itertools import product

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from tests.decided import observation

LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [tm, {{{}}}], [b];"
SAVE = (
    "cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [tm, {{{}}}], [s]; "
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
)
REDUCE = SAVE.replace("cp.async", "cp.reduce.async", 1).replace("shared::cta.bulk", "shared::cta.add.bulk")
IM2COL = LOAD.format(3, "0, 0, 0").replace("global.mb", "global.im2col.mb").replace("[b];", "[b], {h};")
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0;"
REPLACE = "tensormap.replace.tile.{}.global.b1024.{} [tm], {};"
FENCES = "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [tm], 128;"


def numbers(values: range | tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def case(shape: str, elements: int, box: int, body: str, condition: str, *, more: str = "", kind: str = "u32") -> str:
    """A test with a tensor map of ``shape`` over g, whose elements count from 1, and s for the box, full of 99."""
    width = int(kind[1:]) // 8
    declared = (
        f".global .align 64 .b8 tm[128] = tensormap(g, {kind}, {shape}); "
        f".global .align 16 .{kind} g[{elements}] = {numbers(range(1, elements + 1))}; "
        f".shared .align 16 .{kind} s[{box}] @ cta 0 = {numbers((99,) * box)}; "
        f".shared .b64 b @ cta 0 = mbarrier(0, {box * width}); {more}"
    )
    return f"PTX case\n{{ {declared} }}\nP0 @ cta 0 {{ {body} }}\n{condition}\n"


def loaded(shape: str, elements: int, rank: int, start: str, values: tuple[int, ...], kind: str = "u32") -> str:
    """Whether the box at ``start`` comes to hold ``values``."""
    whole = " /\\ ".join(f"s[{i}] == {v}" for i, v in enumerate(values))
    return case(shape, elements, len(values), LOAD.format(rank, start), f"exists ({whole})", kind=kind)


@pytest.mark.parametrize(
    ("shape", "elements", "rank", "start", "values"),
    [
        # one dimension: inside, across either end, beyond
        ("4", 8, 1, "2", (3, 4, 5, 6)),
        ("4", 8, 1, "6", (7, 8, 0, 0)),
        ("4", 8, 1, "-3", (0, 0, 0, 1)),
        ("4", 8, 1, "8", (0, 0, 0, 0)),
        ("4", 8, 1, "-2147483648", (0, 0, 0, 0)),
        ("4, 6", 8, 1, "4", (5, 6, 0, 0)),
        # two: rows of 4 and of 6 elements, the latter 32 bytes apart
        ("{2, 2}, {4, 2}", 8, 2, "1, 0", (2, 3, 6, 7)),
        ("{4, 2}, {4, 2}", 8, 2, "0, 0", (1, 2, 3, 4, 5, 6, 7, 8)),
        ("{2, 2}, {4, 2}", 8, 2, "3, 1", (8, 0, 0, 0)),
        ("{2, 2}, {4, 2}", 8, 2, "-1, -1", (0, 0, 0, 1)),
        ("{4, 2}, {6, 3}, {32}", 24, 2, "3, 1", (12, 13, 14, 0, 20, 21, 22, 0)),
        ("{1, 4}, {4, 4}", 16, 2, "2, 0", (3, 7, 11, 15)),
        # the traversal stride of an outer dimension
        ("{2, 4}, {4, 4}, {16}, {1, 2}", 16, 2, "0, 1", (5, 6, 13, 14)),
        ("{2, 3}, {4, 4}, {16}, {1, 2}", 16, 2, "0, 2", (9, 10, 0, 0)),
        # three to five
        ("{2, 2, 2}, {4, 2, 2}", 16, 3, "1, 0, 0", (2, 3, 6, 7, 10, 11, 14, 15)),
        ("{2, 2, 2}, {4, 2, 2}", 16, 3, "3, 1, 1", (16, 0, 0, 0, 0, 0, 0, 0)),
        ("{1, 1, 2, 2}, {4, 1, 2, 2}", 16, 4, "3, 0, 0, 0", (4, 8, 12, 16)),
        ("{1, 2, 1, 1, 2}, {4, 2, 1, 1, 2}", 16, 5, "1, 0, 0, 0, 0", (2, 6, 10, 14)),
    ],
)
def test_boxes(shape: str, elements: int, rank: int, start: str, values: tuple[int, ...]) -> None:
    assert observation(loaded(shape, elements, rank, start, values)) == "always"


@pytest.mark.parametrize("kind", ["u8", "u16", "u64", "s64"])
def test_types_of_elements(kind: str) -> None:
    count = 16 // (int(kind[1:]) // 8)
    values = (*range(2, count + 1), 0)
    assert observation(loaded(str(count), count, 1, "1", values, kind)) == "always"


def test_coordinates_in_registers() -> None:
    reads = "ld.shared.u32 r0, [s]; ld.shared.u32 r1, [s+4];"
    text = case("4", 8, 4, f"mov.s32 c, 7; {LOAD.format(1, 'c')} {WAIT} {reads}",
                "filter (P0:p == 1) exists (P0:r0 == 8 /\\ P0:r1 == 0)")  # fmt: skip
    assert observation(text) == "always"
    text = case("4", 8, 4, f"ld.global.u32 c, [k]; {LOAD.format(1, 'c')} {WAIT} {reads}",
                "filter (P0:p == 1) exists (P0:r0 == 0 /\\ P0:r1 == 1)", more=".global .s32 k = -1;")  # fmt: skip
    assert observation(text) == "always"


@pytest.mark.parametrize(
    ("copy", "shape", "rank", "start", "changed"),
    [
        (SAVE, "4", 1, "6", {6: 99, 7: 99}),
        (SAVE, "4", 1, "-3", {0: 99}),
        (SAVE, "4", 1, "8", {}),
        (SAVE, "{2, 2}, {4, 2}", 2, "3, 0", {3: 99, 7: 99}),
        (REDUCE, "4", 1, "6", {6: 106, 7: 107}),
        (REDUCE, "{2, 2}, {4, 2}", 2, "-1, 0", {0: 100, 4: 104}),
    ],
)
def test_what_is_outside_is_not_written(copy: str, shape: str, rank: int, start: str, changed: dict[int, int]) -> None:
    values = [changed.get(i, i + 1) for i in range(8)]
    whole = " /\\ ".join(f"g[{i}] == {v}" for i, v in enumerate(values))
    body = f"fence.proxy.async; {copy.format(rank, start)}"
    assert observation(case(shape, 8, 4, body, f"exists ({whole})")) == "always"


def test_a_store_does_not_race_outside_of_the_tensor() -> None:
    """Another thread uses the padding behind the rows of 3 elements."""
    text = case("{2, 2}, {3, 2}, {16}", 8, 4, SAVE.format(2, "2, 0"), "exists (P1:r0 == 4 /\\ P1:r1 == 8)")
    text = text.replace("\nexists", "\nP1 @ cta 1 { ld.global.u32 r0, [g+12]; ld.global.u32 r1, [g+28]; }\nexists")
    (test,) = parse(text, "case.litmus")
    result = check(test, load("ptx-8.5"), engine="both", limits=Limits())
    assert (result.observation, result.flags) == ("always", ())


def test_the_whole_box_is_counted() -> None:
    """complete_tx is of the bytes of the box, whatever lies outside (9.7.10.24.9): the phase is complete, and no later
    one is begun."""
    body = f"{LOAD.format(1, '6')} {WAIT}"
    assert observation(case("4", 8, 4, body, "filter (P0:p == 1) exists (b == 1)")) == "always"


def test_multicast() -> None:
    text = """PTX multicast
{ .global .align 64 .b8 tm[128] = tensormap(g, u32, {2, 2}, {4, 2});
  .global .align 16 .u32 g[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  .shared .align 16 .u32 s[4] = {9, 9, 9, 9}; .shared .b64 b = mbarrier(0, 16); }
P0 @ cta 0, cluster 0 {
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [s], [tm, {3, 0}], [b], 3;
}
P1 @ cta 1, cluster 0 {
  mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.v4.u32 {r0, r1, r2, r3}, [s];
}
filter (P1:p == 1)
exists (P1:r0 == 4 /\\ P1:r1 == 0 /\\ P1:r2 == 8 /\\ P1:r3 == 0)
"""
    assert observation(text) == "always"


# field, type, operands after the address, the values of the box {2, 2} at (0, 0) of a tensor of 4 by 2 after the change
CHANGES = (
    ("global_address", "b64", "d", (9, 10, 13, 14)),
    ("box_dim", "b32", "0, 4", (1, 2, 3, 4, 5, 6, 7, 8)),
    ("box_dim", "b32", "1, 4", (1, 2, 5, 6, 0, 0, 0, 0)),
    ("global_dim", "b32", "0, 1", (1, 0, 5, 0)),
    ("global_dim", "b32", "1, 1", (1, 2, 0, 0)),
    ("global_stride", "b64", "0, 32", (1, 2, 9, 10)),
    ("element_stride", "b32", "1, 1", (1, 2, 5, 6)),
    ("swizzle_mode", "b32", "0", (1, 2, 5, 6)),
    ("interleave_layout", "b32", "0", (1, 2, 5, 6)),
    ("fill_mode", "b32", "0", (1, 2, 5, 6)),
    ("elemtype", "b32", "3", (1, 2, 5, 6)),
    ("elemtype", "b32", "7", (1, 2, 5, 6)),
)


@pytest.mark.parametrize(("field", "kind", "operands", "values"), CHANGES)
def test_changes_take_effect(field: str, kind: str, operands: str, values: tuple[int, ...]) -> None:
    """With both fences of the tensormap proxy the copy sees the change, without them it may be stale (A38)."""
    count = max(len(values), 4)
    whole = " /\\ ".join(f"s[{i}] == {v}" for i, v in enumerate(values))
    change = REPLACE.format(field, kind, operands)

    def text(fences: str) -> str:
        body = f"{change} {fences} {LOAD.format(2, '0, 0')}"
        return case("{2, 2}, {4, 2}", 16, count, body, f"exists ({whole})", more=".reg .u64 P0:d = g+32;")

    assert observation(text(FENCES)) == "always"
    assert observation(text("")) == ("always" if values == (1, 2, 5, 6) else "sometimes")


def test_a_rank_that_is_replaced() -> None:
    """new_val is one less than the rank (9.7.10.25)."""
    reads = "ld.shared.v4.u32 {r0, r1, r2, r3}, [s];"
    change = REPLACE.format("box_dim", "b32", "0, 4") + REPLACE.format("rank", "b32", "0") + FENCES
    text = case("{2, 2}, {4, 2}", 8, 4, f"{change} {LOAD.format(1, '1')} {WAIT} {reads}",
                "filter (P0:p == 1) exists (P0:r0 == 2 /\\ P0:r1 == 3 /\\ P0:r2 == 4 /\\ P0:r3 == 0)")  # fmt: skip
    assert observation(text) == "always"


def test_an_element_type_that_is_replaced() -> None:
    """Boxes of 8 elements of 16 bits in place of 8 of 32 bits."""
    reads = "ld.shared.v4.u32 {r0, r1, r2, r3}, [s];"
    change = REPLACE.format("elemtype", "b32", "1") + FENCES
    text = case("8", 8, 8, f"{change} {LOAD.format(1, '2')} {WAIT} {reads}",
                "exists (P0:p == 1 /\\ P0:r0 == 2 /\\ P0:r1 == 3 /\\ P0:r2 == 4 /\\ P0:r3 == 0)")  # fmt: skip
    assert observation(text.replace("mbarrier(0, 32)", "mbarrier(0, 16)")) == "sometimes"


def test_a_map_that_is_copied() -> None:
    """A tensor map is made in shared memory and copied to plain global memory (tensormap.cp_fenceproxy)."""
    text = """PTX copied
{ .shared .align 128 .b8 t[128] @ cta 0 = tensormap(g, u32, 4); .global .align 128 .b8 m[128] = {0};
  .global .align 16 .u32 g[8] = {1, 2, 3, 4, 5, 6, 7, 8}; .shared .align 16 .u32 s[4] @ cta 0 = {9, 9, 9, 9};
  .shared .b64 b @ cta 0 = mbarrier(0, 16); }
P0 @ cta 0 {
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [m], [t], 128;
  fence.proxy.tensormap::generic.acquire.gpu [m], 128;
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [m, {1}], [b];
  mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; ld.shared.v4.u32 {r0, r1, r2, r3}, [s];
}
filter (P0:p == 1)
exists (P0:r0 == 2 /\\ P0:r1 == 3 /\\ P0:r2 == 4 /\\ P0:r3 == 5)
"""
    assert observation(text) == "always"
    assert observation(text.replace("fence.proxy.tensormap::generic.acquire.gpu [m], 128;", "")) == "undefined"


@pytest.mark.parametrize(
    "change",
    [
        REPLACE.format("rank", "b32", "1"),  # another rank than that of the instruction
        REPLACE.format("rank", "b32", "7"),
        REPLACE.format("box_dim", "b32", "0, 3"),  # 12 bytes
        REPLACE.format("box_dim", "b32", "0, 0"),
        REPLACE.format("box_dim", "b32", "0, 260"),
        REPLACE.format("global_dim", "b32", "0, 0"),
        REPLACE.format("element_stride", "b32", "0, 2"),
        REPLACE.format("global_address", "b64", "5"),
        REPLACE.format("global_address", "b64", "d"),
    ],
)
def test_maps_without_a_meaning(change: str) -> None:
    body = f"{change} {FENCES} {LOAD.format(1, '0')}"
    text = case("4", 8, 4, body, "exists (s[0] == 1)", more=".reg .u64 P0:d = g+4;")
    assert observation(text) == "undefined"


def test_elements_outside_of_the_variable() -> None:
    """An element of the tensor that lies in no variable is an access outside every object."""
    change = REPLACE.format("global_dim", "b32", "0, 9")
    assert observation(case("4", 8, 4, f"{change} {FENCES} {LOAD.format(1, '4')}", "exists (s[0] == 5)")) == "always"
    assert observation(case("4", 8, 4, f"{change} {FENCES} {LOAD.format(1, '8')}", "exists (s[0] == 0)")) == "undefined"


@pytest.mark.parametrize(
    ("shape", "body", "kind", "message"),
    [
        ("4", LOAD.format(2, "0, 0"), "type", "tm describes a tensor of 1 dimensions, but this copy has 2"),
        ("{2, 2}, {4, 2}", LOAD.format(1, "0"), "type", "tm describes a tensor of 2 dimensions, but this copy has 1"),
        ("{2, 2, 1}, {4, 2, 1}", IM2COL,
         "unsupported", "tensor copies in the mode .im2col are not supported"),
        ("4", REPLACE.format("swizzle_mode", "b32", "1"), "unsupported",
         "swizzled boxes are not supported: the field .swizzle_mode can only be 0"),
        ("4", REPLACE.format("interleave_layout", "b32", "2"), "unsupported",
         "interleaved tensors are not supported: the field .interleave_layout can only be 0"),
        ("4", REPLACE.format("fill_mode", "b32", "1"), "unsupported",
         "filling with OOB-NaN is not supported: the field .fill_mode can only be 0"),
        ("4", REPLACE.format("elemtype", "b32", "11"), "unsupported", "tensors of .tf32 are not supported"),
        ("4", REPLACE.format("global_stride", "b64", "4, 16"), "type",
         "a tensor has at most 4 strides, with the ordinals 0 to 3"),
        ("2", REDUCE.format(1, "0").replace(".add", ".min").replace(".min.bulk", ".inc.bulk"), "type",
         "there is no reduction .inc of a tensor of .u64"),
    ],
)  # fmt: skip
def test_refused(shape: str, body: str, kind: str, message: str) -> None:
    element = "u64" if "u64" in message else "u32"
    with pytest.raises(PtxmmError) as caught:
        parse(case(shape, 8, 4, f"mov.u16 h, 0; {body}", "exists (s[0] == 1)", kind=element), "case.litmus")
    assert (caught.value.kind, caught.value.message) == (kind, message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{4, 2}", "the sizes of the tensor are missing"),
        ("{4, 2}, {4}", "a box of 2 dimensions needs 2 of this, 1 given: the number of elements of a tensor"),
        ("{4, 2}, {4, 2}, {16, 16}",
         "a box of 2 dimensions needs 1 of this, 2 given: "
         "the bytes from one element to the next of an outer dimension"),
        ("{4, 2}, {6, 2}", "a stride is a multiple of 16 bytes"),
        ("{4, 2}, {4, 2}, {24}", "a stride is a multiple of 16 bytes"),
        ("{4, 2}, {4, 2}, {16}, {2, 1}", "the traversal stride of dimension 0 is 1"),
        ("{4, 2}, {4, 2}, {16}, {1, 9}", "the traversal stride is 1 to 8, not 9"),
        ("{1, 1, 1, 1, 1, 4}, {4, 4, 4, 4, 4, 4}", "a tensor has 1 to 5 dimensions, not 6"),
        ("{3, 1}, {4, 2}", "a box has a multiple of 16 bytes, and 3 elements of .u32 have 12"),
        ("300", "the number of elements of a box is 1 to 256, not 300"),
        ("4, 9", "the tensor has 36 bytes, but g has 32"),
        ("{4, 2}, {4, 3}", "the tensor has 48 bytes, but g has 32"),
    ],
)  # fmt: skip
def test_wrong_declarations(value: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse(case(value, 8, 8, LOAD.format(1, "0"), "exists (s[0] == 1)"), "case.litmus")
    assert caught.value.message == message


def test_all_boxes_of_a_small_tensor() -> None:
    """Positions of a box of 2 by 2 in a tensor of 3 by 3 with rows of 16 bytes."""
    for x, y in product((-2, -1, 1, 2, 3), repeat=2):
        values = tuple(
            1 + (y + j) * 4 + x + i if 0 <= x + i < 3 and 0 <= y + j < 3 else 0 for j in range(2) for i in range(2)
        )
        assert observation(loaded("{2, 2}, {3, 3}, {16}", 12, 2, f"{x}, {y}", values)) == "always"
