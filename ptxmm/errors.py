"""Errors that a user of ptxmm sees: one message with its place in the input and, where possible, the mend."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct


class Span(Struct, frozen=True):
    """A place in an input text: 1-based line and column, and the column after its last character on that line."""

    line: int
    column: int
    end_column: int


class PtxmmError(Exception):
    """An error of the input or of its use, with its place.

    ``kind`` is a short stable word for JSON (``syntax``, ``isa``, ``name``, ``type``, ``condition``, ``model``,
    ``format``, ``io``, ``unsupported``, ``usage``, ``timeout``, ``memory``, ``killed``, ``internal``);
    ``line`` and ``column`` are 1-based;
    ``source`` is the text of that line; ``width`` is the number of characters the caret underlines. ``more``: what
    else is wrong with the same file, if that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "syntax",
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        width: int = 1,
        source: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.file = file
        self.line = line
        self.column = column
        self.width = width
        self.source = source
        self.hint = hint
        self.more: list[PtxmmError] = []

    def at(self, span: Span) -> PtxmmError:
        """Fill in the place, and the width of the caret."""
        self.line, self.column, self.width = span.line, span.column, max(1, span.end_column - span.column)
        return self

    def place(self, file: str, text: str) -> PtxmmError:
        """Fill in ``file`` and, from the whole input ``text``, the line of source that the error points at."""
        self.file = self.file or file
        if self.source is None and self.line is not None:
            lines = text.replace("\r\n", "\n").split("\n")  # what the parsers count as lines
            if 0 < self.line <= len(lines):
                self.source = lines[self.line - 1]
        for other in self.more:
            other.place(file, text)
        return self

    def __str__(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}" + (f":{self.column}" if self.column is not None else "")
        head = f"{where}: error: {self.message}" if where else f"error: {self.message}"
        parts = [head]
        if self.source is not None and self.column is not None:
            source, column = _window(self.source, self.column)
            parts.append("  " + source)
            lead = "".join("\t" if c == "\t" else " " for c in source[: column - 1])
            parts.append("  " + lead + "^" * max(1, min(self.width, len(source) - column + 1)))
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: the places in the user's own code, and the message; of a bug of ptxmm all places."""
        import traceback

        others = (os.path.dirname(__file__) + os.sep, f"{os.sep}IPython{os.sep}")
        frames = traceback.extract_tb(self.__traceback__)
        shown = [f for f in frames if self.kind == "internal" or not any(other in f.filename for other in others)]
        return [*(line.rstrip("\n") for line in traceback.format_list(shown)), str(self)]


MOST = 20
"""At most so many errors of a file are told."""


def together(errors: Iterable[PtxmmError]) -> PtxmmError:
    """The first of some errors of one file in the order of the text, with the others as its ``more``: one for a place,
    each unknown name once, at most ``MOST``."""
    found: dict[tuple[int, int], PtxmmError] = {}
    names: set[str] = set()
    for error in errors:
        place = error.line or 0, error.column or 0
        if place not in found and not (error.kind == "name" and error.message in names):
            names.add(error.message)
            found[place] = error
    first, *others = [error for _, error in sorted(found.items(), key=lambda item: item[0])]
    first.more = others[: MOST - 1]
    return first


class Timeout(PtxmmError):
    """A deadline passed before the search was done."""

    def __init__(self, message: str = "the time limit was reached") -> None:
        super().__init__(message, kind="timeout")


def _window(source: str, column: int, width: int = 120) -> tuple[str, int]:
    """A readable part of ``source`` around ``column``, control characters replaced, and the column inside it."""
    clean = "".join(c if c.isprintable() or c == "\t" else "�" for c in source)
    if len(clean) <= width:
        return clean, column
    start = max(0, column - 1 - width // 2)
    return clean[start : start + width], column - start
