"""The parts of an ``asm`` statement: qualifiers, template, outputs, inputs, clobbers (Inline PTX Assembly 1)."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.cuda.architectures import Range
from ptxmm.cuda.source import Token
from ptxmm.cuda.statement import AsmOperand, AsmStatement
from ptxmm.cuda.template import template, text_of

KEYWORDS = frozenset({"asm", "__asm__", "__asm"})
_VOLATILE = frozenset({"volatile", "__volatile__", "__volatile"})
_QUALIFIERS = _VOLATILE | {"inline", "__inline__"}
_STRINGS = ("string", "raw")
_MOST_TOKENS = 20_000
_DEPTHS = {**dict.fromkeys("([{", 1), **dict.fromkeys(")]}", -1)}
UNKNOWN = "?"
"""Stands for a clobber that a macro makes."""


class Place(Struct, frozen=True):
    """Where a statement stands: the index of its function, whether in a loop, the range of ``__CUDA_ARCH__`` that the
    conditions leave, whether in the body of a macro."""

    function: int | None
    loop: bool
    architectures: Range
    macro: bool = False


def statements(tokens: list[Token], index: int, place: Place) -> list[AsmStatement]:
    """The ``asm`` statement whose keyword is at ``index``; none if it is none, or not complete (in a macro); several
    if it contains ``#if``: with the first branches, and with the last ones."""
    if index and tokens[index - 1].text in (".", "->", "::"):
        return []
    at = index + 1
    volatile = False
    while at < len(tokens) and tokens[at].text in _QUALIFIERS:
        volatile = volatile or tokens[at].text in _VOLATILE
        at += 1
    if at >= len(tokens) or tokens[at].text != "(":
        return []  # `asm goto` too: CUDA has none
    first = _statement(tokens, index, at, volatile, place, last_branch=False)
    if not any(tokens[i].kind == "directive" for i in range(at, min(len(tokens), at + _MOST_TOKENS, _end(first, at)))):
        return [first] if first is not None else []
    second = _statement(tokens, index, at, volatile, place, last_branch=True)
    return [made for made in (first, second) if made is not None]


def _end(made: AsmStatement | None, at: int) -> int:
    """The index of the token after ``made``, or what comes near it."""
    return made.after if made is not None and made.after > 0 else at + 64


def _statement(
    tokens: list[Token], index: int, at: int, volatile: bool, place: Place, *, last_branch: bool
) -> AsmStatement | None:
    sections, close = _sections(tokens, at, last_branch)
    if close is None or len(sections) > 4:
        return None
    first, second, third, fourth = (*sections, [], [], [])[:4]
    literals = [token for token in first if token.kind in _STRINGS]
    if not literals:
        return None
    outputs = [_operand(part, True) for part in _parts(second)]
    inputs = [_operand(part, False) for part in _parts(third)]
    operands = tuple(operand for operand in (*outputs, *inputs) if operand is not None)
    complete = len(literals) == len(first) and len(operands) == len(outputs) + len(inputs)
    opaque = frozenset(number for number, operand in enumerate(operands) if operand.letter == "C")
    return AsmStatement(
        keyword=tokens[index],
        volatile=volatile,
        template=template(literals, [operand.name for operand in operands], opaque) if complete else None,
        operands=operands,
        clobbers=_clobbers(fourth),
        sections=len(sections) - 1,
        close=tokens[close].start,
        index=-1 if place.macro else index,
        after=-1 if place.macro else close + 1,
        function=place.function,
        loop=place.loop,
        macro=place.macro,
        architectures=place.architectures,
    )


def _sections(tokens: list[Token], opening: int, last_branch: bool) -> tuple[list[list[Token]], int | None]:
    """The tokens between the colons, and the index of the closing parenthesis. Of ``#if`` inside, the tokens of the
    first branches or of the last ones."""
    found: list[list[Token]] = [[]]
    depth = 0
    taken: list[bool] = []  # of the open conditions: whether their tokens are taken
    for index in range(opening, min(len(tokens), opening + _MOST_TOKENS)):
        token = tokens[index]
        text = token.text
        if token.kind == "directive":
            _follow(text, taken, last_branch)
        if token.kind == "directive" or not all(taken):
            continue
        if token.kind == "name" and text in KEYWORDS:
            return found, None  # no statement is inside another one
        if token.kind == "mark":
            depth += _DEPTHS.get(text, 0)
            if depth == 1 and index == opening:
                continue
            if depth == 0:
                return found, index
            if depth == 1 and text in (":", "::"):
                found.extend([] for _ in text)
                continue
            if text == ";" and depth == 1:
                return found, None
        found[-1].append(token)
    return found, None


def _follow(directive: str, taken: list[bool], last_branch: bool) -> None:
    """Keep ``taken`` for the open conditions after another ``directive``."""
    word = (directive[1:].split(None, 1) or [""])[0]
    if word.startswith("if"):
        taken.append(not last_branch)
    elif word in ("else", "elif") and taken:
        taken[-1] = last_branch and word == "else"
    elif word == "endif" and taken:
        taken.pop()


def _parts(section: list[Token]) -> list[list[Token]]:
    """The operands of a section: what its commas separate."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in section:
        depth += _DEPTHS.get(token.text, 0) if token.kind == "mark" else 0
        if depth == 0 and token.kind == "mark" and token.text == ",":
            found.append([])
        else:
            found[-1].append(token)
    return [part for part in found if part]


def _operand(part: list[Token], output: bool) -> AsmOperand | None:
    """The operand ``[name] "constraint" (expression)``; None if it has another form."""
    name: str | None = None
    whole = part
    if len(part) > 3 and part[0].text == "[" and part[2].text == "]" and part[1].kind == "name":
        name, part = part[1].text, part[3:]
    opening = next((index for index, token in enumerate(part) if token.text == "("), None)
    if not opening or part[-1].text != ")":
        return None
    constraint = text_of(part[:opening]) if all(token.kind in _STRINGS for token in part[:opening]) else None
    inner = part[opening + 1 : -1]
    return AsmOperand(
        constraint=constraint,
        expression=" ".join(token.text for token in inner),
        start=whole[0].start,
        end=part[-1].end,
        output=output,
        name=name,
    )


def _clobbers(section: list[Token]) -> tuple[str, ...]:
    return tuple(text_of([token]) if token.kind in _STRINGS else UNKNOWN for token in section if token.text != ",")
