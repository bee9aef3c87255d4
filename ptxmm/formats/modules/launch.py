"""The launch specification: which kernel of a module runs, on what, and what must hold of it (docs/modules.md).

It is a TOML document: a file of its own, or the comments of a source that begin with ``// ptxmm:``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.files import MAX_BYTES, NotToml, toml
from ptxmm.formats.conditions import parse_final
from ptxmm.formats.initializers import MAX_ELEMENTS, TYPES
from ptxmm.formats.modules.selection import NoSelection, selected
from ptxmm.formats.modules.table import Table, integer
from ptxmm.formats.text import Text, at, open_text
from ptxmm.program.placement import CTA_SIZE
from ptxmm.program.source import RawCondition
from ptxmm.ptx.ops import Type

T = TypeVar("T")

Dimensions = tuple[int, int, int]
Scalar = int | float | str
"""A number, or an object and an offset in bytes (``out+4``)."""

_COMMENT = re.compile(r"^[ \t]*//[ \t]*ptxmm:(?!\S)(.*)$|^[ \t]*//[ \t]*ptxmm:(\S.*)$", re.MULTILINE)
_PLACE = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:\+\s*([0-9]{1,18}))?")
_MOST_CTAS = 1 << 16
_KEYS = {
    "name", "kernel", "grid", "block", "cluster", "shared", "threads", "args", "objects", "host", "check", "launch",
}  # fmt: skip
_PLACES = ("kernel", "args", "threads", "shared", "block", "cluster", "condition", "races", "robust")
_CHECKS = {"condition", "races", "robust", "unroll"}


class Piece(Struct, frozen=True):
    """Bytes of an argument: ``value`` in ``type`` (None: that of the parameter) at ``offset``."""

    offset: int
    type: Type | None
    value: Scalar


class Argument(Struct, frozen=True):
    """The value of one parameter of the kernel."""

    pieces: tuple[Piece, ...]
    span: Span


class TensorMapSpec(Struct, frozen=True):
    """A tensor map (PTX ISA 5.5): see ``program.test.TensorMap``."""

    target: str
    type: Type
    box: tuple[int, ...]
    dims: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    steps: tuple[int, ...] | None


class ObjectSpec(Struct, frozen=True):
    """An object of global memory, or what is said of a variable of the module: ``type`` and ``count`` are None then.

    ``initial``: the values of its elements, None where nothing is said, ``unknown`` for no value. ``alignment``: a
    multiple of this is where it begins, None for no more than its type or its declaration says.
    """

    name: str
    span: Span
    type: Type | None
    count: int | None
    initial: tuple[Scalar, ...] | Literal["unknown"] | None
    tensormap: TensorMapSpec | None = None
    alignment: int | None = None


class Launch(Struct, frozen=True):
    """One launch. ``threads``: the (cta, thread) numbers that run, in order. ``unroll``: the bound of
    loops, None for that of the command line. ``spans``: where each key stands."""

    name: str | None
    kernel: str | None
    grid: Dimensions
    block: Dimensions
    cluster: Dimensions | None
    shared: int
    threads: tuple[tuple[int, int], ...]
    args: tuple[Argument, ...]
    objects: tuple[ObjectSpec, ...]
    host: Mapping[str, tuple[str, Span]]
    condition: RawCondition | None
    races: bool
    robust: bool
    unroll: int | None
    spans: Mapping[str, Span] = field(default_factory=dict)
    file: str = "<text>"
    text: str = ""

    @property
    def ctas(self) -> int:
        """The number of CTAs."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def size(self) -> int:
        """The number of threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    def error(self, where: str | Span, message: str, kind: str = "format", hint: str | None = None) -> PtxmmError:
        """An error at a key of the specification, or at a place in it."""
        span = self.spans[where] if isinstance(where, str) else where
        return at(message, span, kind=kind, hint=hint).place(self.file, self.text)


def has_comments(text: str) -> bool:
    """Whether ``text`` says something of its launch."""
    return _COMMENT.search(text) is not None


def parse_launches(text: str, file: str) -> tuple[Launch, ...]:
    """The launches that ``text``, a TOML file or a source with ``// ptxmm:`` comments, specifies; at least one.

    Raises ``PtxmmError`` with its place in ``file`` (kind ``format``; ``condition`` and ``syntax`` for the condition).
    """
    opened = open_text(text, file, MAX_BYTES)
    document = opened.characters if file.lower().endswith(".toml") else _comments(opened.characters)
    try:
        try:
            data = toml(document)
        except NotToml as error:
            raise _decode_error(opened, str(error)) from None
        whole = Table(opened, document, data, 0, len(document))
        wrong: list[PtxmmError] = []
        found: list[Launch] = []
        for table in whole.launches():
            try:
                found.append(_launch(table, file, opened.characters))
            except PtxmmError as error:
                wrong += [error, *error.more]
        if wrong:
            raise together(wrong)
        return tuple(found)
    except PtxmmError as error:
        for other in (error, *error.more):
            opened.fill(other)
        raise error from None


def _comments(text: str) -> str:
    """``text`` with blanks for all that is no ``// ptxmm:`` comment, so that every place stays."""
    parts: list[str] = []
    position = 0
    for match in _COMMENT.finditer(text):
        group = 1 if match[1] is not None else 2
        parts += [re.sub(r"[^\n]", " ", text[position : match.start(group)]), match[group]]
        position = match.end()
    parts.append(re.sub(r"[^\n]", " ", text[position:]))
    return "".join(parts)


def _decode_error(text: Text, message: str) -> PtxmmError:
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    plain = message if place is None else message[: place.start()]
    line, column = (int(place[1]), int(place[2])) if place is not None and place[1] else (len(text.starts), 1)
    return at(f"this is not TOML: {plain[:1].lower()}{plain[1:]}", Span(line, column, column + 1), kind="format")


def _launch(table: Table, file: str, text: str) -> Launch:
    data = table.data
    wrong = [
        table.error(key, f"`{key}` is not part of a launch specification", _closest(key, _KEYS))
        for key in data
        if key not in _KEYS
    ]

    def told(read: Callable[[], T], otherwise: T) -> T:
        """What ``read`` gives; where that is wrong the others are read all the same."""
        try:
            return read()
        except PtxmmError as error:
            wrong.append(error)
            return otherwise

    one, before = (1, 1, 1), len(wrong)
    grid, block = told(lambda: _dimensions(table, "grid"), one), told(lambda: _dimensions(table, "block"), one)
    ctas, size = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    if size > CTA_SIZE:
        wrong.append(table.error("block", f"a CTA has at most {CTA_SIZE} threads, not {size}"))
    if ctas > _MOST_CTAS:
        wrong.append(table.error("grid", f"at most {_MOST_CTAS} CTAs are supported, not {ctas}"))
    sized = len(wrong) == before
    cluster = told(lambda: _dimensions(table, "cluster"), None) if "cluster" in data else None
    if cluster is not None and any(g % c for g, c in zip(grid, cluster, strict=True)):
        wrong.append(table.error("cluster", "the grid is not made of whole clusters"))
    checks: dict[str, Any] = told(lambda: table.subtable("check"), {})
    wrong += [
        table.error(key, f"`{key}` is not something to check", _closest(key, _CHECKS))
        for key in checks
        if key not in _CHECKS
    ]
    objects: dict[str, Any] = told(lambda: table.subtable("objects"), {})
    read = [told(lambda name=name, value=value: _object(table, name, value), None) for name, value in objects.items()]  # type: ignore[misc]
    launch = Launch(
        name=told(lambda: table.string(data, "name"), None),
        kernel=told(lambda: table.string(data, "kernel"), None),
        grid=grid,
        block=block,
        cluster=cluster,
        shared=told(lambda: table.number(data, "shared", 0, 1 << 20), None) or 0,
        threads=told(lambda: _threads(table, ctas, size), ()) if sized else (),
        args=told(lambda: _arguments(table), ()),
        objects=tuple(item for item in read if item is not None),
        host=told(lambda: _host(table), {}),
        condition=told(lambda: _condition(table, checks), None),
        races=told(lambda: _races(table, checks), False),
        robust=told(lambda: table.flag(checks, "robust"), False),
        unroll=told(lambda: table.number(checks, "unroll", 0, 1000), None),
        spans={key: table.span(key) for key in _PLACES},
        file=file,
        text=text,
    )
    if wrong:
        raise together(wrong)
    return launch


def _races(table: Table, data: Mapping[str, Any]) -> bool:
    found = data.get("races")
    if found not in (None, "none"):
        raise table.error("races", '`races` can only be "none"', "leave it out where races are no matter")
    return found == "none"


def _dimensions(table: Table, key: str) -> Dimensions:
    given = table.data.get(key, 1)
    numbers = [integer(item) for item in (given if isinstance(given, list) else [given])]
    if not 1 <= len(numbers) <= 3 or not all(n is not None and 1 <= n < 1 << 31 for n in numbers):
        raise table.error(key, f"`{key}` is one to three positive numbers", f"as in {key} = 2 or {key} = [2, 1, 1]")
    x, y, z = (*(n or 1 for n in numbers), 1, 1)[:3]
    return x, y, z


def _threads(table: Table, ctas: int, size: int) -> tuple[tuple[int, int], ...]:
    given = table.data.get("threads", "all")
    selections = given if isinstance(given, list) else [given]
    if not selections or not all(isinstance(item, str) for item in selections):
        raise table.error("threads", "`threads` is a selection or a list of them", 'as in "cta 0 warp 0-1 lane 0"')
    try:
        return selected(selections, ctas, size)
    except NoSelection as error:
        raise table.error("threads", error.message, error.hint) from None


def with_threads(launch: Launch, selections: str) -> Launch:
    """``launch`` with other threads: selections as in ``threads``, separated by ``;``.

    Raises ``PtxmmError`` (kind ``usage``).
    """
    try:
        return replace(launch, threads=selected(selections.split(";"), launch.ctas, launch.size))
    except NoSelection as error:
        raise PtxmmError(f"--threads: {error.message}", kind="usage", hint=error.hint) from None


def place(value: str) -> tuple[str, int] | None:
    """The object and the offset in bytes that ``out+4`` means, or None."""
    match = _PLACE.fullmatch(value.strip())
    return None if match is None else (match[1], int(match[2] or 0))


def _scalar(table: Table, key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and place(value) is None:
        raise table.error(key, f"`{value}` is neither an object nor an object and an offset", 'as in "out+4"')
    if isinstance(value, int | float | str):
        return value
    raise table.error(key, "a value is a number or the name of an object")


def _arguments(table: Table) -> tuple[Argument, ...]:
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
        type_ = _type(table, "args", name)
        offset = -(-offset // type_.bytes) * type_.bytes
        found.append(Piece(offset, type_, _scalar(table, "args", value)))
        offset += type_.bytes
    return tuple(found)


def _type(table: Table, key: str, name: object) -> Type:
    found = TYPES.get(f".{name}") if isinstance(name, str) else None
    if found is None or found.kind == "pred":
        raise table.error(key, f"`{name}` is not a type of a variable", "as in u32, s64, f32, b8")
    return found


def _object(table: Table, name: str, value: object) -> ObjectSpec:
    span = table.span(name)
    if _PLACE.fullmatch(name) is None or "+" in name:
        raise at(f"`{name}` is not a name", span, kind="format")
    if isinstance(value, str):
        return ObjectSpec(name, span, _type(table, name, value), None, None)
    if not isinstance(value, dict):
        raise table.error(name, "an object is a type or a table", 'as in data = { type = "u32", count = 2 }')
    for key in value:
        if key not in ("type", "count", "init", "align", "tensormap"):
            raise table.error(name, f"an object has no `{key}`", "it has type, count, init, align or tensormap")
    found = _described(table, name, value, span)
    alignment = table.number(value, "align", 1, 1 << 20, name)
    if alignment is not None and alignment & (alignment - 1):
        raise table.error(name, f"`align` is a power of two, not {alignment}")
    return replace(found, alignment=alignment)


def _described(table: Table, name: str, value: Mapping[str, Any], span: Span) -> ObjectSpec:
    if "tensormap" in value:
        return ObjectSpec(name, span, Type("b", 8), 128, None, _tensormap(table, name, value["tensormap"]))
    type_ = _type(table, name, value["type"]) if "type" in value else None
    count = table.number(value, "count", 1, MAX_ELEMENTS, name)
    given = value.get("init")
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


def _tensormap(table: Table, name: str, value: object) -> TensorMapSpec:
    known = {"target", "type", "box", "dims", "strides", "steps"}
    if not isinstance(value, dict) or not {"target", "type", "box"} <= value.keys() <= known:
        raise table.error(name, "a tensor map has target, type, box and perhaps dims, strides, steps")

    def numbers(key: str) -> tuple[int, ...] | None:
        if key not in value:
            return None
        found = [integer(item) for item in (value[key] if isinstance(value[key], list) else [value[key]])]
        if not found or None in found:
            raise table.error(name, f"`{key}` of a tensor map is a list of numbers, innermost dimension first")
        return tuple(n for n in found if n is not None)

    target = value["target"]
    if not isinstance(target, str):
        raise table.error(name, "the target of a tensor map is an object")
    type_, box = _type(table, name, value["type"]), numbers("box") or ()
    dims, strides, steps = numbers("dims"), numbers("strides"), numbers("steps")
    for what, found, wanted in (("dims", dims, 0), ("strides", strides, 1), ("steps", steps, 0)):
        wanted = len(box) - wanted
        if found is not None and len(found) != wanted:
            raise table.error(name, f"a box of {len(box)} dimensions needs {wanted} of `{what}`, not {len(found)}")
    if dims is None and len(box) > 1:
        raise table.error(name, "a tensor of several dimensions needs `dims`", "as in box = [4, 2], dims = [8, 6]")
    return TensorMapSpec(target, type_, box, dims, strides, steps)


def _host(table: Table) -> dict[str, tuple[str, Span]]:
    found: dict[str, tuple[str, Span]] = {}
    for name, value in table.subtable("host").items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not isinstance(value, str):
            raise table.error(name, "a host thread is a name and its instructions", 'as in H0 = "..."')
        found[name] = (value, table.text_of(name, value))
    return found


def _condition(table: Table, checks: Mapping[str, Any]) -> RawCondition | None:
    given = table.string(checks, "condition")
    if given is None:
        return None
    if not given.strip():
        raise table.error("condition", "the condition is empty", 'as in "~exists (out[0] == 1)"')
    span = table.text_of("condition", given)
    # As far into a text as it is in the file, so that every place is that of the file.
    before = "\n" * (span.line - 1) + " " * (span.column - 1)
    inner = open_text(before + given, table.text.file)
    final = parse_final(inner, inner.characters, len(before))
    if final.condition is None or final.locations or final.filter is not None:
        raise at("the condition is `exists`, `~exists` or `forall` and a proposition", span, kind="condition")
    return final.condition


def _closest(name: str, known: set[str]) -> str:
    from difflib import get_close_matches

    matches = get_close_matches(name, known, 1)
    return f"did you mean `{matches[0]}`?" if matches else "known are " + ", ".join(sorted(known))
