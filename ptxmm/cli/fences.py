"""``ptxmm fences``: which fences, orders and scopes are needed, and which are missing."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace

from ptxmm.cli.analyses import Asking, analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run, Wanted, format_of, graphs_of
from ptxmm.cli.workers import Part
from ptxmm.errors import PtxmmError

if TYPE_CHECKING:
    from ptxmm.analysis.fences import FencesResult, Progress
    from ptxmm.analysis.result import Expired
    from ptxmm.cat import Model
    from ptxmm.cli.analyses import Function
    from ptxmm.cli.inputs import Job
    from ptxmm.engines.result import Limits

    Told = FencesResult | Progress | Expired


def fences(
    tests: OwnTests,
    *,
    wanted: Wanted = None,
    most: Annotated[int, typer.Option("--most", min=0, metavar="N", help="List so many changes; 0: all.")] = 10,
    cost: Annotated[
        list[str] | None,
        typer.Option("--cost", metavar="NAME=N", help="What a step costs (fence=4, sc=6, ...); may be repeated."),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Of kernels: for the launch with all its threads, as `check --whole` answers it."),
    ] = False,
    run: Run,
) -> None:
    """Judge each fence, order and scope of a program: needed, removable, or too strong. Where the property fails, find
    the smallest repairs, each decided again by both engines.

    Exit code: 0 the property holds, 1 it fails, 2 bad input, 3 not decided, 4 a bug of ptxmm.
    """
    from ptxmm.analysis.strength.changes import costs

    if whole:
        from ptxmm.cli.whole import answer_fences  # with numpy, which takes time to load

        if wanted is not None:
            message = "--whole is about data races and threads that wait for ever: it takes no --property"
            raise PtxmmError(message, kind="usage")
        answer_fences(tests, run, most or None, costs(cost or ()))
    options = {"wanted": wanted, "costs": costs(cost or ()), "graphs": graphs_of(run)}
    brief = named("fences", **options, most=1)
    if format_of(run) in ("text", "json"):
        search: Asking[Told] = Asking(partial(_searched, {**options, "most": most or None}, brief))
        answer(search, "fences", tests, run)
    answer(analysis(named("fences", **options, most=most or None), brief), "fences", tests, run)


def _searched(
    options: Mapping[str, Any], brief: Function[FencesResult], job: Job, model: Model, limits: Limits
) -> Generator[Part[Told], None, Told]:
    """What is told of one test, each repair of a kernel as it is found. ``options``: those of ``searched``; ``brief``:
    as for ``analysis``."""
    from ptxmm.analysis.fences import searched
    from ptxmm.analysis.told import analysed

    result = yield from _parts(searched(job.test, model, limits=limits, **options), job)
    return analysed(job.test, job.model, model, limits, lambda *_: result, brief)


def _parts(search: Generator[Progress, None, FencesResult], job: Job) -> Generator[Part[Told], None, FencesResult]:
    """What is found of a kernel on the way, and the result."""
    while True:
        try:
            found = next(search)
        except StopIteration as end:
            result: FencesResult = end.value
            return result
        if job.test.claims is not None:
            yield Part(found, replace(found.so_far, model=job.model))
