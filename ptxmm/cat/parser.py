"""Model text to syntax tree: comments, title line, grammar, and errors in the user's terms."""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.exceptions import VisitError

from ptxmm.cat import syntax
from ptxmm.errors import PtxmmError, Span

MAX_NESTING = 200
MAX_CHARACTERS = 256 * 1024
_STATEMENT_WORDS = ("let", "acyclic", "irreflexive", "empty", "flag", "include", "show", "unshow")
_KEYWORDS = frozenset((*_STATEMENT_WORDS, "rec", "and", "as", "if", "then", "else"))
_UNSUPPORTED = frozenset(
    ("in", "fun", "procedure", "call", "match", "with", "from", "forall", "do", "end", "enum", "instructions", "begin")
)


def parse(text: str, file: str) -> syntax.File:
    """Parse a model.

    Raises ``PtxmmError`` (kind ``model``), placed in ``file``, for text that is not of the language, that is larger
    than 256 KiB, or that nests deeper than 200 levels.
    """
    if len(text) > MAX_CHARACTERS:
        raise PtxmmError(f"a model has at most {MAX_CHARACTERS // 1024} KiB of text", kind="model", file=file)
    try:
        title, clean = _take_title(_blank_comments(text))
        return syntax.File(title, _parse_statements(clean))
    except PtxmmError as error:
        raise error.place(file, text) from None


def error_at(span: Span, message: str, hint: str | None = None) -> PtxmmError:
    """An error of kind ``model`` at a place (the file is filled in by the caller)."""
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind="model", line=span.line, column=span.column, width=width, hint=hint)


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
        if " " in line and (close := difflib.get_close_matches(word[0], _STATEMENT_WORDS, 1, 0.75)):
            # A misspelt check must not vanish into the title.
            number = text.count("\n", 0, start) + 1
            column = start - text.rfind("\n", 0, start)
            span = Span(number, column, column + len(word[0]))
            raise error_at(span, f"unknown statement `{word[0]}`", f"did you mean `{close[0]}`?")
    else:
        return None, text
    return title, text[:start] + " " * (end - start) + text[end:]


@cache
def _grammar() -> Lark:
    text = resources.files("ptxmm.cat").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", transformer=_Builder(), maybe_placeholders=False)


def _parse_statements(text: str) -> tuple[syntax.Statement, ...]:
    try:
        tree: Any = _grammar().parse(text)
    except UnexpectedCharacters as error:
        raise _unexpected_character(error, text) from None
    except UnexpectedToken as error:
        raise _unexpected_token(error, text) from None
    except UnexpectedInput:  # pragma: no cover - the two kinds above are all that LALR raises
        raise PtxmmError("this is not a model", kind="model") from None
    except VisitError as error:
        if isinstance(error.orig_exc, PtxmmError):
            raise error.orig_exc from None
        raise
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
    text = str(token).split("\n")[0]
    hint = _expectation(expected)
    if text in (")", "]") and "BRACKET" not in expected:
        hint = f"there is no `{'(' if text == ')' else '['}` for it"
    elif text in _UNSUPPORTED:
        hint = f"`{text}` is not part of the supported subset of cat"
    elif token.type == "NAME" and (close := difflib.get_close_matches(text, _STATEMENT_WORDS, 1, 0.75)):
        hint = f"did you mean `{close[0]}`?"
    elif token.type == "NAME" and not whole[: token.start_pos].strip():
        hint = "a title that is more than plain words goes in quotes"
    return error_at(_span(token), f"unexpected `{text}`", hint)


def _expectation(expected: set[str]) -> str:
    if "BRACKET" in expected:
        return "a set or relation is expected here"
    if "STAR" in expected:
        return "an operator or a new statement is expected here"
    words = {
        "NAME": "a name", "EQUAL": "`=`", "STRING": "a string", "THEN": "`then`", "ELSE": "`else`", "AS": "`as`",
        "LPAR": "`(`", "RPAR": "`)`", "RSQB": "`]`", "COMMA": "`,`",
    }  # fmt: skip
    known = [word for terminal, word in words.items() if terminal in expected]
    return " or ".join(known) + " is expected here" if known else "a statement is expected here"


def _span(token: Token) -> Span:
    line, column = token.line or 1, token.column or 1
    length = len(str(token).split("\n")[0])
    return Span(line, column, column + max(1, length))


class _Builder(Transformer[Token, Any]):
    """Builds the syntax tree while the text is parsed; called by Lark with the children of each rule."""

    def start(self, items: list[Any]) -> tuple[syntax.Statement, ...]:
        return tuple(items)

    def let(self, items: list[syntax.Definition]) -> syntax.Let:
        return syntax.Let(tuple(items), False, items[0].span)

    def let_rec(self, items: list[Any]) -> syntax.Let:
        return syntax.Let(tuple(items[1:]), True, items[1].span)

    def definition(self, items: list[Any]) -> syntax.Definition:
        return syntax.Definition(str(items[0]), None, items[1], _span(items[0]))

    def function(self, items: list[Any]) -> syntax.Definition:
        parameters = tuple(syntax.Name(str(item), _span(item)) for item in items[1:-1])
        return syntax.Definition(str(items[0]), parameters, items[-1], _span(items[0]))

    def check(self, items: list[Any]) -> syntax.Check:
        flag = items[0].type == "FLAG"
        word, body, *name = items[1:] if flag else items
        kind = str(word).lstrip("~ \t")
        negated = str(word).startswith("~")
        label = name[0] if name else None
        place = _span(label) if label is not None else None
        return syntax.Check(kind, negated, flag, body, None if label is None else str(label), _span(word), place)

    def include(self, items: list[Any]) -> syntax.Include:
        return syntax.Include(str(items[0])[1:-1], _span(items[0]))

    def show(self, items: list[Any]) -> syntax.Show:
        return syntax.Show(tuple(items[1:]), _span(items[0]))

    def shown_as(self, items: list[Any]) -> syntax.Expression:
        return items[0]  # type: ignore[no-any-return]

    def conditional(self, items: list[Any]) -> syntax.Conditional:
        word, condition, yes, no = items
        depth = _depth(word, yes, no)
        return syntax.Conditional(str(condition)[1:-1], yes, no, _span(condition), depth)

    def chain(self, items: list[Any]) -> syntax.Operation:
        operands = tuple(items[::2])
        return syntax.Operation(str(items[1]), operands, _span(items[1]), _depth(items[1], *operands))

    def closure(self, items: list[Any]) -> syntax.Operation:
        operator = {"*": "star", "^*": "star", "^+": "+"}.get(str(items[1]), str(items[1]))
        return syntax.Operation(operator, (items[0],), _span(items[1]), _depth(items[1], items[0]))

    def complement(self, items: list[Any]) -> syntax.Operation:
        return syntax.Operation("~", (items[1],), _span(items[0]), _depth(items[0], items[1]))

    def identity(self, items: list[Any]) -> syntax.Operation:
        return syntax.Operation("[]", (items[1],), _span(items[0]), _depth(items[0], items[1]))

    def name(self, items: list[Any]) -> syntax.Name:
        return syntax.Name(str(items[0]), _span(items[0]))

    def group(self, items: list[Any]) -> syntax.Expression:
        return items[0]  # type: ignore[no-any-return]

    def call(self, items: list[Any]) -> syntax.Call:
        arguments = tuple(items[1:])
        return syntax.Call(str(items[0]), arguments, _span(items[0]), _depth(items[0], *arguments))


def _depth(token: Token, *operands: syntax.Expression) -> int:
    depth = 1 + max(operand.depth for operand in operands)
    if depth > MAX_NESTING:
        message = f"expressions nest at most {MAX_NESTING} levels deep"
        raise error_at(_span(token), message, "name a part of it with `let`")
    return depth
