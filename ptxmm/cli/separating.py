"""``ptxmm compare --generate``: a program that separates two models."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.compare import CompareResult, compare
from ptxmm.analysis.separate import (
    Divisions,
    SeparateResult,
    Step,
    Tried,
    common_vocabulary,
    conclude,
    count_steps,
    presented,
    separations,
    try_,
)
from ptxmm.cli.console import counted, progress, style
from ptxmm.cli.frame import show
from ptxmm.cli.inputs import model_named
from ptxmm.cli.options import Programs, Run, format_of, processes
from ptxmm.cli.settings import Settings
from ptxmm.cli.tasks import bounds, lost, once
from ptxmm.cli.workers import Lost, events, never
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats import parse
from ptxmm.formats.writer import write
from ptxmm.generate.skeleton import Skeleton
from ptxmm.generate.vocabulary import Vocabulary
from ptxmm.program.test import Test
from ptxmm.render import Entry, Page

_ALONE = 4
"""Programs of so many instructions are tried in one process: starting several takes longer."""


def generate(models: tuple[str, str], chosen: Settings, size: int, programs: Programs, run: Run) -> None:
    """Search, and show what was found. Raises ``typer.Exit``, and ``PtxmmError`` as ``separate`` does."""
    one, other = (model_named(name, chosen.readings) for name in models)
    vocabulary = common_vocabulary(
        one,
        other,
        kinds=_listed(programs.kinds),
        scopes=_listed(programs.scopes),
        orders=_listed(programs.orders),
        threads=programs.threads,
        locations=programs.locations,
    )
    total = count_steps(vocabulary, size)
    start = time.perf_counter()
    search = _Search(models, chosen, vocabulary, time.monotonic() + chosen.timeout, processes(run.jobs))
    steps: list[Step] = []
    found = separations(one, other, vocabulary, size, run=search.divisions, present=search.present)
    for step in progress(counted(found), total):
        steps.append(step)
    result = replace(conclude(one, other, vocabulary, size, start, steps), model=models[0], other=models[1])
    show(_entries(search, result, format_of(run)), "separation", format_of(run), Page(style(sys.stdout)))


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip().removeprefix(".") for word in text.split(",") if word.strip()]


def _entries(search: _Search, result: SeparateResult, format: str) -> Iterator[Entry[SeparateResult | CompareResult]]:
    """What was found and, in text, the comparison of the models on it."""
    yield Entry(result)
    if format == "text" and result.program is not None:
        (test,) = parse(write(result.program), f"{result.test}.litmus")
        yield Entry(search.compared(test))


class _Search(Struct, frozen=True):
    """A search that is over at ``deadline``; all its work is done in other processes."""

    models: tuple[str, str]
    chosen: Settings
    words: Vocabulary
    deadline: float
    workers: int

    def divisions(self, divisions: Divisions) -> Iterator[Tried]:
        """Try the programs of one size. Raises ``Timeout``."""
        few = sum(divisions[0]) <= _ALONE
        workers = 1 if few else min(self.workers, len(divisions))
        settings = self._left()
        step = partial(_tried, self.models, settings, self.words)
        for _, number, message in events(step, divisions, workers, bounds(settings, workers), never):
            if isinstance(message, Lost):
                if message.reason == "time":
                    raise Timeout
                raise lost(message, "this part of the search", settings, workers, "<generated>")
            if isinstance(message, Timeout):
                raise message
            if number:
                assert isinstance(message, Tried)
                yield message

    def present(self, found: Skeleton) -> Test:
        """``presented`` of what was found."""
        settings = replace(self.chosen, timeout=self._left().timeout + _AFTER)
        return once(partial(_present, self.models, self._left(), self.words, found), "<generated>", settings)

    def compared(self, test: Test) -> CompareResult:
        """The comparison of the models on the program found."""
        settings = replace(self.chosen, timeout=_AFTER)
        return once(partial(_compare, self.models, settings, test), test.file, settings)

    def _left(self) -> Settings:
        return replace(self.chosen, timeout=max(0.001, self.deadline - time.monotonic()))


_AFTER = 60.0
"""Seconds for showing a program that was found, beyond the time for finding it."""


def _tried(
    models: tuple[str, str], settings: Settings, words: Vocabulary, sizes: tuple[int, ...], done: int
) -> Generator[Tried | Timeout | Sequence[None], bool, None]:
    """Try the programs with threads of these sizes. See ``workers.Step``."""
    yield (None,)
    one, other = (model_named(name, settings.readings) for name in models)
    try:
        yield try_(one, other, words, sizes, _limits(settings))
    except Timeout as error:
        yield error


def _present(models: tuple[str, str], settings: Settings, words: Vocabulary, found: Skeleton) -> Test:
    one, other = (model_named(name, settings.readings) for name in models)
    return presented(found, words, one, other, _limits(settings))


def _compare(models: tuple[str, str], settings: Settings, test: Test) -> CompareResult:
    one, other = (model_named(name, settings.readings) for name in models)
    return compare(test, one, other, limits=_limits(settings), most=1, names=models)


def _limits(settings: Settings) -> Limits:
    """A clock that began in this process."""
    return Limits(deadline=time.monotonic() + settings.timeout)
