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
from ptxmm.words import alternatives

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
_TOGETHER = (
    ({"IDENT", "LSQB", "NUMBER"}, "an operand"),
    ({"IDENT", "AT"}, "an instruction or a label"),
    ({"IDENT", "NUMBER"}, "a register or an integer constant"),
)
"""Types of tokens that stand for something together."""
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
    position = error.pos_in_stream or 0
    known = _cuda(origin, position) or _unsupported_opcode(origin, position, dialect)
    if known is not None:
        return known
    if isinstance(error, UnexpectedCharacters):
        return origin.unexpected(position)
    assert isinstance(error, UnexpectedToken)
    return _unexpected(origin, cast("Token", error.token), set(error.accepts or error.expected), dialect)


def _unexpected(origin: Origin, token: Token, accepts: set[str], dialect: bool) -> PtxmmError:
    """The error that ``token`` stands where the types of tokens that ``accepts`` has are expected."""
    at_end = token.type == "$END"
    before = origin.text[: len(origin.text) if at_end else token.start_pos]
    stripped = strip_comments(before).rstrip()
    # What is missing at the end of a line is reported there, not at the start of the next one.
    line_break = "\n" in before[len(before.rstrip()) :]
    position = len(before.rstrip()) if at_end or line_break else (token.start_pos or 0)
    width = 1 if at_end or line_break else len(token)
    found = "the end" if at_end else f"`{clip(str(token))}`"
    last = stripped[-1:]
    missing = _missing(token, accepts, line_break)
    if missing == ";":
        return origin.error("missing `;` after the instruction", max(0, position - 1))
    if missing == "," and token.type == "LSQB" and not line_break and re.search(r"[\w$%]$", before):
        return origin.error("array indexing is not PTX assembly here", position, 1, _index_hint(dialect))
    if missing is not None:
        return origin.error(f"missing `{missing}` before {found}", position, width)
    if token.type == "SEMICOLON" and last in ("", ";", ":"):
        hint = "a label needs no `;`" if last == ":" else None
        return origin.error("stray `;`: there is no instruction before it", position, 1, hint)
    if last == "," and token.type in ("$END", "SEMICOLON", "COMMA", "RSQB"):
        return origin.error(f"expected an operand after `,`, found {found}", position, width)
    if re.search(r"@!?\s*[\w$%]+$", stripped):
        return origin.error(f"expected an instruction after the guard, found {found}", position, width)
    return origin.error(f"expected {_wanted(accepts)}, found {found}", position, width)


def _missing(token: Token, accepts: set[str], line_break: bool) -> str | None:
    """The mark that is missing before ``token``, if that is all."""
    for name, mark in (("RSQB", "]"), ("RBRACE", "}")):
        if name in accepts:
            return mark
    if token.type not in _OPERAND_START:
        return None
    if line_break and "SEMICOLON" in accepts:
        return ";"
    return "," if "COMMA" in accepts else None


def _wanted(accepts: set[str]) -> str:
    """What is expected, in words."""
    for names, together in _TOGETHER:
        if names <= accepts:
            return together
    hidden = {"FLOAT"} if "NUMBER" in accepts else set()
    words = [word for name, word in _DESCRIPTIONS.items() if name in accepts - hidden]
    return alternatives(words) or "something else"


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
