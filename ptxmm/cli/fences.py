"""``ptxmm fences``: which fences, orders and scopes are needed, and which are missing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import Analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run, Wanted

if TYPE_CHECKING:
    from ptxmm.analysis.fences import FencesResult
    from ptxmm.analysis.strength.changes import Costs
    from ptxmm.analysis.words import Property
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test


def fences(
    tests: OwnTests,
    *,
    wanted: Wanted = None,
    most: Annotated[int, typer.Option("--most", min=0, metavar="N", help="List so many changes; 0: all.")] = 10,
    cost: Annotated[
        list[str] | None,
        typer.Option("--cost", metavar="NAME=N", help="What a step costs (fence=4, sc=6, ...); may be repeated."),
    ] = None,
    run: Run,
) -> None:
    """Judge each fence, order and scope of a program: needed, removable, or too strong. Where the property fails, find
    the smallest repairs, each decided again by both engines.

    Exit code: 0 the property holds, 1 it fails, 2 bad input, 3 not decided, 4 a bug of ptxmm.
    """
    from ptxmm.analysis.strength.changes import costs

    function = partial(_work, wanted=wanted, costs=costs(cost or ()))
    work = Analysis(partial(function, most=most or None), _answers, partial(function, most=1))
    answer(work, "fences", tests, run)


def _work(
    test: Test, model: Model, limits: Limits, *, wanted: Property | None, costs: Costs, most: int | None
) -> FencesResult:
    from ptxmm.analysis.fences import fences as analysis

    return analysis(test, model, wanted=wanted, costs=costs, most=most, limits=limits)


def _answers(result: FencesResult) -> dict[str, str]:
    property_ = {True: "holds", False: "fails", None: result.status}[result.holds]
    return {"": property_} | {f"{i.thread}:{i.line}: {i.text}": i.verdict for i in result.items if i.why != "timeout"}
