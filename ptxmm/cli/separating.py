"""``ptxmm compare --generate``: a program that separates two models."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import typer

from ptxmm.analysis.compare import compare
from ptxmm.analysis.separate import (
    Divisions,
    Step,
    Tried,
    common_vocabulary,
    conclude,
    count_steps,
    separations,
    try_,
)
from ptxmm.cli.analyses import exit_of
from ptxmm.cli.console import progress, style
from ptxmm.cli.inputs import model_named
from ptxmm.cli.options import Settings, processes
from ptxmm.cli.tasks import GRACE
from ptxmm.cli.watchdog import watched
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats import parse
from ptxmm.formats.writer import write
from ptxmm.generate.vocabulary import Vocabulary
from ptxmm.render import compare as render
from ptxmm.render.document import whole

_ALONE = 4
"""Programs of so many instructions are tried in this process: starting others takes longer."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the vocabulary is restricted to; None: not."""

    kinds: list[str] | None
    scopes: list[str] | None
    orders: list[str] | None
    threads: int | None
    locations: int | None


def generate(models: tuple[str, str], chosen: Settings, size: int, words: Words, jobs: int | None, json: bool) -> None:
    """Search, and print what was found. Raises ``typer.Exit``, and ``PtxmmError`` as ``separate`` does."""
    one, other = (model_named(name, chosen.readings) for name in models)
    vocabulary = common_vocabulary(
        one,
        other,
        kinds=words.kinds,
        scopes=words.scopes,
        orders=words.orders,
        threads=words.threads,
        locations=words.locations,
    )
    total = count_steps(vocabulary, size)
    start = time.perf_counter()
    limits = Limits(deadline=time.monotonic() + chosen.timeout)
    run = partial(_divisions, models, chosen, vocabulary, limits, processes(jobs))
    steps: list[Step] = []
    try:
        with watched(chosen.timeout + GRACE):
            for step in progress(separations(one, other, vocabulary, size, limits=limits, run=run), total):
                steps.append(step)
    except Timeout:
        pass  # what was searched before is known
    result = replace(conclude(one, other, vocabulary, size, start, steps), model=models[0], other=models[1])
    program = None if result.program is None else write(result.program)
    code = exit_of(result)
    if json:
        sys.stdout.write(whole([render.separation_document(result, program)]))
        raise typer.Exit(code)
    out = style(sys.stdout)
    print("\n".join([*render.separation(result, program, out), *render.ending(result)]))
    if program is not None:
        (test,) = parse(program, f"{result.test}.litmus")
        print()
        print("\n".join(render.text(compare(test, one, other, most=1, names=models), out)))
    raise typer.Exit(code)


def _divisions(
    models: tuple[str, str],
    chosen: Settings,
    words: Vocabulary,
    limits: Limits,
    workers: int,
    divisions: Divisions,
) -> Iterator[Tried]:
    """Try the programs of one size, in this process or in a pool. Raises ``Timeout``."""
    work = partial(_try, models, chosen.readings, words)
    if workers == 1 or sum(divisions[0]) <= _ALONE:
        yield from (work(sizes, limits) for sizes in divisions)
    else:
        yield from _parallel(work, divisions, limits, min(workers, len(divisions)))


def _try(
    models: tuple[str, str],
    readings: tuple[tuple[str, str], ...],
    words: Vocabulary,
    sizes: tuple[int, ...],
    limits: Limits,
) -> Tried:
    one, other = (model_named(name, readings) for name in models)
    return try_(one, other, words, sizes, limits)


def _try_for(work: Callable[[tuple[int, ...], Limits], Tried], sizes: tuple[int, ...], seconds: float) -> Tried:
    """``work`` in a process with a clock of its own."""
    return work(sizes, Limits(deadline=time.monotonic() + seconds))


def _parallel(
    work: Callable[[tuple[int, ...], Limits], Tried], divisions: Divisions, limits: Limits, workers: int
) -> Iterator[Tried]:
    import multiprocessing

    from pebble import ProcessExpired, ProcessPool

    assert limits.deadline is not None
    left = max(0.001, limits.deadline - time.monotonic())
    pool = ProcessPool(max_workers=workers, context=multiprocessing.get_context("spawn"))
    try:
        futures = [pool.schedule(_try_for, args=[work, sizes, left]) for sizes in divisions]
        for future in futures:
            yield future.result(timeout=max(0.001, limits.deadline + GRACE - time.monotonic()))
    except TimeoutError:
        raise Timeout from None
    except ProcessExpired as error:
        message = f"a process of the search ended (exit code {error.exitcode})"
        raise PtxmmError(message, kind="internal", hint="it may have run out of memory: try --jobs 1") from None
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()
