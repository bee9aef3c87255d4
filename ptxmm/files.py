"""Input files: regular files only, up to a size that is said; and TOML in them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from ptxmm.errors import PtxmmError

MAX_BYTES = 1 << 26
"""The most bytes of an input of any kind; a format may allow fewer."""


def read_bytes(path: str | Path, most: int = MAX_BYTES) -> bytes:
    """The content of a regular file of at most ``most`` bytes.

    Raises ``PtxmmError``: kind ``io`` if it can't be read (a pipe or a device may never end), ``format`` if it is
    longer.
    """
    file = os.fspath(path)
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as stream:
            mode = os.fstat(descriptor).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise PtxmmError("the file can't be read: Not a regular file", kind="io", file=file)
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise PtxmmError(f"the file can't be read: {reason}", kind="io", file=file) from None
    if len(data) > most:
        raise PtxmmError(f"the file has more than {most} bytes", kind="format", file=file)
    return data


class NotToml(ValueError):
    """A text that is not TOML."""


def toml(text: str) -> dict[str, Any]:
    """The document in ``text``. Raises ``NotToml``, with the place in the message where the parser says one."""
    import tomllib  # which takes a while

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("the document is nested too deeply") from None
    except ValueError:  # Python reads no decimal integer of more than 4,300 digits
        long = re.search("[0-9_]{4300}", text)
        start = long.start() if long else 0
        line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
        raise NotToml(f"a number has too many digits (at line {line}, column {column})") from None


def bundled_folder() -> Path:
    """The folder ``litmus/`` that comes with ptxmm: in the installed package, or beside it in a source tree.

    Raises ``PtxmmError`` (kind ``io``) if neither is there.
    """
    package = Path(__file__).parent
    for folder in (package / "litmus", package.parent / "litmus"):
        if folder.is_dir():
            return folder
    raise PtxmmError("the bundled litmus tests are missing from this installation", kind="io")
