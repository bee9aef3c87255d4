"""``ptxmm outcomes``: tables of final states."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from msgspec.structs import replace

from ptxmm.analysis.told import Listing
from ptxmm.cli.checking import Checking, Streaming
from ptxmm.cli.frame import answer
from ptxmm.cli.options import AllState, Each, Engine, EngineOption, Run, Tests, format_of, graphs_of
from ptxmm.errors import PtxmmError
from ptxmm.render import formats

Most = Annotated[
    int | None,
    typer.Option("--limit", min=1, metavar="N", help="List at most N final states, first those that decide the test."),
]

Stream = Annotated[
    bool,
    typer.Option("--stream", help="Print the verdict, then each final state once it is found; in JSON, a line each."),
]


def outcomes(
    tests: Tests,
    *,
    engine: EngineOption = Engine.auto,
    all_state: AllState = False,
    limit: Most = None,
    stream: Stream = False,
    each: Each = False,
    run: Run,
) -> None:
    """List every final state that the model allows; those that satisfy the test's condition are marked with *.

    Exit code: as for check; 3 also where the search for them was cut, but not where --limit was reached.
    """
    listing: Listing = "all" if limit is None else limit
    if stream:
        if format_of(run) not in formats("stream"):
            raise PtxmmError(f"--stream and --format {format_of(run)} exclude each other", kind="usage")
        answer(Streaming(engine, all_state, listing), "stream", tests, replace(run, jobs=1))
    work = Checking(engine, all_state, listing, graphs=graphs_of(run), report=format_of(run) == "html")
    answer(work, "outcomes", tests, run, most=sys.maxsize if limit is None else limit, each=each)
