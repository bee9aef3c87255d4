"""The JSON document ``ptxmm/2``: results and errors in one list, in the order of the input.

An entry has the attributes of its result as they are, and ``analysis``, which says what kind it is of. Where a result
holds programs, which are no data, it has those of a record that is made of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from msgspec import DecodeError, Struct, to_builtins
from msgspec.json import format

from ptxmm.analysis.result import Expired, Failure
from ptxmm.render import Entry, Page, Renderer

Schema = Literal["ptxmm/2"]
SCHEMA: Schema = "ptxmm/2"

T = TypeVar("T", bound=Struct)


def entries(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
    """The document of results that are data."""
    yield document(entry.report for entry in entries)


def recorded(record: Callable[[Any], Struct]) -> Renderer:
    """The renderer of results of which ``record`` makes what is data."""

    def entries(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
        reports = (entry.report for entry in entries)
        yield document(r if isinstance(r, Failure | Expired) else record(r) for r in reports)

    return entries


def taken(kind: type[T], result: object, **own: object) -> T:
    """The record of this kind with the attributes of ``result`` and those in ``own``."""
    names = (name for name in kind.__struct_fields__ if name not in own)
    return kind(**{name: getattr(result, name) for name in names}, **own)


def document(reports: Iterable[Struct]) -> str:
    """The whole document. It is ASCII, as names of files need not be text and standard output need not be UTF-8."""
    found = {"schema": SCHEMA, "results": [_plain(report) for report in reports]}
    try:
        return format(json.dumps(found), indent=2)  # a quarter of the time that it takes with json alone
    except DecodeError:  # of the name of a file that is no text
        return json.dumps(found, indent=2)


def line(report: Struct) -> str:
    """A result on a line of its own."""
    return json.dumps(_plain(report))


def _plain(report: Struct) -> Any:
    entry = to_builtins(report)
    if "seconds" in entry:
        entry["seconds"] = round(entry["seconds"], 6)
    return entry
