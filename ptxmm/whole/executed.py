"""One execution of a launch: which of its accesses race, and what keeps it from telling of others."""

from __future__ import annotations

from itertools import islice
from typing import TypeAlias

import numpy as np

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.launch import DESTINATION_CTA, SAME_VALUE, WARP_COPY, WGMMA_SYNC
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.lenient import ISSUE, PROXY_WAR, TENSOR_WAIT
from ptxmm.whole.order.conflicts import accesses, racing, unordered
from ptxmm.whole.order.options import Options
from ptxmm.whole.order.strong import ALL, WEAK, Location
from ptxmm.whole.order.trace import ATOMIC, READ, TENSOR, TENSORMAP, WRITE
from ptxmm.whole.result import Answer

Pairs: TypeAlias = dict[tuple[int, int], list[tuple[int, int]]]
"""By two instructions the pairs of accesses by them."""
_PAIRS = 100_000
"""After so many pairs no more are looked for."""
_TRIED = 20
"""So many pairs of accesses by two instructions are looked at."""


class Executed:
    """The execution of ``machine``, which has been run: its accesses (``found``), and the pairs of them that conflict
    and that nothing orders (``groups``); ``agreeing``: the stores that race with the same value."""

    def __init__(self, machine: Machine, limits: Limits) -> None:
        """Raises ``Stopped`` where it does what is undefined or not followed."""
        self.machine = machine
        self.found = found = accesses(machine.memory, machine.trace)
        self._refuse_noncoherent()
        self._refuse_opaque()
        self._refuse_turning()
        self.groups: Pairs = {}
        same = self._same()
        self.agreeing = racing(found, machine.clocks, same)
        given = machine.clusters, machine.trace.proxies, same, PROXY_WAR in machine.lenient
        every = unordered(
            found, machine.clocks, self._levels(), *given,
            transitive=not machine.regions.left, devices=machine.devices,
            pipes=machine.trace.pipes,
        )  # fmt: skip
        closed = self._closed()
        for number, (a, b) in enumerate(islice(every, _PAIRS)):
            if int(found.cell[b]) in closed and ATOMIC in (found.kind[a], found.kind[b]):
                continue
            self.groups.setdefault((int(found.instruction[a]), int(found.instruction[b])), []).append((a, b))
            if number % 4096 == 0:
                limits.check()

    def sure(self) -> list[tuple[tuple[int, int], int]]:
        """For each two instructions that race a pair of their accesses, and how many pairs there are. Raises
        ``Stopped`` where it is not known whether two accesses race."""
        sure: list[tuple[tuple[int, int], int]] = []
        for _, pairs in sorted(self.groups.items()):
            for pair in pairs:
                self._refuse_open(*pair)
                self._refuse_maps(*pair)
                self._refuse_handed(*pair)
            told = islice((p for p in pairs if not self._shared_out(*p) and not self._compared(*p)), _TRIED)
            first = next((pair for pair in told if not self._observed(*pair)), None)
            if first is not None:
                sure.append((first, len(pairs)))
        return sure

    def unsure(self, message: str) -> Stopped | None:
        """That it is not known whether some pair races; None if there is no pair."""
        for (_, other), pairs in self.groups.items():
            if self._shared_out(*pairs[0]):
                message = (
                    "which lane of the warp accesses an element is unspecified (9.7.15.3.1), and nothing orders them"
                )
            return Stopped("undecided", message, other, int(self.found.agent[pairs[0][1]]))
        return None

    def _closed(self) -> set[int]:
        """The bytes of counters at which nobody looks but by atomic operations, which come before all that is stored
        there in each execution of the plan (``Options.closed``)."""
        columns, strong = self.machine.trace.columns(), self.machine.strong
        options, found = Options(strong), set[int]()
        for (place, size), log in strong.logs.items() if strong.plan.last else ():
            here = (columns["place"] < place + size) & (columns["place"] + columns["size"] > place)
            logged = here.sum() == len(log.writes) - 1 and (columns["kind"][here] != READ).all()
            if logged and options.closed((place, size)):
                found.update(range(place, place + size))
        return found

    def cells(self) -> set[int]:
        """The bytes that pairs of accesses have in common which nothing orders. Raises ``Stopped`` where these are too
        many."""
        pairs = np.array([pair for pairs in self.groups.values() for pair in pairs], np.int64).reshape(-1, 2)
        if len(pairs) == _PAIRS and (stop := self.unsure("more accesses are not ordered than are followed")):
            raise stop
        found = self.found
        first, ends = found.place[pairs].max(axis=1), (found.place[pairs] + found.size[pairs]).min(axis=1)
        ranges = set(zip(first.tolist(), ends.tolist(), strict=True))
        return {byte for start, end in ranges for byte in range(start, end)}

    def refuse_doubts(self) -> None:
        """Raise ``Stopped`` where a run without races says nothing of others, or leaves something undone."""
        self.machine.copies.check_end()
        self.machine.tensorcore.allocations.check_end()
        self.refuse_ended()
        if self.machine.undecided is not None:
            raise self.machine.undecided
        self._refuse_unchanging()
        self.machine.locations.refuse_turns()

    def _refuse_unchanging(self) -> None:
        """Raise ``Stopped`` where it matters that an atomic operation writes what it has found: to accesses of other
        bytes, or of a narrower scope, which might not observe it as they observe what it has found (8.9.2)."""
        strong, unchanging = self.machine.strong, self.machine.launch.unchanging
        if not unchanging:
            return
        looked = [r for r in strong.reads if not unchanging.isdisjoint(r.waited.loads if r.waited else (r.at,))]
        levels: dict[Location, set[int]] = {read.location: set() for read in looked}
        for read in strong.reads:
            levels.get(read.location, set()).add(read.level)
        for read in looked:
            log = strong.logs[read.location]
            if log.mixed or not levels[read.location] | {write.level for write in log.writes} <= {WEAK, ALL}:
                message = (
                    "an atomic operation that leaves what it finds is not followed beside accesses of a narrower scope"
                )
                raise Stopped("undecided", message, read.at, read.thread)

    def refuse_ended(self) -> None:
        """Raise ``Stopped`` where shared memory of a CTA is used that may have ended (5.1.7): nothing that its threads
        do comes after that, or sees it."""
        machine, columns = self.machine, self.machine.trace.columns()
        machine.mbarriers.check_ends()
        owners = machine.memory.remote(columns["place"], machine.clocks.cta[columns["agent"]])
        for cta in np.unique(owners[owners >= 0]).tolist():
            rows = np.flatnonzero(owners == cta)
            agents, clocks = columns["agent"][rows], columns["clock"][rows]
            alive = np.zeros(len(rows), np.bool_)
            for view in np.unique(machine.ends[machine.cta == cta]).tolist():
                alive |= machine.clocks.after(np.full(len(rows), view), agents - agents - 1, agents, clocks)
            late = rows[~alive]
            if not late.size:
                continue
            unseen = next((row for row in late.tolist() if not self._seen(row)), None) if machine.exact else None
            row = int(late[0]) if unseen is None else unseen
            message = "this accesses shared memory of a CTA that may have ended before: nothing in it comes after this"
            at, agent = int(columns["instruction"][row]), int(columns["agent"][row])
            word: Answer = "undecided" if unseen is None else "undefined"
            raise Stopped(word, f"{message} (5.1.7)", at, agent, other=machine.end_of(cta))

    def _seen(self, row: int) -> bool:
        """Whether somebody may have read what an access writes."""
        columns = self.machine.trace.columns()
        if columns["kind"][row] == READ:
            return False
        place, end = columns["place"][row], columns["place"][row] + columns["size"][row]
        later = slice(row + 1, None)
        reads = columns["kind"][later] != WRITE
        reads &= (columns["place"][later] < end) & (columns["place"][later] + columns["size"][later] > place)
        return bool((reads & (columns["agent"][later] != columns["agent"][row])).any())

    def patterns(self) -> frozenset[str]:
        """Of what pairs of accesses that race look like what programs rely on (``lenient``)."""
        found = self.found
        before, behind = np.array([pair for pairs in self.groups.values() for pair in pairs], np.int64).T
        generic, reads = (found.proxy[before] == 0, found.proxy[behind] == 0), found.kind[before] == READ
        there, cta = found.kind[behind], self.machine.clocks.cta
        apart = cta[found.agent[before]] != cta[found.agent[behind]]
        given = found.view[behind], found.agent[behind], found.agent[before], found.clock[before]
        overwrites = reads & generic[0] & ~generic[1] & (there != READ)
        ordered = self.machine.clocks.after(*given)
        names = {
            PROXY_WAR: overwrites & ordered,
            DESTINATION_CTA: apart & ~generic[0] & ~generic[1],
            SAME_VALUE: ~reads & (there == WRITE) & ~generic[0] & ~generic[1],
        }
        if any(isinstance(op, ops.Wgmma) for op in self.machine.kernel.code.body):
            names[WGMMA_SYNC] = overwrites & ~ordered
        body = self.machine.kernel.code.body
        issued = [at for at, op in enumerate(body) if isinstance(op, ops.TensorAccess)]
        names[TENSOR_WAIT] = np.isin(found.instruction[behind], issued)
        if any(isinstance(op, ops.TensorCommit) for op in body):
            names[ISSUE] = ~ordered
        copies = [at for at, op in enumerate(body) if isinstance(op, ops.TensormapCopyFence)]
        names[WARP_COPY] = np.isin(found.instruction[before], copies) | np.isin(found.instruction[behind], copies)
        found_names = frozenset(name for name, which in names.items() if which.any())
        stores = [at for at, op in enumerate(body) if isinstance(op, ops.Store)]
        same = (found.place[before] == found.place[behind]) & (found.size[before] == found.size[behind])
        for row in (before, behind):
            same &= (found.kind[row] == WRITE) & np.isin(found.instruction[row], stores)
        # Writes of one value may be all that races, or all but what has a name already.
        covered = np.logical_or.reduce([same, *names.values()])
        return found_names | {SAME_VALUE} if same.any() and covered.all() else found_names

    def _shared_out(self, a: int, b: int) -> bool:
        """Whether two lanes of a warp make accesses, one of them of a matrix, which may be made by one lane as well."""
        body, warps = self.machine.kernel.code.body, [self.machine.warp(int(self.found.agent[n])) for n in (a, b)]
        matrix = any(isinstance(body[int(self.found.instruction[n])], ops.WmmaAccess) for n in (a, b))
        return matrix and warps[0] == warps[1]

    def _compared(self, a: int, b: int) -> bool:
        """Whether two accesses conflict only if a ``cas`` that leaves what it finds has written, and not failed."""
        comparing, reads = self.machine.launch.comparing, (self.found.kind[a] == READ, self.found.kind[b] == READ)
        instructions = int(self.found.instruction[a]), int(self.found.instruction[b])
        return any(at in comparing and read for at, read in zip(instructions, reversed(reads), strict=True))

    def _observed(self, a: int, b: int) -> bool:
        """Whether somebody may have observed a strong write before the other access (8.9.5, causality order (2))."""
        found, clocks, one = self.found, self.machine.clocks, np.array([b])
        if not self._level(int(found.instruction[a])) or found.kind[a] == READ:
            return False
        log = self.machine.strong.logs.get((int(found.place[a]), int(found.size[a])))
        written = (int(found.agent[a]), int(found.clock[a]))
        orders = [w.order for w in (() if log is None else log.writes) if (w.thread, w.clock) == written]
        return any(
            place <= found.cell[a] < place + size
            and clocks.after(found.view[one], found.agent[one], np.array([read.thread]), np.array([read.clock]))[0]
            for read in self.machine.strong.reads
            for place, size in [read.location]
            if read.level != WEAK and read.order > min(orders, default=0)
        )

    def _same(self) -> Numbers:
        """For each access the number of what it writes where writes of the same value may race; -1 for others."""
        same, copies = np.full(len(self.found), -1, np.int64), self.machine.trace.same
        if self.machine.scalars.stored or copies:
            numbers: dict[tuple[int, int, bool, int], int] = {}
            for row in np.flatnonzero(self.found.kind == WRITE).tolist():
                copy = copies.get(int(self.found.row[row]))
                words = self._stored(row) if copy is None else {copy}
                if words is not None and len(words) == 1 and None not in words:
                    key = int(self.found.place[row]), int(self.found.size[row]), copy is None, next(iter(words)) or 0
                    same[row] = numbers.setdefault(key, len(numbers))
        return same

    def _stored(self, row: int) -> set[int | None] | None:
        """What an access writes that may race with writes of the same value; None if it may not."""
        columns = (self.found.instruction, self.found.place, self.found.size, self.found.agent, self.found.clock)
        at, place, size, agent, clock = (int(column[row]) for column in columns)
        return self.machine.scalars.stored.get((at, place, size, agent, clock))

    def _refuse_open(self, a: int, b: int) -> None:
        """Raise ``Stopped`` where it is not known whether two accesses that nothing orders write the same value."""
        one, other = self._stored(a), self._stored(b)
        alike = self.found.place[a] == self.found.place[b] and self.found.size[a] == self.found.size[b]
        if alike and None in (one, other) and self._allowed(a) and self._allowed(b):
            message = "this races unless it writes the same value, which is not followed for strong writes"
            raise Stopped("undecided", message, int(self.found.instruction[b]), int(self.found.agent[b]))
        if alike and one is not None and other is not None and (None in one or None in other):
            message = "this races unless it writes the same value, and what it writes is not worked out"
            raise Stopped("undecided", message, int(self.found.instruction[b]), int(self.found.agent[b]))

    def _allowed(self, row: int) -> bool:
        """Whether an access is a store that may race with one of the same value."""
        racing, op = self.machine.scalars.racing, self.machine.kernel.code.body[int(self.found.instruction[row])]
        return racing is not None and isinstance(op, ops.Store) and racing.allows(op.source.span.line)

    def _refuse_maps(self, a: int, b: int) -> None:
        """Raise ``Stopped`` where fences of the tensormap proxy may order a copy behind a change of its tensor map, as
        they synchronize by themselves (9.7.14.4)."""
        machine, found = self.machine, self.found
        kind, _, place = machine.trace.proxies[int(found.proxy[b])].partition(".")
        if kind != TENSORMAP or not machine.strong.logs:
            return
        view, agent, other, clock = found.view[[b]], found.agent[[b]], found.agent[[a]], found.clock[[a]]
        if machine.clocks.after(view, agent, other, clock)[0]:
            return
        if machine.tensormaps.may_synchronize(int(place), int(view[0]), int(other[0]), int(clock[0])):
            message = "what fences of the tensormap proxy alone synchronize is not followed yet"
            raise Stopped("undecided", message, int(found.instruction[b]), int(found.agent[b]))

    def _refuse_handed(self, a: int, b: int) -> None:
        """Raise ``Stopped`` where fences of tcgen05 may order accesses of tensor memory by a flag, be it a relaxed one
        (9.7.16.6.3 of PTX ISA 9.0)."""
        machine, found = self.machine, self.found
        inside = machine.trace.proxies[int(found.proxy[b])] == TENSOR
        if inside and machine.tensorcore.issuing.fenced and machine.strong.logs:
            message = "what fences of tcgen05 hand over by flags is not followed yet"
            raise Stopped("undecided", message, int(found.instruction[b]), int(found.agent[b]))

    def _level(self, at: int) -> int:
        op = self.machine.kernel.code.body[at]
        scope = op.scope if isinstance(op, ops.Load | ops.Store | ops.Atomic) else None
        if isinstance(op, ops.BulkCopy) and op.reduction is not None:
            scope = "gpu"  # of its accesses that are atomic (9.7.10.24.7)
        if isinstance(op, ops.AsyncStore) and op.reduction is not None:
            scope = "cluster"
        return self.machine.strong.level(scope)

    def _levels(self) -> Numbers:
        """For each instruction how wide its scope is."""
        return np.array([self._level(at) for at in range(len(self.machine.kernel.code.body))], np.int64)

    def _refuse_opaque(self) -> None:
        """Raise ``Stopped`` where the memory of an mbarrier is accessed otherwise (9.7.14.15)."""
        places = np.array([-ops.MBARRIER_BYTES, *self.machine.mbarriers.places()], np.int64)
        columns = self.machine.trace.columns()
        ends = columns["place"] + columns["size"]
        last = places[np.searchsorted(places, ends, "left") - 1]
        wrong = np.flatnonzero(last + ops.MBARRIER_BYTES > columns["place"])
        if wrong.size:
            message = "memory that is an mbarrier and something else is not followed yet"
            number = int(wrong[0])
            raise Stopped("unsupported", message, int(columns["instruction"][number]), int(columns["agent"][number]))

    def _refuse_turning(self) -> None:
        """Raise ``Stopped`` where a weak load in a loop that waits may find something else in each round."""
        fixed, columns = self.machine.fixed, self.machine.trace.columns()
        before = np.concatenate(([0], np.cumsum(fixed >= 0)))
        ends = columns["place"] + columns["size"]
        wrong = np.flatnonzero((columns["kind"] != READ) & (before[ends] > before[columns["place"]]))
        if wrong.size:
            place, end = int(columns["place"][wrong[0]]), int(ends[wrong[0]])
            at = next(at for at in fixed[place:end].tolist() if at >= 0)
            message = "this loop reads what the launch writes also by a weak load, which is not followed yet"
            raise Stopped("unsupported", message, at)

    def _refuse_noncoherent(self) -> None:
        """Raise ``Stopped`` where ``ld.global.nc`` reads what the launch writes (9.7.10.9)."""
        body = self.machine.kernel.code.body
        noncoherent = [at for at, op in enumerate(body) if isinstance(op, ops.Load) and op.nc]
        found, part = self.found, self.machine.part[self.machine.clocks.cta]
        reads = np.isin(found.instruction, noncoherent) & (found.kind == READ)
        for number in np.flatnonzero(reads).tolist():
            first, end = np.searchsorted(found.cell, (found.cell[number], found.cell[number] + 1))
            writers = found.agent[first:end][found.kind[first:end] != READ]
            own = int(part[found.agent[number]])
            for other in np.unique(part[writers]).tolist():
                if not self._apart(own, other):
                    message = "a non-coherent load of what the launch writes"
                    word: Answer = "undefined" if own == other else "undecided"
                    raise Stopped(word, message, int(found.instruction[number]), int(found.agent[number]))

    def _apart(self, one: int, other: int) -> bool:
        """Whether one of two grids begins when the other one has ended."""
        parts = self.machine.launch.parts
        last = parts[max(one, other)].kernel.grid.after
        return one != other and parts[one].device == parts[other].device and last == "stream"
