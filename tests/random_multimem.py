"""Random programs on multimem addresses, and on their locations by other names."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Program

SCOPES = ("cta", "gpu", "sys", "sys")


def multimem(rng: random.Random) -> Program:
    """Multimem operations, accesses of the locations by their own names, alias fences, and a flag."""
    kit = Kit(rng)
    packed = kit.chance(0.2)
    locations = ["x", "y", "z"] if kit.chance(0.15) and not packed else ["x", "y"]
    initial = "0x3c003c00" if packed else "0"
    declared = [f".global .align 8 .b32 {name}[2] = {{{initial}, {initial}}};" for name in locations]
    declared.append(f"m @ multimem {', '.join(locations)};")
    second = kit.chance(0.25)
    if second:
        declared.append("n @ multimem y, x;" if kit.chance(0.5) else "n @ generic aliases x;")
    both = second and "multimem" in declared[-1]
    flagged = kit.chance(0.55)
    if flagged:
        declared.append(".global .u32 f = 0;")

    def place() -> str:
        name = "n" if both and kit.chance(0.4) else "m"
        return name if kit.chance(0.8) else f"{name}+4"

    def order(write: bool, weak: float) -> tuple[str, str | None]:
        if kit.chance(weak):
            return "weak", None
        return kit.pick(("relaxed", "release" if write else "acquire")), kit.pick(SCOPES)

    def load() -> None:
        sem, scope = order(False, 0.45)
        if packed and kit.chance(0.6):
            kit.add(
                "multimem.ld_reduce", f".global.{kit.pick(('add', 'max'))}.f16x2 {kit.fresh()}, [{place()}]", sem, scope
            )
        elif packed and kit.chance(0.4):
            registers = ", ".join(kit.fresh("t") for _ in range(2))
            kit.add("multimem.ld_reduce", f".global.min.v2.f16 {{{registers}}}, [{place()}]", sem, scope)
        else:
            op = kit.pick(("add.u32", "add.u32", "max.s32", "or.b32", "xor.b32"))
            kit.add("multimem.ld_reduce", f".global.{op} {kit.fresh()}, [{place()}]", sem, scope)

    def store() -> None:
        sem, scope = order(True, 0.5)
        if packed:
            source = kit.fresh("t")
            kit.add("mov", f".b32 {source}, {kit.pick(('0x40004000', '0x3c004000'))}")
            if kit.chance(0.4):
                kit.add("multimem.st", f".global.v2.f16x2 [{place()[0]}], {{{source}, {source}}}", sem, scope)
            else:
                kit.add("multimem.st", f".global.f16x2 [{place()}], {source}", sem, scope)
        else:
            kit.add("multimem.st", f".global.b32 [{place()}], {kit.pick((1, 2, 3))}", sem, scope)

    def reduce() -> None:
        sem = kit.pick(("relaxed", "relaxed", "release"))
        if packed:
            source = kit.fresh("t")
            kit.add("mov", f".b32 {source}, 0x3c003c00")
            kit.add("multimem.red", f".global.add.f16x2 [{place()}], {source}", sem, kit.pick(SCOPES))
        else:
            op = kit.pick(("add.u32", "add.u32", "max.u32", "or.b32"))
            kit.add("multimem.red", f".global.{op} [{place()}], {kit.pick((1, 2))}", sem, kit.pick(SCOPES))

    def own(write: bool) -> None:
        name = kit.pick(("n" if second and not both else "x", "y")) + kit.pick(("", "", "+4"))
        sem, scope = order(write, 0.6)
        if write:
            kit.store("u32", name, kit.pick((4, 5)), sem, scope, ".global")
        else:
            kit.load("u32", name, sem, scope, ".global")

    def access(write: bool) -> None:
        if kit.chance(0.25):
            own(write)
        elif not write:
            load()
        elif kit.chance(0.6):
            store()
        else:
            reduce()
        if kit.chance(0.2):
            kit.add("fence.proxy.alias")

    threads = []
    for i, cta in enumerate(kit.pick(((0, 1), (0, 1), (0, 0), (0, 1, 2)))):
        write = i == 0 or kit.chance(0.35)
        label = None
        if flagged and not write:
            label = kit.subscribe("f", kit.pick(SCOPES), guarded=kit.chance(0.3))
        access(write)
        if kit.chance(0.5) and i < 2:
            access(write if kit.chance(0.5) else not write)
        kit.label(label)
        if flagged and write:
            kit.publish("f", kit.pick(SCOPES))
        threads.append((f"cta {cta}" if kit.chance(0.9) else f"gpu {i}, cta {cta}", kit.take()))
    return program(declared, threads, "x[0] == 1")
