"""``ptxmm outcomes``: tables of final states."""

from __future__ import annotations

from ptxmm.cli.checking import Checking
from ptxmm.cli.frame import answer
from ptxmm.cli.options import AllState, Engine, EngineOption, Run, Tests


def outcomes(tests: Tests, *, engine: EngineOption = Engine.auto, all_state: AllState = False, run: Run) -> None:
    """List every final state that the model allows; those that satisfy the test's condition are marked with *.

    Exit code: as for check; 3 also where the list may be incomplete.
    """
    answer(Checking(engine, all_state, "all"), "outcomes", tests, run, whole=True)
