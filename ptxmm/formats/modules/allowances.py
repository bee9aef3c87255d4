"""What comments of a source allow at a line: ``// ptxmm: allow(race: same-value, "why")``."""

from __future__ import annotations

import re

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.program.test import Allowance

_COMMENT = re.compile(r"//[ \t]*ptxmm:[ \t]*(allow\b.*)$")
_FORM = re.compile(r"allow\s*\(\s*race\s*:\s*same-value\s*,\s*\"([^\"]*\S[^\"]*)\"\s*\)\s*")
_HINT = 'write // ptxmm: allow(race: same-value, "why")'


def allowances(text: str, file: str) -> tuple[Allowance, ...]:
    """The allowances in ``text``, of the line that the comment stands behind, or of the next one with code.

    Raises ``PtxmmError`` (kind ``format``) at a comment that says something else.
    """
    found: list[Allowance] = []
    wrong: list[PtxmmError] = []
    waiting: list[str] = []
    for number, row in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        match = _COMMENT.search(row)
        code = row.partition("//")[0].strip()
        if match is not None:
            form = _FORM.fullmatch(match[1])
            if form is None:
                span = Span(number, match.start(1) + 1, match.start(1) + 1 + len(match[1].rstrip()))
                error = PtxmmError("this allows nothing", kind="format", hint=_HINT)
                wrong.append(error.at(span).place(file, text))
                continue
            waiting.append(form[1])
        if code:
            found += [Allowance(number, why) for why in waiting]
            waiting = []
    if wrong:
        raise together(wrong)
    return tuple(found)
