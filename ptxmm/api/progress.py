"""Executions that never end and show themselves."""

from __future__ import annotations

from ptxmm.analysis import progress as analysis
from ptxmm.api.shown import Shown, shown


class ProgressResult(Shown, analysis.ProgressResult, frozen=True):
    __doc__ = analysis.ProgressResult.__doc__
    _KIND = "progress"

    def rows(self) -> list[dict[str, object]]:
        """A row for each thread of the execution that never ends."""
        return [
            {"thread": found.thread, "state": found.state, "at": None if found.at is None else str(found.at)}
            for found in self.threads
        ]


progress = shown(ProgressResult, analysis.progress)
