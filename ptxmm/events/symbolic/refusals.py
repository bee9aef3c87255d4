"""What no execution of a test can be given a meaning for, seen in all events that it may have."""

from __future__ import annotations

from ptxmm.events.symbolic.event import Place
from ptxmm.events.symbolic.machine import Machine
from ptxmm.program.shared.refusals import NONCOHERENT, refused


def refuse_noncoherent_loads(machine: Machine) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) for a non-coherent load of what may be written."""
    loads = [e for e in machine.events if e.kind == "R" and getattr(e.op, "nc", False)]
    written = [p for e in machine.events if loads and e.kind == "W" for p in e.places]
    beyond = [e for e in loads if any(_overlap(p, q) for p in e.places for q in written)]
    if beyond:
        raise refused(NONCOHERENT, machine.test, min(beyond, key=lambda e: e.id.site).op)


def _overlap(p: Place, q: Place) -> bool:
    return p.physical == q.physical and p.offset < q.offset + q.size and q.offset < p.offset + p.size
