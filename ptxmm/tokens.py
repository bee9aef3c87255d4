"""The tokens of a text, and what takes them one by one: for the readers that stand in for Lark where there is no error.

Loading Lark and a grammar takes longer than most litmus tests do. So such a reader reads what has no errors, which is
nearly everything, and gives up on the rest: then Lark reads it, and says what is wrong. The trees are the same.
"""

from __future__ import annotations

import re

END = "$END"
"""The type of what stands behind the last token."""


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


class UnexpectedError(Exception):
    """The text is not of the grammar; ``position`` is that of a character that no token begins with."""

    def __init__(self, position: int = 0) -> None:
        super().__init__(position)
        self.position = position


def tokens_of(text: str, pattern: re.Pattern[str]) -> list[Token]:
    """The tokens of ``text``. The groups of ``pattern`` are ``blank``, ``mark`` (its type is its text) and types.
    Raises ``UnexpectedError`` at a character that begins none of them."""
    found: list[Token] = []
    position, line, start = 0, 1, 0  # ``start``: of the line
    for match in pattern.finditer(text):
        value, kind = match[0], match.lastgroup
        end = position + len(value)
        if end != match.end():
            break  # what is between begins none
        if kind != "blank":
            token = Token(value)
            token.type = value if kind == "mark" else kind or ""
            token.start_pos, token.end_pos = position, end
            token.line = token.end_line = line
            token.column, token.end_column = position - start + 1, end - start + 1
            found.append(token)
        if "\n" in value:
            line, start = line + value.count("\n"), position + value.rindex("\n") + 1
        position = end
    if position < len(text):
        raise UnexpectedError(position)
    return found


class Reader:
    """Takes tokens; ``types`` are theirs, and ``END`` twice. A subclass has a function for each rule of its grammar,
    which takes the tokens of the rules that it names, or raises ``UnexpectedError``."""

    __slots__ = ("index", "tokens", "types")

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.types = [*(token.type for token in tokens), END, END]
        self.index = 0

    @property
    def next(self) -> str:
        """The type of the next token."""
        return self.types[self.index]

    def take(self, type_: str) -> Token:
        """The next token, which is of that type."""
        if self.types[self.index] != type_:
            raise UnexpectedError
        self.index += 1
        return self.tokens[self.index - 1]
