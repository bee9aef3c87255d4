"""Text for a terminal: colours, none for anything else, and nothing that could steer it."""

from __future__ import annotations

import re

from msgspec import Struct

_CODE = re.compile(r"\x1b\[\d+m")
_WORDS = re.compile(r"( *)([^ ]+)")
_CODES = {"green": "32", "red": "31", "yellow": "33", "bold": "1"}


class Style(Struct, frozen=True):
    """``colour``: write ANSI colour codes. ``width``: so many characters fit into a line; 0: as many as there are."""

    colour: bool
    width: int = 0

    def paint(self, text: str, name: str) -> str:
        """``text`` in the colour ``name`` (green, red, yellow, bold; anything else leaves it plain)."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.colour and name in _CODES else text

    def fit(self, line: str) -> list[str]:
        """``line`` in as many lines as it takes, broken between words only; all but the first are indented further."""
        indent = len(line) - len(line.lstrip(" "))
        if not self.width or _visible(line) <= self.width:
            return [line]
        hanging = " " * min(indent + 4, self.width // 2)
        lines: list[str] = []
        current = line[:indent]
        for gap, word in _WORDS.findall(line[indent:]):
            if current.strip() and _visible(current + gap + word) > self.width:
                lines.append(current)
                current = hanging + word
            else:
                current += gap + word
        return [*lines, current]


def _visible(text: str) -> int:
    """The width of ``text`` without the codes of colours."""
    return len(_CODE.sub("", text))


def section(found: str | None) -> str:
    """The number of a section in brackets, after what it is about."""
    return f" ({found})" if found else ""


def clean(text: str) -> str:
    """``text`` on one line and without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "�" if not c.isspace() else " " for c in text)
