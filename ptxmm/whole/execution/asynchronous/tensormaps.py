"""Tensor maps that a launch changes, and the fences of their proxy (PTX ISA 9.7.10.25, 9.7.14.4, 9.7.14.16).

The 128 bytes of a tensor map are opaque: where its fields lie is ptxmm's own (``program.shared.tensors``).
"""

from __future__ import annotations

import numpy as np

from ptxmm.formats.modules.launch import SAME_VALUE, WARP_COPY
from ptxmm.program.placement import WARP_SIZE
from ptxmm.program.shared.tensors import field_place
from ptxmm.ptx import ops
from ptxmm.ptx.ops import TENSORMAP_BYTES
from ptxmm.ptx.ops.copies import BULK_ALIGNMENT
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.matrices import check_together
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.order.trace import READ, TENSORMAP, WRITE


class Tensormaps:
    """The tensor maps of the launch of ``machine``."""

    def __init__(self, machine: Accessing) -> None:
        self.machine = machine
        self._released: list[int] = []
        self._acquired: list[tuple[int, int, int]] = []

    def replace(self, op: ops.TensormapReplace, at: int, threads: Numbers) -> None:
        """``tensormap.replace``: reads and writes all of the tensor map, by the generic proxy."""
        machine, memory = self.machine, self.machine.memory
        places = machine.places(op.address, op.space, TENSORMAP_BYTES, at, threads, BULK_ALIGNMENT)
        value = machine.operand(op.value, op.type, threads)
        first, size = field_place(op.field, op.ordinal)
        machine.trace.add(at, READ, places, TENSORMAP_BYTES, threads)
        machine.trace.add(at, WRITE, places, TENSORMAP_BYTES, threads)
        machine.overwrite(places, TENSORMAP_BYTES, at)
        for place, word, known in zip(places.tolist(), value.words.tolist(), value.known.tolist(), strict=True):
            here = slice(place, place + TENSORMAP_BYTES)
            # What is not known of it is not, whichever of its fields it is.
            whole = memory.opaque[here].all() and not memory.open[here].any() and known and word < 1 << 8 * size
            memory.lose(np.array([place]), TENSORMAP_BYTES)
            memory.opaque[here] = whole
            if whole:
                field = slice(place + first, place + first + size)
                memory.bytes[field] = np.frombuffer(int(word).to_bytes(size, "little"), np.uint8)

    def copy(self, op: ops.TensormapCopyFence, at: int, threads: Numbers) -> None:
        """``tensormap.cp_fenceproxy``: each lane of a warp copies, and executes a release fence; so they race, unless
        writes of the same value may. If one copy of the warp is assumed, all lanes meet before it and behind it."""
        machine, trace = self.machine, self.machine.trace
        check_together(machine, at, threads)
        frm = machine.places(op.src, "shared::cta", TENSORMAP_BYTES, at, threads)
        to = machine.places(op.dst, "global", TENSORMAP_BYTES, at, threads)
        for first in range(0, len(threads), WARP_SIZE):
            for places in (frm, to):
                if (places[first : first + WARP_SIZE] != places[first]).any():
                    message = "lanes of a warp that name different tensor maps (9.7.14.16)"
                    raise Stopped("undefined", message, at, int(threads[first]))
        once = WARP_COPY in machine.lenient
        warps = threads.reshape(-1, WARP_SIZE)
        copying = np.arange(0, len(threads), WARP_SIZE if once else 1)
        if once:
            self._meet(warps)
        trace.add(at, READ, frm[copying], TENSORMAP_BYTES, threads[copying])
        for number in range(len(copying)) if SAME_VALUE in machine.lenient and not once else ():
            # The lanes of a warp write the same.
            trace.same[trace.count + number] = -1 - trace.count - number // WARP_SIZE
        trace.add(at, WRITE, to[copying], TENSORMAP_BYTES, threads[copying])
        machine.overwrite(to, TENSORMAP_BYTES, at)
        machine.memory.move(to, frm, TENSORMAP_BYTES, machine.watched)
        self._released += machine.clocks.leave(threads, TENSORMAP)
        if once:
            self._meet(warps)

    def _meet(self, warps: Numbers) -> None:
        for lanes in warps:
            self.machine.clocks.synchronize(lanes)

    def fence(self, op: ops.TensormapFence, at: int, threads: Numbers) -> None:
        """``fence.proxy.tensormap::generic``: what precedes a release that precedes an acquire of the tensor map."""
        machine = self.machine
        machine.tell("proxy", (TENSORMAP, op.sem), 0, at, threads)
        if op.address is None:
            self._released += machine.clocks.leave(threads, TENSORMAP)
            return
        places = machine.places(op.address, None, TENSORMAP_BYTES, at, threads, BULK_ALIGNMENT)
        for place in np.unique(places).tolist():
            here = threads[places == place]
            self._acquired += [(place, thread, int(machine.clocks.clock[thread])) for thread in here.tolist()]
            machine.clocks.enter(here, TENSORMAP, f"{TENSORMAP}.{place}")

    def may_synchronize(self, place: int, view: int, other: int, clock: int) -> bool:
        """Whether what ``other`` did at a clock precedes a release fence, and who has ``view`` comes after an acquire
        fence for the tensor map at ``place``: these two may synchronize by themselves (9.7.14.4)."""
        clocks = self.machine.clocks
        after = [(agent, step) for where, agent, step in self._acquired if where == place]
        others, steps = np.array(after, np.int64).reshape(-1, 2).T
        known = clocks.after(np.full(len(after), view), others - others - 1, others, steps)
        views = np.unique(np.array(self._released, np.int64))
        one = np.full(len(views), other), np.full(len(views), clock)
        return bool(known.any() and clocks.after(views, one[0] - one[0] - 1, *one).any())
