"""Random programs of accesses of one size whose values differ in two bytes: torn reads and final values."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

VALUES = {
    "u16": ("0x0101", "0x0202", "0x0201", "0x0100"),
    "u32": ("0x00010001", "0x00020002", "0x02000001", "0x00010000", "1"),
    "u64": ("0x0000000100000001", "0x0200000000000002", "0x0000000000000001"),
}
SCOPES = ("cta", "gpu", "gpu")


def torn(rng: random.Random) -> Program:
    """Two or three threads that access one location, in some programs ordered by a flag; in some the next grid reads
    what is left."""
    kit = Kit(rng)
    kind = kit.pick(("u32", "u32", "u32", "u16", "u64"))
    values = VALUES[kind]
    declared = [f".global .{kind} x = {kit.pick((0, 0, values[0]))};", ".global .u32 f = 0;"]
    threads: list[tuple[str, tuple[Line, ...]]] = []
    for number in range(kit.pick((2, 2, 2, 3))):
        subscribes = number > 0 and kit.chance(0.4)
        label = kit.subscribe("f", "gpu", guarded=kit.chance(0.5)) if subscribes else None
        for _ in range(kit.pick((1, 1, 2)) if number < 2 else 1):
            roll = rng.random()
            if roll < 0.6:
                sem = kit.pick(("weak", "weak", "relaxed"))
                kit.store(kind, "x", kit.pick(values), sem, kit.pick(SCOPES), ".global")
            elif roll < 0.75 and kind != "u16":
                op = kit.pick(("exch", "or", "add"))
                suffix = kind if op == "add" else kind.replace("u", "b")
                tail = f".global.{op}.{suffix} {kit.fresh()}, [x], {kit.pick(values)}"
                kit.add("atom", tail, "relaxed", kit.pick(SCOPES))
            else:
                kit.load(kind, "x", kit.pick(("weak", "relaxed")), kit.pick(SCOPES), ".global")
        if number == 0 and kit.chance(0.5):
            kit.publish("f", "gpu")
        kit.label(label)
        threads.append((f"cta {number if kit.chance(0.8) else 0}, grid 0", kit.take()))
    if kit.chance(0.25):
        kit.load(kind, "x", "weak", space=".global")
        if kit.chance(0.3):
            kit.store(kind, "x", kit.pick(values), space=".global")
        threads.append(("cta 0, grid 1", kit.take()))
    return program(declared, threads, f"x == {values[1]}")
