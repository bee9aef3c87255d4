"""One test under one model, in this process or in a worker of a pool; each ends by its deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ptxmm.analysis.outcomes import check, check_listed, timed_out
from ptxmm.analysis.readings import rests_on, vary
from ptxmm.analysis.result import Failure, Note, Report, Result
from ptxmm.cat import Model, load
from ptxmm.cli.inputs import Job, bug, failure
from ptxmm.cli.options import MOST, Settings
from ptxmm.cli.watchdog import watched
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout

if TYPE_CHECKING:
    from pebble import ProcessFuture

GRACE = 2.0
"""Seconds that a worker has to notice its deadline by itself before the parent ends it."""


def run(job: Job, settings: Settings) -> Report:
    """The result of ``job``, or the error that it ended in."""
    limits = Limits(unroll=settings.unroll, deadline=time.monotonic() + settings.timeout)
    engine = settings.engine.value
    try:
        model = _model(job.model, settings.readings)
        if settings.listing == "some":
            result = check_listed(
                job.test,
                model,
                MOST,
                engine=engine,
                limits=limits,
                expectation=job.expectation,
                all_state=settings.all_state,
            )
        else:
            result = check(
                job.test,
                model,
                engine=engine,
                limits=limits,
                expectation=job.expectation,
                all_state=settings.all_state,
                enumerate_all=settings.listing == "all",
            )
        if settings.all_readings:
            result = replace(result, notes=(*result.notes, *_readings(job, settings, result, limits)))
        # A model of the user's own is called by its path: its stem may be the name of a shipped one.
        return replace(result, model=job.model)
    except Timeout:
        return _timed_out(job, settings)
    except PtxmmError as error:
        return failure(error.place(job.test.file, job.test.text), job.test.file, job.test.name, job.model)
    except Exception as error:
        return failure(bug(error), job.test.file, job.test.name, job.model)


def _readings(job: Job, settings: Settings, result: Result, limits: Limits) -> tuple[Note, ...]:
    """The remarks on what the verdict rests on; every variation has to be decided by the deadline of the job."""

    def changed(key: str, value: str) -> Result:
        model = _model(job.model, tuple(sorted((dict(settings.readings) | {key: value}).items())))
        return check(job.test, model, engine=settings.engine.value, limits=limits, enumerate_all=False)

    return rests_on(result, vary(_model(job.model, settings.readings), changed))


def run_here(entries: Iterator[Job | Failure], settings: Settings) -> Iterator[Report]:
    """Each entry in this process. A watchdog ends what does not notice its deadline."""
    for entry in entries:
        if isinstance(entry, Failure):
            yield entry
            continue
        try:
            with watched(settings.timeout + GRACE):
                report = run(entry, settings)
        except Timeout:
            report = _timed_out(entry, settings)
        yield report


def run_parallel(entries: Iterator[Job | Failure], settings: Settings, workers: int) -> Iterator[Report]:
    """Each entry in a pool of ``workers`` new processes, in order; the pool ends a worker that passes its deadline."""
    import multiprocessing

    from pebble import ProcessExpired, ProcessPool

    pool = ProcessPool(max_workers=workers, context=multiprocessing.get_context("spawn"))
    try:
        scheduled: list[Failure | tuple[Job, ProcessFuture[Report]]] = [
            e
            if isinstance(e, Failure)
            else (e, pool.schedule(run, args=[e, settings], timeout=settings.timeout + GRACE))
            for e in entries
        ]
        for entry in scheduled:
            if isinstance(entry, Failure):
                yield entry
                continue
            job, future = entry
            try:
                yield future.result()
            except TimeoutError:
                yield _timed_out(job, settings)
            except ProcessExpired as error:
                yield failure(_died(error.exitcode), job.test.file, job.test.name, job.model)
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _died(code: int | None) -> PtxmmError:
    return PtxmmError(
        f"the process that ran this test ended (exit code {code})",
        kind="internal",
        hint="it may have run out of memory: try --jobs 1, or a lower --unroll",
    )


def _timed_out(job: Job, settings: Settings) -> Report:
    engine = "z3" if settings.engine.value == "auto" else settings.engine.value
    return timed_out(job.test, job.model, engine, job.expectation, settings.timeout)


@lru_cache(maxsize=16)
def _model(name: str, readings: tuple[tuple[str, str], ...]) -> Model:
    """Models are loaded once a process."""
    return load(name, dict(readings))
