"""Random programs: rows of matrices, and products of a warpgroup as asynchronous reads of shared memory."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Program

PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def matrices(rng: random.Random) -> Program:
    """Two threads of a CTA (or one alone) that access two arrays by words, by rows and by products."""
    kit = Kit(rng)
    count = kit.pick((1, 2, 2, 2))
    order = kit.pick(("bar", "bar", "flag", "none")) if count > 1 else "none"
    declared = [
        f".shared .align 16 .u32 s[4] @ cta 0 = {{{kit.pick((0, 1))}, 0, 0, 0}};",
        f".shared .align 16 .u32 t[{kit.pick((4, 8))}] @ cta 0 = {{0}};",
    ]
    if order == "flag":
        declared.append(".shared .u32 f @ cta 0 = 0;")
    products = 0

    def word(write: bool) -> None:
        at = kit.pick(("s", "s", "s", "s+4", "t", "t+12"))
        sem = kit.pick(("weak", "weak", "weak", "relaxed"))
        if write:
            kit.store("u32", at, kit.pick((2, 3)), sem, "cta", ".shared")
        else:
            kit.load("u32", at, sem, "cta", ".shared")

    def row(write: bool) -> None:
        trans = kit.pick(("", "", ".trans"))
        name = kit.pick(("s", "s", "s", "t"))
        if write:
            value = kit.fresh("k")
            kit.add("mov", f".b32 {value}, {kit.pick((2, 3, 0x20003))}")
            kit.add(f"stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16", f" [{name}], {{{value}}}")
        else:
            registers = [kit.fresh("k") for _ in range(kit.pick((1, 1, 2)))]
            into = ", ".join(registers)
            kit.add(f"ldmatrix.sync.aligned.m8n8.x{len(registers)}{trans}.shared.b16", f" {{{into}}}, [{name}]")

    def product() -> None:
        nonlocal products
        products += 1
        descriptors = []
        for name in (kit.pick("sst"), kit.pick("sst"))[: 1 + kit.chance(0.3)]:
            descriptors.append(kit.fresh("d"))
            kit.add("mov", f".u64 {descriptors[-1]}, {name}")
        results = ", ".join(kit.fresh("t") for _ in range(4))
        parts = [kit.fresh("k") for _ in range(4)] if len(descriptors) == 1 else []
        late = kit.chance(0.05)  # then the product uses what no fence has been issued for
        for part in parts[late:]:
            kit.add("mov", f".b32 {part}, 0")
        roll = kit.rng.random()
        if roll < 0.75:
            kit.async_fence(("", "", "", ".shared::cta", ".global"))
        if not 0.6 < roll < 0.65:
            kit.add("wgmma.fence.sync.aligned")
        if kit.chance(0.15):
            word(kit.chance(0.6))
        if parts:
            if late:
                kit.add("mov", f".b32 {parts[0]}, 0")
            kit.add(PRODUCT, f" {{{results}}}, {{{', '.join(parts)}}}, {descriptors[0]}, 0, 1, 1, 0")
        else:
            kit.add(PRODUCT, f" {{{results}}}, {descriptors[0]}, {descriptors[1]}, 0, 1, 1, 0, 0")
        if kit.chance(0.9):
            kit.add("wgmma.commit_group.sync.aligned")
        if kit.chance(0.75):
            kit.add("wgmma.wait_group.sync.aligned", f" {kit.pick((0, 0, 0, 1))}")

    def access(write: bool) -> None:
        roll = kit.rng.random()
        if not write and roll < 0.5 and not products:
            product()
        elif roll < 0.75:
            row(write)
        else:
            word(write)

    access(kit.chance(0.8))
    if count == 1 or kit.chance(0.4):
        access(kit.chance(0.3))
    if count == 1:
        access(kit.chance(0.6))
        return program(declared, [("cta 0", kit.take())], "s[0] == 1")
    if kit.chance(0.2):
        kit.async_fence()
    if order == "bar":
        kit.add("bar.sync", " 0")
    elif order == "flag":
        kit.publish("f", "cta", ".shared")
    threads = [("cta 0", kit.take())]
    label = None
    if order == "bar":
        kit.add("bar.sync", " 0")
    elif order == "flag":
        label = kit.subscribe("f", "cta", ".shared", guarded=kit.chance(0.3))
    access(kit.chance(0.3))
    if kit.chance(0.3):
        access(kit.chance(0.6))
    kit.label(label)
    threads.append(("cta 0", kit.take()))
    return program(declared, threads, "s[0] == 1")
