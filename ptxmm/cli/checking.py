"""What ``check`` and ``outcomes`` do with one test under one model."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.analysis.result import Result
from ptxmm.analysis.told import Asked, Listing, reported, verdict
from ptxmm.cat import Model
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Engine
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

    def expired(self, job: Job, seconds: float) -> Result:
        """The result of a check that was ended from outside after ``seconds``."""
        from ptxmm.analysis import kernel
        from ptxmm.analysis.outcomes import timed_out

        if job.claim is not None:
            return kernel.expired(job.test, job.model, job.claim, seconds)
        engine = "z3" if self.engine is Engine.auto else self.engine.value
        return timed_out(job.test, job.model, engine, job.expectation, seconds)
