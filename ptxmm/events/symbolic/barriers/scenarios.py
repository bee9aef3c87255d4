"""Barriers of the symbolic side: every way in which the paths of the threads meet at barriers and mbarriers.

Sources: PTX ISA 9.7.14.1 (bar), .2 (bar.warp.sync), .3 (barrier.cluster), .15 (mbarrier), 8.9.4(2) and (3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from ptxmm.events.symbolic.barriers import facts
from ptxmm.events.symbolic.barriers.mbarrier import Counts, initial_counts
from ptxmm.events.symbolic.barriers.paths import Node, Object, Step, matches, paths
from ptxmm.events.symbolic.barriers.state import Members, Scenario, cta_key, members
from ptxmm.events.symbolic.event import Mbarrier, ThreadEvents
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.relations.formula import FALSE, Formulas

_F = TypeVar("_F", bound=facts.Fact)


def scenarios(
    test: Test, formulas: Formulas, threads: list[ThreadEvents], check: Callable[[], None], ordered: bool = False
) -> list[Scenario]:
    """Every scenario of ``threads``, the threads of ``test``; ``check`` may raise ``Timeout``.

    ``ordered``: scenarios tell which arrival at an mbarrier came right before each operation.

    Threads that share no barrier are in groups of their own, since each scenario of one group goes with each of the
    others. Where one of them has no meaning, it ends the run wherever the others are: then there is one group.
    """
    shared = members(test)
    # Without an end, a path is one that is cut by the bound, or spins.
    endless = any(thread.cut != FALSE or thread.spun != FALSE for thread in threads)
    # The simulations are loaded where there is something to simulate.
    if test.dialect:
        from ptxmm.events.symbolic.barriers.dialect import outcomes

        return _different(outcomes(test, shared, formulas, threads, check), endless)
    from ptxmm.events.symbolic.barriers.explore import runs

    starts = [
        paths(formulas, thread, lambda step, t=t: shared.object_of(t, step), check)  # type: ignore[misc]
        for t, thread in enumerate(threads)
    ]

    def simulated(
        group: frozenset[int], starts: list[tuple[Node, ...]], initial: dict[Mbarrier, Counts], number: int = 0
    ) -> Iterator[Scenario]:
        for run, order in runs(shared, starts, initial, ordered, check):
            yield _scenario(group, run, order, number)

    initial = initial_counts(test)
    groups = _groups(shared, starts)
    found: list[Scenario] = []
    for number, group in enumerate(groups):
        alone = [nodes if t in group else (_ENDED,) for t, nodes in enumerate(starts)]
        own = {place: counts for place, counts in initial.items() if _group_of(place, starts, groups) == number}
        found += simulated(group, alone, own, number) if len(groups) > 1 else ()
        if len(groups) == 1 or any(scenario.misuse is not None for scenario in found):
            break
    else:
        if groups:
            return _different(found, endless)
    return _different(simulated(frozenset(range(len(threads))), starts, initial), endless)


def _different(found: Iterable[Scenario], endless: bool) -> list[Scenario]:
    """Each of ``found`` once, whatever its ``order``; without an end of a path only where there may be none."""
    kept: dict[Scenario, Scenario] = {}
    for scenario in found:
        if endless or scenario.misuse is not None or None not in scenario.ends:
            kept.setdefault(replace(scenario, order=()), scenario)
    return list(kept.values())


_ENDED = Node(-1, None, True, {}, False, frozenset(), frozenset(), frozenset(), frozenset())
"""Stands for the path of a thread that a group does without."""


def _groups(shared: Members, starts: list[tuple[Node, ...]]) -> list[frozenset[int]]:
    """The threads that have steps, by what they share: a CTA, or anything that their steps act on."""
    names: list[set[Object]] = []
    groups: list[set[int]] = []
    for t, nodes in enumerate(starts):
        touched: set[Object] = set().union(*(node.touches for node in nodes))
        if not touched:
            continue
        # A wait leaves its mbarrier as it is, but what it finds depends on the others.
        keys: set[Object] = {("mb", key[1]) if key[0] == "mb wait" else key for key in touched}
        keys.add(("cta", shared.ctas[t]))
        together = {t}
        for i in reversed(range(len(names))):
            if not names[i].isdisjoint(keys):
                keys |= names.pop(i)
                together |= groups.pop(i)
        names.append(keys)
        groups.append(together)
    # Who has no step may be waited for all the same, by those of its CTA or cluster.
    for t, nodes in enumerate(starts):
        for group, keys in zip(groups, names, strict=True):
            here = {("cta", shared.ctas[t]), ("cluster", shared.clusters[t])}
            if t not in group and not any(node.touches for node in nodes) and not keys.isdisjoint(here):
                group.add(t)
                break
    return [frozenset(group) for group in sorted(groups, key=min)]


def _group_of(place: Mbarrier, starts: list[tuple[Node, ...]], groups: list[frozenset[int]]) -> int:
    """The number of the group that acts on an mbarrier; the first if none does."""
    for number, group in enumerate(groups):
        for t in group:
            if any({("mb", place), ("mb wait", place)} & node.touches for node in starts[t]):
                return number
    return 0


def _scenario(threads: frozenset[int], run: list[facts.Fact], order: tuple[EventId, ...], group: int) -> Scenario:
    """The scenario of ``threads`` with the facts of ``run``."""

    def of(kind: type[_F]) -> Iterator[_F]:
        return (fact for fact in run if isinstance(fact, kind))

    ends = {fact.thread: fact.ends for fact in of(facts.Ends)}
    return Scenario(
        frozenset(fact.step for fact in of(facts.Happens)),
        tuple(sorted((fact.step, fact.phase) for fact in of(facts.InPhase))),
        frozenset(fact.step for fact in of(facts.Waits)),
        tuple(ends.get(t, True) for t in range(max(threads, default=-1) + 1)),
        next((fact.why for fact in of(facts.Misuse)), None),
        tuple(sorted((fact.arrival, fact.token) for fact in of(facts.Returns))),
        tuple(sorted((fact.place, fact.phases) for fact in of(facts.Completed))),
        tuple(sorted((fact.arrival, fact.step) for fact in of(facts.Follows))),
        order,
        threads,
        group,
    )


__all__ = ["Scenario", "Step", "cta_key", "matches", "scenarios"]
