"""Files that commands write."""

from __future__ import annotations

from pathlib import Path

from ptxmm.errors import PtxmmError


def write_file(path: Path, text: str) -> None:
    """Write ``text``; the folder is made if it is not there. Raises ``PtxmmError`` (kind ``io``)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise PtxmmError(error.strerror or type(error).__name__, kind="io", file=str(path)) from error
