"""``ptxmm sweep``: verdicts on many tests, here or on a cluster, kept from one sweep to the next."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ptxmm.analysis.result import Failure
from ptxmm.analysis.swept import Swept
from ptxmm.cat import specification, split_specification
from ptxmm.cli.console import counted, progress, style
from ptxmm.cli.frame import show
from ptxmm.cli.generating import MODEL, described, generated
from ptxmm.cli.inputs import collect, failure
from ptxmm.cli.memory import MEGABYTE, share
from ptxmm.cli.options import (
    Cycles,
    Engine,
    EngineOption,
    Format,
    Isa,
    Jobs,
    Json,
    Memory,
    OwnModel,
    Readings,
    Run,
    Tests,
    Timeout,
    Unroll,
    format_of,
    processes,
)
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.sweeping import Known, Options, Submit, Unit, cluster, local, swept, unit
from ptxmm.errors import PtxmmError
from ptxmm.files import read_bytes
from ptxmm.render import Entry, Page


def sweep(
    cycles: Cycles,
    *,
    model: OwnModel = None,
    reading: Readings = None,
    engine: EngineOption = Engine.auto,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="FILE", show_default=False,
            help="Add the results to a file of JSON lines; what it has is not checked again.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", show_default=False,
            help="Work on the Dask cluster with this scheduler, as tcp://host:8786, in place of this machine.",
        ),
    ] = None,
    unroll: Unroll = 3,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    format: Format = "text",
    json: Json = False,
    isa: Isa = None,
) -> None:  # fmt: skip
    """Check all tests of a family, of cycles, or of folders of .litmus files, each under every model that is named.

    A result follows from the texts of test and model and the program, and is kept by a hash of them in --results, so a
    sweep that was ended goes on where it was. Exit code: as for check.
    """
    start = time.perf_counter()
    run = Run(unroll=unroll, timeout=timeout, jobs=jobs, memory=memory, format=format, json=json, isa=isa)
    count = processes(jobs)
    chosen = settings(Tests(model=model or [MODEL], reading=reading), run)
    names = [_specified(name, chosen) for name in chosen.models]
    if memory is None and scheduler is None and (bytes_each := share(count)) is not None:
        memory = max(1, bytes_each // MEGABYTE)
    options = Options(engine.value, unroll, timeout, isa, memory)
    known = Known(results)
    failures: list[Failure] = []
    texts = list(_texts(cycles, names[0], chosen, count, failures))
    units = [unit(text, test, file, name, options) for file, test, text in texts for name in names]
    missing = list({one.key: one for one in units if one.key not in known.rows}.values())
    rows: dict[str, Swept] = {}
    where: AbstractContextManager[tuple[Submit, int]] = cluster(scheduler) if scheduler else local(count)
    if missing:
        with where as (submit, slots):
            for row in progress(counted(swept(missing, options, submit, slots, known.add)), len(missing)):
                rows[row.key] = row
    entries: list[Entry[Swept]] = [Entry(one) for one in failures]
    page = Page(style(sys.stdout), start=start)
    show(chain(entries, (_entry(one, rows, known) for one in units)), "sweep", format_of(run), page)


def _entry(one: Unit, rows: dict[str, Swept], known: Known) -> Entry[Swept]:
    """The result of a test, under its own name: it may be known of another with the same text."""
    row = rows.get(one.key) or replace(known.rows[one.key], kept=True)
    if row.error is not None:
        text = f"{one.file or one.test}: error: {row.error.message}"
        return Entry(Failure(one.file, one.test, one.model, row.error, (), text))
    return Entry(replace(row, file=one.file, test=one.test))


def _specified(name: str, chosen: Settings) -> str:
    """The model with all its readings in its name."""
    plain, own = split_specification(name)
    return specification(plain, dict(chosen.readings) | own)


def _texts(
    cycles: Cycles, model: str, chosen: Settings, count: int, failures: list[Failure]
) -> Iterator[tuple[str, str, str]]:
    """The file, the name and the text of each test; what is wrong with others goes to ``failures``."""
    given = [Path(word) for word in cycles.cycles or ()]
    if not given or not all(path.exists() for path in given):
        for one in generated(cycles, model, chosen, count):
            if isinstance(one, PtxmmError):
                failures.append(failure(one, ""))
            else:
                yield "", one.cycle.name, one.text
        return
    if described(cycles) or cycles.sample or cycles.interesting or cycles.separate:
        raise PtxmmError("files are given, and a family is described", kind="usage", hint="one or the other")
    for path in collect(given, False):
        if isinstance(path, Failure):
            failures.append(path)
        elif path.suffix == ".litmus":
            text = read_bytes(path).decode("utf-8", "replace")
            yield str(path), text.partition("\n")[0].removeprefix("PTX ").strip(), text
        elif path in given:
            raise PtxmmError("a sweep is of .litmus files", kind="usage", file=str(path))
