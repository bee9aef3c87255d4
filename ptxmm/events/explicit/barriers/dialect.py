"""The barriers of the untyped dialect: groups by instance and barrier (docs/formats.md; A27)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product

from ptxmm.events.explicit.barriers.meeting import Meeting
from ptxmm.events.explicit.relations.scopes import Place
from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Imm

_Group = tuple[tuple[object, ...], int | None, int]
"""A group: CTA, instance, barrier."""


def group_meetings(
    test: Test,
    places: Sequence[Place],
    steps: Sequence[Sequence[Step]],
    check: Callable[[], None],
    fixed: Mapping[EventId, int | None] | None,
) -> Iterator[Meeting]:
    """Every way the groups turn out: for each the arrivals, at least its quorum, that synchronize with all its waits.
    Without a quorum all of them do.

    ``steps``, ``check`` and ``fixed`` are as for ``meetings``.
    """
    reached, waiting, members = _pass_groups(test, places, steps)
    choices: list[list[dict[EventId, int | None]]] = []
    for arrivals in members.values():
        quorums = {s.count for s in arrivals}
        if len(quorums) > 1:
            yield Meeting(reached, {}, frozenset(), "two different quorums in one group of barriers")
            return
        ids = [s.id for s in arrivals]
        quorum = quorums.pop()
        least = len(ids) if quorum is None else min(max(quorum, 0), len(ids))
        subsets = [frozenset(s) for size in range(least, len(ids) + 1) for s in combinations(ids, size)]
        options = [{i: 0 if i in chosen else None for i in ids} for chosen in subsets]
        if fixed is not None:
            options = [o for o in options if all(i in fixed and fixed[i] == phase for i, phase in o.items())]
        choices.append(options)
    for selection in product(*choices):
        check()
        phases = {i: phase for part in selection for i, phase in part.items()}
        yield Meeting(reached, phases, waiting)


def _pass_groups(
    test: Test, places: Sequence[Place], steps: Sequence[Sequence[Step]]
) -> tuple[tuple[int, ...], frozenset[int], dict[_Group, list[Step]]]:
    """Let every thread go on while its group lets it pass. Arrivals only ever help, so the order does not matter.

    A quorum counts arrivals; without one, all threads that have an instruction of the group are waited for: those on
    whose path there is one (a register may give its barrier), and those of ``_needed``.
    """
    reached = [0] * len(steps)
    waits: dict[int, _Group] = {}
    members: dict[_Group, list[Step]] = {}
    threads_in: dict[_Group, set[int]] = {}
    awaited: dict[_Group, set[int]] = {}
    for t, mine in enumerate(steps):
        for step in mine:
            key = (places[t].cta, step.instance, step.number)
            awaited.setdefault(key, _needed(test, places, key)).add(t)
    counts: dict[int, int | None] = {}
    moved = True
    while moved:
        moved = False
        for t, mine in enumerate(steps):
            while t not in waits and reached[t] < len(mine):
                step = mine[reached[t]]
                key = (places[t].cta, step.instance, step.number)
                members.setdefault(key, []).append(step)
                threads_in.setdefault(key, set()).add(t)
                reached[t] += 1
                moved = True
                if step.kind == "bar.sync":
                    waits[t], counts[t] = key, step.count
        for t, key in list(waits.items()):
            count = counts[t]
            if threads_in[key] >= awaited[key] if count is None else len(members[key]) >= count:
                del waits[t]
                moved = True
    return tuple(reached), frozenset(waits), members


def _needed(test: Test, places: Sequence[Place], key: _Group) -> set[int]:
    """The threads that have an instruction of the group on some path: its barrier is a constant."""
    cta, instance, number = key
    return {
        t
        for t, thread in enumerate(test.threads)
        if places[t].cta == cta
        and any(isinstance(op, Barrier) and op.instance == instance and op.barrier == Imm(number) for op in thread.body)
    }
