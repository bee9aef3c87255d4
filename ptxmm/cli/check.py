"""``ptxmm check``: verdicts."""

from __future__ import annotations

from ptxmm.cli.checking import Checking
from ptxmm.cli.frame import answer
from ptxmm.cli.options import AllReadings, AllState, Engine, EngineOption, Run, Tests, format_of

MOST = 1000
"""How many final states are listed beside a verdict."""


def check(
    tests: Tests,
    *,
    engine: EngineOption = Engine.auto,
    all_state: AllState = False,
    all_readings: AllReadings = False,
    run: Run,
) -> None:
    """Decide the condition of each litmus test and compare with what the test expects.

    Exit code: 0 all as expected, 1 an expectation contradicted, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = Checking(engine, all_state, MOST if format_of(run) == "json" else "none", all_readings)
    answer(work, "check", tests, run, verbose=all_readings)
