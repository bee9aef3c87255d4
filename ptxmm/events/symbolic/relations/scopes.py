"""Scopes on the symbolic side: which threads the scope of an operation includes (PTX ISA 8.5)."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.events.symbolic.barriers.scenarios import cta_key
from ptxmm.events.symbolic.event import Event
from ptxmm.program.identity import TENSORMAP
from ptxmm.program.test import OwnerPath, Test
from ptxmm.ptx.ops import (
    AsyncStore,
    Atomic,
    BulkCopy,
    CopyAsyncArrive,
    Fence,
    GenericToAsyncFence,
    Load,
    MbarrierArrive,
    MbarrierInitFence,
    MbarrierTx,
    MbarrierWait,
    Multimem,
    Store,
    TensormapCopyFence,
    TensormapFence,
)


def scope_of(event: Event) -> str | None:
    """The scope of a strong operation, None for a weak one and for what is neither weak nor strong."""
    op = event.op
    match event.kind:
        case "R" | "W":
            if isinstance(op, Load | Store | Atomic | Multimem):
                return op.scope
            if isinstance(op, AsyncStore) and op.reduction is not None:
                return "cluster"
            if isinstance(op, BulkCopy) and op.reduction is not None and 0 < event.id.operand < TENSORMAP:
                return "gpu"
        case "F":
            if isinstance(op, Fence | TensormapFence | TensormapCopyFence):
                return op.scope
            if isinstance(op, MbarrierInitFence | GenericToAsyncFence):
                return "cluster"
        case "MBA" | "MBW":
            if isinstance(op, MbarrierArrive | MbarrierTx | MbarrierWait):
                return op.scope
            return "cta" if isinstance(op, CopyAsyncArrive) else "cluster"
        case "CA" | "CW":
            return "cluster"
    return None


class Site(Struct, frozen=True):
    """A place in the scope tree. ``cluster`` and ``cta`` are unique in the whole program."""

    host: bool
    gpu: int
    cluster: object
    cta: object


def site_of(test: Test, event: Event) -> Site:
    """Where an event is for scopes: where its thread is, or the CTA that takes its place."""
    return thread_site(test, event.thread) if event.home is None else _owner_site(test, event.home)


def thread_site(test: Test, thread: int) -> Site:
    """The place of a thread; a CTA that is in no cluster is a cluster of its own."""
    place, cta = test.threads[thread].placement, cta_key(test, thread)
    cluster = (place.gpu, place.grid, place.cluster) if place.cluster is not None else cta
    return Site(place.host, place.gpu, ("thread", thread) if place.host else cluster, cta)


def _owner_site(test: Test, owner: OwnerPath) -> Site:
    """The place of a CTA that an object lies in."""
    for index, thread in enumerate(test.threads):
        place = thread.placement
        if not place.host and place.path == owner:
            return thread_site(test, index)
    return Site(False, owner[0], owner[:3] if owner[2] is not None else owner, owner)


def includes(scope: str, mine: Site, other: Site) -> bool:
    """Whether ``scope`` around ``mine`` includes ``other``."""
    if scope == "sys" or mine == other:
        return True
    if mine.host or other.host:
        return False
    if scope == "gpu":
        return mine.gpu == other.gpu
    return mine.cluster == other.cluster if scope == "cluster" else mine.cta == other.cta


def in_scope(test: Test, event: Event, other: Event) -> bool:
    """Whether the scope of ``event`` includes where ``other`` is; weak operations have no scope."""
    scope = scope_of(event)
    if scope is None:
        return False
    if event.thread == other.thread and event.home is None and other.home is None:
        return True
    return includes(scope, site_of(test, event), site_of(test, other))
