"""What the simulation of barriers finds."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ptxmm.program.identity import EventId


class Meeting(Struct, frozen=True):
    """How the barriers of one choice of paths turn out.

    ``reached``: for each thread the number of its steps that it comes to. ``phases``: the phase in which each of those
    executed counts. CTA, warp and cluster barriers: from 0; in the dialect 0, or None of those outside the chosen
    subset, whose waits are in 0 all the same. ``mbarrier.init``: 0. Other operations on an mbarrier: ``EPOCH`` times
    the number of initialisations before, plus the phase that an arrival counts in, or the number of phases completed
    when a wait ran. ``waiting``: threads that wait for ever at the last step they came to, or whose last step is the
    misuse. ``misuse``: why the program has no meaning, or None. ``tokens``: the state that each ``mbarrier.arrive``
    returns, ``(phase << 20) | pending arrivals``. ``completed``: how many phases each mbarrier has completed since it
    was last initialised. ``order``: the operations on mbarriers as they ran, where that is told apart.
    """

    reached: tuple[int, ...]
    phases: Mapping[EventId, int | None]
    waiting: frozenset[int] = frozenset()
    misuse: str | None = None
    tokens: Mapping[EventId, int] = field(default_factory=dict)
    completed: Mapping[tuple[str, int], int] = field(default_factory=dict)
    order: tuple[EventId, ...] = ()
