"""Random programs: ``discard``, and matrices that a warp loads, multiplies and stores."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Program

PLACE = "sync.aligned"


def undetermined(rng: random.Random) -> Program:
    """Two threads that discard, store and load the same bytes of an array, or pass a matrix on."""
    return matrices(rng) if rng.random() < 0.5 else discards(rng)


def discards(rng: random.Random) -> Program:
    """Bytes, halves and words of an array that one or both threads discard."""
    kit = Kit(rng)
    scope, far = kit.pick((("gpu", "cta 1"), ("cta", "cta 0"), ("cta", "cta 1")))
    count = kit.pick((1, 2, 2, 2))
    declared = [f".global .align 128 .u32 x[32] = {{{kit.pick((0, 1))}}};", ".global .u32 f = 0;"]
    kind = kit.pick(("u8", "u8", "u16", "u32"))
    guarded = kit.chance(0.3)

    def access(write: bool) -> None:
        at = kit.pick(("x", "x", "x+4"))
        sem = kit.pick(("weak", "weak", "weak", "relaxed"))
        if write:
            loaded = kit.loaded.get(kind)
            kit.store(kind, at, kit.pick(loaded) if loaded and kit.chance(0.6) else 2, sem, scope, ".global")
        elif kit.chance(0.15):
            kit.add("ld", f".global.v2.u8 {{{kit.fresh()}, {kit.fresh()}}}, [x]")
        else:
            kit.load(kind, at, sem, scope, ".global")

    def discard() -> None:
        kit.add("discard", f"{kit.pick(('', '.global'))}.L2 [x], 128")
        if kit.chance(0.1):
            kit.add("setp.eq", f".u32 p77, {kit.load('u32', 'f', space='.global')}, 0")
            kit.lines[-1], kit.lines[-2], kit.lines[-3] = kit.lines[-3], kit.lines[-1], kit.lines[-2]
            kit.guard("p77")

    if kit.chance(0.6):
        access(kit.chance(0.7))
    discard()
    if kit.chance(0.4) or count == 1:
        access(kit.chance(0.4))
    if count == 1:
        access(True)
        access(False)
        return program(declared, [("cta 0", kit.take())], "x[0] == 1")
    if kit.chance(0.7):
        kit.publish("f", scope)
    threads = [("cta 0", kit.take())]
    label = kit.subscribe("f", scope, guarded=guarded) if kit.chance(0.7) else None
    if kit.chance(0.15):
        discard()
    access(kit.chance(0.2))
    if kit.chance(0.4):
        access(kit.chance(0.5))
    kit.label(label)
    threads.append((far, kit.take()))
    return program(declared, threads, "x[0] == 1")


def matrices(rng: random.Random) -> Program:
    """A matrix that one thread loads or stores and the other accesses by words, or as a whole."""
    kit = Kit(rng)
    layout = kit.pick(("row", "row", "col"))
    space = kit.pick((".shared", ".global"))
    declared = [
        f"{space} .align 32 .u32 c[64]{' @ cta 0' if space == '.shared' else ''} = {{{kit.pick((0, 1))}}};",
        f"{space} .align 32 .u32 d[68]{' @ cta 0' if space == '.shared' else ''} = {{0}};",
        f"{space} .u32 f{' @ cta 0' if space == '.shared' else ''} = 0;",
    ]
    kind = kit.pick(("u32", "u32", "u16", "u8"))

    def fragment(count: int) -> str:
        return ", ".join(kit.fresh("t") for _ in range(count))

    def tile() -> None:
        """C is loaded and stored as D, perhaps after a product."""
        stride = kit.pick(("", "", ", 8"))
        c = fragment(2)
        kit.add("wmma.load.c", f".{PLACE}.{layout}.m8n8k32{space}.s32 {{{c}}}, [c]{stride}")
        if kit.chance(0.3):
            a, b, d = fragment(1), fragment(1), fragment(2)
            kit.add("wmma.load.a", f".{PLACE}.row.m8n8k32{space}.s4 {{{a}}}, [d]")
            kit.add("wmma.load.b", f".{PLACE}.col.m8n8k32{space}.u4 {{{b}}}, [d]")
            if kit.chance(0.5):
                kit.add("wmma.load.b", f".{PLACE}.col.m8n8k32{space}.s4 {{{b}}}, [c]")
            kit.add("wmma.mma", f".{PLACE}.row.col.m8n8k32.s32.s4.s4.s32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}}")
            c = d
        if kit.chance(0.7):
            kit.add("wmma.store.d", f".{PLACE}.{layout}.m8n8k32{space}.s32 [d], {{{c}}}{kit.pick(('', ', 8'))}")

    def word(write: bool, names: tuple[str, ...]) -> None:
        at = kit.pick(names)
        if write:
            kit.store(kind, at, kit.pick((2, 3)), space=space)
        else:
            kit.load(kind, at, space=space)

    if kit.chance(0.3):
        word(True, ("c", "d"))
    tile()
    if kit.chance(0.3):
        word(kit.chance(0.5), ("d",))
    if kit.chance(0.7):
        kit.publish("f", "cta", space)
    threads = [("cta 0", kit.take())]
    label = kit.subscribe("f", "cta", space, guarded=kit.chance(0.3)) if kit.chance(0.7) else None
    word(kit.chance(0.3), ("d", "d", "d+4", "c"))
    if kit.chance(0.3):
        word(True, ("c",))
    kit.label(label)
    threads.append(("cta 0", kit.take()))
    return program(declared, threads, "d[0] == 1")
