"""Barriers of the symbolic side: every way in which the paths of the threads meet at barriers and mbarriers.

Sources: PTX ISA 9.7.14.1 (bar), .2 (bar.warp.sync), .3 (barrier.cluster), .15 (mbarrier), 8.9.4(2) and (3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from ptxmm.events.symbolic.event import Mbarrier, ThreadEvents
from ptxmm.events.symbolic.phases_mbarriers import initial_counts
from ptxmm.events.symbolic.phases_paths import Arrival, matches, paths
from ptxmm.events.symbolic.phases_state import Item, cta_key, members
from ptxmm.program.test import EventId, Test
from ptxmm.relations.formula import Formulas


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way the barriers of a program turn out.

    ``arrivals``: the steps that happen, asynchronous ones from their issue on, with their operands and the outcomes
    of waits. ``phases``: the phase of each; mbarriers' have the number of initialisations in the bits from 20 on, a
    wait has how many phases were complete. Missing or None: it takes part in none. ``tokens``: what each arrival that
    writes a register returns. ``completed``: how many phases each mbarrier completed since it was initialised last.
    ``stuck``: where threads wait for ever. ``ends``: for each thread whether its path reaches its end, or the bound,
    or (None) neither; True if it is stuck. ``undefined``: why the program has no meaning, or None; then ``stuck`` is
    where threads were (never an asynchronous step), and only the steps before it have phases. ``next``: pairs of an
    arrival at an mbarrier and an arrival or a successful wait, the first such one after it or no arrival between them,
    and ``order``: all operations on mbarriers in an order in which they ran so; both only if that is asked for.
    """

    arrivals: frozenset[Arrival]
    phases: tuple[tuple[EventId, int | None], ...]
    stuck: frozenset[EventId]
    ends: tuple[bool | None, ...]
    undefined: str | None = None
    tokens: tuple[tuple[EventId, int], ...] = ()
    completed: tuple[tuple[Mbarrier, int], ...] = ()
    next: tuple[tuple[EventId, EventId], ...] = ()
    order: tuple[EventId, ...] = field(default=(), compare=False)


def scenarios(
    test: Test, formulas: Formulas, threads: list[ThreadEvents], check: Callable[[], None], ordered: bool = False
) -> list[Scenario]:
    """Every scenario of ``threads``, the threads of ``test``; ``check`` may raise ``Timeout``.

    ``ordered``: scenarios tell which arrival at an mbarrier came right before each operation.
    """
    shared = members(test)
    found: dict[Scenario, None] = {}
    # The simulations are loaded where there is something to simulate.
    if test.dialect:
        from ptxmm.events.symbolic.phases_dialect import outcomes

        for outcome in outcomes(test, shared, formulas, threads, check):
            scenario = Scenario(outcome.arrivals, outcome.phases, outcome.stuck, outcome.ends, outcome.undefined)
            if scenario.undefined is not None or None not in scenario.ends:
                found[scenario] = None
        return list(found)
    from ptxmm.events.symbolic.phases_run import runs

    starts = [
        paths(formulas, thread, lambda step, t=t: shared.object_of(t, step), check)  # type: ignore[misc]
        for t, thread in enumerate(threads)
    ]
    for facts, order in runs(shared, starts, initial_counts(test), ordered, check):
        scenario = _scenario(len(threads), facts, order)
        if scenario.undefined is not None or None not in scenario.ends:
            found[scenario] = None
    return list(found)


def _scenario(threads: int, facts: list[Item], order: tuple[EventId, ...]) -> Scenario:
    """The scenario with ``facts``."""
    by_kind: dict[str, list[tuple[object, object]]] = {}
    for kind, subject, value in facts:
        by_kind.setdefault(kind, []).append((subject, value))
    ends = dict(cast("list[tuple[int, bool | None]]", by_kind.get("ends", [])))
    undefined = [cast(str, why) for why, _ in by_kind.get("undefined", [])]
    return Scenario(
        frozenset(cast(Arrival, arrival) for arrival, _ in by_kind.get("step", [])),
        tuple(sorted(cast("list[tuple[EventId, int]]", by_kind.get("phase", [])))),
        frozenset(cast(EventId, id_) for id_, _ in by_kind.get("stuck", [])),
        tuple(ends.get(t, True) for t in range(threads)),
        undefined[0] if undefined else None,
        tuple(sorted(cast("list[tuple[EventId, int]]", by_kind.get("token", [])))),
        tuple(sorted(cast("list[tuple[Mbarrier, int]]", by_kind.get("phases", [])))),
        tuple(sorted(cast("list[tuple[EventId, EventId]]", by_kind.get("next", [])))),
        order,
    )


__all__ = ["Arrival", "Scenario", "cta_key", "matches", "scenarios"]
