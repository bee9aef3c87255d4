"""Results as text: a line a verdict, a summary, and a herd-like table of final states."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ptxmm.analysis.claims import CLAIMS
from ptxmm.analysis.result import Analysed, Expired, Failure, FinalState, Outcome, Report, Result, Value
from ptxmm.analysis.words import Conclusion
from ptxmm.render import Entry, Page, Renderer
from ptxmm.render.style import Style, clean

_COLOURS = {
    Conclusion.expected: "green",
    Conclusion.contradicted: "red",
    Conclusion.inconclusive: "yellow",
    Conclusion.unchecked: "plain",
}

_PHRASES = {Conclusion.expected: "as expected", Conclusion.unchecked: "without an expectation"}

R = TypeVar("R")


def separated(text: Callable[[R, Style], Iterable[str]]) -> Renderer:
    """The renderer that writes what ``text`` makes of each result, an empty line between two."""

    def pages(entries: Iterable[Entry[R | Expired]], page: Page) -> Iterator[str]:
        first = True
        for entry in entries:
            report = entry.report
            if isinstance(report, Failure):
                continue
            if not first:
                yield ""
            first = False
            lines = [*head(report), *tail(report)] if isinstance(report, Expired) else text(report, page.style)
            for line in lines:
                yield from page.style.fit(line)

    return pages


def verdicts(entries: Iterable[Entry[Result]], page: Page) -> Iterator[str]:
    """A line for each verdict with the remarks on it, and a summary of several."""
    reports: list[Report] = []
    before: tuple[str, str] | None = None
    told: set[str] = set()
    for entry in entries:
        report = entry.report
        reports.append(report)
        yield verdict_line(report, page.style, page.width, entry.several)
        if isinstance(report, Failure):
            before = None
            continue
        if (report.file, report.test) != before:
            told.clear()
        before = report.file, report.test
        whole = report.conclusion != "expected" or report.status != "complete" or page.verbose
        if whole or not told:
            for line in note_lines(report, told) if whole else remark_lines(report):
                yield from page.style.fit(line)
        told |= {note.text for note in report.notes if whole or note.kind == "kernel"}
    if len(reports) > 1:
        yield summary(reports, time.perf_counter() - page.start, page.style)


def verdict_line(report: Report, style: Style, width: int, show_test: bool) -> str:
    """One verdict: mark, file (padded to ``width``), model, observation, quantified statement, what went wrong.

    ``show_test``: the file holds several tests, so the line names this one.
    """
    if isinstance(report, Failure):
        mark = style.paint("error", "red")
        place = f"{clean(report.file):{width}}"
        what = " ".join(clean(part) for part in (report.model, report.test if show_test else None) if part)
        return f"{mark} {place}  {what}".rstrip()
    colour = _COLOURS[report.conclusion]
    parts = [f"{clean(report.file):{width}}", f"{report.model:8}", f"{observed(report):9}"]
    if report.quantifier is not None:
        parts.append(f"{report.quantifier}: {answer(report.holds)}")
    if show_test or "assuming" in report.test:  # nothing holds without what it assumes
        parts.append(f"[{clean(report.test)}]")
    if report.status != "complete":
        parts.append(report.status)
    parts.extend(report.flags)
    if report.conclusion in ("contradicted", "inconclusive") and report.expected is not None:
        parts.append(style.paint(f"expected {report.expected}", colour))
    return style.paint(f"{report.conclusion.mark:5}", colour) + " " + "  ".join(parts).rstrip()


def note_lines(report: Result, told: Collection[str] = ()) -> list[str]:
    """The remarks on a result and the execution that refutes it, indented to stand below its line; but for those that
    have been ``told``."""
    lines = [f"      {clean(note.text)}" for note in report.notes if note.text not in told]
    if report.execution is not None:
        from ptxmm.render.execution import execution_lines

        lines += ["      in this execution:", *execution_lines(report.execution, "        ")]
    return lines


def remark_lines(report: Result) -> list[str]:
    """What a verdict on a kernel rests on, indented to stand below its line."""
    return [f"      {clean(note.text)}" for note in report.notes if note.kind == "kernel"]


def summary(reports: Sequence[Report], seconds: float, style: Style) -> str:
    """How many verdicts there are of each kind."""
    kinds = Counter("failed" if isinstance(r, Failure) else r.conclusion for r in reports)
    words = [(str(word), _PHRASES.get(word, word), colour) for word, colour in _COLOURS.items()]
    words.append(("failed", "error" if kinds["failed"] == 1 else "errors", "red"))
    parts = [style.paint(f"{kinds[kind]} {text}", colour) for kind, text, colour in words if kinds[kind]]
    return f"{len(reports)} checked in {seconds:.1f} s: {', '.join(parts) or 'nothing to do'}"


def table(report: Result, style: Style) -> list[str]:
    """The final states of one test under one model, those that satisfy the condition marked with ``*``."""
    name = clean(report.test)
    lines = [f"Test {name}", f"Model {report.model}", f"States {len(report.outcomes)}{'' if report.listed else '+'}"]
    cells = [_cells(o) for o in report.outcomes]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))] if cells else []
    for row, item in zip(cells, report.outcomes, strict=True):
        text = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        line = f"{'*' if item.satisfies else ' '} {text}".rstrip()
        lines.append(style.paint(line, "bold") if item.satisfies else line)
    if report.quantifier is not None:
        positive = sum(1 for o in report.outcomes if o.satisfies)
        lines.append(f"Observation {name} {observed(report).capitalize()} {positive} {len(report.outcomes) - positive}")
    return [*lines, *decided(report, style), f"Time {name} {report.seconds:.2f}"]


def decided(report: Result, style: Style) -> list[str]:
    """The statement and the expectation, how far the search got, remarks."""
    lines = []
    if report.quantifier is not None:
        lines.append(f"Condition {report.quantifier} ({clean(report.condition or '')}): {answer(report.holds)}")
    lines.append(f"Status {report.status}")
    if report.flags:
        lines.append(f"Flags {' '.join(report.flags)}")
    if report.expected is not None:
        word = _PHRASES.get(report.conclusion, report.conclusion)
        lines.append(f"Expected {report.expected}: {style.paint(word, _COLOURS[report.conclusion])}")
    return lines + [f"Note {clean(note.text)}" for note in report.notes]


tables = separated(table)


def head(report: Analysed) -> list[str]:
    """The first lines of the text of an analysis: which test, which model."""
    return [f"Test {clean(report.test)}", f"Model {clean(report.model)}"]


def tail(report: Analysed) -> list[str]:
    """The last lines of the text of an analysis: how far it got, remarks, time."""
    notes = [f"Note {clean(note.text)}" for note in report.notes]
    return [f"Status {report.status}", *notes, f"Time {clean(report.test)} {report.seconds:.2f}"]


def outcome_line(item: Outcome | FinalState) -> str:
    """A final state on one line."""
    return "  ".join(_cells(item))


def _cells(item: Outcome | FinalState) -> list[str]:
    pairs: list[Mapping[str, Value]] = [item.registers, item.memory]
    return [f"{clean(name)}={value}" for part in pairs for name, value in part.items()]


def observed(report: Result) -> str:
    """What is observed, or whether what is claimed of a kernel holds."""
    if report.quantifier in CLAIMS:
        return "unknown" if report.holds is None else "holds" if report.holds else "fails"
    if report.observation is not None:
        return report.observation
    if report.status == "undefined":
        return "undefined"
    if {"vacuous", "deadlock"} & set(report.flags) and not report.outcomes:
        return "none"
    return "unknown" if report.quantifier is not None else "listed"


def answer(holds: bool | None) -> str:
    """Whether a statement holds, in a word."""
    return {True: "yes", False: "no", None: "unknown"}[holds]
