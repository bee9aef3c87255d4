"""What users bring, as tests: one reader per format, chosen by the name of the file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ptxmm import files
from ptxmm.errors import PtxmmError
from ptxmm.formats.compiling import Compiling
from ptxmm.formats.text import MAX_BYTES, decode
from ptxmm.program.test import Test

SUFFIXES = {".litmus": "litmus", ".test": "nvlitmus", ".ptx": "ptx", ".cu": "cuda"}

__all__ = ["SUFFIXES", "Compiling", "format_of", "parse", "read"]

_MODULE = re.compile(r"^\s*\.version\b", re.MULTILINE)
_KERNEL = re.compile(r"^[^\n\"]*\b__(?:global|device)__\s", re.MULTILINE)
_NVLITMUS = re.compile(r"\s*(?://[^\n]*\n\s*)*\.(?:global|shared|local|const)\b")


def read(
    path: str | Path,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
    compiling: Compiling | None = None,
) -> list[Test]:
    """The tests in a file: one of a ``.litmus`` file, one per row of its table of a ``.test`` file, one per launch of a
    ``.ptx`` module or a ``.cu`` source.

    ``isa``: the version of the PTX ISA; None: what the file says, or 8.5. ``launch``: the file that specifies the
    launches of a kernel; None: what is said beside it (docs/modules.md). ``threads``: which threads of it run, in
    place of those that the launch says. ``compiling``: how nvcc compiles a ``.cu`` source.

    Raises ``PtxmmError``: kind ``io`` if it can't be read, ``format`` if it is no text, else as the format says.
    """
    file = os.fspath(path)
    most = files.MAX_BYTES if SUFFIXES.get(Path(file).suffix.lower()) in ("ptx", "cuda") else MAX_BYTES
    text = decode(files.read_bytes(path, most), file)
    return parse(text, file, isa=isa, launch=launch, threads=threads, compiling=compiling)


def parse(
    text: str,
    file: str = "<text>",
    format: str | None = None,
    isa: tuple[int, int] | None = None,
    launch: str | None = None,
    threads: str | None = None,
    compiling: Compiling | None = None,
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

        if chosen == "ptx":
            return modules.parse_ptx(text, file, isa, launch, threads)
        return modules.parse_cuda(text, file, isa, launch, threads, compiling)
    name = f"`{format}`" if format else f"`{suffix}` files"
    known = ", ".join(SUFFIXES)
    raise PtxmmError(f"{name} are not litmus tests", kind="usage", file=file, hint=f"ptxmm reads {known} files")


def format_of(text: str, file: str) -> str:
    """The format of a text without a name that says it: a module if it has a ``.version``, a ``.test`` file if it
    begins with a declaration, else a litmus test. Raises ``PtxmmError`` (kind ``usage``) for a CUDA source."""
    if _MODULE.search(text) is not None:
        return "ptx"
    if (kernel := _KERNEL.search(text)) is not None:
        line = text.count("\n", 0, kernel.start()) + 1
        where = "standard input" if file == "<stdin>" else "text"
        hint = "write it into a .cu file, or give what `nvcc -ptx -lineinfo` makes of it"
        message = f"a CUDA source can't be read from {where}: nvcc needs its file"
        raise PtxmmError(message, kind="usage", file=file, line=line, hint=hint)
    return "nvlitmus" if _NVLITMUS.match(text) else "litmus"
