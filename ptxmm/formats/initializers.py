"""The types and initial values of declared variables and registers (PTX ISA 5.2, 5.4.4)."""

from __future__ import annotations

from difflib import get_close_matches

from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.tokens import Cursor, Token
from ptxmm.program.shared.tensors import MAX_BOX, MAX_RANK, MAX_STEP, element_type, problem
from ptxmm.program.source import Constant, Initial, MbarrierState, TensorMapValue, Value
from ptxmm.ptx.ops import Type
from ptxmm.ptx.tables.wording import TYPE_WORDS

MAX_ELEMENTS = 65_536
MAX_COUNT = (1 << 20) - 1
"""The largest count of arrivals or bytes of an mbarrier (PTX ISA 9.7.14.15.2)."""
VECTOR_BITS = 128

_BITS = Type("b", 32)
TYPES = (
    {f".{kind}{bits}": Type(kind, bits) for kind in "bus" for bits in (8, 16, 32, 64)}
    | {".b128": Type("b", 128), ".f16": Type("f", 16), ".f16x2": _BITS, ".f32": Type("f", 32), ".f64": Type("f", 64)}
    | {".pred": Type("pred", 1)}
)  # fmt: skip
"""The fundamental types (PTX ISA 5.2.1); ``.f16x2`` is held as its 32 bits."""

_OBJECTS = {"mbarrier": "an mbarrier", "tensormap": "a tensor map"}
_VECTORS = {".v2": 2, ".v4": 4}
_ALTERNATE = {".bf16": ".b16", ".bf16x2": ".b32", ".tf32": ".b32", ".e4m3": ".b8", ".e5m2": ".b8"}


def type_names(predicate: bool) -> str:
    """The legal types, for an error."""
    return " ".join(name for name in TYPES if predicate or name != ".pred")


def take_type(cursor: Cursor, noun: str, register: bool) -> tuple[Type, int | None, int | None]:
    """Take a type, and for a variable ``.v2``, ``.v4`` and ``.align N``, in any order: the type of an element, how
    many a vector has (None for a scalar), and the alignment in bytes (that of a vector is its size, PTX ISA 5.4.2,
    5.4.5; None where there is nothing to say). ``noun`` is for errors. Raises ``PtxmmError``.

    _shape: alignment* (TYPE alignment* (VECTOR alignment*)? | VECTOR alignment* TYPE alignment*)
    """
    found: Type | None = None
    vector: Token | None = None
    alignment: int | None = None
    while cursor.peek().kind == "directive":
        token = cursor.next()
        if token.text == ".align" and not register:
            alignment = _alignment(cursor)
        elif token.text in TYPES and found is None and (register or token.text != ".pred"):
            found = TYPES[token.text]
        elif token.text in _VECTORS and vector is None and not register:
            vector = token
        else:
            raise _no_type(cursor, token, noun, register, found)
    if found is None:
        raise cursor.unexpected(noun, hint=f"the types are {type_names(register)}")
    if vector is None:
        return found, None, alignment
    count = _VECTORS[vector.text]
    if count * found.bits > VECTOR_BITS:
        message = f"a vector has at most {VECTOR_BITS} bits, and {vector.text} .{found.name} has {count * found.bits}"
        raise cursor.error(message, vector)
    return found, count, max(alignment or 0, count * found.bytes)


def _no_type(cursor: Cursor, token: Token, noun: str, register: bool, found: Type | None) -> PtxmmError:
    """The error that ``token`` is not the type ``found``, the first one, or a part of it."""
    if token.text in TYPES and found is not None:
        return cursor.error("a second type", token)
    if token.text in (".v2", ".v4", ".v8") and register:
        message = "vector registers are not supported"
        return cursor.error(message, token, hint="declare one register for each element", kind="unsupported")
    if token.text in _ALTERNATE:
        message = f"`{token.text}` is not a fundamental type, so it can't be {noun}"
        return cursor.error(message, token, hint=f"write {_ALTERNATE[token.text]}")
    known = type_names(register).split()
    meant = [f".{t}" for t in TYPE_WORDS.get(token.text.removeprefix("."), ()) if f".{t}" in known]
    close = meant or get_close_matches(token.text[:20], known, 1)
    hint = f"did you mean {' or '.join(f'`{t}`' for t in close)}? " if close else ""
    return cursor.error(f"`{token.text}` is not {noun}", token, hint=f"{hint}the types are {type_names(register)}")


def _alignment(cursor: Cursor) -> int:
    """Every object starts at a multiple of 2**24, so an alignment up to that holds already (PTX ISA 5.4.5).

    alignment: ALIGN MINUS? NUMBER
    """
    token = cursor.peek()
    value = cursor.number("an alignment in bytes").value
    if value <= 0 or value & (value - 1) or value > 1 << 31:
        raise cursor.error(f"an alignment is a power of two, not {value}", token)
    if value > 1 << 24:
        raise cursor.error(f"an alignment of more than {1 << 24} is not supported", token, kind="unsupported")
    return value


def take_value(cursor: Cursor) -> Value:
    """Take an integer, a floating-point constant, or the address ``x``, ``&x``, ``&x+4`` or ``generic(x)``.

    _value: constant | address | generic
    generic: GENERIC "(" address ")"
    """
    token = cursor.peek()
    if token.kind == "number" or cursor.at("-"):
        return cursor.constant()
    if cursor.at("generic") and cursor.at("(", 1):
        cursor.next()
        cursor.next()
        if cursor.at("["):
            raise cursor.unexpected("a variable", hint="write generic(x)")
        value = replace(cursor.address(), generic=True)
        cursor.need(")")
    elif token.text in _OBJECTS and cursor.at("(", 1):
        raise cursor.error(f"only a variable can be {_OBJECTS[token.text]}", token)
    elif token.kind == "name" or cursor.at("&"):
        value = cursor.address()
    else:
        raise cursor.unexpected("a number or an address")
    if value.target.thread is not None or value.target.index is not None:
        raise cursor.error("an initial value is a number or the address of a variable", token)
    return value


def take_initial(cursor: Cursor) -> Initial:
    """Take the initial value of a variable or of one element of it: a value, ``mbarrier(2)`` or ``tensormap(...)``.

    _initial: _value | mbarrier | tensormap
    """
    if cursor.at("(", 1) and cursor.at("mbarrier"):
        return _mbarrier(cursor)
    if cursor.at("(", 1) and cursor.at("tensormap"):
        return _tensormap(cursor)
    return take_value(cursor)


def _mbarrier(cursor: Cursor) -> MbarrierState:
    """``mbarrier(2)`` or ``mbarrier(0, 16)``: arrivals and bytes that the current phase still misses.

    mbarrier: MBARRIER "(" number ("," number)? ")"
    """
    first = cursor.next()
    cursor.need("(")
    pending = _bounded(cursor, "a number of arrivals", 0)
    tx = _bounded(cursor, "a number of bytes", -MAX_COUNT) if cursor.take(",") else Constant(0, cursor.span(first))
    last = cursor.need(")")
    if pending.value == 0 and tx.value == 0:
        message = "a phase that misses neither arrivals nor bytes would be complete"
        hint = "write mbarrier(1), or mbarrier(0, 16) for 16 bytes"
        raise cursor.error(message, first, last, hint=hint)
    return MbarrierState(pending.value, tx.value, cursor.span(first, last))


def _bounded(cursor: Cursor, what: str, low: int, high: int = MAX_COUNT) -> Constant:
    token = cursor.peek()
    found = cursor.number(what)
    if not low <= found.value <= high:
        message = f"{what} is {low} to {high}, not {found.value}"
        raise cursor.error(message, token, cursor.previous())
    return found


def _tensormap(cursor: Cursor) -> TensorMapValue:
    """``tensormap(g, u32, 4)``: boxes of 4 elements of the variable g; ``tensormap(g, u32, {4, 2}, {8, 6}, {32}, {1,
    2})``: boxes of 4 by 2 in a tensor of 8 by 6 elements, the strides in bytes, and the traversal strides.

    tensormap: TENSORMAP "(" _term "," ELEMENT_TYPE "," sizes ("," sizes ("," strides ("," sizes)?)?)? ")"
    """
    first = cursor.next()
    cursor.need("(")
    target = cursor.term()
    if target.thread is not None or target.index is not None:
        raise cursor.error("a tensor map names a .global variable", first, cursor.previous())
    hint = "write tensormap(g, u32, 4): the variable, the type and the number of elements of a box"
    cursor.need(",", hint=hint)
    type_ = _tensor_type(cursor, hint)
    cursor.need(",", hint=hint)
    box = _sizes(cursor, "the number of elements of a box", MAX_BOX)
    lists: list[tuple[int, ...] | None] = [None, None, None]
    for i, (what, high, fewer) in enumerate(_TENSOR_LISTS):
        if not cursor.take(","):
            break
        opening = cursor.peek()
        found = _sizes(cursor, what, high, 1 - fewer)
        if len(found) != len(box) - fewer:
            message = f"a box of {len(box)} dimensions needs {len(box) - fewer} of this, {len(found)} given: {what}"
            raise cursor.error(message, opening, cursor.previous())
        lists[i] = found
    last = cursor.need(")")
    dims, strides, steps = lists
    if dims is None and len(box) > 1:
        hint = "write tensormap(g, u32, {4, 2}, {8, 6}) for boxes of 4 by 2 in a tensor of 8 by 6, innermost first"
        raise cursor.error("the sizes of the tensor are missing", first, last, hint=hint)
    span = cursor.span(first, last)
    made = TensorMapValue(target, type_, box, span, dims, strides, steps if steps else (1,) * len(box))
    wrong = problem(made.type, made.box, made.dims or (1,), made.strides or (), made.steps)
    if wrong is not None:
        raise cursor.error(wrong, first, last)
    return made


_TENSOR_LISTS = (
    ("the number of elements of a tensor", (1 << 32) - 1, 0),
    ("the bytes from one element to the next of an outer dimension", (1 << 40) - 1, 1),
    ("the traversal stride", MAX_STEP, 0),
)
"""What may follow the box, the largest number of each, and how many there are fewer than dimensions."""


def _tensor_type(cursor: Cursor, hint: str) -> Type:
    dot = cursor.peek()
    name = cursor.next().text
    text = name if dot.kind == "directive" else f".{name}"
    type_ = Type("bf", 16) if text == ".bf16" else TYPES.get(text)
    if type_ is None or element_type(type_) is None:
        raise cursor.error(f"`{name[:40]}` is not the type of the elements of a tensor", dot, hint=hint)
    return type_


def _sizes(cursor: Cursor, what: str, high: int, least: int = 1) -> tuple[int, ...]:
    """``4``, or in braces one number for each dimension, innermost first.

    sizes: number | "{" number ("," number)* ","? "}"
    strides: number | "{" (number ("," number)* ","?)? "}"
    """
    if not cursor.take("{"):
        return (_bounded(cursor, what, 1, high).value,)
    found: list[int] = []
    opening = cursor.peek()
    while not cursor.take("}"):
        found.append(_bounded(cursor, what, 1, high).value)
        if not cursor.at("}"):
            cursor.need(",")
    if not least <= len(found) <= MAX_RANK:
        message = f"a tensor has 1 to {MAX_RANK} dimensions, not {len(found)}"
        raise cursor.error(message, opening, cursor.previous())
    return tuple(found)
