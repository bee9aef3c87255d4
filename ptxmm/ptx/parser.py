"""From the text of a thread to statements, with errors that point at the place and name the mend."""

from __future__ import annotations

import re
import struct
from typing import cast

from ptxmm.errors import PtxmmError, Span
from ptxmm.ptx.origin import Origin, clip, syntax_error_at
from ptxmm.ptx.reader import Node, read
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
from ptxmm.tokens import Token

MAX_CHARACTERS = 200_000
MAX_INSTRUCTIONS = 10_000
MAX_INSTRUCTION_CHARACTERS = 20_000

_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)U?")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+")
_EXACT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")


def parse_statements(text: str, line: int = 1, column: int = 1, *, dialect: bool = False) -> list[Statement]:
    """Parse labels and instructions separated by ``;`` (the last ``;`` may be missing; PTX ISA 4.1-4.5, 6).

    ``line`` and ``column`` (1-based) are the place of the first character of ``text`` in the file; all spans are
    those of the file. With ``dialect`` the hints of errors speak of the untyped dialect; the syntax is the same.
    Comments are ``//`` and ``/* */``. Raises ``PtxmmError`` (kind ``syntax``) with its place.
    """
    origin = Origin(text, line, column)
    _check_size(origin)
    nodes = read(text)
    if nodes is None:
        from ptxmm.ptx.syntax_errors import parsed  # with Lark, which takes long to load

        nodes = parsed(origin, dialect)
    return [statement_of(origin, node) for node in nodes]


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


def _check_size(origin: Origin) -> None:
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


def statement_of(origin: Origin, node: Node) -> Statement:
    """The label or instruction that ``node`` is the tree of. Raises ``PtxmmError`` for a constant that is none."""
    first, last = _ends(node)
    if node.data == "label":
        return Label(str(first), origin.span(first, last))
    guard: Guard | None = None
    opcode: Token | None = None
    last_qualifier: Token | None = None
    qualifiers: list[tuple[str, Span]] = []
    operands: list[Operand] = []
    for child in node.children:
        if not isinstance(child, str):
            if child.data == "guard":
                parts = _tokens(child)
                name = _name(origin, parts[-1])
                guard = Guard(name, len(parts) == 3, origin.span(parts[0], parts[-1]))
            else:
                operands.append(operand_of(origin, child))
        elif opcode is None:
            opcode = child
        elif child.type == "QUALIFIER":
            qualifiers.append((str(child)[1:], origin.span(child)))
            last_qualifier = child
    assert opcode is not None
    text = origin.flat(first, last)
    return Instruction(
        str(opcode),
        tuple(qualifiers),
        tuple(operands),
        guard,
        origin.span(opcode, last_qualifier),
        origin.span(first, last),
        text,
    )


def _ends(node: Node) -> tuple[Token, Token]:
    """The first and the last token below ``node``."""
    first: Node | Token = node
    while not isinstance(first, str):
        first = first.children[0]
    last: Node | Token = node
    while not isinstance(last, str):
        last = last.children[-1]
    return first, last


def _tokens(node: Node) -> list[Token]:
    """All tokens below ``node`` in the order of the text (the tree is at most five deep)."""
    out: list[Token] = []
    for child in node.children:
        if isinstance(child, str):
            out.append(child)
        else:
            out.extend(_tokens(child))
    return out


def _name(origin: Origin, token: Token, element: str = "") -> Name:
    text = str(token) + element
    return Name(text.lstrip("%"), origin.span(token), text.startswith("%"))


def operand_of(origin: Origin, node: Node) -> Operand:
    """The operand that ``node`` is the tree of. Raises ``PtxmmError`` for a constant that is none."""
    if node.data == "value":
        return _value(origin, node)
    span = origin.span(*_ends(node))
    match node.data:
        case "memory":
            return _memory(origin, node, span)
        case "address_of":
            name = _tokens(cast("Node", node.children[1]))
            return AddressOf(_name(origin, name[0], "".join(name[1:])), _offset(origin, node.children[2:]), span)
        case "pair":
            tokens = _tokens(node)
            return Pair(_name(origin, tokens[0]), _name(origin, tokens[2]), span)
        case "negated":
            return Negated(_name(origin, _tokens(node)[1]), span)
        case _:
            items = tuple(_value(origin, c) for c in node.children if not isinstance(c, str))
            return Vector(items, span)


def _memory(origin: Origin, node: Node, span: Span) -> Memory:
    first, *rest = (c for c in node.children if not isinstance(c, str))
    last = node.children[-1]
    extra = str(last)[1:] if isinstance(last, str) and last.type == "QUALIFIER" else None
    coordinates: Vector | None = None
    if rest:
        found = operand_of(origin, rest[0])
        if len(rest) == 1 and isinstance(found, Vector):
            coordinates = found
        else:
            extra = "coordinates"
    item = _value(origin, first)
    if isinstance(item, Float):
        raise syntax_error_at(item.span, "an address is no floating-point constant")
    if isinstance(item, Sum):
        return Memory(item.base, item.offset, span, extra, coordinates)
    return Memory(item, 0, span, extra, coordinates)


def _value(origin: Origin, node: Node) -> Name | Number | Float | Sum:
    base = cast("Node", node.children[0])
    whole = len(node.children) == 1
    if base.data == "name":
        token, *element = cast("list[Token]", base.children)
        name = _name(origin, token, "".join(element))
        return name if whole else Sum(name, _offset(origin, node.children[1:]), origin.span(*_ends(node)))
    span = origin.span(*_ends(node))
    if base.data == "float":
        if not whole:
            raise syntax_error_at(span, "a floating-point constant takes no offset")
        return _float(base, span)
    offset = 0 if whole else _offset(origin, node.children[1:])
    return Number(_in_range(_integer(origin, base) + offset, span), span)


def _offset(origin: Origin, children: list[Node | Token]) -> int:
    total = 0
    for sign, integer in zip(children[::2], children[1::2], strict=True):
        value = _integer(origin, cast("Node", integer))
        total += -value if sign == "-" else value
    return total


def _integer(origin: Origin, node: Node) -> int:
    *sign, number = _tokens(node)
    text = str(number)
    value = parse_integer(text)
    span = origin.span(number)
    if value is None:
        if _INTEGER.fullmatch(text):
            raise syntax_error_at(span, "the integer constant needs more than 64 bits")
        hint = "a constant with a leading 0 is octal" if re.fullmatch(r"0[0-9]+U?", text) else None
        raise syntax_error_at(span, f"`{clip(text)}` is not an integer constant", hint=hint)
    return _in_range(-value if sign and sign[0] == "-" else value, span)


def _float(node: Node, span: Span) -> Float:
    *sign, number = _tokens(node)
    text = str(number)
    found = parse_float(text)
    if found is None:
        raise syntax_error_at(span, f"the floating-point constant `{clip(text)}` is too large")
    bits, single = found
    exact = _EXACT.fullmatch(text) is not None
    if sign:
        if exact:
            raise syntax_error_at(span, f"`{clip(text)}` gives all bits of the constant: no sign before it")
        if sign[0] == "-":
            bits |= 1 << 63
    return Float(bits, single, exact, span)


def _in_range(value: int, span: Span) -> int:
    if not -(1 << 63) <= value < 1 << 64:
        raise syntax_error_at(span, "the integer constant needs more than 64 bits")
    return value
