"""Random programs: atomic operations that release and acquire on a location that others write as well."""

from __future__ import annotations

import random

from tests.random_families import Kit, program
from tests.random_programs import Program

_SCOPES = ("gpu", "gpu", "sys", "cta")
_SEMS = ("release", "acq_rel", "release", "relaxed", "acquire")
_OPERATIONS = ("add.u32 {r}, [x], 1", "exch.b32 {r}, [x], 3", "cas.b32 {r}, [x], 0, 1", "or.b32 {r}, [x], 2")


def atomics(rng: random.Random) -> Program:
    """An atomic publishes, also without a load after it; who sees that writes the same location, or passes it on."""
    kit = Kit(rng)
    threads = []
    for number in range(kit.pick((2, 2, 3))):
        for _ in range(kit.pick((1, 1, 2))):
            _atomic(kit) if number == 0 or kit.chance(0.3) else _follow(kit)
        threads.append((f"cta {kit.pick((0, number))}", kit.take()))
    return program([".global .u32 x = 0;", ".global .u32 y = 0;"], threads, "x == 1")


def _atomic(kit: Kit) -> None:
    kit.add("atom", ".global." + kit.pick(_OPERATIONS).format(r=kit.fresh()), kit.pick(_SEMS), kit.pick(_SCOPES))
    if kit.chance(0.2):
        kit.store("u32", "y", 1, kit.pick(("weak", "release")), "gpu", ".global")


def _follow(kit: Kit) -> None:
    """Acquire what the atomic wrote, and write after it."""
    kit.load("u32", "x", kit.pick(("acquire", "acquire", "relaxed")), kit.pick(_SCOPES), ".global")
    if kit.chance(0.2):
        kit.fence(("gpu",))
    if kit.chance(0.3):
        kit.add("red", f".global.add.u32 [x], {kit.pick((4, 8))}", "relaxed", kit.pick(_SCOPES))
    else:
        kit.store("u32", "x", kit.pick((5, 7)), kit.pick(("weak", "weak", "relaxed")), "gpu", ".global")
