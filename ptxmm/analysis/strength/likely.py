"""Which steps are likely to repair a program: those that order what is not ordered in an execution that must not be."""

from __future__ import annotations

from ptxmm.analysis.strength.structure import Step
from ptxmm.cat import Model
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Witness
from ptxmm.program.identity import Site
from ptxmm.program.test import Test

Pairs = frozenset[tuple[Site, Site]]
"""Pairs of instructions."""


def unordered(test: Test, model: Model, witness: Witness) -> Pairs:
    """The pairs of instructions that conflict in the execution of ``witness`` without either being before the other in
    causality order, those that are not morally strong if there are such; none where the model has no such relations.
    It only says what is tried first."""
    if not {"conflict", "cause", "ms"} <= model.definitions.keys():
        return frozenset()
    try:
        rebuilt = Confirmer(test, model).rebuild(witness)
    except Unconfirmed:
        return frozenset()
    algebra, events = rebuilt.layout.algebra, rebuilt.layout.events
    ordered, strong = rebuilt.evaluator.value("cause"), rebuilt.evaluator.value("ms")
    found: dict[bool, set[tuple[Site, Site]]] = {False: set(), True: set()}
    for a, b in algebra.pairs(rebuilt.evaluator.value("conflict")):
        one, two = (Site(events[n].id.thread, events[n].id.instruction) for n in (a, b))
        written = min(one.thread, two.thread) >= 0 and min(one.instruction, two.instruction) >= 0
        if a < b and written and one != two and not (algebra.has(ordered, a, b) or algebra.has(ordered, b, a)):
            found[algebra.has(strong, a, b)].add((one, two))
    return frozenset(found[False] or found[True])


def separated(step: Step, pairs: Pairs) -> int:
    """How many of ``pairs`` a step may order: a barrier those of which one instruction is before it and the other one
    behind it, any other step those of its threads."""
    if step.barrier is None:
        threads = {site.thread for site in (*step.added, *step.moved, *step.replaced)}
        return sum(not threads.isdisjoint(site.thread for site in pair) for pair in pairs)
    gaps: dict[int, list[int]] = {}
    for thread, index in sorted(step.added):
        gaps.setdefault(thread, []).append(index)

    def before(one: Site, two: Site) -> bool:
        met = zip(gaps.get(one.thread, ()), gaps.get(two.thread, ()), strict=False)
        return any(one.instruction < first and two.instruction >= second for first, second in met)

    return sum(one.thread != two.thread and (before(one, two) or before(two, one)) for one, two in pairs)
