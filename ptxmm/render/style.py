"""Text for a terminal: colours, none for anything else, and nothing that could steer it."""

from __future__ import annotations

from msgspec import Struct

_CODES = {"green": "32", "red": "31", "yellow": "33", "bold": "1"}


class Style(Struct, frozen=True):
    """``colour``: write ANSI colour codes."""

    colour: bool

    def paint(self, text: str, name: str) -> str:
        """``text`` in the colour ``name`` (green, red, yellow, bold; anything else leaves it plain)."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.colour and name in _CODES else text


def section(found: str | None) -> str:
    """The number of a section in brackets, after what it is about."""
    return f" ({found})" if found else ""


def clean(text: str) -> str:
    """``text`` on one line and without control characters, which could steer a terminal."""
    return "".join(c if c.isprintable() else "�" if not c.isspace() else " " for c in text)
