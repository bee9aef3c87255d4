"""What is executed of several grids while one of them does not end (CUDA API synchronization; PTX ISA 9.7.14.13).

A grid begins once those before it on its GPU have ended, unless it may overlap them; then its ``griddepcontrol.wait``
waits for them. What comes before the end of a grid that never ends is an execution of the others alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ptxmm.program.condition import RegisterTerm, terms
from ptxmm.program.shared.stopped import known_filter, weakened
from ptxmm.program.test import Placement, Test, Thread
from ptxmm.ptx.ops import Branch, GridControl


def held(test: Test, direct: bool) -> Iterator[Test]:
    """For each grid that others wait for: ``test`` with threads that never come further than where they do.

    ``direct``: a ``griddepcontrol.wait`` waits for the grid before its own only, else for all before it. All pcs stay.
    What the filter says of the threads that are held is not known.
    """
    grids = sorted({(t.placement.gpu, t.placement.grid) for t in test.threads if not t.placement.host})
    for gpu, grid in grids:
        endless = {grid}
        untriggered: set[int] = set()
        threads = list(test.threads)
        stopped = set()
        for number in (n for g, n in grids if g == gpu and n > grid):
            before = [n for g, n in grids if g == gpu and n < number]
            for t, thread in enumerate(test.threads):
                if _in(thread.placement, gpu, number):
                    waits = not endless.isdisjoint(before[-1:] if direct else before)
                    begins = thread.placement.overlap and before[-1] not in untriggered
                    threads[t] = _held(thread, begins, waits)
                    if threads[t] is not thread:
                        stopped.add(t)
                        endless.add(number)
                        if not (begins and _triggers(thread)):
                            untriggered.add(number)
        if stopped:
            yield _unfiltered(replace(test, threads=tuple(threads)), stopped)


def _in(placement: Placement, gpu: int, grid: int) -> bool:
    return not placement.host and (placement.gpu, placement.grid) == (gpu, grid)


def _held(thread: Thread, begins: bool, waits: bool) -> Thread:
    """``thread`` of a grid after one that does not end; ``begins``: it begins all the same; ``waits``: its
    ``griddepcontrol.wait`` waits for that one."""
    body = list(thread.body)
    if not begins:
        body[:1] = [Branch(0, None, op.source) for op in body[:1]]
    for pc, op in enumerate(body if waits else ()):
        if isinstance(op, GridControl) and op.kind == "wait":
            body[pc] = Branch(pc, None, op.source, op.guard)
    if tuple(body) == thread.body:
        return thread
    return replace(thread, body=tuple(body), placement=replace(thread.placement, overlap=True))


def _triggers(thread: Thread) -> bool:
    """Whether the grids that depend on that of ``thread`` may begin while it is at its first ``griddepcontrol.wait``:
    unless it comes to all of its ``launch_dependents`` later."""
    kinds = [op.kind for op in thread.body if isinstance(op, GridControl)]
    return "launch_dependents" not in kinds or "wait" not in kinds[: kinds.index("launch_dependents")]


def _unfiltered(test: Test, stopped: Collection[int]) -> Test:
    """``test`` with as much of its filter as is known although the threads ``stopped`` are."""
    known = known_filter(test)
    if known is None:
        return test
    running = {t for t in terms(known) if isinstance(t, RegisterTerm) and t.thread not in stopped}
    return replace(test, filter=weakened(known, running, True))
