"""The template of an ``asm`` statement: from string literals to PTX in which every character knows its place.

How nvcc 13 reads a template (Inline PTX Assembly 1.1): ``%0`` is an operand, ``%%`` a percent sign, ``%=`` a number of
its own; ``%{ %| %}`` vanish; a ``%`` before a letter is passed on, unless a digit follows the letter, which would be
an operand modifier. The template of a statement without operands is passed on as it is, ``%%`` included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ptxmm.cuda.source import Token

_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,8})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r\n|[\s\S]))")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b", "0": "\0", "\n": "", "\r\n": ""}
_OPERAND = re.compile(r"%(?:([0-9]+)|\[([A-Za-z_][A-Za-z0-9_]*)\]|([a-zA-Z])(?=[0-9])|([a-zA-Z])|([\s\S]))")
_WORD = re.compile(r"[A-Za-z0-9_$.]*")
_OTHERS = {"=": "0", "{": "", "|": "", "}": ""}
PLACEHOLDER = "%$"
"""What operands are called in the PTX: ``%$0``, ``%$1``."""


class Escape(Struct, frozen=True):
    """A ``%`` of a template that is worth a remark: ``kind`` is ``modifier`` (``%r1``), ``single`` (``%p``),
    ``double`` (``%%`` without operands), ``named`` (``%[x]``), ``glued`` (``%0x``), ``missing`` (a name that no
    operand has); ``text`` as written, ``start`` and ``end`` in the source."""

    kind: str
    text: str
    start: int
    end: int


class Template(Struct, frozen=True):
    """The PTX of a template, its operands called ``%$0``, .... ``offsets`` has for each character its offset in the
    source, and that of the end. ``numbers`` are the operands referred to, in order; ``raw`` is the text before that."""

    text: str
    offsets: tuple[int, ...]
    escapes: tuple[Escape, ...]
    numbers: tuple[int, ...]
    raw: str

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The offsets in the source of the characters from ``start`` to ``end``."""
        last = min(end, len(self.text))
        if last <= start:
            return self.offsets[min(start, len(self.text))], self.offsets[min(start, len(self.text))] + 1
        return self.offsets[start], max(self.offsets[last - 1] + 1, self.offsets[start] + 1)


def decode(literals: Sequence[Token]) -> tuple[str, list[int]]:
    """The characters of adjacent string literals and the offset of each in the source, and of the end."""
    if len(literals) == 1 and literals[0].kind == "string" and "\\" not in literals[0].text:  # nearly all
        token = literals[0]
        plain = token.text[1:-1] if len(token.text) > 1 and token.text.endswith('"') else token.text[1:]
        return plain, list(range(token.start + 1, token.start + 2 + len(plain)))
    characters: list[str] = []
    offsets: list[int] = []
    end = literals[-1].end - 1
    for token in literals:
        if token.kind == "raw":
            opening = token.text.find("(") + 1
            closing = token.text.rfind(")")
            if opening <= closing:
                characters.append(token.text[opening:closing])
                offsets.extend(range(token.start + opening, token.start + closing))
            continue
        first = token.text.find('"') + 1
        last = len(token.text) - (1 if len(token.text) > first and token.text.endswith('"') else 0)
        position = first
        while position < last:
            escape = token.text.find("\\", position, last)
            until = last if escape < 0 else escape
            characters.append(token.text[position:until])
            offsets.extend(range(token.start + position, token.start + until))
            if escape < 0:
                break
            hit = _ESCAPE.match(token.text, escape, last)
            character = _escaped(hit) if hit else "\\"
            characters.append(character)
            offsets.extend([token.start + escape] * len(character))
            position = hit.end() if hit else escape + 1
    offsets.append(end)
    return "".join(characters), offsets


def text_of(literals: Sequence[Token]) -> str:
    """The characters of adjacent string literals."""
    if len(literals) == 1 and literals[0].kind == "string" and "\\" not in literals[0].text:
        return literals[0].text.strip('"')
    return decode(literals)[0]


def _escaped(hit: re.Match[str]) -> str:
    octal, short, four, eight, other = hit.groups()
    if other is not None:
        return _SIMPLE.get(other, other)
    code = int(octal, 8) if octal is not None else int(short or four or eight, 16)
    return chr(code) if code < 0x110000 else "?"


def template(literals: Sequence[Token], names: Sequence[str | None], opaque: frozenset[int]) -> Template:
    """The template that ``literals`` are, for operands with these names (None: without one).

    ``opaque`` are the numbers of operands of constraint ``C``, whose text nobody knows here.
    """
    raw, places = decode(literals)
    if not names:
        escapes = [
            Escape("double", "%%", places[hit.start()], places[hit.start() + 1] + 1) for hit in re.finditer("%%", raw)
        ]
        return Template(raw, tuple(places), tuple(escapes), (), raw)
    known = {name: number for number, name in enumerate(names) if name is not None}
    parts: list[str] = []
    offsets: list[int] = []
    found: list[Escape] = []
    numbers: list[int] = []
    position = 0
    for hit in _OPERAND.finditer(raw):
        start, end = hit.span()
        parts.append(raw[position:start])
        offsets.extend(places[position:start])
        position = end
        _, _, modifier, letter, other = hit.groups()
        at = (places[start], places[end - 1] + 1)
        if other is not None:
            new = _OTHERS.get(other, other)  # nvcc drops the percent sign
        elif modifier is not None or letter is not None:
            word = _WORD.match(raw, end)
            rest = word[0] if word else ""
            kind = "modifier" if modifier is not None else "single"
            found.append(Escape(kind, hit[0] + rest, at[0], at[1] + len(rest)))
            new = hit[0]
        else:
            number = _number(hit, known)
            numbers.append(number)
            new = f"{PLACEHOLDER}{number}" if number >= 0 else f"{PLACEHOLDER}unknown"
            if hit[2] is not None:
                found.append(Escape("named" if number >= 0 else "missing", hit[0], *at))
            following = raw[end : end + 1]
            if number not in opaque and (following.isalpha() or following == "_"):
                found.append(Escape("glued", hit[0] + following, at[0], at[1] + 1))
        parts.append(new)
        offsets.extend([places[start]] * len(new))
        if len(new) > 1:
            offsets[-1] = places[end - 1]
    parts.append(raw[position:])
    offsets.extend(places[position:])
    return Template("".join(parts), tuple(offsets), tuple(found), tuple(numbers), raw)


def _number(hit: re.Match[str], known: Mapping[str, int]) -> int:
    """The number of the operand ``%0`` or ``%[name]``; -1 if there is none."""
    return int(hit[1]) if hit[1] is not None and len(hit[1]) < 9 else known.get(hit[2] or "", -1)
