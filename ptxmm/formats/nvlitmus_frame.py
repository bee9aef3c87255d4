"""The frame of a nvlitmus file: declarations, threads with their instructions as text, queries."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import lark

from ptxmm.errors import PtxmmError
from ptxmm.formats.template import Instance
from ptxmm.words import alternatives

MAX_DEPTH = 200


@cache
def _grammar() -> lark.Lark:
    """The parser of the frame, built once."""
    source = Path(__file__).with_name("nvlitmus.lark").read_text(encoding="utf-8")
    return lark.Lark(source, parser="lalr", propagate_positions=False)


def parse_frame(instance: Instance) -> lark.Tree[lark.Token]:
    """The parse tree of ``instance``; raises ``PtxmmError`` at the first word that does not fit."""
    depth = 0
    for bracket in re.finditer("[()]", instance.text):
        depth += 1 if bracket[0] == "(" else -1
        if depth > MAX_DEPTH:
            raise instance.error(f"more than {MAX_DEPTH} nested parentheses", *bracket.span())
    try:
        return _grammar().parse(instance.text)
    except lark.UnexpectedCharacters as error:
        raise _unexpected(instance, error.pos_in_stream or 0, error.allowed or set()) from None
    except lark.UnexpectedToken as error:
        expected = error.accepts or error.expected
        if error.token.type != "$END":
            raise _unexpected(instance, error.token.start_pos or 0, expected) from None
        end = len(instance.text.rstrip())
        raise instance.error("the file ends too early", max(0, end - 1), end, hint=_expected(expected)) from None


def _unexpected(instance: Instance, start: int, expected: set[str]) -> PtxmmError:
    """The error at a word or character that does not fit."""
    found = re.compile(r"\w+|.", re.DOTALL).match(instance.text, start)
    word = found[0] if found else ""
    shown = "`" + (word if len(word) <= 40 else word[:40] + "...") + "`"
    if len(word) == 1 and not word.isprintable():
        shown = f"character U+{ord(word):04X}"
    return instance.error(f"unexpected {shown}", start, start + len(word), hint=_expected(expected))


def _expected(names: set[str]) -> str | None:
    """What could stand there instead, in words."""
    words = {
        "DOT": "a declaration such as .global x;",
        "THREAD": "a thread such as d0.b0.t0 { ... }",
        "QUERY": "assert, permit or check",
        "NAME": "a name",
        "INTEGER": "a number",
        "INSTRUCTION": "an instruction",
        "COMPARISON": "`==` or `!=`",
        "ALIASES": "`aliases`",
        "AS": "`as`",
        "SEMICOLON": "`;`",
        "LBRACE": "`{`",
        "RBRACE": "`}`",
        "LPAR": "`(`",
        "RPAR": "`)`",
        "NOT": "`not`",
        "__ANON_0": "`||`",
        "__ANON_1": "`&&`",
    }
    known = [word for name, word in words.items() if name in names]
    return f"expected {alternatives(known)}" if known else None


def extent(token: lark.Token) -> tuple[int, int]:
    """The offsets of a token."""
    start = token.start_pos or 0
    return start, start + len(token)
