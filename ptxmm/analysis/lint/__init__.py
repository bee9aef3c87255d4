"""Checks of the inline PTX in CUDA sources: rules, each with an id and a page in ``docs/lint``."""

from __future__ import annotations

from ptxmm.analysis.lint.analysis import RULES, LintResult, Options, Report, lint, lint_text
from ptxmm.analysis.lint.finding import Edit, Finding, Rule

__all__ = ["RULES", "Edit", "Finding", "LintResult", "Options", "Report", "Rule", "lint", "lint_text"]
