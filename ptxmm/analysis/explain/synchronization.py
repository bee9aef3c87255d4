"""The synchronization in an execution, by the definitions of its model."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.words import COMPOSITE, EDGES, Words
from ptxmm.analysis.result import EventView
from ptxmm.cat.ir import Model
from ptxmm.engines.explicit.witness import Rebuilt

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


def relations(execution: Rebuilt) -> Iterator[tuple[str, Words, int]]:
    """The relations that order threads or asynchronous operations in ``execution``: names, words and values."""
    model = execution.evaluator.model
    known = model.names()
    for name in _RELATIONS:
        if name in COMPOSITE and name in model.definitions and _counts(model, name):
            yield name, COMPOSITE[name], execution.evaluator.value(name)
        elif name in EDGES and name in known and _SAID.get(name) not in model.definitions:
            yield name, EDGES[name], execution.base(name) or 0


def _counts(model: Model, name: str) -> bool:
    """Whether anything that a model says rests on a definition; a disjunct that was left out may have been all."""
    index = model.definitions[name].index
    return any(axiom.body.reach >> index & 1 for axiom in model.axioms)


def synchronization(views: Views) -> tuple[Synchronization, ...]:
    """What synchronizes in the execution of ``views``: different instructions, each pair once, by the first relation
    that has it. What follows is left out: of Fence-SC order all but its neighbours, and what is in program order."""
    algebra = views.execution.layout.algebra
    order = views.execution.base("po") or 0
    found: dict[tuple[object, object], Synchronization] = {}
    for name, words, value in relations(views.execution):
        if name == "fsc":
            value = algebra.difference(algebra.difference(value, algebra.sequence(value, value)), order)
        for a, b in algebra.pairs(value):
            first, second = views.event(a), views.event(b)
            if first.same != second.same:
                item = Synchronization(name, words.text, words.section, first, second)
                found.setdefault((first.same, second.same), item)
    return tuple(found.values())
