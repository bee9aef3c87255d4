"""``ptxmm compare``: two models on tests, two versions of a program, or a program that separates two models."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ptxmm.cli import stdin
from ptxmm.cli.analyses import analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import (
    AllState,
    Bundled,
    Files,
    Format,
    Isa,
    Jobs,
    Json,
    Memory,
    Models,
    Programs,
    Readings,
    Run,
    Tests,
    Unroll,
)
from ptxmm.cli.settings import Settings, settings
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
    *,
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
    programs: Programs,
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
    format: Format = "text",
    json: Json = False,
    isa: Isa = None,
) -> None:  # fmt: skip
    """Compare two models on litmus tests (--models A B FILE...), or two versions of a program (OLD NEW).

    With --models A B --generate N look for the smallest program that separates the models, and print it.
    Exit code: 0 no difference, 1 some difference, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    if models is None and generate is not None:
        raise PtxmmError("--generate needs two models", kind="usage", hint="--models A B")
    if models is not None and model:
        raise PtxmmError("--models and --model exclude each other", kind="usage", hint="two models: --models A B")
    seconds = timeout if timeout is not None else TEST_SECONDS if generate is None else SEARCH_SECONDS
    tests = Tests(files=files, bundled=bundled, model=list(models) if models is not None else model, reading=reading)
    run = Run(unroll=unroll, timeout=seconds, jobs=jobs, memory=memory, format=format, json=json, isa=isa)
    chosen = settings(tests, run)
    if models is None:
        _compare_versions(tests, run, chosen, most, all_state)
    elif generate is None:
        _compare_models(tests, run, chosen, models, most)
    else:
        if files or bundled:
            raise PtxmmError("--generate takes no files", kind="usage")
        from ptxmm.cli.separating import generate as search

        search(models, chosen, generate, programs, run)


def _compare_models(tests: Tests, run: Run, chosen: Settings, models: tuple[str, str], most: int) -> None:
    many = tests.bundled or len(tests.files or ()) > 1 or any(path.is_dir() for path in tests.files or ())
    work = analysis(partial(_models, names=models, readings=chosen.readings, most=most, skip=many))
    answer(work, "comparisons" if many else "compare", tests, run, chosen=replace(chosen, models=models[:1]))


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
    from ptxmm.analysis.compare import compare as compared
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
    return compared(test, model, other, limits=limits, most=most, names=names)


def _compare_versions(tests: Tests, run: Run, chosen: Settings, most: int, all_state: bool) -> None:
    files = tests.files or []
    if tests.bundled or len(files) != 2 or any(path.is_dir() for path in files):
        hint = "two models: --models A B FILE...; two versions: OLD NEW"
        raise PtxmmError("compare what? give two models, or two files", kind="usage", hint=hint)
    old, new = files
    if old == new == stdin.DASH:
        raise PtxmmError("only one of the two versions can be standard input", kind="usage")
    chosen = stdin.taken(chosen, old, new)
    test = once(partial(_pair, old, new, chosen), stdin.name_of(new), chosen)
    work = analysis(partial(_versions, new=test, most=most, all_state=all_state))
    answer(work, "compare", Tests(files=[old]), run, chosen=chosen)


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
