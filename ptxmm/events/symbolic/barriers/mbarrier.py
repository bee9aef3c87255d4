"""The state of an mbarrier on the symbolic side, and what each operation does to it (PTX ISA 9.7.14.15; A31, A32)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.barriers.paths import Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test

MOST = (1 << 20) - 1
"""The greatest count of arrivals and of bytes (9.7.14.15.2)."""
EPOCH = 20
"""By how many bits the number of initialisations stands above the number of the phase; so in tokens the phase."""


class Counts(Struct, frozen=True):
    """An mbarrier: how often it was initialised (``epoch``), whether it is now, and its counts and phase.

    ``last``: the latest arrival since it was initialised, where the order of arrivals is asked for.
    """

    epoch: int = 0
    live: bool = False
    expected: int = 0
    pending: int = 0
    tx: int = 0
    phase: int = 0
    last: EventId | None = None

    @property
    def stamp(self) -> int:
        """The phase, told apart from those after other initialisations."""
        return self.epoch << EPOCH | self.phase


class Done(Struct, frozen=True):
    """What an operation did: the counts after it, the phase it belongs to (None: no event), its token and outcome."""

    counts: Counts
    phase: int | None = None
    token: int | None = None
    outcome: bool | None = None


def initial_counts(test: Test) -> dict[tuple[str, int], Counts]:
    """The mbarriers that are initialised before the program."""
    found = {}
    for item in test.objects.values():
        for index, state in enumerate(item.mbarrier):
            if state is not None:
                pending, tx = state
                found[item.physical, index * item.type.bytes] = Counts(0, True, max(pending, 1), pending, tx, 0)
    return found


def unsound(arrival: Step) -> str | None:
    """Why an operation is wrong whatever the state of its mbarrier, or None."""
    count = 1 if arrival.count is None else arrival.count
    if arrival.kind in ("mb.init", "mb.arrive", "mb.drop") and not 1 <= count <= MOST:
        return f"a count of {count} arrivals at an mbarrier, which is not in 1..2^20-1"
    if arrival.kind == "mb.wait" and arrival.parity not in (None, 0, 1):
        return f"the parity {arrival.parity} of a wait, which is not 0 or 1"
    return None


def perform(counts: Counts, arrival: Step, token: int | None) -> Done | str:
    """What ``arrival`` does, or why that has no meaning; ``token``: of the state that a wait tests, or None."""
    name = f"mbarrier {arrival.place[0]}" if arrival.place is not None else "mbarrier"
    if arrival.kind == "mb.init":
        if counts.live:
            return f"{name} is initialised although it is already"
        count = arrival.count or 0
        return Done(Counts(counts.epoch + 1, True, count, count), 0)
    if not counts.live:
        return f"an operation on {name}, which is not initialised"
    match arrival.kind:
        case "mb.inval":
            return Done(replace(counts, live=False))
        case "mb.wait":
            return _wait(counts, arrival, token, name)
        case "mb.increment":
            if counts.pending == MOST:
                return f"more than 2^20-1 pending arrivals at {name}"
            return Done(replace(counts, pending=counts.pending + 1))
    return _arrive(counts, arrival, name)


def _wait(counts: Counts, arrival: Step, token: int | None, name: str) -> Done | str:
    if token is None:
        return Done(counts, counts.stamp, outcome=counts.phase & 1 != arrival.parity)
    phase = token >> EPOCH
    if counts.phase - phase not in (0, 1):
        return f"a wait at {name} for a phase that is neither the current one nor the one before"
    return Done(counts, counts.stamp, outcome=counts.phase > phase)


def _arrive(counts: Counts, arrival: Step, name: str) -> Done | str:
    """Arrivals and the counting of bytes; they may complete the phase."""
    tx = counts.tx - arrival.amount if arrival.kind == "mb.complete" else counts.tx + arrival.amount
    if not -MOST <= tx <= MOST:
        return f"more than 2^20-1 pending bytes at {name}"
    expected, pending = counts.expected, counts.pending
    if arrival.kind in ("mb.arrive", "mb.drop"):
        number = 1 if arrival.count is None else arrival.count
        pending -= number
        if arrival.kind == "mb.drop":
            expected -= number
    if pending < 0 or (pending == 0 == tx and expected < 0):
        return f"more arrivals at {name} than it expects in a phase"
    after = replace(counts, expected=expected, pending=pending, tx=tx)
    if pending == 0 == tx:
        if arrival.no_complete:
            return f"an arrival with .noComplete completes the phase of {name}"
        after = replace(after, pending=expected, phase=counts.phase + 1)
    token = counts.phase << EPOCH | counts.pending
    return Done(after, counts.stamp, token=token if arrival.token else None)
