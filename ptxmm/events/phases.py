"""The base relations that the phases of barriers, and the order of operations on mbarriers, decide (semantics 1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ptxmm.events.barriers.mbarrier import EPOCH
from ptxmm.program.test import EventId
from ptxmm.ptx.ops import Barrier, BarrierReduction

if TYPE_CHECKING:
    from ptxmm.events.execution import Layout

PHASES = frozenset(("barphase", "syncbar", "sync_barrier", "warpphase", "cluphase", "mbphase", "mbnext"))
"""The base relations that a run of the barriers decides."""

_MBARRIER = ("MBA", "MBW")


def phase_relations(
    layout: Layout, phases: Mapping[EventId, int | None], order: Iterable[EventId] = ()
) -> dict[str, int]:
    """The relations of ``PHASES``: arrivals related to the waits of the same phase of the same barrier, of an mbarrier
    to the waits for that phase or a later one of the same initialisation; and an arrival to what comes next at its
    mbarrier in ``order``, up to the next arrival."""
    found = dict.fromkeys(PHASES, 0)
    groups: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    mbarriers: dict[object, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
    for i in range(layout.initial_first):
        event = layout.events[i]
        phase = phases.get(event.id)
        if phase is None:
            continue
        if event.kind in _MBARRIER:
            initialisation = event.mbarrier, phase // EPOCH
            mbarriers.setdefault(initialisation, ([], []))[event.kind == "MBW"].append((phase, i))
            continue
        key = _group(layout, i, phase)
        if key is not None:
            groups.setdefault(key, ([], []))[event.kind in ("BW", "CW")].append(i)
    for key, (arrivals, waits) in groups.items():
        found[str(key[0])] |= layout.algebra.relation((a, w) for a in arrivals for w in waits)
    for before, after in mbarriers.values():
        found["mbphase"] |= layout.algebra.relation((a, w) for p, a in before for q, w in after if p < q)
    found["syncbar"] = found["sync_barrier"] = found["barphase"]
    found["mbnext"] = _next(layout, phases, order)
    return found


def _group(layout: Layout, i: int, phase: int) -> tuple[object, ...] | None:
    """The relation and the phase of a barrier that event ``i`` belongs to, if any."""
    event, place = layout.events[i], layout.places[i]
    if event.kind in ("CA", "CW"):
        return "cluphase", place.cluster, phase
    if event.barrier is None:
        return None
    if isinstance(event.op, Barrier | BarrierReduction):
        instance = event.op.instance if isinstance(event.op, Barrier) else None
        return "barphase", place.cta, instance, event.barrier[0], phase
    return "warpphase", place.warp, event.barrier[0], phase


def _next(layout: Layout, phases: Mapping[EventId, int | None], order: Iterable[EventId]) -> int:
    """``mbnext``: each arrival and the events at the same initialised mbarrier that follow it without another one."""
    latest: dict[tuple[object, int], int] = {}
    pairs = []
    for identity in order:
        phase = phases.get(identity)
        i = next((n for n in (layout.numbers.get((identity, k)) for k in _MBARRIER) if n is not None), None)
        if i is None or phase is None:
            continue
        key = layout.events[i].mbarrier, phase // EPOCH
        if key in latest:
            pairs.append((latest[key], i))
        if layout.events[i].kind == "MBA":
            latest[key] = i
    return layout.algebra.relation(pairs)
