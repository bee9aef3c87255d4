"""Cycles: well-formed or why not, their canonical form, and their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.generate.cycles.edges import (
    BARRIERS,
    KINDS,
    LEVELS,
    ORDERS,
    Access,
    Edge,
    access,
    access_fault,
    edge,
    internal,
)

Place = tuple[int, int, int]
"""The GPU, the cluster in it, and the CTA in that."""

SHAPES: Mapping[str, str] = {
    "MP": "PodWW Rfe PodRR Fre",
    "SB": "PodWR Fre PodWR Fre",
    "LB": "PodRW Rfe PodRW Rfe",
    "R": "PodWW Coe PodWR Fre",
    "S": "PodWW Rfe PodRW Coe",
    "2+2W": "PodWW Coe PodWW Coe",
    "WRC": "Rfe PodRW Rfe PodRR Fre",
    "RWC": "PodWR Fre Rfe PodRR Fre",
    "WWC": "Rfe PodRW Coe PodWR Fre",
    "WRW+2W": "PodWW Coe Rfe PodRW Coe",
    "ISA2": "PodWW Rfe PodRW Rfe PodRR Fre",
    "IRIW": "Rfe PodRR Fre Rfe PodRR Fre",
    "3.SB": "PodWR Fre PodWR Fre PodWR Fre",
    "3.LB": "PodRW Rfe PodRW Rfe PodRW Rfe",
    "3.2W": "PodWW Coe PodWW Coe PodWW Coe",
    "CoRR": "Rfe PosRR Fre",
    "CoWW": "Coe PosWW Coe",
    "CoWR": "Coe PosWR Fre",
    "CoRW": "Rfe PosRW Coe",
}
"""Shapes that have a name of their own, in canonical form."""


class Cycle(Struct, frozen=True):
    """``accesses[i]`` is where ``edges[i]`` begins; the last edge leads to the first access and to another thread.
    ``places``: one for each thread, in the order of the cycle."""

    edges: tuple[Edge, ...]
    accesses: tuple[Access, ...]
    places: tuple[Place, ...]

    @property
    def directions(self) -> str:
        """R or W for each access."""
        return "".join(one.between[0] for one in self.edges)

    @property
    def threads(self) -> list[list[int]]:
        """The accesses of each thread."""
        found: list[list[int]] = [[]]
        for i, one in enumerate(self.edges):
            found[-1].append(i)
            if one.external:
                found.append([])
        return found[:-1]

    @property
    def locations(self) -> list[int]:
        """The location of each access, numbered as they first occur."""
        found, number = [], 0
        for one in self.edges:
            found.append(number)
            number += not one.same
        last = {number: 0}  # the last location is the first one
        return [last.get(x, x) for x in found]

    @property
    def name(self) -> str:
        """All that the cycle is, as ``parse`` takes it."""
        words: list[str] = []
        for one, at in zip(self.edges, self.accesses, strict=True):
            words += [str(at)] if at != Access() else []
            words.append(str(one))
        return f"{'+'.join(words)}@{place_name(self.places)}"

    @property
    def shape(self) -> str:
        """The edges alone."""
        return " ".join(str(replace(one, via="")) for one in self.edges)


def distance(one: Place, other: Place) -> str:
    """How far two threads are from each other."""
    same = next((k for k in range(3) if one[k] != other[k]), 3)
    return LEVELS[3 - same]


def place_name(places: Sequence[Place]) -> str:
    """``gpu`` where all threads are so far from each other, else the numbers of each."""
    found = {distance(a, b) for n, a in enumerate(places) for b in places[:n]}
    return found.pop() if len(found) == 1 else ",".join("".join(map(str, place)) for place in places)


def uniform(level: str, threads: int) -> tuple[Place, ...]:
    """Places of threads that are all ``level`` from each other."""
    at = 3 - LEVELS.index(level)
    return tuple((*((0,) * at), t, *((0,) * (2 - at)))[:3] if at < 3 else (0, 0, 0) for t in range(threads))  # type: ignore[misc]


def renumbered(places: Sequence[Place]) -> tuple[Place, ...]:
    """The same places, numbered as they first occur."""
    groups: dict[tuple[int, ...], dict[int, int]] = {}
    found = []
    for place in places:
        path = tuple(groups.setdefault(place[:k], {}).setdefault(place[k], len(groups[place[:k]])) for k in range(3))
        found.append(path)
    return tuple(found)  # type: ignore[arg-type]


def canonical(cycle: Cycle) -> Cycle:
    """The cycle that stands for all its rotations, with places numbered as they first occur, and the address by which
    a location is first accessed as the one that is no alias."""
    edges, directions = cycle.edges, _writes_first(cycle)
    begins = [(t, first) for t, (first, *_) in enumerate(cycle.threads)]
    keys = [(directions[first:] + directions[:first], edges[first:] + edges[:first]) for _, first in begins]
    least = min(keys)  # what ``_key`` begins with; few cycles are alike in that from two threads on
    turned = [_from(cycle, *begin) for begin, key in zip(begins, keys, strict=True) if key == least]
    return turned[0] if len(turned) == 1 else min(turned, key=_key)


def rotations(cycle: Cycle) -> list[Cycle]:
    """The cycle from each of its threads on."""
    return [_from(cycle, t, first) for t, (first, *_) in enumerate(cycle.threads)]


def _from(cycle: Cycle, thread: int, first: int) -> Cycle:
    """The cycle from ``thread`` on, whose first access is ``first``."""
    edges = cycle.edges[first:] + cycle.edges[:first]
    accesses = cycle.accesses[first:] + cycle.accesses[:first]
    turned = Cycle(edges, accesses, renumbered(cycle.places[thread:] + cycle.places[:thread]))
    return replace(turned, accesses=_plain_first(turned)) if any(at.alias for at in accesses) else turned


def _plain_first(cycle: Cycle) -> tuple[Access, ...]:
    first: dict[int, bool] = {}
    accesses = []
    for at, where in zip(cycle.accesses, locations_of_objects(cycle), strict=True):
        accesses.append(replace(at, alias=at.alias != first.setdefault(where, at.alias)))
    return tuple(accesses)


def locations_of_objects(cycle: Cycle) -> list[int]:
    """The variable of each access: its location, or where that is an element of a vector, the lower one of the two."""
    where = cycle.locations
    lower = {x: x for x in where}
    for i, one in enumerate(cycle.edges):
        if one.kind == "Vec":
            a, b = where[i], where[(i + 1) % len(where)]
            lower[max(a, b)] = min(a, b)
    return [lower[x] for x in where]


def _key(cycle: Cycle) -> tuple[object, ...]:
    return _writes_first(cycle), cycle.edges, tuple(map(_rank, cycle.accesses)), cycle.places


def _writes_first(cycle: Cycle) -> str:
    """The directions, in an order in which writes come first, as in the usual names."""
    return cycle.directions.replace("W", "A")


def _rank(at: Access) -> tuple[int, int, bool, bool]:
    return ORDERS.index(at.order), (*LEVELS, "").index(at.scope), at.alias, at.wide


def fault(cycle: Cycle) -> str | None:
    """Why there is no test of this cycle, None if there is."""
    for one, other in zip(cycle.edges, (*cycle.edges[1:], cycle.edges[0]), strict=True):
        if one.between[1] != other.between[0]:
            ends = {"R": "a read", "W": "a write"}
            return f"{one} ends with {ends[one.between[1]]}, and {other} begins with {ends[other.between[0]]}"
    return _of_threads(cycle) or _of_locations(cycle) or _of_accesses(cycle) or _of_vectors(cycle) or _of_places(cycle)


def _of_threads(cycle: Cycle) -> str | None:
    external = [one for one in cycle.edges if one.external]
    if len(external) < 2:
        return "it has fewer than two edges to another thread"
    if all(one.kind in BARRIERS for one in external):
        return "the threads wait for each other all around"
    return None


def _of_locations(cycle: Cycle) -> str | None:
    changes = sum(not one.same for one in cycle.edges)
    if changes == 1:
        return "it changes its location once, and does not come back"
    if changes:
        return None
    breaks = [str(one) for one in cycle.edges if not KINDS[one.kind].follows]
    if len(breaks) == 1:
        return None
    if not breaks:
        return "every write would come after itself in coherence order"
    return f"it has one location, and not one edge of program order but {', '.join(breaks)}: write Rfi, Fri or Coi"


def _of_accesses(cycle: Cycle) -> str | None:
    for at, direction in zip(cycle.accesses, cycle.directions, strict=True):
        found = access_fault(at, direction)
        if found is not None:
            return found
    joined: set[int] = set()
    for i, one in enumerate(cycle.edges):
        if one.kind in ("Rmw", "Vec"):
            j = (i + 1) % len(cycle.edges)
            first, second = cycle.accesses[i], cycle.accesses[j]
            if first != second or (one.kind == "Rmw" and first.order != "weak"):
                return (
                    f"{one} is one instruction, and its accesses are not alike"
                    if first != second
                    else (f"the order of {one} stands in the edge")
                )
            if {i, j} & joined or (one.kind == "Vec" and first.wide):
                return f"{one} is part of another instruction, or too wide"
            joined |= {i, j}
    for i, one in enumerate(cycle.edges):
        if one.via == "data" and (i + 1) % len(cycle.edges) in joined:
            return f"{one} leads to a write that is not one of a plain store"
    return None


def _of_vectors(cycle: Cycle) -> str | None:
    if not any(one.kind == "Vec" for one in cycle.edges):
        return None
    where, n = cycle.locations, len(cycle.edges)
    pairs = {frozenset((where[i], where[(i + 1) % n])) for i, one in enumerate(cycle.edges) if one.kind == "Vec"}
    elements = [x for pair in pairs for x in pair]
    if len(elements) > len(set(elements)) or any(len(pair) < 2 for pair in pairs):
        return "a location would be an element of two vectors"
    if any(at.wide and x in elements for at, x in zip(cycle.accesses, where, strict=True)):
        return "an element of a vector is accessed with 64 bits"
    return None


def _of_places(cycle: Cycle) -> str | None:
    places, count = cycle.places, len(cycle.threads)
    if not places:
        return None
    if len(places) != count:
        return f"it has {count} threads, and {len(places)} places"
    for t, thread in enumerate(cycle.threads):
        kind, u = cycle.edges[thread[-1]].kind, (t + 1) % count
        apart = distance(places[t], places[u])
        if kind == "Bar" and (apart != "cta" or places.count(places[t]) > 2):
            return "Bar is between the only two threads of a CTA"
        if kind == "Cluster" and (apart != "cluster" or sum(p[:2] == places[t][:2] for p in places) > 2):
            return "Cluster is between the only two threads of a cluster, in two CTAs"
        if kind == "Mbar" and apart not in ("cta", "cluster"):
            return "Mbar is between two threads of a cluster"
    return None


def parse(text: str) -> Cycle:
    """The cycle of a text, in canonical form: edges, and between them the orders of accesses that are not weak, all
    separated by spaces or ``+``; then ``@`` and the places (``gpu`` if they are left out). A shape that has a name is
    written by it.

    Raises ``PtxmmError`` (kind ``usage``) with the column.
    """
    path, at, where = text.partition("@")
    edges: list[Edge] = []
    accesses: list[Access | None] = []
    waiting: Access | None = None
    for found in _WORD.finditer(path):
        try:
            if found[0] in SHAPES:
                if waiting is not None:
                    raise PtxmmError(f"`{found[0]}` is a whole cycle", kind="usage", hint=SHAPES[found[0]])
                more = [edge(word) for word in SHAPES[found[0]].split()]
                edges += more
                accesses += [None] * len(more)
            elif found[0].partition(".")[0] in ORDERS:
                if waiting is not None:
                    raise PtxmmError(f"`{found[0]}`: this access has an order already", kind="usage")
                waiting = access(found[0])
            else:
                edges.append(edge(found[0]))
                accesses.append(waiting)
                waiting = None
        except PtxmmError as error:
            raise _placed(error, text, found.start(), found.end()) from None
    if not edges:
        raise _placed(PtxmmError("there is no edge", kind="usage", hint="e.g. PodWW Rfe PodRR Fre"), text, 0, 1)
    if waiting is not None and accesses[0] is not None:
        raise _placed(PtxmmError("the first access has two orders", kind="usage"), text, 0, 1)
    accesses[0] = waiting if waiting is not None else accesses[0]
    if not all(one.same for one in edges):
        edges = [internal(one) if one.kind == "Po" and one.same else one for one in edges]
    cycle = Cycle(tuple(edges), tuple(one or Access() for one in accesses), ())
    return _seated(cycle, text, where.strip() if at else "gpu", len(path) + 1)


_WORD = re.compile("|".join([*(re.escape(name) for name in SHAPES if "+" in name), r"[^\s+]+"]))


def _seated(cycle: Cycle, text: str, where: str, column: int) -> Cycle:
    wrong = fault(cycle)
    if wrong is not None:
        raise _placed(PtxmmError(f"this is no cycle: {wrong}", kind="usage"), text, 0, column - 1)
    end = max(i for i, one in enumerate(cycle.edges) if one.external) + 1
    cycle = Cycle(cycle.edges[end:] + cycle.edges[:end], cycle.accesses[end:] + cycle.accesses[:end], ())
    places: tuple[Place, ...]
    if where in LEVELS:
        places = uniform(where, len(cycle.threads))
    elif re.fullmatch(r"[0-9]{3}(?:,[0-9]{3})*", where):
        places = tuple((int(p[0]), int(p[1]), int(p[2])) for p in where.split(","))
    else:
        hint = f"one of {', '.join(LEVELS)}, or for each thread its GPU, cluster and CTA: 000,001,010"
        raise _placed(PtxmmError(f"`{where}` says no places", kind="usage", hint=hint), text, column, len(text))
    cycle = replace(cycle, places=places)
    wrong = fault(cycle)
    if wrong is not None:
        raise _placed(PtxmmError(f"this is no test: {wrong}", kind="usage"), text, column, len(text))
    return canonical(cycle)


def _placed(error: PtxmmError, text: str, start: int, end: int) -> PtxmmError:
    error.line, error.column, error.width = 1, min(start, max(0, len(text) - 1)) + 1, max(1, end - start)
    error.file, error.source = "CYCLE", text
    return error


def named(cycle: Cycle) -> str | None:
    """The usual name of its shape, if it has one."""
    return next((name for name, text in SHAPES.items() if text == cycle.shape), None)
