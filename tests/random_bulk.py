"""Random programs: bulk copies and reductions, remote stores."""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_mbarriers import after, wait
from tests.random_programs import Program


def bulk(rng: random.Random) -> Program:
    """One or two bulk copies or reductions into, out of, or between shared memory, and remote stores."""
    kit = Kit(rng)
    makers = (bulk_load, bulk_load, bulk_load, bulk_store, bulk_store, write_then_copy, write_then_copy)
    return kit.pick((*makers, between_ctas, remote_store))(kit)


def initial(kit: Kit, kind: str, first: int) -> str:
    """Values for 16 bytes that differ in one byte from those of other arrays."""
    return (
        "{" + ", ".join(str(first if i == 0 or kit.chance(0.3) else 0) for i in range(2 if kind == "u64" else 4)) + "}"
    )


def fence_before(kit: Kit, share: float = 0.6) -> None:
    """A fence of the async proxy, or none, or one that does not do."""
    roll = kit.rng.random()
    if roll < share:
        kit.async_fence()
    elif roll < share + 0.1:
        kit.fence(("cta", "gpu"))


def finish(kit: Kit) -> bool:
    """Commit and wait for a bulk group; parts of it are missing now and then. Whether it waits for reads only."""
    if kit.chance(0.95):
        kit.add("cp.async.bulk.commit_group")
    roll = kit.rng.random()
    if roll < 0.8:
        kit.add(f"cp.async.bulk.wait_group{'.read' if roll < 0.25 else ''}", f" {kit.pick((0, 0, 0, 0, 1))}")
    return roll < 0.25


def look(kit: Kit, name: str, kind: str, space: str, write: bool) -> None:
    """An access to the first element of an array, or to another or to a part of it."""
    step = 8 if kind == "u64" else 4
    at = name if kit.chance(0.75) else f"{name}+{step}"
    if kit.chance(0.06) and kind == "u64":
        kind = "u32"
    sem = kit.pick(("weak", "weak", "weak", "relaxed"))
    if write:
        kit.store(kind, at, kit.pick((5, 6)), sem, kit.pick(("cta", "gpu")), space)
    else:
        kit.load(kind, at, sem, kit.pick(("cta", "gpu")), space)


def bulk_load(kit: Kit) -> Program:
    """Global to shared memory, announced to an mbarrier."""
    kind = kit.pick(("u64", "u64", "u64", "u32"))
    n = 2 if kind == "u64" else 4
    arrives = kit.chance(0.6)
    both = kit.chance(0.15)
    given = "mbarrier(1)" if arrives else f"mbarrier(0, {32 if both else 16})"
    declared = [
        f".shared .align 16 .{kind} s[{n}] @ cta 0 = {initial(kit, kind, 0)};",
        f".global .align 16 .{kind} g[{n}] = {initial(kit, kind, 1)};",
        f".shared .b64 b @ cta 0 = {given};",
    ]
    count = kit.pick((1, 2, 2, 2, 3))
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    threads = []
    other = kit.chance(0.2)
    if other:  # a write before the copy that its completion does not publish
        declared.append(".global .u32 x = 0;")
        kit.store("u32", "x", 1, kit.pick(("weak", "relaxed")), "gpu", ".global")
    before = kit.chance(0.4)
    if before:
        look(kit, kit.pick(("g", "g", "s")), kind, "", True)
        fence_before(kit)
    if arrives:
        kit.add("mbarrier.arrive.expect_tx", f".shared::cta.b64 _, [b], {32 if both else 16}", "release", "cta")
    kit.add(copy, " [s], [g], 16, [b]")
    if both:
        kit.add(copy, " [s], [g], 16, [b]")
    if kit.chance(0.15):
        look(kit, kit.pick(("s", "g")), kind, "", True)
    waits = count == 1 or kit.chance(0.3)
    if waits:
        over = after(kit, wait(kit, "b", 0)) if kit.chance(0.85) else None
        look(kit, kit.pick(("s", "s", "g")), kind, "", kit.chance(0.35))
        kit.label(over)
    flag = count == 3
    if flag:
        declared.append(".global .u32 f = 0;")
    threads.append(("cta 0", kit.take()))
    if count > 1:
        if kit.chance(0.2):
            look(kit, kit.pick(("s", "g")), kind, "", True)
        over = after(kit, wait(kit, "b", kit.pick((0, 0, 0, 0, 0, 1)))) if kit.chance(0.9) else None
        if other:
            kit.load("u32", "x", space=".global")
        else:
            look(kit, kit.pick(("s", "s", "s", "g")), kind, "", kit.chance(0.3))
        if kit.chance(0.2) and not flag:
            look(kit, "s", kind, "", kit.chance(0.3))
        if flag:
            kit.publish("f", kit.pick(("cta", "gpu")))
        kit.label(over)
        threads.append(("cta 0", kit.take()))
    if flag:
        inside = kit.chance(0.5)
        kit.subscribe("f", kit.pick(("cta", "gpu")))
        look(kit, "s" if inside else "g", kind, "", kit.chance(0.4))
        threads.append(("cta 0" if inside else "cta 1", kit.take()))
    return program(declared, threads, "s[0] == 1")


def bulk_store(kit: Kit) -> Program:
    """Shared to global memory by a copy or a reduction, waited for by groups."""
    kind = kit.pick(("u64", "u64", "u64", "u32"))
    n = 2 if kind == "u64" else 4
    declared = [
        f".shared .align 16 .{kind} s[{n}] @ cta 0 = {initial(kit, kind, 1)};",
        f".global .align 16 .{kind} g[{n}] = {initial(kit, kind, 0)};",
    ]
    reduction = kit.chance(0.3)
    op = kit.pick(("add", "add", "max", "or"))
    suffix = {"add": kind, "max": kind, "or": f"b{kind[1:]}"}[op]

    def copy() -> None:
        if reduction:
            kit.add(f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{suffix}", " [g], [s], 16")
        else:
            kit.add("cp.async.bulk.global.shared::cta.bulk_group", " [g], [s], 16")

    count = kit.pick((1, 2, 2, 2, 3))
    flag = count > 1 and kit.chance(0.7)
    if flag:
        declared.append(".global .u32 f = 0;")
    if kit.chance(0.6):
        look(kit, "s", kind, ".shared", True)
        fence_before(kit)
    copy()
    if kit.chance(0.15):
        kit.add("cp.async.bulk.commit_group")
        copy()
    if finish(kit) and kit.chance(0.7):
        look(kit, "s", kind, ".shared", True)
    elif count == 1 or kit.chance(0.4):
        look(kit, kit.pick(("g", "g", "s")), kind, "", kit.chance(0.4))
    if flag:
        kit.publish("f", kit.pick(("cta", "gpu", "gpu")))
    threads = [("cta 0", kit.take())]
    if count > 1:
        own = kit.chance(0.3)
        if flag:
            kit.subscribe("f", kit.pick(("cta", "gpu", "gpu")))
        if reduction and kit.chance(0.4):
            if kit.chance(0.4) and own:
                copy()
            else:
                at = kit.pick(("g", "g", "g+8"))
                kit.add("atom", f".global.add.{kind} {kit.fresh()}, [{at}], 1", "relaxed", kit.pick(("gpu", "cta")))
        else:
            if kit.chance(0.2):
                kit.async_fence()
            look(kit, "s" if own and kit.chance(0.5) else "g", kind, "", kit.chance(0.3))
        threads.append(("cta 0" if own else "cta 1", kit.take()))
    if count == 3:
        look(kit, "g", kind, "", kit.chance(0.5))
        if kit.chance(0.4):
            kit.fence(("gpu",))
            look(kit, "g", kind, "", False)
        threads.append(("cta 2", kit.take()))
    return program(declared, threads, "g[0] == 1")


def write_then_copy(kit: Kit) -> Program:
    """What another thread has written, often of another CTA of the cluster, is copied; fences are here or there."""
    apart = kit.chance(0.6)
    place = ["cta 0, cluster 0", "cta 1, cluster 0" if apart else "cta 0, cluster 0"]
    declared = [
        ".shared .align 16 .u64 s[2] @ cta 1, cluster 0 = {0, 0};"
        if apart
        else ".shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0};",
        ".global .align 16 .u64 g[2] = {0, 0};",
    ]
    order = kit.pick(("cluster", "flag"))
    if order == "flag":
        declared.append(".global .u32 f = 0;")
    spaces = ("", "", ".shared::cluster", ".shared::cta", ".global")
    fenced = kit.pick(("here", "here", "there", "there", "both", "nowhere"))
    look(kit, "s", "u64", ".shared::cluster", True)
    if fenced in ("here", "both"):
        kit.async_fence(spaces)
    scope = kit.pick(("cta", "cluster", "gpu", "gpu"))
    if order == "cluster":
        kit.add("barrier.cluster.arrive", "", kit.pick(("release", "release", "relaxed")))
        kit.add("barrier.cluster.wait")
    else:
        kit.publish("f", scope)
    threads = [(place[0], kit.take())]
    if order == "cluster":
        kit.add("barrier.cluster.arrive")
        kit.add("barrier.cluster.wait")
        label = None
    else:
        label = kit.subscribe("f", kit.pick(("cluster", "gpu")), guarded=kit.chance(0.5))
    if fenced in ("there", "both"):
        kit.async_fence(spaces)
    kit.add("cp.async.bulk.global.shared::cta.bulk_group", " [g], [s], 16")
    finish(kit)
    if kit.chance(0.5):
        look(kit, "g", "u64", ".global", False)
    kit.label(label)
    threads.append((place[1], kit.take()))
    return program(declared, threads, "g[0] == 1")


def between_ctas(kit: Kit) -> Program:
    """Shared memory of one CTA to that of another, or global memory to that of several."""
    multicast = kit.chance(0.4)
    reduce = not multicast and kit.chance(0.25)
    if multicast:
        declared = [
            ".shared .align 16 .u64 s[2] = {0, 0};",
            ".global .align 16 .u64 g[2] = {1, 2};",
            ".shared .b64 b = mbarrier(0, 16);",
        ]
    else:
        declared = [
            ".shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0};",
            ".shared .align 16 .u64 g[2] @ cta 1, cluster 0 = {1, 2};",
            ".shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 16);",
        ]
    place = "cta 1, cluster 0"
    if kit.chance(0.5):
        look(kit, "g", "u64", ".global" if multicast else ".shared", True)
        fence_before(kit)
    if multicast:
        kit.add(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
            f" [s], [g], 16, [b], {kit.pick((3, 3, 1))}",
        )
    elif reduce:
        kind = kit.pick(("add.u64", "or.b32"))
        kit.add(
            f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{kind}",
            " [s], [g], 16, [b]",
        )
    else:
        kit.add("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", " [s], [g], 16, [b]")
    if multicast and kit.chance(0.5):
        wait(kit, "b", 0)
        look(kit, "s", "u64", ".shared", kit.chance(0.3))
    elif kit.chance(0.3):
        look(kit, "g", "u64", ".global" if multicast else ".shared", True)
    threads = [(place, kit.take())]
    for _ in range(kit.pick((1, 1, 2))):
        over = after(kit, wait(kit, "b", 0)) if kit.chance(0.9) else None
        look(kit, "s", "u64", ".shared", kit.chance(0.3))
        kit.label(over)
        threads.append(("cta 0, cluster 0", kit.take()))
    return program(declared, threads, "g[0] == 1")


def remote_store(kit: Kit) -> Program:
    """``st.async`` and ``red.async`` into another CTA of the cluster."""
    count = kit.pick((1, 1, 2))
    wide = kit.chance(0.3)
    size = 8 if wide else 4
    declared = [
        ".shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {0, 0, 0, 0};",
        f".shared .b64 b @ cta 0, cluster 0 = mbarrier(0, {count * size});",
        ".global .u32 x = 0;",
    ]
    where = ".shared::cluster.mbarrier::complete_tx::bytes"
    threads = []
    for i in range(count):
        if kit.chance(0.3):
            kit.store("u32", "x", 1, space=".global")
        if wide:
            value = f"{{{kit.pick((1, 2))}, {kit.pick((1, 2))}}}"
            kit.add(f"st.async.weak{where}.v2.u32", f" [s], {value}, [b]")
        elif kit.chance(0.4):
            op = kit.pick(("add.u32", "or.b32", "max.u32", "inc.u32"))
            kit.add(f"red.async.relaxed.cluster{where}.{op}", f" [s], {kit.pick((1, 2))}, [b]")
        else:
            kit.add(f"st.async.weak{where}.u32", f" [s], {kit.pick((1, 2))}, [b]")
        if kit.chance(0.15):
            kit.store("u32", "s", 3, kit.pick(("weak", "relaxed")), "cluster", ".shared::cluster")
        threads.append((f"cta {i + 1}, cluster 0", kit.take()))
    over = after(kit, wait(kit, "b", 0)) if kit.chance(0.9) else None
    look(kit, "s", "u32", ".shared", kit.chance(0.25))
    if kit.chance(0.4):
        kit.load("u32", "x", space=".global")
    kit.label(over)
    threads.append(("cta 0, cluster 0", kit.take()))
    return program(declared, threads, "x == 1")


def masked(rng: random.Random) -> Program:
    """A program of ``bulk`` whose copies to global memory copy some bytes of every 16 only."""
    source = bulk(rng)
    threads = [list(lines) for lines in source.threads]
    for lines in threads:
        for i, line in enumerate(lines):
            if line.head == "cp.async.bulk.global.shared::cta.bulk_group":
                mask = rng.choice((0x000F, 0x00F0, 0xFFF0, 0x0FF0, 0xF00F, 0x0001, 0xFFFE, 0x0000, 0xFFFF, 0x5555))
                lines[i] = replace(line, head=f"{line.head}.cp_mask", tail=f"{line.tail}, {mask}")
    return replace(source, threads=tuple(map(tuple, threads)), isa="8.6")
