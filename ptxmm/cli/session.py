"""What the commands that run tests share: do some work for everything that the command line names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct

from ptxmm.analysis.result import Failure
from ptxmm.cli import stdin
from ptxmm.cli.console import progress
from ptxmm.cli.inputs import collect, failure
from ptxmm.cli.options import Settings, processes
from ptxmm.cli.tasks import Entry, Work, run_all
from ptxmm.errors import PtxmmError

T = TypeVar("T")


class Session(Struct, Generic[T], frozen=True):
    """The entries to come, and the width of the longest file name."""

    entries: Iterator[Entry[T]]
    width: int


def session(
    work: Work[T], paths: list[Path] | None, bundled: bool, settings: Settings, jobs_wanted: int | None
) -> Session[T]:
    """Read every file and run every test, in as many processes as wanted, but no more than there are files."""
    files = collect(paths, bundled)
    try:
        settings = stdin.taken(settings, *(file for file in files if isinstance(file, Path)))
    except PtxmmError as error:
        files = [failure(error, stdin.NAME) if file == stdin.DASH else file for file in files]
    width = max(len(f.file if isinstance(f, Failure) else str(f)) for f in files)
    done = run_all(work, files, settings, min(processes(jobs_wanted), len(files)))
    return Session(progress(done, len(files)), min(width, 72))
