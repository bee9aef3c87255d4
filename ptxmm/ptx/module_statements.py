"""One instruction of a PTX module from its tokens (PTX ISA 4.3.2, 6, 9.7.13.5): names made unique, constant
expressions folded, elements of arrays as addresses; then the one reader of statements reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptxmm.errors import PtxmmError
from ptxmm.ptx import syntax
from ptxmm.ptx.module_constants import folded, integer_constant, starts_constant
from ptxmm.ptx.module_declarations import COMPONENTS
from ptxmm.ptx.module_names import Entity, Names
from ptxmm.ptx.module_syntax import Call
from ptxmm.ptx.module_tokens import Cursor, made
from ptxmm.ptx.origin import Origin, clip
from ptxmm.ptx.parser import operand_of, statement_of
from ptxmm.ptx.reader import read_instruction, read_operand
from ptxmm.tokens import Token

MAX_TOKENS = 5_000
# Tokens that only constant expressions, calls and elements of arrays have.
_BEYOND = frozenset({"(", ")", "*", "/", "%", "~", "^", "?", "<", ">", "<<", ">>", "&&", "||", "<=", ">=", "==", "!="})
_AFTER_NUMBER = frozenset({"SIGN", "|", "&"})
_COLORS: Mapping[str, str] = {".r": ".x", ".g": ".y", ".b": ".z", ".a": ".w"}
# Instructions that take the address of a variable as a value.
_TAKES_ADDRESS = frozenset({"mov", "cvta", "mapa", "getctarank"})
_DIRECTIVES = frozenset({".reg", ".loc", ".pragma", ".section", ".file", ".entry", ".func", ".visible"})


def instruction(cursor: Cursor, end: int, names: Names) -> syntax.Instruction | Call:
    """The instruction from the next token to the one before ``end``. Raises ``PtxmmError`` with its place.

    instruction: guard? IDENT QUALIFIER* (_operand ("," _operand)*)? ";"
    """
    start = cursor.index
    if end - start > MAX_TOKENS:
        raise cursor.error("the instruction is too long", cursor.tokens[start], kind="unsupported")
    opcode = _opcode_index(cursor, start, end)
    if opcode < end and cursor.tokens[opcode] == "call":
        return _call(cursor, opcode, end, names)
    tokens = _guard(cursor, start, opcode, names)
    first = opcode + 1
    while first < end and cursor.types[first] == "QUALIFIER":
        first += 1
    tokens += cursor.tokens[opcode:first]
    cursor.index = first
    takes_address = opcode < end and cursor.tokens[opcode] in _TAKES_ADDRESS
    tokens += _operands(cursor, end, names, takes_address=takes_address)
    node = read_instruction(tokens)
    if node is None:
        raise _syntax_error(cursor, start, end, tokens)
    found = statement_of(cursor.origin, node)
    assert isinstance(found, syntax.Instruction)
    return found


def _opcode_index(cursor: Cursor, start: int, end: int) -> int:
    """The index of the opcode: what follows the guard, if there is one."""
    if cursor.types[start] != "@":
        return start
    return min(end, start + (3 if cursor.types[start + 1] == "!" else 2))


def _guard(cursor: Cursor, start: int, opcode: int, names: Names) -> list[Token]:
    """guard: "@" NOT? IDENT"""
    return [_resolved(t, names)[0] if t.type == "IDENT" else t for t in cursor.tokens[start:opcode]]


def _resolved(token: Token, names: Names) -> tuple[Token, Entity | None]:
    """The token with the unique name of what it names, and that entity."""
    entity = names.find(token)
    if entity is None:
        names.missing(token)
        return token, None
    return (token if entity.text == token else made(entity.text, "IDENT", token, token)), entity


def _operands(cursor: Cursor, end: int, names: Names, *, takes_address: bool) -> list[Token]:
    """The tokens up to ``end`` as the grammar of statements has them.

    _operand: _value | memory | address_of | pair | negated | vector
    _value: expression | _named
    memory: "[" _value ("," (_value | vector))* "]" QUALIFIER?
    address_of: BIT_AND _named
    pair: IDENT BIT_OR IDENT
    negated: NOT IDENT
    vector: "{" _value ("," _value)* "}" (BIT_OR _named)*
    """
    out: list[Token] = []
    types, tokens = cursor.types, cursor.tokens
    begins = True  # whether an operand, or an item of one, begins here
    while cursor.index < end:
        index = cursor.index
        kind = types[index]
        if kind == "IDENT" and not (begins and tokens[index] == "WARP_SZ" and _operator_at(types, index + 1)):
            _name(cursor, end, names, out, takes_address)
            begins = False
        elif begins and starts_constant(cursor, index) and not (kind == "!" and types[index + 1] == "IDENT"):
            if kind == "SIGN" and types[index + 1] == "IDENT" and tokens[index + 1] != "WARP_SZ":
                raise cursor.error("a sign before a register is not supported", tokens[index], kind="unsupported")
            if types[index + 1] in (",", "]", ";") and kind == "NUMBER":
                out.append(tokens[index])
                cursor.index += 1
            else:
                out += folded(cursor)
            begins = False
        elif kind == "|" and out and out[-1].type == "}" and types[index + 1] == "IDENT":
            # `{a, b}|p` of texture instructions: all destinations in one vector.
            close = out.pop()
            out.append(made(",", ",", tokens[index], tokens[index]))
            cursor.index += 1
            _name(cursor, end, names, out, takes_address)
            out.append(close)
        else:
            out.append(tokens[index])
            cursor.index += 1
            begins = kind in (",", "[", "{")
    cursor.index = end
    return out


def _operator_at(types: list[str], index: int) -> bool:
    return types[index] in _BEYOND or types[index] in _AFTER_NUMBER


def _name(cursor: Cursor, end: int, names: Names, out: list[Token], takes_address: bool) -> None:
    """A name with what belongs to it: ``v.x``, ``x+4``, ``x[1]``.

    _named: name | sum_of | element
    name: IDENT QUALIFIER?
    sum_of: IDENT QUALIFIER? offset
    offset: SIGN expression
    """
    token, entity = _resolved(cursor.tokens[cursor.index], names)
    cursor.index += 1
    kind = cursor.type if cursor.index < end else ""
    if entity is not None and entity.kind.lanes:
        if kind == "QUALIFIER":
            part = cursor.tokens[cursor.index]
            out += [token, made(_COLORS.get(part, str(part)), "QUALIFIER", part, part)]
            cursor.index += 1
            return
        out += _vector(token, entity.kind.lanes)
        return
    if kind == "QUALIFIER":
        out += [token, cursor.tokens[cursor.index]]
        cursor.index += 1
        kind = cursor.type if cursor.index < end else ""
    elif kind == "[":
        out += _array_element(cursor, token, entity, takes_address)
        return
    else:
        out.append(token)
    if kind == "SIGN":
        taken = folded(cursor)
        if taken[-1].type == "FLOAT":
            message = "expected an integer constant, found a floating-point constant"
            raise cursor.error(message, taken[-1])
        if taken[0].type != "SIGN":
            taken.insert(0, made("+", "SIGN", taken[0], taken[0]))
        out += taken


def _vector(token: Token, lanes: int) -> list[Token]:
    """A whole vector register as the vector of its components (6.4.3)."""
    out = [made("{", "{", token, token)]
    for component in COMPONENTS[:lanes]:
        out += [token, made(f".{component}", "QUALIFIER", token, token), made(",", ",", token, token)]
    return [*out[:-1], made("}", "}", token, token)]


def _array_element(cursor: Cursor, token: Token, entity: Entity | None, takes_address: bool) -> list[Token]:
    """``x[2]``, the element of an array, as its address (6.4.2).

    element: IDENT "[" expression "]" (SIGN SIGN? NUMBER)*
    """
    bracket = cursor.take("[", "here")
    if entity is None or entity.kind.word != "variable":
        message = f"`{clip(str(token))}` is no variable: only an array has elements"
        raise cursor.error(message, bracket, "an address in a register is [r+4]")
    if cursor.type == "IDENT" and cursor.text() != "WARP_SZ":
        message = "an element whose index is in a register is not supported"
        hint = "compute the address and write [r]"
        raise cursor.error(message, cursor.tokens[cursor.index], hint, "unsupported")
    index = integer_constant(cursor)
    close = cursor.take("]", "after the index")
    offset = index * entity.kind.stride
    sign = made("-" if offset < 0 else "+", "SIGN", bracket, bracket)
    inner = [token, sign, made(str(abs(offset)), "NUMBER", bracket, close)]
    return inner if takes_address else [made("[", "[", token, token), *inner, close]


# -- calls ---------------------------------------------------------------------------------------------------------


def _call(cursor: Cursor, opcode: int, end: int, names: Names) -> Call:
    """``call{.uni} (returns), function, (arguments), targets`` (9.7.13.5).

    call: guard? CALL QUALIFIER* (arguments ",")? function_called ("," (arguments ("," IDENT)? | IDENT))? ";"
    function_called: IDENT
    """
    start = cursor.index
    tokens = _guard(cursor, start, opcode, names)
    guard: syntax.Guard | None = None
    if tokens:
        if tokens[-1].type != "IDENT":
            raise cursor.error("expected a predicate in the guard", tokens[-1])
        name = _syntax_name(cursor, tokens[-1])
        guard = syntax.Guard(name, len(tokens) == 3, cursor.span(tokens[0], tokens[-1]))
    cursor.index = opcode + 1
    while (word := cursor.accept("QUALIFIER")) is not None:
        if word != ".uni":
            raise cursor.error(f"`call` takes no `{clip(word)}`", word)
    returns: list[syntax.Name] = []
    if cursor.type == "(":
        for operand in _arguments(cursor, end, names):
            for item in operand.items if isinstance(operand, syntax.Vector) else (operand,):
                if not isinstance(item, syntax.Name):
                    raise cursor.error_in("a return value of a call goes to a name", operand.span)
                returns.append(item)
        cursor.take(",", "after the return values")

    def named(where: str) -> syntax.Name:
        return _syntax_name(cursor, _resolved(cursor.take("IDENT", where), names)[0])

    function = named("after `call`")
    arguments: tuple[syntax.Operand, ...] = ()
    targets: syntax.Name | None = None
    if cursor.index < end:
        cursor.take(",", "after the function")
        if cursor.type != "(":
            targets = named("after the function")
        else:
            arguments = tuple(_arguments(cursor, end, names))
            if cursor.index < end:
                cursor.take(",", "after the arguments")
                targets = named("after the arguments")
    if cursor.index < end:
        raise cursor.expected("`;`", "after the call")
    first, last = cursor.tokens[start], cursor.tokens[end - 1]
    text = cursor.origin.flat(first, last)
    return Call(function, tuple(returns), arguments, targets, guard, cursor.span(first, last), text)


def _arguments(cursor: Cursor, end: int, names: Names) -> list[syntax.Operand]:
    """The operands in parentheses; the next token is the ``(``.

    arguments: "(" (_operand ("," _operand)*)? ")"
    """
    opening = cursor.take("(", "here")
    if cursor.accept(")") is not None:
        return []
    found: list[syntax.Operand] = []
    while True:
        start = cursor.index
        stop = _end_of_argument(cursor, start, end)
        if stop == end:
            raise cursor.error("`(` has no `)`", opening, "close it with `)`")
        node = read_operand(_operands(cursor, stop, names, takes_address=True))
        if node is None:
            raise cursor.error("expected an operand of the call", cursor.tokens[start])
        found.append(operand_of(cursor.origin, node))
        if cursor.accept(")") is not None:
            return found
        cursor.take(",", "between operands")


def _end_of_argument(cursor: Cursor, index: int, end: int) -> int:
    """The index of the ``,`` or ``)`` after the operand that begins there; ``end`` if there is none."""
    depth = 0
    for place, kind in enumerate(cursor.types[index:end], index):
        if depth == 0 and kind in (",", ")"):
            return place
        depth += (kind in ("(", "{", "[")) - (kind in (")", "}", "]"))
    return end


def _syntax_name(cursor: Cursor, token: Token) -> syntax.Name:
    return syntax.Name(token.lstrip("%"), cursor.span(token), token.startswith("%"))


# -- errors --------------------------------------------------------------------------------------------------------


def _syntax_error(cursor: Cursor, start: int, end: int, tokens: list[Token]) -> PtxmmError:
    """What is wrong with an instruction: the grammar of statements says it."""
    from ptxmm.ptx.syntax_errors import parsed  # with Lark, which takes long to load

    for index in range(start + 1, end):
        if cursor.tokens[index] in _DIRECTIVES:
            cursor.index = index
            return cursor.expected("`;`", "after the instruction")
    first = cursor.tokens[start]
    # Constant expressions are blanked out but for a constant of their first character.
    text = cursor.origin.text[first.start_pos : cursor.tokens[end - 1].end_pos]
    for token in tokens:
        if token.type in ("NUMBER", "FLOAT") and len(token) != token.end_pos - token.start_pos:
            begin, stop = token.start_pos - first.start_pos, token.end_pos - first.start_pos
            text = text[:begin] + "1" + re.sub(r"[^\n]", " ", text[begin + 1 : stop]) + text[stop:]
    try:
        parsed(Origin(text, first.line, first.column), False)
    except PtxmmError as error:
        return error
    last = tokens[-1] if tokens else first
    return cursor.error("this instruction cannot be read", last if len(tokens) < 2 else first)
