"""``ptxmm scopes``: where threads may run, and how narrow scopes may be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import Analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run, Wanted

if TYPE_CHECKING:
    from ptxmm.analysis.scopes import ScopesResult
    from ptxmm.analysis.words import Property
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test


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
    work = Analysis(partial(_scopes, wanted=wanted, most=most))
    answer(work, "scopes", tests, run)


def _scopes(test: Test, model: Model, limits: Limits, *, wanted: Property | None, most: int) -> ScopesResult:
    from ptxmm.analysis.scopes import scopes as analysis

    return analysis(test, model, wanted=wanted, limits=limits, most=most)
