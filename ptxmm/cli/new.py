"""``ptxmm new``: a test to begin with."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ptxmm.cli.files import create_file
from ptxmm.errors import PtxmmError

SKELETONS = Path(__file__).parents[1] / "skeletons"


class Kind(StrEnum):
    """The skeletons, each in a file of this name in ``ptxmm/skeletons``."""

    mp = "mp"
    sb = "sb"
    lb = "lb"
    corr = "corr"
    wrc = "wrc"
    iriw = "iriw"
    barrier = "barrier"
    mbarrier = "mbarrier"
    kernel = "kernel"

    @property
    def suffix(self) -> str:
        """How the name of such a file ends."""
        return ".cu" if self is Kind.kernel else ".litmus"


def new(
    kind: Annotated[
        Kind,
        typer.Argument(
            metavar="KIND",
            help="mp message passing, sb store buffering, lb load buffering, corr coherence, wrc and iriw three and "
            "four threads, barrier a CTA barrier, mbarrier an mbarrier with a bulk copy, kernel CUDA with its launch.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="The file to write, which must not be there yet. [default: standard output]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a test to begin with, which checks as it expects: a litmus test, or a CUDA kernel whose comments say how it
    is launched and what must hold."""
    text = (SKELETONS / f"{kind}{kind.suffix}").read_text(encoding="utf-8")
    if output is None:
        sys.stdout.write(text)
        return
    if output.suffix != kind.suffix:
        hint = f"ptxmm new {kind} -o {output.with_suffix(kind.suffix)}" if output.name else None
        message = f"this is read from files named *{kind.suffix}"
        raise PtxmmError(message, kind="usage", file=str(output), hint=hint)
    create_file(output, text)
