"""The weaker forms of one instruction, and how far each is from it: what a nearest miss may change.

The distance counts steps: one for each level of order (acquire, release: relaxed: weak; ``fence.sc``:
``fence.acq_rel``: ``fence.acquire``, ``fence.release``) and one for each level of scope (sys, gpu, cluster, cta). A
form differs in its order or in its scope, never in both, but that weak accesses have no scope.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.forms import below, orders_of, with_order
from ptxmm.analysis.strength.superposition import FENCES
from ptxmm.cat.ir import Coverage
from ptxmm.program.test import Test
from ptxmm.ptx import ops


class Weaker(Struct, frozen=True):
    """A weaker form (None: no instruction) and how many steps away it is; ``change``: order, scope or removal."""

    op: ops.Op | None
    change: str
    distance: int


def weaker(test: Test, op: ops.Op, coverage: Coverage) -> Iterator[Weaker]:
    """The weaker forms of ``op`` with the same events and values, in scopes that the model has (PTX ISA 8.4, 8.5).

    Only in files in PTX 8.6 or later there are relaxed operations of mbarriers and fences that only acquire or release.

    Accesses of several elements do not become weak ones, which could be divided otherwise; nor do accesses through
    other proxies change. What forms waits and counts in a phase is kept.
    """
    for distance, sem in _orders(test, op):
        scope = None if sem == "weak" else getattr(op, "scope", None)
        yield Weaker(with_order(op, sem, scope), "order", distance)
    match op:
        case ops.Load() | ops.Store() if op.scope is None or op.volatile or op.mmio or op.proxy != "generic":
            pass
        case (
            ops.Load()
            | ops.Store()
            | ops.Atomic(proxy="generic")
            | ops.Fence()
            | ops.TensormapFence()
            | ops.MbarrierArrive()
            | ops.MbarrierWait()
        ):
            assert op.scope is not None
            for distance, narrower in enumerate(reversed(below(op.scope, coverage)), 1):
                yield Weaker(replace(op, scope=narrower), "scope", distance)
        case ops.ProxyFence(kind="async", space="shared::cluster"):
            yield Weaker(replace(op, space="shared::cta"), "scope", 1)
    if isinstance(op, FENCES):
        yield Weaker(None, "removal", 1)


def _orders(test: Test, op: ops.Op) -> list[tuple[int, str]]:
    """The orders weaker than that of ``op``, each with its distance, the nearest first."""
    match op:
        case ops.Multimem():
            return []
        case ops.ClusterBarrier(kind="arrive", sem="release"):
            return [(1, "relaxed")]
    orders = orders_of(test.isa, op)
    given = next((set(steps) for sem, steps in orders if sem == getattr(op, "sem", None)), set())
    found = [(len(given) - len(steps), sem) for sem, steps in orders if sem is not None and given.issuperset(steps)]
    return sorted((item for item in found if item[0] > 0), key=lambda item: item[0])
