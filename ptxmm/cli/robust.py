"""``ptxmm robust``: are the final states those of sequential consistency?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import Analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run

if TYPE_CHECKING:
    from ptxmm.analysis.robust import RobustResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test


def robust(
    tests: OwnTests,
    *,
    most: Annotated[int, typer.Option("--most", min=0, metavar="N", help="Show at most N executions of a test.")] = 20,
    run: Run,
) -> None:
    """Compare the final states of each litmus test with those under sequential consistency (the model sc).

    Exit code: 0 all are robust, 1 some final state is not one of sc, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = Analysis(partial(_robust, most=most), _answers)
    answer(work, "robust", tests, run)


def _robust(test: Test, model: Model, limits: Limits, *, most: int) -> RobustResult:
    from ptxmm.analysis.robust import robust as analysis

    return analysis(test, model, limits=limits, most=most)


def _answers(result: RobustResult) -> dict[str, str]:
    return {"": {True: "robust", False: "not robust", None: result.status}[result.robust]}
