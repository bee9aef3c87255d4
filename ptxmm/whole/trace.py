"""What the threads of a launch did to memory: a row for each access of a thread, in the order of the execution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptxmm.whole.clocks import Clocks
from ptxmm.whole.memory import Numbers

READ, WRITE, ATOMIC = 0, 1, 2


class Trace:
    """Columns, one for each of ``COLUMNS``: the place in the arena and the ``size`` in bytes, the thread with its clock
    and row, the ``kind``, the index of the instruction."""

    COLUMNS: ClassVar = ("place", "size", "thread", "clock", "row", "kind", "instruction")

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._parts: list[NDArray[np.int64]] = []
        self.count = 0

    def add(self, instruction: int, kind: int, places: Numbers, size: int, threads: Numbers) -> None:
        """Each of ``threads`` accesses ``size`` bytes at its place."""
        part = np.empty((len(self.COLUMNS), len(threads)), np.int64)
        part[0], part[1], part[2] = places, size, threads
        part[3], part[4] = self._clocks.clock[threads], self._clocks.row[threads]
        part[5], part[6] = kind, instruction
        self._parts.append(part)
        self.count += len(threads)

    def columns(self) -> dict[str, Numbers]:
        """All rows, by the names of the columns."""
        whole = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((len(self.COLUMNS), 0), np.int64)
        return dict(zip(self.COLUMNS, whole, strict=True))
