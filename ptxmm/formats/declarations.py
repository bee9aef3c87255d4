"""The initial state of a litmus file: variables, aliases and registers between ``{`` and ``}`` (PTX ISA 5.4)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.formats.initializers import MAX_ELEMENTS, take_initial, take_type, take_value
from ptxmm.formats.text import Text
from ptxmm.formats.tokens import Cursor, Token
from ptxmm.program.shared.tensors import TENSORMAP_BYTES
from ptxmm.program.source import (
    Alias,
    Constant,
    Declaration,
    Initial,
    MultimemAddress,
    Path,
    RegisterEntry,
    TensorMapValue,
    Variable,
)
from ptxmm.ptx.ops import Type

_PROXIES = ("generic", "surface", "texture", "constant")
_SPACES = {
    ".global": "global", ".shared": "shared", ".shared::cta": "shared", ".const": "const", ".local": "local",
    ".param": "param", ".param::entry": "param", ".tmem": "tmem",
}  # fmt: skip
_OTHER_SPACES = (".tex", ".sreg", ".shared::cluster", ".param::func")
_C_TYPES = {
    "int": ".s32", "int32_t": ".s32", "uint32_t": ".u32", "unsigned": ".u32",
    "long": ".s64", "int64_t": ".s64", "uint64_t": ".u64", "char": ".s8", "short": ".s16",
}  # fmt: skip


_Shape = tuple[Type | None, int | None]
"""The type of the elements, and how many of them are a vector."""


class InitialState(Struct, frozen=True):
    """The declarations in order, and the registers that have a type or a value."""

    declarations: tuple[Declaration, ...]
    registers: tuple[RegisterEntry, ...]


def parse_initial(text: Text, masked: str, start: int, end: int) -> InitialState:
    """Read the items of ``masked[start:end]``, which ``;`` separates.

    PTX: ``.global .u32 x = 0;``, ``.shared .u32 a[4] @ cta 1 = {1, 2};``, ``.reg .b32 P0:r1 = 5;``. Herd:
    ``x = 0; P0:r1 = 5; P0:rd1 = x; y @ generic aliases x; m @ multimem x, z;``. Raises ``PtxmmError``.

    initial: ";"* (_declaration ";"+)* _declaration?
    _declaration: registers | variables | register_value | variable_value | alias | multimem
    """
    cursor = Cursor(text, masked, start, end)
    declarations: list[Declaration] = []
    registers: list[RegisterEntry] = []
    while cursor.peek().kind != "end":
        if cursor.take(";"):
            continue
        token = cursor.peek()
        if token.kind == "directive":
            if token.text == ".reg":
                registers += parse_registers(cursor, None)
                if len(registers) > MAX_ELEMENTS:
                    raise cursor.error(f"more than {MAX_ELEMENTS} registers are declared", token)
            else:
                declarations += _variables(cursor)
        elif token.kind in ("name", "number") and cursor.at(":", 1):
            registers.append(_register(cursor))
        elif token.kind == "name":
            declarations.append(_untyped(cursor))
        else:
            raise cursor.unexpected("a declaration")
        if cursor.peek().kind != "end":
            cursor.need(";", hint="declarations end in `;`")
    return InitialState(tuple(declarations), tuple(registers))


def parse_registers(cursor: Cursor, thread: str | None) -> list[RegisterEntry]:
    """Take ``.reg .b32 r0, %p<4>`` up to its ``;``: of ``thread``, or with ``P0:`` before each name if that is None.

    registers: REG (TYPE | PREDICATE) register ("," register)*
    register: _thread NAME range? (EQUAL _value)?
    own_registers: REG (TYPE | PREDICATE) own_register ("," own_register)*
    own_register: NAME range? (EQUAL _value)?
    """
    cursor.need(".reg")
    type_, _, _ = take_type(cursor, "the type of the registers", True)
    entries: list[RegisterEntry] = []
    while True:
        first = cursor.peek()
        if thread is None:
            target = cursor.term()
            if target.thread is None or target.index is not None or first.text == "[":
                message = "a register belongs to a thread"
                raise cursor.error(message, first, hint=f"write P0:{target.name}")
            owner, names = target.thread, [target.name]
        else:
            name = cursor.need_kind("name", "a register").text.removeprefix("%")
            owner, names = thread, [name]
        if cursor.at("<"):
            names = _parameterized(cursor, names[0])
        span = cursor.span(first, cursor.previous())
        initial = take_value(cursor) if cursor.take("=") else None
        entries += [RegisterEntry(owner, name, span, type_, initial) for name in names]
        if not cursor.take(","):
            return entries


def _parameterized(cursor: Cursor, prefix: str) -> list[str]:
    """``r<4>`` declares r0 to r3 (PTX ISA 5.4.6).

    range: LESS number GREATER
    """
    cursor.need("<")
    token = cursor.peek()
    count = cursor.number("a number of registers").value
    if not 0 < count <= MAX_ELEMENTS:
        message = f"the number of registers is 1 to {MAX_ELEMENTS}"
        raise cursor.error(message, token, cursor.previous())
    cursor.need(">")
    return [f"{prefix}{i}" for i in range(count)]


def _register(cursor: Cursor) -> RegisterEntry:
    """``P0:r1 = 5`` or ``P0:rd1 = x``.

    register_value: _thread NAME EQUAL _value
    """
    target = cursor.term()
    if target.index is not None:
        raise cursor.error("a register has no elements", cursor.previous(), kind="name")
    cursor.need("=")
    return RegisterEntry(target.thread or "", target.name, target.span, None, take_value(cursor))


def _untyped(cursor: Cursor) -> Declaration:
    """``x = 0``, ``a[2] = {1, 2}``, ``y @ generic aliases x`` or ``m @ multimem x, y``.

    variable_value: NAME dimension? EQUAL _contents
    """
    name = cursor.next()
    if name.text in _C_TYPES and cursor.peek().kind in ("name", "sign") and not cursor.at("="):
        other = cursor.peek().text if cursor.peek().kind == "name" else "x"
        hint = f"write `.global {_C_TYPES[name.text]} {other} = 0;`"
        raise cursor.error(f"`{name.text}` is not a type of PTX", name, hint=hint)
    if cursor.take("@"):
        return _multimem(cursor, name) if cursor.take("multimem") else _alias(cursor, name)
    count = _dimension(cursor)
    if not cursor.take("="):
        raise cursor.unexpected("`=`, `@` or `[`", hint="a declaration is `.global .u32 x = 0;` or `x = 0;`")
    return _declared(cursor, name, "global", (None, None), count, None)


def _alias(cursor: Cursor, name: Token) -> Alias:
    """alias: NAME "@" PROXY ALIASES NAME"""
    proxy = cursor.peek()
    if proxy.text not in _PROXIES:
        raise cursor.unexpected("a proxy (generic, surface, texture, constant) or `multimem`")
    cursor.next()
    cursor.need("aliases", hint="an alias is written `y @ generic aliases x`")
    target = cursor.need_kind("name", "a variable")
    return Alias(name.text, cursor.span(name), proxy.text, target.text, cursor.span(target))


def _multimem(cursor: Cursor, name: Token) -> MultimemAddress:
    """multimem: NAME "@" MULTIMEM NAME ("," NAME)+"""
    targets = [cursor.need_kind("name", "a variable")]
    while cursor.take(","):
        targets.append(cursor.need_kind("name", "a variable"))
    if len(targets) < 2:
        hint = f"write `{name.text} @ multimem x, y;`"
        raise cursor.error("a multimem address stands for two or more locations", name, hint=hint)
    return MultimemAddress(name.text, cursor.span(name), tuple((t.text, cursor.span(t)) for t in targets))


def _variables(cursor: Cursor) -> list[Variable]:
    """``.global .align 8 .u32 x = 0, a[2]``.

    variables: SPACE _shape variable ("," variable)*
    variable: NAME dimension? owner? (EQUAL _contents)?
    owner: "@" OWNER MINUS? NUMBER (NEXT_LEVEL NUMBER)*
    """
    first = cursor.peek()
    space = _space(cursor)
    type_, vector, alignment = take_type(cursor, f"the type of the {first.text} variable", False)
    found: list[Variable] = []
    while True:
        name = cursor.need_kind("name", "the name of a variable")
        if name.text.startswith("%"):
            raise cursor.error("`%` starts the name of a register, not of a variable", name)
        count = _dimension(cursor)
        owner: Path | None = None
        if cursor.take("@"):
            owner = cursor.path()
            _check_owner(cursor, first, space, owner)
        if cursor.take("="):
            made = _declared(cursor, name, space, (type_, vector), count, owner)
            found.append(replace(made, alignment=alignment))
        elif count == 0:
            raise cursor.error(f"the array {name.text} has neither a size nor initial values", name)
        else:
            total = _total(count, vector)
            found.append(Variable(name.text, cursor.span(name), space, type_, total, None, owner, alignment))
        if not cursor.take(","):
            return found


def _check_owner(cursor: Cursor, first: Token, space: str, owner: Path) -> None:
    if space not in ("shared", "tmem"):
        raise cursor.error(f"a .{space} variable does not belong to a CTA", first, hint="only .shared variables do")
    if any(level == "warp" for level, _ in owner.levels):
        raise cursor.error("a variable belongs to a CTA, not to a warp", cursor.previous())


def _space(cursor: Cursor) -> str:
    token = cursor.next()
    if token.text in _SPACES:
        return _SPACES[token.text]
    if token.text in _OTHER_SPACES:
        raise cursor.error(f"{token.text} variables are not supported", token, kind="unsupported")
    hint = "a declaration is `.global .u32 x = 0;`; the state spaces are .global .shared .const .local .param"
    raise cursor.error(f"`{token.text}` is not a state space", token, hint=hint)


def _dimension(cursor: Cursor) -> int | None:
    """``[4]``; 0 for ``[]``, whose size the initial values give; None where there is none.

    dimension: "[" number? "]"
    """
    if not cursor.at("["):
        return None
    cursor.next()
    if cursor.take("]"):
        return 0
    token = cursor.peek()
    count = cursor.number("a number of elements").value
    if not 0 < count <= MAX_ELEMENTS:
        raise cursor.error(f"an array has 1 to {MAX_ELEMENTS} elements, not {count}", token)
    cursor.need("]")
    if cursor.at("["):
        raise cursor.error("arrays have one dimension here", cursor.peek(), kind="unsupported")
    return count


def _declared(
    cursor: Cursor, name: Token, space: str, shape: _Shape, count: int | None, owner: Path | None
) -> Variable:
    """A variable whose value follows.

    _contents: _initial | elements
    """
    opening = cursor.peek()
    type_, vector = shape
    total = _total(count, vector)
    values: list[Initial] = []
    if cursor.take("{"):
        if total is None:
            message = f"{name.text} is not an array, so it has one initial value"
            raise cursor.error(message, opening, hint=f"declare {name.text}[N], or write one value without braces")
        values = _elements(cursor, vector if count is not None else None)
        total = total or len(values) + -len(values) % (vector or 1)
        if total == 0 or len(values) > total:
            message = f"{len(values)} initial values for {total or 'no'} elements"
            raise cursor.error(message, opening, cursor.previous())
    else:
        values.append(take_initial(cursor))
        if total is not None and not isinstance(values[0], TensorMapValue):
            what, size = ("vector", "") if count is None else ("array", f"[{count or ''}]")
            message = f"the initial values of the {what} {name.text} are written in braces"
            raise cursor.error(message, opening, hint=f"write `{name.text}{size} = {{...}}`")
        if total == 0 and type_ is not None:
            total = TENSORMAP_BYTES // type_.bytes
    return Variable(name.text, cursor.span(name), space, type_, total, tuple(values), owner)


def _total(count: int | None, vector: int | None) -> int | None:
    """The number of elements of an array, a vector or an array of vectors; 0 for ``[]``, None for a scalar."""
    if count is None and vector is None:
        return None
    return (1 if count is None else count) * (vector or 1)


def _elements(cursor: Cursor, vector: int | None) -> list[Initial]:
    """The values up to the ``}``; those of an array of vectors may stand in braces, vector by vector.

    elements: "{" (_element ("," _element)* ","?)? "}"
    _element: _initial | vector
    vector: "{" _initial ("," _initial)* ","? "}"
    """
    values: list[Initial] = []
    while not cursor.at("}"):
        opening = cursor.peek()
        if vector is not None and cursor.take("{"):
            inner = _elements(cursor, None)
            if not 0 < len(inner) <= vector or len(values) % vector:
                message = f"{len(inner)} initial values for a vector of {vector}"
                raise cursor.error(message, opening, cursor.previous())
            values += [*inner, *[Constant(0, cursor.span(opening))] * (vector - len(inner))]
        else:
            values.append(take_initial(cursor))
        if not cursor.take(","):
            break
    cursor.need("}", "`,` or `}`")
    return values
