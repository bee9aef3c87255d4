"""What else a read may find that nothing orders behind a write: what is there before, in an execution in which the
write comes as late as it can.

Such an execution is an interleaving like any other, so that its end refutes what is claimed of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.execution.state import Did, Moment
from ptxmm.whole.order.origins import Key
from ptxmm.whole.order.strong import INITIAL
from ptxmm.whole.order.trace import READ

_MOST = 8
"""So many writes are tried."""


class Late(Struct, frozen=True):
    """When a thread comes to a write that is to come late, and the ``read`` that has found it."""

    write: Moment
    read: Did


def late(machine: Machine, keys: Iterable[Key]) -> Iterator[Late]:
    """The writes that some reads of an execution have found, each once."""
    columns, strong = machine.trace.columns(), machine.strong
    reads, tried = {read.key: read for read in strong.reads}, set[Moment]()
    for read in (reads[key] for key in keys if key in reads):
        log = strong.logs.get(read.location)
        write = None if log is None else log.writes[read.seen - 1]
        if write is None or write.thread in (INITIAL, read.thread):
            continue
        there = (columns["agent"] == write.thread) & (columns["clock"] == write.clock)
        rows = np.flatnonzero(there & (columns["place"] == read.location[0]) & (columns["kind"] != READ))
        if not rows.size or len(tried) == _MOST:
            continue
        moment = Moment(write.thread, int(columns["instruction"][rows[-1]]), write.clock)
        if moment not in tried:
            tried.add(moment)
            yield Late(moment, (read.at, read.thread))
