"""``ptxmm extract``: the synchronization skeleton of a kernel as a litmus test."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ptxmm.cli import stdin
from ptxmm.cli.files import write_file
from ptxmm.cli.options import Isa, Launch, Memory, NvccOptions, Run, Tests, Timeout
from ptxmm.cli.settings import Settings, settings
from ptxmm.cli.tasks import once
from ptxmm.errors import PtxmmError


def extract(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A PTX module (.ptx; - is stdin) or CUDA source (.cu).", show_default=False
        ),
    ],
    launch: Launch = None,
    threads: Annotated[
        str | None,
        typer.Option(
            "--threads",
            metavar="SELECTION",
            help="Which threads, as in `cta 0-1 warp 0 lane 0`; several with `;`. [default: those of the launch]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="The file to write, or the folder if FILE has several launches. [default: standard output]",
            show_default=False,
        ),
    ] = None,
    isa: Isa = None,
    nvcc_option: NvccOptions = None,
    timeout: Timeout = 60.0,
    memory: Memory = None,
) -> None:
    """Write what the chosen threads of a kernel do to memory as a litmus test: their accesses, fences and barriers and
    the instructions that these depend on, with everything the launch decides put in."""
    run = Run(isa=isa, timeout=timeout, launch=launch, memory=memory, nvcc_option=nvcc_option)
    chosen = stdin.taken(settings(Tests(), run), file)
    name = stdin.name_of(file)
    texts = once(partial(_extracted, file, chosen, threads), name, chosen)
    if len(texts) == 1 and (output is None or not output.is_dir()):
        (text,) = texts.values()
        if output is None:
            sys.stdout.write(text)
        else:
            write_file(output, text)
        return
    if output is None:
        message = f"the file has {len(texts)} launches"
        raise PtxmmError(message, kind="usage", file=name, hint="give a folder to write them to: -o FOLDER")
    for test, text in texts.items():
        write_file(output / test, text)


def _extracted(file: Path, chosen: Settings, threads: str | None) -> dict[str, str]:
    """The litmus tests, by the names of their files. Raises ``PtxmmError``."""
    from ptxmm.formats.modules.extract import file_name, skeleton

    try:
        tests = stdin.tests(file, chosen, threads)
        if any(test.claims is None for test in tests):
            message = "this is a litmus test already"
            raise PtxmmError(message, kind="usage", hint="ptxmm convert writes it in another format")
        texts: dict[str, str] = {}
        for test in tests:
            texts[file_name(test, texts)] = skeleton(test)
    except PtxmmError as error:
        error.file = error.file or stdin.name_of(file)
        raise
    return texts
