"""``ptxmm robust``: are the final states those of sequential consistency?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli.analyses import Analysis, analyse
from ptxmm.cli.options import (
    Bundled,
    Files,
    Isa,
    Jobs,
    Json,
    Launch,
    Memory,
    NvccOptions,
    OwnModel,
    Readings,
    Timeout,
    Unroll,
    Without,
    settings,
)

if TYPE_CHECKING:
    from ptxmm.analysis.robust import RobustResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test


def robust(
    files: Files = None,
    bundled: Bundled = False,
    model: OwnModel = None,
    reading: Readings = None,
    without: Without = None,
    most: Annotated[int, typer.Option("--most", min=0, metavar="N", help="Show at most N executions of a test.")] = 20,
    unroll: Unroll = 3,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    isa: Isa = None,
    launch: Launch = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """Compare the final states of each litmus test with those under sequential consistency (the model sc).

    Exit code: 0 all are robust, 1 some final state is not one of sc, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    from ptxmm.render import robust as render

    work = Analysis("robust", partial(_robust, most=most), _answers)
    chosen = settings(model, reading, isa, unroll, timeout, launch, memory, nvcc_option, without)
    analyse(work, render.text, render.document, files, bundled, chosen, jobs, json)


def _robust(test: Test, model: Model, limits: Limits, *, most: int) -> RobustResult:
    from ptxmm.analysis.robust import robust as analysis

    return analysis(test, model, limits=limits, most=most)


def _answers(result: RobustResult) -> dict[str, str]:
    return {"": {True: "robust", False: "not robust", None: result.status}[result.robust]}
