"""Mends: the edits of findings, applied to the source."""

from __future__ import annotations

from collections.abc import Iterable

from ptxmm.analysis.lint.analysis import Report
from ptxmm.analysis.lint.finding import Edit


def mended(text: str, reports: Iterable[Report]) -> tuple[str, int]:
    """``text`` with the edits of ``reports``, and how many of these are mended. Edits that two findings share are made
    once; of edits that overlap, only the first."""
    made: set[Edit] = set()
    count = 0
    for report in reports:
        if not report.edits:
            continue
        new = [edit for edit in report.edits if edit not in made]
        if any(edit.start < other.end and other.start < edit.end for edit in new for other in made):
            continue
        made.update(new)
        count += 1
    for edit in sorted(made, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, count
