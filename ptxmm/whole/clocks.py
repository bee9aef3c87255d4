"""Base causality order (PTX ISA 8.9.5) between the accesses of a launch, by vector clocks.

A thread counts the steps between its synchronizations: its clock. A row has for each thread of its CTA the last clock
of it that the thread whose row it is comes after. As all that synchronizes here are threads of one CTA, which barriers
order both ways, rows say nothing of other CTAs: nothing of theirs is ordered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptxmm.whole.memory import Flags, Numbers

Rows = NDArray[np.int32]


class Clocks:
    """The clock of each thread and the row that it has; ``size``: the threads of a CTA."""

    def __init__(self, threads: int, size: int) -> None:
        self._size = size
        self.clock = np.ones(threads, np.int32)
        self.row = np.zeros(threads, np.int32)
        self._rows = np.zeros((64, size), np.int32)
        self._count = 1

    def synchronize(self, waiting: Numbers, arriving: Numbers) -> None:
        """Threads of one CTA meet: those ``waiting`` come after what all of both did before."""
        every = np.concatenate((waiting, arriving))
        found = self._rows[np.unique(self.row[every])].max(axis=0)
        inside = every % self._size
        found[inside] = np.maximum(found[inside], self.clock[every])
        self.row[waiting] = self._add(found)
        self.clock[every] += 1

    def _add(self, row: Rows) -> int:
        if self._count == len(self._rows):
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
        self._rows[self._count] = row
        self._count += 1
        return self._count - 1

    def after(self, rows: Numbers, threads: Numbers, others: Numbers, clocks: Numbers) -> Flags:
        """Whether an access of each of ``threads`` with this row comes after that of another one with this clock."""
        same = threads // self._size == others // self._size
        found: Flags = same & ((threads == others) | (self._rows[rows, others % self._size] >= clocks))
        return found
