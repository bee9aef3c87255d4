"""The reasons of an explanation as trees to be unfolded: each step with what it means and what it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from ptxmm.analysis.explain import ExplainResult
from ptxmm.analysis.explain.clauses import Definition
from ptxmm.analysis.explain.steps import Edge
from ptxmm.render.explain import ends, words
from ptxmm.render.style import clean, section

Meanings = Mapping[tuple[str, str | None], Definition]


def trees(result: ExplainResult) -> Iterator[str]:
    """A tree for each reason."""
    meanings = {(found.relation, found.section): found for found in result.definitions}
    reasons = [reason for group in result.groups for reason in group.reasons]
    for number, reason in enumerate(reasons, 1):
        which = f" {number}" if len(reasons) > 1 else ""
        head = f"Reason{which}, step by step: {reason.axiom}{section(reason.section)}"
        yield f'<details class="steps"><summary>{_text(head)}</summary><p>{_text(reason.sentence)}.</p>'
        yield from _meaning(meanings.get((reason.axiom, reason.section)))
        yield from _steps((*reason.edges, *reason.beside), meanings)
        yield "</details>"


def _steps(edges: Sequence[Edge], meanings: Meanings) -> Iterator[str]:
    if not edges:
        return
    yield "<ul>"
    for edge in edges:
        head = f"{escape(ends(edge))}: {escape(words(edge))}"
        parts = (*edge.inner, *edge.also)
        meaning = meanings.get((edge.relation, edge.section))
        if parts or meaning is not None:
            yield f"<li><details><summary>{head}</summary>"
            yield from _meaning(meaning)
            yield from _steps(parts, meanings)
            yield "</details></li>"
        else:
            yield f"<li>{head}</li>"
    yield "</ul>"


def _meaning(found: Definition | None) -> Iterator[str]:
    if found is not None and found.written is not None:
        yield f'<p title="{_text(found.place or "")}"><code>{_text(found.written)}</code></p>'
    if found is not None and found.sentence is not None:
        yield f"<blockquote>{_text(found.sentence)}</blockquote>"


def _text(text: str) -> str:
    return escape(clean(text))
