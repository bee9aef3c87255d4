"""The launch specification: which kernel of a module runs, on what, and what must hold of it (docs/modules.md).

It is a TOML document: a file of its own, or the comments of a source that begin with ``// ptxmm:``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.files import MAX_BYTES, NotToml, toml
from ptxmm.formats.conditions import START, condition_meant, parse_final
from ptxmm.formats.modules.arguments import ObjectSpec, object_of
from ptxmm.formats.modules.demangle import qualified
from ptxmm.formats.modules.grids import KEYS, PLACED, Grid, grid_of, teller
from ptxmm.formats.modules.selection import NoSelection, selected
from ptxmm.formats.modules.table import Table
from ptxmm.formats.text import Text, at, open_text
from ptxmm.formats.threads import MAX_THREADS
from ptxmm.program.naming import did_you_mean
from ptxmm.program.source import RawCondition
from ptxmm.program.test import AssumedReading

NO_TIMEOUT = "no-timeout"
"""The name of the assumption that no wait gives up (``timeouts``)."""
SAME_VALUE = "same-value-races"
"""The name of the assumption that writes of the same value may race (``program.same_value``)."""
DESTINATION_CTA = "destination-cta"
"""The name of the assumption that what a bulk copy writes in shared memory is done in the CTA that has it."""
ELECT_FIRST = "elect-first"
"""The name of the assumption that ``elect.sync`` elects the lowest lane of its mask."""
WGMMA_SYNC = "wgmma-sync"
"""The name of the assumption that ``wgmma.wait_group`` orders what the threads of a warpgroup did before."""
WARP_COPY = "warp-copy"
"""The name of the assumption that ``tensormap.cp_fenceproxy`` is one copy of its warp."""
WARP_WAIT = "warp-wait"
"""The name of the assumption that lanes which come to a wait for an mbarrier together ask together."""
ACTIVE_TOGETHER = "active-together"
"""The name of the assumption that all lanes of a warp which come to an ``activemask`` execute it together."""
EXIT_WAITS = "exit-waits"
"""The name of the assumption that a CTA does not end before bulk copies of its threads have read its memory."""
ARRIVES_AGAIN = "arrives-again"
"""The name of the assumption that what a warp does again at a barrier before its phase is complete counts again."""
ASSUMPTIONS = {
    NO_TIMEOUT, SAME_VALUE, DESTINATION_CTA, ELECT_FIRST, WGMMA_SYNC, WARP_COPY, WARP_WAIT, EXIT_WAITS, ARRIVES_AGAIN,
    ACTIVE_TOGETHER,
}  # fmt: skip
"""The assumptions that are no readings."""

_COMMENT = re.compile(r"^[ \t]*//[ \t]*ptxmm:(?![ \t]*allow\b)(?:(?!\S)(.*)|(\S.*))$", re.MULTILINE)
_MOST_GRIDS = 64
_OF_SOME = {"races", "bounds", "unroll"}
"""What some of the threads can refute for all of them."""
_WHOLE = ("name", "objects", "host", "check", "launch", "assume", "grids")
"""What is said of a launch, and not of one grid."""
_CHECKS = ("condition", "races", "robust", "unroll", "bounds", "barriers", "traps")


class Launch(Struct, frozen=True):
    """One launch: its ``grids``, at least one, in the order in which they are launched, the threads of the host beside
    them, and what must hold of all that together. ``unroll``: the bound of loops, None for that of the command line.
    ``assume``: the names of assumptions; ``readings``: those that it assumes. ``spans``: where each key stands."""

    name: str | None
    grids: tuple[Grid, ...]
    objects: tuple[ObjectSpec, ...]
    host: Mapping[str, tuple[str, Span]]
    condition: RawCondition | None
    races: bool
    robust: bool
    bounds: bool
    barriers: bool
    traps: bool
    unroll: int | None
    assume: tuple[str, ...] = ()
    readings: tuple[AssumedReading, ...] = ()
    spans: Mapping[str, Span] = field(default_factory=dict)
    file: str = "<text>"
    text: str = ""

    @property
    def gpus(self) -> set[int]:
        """Those on which its grids run."""
        return {grid.gpu for grid in self.grids}

    def error(self, where: str | Span, message: str, kind: str = "format", hint: str | None = None) -> PtxmmError:
        """An error at a key that is said of the whole, or at a place in the specification."""
        span = self.spans[where] if isinstance(where, str) else where
        return at(message, span, kind=kind, hint=hint).place(self.file, self.text)


def has_comments(text: str) -> bool:
    """Whether ``text`` says something of its launch."""
    return _COMMENT.search(text) is not None


def parse_launches(text: str, file: str, whole: bool = False) -> tuple[Launch, ...]:
    """The launches that ``text``, a TOML file or a source with ``// ptxmm:`` comments, specifies; at least one.
    ``whole``: with all their threads, whatever these are chosen for.

    Raises ``PtxmmError`` with its place in ``file`` (kind ``format``; ``condition`` and ``syntax`` for the condition).
    """
    opened = open_text(text, file, MAX_BYTES)
    document = opened.characters if file.lower().endswith(".toml") else _comments(opened.characters)
    try:
        try:
            data = toml(document)
        except NotToml as error:
            raise _decode_error(opened, str(error)) from None
        top = Table(opened, document, data, 0, len(document))
        wrong: list[PtxmmError] = []
        found: list[Launch] = []
        for table in top.launches():
            try:
                found.append(_launch(table, file, opened.characters, whole))
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


def _launch(table: Table, file: str, text: str, whole: bool) -> Launch:
    data = table.data
    several = "grids" in data
    wrong = _unknown(table)
    told = teller(wrong)
    parts = told(lambda: _parts(table), [table])
    for part in parts if several else ():
        wrong += _misplaced(part)
    grids = tuple(grid_of(part, number, whole, wrong) for number, part in enumerate(parts))
    wrong += _out_of_order(grids, parts)
    running = sum(len(grid.threads) for grid in grids)
    if len(grids) > 1 and running > MAX_THREADS and not whole:
        message = f"{running} threads run in {len(grids)} grids; at most {MAX_THREADS} are supported"
        wrong.append(table.error("grids", message, 'choose some: threads = "lane 0"'))
    checks: dict[str, Any] = told(lambda: table.subtable("check"), {})
    wrong += [
        table.error(key, f"`{key}` is not something to check", _closest(key, _CHECKS))
        for key in checks
        if key not in _CHECKS
    ]
    objects: dict[str, Any] = told(lambda: table.subtable("objects"), {})
    read = [told(partial(object_of, table, name, value), None) for name, value in objects.items()]
    for grid, part in zip(grids, parts, strict=True):
        if grid.open and not (checks and checks.keys() <= _OF_SOME):
            message = f"{grid.ctas * grid.size} threads run; at most {MAX_THREADS} are supported"
            hint = 'choose some: threads = "lane 0"; where only races or bounds are checked, those of each role run'
            wrong.append(part.error("block", message, hint))
    assumed = told(lambda: _assumptions(table, file), _Assumed())
    launch = Launch(
        name=told(lambda: table.string(data, "name"), None),
        grids=grids,
        objects=tuple(item for item in read if item is not None),
        host=told(lambda: _host(table), {}),
        condition=told(lambda: _condition(table, checks), None),
        races=told(lambda: _said(table, checks, "races", "none"), False),
        bounds=told(lambda: _said(table, checks, "bounds", "none outside"), False),
        barriers=told(lambda: _said(table, checks, "barriers", "convergent"), False),
        traps=told(lambda: _said(table, checks, "traps", "none"), False),
        robust=told(lambda: table.flag(checks, "robust"), False),
        unroll=told(lambda: table.number(checks, "unroll", 0, 1000), None),
        assume=assumed.names,
        readings=assumed.readings,
        spans={key: table.span(key) for key in ("grids", *_CHECKS)},
        file=file,
        text=text,
    )
    if wrong:
        raise together(wrong)
    return launch


def _unknown(table: Table) -> list[PtxmmError]:
    """What stands in a launch and is not said of one."""
    known = (*_WHOLE, *KEYS)
    return [
        table.error(key, f"`{key}` is said of a grid", "write it below a [[grids]]")
        if key in PLACED
        else table.error(key, f"`{key}` is not part of a launch specification", _closest(key, known))
        for key in table.data
        if key not in known
    ]


def _parts(table: Table) -> list[Table]:
    """The tables of the grids: the ``[[grids]]`` of ``table``, each with what ``table`` says of all, or ``table``."""
    if "grids" not in table.data:
        return [table]
    common = {key: value for key, value in table.data.items() if key in KEYS}
    found = table.several("grids", common)
    if not 1 <= len(found) <= _MOST_GRIDS:
        raise table.error("grids", f"a launch has 1 to {_MOST_GRIDS} grids, not {len(found)}")
    return found


def _misplaced(part: Table) -> list[PtxmmError]:
    """What stands below a ``[[grids]]`` and is not said of one."""
    known = (*KEYS, *PLACED)
    return [
        part.error(key, f"`{key}` is said of the whole launch, not of a grid", "write it before the first [[grids]]")
        if key in _WHOLE
        else part.error(key, f"`{key}` is not part of a grid", _closest(key, known))
        for key in part.data
        if key not in known
    ]


def _out_of_order(grids: tuple[Grid, ...], parts: list[Table]) -> list[PtxmmError]:
    """Programmatic launches of which no grid comes before."""
    found: list[PtxmmError] = []
    seen: set[int] = set()
    for grid, part in zip(grids, parts, strict=True):
        if "after" in part.data and grid.after == "programmatic" and grid.gpu not in seen:
            message = f"no grid of GPU {grid.gpu} comes before this one"
            found.append(part.error("after", message, "the grids of a GPU stand in the order of their launch"))
        seen.add(grid.gpu)
    return found


class _Assumed(Struct, frozen=True):
    """What ``assume`` says: names of assumptions, and readings."""

    names: tuple[str, ...] = ()
    readings: tuple[AssumedReading, ...] = ()


def _assumptions(table: Table, file: str) -> _Assumed:
    given = table.data.get("assume", [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        hint = f'as in assume = ["{NO_TIMEOUT}"], or a reading: assume = ["vector=whole"]'
        raise table.error("assume", "`assume` is a list of names", hint)
    lines = table.text.characters.split("\n")
    readings: dict[str, AssumedReading] = {}
    names: dict[str, None] = {}
    for name, span in zip(given, table.spans_of("assume", given), strict=True):
        key, sign, value = (part.strip() for part in name.partition("="))
        if sign and key and value:
            if readings.setdefault(key, AssumedReading(key, value, file, lines[span.line - 1], span)).value != value:
                raise at(f"two values of the reading `{key}`", span, kind="format")
        elif name in ASSUMPTIONS:
            names[name] = None
        else:
            hint = f"{_closest(name, ASSUMPTIONS)}; a reading is written key=value"
            raise at(f"`{name}` is no assumption", span, kind="name", hint=hint)
    return _Assumed(tuple(names), tuple(readings.values()))


def _said(table: Table, data: Mapping[str, Any], key: str, word: str) -> bool:
    """Whether ``key`` is there: then it is ``word``."""
    found = data.get(key)
    if found not in (None, word):
        raise table.error(key, f'`{key}` can only be "{word}"', f"leave it out where {key} are no matter")
    return found == word


def with_threads(launch: Launch, selections: str) -> Launch:
    """``launch`` with other threads in each of its grids: selections as in ``threads``, separated by ``;``.

    Raises ``PtxmmError`` (kind ``usage``).
    """
    try:
        chosen = [selected(selections.split(";"), grid.ctas, grid.size) for grid in launch.grids]
        grids = [replace(grid, threads=threads, open=False) for grid, threads in zip(launch.grids, chosen, strict=True)]
        return replace(launch, grids=tuple(grids))
    except NoSelection as error:
        raise PtxmmError(f"--threads: {error.message}", kind="usage", hint=error.hint) from None


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
    if not START.match(given.lstrip()) and condition_meant(given.lstrip()) is None:
        message = "the condition does not say in which executions it holds"
        raise at(
            message, span, kind="condition", hint=f"write `forall ({given.strip()[:60]})`, or `exists`, or `~exists`"
        )
    final = parse_final(inner, inner.characters, len(before), qualified)
    if final.condition is None or final.locations or final.filter is not None:
        raise at("the condition is `exists`, `~exists` or `forall` and a proposition", span, kind="condition")
    return final.condition


def _closest(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, sorted(known)) or "known are " + ", ".join(sorted(known))
