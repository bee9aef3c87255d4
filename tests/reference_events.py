"""What a thread of the reference leaves behind: events, steps of barriers, paths."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.ptx import ops
from tests.reference_expressions import NOTHING, Expr, Leaf

Cell = tuple[str, int, int]
"""An object, an offset in it and a number of bytes."""

Place = tuple[str, int]
"""An mbarrier: its physical object and the offset in it."""

Owner = tuple[int, int, int | None, int | None]


class Event(Struct, frozen=True):
    """An event; ``cell`` is (physical object, offset, size), ``vcell`` the virtual one.

    ``step``: the number of its instruction on the path; ``part``: tells elements that are unordered apart, None for
    what is ordered with all of its instruction. ``sync``: in program order. ``proxy``: that of the operation.
    ``fences``: which proxy a proxy fence is for, ``space`` the part of memory it covers. ``owner``: the CTA that
    stands for the thread of a completion. ``done``: the steps of the operations that a wait has waited for; ``read``
    if only for the reading of their sources. ``covers``: the bytes of a tensormap fence. ``group``: how many groups of
    products the thread had before a product, or has waited for.
    """

    thread: int | None
    kind: str  # R W; FSC FAR FA FL PF AF X; EX BA BW CA CW MBI MBA MBW MBP MBV; TMREL TMACQ FMBI; ISS AW API
    scope: str | None = None  # of strong operations only
    proxy: str | None = None
    rel: bool = False
    acq: bool = False
    amo: bool = False
    noret: bool = False
    cell: Cell | None = None
    vcell: Cell | None = None
    value: Expr | None = None
    addr: frozenset[Leaf] = NOTHING
    data: frozenset[Leaf] = NOTHING
    ctrl: frozenset[Leaf] = NOTHING
    left: frozenset[Leaf] = NOTHING  # what decided that the loops before it were left
    read_half: Leaf | None = None  # of the write of an atomic
    step: int = 0
    part: int | None = None
    sync: bool = True
    fences: str | None = None
    space: str | None = None
    after: str = ""  # of an implicit proxy fence: "reads" or "writes"
    owner: Owner | None = None
    place: Place | None = None
    done: frozenset[int] = frozenset()
    read: bool = False
    covers: Cell | None = None
    product: tuple[str, int, str, int, int] | None = None
    group: int = -1


class Later(Struct, frozen=True):
    """An arrival that happens some time after its instruction; ``amount`` bytes, or None for one arrival."""

    event: int
    place: Place
    amount: Expr | None


class Step(Struct, frozen=True):
    """An instruction that takes part in the simulation of barriers; events are numbered within the thread.

    ``kind``: bar, warp, exchange, together, cluster.arrive, cluster.wait, init, inval, arrive, tx, wait, issue (starts
    ``later``).
    ``event``, ``wait``: the arrive half (or the only event) and the wait half; None if there is none.
    ``args``: barrier and count; mask; count; count and bytes; bytes; state and parity. ``gives``: what the thread gives
    to those that it meets (exchange, or bar with a reduction); ``source``: the lane that a shuffle takes from.
    """

    thread: int
    kind: str
    op: ops.Op
    event: int | None = None
    wait: int | None = None
    place: Place | None = None
    args: tuple[Expr | None, ...] = ()
    result: bool = False
    later: tuple[Later, ...] = ()
    gives: Expr | None = None
    source: int = -1


class Path(Struct, frozen=True):
    """A way through a thread: its events, the predicates that must be true or false for it, the final registers."""

    events: tuple[Event, ...]
    constraints: tuple[tuple[Expr, bool], ...]
    registers: dict[str, Expr]
    steps: tuple[Step, ...] = ()
    left: frozenset[Leaf] = NOTHING  # what decided that its loops were left


class Open(Struct, frozen=True):
    """A guard that is open until ``join``: the reads it depends on, the registers written meanwhile, a unique mark."""

    join: int
    reads: frozenset[Leaf]
    assigned: frozenset[str]
    mark: tuple[int, int]


class Run(Struct, frozen=True):
    """A thread in the middle of a path; ``groups``: for each kind of asynchronous operation the groups committed,
    as sets of steps, and last those that are in no group yet."""

    pc: int
    registers: dict[str, Expr]
    events: tuple[Event, ...]
    constraints: tuple[tuple[Expr, bool], ...]
    guards: tuple[Open, ...]
    taken: dict[int, int]
    writes_at: dict[int, int]  # the number of writes when the thread was last at this pc
    steps: tuple[Step, ...] = ()
    groups: tuple[tuple[str, frozenset[int]], ...] = ()
    loose: tuple[tuple[str, int], ...] = ()
    executed: tuple[tuple[ops.Op, tuple[Event, ...]], ...] = ()  # in threads with products
    left: frozenset[Leaf] = NOTHING  # the reads on which leaving the loops so far has depended
    missed: frozenset[Leaf] = NOTHING  # those on which coming to a barrier has

    def path(self) -> Path:
        """The thread as far as it has come."""
        return Path(self.events, self.constraints, self.registers, self.steps)
