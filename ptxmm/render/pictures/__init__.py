"""Pictures of executions: which there are of a result (``subject``), what one shows (``scene``), where that is
(``layout``), and how it is written (``svg``, ``dot``, ``graphml``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ptxmm.analysis.result import Failure
from ptxmm.render import Entry, Page
from ptxmm.render.pictures.dot import digraph
from ptxmm.render.pictures.graphml import graphml
from ptxmm.render.pictures.subject import Picture, pictures
from ptxmm.render.pictures.svg import document


def svg(result: object, each: bool = False) -> str:
    """The picture of a result of an analysis that was asked for graphs, as an SVG document: of the execution that
    decides, or of ``each``. Raises ``TypeError`` for what has no pictures."""
    return document(list(pictures(result, each)))


def _shown(entries: Iterable[Entry[Any]], page: Page) -> Iterator[Picture]:
    for entry in entries:
        if not isinstance(entry.report, Failure):
            yield from pictures(entry.report, page.each)


def drawn(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
    """One SVG document with the pictures of all results, one below the other."""
    yield document(list(_shown(entries, page)))


def graphs(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
    """A graph of the DOT language for each picture."""
    for picture in _shown(entries, page):
        yield from digraph(picture)


def network(entries: Iterable[Entry[Any]], page: Page) -> Iterator[str]:
    """One GraphML document with a graph for each picture."""
    yield from graphml(_shown(entries, page))
