"""What an engine is asked for and what it answers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from ptxmm.errors import Timeout
from ptxmm.program.condition import MemoryTerm, RegisterTerm, State, Term
from ptxmm.program.identity import EventId


class Limits(Struct, frozen=True):
    """``unroll``: how often each backward branch is taken at most; ``deadline``: on ``time.monotonic()``, or None;
    ``states``: how many final states are listed at most, or None; it bounds nothing else that ``Search`` reports."""

    unroll: int = 3
    deadline: float | None = None
    states: int | None = None

    def check(self) -> None:
        """Raise ``Timeout`` once the deadline has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise Timeout


class Source(Struct, frozen=True):
    """Where the bytes ``offset .. offset+size`` of the physical object ``key`` come from in a read.

    ``write`` is the event of the write, None for the initial write. Offsets count from the start of the object.
    """

    key: str
    offset: int
    size: int
    write: EventId | None


class Witness(Struct, frozen=True):
    """One execution, complete enough to be executed again without a search.

    ``values``: the unsigned value that each read returns, each wait at an mbarrier (0 or 1) and each arrival whose
    state a register takes. ``reads``: for each read the sources of its bytes, which cover it. ``co``: pairs of
    non-initial writes in coherence order, transitively closed (initial writes come first and are left out).
    ``fence_sc``: pairs of fence.sc events in Fence-SC order. ``phases``: for each executed barrier event the number
    of the phase of its barrier (its CTA and id) that it takes part in; in the dialect 0, or None for one whose
    arrival is not of the chosen subset and only its wait takes part; for an operation on an mbarrier ``epoch *
    2**20 + phase``: how often it had been initialised by an instruction, and the phase that an arrival counts in
    or, for a wait, how many phases were complete. ``last``: for each observed byte range the co-maximal write its
    final value comes from (``Source.write`` None: the initial one). ``deadlocked``: the steps at which threads wait for
    ever, or stop where a barrier is misused; such an execution has no final state. ``order``: the operations on
    mbarriers as they ran, where the model asks for it (``mbnext``). ``unroll``: where this is only the beginning of an
    execution, or one that has no meaning, the bound of loops; each thread ends, stops at the bound or at a read that
    has no value here, or waits.
    ``misuse``: a barrier is misused. ``open``: reads whose values the engine did not need to know; they are what their
    sources hold.
    """

    values: Mapping[EventId, int]
    reads: Mapping[EventId, tuple[Source, ...]]
    co: frozenset[tuple[EventId, EventId]]
    fence_sc: frozenset[tuple[EventId, EventId]]
    phases: Mapping[EventId, int | None]
    last: tuple[Source, ...]
    deadlocked: frozenset[EventId] = frozenset()
    order: tuple[EventId, ...] = ()
    unroll: int | None = None
    misuse: bool = False
    open: frozenset[EventId] = frozenset()


class Observed(Struct, frozen=True):
    """What distinguishes two outcomes: the registers and the memory elements listed, in this order."""

    registers: tuple[RegisterTerm, ...]
    memory: tuple[MemoryTerm, ...]


def observing(named: Iterable[Term]) -> Observed:
    """The registers and memory elements among ``named``."""
    found = tuple(named)
    return Observed(
        tuple(t for t in found if isinstance(t, RegisterTerm)), tuple(t for t in found if isinstance(t, MemoryTerm))
    )


class Found(Struct, frozen=True):
    """A final state (restricted to what is observed) and an execution that ends in it."""

    state: State
    witness: Witness


class Search(Struct):
    """The answer of an engine.

    ``found``: distinct final states. ``exhausted``: no further one exists up to the unrolling bound; False where
    ``Limits.states`` were found, and where the search was only for states that decide a proposition. ``bounded``:
    some consistent execution takes a backward branch more often than the bound. ``deadlock``: some consistent
    execution waits for ever at a barrier. ``timeout``: the deadline ended the search (then nothing else is claimed
    beyond ``found``). ``undefined``: why the program has no meaning in some consistent execution, or None.
    ``loops``: those branches, as (thread, index in its body), where the engine tells them apart.
    ``flags``: names of the model's ``flag`` checks that hold in some consistent execution, or in what all threads have
    executed of one when each has ended, goes round a spin loop once more, waits for ever or is cut by the bound.
    """

    found: list[Found] = field(default_factory=list)
    exhausted: bool = False
    bounded: bool = False
    loops: set[tuple[int, int]] = field(default_factory=set)
    deadlock: bool = False
    timeout: bool = False
    undefined: str | None = None
    flags: set[str] = field(default_factory=set)


__all__ = ["Found", "Limits", "Observed", "Search", "Source", "Witness"]
