"""All cycles of a family, each once, or some of them by chance."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.generate.cycles.cycle import Cycle, Place, canonical, distance, fault, renumbered, rotations, uniform
from ptxmm.generate.cycles.edges import (
    DEPENDENCIES,
    FENCES,
    KINDS,
    LEVELS,
    ORDERS,
    SCOPED,
    Access,
    Edge,
    access_fault,
    internal,
    via_fault,
)

EDGES = ("po", "pos", *DEPENDENCIES, "rmw", "vector", "bar", "cluster", "mbarrier", "alias", "b64")
"""What cycles may have besides reads-from, from-reads and coherence to other threads. ``po``: program order to another
location; ``pos``: accesses of one location in one thread; ``alias``: second addresses, and ``fence.proxy.alias``."""

PLACEMENTS = (*LEVELS, "mixed")
MOST = 8
"""Accesses of a cycle, at most."""

_BARRIERS = {"bar": "Bar", "cluster": "Cluster", "mbarrier": "Mbar"}
_DIRECTIONS = ("WW", "WR", "RW", "RR")


class Family(Struct, frozen=True):
    """Cycles of at most so many ``threads`` and ``instructions`` (accesses of memory; fences and barriers come on top).

    ``orders``: those of accesses, and ``fence.acq_rel`` and ``fence.sc``; ``scopes``: of all that have one;
    ``placements``: how far the threads are from each other, ``mixed`` for all scope trees of the levels that are named;
    ``edges``: of ``EDGES``. Every location is accessed by two threads.
    """

    threads: int = 2
    instructions: int = 4
    orders: tuple[str, ...] = ("weak", "relaxed", "acquire", "release")
    scopes: tuple[str, ...] = ("gpu",)
    placements: tuple[str, ...] = ("gpu",)
    edges: tuple[str, ...] = ("po",)


def checked(family: Family) -> Family:
    """The family, its words in their usual order. Raises ``PtxmmError`` (kind ``usage``)."""
    if not 2 <= family.instructions <= MOST:
        raise PtxmmError(f"--instructions {family.instructions}: from 2 to {MOST}", kind="usage")
    if family.threads < 2:
        raise PtxmmError("--threads: at least 2", kind="usage")
    known = {"orders": (*ORDERS, *FENCES), "scopes": LEVELS, "placements": PLACEMENTS, "edges": EDGES}
    for name, words in known.items():
        chosen = getattr(family, name)
        for word in chosen:
            if word not in words:
                message = f"--{name}: there is no {word}"
                raise PtxmmError(message, kind="usage", hint=f"of: {', '.join(words)}")
        if not chosen:
            raise PtxmmError(f"--{name}: none is given", kind="usage", hint=f"of: {', '.join(words)}")
        family = replace(family, **{name: tuple(word for word in words if word in chosen)})
    return family


# -- shapes --


def shapes(family: Family) -> Iterator[Cycle]:
    """The cycles without orders, fences, dependencies and places, in canonical form, small ones first."""
    one, several = _steps(family)
    for size in range(2, family.instructions + 1):
        found = set()
        for edges in (*_paths(one, size, family.threads, 1), *_paths(several, size, family.threads, size)):
            last = max(i for i, edge in enumerate(edges) if edge.external) + 1
            shape = Cycle(edges[last:] + edges[:last], (Access(),) * size, ())
            if fault(shape) is None and _critical(shape):
                found.add(canonical(shape))
        yield from sorted(found, key=lambda one: (len(one.threads), one.shape))


def _steps(family: Family) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
    """The edges of cycles of one location, and of those of several."""
    same = [Edge(kind, True, str(KINDS[kind].between)) for kind in ("Rfe", "Fre", "Coe")]
    if "pos" in family.edges:
        same += [internal(Edge("Po", True, between)) for between in _DIRECTIONS]
    if "rmw" in family.edges:
        same.append(Edge("Rmw", True, "RW"))
    barriers = [kind for word, kind in _BARRIERS.items() if word in family.edges]
    same += [Edge(kind, True, between) for kind in barriers for between in _DIRECTIONS]
    changes = [Edge(kind, False, between) for kind in barriers for between in _DIRECTIONS]
    if "po" in family.edges or set(DEPENDENCIES) & set(family.edges):
        changes += [Edge("Po", False, between) for between in _DIRECTIONS]
    if "vector" in family.edges:
        changes += [Edge("Vec", False, between) for between in ("WW", "RR")]
    breaks = [Edge("Po", True, between) for between in ("WW", "WR", "RW")] if "pos" in family.edges else []
    return (*breaks, *same), (*changes, *same)


def _paths(steps: Sequence[Edge], size: int, threads: int, breaks: int) -> Iterator[tuple[Edge, ...]]:
    """Sequences of edges that join, and come back, with two or more edges to other threads, but at most ``threads``,
    and at most so many ``breaks``; each from its first edge among ``steps`` on."""

    def extend(done: tuple[int, ...], external: int, free: int) -> Iterator[tuple[Edge, ...]]:
        if len(done) == size:
            if external > 1 and steps[done[-1]].between[1] == steps[done[0]].between[0]:
                yield tuple(steps[k] for k in done)
            return
        for k in range(done[0] if done else 0, len(steps)):
            one = steps[k]
            if done and steps[done[-1]].between[1] != one.between[0]:
                continue
            more, left = external + one.external, free - (not KINDS[one.kind].follows)
            if more > threads or left < 0 or (done and _one_says(steps[done[-1]], one, 2)):
                continue
            yield from extend((*done, k), more, left)

    yield from extend((), 0, breaks)


def _one_says(one: Edge, other: Edge, threads: int) -> bool:
    """Whether one edge would say what these two say together, in a cycle of so many threads."""
    if one.external and other.external and threads < 3:
        return False
    if (one.kind, other.kind) == ("Po", "Po"):
        return one.same and other.same
    return (one.kind[:2], other.kind[:2]) in (("Co", "Co"), ("Fr", "Co"), ("Rf", "Fr"))


def _critical(shape: Cycle) -> bool:
    """Whether every location is accessed by two threads, and no edge can be left out."""
    threads: dict[int, set[int]] = {}
    where = shape.locations
    for t, thread in enumerate(shape.threads):
        for i in thread:
            threads.setdefault(where[i], set()).add(t)
    pairs = zip(shape.edges, (*shape.edges[1:], shape.edges[0]), strict=True)
    return all(len(found) > 1 for found in threads.values()) and not any(
        _one_says(one, other, len(shape.threads)) for one, other in pairs
    )


# -- what shapes are dressed with --


def options(shape: Cycle, family: Family) -> list[list[object]]:
    """What can be chosen, independently, at each edge, at each access and for the places: lists to choose one of each
    from, in the order in which ``dressed`` takes them."""
    n = len(shape.edges)
    joined = {(i + 1) % n for i, one in enumerate(shape.edges) if one.kind in ("Rmw", "Vec")}
    found: list[list[object]] = [list(_vias(one, family)) for one in shape.edges]
    for i, one in enumerate(shape.edges):
        if i in joined:
            found.append([None])  # as the access before
        elif one.kind == "Rmw":
            found.append(list(_extra([Access()], family, False)))
        else:
            plain = one.kind != "Vec"
            found.append(list(_extra(_orders(shape.directions[i], family), family, plain)))
    found.append(list(places(len(shape.threads), family.placements)))
    return found


def _vias(one: Edge, family: Family) -> Iterator[str]:
    scoped = [f"{order}.{scope}" for order in SCOPED if order in family.orders for scope in family.scopes]
    if one.kind == "Rmw":
        yield from scoped
        return
    if one.same or one.kind != "Po" or "po" in family.edges:
        yield ""
    fences = [f"{fence}.{scope}" for fence in FENCES if fence in family.orders for scope in family.scopes]
    proxy = ["proxy"] if "alias" in family.edges else []
    for via in (*fences, *proxy, *(word for word in DEPENDENCIES if word in family.edges)):
        if via_fault(replace(one, via=via)) is None:
            yield via


def _orders(direction: str, family: Family) -> Iterator[Access]:
    for order in family.orders:
        if order in ORDERS and access_fault(Access(order), direction) is None:
            yield from [Access(order, scope) for scope in family.scopes] if order in SCOPED else [Access(order)]


def _extra(accesses: Sequence[Access] | Iterator[Access], family: Family, plain: bool) -> Iterator[Access]:
    for one in accesses:
        for alias in (False, True) if "alias" in family.edges else (False,):
            for wide in (False, True) if plain and "b64" in family.edges else (False,):
                yield replace(one, alias=alias, wide=wide)


@cache
def places(threads: int, placements: tuple[str, ...]) -> tuple[tuple[Place, ...], ...]:
    """The places of so many threads."""
    levels = [level for level in LEVELS if level in placements]
    if "mixed" not in placements:
        return tuple(uniform(level, threads) for level in levels)
    levels = levels or list(LEVELS)
    found: list[tuple[Place, ...]] = []

    def extend(done: tuple[Place, ...]) -> None:
        if len(done) == threads:
            found.append(done)
            return
        for place in sorted({(g, c, k) for g in range(threads) for c in range(threads) for k in range(threads)}):
            more = (*done, place)
            if renumbered(more) == more and all(distance(place, other) in levels for other in done):
                extend(more)

    extend(())
    return tuple(found)


def dressed(shape: Cycle, chosen: Sequence[object]) -> Cycle | None:
    """The cycle of a choice from ``options``, None if there is no test of it; not in canonical form."""
    n = len(shape.edges)
    edges = tuple(replace(one, via=str(via)) for one, via in zip(shape.edges, chosen[:n], strict=True))
    accesses: list[Access] = []
    for at in chosen[n : 2 * n]:
        accesses.append(at if isinstance(at, Access) else accesses[-1] if accesses else Access())
    cycle = Cycle(edges, tuple(accesses), chosen[2 * n])  # type: ignore[arg-type]
    return cycle if fault(cycle) is None else None


# -- all, and some --


def every(family: Family, shapes: Sequence[Cycle]) -> Iterator[Cycle]:
    """Every cycle of these shapes of the family once, in canonical form."""
    for shape in shapes:
        lists = options(shape, family)
        turns = [turned for turned in rotations(replace(shape, places=())) if turned.edges == shape.edges]
        seen: set[Cycle] = set()
        for number in range(prod(map(len, lists))):
            cycle = dressed(shape, _chosen(lists, number))
            if cycle is None:
                continue
            best = canonical(cycle)
            if len(turns) == 1 and "alias" not in family.edges:
                yield best
            elif best not in seen:
                seen.add(best)
                yield best


def drawn(family: Family, shapes: Sequence[Cycle], seed: int) -> Iterator[Cycle]:
    """The cycles of these shapes of the family in an order drawn by chance, each once, in canonical form; the same
    order for the same seed."""
    lists = [options(shape, family) for shape in shapes]
    ends = list(accumulate(prod(map(len, one)) for one in lists))
    found: set[Cycle] = set()
    for number in _shuffled(ends[-1] if ends else 0, random.Random(seed)):
        at = bisect(ends, number)
        cycle = dressed(shapes[at], _chosen(lists[at], number - (ends[at - 1] if at else 0)))
        if cycle is not None and (best := canonical(cycle)) not in found:
            found.add(best)
            yield best


def _shuffled(total: int, chance: random.Random) -> Iterator[int]:
    """The numbers below ``total`` in some order."""
    swapped: dict[int, int] = {}
    for at in range(total):
        other = chance.randrange(at, total)
        yield swapped.pop(other, other) if other != at else swapped.pop(at, at)
        if other != at:
            swapped[other] = swapped.pop(at, at)


def _chosen(lists: Sequence[Sequence[object]], number: int) -> list[object]:
    """The choice of this number."""
    found = []
    for one in reversed(lists):
        number, at = divmod(number, len(one))
        found.append(one[at])
    return found[::-1]
