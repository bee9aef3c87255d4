"""What the commands that run tests share: do some work for everything that the command line names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ptxmm.analysis.result import Failure
from ptxmm.cli.console import progress
from ptxmm.cli.inputs import Job, collect, jobs
from ptxmm.cli.options import Settings, processes

if TYPE_CHECKING:
    from ptxmm.cli.tasks import Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry(Generic[T]):
    """A result or an error; ``several``: its file holds more tests than this one."""

    report: T | Failure
    several: bool


@dataclass(frozen=True, slots=True)
class Session(Generic[T]):
    """The entries to come, and the width of the longest file name."""

    entries: Iterator[Entry[T]]
    width: int


def session(
    work: Work[T], paths: list[Path] | None, bundled: bool, settings: Settings, jobs_wanted: int | None
) -> Session[T]:
    """Read every file, then run every test: one file or one process in this process, more in a pool."""
    files = collect(paths, bundled)
    width = max(len(f.file if isinstance(f, Failure) else str(f)) for f in files)
    return Session(_entries(work, files, settings, min(processes(jobs_wanted), len(files))), min(width, 72))


def _entries(work: Work[T], files: list[Path | Failure], settings: Settings, workers: int) -> Iterator[Entry[T]]:
    # The engines are loaded here, after the files' errors could be found without them.
    from ptxmm.cli.tasks import run_here, run_parallel

    planned: list[Job | Failure] = []
    for file in files:
        planned += jobs(file, settings, work.stated_models)
    todo = iter(planned)
    done = run_here(work, todo, settings) if workers == 1 else run_parallel(work, todo, settings, workers)
    for plan, report in zip(planned, progress(done, len(planned)), strict=True):
        yield Entry(report, isinstance(plan, Job) and plan.several)
