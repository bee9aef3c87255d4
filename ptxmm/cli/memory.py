"""Memory: what the machine has, a limit for a process, and how running out of it looks."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

MEGABYTE = 1 << 20
_SHARE = 0.8
"""Of the memory of the machine, what all processes that do tasks may take together."""

_PHRASES = ("out of memory", "cannot allocate memory", "failed to map segment", "can't start new thread", "bad_alloc")


def share(processes: int) -> int | None:
    """The bytes that each of so many processes may take, None where the machine does not say what it has."""
    found = [size for size in (_machine(), *map(_control_group, _CONTROL_GROUPS)) if size]
    parts = [int(_SHARE * min(found) / processes)] if found else []
    own = _addresses()
    return min([*parts, own]) if own is not None else min(parts, default=None)


def _addresses() -> int | None:
    """How many bytes a process may have addresses for (``ulimit -v``), None: any number."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _machine() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _control_group(path: str) -> int | None:
    """The limit of a container, if there is one."""
    try:
        text = Path(path).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() and len(text) < 20 else None


def bound_memory(size: int) -> None:
    """Let this process have at most ``size`` bytes of its own, where the operating system can see to that."""
    if sys.platform == "win32":
        return
    import resource

    # Linux counts all private memory as data; elsewhere the limit may have no effect.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def unbound_memory() -> None:
    """Take the limit away again, so that there is room to tell that it was reached."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def peak() -> int:
    """The most bytes of memory that this process has had at a time; 0 where that is not known."""
    if sys.platform == "win32":
        return 0
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def resident(process: int | None) -> int:
    """The bytes of memory that another process has, or of addresses where these are bounded; 0: not known."""
    try:
        with open(f"/proc/{process}/statm", "rb") as stream:
            sizes = stream.read().split()
        return int(sizes[1 if _addresses() is None else 0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def is_shortage(error: BaseException) -> bool:
    """Whether ``error`` says that there is no memory left, in whatever words, or is raised where there is none."""
    return _told(error) or not _room()


def _room() -> bool:
    """Whether there is memory for some more work: a library that was not loaded for want of it may not say so."""
    try:
        return len(bytearray(_WORTH)) > 0
    except MemoryError:
        return False


_WORTH = 64 * MEGABYTE


def _told(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError) or (isinstance(seen, OSError) and seen.errno == errno.ENOMEM):
            return True
        text = str(seen).lower()
        if any(phrase in text for phrase in _PHRASES):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
