"""Random programs: values that would be made of themselves through arrivals at barriers and mbarriers (8.10.4).

A ring of threads. Each looks at a location and then, in most cases because of what it has found, stores to the next one
or arrives somewhere; who waits there goes on in the same way. What one thread guards, another does in any case.
"""

from __future__ import annotations

import random

from msgspec.structs import replace

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

CONDITION = "x == 1"
MEANS = ("store", "store", "barrier", "number", "mbarrier", "mbarrier", "count", "address", "bytes", "copy", "state",
         "pending")  # fmt: skip
EXITS = {"exit": "cta {}", "lane": "warp 0, cta {}", "cluster": "cta 0, cluster {}"}
"""Barriers that a thread may leave out by its exit, and where its threads are."""


def arrivals(rng: random.Random) -> Program:
    """2 or 3 links of a ring, in one CTA; a barrier is waited at by a thread of its own."""
    kit = Kit(rng)
    means = [kit.pick(MEANS if kit.chance(0.7) else tuple(EXITS)) for _ in range(kit.pick((2, 2, 3)))]
    if all(m == "store" for m in means):
        means[0] = kit.pick(MEANS[2:])
    names = "xyz"[: len(means)]
    declared = [f".global .u32 {name} = 0;" for name in names]
    threads = []
    for i, how in enumerate(means):
        here, there = names[i], names[(i + 1) % len(means)]
        place = EXITS[how].format(10 + i) if how in EXITS else "cta 0"
        threads.append((place, link(kit, how, here, there, i, declared)))
        if how != "store":
            threads.append((place, waiter(kit, how, there, i)))
    return program(declared, threads, CONDITION)


def link(kit: Kit, how: str, here: str, there: str, i: int, declared: list[str]) -> tuple[Line, ...]:
    """The thread that looks at ``here``."""
    b, p = f"b{i}", kit.fresh("p")
    r = kit.load("u32", here, kit.pick(("relaxed", "weak")), "gpu", ".global")
    kit.add("setp.eq", f".u32 {p}, {r}, 1")
    guarded = kit.chance(0.8)
    match how:
        case "exit" | "lane" | "cluster":
            leave(kit, how, p, there)
            guarded = False
        case "store":
            kit.store("u32", there, kit.pick((1, r, r)), "relaxed", "gpu", ".global")
        case "barrier":
            kit.add("bar.arrive", f" {i}, 64")
        case "number":
            n = kit.fresh()
            kit.add("mad.lo", f".u32 {n}, {r}, 8, {i}")
            kit.add("bar.arrive", f" {n}, 64")
            guarded = False
        case "mbarrier" | "state" | "pending":
            declared.append(f".shared .b64 {b} @ cta 0 = mbarrier({1 if how == 'mbarrier' else 2});")
            kit.add("mbarrier.arrive", f".shared::cta.b64 _, [{b}]", "release", "cta")
        case "count":
            declared.append(f".shared .b64 {b} @ cta 0 = mbarrier(2);")
            n = kit.fresh()
            kit.add("min", f".u32 {n}, {r}, 1")
            kit.add("add", f".u32 {n}, {n}, 1")
            kit.add("mbarrier.arrive", f".shared::cta.b64 _, [{b}], {n}", "release", "cta")
            guarded = False
        case "address":
            declared.append(f".shared .b64 {b}[2] @ cta 0 = {{mbarrier(1), mbarrier(1)}};")
            d, e = kit.fresh("d"), kit.fresh("d")
            kit.add("mov", f".u64 {d}, {b}")
            kit.add("add", f".u64 {e}, {d}, 8")
            kit.add("selp", f".b64 {d}, {d}, {e}, {p}")
            kit.add("mbarrier.arrive", f".shared::cta.b64 _, [{d}]", "release", "cta")
            guarded = False
        case "bytes":
            declared.append(f".shared .b64 {b} @ cta 0 = mbarrier(0, 16);")
            n = kit.fresh()
            kit.add("min", f".u32 {n}, {r}, 1")
            kit.add("mul.lo", f".u32 {n}, {n}, 16")
            kit.add("mbarrier.complete_tx", f".shared::cta.b64 [{b}], {n}", "relaxed", "cta")
            guarded = False
        case "copy":
            declared.append(f".shared .b64 {b} @ cta 0 = mbarrier(0, 16);")
            declared.append(f".global .align 16 .u32 g{i}[4] = {{0, 0, 0, 0}};")
            declared.append(f".shared .align 16 .u32 s{i}[4] @ cta 0 = {{0, 0, 0, 0}};")
            tail = f" [s{i}], [g{i}], 16, [{b}]"
            kit.add("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", tail)
    if guarded:
        kit.guard(p)
    return kit.take()


def meet(kit: Kit, how: str) -> None:
    """A barrier that does not wait for threads that have exited."""
    if how == "cluster":
        kit.add("barrier.cluster.arrive", "", kit.pick(("release", "relaxed")))
        kit.add("barrier.cluster.wait")
    else:
        kit.add(*(("bar.warp.sync", " 3") if how == "lane" else ("bar.sync", " 0")))


def leave(kit: Kit, how: str, p: str, there: str) -> None:
    """Come to the barrier or not, mostly because of ``p``."""
    roll = kit.rng.random()
    if roll < 0.15:
        return
    if roll < 0.4:
        kit.add("exit")
        kit.guard(p)
        meet(kit, how)
    elif roll < 0.7:
        label = kit.fresh("L")
        kit.add("bra", f" {label}")
        kit.guard(p, negated=kit.chance(0.3))
        meet(kit, how)
        kit.label(label)
        if kit.chance(0.3):
            kit.load("u32", there, "relaxed", "gpu", ".global")
    else:
        first = len(kit.lines)
        meet(kit, how)
        for i in range(first, len(kit.lines)):
            kit.lines[i] = replace(kit.lines[i], guard=f"@!{p} ")


def waiter(kit: Kit, how: str, there: str, i: int) -> tuple[Line, ...]:
    """The thread that waits for the arrival of link ``i``, and stores to ``there``."""
    if how in EXITS:
        meet(kit, how)
        kit.store("u32", there, 1, "relaxed", "gpu", ".global")
        return kit.take()
    if how in ("barrier", "number"):
        kit.add("bar.sync", f" {i + 8 if how == 'number' and kit.chance(0.8) else i}, 64")
        kit.store("u32", there, 1, "relaxed", "gpu", ".global")
        return kit.take()
    p, b = kit.fresh("p"), f"b{i}"
    if how == "pending":
        state, count = kit.fresh("k"), kit.fresh()
        kit.add("mbarrier.arrive", f".shared::cta.b64 {state}, [{b}]", "release", "cta")
        kit.add("mbarrier.pending_count", f".b64 {count}, {state}")
        if kit.chance(0.4):
            kit.add("sub", f".u32 {count}, 2, {count}")
            kit.store("u32", there, count, "relaxed", "gpu", ".global")
            return kit.take()
        kit.add("setp.eq", f".u32 {p}, {count}, {kit.pick((1, 1, 2))}")
        kit.store("u32", there, 1, "relaxed", "gpu", ".global")
        if kit.chance(0.85):
            kit.guard(p)
        return kit.take()
    asked = ".parity"
    operand = "0"
    if how == "state":
        operand, asked = kit.fresh("k"), ""
        kit.add("mbarrier.arrive", f".shared::cta.b64 {operand}, [{b}]", "release", "cta")
    head = f"mbarrier.{kit.pick(('try_wait', 'test_wait'))}{asked}"
    kit.add(head, f".shared::cta.b64 {p}, [{b}], {operand}", "acquire", "cta")
    value: object = 1
    if kit.chance(0.3):
        value = kit.fresh()
        kit.add("selp", f".u32 {value}, 1, 0, {p}")
    kit.store("u32", there, value, "relaxed", "gpu", ".global")
    if value == 1 and kit.chance(0.85):
        kit.guard(p)
    return kit.take()
