"""Random programs: non-bulk copies, tensor maps."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_mbarriers import after, wait
from tests.random_programs import Program

# ---- non-bulk copies -------------------------------------------------------------------------------------------------


def cp_async(rng: random.Random) -> Program:
    """``cp.async`` with groups, waits, mbarriers, barriers and flags."""
    kit = Kit(rng)
    if kit.chance(0.3):
        return groups(kit)
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

    other = count > 1 and arrives and kit.chance(0.3)
    if other:
        declared.append(".global .u32 x = 0;")
        kit.store("u32", "x", 1, space=".global")
    elif kit.chance(0.3):
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
        if other and i == 1:
            kit.load("u32", "x", space=".global")
        else:
            access(kit.pick(("s", "s", "s", "g")), kit.chance(0.25))
        kit.label(over)
        threads.append(("cta 0", kit.take()))
    return program(declared, threads, "s[0] == 1")


def groups(kit: Kit) -> Program:
    """One thread copies to few places, and what makes groups and waits for them may depend on what another one does."""
    declared = [
        ".shared .align 16 .u32 s[2] @ cta 0 = {0, 0};",
        ".global .align 16 .u32 g[2] = {1, 2};",
        ".global .u32 x = 0;",
        ".shared .b64 b @ cta 0 = mbarrier(1);",
    ]
    register, p = kit.load("u32", "x", space=".global"), kit.fresh("p")
    kit.add("setp.eq", f".u32 {p}, {register}, 0")
    waited = False
    for _ in range(kit.pick((3, 4, 5, 6))):
        roll = kit.rng.random()
        if roll < 0.5:
            kit.add("cp.async.ca.shared.global", f" [s{kit.pick(('', '+4'))}], [g{kit.pick(('', '+4'))}], 4")
        elif roll < 0.6 and not waited:
            waited = True
            kit.add("cp.async.mbarrier.arrive.noinc.shared::cta.b64", " [b]")
            kit.label(after(kit, wait(kit, "b", 0)))
        else:
            kit.add(kit.pick(("cp.async.commit_group", "cp.async.wait_all", "cp.async.wait_group 0")))
        if kit.chance(0.3) and kit.lines[-1].head.startswith("cp.async"):
            kit.guard(p, kit.chance(0.5))
    kit.load("u32", kit.pick(("s", "s+4")), space=".shared")
    threads = [("cta 0", kit.take())]
    kit.store("u32", "x", 1, space=".global")
    threads.append(("cta 0", kit.take()))
    return program(declared, threads, "s[0] == 1")


# ---- tensor maps -----------------------------------------------------------------------------------------------------


def tensormaps(rng: random.Random) -> Program:
    """A tensor map that one thread changes and a tensor copy of the same or another thread reads."""
    kit = Kit(rng)
    apart = kit.chance(0.65)
    other_cta = apart and kit.chance(0.6)
    home = "cta 1" if other_cta else "cta 0"
    store = kit.chance(0.25)
    through = not store and kit.chance(0.2)
    declared = [
        ".global .align 64 .b8 m[128] = tensormap(g, u64, 2);",
        f".global .align 16 .u64 g[2] = {'{0, 0}' if store else '{7, 0}'};",
        f".global .align 16 .u64 c[2] = {'{0, 0}' if store else '{9, 0}'};",
        f".shared .align 16 .u64 s[2] @ {home} = {'{1, 0}' if store else '{0, 0}'};",
        f".shared .b64 b @ {home} = mbarrier(0, 16);",
        "P0:d1 = c;",
    ]
    kit.count = 1
    flag = apart and not kit.chance(0.1)
    if flag:
        declared.append(".global .u32 f = 0;")
    scopes = ("cta", "gpu", "gpu", "cluster")

    def acquire() -> None:
        if kit.chance(0.65):
            kit.add("fence.proxy.tensormap::generic.acquire", " [m], 128", None, kit.pick(scopes))
        elif kit.chance(0.3):
            kit.async_fence()

    def replace_map() -> None:
        if through:
            declared.append(".shared .align 64 .b8 t[128] @ cta 0 = tensormap(g, u64, 2);")
            kit.add("tensormap.replace.tile.global_address.shared::cta.b1024.b64", " [t], d1")
            kit.add(
                f"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{kit.pick(scopes)}.sync.aligned",
                " [m], [t], 128",
            )
            return
        kit.add("tensormap.replace.tile.global_address.global.b1024.b64", " [m], d1")
        if kit.chance(0.75):
            kit.add("fence.proxy.tensormap::generic.release", "", None, kit.pick(scopes))

    def copy() -> None:
        if store:
            kit.add("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group", " [m, {0}], [s]")
            kit.add("cp.async.bulk.commit_group")
            if kit.chance(0.8):
                kit.add(f"cp.async.bulk.wait_group{kit.pick(('', '', '.read'))}", " 0")
            return
        kit.add("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes", " [s], [m, {0}], [b]")
        if kit.chance(0.9):
            wait(kit, "b", 0)
            kit.load("u64", "s", space=".shared")

    late = not apart and kit.chance(0.4)
    if late:  # the map is changed after the copy has read it
        copy()
        replace_map()
        return program(declared, [("cta 0", kit.take())], "g[0] == 1")
    replace_map()
    if not apart:
        acquire()
        copy()
        return program(declared, [("cta 0", kit.take())], "g[0] == 1")
    if flag:
        kit.publish("f", kit.pick(("cta", "gpu", "gpu")))
    threads = [("cta 0", kit.take())]
    label = kit.subscribe("f", kit.pick(("cta", "gpu", "gpu")), guarded=kit.chance(0.5)) if flag else None
    acquire()
    copy()
    kit.label(label)
    threads.append((home, kit.take()))
    return program(declared, threads, "g[0] == 1")
