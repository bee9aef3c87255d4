"""Opaque bytes in registers: how kernels copy a tensor map before they change it.

Where the fields of a tensor map lie is ptxmm's own, so its bytes are never known as numbers. A register that is loaded
from them hands them on if nothing is done with it but to store it again.
"""

from __future__ import annotations

import numpy as np

from ptxmm.formats.modules.kernel import observed
from ptxmm.ptx import ops
from ptxmm.ptx.isa import uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.state import State


class Carried:
    """The registers of ``state`` that have had parts of tensor maps in them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._names: set[str] = set()
        self._moved: frozenset[str] | None = None

    def loaded(self, register: ops.Reg, places: Numbers, size: int) -> Flags:
        """Which of the threads that load ``size`` bytes into a register have a part of a tensor map in it."""
        memory, here = self.state.memory, places[:, None] + np.arange(size)
        found: Flags = (memory.opaque[here] & ~memory.open[here]).all(axis=1)
        if found.any():
            if self._moved is None:
                self._moved = _only_stored(self.state)
            if register.name not in self._moved:
                return np.zeros(len(places), np.bool_)
            self._names.add(register.name)
        return found

    def by(self, operand: ops.Operand) -> bool:
        """Whether a value that is stored may be a part of a tensor map."""
        return isinstance(operand, ops.Reg) and operand.name in self._names


def _only_stored(state: State) -> frozenset[str]:
    """The registers with which nothing is done but to store them."""
    every: set[str] = set()
    other = set(observed(state.kernel))
    for op in state.body:
        names = [name for name, _ in uses(op)]
        every.update(names)
        for operand in op.values if isinstance(op, ops.Store) else ():
            if isinstance(operand, ops.Reg):
                names.remove(operand.name)
        other.update(names)
    return frozenset(every - other)
