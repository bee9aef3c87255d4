"""The synchronization in an execution, by the definitions of its model."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.analysis.explain.events import EventView, Views
from ptxmm.analysis.explain.words import COMPOSITE, EDGES
from ptxmm.cat.ir import Model

_RELATIONS = (*COMPOSITE, "fsc", "barphase", "warpphase", "cluphase", "mbphase", "acomp", "api")
"""Definitions, and base relations where the model uses them, that order threads or asynchronous operations."""
_SAID = {"cluphase": "sync-cluster", "mbphase": "sync-mbarrier"}
"""Base relations that are left out where the model has a definition that says more."""


class Synchronization(Struct, frozen=True):
    """That ``first`` synchronizes with ``second`` or completes before it, as ``text`` says (``section`` of PTX 8.5)."""

    relation: str
    text: str
    section: str | None
    first: EventView
    second: EventView


def synchronization(model: Model, views: Views) -> tuple[Synchronization, ...]:
    """What synchronizes in the execution of ``views``: different instructions, each pair once, by the first relation
    that has it."""
    algebra, known = views.execution.layout.algebra, model.names()
    found: dict[tuple[object, object], Synchronization] = {}
    for name in _RELATIONS:
        if name in COMPOSITE and name in model.definitions:
            value, words = views.execution.evaluator.value(name), COMPOSITE[name]
        elif name in EDGES and name in known and _SAID.get(name) not in model.definitions:
            value, words = views.execution.base(name) or 0, EDGES[name]
        else:
            continue
        for a, b in algebra.pairs(value):
            first, second = views.event(a), views.event(b)
            if first.same != second.same:
                item = Synchronization(name, words.text, words.section, first, second)
                found.setdefault((first.same, second.same), item)
    return tuple(found.values())
