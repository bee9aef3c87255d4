"""Comparisons with sequential consistency that show themselves."""

from __future__ import annotations

from ptxmm.analysis import robust as analysis
from ptxmm.api.shown import Shown, shown


class RobustResult(Shown, analysis.RobustResult, frozen=True):
    __doc__ = analysis.RobustResult.__doc__
    _KIND = "robust"

    def rows(self) -> list[dict[str, object]]:
        """A row for each final state that only the model, or only ``sc``, allows."""
        extra: list[dict[str, object]] = [{"only": self.model, "state": str(found.outcome)} for found in self.extra]
        return extra + [{"only": "sc", "state": str(outcome)} for outcome in self.missing]


robust = shown(RobustResult, analysis.robust)
