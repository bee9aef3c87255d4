"""The state of an mbarrier, and what each operation makes of it (PTX ISA 9.7.14.15, decisions A31, A32)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.explicit.trace import Step
from ptxmm.program.test import Test

MOST = (1 << 20) - 1
"""The largest count of arrivals, and the largest size of a tx-count (9.7.14.15.2)."""

EPOCH = 1 << 20
"""Phases of one initialisation and those of the next are so far apart in ``Meeting.phases``; also the unit of the phase
in a token."""


class Mbarrier(Struct, frozen=True):
    """An mbarrier: whether it is initialised, its expected and pending arrivals, its tx-count, its phase, and how often
    ``mbarrier.init`` has initialised it."""

    live: bool = False
    expected: int = 0
    pending: int = 0
    tx: int = 0
    phase: int = 0
    epoch: int = 0

    @property
    def record(self) -> int:
        """The present phase as ``Meeting.phases`` gives it."""
        return self.epoch * EPOCH + self.phase

    @property
    def token(self) -> int:
        """The state that an arrival returns now."""
        return self.phase * EPOCH + self.pending


def initial(test: Test, place: tuple[str, int]) -> Mbarrier:
    """The mbarrier at ``place`` (physical object, offset) before the program."""
    item = test.objects.get(place[0])
    if item is None or not item.mbarrier:
        return Mbarrier()
    index, rest = divmod(place[1], item.type.bytes)
    counts = item.mbarrier[index] if not rest and 0 <= index < len(item.mbarrier) else None
    return Mbarrier() if counts is None else Mbarrier(True, max(counts[0], 1), *counts)


def operate(mbarrier: Mbarrier, step: Step) -> Mbarrier | str:
    """The mbarrier after ``step`` (not a wait), or why the operation is undefined.

    An operation but an init needs an initialised one; this is for the caller to see to.
    """
    name = _name(step)
    if step.kind == "mb.init":
        if mbarrier.live:
            return f"{name} is initialised again without mbarrier.inval"
        if not 1 <= step.number <= MOST:
            return f"{name} is initialised with the count {step.number}"
        return Mbarrier(True, step.number, step.number, 0, 0, mbarrier.epoch + 1)
    if step.kind == "mb.inval":
        return replace(mbarrier, live=False)
    if step.kind == "mb.increment":
        if mbarrier.pending == MOST:
            return f"the pending count of {name} is too large"
        return replace(mbarrier, pending=mbarrier.pending + 1)
    arrivals = step.number if step.kind in ("mb.arrive", "mb.drop") else 0
    if step.kind in ("mb.arrive", "mb.drop") and not 1 <= arrivals <= MOST:
        return f"{step.number} arrivals at once at {name}"
    tx = mbarrier.tx + transactions(step)
    if abs(tx) > MOST:
        return f"the tx-count of {name} leaves its range"
    pending = mbarrier.pending - arrivals
    if pending < 0:
        return f"more arrivals at {name} than its phase expects"
    expected = mbarrier.expected - (arrivals if step.kind == "mb.drop" else 0)
    if pending or tx:
        return replace(mbarrier, expected=expected, pending=pending, tx=tx)
    if step.no_complete:
        return f"an arrival with .noComplete completes the phase of {name}"
    if expected < 0:
        return f"more arrivals dropped from {name} than it expects"
    return replace(mbarrier, expected=expected, pending=expected, tx=0, phase=mbarrier.phase + 1)


def transactions(step: Step) -> int:
    """What ``step`` adds to the tx-count."""
    if step.kind == "mb.expect":
        return step.number
    return -step.number if step.kind == "mb.complete" else step.expect


def wait_result(mbarrier: Mbarrier, step: Step, token: int) -> int | str:
    """What a test_wait or try_wait returns now (0 or 1), or why it is undefined (9.7.14.15.16).

    ``token``: the phase that a wait by state waits for.
    """
    if step.parity is not None:
        return int(mbarrier.phase & 1 != step.parity)
    if token not in (mbarrier.phase, mbarrier.phase - 1):
        return f"a wait for a phase of {_name(step)} that is neither the current one nor the one before"
    return int(mbarrier.phase > token)


def most_completions(mbarrier: Mbarrier, steps: Iterable[Step]) -> int:
    """No order of ``steps``, or of some of them, completes more phases than this."""
    arrivals = dropped = count = 0
    for step in steps:
        count += 1
        if step.kind in ("mb.init", "mb.inval"):
            return MOST
        if step.kind in ("mb.arrive", "mb.drop"):
            arrivals += step.number
            dropped += step.number if step.kind == "mb.drop" else 0
    if arrivals < mbarrier.pending:
        return 0
    least = mbarrier.expected - dropped
    # Where a phase may expect no arrival any more, each operation may complete one by its bytes.
    return 1 + count if least <= 0 else 1 + (arrivals - mbarrier.pending) // least


def one_phase(mbarrier: Mbarrier, steps: Iterable[Step]) -> bool:
    """Whether in every order all of ``steps`` (no waits) count in the present phase, and none is undefined.

    A sufficient condition: the arrivals are not more than are pending, and bytes alone can't complete the phase early.
    """
    arrivals = size = 0
    tx = mbarrier.tx
    loose: list[int] = []
    for step in steps:
        if step.kind not in ("mb.arrive", "mb.drop", "mb.expect", "mb.complete") or step.no_complete:
            return False
        change = transactions(step)
        size += abs(change)
        if step.kind in ("mb.arrive", "mb.drop"):
            if step.number < 1:
                return False
            arrivals += step.number
            tx += change
        else:
            loose.append(change)
    if arrivals > mbarrier.pending or abs(mbarrier.tx) + size > MOST:
        return False
    if arrivals < mbarrier.pending or not loose:
        return True
    # With all arrivals made the phase ends as soon as the tx-count is 0: not before the last operation, it must be.
    sums = {(tx, 0)}
    for change in loose:
        sums |= {(total + change, taken + 1) for total, taken in sums}
    return all(total or taken == len(loose) for total, taken in sums)


def _name(step: Step) -> str:
    assert step.place is not None
    key, offset = step.place
    return f"mbarrier {key}+{offset}" if offset else f"mbarrier {key}"
