"""Steps of barriers made by hand, and tests around them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import MemoryObject, Placement, Test, Thread
from ptxmm.ptx.ops import Type

B, C = ("b", 0), ("c", 0)


def step(kind: str, number: int = 0, **fields: object) -> Step:
    """A step without an id; of an mbarrier, ``b`` if nothing else is said. Arrivals are 1 if nothing else is said."""
    if kind.startswith("mb."):
        fields.setdefault("place", B)
    if kind in ("mb.arrive", "mb.drop", "mb.increment") and not number:
        number = 1
    return Step(EventId(0, 0), kind, number, **fields)  # type: ignore[arg-type]


def arrive(number: int = 1, **fields: object) -> Step:
    return step("mb.arrive", number, **fields)


def wait(result: int = 1, **fields: object) -> Step:
    if "parity" not in fields:
        fields.setdefault("state", 0)
    return step("mb.wait", result, **fields)


SYNC, ARRIVE, WAIT = step("bar.sync"), step("cluster.arrive"), step("cluster.wait")


def numbered(threads: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """The steps with ids: step i of thread t is (t, i, 0, 0)."""
    return [[replace(s, id=EventId(t, i)) for i, s in enumerate(mine)] for t, mine in enumerate(threads)]


def make_test(placements: Sequence[Placement], mbarriers: dict[str, tuple[int, int] | None]) -> Test:
    """A test with threads at these places, and these mbarriers (None: not initialised)."""
    word = Type("b", 64)
    objects = {
        key: MemoryObject(key, key, "shared", word, 1, False, (0,), 4096 * (i + 1), key, key, mbarrier=(counts,))
        for i, (key, counts) in enumerate(mbarriers.items())
    }
    return Test("t", tuple(Thread(f"P{i}", p, (), {}) for i, p in enumerate(placements)), objects, None)
