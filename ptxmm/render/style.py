"""Colours for a terminal, none for anything else."""

from __future__ import annotations

from dataclasses import dataclass

_CODES = {"green": "32", "red": "31", "yellow": "33", "bold": "1"}


@dataclass(frozen=True, slots=True)
class Style:
    """``colour``: write ANSI colour codes."""

    colour: bool

    def paint(self, text: str, name: str) -> str:
        """``text`` in the colour ``name`` (green, red, yellow, bold; anything else leaves it plain)."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.colour and name in _CODES else text
