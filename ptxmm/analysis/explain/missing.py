"""What an execution that should not be lacks, as remarks on it."""

from __future__ import annotations

from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.expected import expected
from ptxmm.analysis.result import Note
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.test import Test


def missing(test: Test, rebuilt: Rebuilt) -> list[Note]:
    """The edges that are no orders in the execution ``rebuilt``, and would forbid it (kind ``missing``)."""
    found = expected(Views(test, rebuilt))
    notes = []
    for gap in () if found is None else found.gaps:
        fails = "; ".join(f"{fail.name} ({fail.section}): {fail.text}" for fail in gap.fails)
        text = f"missing between {gap.first} and {gap.second}: {gap.text} ({gap.section}); {fails}"
        notes.append(Note("missing", text))
    return notes
