"""Findings of ``lint``, and verdicts, as a SARIF 2.1.0 log (OASIS Static Analysis Results Interchange Format)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import ptxmm
from ptxmm.analysis.lint import RULES, Edit, LintResult, Report
from ptxmm.analysis.result import Failure, Result
from ptxmm.analysis.words import Conclusion
from ptxmm.cuda.source import Source, source
from ptxmm.render import Entry, Page
from ptxmm.render.github import line_of, refuted, told
from ptxmm.whole.result import WholeResult

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def log(entries: Iterable[Entry[LintResult]], page: Page) -> Iterator[str]:
    """The log of one run."""
    reports = [entry.report for entry in entries]
    results = [report for report in reports if not isinstance(report, Failure)]
    errors = [report for report in reports if isinstance(report, Failure)]
    index = {rule.id: number for number, rule in enumerate(RULES)}
    rules = [
        {
            "id": rule.id,
            "name": "".join(part.capitalize() for part in rule.name.split("-")),
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": f"{rule.summary} ({rule.section})"},
            "help": {"text": f"See docs/lint/{rule.id}.md of ptxmm."},
            "defaultConfiguration": {"level": rule.severity, "enabled": rule.default},
        }
        for rule in RULES
    ]
    found: list[dict[str, Any]] = []
    for result in results:
        file = source(result.file, page.texts.get(result.file, ""))
        found += [_result(report, index[report.rule.id], file) for report in result.findings]
    yield _document(rules, [result.file for result in results], found, errors)


def _document(
    rules: list[dict[str, Any]], files: Iterable[str], found: list[dict[str, Any]], errors: Sequence[Failure]
) -> str:
    """The log of one run."""
    driver = {"name": "ptxmm", "version": ptxmm.__version__, "semanticVersion": ptxmm.__version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(file)}} for file in files],
        "invocations": [
            {
                "executionSuccessful": not errors,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": f"{failure.file}: {failure.error.message}"}}
                    for failure in errors
                ],
            }
        ],
        "results": found,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def verdicts(entries: Iterable[Entry[Result]], page: Page) -> Iterator[str]:
    """The log of ``check``: what is contradicted, and what is not known; others are no results."""

    def found(report: Result) -> Iterator[Found]:
        if report.conclusion in _LEVELS:
            yield report.conclusion, line_of(report), refuted(report)

    yield _verdicts(entries, found)


def launches(entries: Iterable[Entry[WholeResult]], page: Page) -> Iterator[str]:
    """The log of ``check --whole``: what is wrong with launches, and what is not known."""
    yield _verdicts(entries, told)


Found = tuple[Conclusion, int | None, str]
"""What is wrong, or not known: the line, if there is one, and words."""


def _verdicts(entries: Iterable[Entry[Any]], told: Callable[[Any], Iterable[Found]]) -> str:
    reports = [entry.report for entry in entries]
    results = [report for report in reports if not isinstance(report, Failure)]
    errors = [report for report in reports if isinstance(report, Failure)]
    found = [_verdict(report, *item) for report in results for item in told(report)]
    rules = [{"id": str(word), "shortDescription": {"text": _LEVELS[word][1]}} for word in _LEVELS]
    return _document(rules, dict.fromkeys(result.file for result in results), found, errors)


_LEVELS = {
    Conclusion.contradicted: ("error", "A verdict that is not the expected one."),
    Conclusion.inconclusive: ("warning", "What was expected is not known to hold."),
}


def _verdict(report: Result | WholeResult, word: Conclusion, line: int | None, text: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(report.file)}}
    if line is not None:
        place["region"] = {"startLine": line}
    entry = {
        "ruleId": str(word),
        "ruleIndex": list(_LEVELS).index(word),
        "level": _LEVELS[word][0],
        "message": {"text": f"{report.test} under {report.model}: {text}"},
        "locations": [{"physicalLocation": place}],
    }
    choice = report.choice if isinstance(report, WholeResult) else None
    return entry if choice is None else {**entry, "properties": {"choice": choice.kind}}


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))  # a name need not be text


def _result(report: Report, index: int, file: Source) -> dict[str, Any]:
    message = report.message + (f" Mend: {report.hint}" if report.hint else "")
    entry: dict[str, Any] = {
        "ruleId": report.rule.id,
        "ruleIndex": index,
        "level": report.rule.severity,
        "message": {"text": message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(report.file)},
                    "region": {
                        "startLine": report.line,
                        "startColumn": report.column,
                        "endLine": report.end_line,
                        "endColumn": report.end_column,
                        "snippet": {"text": report.source},
                    },
                }
            }
        ],
    }
    if report.edits and file.text:
        changes = {
            "artifactLocation": {"uri": _uri(report.file)},
            "replacements": [_replacement(edit, file) for edit in report.edits],
        }
        entry["fixes"] = [{"description": {"text": report.hint or "mend"}, "artifactChanges": [changes]}]
    return entry


def _replacement(edit: Edit, file: Source) -> dict[str, Any]:
    line, column = file.place(edit.start)
    end_line, end_column = file.place(edit.end)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}
