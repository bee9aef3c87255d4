"""Findings of ``lint`` as text, as JSON, and as commands of GitHub's workflows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ptxmm.analysis.lint import LintResult, Report
from ptxmm.render.style import Style, clean

SCHEMA = "ptxmm-lint/1"
_COLOURS = {"error": "red", "warning": "yellow", "note": "bold"}
_WIDTH = 120


def text(reports: Iterable[Report], style: Style) -> Iterable[str]:
    """Each finding as lines: place and message, the line of the source, the caret, the mend."""
    for report in reports:
        severity = report.rule.severity
        place = style.paint(f"{clean(report.file)}:{report.line}:{report.column}:", "bold")
        kind = style.paint(f"{severity}:", _COLOURS[severity])
        yield f"{place} {kind} {report.rule.id} {clean(report.message)} [{report.rule.name}]"
        yield from _source(report, style)
        if report.hint is not None:
            yield f"  mend: {clean(report.hint)}"


def _source(report: Report, style: Style) -> Iterable[str]:
    source = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in report.source)
    column = report.column
    end = report.end_column if report.end_line == report.line else len(source) + 1
    if len(source) > _WIDTH:
        first = max(0, min(column - 1 - _WIDTH // 3, len(source) - _WIDTH))
        source, column, end = source[first : first + _WIDTH], column - first, end - first
    width = max(1, min(end, len(source) + 1) - column)
    lead = "".join("\t" if c == "\t" else " " for c in source[: column - 1])
    yield f"  {source}"
    yield f"  {lead}{style.paint('^' + '~' * (width - 1), 'green')}"


def unchecked(result: LintResult) -> Iterable[str]:
    """The statements that were not checked, for ``--verbose``."""
    for line in result.unchecked:
        yield f"{clean(result.file)}:{line}: not checked: a macro is part of the template or of an operand"


def summary(results: Sequence[LintResult], fixed: int, style: Style) -> str:
    """One line on everything."""
    found = [report for result in results for report in result.findings]
    files = f"{len(results)} file{'s' if len(results) != 1 else ''}"
    statements = sum(result.statements for result in results)
    about = f"{statements} asm statement{'s' if statements != 1 else ''} in {files}"
    mended = f"; {fixed} mended" if fixed else ""
    if not found:
        return style.paint("nothing found", "green") + f" ({about}){mended}"
    counts = Counter(report.rule.severity for report in found)
    parts = [f"{counts[s]} {s}{'s' if counts[s] != 1 else ''}" for s in ("error", "warning", "note") if counts[s]]
    fixable = sum(bool(report.edits) for report in found)
    hint = f"; --fix mends {fixable}" if fixable else ""
    painted = style.paint(", ".join(parts), _COLOURS["error" if counts["error"] else "warning"])
    return f"{painted} ({about}){mended}{hint}"


def document(results: Sequence[LintResult], errors: Sequence[dict[str, Any]] = ()) -> str:
    """The JSON document ``ptxmm-lint/1`` as text that ends in a newline."""
    files = [
        {
            "file": result.file,
            "statements": result.statements,
            "unchecked": list(result.unchecked),
            "suppressed": result.suppressed,
            "findings": [finding(report) for report in result.findings],
        }
        for result in results
    ]
    return json.dumps({"schema": SCHEMA, "files": files, "errors": list(errors)}, indent=2) + "\n"


def finding(report: Report) -> dict[str, Any]:
    """The entry of one finding. ``edits`` are offsets into the text of the file."""
    return {
        "rule": report.rule.id,
        "name": report.rule.name,
        "severity": report.rule.severity,
        "line": report.line,
        "column": report.column,
        "end_line": report.end_line,
        "end_column": report.end_column,
        "message": report.message,
        "hint": report.hint,
        "edits": [{"start": edit.start, "end": edit.end, "text": edit.text} for edit in report.edits],
    }


def github(reports: Iterable[Report]) -> Iterable[str]:
    """Each finding as an annotation of a GitHub workflow."""
    levels = {"error": "error", "warning": "warning", "note": "notice"}
    for report in reports:
        place = f"file={_escape(report.file)},line={report.line},endLine={report.end_line},col={report.column}"
        message = f"{report.rule.id} {report.message}" + (f" ({report.hint})" if report.hint else "")
        yield f"::{levels[report.rule.severity]} {place},title={report.rule.id}::{_escape(message, data=True)}"


def _escape(value: str, data: bool = False) -> str:
    value = clean(value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return value if data else value.replace(":", "%3A").replace(",", "%2C")
