"""Functions of generic addresses: mapa, getctarank and isspacep (PTX ISA 9.7.10.18, .22, .23)."""

from __future__ import annotations

from ptxmm.program.test import MemoryObject, OwnerPath, Test

RANKS = 16
"""The most CTAs of a cluster."""


def path_of(test: Test, thread: int) -> OwnerPath | None:
    """The CTA of a thread as the ``owner`` of an object gives it; None for a host thread."""
    place = test.threads[thread].placement
    return None if place.host else place.path


def _shared(test: Test, address: int) -> tuple[MemoryObject, int, OwnerPath] | None:
    found = test.locate(address)
    if found is None or found[0].space != "shared" or found[0].owner is None:
        return None
    return *found, found[0].owner


def mapped(test: Test, address: int, rank: int, window: bool = False) -> int:
    """The address in CTA ``rank`` of the cluster of the shared variable at ``address``; 0 where there is none.

    ``window``: the one in ``.shared::cluster``, else the generic one.
    """
    found = _shared(test, address)
    if found is None:
        return 0
    item, offset, owner = found
    for other in test.objects.values():
        if (
            other.space == "shared"
            and other.virtual == other.key
            and other.name == item.name
            and other.owner is not None
            and other.owner[:3] == owner[:3]
            and _rank(test, other.owner) == rank
        ):
            return (other.mapped if window else other.address) + offset
    return 0


def cta_rank(test: Test, address: int) -> int:
    """The rank in its cluster of the CTA that the shared variable at ``address`` lies in; 0 where it is none."""
    found = _shared(test, address)
    return 0 if found is None else _rank(test, found[2])


def _rank(test: Test, owner: OwnerPath) -> int:
    """The number of the CTA as written, or where one is too great, its place among those of the cluster."""
    if owner[2] is None or owner[3] is None:
        return 0
    paths = [path_of(test, t) for t in range(len(test.threads))] + [o.owner for o in test.objects.values()]
    known = sorted({p[3] for p in paths if p is not None and p[:3] == owner[:3] and p[3] is not None})
    return owner[3] if known[-1] < RANKS else known.index(owner[3])


def in_space(test: Test, thread: int, address: int, space: str) -> bool:
    """Whether a generic ``address`` of ``thread`` lies in the window of ``space``."""
    found = test.locate(address)
    if found is None:
        return False
    item = found[0]
    name, _, part = space.partition("::")
    if name != item.space:
        return False
    if name != "shared":
        return True
    mine = path_of(test, thread)
    if mine is None or item.owner is None:
        return False
    return mine == item.owner or (part == "cluster" and mine[2] is not None and mine[:3] == item.owner[:3])
