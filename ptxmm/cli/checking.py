"""What ``check`` and ``outcomes`` do with one test under one model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import Note, Result
from ptxmm.cat import Model
from ptxmm.cli.inputs import Job, model_named
from ptxmm.cli.options import Engine
from ptxmm.engines.result import Limits


class Checking(Struct, frozen=True):
    """``listing``: ``none`` (the verdict and its witnesses), ``all`` final states, or the verdict and then at most so
    many. ``all_readings``: say which readings of the model the verdict rests on."""

    engine: Engine
    all_state: bool
    listing: int | Literal["none", "all"]
    all_readings: bool = False
    stated_models: bool = True

    def run(self, job: Job, model: Model, limits: Limits) -> Result:
        """The verdict on ``job``, as ``analysis.outcomes.check`` gives it."""
        from ptxmm.analysis import kernel
        from ptxmm.analysis.outcomes import check, check_listed
        from ptxmm.analysis.readings import basis, decided_by, may_decide, vary

        if job.claim is not None:
            found = kernel.decide(job.test, model, job.claim, limits, self.engine.value)
            notes = (*basis(model), *found.notes)
            if found.holds is False and may_decide(job.test, found):
                notes += decided_by(found, vary(model, self._changed(job, model, limits), told=True))
            return replace(found, model=job.model, notes=notes)
        engine = self.engine.value
        if isinstance(self.listing, int):
            result = check_listed(
                job.test,
                model,
                self.listing,
                engine=engine,
                limits=limits,
                expectation=job.expectation,
                all_state=self.all_state,
            )
        else:
            result = check(
                job.test,
                model,
                engine=engine,
                limits=limits,
                expectation=job.expectation,
                all_state=self.all_state,
                enumerate_all=self.listing == "all",
            )
        if job.test.claims is not None:
            result = kernel.explained(job.test, result)
        if result.status == "undefined":
            from ptxmm.analysis.undefined import with_reasons  # with Z3, which takes time to load

            result = with_reasons(job.test, model, result, limits)
        if self.all_readings or may_decide(job.test, result):
            result = replace(result, notes=(*result.notes, *self._readings(job, model, result, limits)))
        # A model of the user's own is called by its path: its stem may be the name of a shipped one.
        return replace(result, model=job.model)

    def expired(self, job: Job, seconds: float) -> Result:
        """The result of a check that was ended from outside after ``seconds``."""
        from ptxmm.analysis import kernel
        from ptxmm.analysis.outcomes import timed_out

        if job.claim is not None:
            return kernel.expired(job.test, job.model, job.claim, seconds)
        engine = "z3" if self.engine is Engine.auto else self.engine.value
        return timed_out(job.test, job.model, engine, job.expectation, seconds)

    def _readings(self, job: Job, model: Model, result: Result, limits: Limits) -> tuple[Note, ...]:
        """The remarks on what the verdict rests on; every variation has to be decided by the deadline of the job."""
        from ptxmm.analysis.readings import decided_by, rests_on, vary

        changed = self._changed(job, model, limits)
        if self.all_readings:
            return rests_on(result, vary(model, changed))
        return decided_by(result, vary(model, changed, told=True))

    def _changed(self, job: Job, model: Model, limits: Limits) -> Callable[[str, str], Result]:
        """The verdict on ``job`` with one reading of ``model`` changed."""
        from ptxmm.analysis import kernel
        from ptxmm.analysis.outcomes import check

        def changed(key: str, value: str) -> Result:
            other = model_named(job.model, tuple(sorted((dict(model.readings) | {key: value}).items())))
            if job.claim is not None:
                return kernel.decide(job.test, other, job.claim, limits, self.engine.value)
            return check(job.test, other, engine=self.engine.value, limits=limits, enumerate_all=False)

        return changed
