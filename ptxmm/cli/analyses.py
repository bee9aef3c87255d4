"""The work of the commands that analyse tests (races, scopes, ...).

A command gives its analysis as a function that can go to a worker; most by name::

    def races(tests: RaceTests, *, most: ... = 100, run: Run) -> None:
        answer(Analysis(named("races", most=most)), "races", tests, run)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from ptxmm.analysis.result import Expired, expired
from ptxmm.cli.inputs import Job

if TYPE_CHECKING:
    from ptxmm.analysis.result import Analysed
    from ptxmm.cat import Model
    from ptxmm.cli.exits import Found
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

    class AnalysisResult(Analysed, Found, Protocol):
        """What the results of all analyses have (frozen structs)."""


R = TypeVar("R", bound="AnalysisResult")


class Analysis(Struct, Generic[R], frozen=True):
    """``function``: the analysis, which can be pickled; ``brief``: see ``told.analysed``."""

    function: Callable[[Test, Model, Limits], R]
    brief: Callable[[Test, Model, Limits], R] | None = None
    stated_models: bool = False

    def run(self, job: Job, model: Model, limits: Limits) -> R | Expired:
        """The result for one test, under the name that the user gave to the model."""
        from ptxmm.analysis.told import analysed

        return analysed(job.test, job.model, model, limits, self.function, self.brief)

    def expired(self, job: Job, seconds: float) -> R | Expired:
        """What stands for a result that did not come in time."""
        return expired(job.test.file, job.test.name, job.model, seconds)


def named(name: str, **options: object) -> Callable[[Test, Model, Limits], Any]:
    """The analysis that is a function of the module of its name, with ``options``; that is loaded where it works."""
    return partial(_run, name, options)


def _run(name: str, options: dict[str, object], test: Test, model: Model, limits: Limits) -> Any:
    return getattr(import_module(f"ptxmm.analysis.{name}"), name)(test, model, limits=limits, **options)
