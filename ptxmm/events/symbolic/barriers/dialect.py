"""Barriers of the untyped dialect on the symbolic side: groups by instance and barrier, quorums (A27)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from msgspec import Struct

from ptxmm.events.symbolic.barriers.paths import Step, arrivals
from ptxmm.events.symbolic.barriers.state import Key, Members, Scenario, cta_key
from ptxmm.events.symbolic.event import ThreadEvents
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Imm
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

_Group = tuple[Key, int | None, int]
"""A group of barriers: the CTA, the instance, the number of the barrier."""


class Trace(Struct, frozen=True):
    """The barrier instructions of one path of a thread, if nothing blocks it.

    ``ends``: whether it reaches its end or the bound; None: neither, it goes round a spin loop for ever.
    """

    when: Formula
    steps: tuple[Step, ...]
    ends: bool | None


def outcomes(
    test: Test, shared: Members, formulas: Formulas, threads: list[ThreadEvents], check: Callable[[], None]
) -> Iterator[Scenario]:
    """How every choice of traces may turn out, one trace a thread."""
    for choice in product(*[_traces(formulas, t, check) for t in threads]):
        check()
        if formulas.all([t.when for t in choice]) != FALSE:
            yield from _groups(test, choice, shared, check)


def _traces(formulas: Formulas, thread: ThreadEvents, check: Callable[[], None]) -> list[Trace]:
    """The traces of a thread: one for each choice of the barrier instructions on its path and of their operands."""
    lost = formulas.both(-thread.completed, -thread.cut) if thread.barriers else FALSE
    paths: list[tuple[Formula, tuple[Step, ...]]] = [(TRUE, ())]
    for event in thread.barriers:
        longer: list[tuple[Formula, tuple[Step, ...]]] = []
        choices = list(arrivals(formulas, event))
        for when, before in paths:
            check()
            longer.append((formulas.both(when, -event.presence), before))
            here = formulas.both(when, event.presence)
            longer += [(formulas.both(here, condition), (*before, arrival)) for arrival, condition in choices]
        paths = [path for path in longer if path[0] != FALSE]
    return [
        Trace(total, before, ends)
        for when, before in paths
        for ends, how in ((True, thread.completed), (False, thread.cut), (None, lost))
        if (total := formulas.both(when, how)) != FALSE
    ]


def _groups(test: Test, choice: tuple[Trace, ...], shared: Members, check: Callable[[], None]) -> Iterator[Scenario]:
    """Run the traces with the barriers of the untyped dialect: groups by instance and barrier, quorums of arrivals."""
    arrived, waits, reached = _arrive(test, choice, shared)
    everyone = frozenset(range(len(choice)))
    if any(len({step.count for step in there}) > 1 for there in arrived.values()):
        ends = tuple(trace.ends for trace in choice)
        why = "two different quorums in one group of barriers"
        yield Scenario(reached, (), frozenset(), ends, why, threads=everyone)
        return
    waiting = frozenset(step.id for step in waits if step is not None)
    options = [_subsets([step.id for step in there], there[0].count) for there in arrived.values()]
    ends = tuple(step is not None or trace.ends for step, trace in zip(waits, choice, strict=True))
    for selection in product(*options):
        check()
        phases = tuple(sorted(p for part in selection for p in part))
        yield Scenario(reached, phases, waiting, ends, threads=everyone)


def _arrive(
    test: Test, choice: tuple[Trace, ...], shared: Members
) -> tuple[dict[_Group, list[Step]], list[Step | None], frozenset[Step]]:
    """The arrivals of each group, the step at which each thread waits for ever, and the steps that happen."""
    position = [0] * len(choice)
    waits: list[Step | None] = [None] * len(choice)
    arrived: dict[_Group, list[Step]] = {}
    on_path = {(t, _group(shared, step)) for t, trace in enumerate(choice) for step in trace.steps}

    def passes(step: Step) -> bool:
        group = _group(shared, step)
        if step.count is not None:
            return len(arrived[group]) >= step.count
        owners = _needed(test, group) | {u for u, other in on_path if other == group}
        return owners <= {other.id.thread for other in arrived[group]}

    moved = True
    while moved:
        moved = False
        for t, trace in enumerate(choice):
            while waits[t] is None and position[t] < len(trace.steps):
                step = trace.steps[position[t]]
                arrived.setdefault(_group(shared, step), []).append(step)
                position[t] += 1
                waits[t] = step if step.kind == "bar.sync" else None
                moved = True
            if (at := waits[t]) is not None and passes(at):
                waits[t], moved = None, True
    return arrived, waits, frozenset(a for trace, n in zip(choice, position, strict=True) for a in trace.steps[:n])


def _group(shared: Members, step: Step) -> _Group:
    return shared.ctas[step.id.thread], step.instance, step.barrier


def _needed(test: Test, group: _Group) -> set[int]:
    """The threads that have an instruction of the group on some path: same CTA and instance, same constant barrier."""
    cta, instance, barrier = group
    return {
        t
        for t, thread in enumerate(test.threads)
        if cta_key(test, t) == cta
        and any(
            isinstance(op, Barrier)
            and op.instance == instance
            and isinstance(op.barrier, Imm)
            and op.barrier.value == barrier
            for op in thread.body
        )
    }


def _subsets(ids: list[EventId], quorum: int | None) -> list[tuple[tuple[EventId, int | None], ...]]:
    """The phases of a group of arrivals for each subset of at least ``quorum`` of them (None: all)."""
    sizes = [len(ids)] if quorum is None else range(min(max(quorum, 0), len(ids)), len(ids) + 1)
    return [
        tuple((i, 0 if i in chosen else None) for i in ids)
        for size in sizes
        for chosen in map(frozenset, combinations(ids, size))
    ]
