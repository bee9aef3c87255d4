"""Results as text, JSON, SARIF and annotations: one function for each kind of result and format, found in one table.

Such a function takes the entries as they come and a ``Page``, and yields pieces of lines, the first as soon as it can.
A new format is a module beside these and its line in ``RENDERERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from ptxmm.render.style import Style

if TYPE_CHECKING:
    from ptxmm.analysis.result import Failure

T = TypeVar("T")


class Entry(Struct, Generic[T], frozen=True):
    """A result or an error; ``several``: its file holds more tests than this one; ``text``: of the test."""

    report: T | Failure
    several: bool = False
    text: str = ""


class Page(Struct, frozen=True):
    """How output looks. ``width``: of the names of files; ``start``: when the work began, on the clock
    ``time.perf_counter``; ``verbose``: with every remark; ``fixed``: how many findings were mended;
    ``texts``: of the sources, by file; ``each``: a picture of everything that has one;
    ``definitions``: with what each step of a reason means."""

    style: Style = Style(False)
    width: int = 0
    start: float = 0.0
    verbose: bool = False
    fixed: int = 0
    texts: Mapping[str, str] = {}
    each: bool = False
    definitions: bool = False


Renderer = Callable[[Iterable[Entry[Any]], Page], Iterator[str]]

_ANALYSES = ("explain", "races", "fences", "robust", "scopes", "progress", "compare")

PICTURED = ("outcomes", "explain", "races", "fences")
"""Kinds of results with pictures of executions."""
DRAWN = ("svg", "dot", "graphml", "html")
"""The formats with pictures, which need executions as graphs."""

RENDERERS: Mapping[str, Mapping[str, str]] = {
    "text": {
        "check": "text.verdicts",
        "outcomes": "text.tables",
        "stream": "stream.text",
        **{name: f"{name}.pages" for name in _ANALYSES},
        "comparisons": "compare.listing",
        "separation": "compare.separations",
        "lint": "lint.text",
        "show": "listing.pages",
        "run": "run.pages",
        "sweep": "sweep.table",
        "whole": "whole.pages",
        "whole_fences": "whole_fences.pages",
    },
    "json": {
        **dict.fromkeys(
            ("check", "outcomes", *_ANALYSES, "comparisons", "lint", "show", "run", "whole"), "document.entries"
        ),
        "explain": "explain.entries",
        "fences": "fences.entries",
        "whole_fences": "whole_fences.entries",
        "separation": "compare.separation_entries",
        "stream": "stream.lines",
        "sweep": "sweep.lines",
    },
    "svg": {**dict.fromkeys(PICTURED, "pictures.drawn"), "whole": "timeline.drawn"},
    "dot": dict.fromkeys(PICTURED, "pictures.graphs"),
    "graphml": dict.fromkeys(PICTURED, "pictures.network"),
    "html": {**dict.fromkeys(("check", *PICTURED, "run"), "report.page"), "whole": "timeline.page"},
    "sarif": {"check": "sarif.verdicts", "lint": "sarif.log", "whole": "sarif.launches"},
    "github": {
        "check": "github.verdicts",
        "whole": "github.launches",
        **{name: f"github.{name}" for name in ("races", "fences", "robust", "progress", "lint")},
    },
}
"""The function (``module.name`` of this folder) that shows results in a format; most kinds of results are called like
the command that prints them."""


def formats(kind: str) -> list[str]:
    """The formats that results of this kind have."""
    return [name for name, kinds in RENDERERS.items() if kind in kinds]


def renderer(kind: str, format: str) -> Renderer:
    """The function that shows results of this kind in a format that they have."""
    module, _, name = RENDERERS[format][kind].partition(".")
    found: Renderer = getattr(import_module(f"ptxmm.render.{module}"), name)
    return found
