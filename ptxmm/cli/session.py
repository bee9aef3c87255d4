"""What ``check`` and ``outcomes`` share: run everything that the command line names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxmm.analysis.result import Failure, Report
from ptxmm.cli.console import progress
from ptxmm.cli.inputs import Job, collect, jobs
from ptxmm.cli.options import Settings, processes


@dataclass(frozen=True, slots=True)
class Entry:
    """A report; ``several``: its file holds more tests than this one."""

    report: Report
    several: bool


@dataclass(frozen=True, slots=True)
class Session:
    """The entries to come, and the width of the longest file name."""

    entries: Iterator[Entry]
    width: int


def session(paths: list[Path] | None, bundled: bool, settings: Settings, jobs_wanted: int | None) -> Session:
    """Read every file, then run every test: one file or one process in this process, more in a pool."""
    files = collect(paths, bundled)
    width = max(len(f.file if isinstance(f, Failure) else str(f)) for f in files)
    return Session(_entries(files, settings, min(processes(jobs_wanted), len(files))), min(width, 72))


def _entries(files: list[Path | Failure], settings: Settings, workers: int) -> Iterator[Entry]:
    # The engines are loaded here, after the files' errors could be found without them.
    from ptxmm.cli.tasks import run_here, run_parallel

    planned: list[Job | Failure] = []
    for file in files:
        planned += jobs(file, settings)
    run = run_here(iter(planned), settings) if workers == 1 else run_parallel(iter(planned), settings, workers)
    for plan, report in zip(planned, progress(run, len(planned)), strict=True):
        yield Entry(report, isinstance(plan, Job) and plan.several)
