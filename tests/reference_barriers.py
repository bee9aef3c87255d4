"""Barriers for the reference: which arrive and wait halves of complete executions are in one phase.

Each function yields sets of pairs (arrive half, wait half). Typed PTX is simulated step by step, one arrival at a time
in every order; in the untyped dialect the groups are given and only the subset that synchronizes is chosen. A
choice in which some thread never passes, or that has no meaning (two arrivals of one warp or two counts in one phase),
yields nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ptxmm.program.test import Test
from ptxmm.ptx.ops import Barrier, Imm, Reg

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Step:
    """A barrier instruction of a complete execution; ``wait`` is None for ``arrive``."""

    thread: int
    op: Barrier
    barrier: int
    count: int | None
    arrive: int
    wait: int | None


def phasings(test: Test, steps: list[list[Step]], cta_of: list[object]) -> Iterator[Pairs]:
    """Every possible ``barphase``, given the barrier instructions that each thread executes, in order."""
    if not any(steps):
        yield frozenset()
        return
    each = []
    for cta in dict.fromkeys(cta_of):
        threads = [t for t, c in enumerate(cta_of) if c == cta]
        each.append(list(dialect(test, threads, steps) if test.dialect else typed(test, threads, steps)))
    for choice in itertools.product(*each):
        yield frozenset().union(*choice)


# ---- typed PTX: phases are completions (A27) -------------------------------------------------------------------------

Phase = tuple[int | None, tuple[Step, ...]]


def typed(test: Test, threads: list[int], steps: list[list[Step]]) -> set[Pairs]:
    """All ways in which the threads of one CTA can get through their barriers."""
    results: set[Pairs] = set()
    seen = set()

    def warp(thread: int) -> object:
        named = test.threads[thread].placement.warp
        return ("own", thread) if named is None else named

    def complete(count: int | None, members: tuple[Step, ...], exited: set[int]) -> bool:
        there = {s.thread for s in members}
        alive = [t for t in threads if t not in exited]
        arrived = {warp(s.thread) for s in members}
        arrived = {w for w in arrived if all(t in there for t in alive if warp(t) == w)}
        if count is None:
            return all(t in there for t in alive)
        return 32 * len(arrived) == count

    def walk(at: tuple[int, ...], waiting: frozenset[int], open_: dict[int, Phase], done: Pairs) -> None:
        key = (at, waiting, frozenset((b, p[0], tuple(s.arrive for s in p[1])) for b, p in open_.items()), done)
        if key in seen:
            return
        seen.add(key)
        exited = {t for t, k in zip(threads, at, strict=True) if k == len(steps[t]) and t not in waiting}
        for barrier, (count, members) in open_.items():
            if complete(count, members, exited):
                pairs = {(a.arrive, w.wait) for a in members for w in members if w.wait is not None}
                rest = {b: p for b, p in open_.items() if b != barrier}
                walk(at, waiting - {s.thread for s in members if s.wait is not None}, rest, done | pairs)
                return
        if len(exited) == len(threads):
            results.add(done)
            return
        for i, t in enumerate(threads):
            if t in waiting or t in exited:
                continue
            step = steps[t][at[i]]
            count, members = open_.get(step.barrier, (step.count, ()))
            if count != step.count or any(s.thread == t for s in members):
                continue  # undefined
            walk(
                (*at[:i], at[i] + 1, *at[i + 1 :]),
                waiting | {t} if step.wait is not None else waiting,
                {**open_, step.barrier: (count, (*members, step))},
                done,
            )

    walk(tuple(0 for _ in threads), frozenset(), {}, frozenset())
    return results


# ---- the untyped dialect: groups by instance and barrier id (1.7) ----------------------------------------------------


def dialect(test: Test, threads: list[int], steps: list[list[Step]]) -> Iterator[Pairs]:
    """All choices of synchronizing subsets for the threads of one CTA; none if some thread can't pass."""
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
        least = max((s.count for s in members if s.count is not None), default=None)
        sizes = range(least, len(members) + 1) if least is not None else [len(members)]
        choices.append([c for size in sizes for c in itertools.combinations(members, size)])
    for choice in itertools.product(*choices):
        yield frozenset((a.arrive, w.wait) for group in choice for a in group for w in group if w.wait is not None)
