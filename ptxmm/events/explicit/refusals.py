"""What no execution of a test can be given a meaning for, seen on all paths of its threads."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.trace import Cell, Trace
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Load


def refuse_noncoherent_loads(test: Test, paths: Sequence[Sequence[Trace]]) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) where ``ld.global.nc`` reads what some path writes: that is outside
    the memory model (PTX ISA 8.1, decision A41)."""
    events = [e for mine in paths for trace in mine for e in trace.events if e.cell is not None]
    loads = [e for e in events if isinstance(e.op, Load) and e.op.nc]
    if not loads:
        return
    written: set[Cell] = {e.cell for e in events if e.kind == "W" and e.cell is not None}
    for load in loads:
        assert load.cell is not None and load.op is not None
        key, first, size = load.cell
        if any(k == key and offset < first + size and first < offset + n for k, offset, n in written):
            span = load.op.source.span
            raise PtxmmError(
                "a non-coherent load of bytes that are written is outside the memory model",
                kind="unsupported",
                line=span.line,
                column=span.column,
                width=max(1, span.end_column - span.column),
                hint="use ld without .nc, or write nothing there",
            ).place(test.file, test.text)
