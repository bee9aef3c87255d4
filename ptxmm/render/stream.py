"""A verdict and its final states one after the other, each as soon as it is known, as lines of text or of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmm.analysis.claims import CLAIMS
from ptxmm.analysis.result import FinalState, Listed, Result
from ptxmm.render import Entry, Page
from ptxmm.render.document import line
from ptxmm.render.style import Style, clean
from ptxmm.render.text import decided, head, observed, outcome_line, table

Streamed = Result | FinalState | Listed


def text(entries: Iterable[Entry[Streamed]], page: Page) -> Iterator[str]:
    """As ``text.tables``: the verdict first, at last how many states there are and how many satisfy the condition."""
    separate = False
    for entry in entries:
        match entry.report:
            case FinalState() as state:
                shown = f"{'*' if state.satisfies else ' '} {outcome_line(state)}".rstrip()
                yield page.style.paint(shown, "bold") if state.satisfies else shown
            case Listed() as end:
                yield from _end(end)
            case Result() as result:
                if separate:
                    yield ""
                separate = True
                yield from (table(result, page.style) if result.quantifier in CLAIMS else _verdict(result, page.style))


def _verdict(result: Result, style: Style) -> Iterator[str]:
    yield from head(result)
    if result.quantifier is not None:
        yield f"Observation {clean(result.test)} {observed(result).capitalize()}"
    yield from decided(result, style)


def _end(end: Listed) -> Iterator[str]:
    yield f"States {end.states}{'' if end.listed else '+'}"
    if end.satisfying is not None:
        yield f"Witnesses {end.satisfying} {end.states - end.satisfying}"
    yield f"Time {clean(end.test)} {end.seconds:.2f}"


def lines(entries: Iterable[Entry[Streamed]], page: Page) -> Iterator[str]:
    """Each on a line of its own, as it would stand in the document."""
    for entry in entries:
        yield line(entry.report)
