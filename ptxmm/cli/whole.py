"""``ptxmm check --whole``: each launch with all its threads."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

from msgspec.structs import replace

from ptxmm.analysis.result import Failure, Note, Result
from ptxmm.cli.console import progress, style
from ptxmm.cli.frame import show
from ptxmm.cli.inputs import SOURCES, collect, failure
from ptxmm.cli.options import Run, Tests, format_of
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import once
from ptxmm.errors import PtxmmError
from ptxmm.render import Entry, Page, formats
from ptxmm.whole.result import WholeResult


def answer_whole(tests: Tests, run: Run) -> NoReturn:
    """Execute every launch of the files that the command line names, and show the results.

    Raises ``typer.Exit`` with the exit code, and ``PtxmmError`` for what is wrong with the command line.
    """
    start = time.perf_counter()
    format = format_of(run)
    if format not in formats("whole"):
        message = f"--format {format} is not available with --whole"
        raise PtxmmError(message, kind="usage", hint="formats: " + ", ".join(formats("whole")))
    if tests.bundled or tests.model or tests.reading or tests.without:
        message = "--whole is about kernels under ptx-8.5: it takes no --bundled, --model, --reading or --without"
        raise PtxmmError(message, kind="usage")
    files = collect(tests.files, tests.bundled)
    found = _entries(files, settings(tests, run))
    show(progress(found, len(files)), "whole", format, Page(style(sys.stdout), start=start))


def _entries(files: list[Path | Failure], chosen: Settings) -> Iterator[Entry[WholeResult] | None]:
    for file in files:
        if isinstance(file, Failure):
            yield Entry(file)
        elif file.suffix not in SOURCES:
            hint = "--whole takes .ptx and .cu files; `ptxmm check` decides litmus tests"
            yield Entry(failure(PtxmmError("this is no kernel", kind="usage", hint=hint), str(file)))
        else:
            try:
                found = once(partial(results, file, chosen), str(file), chosen)
                yield from (Entry(result, len(found) > 1) for result in found)
            except PtxmmError as error:
                yield Entry(failure(error, str(file)))
        yield None


def unlisted(file: Path, chosen: Settings) -> list[Result] | None:
    """The verdicts on the claims of the launches of a file if one of them has more threads than a test can have, so
    that no execution could be listed; None for other files, and where nothing is claimed. Raises ``PtxmmError``."""
    from ptxmm.formats.modules.read import unlisted

    if file.suffix not in SOURCES or chosen.models or chosen.readings or chosen.without:
        return None
    try:
        count = unlisted(file, chosen.launch)
    except PtxmmError:
        return None  # it is told where the tests are read
    found = results(file, chosen) if count else []
    if not found or not all(result.claims for result in found):
        return None
    note = Note("kernel", f"{count} threads are more than are listed: one execution of all of them was asked (--whole)")
    return [replace(claim, notes=(note, *claim.notes)) for result in found for claim in result.claims]


def results(file: Path, chosen: Settings) -> list[WholeResult]:
    """The result of each launch of a file. Raises ``PtxmmError``."""
    from ptxmm.engines.result import Limits
    from ptxmm.formats.compiling import Compiling
    from ptxmm.formats.modules.read import kernels
    from ptxmm.whole.analysis import whole

    try:
        found = kernels(file, chosen.isa, chosen.launch, Compiling(chosen.nvcc))
        deadline = time.monotonic() + chosen.timeout
        return [whole(launched, str(file), Limits(deadline=deadline)) for launched in found]
    except PtxmmError as error:
        error.file = error.file or str(file)
        raise
