"""Work on the tests of files, each file read and worked on in a process of its own time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import ALL_THREADS, Failure
from ptxmm.cli.inputs import SOURCES, Job, bug, failure, jobs, model_named
from ptxmm.cli.memory import MEGABYTE, is_shortage, share
from ptxmm.cli.settings import Settings
from ptxmm.cli.workers import Bounds, Lost, Part, events
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.render import Entry

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.engines.result import Limits

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Work(Protocol[T_co]):
    """What a command does with one test under one model. It goes to other processes, so it can be pickled.

    ``stated_models``: a test runs under every model of its ``Expect=``, if the command line names none.
    """

    @property
    def stated_models(self) -> bool: ...

    def run(self, job: Job, model: Model, limits: Limits) -> T_co | Generator[Part[T_co], None, T_co]:
        """The result for ``job``, which may come in parts. May raise ``PtxmmError``, ``Timeout`` among them."""
        ...

    def expired(self, job: Job, seconds: float) -> T_co:
        """The result for ``job`` where ``run`` was ended after ``seconds`` and gave none."""
        ...


@runtime_checkable
class Instead(Protocol):
    """Work that can do without the tests of some files, or without an end of the work on them."""

    def instead(self, file: Path, settings: Settings) -> tuple[list[Any], bool] | None:
        """What is known of a file before its tests are read, and whether these are not to be; None: nothing. May raise
        ``PtxmmError``."""
        ...

    def known(self, report: Any, found: list[Any]) -> Any | None:
        """Of results that are known of a file that of the test of ``report``, if there is one."""
        ...

    def rests(self, file: Path, settings: Settings) -> bool:
        """Whether the last quarter of the time for each test of a file is for ``otherwise``, and ``refused`` is asked
        where its tests are not supported."""
        ...

    def refused(self, file: Path, settings: Settings) -> list[Any] | None:
        """The results for a file whose tests are not supported, None where there are none either."""
        ...

    def otherwise(self, report: Any, file: Path, settings: Settings) -> Any:
        """What is told in the place of a ``report`` that the time was over."""
        ...


class Planned(Struct, Generic[T], frozen=True):
    """A test under a model to come, with its ``text``. ``expired``: its report if its time is over before it has given
    one."""

    file: str
    test: str
    text: str
    model: str
    several: bool
    expired: T


def run(work: Work[T], job: Job, settings: Settings) -> Generator[Part[T], None, T | Failure]:
    """The result of ``work`` for ``job``, or the error that it ended in; in this process, as long as it takes."""
    from ptxmm.analysis.claims import limits_of
    from ptxmm.engines.result import Limits

    limits = limits_of(job.test, Limits(unroll=settings.unroll, deadline=time.monotonic() + settings.timeout))
    try:
        found = work.run(job, model_named(job.model, settings.readings), limits)
        return (yield from found) if isinstance(found, Generator) else found
    except Timeout:
        return work.expired(job, settings.timeout)
    except PtxmmError as error:
        return failure(error.place(job.test.file, job.test.text), job.test.file, job.test.name, job.model)
    except Exception as error:
        if is_shortage(error):
            raise
        return failure(bug(error), job.test.file, job.test.name, job.model)


def run_all(
    work: Work[T], files: Sequence[Path | Failure], settings: Settings, processes: int
) -> Iterator[Entry[T] | None]:
    """What ``work`` gives for every test of ``files``, part by part, in order, and None after each file.

    Each file is read and worked on in one of ``processes`` others; the time limit holds for the reading, and for each
    test under each model. A process that passes it, or its share of the memory, costs one report at most.
    """
    paths = [file for file in files if isinstance(file, Path)]
    step = partial(_file, work, settings)
    coming = events(step, paths, processes, bounds(settings, processes), is_timeout)
    upcoming = next(coming, None)
    position = -1
    for file in files:
        if isinstance(file, Failure):
            yield Entry(file, False)
        else:
            position += 1
            plan: list[Planned[T] | Failure] = []
            while upcoming is not None and upcoming[0] == position:
                _, number, message = upcoming
                if number > 0:
                    planned = plan[number - 1]
                    if isinstance(message, Part) and message.instead is not None and isinstance(planned, Planned):
                        plan[number - 1] = replace(planned, expired=message.instead)
                    yield _entry(plan[number - 1], message, settings, processes)
                elif isinstance(message, Lost):
                    error = lost(message, "the reading of this file", settings, processes, str(file))
                    if file.suffix in SOURCES and error.kind == "timeout":
                        error.hint = f"{error.hint}; {ALL_THREADS}"
                    yield Entry(failure(error, str(file)), False)
                else:
                    plan = list(cast("Sequence[Planned[T] | Failure]", message))
                upcoming = next(coming, None)
        yield None


def once(function: Callable[[], T], file: str, settings: Settings) -> T:
    """What ``function``, which reads ``file``, gives, in another process with the limits of ``settings``.

    Raises ``PtxmmError``: as the function does, and where the process ends before it.
    """
    for _, number, message in events(_call, [function], 1, bounds(settings, 1), is_timeout):
        if isinstance(message, Lost):
            raise lost(message, "the work on this file", settings, 1, file)
        if number == 0:
            continue
        if isinstance(message, PtxmmError):
            raise message
        (value,) = cast("tuple[T]", message)
        return value
    raise AssertionError("a process ended without a word")


def told(function: Callable[[], Iterator[T]], file: str, settings: Settings) -> Iterator[T]:
    """What ``function``, which reads ``file``, tells, as it comes, in another process with the limits of ``settings``.

    Raises ``PtxmmError``: as the function does, and where the process ends before it."""
    for _, number, message in events(_tell, [function], 1, bounds(settings, 1), is_timeout):
        if isinstance(message, Lost):
            raise lost(message, "the work on this file", settings, 1, file)
        if isinstance(message, PtxmmError):
            raise message
        if isinstance(message, Part) and number:
            yield message.value


def bounds(settings: Settings, processes: int) -> Bounds:
    """The limits of each of ``processes``."""
    memory = share(processes) if settings.memory is None else settings.memory * MEGABYTE
    return Bounds(settings.timeout, memory)


def is_timeout(report: object) -> bool:
    """Whether a report says that the time limit was reached."""
    if isinstance(report, Timeout):
        return True
    return (report.error.kind if isinstance(report, Failure) else getattr(report, "status", None)) == "timeout"


def _file(
    work: Work[T], settings: Settings, file: Path, done: int
) -> Generator[T | Failure | Part[T] | Sequence[Any], bool, None]:
    """Read a file and work on its tests. See ``workers.Step``."""
    settings, found = replace(settings, printed={}), list[Job | Failure]()
    early = _instead(work, file, settings) if isinstance(work, Instead) else None
    known, enough = early or ([], False)
    told = known if enough else None
    rests = told is None and isinstance(work, Instead) and work.rests(file, settings)
    if told is None:
        found = list(jobs(file, settings, work.stated_models))
    if rests and found and all(isinstance(item, Failure) and item.error.kind == "unsupported" for item in found):
        assert isinstance(work, Instead)
        told = work.refused(file, settings)
    if told is not None:
        yield [
            item if isinstance(item, Failure) else Planned(item.file, item.test, "", item.model, len(told) > 1, item)
            for item in told
        ]
        for item in told[done:]:
            while (yield item):
                pass
        return
    if any(isinstance(item, Job) for item in found):
        import_module("ptxmm.engines.symbolic.solve")  # loading this is not for the time of a test
    plan: list[Planned[T] | Failure] = []
    for item in found:
        if isinstance(item, Failure):
            plan.append(item)
        else:
            stand_in = _known(work, item, settings, known) or work.expired(item, settings.timeout)
            plan.append(Planned(item.test.file, item.test.name, item.test.text, item.model, item.several, stand_in))
    yield plan
    for item in found[done:]:
        report = item if isinstance(item, Failure) else (yield from _told(work, item, file, settings, rests, known))
        while (yield report):
            assert isinstance(item, Job)
            report = yield from _told(work, item, file, settings, rests, known)


def _told(
    work: Work[T], job: Job, file: Path, settings: Settings, rests: bool, known: list[Any]
) -> Generator[Part[T], None, T | Failure]:
    """As ``run``, and what ``work`` tells ``otherwise`` where the time is over, if it ``rests`` on that; what is
    ``known`` of the file where that decides, or the time is over."""
    if (found := _known(work, job, settings, known)) is not None:
        if getattr(found, "holds", None) is not None:
            return found
        report = yield from run(work, job, settings)
        return found if not isinstance(report, Failure) and is_timeout(report) else report
    if not rests:
        return (yield from run(work, job, settings))
    report = yield from run(work, job, replace(settings, timeout=settings.timeout * 3 / 4))
    if isinstance(work, Instead) and not isinstance(report, Failure) and is_timeout(report):
        told: T = work.otherwise(report, file, replace(settings, timeout=settings.timeout / 4))
        return told
    return report


def _known(work: Work[T], job: Job, settings: Settings, known: list[Any]) -> T | None:
    """What is ``known`` of a test."""
    if not known or not isinstance(work, Instead):
        return None
    found: T | None = work.known(work.expired(job, settings.timeout), known)
    return found


def _instead(work: Instead, file: Path, settings: Settings) -> tuple[list[Any], bool] | None:
    try:
        return work.instead(file, settings)
    except PtxmmError as error:
        return [failure(error, str(file))], True


def _call(function: Callable[[], T], done: int) -> Generator[object, bool, None]:
    """The result of ``function``, or the error that it raises. See ``workers.Step``."""
    yield (None,)
    again = True
    while again:
        try:
            again = yield (function(),)
        except PtxmmError as error:
            again = yield error


def _tell(function: Callable[[], Iterator[T]], done: int) -> Generator[object, bool, None]:
    """The parts that ``function`` tells, or the error that it raises. See ``workers.Step``."""
    yield (None,)
    try:
        for part in function():
            yield Part(part)
        yield ()
    except PtxmmError as error:
        yield error


def _entry(planned: Planned[T] | Failure, message: object, settings: Settings, processes: int) -> Entry[T]:
    if isinstance(planned, Failure):
        return Entry(planned, False)
    if not isinstance(message, Lost):
        found = message.value if isinstance(message, Part) else message
        return Entry(cast("T | Failure", found), planned.several, planned.text)
    if message.reason == "time":
        return Entry(planned.expired, planned.several, planned.text)
    error = lost(message, "this test", settings, processes, planned.file)
    return Entry(failure(error, planned.file, planned.test, planned.model), planned.several, planned.text)


def lost(found: Lost, what: str, settings: Settings, processes: int, file: str) -> PtxmmError:
    """The error to tell where a process ended before it was done with ``what``."""
    match found.reason:
        case "time":
            message = f"the time limit of {settings.timeout:g} s ended {what}"
            return PtxmmError(message, kind="timeout", file=file, hint="--timeout takes a higher one")
        case "memory":
            size = bounds(settings, processes).memory
            limit = "the memory of this machine" if size is None else f"the memory limit of {size // MEGABYTE} MB"
            hint = "--memory takes a higher one" + ("; --jobs 1 leaves more to each process" if processes > 1 else "")
            return PtxmmError(f"{limit} ended {what}", kind="memory", file=file, hint=hint)
        case "killed":
            message = f"the process that did {what} was killed ({found.detail})"
            hint = "the machine may be short of memory: try --jobs 1, or a lower --memory or --unroll"
            return PtxmmError(message, kind="killed", file=file, hint=hint)
        case _:
            message = f"internal error: the process that did {what} ended ({found.detail})"
            return PtxmmError(message, kind="internal", file=file, hint="this is a bug in ptxmm; please report it")
