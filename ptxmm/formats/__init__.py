"""What users bring, as tests: one reader per format, chosen by the name of the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import MAX_BYTES, decode
from ptxmm.program.test import Test

SUFFIXES = {".litmus": "litmus", ".test": "nvlitmus"}

__all__ = ["SUFFIXES", "parse", "read"]


def read(path: str | Path, isa: tuple[int, int] | None = None) -> list[Test]:
    """The tests in a file: one of a ``.litmus`` file, one per row of its table of a ``.test`` file.

    ``isa``: the version of the PTX ISA; None: what the file says, or 8.5.

    Raises ``PtxmmError``: kind ``io`` if it can't be read, ``format`` if it is no text, else as the format says.
    """
    file = os.fspath(path)
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe or a device may never end
            raise PtxmmError("the file can't be read: Not a regular file", kind="io", file=file)
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PtxmmError(f"the file can't be read: {reason}", kind="io", file=file) from None
    if len(data) > MAX_BYTES:
        raise PtxmmError(f"the file has more than {MAX_BYTES} bytes", kind="format", file=file)
    return parse(decode(data, file), file, isa=isa)


def parse(
    text: str, file: str = "<text>", format: str | None = None, isa: tuple[int, int] | None = None
) -> list[Test]:
    """The tests in ``text``. ``format`` is ``litmus`` or ``nvlitmus``; None takes it from the suffix of ``file``.
    ``isa`` as in ``read``.

    Raises ``PtxmmError`` (kind ``usage`` for an unknown format, else as the format says).
    """
    suffix = Path(file).suffix.lower()
    chosen = format or SUFFIXES.get(suffix)
    if chosen is None and (suffix == "" or file.startswith("<")):
        chosen = "litmus"
    if chosen == "litmus":
        from ptxmm.formats import litmus

        return litmus.parse(text, file, isa)
    if chosen == "nvlitmus":
        from ptxmm.formats import nvlitmus

        return nvlitmus.parse(text, file)
    name = f"`{format}`" if format else f"`{suffix}` files"
    known = " and ".join(SUFFIXES)
    raise PtxmmError(f"{name} are not litmus tests", kind="usage", file=file, hint=f"ptxmm reads {known} files")
