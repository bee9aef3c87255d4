"""Results as annotations of a GitHub workflow, each at a file and, where there is one, a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any

from ptxmm.analysis.claims import CLAIMS
from ptxmm.analysis.fences import FencesResult
from ptxmm.analysis.lint import LintResult
from ptxmm.analysis.progress import ProgressResult
from ptxmm.analysis.races import RacesResult
from ptxmm.analysis.result import Expired, Failure, Result
from ptxmm.analysis.robust import RobustResult
from ptxmm.analysis.words import Conclusion
from ptxmm.render import Entry, Page, Renderer
from ptxmm.render.style import clean
from ptxmm.render.text import answer, observed
from ptxmm.render.whole import WORDS
from ptxmm.whole.result import WholeResult

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}

Places = Callable[[Any], Iterable[tuple[int | None, str]]]
"""What was found in a result: a line of the file or None, and words."""


def launches(entries: Iterable[Entry[WholeResult]], page: Page) -> Iterator[str]:
    """What is wrong with whole launches, or with what is claimed of them, and what is not known."""
    for entry in entries:
        report = entry.report
        if isinstance(report, Failure):
            yield from _failed(report)
            continue
        for word, line, words in told(report):
            level = "error" if word.finding else "warning"
            yield _line(level, report.file, line, f"{report.test} under {report.model}", words)


def _annotated(places: Places) -> Renderer:
    """An error for each place of what was found and for what could not be read, a warning for what is not known."""

    def annotations(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
        for entry in entries:
            report = entry.report
            if isinstance(report, Failure):
                yield from _failed(report)
                continue
            title = f"{report.test} under {report.model}"
            found = () if isinstance(report, Expired) else places(report)
            yield from (_line("error", report.file, line, title, words) for line, words in found)
            if report.finding is None:
                yield _line("warning", report.file, None, title, f"not known ({report.status})")

    return annotations


def _failed(report: Failure) -> Iterator[str]:
    for error in report.errors or (report.error,):
        yield _line("error", report.file, error.line, error.kind, error.message)


def _verdict(report: Result) -> Iterator[tuple[int | None, str]]:
    if report.finding:
        yield line_of(report), refuted(report)


def refuted(report: Result) -> str:
    """What is known of a verdict that is not as expected; of what is claimed of a kernel, why."""
    words = f"{observed(report)}, expected {report.expected}"
    if report.quantifier in CLAIMS:
        words = f"{report.quantifier}: {answer(report.holds)}"
    return ": ".join([words, *[note.text for note in report.notes if note.kind in _REFUTING][:1]])


_REFUTING = ("race", "missing", "undefined", "deadlock", "value")
"""The kinds of notes that say why something does not hold."""
_PLACE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?: line |:)(\d+)\b")


def line_of(report: Result) -> int | None:
    """The first line that is named by what refutes a claim, if there is one. Of a kernel, host threads may stand in
    another file, that of the launch."""
    kernel = PurePath(report.file).suffix.lower() in (".ptx", ".cu")
    texts = (note.text for note in report.notes if note.kind in _REFUTING)
    places = (match.groups() for text in texts for match in _PLACE.finditer(text))
    return next((int(line) for name, line in places if not kernel or re.fullmatch(r"P\d+", name)), None)


def told(result: WholeResult) -> Iterator[tuple[Conclusion, int | None, str]]:
    """What is wrong with a launch and what is not known, each at a line of the file if there is one."""
    if result.holds is not True:
        word = Conclusion.inconclusive if result.holds is None else Conclusion.contradicted
        for race in result.races:
            yield word, race.second.line, f"data race of {race.place}: {race.first} and {race.second}"
        if not result.races:
            besides = [str(item) for item in (result.other, result.choice) if item is not None]
            why = ": ".join(filter(None, (WORDS[result.answer], result.reason, *besides)))
            yield word, None if result.spot is None else result.spot.line, why
    for claim in result.claims:
        if claim.conclusion.finding is not False and (result.holds or claim.outcomes):
            yield claim.conclusion, None, refuted(claim)


def _races(report: RacesResult) -> Iterator[tuple[int, str]]:
    for race in report.races:
        yield race.first.line, f"{'mixed-size ' if race.mixed else ''}data race of {race.first} and {race.second}"


def _failing(report: FencesResult) -> Iterator[tuple[None, str]]:
    if report.finding:
        yield None, f"the property fails: {report.required}"


def _weaknesses(report: RobustResult) -> Iterator[tuple[None, str]]:
    if report.finding:
        yield None, "it is not sequentially consistent"


def _hangs(report: ProgressResult) -> Iterator[tuple[int | None, str]]:
    for thread in report.threads:
        if thread.state in ("spins", "waits"):
            line = thread.at.line if thread.at is not None else thread.lines[0] if thread.lines is not None else None
            yield line, f"{thread.thread} {'goes round a loop' if thread.state == 'spins' else 'waits'} for ever"


verdicts, races, fences = _annotated(_verdict), _annotated(_races), _annotated(_failing)
robust, progress = _annotated(_weaknesses), _annotated(_hangs)


def lint(entries: Iterable[Entry[LintResult]], page: Page) -> Iterator[str]:
    """Each finding, and an error for each file that could not be read."""
    for entry in entries:
        if isinstance(entry.report, Failure):
            yield from _failed(entry.report)
            continue
        for report in entry.report.findings:
            place = f"file={_escape(report.file)},line={report.line},endLine={report.end_line},col={report.column}"
            message = f"{report.rule.id} {report.message}" + (f" ({report.hint})" if report.hint else "")
            yield f"::{_LEVELS[report.rule.severity]} {place},title={report.rule.id}::{_escape(message, data=True)}"


def _line(level: str, file: str, line: int | None, title: str, message: str) -> str:
    place = f"file={_escape(file)}" + (f",line={line}" if line is not None else "")
    return f"::{level} {place},title={_escape(title)}::{_escape(message, data=True)}"


def _escape(value: str, data: bool = False) -> str:
    value = clean(value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return value if data else value.replace(":", "%3A").replace(",", "%2C")
