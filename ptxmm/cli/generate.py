"""``ptxmm generate``: litmus tests from cycles of relaxations."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from ptxmm.analysis.words import Exit
from ptxmm.cli.console import complain
from ptxmm.cli.exits import error_code, worst
from ptxmm.cli.generating import MODEL, Generated, generated
from ptxmm.cli.options import Cycles, Jobs, Memory, Readings, Run, Tests, Timeout, processes
from ptxmm.cli.settings import settings
from ptxmm.errors import PtxmmError

_LONGEST = 200
"""Characters of a file's name, before its suffix."""


def generate(
    cycles: Cycles,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", show_default=False,
            help="A folder to make, with a file for each test. [default: all to standard output]",
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="List only the names, which say the cycles.")] = False,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME|FILE.cat", help="The model of --interesting.")
    ] = MODEL,
    reading: Readings = None,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
) -> None:  # fmt: skip
    """Write litmus tests made of cycles of relaxations: of those given, or of a family, all or a sample.

    Of a family no test is left whose condition cannot be met, or is met in a sequentially consistent execution, and no
    two are the same but for names. Exit code: 0, 2 bad input, 3 where something could not be decided in time.
    """
    chosen = settings(Tests(model=[model], reading=reading), Run(timeout=timeout, memory=memory))
    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise PtxmmError("this is there already", kind="io", file=str(output), hint="give the name of a new folder")
    codes: list[Exit] = []
    tests = _told(generated(cycles, model, chosen, processes(jobs)), codes)
    if output is not None:
        write_folder(output, ((file_name(one.cycle.name), one.text) for one in tests))
    elif names:
        for one in tests:
            print(one.cycle.name)
    else:
        for number, one in enumerate(tests):
            sys.stdout.write("\n" * bool(number) + one.text)
    raise typer.Exit(worst(codes))


def _told(found: Iterable[Generated | PtxmmError], codes: list[Exit]) -> Iterator[Generated]:
    """The tests; what is wrong with others is told, and leaves its exit code. So is that there are none."""
    count = 0
    for one in found:
        if isinstance(one, PtxmmError):
            complain(str(one))
            codes.append(error_code(one.kind))
        else:
            count += 1
            yield one
    if not count:
        complain("there is no such test")


def file_name(name: str) -> str:
    """The name of the file of a test: a long one is cut, and told from others by a hash."""
    if len(name) > _LONGEST:
        name = f"{name[: _LONGEST - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return f"{name}.litmus"


def write_folder(folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """Make ``folder`` with these files, by name and text: with all of them, or not at all. Raises ``PtxmmError`` (kind
    ``io``)."""
    made = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".ptxmm-", dir=folder.parent))
        for name, text in files:
            (made / name).write_text(text, encoding="utf-8")
        made.chmod(0o755)
        with suppress(FileNotFoundError):
            folder.rmdir()  # it is empty
        os.replace(made, folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PtxmmError(f"the folder can't be written: {reason}", kind="io", file=str(folder)) from error
    finally:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
