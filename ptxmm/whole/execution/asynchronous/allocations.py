"""Tensor memory that a CTA allocates (PTX ISA 9.0, ``tcgen05.alloc``).

An allocation gets columns that were never allocated before in its CTA. What it is used for has to come after it, as far
as its thread knows, and before it is freed: ``tcgen05.dealloc`` is an access of all of it.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ptxmm.analysis.claims import BOUNDS
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.copies import Copies
from ptxmm.whole.execution.matrices import check_together
from ptxmm.whole.execution.state import Did, Stopped
from ptxmm.whole.memory import TENSOR_COLUMNS, TENSOR_LANES
from ptxmm.whole.order.clocks import NOTHING, Release
from ptxmm.whole.order.trace import TENSOR, WRITE

_LEAST, _MOST = 32, TENSOR_COLUMNS
_SECTION = "tcgen05.alloc of PTX ISA 9.0"
_BYTES = ops.COLUMN_BYTES


class Allocation(Struct):
    """Some ``columns`` from the column ``first`` on, by the agent of a warp at its ``clock``, the instruction ``at`` of
    a ``thread``; ``freed``: what has freed them."""

    first: int
    columns: int
    agent: int
    clock: int
    at: int
    thread: int
    freed: Did | None = None


class Allocations:
    """The allocations of the CTAs of ``machine``, of each in their order."""

    def __init__(self, machine: Accessing, copies: Copies) -> None:
        self.machine, self._copies = machine, copies
        self._of: dict[int, list[Allocation]] = {}
        self._relinquished: dict[int, int] = {}

    def allocate(self, op: ops.TensorAlloc, at: int, threads: Numbers) -> None:
        """``tcgen05.alloc``: one store for the warp, which all lanes come before and after."""
        machine, clocks = self.machine, self.machine.clocks
        check_together(machine, at, threads)
        for lanes in threads.reshape(-1, WARP_SIZE):
            first, cta = int(lanes[0]), int(clocks.cta[lanes[0]])
            columns = self._columns(op.columns, at, lanes)
            places = machine.places(op.address, op.space or None, _BYTES, at, lanes)
            if (places != places[0]).any():
                raise Stopped("unsupported", "lanes of a warp that name different destinations", at, first)
            start = self._next(cta, columns, at, first)
            agent = np.array([self._copies.agent(first, "tcgen05.alloc")])
            clocks.acquire(agent, [clocks.release(lane) for lane in lanes.tolist()])
            machine.trace.add(at, WRITE, places[:1], _BYTES, agent)
            machine.memory.store(places[:1], _BYTES, np.array([start], np.uint64), np.ones(1, np.bool_))
            machine.overwrite(places[:1], _BYTES, at)
            made = Allocation(start, columns, int(agent[0]), int(clocks.clock[agent[0]]), at, first)
            self._of.setdefault(cta, []).append(made)
            clocks.acquire(lanes, [Release(NOTHING, made.agent, made.clock)])
            clocks.clock[agent] += 1

    def _columns(self, operand: ops.Operand, at: int, lanes: Numbers) -> int:
        value = self.machine.operand(operand, ops.U32, lanes)
        numbers = self.machine.sure(value, at, "the number of columns", lanes)
        columns = int(numbers[0])
        if (numbers != columns).any() or not _LEAST <= columns <= _MOST or columns & (columns - 1):
            message = f"{columns} columns: all lanes give the same power of two from {_LEAST} to {_MOST} ({_SECTION})"
            raise Stopped("undefined", message, at, int(lanes[0]))
        return columns

    def _next(self, cta: int, columns: int, at: int, thread: int) -> int:
        """The first column of a new allocation."""
        machine, before = self.machine, self._of.get(cta, [])
        if cta in self._relinquished:
            message = f"an allocation after tcgen05.relinquish_alloc_permit in the CTA ({_SECTION})"
            raise Stopped("undefined", message, at, thread)
        for other in before:
            if not self._known(other, np.array([thread]))[0]:
                message = "which tensor memory this gets depends on the schedule, as another warp allocates some"
                machine.doubt(message, at, thread)
            if other.columns < columns:
                message = f"{columns} columns, more than the {other.columns} of an allocation before ({_SECTION})"
                raise Stopped("undefined", message, at, thread)
        used = sum(other.columns for other in before)
        if used + columns > TENSOR_COLUMNS:
            raise Stopped("unsupported", "tensor memory that is allocated again is not followed yet", at, thread)
        return TENSOR_COLUMNS - used - columns if machine.memory.turned else used

    def free(self, op: ops.TensorDealloc, at: int, threads: Numbers) -> None:
        """``tcgen05.dealloc``: an access of all lanes, behind what all lanes of the warp have done."""
        machine, clocks = self.machine, self.machine.clocks
        check_together(machine, at, threads)
        for lanes in threads.reshape(-1, WARP_SIZE):
            first, cta = int(lanes[0]), int(clocks.cta[lanes[0]])
            columns = self._columns(op.columns, at, lanes)
            words = machine.sure(machine.operand(op.start, ops.U32, lanes), at, "the address of what is freed")
            found = next((a for a in self._of.get(cta, []) if a.first == int(words[0]) and a.freed is None), None)
            if found is None or found.columns != columns or (words != words[0]).any():
                message = f"{columns} columns from {int(words[0]):#x} on are no allocation ({_SECTION})"
                raise Stopped("undefined", message, at, first)
            agent = np.array([self._copies.agent(first, "tcgen05.dealloc")])
            clocks.acquire(agent, [clocks.release(lane) for lane in lanes.tolist()])
            rows = np.arange(TENSOR_LANES) * TENSOR_COLUMNS + found.first
            places = machine.memory.tensor(cta) + rows * _BYTES
            machine.trace.add(at, WRITE, places, columns * _BYTES, np.repeat(agent, TENSOR_LANES), TENSOR)
            clocks.clock[agent] += 1
            found.freed = at, first

    def relinquish(self, op: ops.TensorRelinquish, at: int, threads: Numbers) -> None:
        """``tcgen05.relinquish_alloc_permit``: what is allocated then has to be so before, in every execution."""
        machine = self.machine
        check_together(machine, at, threads)
        for cta in np.unique(machine.clocks.cta[threads]).tolist():
            self._relinquished.setdefault(cta, at)
            here = threads[machine.clocks.cta[threads] == cta]
            for other in self._of.get(cta, []):
                if not self._known(other, here).any():
                    message = "an allocation of the CTA may come after this"
                    machine.unordered(f"{message} ({_SECTION})", at, int(here[0]), other=(other.at, other.thread))

    def _known(self, it: Allocation, threads: Numbers) -> Flags:
        """Which threads come after an allocation."""
        given = np.full(len(threads), it.agent), np.full(len(threads), it.clock)
        found: Flags = self.machine.clocks.after(self.machine.clocks.views(threads), threads, *given)
        return found

    def check(self, first: Numbers, columns: int, at: int, threads: Numbers) -> None:
        """Raise ``Stopped`` where columns from each of ``first`` on are not allocated."""
        ctas = self.machine.clocks.cta[threads]
        for cta, column in sorted(set(zip(ctas.tolist(), first.tolist(), strict=True))):
            here = np.unique(threads[(ctas == cta) & (first == column)])
            inside = [a for a in self._of.get(cta, []) if a.first <= column and column + columns <= a.first + a.columns]
            if not inside:
                message = f"columns {column} to {column + columns - 1} of tensor memory, which are not allocated"
                raise Stopped("outside", message, at, int(here[0]), BOUNDS)
            if inside[0].freed is not None:
                message = "tensor memory that has been freed"
                raise Stopped("undefined", message, at, int(here[0]), other=inside[0].freed)
            if (wrong := np.flatnonzero(~self._known(inside[0], here))).size:
                message = "the allocation of this tensor memory does not precede this"
                other = inside[0].at, inside[0].thread
                self.machine.unordered(message, at, int(here[wrong[0]]), other=other)

    def start(self, threads: Numbers) -> Numbers:
        """Where in the arena the tensor memory of the CTA of each thread begins."""
        ctas, memory = self.machine.clocks.cta[threads], self.machine.memory
        starts = {cta: memory.tensor(cta) for cta in np.unique(ctas).tolist()}
        return np.array([starts[cta] for cta in ctas.tolist()], np.int64)

    def shifts(self, place: int) -> int:
        """How far a place in tensor memory is from where it would be if each allocation were of the first columns that
        are free."""
        owner = self.machine.memory.owner_of(place)
        column = (place - self.machine.memory.tensor(owner)) // _BYTES % TENSOR_COLUMNS
        before = 0
        for it in self._of.get(owner, []):
            if it.first <= column < it.first + it.columns:
                return (it.first - before) * _BYTES
            before += it.columns
        return 0

    def check_end(self) -> None:
        """Raise ``Stopped`` where some tensor memory is never freed."""
        for every in self._of.values():
            for it in every:
                if it.freed is None:
                    message = f"tensor memory that is not freed before the kernel ends ({_SECTION})"
                    raise Stopped("undefined", message, it.at, it.thread)
