"""The events of one path of a thread, as the explicit side runs it."""

from __future__ import annotations

from msgspec import Struct, field

from ptxmm.events.explicit.values.node import Node
from ptxmm.program.identity import TENSORMAP, EventId
from ptxmm.ptx.ops import Op, TensormapCopyFence, TensormapReplace, Type

Cell = tuple[str, int, int]
"""Bytes of memory: key of the object, offset of the first byte in it, number of bytes."""


class Event(Struct):
    """One event of a thread, or an initial write (``op`` None).

    ``kind``: R W; F (memory and proxy fences); BA BW CA CW MBI MBA MBW MBP MBV (barriers, clusters,
    mbarriers; MBP: a wait that returns false, MBV: an invalidation); ISS AW PF (issue, wait and implicit proxy fences
    of asynchronous operations); API; EX; GD (``griddepcontrol.launch_dependents``). ``cell`` is physical, ``place``
    virtual (a fence of the tensormap proxy has a place only). ``value``: what a W writes or an R returns; ``leaf``: the
    number of an R among the leaves of its thread. ``addr``, ``data``, ``ctrl``: the reads of the thread, as bits by
    number, that it depends on; ``left``: those on which leaving the loops before it depended. ``barrier``: id (or mask)
    and count. ``mbarrier``: the physical object and offset.

    Program order: ``turn`` counts the instructions of the path; events of one turn are ordered by ``stage`` if their
    ``lane`` is the same. ``asynchronous`` events are not in it. For those the positions in the trace of other events:
    ``issuer``, their issue event (or -1; ``issuers``, the fences, for a product of matrices); ``after``, what comes
    before them in their operation. ``completes`` are the positions of the events that this one waits for. ``covers``:
    the events an implicit proxy fence covers. ``group``: the number of the group of a product of matrices, or to
    how many such groups a wait is the end. ``accumulator``: of an access of tensor memory by a product its column of D,
    kind and shape.
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
    left: int = 0
    barrier: tuple[int, int | None] | None = None
    mbarrier: tuple[str, int] | None = None
    turn: int = 0
    lane: int = -1
    stage: int = 0
    asynchronous: bool = False
    issuer: int = -1
    issuers: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    covers: tuple[int, ...] = ()
    group: int = -1
    accumulator: tuple[Cell, str, int] | None = None

    @property
    def opaque(self) -> bool:
        """Whether this is a read of a tensor map by a copy."""
        return self.kind == "R" and self.id.operand == TENSORMAP

    @property
    def reads_map(self) -> bool:
        """Whether this is a read of a whole tensor map, each field of which is taken as one write left it."""
        return self.opaque or (self.kind == "R" and isinstance(self.op, TensormapReplace | TensormapCopyFence))


class Step(Struct, frozen=True):
    """What an instruction does in the simulation of barriers.

    ``kind``: bar.sync bar.arrive bar.red warp.sync warp.exchange cluster.arrive cluster.wait mb.init mb.inval mb.arrive
    mb.drop mb.expect mb.complete mb.increment mb.wait. ``number``: barrier id, mask, count of an init, arrivals, bytes,
    or the result of a wait (0 or 1). ``count``: number of threads of a CTA barrier, or None. ``instance``: of the
    untyped dialect. ``place``: of an mbarrier, its physical object and offset. ``expect``: bytes expected before an
    arrival; ``no_complete``: the arrival must not complete the phase. ``state``: a wait by state, the arrival that
    returned it or its value; ``parity``: a wait by parity. ``asynchronous``: it happens at any time after the thread
    has passed it. ``event``: how many events of the trace come before it. ``operation``: of a reduction or an exchange;
    only threads at the same one meet. ``source``: of a shuffle, the lane and the thread that it takes its value from
    (-1: no thread of the warp that is in the mask). ``aligned``: of an instruction that the threads of a warp execute
    together, what tells it from others; one that is no barrier is a warp.exchange of the operation ``aligned``.
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
    operation: str = ""
    source: tuple[int, int] | None = None
    aligned: tuple[object, ...] | None = None


class Exchange(Struct, frozen=True):
    """An instruction whose result is made of the values that several threads give.

    ``name``: red.OP (a barrier with a reduction), or as in ``ops.WarpExchange``; ``type``: of the operand. ``key``:
    equal for threads that may meet; ``threads``: who they are, each with its lane (``barrier``: as how many threads it
    counts); ``lane``: that of this thread. ``source``: the thread that a shuffle takes its value from (-1: none), and
    ``source_lane``, -1 if it is no shuffle. ``numbers``: of the leaves that its value and its predicate are (-1: none).
    ``step``: its index among the steps. ``where``: for messages.
    """

    id: EventId
    name: str
    type: Type
    key: tuple[object, ...]
    operand: Node
    threads: tuple[tuple[int, int], ...]
    lane: int
    numbers: tuple[int, int]
    step: int
    where: str
    source: int = -1
    source_lane: int = -1

    @property
    def barrier(self) -> bool:
        """Whether it is a barrier of the CTA."""
        return self.name.startswith("red.")

    def cell(self, thread: int) -> Cell:
        """What stands for the operands of a thread in such an exchange among the bytes that have values."""
        return f"exchange {self.key!r} {thread}", 0, 4


Position = tuple[int, int]
"""How many events and how many steps of a trace come before something."""


class Trace(Struct):
    """One path of a thread.

    ``end``: ``end``; ``cut`` (a backward branch was to be taken once more than the bound); ``spin`` (a spin loop
    went round without effect); ``impossible`` (no value is left for a choice); ``exchange`` (the values of other
    threads at the last of ``exchanges`` are not given); ``open`` (the values given end there). ``reads``: what the
    leaves of expressions stand for, by number: reads, for a token of an mbarrier its arrival, and for a result of
    ``exchanges`` an event of the kind ``X``, which is among no ``events``. ``tokens``: the leaf number of each such
    arrival. ``waits``: the result of each wait on an mbarrier, and predicates
    that may be either. ``steps``: what it does at barriers.
    ``constraints``: expressions, the values they must have, and where the choice is. ``outside``: the first
    instruction that is undefined, such as an access outside every object, in words, and where, or None. ``forks``:
    the decisions of paths not taken here. ``given``: the results of exchanges that the run was given. ``lost``:
    writes outside every object, or misaligned.
    """

    thread: int
    events: list[Event] = field(default_factory=list)
    reads: list[Event] = field(default_factory=list)
    tokens: dict[EventId, int] = field(default_factory=dict)
    waits: dict[EventId, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    given: dict[int, int] = field(default_factory=dict)
    constraints: list[tuple[Node, int, Position]] = field(default_factory=list)
    registers: dict[str, Node] = field(default_factory=dict)
    end: str = "end"
    outside: tuple[str, Position] | None = None
    forks: list[tuple[int, ...]] = field(default_factory=list)
    lost: int = 0

    @property
    def position(self) -> Position:
        """The end so far."""
        return len(self.events), len(self.steps)

    def exchange_of(self, number: int) -> tuple[Exchange, int] | None:
        """The exchange that the leaf ``number`` is a result of, and which; None if of none."""
        if self.reads[number].kind == "X":
            for x in self.exchanges:
                if number in x.numbers:
                    return x, x.numbers.index(number)
        return None
