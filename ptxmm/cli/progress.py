"""``ptxmm progress``: loops and barriers that never end."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ptxmm.cli.analyses import analysis, named
from ptxmm.cli.frame import answer
from ptxmm.cli.options import Run, Tests


class Scheduler(StrEnum):
    """The schedulers that a user can choose."""

    fair = "fair"
    hsa = "hsa"
    obe = "obe"
    hsa_obe = "hsa_obe"
    lobe = "lobe"
    unfair = "unfair"


class Judge(StrEnum):
    """The engines that a user can choose."""

    enumerate = "enumerate"
    both = "both"


class Visible(StrEnum):
    """Which writes a thread that reads for ever sees in the end."""

    strong = "strong"
    all = "all"


def progress(
    tests: Tests,
    *,
    fairness: Annotated[
        Scheduler, typer.Option("--fairness", help="Which threads the scheduler must let go on.", show_default=True)
    ] = Scheduler.fair,
    visibility: Annotated[
        Visible,
        typer.Option("--visibility", help="What a read repeated for ever must see: morally strong writes, or all."),
    ] = Visible.strong,
    engine: Annotated[
        Judge, typer.Option("--engine", help="both asks Z3 as well, where it can judge.", show_default=True)
    ] = Judge.enumerate,
    run: Run,
) -> None:
    """Can a loop spin, or a barrier wait, for ever? Shows an execution that does, and why nothing will end it.

    Exit code: 0 all terminate, 1 some test may hang, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    work = analysis(named("progress", fairness=fairness.value, visibility=visibility.value, engine=engine.value))
    answer(work, "progress", tests, run)
