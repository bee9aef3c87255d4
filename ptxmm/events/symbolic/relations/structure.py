"""Base relations of asynchronous operations, proxy fences and grids (docs/cat.md), and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations, product

from ptxmm.events.symbolic.event import Event, Operation
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.relations.barriers import BARRIERS, Related
from ptxmm.events.symbolic.relations.tags import in_tensor_memory
from ptxmm.events.symbolic.values.domain import equal
from ptxmm.events.symbolic.variants import NONE, Alternatives
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.shared.convergence import warpgroups
from ptxmm.program.test import OwnerPath, Test
from ptxmm.ptx.ops import (
    SHAPE_BITS,
    AsyncStore,
    Atomic,
    BulkCopy,
    CopyAsyncArrive,
    Fence,
    GenericToAsyncFence,
    Load,
    ProxyFence,
    Store,
    TensorCommit,
    TensorCopy,
    TensorFence,
    TensorProduct,
    TensorWait,
    Wgmma,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula

# -- asynchronous operations --


def _operations(program: Program) -> Iterator[tuple[Operation, list[Event]]]:
    for operation in program.operations:
        yield operation, [program.events[e] for e in operation.events]


def issue(program: Program, alternatives: Alternatives = NONE) -> Iterator[Related]:
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


def _waited(program: Program) -> Iterator[Related]:
    """What ``tcgen05.wait`` has completed comes before the operations of tcgen05 after it in its thread."""
    for wait in program.events:
        if isinstance(wait.op, TensorWait):
            later = [
                e.number
                for e in program.events[wait.number :]
                if e.thread == wait.thread and e.asynchronous and program.operation(e).kind == "tensor"
            ]
            yield from ((a, b, wait.presence) for a, b in product(wait.after, later))


def issue_all(program: Program, alternatives: Alternatives = NONE) -> Iterator[Related]:
    """The issue of an operation and all that performs it."""
    for operation, events in _operations(program):
        for before, event in product(operation.issues, events):
            yield before, event.number, alternatives.there(program.events[before], program.formulas)


def aord(program: Program) -> Iterator[Related]:
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
    yield from _arrivals(program)
    yield from _waited(program)


def _arrivals(program: Program) -> Iterator[Related]:
    """What asynchronous arrivals come after: earlier copies, for ``tcgen05.commit`` earlier products and copies too."""
    for event in program.events:
        if isinstance(event.op, CopyAsyncArrive) and event.kind == "MBA":
            yield from ((a, event.number, TRUE) for a in event.after)
        if isinstance(event.op, TensorCommit) and event.kind == "MBA":
            for earlier in program.events[: event.number]:
                done = isinstance(earlier.op, TensorCopy | TensorProduct) and earlier.asynchronous
                if done and earlier.thread == event.thread:
                    yield earlier.number, event.number, TRUE


def acomp(program: Program) -> Iterator[Related]:
    """What completes before a wait for groups ends, or before the thread does."""
    for event in program.events:
        if event.kind in ("AW", "API"):
            yield from ((a, event.number, TRUE) for a in event.after)
    yield from _of_warpgroups(program)


def _of_warpgroups(program: Program) -> Iterator[Related]:
    """A group of products is one of the warpgroup (9.7.16.7.2, A62): a thread of it that waits for the group knows that
    the part of every other one is complete."""
    groups = warpgroups(program.test)
    for wait in (e for e in program.events if groups and e.kind == "AW"):
        for done in program.events:
            if done.kind == "PF" and done.asynchronous and isinstance(done.op, Wgmma) and done.thread != wait.thread:
                number = program.operation(done).group
                if groups[done.thread] == groups[wait.thread] is not None and 0 <= number < wait.group:
                    yield done.number, wait.number, TRUE


# -- proxy fences --


def pfence(program: Program, alternatives: Alternatives = NONE) -> Iterator[Related]:
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
    return item.owner == place.path and not place.host


def accum(program: Program) -> Iterator[Related]:
    """What two products in tensor memory access, if their accumulator, shape and kind are the same."""
    products = [e for e in program.events if isinstance(e.op, TensorProduct) and in_tensor_memory(e)]
    for a, b in product(products, products):
        (here, one), (there, other) = program.operation(a).product, program.operation(b).product
        if here == there:
            shapes = product(one.items(), other.items())
            same = [program.formulas.both(f, g) for (v, f), (w, g) in shapes if not (v ^ w) & SHAPE_BITS]
            yield a.number, b.number, program.formulas.any(same)


def tmcov(program: Program) -> Iterator[Related]:
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


def rcov(program: Program) -> Iterator[Related]:
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


def lives(program: Program) -> Iterator[Related]:
    """What is done with shared memory from elsewhere in a cluster, or by a bulk copy, and the events in program order
    of the threads of the CTA that it lies in, if all of these end; of kernels only. Where these have no events it is
    related to itself."""
    test = program.test
    if test.claims is None:
        return
    shared = {key: item.owner for key, item in test.objects.items() if item.space == "shared" and item.owner}
    ctas = {t: p.path for t, p in enumerate(t.placement for t in test.threads) if not p.host}
    for event in program.events:
        touched: dict[OwnerPath, list[Formula]] = {}
        for owner, when in _shared(event, shared, ctas.get(event.thread)):
            touched.setdefault(owner, []).append(when)
        for owner, formulas in touched.items():
            ended = program.formulas.all([program.threads[t].completed for t, cta in ctas.items() if cta == owner])
            when = program.formulas.both(program.formulas.any(formulas), ended)
            others = [e.number for e in program.events if not e.asynchronous and ctas.get(e.thread) == owner]
            if not others and owner in ctas.values():
                others = [event.number]
            for other in others:
                yield event.number, other, when


def _shared(
    event: Event, owners: Mapping[str, OwnerPath], own: OwnerPath | None
) -> Iterator[tuple[OwnerPath, Formula]]:
    """The CTAs whose shared memory ``event``, of a thread of the CTA ``own``, touches, if it does so from elsewhere or
    is that of a bulk copy. ``owners``: of the objects."""
    copied = event.asynchronous and isinstance(event.op, BulkCopy)
    places = ((place.physical, place.when) for place in event.places)
    mbarriers = ((key, when) for (key, _), when in event.mbarriers.items())
    for key, when in chain(places, mbarriers):
        owner = owners.get(key)
        if owner is not None and (copied or owner != own):
            yield owner, when


# -- data races --


def same_value(program: Program) -> Iterator[Related]:
    """Writes of the same bytes that may race with each other, when they write the same."""
    test, formulas = program.test, program.formulas
    if test.same_value is None:
        return
    writes = [e for e in program.events if e.kind == "W" and test.may_race(e.id.site)]
    for a, b in combinations(writes, 2):
        there = [
            formulas.both(p.when, q.when)
            for p, q in product(a.places, b.places)
            if (p.physical, p.offset, p.size) == (q.physical, q.offset, q.size)
        ]
        if there:
            when = formulas.both(formulas.any(there), equal(formulas, a.value, b.value))
            yield from ((a.number, b.number, when), (b.number, a.number, when))


def api(program: Program) -> Iterator[Related]:
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


def api_indirect(program: Program) -> Iterator[Related]:
    """The pairs of ``api`` from a grid to ``griddepcontrol.wait`` of one that is not the next one of its GPU."""
    grids = {(t.placement.gpu, t.placement.grid) for t in program.test.threads if not t.placement.host}
    for a, b, when in api(program):
        mine, other = (program.test.threads[program.events[e].thread].placement for e in (a, b))
        between = any(gpu == mine.gpu and mine.grid < grid < other.grid for gpu, grid in grids)
        if between and program.events[b].id.instruction >= 0:
            yield a, b, when


def trigger(program: Program) -> Iterator[Related]:
    """``griddepcontrol.launch_dependents``, the first of its thread (9.7.14.13: others do nothing more), and the starts
    of the threads of the next grid of the GPU, if that may start before this one ends."""
    launches = [e for e in program.events if e.kind == "GD"]
    starts = [e for e in program.events if e.kind == "API" and e.id.instruction == -1] if launches else []
    placements = [t.placement for t in program.test.threads]
    for a, b in product(launches, starts):
        mine, other = placements[a.thread], placements[b.thread]
        later = {p.grid for p in placements if not p.host and p.gpu == mine.gpu and p.grid > mine.grid}
        following = not other.host and other.gpu == mine.gpu and other.grid == min(later, default=None)
        if following and other.overlap:
            before = [e.presence for e in launches if e.thread == a.thread and e.number < a.number]
            yield a.number, b.number, -program.formulas.any(before)


VARYING: dict[str, Callable[[Program, Alternatives], Iterator[Related]]] = {
    "pfence": pfence,
    "issue": issue,
    "issue-all": issue_all,
}
"""Those that depend on the form of an instruction that may take several."""

RELATIONS: dict[str, Callable[[Program], Iterator[Related]]] = {
    **BARRIERS,
    "aord": aord,
    "acomp": acomp,
    "accum": accum,
    "tmcov": tmcov,
    "rcov": rcov,
    "lives": lives,
    "same-value": same_value,
    "api": api,
    "api-indirect": api_indirect,
    "trigger": trigger,
}
