"""The bodies of functions in a PTX module (PTX ISA 4.3, 5.1, 11.3): declarations, scopes, labels and statements."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.errors import MOST, PtxmmError
from ptxmm.ptx import syntax
from ptxmm.ptx.module_constants import integer_constant
from ptxmm.ptx.module_declarations import LINKAGE, MAX_NAMES, SPACES, declare, head
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_places import Places
from ptxmm.ptx.module_statements import instruction
from ptxmm.ptx.module_syntax import BranchTargets, Line, Variable
from ptxmm.ptx.module_tokens import Cursor
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import close_match
from ptxmm.ptx.reader import Token

_TARGETS = frozenset({".branchtargets", ".calltargets", ".callprototype"})
_KNOWN = frozenset({*SPACES, *LINKAGE, *_TARGETS, ".loc", ".pragma", ".section"})
_LABEL = Kind("label")


class _Piece(Struct, frozen=True):
    """A part of a body: its tokens from ``start`` to before ``end`` (the index of its ``;`` or ``:``). ``kind`` is
    ``{ } ; label loc directive instruction``."""

    kind: str
    start: int
    end: int


class Body(Struct, frozen=True):
    """What the braces of a function enclose."""

    lines: tuple[Line, ...]
    variables: tuple[Variable, ...]
    registers: tuple[tuple[str, Type], ...]


def body(cursor: Cursor, names: Names, places: Places) -> Body:
    """The body of a function; the next token is its ``{``, and the scope of the function has begun. Raises
    ``PtxmmError`` with its place."""
    pieces, labels, after = _pieces(cursor)
    lines: list[Line] = []
    variables: list[Variable] = []
    registers: list[tuple[str, Type]] = []
    places.reset()
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
                    found = _label(cursor, names, piece.end)
                    lines.append(Line(found, places.current))
                case ";":
                    raise cursor.error("stray `;`: there is no instruction before it", cursor.tokens[piece.start])
                case "loc":
                    cursor.index += 1
                    places.loc(cursor)
                case "instruction":
                    lines.append(Line(instruction(cursor, piece.end, names), places.current))
                case "directive":
                    declared = _directive(cursor, names)
                    if declared is not None:
                        variables += declared[0]
                        registers += declared[1]
                        if len(registers) + len(variables) > MAX_NAMES:
                            message = f"at most {MAX_NAMES} names can be declared"
                            raise cursor.error(message, cursor.tokens[piece.start], kind="unsupported")
        except PtxmmError as error:  # the others are read all the same
            if piece.kind == "{" or len(cursor.errors) >= MOST:
                raise
            cursor.errors.append(error)
    if not cursor.errors:
        names.check(cursor)
    cursor.index = after
    return Body(tuple(lines), tuple(variables), tuple(registers))


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
        kind = types[index]
        if kind == "{":
            labels.append([])
            open_.append((index, labels[-1]))
            pieces.append(_Piece("{", index, index))
            index += 1
        elif kind == "}":
            open_.pop()
            pieces.append(_Piece("}", index, index))
            index += 1
            if not open_:
                return pieces, labels, index
        elif kind == "IDENT" and types[index + 1] == ":":
            open_[-1][1].append(tokens[index])
            end = index + 2
            if types[end] == "QUALIFIER" and tokens[end] in _TARGETS:
                end = _semicolon(cursor, end) + 1
            pieces.append(_Piece("label", index, end))
            index = end
        elif kind == "SECTION":
            index += 1
        elif kind == "QUALIFIER" and tokens[index] == ".loc":
            pieces.append(_Piece("loc", index, index))
            index = _after_loc(types, index + 1)
        elif kind == ";":
            pieces.append(_Piece(";", index, index))
            index += 1
        elif index >= len(tokens):
            raise _unclosed(cursor, tokens[open_[-1][0]])
        elif kind == "QUALIFIER":
            end = _semicolon(cursor, index)
            pieces.append(_Piece("directive", index, end))
            index = end + 1
        else:
            end = _semicolon(cursor, index)
            pieces.append(_Piece("instruction", index, end))
            index = end + 1


def _after_loc(types: list[str], index: int) -> int:
    """The index after a ``.loc``, which has no ``;``: after its numbers and what commas join to them."""
    while types[index] == "NUMBER":
        index += 1
    while types[index] == "," and types[index + 1] == "IDENT":
        index += 2
        if types[index] in ("IDENT", "QUALIFIER"):  # function_name: a label of .debug_str, and an offset
            index += 3 if types[index + 1 : index + 3] == ["SIGN", "NUMBER"] else 1
        while types[index] == "NUMBER":  # inlined_at
            index += 1
    return index


def _semicolon(cursor: Cursor, start: int) -> int:
    """The index of the ``;`` that ends the statement from ``start``. Raises ``PtxmmError`` if there is none."""
    types = cursor.types
    depth = 0
    index = start
    while True:
        kind = types[index]
        if kind == ";":
            return index
        if kind == "{":
            depth += 1
        elif kind == "}":
            depth -= 1
            if depth < 0:
                break
        elif index >= len(cursor.tokens):
            break
        index += 1
    cursor.index = index
    what = "directive" if types[start] == "QUALIFIER" else "instruction"
    if index < len(cursor.tokens):
        brace = cursor.tokens[index]
        if cursor.tokens[index - 1].end_line == brace.line:
            raise cursor.error(f"missing `;` after the {what}, before `}}`", brace)
    raise cursor.expected("`;`", f"after the {what}")


def _unclosed(cursor: Cursor, token: Token) -> PtxmmError:
    return cursor.error("this `{` has no `}`", token, "close it with `}`")


# -- labels and directives -----------------------------------------------------------------------------------------


def _label(cursor: Cursor, names: Names, end: int) -> syntax.Label | BranchTargets:
    token = cursor.take("IDENT", "here")
    colon = cursor.take(":", "after the label")
    entity = names.find(str(token))
    name = entity.text if entity is not None else str(token)
    if cursor.index == end:
        return syntax.Label(name, cursor.span(token, colon))
    kind = str(cursor.take("QUALIFIER", "here"))[1:]
    span = cursor.span(token, cursor.tokens[end - 2])
    if kind == "callprototype":
        return BranchTargets(name, (), kind, span)
    found: list[str] = []
    while True:
        found += _targets(cursor, names, len(found))
        if cursor.accept(",") is None:
            break
    cursor.take(";", "after the list")
    return BranchTargets(name, tuple(found), kind, span)


def _targets(cursor: Cursor, names: Names, already: int) -> list[str]:
    """One label or function of a list, or the range ``N<5>`` of them."""
    token = cursor.take("IDENT", "in the list")
    texts = [str(token)]
    if cursor.accept("<") is not None:
        size = integer_constant(cursor, 9)
        cursor.take(">", "after the number of labels")
        if not 0 <= size <= MAX_NAMES - already:
            raise cursor.error(f"at most {MAX_NAMES} labels", token, kind="unsupported")
        texts = [f"{token}{n}" for n in range(size)]
    found: list[str] = []
    for text in texts:
        entity = names.find(text)
        if entity is None:
            names.missing(token)
        found.append(text if entity is None else entity.text)
    return found


def _directive(cursor: Cursor, names: Names) -> tuple[tuple[Variable, ...], tuple[tuple[str, Type], ...]] | None:
    """A declaration, or a directive of a body that says nothing to a reader."""
    token = cursor.tokens[cursor.index]
    if token == ".pragma":
        cursor.index += 1
        pragma(cursor)
        return None
    linkage = ""
    while (word := cursor.accept_word(LINKAGE)) is not None:
        linkage = str(word)[1:]
    if cursor.text() not in SPACES:
        raise unknown_directive(cursor, token, _KNOWN, "in a function")
    declared = declare(cursor, names, head(cursor, linkage))
    return declared.variables, declared.registers


def pragma(cursor: Cursor) -> None:
    """The strings after ``.pragma`` (11.4.7) and the ``;``."""
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
    return cursor.error(f"unknown directive `{clip(str(token))}` {where}", token, hint)
