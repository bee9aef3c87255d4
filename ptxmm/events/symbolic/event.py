"""The events of the symbolic side: what a thread may do, and when."""

from __future__ import annotations

from msgspec import Struct, field

from ptxmm.events.symbolic.values.domain import Domain, Reads, Value
from ptxmm.program.identity import EventId
from ptxmm.program.test import OwnerPath
from ptxmm.ptx.ops import Op
from ptxmm.relations.formula import FALSE, TRUE, Formula


class Place(Struct, frozen=True):
    """Where a memory event may act: the object by its virtual and physical key and the byte range in it."""

    when: Formula
    physical: str
    virtual: str
    offset: int
    size: int

    def contains(self, cell: tuple[str, int, int]) -> bool:
        """Whether all bytes of ``cell`` (physical key, offset, size) are of this place."""
        key, offset, size = cell
        return key == self.physical and self.offset <= offset and offset + size <= self.offset + self.size


Mbarrier = tuple[str, int]
"""An mbarrier: the physical key of its object and the byte offset in it."""


class Event(Struct):
    """An event of a thread. ``kind``: R W F PF AF BA BW CA CW MBI MBA MBW MBP (a wait that returns false) MBV
    (``mbarrier.inval``) ISS AW API EX GD (``griddepcontrol.launch_dependents``).
    ``value``: what a write writes, or a read returns (of the access's width).

    ``address``, ``data``, ``control`` are the reads it depends on, ``left`` those that decided that the loops before it
    were left. ``operation``: the asynchronous operation that the
    event belongs to, its issue included, or -1. ``stage`` orders the parts of one instruction in program order.
    ``covers``: the bytes that an acquire fence of the tensormap proxy is for.
    ``after``: the events of asynchronous operations that complete before it; ``group``: how many groups of products of
    matrices do. ``mbarriers``: those an mbarrier event
    may act on, and when. ``home``: the CTA (as ``MemoryObject.owner``) that takes the place of its thread in scopes.
    """

    number: int
    kind: str
    thread: int
    id: EventId
    presence: Formula
    op: Op
    places: list[Place] = field(default_factory=list)
    value: Domain = field(default_factory=lambda: Domain({}))
    address: Reads = field(default_factory=dict)
    data: Reads = field(default_factory=dict)
    control: Reads = field(default_factory=dict)
    left: Reads = field(default_factory=dict)
    operation: int = -1
    stage: int = 0
    covers: list[Place] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    group: int = -1
    mbarriers: dict[Mbarrier, Formula] = field(default_factory=dict)
    home: OwnerPath | None = None

    @property
    def asynchronous(self) -> bool:
        """Whether it is performed by an asynchronous operation, out of program order."""
        return self.operation >= 0 and self.kind != "ISS"


class Operation(Struct):
    """An asynchronous operation on some path: the events that it is issued after and those that perform it, by number.

    ``number`` is its own. ``kind``: cp.async bulk store arrive wgmma tensor. ``grouped``: whether a commit of its kind
    puts it into a group, and ``group`` the number of that group. ``product``: of a product in tensor memory the address
    of its accumulator with its kind, and its instruction descriptor.
    """

    number: int
    kind: str
    thread: int
    issues: list[int]
    grouped: bool
    events: list[int] = field(default_factory=list)
    group: int = -1
    product: tuple[tuple[int, str], Domain] = ((0, ""), Domain({}))


class SyncEvent(Struct):
    """A step of a thread that takes part in the simulation of barriers, on some path, with its possible operands.

    ``kind``: bar.sync bar.arrive bar.red warp.sync warp.exchange cluster.arrive cluster.wait mb.init mb.inval mb.arrive
    mb.drop mb.expect mb.complete mb.increment mb.wait. ``number`` is its own among all steps of the program; it tells
    steps with the same id apart that are on paths which were not merged. ``(id, kind)`` is one step of an execution.

    ``barrier``: the id of a CTA barrier. ``count``: how many threads of a CTA barrier (None: all), or arrivals of
    mb.init, mb.arrive and mb.drop. ``mask``: the lanes of a warp. ``place``: the mbarrier of all mb kinds.
    ``amount``: the bytes of mb.expect and mb.complete, and those an arrival with ``.expect_tx`` expects first.
    mb.wait has either ``parity`` or ``state``, and ``outcome``, the formula under which it returns True;
    ``state_of``: the mb.arrive or mb.drop of this thread whose token ``state`` is, None where it is not that plain.
    ``tokens``: for an arrival that writes a register, its candidate tokens and when each is the one.
    ``counted``: whether anything but a wait looks at them; if not, scenarios leave out all but one pending count.
    ``no_complete``: the arrival must not complete the phase. ``asynchronous``: it happens any time after the steps
    of the thread before it, and those after it do not wait for it.
    bar.red and warp.exchange give ``source`` to the threads that they meet and take ``result`` from them, as
    ``operation`` with its types and, for a shuffle, ``operands`` say; either is None where it takes part in no result.
    ``aligned``: of an instruction that the threads of a warp execute together, which one it is; one that is no
    barrier is a warp.exchange of the operation ``aligned``.
    """

    id: EventId
    kind: str
    op: Op
    presence: Formula
    number: int
    barrier: Domain | None = None
    count: Domain | None = None
    instance: int | None = None
    mask: Domain | None = None
    place: dict[Mbarrier, Formula] | None = None
    amount: Domain | None = None
    parity: Domain | None = None
    state: Domain | None = None
    state_of: EventId | None = None
    outcome: Formula = TRUE
    tokens: Domain | None = None
    no_complete: bool = False
    asynchronous: bool = False
    counted: bool = True
    operation: str = ""
    operands: tuple[Domain, ...] = ()
    source: Value | None = None
    result: Domain | None = None
    aligned: str | None = None


class ThreadEvents(Struct):
    """What one thread may do: when it ends (``completed``, or ``cut`` by the bound) and with which registers.
    ``loops``: for each backward branch when it is the one that is cut. ``spun``: when it would go round a spin loop
    once more."""

    barriers: list[SyncEvent]
    completed: Formula
    cut: Formula
    registers: dict[str, Domain]
    loops: dict[int, Formula] = field(default_factory=dict)
    spun: Formula = FALSE
