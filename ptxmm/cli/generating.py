"""Which cycles become tests: those that are given, or those of a family that say something."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.cli.inputs import model_named
from ptxmm.cli.options import Cycles
from ptxmm.cli.settings import Settings
from ptxmm.cli.tasks import bounds, lost
from ptxmm.cli.workers import Lost, events, never
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.generate.cycles.cycle import Cycle, parse, uniform
from ptxmm.generate.cycles.edges import BARRIERS
from ptxmm.generate.cycles.family import Family, checked, drawn, every, shapes
from ptxmm.generate.cycles.litmus import litmus
from ptxmm.generate.cycles.strength import stronger, weakest

MODEL = "ptx-8.5"
"""The model that decides which conditions can be met at all, and is asked where none is named."""
_BATCH = 100
_ALONE = 60.0
"""Seconds to decide whether the accesses of a test alone can meet its condition."""


class Wanted(Struct, frozen=True):
    """What is asked of a test: of a ``family``, a condition that can be met, but in no sequentially consistent
    execution; ``interesting``: see ``--interesting``; ``separate``: models that say different things."""

    family: bool
    interesting: bool = False
    model: str = MODEL
    separate: tuple[str, ...] = ()


class Generated(Struct, frozen=True):
    """A cycle, and what is said of its test besides."""

    cycle: Cycle
    remark: str = ""

    @property
    def text(self) -> str:
        """The litmus test."""
        return litmus(self.cycle, remark=self.remark)


def generated(options: Cycles, model: str, settings: Settings, jobs: int) -> Iterator[Generated | PtxmmError]:
    """The tests that the options ask for, and an error for each of which it could not be decided.

    Raises ``PtxmmError`` for what is wrong with the options.
    """
    separate = tuple(re.findall(r"[^,\[]+(?:\[[^\]]*\])?", options.separate or ""))
    if options.separate is not None and len(separate) != 2:
        message = f"--separate {options.separate}: two models"
        raise PtxmmError(message, kind="usage", hint="e.g. --separate ptx-6.0,ptx-8.5")
    for name in (model, *separate):
        model_named(name, settings.readings)
    wanted = Wanted(not options.cycles, options.interesting, model, separate)
    count = options.sample
    found = _judged(_candidates(options), wanted, settings, jobs, count)
    return found if count is None else _first(found, count)


def _first(found: Iterator[Generated | PtxmmError], count: int) -> Iterator[Generated | PtxmmError]:
    for one in found:
        yield one
        count -= isinstance(one, Generated)
        if not count:
            return


def described(options: Cycles) -> dict[str, object]:
    """What the options say of a family."""
    names = ("threads", "instructions", "orders", "scopes", "placements", "edges")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    return {
        name: value if isinstance(value, int) else tuple(word for word in re.split(r"[\s,]+", value) if word)
        for name, value in given.items()
    }


def _candidates(options: Cycles) -> Iterator[Cycle]:
    named = described(options)
    if options.cycles:
        if named or options.sample is not None:
            raise PtxmmError("cycles are given, and a family is described", kind="usage", hint="one or the other")
        return iter(dict.fromkeys([parse(text) for text in options.cycles]))
    family = checked(Family(**named))  # type: ignore[arg-type]
    found = list(shapes(family))
    return every(family, found) if options.sample is None else drawn(family, found, options.seed)


def _judged(
    candidates: Iterator[Cycle], wanted: Wanted, settings: Settings, jobs: int, count: int | None
) -> Iterator[Generated | PtxmmError]:
    """Those of ``candidates`` that are as ``wanted``, in order."""
    if not (wanted.family or wanted.interesting or wanted.separate):
        yield from map(Generated, candidates)
        return
    step = partial(_judge, wanted, settings)
    size = 50 * _BATCH if count is None else max(_BATCH, 2 * count)
    while chunk := list(islice(candidates, size)):
        batches = [chunk[at : at + _BATCH] for at in range(0, len(chunk), _BATCH)]
        for number, at, message in events(step, batches, min(jobs, len(batches)), bounds(settings, jobs), never):
            if isinstance(message, Lost):
                name = batches[number][max(0, at - 1)].name
                yield lost(message, "this test", settings, jobs, name)
            elif isinstance(message, PtxmmError):
                yield message
            elif at and isinstance(message, str):
                yield Generated(batches[number][at - 1], message)


def _judge(
    wanted: Wanted, settings: Settings, batch: Sequence[Cycle], done: int
) -> Generator[Sequence[Cycle] | str | bool | PtxmmError, bool, None]:
    """What is said of each cycle of a batch, False where it is not as wanted. See ``workers.Step``."""
    yield batch
    for cycle in batch[done:]:
        try:
            remark = remark_on(cycle, wanted, settings.readings, settings.timeout)
            yield False if remark is None else remark
        except PtxmmError as error:
            error.file = cycle.name
            yield error


Readings = tuple[tuple[str, str], ...]


def remark_on(cycle: Cycle, wanted: Wanted, readings: Readings, seconds: float = 60.0) -> str | None:
    """What is said of a cycle that is as ``wanted``, None of another; ``seconds``: for each test that this needs.
    Raises ``PtxmmError``, ``Timeout`` among others."""
    if wanted.family and not meaningful(cycle):
        return None
    remarks = []
    if wanted.interesting:
        model = wanted.model
        if _said(cycle, model, readings, seconds) != "allowed":
            return None
        found = next((s for s in stronger(cycle) if _said(s, model, readings, seconds) == "forbidden"), None)
        if found is None:
            return None
        remarks.append(f"{model} allows it, but not {found.name}.")
    if wanted.separate:
        said = [_said(cycle, name, readings, seconds) for name in wanted.separate]
        if None in said or said[0] == said[1]:
            return None
        words = [f"{name}: {word}" for name, word in zip(wanted.separate, said, strict=True)]
        remarks.append(f"{', '.join(words)}.")
    return " ".join(remarks)


@lru_cache(maxsize=1 << 16)
def meaningful(cycle: Cycle) -> bool:
    """Whether the condition can be met by the accesses alone, all weak and without barriers, under ``MODEL``, and is
    met in no sequentially consistent execution."""
    return _of_shape(weakest(cycle))


@lru_cache(maxsize=1 << 16)
def _of_shape(cycle: Cycle) -> bool:
    far = uniform("gpu", len(cycle.threads))
    if not any(one.kind in BARRIERS for one in cycle.edges) and cycle.places != far:
        return _of_shape(replace(cycle, places=far))
    alone = _observed(litmus(cycle, barriers=False), MODEL, (), _ALONE)
    return alone == "allowed" and _observed(litmus(cycle), "sc", (), _ALONE) == "forbidden"


@lru_cache(maxsize=1 << 16)
def _said(cycle: Cycle, model: str, readings: Readings, seconds: float) -> str | None:
    return _observed(litmus(cycle), model, readings, seconds)


def _observed(text: str, model: str, readings: Readings, seconds: float) -> str | None:
    """What ``model`` says of a test: ``allowed``, ``forbidden`` or ``undefined``; None where it does not cover it, or
    there is no execution. Raises ``PtxmmError``: ``Timeout`` among others."""
    from ptxmm.analysis.outcomes import check
    from ptxmm.formats.litmus import parse as read

    try:
        (test,) = read(text, "<generated>")
        limits = Limits(deadline=time.monotonic() + seconds)
        found = check(test, model_named(model, readings), limits=limits, enumerate_all=False)
    except PtxmmError as error:
        if error.kind == "unsupported":
            return None
        raise
    if found.status == "timeout":
        raise Timeout
    if found.status == "undefined":
        return "undefined"
    return None if found.holds is None else "allowed" if found.holds else "forbidden"
