"""Findings of ``lint`` that show themselves."""

from __future__ import annotations

from ptxmm.analysis import lint as analysis
from ptxmm.api.shown import Shown, shown


class LintResult(Shown, analysis.LintResult, frozen=True):
    __doc__ = analysis.LintResult.__doc__
    _KIND = "lint"

    def rows(self) -> list[dict[str, object]]:
        """A row for each finding."""
        return [
            {
                "file": found.file,
                "line": found.line,
                "column": found.column,
                "rule": found.rule.id,
                "severity": found.rule.severity,
                "message": found.message,
            }
            for found in self.findings
        ]


lint = shown(LintResult, analysis.lint)
