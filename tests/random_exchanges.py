"""Random programs: barriers with reductions and exchanges between the lanes of a warp."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

V, W, P, Q = "r1", "r2", "p1", "p2"
"""The registers of each thread: two words, two predicates."""


def text(seed: int) -> str:
    """A program as text; it reads the same on every machine."""
    return exchanges(random.Random(f"exchanges/{seed}")).text()


def exchanges(rng: random.Random) -> Program:
    """2 or 3 threads; the first two are often of one warp and mostly do the same."""
    kit = Kit(rng)
    count = rng.choice((2, 2, 3))
    warp, alike, common = rng.random() < 0.75, rng.random() < 0.7, rng.getrandbits(32)
    threads = []
    for t in range(count):
        kit.add("mov", f".u32 {V}, {rng.choice((0, 1))}")
        kit.add("mov", f".u32 {W}, 0")
        for predicate in (Q, P):
            kit.add("setp.eq", f".u32 {predicate}, 0, 1")
        same = random.Random(common) if alike and t < 2 else None
        for _ in range(rng.randint(1, 4)):
            chosen = same or rng
            if t < 2 and chosen.random() < 0.12:
                use(kit, chosen)
            else:
                instruction(kit, chosen)
            if same is not None and rng.random() < 0.4:
                own(kit, rng)
        place = f"cta {0 if t < 2 else rng.choice((0, 1))}" + (", warp 0" if warp and t < 2 else "")
        threads.append((place, kit.take()))
    declared = [".global .u32 x[2] = {0, 0};", ".global .u32 y = 0;"]
    if any("[b]" in line.tail for _, lines in threads for line in lines):
        declared.append(f".shared .b64 b @ cta 0 = mbarrier({kit.pick((1, 2, 2))});")
    return program(declared, threads, "x[0] == 0")


def use(kit: Kit, rng: random.Random) -> None:
    """What a thread was given as an address, as the predicate of an arrival, or of a wait."""
    roll = rng.random()
    if roll < 0.4:
        a, b, c = (f"d{i}" for i in (1, 2, 3))
        kit.add("and", f".b32 r3, {W}, 1")
        kit.add("mul.wide", f".u32 {a}, r3, 4")
        kit.add("mov", f".u64 {b}, x")
        kit.add("add", f".u64 {c}, {a}, {b}")
        if rng.random() < 0.5:
            kit.add("ld", f".global.u32 {V}, [{c}]", "relaxed", "gpu")
        else:
            kit.store("u32", c, 3, "relaxed", "gpu", ".global")
    elif roll < 0.7:
        kit.add("mbarrier.arrive", ".shared::cta.b64 _, [b]", "release", "cta")
        kit.guard(Q, rng.random() < 0.5)
    else:
        kit.add("mbarrier.test_wait.parity", f".shared::cta.b64 {Q}, [b], 0", "acquire", "cta")


def own(kit: Kit, rng: random.Random) -> None:
    """What only one of two threads does that are otherwise alike."""
    if rng.random() < 0.3:
        instruction(kit, rng)
    elif rng.random() < 0.5:
        kit.store("u32", "x", W, "relaxed", "gpu", ".global")
    else:
        kit.add("ld", f".global.u32 {V}, [y]", "relaxed", "gpu")


def instruction(kit: Kit, rng: random.Random) -> None:
    guard = rng.choice(("", "", "", f"@{Q} ", f"@!{Q} "))
    value = rng.choice((V, V, W))
    mask = rng.choice((3, 3, 3, 3, 1, 2, 7))
    vote = rng.choice((Q, f"!{Q}"))
    roll = rng.random()
    if roll < 0.25:
        kit.add("ld", f".global.u32 {V}, [{rng.choice('xy')}]", "relaxed", "gpu")
        new, guard = Line("setp.ne", f".u32 {Q}, {V}, {rng.choice((0, 0, 1))}"), ""
    elif roll < 0.45:
        new = Line("st", f".global.u32 [{rng.choice('xy')}], {rng.choice((value, value, 1, 2))}", "relaxed", "gpu")
    elif roll < 0.54:
        others = (
            Line("fence", "", "sc", "gpu"),
            Line("barrier.sync", " 0"),
            Line("bar.warp.sync", f" {mask}"),
            Line("add", f".u32 {V}, {V}, 1"),
        )
        new, guard = rng.choice(others), ""
    elif roll < 0.64:
        new = Line("barrier.red.popc", f".u32 {V}, {rng.choice((0, 0, 0, 1))}, {vote}")
    elif roll < 0.7:
        new = Line(f"barrier.red.{rng.choice(('and', 'or'))}", f".pred {Q}, 0, {vote}")
    elif roll < 0.82:
        mode, lane = rng.choice(("idx", "idx", "bfly", "up", "down")), rng.choice((0, 0, 1, 1, 1, 2, V))
        into = f"{rng.choice((V, W))}|{rng.choice((Q, P))}"
        new = Line(f"shfl.sync.{mode}", f".b32 {into}, {value}, {lane}, {rng.choice((31, 31, 0))}, {mask}")
    elif roll < 0.88:
        new = Line(f"vote.sync.{rng.choice(('any', 'all', 'uni'))}", f".pred {Q}, {vote}, {mask}")
    elif roll < 0.94:
        op = rng.choice(("add", "min", "max"))
        new = Line(f"redux.sync.{op}", f".{rng.choice(('u32', 's32'))} {W}, {value}, {mask}")
    else:
        new, guard = (
            rng.choice(
                (
                    Line("vote.sync.ballot", f".b32 {W}, {Q}, {mask}"),
                    Line("match.any.sync", f".b32 {W}, {value}, {mask}"),
                    Line("match.all.sync", f".b32 {W}|{Q}, {value}, {mask}"),
                    Line("elect.sync", f" {W}|{Q}, {mask}"),
                    Line("activemask", f".b32 {W}"),
                )
            ),
            "",
        )
    kit.lines.append(new)
    if guard:
        kit.guard(guard.strip("@! "), "!" in guard)
