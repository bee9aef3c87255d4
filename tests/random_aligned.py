"""Random programs: instructions that all threads of a warp execute together, which they do or not."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

WMMA = "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32"


def aligned(rng: random.Random) -> Program:
    """2 or 3 threads; the first two are mostly of one warp and mostly come to the same aligned instructions."""
    kit = Kit(rng)
    count = kit.pick((2, 2, 3))
    kinds = kit.pick((("wgmma",), ("tcgen05",), ("wgmma", "barrier"), ("tcgen05", "barrier"), ("wmma", "map")))
    common = [instruction(rng, kit.pick(kinds)) for _ in range(kit.pick((1, 1, 2, 2, 3)))]
    always = [line for line in common if kit.chance(0.5)]
    agreed = kit.chance(0.5)
    waits = kit.chance(0.3)
    named = kit.chance(0.85)
    threads = []
    for t in range(count):
        alike = common if t < 2 else [instruction(rng, kit.pick(kinds))] if kit.chance(0.4) else []
        predicate = decided(kit, agreed and t < 2) if agreed or kit.chance(0.2) else None
        for line in alike:
            between(kit, t, waits)
            if kit.chance(0.06):
                continue
            kit.lines.append(instruction(rng, kit.pick(kinds)) if kit.chance(0.05) else line)
            if predicate is not None and (line in always) != kit.chance(0.95):
                kit.guard(predicate)
            if kit.chance(0.04):
                kit.add("exit")
        between(kit, t, waits)
        threads.append(("cta 0" + (", warp 0" if named and t < 2 else ""), kit.take()))
    text = " ".join(line.tail + line.head for _, lines in threads for line in lines)
    declared = [".global .u32 x = 0;", ".global .u32 y = 0;"]
    declared += [".shared .b64 b @ cta 0 = mbarrier(1);"] if "[b]" in text else []
    declared += [".tmem .b32 t[2] @ cta 0 = {0, 0};"] if "tcgen05" in text else []
    declared += [f".reg .b32 P{t}:{k} = 0;" for t, (_, lines) in enumerate(threads) for k in ("k1", "k2")
                 if any(line.head == WMMA for line in lines)]  # fmt: skip
    if "[g]" in text:
        declared += [".shared .align 128 .b8 s[128] @ cta 0 = {1};", ".global .align 128 .b8 g[128] = {2};"]
    return replace(program(declared, threads, "x == 1"), isa="8.6")


def decided(kit: Kit, agreed: bool) -> str:
    """A predicate of what the thread reads, or of what those of its warp agree on."""
    p, r = kit.fresh("p"), kit.load("u32", kit.pick(("x", "y")), "relaxed", "cta", ".global")
    kit.add("setp.eq.u32", f" {p}, {r}, {kit.pick((0, 0, 1))}")
    if agreed:
        kit.add("vote.sync.any.pred", f" {p}, {p}, 3")
    return p


def between(kit: Kit, thread: int, waits: bool) -> None:
    """What a thread does for itself: accesses, and a handshake by an mbarrier."""
    if kit.chance(0.3):
        kit.store("u32", kit.pick(("x", "y")), thread + 1, "relaxed", "cta", ".global")
    if waits and thread == 1 and kit.chance(0.5):
        kit.add("mbarrier.arrive", ".shared::cta.b64 _, [b]", "release", "cta")
    elif waits and thread == 0 and kit.chance(0.5):
        p, label = kit.fresh("p"), kit.fresh("L")
        kit.lines.append(Line("mbarrier.try_wait.parity", f".shared::cta.b64 {p}, [b], 0", "acquire", "cta", "", label))
        kit.add("bra", f" {label}")
        kit.guard(p, negated=True)


def instruction(rng: random.Random, kind: str) -> Line:
    """An aligned instruction."""
    choices = {
        "wgmma": (
            Line("wgmma.fence.sync.aligned"), Line("wgmma.commit_group.sync.aligned"),
            Line("setmaxnreg.inc.sync.aligned.u32", " 64"), Line("setmaxnreg.dec.sync.aligned.u32", " 64"),
            Line("wgmma.wait_group.sync.aligned", " 0"), Line("wgmma.wait_group.sync.aligned", " 1"),
        ),
        "tcgen05": (
            Line("tcgen05.ld.sync.aligned.32x32b.x1.b32", " {r50}, [t]"),
            Line("tcgen05.st.sync.aligned.32x32b.x1.b32", " [t], {3}"),
            Line("tcgen05.wait::ld.sync.aligned"), Line("tcgen05.wait::st.sync.aligned"),
        ),
        "barrier": (
            Line("bar.sync", " 0"), Line("barrier.cluster.arrive.aligned"), Line("barrier.cluster.wait.aligned"),
            Line("barrier.sync", " 0"), Line("barrier.sync.aligned", " 1, 32"),
        ),
        "wmma": (Line(WMMA, " {k3, k4}, {k1}, {k1}, {k1, k2}"),),
        "map": (Line("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.cta.sync.aligned",
                     " [g], [s], 128"),),
    }  # fmt: skip
    return rng.choice(choices[kind])
