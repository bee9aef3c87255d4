"""From texts and files to tests that can be asked."""

from __future__ import annotations

from pathlib import Path

from ptxmm import formats
from ptxmm.api.test import Test
from ptxmm.errors import PtxmmError
from ptxmm.render.document import taken


def test(text: str, format: str | None = None) -> Test:
    """The only test in ``text``: a litmus test, a ``.test`` table with one row, a PTX module with one launch.

    ``format``: ``litmus``, ``nvlitmus`` or ``ptx``; None: what the text looks like. Raises ``PtxmmError`` as ``parse``
    does, kind ``usage`` where there are several.
    """
    found = parse(text, format=formats.format_of(text, "<text>") if format is None else format)
    if len(found) != 1:
        raise PtxmmError(f"the text has {len(found)} tests", kind="usage", hint="parse() gives all of them")
    return found[0]


def read(
    path: str | Path,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
    compiling: formats.Compiling | None = None,
) -> list[Test]:
    return [taken(Test, found) for found in formats.read(path, isa, launch, threads, compiling)]


def parse(
    text: str,
    file: str = "<text>",
    format: str | None = None,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
    compiling: formats.Compiling | None = None,
) -> list[Test]:
    return [taken(Test, found) for found in formats.parse(text, file, format, isa, launch, threads, compiling)]


read.__doc__, parse.__doc__ = formats.read.__doc__, formats.parse.__doc__
