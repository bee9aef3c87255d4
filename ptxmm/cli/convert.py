"""``ptxmm convert``: litmus tests in another format."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ptxmm.cli import stdin
from ptxmm.cli.files import write_file
from ptxmm.cli.options import Isa, Memory, Run, Tests, Timeout
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import once
from ptxmm.errors import PtxmmError


class Target(StrEnum):
    """The formats that can be written."""

    litmus = "litmus"
    dialect = "dialect"
    nvlitmus = "nvlitmus"


def convert(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A litmus test (.litmus, .test); - is stdin.", show_default=False)
    ],
    to: Annotated[
        Target,
        typer.Option("--to", "-t", help="litmus: typed PTX; dialect: without types; nvlitmus: a .test file."),
    ] = Target.litmus,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="The file to write, or the folder if FILE holds several tests. [default: standard output]",
            show_default=False,
        ),
    ] = None,
    isa: Isa = None,
    timeout: Timeout = 60.0,
    memory: Memory = None,
) -> None:
    """Write a litmus test in another format, or say which part of it cannot be expressed there."""
    chosen = stdin.taken(settings(Tests(), Run(isa=isa, timeout=timeout, memory=memory)), file)
    name = stdin.name_of(file)
    texts = once(partial(_converted, file, to.value, chosen), name, chosen)
    if len(texts) == 1:
        if output is None:
            sys.stdout.write(texts[0][1])
        else:
            write_file(output, texts[0][1])
        return
    if output is None:
        message = f"the file holds {len(texts)} tests"
        raise PtxmmError(message, kind="usage", file=str(file), hint="give a folder to write them to: -o FOLDER")
    suffix = ".test" if to is Target.nvlitmus else ".litmus"
    taken: set[str] = set()
    for name, text in texts:
        stem = re.sub(r"[^\w.+-]+", "_", name).strip(".") or "test"
        number = 2
        unique = stem
        while unique.lower() in taken:  # some file systems do not tell cases apart
            unique, number = f"{stem}-{number}", number + 1
        taken.add(unique.lower())
        write_file(output / (unique + suffix), text)


def _converted(file: Path, to: str, chosen: Settings) -> list[tuple[str, str]]:
    """The name of each test in ``file`` and its text. Raises ``PtxmmError``."""
    from ptxmm.formats.convert import convert as converted

    try:
        return [(test.name, converted(test, to)) for test in stdin.tests(file, chosen)]
    except PtxmmError as error:
        error.file = error.file or stdin.name_of(file)
        raise
