"""The Z3 engine on small programs: what it finds, and what it says when it can't or need not go on."""

from __future__ import annotations

import time

import pytest

from ptxmm import cat
from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Limits, Search
from ptxmm.engines.solve import search
from ptxmm.engines.witness import Confirmer
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse
from ptxmm.program.test import Test


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


def test_accesses_that_overlap_partially_are_refused() -> None:
    text = """PTX mixed
{ .global .u64 x = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u64 [x], 1 | ld.global.u32 r, [x+4] ;
"""
    with pytest.raises(PtxmmError, match="accesses of x in line 4 overlap partially") as error:
        solved(text)
    assert error.value.kind == "unsupported"


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


def test_a_model_that_names_sync_fence_gets_a_total_fence_order(tmp_path: object) -> None:
    text = """PTX SB
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cta 0 | P1 @ cta 1 ;
 st.global.u32 [x], 1 | st.global.u32 [y], 1 ;
 fence.sc.gpu | fence.sc.gpu ;
 ld.global.u32 r0, [y] | ld.global.u32 r0, [x] ;
"""
    model = cat.parse_model("test\nirreflexive (rf^-1; co); (po?; sync_fence; po?) as causality\n", "test.cat")
    test: Test = parse(text, "sb.litmus")[0]
    assert (0, 0) not in registers(search(test, model, observed(test, True), Limits()))
