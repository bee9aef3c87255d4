"""``ptxmm races``: data races."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.cli import completion
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
    Readings,
    Timeout,
    Unroll,
    Without,
    settings,
)

if TYPE_CHECKING:
    from ptxmm.analysis.races import RacesResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

_MODEL = "ptx-8.5"
"""The one model of those that come with ptxmm that says what a data race is."""


def races(
    files: Files = None,
    bundled: Bundled = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME|FILE.cat",
            help=f"A model; may be repeated. [default: {_MODEL}]",
            autocompletion=completion.models,
        ),
    ] = None,
    reading: Readings = None,
    without: Without = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="Report at most N races of a test.")] = 100,
    unroll: Unroll = 3,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    isa: Isa = None,
    launch: Launch = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """List the data races of each litmus test: which instructions, why they race, and an execution that shows it.

    Exit code: 0 all are race-free, 1 there is a race, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    from ptxmm.render import races as render

    work = Analysis("races", partial(_races, most=most), _answers, partial(_races, most=1))
    chosen = settings(model or [_MODEL], reading, isa, unroll, timeout, launch, memory, nvcc_option, without)
    analyse(work, render.text, render.document, files, bundled, chosen, jobs, json)


def _races(test: Test, model: Model, limits: Limits, *, most: int) -> RacesResult:
    from ptxmm.analysis.races import races as analysis

    return analysis(test, model, limits=limits, most=most)


def _answers(result: RacesResult) -> dict[str, str]:
    return {"": {True: "race-free", False: "a data race", None: result.status}[result.race_free]}
