"""The syntax tree of a model, node by node: one function for each rule of ``grammar.lark``, of what is in it."""

from __future__ import annotations

from typing import Any, Protocol

from ptxmm.cat import syntax
from ptxmm.errors import PtxmmError, Span

MAX_NESTING = 200


class Token(Protocol):
    """A token: a string with its type and its place."""

    @property
    def type(self) -> str: ...
    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...


def error_at(span: Span, message: str, hint: str | None = None) -> PtxmmError:
    """An error of kind ``model`` at a place (the file is filled in by the caller)."""
    return PtxmmError(message, kind="model", hint=hint).at(span)


def span_of(token: Token) -> Span:
    """Where a token stands; of one with line breaks, its first line."""
    line, column = token.line or 1, token.column or 1
    length = len(str(token).split("\n")[0])
    return Span(line, column, column + max(1, length))


class Builder:
    """Builds the syntax tree while the text is parsed, by whatever parser."""

    def start(self, items: list[Any]) -> tuple[syntax.Statement, ...]:
        return tuple(items)

    def let(self, items: list[syntax.Definition]) -> syntax.Let:
        return syntax.Let(tuple(items), False, items[0].span)

    def override(self, items: list[syntax.Definition]) -> syntax.Let:
        return syntax.Let(tuple(items), False, items[0].span, override=True)

    def let_rec(self, items: list[Any]) -> syntax.Let:
        return syntax.Let(tuple(items[1:]), True, items[1].span)

    def definition(self, items: list[Any]) -> syntax.Definition:
        return syntax.Definition(str(items[0]), None, items[1], span_of(items[0]))

    def function(self, items: list[Any]) -> syntax.Definition:
        parameters = tuple(syntax.Name(str(item), span_of(item)) for item in items[1:-1])
        return syntax.Definition(str(items[0]), parameters, items[-1], span_of(items[0]))

    def check(self, items: list[Any]) -> syntax.Check:
        flag = items[0].type == "FLAG"
        word, body, *name = items[1:] if flag else items
        kind = str(word).lstrip("~ \t")
        negated = str(word).startswith("~")
        label = name[0] if name else None
        place = span_of(label) if label is not None else None
        return syntax.Check(kind, negated, flag, body, None if label is None else str(label), span_of(word), place)

    def include(self, items: list[Any]) -> syntax.Include:
        return syntax.Include(str(items[0])[1:-1], span_of(items[0]))

    def show(self, items: list[Any]) -> syntax.Show:
        return syntax.Show(tuple(items[1:]), span_of(items[0]))

    def shown_as(self, items: list[Any]) -> syntax.Expression:
        return items[0]  # type: ignore[no-any-return]

    def conditional(self, items: list[Any]) -> syntax.Conditional:
        word, condition, yes, no = items
        depth = _depth(word, yes, no)
        return syntax.Conditional(str(condition)[1:-1], yes, no, span_of(condition), depth)

    def chain(self, items: list[Any]) -> syntax.Operation:
        operands = tuple(items[::2])
        return syntax.Operation(str(items[1]), operands, span_of(items[1]), _depth(items[1], *operands))

    def closure(self, items: list[Any]) -> syntax.Operation:
        operator = {"*": "star", "^*": "star", "^+": "+"}.get(str(items[1]), str(items[1]))
        return syntax.Operation(operator, (items[0],), span_of(items[1]), _depth(items[1], items[0]))

    def complement(self, items: list[Any]) -> syntax.Operation:
        return syntax.Operation("~", (items[1],), span_of(items[0]), _depth(items[0], items[1]))

    def identity(self, items: list[Any]) -> syntax.Operation:
        return syntax.Operation("[]", (items[1],), span_of(items[0]), _depth(items[0], items[1]))

    def name(self, items: list[Any]) -> syntax.Name:
        return syntax.Name(str(items[0]), span_of(items[0]))

    def group(self, items: list[Any]) -> syntax.Expression:
        return items[0]  # type: ignore[no-any-return]

    def call(self, items: list[Any]) -> syntax.Call:
        arguments = tuple(items[1:])
        return syntax.Call(str(items[0]), arguments, span_of(items[0]), _depth(items[0], *arguments))


def _depth(token: Token, *operands: syntax.Expression) -> int:
    depth = 1 + max(operand.depth for operand in operands)
    if depth > MAX_NESTING:
        message = f"expressions nest at most {MAX_NESTING} levels deep"
        raise error_at(span_of(token), message, "name a part of it with `let`")
    return depth
