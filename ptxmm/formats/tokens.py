"""The tokens of the initial state and of final conditions, and a cursor over them."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.text import Text
from ptxmm.program.floats import is_real
from ptxmm.program.source import LEVELS, AddressOf, Constant, NameTerm, Path, Real
from ptxmm.ptx.parser import parse_integer

MAX_TOKENS = 100_000

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<directive>\.[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z0-9_]+)?)|(?P<name>%?[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<number>[0-9]++\.[0-9]*+(?:[eE][-+]?[0-9]+)?|[0-9]++[eE][-+]?[0-9]+|[0-9][A-Za-z0-9_]*)"
    r"|(?P<sign>/\\|\\/|==|!=|<=|>=|[-+=<>()\[\]{}:;,&@~*])"
)
_BITS = ("0x", "0X", "0b", "0B")
_WIDE = re.compile(r"(?:0[xX][0-9a-fA-F]{1,40}|[1-9][0-9]{0,44})U?")


class Token(Struct, frozen=True):
    """``kind`` is ``directive``, ``name``, ``number``, ``sign`` or ``end``."""

    kind: str
    text: str
    start: int
    end: int


class Cursor:
    """Tokens of ``masked[start:end]`` read from left to right; errors point into the file. ``names``: where a name that
    is more than a word ends, the place where it would begin if there is none."""

    __slots__ = ("_index", "_tokens", "text")

    def __init__(
        self, text: Text, masked: str, start: int, end: int, names: Callable[[str, int], int] | None = None
    ) -> None:
        self.text = text
        self._tokens: list[Token] = []
        self._index = 0
        position = start
        while position < end:
            if names is not None and (name := names(masked, position)) > position:
                self._tokens.append(Token("name", masked[position:name], position, name))
                position = name
                continue
            match = _TOKEN.match(masked, position, end)
            if match is None:
                raise _unexpected_character(text, masked, position)
            if match.lastgroup != "space":
                self._tokens.append(Token(match.lastgroup or "", match.group(), position, match.end()))
                if len(self._tokens) > MAX_TOKENS:
                    raise text.error(f"this part has more than {MAX_TOKENS} words", start, start + 1)
            position = match.end()
        last = self._tokens[-1].end if self._tokens else start
        self._tokens.append(Token("end", "the end", last, last))

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes next, or ``ahead`` tokens later."""
        index = self._index + ahead
        return self._tokens[index if index < len(self._tokens) else -1]

    def next(self) -> Token:
        """Take one token."""
        token = self._tokens[self._index]
        if self._index < len(self._tokens) - 1:
            self._index += 1
        return token

    def at(self, text: str, ahead: int = 0) -> bool:
        """Whether the next token (or one ``ahead``) is ``text``."""
        token = self.peek(ahead)
        return token.text == text and token.kind != "end"

    def take(self, text: str) -> bool:
        """Take the next token if it is ``text``."""
        if self.at(text):
            self.next()
            return True
        return False

    def need(self, text: str, what: str | None = None, *, hint: str | None = None) -> Token:
        """Take the next token, which must be ``text``."""
        if not self.at(text):
            raise self.unexpected(what or f"`{text}`", hint=hint)
        return self.next()

    def need_kind(self, kind: str, what: str) -> Token:
        """Take the next token, which must be of ``kind``."""
        if self.peek().kind != kind:
            raise self.unexpected(what)
        return self.next()

    def unexpected(self, wanted: str, *, hint: str | None = None) -> PtxmmError:
        """The error that the next token is not what was ``wanted``."""
        token = self.peek()
        found = "the end" if token.kind == "end" else f"`{token.text[:40]}`"
        return self.error(f"expected {wanted}, found {found}", token, hint=hint)

    def error(
        self, message: str, first: Token, last: Token | None = None, *, kind: str = "syntax", hint: str | None = None
    ) -> PtxmmError:
        """An error at ``first``, or from there to ``last``."""
        return self.text.error(message, first.start, (last or first).end, kind=kind, hint=hint)

    def span(self, first: Token, last: Token | None = None) -> Span:
        """The span from ``first`` to ``last``."""
        return self.text.span(first.start, (last or first).end)

    def previous(self) -> Token:
        """The token taken last."""
        return self._tokens[max(0, self._index - 1)]

    def number(self, what: str = "an integer") -> Constant:
        """Take an integer constant (PTX ISA 4.5.1), with or without ``-``.

        number: MINUS? NUMBER
        """
        first = self.peek()
        negative = self.take("-")
        token = self.need_kind("number", what)
        value = parse_integer(token.text)
        if value is None or (negative and value > 1 << 63):
            message, hint = f"`{token.text[:40]}` is not an integer of at most 64 bits", None
            if re.fullmatch(r"0[0-9]+", token.text):
                hint = "a constant with a leading 0 is octal"
            raise self.error(message, token, hint=hint)
        return Constant(-value if negative else value, self.span(first, token), token.text[:2] in _BITS)

    def constant(self) -> Constant | Real:
        """Take a value: an integer of at most 128 bits or a floating-point constant, with or without ``-``.

        constant: MINUS? NUMBER
        """
        first = self.peek()
        token = self.peek(1) if self.at("-") else first
        if token.kind == "number":
            wide = _WIDE.fullmatch(token.text) and parse_integer(token.text) is None
            if wide or is_real(token.text):
                sign = "-" if self.take("-") else ""
                self.next()
                span = self.span(first, token)
                if not wide:
                    return Real(sign + token.text, span)
                value = int(token.text.removesuffix("U"), 0)
                if value < 1 << 128:
                    return Constant(-value if sign else value, span, token.text[:2] in _BITS)
                raise self.error("an integer has at most 128 bits", token)
        return self.number()

    def path(self) -> Path:
        """Take ``gpu 1, cta 0``.

        path: LEVEL NUMBER (NEXT_LEVEL NUMBER)*
        """
        first = self.peek()
        levels: dict[str, int] = {}
        while True:
            level = self.peek()
            if level.kind != "name" or level.text not in LEVELS:
                raise self.unexpected("one of " + ", ".join(LEVELS))
            if level.text in levels:
                raise self.error(f"a second `{level.text}`", level)
            self.next()
            levels[level.text] = self.number("a number").value
            if not (self.at(",") and self.peek(1).text in LEVELS and self.peek(2).kind == "number"):
                return Path(tuple(levels.items()), self.span(first, self.previous()))
            self.next()

    def term(self) -> NameTerm:
        """Take ``x``, ``a[1]``, ``[x]``, ``cta 1:s``, ``P0:r1`` or ``0:r1`` (which is ``P0:r1``).

        _term: term | "[" term "]"
        term: (_thread | path ":")? NAME index?
        _thread: (NUMBER | NAME) ":"
        index: "[" number "]"
        """
        first = self.peek()
        if self.take("["):
            if self.at("["):
                raise self.unexpected("a location")
            inner = self.term()
            self.need("]")
            return inner
        path: Path | None = None
        thread: str | None = None
        if first.kind == "number" and self.at(":", 1):
            thread = f"P{self.number().value}"
            self.next()
        elif first.kind == "name" and self.at(":", 1):
            thread = self.next().text
            self.next()
        elif first.text in LEVELS and self.peek(1).kind == "number":
            path = self.path()
            self.need(":", hint="a qualified location is written `cta 1:s`")
        name = self.need_kind("name", "a register or location")
        index: int | None = None
        if self.take("["):
            index = self.number("an index").value
            self.need("]")
        return NameTerm(name.text.removeprefix("%"), self.span(first, self.previous()), index, thread, path)

    def address(self) -> AddressOf:
        """Take ``x``, ``&x`` or ``&x+4``.

        address: target (PLUS number)? | AMPERSAND _term ((PLUS | MINUS) number)?
        target: (NAME ":" | path ":")? NAME index?
        """
        first = self.peek()
        ampersand = self.take("&")
        target = self.term()
        offset = 0
        if self.at("+") or (ampersand and self.at("-")):
            sign = -1 if self.next().text == "-" else 1
            offset = sign * self.number("an offset in bytes").value
        return AddressOf(target, offset, self.span(first, self.previous()))


def _unexpected_character(text: Text, masked: str, position: int) -> PtxmmError:
    char = masked[position]
    hints = {
        "|": "`or` is written \\/",
        "!": "`not` is written ~",
        "\\": "`or` is written \\/",
        "/": "`and` is written /\\",
        ".": "a directive has a name: .u32",
        "%": "a register has a name: %r0",
    }
    shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
    return text.error(f"unexpected character {shown}", position, hint=hints.get(char))
