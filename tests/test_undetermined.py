"""Values that the PTX ISA leaves open: ``discard`` (9.7.10.16) and matrices of ``wmma`` (9.7.15.3)."""

from __future__ import annotations

import json

import pytest

from ptxmm import formats
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.analysis.result import Result, Unknown
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.ptx import isa, ops
from ptxmm.ptx.table import Version
from ptxmm.render.document import document
from tests.test_ptx_rows import parsed, printed, resolve

ARRAY = ".global .align 128 .u32 x[32] = {7};"


def result(declarations: str, threads: str, condition: str, all_state: bool = False) -> Result:
    (test,) = formats.parse(f"PTX t\n{{ {declarations} }}\n{threads}\n{condition}\n", "t.litmus")
    return check(test, load("ptx-8.5"), engine="both", all_state=all_state)


def refused(declarations: str, threads: str, condition: str = "") -> PtxmmError:
    with pytest.raises(PtxmmError) as caught:
        result(declarations, threads, condition)
    assert caught.value.kind == "unsupported" and caught.value.line is not None
    return caught.value


def shown(found: Result) -> set[tuple[str, ...]]:
    return {tuple(str(v) for part in (o.registers, o.memory) for v in part.values()) for o in found.outcomes}


# ---- discard ---------------------------------------------------------------------------------------------------------


def test_a_discarded_value_has_a_name() -> None:
    threads = "P0 @ cta 0 { discard.global.L2 [x], 128;\n ld.global.u32 r0, [x]; ld.global.u32 r1, [x+4]; }"
    found = result(ARRAY, threads, "exists (P0:r0 == 1 /\\ ~(P0:r1 == 1))")
    assert shown(found) == {("?discard(P0 line 3)", "?discard(P0 line 3)+4")}
    assert (found.observation, found.status) == ("sometimes", "complete")
    assert [note.text for note in found.notes] == [
        "the condition depends on the undetermined value of discard(P0 line 3)"
    ]
    (row,) = json.loads(document([found]))["results"][0]["outcomes"]
    assert row["registers"] == {
        "P0:r0": {"unknown": "discard(P0 line 3)"}, "P0:r1": {"unknown": "discard(P0 line 3)+4"}
    }  # fmt: skip


def test_what_nothing_looks_at_is_unknown_too() -> None:
    found = result(ARRAY, "P0 @ cta 0 { discard.global.L2 [x], 128; }", "exists (x[0] == 1)", all_state=True)
    assert shown(found) == {("?discard(P0 line 3)", *["0x????????"] * 31)}


def test_each_discard_has_values_of_its_own() -> None:
    threads = (
        "P0 @ cta 0 { discard.global.L2 [x], 128; ld.global.u32 r0, [x];\n"
        " discard.global.L2 [x], 128; ld.global.u32 r1, [x]; }"
    )
    found = result(ARRAY, threads, "exists (P0:r0 == P0:r1)")
    assert shown(found) == {("?discard(P0 line 3)", "?discard(P0 line 4)")}
    assert found.observation == "sometimes"


def test_a_copy_of_the_value_is_the_value() -> None:
    threads = (
        "P0 @ cta 0 { discard.global.L2 [x], 128; ld.global.u32 r0, [x]; st.global.u32 [y], r0;"
        " ld.global.u32 r1, [y]; }"
    )
    found = result(f"{ARRAY} .global .u32 y;", threads, "forall (P0:r0 == P0:r1)")
    assert found.observation == "always"


def test_a_branch_on_the_value_goes_both_ways() -> None:
    threads = (
        "P0 @ cta 0 { discard.global.L2 [x], 128; ld.global.u32 r0, [x]; mov.u32 r1, 0; setp.eq.u32 p, r0, 3;"
        " @p mov.u32 r1, 1; }"
    )
    found = result(ARRAY, threads, "exists (P0:r1 == 1)")
    assert {row[-1] for row in shown(found)} == {"0", "1"} and found.observation == "sometimes"


def test_computing_with_the_value_is_told() -> None:
    threads = "P0 @ cta 0 { discard.global.L2 [x], 128; ld.global.u32 r0, [x];\n add.u32 r1, r0, 1; }"
    found = result(ARRAY, threads, "exists (P0:r1 == 4)")
    assert found.status == "bounded"
    assert any("of discard(P0 line 3) is computed with (P0 line 4: add.u32)" in note.text for note in found.notes)


@pytest.mark.parametrize("name", ["x", "y"])
def test_addresses_in_registers(name: str) -> None:
    """The discard is of the variable that its register leads to, and of no other."""
    threads = (
        f"P0 @ cta 0 {{ mov.u64 a, {name}; st.global.u64 [p], a; ld.global.u64 b, [p]; discard.L2 [b], 128;"
        " ld.global.u32 r0, [x]; ld.global.u32 r1, [y]; }"
    )
    declared = f"{ARRAY} .global .align 128 .u32 y[32] = {{8}}; .global .u64 p;"
    found = result(declared, threads, "exists (P0:r0 == 3 /\\ P0:r1 == 3)")
    (row,) = shown(found)
    unknown = "?discard(P0 line 3)"
    assert row == ((unknown, "8") if name == "x" else ("7", unknown))
    assert found.observation == "never"


def test_discards_race() -> None:
    threads = "P0 @ cta 0 { discard.global.L2 [x], 128; }\nP1 @ cta 1 { ld.global.u32 r0, [x+124]; }"
    (test,) = formats.parse(f"PTX t\n{{ {ARRAY} }}\n{threads}\n", "t.litmus")
    found = races(test, load("ptx-8.5"))
    assert len(found.races) == 1


def test_discard_of_other_memory_is_undefined() -> None:
    threads = "P0 @ cta 0 { cvta.shared.u64 a, s; discard.L2 [a], 128; ld.global.u32 r0, [x]; }"
    found = result(f"{ARRAY} .shared .align 128 .u32 s[32] = {{0}};", threads, "exists (P0:r0 == 7)")
    assert found.status == "undefined"
    why = "s is .shared memory, but the address has to be in .global (PTX ISA 9.7.10.16)"
    assert any(why in note.text for note in found.notes)


def test_discard_in_a_loop_is_refused() -> None:
    threads = "P0 @ cta 0 {\n L: discard.global.L2 [x], 128;\n ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L; }"
    error = refused(ARRAY, threads)
    assert "discard.global.L2 in a loop" in error.message and error.line == 4


def test_too_many_undetermined_bytes() -> None:
    threads = (
        "P0 @ cta 0 { mov.u64 a, x; st.global.u64 [p], a; ld.global.u64 b, [p]; discard.L2 [x], 128;\n"
        " discard.L2 [x], 128; ld.global.u32 r0, [b]; }"
    )
    with pytest.raises(PtxmmError, match="bytes are undetermined") as caught:
        result(f"{ARRAY} .global .u64 p;", threads, "")
    assert caught.value.kind == "unsupported"


# ---- wmma: what is legal ---------------------------------------------------------------------------------------------


def vector(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"


# Matrix, shape, type, registers of a thread (tables of 9.7.15.3.1), lines and their elements by rows and by columns.
TILES = [
    ("a", "m16n16k16", "f16", 8, (16, 16), (16, 16)),
    ("a", "m8n32k16", "f16", 8, (8, 16), (16, 8)),
    ("b", "m8n32k16", "f16", 8, (16, 32), (32, 16)),
    ("c", "m32n8k16", "f16", 4, (32, 8), (8, 32)),
    ("c", "m16n16k16", "f32", 8, (16, 16), (16, 16)),
    ("c", "m8n32k16", "s32", 8, (8, 32), (32, 8)),
    ("a", "m16n16k16", "s8", 2, (16, 16), (16, 16)),
    ("a", "m8n32k16", "u8", 1, (8, 16), (16, 8)),
    ("b", "m8n32k16", "u8", 4, (16, 32), (32, 16)),
    ("a", "m32n8k16", "s8", 4, (32, 16), (16, 32)),
    ("b", "m32n8k16", "s8", 1, (16, 8), (8, 16)),
    ("a", "m16n16k16", "bf16", 4, (16, 16), (16, 16)),
    ("a", "m8n32k16", "bf16", 2, (8, 16), (16, 8)),
    ("b", "m8n32k16", "bf16", 8, (16, 32), (32, 16)),
    ("a", "m16n16k8", "tf32", 4, (16, 8), (8, 16)),
    ("b", "m16n16k8", "tf32", 4, (8, 16), (16, 8)),
    ("c", "m16n16k8", "f32", 8, (16, 16), (16, 16)),
    ("a", "m8n8k4", "f64", 1, (8, 4), (4, 8)),
    ("c", "m8n8k4", "f64", 2, (8, 8), (8, 8)),
    ("a", "m8n8k32", "s4", 1, (8, 32), None),
    ("b", "m8n8k32", "u4", 1, None, (8, 32)),
    ("c", "m8n8k32", "s32", 2, (8, 8), (8, 8)),
    ("a", "m8n8k128", "b1", 1, (8, 128), None),
    ("b", "m8n8k128", "b1", 1, None, (8, 128)),
]


@pytest.mark.parametrize(("matrix", "shape", "element", "count", "row", "col"), TILES)
def test_tiles(
    matrix: str, shape: str, element: str, count: int, row: tuple[int, int] | None, col: tuple[int, int] | None
) -> None:
    bits = int(element.lstrip("usbtf"))
    for layout, lines in (("row", row), ("col", col)):
        text = f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{element} {vector('t', count)}, [x]"
        if lines is None:
            with pytest.raises(PtxmmError, match=f"is in .{'row' if matrix == 'a' else 'col'} order"):
                resolve(text)
            continue
        op = resolve(text)
        assert isinstance(op, ops.WmmaLoad)
        width = 8 if element == "f64" else 4
        assert op.tile == ops.Tile(*lines, bits, width * count)
        assert printed(op) == text
        with pytest.raises(PtxmmError, match=f"takes a vector of {count}"):
            resolve(text.replace("{t0", "{q, t0"))


PRODUCTS = [
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {D8}, {A8}, {B8}, {C8}",
    "wmma.mma.sync.aligned.row.row.m8n32k16.f16.f32 {D4}, {A8}, {B8}, {C8}",
    "wmma.mma.sync.aligned.col.col.m8n32k16.s32.s8.s8.s32.satfinite {D8}, {A1}, {B4}, {C8}",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 {D8}, {A4}, {B4}, {C8}",
    "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {D8}, {A4}, {B4}, {C8}",
    "wmma.mma.sync.aligned.row.col.m8n8k4.rz.f64.f64.f64.f64 {D2}, {A1}, {B1}, {C2}",
    "wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32 {D2}, {A1}, {B1}, {C2}",
    "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {D2}, {A1}, {B1}, {C2}",
]


def spelled(pattern: str) -> str:
    for letter in "DABC":
        for count in (1, 2, 4, 8):
            pattern = pattern.replace(f"{{{letter}{count}}}", vector(letter.lower(), count))
    return pattern


@pytest.mark.parametrize("pattern", PRODUCTS)
def test_products(pattern: str) -> None:
    text = spelled(pattern)
    op = resolve(text)
    assert isinstance(op, ops.Wmma)
    assert printed(op) == text


ILLEGAL = [
    ("wmma.load.a.sync.aligned.row.m16n16k16.f32 {A8}, [x]", "`wmma.load.a` of .m16n16k16 has no type .f32"),
    ("wmma.load.d.sync.aligned.row.m16n16k16.f16 {A8}, [x]", "`wmma.load` takes no `.d`"),
    ("wmma.load.a.sync.aligned.m16n16k16.f16 {A8}, [x]", "`wmma.load` needs a layout: .row .col"),
    ("wmma.load.a.aligned.row.m16n16k16.f16 {A8}, [x]", "`wmma.load` needs `.sync`"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.const.f16 {A8}, [x]", "`wmma.load` takes no `.const`"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.shared::cluster.f16 {A8}, [x]", "takes no `.shared::cluster`"),
    ("wmma.store.d.sync.aligned.row.m16n16k16.bf16 [x], {A4}", "`wmma.store` takes no `.bf16`"),
    ("wmma.store.d.sync.aligned.row.m16n16k8.s32 [x], {A8}", "`wmma.store.d` of .m16n16k8 has no type .s32"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {D8}, {A2}, {B2}, {C8}", "multiplies .s8 by .s8, not by"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16.f16.f32 {D8}, {A8}, {B8}, {C8}", "has no matrix A of .f16"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite {D8}, {A8}, {B8}, {C8}", "takes no `.satfinite`"),
    ("wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {D2}, {A1}, {B1}, {C2}", "is .xor.popc or .and.popc"),
    ("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s32.s4 {D2}, {A1}, {B1}, {C2}", "in this order"),
    ("wmma.mma.sync.aligned.col.col.m8n8k32.s32.s4.s4.s32 {D2}, {A1}, {B1}, {C2}", "A of .s4 is in .row order"),
    ("wmma.mma.sync.aligned.row.col.m16n16k16.rn.f32.f32 {D8}, {A8}, {B8}, {C8}", "takes no `.rn`"),
    ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.bf16.bf16.f32 {D8}, {A4}, {B4}, {C8}", "has no shape .m16n16k8"),
]


@pytest.mark.parametrize(("text", "message"), ILLEGAL)
def test_illegal_forms(text: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(spelled(text))
    assert message in caught.value.message and caught.value.kind == "isa" and caught.value.column is not None


def test_first_versions() -> None:
    for kind, count, version in (
        ("m16n16k16.f16", 8, Version((6, 0), 70)),
        ("m8n32k16.f16", 8, Version((6, 1), 70)),
        ("m8n32k16.s8", 1, Version((6, 3), 72)),
        ("m8n8k32.s4", 1, Version((6, 3), 75)),
        ("m8n8k4.f64", 1, Version((7, 0), 80)),
    ):
        text = f"wmma.load.a.sync.aligned.row.{kind} {vector('a', count)}, [x]"
        assert isa.requires(parsed(text)) == version


# ---- wmma: what it does ----------------------------------------------------------------------------------------------

STORE = "wmma.store.d.sync.aligned.row.m8n8k32.shared.s32"
MATRIX = ".shared .align 32 .s32 d[64] @ cta 0 = {3};"


def test_a_stored_element_is_undetermined() -> None:
    loads = "ld.shared.s32 r0, [d]; ld.shared.s32 r1, [d+36];"
    threads = f"P0 @ cta 0 {{ mov.s32 c, 0; {STORE} [d], {{c, c}};\n {loads} }}"
    found = result(MATRIX, threads, "exists (P0:r0 == 5 /\\ P0:r1 == 6)")
    assert shown(found) == {("?wmma.store(P0 line 3)", "?wmma.store(P0 line 3)+36")}
    assert found.observation == "sometimes"


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_load_product_store(engine: str) -> None:
    """The fragments of A, B and C make D, which is stored; nothing of it is known but that it was stored."""
    text = f"""PTX t
{{ .shared .align 32 .b8 a[128] @ cta 0; .shared .align 32 .s32 c[64] @ cta 0; {MATRIX} }}
P0 @ cta 0 {{
  wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {{a0}}, [a];
  wmma.load.b.sync.aligned.col.m8n8k32.shared.s4 {{b0}}, [a], 32;
  wmma.load.c.sync.aligned.col.m8n8k32.shared.s32 {{c0, c1}}, [c];
  wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {{d0, d1}}, {{a0}}, {{b0}}, {{c0, c1}};
  {STORE} [d], {{d0, d1}};
  ld.shared.s32 r0, [d];
}}
exists (P0:r0 == 3)
"""
    (test,) = formats.parse(text, "t.litmus")
    found = check(test, load("ptx-8.5"), engine=engine, all_state=True)
    assert {o.registers["P0:r0"] for o in found.outcomes} == {Unknown("wmma.store(P0 line 8)")}
    assert {o.registers["P0:d1"] for o in found.outcomes} == {Unknown("fragment")}


RESULTS = [
    ("add.s32 r0, c0, 1", "holds a part of a matrix"),
    ("st.shared.s32 [d], c0", "holds a part of a matrix"),
    ("setp.eq.s32 p, c0, 0", "holds a part of a matrix"),
    (f"{STORE} [d], {{c0, c1}}, c0", "holds a part of a matrix"),
]


@pytest.mark.parametrize(("use", "message"), RESULTS)
def test_parts_of_a_matrix_are_for_wmma_only(use: str, message: str) -> None:
    threads = f"P0 @ cta 0 {{ wmma.load.c.sync.aligned.row.m8n8k32.shared.s32 {{c0, c1}}, [d];\n {use}; }}"
    error = refused(MATRIX, threads)
    assert message in error.message and error.line == 4


def test_a_condition_on_a_part_is_refused() -> None:
    threads = "P0 @ cta 0 { wmma.load.c.sync.aligned.row.m8n8k32.shared.s32 {c0, c1}, [d]; }"
    error = refused(MATRIX, threads, "exists (P0:c0 == 1)")
    assert "P0:c0 holds a part of a matrix" in error.message and error.line == 4


def test_several_lanes_of_a_warp_are_refused() -> None:
    threads = "\n".join(
        f"P{i} @ cta 0, warp 0 {{ wmma.load.c.sync.aligned.row.m8n8k32.shared.s32 {{c0, c1}}, [d]; }}" for i in (0, 1)
    )
    assert "which thread of a warp accesses which elements" in refused(MATRIX, threads).message
    one = threads.partition("\n")[0] + "\nP1 @ cta 0, warp 1 { bar.warp.sync 1; }"
    assert result(MATRIX, one, "exists (d[0] == 3)").observation == "always"


UNDEFINED = [
    ("7", "a stride of 7 elements, less than the 8 of a line"),
    ("9", "a stride of 9 elements is no multiple of 8 bytes"),
    ("k", "a stride of 5 elements, less than the 8 of a line"),
]


@pytest.mark.parametrize(("stride", "message"), UNDEFINED)
def test_strides_without_a_meaning(stride: str, message: str) -> None:
    declared = ".shared .align 32 .s32 d[128] @ cta 0 = {3};"
    threads = f"P0 @ cta 0 {{ mov.u32 k, 5; mov.s32 c, 0; {STORE} [d], {{c, c}}, {stride}; }}"
    found = result(declared, threads, "exists (d[0] == 3)")
    assert found.status == "undefined" and any(message in note.text for note in found.notes)


def test_places_of_a_matrix() -> None:
    """A matrix lies in its variable, and its lines are aligned to the bytes of a fragment."""
    threads = "P0 @ cta 0 {{ mov.s32 c, 0; " + STORE + " [{}], {{c, c}}{}; }}"
    for place, stride, message in (
        ("d+4", "", "the matrix at d+4 is not aligned to 8 bytes"),
        ("d", ", 16", "the matrix at d+0 of 480 bytes is outside d"),
    ):
        with pytest.raises(PtxmmError) as caught:
            result(MATRIX.replace("[64]", "[65]"), threads.format(place, stride), "")
        assert message in caught.value.message and caught.value.kind == "type"


def test_a_stride_that_is_loaded() -> None:
    """The rows are 8 or 16 elements apart, as another thread decides."""
    declared = ".shared .align 32 .s32 d[128] @ cta 0 = {0}; .shared .u32 n @ cta 0 = 8;"
    threads = (
        f"P0 @ cta 0 {{ mov.s32 c, 0; ld.shared.u32 k, [n]; {STORE} [d], {{c, c}}, k; ld.shared.s32 r0, [d+32]; }}\n"
        "P1 @ cta 0 { st.shared.u32 [n], 16; }"
    )
    found = result(declared, threads, "exists (P0:r0 == 0)")
    assert {row[0] for row in shown(found)} == {"0", "?wmma.store(P0 line 3)+32"}


def test_elements_and_words() -> None:
    """An element of 16 bits and a word of two of them race as accesses of mixed sizes; a vector does not."""
    for access, status in (("st.shared.u32 [a], 1", "undefined"), ("st.shared.v2.b16 [a], {1, 1}", "complete")):
        threads = (
            f"P0 @ cta 0 {{ wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {vector('a', 8)}, [a]; }}\n"
            f"P1 @ cta 0 {{ mov.b16 h, 1; {access.replace('{1, 1}', '{h, h}')}; }}"
        )
        found = result(".shared .align 32 .b16 a[256] @ cta 0 = {0};", threads, "exists (a[0] == 1)")
        assert found.status == status
