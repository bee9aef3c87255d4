"""Barriers of the untyped dialect for the reference: which arrive and wait halves of executions belong together.

The groups are given by instance and barrier id, and only the arrivals that synchronize are chosen (A27). A
choice in which some thread never passes, or whose quorums differ, yields nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from msgspec import Struct

from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Imm, Reg

Pairs = frozenset[tuple[int, int]]


class Step(Struct, frozen=True):
    """A barrier instruction of a complete execution; ``wait`` is None for ``arrive``."""

    thread: int
    op: Barrier
    barrier: int
    count: int | None
    arrive: int
    wait: int | None


def phasings(test: Test, steps: list[list[Step]], cta_of: list[object]) -> Iterator[Pairs]:
    """Every possible set of pairs (arrive half, wait half), given what each thread executes, in order."""
    if not any(steps):
        yield frozenset()
        return
    each = []
    for cta in dict.fromkeys(cta_of):
        threads = [t for t, c in enumerate(cta_of) if c == cta]
        each.append(list(dialect(test, threads, steps)))
    for choice in itertools.product(*each):
        yield frozenset().union(*choice)


# ---- the untyped dialect: groups by instance and barrier id (A27) ----------------------------------------------------


def dialect(test: Test, threads: list[int], steps: list[list[Step]]) -> Iterator[Pairs]:
    """All choices of arrivals that synchronize, for the threads of one CTA; none if some thread can't pass."""
    executed = [s for t in threads for s in steps[t]]
    groups: dict[tuple[int | None, int], list[Step]] = {}
    for s in executed:
        groups.setdefault((s.op.instance, s.barrier), []).append(s)

    def owners(group: tuple[int | None, int]) -> set[int]:
        """The threads that have an instruction of the group."""
        result = {s.thread for s in groups[group]}
        for t in threads:
            for op in test.threads[t].body:
                if isinstance(op, Barrier) and op.instance == group[0] and not isinstance(op.barrier, Reg):
                    assert isinstance(op.barrier, Imm)
                    if op.barrier.value == group[1]:
                        result.add(t)
        return result

    at = dict.fromkeys(threads, 0)  # barriers that the thread has arrived at or passed
    reached: list[Step] = []

    def passes(s: Step) -> bool:
        group = (s.op.instance, s.barrier)
        there = [r for r in reached if (r.op.instance, r.barrier) == group]
        if s.count is None:
            return owners(group) <= {r.thread for r in there}
        return len(there) >= s.count

    moved = True
    while moved:
        moved = False
        for t in threads:
            while at[t] < len(steps[t]):
                step = steps[t][at[t]]
                if step not in reached:
                    reached.append(step)
                    moved = True
                if step.wait is not None and not passes(step):
                    break
                at[t] += 1
                moved = True
    if any(at[t] < len(steps[t]) for t in threads):
        return
    choices = []
    for members in groups.values():
        counts = {s.count for s in members}
        if len(counts) > 1:
            return
        quorum = counts.pop()
        waits = [s.wait for s in members if s.wait is not None]
        choices.append([
            {(a.arrive, w) for a in subset for w in waits}
            for size in range(len(members) + 1)
            for subset in itertools.combinations(members, size)
            if size >= len(members) or (quorum is not None and size >= quorum)
        ])  # fmt: skip
    for choice in itertools.product(*choices):
        yield frozenset[tuple[int, int]]().union(*choice)
