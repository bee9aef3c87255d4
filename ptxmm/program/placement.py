"""The scope tree: which CTA and warp each thread is in, and the names of CTAs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.program.source import LEVELS, Path, ThreadSource
from ptxmm.program.test import OwnerPath, Placement

WARP_SIZE = 32
CTA_SIZE = 1024
CLUSTER_SIZE = 16


class Cta(Struct, frozen=True):
    """A CTA: its path, and the first thread in it if it has no name of its own."""

    path: OwnerPath
    thread: int | None = None

    @property
    def numbers(self) -> dict[str, int | None]:
        """Its path, by level."""
        return dict(zip(LEVELS, self.path, strict=False))

    def text(self, levels: Sequence[str]) -> str:
        """Its name by those of ``levels`` that it has, as ``gpu 1, cta 0``."""
        return ", ".join(f"{level} {n}" for level in levels if (n := self.numbers[level]) is not None)


def cta_of(placements: Sequence[Placement]) -> list[Cta | None]:
    """The CTA of each thread; None for host threads. A thread without ``cta`` is in a CTA of its own."""
    found: list[Cta | None] = []
    for index, p in enumerate(placements):
        found.append(None if p.host else Cta(p.path, index if p.cta is None else None))
    return found


def includes(scope: str, mine: Placement, other: Placement) -> bool:
    """Whether ``scope`` around one thread includes another thread (PTX ISA 8.5)."""
    if scope == "sys":
        return True
    if mine.host or other.host or mine.gpu != other.gpu:
        return False
    if scope == "gpu":
        return True
    together = mine.grid == other.grid and mine.cluster == other.cluster
    if scope == "cluster" and mine.cluster is not None:
        return together
    return together and mine.cta is not None and mine.cta == other.cta


def check_placements(threads: Sequence[ThreadSource]) -> list[Cta | None]:
    """The CTA of each thread, after checking names, warps, clusters, grids and sizes.

    A warp is identified by its number within its CTA; it has at most 32 threads, a CTA at most 1024, a cluster at most
    16 CTAs. Raises ``PtxmmError`` (kind ``name``).
    """
    seen: dict[str, ThreadSource] = {}
    for thread in threads:
        if thread.name in seen:
            raise _error(f"a second thread `{thread.name}`", thread)
        seen[thread.name] = thread
    ctas = cta_of([t.placement for t in threads])
    warps: Counter[tuple[Cta, int]] = Counter()
    sizes: Counter[Cta] = Counter()
    by_number: defaultdict[int, list[tuple[int, Cta]]] = defaultdict(list)
    for index, (thread, cta) in enumerate(zip(threads, ctas, strict=True)):
        if cta is None:
            continue
        sizes[cta] += 1
        if sizes[cta] > CTA_SIZE:
            raise _error(f"more than {CTA_SIZE} threads in one CTA", thread)
        number = thread.placement.warp
        if number is None:
            continue
        for other, other_cta in by_number[number]:
            if other_cta != cta and (cta.thread is not None or other_cta.thread is not None):
                first = threads[other].name
                message = f"{first} and {thread.name} are both in warp {number} but not in the same CTA"
                raise _error(message, thread, hint="name the CTA of both: `cta 0`")
        by_number[number].append((index, cta))
        warps[cta, number] += 1
        if warps[cta, number] > WARP_SIZE:
            raise _error(f"more than {WARP_SIZE} threads in warp {number}", thread)
    _check_clusters(threads, ctas)
    _check_grids(threads)
    return ctas


def _check_clusters(threads: Sequence[ThreadSource], ctas: Sequence[Cta | None]) -> None:
    """A cluster, which is in one grid, has at most 16 CTAs."""
    clusters: defaultdict[tuple[int, int, int | None], set[Cta]] = defaultdict(set)
    for thread, cta in zip(threads, ctas, strict=True):
        if cta is not None and (cluster := cta.path[2]) is not None:
            members = clusters[cta.path[:3]]
            members.add(cta)
            if len(members) > CLUSTER_SIZE:
                raise _error(f"more than {CLUSTER_SIZE} CTAs in cluster {cluster}", thread)


def _check_grids(threads: Sequence[ThreadSource]) -> None:
    """All threads of a grid say the same about how it is launched."""
    first: dict[tuple[int, int], ThreadSource] = {}
    for thread in threads:
        place = thread.placement
        if place.host:
            continue
        other = first.setdefault((place.gpu, place.grid), thread)
        if other.placement.overlap != place.overlap:
            message = f"{other.name} and {thread.name} are in grid {place.grid}, but only one of them says `overlap`"
            raise _error(message, thread, hint=f"write `grid {place.grid} overlap` for every thread of the grid")


def find_cta(path: Path, ctas: Sequence[Cta | None]) -> Cta:
    """The CTA of some thread that ``path`` names; a level that is left out is 0 if that is what makes it unique.

    Raises ``PtxmmError`` (kind ``name``) if there is none or more than one.
    """
    wanted = dict(path.levels)
    known = list(dict.fromkeys(c for c in ctas if c is not None and c.path[3] is not None))
    matching = [c for c in known if all(n == c.numbers.get(level) for level, n in wanted.items())]
    if len(matching) > 1:
        default = {"gpu": 0, "grid": 0, "cluster": None}
        exact = [c for c in matching if all(c.numbers[k] == wanted.get(k, v) for k, v in default.items())]
        matching = exact or matching
    if len(matching) == 1 and "cta" in wanted:
        return matching[0]
    if not matching:
        message, hint = f"no thread is in {path.text}", None
    elif "cta" not in wanted:
        message, hint = f"`{path.text}` names no CTA", "add `cta N`"
    else:
        message, hint = f"{len(matching)} CTAs are called {path.text}", "name more levels: gpu, grid, cluster"
    raise PtxmmError(message, kind="name", hint=hint).at(path.span)


def short_names(ctas: Sequence[Cta]) -> dict[Cta, str]:
    """A name for each of several CTAs, with as few levels as tell them apart."""
    for more in (levels for size in range(4) for levels in combinations(("cluster", "grid", "gpu"), size)):
        levels = (*reversed(more), "cta")
        names = {cta: cta.text(levels) for cta in ctas}
        if len(set(names.values())) == len(names):
            return names
    raise AssertionError("two CTAs have the same path")


def _error(message: str, thread: ThreadSource, hint: str | None = None) -> PtxmmError:
    return PtxmmError(message, kind="name", hint=hint).at(thread.span)
