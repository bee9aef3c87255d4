"""Model text to syntax tree: comments, title line, statements."""

from __future__ import annotations

import difflib
import re

from ptxmm.cat import syntax
from ptxmm.cat.builder import error_at
from ptxmm.cat.reader import STATEMENT_WORDS, read
from ptxmm.errors import PtxmmError, Span

MAX_CHARACTERS = 256 * 1024
_KEYWORDS = frozenset((*STATEMENT_WORDS, "rec", "and", "as", "if", "then", "else"))


def parse(text: str, file: str) -> syntax.File:
    """Parse a model.

    Raises ``PtxmmError`` (kind ``model``), placed in ``file``, for text that is not of the language, that is larger
    than 256 KiB, or that nests deeper than 200 levels.
    """
    if len(text) > MAX_CHARACTERS:
        raise PtxmmError(f"a model has at most {MAX_CHARACTERS // 1024} KiB of text", kind="model", file=file)
    try:
        title, clean = without_comments(text)
        return syntax.File(title, _parse_statements(clean))
    except PtxmmError as error:
        raise error.place(file, text) from None


def without_comments(text: str) -> tuple[str | None, str]:
    """The title of a model, if it has one, and its text with title and comments blank, every position as it was.

    Raises ``PtxmmError`` (kind ``model``) at a comment without an end, and at a title that is a misspelt statement.
    """
    return _take_title(_blank_comments(text))


def _blank_comments(text: str) -> str:
    """Replace ``(* *)`` (nested) and ``//`` comments by blanks, so that every position stays what it was."""
    outside = re.compile(r'\(\*|//[^\n]*|"[^"\n]*"')
    inside = re.compile(r"\(\*|\*\)")
    parts: list[str] = []
    position = 0
    while (match := outside.search(text, position)) is not None:
        parts.append(text[position : match.start()])
        position = match.end()
        if match[0].startswith('"'):
            parts.append(match[0])
            continue
        depth = 1 if match[0] == "(*" else 0
        while depth:
            bracket = inside.search(text, position)
            if bracket is None:
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                raise error_at(Span(line, column, column + 2), "this comment has no end", "close it with `*)`")
            depth += 1 if bracket[0] == "(*" else -1
            position = bracket.end()
        parts.append(re.sub(r"[^\n]", " ", text[match.start() : position]))
    parts.append(text[position:])
    return "".join(parts)


def _take_title(text: str) -> tuple[str | None, str]:
    """Split off the title: the first line with text, if it is one string or plain words that start no statement."""
    first = re.match(r"\s*", text)
    start = first.end() if first else 0
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    line = text[start:end].strip()
    word = re.match(r"[A-Za-z_][\w.-]*", line)
    if re.fullmatch(r'"[^"]*"', line):
        title = line[1:-1]
    elif word is not None and word[0] not in _KEYWORDS and re.fullmatch(r"[\w.+/-]+(?:[ \t]+[\w.+/-]+)*", line):
        title = line
        if " " in line and (close := difflib.get_close_matches(word[0], STATEMENT_WORDS, 1, 0.75)):
            # A misspelt check must not vanish into the title.
            number = text.count("\n", 0, start) + 1
            column = start - text.rfind("\n", 0, start)
            span = Span(number, column, column + len(word[0]))
            raise error_at(span, f"unknown statement `{word[0]}`", f"did you mean `{close[0]}`?")
    else:
        return None, text
    return title, text[:start] + " " * (end - start) + text[end:]


def _parse_statements(text: str) -> tuple[syntax.Statement, ...]:
    found = read(text)
    if found is not None:
        return found
    from ptxmm.cat.syntax_errors import parsed  # with Lark, which takes long to load

    return parsed(text)
