"""The text of a thread as the tree of ``grammar.lark``, read by hand (see ``tokens.py``). The statements in the
functions of a module are read by this too, with tokens of their own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Union

from ptxmm.tokens import END, Reader, Token, UnexpectedError, tokens_of

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)
    |(?P<FLOAT>(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})
        (?![A-Za-z0-9_.]))
    |(?P<NUMBER>[0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?)
    |(?P<IDENT>[A-Za-z_$%][A-Za-z0-9_$]*)
    |(?P<QUALIFIER>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
    |(?P<SIGN>[+-])
    |(?P<mark>[]@!,;:[{}|&])""",
    re.VERBOSE,
)


class Node:
    """A rule of the grammar with what it consists of. (``Tree`` of Lark has the same.)"""

    __slots__ = ("children", "data")

    def __init__(self, data: str, children: list[Union[Node, Token]]) -> None:  # noqa: UP007
        self.data = data
        self.children = children


def read(text: str) -> list[Node] | None:
    """The labels and instructions of ``text``, or None if it is not of the grammar."""
    try:
        return _Reader(tokens_of(text, _TOKEN)).statements()
    except UnexpectedError:
        return None


def read_instruction(tokens: list[Token]) -> Node | None:
    """The instruction that consists of ``tokens``, without a ``;``, or None if they are not of the grammar."""
    reader = _Reader(tokens)
    try:
        node = reader.instruction()
    except UnexpectedError:
        return None
    return node if reader.next == END else None


def read_operand(tokens: list[Token]) -> Node | None:
    """The operand that consists of ``tokens``, or None if they are not of the grammar."""
    reader = _Reader(tokens)
    try:
        node = reader.operand()
    except UnexpectedError:
        return None
    return node if reader.next == END else None


class _Reader(Reader):
    """The rules of ``grammar.lark``."""

    __slots__ = ()

    def statements(self) -> list[Node]:
        """start: (label | instruction SEMICOLON)* instruction?
        label: IDENT COLON
        """
        found: list[Node] = []
        while self.next != END:
            if self.types[self.index : self.index + 2] == ["IDENT", ":"]:
                found.append(Node("label", [self.take("IDENT"), self.take(":")]))
                continue
            found.append(self.instruction())
            if self.next != END:
                self.take(";")
        return found

    def maybe(self, type_: str) -> list[Node | Token]:
        return [self.take(type_)] if self.next == type_ else []

    def instruction(self) -> Node:
        """instruction: guard? IDENT QUALIFIER* _operands?
        guard: AT NOT? IDENT
        _operands: _operand (COMMA _operand)*
        """
        children: list[Node | Token] = []
        if self.next == "@":
            children.append(Node("guard", [self.take("@"), *self.maybe("!"), self.take("IDENT")]))
        children.append(self.take("IDENT"))
        while self.next == "QUALIFIER":
            children.append(self.take("QUALIFIER"))
        if self.next not in (";", END):
            children += self.items(self.operand)
        return Node("instruction", children)

    def items(self, item: Callable[[], Node]) -> list[Node | Token]:
        """One or more, with commas between them."""
        found: list[Node | Token] = [item()]
        while self.next == ",":
            found += [self.take(","), item()]
        return found

    def operand(self) -> Node:
        """_operand: value | memory | address_of | pair | negated | vector
        memory: LSQB value (COMMA (value | vector))* RSQB QUALIFIER?
        address_of: AMPERSAND name (SIGN integer)*
        pair: IDENT BAR IDENT
        negated: NOT IDENT
        """
        match self.types[self.index]:
            case "[":
                first: list[Node | Token] = [self.take("["), self.value()]
                if self.next == ",":
                    first += [self.take(","), *self.items(self.element)]
                return Node("memory", [*first, self.take("]"), *self.maybe("QUALIFIER")])
            case "{":
                return self.vector()
            case "&":
                return Node("address_of", [self.take("&"), self.name(), *self.offsets()])
            case "!":
                return Node("negated", [self.take("!"), self.take("IDENT")])
            case "IDENT" if self.types[self.index + 1] == "|":
                return Node("pair", [self.take("IDENT"), self.take("|"), self.take("IDENT")])
        return self.value()

    def element(self) -> Node:
        return self.vector() if self.next == "{" else self.value()

    def vector(self) -> Node:
        """vector: LBRACE value (COMMA value)* RBRACE"""
        return Node("vector", [self.take("{"), *self.items(self.value), self.take("}")])

    def value(self) -> Node:
        """value: _base (SIGN integer)*
        _base: name | integer | float
        float: SIGN? FLOAT
        """
        if self.next == "IDENT":
            return Node("value", [self.name(), *self.offsets()])
        sign = self.maybe("SIGN")
        kind = "float" if self.next == "FLOAT" else "integer"
        base = Node(kind, [*sign, self.take("FLOAT" if kind == "float" else "NUMBER")])
        return Node("value", [base, *self.offsets()])

    def name(self) -> Node:
        """name: IDENT QUALIFIER?"""
        return Node("name", [self.take("IDENT"), *self.maybe("QUALIFIER")])

    def offsets(self) -> list[Node | Token]:
        """integer: SIGN? NUMBER"""
        found: list[Node | Token] = []
        while self.next == "SIGN":
            found += [self.take("SIGN"), Node("integer", [*self.maybe("SIGN"), self.take("NUMBER")])]
        return found
