"""``ptxmm check --whole``: each launch with all its threads."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from msgspec.structs import replace

from ptxmm.analysis.result import Failure, Note, Result
from ptxmm.cli.console import progress, style
from ptxmm.cli.exits import Found as Finding
from ptxmm.cli.frame import show
from ptxmm.cli.inputs import SOURCES, collect, failure
from ptxmm.cli.options import Run, Tests, format_of
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import once, told
from ptxmm.errors import PtxmmError
from ptxmm.render import DRAWN, Entry, Page, formats
from ptxmm.whole.result import WholeResult

if TYPE_CHECKING:
    from ptxmm.analysis.strength.changes import Costs
    from ptxmm.engines.result import Limits
    from ptxmm.formats.modules.kernel import Kernel
    from ptxmm.whole.analysis import Drawn
    from ptxmm.whole.fences.search import Found, WholeFences

R = TypeVar("R", bound=Finding)
T = TypeVar("T")

_FEW = 16
"""Of so many threads all executions are listed."""


def answer_whole(tests: Tests, run: Run) -> NoReturn:
    """Execute every launch of the files that the command line names, and show the results.

    Raises ``typer.Exit`` with the exit code, and ``PtxmmError`` for what is wrong with the command line.
    """
    if format_of(run) in DRAWN:
        _answer(_drawn, "whole", tests, run)
    _answer(_asked, "whole", tests, run)


def answer_fences(tests: Tests, run: Run, most: int | None, costs: Costs) -> NoReturn:
    """The same about the fences of every launch, each verdict as it is found."""
    _answer(partial(_searched, most, costs), "whole_fences", tests, run)


def _answer(function: Callable[[Path, Settings], Iterator[Entry[R]]], kind: str, tests: Tests, run: Run) -> NoReturn:
    start = time.perf_counter()
    format = format_of(run)
    if format not in formats(kind):
        message = f"--format {format} is not available with --whole"
        raise PtxmmError(message, kind="usage", hint="formats: " + ", ".join(formats(kind)))
    if tests.bundled or tests.model or tests.reading or tests.without:
        message = "--whole is about kernels under ptx-8.5: it takes no --bundled, --model, --reading or --without"
        raise PtxmmError(message, kind="usage")
    files = collect(tests.files, tests.bundled)
    found = _entries(function, files, settings(tests, run))
    show(progress(found, len(files)), kind, format, Page(style(sys.stdout), start=start))


def _entries(
    function: Callable[[Path, Settings], Iterator[Entry[R]]], files: list[Path | Failure], chosen: Settings
) -> Iterator[Entry[R] | None]:
    for file in files:
        if isinstance(file, Failure):
            yield Entry(file)
        elif file.suffix not in SOURCES:
            hint = "--whole takes .ptx and .cu files; `ptxmm check` decides litmus tests"
            yield Entry(failure(PtxmmError("this is no kernel", kind="usage", hint=hint), str(file)))
        else:
            try:
                yield from function(file, chosen)
            except PtxmmError as error:
                yield Entry(failure(error, str(file)))
        yield None


def _asked(file: Path, chosen: Settings) -> Iterator[Entry[WholeResult]]:
    found = once(partial(results, file, chosen), str(file), chosen)
    yield from (Entry(result, len(found) > 1) for result in found)


def _drawn(file: Path, chosen: Settings) -> Iterator[Entry[Drawn]]:
    return (Entry(part) for part in told(partial(_drawings, file, chosen), str(file), chosen))


def _drawings(file: Path, chosen: Settings) -> Iterator[Drawn]:
    """The result of each launch of a file with its timeline. Raises ``PtxmmError``."""
    from ptxmm.whole.analysis import drawn

    return _launches(file, chosen, lambda launched, limits: iter((drawn(launched, str(file), limits),)))


def _searched(most: int | None, costs: Costs, file: Path, chosen: Settings) -> Iterator[Entry[Found | WholeFences]]:
    return (Entry(part) for part in told(partial(_fences, most, costs, file, chosen), str(file), chosen))


def unlisted(file: Path, chosen: Settings) -> tuple[list[Result], bool] | None:
    """The verdicts on the claims of the launches of a source that have so many threads, none of them chosen, that all
    executions take long to list, or cannot be; and whether these are not to be listed: one execution decides all, or
    shows what is wrong. None for other files, and where nothing is claimed or there was no time. Raises
    ``PtxmmError``."""
    from ptxmm.formats.threads import MAX_THREADS

    counts = _sizes(file, chosen)
    if counts is None:
        return None
    most, listed = max(counts), max(counts) <= MAX_THREADS
    if listed and min(counts) <= _FEW:
        return None
    found = results(file, replace(chosen, timeout=chosen.timeout / 2) if listed else chosen)
    if not all(result.claims for result in found) or (listed and any(result.answer == "timeout" for result in found)):
        return None
    note = Note(
        "kernel", f"{most} threads: one execution of all of them was asked, which tells of the others (--whole)"
    )
    told = [replace(claim, notes=(note, *claim.notes)) for result in found for claim in result.claims]
    return told, not listed or all(_settled(result) for result in found)


def _settled(result: WholeResult) -> bool:
    """Whether nothing is left open of a launch, or what is does not matter as it is wrong otherwise."""
    holds = [claim.holds for claim in result.claims]
    return None not in holds or False in holds or result.answer in ("undefined", "deadlock")


def listable(file: Path, chosen: Settings) -> bool:
    """Whether all threads of every launch of a source run where all executions are listed, so that one execution of
    them may decide what takes too long otherwise."""
    counts = _sizes(file, chosen)
    return counts is not None and all(counts)


def _sizes(file: Path, chosen: Settings) -> list[int] | None:
    """As ``sizes``; None where one execution tells nothing of what is asked, or the file cannot be read, which is told
    where its tests are."""
    from ptxmm.formats.modules.read import sizes

    if chosen.models or chosen.readings or chosen.without:
        return None
    try:
        return sizes(file, chosen.launch)
    except PtxmmError:
        return None


def followed(file: Path, chosen: Settings) -> list[Result] | None:
    """The verdicts on the claims of the launches of a source whose executions cannot be listed; None where one
    execution of all threads decides none of them."""
    try:
        found = [
            claim for result in results(file, replace(chosen, timeout=chosen.timeout / 2)) for claim in result.claims
        ]
    except PtxmmError:
        return None
    note = Note("kernel", "its executions cannot be listed: one execution of all threads was asked (--whole)")
    told = [replace(claim, notes=(note, *claim.notes)) for claim in found]
    return told if any(claim.holds is not None for claim in found) else None


def decided(report: Result, file: Path, chosen: Settings) -> Result:
    """The verdict of one execution of all threads on what ``report`` left open; ``report`` where that has none."""
    try:
        found = [claim for result in results(file, chosen) for claim in result.claims]
    except PtxmmError:
        return report
    same = alike(report, [each for each in found if each.holds is not None])
    if same is None:
        return report
    note = Note("kernel", "the search took too long: one execution of all threads was asked (--whole)")
    return replace(same, notes=(note, *same.notes))


def alike(report: Result, found: list[Result]) -> Result | None:
    """The one of some verdicts that is on the claim of ``report``."""
    names = report.test, report.quantifier, report.condition
    same = [each for each in found if (each.test, each.quantifier, each.condition) == names]
    return same[0] if len(same) == 1 else None


def results(file: Path, chosen: Settings) -> list[WholeResult]:
    """The result of each launch of a file. Raises ``PtxmmError``."""
    from ptxmm.whole.analysis import whole

    return list(_launches(file, chosen, lambda launched, limits: iter((whole(launched, str(file), limits),))))


def _fences(most: int | None, costs: Costs, file: Path, chosen: Settings) -> Iterator[Found | WholeFences]:
    """What is found about the fences of each launch of a file. Raises ``PtxmmError``."""
    from ptxmm.whole.fences.search import searched

    return _launches(file, chosen, lambda launched, limits: searched(launched, str(file), limits, most, costs))


def _launches(
    file: Path, chosen: Settings, function: Callable[[tuple[Kernel, ...], Limits], Iterator[T]]
) -> Iterator[T]:
    from ptxmm.engines.result import Limits
    from ptxmm.formats.compiling import Compiling
    from ptxmm.formats.modules.read import kernels

    try:
        found = kernels(file, chosen.isa, chosen.launch, Compiling(chosen.nvcc, printed=chosen.printed))
        deadline = time.monotonic() + chosen.timeout
        for launched in found:
            yield from function(launched, Limits(deadline=deadline))
    except PtxmmError as error:
        error.file = error.file or str(file)
        raise
