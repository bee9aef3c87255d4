"""The work of the commands that analyse tests (races, scopes, ...).

A command gives its analysis as a function of a module, with options bound by ``functools.partial``, so that it can go
to a worker::

    def races(tests: RaceTests, *, most: ... = 100, run: Run) -> None:
        answer(Analysis(partial(_races, most=most)), "races", tests, run)


    def _races(test: Test, model: Model, limits: Limits, *, most: int) -> RacesResult:
        from ptxmm.analysis.races import races as analysis

        return analysis(test, model, limits=limits, most=most)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import Expired, Note, expired
from ptxmm.cli.inputs import Job
from ptxmm.errors import Timeout

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.cli.exits import Found
    from ptxmm.engines.result import Limits
    from ptxmm.program.test import Test
    from ptxmm.render.text import Analysed

    class AnalysisResult(Analysed, Found, Protocol):
        """What the results of all analyses have (frozen structs)."""


R = TypeVar("R", bound="AnalysisResult")


class Analysis(Struct, Generic[R], frozen=True):
    """``function``: the analysis, which can be pickled.

    ``answers``: those in a result, by what they are about, so that the readings on which one rests can be told;
    ``brief``: an analysis that gives as many, and may list less.
    """

    function: Callable[[Test, Model, Limits], R]
    answers: Callable[[R], Mapping[str, str]] | None = None
    brief: Callable[[Test, Model, Limits], R] | None = None
    stated_models: bool = False

    def run(self, job: Job, model: Model, limits: Limits) -> R | Expired:
        """The result for one test, under the name that the user gave to the model."""
        from ptxmm.analysis.readings import basis

        found = self.function(job.test, model, limits)
        notes = (*basis(model), *found.notes, *self._readings(job, model, limits, found))
        return replace(found, model=job.model, notes=notes)  # type: ignore[type-var]

    def _readings(self, job: Job, model: Model, limits: Limits, found: R) -> tuple[Note, ...]:
        """On which readings an answer rests."""
        from ptxmm.analysis.readings import asynchronous, decided_answers
        from ptxmm.cli.inputs import model_named

        answers, brief = self.answers, self.brief or self.function
        if answers is None or found.status not in ("complete", "undefined") or not asynchronous(job.test):
            return ()

        def changed(key: str, value: str) -> Mapping[str, str]:
            readings = tuple(sorted((dict(model.readings) | {key: value}).items()))
            try:
                other = brief(job.test, model_named(job.model, readings), limits)
            except Timeout:
                return {}
            return answers(other) if other.status != "timeout" else {}

        return decided_answers(model, answers(found), changed)

    def expired(self, job: Job, seconds: float) -> R | Expired:
        """What stands for a result that did not come in time."""
        return expired(job.test.file, job.test.name, job.model, seconds)
