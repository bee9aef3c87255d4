"""Elected lanes: ``elect.sync`` elects one lane of a mask, and does not say which (PTX ISA 9.7.14.14, A60).

In the one execution it is the lowest one. For all others, what the elected lane does that the rest do not is done here
by a *leader*, a thread beside those of the launch, one for each warp. So each lane does what it does if it is not
elected. The leader stands for whichever lane it is: it begins with what all lanes have in their registers alike, comes
after what all lanes come after, and nobody but itself comes after what it does, unless all lanes have come to where
that is handed on. This is less order than any execution has, and the same accesses, whatever lane is elected.

What the elected lane leaves in registers is not known to the others, nor to itself when it is one of them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from ptxmm.program.graph import reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.computing import results
from ptxmm.whole.execution.state import ENDED, RUNS, WAITS, State, Stopped
from ptxmm.whole.execution.values import unknown
from ptxmm.whole.order.clocks import Release
from ptxmm.whole.order.origins import ELECTED, Derived, Origin, Result, Words

_MATTERS = "which lane is elected makes a difference here (9.7.14.14)"
_HARMLESS = (*ops.COMPUTING, ops.Branch)


def _picked(choice: Words, words: tuple[int, int]) -> int | None:
    return None if choice[0] is None else words[choice[0]]


class _Way(Struct, frozen=True):
    """What follows a branch on who is elected: where the ways come together, the registers that the leader needs, and
    those that it leaves different; ``sound``: whether the others only compute, and nothing that they need there."""

    stop: int
    needed: frozenset[str]
    left: frozenset[str]
    sound: bool


class Leaders:
    """The leaders of the warps of ``state``, whose numbers come after those of its threads."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.lanes: dict[int, Numbers] = {}
        """Of each leader the lanes that elect."""
        self.running: dict[int, int] = {}
        """Where each leader that runs stops; its lanes wait for it there."""
        self._results: dict[int, Result] = {}
        self._ways: dict[tuple[int, int], _Way] = {}

    def elected(self, at: int, threads: Numbers) -> Result:
        """Lanes of a warp elect one of them: what each of them gets, which is 0 for those that are not elected."""
        leader = self.state.count + self.state.warp(int(threads[0]))
        known = self.lanes.setdefault(leader, threads)
        if not np.array_equal(known, threads):
            message = "elections of different lanes of a warp are not followed yet"
            raise Stopped("unsupported", message, at, int(threads[0]))
        return self._results.setdefault(leader, Result((ELECTED, leader), 0))

    def among(self, threads: Numbers) -> Numbers:
        """The leaders all of whose lanes are among ``threads``."""
        if not self.lanes:
            return threads[:0]
        here = set(threads.tolist())
        return np.array([leader for leader, lanes in self.lanes.items() if here.issuperset(lanes.tolist())], np.int64)

    def split(self, truths: Mapping[int, tuple[Origin, bool]], at: int) -> list[tuple[int, bool]]:
        """The leaders that go another way than their lanes, by the predicates of these in threads that execute ``at``
        together, and whether theirs holds."""
        found = []
        groups: dict[int, dict[int, tuple[bool, bool]]] = {}
        for thread, (origin, holds) in truths.items():
            keys = set(origin.reads())
            ((kind, leader),) = keys if len(keys) == 1 else ((0, 0),)
            if kind != ELECTED:
                raise Stopped("undecided", _MATTERS, at, thread)
            word = origin.given({(ELECTED, leader): 1})
            if word is None:
                raise Stopped("undecided", _MATTERS, at, thread)
            groups.setdefault(leader, {})[thread] = holds, word != 0
        for leader, lanes in groups.items():
            if all(own == other for own, other in lanes.values()):
                continue
            if len(set(lanes.values())) > 1 or not set(self.lanes[leader].tolist()) <= lanes.keys():
                raise Stopped("undecided", _MATTERS, at, next(iter(lanes)))
            found.append((leader, next(iter(lanes.values()))[1]))
        return found

    def branch(self, leader: int, at: int, taken: bool) -> None:
        """A leader goes another way than its lanes at a branch, which it has ``taken``."""
        op = self.state.body[at]
        assert isinstance(op, ops.Branch)
        ways = (op.target, at + 1) if taken else (at + 1, op.target)
        way = self._way(at, *ways)
        if not way.sound:
            raise Stopped("undecided", _MATTERS, at, int(self.lanes[leader][0]))
        self._start(leader, ways[0], way)

    def alone(self, leader: int, at: int, guard: str, word: bool) -> None:
        """A leader executes an instruction that its lanes skip."""
        op = self.state.body[at]
        left = frozenset(name for name, _ in definitions(op))
        self._start(leader, at, _Way(at + 1, frozenset(name for name, _ in uses(op)), left, True))
        self.state.put(guard, leader, int(word))

    def _way(self, at: int, own: int, others: int) -> _Way:
        if (at, own) not in self._ways:
            body, launch = self.state.body, self.state.launch
            graph, live = launch.graph, launch.live
            stop = launch.joins.get(at, graph.end)
            mine = reach(graph.after, [own], stop) - {stop, graph.end}
            theirs = reach(graph.after, [others], stop) - {stop, graph.end}
            needed = _names(body, mine, False) & (live[own] if own != stop else frozenset())
            after = live[stop]
            sound = all(isinstance(body[pc], (*_HARMLESS, ops.Exit)) for pc in theirs)
            sound &= not _names(body, theirs, True) & after
            self._ways[at, own] = _Way(stop, needed, _names(body, mine, True) & after, sound)
        return self._ways[at, own]

    def _start(self, leader: int, pc: int, way: _Way) -> None:
        state, lanes = self.state, self.lanes[leader]
        if leader in self.running:
            raise Stopped("undecided", _MATTERS, pc, int(lanes[0]))
        for name in way.needed:
            state.share(name, lanes, leader)
        clocks = state.clocks
        clocks.acquire(np.array([leader]), [Release(clocks.common(clocks.views(lanes)), leader, 0)])
        state.mode[leader], state.pc[leader] = RUNS, pc
        state.mode[lanes], state.pc[lanes] = WAITS, way.stop
        self.running[leader] = way.stop
        for name in way.left:
            state.lose(name, lanes)

    def stopped(self) -> list[int]:
        """The leaders that have come to where they stop."""
        state = self.state
        return [g for g, stop in self.running.items() if state.mode[g] == RUNS and state.pc[g] == stop]

    def end(self, leader: int) -> None:
        """A leader is one of its lanes again."""
        del self.running[leader]
        self.state.mode[leader], self.state.mode[self.lanes[leader]] = ENDED, RUNS

    def lead(self, op: ops.Op, guard: ops.Guard, at: int, chosen: Numbers) -> Numbers:
        """The leaders of warps that execute an instruction which their lanes do not, or the other way round, begin;
        those of the threads ``chosen`` that execute it all the same."""
        for leader, word in self.split(self.state.apart, at):
            lanes, holds = self.lanes[leader], word ^ guard.negated
            if isinstance(op, ops.Branch):
                self.branch(leader, at, holds)
                chosen = np.setdiff1d(chosen, lanes)
            elif isinstance(op, ops.COMPUTING):
                self._choose(op, at, leader, holds)
                chosen = np.setdiff1d(chosen, lanes)
            elif holds and not isinstance(op, ops.Exit):  # else one of the lanes that go on has ended
                self.alone(leader, at, guard.register, word)
            else:
                message = "which lane is elected makes a difference here (9.7.14.14)"
                raise Stopped("undecided", message, at, int(lanes[0]))
        return chosen

    def _choose(self, op: ops.Op, at: int, leader: int, holds: bool) -> None:
        """What the lanes of a leader compute, if they are elected and ``holds``, or if they are not and it does not."""
        lanes, elected = self.lanes[leader], self.elected(at, self.lanes[leader])
        for register, value in results(self.state, op, lanes):
            assert register is not None
            before = self.state.register(register.name, lanes)
            self.state.assign(register, lanes, unknown(len(lanes)))
            for number in np.flatnonzero(value.known & before.known).tolist():
                words = int(before.words[number]), int(value.words[number])
                chosen = words if holds else words[::-1]
                origin = Derived(partial(_picked, words=chosen), (elected,), chosen[0])
                self.state.origins.setdefault(register.name, {})[int(lanes[number])] = origin


def _names(body: Sequence[ops.Op], pcs: set[int], written: bool) -> frozenset[str]:
    """The registers that instructions write, or read."""
    of = definitions if written else uses
    return frozenset(name for pc in pcs for name, _ in of(body[pc]))
