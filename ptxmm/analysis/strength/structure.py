"""Changes that are more than a stronger or weaker form: barriers, and waits for asynchronous operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.instruction import written
from ptxmm.analysis.strength.barriers import groups_of, instructions, met, orders, places
from ptxmm.analysis.strength.changes import Costs
from ptxmm.analysis.strength.forms import scopes_of
from ptxmm.analysis.strength.units import Unit, Units, aligned, names, units
from ptxmm.cat.ir import Coverage
from ptxmm.program.edit import Edits
from ptxmm.program.identity import Site
from ptxmm.program.shared.convergence import gathers, name
from ptxmm.program.test import Test
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import (
    AsyncCommit,
    AsyncWait,
    BarrierReduction,
    Branch,
    BulkCopy,
    CopyAsync,
    Exit,
    GenericToAsyncFence,
    GridControl,
    Load,
    MbarrierWait,
    Op,
    Source,
    Store,
    TensorCopy,
    TensorFence,
    TensorLoad,
    TensorProduct,
    TensorStore,
    TensorWait,
    Wgmma,
    WgmmaFence,
)

MOST, PLACES = 256, 512
"""So many places for a barrier are tried; so many of different effect in a kernel."""

_TENSOR = (TensorLoad, TensorStore, TensorCopy, TensorProduct)
_WAITS = (AsyncWait, WgmmaFence, TensorWait, TensorFence, GenericToAsyncFence)
"""Instructions of one thread that wait or order, and have no weaker form."""

Kind = Literal["cp.async", "bulk", "wgmma"]


class Structural(Struct, frozen=True):
    """What can be taken away at once: ``edits``; ``at``: its first instruction; ``text`` what it is about."""

    edits: Edits
    at: Site
    text: str


class Step(Struct, frozen=True):
    """One step towards a repair: instructions ``added`` before those at sites (at the length of the body: at its end),
    ``moved`` from a site to before an earlier one of its thread, or ``replaced``.

    ``barrier``: the threads of the barrier that is added, and before which instruction of each. ``after``: what is
    added follows the instructions of a unit, which is to be said of it.
    """

    cost: int
    added: Mapping[Site, tuple[Op, ...]] = field(default_factory=dict)
    moved: Mapping[Site, int] = field(default_factory=dict)
    replaced: Mapping[Site, Op] = field(default_factory=dict)
    barrier: tuple[str, tuple[int, ...], tuple[int, ...]] | None = None
    after: bool = False

    @property
    def gaps(self) -> frozenset[Site]:
        """Before which instructions this one puts others."""
        return frozenset((*self.added, *(Site(site.thread, before) for site, before in self.moved.items())))


def removals(test: Test) -> Iterator[Structural]:
    """The barriers and waits that can be taken away: a barrier in all its threads at once."""
    together = units(test)
    for group in _connected(met(test), together):
        sites = sorted(group)
        threads = dict.fromkeys(thread for thread, _ in sites)
        called = ", ".join(test.threads[t].name for t in threads) if test.claims is None else names(test, threads)
        texts = " and ".join(dict.fromkeys(written(test.at(site)) for site in sites))
        yield Structural(dict.fromkeys(sites, ()), sites[0], f"{texts} ({called})")
    for same in together.sites.values():
        op = test.at(same[0])
        if isinstance(op, _WAITS) or (isinstance(op, GridControl) and op.kind == "wait"):
            yield Structural(dict.fromkeys(same, ()), same[0], written(op))


def strengthenings(test: Test, coverage: Coverage, costs: Costs) -> tuple[Step, ...]:
    """The waits that can come earlier, wait for more or be added, the barriers that can be added, and the weak accesses
    of several elements that can be strong; the cheapest first."""
    together = units(test)
    found = [*_of_threads(test, costs), *_vectors(test, coverage, costs)]
    if test.claims is None:
        alone, joint = _in_warps(test, found)
        found = [*alone, *(_one(chosen) for options in joint if _few(options) for chosen in product(*options))]
        found += _added(test, costs)
    else:
        found = [*_merged(test, found, together), *_added_in_source(test, together, costs)]
    return tuple(sorted(found, key=lambda step: step.cost))


def _of_threads(test: Test, costs: Costs) -> list[Step]:
    """What a thread may wait for, and where, for itself."""
    return [*_moves(test, costs), *_waits(test, costs)]


def _connected(groups: Sequence[Sequence[Site]], together: Units) -> list[list[Site]]:
    """Groups that share a unit as one."""
    found: list[tuple[set[Unit], list[int]]] = []
    for number, group in enumerate(groups):
        units = {together.of[site] for site in group}
        shared = [item for item in found if not units.isdisjoint(item[0])]
        found = [item for item in found if units.isdisjoint(item[0])]
        found.append((units.union(*(u for u, _ in shared)), sorted([number, *(n for _, ns in shared for n in ns)])))
    return [[site for number in numbers for site in groups[number]] for numbers in sorted(ns for _, ns in found)]


def _merged(test: Test, steps: Iterable[Step], together: Units) -> list[Step]:
    """The same changes of all instructions of a unit as one; what can't be moved in all its places is not moved."""
    found: dict[object, Step] = {}
    for step in steps:
        key = (
            frozenset((together.of[site], added) for site, added in step.added.items()),
            frozenset(
                (together.of[site], together.of[Site(site.thread, before)]) for site, before in step.moved.items()
            ),
            frozenset((together.of[site], differs(test, site, op)) for site, op in step.replaced.items()),
        )
        known = found.get(key, Step(step.cost))
        # Of several places to move to the first is the nearest.
        found[key] = Step(
            step.cost,
            {**known.added, **step.added},
            {**step.moved, **known.moved},
            {**known.replaced, **step.replaced},
        )
    return [
        step for step in found.values()
        if all(other in step.moved for site in step.moved for other in together.sites[together.of[site]])
    ]  # fmt: skip


def _in_warps(test: Test, steps: Iterable[Step]) -> tuple[list[Step], list[list[list[Step]]]]:
    """Those of the ``steps`` of a litmus test that a thread can take by itself; and for each that its whole warp has to
    take, as it is about an ``.aligned`` instruction, those of each thread of which one is to be taken.

    The threads of a warp keep one order of what they execute together. A wait comes to all of them, also to one that
    has nothing to wait for.
    """
    together, known = units(test), aligned(test)
    warps = {t: tuple(group) for kind, group in groups_of(test) if kind == "warp" for t in group}
    alone: list[Step] = []
    joint: dict[object, dict[int, list[Step]]] = {}

    def rank(thread: int, index: int) -> int:
        return sum((thread, before) in known for before in range(index))

    def every(thread: int, place: int, cost: int, waits: tuple[Op, ...]) -> list[Step]:
        gaps = (gap for gap in range(len(test.threads[thread].body) + 1) if rank(thread, gap) == place)
        return [Step(cost, {Site(thread, gap): waits}) for gap in gaps]

    for step in steps:
        site = next(iter((*step.added, *step.moved, *step.replaced)))
        thread, gap = site.thread, step.moved.get(site, site.instruction)
        waits = tuple(op for op in step.added.get(site, ()) if gathers(op))
        if waits and thread in warps:
            key: object = warps[thread], rank(*site), tuple(map(name, waits))
            if key not in joint:
                joint[key] = {t: every(t, rank(*site), step.cost, waits) for t in warps[thread]}
            if len(waits) == len(step.added[site]):
                continue  # it is there
        elif site in known and rank(*site) > rank(thread, gap):
            key = together.of[site], rank(thread, gap)
        elif site in known and site in step.replaced:
            key = together.of[site], differs(test, site, step.replaced[site])
        else:
            alone.append(step)
            continue
        joint.setdefault(key, {}).setdefault(thread, []).append(step)
    return alone, [list(found.values()) for found in joint.values() if len(found) == len(warps[min(found)])]


def _one(steps: Sequence[Step]) -> Step:
    """What several threads do at once."""
    return Step(
        max(step.cost for step in steps),
        {site: ops for step in steps for site, ops in step.added.items()},
        {site: gap for step in steps for site, gap in step.moved.items()},
        {site: op for step in steps for site, op in step.replaced.items()},
    )


def differs(test: Test, site: Site, new: Op) -> tuple[tuple[str, object], ...]:
    """The fields of ``new`` that the instruction at a site has otherwise."""
    old = test.at(site)
    values = ((name, getattr(new, name)) for name in new.__struct_fields__)
    return tuple((name, value) for name, value in values if value != getattr(old, name))


def _waits(test: Test, costs: Costs) -> Iterator[Step]:
    """Waits for groups that leave fewer of them, or wait for their writes too; and one more wait."""
    for site, op in test.instructions:
        if isinstance(op, AsyncWait) and op.pending is not None:
            for pending, read in product(range(op.pending, -1, -1), (True, False) if op.read else (False,)):
                stronger = replace(op, pending=pending, read=read)
                if stronger != op:
                    yield Step(costs.wait, replaced={site: stronger})
    for number in range(len(test.threads)):
        yield from _added_waits(test, number, costs)
        yield from _tensor_waits(test, number, costs)


def divided(op: Op) -> bool:
    """Whether ``op`` is a weak access of several elements, which is divided otherwise than a strong one."""
    match op:
        case Load():
            return op.sem == "weak" and len(op.dst) > 1 and op.proxy == "generic" and not op.nc
        case Store():
            return op.sem == "weak" and len(op.values) > 1 and op.proxy == "generic"
    return False


def _vectors(test: Test, coverage: Coverage, costs: Costs) -> Iterator[Step]:
    """Weak accesses of several elements made ``.relaxed`` in the narrowest scope; then they have stronger forms."""
    together = units(test)
    for site, op in test.instructions:
        if isinstance(op, Load | Store) and divided(op):
            stronger = replace(op, sem="relaxed", scope=scopes_of(test, together.threads(site), coverage)[0])
            yield Step(costs.strong, replaced={site: stronger})


def unjudged(test: Test) -> Op | None:
    """The first instruction that orders others but whose value is used too, so that it can't just be left out."""
    return next((op for _, op in test.instructions if isinstance(op, BarrierReduction)), None)


def _moves(test: Test, costs: Costs) -> Iterator[Step]:
    """Waits and commits that come earlier in their thread, past instructions that make nothing they use."""
    branched = {site.thread for site, op in test.instructions if isinstance(op, Branch | Exit)}
    for site, op in test.instructions:
        if site.thread in branched or not isinstance(op, AsyncWait | AsyncCommit | MbarrierWait):
            continue
        mine = {name for name, _ in (*uses(op), *definitions(op))}
        for before in range(site.instruction - 1, -1, -1):
            passed = test.at((site.thread, before))
            if mine & {name for name, _ in (*uses(passed), *definitions(passed))}:
                break
            yield Step(costs.move, moved={site: before})


def _added_waits(test: Test, number: int, costs: Costs) -> Iterator[Step]:
    """A wait for all asynchronous operations of a kind that a thread has issued, at any later place; with the commit
    that puts them into a group where none is there."""
    body = test.threads[number].body
    commits = {op.kind: index for index, op in enumerate(body) if isinstance(op, AsyncCommit)}
    issued: dict[Kind, bool] = {}
    for index, op in enumerate(body):
        source = Source(op.source.span, "")
        for kind, committed in issued.items():
            if not committed and commits.get(kind, -1) >= index:
                continue  # it is committed later
            # To wait for the source alone is less.
            for read in (True, False) if kind == "bulk" else (False,):
                wait = AsyncWait(kind, 0, read, source)
                added: list[Op] = [wait] if committed else [AsyncCommit(kind, source), wait]
                yield Step(costs.wait, {Site(number, index): tuple(added)})
        match op:
            case CopyAsync():
                issued["cp.async"] = False
            case BulkCopy() if op.mbarrier is None:
                issued["bulk"] = False
            case Wgmma():
                issued["wgmma"] = False
            case AsyncCommit() if op.kind in issued:
                issued[op.kind] = True
            case AsyncWait():
                issued.pop(op.kind, None)


def _tensor_waits(test: Test, number: int, costs: Costs) -> Iterator[Step]:
    """For accesses of tensor memory: a wait for them, at any later place, and the fences of tcgen05."""
    waits: dict[str, bool] = {}
    for index, op in enumerate(test.threads[number].body):
        source = Source(op.source.span, "")
        chains: list[list[Op]] = [[TensorFence("after", source)]] if isinstance(op, _TENSOR) else []
        for kind in waits:
            wait = TensorWait("ld" if kind == "ld" else "st", source)
            chains += [[wait], [wait, TensorFence("before", source)]]
        if waits:
            chains.append([TensorFence("before", source)])
        for added in chains:
            yield Step(costs.wait * len(added), {Site(number, index): tuple(added)})
        if isinstance(op, TensorLoad | TensorStore):
            waits["ld" if isinstance(op, TensorLoad) else "st"] = True


def _added(test: Test, costs: Costs) -> Iterator[Step]:
    """One more barrier of the threads of a warp, a CTA or a cluster, each without branches."""
    for kind, members in groups_of(test):
        bodies = [test.threads[t].body for t in members]
        if any(isinstance(op, Branch | Exit) for body in bodies for op in body):
            continue
        if not _few([range(len(body) + 1) for body in bodies]):
            continue
        for gaps in product(*(range(len(body) + 1) for body in bodies)):
            if not any(gaps) or all(gap == len(body) for gap, body in zip(gaps, bodies, strict=True)):
                continue  # nothing is before it, or after it
            added: dict[Site, tuple[Op, ...]] = {}
            for thread, gap, body in zip(members, gaps, bodies, strict=True):
                source = Source(body[min(gap, len(body) - 1)].source.span, "")
                added[Site(thread, gap)] = barrier = instructions(test, kind, source)
                if not barrier:
                    return  # all barriers are in use
            yield Step(_cost(kind, costs), added, barrier=(kind, tuple(members), gaps))


def _cost(kind: str, costs: Costs) -> int:
    return {"warp": costs.barrier_warp, "cta": costs.barrier_cta, "cluster": costs.barrier_cluster}[kind]


def _added_in_source(test: Test, together: Units, costs: Costs) -> Iterator[Step]:
    """One more barrier in a kernel: before or after an instruction of the source, or before two that different threads
    come to; the threads of their warps, CTAs or clusters that come to neither have it at their end. None that nothing
    is before or behind, and of those with the same instructions before them the first."""
    for kind, found in _distinct(test, together):
        for sites, after in found[:PLACES]:
            added: dict[Site, tuple[Op, ...]] = {}
            gaps: dict[int, int] = {}
            for thread, index in sites:
                body = test.threads[thread].body
                source = Source(body[min(index, len(body) - 1)].source.span, "")
                added[Site(thread, index)] = instructions(test, kind, source)
                gaps.setdefault(thread, index)
            if all(added.values()):
                members = tuple(sorted(gaps))
                barrier = kind, members, tuple(gaps[t] for t in members)
                yield Step(_cost(kind, costs), added, barrier=barrier, after=after)


def _distinct(test: Test, together: Units) -> Iterator[tuple[str, list[tuple[tuple[Site, ...], bool]]]]:
    """The places for barriers of each kind, of those with the same effect the first; none without any."""
    for kind, found in places(test, together):
        distinct: dict[object, tuple[tuple[Site, ...], bool]] = {}
        for sites, after in found:
            distinct.setdefault(orders(test, sites), (sites, after))
        distinct.pop(None, None)
        yield kind, list(distinct.values())


def left_out(test: Test) -> bool:
    """Whether barriers or waits were not tried because there are too many places for them."""
    if test.claims is not None:
        return any(len(found) > PLACES for _, found in _distinct(test, units(test)))
    gaps = [[range(len(test.threads[t].body) + 1) for t in members] for _, members in groups_of(test)]
    return not all(map(_few, gaps)) or not all(map(_few, _in_warps(test, _of_threads(test, Costs()))[1]))


def _few(options: Sequence[Sequence[object]]) -> bool:
    return prod(map(len, options)) <= MOST
