"""What depends on what a read found that is in no loop: what a thread does on one side of a branch that it decides, up
to where both sides come together (PTX ISA 8.10.4). There the thread comes after what the read acquired; behind that it
does not, for the read may find what only follows from what the thread does there. If the thread has waited on the way
for what others do, at a barrier or in a loop, all that follows depends on the branch.
"""

from __future__ import annotations

from msgspec import Struct

from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.state import State
from ptxmm.whole.order.origins import Key, deciding
from ptxmm.whole.order.strong import Held, Strong

_NOWHERE = -1


class _Region(Struct):
    """The part of the text up to ``join`` that depends on late reads, by their ``keys``; how the thread is without what
    these acquire: None if all that follows depends on them."""

    join: int
    keys: frozenset[Key]
    held: Held | None


class Regions:
    """Those in which the threads of ``state`` are; ``left``: whether some thread has come to the end of one, so that
    what comes before an access of it need not come before a later one."""

    def __init__(self, state: State, strong: Strong) -> None:
        self.state, self._strong = state, strong
        self._entered: dict[int, list[_Region]] = {}
        self.left = False

    def enter(self, at: int, register: str, threads: Numbers) -> None:
        """Threads decide a branch by a register."""
        origins = self.state.origins.get(register)
        if not origins or self._strong.plan.late is None:
            return
        known = self.state.register(register, threads).known
        for thread in threads[~known].tolist():
            if keys := deciding(origins[thread], thread):
                held = self._strong.trust(thread, keys)
                self._entered.setdefault(thread, []).append(_Region(self.state.launch.joins[at], keys, held))

    def leave(self, at: int, threads: Numbers) -> None:
        """Threads come to an instruction."""
        for thread in [t for t in self._entered if t in set(threads.tolist())]:
            inside = self._entered[thread]
            while inside and inside[-1].join == at:
                region = inside.pop()
                if region.held is None:
                    inside.insert(0, _Region(_NOWHERE, region.keys, None))
                self.left |= region.held is not None
                keys = frozenset[Key]().union(*(other.keys for other in inside))
                self._strong.distrust(thread, region.held, keys)
            if not inside:
                del self._entered[thread]

    def inside(self, threads: Numbers) -> bool:
        """Whether one of some threads is in a region that it leaves."""
        return any(region.held is not None for t in threads.tolist() for region in self._entered.get(t, ()))

    def seal(self, threads: Numbers) -> None:
        """Threads wait for what others do."""
        for thread in threads.tolist():
            for region in self._entered.get(thread, ()):
                region.held = None
