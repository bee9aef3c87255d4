"""Random programs: several fences of one kind in each other's scope, so that Fence-SC order decides."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Line, Program

PLACEMENTS = ("cta 0", "cta 1", "cta 2", "cta 0, gpu 1")


def fences(rng: random.Random) -> Program:
    """Two to four threads that store, load and exchange, with ``fence.sc`` between; most of device scope."""
    variables = ("x", "y", "z")[: rng.choice((2, 2, 3))]
    scopes = rng.choice((("gpu",), ("gpu",), ("gpu", "sys"), ("cta", "gpu", "sys")))
    threads: list[tuple[str, tuple[Line, ...]]] = []
    seen: list[str] = []
    for number in range(rng.choice((2, 3, 3, 4))):
        kit = Kit(rng)
        for step in range(rng.choice((2, 2, 3))):
            if step:
                kit.fence(scopes, ("sc", "sc", "sc", "acq_rel"))
            place, sem, scope = rng.choice(variables), rng.choice(("relaxed", "relaxed", "weak")), rng.choice(scopes)
            what = rng.random()
            if what < 0.45:
                kit.store("u32", place, rng.choice((1, 2)), sem, scope, ".global")
            elif what < 0.9:
                seen.append(f"P{number}:{kit.load('u32', place, sem, scope, '.global')} == {rng.choice((0, 0, 1))}")
            else:
                register = kit.fresh()
                kit.add("atom", f".global.exch.b32 {register}, [{place}], 3", "relaxed", scope)
                seen.append(f"P{number}:{register} == 0")
        threads.append((rng.choice(PLACEMENTS), tuple(kit.lines)))
    condition = " /\\ ".join(seen) or f"{variables[0]} == 1"
    return program([f".global .u32 {v} = 0;" for v in variables], threads, condition)
