"""Phases of an mbarrier: what was done in each, and who may know that it is complete (PTX ISA 9.7.14.15)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.state import Did, Moment, State
from ptxmm.whole.order.clocks import ISSUED, Release
from ptxmm.whole.order.strong import Head


class Moments(Struct):
    """What threads did, each at its clock, what they came after, and in which turn of the execution; ``arrived``: which
    of it are arrivals that the expected count is of; ``late``: whether some of it is asynchronous and happens later."""

    threads: list[int] = field(default_factory=list)
    clocks: list[int] = field(default_factory=list)
    views: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    arrived: list[bool] = field(default_factory=list)
    late: bool = False
    numbers: dict[tuple[int, int, int, bool], int] = field(default_factory=dict)
    """Which of them those are that differ in their turns alone: of these the last one counts."""

    def add(self, state: State, threads: Numbers, arrived: bool = False) -> None:
        """Something that ``threads`` do now."""
        clocks, views = state.clocks.clock[threads].tolist(), state.clocks.views(threads).tolist()
        for thread, clock, view in zip(threads.tolist(), clocks, views, strict=True):
            number = self.numbers.setdefault((thread, clock, view, arrived), len(self.turns))
            if number < len(self.turns):
                self.turns[number] = state.turn
                continue
            self.threads.append(thread)
            self.clocks.append(clock)
            self.views.append(view)
            self.turns.append(state.turn)
            self.arrived.append(arrived)
        state.turn += 1

    def known(self, state: State, threads: Numbers, timed: bool = False) -> Flags:
        """For each of ``threads`` which of these moments its next step comes after; ``timed``: in time at least."""
        return _after(state, state.clocks.views(threads), threads, self, timed)

    def behind(self, state: State, others: Moments) -> Flags:
        """For each of these moments which of the ``others`` it comes after."""
        found = _after(state, np.array(self.views, np.int64), np.array(self.threads, np.int64), others, True)
        return found & (np.array(self.turns)[:, None] > np.array(others.turns)[None, :])


def _after(state: State, views: Numbers, threads: Numbers, others: Moments, timed: bool) -> Flags:
    shape = len(views), len(others.threads)
    them, clocks = (np.tile(np.array(each, np.int64), shape[0]) for each in (others.threads, others.clocks))
    views = np.repeat(views, shape[1])
    found = state.clocks.after(views, np.repeat(threads, shape[1]), them, clocks)
    rest = np.flatnonzero(~found) if timed and state.clocks.timed else them[:0]
    if rest.size:
        found[rest] = state.clocks.passed([ISSUED] * len(rest), views[rest], them[rest], clocks[rest])
    return found.reshape(shape)


class Completed(Struct):
    """A phase that is complete: the ``waits`` that returned true for it, and what was done in it; ``led``: the waits of
    all lanes of a warp, as those of its leader."""

    waits: Moments
    done: Moments
    led: Moments = field(default_factory=Moments)


class Mbarrier(Struct):
    """An mbarrier at ``place`` of the arena, which the thread ``owner`` initialised by the instruction ``at`` when its
    clock was ``clock``, and which ``ended`` has invalidated; ``made``: the agent and the clock of that for those who
    learn of it by ``fence.mbarrier_init`` alone.

    ``expected``, ``pending``, ``tx`` and ``phase`` are those of 9.7.14.15; ``begun``: what was pending when the phase
    began; ``bytes``: all that it has counted. ``before`` is the phase before the present one, ``earlier`` that before
    it; ``done`` what has been done in the present one, ``needed`` what of that must come before some arrival of it;
    ``waiting`` the threads that wait for it. ``released``: the view of all that the phases before have released to
    waits, by the scopes of these; ``heads``: the arrivals of the present one that release, and the fences before
    arrivals; ``late``: what is done with it asynchronously. ``last``: what each thread did last.
    ``far``: what other CTAs did, in which phase, the thread with its clock, and the instruction; ``waited``: the last
    phase for which somebody has waited.
    """

    place: int
    name: str
    owner: int
    at: int
    clock: int
    made: tuple[int, int]
    expected: int
    pending: int
    begun: int
    before: Completed
    earlier: Completed
    released: dict[int, int] = field(default_factory=dict)
    heads: list[Head] = field(default_factory=list)
    late: list[Release] = field(default_factory=list)
    tx: int = 0
    bytes: int = 0
    phase: int = 0
    ended: Did | None = None
    done: Moments = field(default_factory=Moments)
    needed: Moments = field(default_factory=Moments)
    last: dict[int, Moment] = field(default_factory=dict)
    far: list[tuple[int, int, int, int]] = field(default_factory=list)
    waited: int = -1
    waiting: list[tuple[int, Numbers]] = field(default_factory=list)


def everything(it: Mbarrier) -> Moments:
    """What each thread did last at an mbarrier."""
    return Moments(list(it.last), [moment.clock for moment in it.last.values()])


class Counts(Struct, frozen=True):
    """What an operation does to the counts of an mbarrier: its ``arrivals``, and the bytes that it adds."""

    arrivals: int
    size: int
    drop: bool = False
    no_complete: bool = False


def some(done: Moments, after: Flags) -> Flags:
    """For each moment whether some arrival comes after it."""
    return np.asarray(after[np.array(done.arrived, np.bool_)].any(axis=0))
