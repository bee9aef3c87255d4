"""What the terminal allows: colours, and a progress bar on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from ptxmm.render.style import Style, clean

T = TypeVar("T")


def style(stream: TextIO) -> Style:
    """Lines that fit into a terminal, and colours, unless it is a dumb one or the environment has ``NO_COLOR``
    (https://no-color.org)."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    terminal = stream.isatty()
    return Style(terminal and not plain, shutil.get_terminal_size().columns if terminal else 0)


def progress(items: Iterable[T | None], total: int) -> Iterator[T]:
    """The ``items`` that are not None, with a bar on stderr if it is a terminal and ``total``, the number of those that
    are, is more than one."""
    if total < 2 or not sys.stderr.isatty():
        yield from (item for item in items if item is not None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn())
    # The bar is drawn only between items and taken away before each, so that lines of any length can be printed as
    # they are; rich's own redirection would wrap them.
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("checking", total=total)
        for item in items:
            if item is None:
                bar.advance(task)
                continue
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            yield item
            sys.stdout.flush()
            bar.refresh()


def counted(items: Iterable[T]) -> Iterator[T | None]:
    """Each of ``items``, and for ``progress`` that it is done."""
    for item in items:
        yield item
        yield None


def complain(text: str) -> None:
    """Write ``text`` on stderr, after what stdout already has, and without control characters of the input."""

    sys.stdout.flush()
    print("\n".join(clean(line) for line in text.split("\n")), file=sys.stderr, flush=True)
