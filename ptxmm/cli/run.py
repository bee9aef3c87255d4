"""``ptxmm run``: litmus tests on a GPU, compared with a model."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from ptxmm.cli.analyses import Asking
from ptxmm.cli.console import progress, style
from ptxmm.cli.frame import collected, show, width_of
from ptxmm.cli.inputs import Job, failure
from ptxmm.cli.options import OwnTests, Run, format_of, processes
from ptxmm.cli.settings import settings
from ptxmm.cli.tasks import run_all
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes
from ptxmm.render import Entry, Page

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits
    from ptxmm.hardware.campaign import Evidence, Prepared


class Hardware(Struct, frozen=True, kw_only=True):
    """How tests run on a GPU."""

    run_seconds: Annotated[
        float, typer.Option("--seconds", min=0.01, max=86400, metavar="S", help="How long each test runs on the GPU.")
    ] = 1.0
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=(1 << 62), metavar="N", help="What all choices of a run are drawn from.")
    ] = 1
    arch: Annotated[str, typer.Option("--arch", metavar="sm_N", help="The architecture of the GPU.")] = "sm_90"
    via: Annotated[
        str | None,
        typer.Option(
            "--via", metavar="COMMAND", help="Run on another machine: a command that starts `sh` there, as 'ssh host'."
        ),
    ] = None
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="FILE", help="Run nothing: take what a program of `ptxmm emit` has printed elsewhere."
        ),
    ] = None


def run(tests: OwnTests, *, hardware: Hardware, run: Run) -> None:
    """Run litmus tests on an NVIDIA GPU, millions of instances at a time, and compare what is seen with a model.

    Needs nvcc, and a GPU here or `--via` a command. Exit code: 0 nothing that the model forbids was seen, 1 it was (and
    again with another seed, in a program of its own whose machine code is that of the test), 2 bad input,
    3 inconclusive.
    """
    from ptxmm.hardware.campaign import Prepared

    start = time.perf_counter()
    files, chosen = collected(tests, settings(tests, run))
    jobs = processes(run.jobs)
    done: Iterator[Any] = run_all(Asking(_prepared), files, chosen, min(jobs, len(files)))
    entries: list[Entry[Any]] = list(progress(done, len(files)))
    ready = [entry.report for entry in entries if isinstance(entry.report, Prepared)]
    evidence = _seen(ready, hardware, jobs, run.timeout) if ready else None
    page = Page(style(sys.stdout), width_of(files), start)
    show((_judged(entry, evidence) for entry in entries), "run", format_of(run), page)


def _prepared(job: Job, model: Model, limits: Limits) -> Prepared:
    """The test as CUDA, and what the model allows."""
    from ptxmm.hardware.campaign import prepare

    return prepare(job.test, model, job.model, limits)


def _seen(ready: list[Prepared], hardware: Hardware, jobs: int, timeout: float) -> Evidence:
    """What is seen of the tests, now or in a file. Raises ``PtxmmError``."""
    from ptxmm.hardware.campaign import Evidence, run
    from ptxmm.hardware.launch import Campaign
    from ptxmm.hardware.measured import read

    if hardware.results is None:
        campaign = Campaign(hardware.run_seconds, hardware.seed, hardware.via)
        return run(ready, campaign, hardware.arch, jobs, max(timeout, 600.0))
    evidence = Evidence()
    name = str(hardware.results)
    evidence.add(*read(read_bytes(hardware.results).decode("utf-8", "replace").splitlines(), name))
    return evidence


def _judged(entry: Entry[Any], evidence: Evidence | None) -> Entry[Any]:
    """The result in the place of a test that ran."""
    from ptxmm.hardware.campaign import Prepared, judge

    one = entry.report
    if not isinstance(one, Prepared) or evidence is None:
        return entry
    try:
        return Entry(judge(one, evidence), entry.several, entry.text)
    except PtxmmError as error:
        return Entry(failure(error, one.test.file, one.test.name, one.model), entry.several, entry.text)
