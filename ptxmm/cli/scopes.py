"""``ptxmm scopes``: where threads may run, and how narrow scopes may be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ptxmm.analysis.property import Property
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
    from ptxmm.analysis.scopes import ScopesResult
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test


def scopes(
    files: Files = None,
    bundled: Bundled = False,
    model: OwnModel = None,
    reading: Readings = None,
    without: Without = None,
    wanted: Annotated[
        Property | None,
        typer.Option(
            "--property",
            help="What must hold: the condition never, no data races, only states of sc. [default: what the launch of "
            "a kernel claims, else never]",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, metavar="N", help="List at most N choices of scopes.")] = 10,
    unroll: Unroll = 3,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    isa: Isa = None,
    launch: Launch = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """Keep the code and move the threads: a table of placements, from one warp to a GPU for each thread, with the
    verdict of each, and the narrowest scopes that keep the property.

    Exit code: 0 it holds at every placement, 1 it fails at one, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    from ptxmm.render import scopes as render

    work = Analysis("scopes", partial(_scopes, wanted=wanted, most=most))
    chosen = settings(model, reading, isa, unroll, timeout, launch, memory, nvcc_option, without)
    analyse(work, render.text, render.document, files, bundled, chosen, jobs, json)


def _scopes(test: Test, model: Model, limits: Limits, *, wanted: Property | None, most: int) -> ScopesResult:
    from ptxmm.analysis.scopes import scopes as analysis

    return analysis(test, model, wanted=wanted, limits=limits, most=most)
