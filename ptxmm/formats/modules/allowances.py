"""What comments of a source allow at a line: ``// ptxmm: allow(race: same-value, "why")``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.program.test import Allowance

_TEXT = r"""(?:"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)')"""
_PART = re.compile(rf"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|{_TEXT}")
"""Comments, and what may look like one."""
_ROW = re.compile(rf"((?:{_TEXT}|[^/]|/(?!/))*+)(//.*)?", re.DOTALL)
_COMMENT = re.compile(r"//[ \t]*ptxmm:[ \t]*(allow\b.*)")
_OTHER = re.compile(r"//[ \t]*ptxmm:[ \t]*(?!ignore\b)(\S.*)")
"""What stands behind code and allows nothing; ``ignore`` is for ``lint``."""
_FORM = re.compile(r"allow\s*\(\s*race\s*:\s*same-value\s*,\s*\"([^\"]*\S[^\"]*)\"\s*\)\s*")
_HINT = 'write // ptxmm: allow(race: same-value, "why")'


def allowances(text: str, file: str) -> tuple[Allowance, ...]:
    """The allowances in ``text``, of the line that the comment stands behind, or of the next one with code.

    Raises ``PtxmmError`` (kind ``format``) at a comment that says something else, such as what is said of a launch,
    which stands on lines of its own.
    """
    found: dict[Allowance, None] = {}
    wrong: list[PtxmmError] = []
    waiting: list[str] = []
    for number, (code, comment) in enumerate(_rows(text.replace("\r\n", "\n")), 1):
        match = _COMMENT.match(comment)
        other = _OTHER.match(comment) if match is None and code.strip() else None
        if other is not None:
            begin = len(code) + other.start(1) + 1
            message = "what is said of a launch stands on a line of its own; behind code only `allow` does"
            error = PtxmmError(message, kind="format", hint=_HINT)
            wrong.append(error.at(Span(number, begin, begin + len(other[1].rstrip()))).place(file, text))
        if match is not None:
            form = _FORM.fullmatch(match[1])
            if form is None:
                begin = len(code) + match.start(1) + 1
                span = Span(number, begin, begin + len(match[1].rstrip()))
                error = PtxmmError("this allows nothing", kind="format", hint=_HINT)
                wrong.append(error.at(span).place(file, text))
                continue
            waiting.append(form[1])
        if code.strip():
            found |= dict.fromkeys(Allowance(number, why) for why in waiting)
            waiting = []
    if wrong:
        raise together(wrong)
    return tuple(found)


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """For each line the code, with blanks for comments between, and the comment behind it."""
    for row in _PART.sub(_blank, text).split("\n"):
        match = _ROW.match(row)
        assert match is not None
        yield match[1], match[2] or ""


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/*") else match[0]
