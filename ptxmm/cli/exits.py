"""Exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ptxmm.analysis.result import Failure, Report


class Exit(IntEnum):
    """What the exit code says; of several, the first that applies of 4, 2, 1, 3, 0."""

    OK = 0
    CONTRADICTED = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    BUG = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def exit_code(reports: Iterable[Report], whole: bool = False) -> Exit:
    """The exit code for ``reports``; ``whole``: final states were asked for, so a cut list is inconclusive too."""
    found: set[Exit] = set()
    for report in reports:
        if isinstance(report, Failure):
            found.add({"internal": Exit.BUG, "timeout": Exit.INCONCLUSIVE}.get(report.kind, Exit.BAD_INPUT))
        elif report.conclusion == "contradicted":
            found.add(Exit.CONTRADICTED)
        elif report.conclusion == "inconclusive" or (whole and report.status in ("bounded", "timeout")):
            found.add(Exit.INCONCLUSIVE)
    order = (Exit.BUG, Exit.BAD_INPUT, Exit.CONTRADICTED, Exit.INCONCLUSIVE)
    return next((code for code in order if code in found), Exit.OK)
