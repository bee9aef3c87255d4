"""Where the threads of a test run on a GPU: which CTA of which cluster, and which warp of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from ptxmm.hardware.refusal import refused
from ptxmm.program.placement import Cta, cta_of
from ptxmm.program.test import MemoryObject, Test


class Seat(Struct, frozen=True):
    """The place of a thread, or of shared memory: in the launch ``device`` (of a GPU, or of a grid where one GPU has
    several), in its cluster ``unit``, in the CTA ``rank`` of that, and there in the warp ``seat`` the thread ``lane``
    of those that share it; all from 0."""

    device: int
    unit: int
    rank: int
    seat: int = 0
    lane: int = 0

    @property
    def cta(self) -> tuple[int, int, int]:
        """The CTA that it is in."""
        return self.device, self.unit, self.rank


class Seating(Struct, frozen=True):
    """The seat of each thread of a test. ``ctas``: of each CTA, without a warp; ``devices``, ``units``, ``ranks``,
    ``width``: how many launches there are, the most clusters of one, CTAs in a cluster and warps in a CTA; ``lanes``:
    room for the threads of a warp, a power of two. ``grids``: the launches are those of one GPU, one after the other.
    """

    seats: tuple[Seat, ...]
    ctas: Mapping[Cta, Seat]
    devices: int
    units: int
    ranks: int
    width: int
    lanes: int = 1
    grids: bool = False

    def owner(self, item: MemoryObject) -> Seat:
        """The CTA that a shared object lies in."""
        assert item.owner is not None
        return self.ctas[Cta(item.owner, item.thread if item.owner[3] is None else None)]


def seating(test: Test) -> Seating:
    """Seats for the threads of ``test``: each has a warp of its own but for those of a named one, of CTAs in the order
    of their numbers.

    Raises ``PtxmmError`` (kind ``unsupported``) for threads of the host, of grids that overlap, and of several grids
    beside another GPU.
    """
    ctas = _ctas(test)
    launches = sorted({cta.path[:2] for cta in ctas})
    clusters: dict[tuple[int, int], list[object]] = defaultdict(list)
    members: dict[tuple[tuple[int, int], object], list[Cta]] = defaultdict(list)
    for cta in sorted(set(ctas), key=lambda cta: (cta.path[3] is None, cta.path[3] or 0, ctas.index(cta))):
        launch, cluster = cta.path[:2], cta.path[2]
        unit: object = cta if cluster is None else (*launch, cluster)
        if unit not in clusters[launch]:
            clusters[launch].append(unit)
        members[launch, unit].append(cta)
    seats_of = {
        cta: Seat(launches.index(launch), clusters[launch].index(unit), rank)
        for (launch, unit), inside in members.items()
        for rank, cta in enumerate(inside)
    }
    warps: dict[Cta, list[object]] = defaultdict(list)
    sharing: dict[tuple[Cta, object], int] = defaultdict(int)
    seats = []
    for number, (thread, cta) in enumerate(zip(test.threads, ctas, strict=True)):
        warp = ("own", number) if thread.placement.warp is None else ("named", thread.placement.warp)
        if warp not in warps[cta]:
            warps[cta].append(warp)
        at = seats_of[cta]
        seats.append(Seat(at.device, at.unit, at.rank, warps[cta].index(warp), sharing[cta, warp]))
        sharing[cta, warp] += 1
    ranks = max(map(len, members.values()))
    return Seating(
        tuple(seats),
        seats_of,
        len(launches),
        max(map(len, clusters.values())),
        1 << (ranks - 1).bit_length(),
        max(map(len, warps.values())),
        1 << (max(sharing.values()) - 1).bit_length(),
        len(launches) > len({gpu for gpu, _ in launches}),
    )


def _ctas(test: Test) -> list[Cta]:
    """The CTA of each thread."""
    ctas: list[Cta] = []
    grids: dict[int, int] = {}
    gpus = {thread.placement.gpu for thread in test.threads}
    for thread, cta in zip(test.threads, cta_of([thread.placement for thread in test.threads]), strict=True):
        place = thread.placement
        if cta is None:
            raise refused(test, thread.name, "a thread of the host is not run on a GPU")
        if grids.setdefault(place.gpu, place.grid) != place.grid:
            if len(gpus) > 1:
                raise refused(test, thread.name, "several grids of one GPU beside another GPU are not run")
            if any(other.placement.overlap for other in test.threads):
                raise refused(test, thread.name, "grids that may overlap are not run yet, only those in order")
        ctas.append(cta)
    return ctas
