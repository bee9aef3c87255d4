"""Verdicts of ptx-8.5 derived by hand for asynchronous copies, mbarriers, vectors, grids and misuse of them.

Both engines answer every case. The cases meet where features touch: phases and parities, several copies on one
mbarrier, groups, proxy fences in the wrong place, completion that brings nothing along, sizes and counts in registers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse

SHORT: tuple[tuple[str, str], ...] = (
    (r"PUT", "st.global.u32 [d], 1;"),
    (r"GET", "ld.global.u32 r0, [d];"),
    (r"ARRIVE", "mbarrier.arrive.release.cta.shared::cta.b64 _, [b];"),
    (r"EXPECT (\d+)", r"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], \1;"),
    (r"TOKEN", "mbarrier.arrive.release.cta.shared::cta.b64 t, [b];"),
    (r"TEST", "mbarrier.test_wait.acquire.cta.shared::cta.b64 p, [b], t;"),
    (r"WAIT (\d)", r"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], \1;"),
    (r"WAITC (\d)", r"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [b], \1;"),
    (r"LOAD ([\w+]+) (\w+)", r"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [\1], [\2], 16, [b];"),
    (r"SEND (\w+) (\w+) (\w+)",
     r"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [\1], [\2], 16, [\3];"),
    (r"SAVE (\w+) (\w+)", r"cp.async.bulk.global.shared::cta.bulk_group [\1], [\2], 16;"),
    (r"ADD (\w+) (\w+)", r"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [\1], [\2], 16;"),
    (r"COMMIT", "cp.async.bulk.commit_group;"),
    (r"DONE (\d)", r"cp.async.bulk.wait_group \1;"),
    (r"READ (\d)", r"cp.async.bulk.wait_group.read \1;"),
    (r"CLUSTER", "barrier.cluster.arrive; barrier.cluster.wait;"),
)  # fmt: skip
"""Abbreviations of instructions, in capitals."""


def program(declarations: str, condition: str, *threads: str) -> str:
    """A litmus file. A thread is ``place: instructions``, with the abbreviations of ``SHORT``."""
    lines = ["PTX case", f"{{ {declarations} }}"]
    for number, thread in enumerate(threads):
        place, _, body = thread.partition(":")
        for short, long in SHORT:
            body = re.sub(rf"\b{short}\b", long, body)
        lines.append(f"P{number} @ {place} {{ {body} }}")
    return "\n".join([*lines, condition, ""])


def verdict(text: str, readings: Mapping[str, str]) -> str:
    """What both engines find: the observation, ``undefined``, ``none`` without a final state, or the kind of error."""
    try:
        (test,) = parse(text, "case.litmus")
        result = check(test, load("ptx-8.5", readings), engine="both", limits=Limits(unroll=3))
    except PtxmmError as error:
        return f"error {error.kind}"
    return "undefined" if result.status == "undefined" else result.observation or "none"


def words(*values: int) -> str:
    """The initial values of an array of four."""
    return "{" + ", ".join(str(v) for v in values or (0, 0, 0, 0)) + "}"


D = ".global .u32 d = 0; "
F = ".global .u32 f = 0; "
G0 = f".global .align 16 .u32 g[4] = {words()}; "
G7 = f".global .align 16 .u32 g[4] = {words(7, 7, 7, 7)}; "
S0 = f".shared .align 16 .u32 s[4] @ cta 0 = {words()}; "
S1 = f".shared .align 16 .u32 s[4] @ cta 0 = {words(1, 1, 1, 1)}; "
B1 = ".shared .b64 b @ cta 0 = mbarrier(1); "
B2 = ".shared .b64 b @ cta 0 = mbarrier(2); "
T16 = ".shared .b64 b @ cta 0 = mbarrier(0, 16); "
RAW = ".shared .b64 b @ cta 0 = 0; "
INIT = "mbarrier.init.shared::cta.b64 [b], 1;"
REMOTE = (
    f".shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {words(1, 1, 1, 1)}; "
    f".shared .align 16 .u32 e[4] @ cta 1, cluster 0 = {words()}; .shared .b64 b @ cta 1, cluster 0 = mbarrier(0, 16); "
)
ALIAS = f".global .align 16 .u32 x[4] = {words()}; y @ generic aliases x; "
CP = ".shared .u32 s @ cta 0 = 5; .global .u32 g = 1; "
MAP = (
    ".global .align 64 .b8 tm[128] = tensormap(g, u32, 4); "
    f".global .align 16 .u32 h[4] = {words(9, 9, 9, 9)}; .reg .b64 P0:rd = h; "
)
REPLACE = "tensormap.replace.tile.global_address.global.b1024.b64 [tm], rd;"
TILE = "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [tm, {0}], [b];"
TMREL = "fence.proxy.tensormap::generic.release.gpu;"
TMACQ = "fence.proxy.tensormap::generic.acquire.gpu [tm], 128;"
STALE = "exists (P1:p == 1 /\\ P1:r0 == 0)"
ZERO = "exists (P0:r0 == 0)"
READ_S = "ld.shared.u32 r0, [s];"

Case = tuple[str, str, str, str, tuple[str, ...], dict[str, str]]

# name, verdict, declarations, condition, threads, readings
CASES: tuple[Case, ...] = (
    # 9.7.14.15 phases, states and parities
    ("wait by state", "never", D + B2, STALE, ("cta 0: PUT ARRIVE", "cta 0: TOKEN TEST GET"), {}),
    ("write after read", "never", D + B1, "exists (P1:p == 1 /\\ P0:r0 == 1)",
     ("cta 0: GET ARRIVE", "cta 0: WAIT 0 PUT"), {}),
    ("parity of the phase before", "sometimes", D + B1, STALE, ("cta 0: PUT ARRIVE", "cta 0: WAIT 1 GET"), {}),
    ("store of the next phase", "sometimes", D + B1, STALE, ("cta 0: ARRIVE PUT ARRIVE", "cta 0: WAIT 0 GET"), {}),
    ("state of an old phase", "undefined", B1, "exists (P0:p == 1)", ("cta 0: TOKEN ARRIVE TEST",), {}),
    ("state of the phase before", "always", B1, "exists (P0:p == 1)", ("cta 0: TOKEN TEST",), {}),
    ("state of a guarded arrive", "always", F + B2, "exists (P0:p == 0)",
     ("cta 0: ld.global.u32 r2, [f]; setp.ne.u32 z, r2, 1; @z TOKEN TEST",), {}),
    ("pending count before the arrive", "always", B2, "exists (P0:c == 2)",
     ("cta 0: TOKEN mbarrier.pending_count.b64 c, t;",), {}),
    ("noComplete that may be last", "undefined", B2, "exists (b == 1)",
     ("cta 0: mbarrier.arrive.noComplete.release.cta.shared::cta.b64 t, [b], 1;", "cta 0: ARRIVE"), {}),
    ("more arrivals than pending", "undefined", B2, "exists (b == 1)",
     ("cta 0: mbarrier.arrive.release.cta.shared::cta.b64 t, [b], 3;",), {}),
    ("dropped before the next phase", "always", B2, "filter (P1:p == 1) exists (b == 2)",
     ("cta 0: mbarrier.arrive_drop.release.cta.shared::cta.b64 _, [b];", "cta 0: ARRIVE WAIT 0 ARRIVE"), {}),
    ("cluster fence before a narrow remote arrive",
     "never", D + ".shared .b64 b @ cta 0, cluster 0 = mbarrier(1);", STALE,
     ("cta 1, cluster 0: PUT fence.acq_rel.cluster; mbarrier.arrive.release.cta.shared::cluster.b64 _, [b];",
      "cta 0, cluster 0: WAITC 0 GET"), {}),
    # 9.7.14.15.9 initialisation
    ("init again after inval", "always", RAW, "exists (b == 1)",
     (f"cta 0: {INIT} ARRIVE mbarrier.inval.shared::cta.b64 [b]; {INIT} ARRIVE",), {}),
    ("init again without inval", "undefined", RAW, "exists (b == 1)", (f"cta 0: {INIT} ARRIVE {INIT} ARRIVE",), {}),
    ("use after inval", "undefined", RAW, "exists (b == 1)",
     (f"cta 0: {INIT} mbarrier.inval.shared::cta.b64 [b]; ARRIVE",), {}),
    ("use that races with inval", "undefined", RAW, "exists (b == 1)",
     (f"cta 0: {INIT} bar.sync 0; mbarrier.inval.shared::cta.b64 [b];", "cta 0: bar.sync 0; ARRIVE"), {}),
    ("copy that signals before the init", "undefined", S0 + G7 + RAW, "exists (b == 1)",
     (f"cta 0: {INIT}", "cta 0: LOAD s g"), {}),
    # 9.7.14.15.5 transaction counts
    ("expect after the completing arrive", "sometimes", S0 + G7 + B1, STALE,
     ("cta 0: ARRIVE mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], 16; LOAD s g", f"cta 0: WAIT 0 {READ_S}"), {}),
    ("copy before its expect", "never", S0 + G7 + B1, STALE,
     ("cta 0: LOAD s g EXPECT 16", f"cta 0: WAIT 0 {READ_S}"), {}),
    ("fewer bytes expected than copied", "sometimes", S0 + G7 + B1 + S0.replace(" s[", " e["), STALE,
     ("cta 0: EXPECT 16 LOAD s g LOAD e g", f"cta 0: WAIT 0 {READ_S}"), {}),
    ("bytes of two copies expected", "never", S0 + G7 + B1 + S0.replace(" s[", " e["), STALE,
     ("cta 0: EXPECT 32 LOAD s g LOAD e g", f"cta 0: WAIT 0 {READ_S}"), {}),
    # 8.9.1.1 completion of a copy, 9.7.10.24.1 groups
    ("completion brings nothing along", "sometimes", D + S0 + G7 + T16, STALE,
     ("cta 0: PUT LOAD s g", "cta 0: WAIT 0 GET"), {}),
    ("completion in the closure", "never", D + S0 + G7 + T16, STALE, ("cta 0: PUT LOAD s g", "cta 0: WAIT 0 GET"),
     {"issue": "closure"}),
    ("an empty group counts", "never", G0 + S1, ZERO,
     ("cta 0: SAVE g s COMMIT COMMIT DONE 1 ld.global.u32 r0, [g];",), {}),
    ("groups of the other kind", "sometimes", G0 + S1, ZERO,
     ("cta 0: SAVE g s cp.async.commit_group; cp.async.wait_all; COMMIT ld.global.u32 r0, [g];",), {}),
    ("a group for each turn of a loop", "never", G0 + S1, ZERO,
     ("cta 0: mov.u32 c, 0; L: SAVE g s COMMIT add.u32 c, c, 1; setp.lt.u32 z, c, 2; @z bra L; "
      "DONE 1 ld.global.u32 r0, [g];",), {}),
    ("guarded commit", "sometimes", G0 + S1 + F, "exists (P0:r1 == 0 /\\ P0:r0 == 0)",
     ("cta 0: ld.relaxed.gpu.global.u32 r1, [f]; setp.ne.u32 z, r1, 0; "
      "SAVE g s @z COMMIT DONE 0 ld.global.u32 r0, [g];",
      "cta 1: st.relaxed.gpu.global.u32 [f], 1;"), {}),
    ("dependency through a copy", "never", G0 + S0 + F, "exists (P0:r1 == 1)",
     ("cta 0: ld.relaxed.gpu.global.u32 r1, [f]; st.shared.u32 [s], r1; SAVE g s",
      "cta 1: ld.relaxed.gpu.global.u32 r0, [g]; st.relaxed.gpu.global.u32 [f], r0;"), {}),
    ("source read then copied over", "never", S1 + G7 + T16 + G0.replace(" g[", " h["), "exists (h[0] == 7)",
     ("cta 0: SAVE h s COMMIT READ 0 LOAD s g",), {}),
    # A33 proxy fences
    ("fence of another warp between", "never", G0 + S1, "exists (g[0] == 1)",
     ("cta 0: st.shared.u32 [s], 2; bar.sync 0; bar.sync 1; SAVE g s",
      "cta 0: bar.sync 0; fence.proxy.async; bar.sync 1;"), {}),
    ("fence of another warp not between", "sometimes", G0 + S1, "exists (g[0] == 1)",
     ("cta 0: st.shared.u32 [s], 2; bar.sync 0; SAVE g s", "cta 0: fence.proxy.async; bar.sync 0;"), {}),
    ("fence in the reading CTA", "sometimes", REMOTE, "exists (P1:r0 == 1)",
     ("cta 0, cluster 0: CLUSTER SEND e s b", "cta 1, cluster 0: ld.shared.u32 r0, [e]; fence.proxy.async; CLUSTER"),
     {}),
    ("fence in the reading CTA anywhere on the path", "never", REMOTE, "exists (P1:r0 == 1)",
     ("cta 0, cluster 0: CLUSTER SEND e s b", "cta 1, cluster 0: ld.shared.u32 r0, [e]; fence.proxy.async; CLUSTER"),
     {"proxy-locality": "path"}),
    ("fence in the copying CTA", "never", REMOTE, "exists (P1:r0 == 1)",
     ("cta 0, cluster 0: CLUSTER fence.proxy.async; SEND e s b", "cta 1, cluster 0: ld.shared.u32 r0, [e]; CLUSTER"),
     {}),
    ("fence of the own shared memory", "sometimes", REMOTE, "exists (P1:r0 == 1)",
     ("cta 0, cluster 0: CLUSTER fence.proxy.async.shared::cta; SEND e s b",
      "cta 1, cluster 0: ld.shared.u32 r0, [e]; CLUSTER"),
     {}),
    ("alias fence before async fence", "never", ALIAS + S0 + T16, "exists (P0:p == 1 /\\ P0:r0 == 0)",
     (f"cta 0: st.global.u32 [x], 1; fence.proxy.alias; fence.proxy.async; LOAD s y WAIT 0 {READ_S}",), {}),
    ("alias fence after async fence", "sometimes", ALIAS + S0 + T16, "exists (P0:p == 1 /\\ P0:r0 == 0)",
     (f"cta 0: st.global.u32 [x], 1; fence.proxy.async; fence.proxy.alias; LOAD s y WAIT 0 {READ_S}",), {}),
    # A38 tensor maps
    ("tensormap fences in order", "never", MAP + G7 + S0 + T16, "exists (P0:p == 1 /\\ P0:r0 == 7)",
     (f"cta 0: {REPLACE} {TMREL} {TMACQ} {TILE} WAIT 0 {READ_S}",), {}),
    ("tensormap fences reversed", "sometimes", MAP + G7 + S0 + T16, "exists (P0:p == 1 /\\ P0:r0 == 7)",
     (f"cta 0: {REPLACE} {TMACQ} {TMREL} {TILE} WAIT 0 {READ_S}",), {}),
    ("tensormap fences are not for the data", "sometimes", MAP + G7 + S0 + T16, "exists (P0:p == 1 /\\ P0:r0 == 9)",
     (f"cta 0: st.global.u32 [h], 5; {REPLACE} {TMREL} {TMACQ} {TILE} WAIT 0 {READ_S}",), {}),
    # 5.5.3.3 elements outside of the tensor
    ("box across the end of a tensor", "never", MAP + G7 + S1 + T16, "exists (P0:p == 1 /\\ P0:r0 != 0)",
     (f"cta 0: {TILE.replace('{0}', '{2}')} WAIT 0 ld.shared.u32 r0, [s+8];",), {}),
    # A39 reductions, A36 cp.async
    ("two bulk reductions", "always", G0 + S1, "exists (g[0] == 2)", ("cta 0: ADD g s ADD g s",), {}),
    ("bulk reduction and weak store", "sometimes", G0 + S1, "exists (g[0] == 1)",
     ("cta 0: ADD g s", "cta 1: st.global.u32 [g], 7;"), {}),
    ("cp.async with an odd source size", "always", ".shared .u32 s @ cta 0 = 5; .global .u32 g = 0x04030201;",
     "exists (P0:r0 == 0x030201)",
     (f"cta 0: cp.async.ca.shared.global [s], [g], 4, 3; cp.async.wait_all; {READ_S}",), {}),
     ("cp.async arrival that it added itself", "never", CP + B1, "exists (b == 1)",
     ("cta 0: cp.async.ca.shared.global [s], [g], 4; cp.async.mbarrier.arrive.shared::cta.b64 [b];",), {}),
     ("cp.async arrival releases no stores", "sometimes", D + CP + B1, STALE,
     ("cta 0: PUT cp.async.ca.shared.global [s], [g], 4; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [b];",
      "cta 0: WAIT 0 GET"), {}),
    # A13 vectors
    ("element acquire orders no other element", "sometimes", G0, "exists (P1:r1 == 1 /\\ P1:r0 == 0)",
     ("cta 0: st.global.u32 [g], 1; st.release.gpu.global.u32 [g+4], 1;",
      "cta 1: ld.acquire.gpu.global.v2.u32 {r0, r1}, [g];"), {}),
    ("either element releases", "never", D + G0, "exists ((P1:r1 == 1 \\/ P1:r2 == 1) /\\ P1:r0 == 0)",
     ("cta 0: PUT st.release.gpu.global.v2.u32 [g], {1, 1};",
      "cta 1: ld.acquire.gpu.global.v2.u32 {r1, r2}, [g]; GET"), {}),
    ("strong elements do not tear", "never", ".global .align 16 .u64 v[2] = {0, 0};", "exists (P1:r0 == 1)",
     ("cta 0: ld.global.u32 r9, [v]; mov.u64 r1, 0x100000001; st.relaxed.gpu.global.v2.u64 [v], {r1, r1};",
      "cta 1: ld.relaxed.gpu.global.v2.u64 {r0, r1}, [v];"), {}),
    # 8.9.4 API synchronization
    ("wait for the grid before, which did not wait", "sometimes", D, "exists (P2:r0 == 0)",
     ("cta 0, grid 0: PUT", "cta 0, grid 1 overlap: griddepcontrol.launch_dependents;",
      "cta 0, grid 2 overlap: griddepcontrol.wait; GET"), {}),
    ("wait of another thread and a barrier", "never", D, "exists (P1:r0 == 0)",
     ("cta 0, grid 0: PUT", "cta 0, grid 1 overlap: bar.sync 0; GET",
      "cta 0, grid 1 overlap: griddepcontrol.wait; bar.sync 0;"), {}),
    # names and registers, initial values, misuse
    ("no bytes copied", "always", G0 + S1, "exists (g[0] == 0)",
     ("cta 0: cp.async.bulk.global.shared::cta.bulk_group [g], [s], 0;",), {}),
    ("element and a part of it by register", "sometimes", ".global .align 16 .u64 v[2] = {0, 0};",
     "exists (P1:r0 == 1)",
      ("cta 0: mov.u64 r1, 0x100000001; st.global.v2.u64 [v], {r1, r1};",
       "cta 1: mov.u64 rd, v; ld.global.u32 r0, [rd];"), {}),
    ("initial values that nothing reads", "always", ".shared .align 16 .u32 s[4] @ cta 0;", "exists (s[0] == 1)",
      ("cta 0: st.shared.v4.u32 [s], {1, 2, 3, 4};",), {}),
    ("copy to the own CTA", "error type", S1 + S0.replace(" s[", " e[") + T16, "exists (e[0] == 0)",
     ("cta 0: SEND e s b",), {}),
    ("lanes of different masks", "none", D, "exists (P1:r0 == 0)",
     ("cta 0, warp 0: PUT bar.warp.sync 3;", "cta 0, warp 0: bar.warp.sync 7; GET"), {}),
    ("size in a register", "undefined", G0 + S1, "exists (g[0] == 0)",
      ("cta 0: mov.u32 r1, 8; cp.async.bulk.global.shared::cta.bulk_group [g], [s], r1;",), {}),
    ("source size in a register", "undefined", S1 + G0, ZERO,
      (f"cta 0: mov.u32 r1, 8; cp.async.ca.shared.global [s], [g], 4, r1; cp.async.wait_all; {READ_S}",), {}),
    ("reduction through a register", "sometimes", G0 + S1 + S0.replace(" s[", " e["), "exists (g[0] == 0)",
      ("cta 0: SAVE g e mov.u64 rd, g; ADD rd s",), {}),
    ("mbarrier as memory", "undefined", B1, ZERO, ("cta 0: mov.u64 rd, b; ld.shared.u64 r0, [rd];",), {}),
    ("mbarrier overwritten", "undefined", B1, "exists (b == 1)",
      ("cta 0: mov.u64 rd, b; st.shared.u64 [rd], 5; ARRIVE",), {}),
    ("barrier in a register", "undefined", D, "exists (d == 0)", ("cta 0: mov.u32 r1, 77; bar.sync r1;",), {}),
    ("number of threads in a register", "undefined", D, "exists (d == 0)",
      ("cta 0: mov.u32 r1, 33; bar.sync 0, r1;",), {}),
    ("parity in a register", "undefined", B1, "exists (P0:p == 1)",
      ("cta 0: mov.u32 r1, 7; mbarrier.try_wait.parity.shared::cta.b64 p, [b], r1;",), {}),
)  # fmt: skip

# as above, with the reason why the text decides otherwise than the checker
PENDING: tuple[tuple[Case, str], ...] = ()
ALL = [pytest.param(case, id=case[0].replace(" ", "-")) for case in CASES] + [
    pytest.param(case, id=case[0].replace(" ", "-"), marks=pytest.mark.xfail(strict=True, reason=reason))
    for case, reason in PENDING
]


@pytest.mark.parametrize("case", ALL)
def test_verdict(case: Case) -> None:
    _, expected, declarations, condition, threads, readings = case
    assert verdict(program(declarations, condition, *threads), readings) == expected


def test_a_pipeline_of_tensor_memory_under_sc() -> None:
    """What ptx-8.5 forbids is no sequentially consistent execution either."""
    text = """PTX pipeline
ISA=8.6
{ .shared .align 16 .u32 s[4] @ cta 0 = {5, 6, 7, 8}; .shared .align 16 .u32 u[4] @ cta 0 = {9, 9, 9, 9};
  .tmem .b32 t[8] @ cta 0 = {0, 0, 0, 0, 0, 0, 0, 0}; }
P0 @ cta 0 { mov.u64 ds, s; mov.u64 du, u; setp.eq.u32 q, 0, 1; tcgen05.cp.cta_group::1.128x128b [t], ds;
  tcgen05.mma.cta_group::1.kind::f16 [t], [t+5], du, 0, q; }
exists (t[0] == 5)
"""
    (test,) = parse(text, "case.litmus")
    found = {m: check(test, load(m), engine="both", limits=Limits(unroll=3)).observation for m in ("ptx-8.5", "sc")}
    assert found == {"ptx-8.5": "never", "sc": "never"}
