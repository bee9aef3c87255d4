"""Results as HTML for a notebook: text with its colours, and tables. Nothing of a test is markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

_COLOURS = {"32": "color: #1a7f37", "31": "color: #cf222e", "33": "color: #9a6700", "1": "font-weight: bold"}
"""The ANSI codes of ``style`` in CSS; readable on white, and on black."""
_PAINTED = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m", re.DOTALL)
_CELL = "font-family: monospace; text-align: left"


def preformatted(text: str) -> str:
    """Lines, with what ``Style`` painted in its colour."""
    return f'<pre style="line-height: 1.3">{_PAINTED.sub(_span, escape(text))}</pre>'


def _span(found: re.Match[str]) -> str:
    return f'<span style="{_COLOURS[found[1]]}">{found[2]}</span>'


def table(rows: Sequence[Mapping[str, object]], marked: Sequence[bool] = ()) -> str:
    """Rows with the same columns; those ``marked`` stand out, by a mark as well."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in rows[0])
    body = []
    for number, row in enumerate(rows):
        bold = number < len(marked) and marked[number]
        style = f"{_CELL}; font-weight: bold" if bold else _CELL
        cells = "".join(f'<td style="{style}">{escape(str(value))}</td>' for value in row.values())
        body.append(f"<tr><td>{'*' if bold else ''}</td>{cells}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
