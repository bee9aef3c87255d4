"""The arguments and objects of a launch specification (docs/modules.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import Span
from ptxmm.formats.initializers import MAX_ELEMENTS
from ptxmm.formats.modules.demangle import qualified
from ptxmm.formats.modules.libcu import EXAMPLES, LibraryType, NotLibrary, library_type
from ptxmm.formats.modules.table import Table
from ptxmm.formats.modules.tensormaps import ENCODED, TensorMapSpec, encoded, tensormap_of
from ptxmm.formats.text import at
from ptxmm.ptx.ops import TENSORMAP_BYTES, Type

TENSORMAP_ALIGNMENT = 64
"""Of a ``CUtensorMap``, in bytes."""
_PLACE = re.compile(r"(.+?)\s*(?:\+\s*([0-9]{1,18}))?")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")

Scalar = int | float | str
"""A number, or an object and an offset in bytes (``out+4``)."""


class Piece(Struct, frozen=True):
    """Bytes of an argument: ``value`` in ``type`` (None: that of the parameter) at ``offset``; ``tensormap``: it is the
    tensor map of that name."""

    offset: int
    type: Type | None
    value: Scalar
    tensormap: bool = False


class Argument(Struct, frozen=True):
    """The value of one parameter of the kernel."""

    pieces: tuple[Piece, ...]
    span: Span


class ObjectSpec(Struct, frozen=True):
    """An object of global memory, or what is said of a variable of the module: ``type`` and ``count`` are None then.

    ``initial``: the values of its elements, None where nothing is said, ``unknown`` for no value. ``alignment``: a
    multiple of this is where it begins, None for no more than its type or its declaration says. ``library``: the name
    of its type in libcu++, if it is one of these.
    """

    name: str
    span: Span
    type: Type | None
    count: int | None
    initial: tuple[Scalar, ...] | Literal["unknown"] | None
    tensormap: TensorMapSpec | None = None
    alignment: int | None = None
    library: str | None = None


def place(value: str) -> tuple[str, int] | None:
    """The object, perhaps by its name in C++, and the offset in bytes that ``out+4`` means, or None."""
    match = _PLACE.fullmatch(value.strip())
    if match is None or not (_NAME.fullmatch(match[1]) or qualified(match[1]) == len(match[1])):
        return None
    return match[1], int(match[2] or 0)


def _scalar(table: Table, key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and place(value) is None:
        raise table.error(key, f"`{value}` is neither an object nor an object and an offset", 'as in "out+4"')
    if isinstance(value, int | float | str):
        return value
    raise table.error(key, "a value is a number or the name of an object")


def arguments_of(table: Table) -> tuple[Argument, ...]:
    """The values of the parameters, in order. Raises ``PtxmmError``."""
    given = table.data.get("args", [])
    if not isinstance(given, list):
        raise table.error("args", "`args` is a list", 'as in args = ["data", 4]')
    spans = table.spans_of("args", given)
    return tuple(_argument(table, item, span) for item, span in zip(given, spans, strict=True))


def _argument(table: Table, item: object, span: Span) -> Argument:
    if not isinstance(item, dict):
        return Argument((Piece(0, None, _scalar(table, "args", item)),), span)
    if item.keys() == {"bytes"} and isinstance(item["bytes"], list):
        return Argument(_fields(table, [{"u8": byte} for byte in item["bytes"]]), span)
    if item.keys() == {"fields"} and isinstance(item["fields"], list):
        return Argument(_fields(table, item["fields"]), span)
    for key in ("bytes", "fields"):
        if key in item:
            raise table.error("args", f"`{key}` is a list", "as in { bytes = [1, 2] } or { fields = [{ u32 = 5 }] }")
    return Argument(_fields(table, [item]), span)


def _fields(table: Table, items: list[Any]) -> tuple[Piece, ...]:
    """The fields of a structure, each at the next multiple of its size (the layout of C)."""
    found: list[Piece] = []
    offset = 0
    for item in items:
        if not isinstance(item, dict) or len(item) != 1:
            raise table.error("args", "a field is a type and its value", "as in { u32 = 5 }")
        ((name, value),) = item.items()
        if name == "tensormap":
            if not isinstance(value, str):
                raise table.error("args", "a tensor map in a structure is an object", 'as in { tensormap = "map" }')
            offset = -(-offset // TENSORMAP_ALIGNMENT) * TENSORMAP_ALIGNMENT
            found.append(Piece(offset, None, value, True))
            offset += TENSORMAP_BYTES
            continue
        type_ = table.type("args", name)
        offset = -(-offset // type_.bytes) * type_.bytes
        found.append(Piece(offset, type_, _scalar(table, "args", value)))
        offset += type_.bytes
    return tuple(found)


def object_of(table: Table, name: str, value: object) -> ObjectSpec:
    """The object ``name`` that ``value`` describes. Raises ``PtxmmError``."""
    span = table.span(name)
    if place(name) != (name, 0):
        raise at(f"`{name}` is not a name", span, kind="format")
    if isinstance(value, str):
        value = {"type": value}
    if not isinstance(value, dict):
        raise table.error(name, "an object is a type or a table", 'as in data = { type = "u32", count = 2 }')
    if value.get("type") == ENCODED:
        return ObjectSpec(name, span, Type("b", 8), TENSORMAP_BYTES, None, encoded(table, name, value))
    for key in value:
        if key not in ("type", "count", "init", "align", "tensormap"):
            raise table.error(name, f"an object has no `{key}`", "it has type, count, init, align or tensormap")
    library, made = _library(table, name, value.get("type"))
    found = _described(table, name, value, span, library, made)
    alignment = table.number(value, "align", 1, 1 << 20, name)
    if alignment is not None and alignment & (alignment - 1):
        raise table.error(name, f"`align` is a power of two, not {alignment}")
    return replace(found, alignment=alignment, library=library.name if library else None)


def _described(
    table: Table, name: str, value: Mapping[str, Any], span: Span, library: LibraryType | None, made: Scalar | None
) -> ObjectSpec:
    if "tensormap" in value:
        return ObjectSpec(name, span, Type("b", 8), 128, None, tensormap_of(table, name, value["tensormap"]))
    type_ = library.type if library else table.type(name, value["type"]) if "type" in value else None
    count = table.number(value, "count", 1, MAX_ELEMENTS, name)
    given = value.get("init", made)
    if library is not None and given != "unknown":
        given = _constructed(table, name, library, given, count)
    if given is None:
        return ObjectSpec(name, span, type_, count, None)
    if given == "unknown":
        return ObjectSpec(name, span, type_, count, "unknown")
    if isinstance(given, list):
        values = tuple(_scalar(table, name, item) for item in given)
        if len(values) > (count or len(values)):
            raise table.error(name, f"{len(values)} values for {count} elements")
        return ObjectSpec(name, span, type_, count or len(values), values)
    return ObjectSpec(name, span, type_, count, (_scalar(table, name, given),) * (count or 1))


def _library(table: Table, name: str, type_: object) -> tuple[LibraryType | None, Scalar | None]:
    """The object of libcu++ that ``type_`` names, and the number in parentheses behind it."""
    try:
        found = library_type(type_) if isinstance(type_, str) else None
        if found is None or found[1] is None:
            return (None if found is None else found[0]), None
        return found[0], _number(found[1])
    except NotLibrary as error:
        raise table.error(name, str(error), f"as in {EXAMPLES}") from None


def _number(text: str) -> Scalar:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise NotLibrary(f"`{text}` is not a number") from None


def _constructed(table: Table, name: str, library: LibraryType, given: object, count: int | None) -> object:
    """The words of objects that are constructed with ``given``: one value for all, or a list."""
    values = given if isinstance(given, list) else [library.default if given is None else given]
    if isinstance(given, list) and count not in (None, len(given)):
        raise table.error(name, f"{len(values)} values for {count} objects")
    if None in values:
        raise table.error(name, f"a cuda::{library.name} is made with a number", f"as in cuda::{library.name}(2)")
    try:
        words = [library.word(_scalar(table, name, value)) for value in values]
    except NotLibrary as error:
        raise table.error(name, str(error)) from None
    return words if isinstance(given, list) else words[0]
