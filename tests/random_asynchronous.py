"""Random programs: mbarriers, bulk copies and remote stores, non-bulk copies."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.random_families import Kit, program
from tests.random_programs import Program

MBARRIER_SCOPES = ("cta", "cta", "cluster")


def arrive(kit: Kit, name: str, remote: bool, scope: str | None = None, count: int | None = None) -> str | None:
    """``mbarrier.arrive``; the register of its state, if it has one."""
    where = ".shared::cluster" if remote else ".shared::cta"
    token = None if remote or kit.chance(0.75) else kit.fresh("k")
    head = "mbarrier.arrive_drop" if kit.chance(0.06) else "mbarrier.arrive"
    given = "" if count is None else f", {count}"
    kit.add(head, f"{where}.b64 {token or '_'}, [{name}]{given}", "release", scope or kit.pick(MBARRIER_SCOPES))
    return token


def wait(kit: Kit, name: str, parity: int, token: str | None = None) -> str:
    """``mbarrier.test_wait`` or ``try_wait``; the predicate that it writes."""
    p = kit.fresh("p")
    head = f"mbarrier.{kit.pick(('try_wait', 'test_wait'))}{'' if token else '.parity'}"
    kit.add(head, f".shared::cta.b64 {p}, [{name}], {token or parity}", "acquire", kit.pick(MBARRIER_SCOPES))
    return p


def after(kit: Kit, p: str) -> str | None:
    """What follows a wait: nothing, a branch over the rest, an exit, or a loop until it is true."""
    roll = kit.rng.random()
    if roll < 0.25:
        label = kit.fresh("L")
        kit.add("bra", f" {label}")
        kit.guard(p, negated=True)
        return label
    if roll < 0.35:
        kit.add("exit")
        kit.guard(p, negated=True)
    elif roll < 0.5:
        label = kit.fresh("L")
        kit.lines[-1] = replace(kit.lines[-1], label=label)
        kit.add("bra", f" {label}")
        kit.guard(p, negated=True)
    return None


# ---- mbarriers -------------------------------------------------------------------------------------------------------


def mbarriers(rng: random.Random) -> Program:
    """Producers that arrive and consumers that wait, in one CTA or across a cluster."""
    kit = Kit(rng)
    remote = kit.chance(0.4)
    ctas = kit.pick(((0, 1), (0, 1), (0, 1, 0), (0, 1, 1)) if remote else ((0, 0), (0, 0), (0, 0, 0)))
    ends = ", cluster 0" if remote else ""
    second = kit.chance(0.25)
    count = kit.pick((1, 1, 1, 2, 2, 3))
    tx = kit.pick((0, 0, 0, 0, 8))
    inside = not tx and kit.chance(0.2)
    published = kit.pick(("barrier", "barrier", "flag", "fence and flag", "none")) if inside else ""
    barrier = f" = mbarrier({count}{f', {tx}' if tx else ''})" if not inside else " = 0"
    declared = [f".shared .b64 b @ cta 0{ends}{barrier};"]
    if second:
        declared.append(f".shared .b64 c @ cta 0{ends} = mbarrier(1);")
    data = kit.pick((".global", ".global", ".shared"))
    declared.append(".global .u32 x = 0;" if data == ".global" else f".shared .u32 x @ cta 0{ends} = 0;")
    if published.endswith("flag"):
        declared.append(f".shared .u32 f @ cta 0{ends} = 0;")
    scopes = ("cta", "cluster", "gpu") if remote else ("cta", "gpu")

    def space(cta: int) -> str:
        return data if data == ".global" or cta == 0 else ".shared::cluster"

    def access(cta: int, write: bool) -> None:
        if write:
            kit.store("u32", "x", kit.pick((1, 2)), kit.pick(("weak", "weak", "relaxed")), kit.pick(scopes), space(cta))
        else:
            kit.load("u32", "x", kit.pick(("weak", "weak", "relaxed")), kit.pick(scopes), space(cta))

    def start(index: int, cta: int) -> str | None:
        """Initialise the mbarrier, or wait until that is done."""
        if not inside:
            return None
        if index == 0:
            kit.add("mbarrier.init.shared::cta.b64", f" [b], {count}")
            if published == "fence and flag":
                kit.add("fence.mbarrier_init.release.cluster")
            if published.endswith("flag"):
                sem = kit.pick(("relaxed", "release") if published == "fence and flag" else ("release", "relaxed"))
                kit.store("u32", "f", 1, sem, "cluster" if remote else "cta", ".shared")
        if published == "barrier":
            if remote:
                kit.add("barrier.cluster.arrive", "", kit.pick(("release", "release", "relaxed")))
                kit.add("barrier.cluster.wait")
            else:
                kit.add("bar.sync", " 0")
        elif published.endswith("flag") and index:
            where = ".shared" if cta == 0 else ".shared::cluster"
            return kit.subscribe("f", "cluster" if remote else "cta", where, guarded=kit.chance(0.8))
        return None

    threads = []
    for i, cta in enumerate(ctas):
        label = start(i, cta)
        consumer = cta == 0 and (i == 0 if remote else i == len(ctas) - 1)
        if consumer:
            if tx or kit.chance(0.08):
                kit.add("mbarrier.complete_tx", f".shared::cta.b64 [b], {tx or 8}", "relaxed", "cta")
                if kit.chance(0.5):
                    access(cta, False)
            token = arrive(kit, "b", False) if kit.chance(0.15) else None
            p = wait(kit, "b", kit.pick((0, 0, 0, 0, 1)), token if kit.chance(0.7) else None)
            over = after(kit, p)
            access(cta, kit.chance(0.25))
            if second:
                arrive(kit, "c", False)
            elif kit.chance(0.2):
                wait(kit, "b", kit.pick((1, 0)))
                access(cta, False)
            kit.label(over)
        else:
            access(cta, kit.chance(0.8))
            if kit.chance(0.2):
                kit.fence(scopes)
            expect = kit.chance(0.1)
            if expect:
                where = ".shared::cluster" if cta else ".shared::cta"
                kit.add("mbarrier.expect_tx", f"{where}.b64 [b], 8", "relaxed", kit.pick(MBARRIER_SCOPES))
            share = count if len(ctas) == 2 or (kit.chance(0.2) and count > 1) else max(1, count - 1)
            single = kit.chance(0.3)
            for _ in range(share if single else 1):
                arrive(kit, "b", cta != 0, count=None if single or share == 1 or kit.chance(0.2) else share)
            if expect and kit.chance(0.9):
                where = ".shared::cluster" if cta else ".shared::cta"
                kit.add("mbarrier.complete_tx", f"{where}.b64 [b], 8", "relaxed", kit.pick(MBARRIER_SCOPES))
            if second and cta == 0:
                p = wait(kit, "c", 0)
                access(cta, kit.chance(0.5))
            elif kit.chance(0.15):
                access(cta, kit.chance(0.5))
        kit.label(label)
        threads.append((f"cta {cta}{ends}", kit.take()))
    return program(declared, threads, "x == 1")


# ---- bulk copies -----------------------------------------------------------------------------------------------------


def bulk(rng: random.Random) -> Program:
    """One or two bulk copies or reductions into, out of, or between shared memory, and remote stores."""
    kit = Kit(rng)
    return kit.pick((bulk_load, bulk_load, bulk_load, bulk_store, bulk_store, bulk_store, between_ctas, remote_store))(
        kit
    )


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


def finish(kit: Kit) -> None:
    """Commit and wait for a bulk group; parts of it are missing now and then."""
    if kit.chance(0.95):
        kit.add("cp.async.bulk.commit_group")
    roll = kit.rng.random()
    if roll < 0.8:
        kit.add(f"cp.async.bulk.wait_group{'.read' if roll < 0.25 else ''}", f" {kit.pick((0, 0, 0, 0, 1))}")


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
    finish(kit)
    if count == 1 or kit.chance(0.4):
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


# ---- non-bulk copies -------------------------------------------------------------------------------------------------


def cp_async(rng: random.Random) -> Program:
    """``cp.async`` with groups, waits, mbarriers, barriers and flags."""
    kit = Kit(rng)
    count = kit.pick((1, 2, 2, 2, 3))
    arrives = count > 1 and kit.chance(0.35)
    order = "mbarrier" if arrives else kit.pick(("bar", "flag", "none"))
    wide = kit.chance(0.15)
    declared = [
        f".shared .align 16 .u32 s[2] @ cta 0 = {{0, {kit.pick((0, 3))}}};",
        ".global .align 16 .u32 g[2] = {1, 2};",
    ]
    noinc = kit.chance(0.6)
    if arrives:
        declared.append(f".shared .b64 b @ cta 0 = mbarrier({1 if noinc or kit.chance(0.7) else 2});")
    if order == "flag":
        declared.append(".shared .u32 f @ cta 0 = 0;")

    def copy() -> None:
        dst = kit.pick(("s", "s", "s+4"))
        roll = kit.rng.random()
        if wide:
            kit.add("cp.async.ca.shared.global", f" [s], [g], 8{f', {kit.pick((0, 4))}' if roll < 0.3 else ''}")
        elif roll < 0.12:
            kit.add("cp.async.ca.shared.global", f" [{dst}], [g], 4, {kit.pick((0, 4, 2))}")
        else:
            kit.add("cp.async.ca.shared.global", f" [{dst}], [{kit.pick(('g', 'g', 'g+4'))}], 4")

    def access(name: str, write: bool) -> None:
        at = name if kit.chance(0.75) else f"{name}+4"
        space = ".shared" if name == "s" else ".global"
        sem = kit.pick(("weak", "weak", "relaxed"))
        if write:
            kit.store("u32", at, kit.pick((5, 6)), sem, "cta", space)
        else:
            kit.load("u32", at, sem, "cta", space)

    if kit.chance(0.3):
        access(kit.pick(("s", "g")), kit.chance(0.7))
    copy()
    committed = kit.chance(0.6)
    if committed:
        kit.add("cp.async.commit_group")
    if kit.chance(0.25):
        copy()
        if kit.chance(0.6):
            kit.add("cp.async.commit_group")
    if arrives:
        kit.add(f"cp.async.mbarrier.arrive{'.noinc' if noinc else ''}.shared::cta.b64", " [b]")
        if not noinc or kit.chance(0.1):
            kit.add("mbarrier.arrive", ".shared::cta.b64 _, [b]", "release", "cta")
    elif kit.chance(0.8):
        if committed and kit.chance(0.7):
            kit.add("cp.async.wait_group", f" {kit.pick((0, 0, 1))}")
        else:
            kit.add("cp.async.wait_all")
    if order == "bar" and count > 1:
        kit.add("bar.sync", " 0")
    elif order == "flag":
        kit.publish("f", "cta", ".shared")
    if count == 1 or kit.chance(0.25):
        access(kit.pick(("s", "s", "g")), kit.chance(0.3))
    threads = [("cta 0", kit.take())]
    for i in range(1, count):
        if kit.chance(0.15):
            access(kit.pick(("s", "g")), True)
        over = None
        if order == "bar":
            kit.add("bar.sync", " 0")
        elif order == "flag":
            over = kit.subscribe("f", "cta", ".shared", guarded=kit.chance(0.3))
        elif arrives and (i == 1 or kit.chance(0.4)):
            over = after(kit, wait(kit, "b", 0))
        access(kit.pick(("s", "s", "s", "g")), kit.chance(0.25))
        kit.label(over)
        threads.append(("cta 0", kit.take()))
    return program(declared, threads, "s[0] == 1")
