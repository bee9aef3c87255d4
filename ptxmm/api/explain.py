"""Explanations that show themselves."""

from __future__ import annotations

from ptxmm.analysis import explain as analysis
from ptxmm.analysis.result import Execution
from ptxmm.api.shown import Pictured, accesses, shown


class ExplainResult(Pictured, analysis.ExplainResult, frozen=True):
    __doc__ = analysis.ExplainResult.__doc__
    _KIND = "explain"

    def rows(self) -> list[dict[str, object]]:
        """A row for each step of each reason (on the first level), or for each access of the execution."""
        if self.execution is not None:
            return accesses(self.execution)
        reasons = [reason for group in self.groups for reason in group.reasons]
        return [
            {
                "reason": number,
                "axiom": reason.axiom,
                "first": edge.first.label,
                "relation": edge.relation,
                "second": edge.second.label,
                "text": edge.text,
                "section": edge.section,
            }
            for number, reason in enumerate(reasons, 1)
            for edge in reason.chain
        ]

    def _executions(self) -> list[Execution | None]:
        return [self.execution, *(reason.execution for group in self.groups for reason in group.reasons)]


explain = shown(ExplainResult, analysis.explain)
