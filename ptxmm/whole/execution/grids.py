"""When grids begin, and what comes before them (PTX ISA 8.9.4, 9.7.14.13; decisions A42, A50).

A grid begins when those before it on its GPU have ended, with all that they have done. A programmatic launch begins
when all threads of the grid before it have come to ``griddepcontrol.launch_dependents``, or have ended: that is the
latest, so that nobody waits for what may come later. Nothing comes before it; its ``griddepcontrol.wait`` waits for the
end of the grid before it.
"""

from __future__ import annotations

import numpy as np

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, Stopped
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.strong import GPU


class Grids:
    """The grids of ``machine``; ``begun``: which threads have begun."""

    def __init__(self, machine: Accessing) -> None:
        self.machine, parts = machine, machine.launch.parts
        self._before = [
            [n for n in range(number) if parts[n].host is None and parts[n].device == part.device]
            for number, part in enumerate(parts)
        ]
        self._overlaps = [part.kernel.grid.after == "programmatic" for part in parts]
        self._members = [np.flatnonzero(machine.part[machine.cta] == number) for number in range(len(parts))]
        self._ends: dict[int, Release] = {}
        self._waiting: list[int] = []
        self._triggered = np.zeros(machine.every, np.bool_)
        self._triggers: list[set[Release]] = [set() for _ in parts]
        self.begun: Flags = np.ones(machine.every, np.bool_)
        for number, before in enumerate(self._before):
            if before:
                members = self._members[number]
                self.begun[members] = False
                machine.mode[members[machine.mode[members] == RUNS]] = WAITS

    def go_on(self) -> bool:
        """Whether a grid begins, or a thread that waits for the end of one goes on, now that all others wait."""
        machine, found = self.machine, False
        for number, before in enumerate(self._before):
            members = self._members[number]
            if self.begun[members[0]] or not self._may_begin(number):
                continue
            self.begun[members] = found = True
            threads = members[machine.mode[members] == WAITS]
            machine.mode[threads] = RUNS
            machine.clocks.acquire(members, self._triggers[number])
            if not self._overlaps[number]:
                machine.clocks.acquire(members, [self._end(n) for n in before])
        for thread in self._waiting if not found else []:
            number = int(machine.part[machine.cta[thread]])
            direct = self._before[number][-1]
            if self._has_ended(direct):
                machine.clocks.acquire(np.array([thread]), [self._end(direct)])
                machine.mode[thread] = RUNS
        left = [thread for thread in self._waiting if machine.mode[thread] != RUNS]
        found |= len(left) < len(self._waiting)
        self._waiting = left
        return found

    def _may_begin(self, number: int) -> bool:
        before = self._before[number]
        if not self._overlaps[number]:
            return all(map(self._has_ended, before))
        members = self._members[before[-1]]
        there = self._triggered[members] | (self.machine.mode[members] == ENDED)
        return bool(self.begun[members].all() and there.all())

    def _has_ended(self, number: int) -> bool:
        return bool((self.machine.mode[self._members[number]] == ENDED).all())

    def _end(self, number: int) -> Release:
        """All that a grid has done, what it has not waited for included."""
        if number not in self._ends:
            clocks = self.machine.clocks
            agents = np.flatnonzero(self.machine.part[clocks.cta] == number)
            self._ends[number] = clocks.ended(self.machine.launch.parts[number].first, agents)
        return self._ends[number]

    def control(self, op: ops.GridControl, threads: Numbers) -> None:
        """``griddepcontrol``."""
        machine = self.machine
        for thread in threads.tolist():
            number = int(machine.part[machine.cta[thread]])
            if op.kind == "wait":
                if self._before[number] and machine.launch.parts[number].host is None:
                    machine.mode[thread] = WAITS
                    self._waiting.append(thread)
            elif not self._triggered[thread]:
                self._triggered[thread] = True
                if op.triggers(machine.kernel.isa):
                    self._trigger(number, thread)

    def _trigger(self, number: int, thread: int) -> None:
        """Fences before ``launch_dependents`` synchronize with the start of the next grid."""
        after = next((n for n, before in enumerate(self._before) if number in before[-1:]), None)
        if after is not None and self._overlaps[after]:
            heads = self.machine.strong.fenced(thread)
            self._triggers[after] |= {head.release for head in heads if head.level >= GPU}

    def check_begun(self) -> None:
        """Raise ``Stopped`` where a grid may begin or not, as some threads of the one before let it."""
        for number, before in enumerate(self._before):
            if before and self._overlaps[number] and not self.begun[self._members[number][0]]:
                members = self._members[before[-1]]
                if (self._triggered & self.begun)[members].any():
                    message = "not all threads come to griddepcontrol.launch_dependents for which the next grid waits"
                    raise Stopped("undecided", message)

    def lacks(self, thread: int) -> str | None:
        """What a thread waits for at ``griddepcontrol.wait``."""
        if thread not in self._waiting:
            return None
        number = int(self.machine.part[self.machine.cta[thread]])
        return f"the end of grid {self._before[number][-1]}"
