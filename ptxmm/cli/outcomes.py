"""``ptxmm outcomes``: tables of final states."""

from __future__ import annotations

import sys

import typer

from ptxmm.cli.checking import Checking
from ptxmm.cli.console import complain, style
from ptxmm.cli.exits import exit_code
from ptxmm.cli.options import (
    AllState,
    Bundled,
    Engine,
    EngineOption,
    Files,
    Isa,
    Jobs,
    Json,
    Launch,
    Memory,
    Models,
    NvccOptions,
    Readings,
    Timeout,
    Unroll,
    Without,
    settings,
)
from ptxmm.cli.session import session


def outcomes(
    files: Files = None,
    bundled: Bundled = False,
    model: Models = None,
    reading: Readings = None,
    without: Without = None,
    engine: EngineOption = Engine.auto,
    unroll: Unroll = 3,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    json: Json = False,
    all_state: AllState = False,
    isa: Isa = None,
    launch: Launch = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """List every final state that the model allows; those that satisfy the test's condition are marked with *.

    Exit code: as for check; 3 also where the list may be incomplete.
    """
    chosen = settings(model, reading, isa, unroll, timeout, launch, memory, nvcc_option, without)
    run = session(Checking(engine, all_state, "all"), files, bundled, chosen, jobs)
    if json:
        from ptxmm.render.document import document

        reports = [entry.report for entry in run.entries]
        sys.stdout.write(document(reports))
        raise typer.Exit(exit_code(reports, whole=True))
    from ptxmm.analysis.result import Failure
    from ptxmm.render.text import table

    out, reports = style(sys.stdout), []
    for entry in run.entries:
        report = entry.report
        if isinstance(report, Failure):
            complain(report.text)
        else:
            if any(not isinstance(r, Failure) for r in reports):
                print()
            print(table(report, out))
        reports.append(report)
    raise typer.Exit(exit_code(reports, whole=True))
