"""``ptxmm models``: the memory models that come with ptxmm."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ptxmm.cli import completion
from ptxmm.cli.console import complain
from ptxmm.cli.options import Without


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Print the text of this model.",
            show_default=False,
            autocompletion=completion.models,
        ),
    ] = None,
    without: Without = None,
) -> None:
    """List the models, or print one.

    With --without and no name, it is ptx-8.5.
    """
    from ptxmm.cat import index, left_out_of, load, text_of

    if without:
        name = left_out_of(name or "ptx-8.5", without)
    if name is not None:
        for warning in load(name).warnings:
            complain(warning)
        sys.stdout.write(text_of(name))
        return
    for known, shipped in index().models.items():
        covered = shipped.coverage
        print(f"{known:9} {covered.summary}")
        proxies = [*covered.proxies, *(["virtual aliases"] if covered.aliases else [])]
        print(f"{'':9} scopes: {' '.join(covered.scopes)}; proxies: {', '.join(proxies)}")
    print("readings (--reading KEY=VALUE, the default first; --model 'NAME[KEY=VALUE]'):")
    for key, reading in index().readings.items():
        print(f"  {key}={'|'.join(reading.values)}")
        print(f"      {reading.section}: {reading.about}")
