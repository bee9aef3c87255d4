"""Barriers of the symbolic side: every way in which the paths of the threads meet at barriers and mbarriers.

Sources: PTX ISA 9.7.14.1 (bar), .2 (bar.warp.sync), .3 (barrier.cluster), .15 (mbarrier), 8.9.4(2) and (3).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.barriers.mbarrier import Counts, initial_counts
from ptxmm.events.symbolic.barriers.paths import Node, Object, Step, matches, paths
from ptxmm.events.symbolic.barriers.state import (
    Completed,
    Ends,
    Fact,
    Follows,
    Happens,
    InPhase,
    Members,
    Misuse,
    Returns,
    Waits,
    cta_key,
    members,
)
from ptxmm.events.symbolic.event import Mbarrier, ThreadEvents
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.relations.formula import FALSE, Formulas


class Scenario(Struct, frozen=True):
    """One way the barriers of a program turn out.

    ``steps``: the steps that happen, asynchronous ones from their issue on, with their operands and the outcomes
    of waits. ``phases``: the phase of each; mbarriers' have the number of initialisations in the bits from 20 on, a
    wait has how many phases were complete. Missing or None: it takes part in none. ``tokens``: what each arrival that
    writes a register returns. ``completed``: how many phases each mbarrier completed since it was initialised last.
    ``waiting``: where threads wait for ever. ``ends``: for each thread whether its path reaches its end, or the bound,
    or (None) neither; True if it waits. ``misuse``: why the program has no meaning, or None; then ``waiting`` is
    where threads were (never an asynchronous step), and only the steps before it have phases. ``next``: pairs of an
    arrival at an mbarrier and an arrival or a successful wait, the first such one after it or no arrival between them,
    and ``order``: all operations on mbarriers in an order in which they ran so; both only if that is asked for.
    ``threads``: those that it is about. An execution has one scenario for each group of threads that share barriers;
    ``group`` is its number.
    """

    steps: frozenset[Step]
    phases: tuple[tuple[EventId, int | None], ...]
    waiting: frozenset[EventId]
    ends: tuple[bool | None, ...]
    misuse: str | None = None
    tokens: tuple[tuple[EventId, int], ...] = ()
    completed: tuple[tuple[Mbarrier, int], ...] = ()
    next: tuple[tuple[EventId, EventId], ...] = ()
    order: tuple[EventId, ...] = ()
    threads: frozenset[int] = frozenset()
    group: int = 0


def scenarios(
    test: Test, formulas: Formulas, threads: list[ThreadEvents], check: Callable[[], None], ordered: bool = False
) -> list[Scenario]:
    """Every scenario of ``threads``, the threads of ``test``; ``check`` may raise ``Timeout``.

    ``ordered``: scenarios tell which arrival at an mbarrier came right before each operation.

    Threads that share no barrier are in groups of their own, since each scenario of one group goes with each of the
    others. Where one of them has no meaning, it ends the run wherever the others are: then there is one group.
    """
    shared = members(test)
    everyone = frozenset(range(len(threads)))
    found: dict[Scenario, Scenario] = {}
    # Without an end, a path is one that is cut by the bound, or spins.
    cut = any(thread.cut != FALSE or thread.spun != FALSE for thread in threads)
    # The simulations are loaded where there is something to simulate.
    if test.dialect:
        from ptxmm.events.symbolic.barriers.dialect import outcomes

        for outcome in outcomes(test, shared, formulas, threads, check):
            scenario = Scenario(
                outcome.steps, outcome.phases, outcome.waiting, outcome.ends, outcome.misuse, threads=everyone
            )
            if cut or scenario.misuse is not None or None not in scenario.ends:
                found[scenario] = scenario
        return list(found)
    from ptxmm.events.symbolic.barriers.explore import runs

    starts = [
        paths(formulas, thread, lambda step, t=t: shared.object_of(t, step), check)  # type: ignore[misc]
        for t, thread in enumerate(threads)
    ]
    initial = initial_counts(test)
    groups = _groups(shared, starts)
    for number, group in enumerate(groups if len(groups) > 1 else ()):
        alone = [nodes if t in group else (_ENDED,) for t, nodes in enumerate(starts)]
        own = {place: counts for place, counts in initial.items() if _group_of(place, starts, groups) == number}
        for facts, order in runs(shared, alone, own, ordered, check):
            scenario = _scenario(group, facts, order, number)
            if scenario.misuse is not None:
                return _together(shared, starts, initial, ordered, check, cut)
            if cut or None not in scenario.ends:
                found.setdefault(replace(scenario, order=()), scenario)
    return list(found.values()) if len(groups) > 1 else _together(shared, starts, initial, ordered, check, cut)


_ENDED = Node(-1, None, True, {}, False, frozenset(), frozenset(), frozenset(), frozenset())
"""Stands for the path of a thread that a group does without."""


def _together(
    shared: Members,
    starts: list[tuple[Node, ...]],
    initial: dict[Mbarrier, Counts],
    ordered: bool,
    check: Callable[[], None],
    cut: bool,
) -> list[Scenario]:
    """The scenarios of all threads as one group."""
    from ptxmm.events.symbolic.barriers.explore import runs

    everyone = frozenset(range(len(starts)))
    found: dict[Scenario, Scenario] = {}
    for facts, order in runs(shared, starts, initial, ordered, check):
        scenario = _scenario(everyone, facts, order)
        if cut or scenario.misuse is not None or None not in scenario.ends:
            found.setdefault(replace(scenario, order=()), scenario)
    return list(found.values())


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


def _scenario(threads: frozenset[int], facts: list[Fact], order: tuple[EventId, ...], group: int = 0) -> Scenario:
    """The scenario of ``threads`` with ``facts``."""
    ends = {fact.thread: fact.ends for fact in facts if isinstance(fact, Ends)}
    return Scenario(
        frozenset(fact.step for fact in facts if isinstance(fact, Happens)),
        tuple(sorted((fact.step, fact.phase) for fact in facts if isinstance(fact, InPhase))),
        frozenset(fact.step for fact in facts if isinstance(fact, Waits)),
        tuple(ends.get(t, True) for t in range(max(threads, default=-1) + 1)),
        next((fact.why for fact in facts if isinstance(fact, Misuse)), None),
        tuple(sorted((fact.arrival, fact.token) for fact in facts if isinstance(fact, Returns))),
        tuple(sorted((fact.place, fact.phases) for fact in facts if isinstance(fact, Completed))),
        tuple(sorted((fact.arrival, fact.step) for fact in facts if isinstance(fact, Follows))),
        order,
        threads,
        group,
    )


__all__ = ["Scenario", "Step", "cta_key", "matches", "scenarios"]
