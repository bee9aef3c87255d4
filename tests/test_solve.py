"""The Z3 engine on small programs: what it finds, and what it says when it can't or need not go on."""

from __future__ import annotations

import math
import struct
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ptxmm import cat
from ptxmm.analysis.observe import observed
from ptxmm.analysis.outcomes import check
from ptxmm.engines.explicit.witness import Confirmer
from ptxmm.engines.result import Limits, Search
from ptxmm.engines.symbolic import orders, solve
from ptxmm.engines.symbolic.solve import search
from ptxmm.engines.symbolic.tearing import rule
from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.values.floats import compute_float
from ptxmm.formats.litmus import parse
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Type
from tests.benchmarks import programs


def solved(text: str, model: str = "ptx-8.5", *, all_state: bool = True, unroll: int = 3, **readings: str) -> Search:
    """The search on a litmus text, every witness confirmed."""
    test = parse(text, "test.litmus")[0]
    loaded = cat.load(model, readings)
    what = observed(test, all_state)
    result = search(test, loaded, what, Limits(unroll=unroll))
    confirmer = Confirmer(test, loaded)
    for found in result.found:
        assert confirmer.confirm(what, found.witness) == found.state
    return result


def registers(result: Search) -> set[tuple[int, ...]]:
    return {tuple(f.state.registers[key] for key in sorted(f.state.registers)) for f in result.found}


def memory(result: Search) -> set[tuple[int, ...]]:
    return {tuple(f.state.memory.values()) for f in result.found}


MP = """PTX MP
{{ .global .u32 x = 0; .global .u32 y = 0; }}
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u32 [x], 1 | {load}.global.u32 r0, [y] ;
 {store}.global.u32 [y], 1 | ld.global.u32 r1, [x] ;
exists (P1:r0 == 1)
"""


def test_message_passing_lists_every_final_state() -> None:
    weak = solved(MP.format(store="st", load="ld"))
    assert registers(weak) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    strong = solved(MP.format(store="st.release.gpu", load="ld.acquire.gpu"))
    assert registers(strong) == {(0, 0), (0, 1), (1, 1)}
    assert strong.exhausted
    assert not (strong.bounded or strong.deadlock or strong.timeout or strong.undefined)


def test_a_proposition_asks_for_at_most_two_states() -> None:
    test = parse(MP.format(store="st.release.gpu", load="ld.acquire.gpu"), "mp.litmus")[0]
    assert test.condition is not None
    result = search(test, cat.load("ptx-8.5"), observed(test, True), Limits(), test.condition.proposition)
    assert sorted(r for r, *_ in registers(result)) == [0, 1]


def test_values_are_computed_in_the_width_of_the_instruction() -> None:
    text = """PTX wrap
{ .global .u32 x = 0xffffffff; .global .u8 b = 0; }
 P0 ;
 ld.global.u32 r0, [x] ;
 add.u32 r1, r0, 2 ;
 st.global.u8 [b], r0 ;
 ld.global.s8 r2, [b] ;
"""
    assert registers(solved(text)) == {(0xFFFFFFFF, 1, 0xFF)}


def test_address_in_a_register_decides_what_is_read() -> None:
    text = """PTX address
{ .global .u64 p = x; .global .u32 x = 5; .global .u32 y = 7; }
 P0 @ cta 0 | P1 @ cta 1 ;
 mov.u64 d, y | ld.relaxed.gpu.global.u64 a, [p] ;
 st.relaxed.gpu.global.u64 [p], d | ld.global.u32 r, [a] ;
"""
    result = solved(text.replace(".u64 p = x", ".u64 p = &x"))
    assert {f.state.registers[1, "r"] for f in result.found} == {5, 7}


def test_an_access_outside_every_object_makes_the_test_undefined() -> None:
    text = """PTX outside
{ .global .u64 p = 0; }
 P0 ;
 ld.global.u64 a, [p] ;
 ld.global.u32 r, [a] ;
"""
    result = solved(text)
    assert result.undefined is not None and "P0 line 5" in result.undefined
    assert result.found == []


def test_a_read_of_some_bytes_of_a_wider_write() -> None:
    text = """PTX bytes
{ .global .u64 x = 0x0807060504030201; }
 P0 ;
 st.global.u32 [x+4], 0x11223344 ;
 st.global.u8 [x+7], 0xaa ;
 ld.global.u64 r0, [x] ;
 ld.global.u16 r1, [x+6] ;
"""
    result = solved(text)
    assert registers(result) == {(0xAA22334404030201, 0xAA22)}
    assert memory(result) == {(0xAA22334404030201,)}
    assert result.flags == set()


def test_a_race_of_mixed_sizes_is_flagged_and_its_final_value_is_chosen_for_each_byte() -> None:
    text = """PTX mixed
{ .global .u16 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u16 [x], 0x0101 | st.global.u8 [x+1], 2 ;
"""
    result = solved(text)
    assert memory(result) == {(0x0101,), (0x0201,)}
    assert result.flags == {"data-race", "mixed-size-race"}


def test_the_final_value_of_racing_writes_is_torn_as_a_read_is() -> None:
    text = """PTX whole
{ .global .u16 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 | P2 @ cta 2 ;
 st.global.u16 [x], 0x0101 | st.global.u16 [x], 0x0202 | ld.global.u8 r, [x] ;
"""
    assert memory(solved(text)) == {(0x0101,), (0x0102,), (0x0201,), (0x0202,)}
    assert memory(solved(text, "ptx-8.5[tear=off]")) == {(0x0101,), (0x0202,)}


def test_pieces_of_a_location_are_ordered_through_a_write_of_both() -> None:
    text = """PTX through
{ .global .u32 x = 0; }
 P0 @ cta 0 ;
 st.global.u16 [x], 1 ;
 st.global.u32 [x], 2 ;
 st.global.u16 [x+2], 3 ;
"""
    assert memory(solved(text)) == {(0x00030002,)}


VECTOR = """PTX vector
{ .global .u64 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.relaxed.gpu.global.v2.u32 [x], {1, 2} | ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x] ;
"""


def test_the_elements_of_a_vector_are_accesses_of_their_own() -> None:
    assert registers(solved(VECTOR)) == {(0, 0), (0, 2), (1, 0), (1, 2)}


def test_a_weak_vector_is_divided_where_scalars_divide_it() -> None:
    text = VECTOR.replace("P1 @ cta 1 ;", "P1 @ cta 1 | P2 @ cta 0 ;").replace(
        "r1}, [x] ;", "r1}, [x] | ld.relaxed.gpu.global.u16 r2, [x+2] ;"
    )
    assert solved(text.replace(".relaxed.gpu", "")).flags == {"data-race"}
    assert "mixed-size-race" in solved(text).flags  # elements of a strong one are scalars


def test_a_scalar_of_16_bytes_is_one_access_or_two() -> None:
    text = """PTX b128
{ .global .b128 x = 0; }
 P0 @ cta 0 { mov.b128 q, {one, one}; st.relaxed.gpu.global.b128 [x], q; }
 P1 @ cta 1 { ld.relaxed.gpu.global.b128 q, [x]; mov.b128 {r0, r1}, q; }
"""
    text = text.replace("x = 0; }", "x = 0; .reg .u64 P0:one; P0:one = 1; .reg .u64 P1:r0; .reg .u64 P1:r1; }")

    def halves(result: Search) -> set[tuple[int, int]]:
        return {(f.state.registers[1, "r0"], f.state.registers[1, "r1"]) for f in result.found}

    assert halves(solved(text)) == {(0, 0), (1, 1)}
    assert halves(solved(text, b128="split")) == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_packed_half_precision_numbers_are_added_apart() -> None:
    text = """PTX half
{ .global .b32 x = 0x3c004000; }
 P0 ;
 mov.b32 r1, 0x3c003c00 ;
 atom.add.noftz.global.f16x2 r0, [x], r1 ;
"""
    assert memory(solved(text)) == {(0x40004200,)}


@pytest.mark.parametrize(("space", "sum_"), [("global", 0), ("shared", 2)])
def test_subnormal_sums_are_flushed_in_global_memory_only(space: str, sum_: int) -> None:
    text = f"""PTX subnormal
{{ .{space} .f32 x = 0f00000001; }}
 P0 @ cta 0 ;
 red.add.{space}.f32 [x], 0f00000001 ;
"""
    assert memory(solved(text)) == {(sum_,)}


def test_strong_atomic_operations_are_not_divided_into_bytes() -> None:
    # The sums differ in all bytes: torn reads would have more values than the engine can list.
    numbers = ["0f3DCCCCCD", "0f3E4CCCCD", "0f3E99999A", "0f3ECCCCCD"]
    head = " | ".join(f"P{i} @ cta {i}" for i in range(4))
    row = " | ".join(f"red.relaxed.gpu.global.add.f32 [x], {n}" for n in numbers)
    result = solved(f"PTX sum\n{{ .global .f32 x = 0.0; }}\n {head} ;\n {row} ;\n")
    assert {struct.unpack("<f", n.to_bytes(4, "little"))[0] for (n,) in memory(result)} == {1.0, 1.0000001192092896}


def test_single_copy_atomicity_is_found_in_the_model() -> None:
    assert rule(cat.load("ptx-8.5")) is not None
    assert rule(cat.load("sc")) is None


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_double_precision_sums(a: float, b: float) -> None:
    assert _bits("<d", a + b) == compute_float("add", Type("f", 64), [_bits("<d", a), _bits("<d", b)])


@given(st.floats(width=16, allow_nan=False), st.floats(width=16, allow_nan=False))
def test_half_precision_sums_and_extremes(a: float, b: float) -> None:
    half = Type("f", 16)
    x, y = _bits("<e", a), _bits("<e", b)
    assert compute_float("min", half, [x, y]) in ({x, y} if a == b else {_bits("<e", min(a, b))})
    assert compute_float("max", half, [x, y]) in ({x, y} if a == b else {_bits("<e", max(a, b))})
    assume(a + b == a + b)  # infinities of both signs have no sum
    try:
        expected = _bits("<e", a + b)  # exact in double precision, then rounded once
    except OverflowError:
        expected = _bits("<e", math.copysign(math.inf, a + b))
    assert compute_float("add", half, [x, y]) == expected


def test_nan_operands() -> None:
    half, nan, one = Type("f", 16), 0x7E00, 0x3C00
    assert compute_float("min", half, [nan, one]) == one
    assert compute_float("max", half, [nan, nan]) == 0x7FFF
    assert compute_float("add", half, [nan, one]) == 0x7FFF
    assert compute_float("min", half, [0x0000, 0x8000]) == 0x8000


def _bits(layout: str, value: float) -> int:
    return int.from_bytes(struct.pack(layout, value), "little")


PIPELINE = """PTX pipeline
{ .global .align 16 .u32 g[4] = {7, 7, 7, 7}; .shared .align 16 .u32 s[4] @ cta 0 = {0, 0, 0, 0};
  .shared .b64 b @ cta 0 = mbarrier(1); }
 P0 @ cta 0 {
   mbarrier.arrive.expect_tx.shared::cta.b64 t, [b], %d;
   cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
 again:
   mbarrier.try_wait.shared::cta.b64 p, [b], t;
   @!p bra again;
   ld.shared.u32 r0, [s];
 }
"""


def test_a_copy_completes_the_phase_that_expects_its_bytes() -> None:
    result = solved(PIPELINE % 16)
    assert {f.state.registers[0, "r0"] for f in result.found} == {7}
    assert {f.state.memory["b", 0] for f in result.found} == {1}
    assert not result.flags
    assert solved(PIPELINE % 32).found == []  # the other 16 bytes never come


def test_a_wait_may_come_too_early() -> None:
    text = """PTX early
{ .global .u32 x = 0; .shared .b64 b @ cta 0 = mbarrier(1); }
 P0 @ cta 0 | P1 @ cta 0 ;
 st.global.u32 [x], 1 | mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0 ;
 mbarrier.arrive.shared::cta.b64 _, [b] | ld.global.u32 r, [x] ;
"""
    assert registers(solved(text)) == {(0, 0), (0, 1), (1, 1)}


def test_tokens_tell_the_phase_and_the_pending_count() -> None:
    text = """PTX tokens
{ .shared .b64 b @ cta 0 = mbarrier(2); }
 P0 @ cta 0 | P1 @ cta 0 ;
 mbarrier.arrive.shared::cta.b64 s, [b] | mbarrier.arrive.shared::cta.b64 s, [b] ;
 mbarrier.pending_count.b64 c, s | mbarrier.pending_count.b64 c, s ;
"""
    counts = {(f.state.registers[0, "c"], f.state.registers[1, "c"]) for f in solved(text).found}
    assert counts == {(2, 1), (1, 2)}


def test_a_predicated_commit_makes_a_group_or_none() -> None:
    text = """PTX groups
{ .global .u32 f = 0; .global .align 16 .u32 g[4] = {7, 7, 7, 7}; .shared .align 16 .u32 s[4] @ cta 0 = {0, 0, 0, 0}; }
 P0 @ cta 0 | P1 @ cta 1 ;
 ld.relaxed.gpu.global.u32 r0, [f] | st.relaxed.gpu.global.u32 [f], 1 ;
 setp.eq.u32 p, r0, 1 | ;
 cp.async.ca.shared.global [s], [g], 16 | ;
 @p cp.async.commit_group | ;
 cp.async.wait_group 0 | ;
 ld.shared.u32 r1, [s] | ;
"""
    found = {(f.state.registers[0, "r0"], f.state.registers[0, "r1"]) for f in solved(text).found}
    assert found == {(0, 0), (0, 7), (1, 7)}


def test_bytes_past_the_source_size_are_zero() -> None:
    text = """PTX fill
{ .global .align 16 .u32 g[4] = {7, 8, 9, 10}; .shared .align 16 .u32 s[4] @ cta 0 = {1, 1, 1, 1}; }
 P0 @ cta 0 ;
 cp.async.ca.shared.global [s], [g], 16, 6 ;
 cp.async.wait_all ;
"""
    result = solved(text)
    assert {tuple(f.state.memory["cta 0:s" if ("cta 0:s", 0) in f.state.memory else "s", i] for i in range(4))
            for f in result.found} == {(7, 8, 0, 0)}  # fmt: skip


def test_mapa_finds_the_variable_of_the_same_name_in_another_cta() -> None:
    text = """PTX mapa
{ .shared .u32 s = 5; .shared .b64 b @ cluster 0, cta 1 = mbarrier(1); }
 P0 @ cluster 0, cta 0 | P1 @ cluster 0, cta 1 ;
 mov.u64 a, s | st.shared.u32 [s], 6 ;
 mapa.shared::cluster.u64 c, a, 1 | ;
 ld.shared::cluster.u32 r0, [c] | ;
 ld.shared::cluster.u32 r1, [a] | ;
 getctarank.shared::cluster.u64 r2, c | ;
"""
    names = ("r0", "r1", "r2")
    found = {tuple(f.state.registers[0, name] for name in names) for f in solved(text).found}
    assert found == {(5, 5, 1), (6, 5, 1)}


def test_a_later_grid_sees_what_an_earlier_one_left() -> None:
    text = """PTX grids
{ .global .u32 x = 0; }
 P0 @ grid 0, cta 0 | P1 @ grid 1 %s, cta 0 ;
 st.global.u32 [x], 1 | ld.global.u32 r, [x] ;
"""
    assert registers(solved(text % "")) == {(1,)}
    assert registers(solved(text % "overlap")) == {(0,), (1,)}


LOOP = """PTX loop
{ .global .u32 f = 0; .global .u32 n = 0; }
 P0 @ cta 0 {
   st.release.gpu.global.u32 [f], 1;
 }
 P1 @ cta 1 {
 again:
   %s
   ld.acquire.gpu.global.u32 r0, [f];
   setp.eq.u32 p, r0, 0;
   @p bra again;
 }
"""


def test_a_spin_loop_is_complete_and_a_loop_that_writes_is_bounded() -> None:
    spin = solved(LOOP % "")
    assert not spin.bounded
    assert {f.state.registers[1, "r0"] for f in spin.found} == {1}
    counting = solved(LOOP % "red.relaxed.gpu.global.add.u32 [n], 1;", unroll=2)
    assert counting.bounded
    assert {n for _, n in memory(counting)} == {1, 2, 3}


def test_a_cas_that_succeeds_and_goes_round_again_is_a_real_iteration() -> None:
    text = """PTX twice
{ .global .u32 x = 0; }
 P0 {
 again:
   atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 1;
   setp.eq.u32 p, r0, 0;
   @p bra again;
 }
"""
    result = solved(text)
    assert not result.bounded
    assert registers(result) == {(1, 0)} or registers(result) == {(0, 1)}
    assert memory(result) == {(1,)}


def test_threads_that_wait_for_ever_are_a_deadlock() -> None:
    text = """PTX stuck
{ .global .u32 x = 0; }
 P0 @ cta 0 | P1 @ cta 0 ;
 bar.sync 0 | bar.sync 1 ;
 bar.sync 1 | bar.sync 0 ;
"""
    result = solved(text)
    assert result.deadlock
    assert result.found == []


def test_phases_of_a_barrier_with_a_count() -> None:
    text = """PTX count
{ .shared .u32 x = 0; }
 P0 @ cta 0 | P1 @ cta 0 | P2 @ cta 0 ;
 st.shared.u32 [x], 1 | bar.sync 0, 64 | bar.sync 0, 64 ;
 bar.sync 0, 64 | ld.shared.u32 r, [x] | ;
"""
    result = solved(text)
    assert result.deadlock  # two of the three warps complete the phase, the third waits for ever
    assert result.found == []


def test_two_counts_in_one_phase_are_undefined() -> None:
    text = """PTX counts
{ .global .u32 x = 0; }
 P0 @ cta 0 | P1 @ cta 0 ;
 bar.sync 0, 64 | bar.sync 0, 96 ;
"""
    assert "two different thread counts" in (solved(text).undefined or "")


TORN = """PTX torn
{ .global .u32 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 %s.global.u32 [x], 0x00010001 | %s.global.u32 r, [x] ;
"""


def test_a_racing_read_may_be_torn_a_morally_strong_one_not() -> None:
    torn = {0, 1, 0x00010000, 0x00010001}
    assert {r for (r,) in registers(solved(TORN % ("st", "ld")))} == torn
    assert {r for (r,) in registers(solved(TORN % ("st", "ld"), tear="off"))} == {0, 0x00010001}
    strong = solved(TORN % ("st.relaxed.gpu", "ld.relaxed.gpu"))
    assert {r for (r,) in registers(strong)} == {0, 0x00010001}
    assert {r for (r,) in registers(solved(TORN % ("st", "ld"), "ptx-7.5"))} == {0, 0x00010001}


def test_false_dependencies_may_be_broken_unless_they_count_syntactically() -> None:
    text = """PTX LB
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 ld.global.u32 r0, [x] | ld.global.u32 r1, [y] ;
 xor.b32 r2, r0, r0 | st.global.u32 [x], r1 ;
 add.u32 r2, r2, 1 | ;
 st.global.u32 [y], r2 | ;
"""
    assert (1, 1, 1) in registers(solved(text))
    assert (1, 1, 1) not in registers(solved(text, dep="syn"))


def test_interchangeable_threads_are_not_permuted() -> None:
    threads = 8
    head = " | ".join(f"P{i} @ cta {i}" for i in range(threads))
    row = " | ".join("atom.relaxed.gpu.global.add.u32 r0, [c], 1" for _ in range(threads))
    text = f"PTX counter\n{{ .global .u32 c = 0; }}\n {head} ;\n {row} ;\nforall (c == 8)\n"
    result = solved(text, all_state=False)
    assert memory(result) == {(8,)}


def test_interchangeable_threads_keep_outcomes_that_name_their_registers() -> None:
    text = """PTX named
{ .global .u32 c = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 atom.relaxed.gpu.global.add.u32 r0, [c], 1 | atom.relaxed.gpu.global.add.u32 r0, [c], 1 ;
exists (P0:r0 == 1)
"""
    assert registers(solved(text)) == {(0, 1), (1, 0)}
    assert registers(solved(text, all_state=False)) == {(0,), (1,)}


def test_a_deadline_ends_the_search_and_is_reported() -> None:
    test = parse(MP.format(store="st", load="ld"), "mp.litmus")[0]
    result = search(test, cat.load("ptx-8.5"), observed(test), Limits(deadline=time.monotonic() - 1))
    assert result.timeout
    assert not result.exhausted


def test_a_filter_restricts_the_executions_considered() -> None:
    text = MP.format(store="st", load="ld").replace("exists", "filter (P1:r0 == 1)\nexists")
    assert registers(solved(text)) == {(1, 0), (1, 1)}


SB_FENCES = """PTX SB
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u32 [x], 1 | st.global.u32 [y], 1 ;
 fence.sc.gpu | fence.sc.gpu ;
 ld.global.u32 r0, [y] | ld.global.u32 r0, [x] ;
"""


def test_a_model_that_names_sync_fence_gets_a_total_fence_order() -> None:
    model = cat.parse_model("test\nirreflexive (rf^-1; co); (po?; sync_fence; po?) as causality\n", "test.cat")
    test: Test = parse(SB_FENCES, "sb.litmus")[0]
    assert (0, 0) not in registers(search(test, model, observed(test, True), Limits()))


def test_fence_order_under_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``sync_fence`` relates is worked out before the order becomes one variable for each pair."""
    monkeypatch.setattr(orders, "FEW", 1)
    text = """test
let later = (po | sync_fence)+
acyclic fsc as order
empty ([FSC]; sr; [FSC]) \\ (fsc | fsc^-1 | id) as total
empty (([FSC]; later; [FSC]) & sr) \\ fsc as later-fences
irreflexive (rf^-1; co); later as causality
"""
    test: Test = parse(SB_FENCES, "sb.litmus")[0]
    result = search(test, cat.parse_model(text, "test.cat"), observed(test, True), Limits())
    assert registers(result) == {(0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize(
    ("load", "number", "wrong"),
    [
        ("ld.global.u32 r, [a]", "&x + 4", None),
        ("ld.global.u32 r, [a]", "&x + 2", "misaligned access"),
        ("ld.global.v2.u32 {r, s}, [a]", "&x + 4", "misaligned access"),
        ("ld.global.u32 r, [a+2]", "&x", "misaligned access"),
        ("ld.global.u32 r, [a+2]", "&x + 2", None),
        ("atom.global.add.u32 r, [a], 1", "&x + 1", "misaligned access"),
        ("ld.global.u32 r, [a]", "&x + 32", "access outside every object"),
    ],
)
def test_misaligned_accesses(load: str, number: str, wrong: str | None) -> None:
    base, _, offset = number.partition(" + ")
    add = f"add.u64 a, a, {offset};" if offset else ""
    text = f"PTX a\n{{ .global .u32 x[8] = {{0,0,0,0,0,0,0,0}}; .global .u64 p = {base}; }}\n"
    text += f" P0 {{ ld.global.u64 a, [p]; {add} {load}; }}\n"
    result = solved(text)
    assert (result.undefined is None) == (wrong is None)
    assert wrong is None or (wrong in str(result.undefined) and "P0 line 3" in str(result.undefined))


def test_misaligned_bulk_copies() -> None:
    text = """PTX bulk
{ .global .align 16 .u32 g[8] = {0,0,0,0,0,0,0,0}; .shared .align 16 .u32 s[8] @ cta 0 = {0,0,0,0,0,0,0,0};
  .global .u64 p = &g; }
 P0 @ cta 0 {
   ld.global.u64 a, [p];
   add.u64 a, a, %d;
   cp.async.bulk.global.shared::cta.bulk_group [a], [s], 16;
 }
"""
    assert search_only(text % 16).undefined is None
    assert "misaligned" in str(search_only(text % 8).undefined)


def search_only(text: str) -> Search:
    test = parse(text, "test.litmus")[0]
    return search(test, cat.load("ptx-8.5"), observed(test, True), Limits())


SIZES = """PTX sizes
{ .global .align 16 .u32 g[4] = {0,0,0,0}; .global .u32 n = 0;
  .shared .align 16 .u32 s[4] @ cta 0 = {1,1,1,1}; .shared .b64 b @ cta 0 = mbarrier(1, %d); }
 P0 @ cta 0 {
   ld.relaxed.gpu.global.u32 r, [n]; %s;
 }
 P1 @ cta 1 { st.relaxed.gpu.global.u32 [n], %d; }
"""
TO_GLOBAL = "cp.async.bulk.global.shared::cta.bulk_group [g], [s]"
TO_SHARED = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], r, [b]"
REDUCTION = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [s], r"
BEYOND = "mov.u64 a, g; add.u64 a, a, %d; cp.async.bulk.global.shared::cta.bulk_group [a], [s], 0"


@pytest.mark.parametrize(
    "copy",
    [
        f"{TO_GLOBAL}, 0",
        f"{TO_GLOBAL}, r; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0",
        REDUCTION,
        TO_SHARED,
        BEYOND % 16,
    ],
)
def test_a_bulk_copy_of_no_bytes_makes_no_accesses(copy: str) -> None:
    result = solved(SIZES % (0, copy, 0))
    assert result.undefined is None
    assert result.found
    for found in result.found:
        assert {value for (key, _), value in found.state.memory.items() if key.startswith("g")} <= {0}
        assert [id_[0] for id_ in found.witness.reads] == [0]  # the load of the size only
        assert not any(id_[0] == 0 for pair in found.witness.co for id_ in pair)


@pytest.mark.parametrize(("pending", "results"), [(0, {1}), (16, {0})])
def test_complete_tx_of_no_bytes(pending: int, results: set[int]) -> None:
    wait = "mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.test_wait.shared::cta.b64 p, [b], t"
    result = solved(SIZES % (pending, f"{TO_SHARED}; {wait}", 0))
    assert {f.state.registers[0, "p"] for f in result.found} == results


@pytest.mark.parametrize(("copy", "number"), [(f"{TO_GLOBAL}, r", 16), ("cp.async.ca.shared.global [s], [g], 4, r", 4)])
def test_sizes_that_are_loaded(copy: str, number: int) -> None:
    result = solved(SIZES % (0, copy, number))
    assert result.undefined is None
    assert registers(result) == {(0,), (number,)}


NO_MULTIPLE = "a bulk copy of {} bytes, which is no multiple of 16"


@pytest.mark.parametrize(
    ("copy", "number", "why"),
    [
        (f"{TO_GLOBAL}, r", 8, NO_MULTIPLE),
        (f"{TO_GLOBAL}, r", 17, NO_MULTIPLE),
        (REDUCTION, 8, NO_MULTIPLE),
        (TO_SHARED, 8, NO_MULTIPLE),
        ("cp.async.ca.shared.global [s], [g], 4, r", 8, "cp.async reads {} bytes of 4"),
        ("cp.async.ca.shared.global [s], [g], 4, r", 5, "cp.async reads {} bytes of 4"),
        ("cp.async.cg.shared.global [s], [g], 16, r", 17, "cp.async reads {} bytes of 16"),
    ],
)
def test_sizes_without_a_meaning(copy: str, number: int, why: str) -> None:
    assert search_only(SIZES % (0, copy, number)).undefined == f"P0 line 5: {why.format(number)}"
    unless = f"setp.ne.u32 q, r, {number}; @q {copy}"
    assert search_only(SIZES % (0, unless, number)).undefined is None


@pytest.mark.parametrize(("size", "why"), [(8, NO_MULTIPLE.format(8)), (32, "access outside every object")])
def test_a_copy_without_a_meaning_that_is_waited_for(size: int, why: str) -> None:
    """The thread has no other way to its end than that the copy completes."""
    wait = "W: mbarrier.test_wait.shared::cta.b64 p, [b], t; @!p bra W"
    copy = f"mov.u32 r, {size}; {TO_SHARED}; mbarrier.arrive.expect_tx.shared::cta.b64 t, [b], {size}; {wait}"
    assert why in str(search_only(SIZES % (0, copy, 0)).undefined)


@pytest.mark.parametrize(("offset", "why"), [(8, "misaligned access"), (1024, "access outside every object")])
def test_a_bulk_copy_of_no_bytes_still_has_addresses(offset: int, why: str) -> None:
    assert why in str(search_only(SIZES % (0, BEYOND % offset, 0)).undefined)


def test_a_barrier_in_too_many_ways_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxmm.events.symbolic.values.domain.LIMIT", 4)
    text = """PTX t
{ .global .u32 x = 305419896; .global .u32 y = 2271560481; }
P0 @ cta 0 { st.u32 [x], 1; st.u32 [x], 2; st.u32 [y], 4; st.u32 [y], 8; }
P1 @ cta 1 {
  ld.u32 r0, [x];
  ld.u32 r1, [y];
  mul.lo.u32 r2, r0, r1;
  bar.sync r2;
}
exists (P1:r2 == 6)
"""
    with pytest.raises(PtxmmError) as caught:
        check(parse(text, "t.litmus")[0], cat.load("ptx-8.5"), engine="z3")
    assert (caught.value.kind, caught.value.line, caught.value.column) == ("unsupported", 8, 3)
    assert caught.value.source == "  bar.sync r2;"


@pytest.mark.parametrize("few", [0, 3, 10**9])
@pytest.mark.parametrize("most", [None, 1, 4, 5])
def test_long_lists(monkeypatch: pytest.MonkeyPatch, few: int, most: int | None) -> None:
    """Final states that no clause excludes are found once each, and as many as are asked for."""
    monkeypatch.setattr(solve, "FEW", few)
    test = parse(programs.states(2).ptx(), "test.litmus")[0]
    found = search(test, cat.load("ptx-8.5"), observed(test), Limits(states=most))
    count = 16 if most is None else most
    assert len(found.found) == len(registers(found)) == count
    assert found.exhausted == (most is None)
