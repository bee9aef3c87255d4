"""``ptxmm fences``: which fences, orders and scopes are needed, and which are missing."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from ptxmm.cli.analyses import Analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run, Wanted, graphs_of


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

    function = partial(named, "fences", wanted=wanted, costs=costs(cost or ()), graphs=graphs_of(run))
    work = Analysis(function(most=most or None), function(most=1))
    answer(work, "fences", tests, run)
