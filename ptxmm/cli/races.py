"""``ptxmm races``: data races."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec.structs import replace

from ptxmm.cli.analyses import analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import Each, OwnTests, Run, graphs_of

_MODEL = "ptx-8.5"
"""The one model of those that come with ptxmm that says what a data race is."""


def races(
    tests: OwnTests,
    *,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Report at most N races of a test.")] = 100,
    each: Each = False,
    run: Run,
) -> None:
    """List the data races of each litmus test: which instructions, why they race, and an execution that shows it.

    Exit code: 0 all are race-free, 1 there is a race, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = analysis(named("races", most=most, graphs=graphs_of(run)), named("races", most=1))
    answer(work, "races", replace(tests, model=tests.model or [_MODEL]), run, each=each)
