"""A CTA of a kernel may not exit while others use its shared memory (PTX ISA 5.1.7)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.fences import fences
from ptxmm.analysis.outcomes import check
from ptxmm.engines.result import Limits
from ptxmm.formats import parse
from ptxmm.formats.modules.extract import skeleton
from ptxmm.program.test import Test
from tests.kernels import launched
from tests.mutants import mutants
from tests.mutants_exempt import KERNELS, exempt
from tests.support import model_named

SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"
RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
START = f"@%p0 st.shared.u32 [s], 0; @%p0 st.shared.u32 [s+4], 0; {SYNC}"
READY = f"@%p0 mbarrier.init.shared.b64 [mb], 1; {SYNC}"
POLL = "\nL: ld.{}.cluster.shared.u32 %r6, [s{}]; setp.eq.u32 %p2, %r6, 0; @%p2 bra L;"
WAIT = "\nL: mbarrier.try_wait.parity.{}.cluster.shared.b64 %p2, [mb], 0; @!%p2 bra L;"
READ = "@%p1 ld.shared::cluster.u32 %r1, [%r3]; @%p1 st.global.u32 [%rd0], %r1;"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [mb], {};"
ASYNC = "@%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], 7, [%r5];"
# Rank 1 copies its memory to rank 0, whose mbarrier tells when it is there.
COPY = (
    "@%p1 st.shared.u32 [s], 7; fence.proxy.async;"
    "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r3], [s], 16, [%r5];"
)
COPIED = f"{READY} {EXPECT.format(16)} {COPY} @%p1 bra E; {WAIT.format('acquire')}\nE: "
STORE = (
    "@%p1 bra E; st.shared.u32 [s], 7; fence.proxy.async;"
    " cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 16; cp.async.bulk.commit_group;"
)

DEFINED = {
    "a barrier after the reads": f"{START} {READ} {SYNC}",
    "a release that the owner acquires": f"{START} @%p0 bra O; st.shared::cluster.u32 [%r3], 7;"
    f" st.release.cluster.shared::cluster.u32 [%r3+4], 1; ret;\nO: {POLL.format('acquire', '+4')}",
    "a store that the owner sees last": f"{START} @%p0 bra O; st.relaxed.cluster.shared::cluster.u32 [%r3], 7; ret;\nO:"
    + POLL.format("relaxed", ""),
    "an arrival that the owner waits for": f"{READY} @%p0 bra O;"
    f" mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; ret;\nO: {WAIT.format('acquire')}",
    "a relaxed arrival": f"{READY} @%p0 bra O;"
    f" mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r5]; ret;\nO: {WAIT.format('relaxed')}",
    "an asynchronous store": f"{READY} {EXPECT.format(4)} {ASYNC} @%p1 bra E; {WAIT.format('acquire')}\nE:",
    "a copy, and a barrier for its source": COPIED + SYNC,
    "a copy to global memory": f"{STORE} cp.async.bulk.wait_group.read 0;\nE:",
}  # fmt: skip
UNDEFINED = {
    "no barrier after the reads": f"{START} {READ}",
    "a relaxed barrier": f"{START} {READ} {RELAXED}",
    "a barrier before the reads only": f"{START} {SYNC} {READ}",
    "an atomic": f"{START} @%p1 atom.shared::cluster.add.u32 %r1, [%r3], 1;",
    "at its generic address": f"{START} mov.u64 %rd4, s; cvta.shared.u64 %rd5, %rd4; mapa.u64 %rd6, %rd5, 0;"
    " @%p1 st.u32 [%rd6], 1;",
    "an arrival that nobody waits for": f"{READY} @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];",
    "an asynchronous store": f"{READY} {EXPECT.format(4)} {ASYNC}",
    "a copy, the source of which exits": COPIED,
    "a copy, the destination of which exits": f"{READY} {EXPECT.format(16)} {COPY} {SYNC}",
    "a copy to global memory": f"{STORE}\nE:",
    "a CTA that does nothing": "@%p1 st.shared::cluster.u32 [%r3], 7;",
}  # fmt: skip
CHAIN = (
    f"{START} @%p0 bra O; @%p1 bra W;\nM: ld.relaxed.cluster.shared::cluster.u32 %r7, [%r3]; setp.eq.u32 %p3, %r7, 0;"
    f" @%p3 bra M; st.release.cluster.shared::cluster.u32 [%r3+4], 1; ret;\n"
    f"W: st.relaxed.cluster.shared::cluster.u32 [%r3], 7; ret;\nO: {POLL.format('acquire', '+4')}"
)
"""What rank 1 stores is seen by rank 2, which tells rank 0."""


ALONE = "@%p0 bra O; st.relaxed.cluster.shared::cluster.u32 [%r3], 7; ret;\nO:" + POLL.format("relaxed", "")
"""Nothing but the store and the loop that sees it: no barrier, so that exits are no events."""


def kernel(body: str, ctas: int = 2, condition: str = "g[3] == 0") -> Test:
    start = """.shared .align 16 .b8 s[16]; .shared .align 8 .b64 mb;
  mov.u32 %r10, %cluster_ctarank; setp.eq.u32 %p0, %r10, 0; setp.eq.u32 %p1, %r10, 1;
  mov.u32 %r2, s; mapa.shared::cluster.u32 %r3, %r2, 0; mov.u32 %r4, mb; mapa.shared::cluster.u32 %r5, %r4, 0;
"""
    (test,) = launched(
        start + body,
        {"g": '{ type = "u32", count = 4, align = 16 }'},
        f"condition = 'forall ({condition})'",
        launch=f"grid = {ctas}\n// ptxmm: cluster = {ctas}",
        others="s = { init = 0 }" if body == ALONE else "",
        version="8.6",
    )
    return test


def flags(test: Test, model: str = "ptx-8.5") -> set[str]:
    return set(check(test, model_named(model), engine="both", limits=Limits()).flags) & {"shared-after-exit"}


@pytest.mark.parametrize("name", DEFINED)
def test_the_cta_lives_long_enough(name: str) -> None:
    assert flags(kernel(DEFINED[name])) == set()


@pytest.mark.parametrize("name", UNDEFINED)
def test_the_cta_may_have_exited(name: str) -> None:
    found = check(kernel(UNDEFINED[name]), model_named("ptx-8.5"), engine="both", limits=Limits())
    assert found.status == "undefined" and "shared-after-exit" in found.flags


def test_another_cta_tells_the_owner() -> None:
    assert flags(kernel(CHAIN, 3)) == set()
    assert flags(kernel(CHAIN.replace("release", "relaxed"), 3)) == {"shared-after-exit"}


def test_threads_of_a_litmus_test_do_not_exit() -> None:
    (test,) = parse(skeleton(kernel(UNDEFINED["an atomic"])), "k.litmus")
    assert check(test, model_named("ptx-8.5")).status == "complete"


def test_the_last_barrier_is_never_removable() -> None:
    found = fences(kernel(DEFINED["a barrier after the reads"], condition="g[0] == 0"), model_named("ptx-8.5"))
    assert found.holds and {item.verdict for item in found.items} == {"needed"}


NOTICED = {
    "seen-by without bc": DEFINED["a barrier after the reads"],
    "seen-by without ((rf | mbphase) ; (bc)?)": DEFINED["a relaxed arrival"],
    "seen-by never (bc)?": CHAIN,
    "seen-by without rf": DEFINED["a store that the owner sees last"],
    "seen-by without mbphase": DEFINED["a relaxed arrival"],
    "seen-by (bc)? once": ALONE,
    "flag shared-after-exit": UNDEFINED["an atomic"],
    "flag shared-after-exit with domain((lives & seen-by))": DEFINED["a barrier after the reads"],
    "flag shared-after-exit whatever lives": UNDEFINED["no barrier after the reads"],
    "flag shared-after-exit whatever seen-by": UNDEFINED["an atomic"],
}


@pytest.mark.parametrize(
    "mutant", [m for m in mutants("ptx-8.5") if exempt(m) == KERNELS and m.part != "race"], ids=lambda m: m.name
)
def test_mutants_are_noticed(mutant) -> None:  # type: ignore[no-untyped-def]
    body = NOTICED[mutant.name]
    test = kernel(body, 3 if body == CHAIN else 2)
    found = check(test, mutant.load(), limits=Limits())
    assert (set(found.flags) & {"shared-after-exit"}) != flags(test)
