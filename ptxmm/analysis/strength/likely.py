"""Which steps are likely to repair a program: those that order what is not ordered in an execution that must not be."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxmm.analysis.strength.structure import Step
from ptxmm.analysis.strength.superposition import Superposition
from ptxmm.cat import Model
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Witness
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.ptx import ops

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


def nearest(everything: Superposition, switches: Collection[Switch], pairs: Pairs) -> list[Switch]:
    """Those of ``switches`` that may order ``pairs`` by what there is: orders and scopes of strong accesses, and fences
    beside these; releases behind one of the two, acquires before the other. The nearest come first."""
    ends = {site for pair in pairs for site in pair}
    found: list[tuple[int, bool, Switch]] = []
    for switch in switches:
        added, name = everything.places[switch.site].added, everything.step(switch)
        for site in (everything.places[site].site for site, owner in everything.owners.items() if owner == switch.site):
            away = [end.instruction - site.instruction for end in ends if end.thread == site.thread]
            if name == "release":
                away = [distance for distance in away if distance <= -added]
            elif name == "acquire":
                away = [distance for distance in away if distance >= 0]
            if away and _beside_strong(everything.original.threads[site.thread].body, site.instruction, name, added):
                found.append((min(map(abs, away)), added, switch))
    return list(dict.fromkeys(switch for _, _, switch in sorted(found)))


def _beside_strong(body: Sequence[ops.Op], pc: int, name: str, added: bool) -> bool:
    """Whether a step of this name is one of a strong access at ``pc``, or of a fence before it (``added``) that makes a
    pattern with a strong access beside it."""
    here = body[pc] if pc < len(body) else None
    if not added:
        return isinstance(here, ops.Load | ops.Store | ops.Atomic) and here.sem != "weak"
    before = next((op for op in reversed(body[:pc]) if isinstance(op, ops.Load | ops.Atomic)), None)
    write = isinstance(here, ops.Store | ops.Atomic) and here.sem != "weak"
    read = before is not None and before.sem != "weak"
    return (write and name in ("release", "fence")) or (read and name in ("acquire", "fence"))
