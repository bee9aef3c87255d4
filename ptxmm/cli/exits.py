"""Exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ptxmm.analysis.result import Failure, Report


class Exit(IntEnum):
    """What the exit code says; of several, the first that applies of 4, 2, 1, 3, 0.

    ``FOUND``: an expectation is contradicted, or an analysis found what it looks for (a race, a difference, ...).
    """

    OK = 0
    FOUND = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    BUG = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """Somebody asked the process to end (``SIGTERM``)."""


def exit_code(reports: Iterable[Report], whole: bool = False) -> Exit:
    """The exit code of ``check``; ``whole``: final states were asked for, so a cut list is inconclusive too."""
    found: set[Exit] = set()
    for report in reports:
        if isinstance(report, Failure):
            found.add(error_code(report.kind))
        elif report.conclusion == "contradicted":
            found.add(Exit.FOUND)
        elif report.conclusion == "inconclusive" or (whole and report.status in ("bounded", "timeout")):
            found.add(Exit.INCONCLUSIVE)
    return worst(found)


def error_code(kind: str) -> Exit:
    """The exit code for an error of this kind."""
    if kind == "internal":
        return Exit.BUG
    return Exit.INCONCLUSIVE if kind in ("timeout", "memory", "killed") else Exit.BAD_INPUT


def worst(found: Iterable[Exit]) -> Exit:
    """The exit code of a command whose parts give the codes ``found``."""
    codes = set(found)
    order = (Exit.BUG, Exit.BAD_INPUT, Exit.FOUND, Exit.INCONCLUSIVE)
    return next((code for code in order if code in codes), Exit.OK)
