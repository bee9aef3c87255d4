"""Base relations of barriers and mbarriers (docs/cat.md), as the scenario that is chosen has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from ptxmm.events.symbolic.barriers.scenarios import Step, cta_key
from ptxmm.events.symbolic.barriers.state import Members, members
from ptxmm.events.symbolic.event import Event, Mbarrier
from ptxmm.events.symbolic.program import Program
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import MbarrierArrive
from ptxmm.relations.formula import Formula

Related = tuple[int, int, Formula]
"""Two events by number, and a formula that holds where they are related, given that both are executed."""

_PHASE = (1 << 20) - 1
"""The number of a phase, without that of the initialisation."""


def _by_id(program: Program, *kinds: str) -> dict[EventId, list[Event]]:
    """The events of some kinds; those of one id are on paths that were not merged."""
    found: dict[EventId, list[Event]] = {}
    for event in program.events:
        if event.kind in kinds:
            found.setdefault(event.id, []).append(event)
    return found


def _between(before: Iterable[Event], after: Iterable[Event], when: Formula) -> Iterator[Related]:
    return ((a.number, b.number, when) for a, b in product(before, after))


def _by_phase(program: Program, steps: tuple[str, ...], arrive: str, wait: str) -> Iterator[Related]:
    """Arrivals and waits of one phase of one barrier, as the scenario that is chosen has it.

    In the untyped dialect an arrival without a phase is not of the chosen subset, but its wait is of the group (A27).
    """
    arrivals, waits = _by_id(program, arrive), _by_id(program, wait)
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        groups: dict[object, tuple[list[EventId], list[EventId]]] = {}
        for step in scenario.steps:
            phase = phases.get(step.id)
            if step.kind in steps and (phase is not None or program.test.dialect):
                arrived, waiting = groups.setdefault((_barrier(program.test, step), phase or 0), ([], []))
                waiting.append(step.id)
                if phase is not None:
                    arrived.append(step.id)
        for arrived, waiting in groups.values():
            for a, w in product(arrived, waiting):
                yield from _between(arrivals.get(a, ()), waits.get(w, ()), selector)


def _barrier(test: Test, step: Step) -> object:
    """The barrier that a step is at."""
    thread = step.id.thread
    cta, place = cta_key(test, thread), test.threads[thread].placement
    if step.kind.startswith("bar."):
        return cta, step.instance, step.barrier
    if step.kind == "warp.sync":
        return cta, place.warp if place.warp is not None else ("thread", thread), step.mask
    return (place.gpu, place.grid, place.cluster) if place.cluster is not None else cta


def barphase(program: Program) -> Iterator[Related]:
    """Barriers of a CTA."""
    return _by_phase(program, ("bar.sync", "bar.arrive", "bar.red"), "BA", "BW")


def warpphase(program: Program) -> Iterator[Related]:
    """``bar.warp.sync``."""
    return _by_phase(program, ("warp.sync",), "BA", "BW")


def cluphase(program: Program) -> Iterator[Related]:
    """Barriers of a cluster."""
    return _by_phase(program, ("cluster.arrive", "cluster.wait"), "CA", "CW")


def exitphase(program: Program) -> Iterator[Related]:
    """The exits of threads that a barrier has not waited for, and the waits that it lets pass."""
    exits = {event.thread: event for event in program.events if event.kind == "EX"}
    waits = _by_id(program, "BW", "CW") if exits else {}
    shared = members(program.test)
    for scenario, selector in program.scenarios if exits else ():
        phases = dict(scenario.phases)
        groups: dict[object, list[Step]] = {}
        for step in scenario.steps:
            phase = phases.get(step.id)
            if phase is not None and step.kind in _MEETING:
                groups.setdefault((step.kind.partition(".")[0], _barrier(program.test, step), phase), []).append(step)
        for steps in groups.values():
            gone = _awaited(shared, steps).difference(step.id.thread for step in steps)
            for t, step in product(sorted(gone), steps):
                if t in exits:
                    yield from ((exits[t].number, wait.number, selector) for wait in waits.get(step.id, ()))


_MEETING = ("bar.sync", "bar.arrive", "bar.red", "warp.sync", "cluster.arrive", "cluster.wait")


def _awaited(shared: Members, steps: list[Step]) -> set[int]:
    """The threads that a phase of a barrier waits for unless they have exited; ``steps``: what they do in it."""
    first = steps[0]
    mine = first.id.thread
    if first.kind == "warp.sync":
        return {t for lane, t in enumerate(shared.lanes(mine)) if (first.mask or 0) >> lane & 1}
    if first.kind.startswith("cluster."):
        return {t for t, cluster in enumerate(shared.clusters) if cluster == shared.clusters[mine]}
    if first.count is None:
        return {t for t, cta in enumerate(shared.ctas) if cta == shared.ctas[mine]}
    return {t for step in steps for t in shared.lanes(step.id.thread)}


def mbphase(program: Program) -> Iterator[Related]:
    """Arrivals of the phases that a wait found complete, since the mbarrier was initialised."""
    arrivals, waits = _by_id(program, "MBA"), _by_id(program, "MBW")
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        steps: dict[Mbarrier, dict[str, list[tuple[EventId, int]]]] = {}
        for step in scenario.steps:
            phase = phases.get(step.id)
            if step.place is None or phase is None:
                continue
            found = steps.setdefault(step.place, {"wait": [], "arrive": []})
            if step.kind == "mb.wait":
                found["wait"].append((step.id, phase))
            elif step.kind in ("mb.arrive", "mb.drop", "mb.expect", "mb.complete"):
                found["arrive"].append((step.id, phase))
        for found in steps.values():
            for (a, x), (w, y) in product(found["arrive"], found["wait"]):
                if x >> 20 == y >> 20 and x < y:
                    yield from _between(arrivals.get(a, ()), waits.get(w, ()), selector)


def _late(program: Program) -> Iterator[tuple[Formula, list[EventId], list[tuple[EventId, EventId]]]]:
    """In each scenario the arrivals in phases that are not the first ones of their initialisation, and with each the
    waits that have found the phase before complete."""
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        arrivals: list[tuple[EventId, Mbarrier | None, int]] = []
        waits: list[tuple[EventId, Mbarrier | None, int]] = []
        for step in scenario.steps:
            phase = phases.get(step.id)
            if phase is not None and step.kind in ("mb.arrive", "mb.drop"):
                arrivals.append((step.id, step.place, phase))
            elif phase is not None and step.kind == "mb.wait" and step.outcome:
                waits.append((step.id, step.place, phase))
        late = [a for a in arrivals if a[2] & _PHASE]
        pairs = [(w, a) for w, at, x in waits for a, place, y in late if at == place and x >> 20 == y >> 20 and x >= y]
        if late:
            yield selector, [a for a, _, _ in late], pairs


def mblate(program: Program) -> Iterator[Related]:
    """Each arrival in a phase that is not the first one, and itself."""
    arrivals = _by_id(program, "MBA")
    for selector, late, _ in _late(program):
        yield from ((e.number, e.number, selector) for a in late for e in arrivals.get(a, ()))


def mbpassed(program: Program) -> Iterator[Related]:
    """A wait that has found a phase complete, and the arrivals of the next one."""
    arrivals, waits = _by_id(program, "MBA"), _by_id(program, "MBW")
    for selector, _, pairs in _late(program):
        for w, a in pairs:
            yield from _between(waits.get(w, ()), arrivals.get(a, ()), selector)


def mbnext(program: Program) -> Iterator[Related]:
    """The latest arrival at an mbarrier before each operation on it."""
    events = _by_id(program, "MBA", "MBW")
    for scenario, selector in program.scenarios:
        for before, after in scenario.next:
            yield from _between(events.get(before, ()), events.get(after, ()), selector)


def mbcount(program: Program) -> Iterator[Related]:
    """The operations on an mbarrier before an arrival that returns its state."""
    events = _by_id(program, "MBA")
    for scenario, selector in program.scenarios:
        latest = {after: before for before, after in scenario.next if before in events and after in events}
        for after in latest:
            returning = [e for e in events[after] if isinstance(e.op, MbarrierArrive) and e.op.dst is not None]
            before = latest.get(after) if returning else None
            while before is not None:
                yield from _between(events[before], returning, selector)
                before = latest.get(before)


def mbobj(program: Program) -> Iterator[Related]:
    """An initialisation and the operations on the same mbarrier."""
    inits = [e for e in program.events if e.kind == "MBI"]
    others = [e for e in program.events if e.mbarriers and e.kind != "MBI"]
    for a, b in product(inits, others):
        same = [program.formulas.both(f, b.mbarriers[m]) for m, f in a.mbarriers.items() if m in b.mbarriers]
        if same:
            yield a.number, b.number, program.formulas.any(same)


def unready_mbarriers(program: Program) -> Iterator[tuple[int, Formula]]:
    """The operations on mbarriers that are not initialised before the program, and when they are."""
    ready = {
        (item.physical, index * item.type.bytes)
        for item in program.test.objects.values()
        for index, state in enumerate(item.mbarrier)
        if state is not None
    }
    for event in program.events:
        if event.mbarriers and event.kind != "MBI":
            unready = program.formulas.any([f for m, f in event.mbarriers.items() if m not in ready])
            yield event.number, program.formulas.both(event.presence, unready)


BARRIERS: dict[str, Callable[[Program], Iterator[Related]]] = {
    "barphase": barphase,
    "warpphase": warpphase,
    "cluphase": cluphase,
    "mbphase": mbphase,
    "exitphase": exitphase,
    "mbnext": mbnext,
    "mbcount": mbcount,
    "mblate": mblate,
    "mbpassed": mbpassed,
    "mbobj": mbobj,
}
