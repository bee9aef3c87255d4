"""The tokens of a PTX module (PTX ISA 4.1, 4.2, 4.4, 4.5), and a cursor that takes them or says what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeVar

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.origin import Origin, clip
from ptxmm.tokens import Token, UnexpectedError, tokens_of

_BLANK = r"(?:[ \t\r\n\f]|//[^\n]*+|/\*(?s:.*?)\*/)"
# A section is one token: debug information is most of a module that has it, and nothing reads it. The older form of
# it, a line with ``@@DWARF``, is a blank, and so is a line marker of the C preprocessor.
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r\n\f]+|//[^\n]*|/\*(?s:.*?)\*/|@@DWARF[^\n]*|(?m:^)\#[ \t]*(?:line[ \t]+)?[0-9][^\n]*)
    |(?P<SECTION>\.section{_BLANK}++[.\w$]++{_BLANK}*+\{{(?:[^{{}}/]++|//[^\n]*+|/\*(?s:.*?)\*/)*+\}})
    |(?P<FLOAT>(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|0[fF][0-9a-fA-F]{{8}}|0[dD][0-9a-fA-F]{{16}}
        |\.[0-9]+(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.]))
    |(?P<NUMBER>[0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?)
    |(?P<IDENT>[A-Za-z_$][A-Za-z0-9_$]*|%[A-Za-z0-9_$]+)
    |(?P<QUALIFIER>\.[A-Za-z0-9_]+(?:::[A-Za-z0-9_]+)*)
    |(?P<SIGN>[+-])
    |(?P<STRING>"[^"\n]*")
    |(?P<mark><<|>>|[<>=!]=|&&|\|\||[]@!,;:[{{}}|&()*%~^?<>=]|/(?!\*))""",
    re.VERBOSE,
)
END = "the end"
_T = TypeVar("_T")
_NAMES = {
    "IDENT": "a name",
    "NUMBER": "an integer constant",
    "STRING": "a string in quotes",
    "QUALIFIER": "a qualifier",
}


def module_tokens(text: str) -> list[Token]:
    """The tokens of a module. Raises ``PtxmmError`` with its place where the text is none."""
    try:
        return tokens_of(text, _TOKEN)
    except UnexpectedError as error:
        raise _bad_character(Origin(text, 1, 1), error.position) from None


def _bad_character(origin: Origin, position: int) -> PtxmmError:
    text = origin.text
    char = text[position]
    if char == '"':
        return origin.error("the string has no end on its line", position, 1, 'close it with `"`')
    start = text.rfind("\n", 0, position) + 1
    if char == "#" and not text[start:position].strip():
        error = origin.error("preprocessor lines are not supported", position, 1, "run the C preprocessor first")
        error.kind = "unsupported"
        return error
    return origin.unexpected(position)


class Cursor:
    """Takes tokens one after the other. ``types`` ends with ``END``, so that a look ahead needs no test.
    ``errors``: those after which the reader has gone on."""

    __slots__ = ("errors", "index", "origin", "tokens", "types")

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.origin = Origin(text, 1, 1)
        self.tokens = tokens
        self.types = [*(token.type for token in tokens), END, END, END]
        self.index = 0
        self.errors: list[PtxmmError] = []

    @property
    def type(self) -> str:
        """The type of the next token; ``END`` after the last."""
        return self.types[self.index]

    def text(self) -> str:
        """The next token, or nothing after the last."""
        return str(self.tokens[self.index]) if self.index < len(self.tokens) else ""

    @property
    def here(self) -> Token:
        """The next token; the last one after it."""
        return self.tokens[min(self.index, len(self.tokens) - 1)]

    def next(self) -> Token:
        """The next token, which is taken."""
        self.index += 1
        return self.tokens[self.index - 1]

    def accept(self, type_: str) -> Token | None:
        """The next token if it is of that type; it is taken then."""
        return self.next() if self.types[self.index] == type_ else None

    def accept_word(self, words: Collection[str]) -> Token | None:
        """The next token if it is one of ``words``; it is taken then."""
        return self.next() if self.text() in words else None

    def items(self, item: Callable[[], _T]) -> list[_T]:
        """What ``item`` takes, once or more with commas between."""
        found = [item()]
        while self.accept(",") is not None:
            found.append(item())
        return found

    def take(self, type_: str, where: str) -> Token:
        """The next token, which must be of that type. ``where`` says what it belongs to: ``after `.file```."""
        found = self.accept(type_)
        if found is None:
            raise self.expected(_NAMES.get(type_, f"`{type_}`"), where)
        return found

    def expected(self, what: str, where: str, hint: str | None = None) -> PtxmmError:
        """The error that ``what`` is missing here. At the end of a line it is reported there, not on the next one."""
        at_end = self.index >= len(self.tokens)
        shown = END if at_end else f"`{clip(str(self.tokens[self.index]).partition(' ')[0])}`"
        if self.index > 0:
            last = self.tokens[self.index - 1]
            if at_end or self.tokens[self.index].line != last.end_line:
                word = "missing" if what.startswith("`") else "expected"
                message = f"{word} {what} {where}" + (", found the end" if at_end else "")
                return self.origin.error(message, last.end_pos - 1, 1, hint)
        if at_end:
            end = max(0, len(self.origin.text) - 1)
            return self.origin.error(f"expected {what} {where}, found {shown}", end, 1, hint)
        return self.error(f"expected {what} {where}, found {shown}", self.tokens[self.index], hint)

    def error(self, message: str, token: Token, hint: str | None = None, kind: str = "syntax") -> PtxmmError:
        """An error that points at ``token``."""
        return self.error_in(message, self.span(token), kind, hint)

    def error_in(self, message: str, span: Span, kind: str = "syntax", hint: str | None = None) -> PtxmmError:
        """An error that points at ``span``."""
        return PtxmmError(message, kind=kind, hint=hint).at(span)

    def span(self, first: Token, last: Token | None = None) -> Span:
        """The span from ``first`` to ``last``."""
        return self.origin.span(first, last)


def made(text: str, type_: str, first: Token, last: Token) -> Token:
    """A token that stands for those from ``first`` to ``last``."""
    token = Token(text)
    token.type = type_
    token.start_pos, token.end_pos = first.start_pos, last.end_pos
    token.line, token.column = first.line, first.column
    token.end_line, token.end_column = last.end_line, last.end_column
    return token
