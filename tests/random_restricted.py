"""Random programs: the fences of PTX 8.6 that are for objects in shared memory, across the CTAs of a cluster."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Program

RELEASE = "fence.release.sync_restrict::shared::cta.cluster"
ACQUIRE = "fence.acquire.sync_restrict::shared::cluster.cluster"
ASYNC_RELEASE = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster"
ASYNC_ACQUIRE = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"


def restricted(rng: random.Random) -> Program:
    """An access, a chain of threads that hand over by flags, mbarriers or the barrier, and an access or a copy."""
    kit = Kit(rng)
    copies = kit.chance(0.4)
    ctas = kit.pick(((0, 1), (1, 0), (0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0), (1, 0, 1)))
    home = kit.pick((0, 0, 1)) if 1 in ctas and 0 in ctas else ctas[0]
    everywhere = not copies and kit.chance(0.15)
    means = [kit.pick(("flag", "flag", "mbarrier", "mbarrier", "barrier")) for _ in ctas[1:]]
    if "barrier" in means:
        means = ["barrier"]
        ctas = ctas[:2]
        home = home if home in ctas else ctas[0]
    align = ".align 16 " if copies else ""
    shape, value = ("[4]", "{0, 0, 0, 0}") if copies else ("", "0")
    declared = [
        f".global .u32 s{shape} = {value};"
        if everywhere
        else f".shared {align}.u32 s{shape} @ cta {home}, cluster 0 = {value};"
    ]
    for i, how in enumerate(means):
        if how == "flag":
            where = kit.pick(ctas)
            shared = f".shared .u32 f{i} @ cta {where}, cluster 0 = 0;"
            declared.append(shared if kit.chance(0.3) else f".global .u32 f{i} = 0;")
        elif how == "mbarrier":
            declared.append(f".shared .b64 b{i} @ cta {ctas[i + 1]}, cluster 0 = mbarrier(1);")
    if copies:
        declared.append(".global .align 16 .u32 d[4] = {1, 0, 0, 0};")
        declared.append(f".shared .b64 m @ cta {ctas[-1]}, cluster 0 = mbarrier(0, 16);")

    def access(cta: int, write: bool) -> None:
        space = ".global" if everywhere else ".shared" if cta == home else ".shared::cluster"
        sem = kit.pick(("weak", "weak", "weak", "relaxed"))
        if write:
            kit.store("u32", "s", kit.pick((2, 3)), sem, "cluster", space)
        else:
            kit.load("u32", "s", sem, "cluster", space)

    def fences(kinds: tuple[str, ...], share: float) -> None:
        for kind in kinds:
            if kit.chance(share):
                if kind == "full":
                    kit.fence(("cluster", "cluster", "cta"))
                elif kind == "async":
                    kit.add("fence.proxy.async")
                else:
                    kit.add(kind)

    def give(i: int) -> None:
        """Hand over to the next thread."""
        strong = kit.chance(0.25)
        if kit.chance(0.6):
            fences((kit.pick((RELEASE, ASYNC_RELEASE, "full")),), 1)
        if copies:
            fences((ASYNC_RELEASE, RELEASE, "async"), 0.3)
        if means[i] == "flag":
            sem, spaced = "release" if strong else "relaxed", f"f{i} @" in " ".join(declared)
            kit.store(
                "u32", f"f{i}", 1, sem, kit.pick(("cluster", "cluster", "gpu")), ".shared::cluster" if spaced else ""
            )
        elif means[i] == "mbarrier":
            kit.add("mbarrier.arrive", f".shared::cluster.b64 _, [b{i}]", "release" if strong else "relaxed", "cluster")
        else:
            kit.add("barrier.cluster.arrive", "", "release" if strong else "relaxed")
            kit.add("barrier.cluster.wait")

    def take(i: int) -> str | None:
        """Take over from the thread before; the label to jump to if it has not handed over yet."""
        strong, label = kit.chance(0.25), None
        if means[i] == "flag":
            spaced = f"f{i} @" in " ".join(declared)
            space = ".shared::cluster" if spaced else ""
            r = kit.load("u32", f"f{i}", "acquire" if strong else "relaxed", "cluster", space)
            p, label = kit.fresh("p"), kit.fresh("L")
            kit.add("setp.eq", f".u32 {p}, {r}, 0")
            kit.add("bra", f" {label}")
            kit.guard(p)
        elif means[i] == "mbarrier":
            p, label = kit.fresh("p"), kit.fresh("L")
            sem, scope = "acquire" if strong else "relaxed", kit.pick(("cluster", "cluster", "cta"))
            kit.add("mbarrier.try_wait.parity", f".shared::cta.b64 {p}, [b{i}], 0", sem, scope)
            kit.add("bra", f" {label}")
            kit.guard(p, negated=True)
        else:
            kit.add("barrier.cluster.arrive", "", kit.pick(("release", "relaxed")))
            kit.add("barrier.cluster.wait")
        if kit.chance(0.7):
            fences((kit.pick((ACQUIRE, ACQUIRE, "full", RELEASE)),), 1)
        if copies:
            fences((ASYNC_ACQUIRE, ACQUIRE, "async"), 0.4)
        return label

    threads = []
    for i, cta in enumerate(ctas):
        label = take(i - 1) if i else None
        last = i == len(ctas) - 1
        if last and copies:
            if kit.chance(0.75):
                to = "[s], [d], 16, [m]"
                kit.add("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", f" {to}")
            else:
                access(cta, kit.chance(0.3))
        elif i in (0, len(ctas) - 1) or kit.chance(0.3):
            access(cta, kit.chance(0.7 if i == 0 and not copies else 0.3))
        if not last:
            give(i)
        kit.label(label)
        threads.append((f"cta {cta}, cluster 0", kit.take()))
    return replace(program(declared, threads, "s[0] == 1" if copies else "s == 1"), isa="8.6")
