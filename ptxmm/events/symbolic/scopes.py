"""Scopes on the symbolic side: which threads the scope of an operation includes (PTX ISA 8.5)."""

from __future__ import annotations

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.phases import cta_key
from ptxmm.program.test import Test


def scope_of(event: Event) -> str | None:
    """The scope of a strong operation, None for a weak one, a proxy fence or a barrier."""
    return getattr(event.op, "scope", None) if event.kind in ("R", "W", "F") else None


def in_scope(test: Test, event: Event, thread: int) -> bool:
    """Whether the scope of ``event`` includes ``thread``; weak operations have no scope."""
    scope = scope_of(event)
    if scope is None:
        return False
    mine, other = test.threads[event.thread].placement, test.threads[thread].placement
    if scope == "sys" or event.thread == thread:
        return True
    if mine.host or other.host:
        return False
    if scope == "gpu":
        return mine.gpu == other.gpu
    if scope == "cluster" and mine.cluster is not None:
        return (mine.gpu, mine.grid, mine.cluster) == (other.gpu, other.grid, other.cluster)
    return cta_key(test, event.thread) == cta_key(test, thread)
