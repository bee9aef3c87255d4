"""Selections of threads of a launch: ``all``, ``cta 0-1 warp 0 lane 0``, ``cta 0 thread 0,32``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ptxmm.formats.threads import MAX_THREADS
from ptxmm.program.placement import WARP_SIZE

_SELECTION = re.compile(r"\s*(cta|warp|lane|thread)\s+([0-9][0-9,\s-]*)")


class NoSelection(Exception):
    """A text that selects no threads."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def selected(selections: Iterable[str], ctas: int, size: int, most: int = MAX_THREADS) -> tuple[tuple[int, int], ...]:
    """The (cta, thread) numbers that ``selections`` select of ``ctas`` CTAs of ``size`` threads, in order; ``most``: so
    many at most.

    Raises ``NoSelection``.
    """
    found: set[tuple[int, int]] = set()
    for selection in selections:
        every = selection.strip() == "all"
        chosen, numbers = (range(ctas), range(size)) if every else _selection(selection, ctas, size)
        # The number first: a launch may have more threads than there is memory for.
        many = len(chosen) * len(numbers)
        if many <= most:
            found.update((cta, thread) for cta in chosen for thread in numbers)
            many = len(found)
        if many > most:
            message = f"{many} threads run; at most {most} are supported"
            raise NoSelection(message, 'choose some: threads = "lane 0"')
    return tuple(sorted(found))


def _selection(selection: str, ctas: int, size: int) -> tuple[Sequence[int], Sequence[int]]:
    """The CTAs, and the threads in each of them, that ``selection`` names."""
    levels: dict[str, list[int]] = {}
    position = 0
    limits = {"cta": ctas, "warp": -(-size // WARP_SIZE), "lane": min(WARP_SIZE, size), "thread": size}
    while position < len(selection.rstrip()) or not levels:
        match = _SELECTION.match(selection, position)
        if match is None or match[1] in levels:
            hint = "write `cta 0-1 warp 0 lane 0` or `cta 0 thread 0,32`"
            raise NoSelection(f"`{selection}` does not select threads", hint)
        levels[match[1]] = _list(match[2], match[1], limits[match[1]])
        position = match.end()
    if "thread" in levels and levels.keys() & {"warp", "lane"}:
        raise NoSelection("`thread` is the number in the CTA: it goes without `warp` and `lane`")
    numbers = levels.get("thread") or [
        warp * WARP_SIZE + lane
        for warp in levels.get("warp", range(limits["warp"]))
        for lane in levels.get("lane", range(WARP_SIZE))
        if warp * WARP_SIZE + lane < size
    ]
    if not numbers:
        raise NoSelection(f"`{selection}` selects no thread: a CTA has {size}")
    return levels.get("cta", range(ctas)), numbers


def _list(text: str, level: str, limit: int) -> list[int]:
    found: list[int] = []
    for item in text.replace(" ", "").strip(",").split(","):
        first, _, last = item.partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or len(first) > 9 or len(last) > 9:
            raise NoSelection(f"`{text.strip()}` is not a list of numbers", "as in 0,2-5")
        low, high = int(first), int(last or first)
        if low > high:
            raise NoSelection(f"`{item}` goes down", f"write {high}-{low}")
        if high >= limit:
            raise NoSelection(f"there is no {level} {high}: they go from 0 to {limit - 1}")
        if len(found) + high - low >= limit:  # more than there are
            raise NoSelection(f"`{text.strip()}` names some {level} twice")
        found += range(low, high + 1)
    return found
