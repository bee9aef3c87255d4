"""Data races that show themselves."""

from __future__ import annotations

from ptxmm.analysis import races as analysis
from ptxmm.analysis.result import Execution
from ptxmm.api.shown import Pictured, shown


class RacesResult(Pictured, analysis.RacesResult, frozen=True):
    __doc__ = analysis.RacesResult.__doc__
    _KIND = "races"

    def rows(self) -> list[dict[str, object]]:
        """A row for each race."""
        return [
            {
                "first": str(race.first),
                "first_access": race.kinds[0],
                "first_location": race.locations[0],
                "second": str(race.second),
                "second_access": race.kinds[1],
                "second_location": race.locations[1],
                "mixed": race.mixed,
            }
            for race in self.races
        ]

    def _executions(self) -> list[Execution]:
        return [race.execution for race in self.races]


races = shown(RacesResult, analysis.races)
