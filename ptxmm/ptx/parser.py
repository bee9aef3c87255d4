"""From the text of a thread to statements, with errors that point at the place and name the mend."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.syntax import (
    AddressOf,
    Float,
    Guard,
    Instruction,
    Label,
    Memory,
    Name,
    Negated,
    Number,
    Operand,
    Pair,
    Statement,
    Sum,
    Vector,
)
from ptxmm.ptx.table import DIALECT, OTHER_INSTRUCTIONS

MAX_CHARACTERS = 200_000
MAX_INSTRUCTIONS = 10_000
MAX_INSTRUCTION_CHARACTERS = 20_000

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")
_EXACT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")
_OPCODE = re.compile(r"\s*(?:[\w$%]+:\s*)*(?:@!?\s*[\w$%]+\s+)?([A-Za-z]\w*)((?:\.[\w:]+)?)")

_DESCRIPTIONS = {
    "IDENT": "a name",
    "QUALIFIER": "a qualifier",
    "NUMBER": "an integer constant",
    "FLOAT": "a floating-point constant",
    "SIGN": "`+` or `-`",
    "AT": "a guard `@p`",
    "NOT": "`!`",
    "COMMA": "`,`",
    "SEMICOLON": "`;`",
    "COLON": "`:`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "BAR": "`|`",
    "AMPERSAND": "`&`",
    "$END": "the end",
}
_OPERAND_START = {"IDENT", "NUMBER", "FLOAT", "LSQB", "LBRACE", "AMPERSAND", "NOT"}


def parse_statements(text: str, line: int = 1, column: int = 1, *, dialect: bool = False) -> list[Statement]:
    """Parse labels and instructions separated by ``;`` (the last ``;`` may be missing; PTX ISA 4.1-4.5, 6).

    ``line`` and ``column`` (1-based) are the place of the first character of ``text`` in the file; all spans are
    those of the file. With ``dialect`` the hints of errors speak of the untyped dialect; the syntax is the same.
    Comments are ``//`` and ``/* */``. Raises ``PtxmmError`` (kind ``syntax``) with its place.
    """
    origin = _Origin(text, line, column)
    _check_size(origin)
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(origin, error, dialect) from None
    return [_statement(origin, node) for node in tree.children if isinstance(node, Tree)]


def parse_integer(text: str) -> int | None:
    """The value of an unsigned integer constant (PTX ISA 4.5.1: decimal, ``0x``, ``0b``, leading-0 octal, ``U``),
    or None if ``text`` is not one or needs more than 64 bits."""
    if len(text) > 80 or not _INTEGER.fullmatch(text):
        return None
    digits = text.removesuffix("U")
    if digits[:2] in ("0x", "0X", "0b", "0B"):
        value = int(digits, 0)
    else:
        value = int(digits, 8 if digits.startswith("0") else 10)
    return value if value < 1 << 64 else None


def parse_float(text: str) -> tuple[int, bool] | None:
    """The bits of an unsigned floating-point constant (PTX ISA 4.5.2) and whether they are of single precision
    (``0f3F800000``) rather than double (``0d3FF0000000000000``, ``1.5``, ``1e-3``); None if ``text`` is not one or is
    too large for double precision."""
    if len(text) > 80:
        return None
    if _EXACT.fullmatch(text):
        return int(text[2:], 16), text[1] in "fF"
    if not _DECIMAL.fullmatch(text):
        return None
    bits: int = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
    return None if bits == 0x7FF0 << 48 else (bits, False)


@cache
def _lark() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", keep_all_tokens=True, maybe_placeholders=False)


@dataclass(frozen=True, slots=True)
class _Origin:
    """The input and the place of its first character in the file."""

    text: str
    line: int
    column: int

    def span(self, first: Token, last: Token | None = None) -> Span:
        """The span from ``first`` to ``last``; up to the end of the first line if they are on different lines."""
        last = last or first
        line, column = self.place(first.line or 1, first.column or 1)
        if last.end_line == first.line:
            return Span(line, column, self.place(first.line or 1, last.end_column or 1)[1])
        end = self.text.find("\n", first.start_pos or 0)
        raw = self.text[first.start_pos or 0 : end if end >= 0 else len(self.text)]
        return Span(line, column, column + max(1, len(raw.rstrip())))

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The line and column in the file of a line and column of the text."""
        return (self.line + line - 1, column + (self.column - 1 if line == 1 else 0))

    def place_at(self, position: int) -> tuple[int, int]:
        """The line and column in the file of the character with index ``position``."""
        before = self.text[:position]
        start = before.rfind("\n") + 1
        return self.place(before.count("\n") + 1, position - start + 1)

    def error(self, message: str, position: int, width: int = 1, hint: str | None = None) -> PtxmmError:
        line, column = self.place_at(position)
        return PtxmmError(message, kind="syntax", line=line, column=column, width=width, hint=hint)


def _check_size(origin: _Origin) -> None:
    """Refuse texts that would take many seconds: a litmus test has tens of instructions. Blanks, with which readers
    of columns keep the positions, do not count."""
    separators = origin.text.count(";") + origin.text.count(":") // 4
    if len(origin.text) - origin.text.count(" ") > MAX_CHARACTERS or separators > MAX_INSTRUCTIONS:
        raise PtxmmError(
            f"the thread is too long: at most {MAX_INSTRUCTIONS} instructions and {MAX_CHARACTERS} characters",
            line=origin.line,
            column=origin.column,
        )
    if len(origin.text) <= MAX_INSTRUCTION_CHARACTERS:
        return
    start = 0
    for part in origin.text.split(";"):
        if len(part) - part.count(" ") > MAX_INSTRUCTION_CHARACTERS:
            at = start + len(part) - len(part.lstrip())
            raise origin.error(f"the instruction is too long: at most {MAX_INSTRUCTION_CHARACTERS} characters", at)
        start += len(part) + 1


# -- building the statements ---------------------------------------------------------------------------------------


def _statement(origin: _Origin, node: Tree[Token]) -> Statement:
    tokens = _tokens(node)
    if node.data == "label":
        return Label(str(tokens[0]), origin.span(tokens[0], tokens[1]))
    guard: Guard | None = None
    opcode: Token | None = None
    last_qualifier: Token | None = None
    qualifiers: list[tuple[str, Span]] = []
    operands: list[Operand] = []
    for child in node.children:
        if isinstance(child, Tree):
            if child.data == "guard":
                parts = _tokens(child)
                name = _name(origin, parts[-1])
                guard = Guard(name, len(parts) == 3, origin.span(parts[0], parts[-1]))
            else:
                operands.append(_operand(origin, child))
        elif opcode is None:
            opcode = child
        elif child.type == "QUALIFIER":
            qualifiers.append((str(child)[1:], origin.span(child)))
            last_qualifier = child
    assert opcode is not None
    last = tokens[-1]
    text = " ".join(_strip_comments(origin.text[tokens[0].start_pos or 0 : last.end_pos or 0]).split())
    return Instruction(
        str(opcode),
        tuple(qualifiers),
        tuple(operands),
        guard,
        origin.span(opcode, last_qualifier),
        origin.span(tokens[0], last),
        text,
    )


def _tokens(node: Tree[Token]) -> list[Token]:
    """All tokens below ``node`` in the order of the text (the tree is at most five deep)."""
    out: list[Token] = []
    for child in node.children:
        if isinstance(child, Token):
            out.append(child)
        else:
            out.extend(_tokens(child))
    return out


def _name(origin: _Origin, token: Token, element: str = "") -> Name:
    text = str(token) + element
    return Name(text.lstrip("%"), origin.span(token), text.startswith("%"))


def _operand(origin: _Origin, node: Tree[Token]) -> Operand:
    tokens = _tokens(node)
    span = origin.span(tokens[0], tokens[-1])
    match node.data:
        case "value":
            return _value(origin, node)
        case "memory":
            return _memory(origin, node, span)
        case "address_of":
            name = _tokens(cast("Tree[Token]", node.children[1]))
            return AddressOf(_name(origin, name[0], "".join(name[1:])), _offset(origin, node.children[2:]), span)
        case "pair":
            return Pair(_name(origin, tokens[0]), _name(origin, tokens[2]), span)
        case "negated":
            return Negated(_name(origin, tokens[1]), span)
        case _:
            items = tuple(_value(origin, c) for c in node.children if isinstance(c, Tree))
            return Vector(items, span)


def _memory(origin: _Origin, node: Tree[Token], span: Span) -> Memory:
    first, *rest = (c for c in node.children if isinstance(c, Tree))
    last = node.children[-1]
    extra = str(last)[1:] if isinstance(last, Token) and last.type == "QUALIFIER" else None
    coordinates: Vector | None = None
    if rest:
        found = _operand(origin, rest[0])
        if len(rest) == 1 and isinstance(found, Vector):
            coordinates = found
        else:
            extra = "coordinates"
    item = _value(origin, first)
    if isinstance(item, Float):
        raise _at(item.span, "an address is no floating-point constant")
    if isinstance(item, Sum):
        return Memory(item.base, item.offset, span, extra, coordinates)
    return Memory(item, 0, span, extra, coordinates)


def _value(origin: _Origin, node: Tree[Token]) -> Name | Number | Float | Sum:
    base = cast("Tree[Token]", node.children[0])
    tokens = _tokens(node)
    span = origin.span(tokens[0], tokens[-1])
    if base.data == "float":
        if len(node.children) > 1:
            raise _at(span, "a floating-point constant takes no offset")
        return _float(origin, base, span)
    offset = _offset(origin, node.children[1:])
    if base.data == "integer":
        return Number(_in_range(_integer(origin, base) + offset, span), span)
    name_tokens = _tokens(base)
    name = _name(origin, name_tokens[0], "".join(name_tokens[1:]))
    return name if len(node.children) == 1 else Sum(name, offset, span)


def _offset(origin: _Origin, children: list[Tree[Token] | Token]) -> int:
    total = 0
    for sign, integer in zip(children[::2], children[1::2], strict=True):
        value = _integer(origin, cast("Tree[Token]", integer))
        total += -value if sign == "-" else value
    return total


def _integer(origin: _Origin, node: Tree[Token]) -> int:
    *sign, number = _tokens(node)
    text = str(number)
    value = parse_integer(text)
    span = origin.span(number)
    if value is None:
        if _INTEGER.fullmatch(text):
            raise _at(span, "the integer constant needs more than 64 bits")
        hint = "a constant with a leading 0 is octal" if re.fullmatch(r"0[0-9]+U?", text) else None
        raise _at(span, f"`{_clip(text)}` is not an integer constant", hint=hint)
    return _in_range(-value if sign and sign[0] == "-" else value, span)


def _float(origin: _Origin, node: Tree[Token], span: Span) -> Float:
    *sign, number = _tokens(node)
    text = str(number)
    found = parse_float(text)
    if found is None:
        raise _at(span, f"the floating-point constant `{_clip(text)}` is too large")
    bits, single = found
    exact = _EXACT.fullmatch(text) is not None
    if sign:
        if exact:
            raise _at(span, f"`{_clip(text)}` gives all bits of the constant: no sign before it")
        if sign[0] == "-":
            bits |= 1 << 63
    return Float(bits, single, exact, span)


def _in_range(value: int, span: Span) -> int:
    if not -(1 << 63) <= value < 1 << 64:
        raise _at(span, "the integer constant needs more than 64 bits")
    return value


# -- errors --------------------------------------------------------------------------------------------------------


def _at(span: Span, message: str, *, kind: str = "syntax", hint: str | None = None) -> PtxmmError:
    width = max(1, span.end_column - span.column)
    return PtxmmError(message, kind=kind, line=span.line, column=span.column, width=width, hint=hint)


def _clip(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[:limit] + "..."


def _syntax_error(origin: _Origin, error: UnexpectedInput, dialect: bool) -> PtxmmError:
    """Say in words what Lark found."""
    unsupported = _unsupported_opcode(origin, error.pos_in_stream or 0, dialect)
    if unsupported is not None:
        return unsupported
    if isinstance(error, UnexpectedCharacters):
        position = error.pos_in_stream or 0
        char = origin.text[position]
        if origin.text.startswith("/*", position):
            return origin.error("the comment `/*` has no end", position, 2, "close it with `*/`")
        shown = f"`{char}`" if char.isprintable() else f"U+{ord(char):04X}"
        return origin.error(f"unexpected character {shown}", position)
    assert isinstance(error, UnexpectedToken)
    token = cast("Token", error.token)
    accepts = set(error.accepts or error.expected)
    at_end = token.type == "$END"
    before = origin.text[: len(origin.text) if at_end else token.start_pos]
    stripped = _strip_comments(before).rstrip()
    # What is missing at the end of a line is reported there, not at the start of the next one.
    line_break = "\n" in before[len(before.rstrip()) :]
    position = len(before.rstrip()) if at_end or line_break else (token.start_pos or 0)
    width = 1 if at_end or line_break else len(token)
    found = "the end" if at_end else f"`{_clip(str(token))}`"
    last = stripped[-1:]
    if not at_end and token.type in _OPERAND_START and "RSQB" not in accepts and "RBRACE" not in accepts:
        if token.type == "LSQB" and not line_break and re.search(r"[\w$%]$", before) and "COMMA" in accepts:
            return origin.error("array indexing is not PTX assembly here", position, 1, _index_hint(dialect))
        if line_break and "SEMICOLON" in accepts:
            return origin.error("missing `;` after the instruction", max(0, position - 1))
        if "COMMA" in accepts:
            return origin.error(f"missing `,` before {found}", position, width)
    if "RSQB" in accepts:
        return origin.error(f"missing `]` before {found}", position, width)
    if "RBRACE" in accepts:
        return origin.error(f"missing `}}` before {found}", position, width)
    if token.type == "SEMICOLON" and last in ("", ";", ":"):
        hint = "a label needs no `;`" if last == ":" else None
        return origin.error("stray `;`: there is no instruction before it", position, 1, hint)
    if last == "," and (at_end or token.type in ("SEMICOLON", "COMMA", "RSQB")):
        return origin.error(f"expected an operand after `,`, found {found}", position, width)
    if re.search(r"@!?\s*[\w$%]+$", stripped):
        return origin.error(f"expected an instruction after the guard, found {found}", position, width)
    if "NUMBER" in accepts:
        accepts.discard("FLOAT")
    wanted = [_DESCRIPTIONS.get(name, name) for name in _DESCRIPTIONS if name in accepts]
    if {"IDENT", "LSQB", "NUMBER"} <= accepts:
        wanted = ["an operand"]
    elif {"IDENT", "AT"} <= accepts:
        wanted = ["an instruction", "a label"]
    elif {"IDENT", "NUMBER"} <= accepts:
        wanted = ["a register", "an integer constant"]
    return origin.error(f"expected {_either(wanted)}, found {found}", position, width)


def _unsupported_opcode(origin: _Origin, position: int, dialect: bool) -> PtxmmError | None:
    """The operands of instructions that are not modelled may have other syntax: then that is what to say."""
    start = origin.text.rfind(";", 0, position) + 1
    found = _OPCODE.match(origin.text, start, position + 1)
    if found is None or found[1] not in OTHER_INSTRUCTIONS or (dialect and found[1] in DIALECT):
        return None
    message = f"`{found[1]}{_clip(found[2] or '')}` is not supported yet"
    error = origin.error(message, found.start(1), len(found[0]) - (found.start(1) - found.start()))
    error.kind = "unsupported"
    return error


def _index_hint(dialect: bool) -> str:
    return "write the offset in bytes: x+8" if dialect else "write the offset in bytes: [x+4]"


def _strip_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/", " ", text)


def _either(words: list[str]) -> str:
    if len(words) <= 1:
        return "".join(words) or "something else"
    return ", ".join(words[:-1]) + " or " + words[-1]
