"""Random programs: tensors of one to three dimensions, boxes across their ends, and changes of tensor maps."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_mbarriers import after, wait
from tests.random_programs import Program

# shape of the map, rank, and where boxes of 16 bytes of .u64 are placed in a tensor over 4 elements
SHAPES = (
    ("2, 4", 1, ("0", "1", "2", "3", "-1", "4")),
    ("2, 3", 1, ("0", "2", "1")),
    ("{1, 2}, {2, 2}", 2, ("0, 0", "1, 0", "1, 1", "-1, 0", "0, -1")),
    ("{2, 1}, {2, 2}", 2, ("0, 0", "0, 1", "1, 1", "0, 2")),
    ("{1, 3}, {2, 2}, {16}, {1, 2}", 2, ("0, 0", "1, -1", "1, 1")),
    ("{1, 1, 2}, {2, 1, 2}", 3, ("0, 0, 0", "1, 0, 1", "0, 1, 0")),
)
# a change of one field, by rank
CHANGES = {
    1: (("global_address", "d1"), ("global_dim", "0, 2"), ("global_dim", "0, 1"), ("elemtype", "5")),
    2: (("global_address", "d1"), ("global_dim", "0, 1"), ("global_dim", "1, 1"), ("fill_mode", "0")),
    3: (("global_address", "d1"), ("global_dim", "2, 1"), ("element_stride", "1, 2")),
}


def tensors(rng: random.Random) -> Program:
    """One thread, or a second one, copies a box of a tensor that a thread may write or whose map it may change."""
    kit = Kit(rng)
    shape, rank, places = kit.pick(SHAPES)
    store = kit.chance(0.35)
    declared = [
        f".global .align 64 .b8 m[128] = tensormap(g, u64, {shape});",
        f".global .align 16 .u64 g[4] = {'{0, 0, 0, 0}' if store else '{7, 0, 1, 0}'};",
        f".global .align 16 .u64 c[4] = {'{0, 0, 0, 0}' if store else '{9, 0, 2, 0}'};",
        f".shared .align 16 .u64 s[2] @ cta 0 = {'{1, 2}' if store else '{5, 5}'};",
        ".shared .b64 b @ cta 0 = mbarrier(0, 16);",
        ".reg .u64 P0:d1 = c;",
    ]
    kit.count = 1
    apart = kit.chance(0.5)
    changes = kit.chance(0.6)
    flag = apart and (changes or kit.chance(0.5))
    if flag:
        declared.append(".global .u32 f = 0;")
    if changes:
        for _ in range(kit.pick((1, 1, 2))):
            field, value = kit.pick(CHANGES[rank])
            kind = "b64" if field == "global_address" else "b32"
            kit.add(f"tensormap.replace.tile.{field}.global.b1024.{kind}", f" [m], {value}")
        if kit.chance(0.8):
            kit.add("fence.proxy.tensormap::generic.release", "", None, kit.pick(("cta", "gpu", "gpu")))
    elif apart:
        kit.store("u64", kit.pick(("g", "g+8", "g+24")), 3, space=".global")
    threads = []
    if apart:
        if flag:
            kit.publish("f", kit.pick(("cta", "gpu")))
        threads.append(("cta 0", kit.take()))
    label = kit.subscribe("f", kit.pick(("cta", "gpu")), guarded=True) if flag else None
    if changes and kit.chance(0.7):
        kit.add("fence.proxy.tensormap::generic.acquire", " [m], 128", None, kit.pick(("cta", "gpu")))
    elif kit.chance(0.5):
        kit.async_fence(("",))
    copy(kit, rank, kit.pick(places), store)
    kit.label(label)
    threads.append(("cta 0", kit.take()))
    return program(declared, threads, "g[0] == 1")


def copy(kit: Kit, rank: int, place: str, store: bool) -> None:
    """Out of shared memory, by a copy or a reduction, or into it; what came is looked at."""
    where = f" [m, {{{place}}}]"
    if not store:
        kit.add(
            f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes", f" [s],{where}, [b]"
        )
        over = after(kit, wait(kit, "b", 0))
        kit.load("u64", kit.pick(("s", "s+8")), space=".shared")
        kit.label(over)
        return
    if kit.chance(0.4):
        kit.add(f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.bulk_group", f"{where}, [s]")
    else:
        kit.add(f"cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group", f"{where}, [s]")
    kit.add("cp.async.bulk.commit_group")
    if kit.chance(0.8):
        kit.add(f"cp.async.bulk.wait_group{kit.pick(('', '', '.read'))}", " 0")
    kit.load("u64", kit.pick(("g", "g+8", "g+16")), space=".global")
