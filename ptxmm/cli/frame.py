"""The frame of every command that runs tests: read the files, analyse each test, show the results, exit.

A command gives the work on one test and what kind of result that makes; how such results look in each format stands in
``ptxmm.render``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

import typer

from ptxmm.analysis.result import Failure, Result
from ptxmm.analysis.words import Exit
from ptxmm.cli import stdin
from ptxmm.cli.console import complain, progress, style
from ptxmm.cli.exits import Found, exit_of, worst
from ptxmm.cli.inputs import collect, failure
from ptxmm.cli.options import Run, Tests, format_of, processes
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import Work, run_all
from ptxmm.errors import PtxmmError
from ptxmm.render import DRAWN, Entry, Page, renderer

R = TypeVar("R", bound=Found)


def answer(
    work: Work[R],
    kind: str,
    tests: Tests,
    run: Run,
    *,
    chosen: Settings | None = None,
    verbose: bool = False,
    most: int | None = None,
    each: bool = False,
    definitions: bool = False,
) -> NoReturn:
    """Do ``work`` for every test that the command line names, in as many processes as wanted but no more than there are
    files, and show the results, which are of this ``kind`` of ``render.RENDERERS``.

    ``chosen``: the settings if they are not those of the options; ``verbose``: with all remarks; ``most``: a list of
    fewer final states that is cut is inconclusive; ``each``,
    ``definitions``: as in ``Page``. Raises ``typer.Exit`` with the exit code,
    and ``PtxmmError`` for what is wrong with the command line.
    """
    start = time.perf_counter()
    chosen = chosen or settings(tests, run)
    files, chosen = collected(tests, chosen)
    done = run_all(work, files, chosen, min(processes(run.jobs), len(files)))
    page = Page(style(sys.stdout), width_of(files), start, verbose, each=each, definitions=definitions)
    if kind == "stream":  # a line for each state, and no bar between
        show((entry for entry in done if entry is not None), kind, format_of(run), page, most)
    show(progress(done, len(files)), kind, format_of(run), page, most)


def collected(tests: Tests, chosen: Settings) -> tuple[list[Path | Failure], Settings]:
    """The files that the command line names, and the settings with what standard input holds if it is one of them.
    Raises ``PtxmmError`` as ``collect``."""
    files = collect(tests.files, tests.bundled)
    try:
        return files, stdin.taken(chosen, *(file for file in files if isinstance(file, Path)))
    except PtxmmError as error:
        return [failure(error, stdin.NAME) if file == stdin.DASH else file for file in files], chosen


def width_of(files: Iterable[Path | Failure]) -> int:
    """The characters of a column of their names."""
    return min(72, max(len(file.file if isinstance(file, Failure) else str(file)) for file in files))


def show(entries: Iterable[Entry[R]], kind: str, format: str, page: Page, most: int | None = None) -> NoReturn:
    """Print the results as they come. Raises ``typer.Exit`` with the exit code that they ask for."""
    codes = set()

    def told() -> Iterator[Entry[R]]:
        for entry in entries:
            codes.add(exit_of(entry.report))
            report = entry.report
            if most is not None and isinstance(report, Result) and not report.listed and len(report.outcomes) < most:
                codes.add(Exit.INCONCLUSIVE)
            yield entry
            if format in ("text", *DRAWN) and isinstance(entry.report, Failure):
                complain(entry.report.text)

    for lines in renderer(kind, format)(told(), page):
        print(lines, flush=kind in ("stream", "fences"))
    raise typer.Exit(worst(codes))
