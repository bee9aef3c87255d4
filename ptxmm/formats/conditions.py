"""Final conditions: ``exists``, ``~exists``, ``forall``, ``locations`` and ``filter`` after the threads of a test.

Operators from loose to tight: ``\\/``, ``/\\``, ``~`` (or ``not``). The parser keeps its own stack, so that deep
nesting ends in an error and not in a crash.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Literal

from msgspec import Struct, field

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import Text
from ptxmm.formats.tokens import Cursor
from ptxmm.program.condition import Comparison, Conjunction, Disjunction, Negation
from ptxmm.program.source import NameTerm, RawCondition, RawProposition, RawTerm

MAX_DEPTH = 100
START = re.compile(r"(?:exists|forall|locations|filter)(?![A-Za-z0-9_$])|~")

_MEANT = re.compile(r"([!~]\s*|not\s+)?([A-Za-z][A-Za-z_]*)\s*[(\[]")
_SAID = {
    "exist": "exists", "never": "~exists", "always": "forall", "sometimes": "exists", "forbidden": "~exists",
    "allowed": "exists", "final": "exists", "assert": "forall", "all": "forall", "nexists": "~exists",
    "location": "locations",
}  # fmt: skip
_WORDS = ("exists", "forall", "locations", "filter")
_COMPARISONS = {"=": "==", **{op: op for op in ("==", "!=", "<", "<=", ">", ">=")}}


class Final(Struct, frozen=True):
    """What stands after the threads."""

    condition: RawCondition | None = None
    locations: tuple[NameTerm, ...] = ()
    filter: RawProposition | None = None


class _Level(Struct):
    """An open parenthesis (or the outermost level) while its content is read."""

    start: int
    disjuncts: list[RawProposition] = field(default_factory=list)
    conjuncts: list[RawProposition] = field(default_factory=list)
    negations: int = 0

    def add(self, item: RawProposition) -> None:
        for _ in range(self.negations):
            item = Negation(item)
        self.negations = 0
        self.conjuncts.append(item)

    def end_conjunction(self) -> None:
        items = tuple(self.conjuncts)
        self.disjuncts.append(items[0] if len(items) == 1 else Conjunction(items))
        self.conjuncts.clear()

    def close(self) -> RawProposition:
        self.end_conjunction()
        return self.disjuncts[0] if len(self.disjuncts) == 1 else Disjunction(tuple(self.disjuncts))


def condition_meant(line: str) -> tuple[str, int, str] | None:
    """What is wrong with a line that is most probably meant for a final condition (``exist (``, ``never (``,
    ``not exists (``): a message, its width and the mend; None for another line."""
    match = _MEANT.match(line)
    if match is None:
        return None
    negation, word = match[1], match[2].lower()
    close = difflib.get_close_matches(word, _WORDS, 1, 0.75)
    meant = _SAID.get(word) or (close[0] if close else None)
    if meant is None:
        return None
    if negation:
        meant = {"exists": "~exists", "~exists": "exists"}.get(meant, f"~{meant}")
    written = " ".join(line[: match.end() - 1].split())
    hint = f"write `{meant} (...)`"
    if word in ("never", "always", "sometimes"):
        hint += f", or `Expect=MODEL:{word}` above the initial state"
    if meant == "~forall":
        hint = "write `exists (~(...))`"
    return f"`{written}` begins no condition", len(written), hint


def parse_final(text: Text, masked: str, start: int, names: Callable[[str, int], int] | None = None) -> Final:
    """Read everything from ``start`` to the end of the file; each section may occur once, in any order. ``names``: see
    ``Cursor``.

    Raises ``PtxmmError`` (kind ``syntax``; ``condition`` for a second section of a kind).

    final: (condition | locations | filter)*
    condition: (EXISTS | NEVER EXISTS | FORALL) disjunction
    filter: FILTER disjunction
    """
    cursor = Cursor(text, masked, start, len(masked), names)
    found: dict[str, int] = {}
    condition: RawCondition | None = None
    locations: tuple[NameTerm, ...] = ()
    restriction: RawProposition | None = None
    while cursor.peek().kind != "end":
        token = cursor.peek()
        kind = token.text
        if kind == "~" and cursor.at("exists", 1):
            cursor.next()
            kind = "~exists"
        if kind not in ("exists", "~exists", "forall", "locations", "filter"):
            wanted = "`exists`, `~exists`, `forall`, `locations` or `filter`"
            found_meant = condition_meant(text.characters[token.start : token.start + 80].split("\n")[0])
            if found_meant is not None:
                end = token.start + found_meant[1]
                raise text.error(found_meant[0], token.start, end, hint=found_meant[2])
            raise cursor.unexpected(wanted, hint=connective_hint(cursor))
        cursor.next()
        section = "condition" if kind not in ("locations", "filter") else f"`{kind}`"
        if section in found:
            line = text.place(found[section])[0]
            message = f"a second {section}; the first is on line {line}"
            hint = "join them with /\\ or \\/" if section == "condition" else None
            raise cursor.error(message, token, cursor.previous(), kind="condition", hint=hint)
        found[section] = token.start
        if kind == "locations":
            locations = _locations(cursor)
        elif kind == "filter":
            restriction = proposition(cursor)
        else:
            begin = cursor.peek().start
            item = proposition(cursor)
            quantifier: Literal["exists", "~exists", "forall"] = (
                "exists" if kind == "exists" else "forall" if kind == "forall" else "~exists"
            )
            condition = RawCondition(quantifier, item, _trim(masked[begin : cursor.previous().end]))
    return Final(condition, locations, restriction)


def proposition(cursor: Cursor) -> RawProposition:
    r"""Take one proposition. Raises ``PtxmmError`` (kind ``syntax``), for nesting deeper than ``MAX_DEPTH`` too.

    disjunction: conjunction ("\\/" conjunction)*
    conjunction: _negation ("/\\" _negation)*
    _negation: negation | "(" disjunction ")" | TRUE | FALSE | comparison
    negation: (NEVER | NOT) _negation
    """
    stack = [_Level(cursor.peek().start)]
    while True:
        level = stack[-1]
        if cursor.at("~") or (cursor.at("not") and not cursor.at(":", 1)):
            level.negations += 1
            _check_depth(cursor, stack)
            cursor.next()
            continue
        if cursor.at("("):
            stack.append(_Level(cursor.next().start))
            _check_depth(cursor, stack)
            continue
        level.add(_atom(cursor))
        while True:
            level = stack[-1]
            if cursor.take("/\\"):
                break
            if cursor.take("\\/"):
                level.end_conjunction()
                break
            if len(stack) == 1:
                return level.close()
            if not cursor.at(")"):
                raise _missing_parenthesis(cursor, level)
            cursor.next()
            stack.pop()
            stack[-1].add(level.close())


def _check_depth(cursor: Cursor, stack: list[_Level]) -> None:
    if len(stack) + sum(level.negations for level in stack) > MAX_DEPTH + 1:
        token = cursor.peek()
        raise cursor.error(f"the condition is nested more than {MAX_DEPTH} levels deep", token)


def _missing_parenthesis(cursor: Cursor, level: _Level) -> PtxmmError:
    if cursor.peek().kind == "end":
        return cursor.text.error("this `(` is never closed", level.start, hint="close it with `)`")
    return cursor.unexpected("`)`, `/\\` or `\\/`", hint=connective_hint(cursor))


def connective_hint(cursor: Cursor) -> str | None:
    """The mend where the connective of another language stands."""
    if cursor.at("&") or cursor.at("and") or cursor.at("AND"):
        return "`and` is written /\\"
    return "`or` is written \\/" if cursor.at("or") or cursor.at("OR") or cursor.at("|") else None


def _atom(cursor: Cursor) -> RawProposition:
    """comparison: _side (EQUAL | LESS | GREATER | COMPARISON) _side"""
    token = cursor.peek()
    if token.text in ("true", "false") and not cursor.at(":", 1):
        cursor.next()
        return Conjunction(()) if token.text == "true" else Disjunction(())
    left = _term(cursor)
    operator = cursor.peek()
    if operator.text not in _COMPARISONS or operator.kind != "sign":
        raise cursor.unexpected("a comparison (== != < <= > >=)")
    cursor.next()
    return Comparison(_COMPARISONS[operator.text], left, _term(cursor))


def _term(cursor: Cursor) -> RawTerm:
    """_side: _term | constant | pointer
    pointer: AMPERSAND _term ((PLUS | MINUS) number)?
    """
    token = cursor.peek()
    if cursor.at("&"):
        return cursor.address()
    if cursor.at("-") or (token.kind == "number" and not cursor.at(":", 1)):
        return cursor.constant()
    if token.kind == "name" or token.kind == "number" or cursor.at("["):
        return cursor.term()
    hint = "`not equal` is written !=" if token.text == ">" and cursor.previous().text == "<" else None
    raise cursor.unexpected("a register, a location or an integer", hint=hint)


def _locations(cursor: Cursor) -> tuple[NameTerm, ...]:
    """What ``locations`` lists.

    locations: LOCATIONS "[" (_term (";" _term)* ";"?)? "]"
    """
    cursor.need("[", hint="write `locations [x; P0:r1;]`")
    found: list[NameTerm] = []
    while not cursor.at("]"):
        found.append(cursor.term())
        if not cursor.at("]"):
            cursor.need(";", "`;` or `]`")
    cursor.next()
    return tuple(found)


def _trim(text: str) -> str:
    """``text`` on one line, without parentheses around the whole of it."""
    text = " ".join(text.split())
    while text.startswith("(") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return index == len(text) - 1
    return False
