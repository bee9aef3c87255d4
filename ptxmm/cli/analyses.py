"""The work of the commands that ask one thing of each test (races, scopes, ...).

A command gives it as a function that can go to a worker; most an analysis by its name::

    def races(tests: OwnTests, *, most: ... = 100, run: Run) -> None:
        answer(analysis(named("races", most=most)), "races", tests, run)
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from ptxmm.analysis.result import Expired, expired

if TYPE_CHECKING:
    from ptxmm.analysis.result import Analysed
    from ptxmm.cat import Model
    from ptxmm.cli.exits import Found
    from ptxmm.cli.inputs import Job
    from ptxmm.cli.workers import Part
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test

    class AnalysisResult(Analysed, Found, Protocol):
        """What the results of all analyses have (frozen structs)."""

    Function = Callable[[Test, Model, Limits], "R"]


R = TypeVar("R", bound="AnalysisResult")
T = TypeVar("T")


class Asking(Struct, Generic[T], frozen=True):
    """``function``: what is done with a test, which can be pickled. See ``tasks.Work``."""

    function: Callable[[Job, Model, Limits], T | Generator[Part[Any], None, T]]
    stated_models: bool = False

    def run(self, job: Job, model: Model, limits: Limits) -> T | Generator[Part[Any], None, T]:
        """The result for one test."""
        return self.function(job, model, limits)

    def expired(self, job: Job, seconds: float) -> T | Expired:
        """What stands for a result that did not come in time."""
        return expired(job.test.file, job.test.name, job.model, seconds)


def analysis(function: Function[R], brief: Function[R] | None = None) -> Asking[R | Expired]:
    """The work of an analysis; ``brief``: see ``told.analysed``."""
    return Asking(partial(_analysed, function, brief))


def named(name: str, **options: object) -> Function[Any]:
    """The analysis that is a function of the module of its name, with ``options``; that is loaded where it works."""
    return partial(_run, name, options)


def _analysed(function: Function[R], brief: Function[R] | None, job: Job, model: Model, limits: Limits) -> R:
    """The result for one test, under the name that the user gave to the model."""
    from ptxmm.analysis.told import analysed

    return analysed(job.test, job.model, model, limits, function, brief)


def _run(name: str, options: dict[str, object], test: Test, model: Model, limits: Limits) -> Any:
    return getattr(import_module(f"ptxmm.analysis.{name}"), name)(test, model, limits=limits, **options)
