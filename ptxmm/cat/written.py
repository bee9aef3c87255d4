"""How a model writes each definition and each check, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxmm.cat.check import Source
from ptxmm.cat.ir import Written
from ptxmm.cat.leave_out import definitions_of, statements_of
from ptxmm.cat.parser import without_comments
from ptxmm.cat.reader import tokens


def written(sources: Iterable[Source]) -> dict[str, Written]:
    """The last statement that defines each name or makes each named check, of ``sources`` in the order in which their
    statements count, which were parsed without an error."""
    return {name: found for source in sources for name, found in _of(source)}


def _of(source: Source) -> Iterator[tuple[str, Written]]:
    clean = without_comments(source.text)[1]
    found = tokens(clean) or []
    for first, last in statements_of(found):
        text = " ".join(clean[found[first].start_pos : found[last - 1].end_pos].split())
        statement = Written(source.path, clean.count("\n", 0, found[first].start_pos) + 1, text)
        kinds = [token.type for token in found[first:last]]
        if kinds[0] in ("FLAG", "CHECK") and kinds[-2] == "as":
            yield str(found[last - 1]), statement
        elif "let" in kinds[:2] or "LETREC" in kinds[:2]:
            start = next(i for i, kind in enumerate(kinds) if kind in ("let", "LETREC"))
            for name, _, _ in definitions_of(found, first + start + 1, last):
                yield name, statement
