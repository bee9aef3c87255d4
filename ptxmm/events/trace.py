"""The events of one path of a thread, as the explicit side runs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxmm.events.expressions import Node
from ptxmm.program.test import EventId
from ptxmm.ptx.ops import Op

Cell = tuple[str, int, int]
"""Bytes of memory: key of the object, offset of the first byte in it, number of bytes."""


@dataclass(slots=True)
class Event:
    """One event of a thread, or an initial write (``op`` None).

    ``kind``: R W F (memory and proxy fences) BA BW (arrival and wait of a barrier). ``cell`` is physical, ``place``
    virtual. ``value``: what a W writes or an R returns; ``leaf``: the number of an R among the reads of its
    thread. ``addr``,
    ``data``, ``ctrl``: the reads of the thread, as bits by number, that it depends on. ``barrier``: id and count.
    """

    id: EventId
    kind: str
    op: Op | None
    cell: Cell | None = None
    place: Cell | None = None
    value: Node | None = None
    leaf: int = -1
    addr: int = 0
    data: int = 0
    ctrl: int = 0
    barrier: tuple[int, int | None] | None = None


@dataclass(slots=True)
class Trace:
    """One path of a thread.

    ``end``: ``end``; ``cut`` (a backward branch was to be taken once more than the bound); ``spin`` (a spin loop
    went round without effect); ``impossible`` (no value is left for a choice). ``reads``: the reads by number.
    ``constraints``: expressions, the values they must have, and how many events came before the choice. ``outside``:
    the first access outside every object, in words, and how many events came before it, or None. ``forks``: the
    decisions of paths not taken here. ``lost``: writes outside every object.
    """

    thread: int
    events: list[Event] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    constraints: list[tuple[Node, int, int]] = field(default_factory=list)
    registers: dict[str, Node] = field(default_factory=dict)
    end: str = "end"
    outside: tuple[str, int] | None = None
    forks: list[tuple[int, ...]] = field(default_factory=list)
    lost: int = 0
