"""``ptxmm check``: verdicts."""

from __future__ import annotations

import sys
import time

import typer

from ptxmm.cli.checking import Checking
from ptxmm.cli.console import complain, style
from ptxmm.cli.exits import exit_code
from ptxmm.cli.options import (
    AllReadings,
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


def check(
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
    all_readings: AllReadings = False,
    isa: Isa = None,
    launch: Launch = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """Decide the condition of each litmus test and compare with what the test expects.

    Exit code: 0 all as expected, 1 an expectation contradicted, 2 bad input, 3 inconclusive, 4 a bug of ptxmm.
    """
    start = time.perf_counter()
    chosen = settings(model, reading, isa, unroll, timeout, launch, memory, nvcc_option, without)
    work = Checking(engine, all_state, "some" if json else "none", all_readings)
    run = session(work, files, bundled, chosen, jobs)
    if json:
        from ptxmm.render.document import document

        reports = [entry.report for entry in run.entries]
        sys.stdout.write(document(reports))
        raise typer.Exit(exit_code(reports))
    from ptxmm.analysis.result import Failure
    from ptxmm.render.text import note_lines, remark_lines, summary, verdict_line

    out, reports = style(sys.stdout), []
    before: tuple[str, str] | None = None
    for entry in run.entries:
        report = entry.report
        reports.append(report)
        print(verdict_line(report, out, run.width, entry.several))
        if isinstance(report, Failure):
            complain(report.text)
        elif report.conclusion != "expected" or report.status != "complete" or all_readings:
            for line in note_lines(report):
                print(line)
        elif (report.file, report.test) != before:
            for line in remark_lines(report):
                print(line)
        before = None if isinstance(report, Failure) else (report.file, report.test)
    if len(reports) > 1:
        print(summary(reports, time.perf_counter() - start, out))
    raise typer.Exit(exit_code(reports))
