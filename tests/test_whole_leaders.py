"""Whole launches in which warps elect a lane (PTX ISA 9.7.14.14): which one is not said."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult

KERNEL = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = 64
// ptxmm: grid = 2
// ptxmm: cluster = 2
// ptxmm: args = ["in"]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = 64, align = 16 }}
.visible .entry k(.param .u64 a)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    .shared .align 128 .b8 s[256];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 empty;
    ld.param.u64 %d1, [a];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mad.lo.u32 %r3, %r1, 4, %r2;
    shr.u32 %r4, %r1, 5;
    and.b32 %r6, %r1, 31;
    setp.eq.u32 %p2, %r4, 0;
    setp.eq.u32 %p3, %r1, 0;
    setp.eq.u32 %p4, %r6, 0;
    elect.sync %r5|%p1, -1;
    and.pred %p5, %p1, %p2;
    {body}
    ret;
}}
"""

ONE = "@%p5 st.shared.u32 [%r2], 1; "
"""The elected lane of warp 0 writes a word."""
INIT = "@%p5 mbarrier.init.shared.b64 [full], 1; @%p5 mbarrier.init.shared.b64 [empty], {count}; bar.sync 0; "
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 256, [full]; "
WAIT = "{label}: mbarrier.try_wait.parity.shared.b64 %p7, [{name}], {parity}; @!%p7 bra {label}; "
FULL = WAIT.format(label="F", name="full", parity=0)
PIPELINE = (
    INIT + "@!%p2 bra C; @!%p1 bra Z; mov.u32 %r8, 0; "
    "P: xor.b32 %r9, %r8, 1; E: mbarrier.try_wait.parity.shared.b64 %p7, [empty], %r9; @!%p7 bra E; "
    "mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; " + COPY + "add.u32 %r8, %r8, 1; setp.lt.u32 %p8, %r8, 2; "
    "@%p8 bra P; bra Z; "
    "C: mov.u32 %r8, 0; L: {wait} ld.shared.u32 %r10, [%r2]; fence.proxy.async.shared::cta; {sync}"
    "{free} add.u32 %r8, %r8, 1; setp.lt.u32 %p8, %r8, 2; @%p8 bra L; Z:"
)
"""The elected lane of warp 0 fills a slot twice by copies, warp 1 reads it."""
LOOP = "F: mbarrier.try_wait.parity.shared.b64 %p7, [full], %r8; @!%p7 bra F;"


def judged(tmp_path: Path, body: str) -> WholeResult:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL.format(body=body.replace("; ", ";\n    ")))
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))


@pytest.mark.parametrize(
    ("body", "word", "reason"),
    [
        ("@%p1 st.shared.u32 [%r2], 1;", "race", None),
        (ONE + "bar.sync 0; ld.shared.u32 %r7, [%r2];", "race-free", None),
        (ONE + "bar.warp.sync -1; @%p2 ld.shared.u32 %r7, [%r2];", "race-free", None),
        # Lane 0 may be another one than that which is elected; so it may be as well.
        (ONE + "@%p3 ld.shared.u32 %r7, [%r2];", "undecided", "whether this is ordered"),
        (ONE + "@%p5 ld.shared.u32 %r7, [%r2];", "race-free", None),
        ("@%p3 st.shared.u32 [%r2], 1; " + ONE, "undecided", "whether this is ordered"),
        ("@%p3 st.shared.u32 [%r2], 1; bar.warp.sync -1; " + ONE, "race-free", None),
        ("st.shared.u32 [%r3], 1; @%p5 ld.shared.u32 %r7, [%r2+4];", "race", None),
        ("st.shared.u32 [%r3], 1; bar.sync 0; @%p5 ld.shared.u32 %r7, [%r2+4];", "race-free", None),
        # Its own word: another one in each lane, so that nobody knows where it is.
        ("@%p5 st.shared.u32 [%r3], 1;", "undecided", "the address depends"),
        ("@%p5 st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r7, [%r2];", "race-free", None),
        ("@%p5 st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r7, [%r2]; setp.eq.u32 %p6, %r7, 0; "
         "@%p6 exit;", "undecided", "whether this is executed"),
        # What the elected lane computes is not known to all.
        ("mov.u32 %r7, 0; @%p5 mov.u32 %r7, 1; setp.eq.u32 %p6, %r7, 1; @!%p6 bra L; st.shared.u32 [%r2], 1; "
         "L: bar.sync 0; ld.shared.u32 %r8, [%r2];", "race-free", None),
        ("mov.u32 %r7, 0; @!%p5 mov.u32 %r7, 1; setp.eq.u32 %p6, %r7, 1; @%p6 bra L; st.shared.u32 [%r2], 1; "
         "L: bar.sync 0; ld.shared.u32 %r8, [%r2];", "race-free", None),
        ("mov.u32 %r7, 0; @%p5 mov.u32 %r7, 1; mad.lo.u32 %r7, %r7, 4, %r2; bar.sync 0; "
         "@%p2 ld.shared.u32 %r8, [%r7];", "undecided", "the address depends"),
        ("mov.u32 %r7, 0; @!%p5 bra L; mov.u32 %r7, 1; L: setp.eq.u32 %p6, %r7, 1; @%p6 st.shared.u32 [%r2], 1;",
         "undecided", "whether this is executed"),
        ("mov.u32 %r7, %r2; @!%p5 bra L; mov.u32 %r7, 0; L: @!%p2 ld.shared.u32 %r8, [%r7];", "race-free", None),
        ("mov.u32 %r7, %r2; @!%p5 bra L; mov.u32 %r7, 0; L: @%p2 ld.shared.u32 %r8, [%r7];", "outside", None),
        ("mov.u32 %r7, %r2; @!%p5 bra L; add.u32 %r7, %r2, 4; L: @%p2 ld.shared.u32 %r8, [%r7];", "undecided",
         "the address depends"),
        # The others do what the elected one does not.
        ("@!%p2 bra L; @%p1 bra L; st.shared.u32 [%r3], 1; L:", "undecided", "which lane is elected"),
        ("@%p2 bra L; bra Z; L: @%p1 bra M; mov.u32 %r7, 2; bra Z; M: st.shared.u32 [%r2], 1; Z:", "race-free", None),
        ("@!%p2 bra Z; mov.u32 %r7, %r2; @%p1 bra M; mov.u32 %r7, 2; bra Y; M: st.shared.u32 [%r2], 1; "
         "Y: ld.shared.u32 %r8, [%r7]; Z:", "undefined", None),
        ("@!%p2 bra Z; mov.u32 %r7, %r2; @%p1 bra M; add.u32 %r7, %r2, 8; bra Y; M: st.shared.u32 [%r2+4], 1; "
         "Y: ld.shared.u32 %r8, [%r7]; Z:", "undecided", "which lane is elected"),
        ("@%p1 bar.warp.sync -1;", "unsupported", "executes alone"),
        # Those that go on are not all of them: lane 1 may be the elected one.
        ("@!%p2 bra Z; @%p1 exit; setp.eq.u32 %p6, %r1, 1; @%p6 st.shared.u32 [%r2], 1; Z:", "undecided",
         "which lane is elected"),
        ("@%p1 exit; elect.sync _|%p6, -1; @%p6 st.shared.u32 [%r2], 1;", "unsupported", "lanes have ended"),
        # Two lanes may be elected of two masks.
        ("setp.gt.u32 %p6, %r6, 0; @!%p6 bra L; elect.sync _|%p6, -2; L:", "unsupported", "different lanes"),
        # mbarriers.
        (INIT.format(count=1) + "@!%p5 bra L; mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; " + COPY + "L: "
         + FULL + "ld.shared.u32 %r7, [%r2];", "race-free", None),
        (INIT.format(count=1) + "@%p5 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; @%p5 " + COPY + FULL
         + "ld.shared.u32 %r7, [%r2];", "race-free", None),
        (INIT.format(count=1) + "@%p5 mbarrier.arrive.expect_tx.shared.b64 _, [full], 256; @%p5 " + COPY
         + "ld.shared.u32 %r7, [%r2]; " + FULL, "race", None),
        (INIT.format(count=1).replace("bar.sync 0; ", "") + "@%p3 mbarrier.arrive.shared.b64 _, [full]; ", "undecided",
         "does not precede this"),
        # The elected lane waits for another one: not if that is itself.
        (INIT.format(count=1) + "setp.eq.u32 %p6, %r1, 1; @!%p5 bra L; " + FULL
         + "L: @%p6 mbarrier.arrive.shared.b64 _, [full];", "undecided", "if another lane is elected"),
        (PIPELINE.format(count=32, wait=LOOP, sync="", free="mbarrier.arrive.shared.b64 _, [empty];"), "race-free",
         None),
        (PIPELINE.format(count=1, wait=LOOP, sync="bar.warp.sync -1; ", free="@%p1 mbarrier.arrive.shared.b64 _, "
         "[empty];"), "race-free", None),
        (PIPELINE.format(count=1, wait=LOOP, sync="", free="@%p1 mbarrier.arrive.shared.b64 _, [empty];"), "race",
         None),
        (PIPELINE.format(count=1, wait=LOOP, sync="", free="@%p4 mbarrier.arrive.shared.b64 _, [empty];"), "race",
         None),
        (PIPELINE.format(count=1, wait=LOOP.replace("%r8", "1"), sync="bar.warp.sync -1; ",
         free="@%p1 mbarrier.arrive.shared.b64 _, [empty];"), "deadlock", None),
        # What the elected lane has initialised is known to the cluster, with its fence.
        ("@!%p5 bra L; mbarrier.init.shared.b64 [full], 2; fence.mbarrier_init.release.cluster; "
         "L: barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned; mov.u32 %r7, full; "
         "mapa.shared::cluster.u32 %r8, %r7, 0; @%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8]; "
         "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", "race-free", None),
        ("@!%p5 bra L; mbarrier.init.shared.b64 [full], 2; L: barrier.cluster.arrive.relaxed.aligned; "
         "barrier.cluster.wait.acquire.aligned; mov.u32 %r7, full; mapa.shared::cluster.u32 %r8, %r7, 0; "
         "@%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8]; barrier.cluster.arrive.aligned; "
         "barrier.cluster.wait.aligned;", "undefined", "does not precede this"),
    ],
)  # fmt: skip
def test_any_lane_may_be_elected(body: str, word: str, reason: str | None, tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert (found.answer, reason if reason and reason in (found.reason or "") else None) == (word, reason), found


def steps(rng: random.Random) -> list[str]:
    """What the elected lane of a warp does, or all of them do."""
    place = rng.choice(("%r2", "%r2", "%r2+4", "%r3+128"))
    mbarrier = rng.choice(("full", "empty"))
    kinds = [
        [f"st.shared.u32 [{place}], 1;"],
        [f"ld.shared.u32 %r7, [{place}];"],
        [f"red.relaxed.cta.shared.add.u32 [{place}], 1;"],
        [f"ld.global.u32 %r7, [%d1+{4 * rng.randrange(3)}];"],
        [f"mbarrier.arrive.shared.b64 _, [{mbarrier}];"],
        ["fence.proxy.async;"],
        [
            f"mbarrier.arrive.expect_tx.shared.b64 _, [{mbarrier}], 64;",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            f"[s+{64 * rng.randrange(2)}], [%d1], 64, [{mbarrier}];",
        ],
        ["exit;"],
    ]
    return rng.choices(kinds, [7, 7, 1, 1, 2, 1, 1, 1])[0]


def elections(seed: int) -> str:
    """A random body for ``KERNEL``, in which elected lanes do something, and others."""
    rng = random.Random(f"whole elections/{seed}")
    count = rng.choice((1, 1, 2, 32, 64))
    body, parity = [INIT.format(count=count) + f"setp.eq.u32 %p6, %r4, {rng.randrange(2)}; and.pred %p8, %p1, %p6;"], 0
    for number in range(rng.randrange(2, 6)):
        kind = rng.random()
        guard = rng.choice(("%p1", "%p5", "%p5", "%p8") if kind < 0.4 else ("%p2", "%p3", "%p3", "%p3"))
        chosen = [step for _ in range(rng.randrange(1, 3)) for step in steps(rng)]
        if kind < 0.3 and guard[0] == "%":
            body += [f"@!{guard} bra L{number};", *chosen, f"L{number}:"]
        elif kind < 0.5:
            body += [f"@{guard} {step}" for step in chosen]
        elif kind < 0.8:
            body.append(rng.choice(("bar.warp.sync -1;", "bar.sync 0;", "barrier.sync 0;")))
        else:
            who = {1: "@%p5 ", 2: "@%p1 ", 32: "@%p2 ", 64: ""}[count]
            body.append(f"{who}mbarrier.arrive.shared.b64 _, [empty];")
            body.append(WAIT.format(label=f"W{number}", name="empty", parity=parity))
            parity ^= 1
    return "\n    ".join(body).replace("; ", ";\n    ")


def compared(path: Path, seed: int) -> bool:
    """Whether a random launch is free of races; if so, it is whichever lane of its warps stands for the elected one."""
    text = KERNEL.format(body=elections(seed))

    def answered(text: str) -> str:
        path.write_text(text)
        (kernel,) = kernels(path)
        return whole(kernel, str(path), Limits(deadline=time.monotonic() + 20)).answer

    if answered(text) != "race-free":
        return False
    for lane in (0, 1, 30, 31):
        given, count = re.subn(r"elect\.sync [^;]*;", f"setp.eq.u32 %p1, %r6, {lane};", text)
        assert count == 1
        assert answered(given) not in ("race", "deadlock", "undefined", "outside"), (lane, text)
    return True


def test_random_elections(tmp_path: Path) -> None:
    assert sum(compared(tmp_path / "k.ptx", seed) for seed in range(40)) >= 8


@pytest.mark.slow
def test_many_random_elections(tmp_path: Path, shift: int) -> None:
    assert sum(compared(tmp_path / "k.ptx", seed) for seed in range(1000 + shift, 1600 + shift)) >= 90
