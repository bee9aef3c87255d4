"""What the symbolic engine refuses, with a clear error instead of a wrong answer (decision A41)."""

from __future__ import annotations

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.machine import Machine
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op


def refuse_written(machine: Machine) -> None:
    """Raise ``PtxmmError`` for a non-coherent load of what may be written: it is outside of the model (A41)."""
    loads = [e for e in machine.events if e.kind == "R" and getattr(e.op, "nc", False)]
    for load in loads:
        for write in machine.events:
            if write.kind == "W" and any(
                p.physical == q.physical and p.offset < q.offset + q.size and q.offset < p.offset + p.size
                for p in load.places
                for q in write.places
            ):
                message = "a non-coherent load of a variable that is written is outside the memory model"
                raise _error(machine.test, load.op, message, "use ld without .nc, or write nothing to the variable")


def _error(test: Test, op: Op, message: str, hint: str | None = None) -> PtxmmError:
    span = op.source.span
    return PtxmmError(
        message,
        kind="unsupported",
        line=span.line,
        column=span.column,
        width=max(1, span.end_column - span.column),
        hint=hint,
    ).place(test.file, test.text)
