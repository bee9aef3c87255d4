"""Template tables of nvlitmus: a text with ``$0 $1 ...`` and, after a line ``$$``, one row of cells an instance.

Every character of an instance knows where it stands in the file, so that errors point there.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.text import Text, at

MAX_CHARACTERS = 500_000
"""The most that a file, or all its instances, may come to: cells used many times would grow without bound."""


class Instance(Struct, frozen=True):
    """One text to parse: piece i begins at ``starts[i]`` in ``text`` and at ``origins[i]`` in the file.

    ``row`` counts the rows of the table from 1; it is None for a file without a table.
    """

    text: str
    row: int | None
    cells: tuple[str, ...]
    starts: tuple[int, ...]
    origins: tuple[int, ...]
    origin: Text

    def span(self, offset: int, end: int) -> Span:
        """The place in the file of the characters ``offset .. end`` of ``text``, cut where their line or cell ends."""
        piece = bisect_right(self.starts, offset) - 1
        limit = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)
        shift = self.origins[piece] - self.starts[piece]
        return self.origin.span(offset + shift, max(offset, min(end, limit)) + shift)

    def error(
        self, message: str, offset: int, end: int, *, kind: str = "syntax", hint: str | None = None
    ) -> PtxmmError:
        """An error at the characters ``offset .. end`` of ``text``."""
        return at(message, self.span(offset, end), kind=kind, hint=hint)


def instances(source: Text) -> list[Instance]:
    """The texts that a file stands for: itself, or one for each row of its table.

    ``//`` comments are blanked out first; in the table, lines that start with ``#`` are comments too.
    Raises ``PtxmmError`` for a parameter that a row does not give, a cell that is not used, and too large a result.
    """
    clean = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]), source.characters)
    separator = re.search(r"^[^\S\n]*\$\$[^\S\n]*$", clean, re.MULTILINE)
    body = clean[: separator.start()] if separator else clean
    parameters = list(re.finditer(r"\$([0-9]+|\$?)", body))
    whole = Instance(body, None, (), (0,), (0,), source)
    for found in parameters:
        if not found[1].isdigit():
            hint = "the line $$ stands alone" if found[0] == "$$" else "a parameter is $ and the number of a column"
            raise whole.error(f"stray `{found[0]}`", *found.span(), hint=hint)
    if separator is None:
        if parameters:
            hint = "a line $$ and the rows of the table follow the template"
            raise whole.error(f"no table gives `{parameters[0][0]}` a value", *parameters[0].span(), hint=hint)
        _limit(len(body), whole)
        return [whole]
    return _rows(clean, separator, body, parameters, whole)


def _rows(
    clean: str, separator: re.Match[str], body: str, parameters: list[re.Match[str]], whole: Instance
) -> list[Instance]:
    """One instance for each row of the table after ``separator``."""
    table = Instance(clean, None, (), (0,), (0,), whole.origin)
    used = {int(m[1]) if len(m[1]) < 6 else -1: m for m in reversed(parameters)}
    found: list[Instance] = []
    total = 0
    offset = separator.end() + 1
    for line in clean[offset:].split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            cells = _cells(line, offset)
            for number, parameter in used.items():
                if not 0 <= number < len(cells):
                    hint = f"the row has {len(cells)} cells, from $0 on"
                    where = table.span(parameter.start(), parameter.end())
                    message = f"the row has no cell for `{parameter[0]}` of line {where.line}"
                    raise table.error(message, offset, offset + len(line), hint=hint)
            for number, (cell, start) in enumerate(cells):
                if number not in used:
                    message, end = f"the template does not use `${number}`", start + max(1, len(cell))
                    raise table.error(message, start, end, hint="a row has a cell for each parameter")
            total += len(body) + sum(len(cells[int(m[1])][0]) for m in parameters)
            _limit(total, whole)
            found.append(_instance(body, parameters, cells, len(found) + 1, whole.origin))
        offset += len(line) + 1
    if not found:
        raise table.error("the table has no rows", separator.start(), separator.end())
    return found


def _cells(line: str, offset: int) -> list[tuple[str, int]]:
    """The cells of a row without the spaces around them, and where they stand in the file."""
    cells: list[tuple[str, int]] = []
    for cell in line.split("|"):
        lead = len(cell) - len(cell.lstrip())
        cells.append((cell.strip(), offset + (lead if cell.strip() else 0)))
        offset += len(cell) + 1
    return cells


def _instance(
    body: str, parameters: list[re.Match[str]], cells: list[tuple[str, int]], row: int, origin: Text
) -> Instance:
    """``body`` with the cells in place of the parameters."""
    parts: list[str] = []
    starts: list[int] = []
    origins: list[int] = []
    length = done = 0

    def put(text: str, at: int) -> None:
        nonlocal length
        if text:
            parts.append(text)
            starts.append(length)
            origins.append(at)
            length += len(text)

    for parameter in parameters:
        put(body[done : parameter.start()], done)
        put(*cells[int(parameter[1])])
        done = parameter.end()
    put(body[done:] or " ", done if done < len(body) else max(0, done - 1))
    return Instance("".join(parts), row, tuple(c for c, _ in cells), tuple(starts), tuple(origins), origin)


def _limit(characters: int, whole: Instance) -> None:
    """Refuse a file whose instances are too long."""
    if characters > MAX_CHARACTERS:
        raise whole.error(f"the file comes to more than {MAX_CHARACTERS:,} characters", 0, 1, kind="format")
