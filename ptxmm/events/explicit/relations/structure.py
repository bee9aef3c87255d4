"""The base relations that follow from the events of an execution alone, row by row (docs/cat.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.events.explicit.relations.execution import Layout
from ptxmm.events.explicit.relations.tags import scope_of
from ptxmm.events.explicit.trace import Cell, Event
from ptxmm.program.identity import EventId
from ptxmm.program.shared.convergence import warpgroups
from ptxmm.ptx.ops import (
    AsyncStore,
    Atomic,
    BulkCopy,
    Fence,
    GenericToAsyncFence,
    Load,
    Multimem,
    ProxyFence,
    Store,
    TensorCommit,
    TensorCopy,
    TensorLoad,
    TensorProduct,
    TensorStore,
    Wgmma,
)

TENSOR_OPS = (TensorLoad, TensorStore, TensorCopy, TensorProduct, TensorCommit)
Builder = Callable[[Layout], list[int]]


def _po(layout: Layout) -> list[int]:
    """Transitive over what is not asynchronous; events of one instruction by lane and stage."""
    rows = [0] * len(layout.events)
    for first, end in layout.spans:
        later = 0  # events of later instructions
        position = end
        while position > first:
            turn = layout.events[position - 1].turn
            begin = position
            while begin > first and layout.events[begin - 1].turn == turn:
                begin -= 1
            here = [i for i in range(begin, position) if not layout.events[i].asynchronous]
            for i in here:
                rows[i] = later
                if len(here) > 1:
                    for j in here:
                        a, b = layout.events[i], layout.events[j]
                        if a.lane == b.lane and a.stage < b.stage:
                            rows[i] |= 1 << j
            for i in here:
                later |= 1 << i
            position = begin
    return rows


def _rmw(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i in layout.reads:
        event = layout.events[i]
        if isinstance(event.op, Atomic | BulkCopy | AsyncStore | Multimem):
            other = layout.numbers.get((event.id, "W"))
            if other is not None:
                rows[i] = 1 << other
    return rows


def _dependency(which: str) -> Builder:
    def build(layout: Layout) -> list[int]:
        rows = [0] * len(layout.events)
        known: dict[tuple[int, int], frozenset[int]] = {}
        for i in range(layout.initial_first):
            reads = getattr(layout.events[i], which)
            if reads:
                for read in _reads_in(layout, layout.thread_of[i], reads, known):
                    rows[read] |= 1 << i
        return rows

    return build


def _control(layout: Layout) -> list[int]:
    """Guards, and what decided that the loops before were left, as far as it is no weak read (PTX ISA 8.10.4)."""
    rows = _dependency("ctrl")(layout)
    weak = layout.sets["R"] & ~layout.sets["STRONG"]
    for read, row in enumerate(_dependency("left")(layout)):
        if not weak >> read & 1:
            rows[read] |= row
    return rows


def _reads_in(layout: Layout, thread: int, reads: int, known: dict[tuple[int, int], frozenset[int]]) -> frozenset[int]:
    """The reads that an expression of ``thread`` depends on, also those in operands of other threads that it got."""
    found: frozenset[int] = frozenset()
    for number, leaf in enumerate(layout.leaves[thread]):
        if not reads >> number & 1:
            continue
        if leaf >= 0:
            found |= {leaf}
        link = layout.links.get((thread, number))
        if link is not None:
            if (thread, number) not in known:
                # Threads give values before they get any that depend on them: no exchange is part of itself.
                parts = (_reads_in(layout, u, node.reads, known) for u, node in link.sources)
                known[thread, number] = frozenset().union(*parts)
            found |= known[thread, number]
    return found


def _inscope(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i in range(layout.initial_first):
        scope = scope_of(layout.events[i])
        if scope is not None:
            rows[i] = layout.within(layout.places[i], scope)
    return rows


def _threads_of(layout: Layout, thread: int) -> int:
    first, end = layout.spans[thread]
    return (1 << end) - (1 << first)


def _scta(layout: Layout) -> list[int]:
    found: dict[object, int] = {}
    ctas = [place.cta for place in layout.scene.places]
    for thread, cta in enumerate(ctas):
        found[cta] = found.get(cta, 0) | _threads_of(layout, thread)
    return [found[ctas[thread]] for thread in layout.thread_of] + [0] * len(layout.cells)


def _int(layout: Layout) -> list[int]:
    return [
        _threads_of(layout, layout.thread_of[i]) if i < layout.initial_first else 1 << i
        for i in range(len(layout.events))
    ]


# Addresses.


def _overlap(layout: Layout, cell_of: Callable[[Event], Cell | None], same: bool) -> list[int]:
    """Accesses with bytes in common; ``same``: of exactly the same bytes. Initial writes stay alone."""
    groups: dict[str, dict[Cell, int]] = {}
    for i in range(layout.initial_first):
        cell = cell_of(layout.events[i])
        if cell is not None and layout.events[i].cell is not None:
            members = groups.setdefault(cell[0], {})
            members[cell] = members.get(cell, 0) | 1 << i
    union: dict[Cell, int] = {}
    for members in groups.values():
        for cell, mask in members.items():
            union[cell] = mask
            if not same and not layout.simple:
                for other, theirs in members.items():
                    if other[1] < cell[1] + cell[2] and cell[1] < other[1] + other[2]:
                        union[cell] |= theirs
    rows = [0] * len(layout.events)
    for i in range(layout.initial_first):
        cell = cell_of(layout.events[i])
        if cell is not None and layout.events[i].cell is not None:
            rows[i] = union[cell]
    # An initial write is of the same address as every access of its bytes, through whatever alias.
    for cell, initial in layout.cells.items():
        covering = layout.covering(cell)
        rows[initial] = covering | 1 << initial
        for i in layout.algebra.members(covering):
            rows[i] |= 1 << initial
    return rows


def _physical(event: Event) -> Cell | None:
    return event.cell


def _virtual(event: Event) -> Cell | None:
    return event.place


# Proxies.


def _pfence(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i, event in enumerate(layout.events):
        if event.kind == "PF":
            first = layout.spans[layout.thread_of[i]][0]
            for position in event.covers:
                rows[i] |= 1 << (first + position)
        elif isinstance(event.op, ProxyFence) and event.op.kind == "async":
            rows[i] = _asynchronous_in(layout, event, event.op.space)
        elif isinstance(event.op, ProxyFence) and event.op.kind != "alias":
            for j, access in enumerate(layout.events):
                if isinstance(access.op, Load | Store | Atomic) and access.op.proxy == event.op.kind:
                    rows[i] |= 1 << j
    return rows


def _asynchronous_in(layout: Layout, fence: Event, space: str | None) -> int:
    """The accesses of bulk copies, products, st.async and red.async to objects that lie in the space a fence covers."""
    found = 0
    objects = layout.scene.test.objects
    for i, event in enumerate(layout.events):
        if event.cell is None or event.opaque:
            continue
        if not isinstance(event.op, BulkCopy | AsyncStore | Wgmma | TensorCopy | TensorProduct):
            continue
        item = objects[event.cell[0]]
        if item.space == "tmem":
            continue
        covered = space is None or item.space == space.partition("::")[0]
        if covered and space == "shared::cta":
            owner = layout.scene.place_of_owner(item, event.id.thread)
            covered = owner.cta == layout.scene.places[fence.id.thread].cta
        if covered:
            found |= 1 << i
    return found


def _accum(layout: Layout) -> list[int]:
    """What two products in tensor memory access, if their accumulator, shape and kind are the same."""
    same: dict[object, int] = {}
    for i, event in enumerate(layout.events):
        if event.accumulator is not None:
            same[event.accumulator] = same.get(event.accumulator, 0) | 1 << i
    return [0 if e.accumulator is None else same[e.accumulator] for e in layout.events]


def _tmcov(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i, fence in enumerate(layout.events):
        if fence.kind == "F" and fence.place is not None:
            for j, event in enumerate(layout.events):
                if event.place == fence.place and event.opaque:
                    rows[i] |= 1 << j
    return rows


def _rcov(layout: Layout) -> list[int]:
    """Restricted fences and the operations on objects in the space they are for, mbarriers included."""
    rows = [0] * len(layout.events)
    objects = layout.scene.test.objects
    for i, fence in enumerate(layout.events):
        op = fence.op
        if not isinstance(op, Fence | GenericToAsyncFence) or op.restrict is None:
            continue
        here = layout.scene.places[fence.id.thread].cta
        for j, event in enumerate(layout.events[: layout.initial_first]):
            place = event.cell if event.mbarrier is None else event.mbarrier
            if place is None or objects[place[0]].space != "shared":
                continue
            owner = layout.scene.place_of_owner(objects[place[0]], event.id.thread)
            if op.restrict == "shared::cluster" or owner.cta == here:
                rows[i] |= 1 << j
    return rows


# Asynchronous operations.


def _issue(accesses: bool) -> Builder:
    """From an issue event to what happens asynchronously after it; ``accesses``: to the reads and writes only."""

    def build(layout: Layout) -> list[int]:
        rows = [0] * len(layout.events)
        for i, event in enumerate(layout.events):
            issuers = (event.issuer,) if event.issuer >= 0 else event.issuers
            if isinstance(event.op, TENSOR_OPS) and accesses:
                issuers = event.issuers  # what it comes after; its own issue only says which instruction it is of
            if event.cell is not None or not accesses:
                for issuer in issuers:
                    rows[layout.spans[layout.thread_of[i]][0] + issuer] |= 1 << i
        return rows

    return build


def _before(which: str) -> Builder:
    def build(layout: Layout) -> list[int]:
        rows = [0] * len(layout.events)
        for i in range(layout.initial_first):
            for position in getattr(layout.events[i], which):
                rows[layout.spans[layout.thread_of[i]][0] + position] |= 1 << i
        return rows

    return build


def _acomp(layout: Layout) -> list[int]:
    """What waits come after. A group of products is one of its warpgroup: who waits for it in another thread comes
    after it as well (9.7.16.7.2, A62)."""
    rows = _before("completes")(layout)
    groups = warpgroups(layout.scene.test)
    if groups:
        numbered = [(i, e) for i, e in enumerate(layout.events[: layout.initial_first]) if e.group >= 0]
        for i, event in numbered:
            for j, wait in numbered:
                of = groups[layout.thread_of[i]]
                if event.kind == "PF" and wait.kind == "AW" and of is not None and event.group < wait.group:
                    rows[i] |= (groups[layout.thread_of[j]] == of) << j
    return rows


# Barriers and grids.


def _mbobj(layout: Layout) -> list[int]:
    rows = [0] * len(layout.events)
    for i, event in enumerate(layout.events):
        if event.kind == "MBI":
            for j, other in enumerate(layout.events):
                if other.kind != "MBI" and other.mbarrier == event.mbarrier:
                    rows[i] |= 1 << j
    return rows


def _lives(layout: Layout) -> list[int]:
    """In a kernel: what another CTA does with shared memory, or a bulk copy, and what the threads of its CTA do, if all
    of these end; where they do nothing it stands for that itself, so that nothing keeps them."""
    rows = [0] * len(layout.events)
    test, places = layout.scene.test, layout.scene.places
    if test.claims is None:
        return rows
    inside: dict[object, int] = {}
    alive = {places[t].cta for t in layout.open}
    idle = {places[t].cta for t in range(len(test.threads))} - alive
    for j, event in enumerate(layout.events[: layout.initial_first]):
        cta = places[event.id.thread].cta
        if not event.asynchronous and cta not in alive:
            inside[cta] = inside.get(cta, 0) | 1 << j
    for i, event in enumerate(layout.events[: layout.initial_first]):
        place = event.cell if event.mbarrier is None else event.mbarrier
        if place is None or test.objects[place[0]].space != "shared":
            continue
        owner = layout.scene.place_of_owner(test.objects[place[0]], event.id.thread).cta
        copied = event.asynchronous and isinstance(event.op, BulkCopy)
        if copied or owner != places[event.id.thread].cta:
            rows[i] = inside.get(owner, 1 << i if owner in idle else 0)
    return rows


def _api_indirect(layout: Layout) -> list[int]:
    """Those pairs of ``api`` that end at a wait of a grid, but begin in one before the grid before it."""
    rows = _api(layout)
    places = [thread.placement for thread in layout.scene.test.threads]
    waits = [e for e in layout.events if e.kind == "API" and e.op is not None]
    for i, row in enumerate(rows):
        rows[i] = 0
        for wait in waits if row else ():
            first, last = places[layout.events[i].id.thread], places[wait.id.thread]
            if any(p.gpu == last.gpu and not p.host and first.grid < p.grid < last.grid for p in places):
                rows[i] |= row & 1 << layout.numbers[wait.id, "API"]
    return rows


def _trigger(layout: Layout) -> list[int]:
    """The first ``launch_dependents`` of each thread before the starts of the threads of the grid that it launches."""
    rows = [0] * len(layout.events)
    places = [thread.placement for thread in layout.scene.test.threads]
    launches: dict[int, int] = {}
    for i, event in enumerate(layout.events[: layout.initial_first]):
        if event.kind == "GD":
            launches.setdefault(event.id.thread, i)
    for t, i in launches.items():
        later = {p.grid for p in places if not p.host and p.gpu == places[t].gpu and p.grid > places[t].grid}
        for u, place in enumerate(places):
            if place.overlap and not place.host and place.gpu == places[t].gpu and place.grid == min(later, default=-1):
                rows[i] |= 1 << layout.numbers[EventId(u, -1), "API"]
    return rows


def _api(layout: Layout) -> list[int]:
    """The end of every thread of a grid before the start, or a wait, of every thread of a later grid of the GPU."""
    rows = [0] * len(layout.events)
    threads = layout.scene.test.threads
    for i, event in enumerate(layout.events):
        if event.kind != "API" or event.id.instruction != len(threads[event.id.thread].body):
            continue
        mine = threads[event.id.thread].placement
        for j, other in enumerate(layout.events):
            if other.kind != "API" or mine.host:
                continue
            theirs = threads[other.id.thread].placement
            starts = other.id.instruction == -1 and not theirs.overlap
            later = not theirs.host and theirs.gpu == mine.gpu and mine.grid < theirs.grid
            if later and (starts or other.op is not None):
                rows[i] |= 1 << j
    return rows


BUILDERS: Mapping[str, Builder] = {
    "po": _po,
    "rmw": _rmw,
    "addr": _dependency("addr"),
    "data": _dependency("data"),
    "ctrl": _control,
    "inscope": _inscope,
    "scta": _scta,
    "int": _int,
    "loc": lambda layout: _overlap(layout, _physical, same=True),
    "ovl": lambda layout: _overlap(layout, _physical, same=False),
    "vloc": lambda layout: _overlap(layout, _virtual, same=True),
    "vovl": lambda layout: _overlap(layout, _virtual, same=False),
    "pfence": _pfence,
    "accum": _accum,
    "tmcov": _tmcov,
    "rcov": _rcov,
    "issue": _issue(accesses=True),
    "issue-all": _issue(accesses=False),
    "aord": _before("after"),
    "acomp": _acomp,
    "mbobj": _mbobj,
    "lives": _lives,
    "api": _api,
    "api-indirect": _api_indirect,
    "trigger": _trigger,
}
"""How each relation is built. The phases of barriers decide others, and a witness the rest."""
