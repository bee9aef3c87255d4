"""The text of a C++ source with its lines, and its tokens (ISO C++ [lex])."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from msgspec import Struct

_TOKEN = re.compile(
    r"""(?:\s|\\\r?\n)*+(?:
    (?P<name>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+)
    |(?P<number>\.?[0-9](?:[eEpP][+-]|'?[A-Za-z0-9_.])*+)
    |(?P<string>"(?:[^"\\\n]|\\(?:\r\n|[\s\S]))*+"?)
    |(?P<char>'(?:[^'\\\n]|\\(?:\r\n|[\s\S]))*+'?)
    |(?P<comment>//(?:[^\n\\]|\\(?:\r\n|[\s\S])?)*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)
    |(?P<mark>::|->|\#\#|==|!=|<=|>=|&&|\|\||[^\s])
    )""",
    re.VERBOSE,
)
_RAW_PREFIX = re.compile(r"(?:u8|[uUL])?R")
_RAW_START = re.compile(r"\"([^ ()\\\t\v\f\n\"]{0,16})\(")
_STRING_PREFIXES = frozenset({"u8", "u", "U", "L"})
_DIRECTIVE_STOP = re.compile(r"\\\r?\n|\n|/\*|//|\"(?:[^\"\\\n]|\\(?:\r\n|[\s\S]))*+\"?")


class Token(NamedTuple):
    """A token: ``kind`` is ``name number string raw char mark directive``; ``text`` as written."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


class Source(Struct, frozen=True):
    """A source file: its name for reports, its text, and the offsets at which its lines start."""

    name: str
    text: str
    starts: tuple[int, ...]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column, from 1, of the character at ``offset``."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, from 1, without its end."""
        end = self.starts[number] if number < len(self.starts) else len(self.text)
        return self.text[self.starts[number - 1] : end].rstrip("\r\n")


def source(name: str, text: str) -> Source:
    """The source ``text`` called ``name``."""
    return Source(name, text, (0, *(found.end() for found in re.finditer("\n", text))))


def tokens(text: str, position: int = 0, end: int | None = None, *, directives: bool = True) -> list[Token]:
    """The tokens of ``text`` from ``position`` to ``end``; comments are left out.

    With ``directives`` a preprocessor line is one token (of all its continued lines); else ``#`` is a mark, which is
    how the body of a macro is read. Whatever the text, this neither fails nor takes more than linear time.
    """
    found: list[Token] = []
    new = tuple.__new__  # what Token(...) calls, without the call in between
    stop = len(text) if end is None else end
    match = _TOKEN.match
    last = position
    while position < stop:
        hit = match(text, position, stop)
        if hit is None:
            break
        kind = hit.lastgroup or "mark"
        start, position = hit.start(kind), hit.end()
        if kind == "comment":
            continue
        word = hit[kind]
        if kind == "string" and found and found[-1].kind == "name" and found[-1].end == start:
            prefix = found[-1].text
            if _RAW_PREFIX.fullmatch(prefix):
                position = _raw_end(text, start, stop)
                found[-1] = Token("raw", text[found[-1].start : position], found[-1].start)
                last = position
                continue
            if prefix in _STRING_PREFIXES:
                found.pop()
        elif word == "#" and directives and (last == 0 or text.find("\n", last, start) >= 0):
            position = _directive_end(text, start, stop)
            kind, word = "directive", text[start:position]
        found.append(new(Token, (kind, word, start)))
        last = position
    return found


def _raw_end(text: str, start: int, stop: int) -> int:
    """Where the raw string whose quote is at ``start`` ends."""
    opening = _RAW_START.match(text, start, stop)
    if opening is None:
        return min(start + 1, stop)
    closing = f'){opening[1]}"'
    at = text.find(closing, opening.end(), stop)
    return stop if at < 0 else at + len(closing)


def _directive_end(text: str, start: int, stop: int) -> int:
    position = start
    while (hit := _DIRECTIVE_STOP.search(text, position, stop)) is not None:
        if hit[0] == "\n":
            return hit.start()
        position = hit.end()
        if hit[0] == "/*":
            closing = text.find("*/", position, stop)
            position = stop if closing < 0 else closing + 2
    return stop
