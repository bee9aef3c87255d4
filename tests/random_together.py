"""Random programs: threads that go on by what a reduction of a barrier or a vote returns to all of them."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Program

REDUCTIONS = ("or.pred", "and.pred", "or.pred", "and.pred", "popc.u32")
VOTES = ("any.pred", "all.pred", "uni.pred", "ballot.b32")


def together(rng: random.Random) -> Program:
    """Two threads of a CTA, mostly with the same branches, and one that writes what they read; now and then a thread
    goes the other way, so that barriers are misused or threads wait for ever."""
    kit = Kit(rng)
    warp, common = rng.random() < 0.4, rng.getrandbits(32)
    threads = []
    for _ in range(2):
        same = random.Random(common)
        for round_ in range(rng.choice((1, 1, 2))):
            step(kit, same, warp, round_)
        threads.append(("cta 0" + (", warp 0" if warp else ""), kit.take()))
    for place in kit.pick((("x",), ("x", "y"))):
        kit.store("u32", place, kit.pick((1, 1, 2)), *kit.pick((("relaxed", "gpu"), ("release", "gpu"))), ".global")
    threads.append(("cta 1", kit.take()))
    return program([".global .u32 x = 0;", ".global .u32 y = 0;"], threads, "x == 0")


def step(kit: Kit, same: random.Random, warp: bool, round_: int) -> None:
    """Read, reduce, and do one thing or another by the result; ``same`` decides what mates have alike."""
    read = kit.load("u32", kit.pick(("x", "x", "y")), kit.pick(("relaxed", "acquire")), "gpu", ".global")
    kit.add(kit.pick(("setp.eq", "setp.eq", "setp.ne")), f".u32 p{round_}, {read}, {kit.pick((0, 0, 1))}")
    kind = same.choice(VOTES if warp else REDUCTIONS)
    name, typ = kind.split(".")
    result, decided, label = f"{'q' if typ == 'pred' else 'n'}{round_}", f"q{round_}", f"L{round_}"
    if warp:
        kit.add(f"vote.sync.{name}", f".{typ} {result}, p{round_}, 0xffffffff")
    else:
        kit.add(f"barrier.red.{name}", f".{typ} {result}, 0, p{round_}")
    if typ != "pred":
        kit.add("setp.gt", f".u32 {decided}, {result}, {same.choice((0, 1, 32))}")
    negated = same.choice(("", "!"))
    if kit.chance(0.1):
        negated = "" if negated else "!"
    kit.add("bra", f" {label}")
    kit.guard(decided, bool(negated))
    other = same.choice(("barrier", "store", "load", "nothing"))
    if other == "barrier":
        kit.add("bar.warp.sync" if warp else "barrier.sync", " 0xffffffff" if warp else " 0")
    elif other == "store":
        kit.store("u32", "y", kit.pick((1, 2)), "relaxed", "gpu", ".global")
    elif other == "load":
        kit.load("u32", "y", "relaxed", "gpu", ".global")
    kit.label(label)
