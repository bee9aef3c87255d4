"""``ptxmm outcomes``: tables of final states."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ptxmm.cli.checking import Checking
from ptxmm.cli.frame import answer
from ptxmm.cli.options import AllState, Each, Engine, EngineOption, Run, Tests, format_of, graphs_of

Most = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="List at most N final states, first those that decide the test."),
]


def outcomes(
    tests: Tests,
    *,
    engine: EngineOption = Engine.auto,
    all_state: AllState = False,
    limit: Most = None,
    each: Each = False,
    run: Run,
) -> None:
    """List every final state that the model allows; those that satisfy the test's condition are marked with *.

    Exit code: as for check; 3 also where the search for them was cut, but not where --limit was reached.
    """
    work = Checking(
        engine, all_state, "all" if limit is None else limit, graphs=graphs_of(run), report=format_of(run) == "html"
    )
    answer(work, "outcomes", tests, run, most=sys.maxsize if limit is None else limit, each=each)
