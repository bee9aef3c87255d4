"""The events of one path of a thread, as the explicit side runs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxmm.events.expressions import Node
from ptxmm.program.test import TENSORMAP, EventId
from ptxmm.ptx.ops import Op

Cell = tuple[str, int, int]
"""Bytes of memory: key of the object, offset of the first byte in it, number of bytes."""


@dataclass(slots=True)
class Event:
    """One event of a thread, or an initial write (``op`` None).

    ``kind``: R W; F (memory and proxy fences); BA BW CA CW MBI MBA MBW (barriers, clusters, mbarriers); ISS AW PF
    (issue, wait and implicit proxy fences of asynchronous operations); API. ``cell`` is physical, ``place`` virtual
    (a fence of the tensormap proxy has a place only). ``value``: what a W writes or an R returns; ``leaf``: the
    number of an R among the leaves of its thread. ``addr``, ``data``, ``ctrl``: the reads of the thread, as bits by
    number, that it depends on. ``barrier``: id (or mask) and count. ``mbarrier``: the physical object and offset.

    Program order: ``turn`` counts the instructions of the path; events of one turn are ordered by ``stage`` if their
    ``lane`` is the same. ``asynchronous`` events are not in it. For those the positions in the trace of other
    events: ``issuer``, their issue event (or -1); ``after``, what comes before them in their operation. ``completes``
    are the positions of the events that this one waits for. ``covers``: the events an implicit proxy fence covers.
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
    mbarrier: tuple[str, int] | None = None
    turn: int = 0
    lane: int = -1
    stage: int = 0
    asynchronous: bool = False
    issuer: int = -1
    after: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    covers: tuple[int, ...] = ()

    @property
    def opaque(self) -> bool:
        """Whether this is a read of a tensor map by a copy: an opaque object, taken as one write left it."""
        return self.kind == "R" and self.id[3] == TENSORMAP


@dataclass(frozen=True, slots=True)
class Step:
    """What an instruction does in the simulation of barriers.

    ``kind``: bar.sync bar.arrive warp.sync cluster.arrive cluster.wait mb.init mb.inval mb.arrive mb.drop mb.expect
    mb.complete mb.increment mb.wait. ``number``: barrier id, mask, count of an init, arrivals, bytes, or the result
    of a wait (0 or 1). ``count``: number of threads of a CTA barrier, or None. ``instance``: of the untyped dialect.
    ``place``: of an mbarrier, its physical object and offset. ``expect``: bytes expected before an arrival;
    ``no_complete``: the arrival must not complete the phase. ``state``: a wait by state, the arrival that returned it
    or its value; ``parity``: a wait by parity. ``asynchronous``: it happens at any time after the thread has passed
    it. ``event``: how many events of the trace come before it.
    """

    id: EventId
    kind: str
    number: int = 0
    count: int | None = None
    instance: int | None = None
    place: tuple[str, int] | None = None
    expect: int = 0
    no_complete: bool = False
    state: EventId | int | None = None
    parity: int | None = None
    asynchronous: bool = False
    event: int = 0


@dataclass(slots=True)
class Trace:
    """One path of a thread.

    ``end``: ``end``; ``cut`` (a backward branch was to be taken once more than the bound); ``spin`` (a spin loop
    went round without effect); ``impossible`` (no value is left for a choice). ``reads``: what the leaves of
    expressions stand for, by number: reads, and for a token of an mbarrier its arrival. ``tokens``: the leaf number
    of each such arrival. ``waits``: the result of each wait on an mbarrier. ``steps``: what it does at barriers.
    ``constraints``: expressions, the values they must have, and how many events came before the choice. ``outside``:
    the first instruction that is undefined, such as an access outside every object, in words, and how many events
    came before it, or None. ``forks``: the
    decisions of paths not taken here. ``lost``: writes outside every object, or misaligned.
    """

    thread: int
    events: list[Event] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    tokens: dict[EventId, int] = field(default_factory=dict)
    waits: dict[EventId, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    constraints: list[tuple[Node, int, int]] = field(default_factory=list)
    registers: dict[str, Node] = field(default_factory=dict)
    end: str = "end"
    outside: tuple[str, int] | None = None
    forks: list[tuple[int, ...]] = field(default_factory=list)
    lost: int = 0
