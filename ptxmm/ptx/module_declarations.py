"""Declarations of variables, registers and parameters in a PTX module (PTX ISA 5.1, 5.3, 5.4, 7.1)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.ptx.module_constants import Constant, Integer, Real, constant, integer_constant
from ptxmm.ptx.module_names import Kind, Names
from ptxmm.ptx.module_syntax import SymbolAddress, Variable
from ptxmm.ptx.module_tokens import Cursor
from ptxmm.ptx.ops import Type
from ptxmm.ptx.origin import clip
from ptxmm.ptx.qualified import close_match
from ptxmm.ptx.reader import Token

SPACES = frozenset({".global", ".shared", ".const", ".param", ".local", ".tex", ".reg"})
LINKAGE = frozenset({".extern", ".visible", ".weak", ".common"})
MAX_NAMES = 1_000_000
MAX_INITIALIZED = 1 << 24
_OPAQUE = frozenset({".texref", ".samplerref", ".surfref"})
_LANES: Mapping[str, int] = MappingProxyType({".v2": 2, ".v4": 4, ".v8": 8})
_COMPONENTS = ("x", "y", "z", "w", "e4", "e5", "e6", "e7")
_TYPES: Mapping[str, Type] = MappingProxyType(
    {
        **{f".{kind}{bits}": Type(kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)},
        **{f".f{bits}": Type("f", bits) for bits in (16, 32, 64)},
        ".b128": Type("b", 128),
        ".f16x2": Type("b", 32),
        ".bf16": Type("bf", 16),
        ".bf16x2": Type("b", 32),
        ".pred": Type("pred", 1),
    }
)


class Head(Struct, frozen=True):
    """What a declaration says before the names: all names of a list have it."""

    space: str
    type: Type
    lanes: int | None
    alignment: int | None
    opaque: str | None
    linkage: str


class Declared(Struct, frozen=True):
    """The variables of one declaration, and its registers with their types."""

    variables: tuple[Variable, ...]
    registers: tuple[tuple[str, Type], ...]


def head(cursor: Cursor, linkage: str) -> Head:
    """The state space, attributes, alignment and type before the names. The next token must be a state space."""
    space = str(cursor.tokens[cursor.index])[1:].partition("::")[0]
    cursor.index += 1
    typ: Type | None = None
    opaque: str | None = None
    lanes: int | None = None
    alignment: int | None = None
    pointer = False
    while cursor.type == "QUALIFIER":
        token = cursor.tokens[cursor.index]
        word = str(token)
        cursor.index += 1
        if word == ".align":
            bytes_ = _alignment(cursor)
            alignment = alignment if pointer else bytes_  # after .ptr: of what it points to (5.1.6.3)
        elif word == ".attribute":
            attribute(cursor)
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
            raise _unexpected(cursor, token, typ)
    if typ is None:
        raise cursor.expected("a type", f"after `.{space}`", "for example .b32")
    if typ.kind == "pred" and space != "reg":
        raise cursor.error("a predicate can only be a register", cursor.tokens[cursor.index - 1], "use .reg")
    return Head(space, typ, lanes, alignment, opaque, linkage)


def declare(cursor: Cursor, names: Names, first: Head) -> Declared:
    """The names of a declaration after ``first``, up to its ``;``, which is taken. Raises ``PtxmmError``."""
    variables: list[Variable] = []
    registers: list[tuple[str, Type]] = []
    while True:
        _declarator(cursor, names, first, variables, registers)
        if cursor.accept(",") is None:
            break
    cursor.take(";", "after the declaration")
    return Declared(tuple(variables), tuple(registers))


def parameters(cursor: Cursor, names: Names) -> Declared:
    """A parameter list in parentheses; the next token is the ``(``. Raises ``PtxmmError``."""
    variables: list[Variable] = []
    registers: list[tuple[str, Type]] = []
    cursor.take("(", "before the parameters")
    if cursor.accept(")") is not None:
        return Declared((), ())
    while True:
        if cursor.text().partition("::")[0] not in (".param", ".reg"):
            raise cursor.expected("`.param`", "before a parameter")
        first = head(cursor, "")
        _declarator(cursor, names, first, variables, registers, parameter=True)
        if cursor.accept(",") is None:
            break
    cursor.take(")", "after the parameters")
    return Declared(tuple(variables), tuple(registers))


def _unexpected(cursor: Cursor, token: Token, typ: Type | None) -> PtxmmError:
    word = str(token)
    if word in _LANES or (typ is not None and word in _TYPES):
        return cursor.error(f"unexpected `{word}` in a declaration that has a type", token)
    guess = close_match(word, [*_TYPES, *_OPAQUE, *_LANES, ".align", ".attribute"])
    hint = f"did you mean {guess}?" if guess else None
    return cursor.error(f"`{clip(word)}` is not part of a declaration", token, hint)


def _alignment(cursor: Cursor) -> int:
    token = cursor.take("NUMBER", "after `.align`")
    cursor.index -= 1
    value = integer_constant(cursor)
    if value <= 0 or value & (value - 1) or value > 1 << 20:
        raise cursor.error(f"an alignment is a power of two, not {value}", token)
    return value


def attribute(cursor: Cursor) -> None:
    """What follows ``.attribute``: ``(.managed, .unified(1, 2))`` (5.4.8). It says nothing about memory that is
    modelled. Raises ``PtxmmError``."""
    cursor.take("(", "after `.attribute`")
    while True:
        word = cursor.take("QUALIFIER", "in `.attribute`")
        if word not in (".managed", ".unified"):
            hint = "the attributes are .managed and .unified"
            raise cursor.error(f"unknown attribute `{clip(str(word))}`", word, hint)
        if word == ".unified" and cursor.accept("(") is not None:
            integer_constant(cursor)
            cursor.take(",", "between the two halves of the identifier")
            integer_constant(cursor)
            cursor.take(")", "after the identifier")
        if cursor.accept(",") is None:
            break
    cursor.take(")", "after the attributes")


def _declarator(
    cursor: Cursor,
    names: Names,
    first: Head,
    variables: list[Variable],
    registers: list[tuple[str, Type]],
    *,
    parameter: bool = False,
) -> None:
    """One name with its dimensions and initializer, or one range ``%r<3>`` of names (5.4.6)."""
    token = cursor.take("IDENT", "in the declaration")
    stride = max(1, first.type.bytes)
    if cursor.accept("<") is not None:
        size_token = cursor.tokens[min(cursor.index, len(cursor.tokens) - 1)]
        size = integer_constant(cursor, 9)
        cursor.take(">", "after the number of names")
        if not 0 <= size <= MAX_NAMES - len(registers) - len(variables):
            raise cursor.error(f"at most {MAX_NAMES} names can be declared", size_token, kind="unsupported")
        texts = [f"{token}{n}" for n in range(size)]
    else:
        texts = [str(token)]
    span = cursor.span(token)
    if first.space == "reg":
        for text in texts:
            name = _named(cursor, names, token, text, Kind("register", lanes=first.lanes or 0))
            if first.lanes is None:
                registers.append((name, first.type))
            else:
                registers.extend((f"{name}.{c}", first.type) for c in _COMPONENTS[: first.lanes])
        if parameter:
            variables.append(Variable(name, "reg", first.type, first.lanes, None, None, "", span))
        if cursor.type in ("[", "="):
            what = "an array" if cursor.type == "[" else "initialized"
            raise cursor.error(f"a register cannot be {what}", cursor.tokens[cursor.index])
        return
    dimensions = _dimensions(cursor)
    initial = None
    if cursor.type == "=":
        if first.space not in ("global", "const") or len(texts) != 1 or cursor.tokens[cursor.index - 1].type == ">":
            message = "only variables in .global and .const are initialized, one by one"
            raise cursor.error(message, cursor.tokens[cursor.index])
        dimensions, initial = _initializer(cursor, names, first, dimensions)
    count = _count(cursor, token, first.lanes, dimensions)
    if count == 0 and first.linkage != "extern" and first.space != "param":
        raise cursor.error(f"the array `{clip(str(token))}` needs a size", token, "only an external one has none: x[]")
    for text in texts:
        unnamed = parameter and text == "_"
        name = text if unnamed else _named(cursor, names, token, text, Kind("variable", stride=stride))
        words = first.linkage, span, first.opaque
        variables.append(Variable(name, first.space, first.type, count, first.alignment, initial, *words))


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
    found: list[int] = []
    while cursor.accept("[") is not None:
        token = cursor.tokens[cursor.index - 1]
        if cursor.accept("]") is not None:
            if found:
                raise cursor.error("only the first dimension can be left out", token)
            found.append(0)
            continue
        size = integer_constant(cursor)
        cursor.take("]", "after the dimension")
        if not 0 < size < 1 << 48:
            raise cursor.error(f"an array cannot have {size} elements", token)
        found.append(size)
    return found


def _count(cursor: Cursor, token: Token, lanes: int | None, dimensions: list[int]) -> int | None:
    if lanes is None and not dimensions:
        return None
    count = lanes or 1
    for size in dimensions:
        count *= size
    if count >= 1 << 48:
        raise cursor.error(f"`{clip(str(token))}` has too many elements", token)
    return count


# -- initializers (5.4.4) ------------------------------------------------------------------------------------------


def _initializer(
    cursor: Cursor, names: Names, first: Head, dimensions: list[int]
) -> tuple[list[int], tuple[int | SymbolAddress, ...] | None]:
    """The dimensions, the first of them now known, and the values of all elements."""
    equals = cursor.take("=", "here")
    if first.linkage == "extern":
        raise cursor.error("an external variable has no initializer", equals)
    if first.opaque is not None:
        _skip_braces(cursor)
        return dimensions, None
    # The nesting of the braces is that of the dimensions and lanes.
    shape = [*dimensions, *([first.lanes] if first.lanes else [])]
    values: list[int | SymbolAddress] = []
    if not shape:
        return dimensions, (_element(cursor, names, first.type),)
    sizes = [1] * (len(shape) + 1)  # of what an element at each level has
    for level in reversed(range(len(shape))):
        sizes[level] = sizes[level + 1] * max(1, shape[level])
    if sizes[0] > MAX_INITIALIZED:
        raise cursor.error(f"at most {MAX_INITIALIZED} elements are initialized", equals, kind="unsupported")
    ends: list[int] = []  # where the braces that are open must end, at most
    while True:
        level = len(ends)
        if cursor.accept("{") is not None:
            if level == len(shape):
                raise cursor.error("more braces than dimensions", cursor.tokens[cursor.index - 1])
            unknown = level == 0 and shape[0] == 0
            ends.append(MAX_INITIALIZED if unknown else len(values) + sizes[level])
            if cursor.type != "}":
                continue
        elif level < len(shape):
            raise cursor.expected("`{`", f"around the elements of a dimension of {shape[level]}")
        else:
            values.append(_element(cursor, names, first.type))
        while True:  # after an element, or after what braces enclose
            if cursor.accept(",") is not None:
                if len(values) >= ends[-1]:
                    raise cursor.error("more elements than the array has", cursor.tokens[cursor.index - 1])
                break
            cursor.take("}", "after the elements")
            end = ends.pop()
            if not ends:
                if shape[0] == 0:
                    dimensions[0] = len(values) // sizes[1]
                    end = len(values)
                values += [0] * (end - len(values))
                return dimensions, tuple(values)
            values += [0] * (end - len(values))


def _skip_braces(cursor: Cursor) -> None:
    """The properties of a texture, sampler or surface (5.3): nothing reads them."""
    cursor.take("{", "after `=`")
    while cursor.type not in ("}", ";"):
        if cursor.index >= len(cursor.tokens):
            break
        cursor.index += 1
    cursor.take("}", "after the properties")


def _element(cursor: Cursor, names: Names, typ: Type) -> int | SymbolAddress:
    start = cursor.index
    if cursor.type == "IDENT" and cursor.text() != "WARP_SZ":
        return _address(cursor, names, typ)
    token = cursor.tokens[min(start, len(cursor.tokens) - 1)]
    value = constant(cursor)
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
    if typ.bits == 64:
        found: int = struct.unpack("<Q", struct.pack("<d", value.value))[0]
        return found
    if typ.bits == 32:
        if value.single is not None:
            return value.single
        try:
            packed = struct.pack("<f", value.value)
        except OverflowError:
            raise cursor.error("the constant is too large for .f32", token) from None
        found = struct.unpack("<I", packed)[0]
        return found
    raise cursor.error(f"a variable of `.{typ.name}` has no initializer", token, "use .b16 with its bits")


def _address(cursor: Cursor, names: Names, typ: Type) -> SymbolAddress:
    first = cursor.take("IDENT", "in the initializer")
    generic = first == "generic" and cursor.accept("(") is not None
    if first == "mask" and cursor.type == "(":
        raise cursor.error("`mask()` in an initializer is not supported", first, kind="unsupported")
    name = cursor.take("IDENT", "in `generic()`") if generic else first
    offset = integer_constant(cursor) if generic and cursor.type == "SIGN" else 0
    if generic:
        cursor.take(")", "after the name")
    if cursor.type == "SIGN":
        offset += integer_constant(cursor)
    if typ.kind not in "bus" or typ.bits < 32:
        raise cursor.error(f"an address does not fit into `.{typ.name}`", first, "use .u64")
    entity = names.find(str(name))
    if entity is None:
        raise cursor.error(f"`{clip(str(name))}` is not declared", name, "declare it before", "name")
    return SymbolAddress(entity.text.lstrip("%"), offset, generic, cursor.span(first, cursor.tokens[cursor.index - 1]))
