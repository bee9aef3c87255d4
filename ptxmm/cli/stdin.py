"""``-`` for standard input, in the place of a file."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from ptxmm.cli.settings import Settings
from ptxmm.errors import PtxmmError
from ptxmm.formats.text import decode
from ptxmm.program.test import Test

DASH = Path("-")
NAME = "<stdin>"
MOST = 4_000_000


def name_of(file: Path) -> str:
    """The file as results and errors name it."""
    return NAME if file == DASH else str(file)


def taken(settings: Settings, *files: Path) -> Settings:
    """``settings`` with what standard input holds, if it is one of ``files``. Raises ``PtxmmError`` as ``take``."""
    return replace(settings, stdin=decode(take(MOST), NAME)) if DASH in files and settings.stdin is None else settings


def take(most: int) -> bytes:
    """What standard input holds, to its end.

    Raises ``PtxmmError``: kind ``io`` if it can't be read, ``format`` if it is longer than ``most`` bytes.
    """
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise PtxmmError("standard input is closed", kind="io", file=NAME)
    try:
        data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise PtxmmError(f"standard input can't be read: {error}", kind="io", file=NAME) from None
    if len(data) > most:
        raise PtxmmError(f"standard input has more than {most} bytes", kind="format", file=NAME)
    return bytes(data)


def tests(file: Path, settings: Settings, threads: str | None = None) -> list[Test]:
    """The tests in ``file``, or in what standard input holds. Raises ``PtxmmError`` as ``formats.read`` does."""
    from ptxmm import formats

    if file == DASH and settings.stdin is not None:
        return _parse(settings.stdin, settings, threads)
    compiling = formats.Compiling(settings.nvcc, settings.timeout, settings.printed)
    return formats.read(file, settings.isa, settings.launch, threads, compiling)


def _parse(text: str, settings: Settings, threads: str | None) -> list[Test]:
    """The tests in ``text``, whatever its format."""
    from ptxmm import formats

    kind = formats.format_of(text, NAME)
    if kind != "ptx":
        return formats.parse(text, NAME, kind, isa=settings.isa)
    return formats.parse(text, NAME, kind, isa=settings.isa, launch=settings.launch, threads=threads)
