"""Base relations of barriers, mbarriers, asynchronous operations, proxy fences and grids (docs/cat.md).

Each function gives pairs of events by number with a formula that holds where the pair is related, given that both
events are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from ptxmm.events.symbolic.barriers.scenarios import Step, cta_key
from ptxmm.events.symbolic.barriers.state import Members, members
from ptxmm.events.symbolic.event import Event, Mbarrier, Operation
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.tags import in_tensor_memory
from ptxmm.events.symbolic.variants import NONE, Alternatives
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.test import Test
from ptxmm.ptx.ops import (
    AsyncStore,
    Atomic,
    BulkCopy,
    CopyAsyncArrive,
    Fence,
    GenericToAsyncFence,
    Load,
    MbarrierArrive,
    ProxyFence,
    Store,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorProduct,
    TensorWait,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula

Item = tuple[int, int, Formula]

_PHASE = (1 << 20) - 1
"""The number of a phase, without that of the initialisation."""


# -- barriers and mbarriers --


def _by_phase(program: Program, steps: tuple[str, ...], arrive: str, wait: str) -> Iterator[Item]:
    """Arrivals and waits of one phase of one barrier, as the scenario that is chosen has it.

    In the untyped dialect an arrival without a phase is not of the chosen subset, but its wait is of the group (A27).
    """
    halves: dict[object, dict[str, list[Event]]] = {}
    for event in program.events:
        if event.kind in (arrive, wait):
            halves.setdefault(event.id, {arrive: [], wait: []})[event.kind].append(event)
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        groups: dict[object, tuple[list[object], list[object]]] = {}
        for step in scenario.steps:
            phase = phases.get(step.id)
            if step.kind in steps and (phase is not None or program.test.dialect):
                arrived, waiting = groups.setdefault((_barrier(program.test, step), phase or 0), ([], []))
                waiting.append(step.id)
                if phase is not None:
                    arrived.append(step.id)
        for arrived, waiting in groups.values():
            for a, w in product(arrived, waiting):
                for x, y in product(halves.get(a, {}).get(arrive, ()), halves.get(w, {}).get(wait, ())):
                    yield x.number, y.number, selector


def _barrier(test: Test, step: Step) -> object:
    """The barrier that a step is at."""
    thread = step.id.thread
    cta, place = cta_key(test, thread), test.threads[thread].placement
    if step.kind.startswith("bar."):
        return cta, step.instance, step.barrier
    if step.kind == "warp.sync":
        return cta, place.warp if place.warp is not None else ("thread", thread), step.mask
    return (place.gpu, place.grid, place.cluster) if place.cluster is not None else cta


def barphase(program: Program) -> Iterator[Item]:
    """Barriers of a CTA."""
    return _by_phase(program, ("bar.sync", "bar.arrive", "bar.red"), "BA", "BW")


def warpphase(program: Program) -> Iterator[Item]:
    """``bar.warp.sync``."""
    return _by_phase(program, ("warp.sync",), "BA", "BW")


def cluphase(program: Program) -> Iterator[Item]:
    """Barriers of a cluster."""
    return _by_phase(program, ("cluster.arrive", "cluster.wait"), "CA", "CW")


def exitphase(program: Program) -> Iterator[Item]:
    """The exits of threads that a barrier has not waited for, and the waits that it lets pass."""
    exits = {event.thread: event for event in program.events if event.kind == "EX"}
    waits: dict[object, list[Event]] = {}
    for event in program.events if exits else ():
        if event.kind in ("BW", "CW"):
            waits.setdefault(event.id, []).append(event)
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


def mbphase(program: Program) -> Iterator[Item]:
    """Arrivals of the phases that a wait found complete, since the mbarrier was initialised."""
    arrivals: dict[object, list[Event]] = {}
    waits: dict[object, list[Event]] = {}
    for event in program.events:
        if event.kind in ("MBA", "MBW"):
            (arrivals if event.kind == "MBA" else waits).setdefault(event.id, []).append(event)
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        steps: dict[Mbarrier, dict[str, list[tuple[object, int]]]] = {}
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
                    for one, other in product(arrivals.get(a, ()), waits.get(w, ())):
                        yield one.number, other.number, selector


def _late(program: Program) -> Iterator[tuple[Formula, list[object], list[tuple[object, object]]]]:
    """In each scenario the arrivals in phases that are not the first ones of their initialisation, and with each the
    waits that have found the phase before complete."""
    for scenario, selector in program.scenarios:
        phases = dict(scenario.phases)
        arrivals: list[tuple[object, Mbarrier | None, int]] = []
        waits: list[tuple[object, Mbarrier | None, int]] = []
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


def mblate(program: Program) -> Iterator[Item]:
    """Each arrival in a phase that is not the first one, and itself."""
    events = _at_mbarriers(program)
    for selector, late, _ in _late(program):
        yield from ((e.number, e.number, selector) for a in late for e in events.get((a, "MBA"), ()))


def mbpassed(program: Program) -> Iterator[Item]:
    """A wait that has found a phase complete, and the arrivals of the next one."""
    events = _at_mbarriers(program)
    for selector, _, pairs in _late(program):
        for w, a in pairs:
            for x, y in product(events.get((w, "MBW"), ()), events.get((a, "MBA"), ())):
                yield x.number, y.number, selector


def _at_mbarriers(program: Program) -> dict[tuple[object, str], list[Event]]:
    found: dict[tuple[object, str], list[Event]] = {}
    for event in program.events:
        if event.kind in ("MBA", "MBW"):
            found.setdefault((event.id, event.kind), []).append(event)
    return found


def mbnext(program: Program) -> Iterator[Item]:
    """The latest arrival at an mbarrier before each operation on it."""
    events: dict[object, list[Event]] = {}
    for event in program.events:
        if event.kind in ("MBA", "MBW"):
            events.setdefault(event.id, []).append(event)
    for scenario, selector in program.scenarios:
        for before, after in scenario.next:
            for one, other in product(events.get(before, ()), events.get(after, ())):
                yield one.number, other.number, selector


def mbcount(program: Program) -> Iterator[Item]:
    """The operations on an mbarrier before an arrival that returns its state."""
    events: dict[object, list[Event]] = {}
    for event in program.events:
        if event.kind == "MBA":
            events.setdefault(event.id, []).append(event)
    for scenario, selector in program.scenarios:
        latest = {after: before for before, after in scenario.next if before in events and after in events}
        for after in latest:
            returning = [e for e in events[after] if isinstance(e.op, MbarrierArrive) and e.op.dst is not None]
            before = latest.get(after) if returning else None
            while before is not None:
                for one, other in product(events[before], returning):
                    yield one.number, other.number, selector
                before = latest.get(before)


def mbobj(program: Program) -> Iterator[Item]:
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


# -- asynchronous operations --


def _operations(program: Program) -> Iterator[tuple[Operation, list[Event]]]:
    for operation in program.operations:
        yield operation, [program.events[e] for e in operation.events]


def issue(program: Program, alternatives: Alternatives = NONE) -> Iterator[Item]:
    """The issue of an operation and its memory accesses."""
    for operation, events in _operations(program):
        accesses = [e for e in events if e.kind in ("R", "W")]
        if operation.kind == "tensor":
            issued = _tensor_issue(program, operation, accesses)
        else:
            issued = ((program.events[a], b) for a, b in product(operation.issues, accesses))
        for before, access in issued:
            yield before.number, access.number, alternatives.there(before, program.formulas)


def _tensor_issue(program: Program, operation: Operation, accesses: list[Event]) -> Iterator[tuple[Event, Event]]:
    """What accesses of tcgen05 come after: ``after_thread_sync`` fences before them in their thread, and, if they are
    to shared memory, ``fence.proxy.async``."""
    (own,) = operation.issues
    for fence in program.events[:own]:
        op = fence.op
        if fence.thread != operation.thread:
            continue
        everything = isinstance(op, TensorFence) and op.kind == "after"
        if everything or (isinstance(op, ProxyFence) and op.kind == "async"):
            yield from ((fence, access) for access in accesses if everything or not in_tensor_memory(access))


def _waited(program: Program) -> Iterator[Item]:
    """What ``tcgen05.wait`` has completed comes before the operations of tcgen05 after it in its thread."""
    for wait in program.events:
        if isinstance(wait.op, TensorWait):
            later = [
                e.number
                for e in program.events[wait.number :]
                if e.thread == wait.thread and e.asynchronous and program.operation(e).kind == "tensor"
            ]
            yield from ((a, b, wait.presence) for a, b in product(wait.after, later))


def issue_all(program: Program, alternatives: Alternatives = NONE) -> Iterator[Item]:
    """The issue of an operation and all that performs it."""
    for operation, events in _operations(program):
        for before, event in product(operation.issues, events):
            yield before, event.number, alternatives.there(program.events[before], program.formulas)


def aord(program: Program) -> Iterator[Item]:
    """The order inside an operation: the read of a tensor map, the other reads, writes, the fences after each, then the
    completion on an mbarrier."""
    for operation, events in _operations(program):
        reads = [e for e in events if e.kind == "R"]
        writes = [e for e in events if e.kind == "W"]
        fences = {part: [e for e in events if e.kind == "PF" and e.id.operand == part] for part in (0, 1)}
        completions = [e for e in events if e.kind == "MBA"]
        maps = [e for e in reads if e.id.operand == TENSORMAP]
        rest = [e for e in reads if e.id.operand != TENSORMAP]
        steps = [(maps, rest), (reads, writes), (reads, fences[0]), (reads, fences[1]), (writes, fences[1])]
        steps.append((fences[1] if operation.kind == "bulk" else writes, completions))
        for before, after in steps:
            yield from ((a.number, b.number, TRUE) for a, b in product(before, after))
    for event in program.events:
        if isinstance(event.op, CopyAsyncArrive) and event.kind == "MBA":
            yield from ((a, event.number, TRUE) for a in event.after)
        if isinstance(event.op, TensorCommit) and event.kind == "MBA":
            for earlier in program.events[: event.number]:
                done = isinstance(earlier.op, TensorCopy | TensorProduct) and earlier.asynchronous
                if done and earlier.thread == event.thread:
                    yield earlier.number, event.number, TRUE
    yield from _waited(program)


def acomp(program: Program) -> Iterator[Item]:
    """What completes before a wait for groups ends, or before the thread does."""
    for event in program.events:
        if event.kind in ("AW", "API"):
            yield from ((a, event.number, TRUE) for a in event.after)


# -- proxy fences --


def pfence(program: Program, alternatives: Alternatives = NONE) -> Iterator[Item]:
    """Proxy fences and the accesses that they are for (A33, A34); ``alternatives``: fences of several forms."""
    fences = [e for e in program.events if e.kind == "PF"]
    memory = [e for e in program.events if e.kind in ("R", "W")] if fences else []
    for fence in fences:
        for form, chosen in alternatives.of(fence) or ((fence, TRUE),):
            for access in memory:
                when = program.formulas.both(chosen, _fences(program, form, access))
                if when != FALSE:
                    yield fence.number, access.number, when


def _fences(program: Program, fence: Event, access: Event) -> Formula:
    op = fence.op
    if not isinstance(op, ProxyFence):  # the implicit one of a copy
        same = fence.operation == access.operation
        return TRUE if same and (fence.id.operand == 1 or access.kind == "R") else FALSE
    if op.kind != "async":
        return TRUE if isinstance(access.op, Load | Store | Atomic) and access.op.proxy == op.kind else FALSE
    covered = access.asynchronous and (
        isinstance(access.op, AsyncStore)
        or (access.id.operand != TENSORMAP and program.operation(access).kind in ("bulk", "wgmma"))
        or (program.operation(access).kind == "tensor" and not in_tensor_memory(access))
    )
    if not covered:
        return FALSE
    return program.formulas.any([p.when for p in access.places if _lies_in(program.test, p.physical, op.space, fence)])


def _lies_in(test: Test, key: str, space: str | None, fence: Event) -> bool:
    """Whether an object lies in the state space that a fence covers."""
    item = test.objects[key]
    if space is None:
        return True
    name, _, part = space.partition("::")
    if item.space != name:
        return False
    if part != "cta":
        return True
    place = test.threads[fence.thread].placement
    return item.owner == (place.gpu, place.grid, place.cluster, place.cta) and not place.host


def tmcov(program: Program) -> Iterator[Item]:
    """Acquire fences of the tensormap proxy and the reads of tensor maps within their 128 bytes."""
    fences = [e for e in program.events if e.covers]
    reads = [e for e in program.events if e.kind == "R" and e.id.operand == TENSORMAP] if fences else []
    for fence, read in product(fences, reads):
        inside = [
            program.formulas.both(p.when, q.when)
            for p in fence.covers
            for q in read.places
            if p.virtual == q.virtual and p.offset <= q.offset and q.offset + q.size <= p.offset + p.size
        ]
        if inside:
            yield fence.number, read.number, program.formulas.any(inside)


def rcov(program: Program) -> Iterator[Item]:
    """Fences with ``.sync_restrict`` and the operations, on mbarriers too, whose object lies in the space named."""
    fences = [
        (e, space)
        for e in program.events
        if isinstance(e.op, Fence | GenericToAsyncFence) and (space := e.op.restrict) is not None
    ]
    for (fence, space), event in product(fences, program.events if fences else ()):
        inside = [p.when for p in event.places if _lies_in(program.test, p.physical, space, fence)]
        inside += [when for (key, _), when in event.mbarriers.items() if _lies_in(program.test, key, space, fence)]
        if inside:
            yield fence.number, event.number, program.formulas.any(inside)


# -- grids and CTAs --


def lives(program: Program) -> Iterator[Item]:
    """What is done with shared memory from elsewhere in a cluster, or by a bulk copy, and the events in program order
    of the threads of the CTA that it lies in, if all of these end; of kernels only."""
    test = program.test
    if test.claims is None:
        return
    shared = {key: item.owner for key, item in test.objects.items() if item.space == "shared" and item.owner}
    ctas = {t: (p.gpu, p.grid, p.cluster, p.cta) for t, p in enumerate(t.placement for t in test.threads) if not p.host}
    for event in program.events:
        touched: dict[tuple[int, int, int | None, int | None], list[Formula]] = {}
        for key, when in [(p.physical, p.when) for p in event.places] + [(m[0], w) for m, w in event.mbarriers.items()]:
            owner = shared.get(key)
            copied = event.asynchronous and isinstance(event.op, BulkCopy)
            if owner is not None and (copied or owner != ctas.get(event.thread)):
                touched.setdefault(owner, []).append(when)
        for owner, formulas in touched.items():
            ended = program.formulas.all([program.threads[t].completed for t, cta in ctas.items() if cta == owner])
            when = program.formulas.both(program.formulas.any(formulas), ended)
            for other in program.events:
                if not other.asynchronous and ctas.get(other.thread) == owner:
                    yield event.number, other.number, when


def api(program: Program) -> Iterator[Item]:
    """The ends of the threads of a grid come before what waits for it: later grids of its GPU, unless they overlap
    it, and ``griddepcontrol.wait`` of every later grid."""
    events = [e for e in program.events if e.kind == "API"]
    for a, b in product(events, events):
        mine, other = (program.test.threads[e.thread].placement for e in (a, b))
        if mine.host or other.host or mine.gpu != other.gpu or mine.grid >= other.grid:
            continue
        ends = a.id.instruction == len(program.test.threads[a.thread].body)
        starts, waits = b.id.instruction == -1, 0 <= b.id.instruction < len(program.test.threads[b.thread].body)
        if ends and (waits or (starts and not other.overlap)):
            yield a.number, b.number, TRUE


def api_indirect(program: Program) -> Iterator[Item]:
    """The pairs of ``api`` from a grid to ``griddepcontrol.wait`` of one that is not the next one of its GPU."""
    grids = {(t.placement.gpu, t.placement.grid) for t in program.test.threads if not t.placement.host}
    for a, b, when in api(program):
        mine, other = (program.test.threads[program.events[e].thread].placement for e in (a, b))
        between = any(gpu == mine.gpu and mine.grid < grid < other.grid for gpu, grid in grids)
        if between and program.events[b].id.instruction >= 0:
            yield a, b, when


def trigger(program: Program) -> Iterator[Item]:
    """``griddepcontrol.launch_dependents``, the first of its thread (9.7.14.13: others do nothing more), and the starts
    of the threads of the next grid of the GPU, if that may start before this one ends."""
    launches = [e for e in program.events if e.kind == "GD"]
    starts = [e for e in program.events if e.kind == "API" and e.id.instruction == -1] if launches else []
    placements = [t.placement for t in program.test.threads]
    for a, b in product(launches, starts):
        mine, other = placements[a.thread], placements[b.thread]
        between = {p.grid for p in placements if not p.host and p.gpu == mine.gpu and mine.grid < p.grid < other.grid}
        if other.overlap and not other.host and other.gpu == mine.gpu and mine.grid < other.grid and not between:
            before = [e.presence for e in launches if e.thread == a.thread and e.number < a.number]
            yield a.number, b.number, -program.formulas.any(before)


VARYING: dict[str, Callable[[Program, Alternatives], Iterator[Item]]] = {
    "pfence": pfence,
    "issue": issue,
    "issue-all": issue_all,
}
"""Those that depend on the form of an instruction that may take several."""

RELATIONS: dict[str, Callable[[Program], Iterator[Item]]] = {
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
    "aord": aord,
    "acomp": acomp,
    "tmcov": tmcov,
    "rcov": rcov,
    "lives": lives,
    "api": api,
    "api-indirect": api_indirect,
    "trigger": trigger,
}
