"""What pictures call relations, and the text in their boxes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from ptxmm.analysis.explain.expected import Gap
from ptxmm.analysis.result import GraphEvent
from ptxmm.render.style import clean

WIDEST = 44
"""Characters in a line of a box."""
MOST_LINES = 6
"""What one instruction does is told in so many lines."""

KINDS = ("rf", "co", "fr", "sync", "fsc", "phase", "asynchronous", "dependency", "absent", "race", "other")
"""What links are told apart by: of several relations between two boxes, the first."""

AMISS = ("absent", "race")
"""Kinds of links that have no direction if they hold both ways."""

_SHORT = {
    "barphase": ("bar", "phase"),
    "syncbar": ("bar", "phase"),
    "sync_barrier": ("bar", "phase"),
    "warpphase": ("warp", "phase"),
    "cluphase": ("cluster", "phase"),
    "mbphase": ("mbarrier", "phase"),
    "exitphase": ("exit", "phase"),
    "issue": ("start", "asynchronous"),
    "issue-all": ("start", "asynchronous"),
    "aord": ("inside", "asynchronous"),
    "acomp": ("done", "asynchronous"),
    "sync_fence": ("fsc", "fsc"),
    "fsc": ("fsc", "fsc"),
    "api": ("api", "sync"),
    "api-indirect": ("api", "sync"),
    "trigger": ("trigger", "sync"),
    "addr": ("addr", "dependency"),
    "data": ("data", "dependency"),
    "ctrl": ("ctrl", "dependency"),
    "obs": ("obs", "rf"),
    "po-loc": ("po", "other"),
    "ms": ("strong", "other"),
}
_ABSENT = {"coherence order": "no co", "Fence-SC order": "no fsc"}
_LACKING = {
    "synchronization": "no sync",
    "Fence-SC order": "no fsc",
    "completion": "no done",
    "moral strength": "not strong",
    "causality order": "no proxy fence",
}
_SILENT = {"BA", "BW", "CA", "CW", "ISS", "AW", "API", "EX"}
"""Kinds of events that do what their instruction says, and nothing else."""


def short(relation: str) -> tuple[str, str]:
    """What a relation is called on a link, and the kind of that."""
    if relation.startswith("sync-"):
        return "sync", "sync"
    return _SHORT.get(relation, (relation, relation if relation in KINDS else "other"))


def absent(order: str | None) -> str:
    """What a link is called that ``order`` (in words) does not have."""
    return _ABSENT.get(order or "", "missing")


def lacking(gap: Gap) -> str:
    """What a link is called where a step is no order."""
    return _LACKING[gap.text]


def effects(events: list[GraphEvent]) -> Iterator[str]:
    """What the events of one instruction do, each once."""
    found = dict.fromkeys(filter(None, map(_effect, events)))
    shown = list(found)
    if len(shown) > MOST_LINES:
        shown[MOST_LINES - 1 :] = [f"and {len(shown) - MOST_LINES + 1} more"]
    yield from shown


def _effect(event: GraphEvent) -> str:
    if event.location is not None:
        value = "" if event.value is None else f" = {event.value}"
        return clean(f"{'reads' if event.kind == 'R' else 'writes'} {event.location}{value}")
    return "" if event.kind in _SILENT else clean(event.view.action.removesuffix(", asynchronously"))


def wrapped(text: str, indent: str, width: int = WIDEST) -> tuple[str, ...]:
    """``text`` in lines of at most ``width`` columns, broken before a dot or after a blank or a comma; all but the
    first begin with ``indent``."""
    lines, line, used = [], "", 0
    for piece in re.split(r"(?<=[\s,])|(?=\.)", clean(text)):
        for part in _cut(piece, width - len(indent)):
            if used + columns(part.rstrip()) > width and line.strip():
                lines.append(line.rstrip())
                line, used, part = indent, len(indent), part.lstrip()
            line, used = line + part, used + columns(part)
    return (*lines, line.rstrip())


def _cut(piece: str, width: int) -> Iterator[str]:
    while columns(piece) > width:
        size = len(piece)
        while columns(piece[:size]) > width:
            size -= 1
        yield piece[:size]
        piece = piece[size:]
    yield piece


def columns(text: str) -> int:
    """How many columns of a fixed-width font ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
