"""The same program with its threads elsewhere: all in one warp, CTA, cluster or GPU, or on GPUs of their own.

Threads move one by one, but those that the program needs together (a *tie*) move as one block and stay as they were
to each other: lanes of a warp that exchange values, threads that use memory of their CTA or wait at its
barriers, CTAs of a cluster that wait for each other or know each other's memory, grids of one GPU that run in order.
Host threads stay where they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cat.ir import Coverage
from ptxmm.errors import PtxmmError
from ptxmm.program.accesses import check_access
from ptxmm.program.placement import CLUSTER_SIZE, WARP_SIZE, Cta, cta_of
from ptxmm.program.shared.convergence import gathers
from ptxmm.program.symbols import symbols
from ptxmm.program.test import MemoryObject, Placement, Test
from ptxmm.ptx import ops

K = TypeVar("K", bound=Hashable)

LEVELS = ("warp", "cta", "cluster", "gpu", "sys")
"""What the threads are in together, from the narrowest; each block is alone in what is one level below."""

WORDS = {
    "warp": "same warp",
    "cta": "same CTA",
    "cluster": "same cluster",
    "gpu": "same GPU",
    "sys": "different GPUs",
}

_APART = {
    "cta": "in different warps",
    "cluster": "in different CTAs",
    "gpu": "in different clusters",
    "sys": "on different GPUs",
}


class Tie(Struct, frozen=True):
    """Threads that stay together in a ``level`` (one of ``LEVELS``) as they are, because of ``reason``; ``closed``: no
    other thread may join them there, ``fixed``: nor may parts of them come closer to each other."""

    level: str
    threads: tuple[int, ...]
    reason: str
    closed: bool
    fixed: bool = False


class Placed(Struct, frozen=True):
    """A test with its threads placed at a level; ``test`` None: that can't be, for the ``reason``. ``together``: the
    ties that keep threads closer than the level asks for."""

    level: str
    test: Test | None
    reason: str | None
    together: tuple[Tie, ...] = ()


def placed(test: Test, level: str, coverage: Coverage) -> Placed:
    """``test`` with its threads in one thing of this ``level`` and apart from each other below it."""
    threads = [i for i, t in enumerate(test.threads) if not t.placement.host]
    if level == "cluster" and "cluster" not in coverage.scopes:
        return Placed(level, None, "the model has no clusters")
    known = list(ties(test))
    reason = _no_union(test, level, threads, known)
    if reason is not None:
        return Placed(level, None, reason)
    whole = [tie for tie in known if tie.fixed and tie.level == level and len(tie.threads) == len(threads)]
    if whole:
        return Placed(level, test, None, tuple(whole))
    finer = LEVELS[: LEVELS.index(level)]
    near = [tie for tie in known if len(tie.threads) > 1 and tie.level in finer]
    blocks = _blocks(threads, near)
    reason = _no_division(level, len(threads), len(blocks), near)
    if reason is not None:
        return Placed(level, None, reason)
    moved = _moved(test, _places(test, level, blocks))
    wrong = _refused(moved)
    return Placed(level, moved, None, tuple(near)) if wrong is None else Placed(level, None, wrong)


def _no_division(level: str, threads: int, blocks: int, near: Sequence[Tie]) -> str | None:
    """Why so many ``threads`` in so many ``blocks``, which the ties ``near`` make, can't be at this level, or None."""
    if level in _APART and blocks == 1:
        reasons = "; ".join(dict.fromkeys(tie.reason for tie in near))
        return f"no two threads can be {_APART[level]}: {reasons}"
    if (level == "warp" and threads > WARP_SIZE) or (level == "cluster" and blocks > CLUSTER_SIZE):
        return "there are too many of them"
    return None


def ties(test: Test) -> Iterator[Tie]:
    """What keeps threads of ``test`` together."""
    ctas = cta_of([t.placement for t in test.threads])
    for cta, members in _grouped({i: cta for i, cta in enumerate(ctas) if cta is not None}).items():
        yield from _warp_ties(test, members)
        yield from _cta_ties(test, cta, members)
    yield from _cluster_ties(test, ctas)
    yield from _grid_ties(test)


def _warp_ties(test: Test, members: Sequence[int]) -> Iterator[Tie]:
    counted = any(
        isinstance(op, ops.Barrier | ops.BarrierReduction) and op.count is not None
        for i in members
        for op in _body(test, i)
    )
    warps = {i: test.threads[i].placement.warp for i in members}
    for lanes in _grouped({i: ("alone", i) if warp is None else warp for i, warp in warps.items()}).values():
        op = _first(test, lanes, (ops.WarpBarrier, ops.WarpExchange)) or next(
            (op for i in lanes for op in _body(test, i) if gathers(op)), None
        )
        if op is not None:
            yield Tie("warp", tuple(lanes), f"`{_written(op)}` is about the lanes of a warp", True)
        elif counted:
            yield Tie("warp", tuple(lanes), "a barrier with a number of threads counts warps", True)


def _cta_ties(test: Test, cta: Cta, members: Sequence[int]) -> Iterator[Tie]:
    op = _first(test, members, (ops.Barrier, ops.BarrierReduction))
    if op is not None:
        yield Tie("cta", tuple(members), f"`{_written(op)}` waits for the threads of its CTA", True)
    for item in _shared(test):
        users = [i for i in members if _names(test, i, item)]
        if users and _owns(cta, item, users):
            yield Tie("cta", tuple(users), f"{item.key} is in {_memory(item)} of one CTA", False)


def _cluster_ties(test: Test, ctas: Sequence[Cta | None]) -> Iterator[Tie]:
    clusters = {
        i: ("cluster", *cta.path[:3]) if cta.path[2] is not None else cta
        for i, cta in enumerate(ctas)
        if cta is not None
    }
    for members in _grouped(clusters).values():
        op = _first(test, members, (ops.ClusterBarrier,))
        if op is not None:
            yield Tie("cluster", tuple(members), f"`{_written(op)}` waits for the threads of its cluster", True)
        op = _first(test, members, (ops.Mapa, ops.CtaRank)) or next(
            (o for i in members for o in _body(test, i) if isinstance(o, ops.BulkCopy) and o.mask is not None), None
        )
        if op is not None:
            yield Tie("cluster", tuple(members), f"`{_written(op)}` is about the CTAs of a cluster", True, True)
        for item in _shared(test):
            remote = [i for i in members if _names(test, i, item) and not _owns(ctas[i], item, [i])]
            if remote:
                home = [i for i in members if _owns(ctas[i], item, [i])]
                yield Tie("cluster", tuple(sorted({*remote, *home})), f"{item.key} is used from other CTAs", False)


def _grid_ties(test: Test) -> Iterator[Tie]:
    places = {i: thread.placement for i, thread in enumerate(test.threads) if not thread.placement.host}
    for members in _grouped({i: place.gpu for i, place in places.items()}).values():
        if len({places[i].grid for i in members}) > 1:
            yield Tie("gpu", tuple(members), "the grids of one GPU run one after the other", True, True)


def _grouped(keys: Mapping[int, K]) -> dict[K, list[int]]:
    """The threads by their keys."""
    groups: dict[K, list[int]] = {}
    for i, key in keys.items():
        groups.setdefault(key, []).append(i)
    return groups


def _no_union(test: Test, level: str, threads: Sequence[int], known: Sequence[Tie]) -> str | None:
    """Why the ``threads`` can't all be in one thing of this level, or None."""
    if level == "sys":
        return None
    places = [test.threads[i].placement for i in threads]
    if len({p.grid for p in places}) > 1:
        if level != "gpu":
            return "the threads are of several grids"
        if len({p.gpu for p in places}) > 1:
            return "grids of different GPUs have no order, and those of one GPU have"
    reason = _tied_apart(test, level, len(threads), known)
    owners = {item.owner: item.key for item in _shared(test)}
    if reason is None and level in ("warp", "cta") and len(owners) > 1:
        return f"{' and '.join(owners.values())} are in the memory of different CTAs"
    return reason


def _tied_apart(test: Test, level: str, threads: int, known: Sequence[Tie]) -> str | None:
    """Why a tie keeps the ``threads`` (so many) from being in one thing of this level, or None."""
    ctas = cta_of([t.placement for t in test.threads])
    for tie in known:
        closer = LEVELS.index(level) < LEVELS.index(tie.level)
        if tie.fixed and closer and len({ctas[i] for i in tie.threads}) > 1:
            return tie.reason
        if tie.closed and (closer or level == tie.level) and len(tie.threads) < threads:
            return tie.reason
    return None


def _blocks(threads: Sequence[int], near: Sequence[Tie]) -> list[list[int]]:
    """The threads in groups, each as small as the ties ``near`` allow."""
    group = {i: {i} for i in threads}
    for tie in near:
        merged = set().union(*(group[i] for i in tie.threads))
        for i in merged:
            group[i] = merged
    return [sorted(g) for g in dict.fromkeys(frozenset(group[i]) for i in threads)]


def _places(test: Test, level: str, blocks: Sequence[Sequence[int]]) -> dict[int, Placement]:
    """Where the threads of ``blocks`` are at a level. On a GPU each block is in a cluster of its own, inside which its
    CTAs are as they were; on a GPU of its own all of it is as it was."""
    first = test.threads[blocks[0][0]].placement
    numbers = _numbers([test.threads[block[0]].placement.cta for block in blocks])
    found = {}
    for number, block in enumerate(blocks):
        for i in block:
            own = test.threads[i].placement
            match level:
                case "warp":
                    found[i] = replace(first, cluster=None, cta=0, warp=0)
                case "cta":
                    found[i] = replace(first, cluster=None, cta=0, warp=number if len(block) > 1 else None)
                case "cluster":
                    found[i] = replace(first, cluster=0, cta=numbers[number], warp=own.warp)
                case "gpu":
                    found[i] = replace(own, gpu=first.gpu, cluster=number, cta=_own_cta(test, block, i))
                case _:
                    found[i] = replace(own, gpu=number)
    return found


def _own_cta(test: Test, block: Sequence[int], thread: int) -> int:
    """The number of the CTA of a thread in its block; those without one get the first that are free."""
    ctas = cta_of([test.threads[i].placement for i in block])
    order = list(dict.fromkeys(ctas))
    numbers = _numbers([cta.path[3] if cta is not None else None for cta in order])
    return numbers[order.index(ctas[block.index(thread)])]


def _numbers(wanted: Sequence[int | None]) -> list[int]:
    """Different numbers: those ``wanted`` where they are not taken before, else the smallest that no one wants."""
    free = (n for n in range(2 * len(wanted) + 1) if n not in wanted)
    found: list[int] = []
    for number in wanted:
        found.append(next(free) if number is None or number in found else number)
    return found


def _moved(test: Test, places: Mapping[int, Placement]) -> Test:
    """``test`` with its threads at these ``places``, and the .shared memory where its users are."""
    threads = tuple(replace(t, placement=places.get(i, t.placement)) for i, t in enumerate(test.threads))
    ctas = cta_of([t.placement for t in test.threads])
    objects = dict(test.objects)
    for key, item in test.objects.items():
        if item.owner is not None:
            inside = [i for i, cta in enumerate(ctas) if cta is not None and cta.path == item.owner]
            home = next((i for i in inside if _names(test, i, item)), inside[0])
            place = threads[home].placement
            objects[key] = replace(item, owner=place.path, thread=home if place.cta is None else None)
    return replace(test, threads=threads, objects=objects)


def _refused(test: Test) -> str | None:
    """Why an instruction can't be where it is now (such as a copy to another CTA inside one CTA), or None."""
    for thread in test.threads:
        for op in thread.body:
            try:
                check_access(op, thread.placement, test.objects)
            except PtxmmError as error:
                return f"`{_written(op)}`: {error.message}"
    return None


def _shared(test: Test) -> list[MemoryObject]:
    return [item for item in test.objects.values() if item.owner is not None and item.physical == item.key]


def _memory(item: MemoryObject) -> str:
    return "the .shared memory" if item.space == "shared" else "memory"


def _owns(cta: Cta | None, item: MemoryObject, users: Sequence[int]) -> bool:
    """Whether ``item`` lies in ``cta``, the CTA of ``users``."""
    if cta is None or item.owner != cta.path:
        return False
    return cta.thread is None or cta.thread in users


def _names(test: Test, thread: int, item: MemoryObject) -> bool:
    """Whether a thread names ``item`` or an alias of it, or may come to know its address."""
    keys = {key for key, other in test.objects.items() if other.physical == item.physical}
    if any(name in keys for op in _body(test, thread) for name in symbols(op)):
        return True
    known = [*test.threads[thread].initial.values(), *(v for other in test.objects.values() for v in other.initial)]
    return any(item.address <= value < item.address + item.size for value in known)


def _first(test: Test, threads: Sequence[int], kinds: tuple[type, ...]) -> ops.Op | None:
    return next((op for i in threads for op in _body(test, i) if isinstance(op, kinds)), None)


def _body(test: Test, thread: int) -> tuple[ops.Op, ...]:
    return test.threads[thread].body


def _written(op: ops.Op) -> str:
    return op.source.text.split()[0].rstrip(";")
