"""The weaker forms of one instruction, and how far each is from it: what a nearest miss may change.

The distance counts steps: one for each level of order (acquire, release: relaxed: weak; ``fence.sc``:
``fence.acq_rel``: ``fence.acquire``, ``fence.release``) and one for each level of scope (sys, gpu, cluster, cta). A
form differs in its order or in its scope, never in both, but that weak accesses have no scope.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.forms import below, one_way
from ptxmm.analysis.strength.superposition import FENCES
from ptxmm.cat.ir import Coverage
from ptxmm.program.test import Test
from ptxmm.ptx import ops


class Weaker(Struct, frozen=True):
    """A weaker form (None: no instruction) and how many steps away it is; ``change``: order, scope or removal."""

    op: ops.Op | None
    change: str
    distance: int


Scoped = ops.Load | ops.Store | ops.Atomic | ops.Fence | ops.TensormapFence | ops.MbarrierArrive | ops.MbarrierWait
_Orders = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each ``.sem`` those one step weaker, those two steps weaker."""

_LOADS: _Orders = {"acquire": (("relaxed",), ("weak",)), "relaxed": (("weak",),)}
_STORES: _Orders = {"release": (("relaxed",), ("weak",)), "relaxed": (("weak",),)}
_ATOMICS: _Orders = {
    "acq_rel": (("acquire", "release"), ("relaxed",)),
    "acquire": (("relaxed",),),
    "release": (("relaxed",),),
}
_REDUCTIONS: _Orders = {"release": (("relaxed",),)}
_FENCES: _Orders = {"sc": (("acq_rel",),)}
_FENCES_86: _Orders = {"sc": (("acq_rel",), ("acquire", "release")), "acq_rel": (("acquire", "release"),)}


def weaker(test: Test, op: ops.Op, coverage: Coverage) -> Iterator[Weaker]:
    """The weaker forms of ``op`` with the same events and values, in scopes that the model has (PTX ISA 8.4, 8.5).

    Only in files in PTX 8.6 or later there are relaxed operations of mbarriers and fences that only acquire or release.

    Accesses of several elements do not become weak ones, which could be divided otherwise; nor do accesses through
    other proxies change. What forms waits and counts in a phase is kept.
    """
    if isinstance(op, ops.Load | ops.Store):
        if op.proxy == "generic" and not op.mmio:
            yield from _access(op, coverage)
        return
    for distance, sem in _steps(_orders(test, op), getattr(op, "sem", "")):
        yield Weaker(replace(op, **{"sem": sem}), "order", distance)
    match op:
        case (
            ops.Atomic(proxy="generic") | ops.Fence() | ops.TensormapFence() | ops.MbarrierArrive() | ops.MbarrierWait()
        ):
            yield from _scopes(op, coverage)
        case ops.ProxyFence(kind="async", space="shared::cluster"):
            yield Weaker(replace(op, space="shared::cta"), "scope", 1)
    if isinstance(op, FENCES):
        yield Weaker(None, "removal", 1)


def _orders(test: Test, op: ops.Op) -> _Orders:
    """What may stand in the place of each order of ``op``."""
    match op:
        case ops.Atomic(proxy="generic"):
            return _ATOMICS if op.returns else _REDUCTIONS
        case ops.Fence():
            return _FENCES_86 if one_way(test.isa) else _FENCES
        case ops.MbarrierArrive() | ops.MbarrierWait() if one_way(test.isa):
            return {"acquire": (("relaxed",),), "release": (("relaxed",),)}
        case ops.ClusterBarrier(kind="arrive"):
            return _REDUCTIONS
    return {}


def _access(op: ops.Load | ops.Store, coverage: Coverage) -> Iterator[Weaker]:
    if op.sem == "weak":
        return
    several = len(op.dst if isinstance(op, ops.Load) else op.values) > 1
    found = _steps(_LOADS if isinstance(op, ops.Load) else _STORES, op.sem)
    for distance, sem in ((1, "weak"),) if op.volatile else found:
        if sem != "weak":
            yield Weaker(replace(op, sem=sem), "order", distance)
        elif not several:
            yield Weaker(replace(op, sem=sem, scope=None, volatile=False), "order", distance)
    if not op.volatile:
        yield from _scopes(op, coverage)


def _scopes(op: Scoped, coverage: Coverage) -> Iterator[Weaker]:
    assert op.scope is not None
    for distance, scope in enumerate(reversed(below(op.scope, coverage)), 1):
        yield Weaker(replace(op, scope=scope), "scope", distance)


def _steps(orders: _Orders, sem: str) -> Iterator[tuple[int, str]]:
    return ((distance, s) for distance, sems in enumerate(orders.get(sem, ()), 1) for s in sems)
