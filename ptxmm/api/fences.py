"""Judgements of fences that show themselves."""

from __future__ import annotations

from ptxmm.analysis import fences as analysis
from ptxmm.analysis.result import Execution
from ptxmm.api.shown import Pictured, shown


class FencesResult(Pictured, analysis.FencesResult, frozen=True):
    __doc__ = analysis.FencesResult.__doc__
    _KIND = "fences"

    def rows(self) -> list[dict[str, object]]:
        """A row for each instruction that orders."""
        return [
            {
                "thread": item.thread,
                "line": item.line,
                "instruction": item.text,
                "verdict": item.verdict,
                "weaker": ", ".join(item.weaker),
                "without": None if item.without is None else str(item.without),
            }
            for item in self.items
        ]

    def _executions(self) -> list[Execution | None]:
        return [] if self.bad is None else [self.bad.execution]


fences = shown(FencesResult, analysis.fences)
