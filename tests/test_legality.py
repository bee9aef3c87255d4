"""Which memory an instruction may access: the rules of the PTX ISA, with both engines (5.1, 6.4.1.1, 8.3)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.analysis.robust import robust
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.program.test import Test

DECLARED = (
    ".shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {1, 2, 3, 4}; .shared .b64 b @ cta 0, cluster 0 = mbarrier(8);"
    " .shared .align 16 .u32 o[4] @ cta 1, cluster 0 = {0}; .shared .b64 m @ cta 1, cluster 0 = mbarrier(8);"
    " .shared .align 64 .b8 t[128] @ cta 0, cluster 0 = {0}; .global .align 16 .u32 g[4] = {5, 6, 7, 8};"
    " .local .align 16 .u32 l[4] = {9}; .const .align 16 .u32 c[4] = {3}; .param .u32 k = 2;"
    " .shared .align 16 .u32 z[4] @ cta 0, cluster 1 = {1};"
)


def case(code: str) -> Test:
    """``code`` in a thread of CTA 0 of a cluster of two CTAs."""
    body = f"P0 @ cta 0, cluster 0 {{ {code}; ld.local.u32 r9, [l]; }}"
    others = "P1 @ cta 1, cluster 0 { mov.u32 r, 1; } P2 @ cta 0, cluster 1 { ld.shared.u32 r, [z]; }"
    (test,) = parse(f"PTX legality\n{{ {DECLARED} }}\n{body}\n{others}\nexists (P1:r == 1)\n", "case.litmus")
    return test


def verdict(code: str) -> str | None:
    """Why ``code`` has no meaning, in the words of both engines; None if it has one."""
    found = check(case(code), load("ptx-8.5"), engine="both")
    if found.status != "undefined":
        assert found.observation == "always", code
        return None
    return next(note.text for note in found.notes if note.kind == "undefined")


REMOTE = "mapa.shared::cluster.u64 a, o, 1"
REMOTE_BARRIER = "mapa.shared::cluster.u64 a, m, 1"
CLUSTER = "cvta.shared::cluster.u64 a, a"


@pytest.mark.parametrize(
    "code",
    [
        "mov.u64 a, s; ld.shared.u32 r0, [a]",
        "mov.u64 a, s; ld.shared::cluster.v4.u32 {r0, r1, r2, r3}, [a]",
        "cvta.shared.u64 a, s; ld.u32 r0, [a]; st.u32 [a+4], 1; atom.add.u32 r1, [a+8], 1",
        "mapa.shared::cluster.u64 a, s, 0; ld.shared.u32 r0, [a]; ld.shared::cluster.u32 r1, [a]",
        f"{REMOTE}; ld.shared::cluster.u32 r0, [a]; red.shared::cluster.add.u32 [a], 1",
        f"{REMOTE}; {CLUSTER}; ld.acquire.cluster.u32 r0, [a]; st.relaxed.cluster.u32 [a+4], 1",
        "cvta.local.u64 a, l; ld.u32 r0, [a]; st.volatile.u32 [a], 1",
        "cvta.const.u64 a, c; ld.u32 r0, [a]",
        "cvta.param.u64 a, k; ld.u32 r0, [a]; ld.global.u32 r1, [a]",
        "mov.u64 a, g; cvta.global.u64 a, a; atom.add.u32 r0, [a], 1; ld.global.v2.u32 {r1, r2}, [a+8]",
        f"{REMOTE_BARRIER}; mbarrier.arrive.shared::cluster.b64 _, [a]; {CLUSTER}; mbarrier.arrive.b64 _, [a]",
        f"{REMOTE_BARRIER}; {CLUSTER}; mbarrier.expect_tx.relaxed.cluster.b64 [a], 16",
        "cvta.shared.u64 a, b; mbarrier.arrive.b64 q, [a]",
        "mov.u64 a, s; cp.async.cg.shared.global [a], [g], 16; cp.async.wait_all",
        f"{REMOTE}; mapa.shared::cluster.u64 e, m, 1;"
        " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [s], 16, [e]",
        f"{REMOTE}; mapa.shared::cluster.u64 e, m, 1;"
        " st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [a], 1, [e]",
        "cvta.shared.u64 a, s; ldmatrix.sync.aligned.m8n8.x1.b16 {r0}, [a]",
        "mov.u64 a, s; stmatrix.sync.aligned.m8n8.x1.shared.b16 [a], {r7}",
    ],
)  # fmt: skip
def test_legal(code: str) -> None:
    if "r7" in code:
        code = f"mov.u32 r7, 1; {code}"
    assert verdict(code) is None


@pytest.mark.parametrize(
    ("code", "section"),
    [
        (f"{REMOTE}; ld.shared.u32 r0, [a]", "9.7.10.8"),
        (f"{REMOTE}; st.shared::cta.v2.u32 [a], {{1, 1}}", "9.7.10.11"),
        (f"{REMOTE}; atom.shared.add.u32 r0, [a], 1", "9.7.14.5"),
        (f"{REMOTE}; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{r0}}, [a]", "9.7.15.4.15"),
        (f"{REMOTE}; {CLUSTER}; ldmatrix.sync.aligned.m8n8.x1.b16 {{r0}}, [a]", "9.7.15.4.15"),
        (f"{REMOTE}; cp.async.ca.shared.global [a], [g], 4", "9.7.10.24.3"),
        (f"{REMOTE}; cp.async.bulk.global.shared::cta.bulk_group [g], [a], 16", "9.7.10.24.6"),
        (f"{REMOTE}; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [g], [a], 16", "9.7.10.24.7"),
        (f"{REMOTE_BARRIER}; mbarrier.test_wait.parity.shared::cta.b64 p, [a], 0", "9.7.14.15.16"),
        (f"{REMOTE_BARRIER}; {CLUSTER}; mbarrier.arrive.expect_tx.b64 q, [a], 16", "9.7.14.15.13"),
        (f"{REMOTE_BARRIER}; {CLUSTER}; cp.async.mbarrier.arrive.b64 [a]", "9.7.14.15.15"),
        ("cvta.local.u64 a, l; atom.exch.b32 r0, [a], 1", "9.7.14.5"),
        ("cvta.local.u64 a, l; red.add.u32 [a], 1", "9.7.14.6"),
        ("cvta.local.u64 a, l; ld.acquire.cta.u32 r0, [a]", "9.7.10.8"),
        ("cvta.const.u64 a, c; st.u32 [a], 1", "5.1.3"),
        ("cvta.const.u64 a, c; red.add.u32 [a], 1", "5.1.3"),
        ("cvta.param.u64 a, k; st.global.u32 [a], 1", "5.1.6"),
        ("cvta.shared.u64 a, s; ld.global.u32 r0, [a]", "9.7.10.8"),
        ("cvta.shared.u64 a, s; cp.async.ca.shared.global [s], [a], 4", "9.7.10.24.3"),
        ("cvta.shared.u64 a, s; discard.L2 [a], 128", None),
        ("cvta.shared.u64 a, t; fence.proxy.tensormap::generic.acquire.gpu [a], 128", "9.7.14.4"),
        ("cvta.shared.u64 a, t; discard.L2 [a], 128", None),
        ("cvta.shared.u64 a, s; ld.shared.u32 r0, [a]", "6.4.1.1"),
        ("mov.u64 a, s; st.u32 [a], 1", "6.4.1.1"),
        ("mov.u64 a, c; ld.shared.u32 r0, [a]", "6.4.1.1"),
        ("cvta.shared.u64 a, s; cvta.shared.u64 a, a; ld.u32 r0, [a]", "6.4.1.1"),
        ("mov.u64 a, s; cvta.local.u64 a, a; ld.u32 r0, [a]", "6.4.1.1"),
        ("mov.u64 a, b; mbarrier.arrive.b64 q, [a]", "6.4.1.1"),
        ("mapa.shared::cluster.u64 a, s, 0; mapa.shared::cluster.u64 e, m, 1;"
         " cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [s], 16, [e]", "9.7.10.24.6"),
        ("mapa.shared::cluster.u64 a, s, 0; mapa.shared::cluster.u64 e, b, 0;"
         " red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [a], 1, [e]", "9.7.14.7"),
    ],
)  # fmt: skip
def test_illegal(code: str, section: str | None) -> None:
    why = verdict(code)
    assert why is not None and why.startswith("P0 line ")
    assert section is None or section in why


@pytest.mark.parametrize("value", ["mov.u32 r1, 0;", "ld.global.u32 r1, [g];"])
@pytest.mark.parametrize("code", ["@p st.u32 [a], 1", "@!p bra L; st.u32 [a], 1; L: mov.u32 r2, 0"])
def test_what_is_not_executed_is_no_access(value: str, code: str) -> None:
    assert verdict(f"cvta.const.u64 a, c; {value} setp.eq.u32 p, r1, 1; {code}") is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("atom.add.u32 r0, [l], 1", "l is .local memory, but the address has to be in"),
        ("ld.relaxed.gpu.u32 r0, [c]", "c is .const memory, but the address has to be in"),
        ("ldmatrix.sync.aligned.m8n8.x1.b16 {r0}, [g]", "the row is .shared::cta memory, but g is in .global"),
    ],
)
def test_a_name_in_the_wrong_space_is_an_error(code: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        case(code)
    assert caught.value.kind == "type" and message in caught.value.message


def test_every_analysis_says_so() -> None:
    test = case("cvta.const.u64 a, c; st.u32 [a], 1")
    model = load("ptx-8.5")
    assert races(test, model).status == "undefined"
    assert robust(test, model).status == "undefined"
