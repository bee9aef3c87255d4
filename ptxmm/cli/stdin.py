"""``-`` for standard input, in the place of a file."""

from __future__ import annotations

import re
import sys

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import decode
from ptxmm.program.test import Test

NAME = "<stdin>"
MOST = 4_000_000
_MODULE = re.compile(r"^\s*\.version\b", re.MULTILINE)
_NVLITMUS = re.compile(r"\s*(?://[^\n]*\n\s*)*\.(?:global|shared|local|const)\b")


def take() -> str:
    """What standard input holds, to its end.

    Raises ``PtxmmError``: kind ``io`` if it can't be read, ``format`` if it is no text or longer than ``MOST`` bytes.
    """
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise PtxmmError("standard input is closed", kind="io", file=NAME)
    try:
        data = stream.read(MOST + 1)
    except (OSError, ValueError) as error:
        raise PtxmmError(f"standard input can't be read: {error}", kind="io", file=NAME) from None
    if len(data) > MOST:
        raise PtxmmError(f"standard input has more than {MOST} bytes", kind="format", file=NAME)
    return decode(data, NAME)


def parse(text: str, isa: tuple[int, int] | None = None, launch: str | None = None) -> list[Test]:
    """The tests in ``text``: a module if it has a ``.version``, a ``.test`` file if it begins with a declaration, else
    a litmus test. Raises ``PtxmmError`` as ``formats.parse`` does."""
    from ptxmm import formats

    module = _MODULE.search(text) is not None
    kind = "ptx" if module else "nvlitmus" if _NVLITMUS.match(text) else "litmus"
    return formats.parse(text, NAME, kind, isa=isa, launch=launch if module else None)
