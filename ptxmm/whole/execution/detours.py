"""Branches on data that nobody works out, of which both ways only compute: whichever is taken, the thread comes to
where they meet, and has done nothing to memory. What either way gives a register is not known there.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ptxmm.program.graph import reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.scalars import Scalars
from ptxmm.whole.execution.state import Stopped


class _Detour(Struct, frozen=True):
    """Where both ways meet (``stop``), the registers that one of them may change (``left``), and the loads of
    parameters on them."""

    stop: int
    left: frozenset[str]
    loads: tuple[tuple[int, ops.Load], ...]


class Detours:
    """Those of the threads of ``machine``; ``barred``: instructions that do more than compute, whatever they are."""

    def __init__(self, machine: Accessing, scalars: Scalars, barred: frozenset[int]) -> None:
        self.machine, self._scalars, self._barred = machine, scalars, barred
        self._found: dict[int, _Detour | None] = {}

    def taken(self, op: ops.Op, guard: ops.Guard, at: int, threads: Numbers) -> Numbers:
        """Threads come to an instruction under a guard: those for which it does not matter what that is go on where it
        makes no difference any more; the others are returned."""
        machine = self.machine
        unknown = ~machine.register(guard.register, threads).known
        if not unknown.any():
            return threads
        origins = machine.origins.get(guard.register, {})
        blind = np.array([thread for thread in threads[unknown].tolist() if thread not in origins], np.int64)
        if not len(blind):
            return threads
        if at not in self._found:
            self._found[at] = self._detour(op, at)
        detour = self._found[at]
        if detour is None:
            return threads
        try:
            for pc, load in detour.loads:
                self._scalars.load(load, pc, blind)
        except Stopped:  # which may be on the way that no thread takes
            return threads
        for name in detour.left:
            machine.lose(name, blind)
        machine.pc[blind] = detour.stop
        return np.setdiff1d(threads, blind)

    def _detour(self, op: ops.Op, at: int) -> _Detour | None:
        body = self.machine.body
        if not isinstance(op, ops.Branch):
            inside, stop = [at], at + 1
        else:
            graph = self.machine.launch.graph
            stop = self.machine.launch.joins.get(at, graph.end)
            if stop == graph.end:
                return None
            inside = sorted(reach(graph.after, [op.target, at + 1], stop) - {stop})
            if graph.end in inside or at in inside:
                return None
        left = frozenset(name for pc in inside for name, _ in definitions(body[pc]))
        if at in self._barred:
            return None
        loads: list[tuple[int, ops.Load]] = []
        for pc in inside:
            it = body[pc]
            if pc in self._barred or (isinstance(it, ops.Branch) and it.target <= pc):
                return None
            if isinstance(it, ops.Load) and it.space == "param" and isinstance(op, ops.Branch):
                if it.guard is not None or left & {name for name, _ in uses(it)}:
                    return None
                loads.append((pc, it))
            elif not isinstance(it, (*ops.COMPUTING, ops.Branch)):
                return None
        return _Detour(stop, left, tuple(loads))
