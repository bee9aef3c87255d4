"""What users bring, as tests: one reader per format, chosen by the name of the file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import MAX_BYTES, decode
from ptxmm.program.test import Test

MAX_SOURCE = 1 << 26
"""The most bytes of a module or a CUDA source."""

SUFFIXES = {".litmus": "litmus", ".test": "nvlitmus", ".ptx": "ptx", ".cu": "cuda"}

__all__ = ["SUFFIXES", "parse", "read"]


def read(
    path: str | Path, isa: tuple[int, int] | None = None, launch: str | None = None, threads: str | None = None
) -> list[Test]:
    """The tests in a file: one of a ``.litmus`` file, one per row of its table of a ``.test`` file, one per launch of a
    ``.ptx`` module or a ``.cu`` source.

    ``isa``: the version of the PTX ISA; None: what the file says, or 8.5. ``launch``: the file that specifies the
    launches of a kernel; None: what is said beside it (docs/modules.md). ``threads``: which threads of it run, in
    place of those that the launch says.

    Raises ``PtxmmError``: kind ``io`` if it can't be read, ``format`` if it is no text, else as the format says.
    """
    file = os.fspath(path)
    most = MAX_SOURCE if SUFFIXES.get(Path(file).suffix.lower()) in ("ptx", "cuda") else MAX_BYTES
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe or a device may never end
            raise PtxmmError("the file can't be read: Not a regular file", kind="io", file=file)
        with open(path, "rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise PtxmmError(f"the file can't be read: {reason}", kind="io", file=file) from None
    if len(data) > most:
        raise PtxmmError(f"the file has more than {most} bytes", kind="format", file=file)
    return parse(decode(data, file), file, isa=isa, launch=launch, threads=threads)


def parse(
    text: str,
    file: str = "<text>",
    format: str | None = None,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
) -> list[Test]:
    """The tests in ``text``. ``format`` is one of ``SUFFIXES``; None takes it from the suffix of ``file``.
    The rest as in ``read``.

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
    if chosen in ("ptx", "cuda"):
        from ptxmm.formats.modules import read as modules

        return (modules.parse_ptx if chosen == "ptx" else modules.parse_cuda)(text, file, isa, launch, threads)
    name = f"`{format}`" if format else f"`{suffix}` files"
    known = ", ".join(SUFFIXES)
    raise PtxmmError(f"{name} are not litmus tests", kind="usage", file=file, hint=f"ptxmm reads {known} files")
