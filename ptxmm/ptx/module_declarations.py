"""Declarations of variables, registers and parameters in a PTX module (PTX ISA 5.1, 5.3, 5.4, 7.1)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod

from msgspec import Struct, field

from ptxmm.errors import PtxmmError
from ptxmm.ptx.module_constants import Constant, Integer, Real, constant, integer_constant
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_syntax import SymbolAddress, Variable
from ptxmm.ptx.module_tokens import END, Cursor
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import close_match
from ptxmm.tokens import Token

SPACES = frozenset({".global", ".shared", ".const", ".param", ".local", ".tex", ".reg"})
LINKAGE = frozenset({".extern", ".visible", ".weak", ".common"})
MAX_NAMES = 1_000_000
MAX_INITIALIZED = 1 << 24
_OPAQUE = frozenset({".texref", ".samplerref", ".surfref"})
_LANES: Mapping[str, int] = {".v2": 2, ".v4": 4, ".v8": 8}
COMPONENTS = ("x", "y", "z", "w", "e4", "e5", "e6", "e7")
_TYPES: Mapping[str, Type] = {
    **{f".{kind}{bits}": Type(kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)},
    **{f".f{bits}": Type("f", bits) for bits in (16, 32, 64)},
    **{".b128": Type("b", 128), ".f16x2": Type("b", 32), ".bf16": Type("bf", 16), ".bf16x2": Type("b", 32)},
    ".pred": Type("pred", 1),
}


class Head(Struct, frozen=True):
    """What a declaration says before the names: all names of a list have it."""

    space: str
    type: Type
    lanes: int | None
    alignment: int | None
    opaque: str | None
    linkage: str
    everywhere: bool


class Declared(Struct):
    """Variables, and registers with their types."""

    variables: list[Variable] = field(default_factory=list)
    registers: list[tuple[str, Type]] = field(default_factory=list)


def linkage(cursor: Cursor) -> str:
    """The kind of linkage before a declaration (11.6), or nothing. Raises ``PtxmmError`` for a second one."""
    found = ""
    while (word := cursor.accept_word(LINKAGE)) is not None:
        if found:
            raise cursor.error(f"`{word}` after `.{found}`: a symbol has one kind of linkage", word)
        found = word[1:]
    return found


def declaration(cursor: Cursor, names: Names, linkage: str) -> Declared:
    """A declaration from its state space to its ``;``. Raises ``PtxmmError``.

    declaration: LINKAGE? (registers | variables | opaques) ";"
    registers: REG _head register ("," register)*
    variables: (SPACE _before* TYPE _after* | _parameter_head) variable ("," variable)*
    opaques: SPACE _before* OPAQUE _after* opaque ("," opaque)*
    """
    first, found = _head(cursor, linkage), Declared()
    cursor.items(lambda: _declarator(cursor, names, first, found))
    cursor.take(";", "after the declaration")
    return found


def parameters(cursor: Cursor, names: Names) -> Declared:
    """A parameter list in parentheses; the next token is the ``(``. Raises ``PtxmmError``.

    returns: "(" (_parameter ("," _parameter)*)? ")"
    parameters: "(" (_parameter ("," _parameter)*)? ")"
    _parameter: parameter | register_parameter
    parameter: _parameter_head IDENT range? dimension*
    register_parameter: REG _head register
    """
    found = Declared()

    def parameter() -> None:
        if cursor.text().partition("::")[0] not in (".param", ".reg"):
            raise cursor.expected("`.param`", "before a parameter")
        _declarator(cursor, names, _head(cursor, ""), found, parameter=True)

    cursor.take("(", "before the parameters")
    if cursor.accept(")") is None:
        cursor.items(parameter)
        cursor.take(")", "after the parameters")
    return found


def _head(cursor: Cursor, linkage: str) -> Head:
    """The state space, attributes, alignment and type before the names. The next token must be a state space.

    _head: _before* _kind _after*
    _parameter_head: PARAM _before* _kind _after* (PTR _pointee*)?
        | PARAM _before* PTR (_pointee | VECTOR)* _kind _pointee*
    _kind: TYPE | OPAQUE
    _before: alignment | attribute | VECTOR
    _after: alignment | attribute
    _pointee: alignment | attribute | PTR | POINTEE
    """
    space = cursor.next()[1:].partition("::")[0]
    typ: Type | None = None
    opaque: str | None = None
    lanes: int | None = None
    alignment: int | None = None
    pointer = everywhere = False
    while (word := cursor.accept("QUALIFIER")) is not None:
        if word == ".align":
            bytes_ = _alignment(cursor)
            alignment = alignment if pointer else bytes_  # after .ptr: of what it points to (5.1.6.3)
        elif word == ".attribute":
            attribute(cursor)
            everywhere = True
        elif word == ".ptr" and space == "param":
            pointer = True
        elif pointer and word in (".const", ".global", ".local", ".shared"):
            continue
        elif word in _LANES and typ is None:
            lanes = _LANES[word]
        elif typ is None and word in _TYPES:
            typ = _TYPES[word]
        elif typ is None and word in _OPAQUE:
            typ, opaque = Type("b", 64), word[1:]
        else:
            raise _unexpected(cursor, word, typ)
    if typ is None:
        raise cursor.expected("a type", f"after `.{space}`", "for example .b32")
    if typ.kind == "pred" and space != "reg":
        raise cursor.error("a predicate can only be a register", cursor.tokens[cursor.index - 1], "use .reg")
    return Head(space, typ, lanes, alignment, opaque, linkage, everywhere)


def _unexpected(cursor: Cursor, token: Token, typ: Type | None) -> PtxmmError:
    word = str(token)
    if word in _LANES or (typ is not None and word in _TYPES):
        return cursor.error(f"unexpected `{word}` in a declaration that has a type", token)
    guess = close_match(word, [*_TYPES, *_OPAQUE, *_LANES, ".align", ".attribute"])
    hint = f"did you mean {guess}?" if guess else None
    return cursor.error(f"`{clip(word)}` is not part of a declaration", token, hint)


def _alignment(cursor: Cursor) -> int:
    """alignment: ALIGN expression"""
    if cursor.type != "NUMBER":
        raise cursor.expected("an integer constant", "after `.align`")
    token, value = cursor.here, integer_constant(cursor)
    if value <= 0 or value & (value - 1) or value > 1 << 20:
        raise cursor.error(f"an alignment is a power of two, not {value}", token)
    return value


def attribute(cursor: Cursor) -> None:
    """What follows ``.attribute``: ``(.managed, .unified(1, 2))`` (5.4.8): a variable of all GPUs. Raises
    ``PtxmmError``.

    attribute: ATTRIBUTE "(" _attribute ("," _attribute)* ")"
    _attribute: MANAGED | UNIFIED ("(" expression "," expression ")")?
    """

    def one() -> None:
        word = cursor.take("QUALIFIER", "in `.attribute`")
        if word not in (".managed", ".unified"):
            hint = "the attributes are .managed and .unified"
            raise cursor.error(f"unknown attribute `{clip(word)}`", word, hint)
        if word == ".unified" and cursor.accept("(") is not None:
            integer_constant(cursor)
            cursor.take(",", "between the two halves of the identifier")
            integer_constant(cursor)
            cursor.take(")", "after the identifier")

    cursor.take("(", "after `.attribute`")
    cursor.items(one)
    cursor.take(")", "after the attributes")


def ranged(cursor: Cursor, where: str, what: str, most: int) -> tuple[Token, list[str]]:
    """A name, with itself or with all names that the range ``%r<3>`` stands for (5.4.6), ``most`` at most. ``where``
    and ``what`` they are is for errors. Raises ``PtxmmError``.

    range: LESS sum GREATER
    """
    token = cursor.take("IDENT", where)
    if cursor.accept("<") is None:
        return token, [str(token)]
    start, size = cursor.here, integer_constant(cursor, 9)
    cursor.take(">", f"after the number of {what}")
    if not 0 <= size <= most:
        raise cursor.error(f"at most {MAX_NAMES} {what} can be declared", start, kind="unsupported")
    return token, [f"{token}{n}" for n in range(size)]


def _declarator(cursor: Cursor, names: Names, first: Head, found: Declared, *, parameter: bool = False) -> None:
    """One name with its dimensions and initializer, or one range ``%r<3>`` of names (5.4.6).

    register: IDENT range?
    variable: IDENT range? dimension* (EQUAL _contents)?
    opaque: IDENT range? dimension* (EQUAL properties)?
    """
    most = MAX_NAMES - len(found.registers) - len(found.variables)
    token, texts = ranged(cursor, "in the declaration", "names", most)
    if first.space == "reg":
        _registers(cursor, names, first, token, texts, found, parameter)
        return
    shape = [*_dimensions(cursor), *([first.lanes] if first.lanes else [])]
    initial = None
    if cursor.type == "=":
        if first.space not in ("global", "const") or texts != [token]:
            raise cursor.error("only variables in .global and .const are initialized, one by one", cursor.here)
        initial = _initializer(cursor, names, first, shape)
    count = prod(shape) if shape else None
    if count is not None and count >= 1 << 48:
        raise cursor.error(f"`{clip(token)}` has too many elements", token)
    if count == 0 and first.linkage != "extern" and first.space != "param":
        raise cursor.error(f"the array `{clip(token)}` needs a size", token, "only an external one has none: x[]")
    kind = Kind("variable", stride=max(1, first.type.bytes))
    for text in texts:
        name = text if parameter and text == "_" else _named(cursor, names, token, text, kind)
        words = first.linkage, cursor.span(token), first.opaque, first.everywhere
        found.variables.append(Variable(name, first.space, first.type, count, first.alignment, initial, *words))


def _registers(
    cursor: Cursor, names: Names, first: Head, token: Token, texts: list[str], found: Declared, parameter: bool
) -> None:
    for text in texts:
        name = _named(cursor, names, token, text, Kind("register", lanes=first.lanes or 0))
        parts = [name] if first.lanes is None else [f"{name}.{c}" for c in COMPONENTS[: first.lanes]]
        found.registers += [(part, first.type) for part in parts]
        if parameter:
            span = cursor.span(token)
            found.variables.append(Variable(name, "reg", first.type, first.lanes, None, None, "", span))
    if cursor.type in ("[", "="):
        what = "an array" if cursor.type == "[" else "initialized"
        raise cursor.error(f"a register cannot be {what}", cursor.here)


def _named(cursor: Cursor, names: Names, token: Token, text: str, kind: Kind) -> str:
    """The unique name of a declared name, without ``%``."""
    if text in ("_", "WARP_SZ"):
        raise cursor.error(f"`{text}` cannot be declared", token, kind="name")
    entity = names.declare(text, kind)
    if entity is None:
        previous = names.find(text)
        if previous is None or previous.scope != 0 or previous.kind != kind:
            raise cursor.error(f"`{clip(text)}` is declared twice in this scope", token, kind="name")
        entity = previous  # an external variable may be declared again: module.py tells
    return entity.text.lstrip("%")


def _dimensions(cursor: Cursor) -> list[int]:
    """dimension: "[" expression? "]" """
    found: list[int] = []
    while (token := cursor.accept("[")) is not None:
        size = None if cursor.type == "]" else integer_constant(cursor)
        cursor.take("]", "after the dimension")
        if size is None and found:
            raise cursor.error("only the first dimension can be left out", token)
        if size is not None and not 0 < size < 1 << 48:
            raise cursor.error(f"an array cannot have {size} elements", token)
        found.append(size or 0)
    return found


# -- initializers (5.4.4) ------------------------------------------------------------------------------------------


def _initializer(cursor: Cursor, names: Names, first: Head, shape: list[int]) -> tuple[int | SymbolAddress, ...] | None:
    """The values of all elements. Braces nest as the dimensions and lanes, which ``shape`` has: its first number is 0
    where that is still to be known, and known then.

    properties: "{" (_any | "{")* "}"
    _contents: expression | symbol | elements
    elements: "{" (_contents ("," _contents)*)? "}"
    """
    equals = cursor.take("=", "here")
    if first.linkage == "extern":
        raise cursor.error("an external variable has no initializer", equals)
    if first.opaque is not None:  # the properties of a texture, sampler or surface (5.3): nothing reads them
        cursor.take("{", "after `=`")
        while cursor.type not in ("}", ";", "SECTION", END):
            cursor.index += 1
        cursor.take("}", "after the properties")
        return None
    if not shape:
        return (_element(cursor, names, first.type),)
    sizes = [prod(max(1, size) for size in shape[level:]) for level in range(len(shape) + 1)]
    if sizes[0] > MAX_INITIALIZED:
        raise cursor.error(f"at most {MAX_INITIALIZED} elements are initialized", equals, kind="unsupported")
    values: list[int | SymbolAddress] = []
    ends: list[int] = []  # where the braces that are open must end, at most
    while True:
        level = len(ends)
        if (brace := cursor.accept("{")) is not None:
            if level == len(shape):
                raise cursor.error("more braces than dimensions", brace)
            ends.append(len(values) + sizes[level] if shape[level] else MAX_INITIALIZED)
            if cursor.type != "}":
                continue
        elif level < len(shape):
            raise cursor.expected("`{`", f"around the elements of a dimension of {shape[level]}")
        else:
            values.append(_element(cursor, names, first.type))
        while (comma := cursor.accept(",")) is None:  # after an element, or after what braces enclose
            cursor.take("}", "after the elements")
            end = ends.pop()
            if not ends and not shape[0]:
                shape[0], end = len(values) // sizes[1], len(values)
            values += [0] * (end - len(values))
            if not ends:
                return tuple(values)
        if len(values) >= ends[-1]:
            raise cursor.error("more elements than the array has", comma)


def _element(cursor: Cursor, names: Names, typ: Type) -> int | SymbolAddress:
    if cursor.type == "IDENT" and cursor.text() != "WARP_SZ":
        return _symbol(cursor, names, typ)
    token, value = cursor.here, constant(cursor)
    if cursor.type == "(":
        raise cursor.error("`mask()` in an initializer is not supported", token, kind="unsupported")
    if typ.kind in ("f", "bf"):
        return _float_bits(cursor, token, value, typ)
    if isinstance(value, Real):
        raise cursor.error(f"`.{typ.name}` is not initialized with a floating-point constant", token)
    return value.value % (1 << typ.bits)


def _float_bits(cursor: Cursor, token: Token, value: Constant, typ: Type) -> int:
    if isinstance(value, Integer):
        # ptxas refuses these, except that a zero is common in text written by hand.
        if value.value == 0:
            return 0
        raise cursor.error(f"`.{typ.name}` is not initialized with an integer constant", token, "write it with a point")
    if typ.bits not in (32, 64):
        raise cursor.error(f"a variable of `.{typ.name}` has no initializer", token, "use .b16 with its bits")
    if typ.bits == 32 and value.single is not None:
        return value.single
    try:
        return int.from_bytes(struct.pack("<f" if typ.bits == 32 else "<d", value.value), "little")
    except OverflowError:
        raise cursor.error("the constant is too large for .f32", token) from None


def _symbol(cursor: Cursor, names: Names, typ: Type) -> SymbolAddress:
    """symbol: (IDENT | GENERIC | generic) offset?
    generic: GENERIC "(" IDENT offset? ")"
    """
    first = name = cursor.take("IDENT", "in the initializer")
    generic = first == "generic" and cursor.accept("(") is not None
    if first == "mask" and cursor.type == "(":
        raise cursor.error("`mask()` in an initializer is not supported", first, kind="unsupported")
    offset = 0
    if generic:
        name = cursor.take("IDENT", "in `generic()`")
        offset = integer_constant(cursor) if cursor.type == "SIGN" else 0
        cursor.take(")", "after the name")
    if cursor.type == "SIGN":
        offset += integer_constant(cursor)
    if typ.kind not in "bus" or typ.bits < 32:
        raise cursor.error(f"an address does not fit into `.{typ.name}`", first, "use .u64")
    entity = names.find(name)
    if entity is None:
        raise cursor.error(f"`{clip(name)}` is not declared", name, "declare it before", "name")
    return SymbolAddress(entity.text.lstrip("%"), offset, generic, cursor.span(first, cursor.tokens[cursor.index - 1]))
