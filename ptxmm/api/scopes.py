"""Placements and scopes that show themselves."""

from __future__ import annotations

from ptxmm.analysis import scopes as analysis
from ptxmm.api.shown import Shown, shown


class ScopesResult(Shown, analysis.ScopesResult, frozen=True):
    __doc__ = analysis.ScopesResult.__doc__
    _KIND = "scopes"

    def rows(self) -> list[dict[str, object]]:
        """A row for each placement."""
        return [
            {"placement": row.placement, "holds": row.holds, "status": row.status, "impossible": row.impossible}
            for row in self.placements
        ]


scopes = shown(ScopesResult, analysis.scopes)
