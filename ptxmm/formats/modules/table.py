"""The keys of a launch specification, a TOML document, with their places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.initializers import TYPES
from ptxmm.formats.text import Text, at
from ptxmm.ptx.ops import Type


def integer(value: object) -> int | None:
    """``value`` if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What holds for all launches with what one of them says: its tables add their keys, or say them anew."""
    found = {**common, **own}
    for key in ("objects", "host", "check"):
        first, second = common.get(key), own.get(key)
        if isinstance(first, dict) and isinstance(second, dict):
            found[key] = {**first, **second}
    return found


_HEADER = re.compile(r"^[ \t]*\[\[?([\w.\s-]+)\]", re.MULTILINE)


class Table:
    """The keys of one launch, or of one of its grids, with their places: ``document[start:end]``."""

    def __init__(self, text: Text, document: str, data: Mapping[str, Any], start: int, end: int) -> None:
        self.text, self.document, self.data, self.start, self.end = text, document, data, start, end

    def launches(self) -> list[Table]:
        """The tables of the launches: this one, or its ``[[launch]]`` tables."""
        if "launch" not in self.data:
            if not self.data:
                raise at("there is no launch specification here", Span(1, 1, 2), kind="format")
            return [self]
        return self.several("launch", {key: value for key, value in self.data.items() if key != "launch"})

    def several(self, key: str, common: Mapping[str, Any]) -> list[Table]:
        """The tables of the array ``key``, each with what ``common`` says of all. Raises ``PtxmmError``."""
        items = self.data[key]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise self.error(key, f"`{key}` is an array of tables", f"write [[{key}]]")
        if not items:
            raise self.error(key, f"`{key}` is empty", f"write [[{key}]] and what is said of it, or leave it out")
        within = ((self.start, self.end), (0, len(self.document)))
        found = next((places for place in within if len(places := self._places(key, *place)) == len(items)), None)
        return [
            Table(self.text, self.document, _merged(common, item), start, end)
            for item, (start, end) in zip(items, found or [(self.start, self.end)] * len(items), strict=True)
        ]

    def _places(self, key: str, start: int, end: int) -> list[tuple[int, int]]:
        """Where the tables of the array ``key`` are in ``document[start:end]``, with the tables below them."""
        headers = [
            (match.start(), re.sub(r"\s", "", match[1])) for match in _HEADER.finditer(self.document, start, end)
        ]
        found: list[tuple[int, int]] = []
        for number, (place, name) in enumerate(headers):
            if name.rpartition(".")[2] == key and name in (key, f"launch.{key}"):
                after = (later for later, other in headers[number + 1 :] if not other.startswith(name + "."))
                found.append((place, next(after, end)))
        return found

    def span(self, key: str) -> Span:
        """Where ``key`` (dotted below a table) is given."""
        last = key.rpartition(".")[2]
        found = None
        for start, end in ((self.start, self.end), (0, len(self.document))):
            # `key =`, with what comes before and after it in a dotted key, or the `[key]` of a table.
            name = rf"(?:\"?[\w-]+\"?\.)*\"?{re.escape(last)}\"?(?:\.\"?[\w-]+\"?)*"
            pattern = re.compile(rf"(?<![\w.-]){name}[ \t]*(?==(?!=))|\[[\w.\s-]*\b{re.escape(last)}\s*\]")
            found = found or pattern.search(self.document, start, end)
        if found is None:
            return Span(1, 1, 2)
        return self.text.span(found.start(), found.end())

    def error(self, key: str, message: str, hint: str | None = None, kind: str = "format") -> PtxmmError:
        return at(message, self.span(key), kind=kind, hint=hint)

    def spans_of(self, key: str, items: list[Any]) -> list[Span]:
        """Where each of ``items``, the list that ``key`` is, stands: its text if it is a string or a number, else the
        key."""
        whole = self.span(key)
        position = self.text.starts[whole.line - 1] + whole.end_column - 1
        found: list[Span] = []
        for item in items:
            pattern = None
            if isinstance(item, str):
                pattern = rf"([\"']){re.escape(item)}\1"
            elif isinstance(item, int | float):
                pattern = rf"(?<![\w.+-]){re.escape(str(item))}(?![\w.])"
            match = re.compile(pattern).search(self.document, position) if pattern is not None else None
            found.append(whole if match is None else self.text.span(match.start(), match.end()))
            position = position if match is None else match.end()
        return found

    def text_of(self, key: str, value: str) -> Span:
        """Where the string ``value`` of ``key`` stands: its first character."""
        head = value[:20].split("\n")[0].replace("\\", "\\\\")
        line = self.span(key)
        begin = self.text.starts[line.line - 1]
        place = self.document.find(head, begin) if head else -1
        return line if place < 0 else self.text.span(place, place + max(1, len(head)))

    def subtable(self, key: str) -> dict[str, Any]:
        found = self.data.get(key, {})
        if not isinstance(found, dict):
            raise self.error(key, f"`{key}` is a table", f"write [{key}]")
        return found

    def string(self, data: Mapping[str, Any], key: str) -> str | None:
        found = data.get(key)
        if found is not None and not isinstance(found, str):
            raise self.error(key, f"`{key}` is a string")
        return found

    def number(self, data: Mapping[str, Any], key: str, low: int, high: int, within: str | None = None) -> int | None:
        """The number that ``data`` has for ``key``; ``within``: the key whose value ``data`` is, to name its place."""
        if key not in data:
            return None
        found = integer(data[key])
        if found is None or not low <= found <= high:
            raise self.error(within or key, f"`{key}` is a number from {low} to {high}")
        return found

    def type(self, key: str, word: object) -> Type:
        """The type of a variable that ``word``, said for ``key``, names."""
        found = TYPES.get(f".{word}") if isinstance(word, str) else None
        if found is None or found.kind == "pred":
            raise self.error(key, f"`{word}` is not a type of a variable", "as in u32, s64, f32, b8")
        return found

    def flag(self, data: Mapping[str, Any], key: str) -> bool:
        found = data.get(key, False)
        if not isinstance(found, bool):
            raise self.error(key, f"`{key}` is true or false")
        return found
