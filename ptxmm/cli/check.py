"""``ptxmm check``: verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import typer

from ptxmm.cli.checking import Checking
from ptxmm.cli.frame import answer
from ptxmm.cli.options import AllReadings, AllState, Engine, EngineOption, Run, Tests, format_of
from ptxmm.errors import PtxmmError
from ptxmm.render import formats

MOST: Mapping[str, int] = MappingProxyType({"json": 1000, "html": 100})
"""How many final states are listed beside a verdict, in the formats that list them."""


def check(
    tests: Tests,
    *,
    engine: EngineOption = Engine.auto,
    all_state: AllState = False,
    all_readings: AllReadings = False,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="Of kernels: is the launch with all its threads free of data races? By one execution."
        ),
    ] = False,
    run: Run,
) -> None:
    """Decide the condition of each litmus test and compare with what the test expects.

    Exit code: 0 all as expected, 1 an expectation contradicted, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    if whole:
        from ptxmm.cli.whole import answer_whole  # with numpy, which takes time to load

        if engine is not Engine.auto or all_state or all_readings:
            message = "--whole executes a launch once: it takes no --engine, --all-state or --all-readings"
            raise PtxmmError(message, kind="usage")
        answer_whole(tests, run)
    format = format_of(run)
    if format not in formats("check"):
        raise PtxmmError(f"--format {format} is available with --whole only", kind="usage")
    report = format == "html"
    work = Checking(engine, all_state, MOST.get(format, "none"), all_readings, graphs=report, report=report)
    answer(work, "check", tests, run, verbose=all_readings)
