"""Which exit code a report asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ptxmm.analysis.result import Failure
from ptxmm.analysis.words import Exit


class Found(Protocol):
    """The result of an analysis. ``finding``: True where something was found that the user asked to be told (a race, a
    property that fails), None where a longer search could find it."""

    @property
    def finding(self) -> bool | None: ...


class Terminated(KeyboardInterrupt):
    """Somebody asked the process to end (``SIGTERM``)."""


def exit_of(report: Found | Failure) -> Exit:
    """The exit code that one report asks for."""
    if isinstance(report, Failure):
        return error_code(report.error.kind)
    return {True: Exit.FOUND, False: Exit.OK, None: Exit.INCONCLUSIVE}[report.finding]


def error_code(kind: str) -> Exit:
    """The exit code for an error of this kind."""
    if kind == "internal":
        return Exit.BUG
    return Exit.INCONCLUSIVE if kind in ("timeout", "memory", "killed") else Exit.BAD_INPUT


def worst(found: Iterable[Exit]) -> Exit:
    """The exit code of a command whose parts give the codes ``found``."""
    codes = set(found)
    return next(code for code in Exit if code in codes or code is Exit.OK)
