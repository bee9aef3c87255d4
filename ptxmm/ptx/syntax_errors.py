"""What Lark says about a text that is no PTX, in words that help."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import cast

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from ptxmm.errors import PtxmmError
from ptxmm.ptx.cuda_words import meant
from ptxmm.ptx.origin import Origin, clip, strip_comments
from ptxmm.ptx.reader import Node
from ptxmm.ptx.table import DIALECT, OTHER_INSTRUCTIONS

_OPCODE = re.compile(r"\s*(?:[\w$%]+:\s*)*(?:@!?\s*[\w$%]+\s+)?([A-Za-z]\w*)((?:\.[\w:]+)?)")
_LABELS = re.compile(r"\s*(?:[\w$%]+\s*:(?!:)\s*)*")

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


def parsed(origin: Origin, dialect: bool) -> list[Node]:
    """The labels and instructions of a text as Lark reads it. Raises ``PtxmmError`` (kind ``syntax``) with its place,
    or of kind ``unsupported`` for an instruction that is not modelled."""
    try:
        tree = _lark().parse(origin.text)
    except UnexpectedInput as error:
        raise _syntax_error(origin, error, dialect) from None
    return cast("list[Node]", [child for child in tree.children if not isinstance(child, str)])


@cache
def _lark() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", keep_all_tokens=True, maybe_placeholders=False)


def _cuda(origin: Origin, position: int) -> PtxmmError | None:
    """The error that the statement around ``position`` is one of C++."""
    before = strip_comments(origin.text[:position])
    start = max(before.rfind(mark) for mark in ";{}\n") + 1
    label = _LABELS.match(origin.text, start)
    start = label.end() if label is not None else start
    found = meant(origin.text[start:])
    first = _OPCODE.match(origin.text[start:])
    if found is None or (first is not None and first[1] in OTHER_INSTRUCTIONS):
        return None
    return origin.error(found[0], start, found[1], found[2])


def _syntax_error(origin: Origin, error: UnexpectedInput, dialect: bool) -> PtxmmError:
    """Say in words what Lark found."""
    cuda = _cuda(origin, error.pos_in_stream or 0)
    if cuda is not None:
        return cuda
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
    stripped = strip_comments(before).rstrip()
    # What is missing at the end of a line is reported there, not at the start of the next one.
    line_break = "\n" in before[len(before.rstrip()) :]
    position = len(before.rstrip()) if at_end or line_break else (token.start_pos or 0)
    width = 1 if at_end or line_break else len(token)
    found = "the end" if at_end else f"`{clip(str(token))}`"
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


def _unsupported_opcode(origin: Origin, position: int, dialect: bool) -> PtxmmError | None:
    """The operands of instructions that are not modelled may have other syntax: then that is what to say."""
    start = origin.text.rfind(";", 0, position) + 1
    found = _OPCODE.match(origin.text, start, position + 1)
    if found is None or found[1] not in OTHER_INSTRUCTIONS or (dialect and found[1] in DIALECT):
        return None
    message = f"`{found[1]}{clip(found[2] or '')}` is not supported yet"
    error = origin.error(message, found.start(1), len(found[0]) - (found.start(1) - found.start()))
    error.kind = "unsupported"
    return error


def _index_hint(dialect: bool) -> str:
    return "write the offset in bytes: x+8" if dialect else "write the offset in bytes: [x+4]"


def _either(words: list[str]) -> str:
    if len(words) <= 1:
        return "".join(words) or "something else"
    return ", ".join(words[:-1]) + " or " + words[-1]
