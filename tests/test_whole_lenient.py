"""What an answer about a whole launch rests on: what programs rely on though no text says it, each with its name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult

KERNEL = """\
.version 8.5
.target sm_90a
.address_size 64
// ptxmm: block = 128
// ptxmm: grid = 2
// ptxmm: cluster = 2
// ptxmm: args = ["in", "out"]
// ptxmm: assume = [{assume}]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = 2048, align = 128 }}
// ptxmm: out = {{ type = "u32", count = 4096, align = 128 }}
.visible .entry k(.param .u64 a, .param .u64 b)
{{
    .reg .pred %p<9>;
    .reg .b16 %h<2>;
    .reg .b32 %r<20>;
    .reg .f32 %f<5>;
    .reg .b64 %d<19>;
    .shared .align 1024 .b8 s[8192];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mov.u32 %r7, %cluster_ctarank;
    shr.u32 %r4, %r1, 5;
    setp.eq.u32 %p2, %r4, 0;
    setp.eq.u32 %p3, %r1, 0;
    elect.sync %r5|%p1, -1;
    and.pred %p5, %p1, %p2;
    mul.wide.u32 %d7, %r7, 8192;
    add.u64 %d8, %d2, %d7;
    shr.u32 %r6, %r2, 4;
    cvt.u64.u32 %d3, %r6;
    or.b64 %d4, %d3, 0x4000004000010000;
    mov.b16 %h1, 3;
    @!%p3 bra I;
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.init.shared.b64 [empty], 1;
    fence.mbarrier_init.release.cluster;
I:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    {body}
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
}}
"""
FULL = "F: mbarrier.try_wait.parity.shared.b64 %p7, [full], 0; @!%p7 bra F; "
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [full], 8192; "
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 8192, [full]; "
PRODUCT = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d4, 0, 1, "
    "1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; "
)
STORE = (
    "@%p3 st.shared.u32 [%r2], 1; fence.proxy.async.shared::cta; bar.sync 0; "
    "@!%p2 bra L; cp.async.bulk.global.shared::cta.bulk_group [%d8], [SOURCE], 128; cp.async.bulk.commit_group; "
    "cp.async.bulk.wait_group 0; L: "
)
MULTICAST = (
    "@%p3 " + EXPECT + "setp.ne.u32 %p6, %r7, 0; @%p6 bra N; @!%p3 bra N; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%d1], 8192, [full], "
    "%h1; N: " + FULL
)
AGAIN = (
    "@!%p3 bra N; " + EXPECT + COPY + "N: " + FULL + "READ" + PRODUCT + "@%p3 mbarrier.arrive.shared.b64 _, [empty]; "
    "@!%p3 bra L; E: mbarrier.try_wait.parity.shared.b64 %p8, [empty], 0; @!%p8 bra E; " + EXPECT + COPY + "L: "
    "G: mbarrier.try_wait.parity.shared.b64 %p7, [full], 1; @!%p7 bra G;"
)
"""A slot that products, and perhaps others, read before it is filled again."""
TWICE = (
    "setp.lt.u32 %p6, %r1, 64; @!%p6 bra L; bar.arrive 1, 128; bar.sync 1, 128; bar.arrive 2, 128; "
    "L: @!%p6 bar.sync 2, 128; "
)
"""Two warps arrive at a barrier of four, and come again."""

ASK = "W: mbarrier.try_wait.parity.shared.b64 %p7, [empty], 1; @!%p7 bra W; "
LATE = (
    "@!%p2 bra L; " + ASK + "@!%p3 bra L; st.shared.u32 [%r2], 1; mbarrier.arrive.shared.b64 _, [full]; "
    "L: setp.ne.u32 %p6, %r1, 32; @%p6 bra N; " + FULL + "ld.shared.u32 %r8, [%r2]; mbarrier.arrive.shared.b64 _, "
    "[empty]; N: "
)
"""All lanes of a warp ask whether a slot is empty, and one of them fills it."""


def judged(tmp_path: Path, body: str, *assume: str) -> WholeResult:
    path = tmp_path / "k.ptx"
    names = ", ".join(f'"{name}"' for name in assume)
    path.write_text(KERNEL.format(body=body.replace("; ", ";\n    "), assume=names))
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 30))


CASES = [
    (STORE.replace("SOURCE", "s"), "race", ("same-value-races",)),
    (MULTICAST + PRODUCT, "race", ("destination-cta",)),
    (
        "@!%p5 bra N; @%p3 " + EXPECT + "N: @%p3 " + COPY + FULL + "ld.shared.u32 %r8, [%r2];",
        "undecided",
        ("elect-first",),
    ),
    (
        STORE.replace("SOURCE", "s").replace("@!%p2", "@!%p3").replace("wait_group 0", "commit_group"),
        "undefined",
        ("exit-waits",),
    ),
    (TWICE, "undefined", ("arrives-again",)),
    (LATE, "undecided", ("warp-wait",)),
    (AGAIN.replace("READ", "@%p3 ld.shared.u32 %r8, [%r2]; "), "race", ("proxy-war=free",)),
    (AGAIN.replace("READ", "ld.shared.u32 %r8, [%r2]; "), "race", ("proxy-war=free", "wgmma-sync")),
    (AGAIN.replace("READ", "ld.shared.u32 %r8, [%r2]; fence.proxy.async.shared::cta; "), "race", ("wgmma-sync",)),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("body", "word", "names"), CASES)
def test_what_answers_rest_on(body: str, word: str, names: tuple[str, ...], tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert found.answer == word, found
    told = [note.text for note in found.notes if note.kind == "reading"]
    assert len(told) == len(names), told
    assert all(any(text.startswith(f"rests on {name.partition('=')[0]}: ") for text in told) for name in names), told
    assumed = judged(tmp_path, body, *names)
    assert assumed.answer == "race-free", assumed
    assert not [note for note in assumed.notes if note.kind == "reading"]
    for name in names:
        assert name in assumed.test or f"ptx-8.5[{name}]" == assumed.model


@pytest.mark.parametrize(
    ("body", "names"),
    [
        # Copies of other bytes, or of a source that changes between them, are no copies of the same value.
        (STORE.replace("SOURCE", "%r8").replace("@!%p2 bra L;", "mad.lo.u32 %r8, %r1, 128, %r2; @!%p2 bra L;"),
         ("same-value-races",)),
        (STORE.replace("SOURCE", "s").replace("wait_group 0; ", "wait_group 0; st.shared.u32 [%r2], %r1; "),
         ("same-value-races",)),
        # What lane 0 has copied before is ordered with what it copies with the others, but not with what these copy.
        (STORE.replace("SOURCE", "s").replace("@!%p2 bra L;", "@!%p3 bra M; cp.async.bulk.global.shared::cta."
         "bulk_group [%d8], [s], 128; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; M: @!%p2 bra L;"),
         ("same-value-races",)),
        (MULTICAST.replace("; N: " + FULL, "; N: ") + PRODUCT + FULL.replace("F", "H"), ("destination-cta",)),
        (AGAIN.replace("READ", "").replace("wgmma.wait_group.sync.aligned 0; ", ""), ("wgmma-sync", "proxy-war=free")),
        ("@%p5 st.shared.u32 [%r2], 1; setp.eq.u32 %p6, %r1, 1; @%p6 ld.shared.u32 %r8, [%r2];", ("elect-first",)),
    ],
)  # fmt: skip
def test_real_races_stay(body: str, names: tuple[str, ...], tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert found.answer == "race", found
    assert not found.notes
    found = judged(tmp_path, body, *names)
    assert found.answer == "race", found


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (TWICE.replace("1, 128", "1, 192"), "deadlock"),
        # Those who have not come are not ordered by it.
        ("@%p3 ld.shared.u32 %r8, [%r2]; " + TWICE + "@!%p6 st.shared.u32 [%r2], %r9; ", "race"),
        (TWICE.replace("bar.arrive 2, 128; L: @!%p6 bar.sync 2, 128; ", "L: ") + "@!%p6 st.shared.u32 [%r2], %r9; "
         "@%p3 ld.shared.u32 %r8, [%r2]; ", "race"),
        (TWICE.replace("bar.sync 1", "bar.arrive 1"), "race-free"),
        (TWICE.replace("bar.sync 1, 128;", "bar.sync 1, 128; bar.arrive 1, 128; bar.sync 1, 128;"), "race-free"),
        # Who waits comes no second time; without a count nothing counts twice.
        (TWICE.replace("bar.arrive 1, 128; bar.sync 1, 128;", "bar.sync 1, 128;"), "deadlock"),
    ],
)  # fmt: skip
def test_arrivals_of_one_warp(changed: str, word: str, tmp_path: Path) -> None:
    found = judged(tmp_path, changed, "arrives-again")
    assert found.answer == word, found


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        # Lanes that ask elsewhere, or at another time, or another warp.
        (LATE.replace(ASK, "@%p3 bra W; " + ASK.replace("W", "V") + "bra L; " + ASK), "undecided"),
        (LATE.replace(ASK, "@%p3 bra W; nanosleep.u32 9; ld.shared.u32 %r9, [s+4]; bra W; M: " + ASK), "race-free"),
        (LATE.replace("@!%p2 bra L; ", "and.b32 %r9, %r4, 1; setp.ne.u32 %p6, %r9, 0; @%p6 bra L; "), "undecided"),
        # One lane goes on and asks again before the others.
        (LATE.replace("N: ", "N: @%p3 bra W; ").replace("@!%p2 bra L; ", "@!%p2 bra L; @!%p3 bra X; ").replace(
            "L: setp", "bra L; X: " + ASK.replace("W", "V") + "L: setp"), None),
        # The order is that of the lane which goes on.
        (LATE.replace("@!%p3 bra L; st.shared.u32 [%r2], 1; ", "st.shared.u32 [%r3], 1; @!%p3 bra L; ").replace(
            "ld.shared.u32 %r8, [%r2]", "ld.shared.u32 %r8, [%r2+4]"), "race"),
    ],
)  # fmt: skip
def test_lanes_that_ask_together(changed: str, word: str | None, tmp_path: Path) -> None:
    found = judged(tmp_path, "mad.lo.u32 %r3, %r1, 4, %r2; " + changed, "warp-wait")
    assert found.answer == word if word else found.answer != "race-free", found


@pytest.mark.parametrize("rank", [0, 1])
def test_who_waits_at_one_mbarrier_knows_nothing_of_the_others(rank: int, tmp_path: Path) -> None:
    """A CTA that nobody of it waits for may end before the bytes of a copy are counted at its mbarrier (5.1.7)."""
    body = MULTICAST.replace(FULL, f"setp.ne.u32 %p6, %r7, {rank}; @%p6 bra M; {FULL}M:")
    for names in ((), ("exit-waits",)):  # which is about what copies read
        found = judged(tmp_path, body, *names)
        assert (found.answer, "may end" in (found.reason or "")) == ("undefined", True), found
        assert not found.notes
    assert judged(tmp_path, MULTICAST).answer == "race-free"


def test_nothing_rests_on_a_lane_where_addresses_are_compared(tmp_path: Path) -> None:
    body = "setp.lt.u64 %p8, %d1, %d2; @%p8 ld.global.u32 %r9, [%d1]; " + CASES[2][0]
    for names in ((), ("elect-first",)):
        found = judged(tmp_path, body, *names)
        assert found.answer == "undecided", found
        assert not [note for note in found.notes if note.kind == "reading"]


def test_other_readings_are_not_followed(tmp_path: Path) -> None:
    assert judged(tmp_path, "", "b128=split").answer == "unsupported"
    with pytest.raises(PtxmmError, match="is no assumption"):
        judged(tmp_path, "", "elect-last")
    for name, message in (("wgmma-mov=fre", "has no value `fre`"), ("wgmma-mv=free", "`wgmma-mov`")):
        with pytest.raises(PtxmmError) as caught:
            judged(tmp_path, "", name)
        assert message in caught.value.message + str(caught.value.hint)
        assert caught.value.line == 8
