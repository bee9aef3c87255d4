"""The statements of a model, read by hand.

Loading Lark and its grammar takes longer than most litmus tests do. So this reads what has no errors and is not nested
deeply, which all shipped models are, and gives up on the rest: then Lark reads it by ``grammar.lark``, and says what is
wrong. Both build the same tree by the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from ptxmm.cat import syntax
from ptxmm.cat.builder import Builder
from ptxmm.errors import PtxmmError

T = TypeVar("T")
STATEMENT_WORDS = ("let", "acyclic", "irreflexive", "empty", "flag", "include", "show", "unshow", "override")

_TOKEN = re.compile(
    r"""(?P<LETREC>let[ \t\r\n\f]+rec(?![A-Za-z0-9_.-]))
    |(?P<CHECK>~?[ \t]*(?:acyclic|irreflexive|empty)(?![A-Za-z0-9_.-]))
    |(?P<SHOW>(?:un)?show(?![A-Za-z0-9_.-]))
    |(?P<blank>[ \t\r\n\f]+)
    |(?P<NAME>[A-Za-z_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)
    |(?P<STRING>"[^"\n]*")
    |(?P<POSTFIX>\^-1|\^\+|\^\*|\+|\?)
    |(?P<mark>[]|;\\&*~[0()=,])""",
    re.VERBOSE,
)
_WORDS = frozenset(("let", "and", "flag", "as", "include", "if", "then", "else", "override"))
_OPERANDS = frozenset(("NAME", "0", "(", "[", "~"))
_DEEPEST = 40
_END = "$END"


class Token(str):
    """A token as Lark has it: a string with its type and its place. Words and marks are types of their own."""

    __slots__ = ("column", "line", "type")

    type: str
    line: int | None
    column: int | None


class _Unexpected(Exception):
    """The text is not of the grammar, or nested too deeply for this."""


def read(text: str) -> tuple[syntax.Statement, ...] | None:
    """The statements of ``text``, or None where Lark has to read it."""
    try:
        return _Reader(_tokens(text)).statements()
    except (_Unexpected, PtxmmError):
        return None


def tokens(text: str) -> list[Token] | None:
    """The tokens of a text without comments and title, or None where some of it is of no token."""
    try:
        return _tokens(text)
    except _Unexpected:
        return None


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position, line, start = 0, 1, 0  # ``start``: of the line
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _Unexpected
        end, kind = match.end(), match.lastgroup or ""
        if kind != "blank":
            token = Token(match[0])
            token.type = token if kind == "mark" or token in _WORDS else kind
            token.type = "FLAG" if token.type == "flag" else token.type
            token.line, token.column = line, position - start + 1
            found.append(token)
        breaks = text.count("\n", position, end)
        if breaks:
            line, start = line + breaks, text.rfind("\n", position, end) + 1
        position = end
    return found


class _Reader:
    """Each function takes the tokens of the rules of ``grammar.lark`` that it names, or raises ``_Unexpected``."""

    __slots__ = ("build", "depth", "index", "tokens", "types")

    def __init__(self, tokens: list[Token]) -> None:
        self.build = Builder()
        self.tokens = tokens
        self.types = [*(token.type for token in tokens), _END]
        self.index = 0
        self.depth = 0

    @property
    def next(self) -> str:
        return self.types[self.index]

    def take(self, type_: str) -> Token:
        if self.types[self.index] != type_:
            raise _Unexpected
        self.index += 1
        return self.tokens[self.index - 1]

    def statements(self) -> tuple[syntax.Statement, ...]:
        """start: statement*"""
        found: list[syntax.Statement] = []
        while self.next != _END:
            found.append(self.statement())
        return tuple(found)

    def statement(self) -> syntax.Statement:
        """statement: "let" definition ("and" definition)* -> let
        | "override" "let" definition ("and" definition)* -> override
        | LETREC definition ("and" definition)* -> let_rec
        | FLAG? CHECK expression ("as" NAME)? -> check
        | "include" STRING -> include
        | SHOW shown ("," shown)* -> show
        """
        match self.next:
            case "let":
                self.take("let")
                return self.build.let(self.several(self.definition, "and"))
            case "override":
                self.take("override")
                self.take("let")
                return self.build.override(self.several(self.definition, "and"))
            case "LETREC":
                return self.build.let_rec([self.take("LETREC"), *self.several(self.definition, "and")])
            case "FLAG" | "CHECK":
                flag = [self.take("FLAG")] if self.next == "FLAG" else []
                return self.build.check([*flag, self.take("CHECK"), self.expression(), *self.label()])
            case "include":
                self.take("include")
                return self.build.include([self.take("STRING")])
            case "SHOW":
                return self.build.show([self.take("SHOW"), *self.several(self.shown, ",")])
        raise _Unexpected

    def several(self, item: Callable[[], T], separator: str) -> list[T]:
        found = [item()]
        while self.next == separator:
            self.take(separator)
            found.append(item())
        return found

    def label(self) -> list[Token]:
        if self.next != "as":
            return []
        self.take("as")
        return [self.take("NAME")]

    def shown(self) -> syntax.Expression:
        """?shown: expression
        | expression "as" NAME -> shown_as
        """
        found = self.expression()
        self.label()
        return found

    def definition(self) -> syntax.Definition:
        """definition: NAME "=" expression -> definition
        | NAME "(" NAME ("," NAME)* ")" "=" expression -> function
        """
        items: list[object] = [self.take("NAME")]
        function = self.next == "("
        if function:
            self.take("(")
            items += self.several(lambda: self.take("NAME"), ",")
            self.take(")")
        self.take("=")
        items.append(self.expression())
        return self.build.function(items) if function else self.build.definition(items)

    def expression(self) -> syntax.Expression:
        """?expression: union
        | IF STRING "then" expression "else" expression -> conditional
        """
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unexpected
        if self.next == "if":
            items: list[object] = [self.take("if"), self.take("STRING")]
            for word in ("then", "else"):
                self.take(word)
                items.append(self.expression())
            found: syntax.Expression = self.build.conditional(items)
        else:
            found = self.chain("|", lambda: self.chain(";", self.difference))
        self.depth -= 1
        return found

    def chain(self, operator: str, operand: Callable[[], syntax.Expression]) -> syntax.Expression:
        """?union: sequence
            | sequence (BAR sequence)+ -> chain
        ?sequence: difference
            | difference (SEMICOLON difference)+ -> chain
        ?intersection: product
            | product (AMPERSAND product)+ -> chain
        """
        items: list[object] = [first := operand()]
        while self.next == operator:
            items += [self.take(operator), operand()]
        return first if len(items) == 1 else self.build.chain(items)

    def difference(self) -> syntax.Expression:
        """?difference: intersection
        | difference BACKSLASH intersection -> chain
        """
        found = self.chain("&", self.product)
        while self.next == "\\":
            found = self.build.chain([found, self.take("\\"), self.chain("&", self.product)])
        return found

    def product(self) -> syntax.Expression:
        """?product: postfix
            | postfix STAR product -> chain
        ?postfix: prefix
            | postfix STAR -> closure
            | postfix POSTFIX -> closure
        """
        operands: list[syntax.Expression] = [self.prefix()]
        stars: list[Token] = []
        while self.next in ("*", "POSTFIX"):
            if self.next == "*" and self.types[self.index + 1] in _OPERANDS:
                stars.append(self.take("*"))
                operands.append(self.prefix())
            else:
                operands[-1] = self.build.closure([operands[-1], self.take(self.next)])
        found = operands.pop()
        while operands:
            found = self.build.chain([operands.pop(), stars.pop(), found])
        return found

    def prefix(self) -> syntax.Expression:
        """?prefix: atom
        | TILDE prefix -> complement
        """
        marks: list[Token] = []
        while self.next == "~":
            marks.append(self.take("~"))
        found = self.atom()
        while marks:
            found = self.build.complement([marks.pop(), found])
        return found

    def atom(self) -> syntax.Expression:
        """?atom: NAME -> name
        | ZERO -> name
        | "(" expression ")" -> group
        | BRACKET expression "]" -> identity
        | NAME "(" expression ("," expression)* ")" -> call
        """
        match self.next:
            case "0":
                return self.build.name([self.take("0")])
            case "(":
                self.take("(")
                found = self.expression()
                self.take(")")
                return found
            case "[":
                bracket, inner = self.take("["), self.expression()
                self.take("]")
                return self.build.identity([bracket, inner])
        name = self.take("NAME")
        if self.next != "(":
            return self.build.name([name])
        self.take("(")
        arguments = self.several(self.expression, ",")
        self.take(")")
        return self.build.call([name, *arguments])
