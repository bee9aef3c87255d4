"""Pairs of accesses of which one writes and that nothing orders (PTX ISA 8.7.1).

The execution is a linear extension of causality order. So of the accesses of one cell, in the order of the execution,
only neighbours need to be compared: a run of reads, or of atomic operations, with each write before and after it, and
a write with the next one. Where all of these are ordered, so are all others, as the order is transitive.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np
from msgspec import Struct

from ptxmm.whole.clocks import Clocks
from ptxmm.whole.memory import Memory, Numbers
from ptxmm.whole.trace import READ, WRITE, Trace

_PAIRS = 1 << 22
"""So many pairs are compared at once."""


class Accesses(Struct):
    """The accesses of cells that some thread writes, by cell and in the order of the execution; the columns of a
    ``Trace``, with the ``cell``."""

    cell: Numbers
    place: Numbers
    size: Numbers
    thread: Numbers
    clock: Numbers
    row: Numbers
    kind: Numbers
    instruction: Numbers

    def __len__(self) -> int:
        return len(self.cell)


def accesses(memory: Memory, trace: Trace) -> Accesses:
    """What the threads of a launch did to memory that several of them may access."""
    columns = trace.columns()
    instance = memory.instance_of(columns["place"])
    alone = np.array([item.variable.space == "local" for item in memory.instances], np.bool_)
    written = np.zeros(len(memory.instances), np.bool_)
    written[instance[columns["kind"] != READ]] = True
    kept = np.flatnonzero((written & ~alone)[instance])
    columns, instance = {name: column[kept] for name, column in columns.items()}, instance[kept]
    width = _widths(len(memory.instances), instance, columns)[instance]
    counts = columns["size"] // width
    rows = np.repeat(np.arange(len(kept)), counts)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    cell = columns["place"][rows] + inside * width[rows]
    order = np.argsort(cell, kind="stable")
    rows, cell = rows[order], cell[order]
    # Of cells that are only read nothing is asked.
    _, number = np.unique(cell, return_inverse=True)
    changed = np.zeros(number.max(initial=-1) + 1, np.bool_)
    changed[number[columns["kind"][rows] != READ]] = True
    asked = changed[number]
    rows = rows[asked]
    return Accesses(cell[asked], **{name: column[rows] for name, column in columns.items()})


def _widths(count: int, instance: Numbers, columns: dict[str, Numbers]) -> Numbers:
    """For each instance a number of bytes that divides the places and the sizes of all its accesses."""
    found = np.full(count, 16, np.int64)
    for number in np.unique(instance).tolist():
        here = instance == number
        parts = (np.gcd.reduce(columns["place"][here]), np.gcd.reduce(columns["size"][here]))
        found[number] = gcd(16, *map(int, parts))
    return found


def unordered(found: Accesses, clocks: Clocks, scopes: Numbers, size: int) -> Iterator[tuple[int, int]]:
    """Pairs of ``found`` (by number) that conflict and that nothing orders, the one that was executed first before.

    ``scopes``: for each instruction how many threads are in its scope, from its own on, 0 for all of the launch; atomic
    operations in each other's scope do not conflict where they are on the same bytes (8.7.1). ``size``: the threads of
    a CTA.
    """
    if not len(found):
        return
    single = found.kind == WRITE
    starts = np.ones(len(found), np.bool_)
    starts[1:] = (found.cell[1:] != found.cell[:-1]) | (found.kind[1:] != found.kind[:-1]) | single[1:]
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(found))
    same = np.append(found.cell[first[1:]] == found.cell[first[:-1]], False)
    for batch in _batches(first, last, same):
        yield from _checked(found, clocks, *batch)
    kinds = found.kind[first]
    for run in np.flatnonzero((kinds != READ) & (kinds != WRITE) & (last - first > 1)).tolist():
        yield from _among(found, clocks, np.arange(first[run], last[run]), scopes, size)


def _batches(first: Numbers, last: Numbers, same: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """All pairs of each run with the next one of the same cell, some at a time."""
    runs = np.flatnonzero(same)
    lengths = (last - first)[runs]
    after = (last - first)[runs + 1]
    products = lengths * after
    at = 0
    while at < len(runs):
        end = at + max(1, int(np.searchsorted(np.cumsum(products[at:]), _PAIRS, "right")))
        part, count = runs[at:end], products[at:end]
        which = np.repeat(np.arange(len(part)), count)
        inside = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        wide = after[at:end][which]
        yield first[part][which] + inside // wide, first[part + 1][which] + inside % wide
        at = end


def _checked(found: Accesses, clocks: Clocks, before: Numbers, behind: Numbers) -> Iterator[tuple[int, int]]:
    ordered = clocks.after(found.row[behind], found.thread[behind], found.thread[before], found.clock[before])
    wrong = np.flatnonzero(~ordered)
    yield from zip(before[wrong].tolist(), behind[wrong].tolist(), strict=True)


def _among(found: Accesses, clocks: Clocks, run: Numbers, scopes: Numbers, size: int) -> Iterator[tuple[int, int]]:
    """Of a run of atomic operations those that are not morally strong."""
    whole = len(set(zip(found.place[run].tolist(), found.size[run].tolist(), strict=True))) == 1
    scope = scopes[found.instruction[run]]
    if whole and (not scope.any() or len(set((found.thread[run] // size).tolist())) == 1):
        return
    for at, number in enumerate(run.tolist()):
        others = run[:at]
        near = found.thread[others] // size == found.thread[number] // size
        strong = (near | ((scope[:at] == 0) & (scope[at] == 0))) & (found.place[others] == found.place[number])
        strong &= found.size[others] == found.size[number]
        yield from _checked(found, clocks, others[~strong], np.full(int((~strong).sum()), number))
