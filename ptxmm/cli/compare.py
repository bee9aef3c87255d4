"""``ptxmm compare``: two models on tests, two versions of a program, or a program that separates two models."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ptxmm.analysis.result import Failure
from ptxmm.cli import stdin
from ptxmm.cli.analyses import Analysis, Expired, analyse, exit_of
from ptxmm.cli.console import complain, style
from ptxmm.cli.exits import worst
from ptxmm.cli.options import (
    AllState,
    Bundled,
    Files,
    Isa,
    Jobs,
    Json,
    Memory,
    Models,
    Readings,
    Settings,
    Unroll,
    settings,
)
from ptxmm.cli.session import session
from ptxmm.cli.tasks import once
from ptxmm.errors import PtxmmError

if TYPE_CHECKING:
    from ptxmm.analysis.compare import CompareResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

TEST_SECONDS = 60.0
SEARCH_SECONDS = 600.0


def compare(
    files: Files = None,
    bundled: Bundled = False,
    models: Annotated[
        tuple[str, str] | None,
        typer.Option("--models", metavar="A B", help="Two models to compare, each NAME|FILE.cat.", show_default=False),
    ] = None,
    model: Models = None,
    generate: Annotated[
        int | None,
        typer.Option(
            "--generate", metavar="N", help="Look for the smallest program, up to N instructions, that separates them."
        ),
    ] = None,
    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds", metavar="K,...", help="Instructions of --generate, of: ld st atom red fence alias. "
            "[default: those of both models]"
        ),
    ] = None,
    scopes: Annotated[
        str | None, typer.Option("--scopes", metavar="S,...", help="Scopes of --generate. [default: cta,gpu]")
    ] = None,
    orders: Annotated[
        str | None, typer.Option("--orders", metavar="O,...", help="Orders of --generate. [default: all]")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, metavar="N", help="The most threads of --generate.")
    ] = None,
    locations: Annotated[
        int | None, typer.Option("--locations", min=1, metavar="N", help="The most locations of --generate.")
    ] = None,
    reading: Readings = None,
    most: Annotated[
        int, typer.Option("--most", min=0, metavar="N", help="Show at most N executions of each side of a test.")
    ] = 3,
    all_state: AllState = False,
    unroll: Unroll = 3,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", min=0.001, metavar="S",
            help="Seconds for one test, or for the whole search of --generate. [default: 60, or 600]",
        ),
    ] = None,
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    isa: Isa = None,
) -> None:  # fmt: skip
    """Compare two models on litmus tests (--models A B FILE...), or two versions of a program (OLD NEW).

    With --models A B --generate N look for the smallest program that separates the models, and print it.
    Exit code: 0 no difference, 1 some difference, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    seconds = timeout if timeout is not None else TEST_SECONDS if generate is None else SEARCH_SECONDS
    if models is None and generate is not None:
        raise PtxmmError("--generate needs two models", kind="usage", hint="--models A B")
    if models is not None and model:
        raise PtxmmError("--models and --model exclude each other", kind="usage", hint="two models: --models A B")
    chosen = settings(list(models) if models is not None else model, reading, isa, unroll, seconds, memory=memory)
    if models is None:
        _compare_versions(files, bundled, chosen, most, all_state, json)
    elif generate is None:
        _compare_models(files, bundled, models, chosen, most, jobs, json)
    else:
        if files or bundled:
            raise PtxmmError("--generate takes no files", kind="usage")
        from ptxmm.cli.separating import Words
        from ptxmm.cli.separating import generate as search

        words = Words(_listed(kinds), _listed(scopes), _listed(orders), threads, locations)
        search(models, chosen, generate, words, jobs, json)


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip().removeprefix(".") for word in text.split(",") if word.strip()]


def _compare_models(
    files: list[Path] | None,
    bundled: bool,
    models: tuple[str, str],
    chosen: Settings,
    most: int,
    jobs: int | None,
    json: bool,
) -> None:
    from ptxmm.render import compare as render

    many = bundled or len(files or ()) > 1 or any(path.is_dir() for path in files or ())
    first = replace(chosen, models=models[:1])
    work = Analysis("compare", partial(_models, names=models, readings=chosen.readings, most=most, skip=many))
    if json or not many:
        analyse(work, render.text, render.document, files, bundled, first, jobs, json)
        return
    start = time.perf_counter()
    run = session(work, files, bundled, first, jobs)
    out, codes = style(sys.stdout), []
    reports: list[CompareResult | Failure | None] = []
    for entry in run.entries:
        report = entry.report
        codes.append(exit_of(report))
        if isinstance(report, Failure):
            complain(report.text)
            reports.append(report)
        elif isinstance(report, Expired):
            print(f"?      {report.file}  {report.notes[0].text}")
            reports.append(None)
        else:
            print(render.line(report, out, run.width, entry.several))
            reports.append(report)
    print(render.summary(reports, time.perf_counter() - start))
    raise typer.Exit(worst(codes))


def _models(
    test: Test,
    model: Model,
    limits: Limits,
    *,
    names: tuple[str, str],
    readings: tuple[tuple[str, str], ...],
    most: int,
    skip: bool,
) -> CompareResult:
    from ptxmm.analysis.compare import compare as analysis
    from ptxmm.analysis.compare import uncovered
    from ptxmm.analysis.compatibility import check_compatible
    from ptxmm.cli.inputs import model_named

    other = model_named(names[1], readings)
    try:
        for each in (model, other):
            check_compatible(test, each)
    except PtxmmError as error:
        if skip and error.kind == "unsupported":
            return uncovered(test, names, error)
        raise
    return analysis(test, model, other, limits=limits, most=most, names=names)


def _compare_versions(
    files: list[Path] | None, bundled: bool, chosen: Settings, most: int, all_state: bool, json: bool
) -> None:
    from ptxmm.render import compare as render

    if bundled or len(files or ()) != 2 or any(path.is_dir() for path in files or ()):
        hint = "two models: --models A B FILE...; two versions: OLD NEW"
        raise PtxmmError("compare what? give two models, or two files", kind="usage", hint=hint)
    assert files is not None
    old, new = files
    if old == new == stdin.DASH:
        raise PtxmmError("only one of the two versions can be standard input", kind="usage")
    chosen = stdin.taken(chosen, old, new)
    test = once(partial(_pair, old, new, chosen), stdin.NAME if new == stdin.DASH else str(new), chosen)
    work = Analysis("compare", partial(_versions, new=test, most=most, all_state=all_state))
    analyse(work, render.text, render.document, [old], False, chosen, 1, json)


def _pair(old: Path, new: Path, chosen: Settings) -> Test:
    """The test in ``new``, where each of the files has one."""
    tests = stdin.tests(new, chosen)
    for path, count in ((old, len(stdin.tests(old, chosen))), (new, len(tests))):
        if count != 1:
            raise PtxmmError(f"{path} has {count} tests; versions are compared one by one", kind="usage")
    return tests[0]


def _versions(test: Test, model: Model, limits: Limits, *, new: Test, most: int, all_state: bool) -> CompareResult:
    from ptxmm.analysis.compare import compare_versions

    return compare_versions(test, new, model, limits=limits, most=most, all_state=all_state)
