"""Which base sets and relations a litmus test has at all, and which parts of a model are empty for it therefore."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache

from ptxmm.cat import names
from ptxmm.cat.syntax import Call, Check, Conditional, Expression, Let, Name, Statement
from ptxmm.engines.result import Limits
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.machine import Reading
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.relations.symbolic import EventSet
from tests.mutants import Mutant, case_named, statements


@cache
def present(name: str) -> frozenset[str]:
    """The base names of models that are not empty in every execution of a litmus test (under ``ptx-8.5``)."""
    test = case_named(name).test
    reading = Reading(unroll=2, tear=True, simplify=True, ordered=True)
    program = build(test, (), reading, Limits(deadline=time.monotonic() + 20).check)
    base = Base(program)
    found = {"_", "E", "id"}
    for item in names.SETS | names.RELATIONS:
        value = base(item)
        rows = value.must if isinstance(value, EventSet) else any(value.must)
        if rows or value.may:
            found.add(item)
    return frozenset(found)


def possible(item: Expression, known: Mapping[str, bool]) -> bool:
    """Whether ``item`` can have a member, if the names that ``known`` has under False have none."""
    match item:
        case Name(name=name):
            return known.get(name, False)
        case Call(name="domain" | "range", arguments=arguments):
            return possible(arguments[0], known)
        case Call() | Conditional():
            return True
    parts = [possible(o, known) for o in item.operands]
    match item.operator:
        case "|":
            return any(parts)
        case ";" | "&" | "*":
            return all(parts)
        case "?" | "star" | "~":
            return True
    return parts[0]


@cache
def _model(name: str) -> list[Statement]:
    return statements(name)


@cache
def environment(model: str, base: frozenset[str]) -> Mapping[str, bool]:
    """Which names of a model can have members where only the base names ``base`` have."""
    known = dict.fromkeys(base, True)
    for item in _model(model):
        if isinstance(item, Let):
            for _ in range(2 if item.recursive else 1):
                for d in item.definitions:
                    known.update(dict.fromkeys((p.name for p in d.parameters or ()), True))
                    known[d.name] = d.parameters is not None or possible(d.body, known)
        assert isinstance(item, Let | Check)
    return known


def may_notice(name: str, mutant: Mutant) -> bool:
    """Whether the litmus test can tell the mutant from the model as far as emptiness shows."""
    if mutant.changed is None:
        return True
    known = environment(mutant.model, present(name))
    if mutant.lost is not None and not possible(mutant.lost, known):
        return False
    return any(possible(body, known) for body in mutant.changed)
