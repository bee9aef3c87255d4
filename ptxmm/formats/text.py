"""The text of an input file: decoding, places in it, and comments masked by blanks so that every place stays."""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span

MAX_CHARACTERS = 1_000_000
MAX_BYTES = 4 * MAX_CHARACTERS

_COMMENT = re.compile(r"\(\*|/\*|//")
_OCAML = re.compile(r"\(\*|\*\)")
_NOT_NEWLINE = re.compile(r"[^\n]")


class Text(Struct, frozen=True):
    """The characters of a file, ``\\n`` only, with the offset at which each line starts."""

    file: str
    characters: str
    starts: tuple[int, ...]

    def place(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of the character at ``offset``."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """The span of ``characters[start:end]``, cut at the end of its first line."""
        line, column = self.place(start)
        last_line, last_column = self.place(end)
        end_column = last_column if last_line == line else self._line_end(line) + 1
        return Span(line, column, max(column + 1, end_column))

    def _line_end(self, line: int) -> int:
        """The number of characters of a line."""
        start = self.starts[line - 1]
        end = self.starts[line] - 1 if line < len(self.starts) else len(self.characters)
        return end - start

    def error(
        self, message: str, start: int, end: int | None = None, *, kind: str = "syntax", hint: str | None = None
    ) -> PtxmmError:
        """An error whose caret underlines ``characters[start:end]`` (one character without ``end``)."""
        return at(message, self.span(start, start + 1 if end is None else end), kind=kind, hint=hint)

    def fill(self, error: PtxmmError) -> PtxmmError:
        """Give ``error`` the name of the file and the text of its line."""
        error.file = error.file or self.file
        if error.source is None and error.line is not None and 0 < error.line <= len(self.starts):
            start = self.starts[error.line - 1]
            error.source = self.characters[start : start + self._line_end(error.line)]
        return error


def at(message: str, span: Span, *, kind: str = "syntax", hint: str | None = None) -> PtxmmError:
    """An error at ``span``."""
    return PtxmmError(message, kind=kind, hint=hint).at(span)


def decode(data: bytes, file: str) -> str:
    """The text in ``data``: UTF-8, with or without a byte order mark. Raises ``PtxmmError`` (kind ``format``)."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise PtxmmError("the file has a NUL byte, so it is not a text file", kind="format", file=file, line=line)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise PtxmmError(message, kind="format", file=file, line=line) from None


def open_text(text: str, file: str, most: int = MAX_CHARACTERS) -> Text:
    """``text`` with line ends unified and its byte order mark removed.

    Raises ``PtxmmError`` (kind ``format``) if it is empty, holds a NUL or has more than ``most`` characters: by
    default those that no litmus test ever has.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > most:
        what = "a litmus test has" if most == MAX_CHARACTERS else "it may have"
        message = f"the file has {len(text)} characters; {what} at most {most}"
        raise PtxmmError(message, kind="format", file=file)
    if not text.strip():
        raise PtxmmError("the file is empty", kind="format", file=file)
    starts = (0, *(m.end() for m in re.finditer("\n", text)))
    opened = Text(file, text, starts)
    if "\0" in text:
        raise opened.fill(opened.error("the file has a NUL character", text.index("\0"), kind="format"))
    return opened


def blank(characters: str) -> str:
    """As many blanks and line ends as ``characters`` has characters and line ends."""
    return _NOT_NEWLINE.sub(" ", characters)


def mask_comments(text: Text, start: int) -> tuple[str, list[int]]:
    """The characters with every comment from ``start`` on blanked, and the offsets of the ``//`` comments.

    Comments are ``(* *)``, which nest, ``/* */`` and ``//``. Raises ``PtxmmError`` for one without end.
    """
    source = text.characters
    parts = [source[:start]]
    slashes: list[int] = []
    position = start
    while match := _COMMENT.search(source, position):
        begin = match.start()
        opener = match.group()
        if opener == "//":
            slashes.append(begin)
            end = source.find("\n", begin)
            end = len(source) if end < 0 else end
        elif opener == "/*":
            end = source.find("*/", begin + 2) + 2
            if end < 2:
                raise text.error("the comment `/*` has no end", begin, begin + 2, hint="close it with `*/`")
        else:
            end = _ocaml_end(text, begin)
        parts += (source[position:begin], blank(source[begin:end]))
        position = end
    parts.append(source[position:])
    return "".join(parts), slashes


def _ocaml_end(text: Text, begin: int) -> int:
    depth = 0
    for match in _OCAML.finditer(text.characters, begin):
        depth += 1 if match.group() == "(*" else -1
        if depth == 0:
            return match.end()
    raise text.error("the comment `(*` has no end", begin, begin + 2, hint="close it with `*)`")


def closing_brace(text: Text, masked: str, opening: int) -> int:
    """The offset of the ``}`` that closes the ``{`` at ``opening``; raises ``PtxmmError`` if there is none."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(masked, opening):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    raise text.error("this `{` is never closed", opening, hint="close it with `}`")
