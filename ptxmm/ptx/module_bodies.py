"""The bodies of functions in a PTX module (PTX ISA 4.3, 5.1, 11.3): declarations, scopes, labels and statements."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.errors import MOST, PtxmmError
from ptxmm.ptx import syntax
from ptxmm.ptx.module_declarations import LINKAGE, MAX_NAMES, SPACES, Declared, declaration, linkage, ranged
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_places import Places
from ptxmm.ptx.module_statements import instruction
from ptxmm.ptx.module_syntax import BranchTargets, Line
from ptxmm.ptx.module_tokens import END, Cursor
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import close_match
from ptxmm.tokens import Token

_TARGETS = frozenset({".branchtargets", ".calltargets", ".callprototype"})
_KNOWN = frozenset({*SPACES, *LINKAGE, *_TARGETS, ".loc", ".pragma", ".section"})
_LABEL = Kind("label")
_DEPTHS = {"{": 1, "}": -1}


class _Piece(Struct, frozen=True):
    """A part of a body: its tokens from ``start`` to before ``end``, its ``;`` or ``:`` too. ``kind`` is
    ``{ } ; label loc directive instruction``."""

    kind: str
    start: int
    end: int


def body(cursor: Cursor, names: Names, places: Places) -> tuple[list[Line], Declared]:
    """The lines of a function and what it declares; the next token is its ``{``, and the scope of the function has
    begun. Raises ``PtxmmError`` with its place.

    body: "{" _line* "}"
    scope: "{" _line* "}"
    _line: SECTION | scope | label | loc | pragma | declaration | instruction | call
    """
    pieces, labels, after = _pieces(cursor)
    lines: list[Line] = []
    found = Declared()
    places.current = None
    scopes = iter(labels)
    depth = 0
    for piece in pieces:
        cursor.index = piece.start
        try:
            match piece.kind:
                case "{":
                    if depth > 0:
                        names.enter()
                    depth += 1
                    for token in next(scopes):
                        if names.declare(str(token), _LABEL) is None:
                            message = f"the label `{clip(str(token))}` is declared twice in this scope"
                            raise cursor.error(message, token, kind="name")
                case "}":
                    depth -= 1
                    if depth > 0:
                        names.leave()
                case "label":
                    lines.append(Line(_label(cursor, names, piece.end), places.current))
                case ";":
                    raise cursor.error("stray `;`: there is no instruction before it", cursor.tokens[piece.start])
                case "loc":
                    cursor.index += 1
                    places.loc(cursor)
                case "instruction":
                    lines.append(Line(instruction(cursor, piece.end - 1, names), places.current))
                case "directive":
                    declared = _directive(cursor, names)
                    found.variables += declared.variables
                    found.registers += declared.registers
                    if len(found.registers) + len(found.variables) > MAX_NAMES:
                        message = f"at most {MAX_NAMES} names can be declared"
                        raise cursor.error(message, cursor.tokens[piece.start], kind="unsupported")
        except PtxmmError as error:  # the others are read all the same
            if piece.kind == "{" or len(cursor.errors) >= MOST:
                raise
            cursor.errors.append(error)
    if not cursor.errors:
        names.check(cursor)
    cursor.index = after
    return lines, found


# -- the pieces ----------------------------------------------------------------------------------------------------


def _pieces(cursor: Cursor) -> tuple[list[_Piece], list[list[Token]], int]:
    """The parts of the body at the cursor, the labels of each of its scopes in the order of their braces (a branch may
    go forward), and the index after the last brace."""
    types, tokens = cursor.types, cursor.tokens
    pieces: list[_Piece] = []
    labels: list[list[Token]] = []
    open_: list[tuple[int, list[Token]]] = []
    index = cursor.index
    while True:
        kind, start = types[index], index
        index += 1
        if kind == "{":
            labels.append([])
            open_.append((start, labels[-1]))
        elif kind == "}":
            open_.pop()
        elif kind == "SECTION":
            continue
        elif kind == "IDENT" and types[index] == ":":
            open_[-1][1].append(tokens[start])
            kind, index = "label", index + 1
            if types[index] == "QUALIFIER" and tokens[index] in _TARGETS:
                index = _semicolon(cursor, index) + 1
        elif kind == "QUALIFIER" and tokens[start] == ".loc":
            kind, index = "loc", _after_loc(types, index)
        elif kind == END:
            raise cursor.error("this `{` has no `}`", tokens[open_[-1][0]], "close it with `}`")
        elif kind != ";":
            kind = "directive" if kind == "QUALIFIER" else "instruction"
            index = _semicolon(cursor, start) + 1
        pieces.append(_Piece(kind, start, index))
        if not open_:
            return pieces, labels, index


def _after_loc(types: list[str], index: int) -> int:
    """The index after a ``.loc``, which has no ``;``: after its numbers and what commas join to them."""
    index = _after_place(types, index)
    while types[index] == "," and types[index + 1] == "IDENT":
        index += 2
        if types[index] in ("IDENT", "QUALIFIER"):  # function_name: a label of .debug_str, and an offset
            index += 3 if types[index + 1 : index + 3] == ["SIGN", "NUMBER"] else 1
        else:  # inlined_at
            index = _after_place(types, index)
    return index


def _after_place(types: list[str], index: int) -> int:
    numbers = types[index : index + 3]
    return index + next((n for n, kind in enumerate(numbers) if kind != "NUMBER"), 3)


def _semicolon(cursor: Cursor, start: int) -> int:
    """The index of the ``;`` that ends the statement from ``start``. Raises ``PtxmmError`` if there is none."""
    types = cursor.types
    depth = 0
    index = start
    while types[index] != END and depth >= 0:
        if types[index] == ";":
            return index
        depth += _DEPTHS.get(types[index], 0)
        index += 1
    cursor.index = index = index - (depth < 0)
    what = "directive" if types[start] == "QUALIFIER" else "instruction"
    if index < len(cursor.tokens):
        brace = cursor.tokens[index]
        if cursor.tokens[index - 1].end_line == brace.line:
            raise cursor.error(f"missing `;` after the {what}, before `}}`", brace)
    raise cursor.expected("`;`", f"after the {what}")


# -- labels and directives -----------------------------------------------------------------------------------------


def _label(cursor: Cursor, names: Names, end: int) -> syntax.Label | BranchTargets:
    """label: (IDENT | CALL) ":" (targets | prototype)?
    targets: TARGETS label_range ("," label_range)* ";"
    label_range: IDENT range?
    prototype: PROTOTYPE _any* ";"
    _any: IDENT | QUALIFIER | NUMBER | FLOAT | STRING | SIGN | MARK
    """
    token, colon = cursor.next(), cursor.next()
    entity = names.find(token)
    name = entity.text if entity is not None else str(token)
    if cursor.index == end:
        return syntax.Label(name, cursor.span(token, colon))
    kind = cursor.next()[1:]
    span = cursor.span(token, cursor.tokens[end - 2])
    if kind == "callprototype":
        while cursor.type not in (";", "{", "SECTION"):
            cursor.index += 1
        cursor.take(";", "after the prototype")
        return BranchTargets(name, (), kind, span)
    found: list[str] = []
    cursor.items(lambda: _targets(cursor, names, found))
    cursor.take(";", "after the list")
    return BranchTargets(name, tuple(found), kind, span)


def _targets(cursor: Cursor, names: Names, found: list[str]) -> None:
    """One label or function of a list, or the range ``N<5>`` of them."""
    token, texts = ranged(cursor, "in the list", "labels", MAX_NAMES - len(found))
    for text in texts:
        entity = names.find(text)
        if entity is None:
            names.missing(token)
        found.append(text if entity is None else entity.text)


def _directive(cursor: Cursor, names: Names) -> Declared:
    """What a declaration declares; nothing for a directive that says nothing to a reader."""
    token = cursor.here
    if cursor.accept_word((".pragma",)) is not None:
        pragma(cursor)
        return Declared()
    word = linkage(cursor)
    if cursor.text() not in SPACES:
        raise unknown_directive(cursor, token, _KNOWN, "in a function")
    return declaration(cursor, names, word)


def pragma(cursor: Cursor) -> None:
    """The strings after ``.pragma`` (11.4.7) and the ``;``.

    pragma: PRAGMA STRING ("," STRING)* ";"
    """
    cursor.take("STRING", "after `.pragma`")
    while cursor.accept(",") is not None:
        cursor.take("STRING", "after `,`")
    cursor.take(";", "after `.pragma`")


def unknown_directive(cursor: Cursor, token: Token, known: frozenset[str], where: str) -> PtxmmError:
    """The error that ``token`` is no directive here."""
    guess = close_match(str(token), known)
    if str(token) in known:
        return cursor.expected("a state space", f"after `{token}`", "for example .global")
    hint = f"did you mean {guess}?" if guess else None
    return cursor.error(f"unknown directive `{clip(token)}` {where}", token, hint)
