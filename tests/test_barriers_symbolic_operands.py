"""The symbolic side: operands in registers that have no meaning, accesses to mbarriers, the order inside a copy."""

from __future__ import annotations

import pytest

from ptxmm import cat
from ptxmm.analysis.observe import observed
from ptxmm.engines.result import Limits, Search
from ptxmm.engines.symbolic.solve import search
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.machine import Reading
from ptxmm.events.symbolic.relations.structure import aord
from ptxmm.formats.litmus import parse
from ptxmm.program.identity import TENSORMAP
from ptxmm.relations.formula import TRUE
from tests.test_barriers_symbolic import bar, misuse, only_one, parity

LOADED = """PTX loaded
{ .global .u32 n = 0; .shared .b64 b @ cta 0 = mbarrier(1); }
 P0 @ cta 0 { ld.relaxed.gpu.global.u32 r, [n]; %s; }
 P1 @ cta 1 { st.relaxed.gpu.global.u32 [n], %d; }
"""
BY_PARITY = "mbarrier.%s.parity.shared::cta.b64 p, [b], r"
RANGE = "barrier {}, but a CTA has the barriers 0 to 15"
MULTIPLE = "{} threads at a barrier, which is no multiple of 32"
BIT = "the parity {} of a wait, which is not 0 or 1"


def searched(text: str) -> Search:
    test = parse(text, "test.litmus")[0]
    return search(test, cat.load("ptx-8.5"), observed(test, True), Limits())


@pytest.mark.parametrize(
    ("steps", "number", "why"),
    [
        ("bar.sync r", 15, None),
        ("bar.sync r", 16, RANGE),
        ("bar.sync r", 77, RANGE),
        ("bar.arrive r, 32", 16, RANGE),
        ("barrier.red.or.pred q, r, q", 16, RANGE),
        ("setp.ne.u32 q, r, 0; @q bar.sync 0, r", 32, None),
        ("setp.ne.u32 q, r, 0; @q bar.sync 0, r", 33, MULTIPLE),
        ("setp.ne.u32 q, r, 0; @q bar.arrive 0, r", 8, MULTIPLE),
        ("add.u32 r, r, 32; bar.sync 0, r", 33, "65 threads at a barrier, which is no multiple of 32"),
        ("add.u32 r, r, 32; bar.sync 0, r", -32, "0 threads at a barrier, which is no positive multiple of 32"),
        (BY_PARITY % "try_wait", 1, None),
        (BY_PARITY % "try_wait", 2, BIT),
        (BY_PARITY % "test_wait", 7, BIT),
    ],
)
def test_operands_that_are_loaded(steps: str, number: int, why: str | None) -> None:
    assert searched(LOADED % (steps, number)).undefined == (why and why.format(number))


def test_a_wrong_operand_where_the_thread_never_comes() -> None:
    assert searched(LOADED % ("setp.eq.u32 z, r, 77; @z exit; bar.sync r", 77)).undefined is None


def test_wrong_operands_whatever_the_other_threads_do() -> None:
    assert misuse([bar("sync", 16)], [bar("sync", 1)]) == "barrier 16, but a CTA has the barriers 0 to 15"
    assert misuse([bar("sync", 0, 48)], [bar("sync")]) == "48 threads at a barrier, which is no multiple of 32"
    assert misuse([bar("arrive", 0, 0)]) == "0 threads at a barrier, which is no positive multiple of 32"
    assert misuse([parity(2)], m=(1, 0)) == "the parity 2 of a wait, which is not 0 or 1"
    assert only_one([bar("sync", 15, 32)]).misuse is None


MBARRIERS = """PTX opaque
{ .shared .b64 b[2] @ cta 0, cluster 0; .shared .b64 m @ cta 0, cluster 0 = mbarrier(1);
  .shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {1,1,1,1}; .global .align 16 .u32 g[4] = {0,0,0,0};
  .shared .b64 fm @ cta 1, cluster 0 = mbarrier(1);
  .shared .u32 fs @ cta 1, cluster 0 = 0; }
 P0 @ cta 0, cluster 0 {
   mbarrier.init.shared::cta.b64 [b], 1; mov.u64 a, %s;
   %s;
 }
 P1 @ cta 1, cluster 0 { exit; }
"""
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [g], 16, [m]"


@pytest.mark.parametrize(
    "step",
    [
        "ld.shared.u64 r, [a]",
        "ld.shared.u8 r, [a+3]",
        "ld.shared.v2.u32 {r, q}, [a]",
        "cvta.shared.u64 a, a; ld.u64 r, [a]",
        "st.shared.u64 [a], 5",
        "atom.shared.add.u64 r, [a], 1",
        "red.shared.add.u32 [a+4], 1",
        "cp.async.ca.shared.global [a], [g], 8",
        "cp.async.bulk.global.shared::cta.bulk_group [g], [a], 16",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [g], [a], 16",
        LOAD % "a",
    ],
)
def test_other_accesses_to_an_mbarrier(step: str) -> None:
    wrong = searched(MBARRIERS % ("b", step))
    assert wrong.undefined is not None
    assert wrong.undefined.startswith("P0 line 8: access to an mbarrier (address 0x") and not wrong.found
    fine = searched(MBARRIERS % ("s", step))
    assert fine.undefined is None and fine.found


@pytest.mark.parametrize(
    "step",
    [
        "mbarrier.arrive.shared::cta.b64 t, [a]",
        "mbarrier.inval.shared::cta.b64 [a]; mbarrier.init.shared::cta.b64 [a], 2",
        "mbarrier.try_wait.parity.shared::cta.b64 p, [a], 0",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [a], 16",
        "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [a]",
        (LOAD % "s").replace("[m]", "[a]"),
        "cp.async.bulk.global.shared::cta.bulk_group [g], [a], 0",
    ],
)
def test_operations_on_an_mbarrier_by_a_register(step: str) -> None:
    result = searched(MBARRIERS % ("b", step))
    assert result.undefined is None and result.found


def test_an_access_to_an_mbarrier_that_no_execution_makes() -> None:
    step = "mov.u32 r, 0; setp.ne.u32 q, r, 0; @q st.shared.u64 [a], 5"
    assert searched(MBARRIERS % ("b", step)).undefined is None


TENSOR = """PTX tensor
{ .global .align 64 .b8 tm[128] = tensormap(g, u32, 4); .global .align 16 .u32 g[4] = {7,7,7,7};
  .shared .align 16 .u32 s[4] @ cta 0 = {1,1,1,1}; .shared .b64 b @ cta 0 = mbarrier(1); }
 P0 @ cta 0 { %s; }
"""
TILE = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [tm, {0}], [b]"
REDUCED = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [tm, {0}], [s]"


@pytest.mark.parametrize("copy", [TILE, REDUCED])
def test_the_read_of_a_tensor_map_comes_first_in_its_copy(copy: str) -> None:
    test = parse(TENSOR % copy, "tensor.litmus")[0]
    program = build(test, (), Reading(unroll=3, tear=False, simplify=True), Limits().check)
    events = {e.number: e for e in program.events}
    pairs = {(a, b) for a, b, when in aord(program) if when == TRUE}
    (map_read,) = (n for n, e in events.items() if e.kind == "R" and e.id.operand == TENSORMAP)
    accesses = {n for n, e in events.items() if e.kind in ("R", "W") and n != map_read}
    sources = {n for n in accesses if events[n].kind == "R" and events[n].id.operand == 0}
    writes = {n for n in accesses if events[n].kind == "W"}
    fences = {n for n, e in events.items() if e.kind == "PF"}
    assert sources and writes and len(fences) == 2
    assert {b for a, b in pairs if a == map_read} == accesses | fences
    assert not any(b == map_read for _, b in pairs)
    assert {(a, b) for a in sources for b in writes} <= pairs
    assert not {(a, b) for a, b in pairs if {a, b} <= accesses and events[b].kind == "R"}


def test_a_reduction_of_a_tensor_adds_elements_of_its_type() -> None:
    end = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0"
    result = searched(TENSOR % f"{REDUCED}; {end}")
    assert result.undefined is None
    assert {f.state.memory["g", i] for f in result.found for i in range(4)} == {8}
