"""One grid of a launch specification: its kernel, its size, the threads that run, its arguments, and its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, field

from ptxmm.errors import PtxmmError, Span
from ptxmm.formats.modules.arguments import Argument, arguments_of
from ptxmm.formats.modules.selection import NoSelection, selected
from ptxmm.formats.modules.table import Table, integer
from ptxmm.formats.threads import MAX_THREADS
from ptxmm.program.placement import CTA_SIZE

T = TypeVar("T")

Dimensions = tuple[int, int, int]
After = Literal["stream", "programmatic"]

KEYS = ("kernel", "grid", "block", "cluster", "shared", "threads", "args")
"""What is said of a grid."""
PLACED = ("gpu", "after")
"""What is said of a grid among others."""
_ORDERS: tuple[After, ...] = ("stream", "programmatic")
_MOST_CTAS = 1 << 16
_LONGEST = {"block": (1 << 31, 1 << 31, 64), "grid": (1 << 31, 65535, 65535)}
"""The most threads of a CTA (CUDA C++ Programming Guide, compute capabilities), and CTAs of a grid (PTX ISA 10, of
``%nctaid``), in each dimension, beside those of all."""
_MOST_GPUS = 64
_MOST_NAMED = 1 << 20
"""So many threads of a whole launch have a number."""


class Grid(Struct, frozen=True):
    """One grid. ``threads``: the (cta, thread) numbers that run, in order; ``open``: none were chosen, and all are too
    many. ``number``: its place among the grids of
    its launch; ``gpu``: where it runs; ``after``: whether it begins when those before it on its GPU have ended, or may
    begin earlier, as a programmatic launch (PTX ISA 9.7.14.13). ``spans``: where each key stands."""

    kernel: str | None
    grid: Dimensions
    block: Dimensions
    cluster: Dimensions | None
    shared: int
    threads: tuple[tuple[int, int], ...]
    args: tuple[Argument, ...]
    number: int = 0
    gpu: int = 0
    after: After = "stream"
    open: bool = False
    spans: Mapping[str, Span] = field(default_factory=dict)

    @property
    def ctas(self) -> int:
        """The number of CTAs."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def size(self) -> int:
        """The number of threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]


def grid_of(table: Table, number: int, whole: bool, wrong: list[PtxmmError]) -> Grid:
    """The grid that ``table`` describes; ``whole``: with all its threads; its ``threads`` are those that the
    condition calls by their numbers, none if these are the numbers of all. What is wrong is added to ``wrong``."""
    told = teller(wrong)
    one, before = (1, 1, 1), len(wrong)
    grid, block = told(lambda: _dimensions(table, "grid"), one), told(lambda: _dimensions(table, "block"), one)
    ctas, size = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    if size > CTA_SIZE:
        wrong.append(table.error("block", f"a CTA has at most {CTA_SIZE} threads, not {size}"))
    if ctas > _MOST_CTAS:
        wrong.append(table.error("grid", f"at most {_MOST_CTAS} CTAs are supported, not {ctas}"))
    sized = len(wrong) == before
    too_many = "threads" not in table.data and ctas * size > MAX_THREADS and not whole
    cluster = told(lambda: _dimensions(table, "cluster"), None) if "cluster" in table.data else None
    if cluster is not None and any(g % c for g, c in zip(grid, cluster, strict=True)):
        wrong.append(table.error("cluster", "the grid is not made of whole clusters"))
    return Grid(
        kernel=told(lambda: table.string(table.data, "kernel"), None),
        grid=grid,
        block=block,
        cluster=cluster,
        shared=told(lambda: table.number(table.data, "shared", 0, 1 << 20), None) or 0,
        threads=told(lambda: _threads(table, ctas, size, whole), ()) if sized and not too_many else (),
        args=told(lambda: arguments_of(table), ()),
        number=number,
        gpu=told(lambda: table.number(table.data, "gpu", 0, _MOST_GPUS - 1), None) or 0,
        after=told(lambda: _after(table), "stream"),
        open=too_many,
        spans={key: table.span(key) for key in (*KEYS, *PLACED)},
    )


def teller(wrong: list[PtxmmError]) -> Callable[[Callable[[], T], T], T]:
    """What reads one thing of several: where that is wrong it is told, and the others are read all the same."""

    def told(read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except PtxmmError as error:
            wrong.append(error)
            return otherwise

    return told


def _after(table: Table) -> After:
    given = table.data.get("after", "stream")
    if given not in _ORDERS:
        hint = "when those before it on its GPU have ended, or as a programmatic launch"
        raise table.error("after", '`after` is "stream" or "programmatic"', hint)
    order: After = given
    return order


def _dimensions(table: Table, key: str) -> Dimensions:
    given = table.data.get(key, 1)
    numbers = [integer(item) for item in (given if isinstance(given, list) else [given])]
    if not 1 <= len(numbers) <= 3 or not all(n is not None and 1 <= n < 1 << 31 for n in numbers):
        raise table.error(key, f"`{key}` is one to three positive numbers", f"as in {key} = 2 or {key} = [2, 1, 1]")
    x, y, z = (*(n or 1 for n in numbers), 1, 1)[:3]
    for letter, found, most in zip("xyz", (x, y, z), _LONGEST.get(key, ()), strict=False):
        if found > most:
            raise table.error(key, f"`{key}` has at most {most} in the dimension {letter}, not {found}")
    return x, y, z


def _threads(table: Table, ctas: int, size: int, whole: bool) -> tuple[tuple[int, int], ...]:
    given = table.data.get("threads", "all")
    selections = given if isinstance(given, list) else [given]
    if not selections or not all(isinstance(item, str) for item in selections):
        raise table.error("threads", "`threads` is a selection or a list of them", 'as in "cta 0 warp 0-1 lane 0"')
    if whole and selections == ["all"]:
        return ()
    try:
        return selected(selections, ctas, size, _MOST_NAMED if whole else MAX_THREADS)
    except NoSelection as error:
        raise table.error("threads", error.message, error.hint) from None
