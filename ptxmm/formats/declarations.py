"""The initial state of a litmus file: variables, aliases and registers between ``{`` and ``}`` (PTX ISA 5.4)."""

from __future__ import annotations

from dataclasses import dataclass

from ptxmm.errors import PtxmmError
from ptxmm.formats.text import Text
from ptxmm.formats.tokens import Cursor, Token
from ptxmm.program.source import Alias, Path, RegisterEntry, Value, Variable
from ptxmm.ptx.ops import Type

MAX_ELEMENTS = 65_536

_PROXIES = ("generic", "surface", "texture", "constant")
_SPACES = (".global", ".shared", ".const", ".local", ".shared::cta")
_OTHER_SPACES = (".param", ".tex", ".sreg", ".shared::cluster")
_TYPES = {
    f".{kind}{bits}": Type(kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)
} | {".pred": Type("pred", 1)}
_LATER_TYPES = (".f16", ".f16x2", ".bf16", ".bf16x2", ".f32", ".f64", ".b128", ".v2", ".v4", ".v8")
_C_TYPES = {
    "int": ".s32", "int32_t": ".s32", "uint32_t": ".u32", "unsigned": ".u32",
    "long": ".s64", "int64_t": ".s64", "uint64_t": ".u64", "char": ".s8", "short": ".s16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class InitialState:
    """The declarations in order, and the registers that have a type or a value."""

    declarations: tuple[Variable | Alias, ...]
    registers: tuple[RegisterEntry, ...]


def parse_initial(text: Text, masked: str, start: int, end: int) -> InitialState:
    """Read the items of ``masked[start:end]``, which ``;`` separates.

    PTX: ``.global .u32 x = 0;``, ``.shared .u32 a[4] @ cta 1 = {1, 2};``, ``.reg .b32 P0:r1 = 5;``. Herd:
    ``x = 0; P0:r1 = 5; P0:rd1 = x; y @ generic aliases x;``. Raises ``PtxmmError``.
    """
    cursor = Cursor(text, masked, start, end)
    declarations: list[Variable | Alias] = []
    registers: list[RegisterEntry] = []
    while cursor.peek().kind != "end":
        if cursor.take(";"):
            continue
        token = cursor.peek()
        if token.kind == "directive":
            if token.text == ".reg":
                registers += parse_registers(cursor, None)
                if len(registers) > MAX_ELEMENTS:
                    raise _at_token(cursor, token, f"more than {MAX_ELEMENTS} registers are declared")
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
    """Take ``.reg .b32 r0, %p<4>`` up to its ``;``: of ``thread``, or with ``P0:`` before each name if that is None."""
    cursor.need(".reg")
    type_ = _type(cursor, ("the type of the registers", True))
    entries: list[RegisterEntry] = []
    while True:
        first = cursor.peek()
        if thread is None:
            target = cursor.term()
            if target.thread is None or target.index is not None:
                message = "a register belongs to a thread"
                raise cursor.text.error(message, first.start, first.end, hint=f"write P0:{target.name}")
            owner, names = target.thread, [target.name]
        else:
            name = cursor.need_kind("name", "a register").text.removeprefix("%")
            owner, names = thread, [name]
        if cursor.at("<"):
            names = _parameterized(cursor, names[0])
        span = cursor.span(first, cursor.previous())
        initial = _value(cursor) if cursor.take("=") else None
        entries += [RegisterEntry(owner, name, span, type_, initial) for name in names]
        if not cursor.take(","):
            return entries


def _parameterized(cursor: Cursor, prefix: str) -> list[str]:
    """``r<4>`` declares r0 to r3 (PTX ISA 5.4.6)."""
    cursor.need("<")
    token = cursor.peek()
    count = cursor.number("a number of registers").value
    if not 0 < count <= MAX_ELEMENTS:
        message = f"the number of registers is 1 to {MAX_ELEMENTS}"
        raise cursor.text.error(message, token.start, cursor.previous().end)
    cursor.need(">")
    return [f"{prefix}{i}" for i in range(count)]


def _register(cursor: Cursor) -> RegisterEntry:
    """``P0:r1 = 5`` or ``P0:rd1 = x``."""
    target = cursor.term()
    if target.index is not None:
        raise cursor.text.error(
            "a register has no elements", cursor.previous().start, cursor.previous().end, kind="name"
        )
    cursor.need("=")
    return RegisterEntry(target.thread or "", target.name, target.span, None, _value(cursor))


def _value(cursor: Cursor) -> Value:
    """An integer, or the address ``x``, ``&x``, ``&x+4`` or ``generic(x)`` (PTX ISA 5.4.4)."""
    token = cursor.peek()
    if token.kind == "number" or cursor.at("-"):
        return cursor.number()
    if cursor.at("generic") and cursor.at("(", 1):
        cursor.next()
        cursor.next()
        value = cursor.address()
        cursor.need(")")
    elif token.kind == "name" or cursor.at("&"):
        if cursor.at("(", 1) and token.text == "mbarrier":
            message = "mbarrier objects are not supported yet"
            raise cursor.text.error(message, token.start, token.end, kind="unsupported")
        value = cursor.address()
    else:
        raise cursor.unexpected("an integer or an address")
    if value.target.thread is not None or value.target.index is not None:
        raise _at_token(cursor, token, "an initial value is an integer or the address of a variable")
    return value


def _untyped(cursor: Cursor) -> Variable | Alias:
    """``x = 0``, ``a[2] = {1, 2}`` or ``y @ generic aliases x``."""
    name = cursor.next()
    if name.text in _C_TYPES and cursor.peek().kind in ("name", "sign") and not cursor.at("="):
        other = cursor.peek().text if cursor.peek().kind == "name" else "x"
        hint = f"write `.global {_C_TYPES[name.text]} {other} = 0;`"
        raise _at_token(cursor, name, f"`{name.text}` is not a type of PTX", hint)
    if cursor.take("@"):
        return _alias(cursor, name)
    count = _dimension(cursor)
    if not cursor.take("="):
        raise cursor.unexpected("`=`, `@` or `[`", hint="a declaration is `.global .u32 x = 0;` or `x = 0;`")
    return _declared(cursor, name, ".global", None, count, None)


def _alias(cursor: Cursor, name: Token) -> Alias:
    proxy = cursor.peek()
    if proxy.text not in _PROXIES:
        raise cursor.unexpected("a proxy (generic, surface, texture, constant)")
    cursor.next()
    cursor.need("aliases", hint="an alias is written `y @ generic aliases x`")
    target = cursor.need_kind("name", "a variable")
    return Alias(name.text, cursor.span(name), proxy.text, target.text, cursor.span(target))


def _variables(cursor: Cursor) -> list[Variable]:
    """``.global .align 8 .u32 x = 0, a[2]``."""
    first = cursor.peek()
    space = _space(cursor)
    type_ = _type(cursor, (f"the type of the {space} variable", False))
    found: list[Variable] = []
    while True:
        name = cursor.need_kind("name", "the name of a variable")
        if name.text.startswith("%"):
            raise _at_token(cursor, name, "`%` starts the name of a register, not of a variable")
        count = _dimension(cursor)
        owner: Path | None = None
        if cursor.take("@"):
            owner = cursor.path()
            _check_owner(cursor, first, space, owner)
        if cursor.take("="):
            found.append(_declared(cursor, name, space, type_, count, owner))
        elif count == 0:
            raise _at_token(cursor, name, f"the array {name.text} has neither a size nor initial values")
        else:
            found.append(Variable(name.text, cursor.span(name), space[1:], type_, count, None, owner))
        if not cursor.take(","):
            return found


def _check_owner(cursor: Cursor, first: Token, space: str, owner: Path) -> None:
    if space != ".shared":
        raise _at_token(cursor, first, f"a {space} variable does not belong to a CTA", "only .shared variables do")
    if any(level == "warp" for level, _ in owner.levels):
        raise _at_token(cursor, cursor.previous(), "a .shared variable belongs to a CTA, not to a warp")


def _space(cursor: Cursor) -> str:
    token = cursor.next()
    space = ".shared" if token.text == ".shared::cta" else token.text
    if space in _SPACES:
        return space
    if token.text in _OTHER_SPACES:
        raise _at_token(cursor, token, f"{token.text} variables are not supported", kind="unsupported")
    hint = "a declaration is `.global .u32 x = 0;`; the state spaces are .global .shared .const .local"
    raise _at_token(cursor, token, f"`{token.text}` is not a state space", hint)


def _type(cursor: Cursor, what: tuple[str, bool]) -> Type:
    """Take a type and ``.align N`` in any order; ``what`` is the noun for errors and whether ``.pred`` is legal."""
    noun, predicate = what
    found: Type | None = None
    while cursor.peek().kind == "directive":
        token = cursor.next()
        if token.text == ".align" and not predicate:
            _alignment(cursor)
        elif token.text in _TYPES and found is None and (predicate or token.text != ".pred"):
            found = _TYPES[token.text]
        elif token.text in _LATER_TYPES:
            raise _at_token(cursor, token, f"{token.text} variables are not supported yet", kind="unsupported")
        elif token.text in _TYPES and found is not None:
            raise _at_token(cursor, token, "a second type")
        else:
            raise _at_token(cursor, token, f"`{token.text}` is not {noun}", f"the types are {_type_names(predicate)}")
    if found is None:
        raise cursor.unexpected(noun, hint=f"the types are {_type_names(predicate)}")
    return found


def _type_names(predicate: bool) -> str:
    return " ".join(name for name in _TYPES if predicate or name != ".pred")


def _alignment(cursor: Cursor) -> None:
    """Every object starts at a multiple of 2**32, so a legal alignment holds already (PTX ISA 5.4.5)."""
    token = cursor.peek()
    value = cursor.number("an alignment in bytes").value
    if value <= 0 or value & (value - 1) or value > 1 << 31:
        raise _at_token(cursor, token, f"an alignment is a power of two, not {value}")


def _dimension(cursor: Cursor) -> int | None:
    """``[4]``; 0 for ``[]``, whose size the initial values give; None where there is none."""
    if not cursor.at("["):
        return None
    cursor.next()
    if cursor.take("]"):
        return 0
    token = cursor.peek()
    count = cursor.number("a number of elements").value
    if not 0 < count <= MAX_ELEMENTS:
        raise _at_token(cursor, token, f"an array has 1 to {MAX_ELEMENTS} elements, not {count}")
    cursor.need("]")
    if cursor.at("["):
        raise _at_token(cursor, cursor.peek(), "arrays have one dimension here", kind="unsupported")
    return count


def _declared(
    cursor: Cursor, name: Token, space: str, type_: Type | None, count: int | None, owner: Path | None
) -> Variable:
    """A variable whose value follows."""
    opening = cursor.peek()
    values: list[Value] = []
    if cursor.take("{"):
        if count is None:
            message = f"{name.text} is not an array, so it has one initial value"
            raise _at_token(cursor, opening, message, f"declare {name.text}[N], or write one value without braces")
        while not cursor.at("}"):
            values.append(_value(cursor))
            if not cursor.take(","):
                break
        cursor.need("}", "`,` or `}`")
        count = count or len(values)
        if count == 0 or len(values) > count:
            message = f"{len(values)} initial values for {count or 'no'} elements"
            raise cursor.text.error(message, opening.start, cursor.previous().end)
    else:
        values.append(_value(cursor))
        if count is not None:
            message = f"the initial values of the array {name.text} are written in braces"
            raise _at_token(cursor, opening, message, f"write `{name.text}[{count or ''}] = {{...}}`")
    return Variable(name.text, cursor.span(name), space[1:], type_, count, tuple(values), owner)


def _at_token(
    cursor: Cursor, token: Token, message: str, hint: str | None = None, *, kind: str = "syntax"
) -> PtxmmError:
    return cursor.text.error(message, token.start, token.end, kind=kind, hint=hint)
