"""What ``check`` and ``outcomes`` do with one test under one model."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from msgspec import Struct

from ptxmm.analysis.result import FinalState, Listed, Result
from ptxmm.analysis.told import Asked, Listing, reported, streamed, verdict
from ptxmm.cat import Model
from ptxmm.cli.inputs import SOURCES, Job
from ptxmm.cli.options import Engine
from ptxmm.cli.settings import Settings
from ptxmm.cli.workers import Part
from ptxmm.engines.result import Limits


class Checking(Struct, frozen=True):
    """The options of ``told.Asked``; ``report``: say what a report shows besides."""

    engine: Engine
    all_state: bool
    listing: Listing
    all_readings: bool = False
    graphs: bool = False
    report: bool = False
    stated_models: bool = True

    def run(self, job: Job, model: Model, limits: Limits) -> Result:
        """The verdict on ``job``, as ``analysis.told.verdict`` gives it."""
        asked = Asked(self.engine.value, self.all_state, self.listing, self.all_readings, self.graphs)
        told = reported if self.report else verdict
        return told(job.test, job.model, model, limits, asked, expectation=job.expectation, claim=job.claim)

    def instead(self, file: Path, settings: Settings) -> tuple[list[Result], bool] | None:
        """Of a file with a launch that has many threads for a test, the verdicts on all of them at once."""
        if file.suffix not in SOURCES or self.engine is not Engine.auto or self.all_readings:
            return None
        from ptxmm.cli.whole import unlisted  # with the reader of kernels, which takes time to load

        return unlisted(file, settings)

    def known(self, report: Result, found: list[Result]) -> Result | None:
        """The verdict of one execution of all threads on the claim of ``report``."""
        from ptxmm.cli.whole import alike

        return alike(report, found)

    def rests(self, file: Path, settings: Settings) -> bool:
        """Of a kernel all of whose threads run."""
        if file.suffix not in SOURCES or self.engine is not Engine.auto or self.all_readings or self.report:
            return False
        from ptxmm.cli.whole import listable

        return listable(file, settings)

    def refused(self, file: Path, settings: Settings) -> list[Result] | None:
        """The verdicts of one execution of all threads, if these are any."""
        from ptxmm.cli.whole import followed

        return followed(file, settings)

    def otherwise(self, report: Result, file: Path, settings: Settings) -> Result:
        """The verdict of one execution of all threads, if that decides."""
        from ptxmm.cli.whole import decided

        return decided(report, file, settings)

    def expired(self, job: Job, seconds: float) -> Result:
        """The result of a check that was ended from outside after ``seconds``."""
        return _expired(self.engine, job, seconds)


Streamed = Result | FinalState | Listed


class Streaming(Struct, frozen=True):
    """The same as ``Checking``, with each final state as soon as it is known."""

    engine: Engine
    all_state: bool
    listing: Listing
    stated_models: bool = True

    def run(self, job: Job, model: Model, limits: Limits) -> Generator[Part[Streamed], None, Streamed]:
        """The verdict on ``job``, its final states and how many there are, as ``analysis.told.streamed`` gives them; of
        what a kernel claims there is the verdict alone."""
        asked = Asked(self.engine.value, self.all_state, self.listing)
        if job.claim is not None:
            return verdict(job.test, job.model, model, limits, asked, claim=job.claim)
        found, states = streamed(job.test, job.model, model, limits, asked, expectation=job.expectation)
        yield Part(found)
        end: Streamed = found
        for item in states:
            if isinstance(item, Listed):
                end = item
            else:
                values = item.registers, item.memory, item.satisfies
                yield Part(FinalState(found.file, found.test, found.model, *values))
        return end

    def expired(self, job: Job, seconds: float) -> Result:
        """As that of ``Checking``."""
        return _expired(self.engine, job, seconds)


def _expired(engine: Engine, job: Job, seconds: float) -> Result:
    from ptxmm.analysis import kernel
    from ptxmm.analysis.outcomes import timed_out

    if job.claim is not None:
        return kernel.expired(job.test, job.model, job.claim, seconds)
    named = "z3" if engine is Engine.auto else engine.value
    return timed_out(job.test, job.model, named, job.expectation, seconds)
