"""Places in the text of a thread, and how errors point at them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span

if TYPE_CHECKING:
    from ptxmm.tokens import Token


class Origin(Struct, frozen=True):
    """The input and the place of its first character in the file."""

    text: str
    line: int
    column: int

    def span(self, first: Token, last: Token | None = None) -> Span:
        """The span from ``first`` to ``last``; up to the end of the first line if they are on different lines."""
        last = last or first
        line, column = self.place(first.line, first.column)
        if last.end_line == first.line:
            return Span(line, column, self.place(first.line, last.end_column)[1])
        end = self.text.find("\n", first.start_pos)
        raw = self.text[first.start_pos : end if end >= 0 else len(self.text)]
        return Span(line, column, column + max(1, len(raw.rstrip())))

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The line and column in the file of a line and column of the text."""
        return (self.line + line - 1, column + (self.column - 1 if line == 1 else 0))

    def place_at(self, position: int) -> tuple[int, int]:
        """The line and column in the file of the character with index ``position``."""
        before = self.text[:position]
        start = before.rfind("\n") + 1
        return self.place(before.count("\n") + 1, position - start + 1)

    def flat(self, first: Token, last: Token) -> str:
        """The text from ``first`` to ``last`` without comments and with single spaces."""
        return " ".join(strip_comments(self.text[first.start_pos : last.end_pos]).split())

    def unexpected(self, position: int) -> PtxmmError:
        """The error that no token begins with the character with index ``position``."""
        if self.text.startswith("/*", position):
            return self.error("the comment `/*` has no end", position, 2, "close it with `*/`")
        char = self.text[position]
        shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
        return self.error(f"unexpected character {shown}", position)

    def error(self, message: str, position: int, width: int = 1, hint: str | None = None) -> PtxmmError:
        """A ``PtxmmError`` of kind ``syntax`` at the character with index ``position``."""
        line, column = self.place_at(position)
        return PtxmmError(message, kind="syntax", line=line, column=column, width=width, hint=hint)


def syntax_error_at(span: Span, message: str, *, hint: str | None = None) -> PtxmmError:
    """A ``PtxmmError`` of kind ``syntax`` that points at ``span``."""
    return PtxmmError(message, kind="syntax", hint=hint).at(span)


def clip(text: str, limit: int = 40) -> str:
    """``text``, cut where an error message would become unreadable."""
    return text if len(text) <= limit else text[:limit] + "..."


def strip_comments(text: str) -> str:
    """``text`` with a blank for each comment."""
    return re.sub(r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/", " ", text)
