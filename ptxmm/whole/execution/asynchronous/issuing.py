"""What operations of tcgen05 come after: fences of tcgen05 and waits (PTX ISA 9.0, 9.7.16.6)."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from msgspec import Struct

from ptxmm.ptx import ops
from ptxmm.whole.arrays import Numbers
from ptxmm.whole.execution.accessing import Accessing
from ptxmm.whole.execution.asynchronous.copies import Copies
from ptxmm.whole.lenient import TENSOR_WAIT
from ptxmm.whole.order.clocks import HANDED, NOTHING, PIPED, Release

LOADS = "tcgen05.ld"


class Handed(Struct, frozen=True):
    """What a thread hands over by whatever it does after ``before_thread_sync``: views of what precedes that, and of
    the operations that are issued before it."""

    before: int
    issued: int


class Issuing:
    """What the threads of ``machine`` have come after where that orders their operations of tcgen05: ``resumed`` at
    their last ``after_thread_sync``, ``entered`` there or at their last ``fence.proxy.async``, which matrices in shared
    memory come after; ``waited``: what each knows to be done, by agents; ``handed``: what agents hand over; ``fenced``:
    whether some thread has executed a ``tcgen05.fence``."""

    def __init__(self, machine: Accessing, copies: Copies) -> None:
        self.machine, self._copies = machine, copies
        self._any = any(isinstance(op, ops.TensorOp) for op in machine.body)
        self.resumed, self.entered = (np.full(machine.every, NOTHING, np.int64) for _ in range(2))
        self.waited: dict[int, dict[int, Release]] = {}
        self.handed: dict[int, Handed] = {}
        self.fenced = False
        self._released: dict[Hashable, set[tuple[Handed, int, int, bool]]] = {}
        self._received: dict[int, set[Handed]] = {}
        self._issues: dict[int, tuple[object, ...]] = {}

    def fence(self, op: ops.TensorFence, at: int, threads: Numbers) -> None:
        """``tcgen05.fence``."""
        self.fenced = True
        if self.machine.regions.inside(threads):
            message = "a fence of tcgen05 that depends on what was read outside of a loop is not followed yet"
            self.machine.doubt(message, at, int(threads[0]))
        self.machine.tell("fence", None, 0, at, threads)
        if op.kind == "after":
            self._resume(threads)
            return
        clocks = self.machine.clocks
        for thread in threads.tolist():
            home, view = int(clocks.cta[thread]), int(clocks.views(np.array([thread]))[0])
            agent = self._copies.known(thread, "tcgen05")
            if agent is not None:
                issued = [Release(NOTHING, agent, self._copies.done(agent).clock)]
                clocks.hand(thread, PIPED, clocks.joined(home, clocks.layer(view, PIPED), issued))
            before = [clocks.release(thread), Release(clocks.layer(view, HANDED), thread, 0)]
            now = int(clocks.views(np.array([thread]))[0])
            self.handed[thread] = Handed(clocks.joined(home, NOTHING, before), clocks.layer(now, PIPED))

    def _resume(self, threads: Numbers) -> None:
        """What threads issue from now on comes after all that they come after."""
        clocks = self.machine.clocks
        for thread in threads.tolist():
            for handed in self._received.pop(thread, ()):
                clocks.hand(thread, HANDED, handed.before)
                clocks.hand(thread, PIPED, handed.issued)
        self.resumed[threads] = self.entered[threads] = self._done(threads)

    def proxied(self, threads: Numbers) -> None:
        """What threads came after before ``fence.proxy.async`` their later reads of matrices come after."""
        if self._any:
            self.entered[threads] = self._done(threads)

    def _done(self, threads: Numbers) -> list[int]:
        """What each thread comes after, and has done."""
        clocks = self.machine.clocks
        releases = [clocks.release(thread) for thread in threads.tolist()]
        homes = clocks.cta[threads].tolist()
        return [clocks.joined(home, release.view, [release]) for home, release in zip(homes, releases, strict=True)]

    def hear(self, kind: str, what: Hashable, at: int, agents: Numbers) -> None:
        """Agents do something to synchronize (see ``History``): what is released and acquired needs nothing of this."""
        if not self._any or not isinstance(what, tuple) or what[0] not in ("mbarrier", "cluster"):
            return
        op = self.machine.body[at]
        if kind == "arrive":
            relaxed = getattr(op, "sem", "") == "relaxed"
            given = {
                (self.handed[agent], agent, self._level(op), relaxed)
                for agent in agents.tolist()
                if agent in self.handed
            }
            self._released.setdefault(what, set()).update(given)
        elif kind == "pass":
            acquires = getattr(op, "sem", "") == "acquire"
            for handed, agent, level, relaxed in self._released.get(what, ()):
                if relaxed or not acquires:
                    for thread in agents.tolist():
                        if self._mutual(level, agent, self._level(op), thread):
                            self._received.setdefault(thread, set()).add(handed)
            if TENSOR_WAIT in self.machine.lenient and isinstance(op, ops.MbarrierWait) and acquires:
                self._resume(agents)

    def _level(self, op: ops.Op) -> int:
        """How wide the scope of an operation that hands over is."""
        named = isinstance(op, ops.MbarrierArrive | ops.MbarrierWait)
        return self.machine.strong.level(getattr(op, "scope", None) if named else "cluster")

    def _mutual(self, level: int, agent: int, other: int, thread: int) -> bool:
        strong, cta = self.machine.strong, self.machine.clocks.cta
        one, two = int(cta[agent]), int(cta[thread])
        return strong.includes(level, one, two) and strong.includes(other, two, one)

    def issued(self, thread: int, what: str, views: Numbers) -> int:
        """The agent that makes accesses which a thread issues now, and comes after what ``views`` say. (A load need not
        know of the loads that are done, as its thread does.)"""
        clocks, agent = self.machine.clocks, self._copies.agent(thread, what)
        lanes = self.machine.leaders.lanes.get(thread)
        done = [r for other, r in self.waited.get(thread, {}).items() if what != LOADS or other != agent]
        given = int(views[thread]), NOTHING if lanes is None else clocks.common(views[lanes])
        if self._issues.get(agent) != (key := (given, tuple(done))):
            self._issues[agent] = key
            clocks.acquire(np.array([agent]), [*done, *(Release(view, thread, 0) for view in given)])
        return agent
