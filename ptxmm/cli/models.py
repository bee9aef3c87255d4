"""``ptxmm models``: the memory models that come with ptxmm."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ptxmm.files import read_bytes


def models(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Print the text of this model.", show_default=False),
    ] = None,
) -> None:
    """List the models, or print one."""
    from ptxmm.cat import index, load

    if name is not None:
        sys.stdout.write(read_bytes(load(name).path).decode("utf-8-sig"))
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
