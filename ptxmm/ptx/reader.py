"""The text of a thread as the tree of ``grammar.lark``, read by hand.

Loading Lark and its grammar takes longer than most litmus tests do. So this reads what has no errors, which is
nearly everything, and gives up on the rest: then Lark reads it, and says what is wrong. The trees are the same.
The statements in the functions of a module are read by this too, with tokens of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Union

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
_END = "$END"


class Token(str):
    """A token as Lark has it: a string with its type and its place."""

    __slots__ = ("column", "end_column", "end_line", "end_pos", "line", "start_pos", "type")

    type: str
    line: int
    column: int
    end_line: int
    end_column: int
    start_pos: int
    end_pos: int


class Node:
    """A rule of the grammar with what it consists of. (``Tree`` of Lark has the same.)"""

    __slots__ = ("children", "data")

    def __init__(self, data: str, children: list[Union[Node, Token]]) -> None:  # noqa: UP007
        self.data = data
        self.children = children


class UnexpectedError(Exception):
    """The text is not of the grammar; ``position`` is that of a character that no token begins with."""

    def __init__(self, position: int = 0) -> None:
        super().__init__(position)
        self.position = position


def read(text: str) -> list[Node] | None:
    """The labels and instructions of ``text``, or None if it is not of the grammar."""
    try:
        return _Reader(tokens_of(text)).statements()
    except UnexpectedError:
        return None


def read_instruction(tokens: list[Token]) -> Node | None:
    """The instruction that consists of ``tokens``, without a ``;``, or None if they are not of the grammar."""
    reader = _Reader(tokens)
    try:
        node = reader.instruction()
    except UnexpectedError:
        return None
    return node if reader.types[reader.index] == _END else None


def read_operand(tokens: list[Token]) -> Node | None:
    """The operand that consists of ``tokens``, or None if they are not of the grammar."""
    reader = _Reader(tokens)
    try:
        node = reader.operand()
    except UnexpectedError:
        return None
    return node if reader.types[reader.index] == _END else None


def tokens_of(text: str, pattern: re.Pattern[str] = _TOKEN) -> list[Token]:
    """The tokens of ``text``. The groups of ``pattern`` are ``blank``, ``mark`` (its type is its text) and types.
    Raises ``UnexpectedError`` at a character that begins none of them."""
    found: list[Token] = []
    position, line, start = 0, 1, 0  # ``start``: of the line
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise UnexpectedError(position)
        end, kind = match.end(), match.lastgroup
        if kind != "blank":
            token = Token(match[0])
            token.type = match[0] if kind == "mark" else kind or ""
            token.start_pos, token.end_pos = position, end
            token.line = token.end_line = line
            token.column, token.end_column = position - start + 1, end - start + 1
            found.append(token)
        if kind in ("blank", "SECTION"):
            breaks = text.count("\n", position, end)
            if breaks:
                line, start = line + breaks, text.rfind("\n", position, end) + 1
        position = end
    return found


class _Reader:
    """Each function takes the tokens of the rules of ``grammar.lark`` that it names, or raises ``UnexpectedError``."""

    __slots__ = ("index", "tokens", "types")

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.types = [*(token.type for token in tokens), _END, _END]
        self.index = 0

    def statements(self) -> list[Node]:
        """start: (label | instruction SEMICOLON)* instruction?
        label: IDENT COLON
        """
        found: list[Node] = []
        while self.types[self.index] != _END:
            if self.types[self.index : self.index + 2] == ["IDENT", ":"]:
                found.append(Node("label", [self.take("IDENT"), self.take(":")]))
                continue
            found.append(self.instruction())
            if self.types[self.index] != _END:
                self.take(";")
        return found

    def take(self, type_: str) -> Token:
        if self.types[self.index] != type_:
            raise UnexpectedError
        self.index += 1
        return self.tokens[self.index - 1]

    def maybe(self, type_: str) -> list[Node | Token]:
        return [self.take(type_)] if self.types[self.index] == type_ else []

    def instruction(self) -> Node:
        """instruction: guard? IDENT QUALIFIER* _operands?
        guard: AT NOT? IDENT
        _operands: _operand (COMMA _operand)*
        """
        children: list[Node | Token] = []
        if self.types[self.index] == "@":
            children.append(Node("guard", [self.take("@"), *self.maybe("!"), self.take("IDENT")]))
        children.append(self.take("IDENT"))
        while self.types[self.index] == "QUALIFIER":
            children.append(self.take("QUALIFIER"))
        if self.types[self.index] not in (";", _END):
            children += self.items(self.operand)
        return Node("instruction", children)

    def items(self, item: Callable[[], Node]) -> list[Node | Token]:
        """One or more, with commas between them."""
        found: list[Node | Token] = [item()]
        while self.types[self.index] == ",":
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
                if self.types[self.index] == ",":
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
        return self.vector() if self.types[self.index] == "{" else self.value()

    def vector(self) -> Node:
        """vector: LBRACE value (COMMA value)* RBRACE"""
        return Node("vector", [self.take("{"), *self.items(self.value), self.take("}")])

    def value(self) -> Node:
        """value: _base (SIGN integer)*
        _base: name | integer | float
        float: SIGN? FLOAT
        """
        if self.types[self.index] == "IDENT":
            return Node("value", [self.name(), *self.offsets()])
        sign = self.maybe("SIGN")
        kind = "float" if self.types[self.index] == "FLOAT" else "integer"
        base = Node(kind, [*sign, self.take("FLOAT" if kind == "float" else "NUMBER")])
        return Node("value", [base, *self.offsets()])

    def name(self) -> Node:
        """name: IDENT QUALIFIER?"""
        return Node("name", [self.take("IDENT"), *self.maybe("QUALIFIER")])

    def offsets(self) -> list[Node | Token]:
        """integer: SIGN? NUMBER"""
        found: list[Node | Token] = []
        while self.types[self.index] == "SIGN":
            found += [self.take("SIGN"), Node("integer", [*self.maybe("SIGN"), self.take("NUMBER")])]
        return found
