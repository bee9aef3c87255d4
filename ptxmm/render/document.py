"""The JSON document ``ptxmm/1``: results and errors in one list, in the order of the input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ptxmm.analysis.result import Expired, Failure, Outcome, Report, Result, Unknown, Value
from ptxmm.render import Entry, Page, Renderer

SCHEMA = "ptxmm/1"


def results(entries: Iterable[Entry[Result]], page: Page) -> Iterator[str]:
    """The verdicts and errors."""
    yield document([entry.report for entry in entries])


def document(reports: Iterable[Report]) -> str:
    """The document of verdicts and errors."""
    return whole([failure(r) if isinstance(r, Failure) else result(r) for r in reports])


def listed(analysis: str, document: Callable[[Any], dict[str, Any]]) -> Renderer:
    """The renderer of the results of an analysis, of each of which ``document`` gives the part that is its own."""

    def entries(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
        found = []
        for report in (entry.report for entry in entries):
            if isinstance(report, Failure):
                found.append(failure(report))
            else:
                own = {} if isinstance(report, Expired) else document(report)
                found.append({"analysis": analysis, **_common(report), **own})
        yield whole(found)

    return entries


def _common(report: Any) -> dict[str, Any]:
    return {
        "file": report.file,
        "test": report.test,
        "model": report.model,
        "status": report.status,
        "notes": [{"kind": note.kind, "text": note.text} for note in report.notes],
        "seconds": round(report.seconds, 6),
    }


def whole(entries: list[dict[str, Any]]) -> str:
    """The document of these entries."""
    return json.dumps({"schema": SCHEMA, "results": entries}, indent=2)


def result(report: Result) -> dict[str, Any]:
    """The entry of one test under one model."""
    entry: dict[str, Any] = {
        "file": report.file,
        "test": report.test,
        "model": report.model,
        "engine": report.engine,
        "condition": None if report.quantifier is None else {"kind": report.quantifier, "text": report.condition},
        "holds": report.holds,
        "observation": report.observation,
        "status": report.status,
        "flags": list(report.flags),
        "expected": report.expected,
        "conclusion": report.conclusion,
        "outcomes": [outcome(found) for found in report.outcomes],
        "notes": [{"kind": note.kind, "text": note.text} for note in report.notes],
        "seconds": round(report.seconds, 6),
    }
    if not report.listed:
        entry["outcomes_complete"] = False
    if report.execution is not None:
        from ptxmm.render.execution import execution_document

        entry["execution"] = execution_document(report.execution)
    return entry


def outcome(found: Outcome) -> dict[str, Any]:
    """A final state."""
    return {"registers": values(found.registers), "memory": values(found.memory), "satisfies": found.satisfies}


def values(found: Mapping[str, Value]) -> dict[str, Any]:
    """The values of registers or memory by name."""
    return {name: {"unknown": v.name} if isinstance(v, Unknown) else v for name, v in found.items()}


def failure(report: Failure) -> dict[str, Any]:
    """The entry of what gave no result; ``test`` and ``model`` are present where the file could be read."""
    entry: dict[str, Any] = {"file": report.file}
    if report.test is not None:
        entry["test"] = report.test
    if report.model is not None:
        entry["model"] = report.model
    entry["error"] = _error(report)
    if report.more:
        entry["errors"] = [_error(item) for item in (report, *report.more)]
    return entry


def _error(report: Failure) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "message": report.message,
        "line": report.line,
        "column": report.column,
        "hint": report.hint,
    }
