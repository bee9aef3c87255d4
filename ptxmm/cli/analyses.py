"""The frame of the commands that analyse tests (races, scopes, ...): run the analysis for every test, print, exit.

A command gives its analysis as a function of a module (with options bound by ``functools.partial``, so that it can go
to a worker), and how its results look::

    def _work(test: Test, model: Model, limits: Limits, *, most: int) -> RacesResult:
        from ptxmm.analysis.races import races as analysis

        return analysis(test, model, limits=limits, most=most)

    def races(files: Files = None, ..., json: Json = False) -> None:
        from ptxmm.render import races as render

        work = Analysis("races", partial(_work, most=most))
        chosen = settings(model, reading, isa, unroll, timeout, launch)
        analyse(work, render.text, render.document, files, bundled, chosen, jobs, json)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import typer
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import Failure, Note, Status
from ptxmm.cli.console import complain, style
from ptxmm.cli.exits import Exit, error_code, worst
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Settings
from ptxmm.cli.session import session
from ptxmm.errors import Timeout

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test
    from ptxmm.render.style import Style
    from ptxmm.render.text import Analysed

    class AnalysisResult(Analysed, Protocol):
        """What the results of all analyses have (frozen structs).

        ``finding``: True where something was found that the user asked to be told (a race, a property that fails),
        None where a longer search could find it.
        """

        @property
        def file(self) -> str: ...
        @property
        def finding(self) -> bool | None: ...


R = TypeVar("R", bound="AnalysisResult")


class Expired(Struct, frozen=True):
    """An analysis that was ended from outside at its deadline, so that nothing of what it found is known."""

    file: str
    test: str
    model: str
    seconds: float
    status: Status = "timeout"
    finding: bool | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        """That the time limit was reached."""
        text = f"the time limit of {self.seconds:g} s ended the analysis; --timeout takes a higher one"
        return (Note("timeout", text),)


class Analysis(Struct, Generic[R], frozen=True):
    """``name``: of the command; ``function``: the analysis, which can be pickled.

    ``answers``: those in a result, by what they are about, so that the readings on which one rests can be told;
    ``brief``: an analysis that gives as many, and may list less.
    """

    name: str
    function: Callable[[Test, Model, Limits], R]
    answers: Callable[[R], Mapping[str, str]] | None = None
    brief: Callable[[Test, Model, Limits], R] | None = None
    stated_models: bool = False

    def run(self, job: Job, model: Model, limits: Limits) -> R | Expired:
        """The result for one test, under the name that the user gave to the model."""
        from ptxmm.analysis.readings import basis

        found = self.function(job.test, model, limits)
        notes = (*basis(model), *found.notes, *self._readings(job, model, limits, found))
        return replace(found, model=job.model, notes=notes)  # type: ignore[type-var]

    def _readings(self, job: Job, model: Model, limits: Limits, found: R) -> tuple[Note, ...]:
        """On which readings an answer rests."""
        from ptxmm.analysis.readings import asynchronous, decided_answers
        from ptxmm.cli.inputs import model_named

        answers, brief = self.answers, self.brief or self.function
        if answers is None or found.status not in ("complete", "undefined") or not asynchronous(job.test):
            return ()

        def changed(key: str, value: str) -> Mapping[str, str]:
            readings = tuple(sorted((dict(model.readings) | {key: value}).items()))
            try:
                other = brief(job.test, model_named(job.model, readings), limits)
            except Timeout:
                return {}
            return answers(other) if other.status != "timeout" else {}

        return decided_answers(model, answers(found), changed)

    def expired(self, job: Job, seconds: float) -> R | Expired:
        """What stands for a result that did not come in time."""
        return Expired(job.test.file, job.test.name, job.model, seconds)


def analyse(
    analysis: Analysis[R],
    text: Callable[[R, Style], list[str]],
    document: Callable[[R], dict[str, Any]],
    files: list[Path] | None,
    bundled: bool,
    settings: Settings,
    jobs: int | None,
    json: bool,
) -> None:
    """Run ``analysis`` for every test that the command line names and print the results: the lines ``text`` makes of
    each as it comes, or one JSON document of the entries that ``document`` makes.

    Raises ``typer.Exit`` with 4 after a bug, 2 after bad input, 1 if something was found, 3 if some analysis is
    inconclusive, else 0.
    """
    reports = (entry.report for entry in session(analysis, files, bundled, settings, jobs).entries)
    codes = _as_json(analysis.name, reports, document) if json else _as_text(reports, text)
    raise typer.Exit(worst(codes))


def exit_of(report: AnalysisResult | Failure) -> Exit:
    """The exit code that one report asks for."""
    if isinstance(report, Failure):
        return error_code(report.kind)
    if report.finding is None:
        return Exit.INCONCLUSIVE
    return Exit.FOUND if report.finding else Exit.OK


def _as_json(
    name: str, reports: Iterable[R | Expired | Failure], document: Callable[[R], dict[str, Any]]
) -> list[Exit]:
    from ptxmm.render.document import failure, whole

    codes, entries = [], []
    for report in reports:
        codes.append(exit_of(report))
        if isinstance(report, Failure):
            entries.append(failure(report))
        else:
            entry = {} if isinstance(report, Expired) else document(report)
            entries.append({"analysis": name, **_common(report), **entry})
    sys.stdout.write(whole(entries))
    return codes


def _common(report: AnalysisResult) -> dict[str, Any]:
    """The part of an entry that all analyses share."""
    return {
        "file": report.file,
        "test": report.test,
        "model": report.model,
        "status": report.status,
        "notes": [{"kind": note.kind, "text": note.text} for note in report.notes],
        "seconds": round(report.seconds, 6),
    }


def _as_text(reports: Iterable[R | Expired | Failure], text: Callable[[R, Style], list[str]]) -> list[Exit]:
    from ptxmm.render.text import head, tail

    out, codes, first = style(sys.stdout), [], True
    for report in reports:
        codes.append(exit_of(report))
        if isinstance(report, Failure):
            complain(report.text)
            continue
        if not first:
            print()
        first = False
        if isinstance(report, Expired):
            print("\n".join([*head(report), *tail(report)]))
        else:
            print("\n".join(text(report, out)))
    return codes
