"""Pairs of accesses of which one writes and that nothing orders (PTX ISA 8.7.1).

The execution is a linear extension of causality order. So of the accesses of one cell, in the order of the execution,
only neighbours need to be compared: a run of reads, or of atomic operations, with each write before and after it, and
a write with the next one. Where all of these are ordered, so are all others, as the order is transitive.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.memory import Memory
from ptxmm.whole.order.clocks import API, HANDED, PIPED, Clocks, Layer
from ptxmm.whole.order.strong import ALL, CLUSTER, CTA, GPU, WEAK
from ptxmm.whole.order.trace import ASYNC, ATOMIC, GENERIC, READ, TENSOR, TENSORMAP, WRITE, Trace

_MIX = 0x9E3779B97F4A7C15
_PAIRS = 1 << 22
"""So many pairs are compared at once."""


class Accesses(Struct):
    """The accesses of cells that some thread writes, by cell and in the order of the execution; the columns of a
    ``Trace``, with the ``cell`` and the number of the ``row`` there."""

    cell: Numbers
    place: Numbers
    size: Numbers
    agent: Numbers
    clock: Numbers
    view: Numbers
    kind: Numbers
    instruction: Numbers
    proxy: Numbers
    pipe: Numbers
    row: Numbers

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
    starts, ends = columns["place"], columns["place"] + columns["size"]
    bounds = np.unique(np.concatenate((starts, ends)))
    begin = np.searchsorted(bounds, starts)
    counts = np.searchsorted(bounds, ends) - begin
    rows = np.repeat(np.arange(len(kept)), counts)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    cell = bounds[begin[rows] + inside]
    order = np.argsort(cell, kind="stable")
    rows, cell = rows[order], cell[order]
    # Of cells that are only read nothing is asked.
    _, number = np.unique(cell, return_inverse=True)
    changed = np.zeros(number.max(initial=-1) + 1, np.bool_)
    changed[number[columns["kind"][rows] != READ]] = True
    asked = changed[number]
    rows = rows[asked]
    return Accesses(cell[asked], row=kept[rows], **{name: column[rows] for name, column in columns.items()})


def unordered(
    found: Accesses,
    clocks: Clocks,
    levels: Numbers,
    clusters: Numbers,
    proxies: Sequence[str],
    same: Numbers,
    free: bool = False,
    transitive: bool = True,
    devices: Numbers | None = None,
    pipes: Sequence[Hashable] = (None,),
) -> Iterator[tuple[int, int]]:
    """Pairs of ``found`` (by number) that conflict and that nothing orders, the one that was executed first before.

    ``levels``: for each instruction how wide its scope is, ``clusters``: the cluster of each CTA; strong accesses of
    the same bytes in each other's scope do not conflict (8.7.1). ``proxies``: the names of the proxies, by numbers.
    ``same``: for each access the number of the value that it writes where writes of one value may race, else -1.
    ``free``: reads need no proxy fence before copies (``proxy-war=free``). ``transitive``: what precedes an access of a
    thread precedes the later ones. ``devices``: the GPU of each CTA, if there are several. ``pipes``: as of ``Trace``.
    """
    if not len(found):
        return
    device = clusters * 0 if devices is None else devices
    check = _Check(found, clocks, levels, clusters, device, proxies, pipelined(pipes), free, same)
    level = levels[found.instruction]
    other = (found.proxy != 0) | (found.agent >= clocks.threads) | ((level != WEAK) & (found.kind == READ))
    other |= (same >= 0) | (not transitive)
    apart = np.isin(found.cell, found.cell[other])
    near = np.flatnonzero(~apart)
    kind = np.where(level[near] != WEAK, ATOMIC, found.kind[near])
    starts = np.ones(len(near), np.bool_)
    starts[1:] = (np.diff(found.cell[near]) != 0) | (np.diff(kind) != 0) | (kind[1:] == WRITE)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(near))
    follows = np.append(np.diff(found.cell[near[first]]) == 0, np.zeros(min(len(first), 1), np.bool_))
    for before, behind in _batches(first, last, follows):
        yield from check.all(near[before], near[behind])
    for run in np.flatnonzero((kind[first] == ATOMIC) & (last - first > 1)).tolist():
        yield from check.among(near[first[run] : last[run]])
    copied = (found.proxy != 0) | (found.agent >= clocks.threads) | (same >= 0) | (not transitive)
    copied = np.unique(found.cell[copied])
    for cell in np.setdiff1d(found.cell[apart], copied).tolist():
        yield from check.every(slice(*np.searchsorted(found.cell, (cell, cell + 1))))
    bounds = np.searchsorted(found.cell, np.stack((copied, copied + 1), axis=1))
    yield from check.latest(*bounds.T)


def pipelined(pipes: Sequence[Hashable]) -> Flags:
    """For each two kinds of operations whether one of the first is executed before a later one of the second kind: the
    product of another accumulator, shape or kind is another kind (9.7.16.6.2 of PTX ISA 9.0)."""

    def order(one: Hashable, other: Hashable) -> bool:
        if not isinstance(one, tuple) or not isinstance(other, tuple):
            return False
        names = one[0], other[0]
        if names == ("mma", "mma"):
            return one == other
        return names in _PIPELINES or (names == ("shift", "cp") and other[1] == "4x256b")

    return np.array([[order(one, other) for other in pipes] for one in pipes], np.bool_)


_PIPELINES = {("cp", "mma"), ("shift", "mma"), ("mma", "shift")}


def _ranges(first: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """All numbers from each of ``first`` up to its ``end``, and which one of these each belongs to."""
    lengths = end - first
    which = np.repeat(np.arange(len(first)), lengths)
    return np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + first[which], which


def _batches(first: Numbers, last: Numbers, same: Flags) -> Iterator[tuple[Numbers, Numbers]]:
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


def racing(found: Accesses, clocks: Clocks, same: Numbers) -> set[int]:
    """The instructions of writes of the ``same`` value that nothing orders."""
    rows = np.flatnonzero(same >= 0)
    rows = rows[np.lexsort((rows, same[rows], found.cell[rows]))]
    one, other = rows[:-1], rows[1:]
    near = (found.cell[one] == found.cell[other]) & (same[one] == same[other])
    one, other = one[near], other[near]
    ordered = clocks.after(found.view[other], found.agent[other], found.agent[one], found.clock[one])
    return {*found.instruction[one[~ordered]].tolist(), *found.instruction[other[~ordered]].tolist()}


class _Check(Struct):
    """What asks of pairs of ``found`` whether they are ordered or morally strong."""

    found: Accesses
    clocks: Clocks
    levels: Numbers
    clusters: Numbers
    devices: Numbers
    proxies: Sequence[str]
    pipelined: Flags
    free: bool
    same: Numbers

    def all(self, before: Numbers, behind: Numbers) -> Iterator[tuple[int, int]]:
        """Those pairs that are not ordered."""
        wrong = np.flatnonzero(~self._ordered(before, behind))
        yield from zip(before[wrong].tolist(), behind[wrong].tolist(), strict=True)

    def among(self, run: Numbers) -> Iterator[tuple[int, int]]:
        """Of a run of strong accesses those that are neither morally strong nor ordered."""
        wide = self._wide(run)
        for number in run[~wide].tolist():
            yield from self._against(number, run[(run < number) | (wide & (run > number))])

    def every(self, cell: slice) -> Iterator[tuple[int, int]]:
        """All pairs of one cell: strong accesses need not be ordered."""
        yield from self.among(np.arange(len(self.found))[cell])

    def _history(self) -> tuple[Numbers, ...]:
        """What the order of the accesses of a cell depends on, but where they are in it."""
        it = self.found
        return it.agent, it.clock, it.view, it.kind, it.instruction, it.proxy, it.size, it.pipe

    def latest(self, first: Numbers, end: Numbers) -> Iterator[tuple[int, int]]:
        """What is not ordered of the accesses of cells that copies access, or writes of the ``same`` value, each from
        ``first`` to ``end``: what precedes a copy need not precede what follows it, nor one of such writes the next. So
        each access is compared with the latest ones before it of each agent; who knows of them knows of all. Of cells
        that have the same history one is looked at."""
        found = self.found
        rows, numbers = _ranges(first, end)
        extents = self._alike(rows, numbers, found.place, found.size)
        equal = np.where(self.same[rows] < 0, -1, self._alike(rows, numbers, self.same))
        chosen = self._unlike(rows, (extents, equal), first, end)
        rows, numbers, extents, equal = (column[chosen] for column in (rows, numbers, extents, equal))
        columns = found.agent, found.kind, found.instruction, found.pipe
        keys = (*(column[rows] for column in columns), extents, equal, numbers)
        order = np.lexsort((rows, *keys))
        alike = np.logical_and.reduce([np.diff(key[order]) == 0 for key in keys])
        until = end[numbers] - 1
        until[order[:-1][alike]] = rows[order[1:][alike]]
        # What only reads conflicts with writes alone.
        reads = found.kind[rows] == READ
        yield from self._behind(rows[reads], until[reads], rows[~reads])
        yield from self._behind(rows[~reads], until[~reads], rows)

    def _behind(self, rows: Numbers, until: Numbers, others: Numbers) -> Iterator[tuple[int, int]]:
        """What is not ordered of accesses and those of ``others`` that come behind each, up to one of them."""
        begin, end = (np.searchsorted(others, bound, "right") for bound in (rows, until))
        reach = np.cumsum(end - begin)
        at = 0
        while at < len(rows):
            stop = at + max(1, int(np.searchsorted(reach[at:] - (reach[at - 1] if at else 0), _PAIRS, "right")))
            later, mine = _ranges(begin[at:stop], end[at:stop])
            yield from self._weak(rows[at:stop][mine], others[later])
            at = stop

    def _weak(self, before: Numbers, behind: Numbers) -> Iterator[tuple[int, int]]:
        """Those pairs that are neither morally strong nor ordered, nor writes of the ``same`` value."""
        apart = (self.same[before] < 0) | (self.same[before] != self.same[behind])
        before, behind = before[apart], behind[apart]
        weak = ~self._strong(before, behind)
        before, behind = before[weak], behind[weak]
        order = np.lexsort((before, behind))
        yield from self.all(before[order], behind[order])

    def _alike(self, rows: Numbers, numbers: Numbers, *columns: Numbers) -> Numbers:
        """For each access a number that it has in common with those that are alike in some columns in its cell, the
        same in cells that are alike."""
        parts = (numbers, *(column[rows] for column in columns))
        order = np.lexsort((rows, *parts[::-1]))
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = np.logical_or.reduce([np.diff(part[order]) != 0 for part in parts])
        heads = np.flatnonzero(fresh)
        first = np.empty(len(rows), np.int64)
        first[order] = rows[order[heads[np.cumsum(fresh) - 1]]]
        starts = np.flatnonzero(np.append(True, np.diff(numbers) != 0)) if len(rows) else np.zeros(0, np.int64)
        return first - rows[starts][numbers]

    def _unlike(self, rows: Numbers, columns: Sequence[Numbers], first: Numbers, end: Numbers) -> Flags:
        """Which accesses are of cells that have another history than all cells before them, in ``columns`` as well."""
        if not len(rows):
            return np.zeros(0, np.bool_)
        parts = np.stack((*(column[rows] for column in self._history()), *columns))
        lengths = end - first
        starts = np.cumsum(lengths) - lengths
        inside = np.arange(len(rows)) - np.repeat(starts, lengths)
        mixed = np.zeros(len(rows), np.uint64)
        for part in (*parts, inside):
            mixed = (mixed ^ part.astype(np.uint64)) * np.uint64(_MIX)
            mixed ^= mixed >> np.uint64(29)
        sums = np.add.reduceat(mixed, starts)
        _, representative, which = np.unique(sums, return_index=True, return_inverse=True)
        other = representative[which]
        # Cells with the same sum are alike if all of their accesses are.
        alike = lengths == lengths[other]
        cells = np.repeat(np.arange(len(first)), lengths)
        there = np.where(alike[cells], starts[other][cells] + inside, np.arange(len(rows)))
        equal = (parts == parts[:, there]).all(axis=0)
        alike &= np.logical_and.reduceat(equal, starts)
        new = ~alike
        new[representative] = True
        chosen: Flags = new[cells]
        return chosen

    def _against(self, number: int, others: Numbers) -> Iterator[tuple[int, int]]:
        """What of ``others`` conflicts with an access and is not ordered."""
        found = self.found
        if found.kind[number] == READ:
            others = others[found.kind[others] != READ]
        others = others[~self._strong(others, np.full(len(others), number))]
        yield from self.all(np.minimum(others, number), np.maximum(others, number))

    def _wide(self, run: Numbers) -> Flags:
        """Which accesses of one cell are morally strong with each other, at least, as their scopes have all threads of
        the launch, or are all the same CTA's."""
        found = self.found
        level = self.levels[found.instruction[run]]
        alone = len(np.unique(self.clocks.cta[found.agent[run]])) == 1
        wide: Flags = (level == ALL) | (alone & (level != WEAK))
        wide &= found.proxy[run] == 0
        extents = np.stack((found.place[run], found.size[run]), axis=1)
        if wide.any():
            kinds, counts = np.unique(extents[wide], axis=0, return_counts=True)
            wide &= (extents == kinds[int(counts.argmax())]).all(axis=1)
        return wide

    def _strong(self, before: Numbers, behind: Numbers) -> Flags:
        """Which pairs are strong accesses in each other's scope, of the same bytes (8.7)."""
        found, cta = self.found, self.clocks.cta
        one, other = cta[found.agent[before]], cta[found.agent[behind]]
        level = np.minimum(self.levels[found.instruction[before]], self.levels[found.instruction[behind]])
        near = self.clusters[one] == self.clusters[other]
        beside = self.devices[one] == self.devices[other]
        strong: Flags = (
            (level == ALL) | ((level == GPU) & beside) | ((level == CLUSTER) & near) | ((level == CTA) & (one == other))
        )
        for column in (found.place, found.size, found.proxy):
            strong &= column[before] == column[behind]
        strong &= (found.proxy[before] == 0) | ((found.kind[before] == ATOMIC) & (found.kind[behind] == ATOMIC))
        return strong

    def _ordered(self, before: Numbers, behind: Numbers) -> Flags:
        found, clocks = self.found, self.clocks
        given = found.view[behind], found.agent[before], found.clock[before]
        ordered = clocks.after(given[0], found.agent[behind], *given[1:])
        here, there = found.proxy[before], found.proxy[behind]
        ctas = clocks.cta[found.agent[before]], clocks.cta[found.agent[behind]]
        names = [name.partition(".")[0] for name in self.proxies]
        same = np.array([names.index(name) for name in names])
        apart = (same[here] != same[there]) | ((here != 0) & (ctas[0] != ctas[1]))
        # Who knows of an asynchronous operation knows of its completion, with a proxy fence of its own (9.7.10.24.2),
        # and that it has read its tensor map.
        here = np.where(np.array([name in (ASYNC, TENSORMAP) for name in names])[here], 0, here)
        through = ordered & apart & ((here != 0) | (there != 0))
        if self.free:
            overwrites = (found.kind[before] == READ) & (found.proxy[before] == 0) & (found.kind[behind] != READ)
            through &= ~(overwrites & (there != 0))
        through = np.flatnonzero(through)
        if through.size:
            layers = [
                self._layer(*row) for row in zip(*(c[through].tolist() for c in (here, there, ctas[1])), strict=True)
            ]
            columns = [column[through] for column in given]
            passed = clocks.passed(layers, *columns) & np.array([kind != GENERIC for kind, _, _ in layers])
            ordered[through] = passed | clocks.passed([API] * len(through), *columns)
        if TENSOR in names:
            ordered |= self._tensor(before, behind)
        return ordered

    def _tensor(self, before: Numbers, behind: Numbers) -> Flags:
        """Which accesses of tensor memory are ordered by its own fences, or executed in the order of their issue, in
        one thread or through these fences (9.7.16.6 of PTX ISA 9.0)."""
        found, clocks = self.found, self.clocks
        inside: Flags = found.proxy[before] == self.proxies.index(TENSOR)
        piped = self.pipelined[found.pipe[before], found.pipe[behind]]
        ordered: Flags = piped & (found.agent[before] == found.agent[behind])
        for layer, which in ((HANDED, inside), (PIPED, piped & ~ordered)):
            rows = np.flatnonzero(which)
            given = found.view[behind[rows]], found.agent[before[rows]], found.clock[before[rows]]
            ordered[rows] |= clocks.passed([layer] * len(rows), *given)
        return ordered

    def _layer(self, before: int, behind: int, cta: int) -> Layer:
        """The layer that has what precedes the proxy fences between two accesses (8.9.5)."""
        if before and behind:
            return (self.proxies[before] if before == behind else GENERIC), "both", cta
        return (self.proxies[behind], "enter", cta) if behind else (self.proxies[before], "leave", -1)
