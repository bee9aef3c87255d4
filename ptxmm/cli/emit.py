"""``ptxmm emit``: litmus tests as a CUDA program that runs them on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from ptxmm.analysis.result import Expired, Failure
from ptxmm.analysis.words import Exit
from ptxmm.cli import stdin
from ptxmm.cli.analyses import Asking
from ptxmm.cli.console import complain
from ptxmm.cli.exits import exit_of, worst
from ptxmm.cli.files import write_file
from ptxmm.cli.inputs import Job, collect
from ptxmm.cli.options import Bundled, Files, Isa, Jobs, Memory, Run, Tests, Timeout, processes
from ptxmm.cli.settings import settings
from ptxmm.cli.tasks import run_all

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.hardware.emit import Emitted


class Made(Struct, frozen=True):
    """A test as CUDA, and what it is called there."""

    comment: str
    emitted: Emitted


def emit(
    files: Files = None,
    bundled: Bundled = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write. [default: standard output]", show_default=False
        ),
    ] = None,
    isa: Isa = None,
    jobs: Jobs = None,
    timeout: Timeout = 60.0,
    memory: Memory = None,
) -> None:
    """Write litmus tests as one CUDA program that runs them on an NVIDIA GPU and prints how often each ended how.

    Build it with `nvcc -arch=sm_90 -O3 -std=c++17`; `ptxmm run --results` compares what it prints with a model. What a
    test has that cannot run is an error at its place, and the others are written all the same.
    """
    tests = Tests(files=files, bundled=bundled)
    chosen = settings(tests, Run(isa=isa, timeout=timeout, memory=memory))
    paths = collect(files, bundled)
    chosen = stdin.taken(chosen, *(path for path in paths if isinstance(path, Path)))
    made: list[tuple[str, Emitted]] = []
    codes: list[Exit] = []
    for entry in run_all(Asking(_made), paths, chosen, min(processes(jobs), len(paths))):
        match entry and entry.report:
            case Made() as report:
                made.append((report.comment, report.emitted))
            case Failure() as report:
                complain(report.text)
                codes.append(exit_of(report))
            case Expired() as report:
                complain(f"{report.file}: {report.notes[0].text}")
                codes.append(exit_of(report))
    if not made:
        raise typer.Exit(worst(codes))
    from ptxmm.hardware.emit import source

    text = source(made)
    if output is None:
        sys.stdout.write(text)
    else:
        write_file(output, text)
    raise typer.Exit(worst(codes))


def _made(job: Job, model: Model, limits: Limits) -> Made:
    """The test as CUDA: no model is asked."""
    from ptxmm.hardware.emit import emit

    return Made(f"{job.test.name} ({job.test.file})", emit(job.test))
