"""``ptxmm races``: data races."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ptxmm.cli.analyses import Analysis
from ptxmm.cli.frame import answer
from ptxmm.cli.options import OwnTests, Run

if TYPE_CHECKING:
    from ptxmm.analysis.races import RacesResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

_MODEL = "ptx-8.5"
"""The one model of those that come with ptxmm that says what a data race is."""


def races(
    tests: OwnTests,
    *,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Report at most N races of a test.")] = 100,
    run: Run,
) -> None:
    """List the data races of each litmus test: which instructions, why they race, and an execution that shows it.

    Exit code: 0 all are race-free, 1 there is a race, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = Analysis(partial(_races, most=most), _answers, partial(_races, most=1))
    answer(work, "races", replace(tests, model=tests.model or [_MODEL]), run)


def _races(test: Test, model: Model, limits: Limits, *, most: int) -> RacesResult:
    from ptxmm.analysis.races import races as analysis

    return analysis(test, model, limits=limits, most=most)


def _answers(result: RacesResult) -> dict[str, str]:
    return {"": {True: "race-free", False: "a data race", None: result.status}[result.race_free]}
