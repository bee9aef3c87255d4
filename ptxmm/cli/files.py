"""Files that commands write."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ptxmm.errors import PtxmmError


@contextmanager
def writing(path: Path, what: str = "file") -> Iterator[None]:
    """Where ``path`` can't be written, it is a ``PtxmmError`` (kind ``io``). ``what``: what it is called there."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise PtxmmError(f"the {what} can't be written: {reason}", kind="io", file=str(path)) from error


def write_file(path: Path, text: str) -> None:
    """Write ``text``; the folder is made if it is not there. A file that is there is replaced as a whole, or stays as
    it is. Raises ``PtxmmError`` (kind ``io``)."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, text.encode())


def create_file(path: Path, text: str) -> None:
    """Write ``text`` to a file that is not there; the folder is made if it is not there. Raises ``PtxmmError`` (kind
    ``io``)."""
    if os.path.lexists(path):
        hint = "give another name: nothing is overwritten"
        raise PtxmmError("the file is there already", kind="io", file=str(path), hint=hint)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)


def replace_bytes(path: Path, data: bytes) -> None:
    """Let the file hold ``data``, with the permissions that it has: written beside it, then renamed. What is no regular
    file (a terminal, a pipe) is written to. Raises ``OSError``; then the file is what it was."""
    target = Path(os.path.realpath(path))  # a link stays one
    mode = None
    with suppress(FileNotFoundError):
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            target.write_bytes(data)
            return
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied")
        mode = stat.S_IMODE(found.st_mode)
    descriptor, name = tempfile.mkstemp(prefix=".ptxmm-", dir=target.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode if mode is not None else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
