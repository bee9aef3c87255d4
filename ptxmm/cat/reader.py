"""The statements of a model, read by hand (see ``tokens.py``) unless they are nested deeply, which no shipped model is.
Lark, and this, build the same tree by the same functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from ptxmm.cat import syntax
from ptxmm.cat.builder import Builder
from ptxmm.errors import PtxmmError
from ptxmm.tokens import END, Reader, Token, UnexpectedError, tokens_of

T = TypeVar("T")
STATEMENT_WORDS = ("let", "acyclic", "irreflexive", "empty", "flag", "include", "show", "unshow", "override")

_TOKEN = re.compile(
    r"""(?P<LETREC>let[ \t\r\n\f]+rec(?![A-Za-z0-9_.-]))
    |(?P<CHECK>~?[ \t]*(?:acyclic|irreflexive|empty)(?![A-Za-z0-9_.-]))
    |(?P<SHOW>(?:un)?show(?![A-Za-z0-9_.-]))
    |(?P<blank>[ \t\r\n\f]+)
    |(?P<FLAG>flag(?![A-Za-z0-9_.-]))
    |(?P<mark>(?:let|and|as|include|if|then|else|override)(?![A-Za-z0-9_.-])|[]|;\\&*~[0()=,])
    |(?P<NAME>[A-Za-z_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)
    |(?P<STRING>"[^"\n]*")
    |(?P<POSTFIX>\^-1|\^\+|\^\*|\+|\?)""",
    re.VERBOSE,
)
_OPERANDS = frozenset(("NAME", "0", "(", "[", "~"))
_DEEPEST = 40


def read(text: str) -> tuple[syntax.Statement, ...] | None:
    """The statements of ``text``, or None where Lark has to read it."""
    found = tokens(text)
    try:
        return None if found is None else _Reader(found).statements()
    except (UnexpectedError, PtxmmError):
        return None


@lru_cache(maxsize=4)
def tokens(text: str) -> list[Token] | None:
    """The tokens of a text without comments and title, which several look at one after the other, or None where some of
    it is of no token."""
    try:
        return tokens_of(text, _TOKEN)
    except UnexpectedError:
        return None


class _Reader(Reader):
    """The rules of ``grammar.lark``."""

    __slots__ = ("build", "depth")

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.build = Builder()
        self.depth = 0

    def statements(self) -> tuple[syntax.Statement, ...]:
        """start: statement*"""
        found: list[syntax.Statement] = []
        while self.next != END:
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
        raise UnexpectedError

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
            raise UnexpectedError
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
