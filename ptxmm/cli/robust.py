"""``ptxmm robust``: are the final states those of sequential consistency?"""

from __future__ import annotations

from typing import Annotated

import typer

from ptxmm.cli.analyses import analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run


def robust(
    tests: OwnTests,
    *,
    most: Annotated[int, typer.Option("--most", min=0, metavar="N", help="Show at most N executions of a test.")] = 20,
    run: Run,
) -> None:
    """Compare the final states of each litmus test with those under sequential consistency (the model sc).

    Exit code: 0 all are robust, 1 some final state is not one of sc, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = analysis(named("robust", most=most))
    answer(work, "robust", tests, run)
