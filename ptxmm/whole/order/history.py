"""What the threads of an execution did to synchronize, in the order of the execution: for whoever explains or draws it.

Nothing is decided by it, and it is kept only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct

from ptxmm.whole.arrays import Numbers
from ptxmm.whole.order.clocks import Clocks
from ptxmm.whole.order.trace import Trace

Kind: TypeAlias = Literal[
    "arrive", "wait", "pass", "complete", "copy", "commit", "write", "read", "fence", "proxy", "end"
]
"""``arrive`` at a phase, begin to ``wait`` for one, ``pass`` as it is complete; ``complete``: all that a phase needs
has come; ``copy``: issue an asynchronous operation; ``commit`` a group; ``write`` or ``read`` a location that strong
accesses access; a memory ``fence`` or a ``proxy`` fence; ``end``: of a thread."""


class Event(Struct, frozen=True):
    """Something that ``agents`` do at the instruction ``at``, each at its clock and with its view. ``what``: the
    barrier, mbarrier, kind of group or location that it is about; ``number``: the phase, or the group. ``moment``: so
    many rows the trace had; ``step``: so many instructions were executed."""

    kind: Kind
    what: Hashable
    number: int
    at: int
    agents: Numbers
    clocks: Numbers
    views: Numbers
    moment: int
    step: int


class History:
    """The ``events`` of an execution, whose steps have the numbers 1, 2, ..."""

    def __init__(self, clocks: Clocks, trace: Trace) -> None:
        self._clocks, self._trace = clocks, trace
        self.events: list[Event] = []
        self.starts: list[int] = []
        """For each step how many rows the trace had before it."""

    def begin(self) -> None:
        """A step begins."""
        self.starts.append(self._trace.count)

    def add(self, kind: Kind, what: Hashable, number: int, at: int, agents: Numbers) -> None:
        """Something that ``agents`` do now."""
        agents = np.array(agents, np.int64)
        clocks, views = self._clocks.clock[agents].astype(np.int64), self._clocks.views(agents)
        self.events.append(Event(kind, what, number, at, agents, clocks, views, self._trace.count, len(self.starts)))
