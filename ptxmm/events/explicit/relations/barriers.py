"""The base relations that the phases of barriers, and the order of operations on mbarriers, decide (docs/cat.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from ptxmm.events.explicit.barriers.mbarrier import EPOCH
from ptxmm.events.explicit.relations.execution import Layout
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import Barrier, BarrierReduction, CopyAsyncArrive, MbarrierArrive, TensorCommit, WarpBarrier

PHASES = frozenset((
    "barphase", "syncbar", "sync_barrier", "warpphase", "cluphase", "mbphase", "mbnext", "mbcount", "exitphase",
    "mblate", "mbpassed",
))  # fmt: skip
"""The base relations that a run of the barriers decides."""

_MBARRIER = ("MBA", "MBW")
_ARRIVALS = (MbarrierArrive, CopyAsyncArrive, TensorCommit)
"""What arrives at an mbarrier: not what counts bytes only (9.7.14.15.7)."""

_Phased = tuple[int, int]
"""The phase of an event, and its number."""


def phase_relations(
    layout: Layout, phases: Mapping[EventId, int | None], order: Iterable[EventId] = ()
) -> dict[str, int]:
    """The relations of ``PHASES``: arrivals related to the waits of the same phase of the same barrier, of an mbarrier
    to the waits for that phase or a later one of the same initialisation; an arrival to what comes next at its
    mbarrier in ``order``, up to the next arrival; and the exits of those that have not arrived, but would have had to,
    to the waits."""
    found = dict.fromkeys(PHASES, 0)
    if not phases:
        return found
    groups: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    mbarriers: dict[object, tuple[list[_Phased], list[_Phased]]] = {}
    for i, phase in _executed(layout, phases):
        event = layout.events[i]
        if event.kind in _MBARRIER:
            initialisation = event.mbarrier, phase // EPOCH
            mbarriers.setdefault(initialisation, ([], []))[event.kind == "MBW"].append((phase, i))
            continue
        key = _group(layout, i, phase)
        if key is not None:
            groups.setdefault(key, ([], []))[event.kind in ("BW", "CW")].append(i)
    for key, (arrivals, waits) in groups.items():
        found[str(key[0])] |= layout.algebra.relation(product(arrivals, waits))
        found["exitphase"] |= layout.algebra.relation(product(_exits(layout, arrivals), waits))
    for before, after in mbarriers.values():
        for name, pairs in _at_mbarrier(layout, before, after).items():
            found[name] |= layout.algebra.relation(pairs)
    found["syncbar"] = found["sync_barrier"] = found["barphase"]
    found["mbnext"] = _next(layout, phases, order)
    found["mbcount"] = _counted(layout, phases, order)
    return found


def _executed(layout: Layout, phases: Mapping[EventId, int | None]) -> Iterator[tuple[int, int]]:
    """The events of barriers, each with its phase."""
    for i, event in enumerate(layout.events[: layout.initial_first]):
        phase = phases.get(event.id)
        if phase is not None:
            yield i, phase
        elif event.kind == "BW" and layout.scene.test.dialect and event.id in phases:
            yield i, 0  # its arrival is not of the chosen subset, but it waits with the group (A27)


def _at_mbarrier(
    layout: Layout, before: Sequence[_Phased], after: Sequence[_Phased]
) -> dict[str, list[tuple[int, int]]]:
    """What the operations on one initialised mbarrier relate: those ``before`` that may end a phase, and the waits."""
    late = [(p, a) for p, a in before if p % EPOCH and isinstance(layout.events[a].op, _ARRIVALS)]
    return {
        "mblate": [(a, a) for _, a in late],
        "mbpassed": [(w, a) for q, w in after for p, a in late if p <= q],
        "mbphase": [(a, w) for p, a in before for q, w in after if p < q],
    }


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


def _exits(layout: Layout, arrivals: Sequence[int]) -> list[int]:
    """The exits of the threads that a phase with these ``arrivals`` would have had to wait for otherwise: of the CTA or
    the cluster, of the lanes of a mask, and, where the number of threads is given, of the warps that have arrived."""
    places, event = layout.scene.places, layout.events[arrivals[0]]
    arrived = {layout.thread_of[a] for a in arrivals}
    mine = places[layout.thread_of[arrivals[0]]]
    if event.barrier is None:
        group = {t for t, place in enumerate(places) if place.cluster == mine.cluster}
    elif isinstance(event.op, WarpBarrier):
        lanes = [t for t, place in enumerate(places) if place.warp == mine.warp]
        group = {t for lane, t in enumerate(lanes) if event.barrier[0] >> lane & 1}
    elif event.barrier[1] is None:
        group = {t for t, place in enumerate(places) if place.cta == mine.cta}
    else:
        warps = {places[t].warp for t in arrived}
        group = {t for t, place in enumerate(places) if place.warp in warps}
    threads = layout.scene.test.threads
    exits = (layout.numbers.get((EventId(t, len(threads[t].body)), "EX")) for t in sorted(group - arrived))
    return [number for number in exits if number is not None]


def _counted(layout: Layout, phases: Mapping[EventId, int | None], order: Iterable[EventId]) -> int:
    """``mbcount``: in ``order``, the operations on an mbarrier that come before an arrival that returns its state."""
    earlier: dict[tuple[object, int], list[int]] = {}
    pairs = []
    for identity in order:
        phase, i = phases.get(identity), layout.numbers.get((identity, "MBA"))
        if i is None or phase is None:
            continue
        before = earlier.setdefault((layout.events[i].mbarrier, phase // EPOCH), [])
        op = layout.events[i].op
        if isinstance(op, MbarrierArrive) and op.dst is not None:
            pairs += [(a, i) for a in before]
        before.append(i)
    return layout.algebra.relation(pairs)


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
