"""What is computed from values that depend on what a read found: their origins are followed, where values are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.polls import Round
from ptxmm.whole.execution.state import State
from ptxmm.whole.order.origins import Derived, Inputs, Origin, Words, concrete


class Deriving:
    """Computes in the threads of ``state``."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._known: dict[tuple[int, str, Inputs], Origin | None] = {}

    def compute(self, op: Any, at: int, threads: Numbers) -> None:
        """What only gives registers values."""
        derived = self._derived(op, at, threads) if self.state.origins else []
        for register, value in results(self.state, op, threads):
            self.state.assign(register, threads, value)
        for name, thread, origin in derived:
            if not self.state.register(name, np.array([thread])).known[0]:
                self.state.origins.setdefault(name, {})[thread] = origin

    def _derived(self, op: ops.Op, at: int, threads: Numbers) -> list[tuple[str, int, Origin]]:
        """What an instruction computes from registers with origins, in each thread that has some."""
        used = tuple(dict.fromkeys(name for name, _ in uses(op)))
        if isinstance(op, ops.AddressValue) or not any(self.state.origins.get(name) for name in used):
            return []
        found = []
        for thread in threads.tolist():
            parts = tuple(self.part(name, thread) for name in used)
            if None in parts or all(isinstance(part, int) for part in parts):
                continue
            for name, _ in definitions(op):
                key = at, name, parts
                if key not in self._known:
                    self._known[key] = self._derive(op, name, used, parts)
                if (origin := self._known[key]) is not None:
                    found.append((name, thread, origin))
        return found

    def part(self, name: str, thread: int) -> Origin | int | None:
        """What a register is in a thread: its origin if it has one, its value if that is known."""
        value = self.state.register(name, np.array([thread]))
        return int(value.words[0]) if value.known[0] else self.state.origins.get(name, {}).get(thread)

    def _derive(self, op: ops.Op, name: str, used: tuple[str, ...], parts: Inputs) -> Origin | None:
        """What ``op`` computes for the register ``name``; None where nobody knows."""
        alone = Round(self.state, (), ())  # origins outlive the execution, which has a trace

        def function(words: Words) -> int | None:
            return Round(alone, used, [words]).computed(op, name)

        word = function(concrete(parts))
        return None if word is None else Derived(function, parts, word)
