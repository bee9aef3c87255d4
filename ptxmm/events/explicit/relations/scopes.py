"""Where threads stand in the scope tree of the explicit side (PTX ISA 8.5, 2.2)."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.program.test import OwnerPath, Test


class Place(Struct, frozen=True):
    """The warp, CTA, cluster and GPU of a thread, each by a value that is equal for threads that share it."""

    warp: tuple[object, ...]
    cta: tuple[object, ...]
    cluster: tuple[object, ...]
    gpu: tuple[object, ...]

    def around(self, scope: str) -> tuple[object, ...]:
        """What is equal for the threads that ``scope`` of an operation of a thread here contains."""
        return () if scope == "sys" else getattr(self, scope)


SCOPES = ("cta", "cluster", "gpu", "sys")


def places(test: Test) -> tuple[Place, ...]:
    """The place of each thread. Host threads share nothing below ``.sys``; a CTA without a cluster is its own."""
    found = []
    for i, thread in enumerate(test.threads):
        p = thread.placement
        alone = ("thread", i)
        if p.host:
            found.append(Place(alone, alone, alone, alone))
            continue
        cta = alone if p.cta is None else ("cta", *p.path)
        cluster = ("cluster", cta) if p.cluster is None else ("cluster", p.gpu, p.grid, p.cluster)
        warp = alone if p.warp is None else ("warp", cta, p.warp)
        found.append(Place(warp, cta, cluster, ("gpu", p.gpu)))
    return tuple(found)


def owner_place(owner: OwnerPath | None, user: Place) -> Place:
    """The place of the CTA that shared memory with this ``owner`` lies in; ``user`` accesses it.

    Only its own thread accesses the memory of a CTA without a number.
    """
    if owner is None or owner[3] is None:
        return user
    gpu, grid, cluster, cta = owner
    here = ("cta", gpu, grid, cluster, cta)
    around = ("cluster", here) if cluster is None else ("cluster", gpu, grid, cluster)
    return Place(("warp", here, None), here, around, ("gpu", gpu))
