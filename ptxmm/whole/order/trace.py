"""What the threads of a launch did to memory: a row for each access of a thread, in the order of the execution."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ptxmm.whole.arrays import Numbers
from ptxmm.whole.order.clocks import Clocks

READ, WRITE, ATOMIC = 0, 1, 2
GENERIC = ""
"""The generic proxy; the others have names."""
ASYNC, TENSORMAP, TENSOR = "async", "tensormap", "tensor"
"""The asynchronous proxy, whose name goes on with where the memory is that is accessed, that of tensor maps; and how
tensor memory is accessed, which needs no proxy fences."""


class Trace:
    """Columns, one for each of ``COLUMNS``: the place in the arena and the ``size`` in bytes, the agent with its clock
    and view, the ``kind``, the index of the instruction, the number of the proxy among ``proxies``, and of the kind of
    operation that is executed in the order of its issue among ``pipes`` (0: none)."""

    COLUMNS: ClassVar = ("place", "size", "agent", "clock", "view", "kind", "instruction", "proxy", "pipe")

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self.proxies = [GENERIC]
        self.pipes: list[Hashable] = [None]
        self._parts: list[NDArray[np.int64]] = []
        self.count = 0
        self.same: dict[int, int] = {}
        """Numbers of copies by their rows: those with one number write the same."""

    def add(
        self, instruction: int, kind: int, places: Numbers, size: int, agents: Numbers, proxy: str = GENERIC,
        pipe: Hashable = None,
    ) -> None:  # fmt: skip
        """Each of ``agents`` accesses ``size`` bytes at its place."""
        if proxy not in self.proxies:
            self.proxies.append(proxy)
        if pipe not in self.pipes:
            self.pipes.append(pipe)
        part = np.empty((len(self.COLUMNS), len(agents)), np.int64)
        part[0], part[1], part[2] = places, size, agents
        part[3], part[4] = self._clocks.clock[agents], self._clocks.views(agents)
        part[5], part[6], part[7], part[8] = kind, instruction, self.proxies.index(proxy), self.pipes.index(pipe)
        self._parts.append(part)
        self.count += len(agents)

    def columns(self) -> dict[str, Numbers]:
        """All rows, by the names of the columns."""
        whole = np.concatenate(self._parts, axis=1) if self._parts else np.zeros((len(self.COLUMNS), 0), np.int64)
        return dict(zip(self.COLUMNS, whole, strict=True))
