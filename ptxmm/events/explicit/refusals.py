"""What no execution of a test can be given a meaning for, seen on all paths of its threads."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.events.explicit.trace import Cell, Trace
from ptxmm.program.shared.refusals import NONCOHERENT, refused
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Load


def refuse_noncoherent_loads(test: Test, paths: Sequence[Sequence[Trace]]) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) where ``ld.global.nc`` reads what some path writes."""
    events = [e for mine in paths for trace in mine for e in trace.events if e.cell is not None]
    loads = [e for e in events if isinstance(e.op, Load) and e.op.nc]
    if not loads:
        return
    written: set[Cell] = {e.cell for e in events if e.kind == "W" and e.cell is not None}
    beyond = [e for e in loads if e.cell is not None and any(_overlap(e.cell, cell) for cell in written)]
    if beyond:
        first = min(beyond, key=lambda e: e.id.site).op
        assert first is not None
        raise refused(NONCOHERENT, test, first)


def _overlap(a: Cell, b: Cell) -> bool:
    return a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]
