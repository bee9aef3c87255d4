"""Verdicts that show themselves."""

from __future__ import annotations

from ptxmm.analysis import outcomes, result
from ptxmm.api.shown import Pictured, shown
from ptxmm.render.notebook import preformatted, table
from ptxmm.render.style import Style
from ptxmm.render.text import table as lines_of


class Result(Pictured, result.Result, frozen=True):
    __doc__ = result.Result.__doc__
    _KIND = "outcomes"

    def rows(self) -> list[dict[str, object]]:
        """A row for each final state."""
        return [{**_plain(o.registers), **_plain(o.memory), "satisfies": o.satisfies} for o in self.outcomes]

    def _repr_html_(self) -> str:
        lines = lines_of(self, Style(True))
        rest = preformatted("\n".join(lines[_HEAD + len(self.outcomes) :]))
        states = [{**o.registers, **o.memory} for o in self.outcomes]
        marked = [bool(o.satisfies) for o in self.outcomes]
        found = table(states, marked) if any(states) else ""
        return preformatted("\n".join(lines[:_HEAD])) + found + rest + (self._repr_svg_() or "")

    def _executions(self) -> list[result.Execution | None]:
        return [self.execution, *(outcome.execution for outcome in self.outcomes)]


_HEAD = 3
"""So many lines stand above the final states."""


def _plain(values: object) -> dict[str, object]:
    assert isinstance(values, dict)
    return {name: str(value) if isinstance(value, result.Unknown) else value for name, value in values.items()}


check = shown(Result, outcomes.check)
