"""Comparisons that show themselves."""

from __future__ import annotations

from ptxmm.analysis import compare as analysis
from ptxmm.api.shown import Shown, shown


class CompareResult(Shown, analysis.CompareResult, frozen=True):
    __doc__ = analysis.CompareResult.__doc__
    _KIND = "compare"

    def rows(self) -> list[dict[str, object]]:
        """A row for each final state that only one side has."""
        return [
            {"only": side.name, "state": str(found.outcome), "axioms": ", ".join(found.axioms)}
            for side in (self.first, self.second)
            for found in side.only
        ]


compare = shown(CompareResult, analysis.compare)
compare_versions = shown(CompareResult, analysis.compare_versions)
