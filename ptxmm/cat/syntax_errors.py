"""Model text read by Lark, and what Lark says of a text that is no model in the user's terms."""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ptxmm.cat import syntax
from ptxmm.cat.builder import Builder, error_at, span_of
from ptxmm.cat.reader import STATEMENT_WORDS
from ptxmm.errors import PtxmmError, Span

_UNSUPPORTED = frozenset(
    ("in", "fun", "procedure", "call", "match", "with", "from", "forall", "do", "end", "enum", "instructions", "begin")
)


@cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", transformer=Builder(), maybe_placeholders=False)


def parsed(text: str) -> tuple[syntax.Statement, ...]:
    """The statements of ``text`` as Lark reads it. Raises ``PtxmmError`` (kind ``model``) with its place."""
    try:
        tree: Any = _grammar().parse(text)
    except UnexpectedCharacters as error:
        raise _unexpected_character(error, text) from None
    except UnexpectedToken as error:
        raise _unexpected_token(error, text) from None
    except UnexpectedInput:  # pragma: no cover - the two kinds above are all that LALR raises
        raise PtxmmError("this is not a model", kind="model") from None
    return tuple(tree)


def _unexpected_character(error: UnexpectedCharacters, text: str) -> PtxmmError:
    character = text[error.pos_in_stream or 0]
    span = Span(error.line, error.column, error.column + 1)
    if character == '"':
        return error_at(span, "this string has no end on its line", 'close it with `"`')
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return error_at(span, f"unexpected character `{shown}`")


def _unexpected_token(error: UnexpectedToken, whole: str) -> PtxmmError:
    token = error.token
    expected = set(error.accepts or error.expected)
    if token.type == "$END":
        line, column = token.end_line or 1, token.end_column or 1
        span = Span(line, column, column + 1)
        return error_at(span, "the model ends in the middle of a statement", _expectation(expected))
    text = str(token).split("\n")[0].strip()  # a check may come with the blanks before it
    hint = _expectation(expected)
    if text in (")", "]") and "BRACKET" not in expected:
        hint = f"there is no `{'(' if text == ')' else '['}` for it"
    elif text in _UNSUPPORTED:
        hint = f"`{text}` is not part of the supported subset of cat"
    elif token.type == "NAME" and (close := difflib.get_close_matches(text, STATEMENT_WORDS, 1, 0.75)):
        hint = f"did you mean `{close[0]}`?"
    elif token.type == "NAME" and not whole[: token.start_pos].strip():
        hint = "a title that is more than plain words goes in quotes"
    end = span_of(token).end_column
    return error_at(Span(token.line or 1, end - len(text), end), f"unexpected `{text}`", hint)


def _expectation(expected: set[str]) -> str:
    if "BRACKET" in expected:
        return "a set or relation is expected here"
    if "STAR" in expected:
        return "an operator or a new statement is expected here"
    words = {
        "NAME": "a name", "EQUAL": "`=`", "STRING": "a string", "THEN": "`then`", "ELSE": "`else`", "AS": "`as`",
        "LPAR": "`(`", "RPAR": "`)`", "RSQB": "`]`", "COMMA": "`,`",
    }  # fmt: skip
    if "LET" in expected and "INCLUDE" not in expected:
        return "`let` is expected here"
    known = [word for terminal, word in words.items() if terminal in expected]
    return " or ".join(known) + " is expected here" if known else "a statement is expected here"
