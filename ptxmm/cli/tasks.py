"""Work on one test under one model, in this process or in a worker of a pool; each ends by its deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from ptxmm.analysis.claims import limits_of
from ptxmm.analysis.result import Failure
from ptxmm.cat import Model
from ptxmm.cli.inputs import Job, bug, failure, model_named
from ptxmm.cli.options import Settings
from ptxmm.cli.watchdog import watched
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout

if TYPE_CHECKING:
    from pebble import ProcessFuture

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

GRACE = 2.0
"""Seconds that a worker has to notice its deadline by itself before the parent ends it."""


class Work(Protocol[T_co]):
    """What a command does with one test under one model. It goes to other processes, so it can be pickled.

    ``stated_models``: a test runs under every model of its ``Expect=``, if the command line names none.
    """

    @property
    def stated_models(self) -> bool: ...

    def run(self, job: Job, model: Model, limits: Limits) -> T_co:
        """The result for ``job``. May raise ``PtxmmError``, ``Timeout`` among them."""
        ...

    def expired(self, job: Job, seconds: float) -> T_co:
        """The result for ``job`` where ``run`` was ended after ``seconds`` and gave none."""
        ...


def run(work: Work[T], job: Job, settings: Settings) -> T | Failure:
    """The result of ``work`` for ``job``, or the error that it ended in."""
    limits = limits_of(job.test, Limits(unroll=settings.unroll, deadline=time.monotonic() + settings.timeout))
    try:
        return work.run(job, model_named(job.model, settings.readings), limits)
    except Timeout:
        return work.expired(job, settings.timeout)
    except PtxmmError as error:
        return failure(error.place(job.test.file, job.test.text), job.test.file, job.test.name, job.model)
    except Exception as error:
        return failure(bug(error), job.test.file, job.test.name, job.model)


def run_here(work: Work[T], entries: Iterator[Job | Failure], settings: Settings) -> Iterator[T | Failure]:
    """Each entry in this process. A watchdog ends what does not notice its deadline."""
    for entry in entries:
        if isinstance(entry, Failure):
            yield entry
            continue
        try:
            with watched(settings.timeout + GRACE):
                report = run(work, entry, settings)
        except Timeout:
            report = work.expired(entry, settings.timeout)
        yield report


def run_parallel(
    work: Work[T], entries: Iterator[Job | Failure], settings: Settings, workers: int
) -> Iterator[T | Failure]:
    """Each entry in a pool of ``workers`` new processes, in order; the pool ends a worker that passes its deadline."""
    import multiprocessing

    from pebble import ProcessExpired, ProcessPool

    pool = ProcessPool(max_workers=workers, context=multiprocessing.get_context("spawn"))
    try:
        scheduled: list[Failure | tuple[Job, ProcessFuture[T | Failure]]] = [
            e
            if isinstance(e, Failure)
            else (e, pool.schedule(run, args=[work, e, settings], timeout=settings.timeout + GRACE))
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
                yield work.expired(job, settings.timeout)
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
