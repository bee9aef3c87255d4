"""Where the threads of a test run on a GPU: which CTA of which cluster, and which warp of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from ptxmm.hardware.refusal import refused
from ptxmm.program.placement import Cta, cta_of
from ptxmm.program.test import MemoryObject, Test


class Seat(Struct, frozen=True):
    """The place of a thread, or of shared memory: on the GPU ``device``, in its cluster ``unit``, in the CTA ``rank``
    of that, and there in the warp ``seat``; all from 0."""

    device: int
    unit: int
    rank: int
    seat: int = 0

    @property
    def cta(self) -> tuple[int, int, int]:
        """The CTA that it is in."""
        return self.device, self.unit, self.rank


class Seating(Struct, frozen=True):
    """The seat of each thread of a test. ``ctas``: of each CTA, without a warp; ``devices``, ``units``, ``ranks``,
    ``width``: how many GPUs there are, the most clusters on one, CTAs in a cluster and warps in a CTA."""

    seats: tuple[Seat, ...]
    ctas: Mapping[Cta, Seat]
    devices: int
    units: int
    ranks: int
    width: int

    def owner(self, item: MemoryObject) -> Seat:
        """The CTA that a shared object lies in."""
        assert item.owner is not None
        return self.ctas[Cta(item.owner, item.thread if item.owner[3] is None else None)]


def seating(test: Test) -> Seating:
    """Seats for the threads of ``test``: each has a warp of its own, of CTAs in the order of their numbers.

    Raises ``PtxmmError`` (kind ``unsupported``) for threads of the host, of one warp, and of several grids of one GPU.
    """
    places = [thread.placement for thread in test.threads]
    grids: dict[int, int] = {}
    warps = set()
    ctas: list[Cta] = []
    for thread, cta in zip(test.threads, cta_of(places), strict=True):
        place = thread.placement
        if cta is None:
            raise refused(test, thread.name, "a thread of the host is not run on a GPU")
        if grids.setdefault(place.gpu, place.grid) != place.grid:
            raise refused(test, thread.name, "threads of several grids of one GPU are not run yet")
        if place.warp is not None and (cta, place.warp) in warps:
            raise refused(test, thread.name, "threads of one warp are not run yet: each has a warp of its own")
        warps.add((cta, place.warp))
        ctas.append(cta)
    devices = {gpu: number for number, gpu in enumerate(sorted({place.gpu for place in places}))}
    clusters: dict[int, list[object]] = defaultdict(list)
    members: dict[tuple[int, object], list[Cta]] = defaultdict(list)
    for cta in sorted(set(ctas), key=lambda cta: (cta.path[3] is None, cta.path[3] or 0, ctas.index(cta))):
        gpu, grid, cluster, _ = cta.path
        unit: object = cta if cluster is None else (gpu, grid, cluster)
        if unit not in clusters[gpu]:
            clusters[gpu].append(unit)
        members[gpu, unit].append(cta)
    seats_of = {
        cta: Seat(devices[gpu], clusters[gpu].index(unit), rank)
        for (gpu, unit), inside in members.items()
        for rank, cta in enumerate(inside)
    }
    taken: dict[Cta, int] = defaultdict(int)
    seats = []
    for cta in ctas:
        at = seats_of[cta]
        seats.append(Seat(at.device, at.unit, at.rank, taken[cta]))
        taken[cta] += 1
    ranks = max(map(len, members.values()))
    return Seating(
        tuple(seats),
        seats_of,
        len(devices),
        max(map(len, clusters.values())),
        1 << (ranks - 1).bit_length(),
        max(taken.values()),
    )
