"""Findings of ``lint`` as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ptxmm.analysis.lint import LintResult, Report
from ptxmm.analysis.result import Failure
from ptxmm.render import Entry, Page
from ptxmm.render.style import Style, clean
from ptxmm.words import number_of

_COLOURS = {"error": "red", "warning": "yellow", "note": "bold"}
_WIDTH = 120


def text(entries: Iterable[Entry[LintResult]], page: Page) -> Iterator[str]:
    """Each finding, with ``verbose`` what was not checked, and a summary."""
    results = [entry.report for entry in entries if not isinstance(entry.report, Failure)]
    for result in results:
        for report in result.findings:
            yield from _finding(report, page.style)
    for result in results if page.verbose else ():
        for line in result.unchecked:
            yield f"{clean(result.file)}:{line}: not checked: a macro is part of the template or of an operand"
    yield _summary(results, page)


def _finding(report: Report, style: Style) -> Iterator[str]:
    """Place and message, the line of the source, the caret, the mend."""
    severity = report.rule.severity
    place = style.paint(f"{clean(report.file)}:{report.line}:{report.column}:", "bold")
    kind = style.paint(f"{severity}:", _COLOURS[severity])
    yield f"{place} {kind} {report.rule.id} {clean(report.message)} [{report.rule.name}]"
    yield from _source(report, style)
    if report.hint is not None:
        yield f"  mend: {clean(report.hint)}"


def _source(report: Report, style: Style) -> Iterator[str]:
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


def _summary(results: Sequence[LintResult], page: Page) -> str:
    """One line on everything."""
    found = [report for result in results for report in result.findings]
    statements = sum(result.statements for result in results)
    about = f"{number_of(statements, 'asm statement')} in {number_of(len(results), 'file')}"
    mended = f"; {page.fixed} mended" if page.fixed else ""
    if not found:
        return page.style.paint("nothing found", "green") + f" ({about}){mended}"
    counts = Counter(report.rule.severity for report in found)
    parts = [number_of(counts[s], s) for s in ("error", "warning", "note") if counts[s]]
    fixable = sum(bool(report.edits) for report in found)
    hint = f"; --fix mends {fixable}" if fixable else ""
    painted = page.style.paint(", ".join(parts), _COLOURS["error" if counts["error"] else "warning"])
    return f"{painted} ({about}){mended}{hint}"
