"""Barriers: which threads meet at them, what they are made of, and where a kernel may have one more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations

from ptxmm.analysis.instruction import written
from ptxmm.analysis.strength.superposition import ORDERED
from ptxmm.analysis.strength.units import Unit, Units
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx.ops import (
    COMPUTING,
    Barrier,
    BarrierReduction,
    Branch,
    ClusterBarrier,
    Imm,
    Load,
    MbarrierWait,
    Op,
    Source,
    WarpBarrier,
)

BARRIERS = (Barrier, WarpBarrier, ClusterBarrier)
"""The instructions at which threads meet."""


def met(test: Test) -> list[list[Site]]:
    """The barrier instructions by CTA (or warp, or cluster) and barrier, as far as constants tell; the k-th of each
    thread together."""
    groups: dict[object, list[Site]] = {}
    seen = Counter[object]()
    for site, op in test.instructions:
        place, alone = test.threads[site.thread].placement, -1 - site.thread
        cta = (place.gpu, place.grid, place.cluster, place.cta if place.cta is not None else alone)
        match op:
            case Barrier():
                key: object = ("cta", cta, op.barrier)
            case WarpBarrier():
                key = ("warp", cta, place.warp if place.warp is not None else alone)
            case ClusterBarrier():
                key = ("cluster", cta[:3] if place.cluster is not None else cta)
            case _:
                continue
        # An arrival at a cluster barrier and its wait go together.
        counted = site.thread, key, op.kind if isinstance(op, ClusterBarrier) else None
        groups.setdefault((key, seen[counted]), []).append(site)
        seen[counted] += 1
    return list(groups.values())


def groups_of(test: Test) -> Iterator[tuple[str, list[int]]]:
    """The threads of each warp, CTA and cluster that has at least two; a larger one only if it holds more."""
    kinds: dict[str, dict[object, list[int]]] = {"warp": {}, "cta": {}, "cluster": {}}
    for number, thread in enumerate(test.threads):
        place = thread.placement
        if place.host or place.cta is None:
            continue
        if place.warp is not None:
            kinds["warp"].setdefault((*place.path, place.warp), []).append(number)
        kinds["cta"].setdefault(place.path, []).append(number)
        if place.cluster is not None:
            kinds["cluster"].setdefault(place.path[:3], []).append(number)
    seen: set[tuple[int, ...]] = set()
    for kind, groups in kinds.items():
        for members in groups.values():
            if len(members) > 1 and tuple(members) not in seen:
                seen.add(tuple(members))
                yield kind, members


def instructions(test: Test, kind: str, source: Source) -> tuple[Op, ...]:
    if kind == "warp":
        return (WarpBarrier(Imm(0xFFFFFFFF), source),)
    if kind == "cluster":
        return ClusterBarrier("arrive", "release", source), ClusterBarrier("wait", "acquire", source)
    used = {op.barrier for _, op in test.instructions if isinstance(op, Barrier | BarrierReduction)}
    free = next((number for number in range(16) if Imm(number) not in used), None)
    if test.dialect:
        instances = {op.instance for _, op in test.instructions if isinstance(op, Barrier)}
        free = next(number for number in range(len(instances) + 1) if number not in instances)
        return (Barrier("sync", Imm(free), None, free, source),)
    return () if free is None else (Barrier("sync", Imm(free), None, None, source),)


def places(test: Test, together: Units) -> Iterator[tuple[str, list[tuple[tuple[Site, ...], bool]]]]:
    """For each kind of barrier the places for one: before which instructions it is, and whether that is after those of
    one unit."""
    come = {unit: {thread for thread, _ in sites} for unit, sites in together.sites.items()}
    for kind, groups in _with_bodies(test).items():
        # Before an instruction that all threads of their groups come to it is a barrier by itself.
        whole = [unit for unit, some in come.items() if all(some.isdisjoint(g) or some.issuperset(g) for g in groups)]
        pairs = combinations([unit for unit in come if unit not in whole], 2)
        found = {sites: False for unit in come for sites in _before(test, together, groups, (unit,))}
        members = {thread for group in groups for thread in group}
        for unit in whole:
            following = tuple(sorted(Site(thread, index + 1) for thread, index in together.sites[unit]))
            if come[unit] <= members and _follow(test, following):
                found.setdefault(following, True)
        found |= {sites: False for chosen in pairs for sites in _before(test, together, groups, chosen)}
        yield kind, list(found.items())


def _with_bodies(test: Test) -> dict[str, list[list[int]]]:
    """``groups_of`` by their kind, of threads that have instructions."""
    kinds: dict[str, list[list[int]]] = {}
    for kind, group in groups_of(test):
        if all(test.threads[thread].body for thread in group):
            kinds.setdefault(kind, []).append(group)
    return kinds


def _before(
    test: Test, together: Units, groups: Sequence[Sequence[int]], chosen: Sequence[Unit]
) -> Iterator[tuple[Site, ...]]:
    """Where a barrier of each of the ``groups`` is that is before the units ``chosen``.

    Nowhere if that is none: for threads without such a barrier, or some that come to it twice, or that come to a line
    whose guard says that they do nothing there.
    """
    come = [{thread for thread, _ in together.sites[unit]} for unit in chosen]
    threads = set().union(*come)
    touched = {thread for group in groups if threads & set(group) for thread in group}
    if not threads <= touched or sum(map(len, come)) > len(threads) or (len(chosen) > 1 and threads != touched):
        return
    sites = sorted(site for unit in chosen for site in together.sites[unit])
    if threads != touched and any(written(test.at(site)).startswith("@") for site in sites):
        return
    yield (*sites, *(Site(thread, len(test.threads[thread].body)) for thread in sorted(touched - threads)))


def orders(test: Test, sites: Sequence[Site]) -> Hashable | None:
    """What tells the effect of a barrier at ``sites``: how many instructions that do not only compute are before it in
    each thread; of a thread with branches, where the next such one is, or one that is come to from elsewhere. None if
    there are no two threads of which one accesses memory, or meets others, before it and the other one behind it, or if
    it is inside of a loop that only polls."""
    before: set[int] = set()
    behind: set[int] = set()
    effect: list[tuple[int, bool, int]] = []
    for thread, index in sorted(sites):
        body = test.threads[thread].body
        targets = {op.target for op in body if isinstance(op, Branch)}
        branched = bool(targets)
        passed = index if branched else sum(not isinstance(op, COMPUTING) for op in body[:index])
        while branched and passed + 1 < len(body) and isinstance(body[passed], COMPUTING) and passed + 1 not in targets:
            passed += 1
        effect.append((thread, branched, passed))
        if branched or any(isinstance(op, ORDERED) for op in body[:index]):
            before.add(thread)
        if branched or any(isinstance(op, ORDERED) for op in body[index:]):
            behind.add(thread)
    if any(_polls(test.threads[thread].body, index) for thread, index in sites):
        return None
    useless = not before or not behind or (before == behind and len(before) == 1)
    return None if useless else tuple(effect)


def _polls(body: Sequence[Op], index: int) -> bool:
    """Whether between the begin of a loop and its end, with nothing in it but looks, is what is before ``index``."""
    loops = ((op.target, pc) for pc, op in enumerate(body) if isinstance(op, Branch) and op.target < index <= pc)
    return any(all(isinstance(op, _LOOKS) for op in body[first:last]) for first, last in loops)


def _follow(test: Test, sites: Sequence[Site]) -> bool:
    """Whether what comes to each of the sites has always made the access before it."""
    for thread, index in sites:
        body = test.threads[thread].body
        if not isinstance(body[index - 1], ORDERED) or isinstance(body[index - 1], BARRIERS):
            return False
        if any(isinstance(op, Branch) and op.target == index for op in body):
            return False
    return True


_LOOKS = (Load, MbarrierWait, Branch, *COMPUTING)
