"""Origins of what is stored: what a thread loads has the origin of what was stored there."""

from __future__ import annotations

from functools import partial

import numpy as np

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.state import State
from ptxmm.whole.execution.values import mask
from ptxmm.whole.order.origins import Derived, Origin, Words
from ptxmm.whole.order.strong import Location


def _cut(words: Words, bits: int) -> int | None:
    return None if words[0] is None else words[0] & mask(bits)


class Kept:
    """The origins of what is in the memory of ``state``."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._stored: dict[Location, Origin] = {}
        self._keeps = np.zeros(len(state.memory.bytes), np.bool_)

    def keep(self, operand: ops.Operand, type_: ops.Type, places: Numbers, threads: Numbers) -> None:
        """What is stored has the origin of its register."""
        self.forget(places, type_.bytes)
        origins = self.state.origins.get(operand.name, {}) if isinstance(operand, ops.Reg) else {}
        if not origins:
            return
        for place, thread in zip(places.tolist(), threads.tolist(), strict=True):
            if (origin := origins.get(thread)) is not None and type_.bytes <= 8:
                word = origin.word & mask(type_.bits)
                self._stored[place, type_.bytes] = Derived(partial(_cut, bits=type_.bits), (origin,), word)
                self._keeps[place : place + type_.bytes] = True

    def origin(self, location: Location) -> Origin | None:
        """The origin of what is stored there, if it has one."""
        return self._stored.get(location)

    def forget(self, places: Numbers, size: int) -> None:
        """What was stored here is there no longer."""
        kept = self._keeps[places[:, None] + np.arange(size)].any(axis=1)
        for place in places[kept].tolist():
            for location in [(at, width) for at, width in self._stored if at < place + size and place < at + width]:
                del self._stored[location]

    def recall(self, register: str, places: Numbers, size: int, threads: Numbers) -> None:
        """What is loaded has the origin of what was stored."""
        for row in np.flatnonzero(self._keeps[places] & ~self.state.memory.open[places]).tolist():
            if (origin := self._stored.get((int(places[row]), size))) is not None:
                self.state.origins.setdefault(register, {})[int(threads[row])] = origin
