"""``ptxmm scopes``: where threads may run, and how narrow scopes may be."""

from __future__ import annotations

from typing import Annotated

import typer

from ptxmm.cli.analyses import analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run, Wanted


def scopes(
    tests: OwnTests,
    *,
    wanted: Wanted = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="List at most N choices of scopes.")] = 10,
    run: Run,
) -> None:
    """Keep the code and move the threads: a table of placements, from one warp to a GPU for each thread, with the
    verdict of each, and the narrowest scopes that keep the property.

    Exit code: 0 it holds at every placement, 1 it fails at one, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = analysis(named("scopes", wanted=wanted, most=most))
    answer(work, "scopes", tests, run)
