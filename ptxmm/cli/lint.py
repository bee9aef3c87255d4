"""``ptxmm lint``: the inline PTX of CUDA sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from msgspec import Struct, field

from ptxmm.cli import stdin
from ptxmm.cli.console import complain, style
from ptxmm.cli.exits import exit_of, worst
from ptxmm.cli.files import replace_bytes
from ptxmm.cli.inputs import failure
from ptxmm.cli.options import Jobs, Json, Memory, Run, Tests, format_of, processes
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import bounds, lost
from ptxmm.cli.workers import Lost, events, never
from ptxmm.errors import PtxmmError
from ptxmm.files import MAX_BYTES
from ptxmm.render import Entry, Page, renderer

if TYPE_CHECKING:
    from ptxmm.analysis.lint import LintResult, Options
    from ptxmm.analysis.result import Failure

SUFFIXES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".cpp", ".cc", ".cxx", ".hxx", ".inl", ".inc")
_PARALLEL = 4_000_000
"""Characters from which processes are worth their start."""


Names = list[str] | None


def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...", help="CUDA C++ sources, folders of them, - for standard input.", show_default=False
        ),
    ] = None,
    select: Annotated[
        Names, typer.Option("--select", metavar="RULE", help="Look only for this rule; may be repeated. PTX4, ALL.")
    ] = None,
    enable: Annotated[
        Names, typer.Option("--enable", metavar="RULE", help="Look for this rule too; may be repeated.")
    ] = None,
    disable: Annotated[
        Names, typer.Option("--disable", metavar="RULE", help="Do not look for this rule; may be repeated.")
    ] = None,
    isa: Annotated[
        str | None, typer.Option("--isa", metavar="X.Y", help="The PTX ISA version that the source is compiled for.")
    ] = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="sm_NN", help="The target that the source is compiled for.")
    ] = None,
    format: Annotated[str, typer.Option("--format", "--output-format", help="The form of the output.")] = "text",
    json: Json = False,
    fix: Annotated[bool, typer.Option("--fix", help="Mend what has an exact mend, in the files.")] = False,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="List the rules and end.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name the statements that are not checked.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, metavar="S", help="Seconds for a file.")] = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
) -> None:
    """Check the inline PTX of CUDA sources: operands, volatile and clobbers, memory orders, scopes, versions.

    Exit code: 0 nothing found, 1 something found, 2 bad usage or a file that can't be read, 3 time or memory was short.
    """
    from ptxmm.analysis.lint import RULES
    from ptxmm.cli.lint_settings import architecture, options

    if list_rules:
        for rule in RULES:
            typer.echo(f"{rule.id}  {rule.severity:7}  {rule.name}: {rule.summary}{'' if rule.default else ' (off)'}")
        raise typer.Exit
    if not files:
        raise PtxmmError("no file given", kind="usage", hint="give CUDA sources, folders, or - for standard input")
    run = Run(isa=isa, timeout=timeout, jobs=jobs, memory=memory, format=format, json=json)
    limits = settings(Tests(), run)
    chosen, excluded = options(select, enable, disable, limits.isa, architecture(arch))
    work = _collect(files, excluded)
    if fix and any(item.file == stdin.NAME for item in work.items):
        raise PtxmmError("--fix needs files: standard input can't be mended", kind="usage")
    results, fixed = _results(work, chosen, fix, limits, jobs)
    reports: list[LintResult | Failure] = [*results, *work.errors]
    texts = {item.file: item.text for item in work.items}
    page = Page(style(sys.stdout), verbose=verbose, fixed=fixed, texts=texts)
    for lines in renderer("lint", format_of(run))(map(Entry, reports), page):
        print(lines)
    for error in work.errors:
        complain(error.text)
    raise typer.Exit(worst(map(exit_of, reports)))


class _Item(Struct, frozen=True):
    """A source: its name in reports and its text."""

    file: str
    text: str


class _Work(Struct):
    """The sources to look at, and what could not be looked at, or mended."""

    items: list[_Item] = field(default_factory=list)
    errors: list[Failure] = field(default_factory=list)


def _collect(paths: list[Path], excluded: tuple[str, ...]) -> _Work:
    """Read every file once: in the order given, sorted inside folders."""
    from ptxmm.analysis.lint.analysis import read_source

    work = _Work()
    seen: set[Path] = set()
    for path in paths:
        if str(path) == "-":
            if stdin.NAME not in (item.file for item in work.items):
                try:
                    work.items.append(_Item(stdin.NAME, stdin.take(MAX_BYTES).decode("utf-8", "replace")))
                except PtxmmError as error:
                    work.errors.append(failure(error, stdin.NAME))
            continue
        inside = _search(path) if path.is_dir() else [path]
        if path.is_dir() and not inside:
            none = PtxmmError("no CUDA or C++ source in this folder", kind="io")
            work.errors.append(failure(none, str(path)))
        for file in inside:
            if file in seen or (path.is_dir() and any(file.match(pattern) for pattern in excluded)):
                continue
            seen.add(file)
            try:
                work.items.append(_Item(str(file), read_source(file)))
            except PtxmmError as error:
                work.errors.append(failure(error, str(file)))
    return work


def _search(folder: Path) -> list[Path]:
    found: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(root, name) for name in names if name.endswith(SUFFIXES)]
    return sorted(found)


class _Linted(Struct, frozen=True):
    """What is found in a source; ``text``: the source with ``count`` findings mended, and what is found ``after`` that
    (None: nothing was to be mended)."""

    result: LintResult
    text: str = ""
    count: int = 0
    after: LintResult | None = None


def _results(
    work: _Work, options: Options, fix: bool, limits: Settings, jobs: int | None
) -> tuple[list[LintResult], int]:
    """The findings that are left in each source, and how many are mended: each in a process with its own limits."""
    many = jobs is not None or sum(len(item.text) for item in work.items) >= _PARALLEL
    workers = max(1, min(processes(jobs), len(work.items))) if many else 1
    results, fixed = [], 0
    for number, index, message in events(
        partial(_linted, options, fix), work.items, workers, bounds(limits, workers), never
    ):
        item = work.items[number]
        if isinstance(message, Lost):
            error = lost(message, "the check of this file", limits, workers, item.file)
            work.errors.append(failure(error, item.file))
        elif index:
            found = cast("_Linted", message)
            if found.after is not None and _written(work, item, found.text):
                work.items[number] = _Item(item.file, found.text)
                results.append(found.after)
                fixed += found.count
            else:
                results.append(found.result)
    return results, fixed


def _linted(options: Options, fix: bool, item: _Item, done: int) -> Generator[_Linted | Sequence[Any], bool, None]:
    """The findings in a source, and its text with them mended. See ``workers.Step``."""
    from ptxmm.analysis.lint import lint_text
    from ptxmm.analysis.lint.analysis import mended

    yield (None,)
    result = lint_text(item.text, item.file, options)
    text, count = mended(item.text, result.findings) if fix else ("", 0)
    yield _Linted(result, text, count, lint_text(text, item.file, options)) if count else _Linted(result)


def _written(work: _Work, item: _Item, text: str) -> bool:
    """Replace a file by its mended text; whether that could be done."""
    from ptxmm.analysis.lint.analysis import read_source

    try:
        if read_source(Path(item.file)) != item.text or "\ufffd" in item.text:
            raise OSError(0, "it is not UTF-8, or it changed meanwhile")
        replace_bytes(Path(item.file), text.encode())
        return True
    except PtxmmError as error:
        work.errors.append(failure(error, item.file))
    except OSError as error:
        told = PtxmmError(f"not mended: {error.strerror or type(error).__name__}", kind="io")
        work.errors.append(failure(told, item.file))
    return False
