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
        whole = _Table(opened, document, data, 0, len(document))
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


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What holds for all launches with what one of them says: its tables add their keys, or say them anew."""
    found = {**common, **own}
    for key in ("objects", "host", "check"):
        first, second = common.get(key), own.get(key)
        if isinstance(first, dict) and isinstance(second, dict):
            found[key] = {**first, **second}
    return found


class _Table:
    """The keys of one launch with their places: ``document[start:end]``."""

    def __init__(self, text: Text, document: str, data: Mapping[str, Any], start: int, end: int) -> None:
        self.text, self.document, self.data, self.start, self.end = text, document, data, start, end

    def launches(self) -> list[_Table]:
        """The tables of the launches: this one, or its ``[[launch]]`` tables."""
        several = self.data.get("launch")
        if several is None:
            if not self.data:
                raise at("there is no launch specification here", Span(1, 1, 2), kind="format")
            return [self]
        if not isinstance(several, list) or not all(isinstance(item, dict) for item in several):
            raise self.error("launch", "`launch` is an array of tables", "write [[launch]]")
        starts = [match.start() for match in re.finditer(r"^[ \t]*\[\[\s*launch\s*\]\]", self.document, re.MULTILINE)]
        common = {key: value for key, value in self.data.items() if key != "launch"}
        if len(starts) != len(several):
            starts = [0] * len(several)
        ends = [*starts[1:], len(self.document)]
        return [
            _Table(self.text, self.document, _merged(common, item), start, end)
            for item, start, end in zip(several, starts, ends, strict=True)
        ]

    def span(self, key: str) -> Span:
        """Where ``key`` (dotted below a table) is given."""
        last = key.rpartition(".")[2]
        found = None
        for start, end in ((self.start, self.end), (0, len(self.document))):
            # `key =`, with what comes before and after it in a dotted key, or the `[key]` of a table.
            name = rf"(?:\"?[\w-]+\"?\.)*\"?{re.escape(last)}\"?(?:\.\"?[\w-]+\"?)*"
            pattern = re.compile(rf"(?<![\w.-]){name}[ \t]*(?==(?!=))|\[[\w.\s-]*\b{re.escape(last)}\s*\]")
            found = found or pattern.search(self.document, start, end)
        if found is None:
            return Span(1, 1, 2)
        return self.text.span(found.start(), found.end())

    def error(self, key: str, message: str, hint: str | None = None) -> PtxmmError:
        return at(message, self.span(key), kind="format", hint=hint)

    def spans_of(self, key: str, items: list[Any]) -> list[Span]:
        """Where each of ``items``, the list that ``key`` is, stands: its text if it is a string, else the key."""
        whole = self.span(key)
        position = self.text.starts[whole.line - 1] + whole.end_column - 1
        found: list[Span] = []
        for item in items:
            quoted = rf"([\"']){re.escape(item)}\1" if isinstance(item, str) else None
            match = re.compile(quoted).search(self.document, position) if quoted is not None else None
            found.append(whole if match is None else self.text.span(match.start(), match.end()))
            position = position if match is None else match.end()
        return found

    def text_of(self, key: str, value: str) -> Span:
        """Where the string ``value`` of ``key`` stands: its first character."""
        head = value[:20].split("\n")[0].replace("\\", "\\\\")
        line = self.span(key)
        begin = self.text.starts[line.line - 1]
        place = self.document.find(head, begin) if head else -1
        return line if place < 0 else self.text.span(place, place + max(1, len(head)))


def _launch(table: _Table, file: str, text: str) -> Launch:
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
    checks: dict[str, Any] = told(lambda: _subtable(table, "check"), {})
    wrong += [
        table.error(key, f"`{key}` is not something to check", _closest(key, _CHECKS))
        for key in checks
        if key not in _CHECKS
    ]
    objects: dict[str, Any] = told(lambda: _subtable(table, "objects"), {})
    read = [told(lambda name=name, value=value: _object(table, name, value), None) for name, value in objects.items()]  # type: ignore[misc]
    launch = Launch(
        name=told(lambda: _string(table, data, "name"), None),
        kernel=told(lambda: _string(table, data, "kernel"), None),
        grid=grid,
        block=block,
        cluster=cluster,
        shared=told(lambda: _number(table, data, "shared", 0, 1 << 20), None) or 0,
        threads=told(lambda: _threads(table, ctas, size), ()) if sized else (),
        args=told(lambda: _arguments(table), ()),
        objects=tuple(item for item in read if item is not None),
        host=told(lambda: _host(table), {}),
        condition=told(lambda: _condition(table, checks), None),
        races=told(lambda: _races(table, checks), False),
        robust=told(lambda: _flag(table, checks, "robust"), False),
        unroll=told(lambda: _number(table, checks, "unroll", 0, 1000), None),
        spans={key: table.span(key) for key in _PLACES},
        file=file,
        text=text,
    )
    if wrong:
        raise together(wrong)
    return launch


def _subtable(table: _Table, key: str) -> dict[str, Any]:
    found = table.data.get(key, {})
    if not isinstance(found, dict):
        raise table.error(key, f"`{key}` is a table", f"write [{key}]")
    return found


def _string(table: _Table, data: Mapping[str, Any], key: str) -> str | None:
    found = data.get(key)
    if found is not None and not isinstance(found, str):
        raise table.error(key, f"`{key}` is a string")
    return found


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(
    table: _Table, data: Mapping[str, Any], key: str, low: int, high: int, within: str | None = None
) -> int | None:
    """The number that ``data`` has for ``key``; ``within``: the key whose value ``data`` is, to name its place."""
    if key not in data:
        return None
    found = _integer(data[key])
    if found is None or not low <= found <= high:
        raise table.error(within or key, f"`{key}` is a number from {low} to {high}")
    return found


def _flag(table: _Table, data: Mapping[str, Any], key: str) -> bool:
    found = data.get(key, False)
    if not isinstance(found, bool):
        raise table.error(key, f"`{key}` is true or false")
    return found


def _races(table: _Table, data: Mapping[str, Any]) -> bool:
    found = data.get("races")
    if found not in (None, "none"):
        raise table.error("races", '`races` can only be "none"', "leave it out where races are no matter")
    return found == "none"


def _dimensions(table: _Table, key: str) -> Dimensions:
    given = table.data.get(key, 1)
    numbers = [_integer(item) for item in (given if isinstance(given, list) else [given])]
    if not 1 <= len(numbers) <= 3 or not all(n is not None and 1 <= n < 1 << 31 for n in numbers):
        raise table.error(key, f"`{key}` is one to three positive numbers", f"as in {key} = 2 or {key} = [2, 1, 1]")
    x, y, z = (*(n or 1 for n in numbers), 1, 1)[:3]
    return x, y, z


def _threads(table: _Table, ctas: int, size: int) -> tuple[tuple[int, int], ...]:
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


def _scalar(table: _Table, key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and place(value) is None:
        raise table.error(key, f"`{value}` is neither an object nor an object and an offset", 'as in "out+4"')
    if isinstance(value, int | float | str):
        return value
    raise table.error(key, "a value is a number or the name of an object")


def _arguments(table: _Table) -> tuple[Argument, ...]:
    given = table.data.get("args", [])
    if not isinstance(given, list):
        raise table.error("args", "`args` is a list", 'as in args = ["data", 4]')
    spans = table.spans_of("args", given)
    return tuple(_argument(table, item, span) for item, span in zip(given, spans, strict=True))


def _argument(table: _Table, item: object, span: Span) -> Argument:
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


def _fields(table: _Table, items: list[Any]) -> tuple[Piece, ...]:
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


def _type(table: _Table, key: str, name: object) -> Type:
    found = TYPES.get(f".{name}") if isinstance(name, str) else None
    if found is None or found.kind == "pred":
        raise table.error(key, f"`{name}` is not a type of a variable", "as in u32, s64, f32, b8")
    return found


def _object(table: _Table, name: str, value: object) -> ObjectSpec:
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
    alignment = _number(table, value, "align", 1, 1 << 20, name)
    if alignment is not None and alignment & (alignment - 1):
        raise table.error(name, f"`align` is a power of two, not {alignment}")
    return replace(found, alignment=alignment)


def _described(table: _Table, name: str, value: Mapping[str, Any], span: Span) -> ObjectSpec:
    if "tensormap" in value:
        return ObjectSpec(name, span, Type("b", 8), 128, None, _tensormap(table, name, value["tensormap"]))
    type_ = _type(table, name, value["type"]) if "type" in value else None
    count = _number(table, value, "count", 1, MAX_ELEMENTS, name)
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


def _tensormap(table: _Table, name: str, value: object) -> TensorMapSpec:
    known = {"target", "type", "box", "dims", "strides", "steps"}
    if not isinstance(value, dict) or not {"target", "type", "box"} <= value.keys() <= known:
        raise table.error(name, "a tensor map has target, type, box and perhaps dims, strides, steps")

    def numbers(key: str) -> tuple[int, ...] | None:
        if key not in value:
            return None
        found = [_integer(item) for item in (value[key] if isinstance(value[key], list) else [value[key]])]
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


def _host(table: _Table) -> dict[str, tuple[str, Span]]:
    found: dict[str, tuple[str, Span]] = {}
    for name, value in _subtable(table, "host").items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not isinstance(value, str):
            raise table.error(name, "a host thread is a name and its instructions", 'as in H0 = "..."')
        found[name] = (value, table.text_of(name, value))
    return found


def _condition(table: _Table, checks: Mapping[str, Any]) -> RawCondition | None:
    given = _string(table, checks, "condition")
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
