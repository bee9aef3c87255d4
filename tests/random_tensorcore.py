"""Random programs: tcgen05, tensor memory shared by the threads of a CTA."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Program

BEFORE, AFTER = "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"


def tcgen05(rng: random.Random) -> Program:
    """Threads that load, store, copy and multiply in tensor memory and hand over to each other."""
    kit = Kit(rng)
    threads_ = kit.pick((1, 2, 2, 2, 3))
    means = [kit.pick(("flag", "mbarrier", "mbarrier", "commit", "commit", "barrier")) for _ in range(threads_ - 1)]
    if "barrier" in means:
        means = ["barrier"] * len(means)
    declared = [
        ".tmem .b32 t[6] @ cta 0 = {0, 0, 0, 0, 0, 0};",
        ".shared .align 16 .b32 s[4] @ cta 0 = {5, 6, 7, 8};",
    ]
    for i, how in enumerate(means):
        if how == "flag":
            declared.append(f".global .u32 f{i} = 0;")
        elif how != "barrier":
            declared.append(f".shared .b64 b{i} @ cta 0 = mbarrier(1);")
    own = kit.chance(0.4)
    if own:
        declared.append(".shared .b64 m @ cta 0 = mbarrier(1);")
    work = kit.pick(
        (("ld", "st"), ("ld", "st", "mma"), ("cp", "mma", "ld"), ("cp", "ld"), ("mma", "st", "shared", "ld"))
    )
    committed: list[str] = []
    copied: list[int] = []

    def wait(what: str) -> None:
        kit.add(f"tcgen05.wait::{what}.sync.aligned")

    def act(i: int) -> None:
        what = kit.pick(work)
        at = kit.pick(("t", "t", "t+1"))
        if what == "ld":
            r = kit.fresh()
            kit.add("tcgen05.ld.sync.aligned.32x32b.x1.b32", f" {{{r}}}, [{at}]")
        elif what == "st":
            kit.add("tcgen05.st.sync.aligned.32x32b.x1.b32", f" [{at}], {{{kit.pick((1, 2))}}}")
        elif what == "cp" and len(copied) < 2 and i not in copied:
            copied.append(i)  # more of them have too many final states
            kit.add("tcgen05.cp.cta_group::1.128x128b", " [t], ds")
        elif what == "shared":
            kit.add("st.shared.b32", f" [s], {kit.pick((3, 4))}")
            if kit.chance(0.6):
                kit.add("fence.proxy.async")
        elif what == "mma":
            a = "[t]" if kit.chance(0.5) else "ds"
            shape = kit.pick((0, 0, 0, 1, 1 << 17, 1 << 24))
            kit.add("setp.eq.u32", " q, 0, 1")
            kit.add("tcgen05.mma.cta_group::1.kind::f16", f" [{kit.pick(('t', 't+1', 't+5'))}], {a}, ds, {shape}, q")
        if what in ("ld", "st") and kit.chance(0.6):
            wait(kit.pick((what, what, what, "ld", "st")))
        if what in ("cp", "mma") and (copied or what == "mma") and own and not committed and kit.chance(0.5):
            committed.append("m")
            kit.add("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", " [m]")
            p, label = kit.fresh("p"), kit.fresh("L")
            kit.add(
                "mbarrier.try_wait.parity", f".shared::cta.b64 {p}, [m], 0", kit.pick(("relaxed", "acquire")), "cta"
            )
            kit.add("bra", f" {label}")
            kit.guard(p, negated=True)
            kit.label(label)
            if kit.chance(0.8):
                kit.add(AFTER)

    def give(i: int) -> None:
        if kit.chance(0.75):
            kit.add(BEFORE)
        strong = kit.chance(0.25)
        if means[i] == "flag":
            kit.store("u32", f"f{i}", 1, "release" if strong else "relaxed", "cta")
        elif means[i] == "mbarrier":
            kit.add("mbarrier.arrive", f".shared::cta.b64 _, [b{i}]", "release" if strong else "relaxed", "cta")
        elif means[i] == "commit":
            kit.add("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", f" [b{i}]")

    def take(i: int) -> str | None:
        label, strong = None, kit.chance(0.25)
        if means[i] == "flag":
            r = kit.load("u32", f"f{i}", "acquire" if strong else "relaxed", "cta")
            p, label = kit.fresh("p"), kit.fresh("L")
            kit.add("setp.eq", f".u32 {p}, {r}, 0")
            kit.add("bra", f" {label}")
            kit.guard(p)
        elif means[i] != "barrier":
            p, label = kit.fresh("p"), kit.fresh("L")
            sem = "acquire" if strong else "relaxed"
            kit.add("mbarrier.try_wait.parity", f".shared::cta.b64 {p}, [b{i}], 0", sem, "cta")
            kit.add("bra", f" {label}")
            kit.guard(p, negated=True)
        if kit.chance(0.8):
            kit.add(AFTER)
        return label

    threads = []
    for i in range(threads_):
        if "barrier" in means and i:
            kit.add("bar.sync", " 0")
        label = take(i - 1) if i else None
        for _ in range(kit.pick((1, 2, 2, 3)) if threads_ < 3 else 1):
            act(i)
        if i < threads_ - 1:
            give(i)
        kit.label(label)
        if "barrier" in means and not i:
            kit.add("bar.sync", " 0")
        lines = kit.take()
        threads.append(("cta 0", lines))
        if any("ds" in line.tail for line in lines):
            declared.append(f".reg .b64 P{i}:ds = s;")
    return replace(program(declared, threads, "t[0] == 1"), isa="8.6")
