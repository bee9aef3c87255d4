"""mbarriers: their phases, who waits for them, and whether both are the same in every execution (PTX ISA 9.7.14.15).

An operation on an mbarrier counts in the same phase whatever the schedule if it comes after the completion of the phase
before, as far as its thread can know, and if no phase is complete without it. A wait by parity waits for the same
phase if the one before it is complete for sure, and if something that the next one needs comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ptxmm.formats.modules.kernel import observed
from ptxmm.formats.modules.launch import WARP_WAIT
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.whole.arrays import Flags, Numbers
from ptxmm.whole.execution.barriers.phases import Completed, Counts, Mbarrier, Moments, everything, some
from ptxmm.whole.execution.barriers.retries import check_retries
from ptxmm.whole.execution.leaders import Leaders
from ptxmm.whole.execution.state import RUNS, WAITS, Moment, State, Stopped
from ptxmm.whole.execution.values import constant, unknown
from ptxmm.whole.order.clocks import NOTHING, Release
from ptxmm.whole.order.strong import ALL, CLUSTER, CTA, Head, Strong

_MOST = (1 << 20) - 1
"""The largest count of arrivals, and the largest size of a tx-count (9.7.14.15.2)."""
_BYTES = ops.MBARRIER_BYTES
_ODD = 0x9E3779B97F4A7C15
_FAILURES = 8
"""So often a wait fails where it may, and where that decides something."""
_TRIED = 4
"""Of so many operations it is tried whether they may come after an ``mbarrier.inval``."""


class Mbarriers:
    """The mbarriers of the launch of ``state``; ``lenient``: what is assumed (see there)."""

    def __init__(self, state: State, strong: Strong, leaders: Leaders, lenient: frozenset[str]) -> None:
        self.state, self._strong, self._leaders, self._lenient = state, strong, leaders, lenient
        self._found: dict[int, Mbarrier] = {}
        self._tokens: dict[int, tuple[Mbarrier, int]] = {}
        self._inits: dict[int, int] = {}
        self._failed: dict[tuple[int, int, int], int] = {}
        self._computes = _computes_with_states(state.body, observed(state.kernel))

    def init(self, op: ops.MbarrierInit, at: int, places: Numbers, threads: Numbers) -> None:
        """``mbarrier.init`` and ``mbarrier.inval``."""
        state = self.state
        if op.count is None:
            for place, thread in zip(places.tolist(), threads.tolist(), strict=True):
                self._invalidate(self._at(place, at, np.array([thread])), at, thread)
            return
        counts = state.sure(
            state.operand(op.count, ops.U32, threads), at, "the count of this mbarrier", threads
        ).tolist()
        for place, thread, count in zip(places.tolist(), threads.tolist(), counts, strict=True):
            name = self.name(place)
            if not 1 <= count <= _MOST:
                raise Stopped("undefined", f"{name} is initialised with the count {count}", at, thread)
            old = self._found.get(place)
            if old is not None and old.ended is None:
                message = f"{name} is initialised again without mbarrier.inval, after line {self._line(old.at)}"
                raise Stopped("undefined", message, at, thread, other=(old.at, old.owner))
            if old is not None and (unknown := self._unknown(old, thread)):
                message = f"{name} is initialised again, and nothing orders this behind what was done with it before"
                tell = state.unordered if (loose := self._loose(old, thread)) else state.doubt
                tell(message, at, thread, other=(loose or unknown)[0].step)
            state.memory.lose(np.array([place]), _BYTES)
            first = Completed(Moments(), Moments()), Completed(Moments(), Moments())
            clock = int(state.clocks.clock[thread])
            agent = self._inits.get(thread)
            if agent is None:
                agent = self._inits[thread] = state.clocks.add_component(int(state.clocks.cta[thread]))
            made = agent, int(state.clocks.clock[agent])
            self._found[place] = Mbarrier(place, name, thread, at, clock, made, count, count, count, *first)

    def fence(self, threads: Numbers) -> None:
        """``fence.mbarrier_init``: it releases what the threads have initialised, and nothing else (9.7.14.4)."""
        clocks = self.state.clocks
        for thread in threads.tolist():
            if (agent := self._inits.get(thread)) is not None:
                self._strong.initialised(thread, Release(NOTHING, agent, int(clocks.clock[agent])))
                clocks.clock[agent] += 1

    def _invalidate(self, it: Mbarrier, at: int, thread: int) -> None:
        state, loose = self.state, self._loose(it, thread)
        message = f"what others do with {it.name} may come after this"
        if it.waiting and state.undecided is None:  # who waits asks again
            wait, threads = it.waiting[0]
            state.unordered(message, at, thread, other=(wait, int(threads[0])))
        elif it.waiting or it.done.late or loose or not self._knows(it.phase - 1, it.before, np.array([thread]))[0]:
            others = [moment.step for moment in loose or it.last.values()]
            state.doubt(message, at, thread, other=others[0] if others else None, moments=tuple(loose[:_TRIED]))
        it.ended = at, thread
        self._did(it, at, np.array([thread]))

    def _unknown(self, it: Mbarrier, thread: int) -> list[Moment]:
        """What others did last with an mbarrier, as far as ``thread`` does not come after it, in time at least."""
        known = everything(it).known(self.state, np.array([thread]), timed=True)[0].tolist()
        return [moment for moment, comes in zip(it.last.values(), known, strict=True) if not comes]

    def _loose(self, it: Mbarrier, thread: int) -> list[Moment]:
        """As ``_unknown``, but for what counts in a phase which is complete, as ``thread`` knows."""
        known = self._knows(it.phase - 1, it.before, np.array([thread]))[0]
        return [m for m in self._unknown(it, thread) if not known or m.phase is None or m.phase >= it.phase]

    def _did(self, it: Mbarrier, at: int, threads: Numbers, phase: int | None = None) -> None:
        """Threads do something with an mbarrier, which counts in a phase or not."""
        for thread, clock in zip(threads.tolist(), self.state.clocks.clock[threads].tolist(), strict=True):
            it.last[thread] = Moment(thread, at, clock, phase)

    def arrive(self, op: ops.MbarrierArrive, at: int, places: Numbers, threads: Numbers) -> None:
        """``mbarrier.arrive`` and ``arrive_drop``."""
        state = self.state
        counts, sizes = np.ones(len(threads), np.int64), np.zeros(len(threads), np.int64)
        if op.count is not None:
            counts = self._number(op.count, threads, at, "the count of this arrival")
        if op.expect is not None:
            sizes = self._number(op.expect, threads, at, "the number of bytes of this arrival")
        if (wrong := np.flatnonzero((counts < 1) | (counts > _MOST))).size:
            raise Stopped("undefined", f"{counts[wrong[0]]} arrivals at once", at, int(threads[wrong[0]]))
        for place in np.unique(places).tolist():
            here = np.flatnonzero(places == place)
            it = self._at(place, at, threads[here])
            self._check_near(op, it, at, threads[here])
            while here.size:
                # Those come first that the phase still needs; the rest come to the next one.
                enough = int(np.searchsorted(np.cumsum(counts[here]), max(it.pending, 1), "left")) + 1
                now, here = here[:enough], here[enough:]
                self._belongs(it, at, threads[now], arrived=True)
                state.tell("arrive", ("mbarrier", place), it.phase, at, threads[now])
                if op.no_complete:
                    it.needed.add(state, threads[now])
                self._release(it, op.scope, op.sem, threads[now])
                self._give(op.dst, it, threads[now])
                given = Counts(int(counts[now].sum()), int(sizes[now].sum()), op.drop, op.no_complete)
                self._change(it, at, int(threads[now[0]]), given)

    def _check_near(self, op: ops.MbarrierArrive, it: Mbarrier, at: int, threads: Numbers) -> None:
        """Nobody gets the state of an mbarrier of another CTA (9.7.14.15.13)."""
        far = threads[self.state.clocks.cta[threads] != self.state.clocks.cta[it.owner]]
        if far.size and (op.dst is not None or op.no_complete):
            message = "an arrival at an mbarrier of another CTA that returns its state (9.7.14.15.13)"
            raise Stopped("undefined", message, at, int(far[0]))

    def _number(self, operand: ops.Operand, threads: Numbers, at: int, what: str) -> Numbers:
        return self.state.sure(self.state.operand(operand, ops.U32, threads), at, what, threads).astype(np.int64)

    def _give(self, register: ops.Reg | None, it: Mbarrier, threads: Numbers) -> None:
        """Give the threads the state of ``it`` in its present phase: a number that means nothing else."""
        if register is None:
            return
        if self._computes:
            self.state.assign(register, threads, unknown(len(threads)))
            return
        token = (len(self._tokens) + 1) * _ODD & (1 << 64) - 1
        self._tokens[token] = it, it.phase
        self.state.assign(register, threads, constant(token, 64, len(threads)))

    def count_bytes(self, op: ops.MbarrierTx, at: int, places: Numbers, threads: Numbers) -> None:
        """``mbarrier.expect_tx`` and ``complete_tx``."""
        amounts = self._number(op.amount, threads, at, "the number of bytes of this operation")
        for place in np.unique(places).tolist():
            here = places == place
            it = self._at(place, at, threads[here])
            total = int(amounts[here].sum())
            expects = op.kind == "expect_tx"
            if expects:
                it.needed.add(self.state, threads[here])
            self._belongs(it, at, threads[here])
            self._release(it, op.scope, "relaxed", threads[here])
            self._change(it, at, int(threads[here][0]), Counts(0, total if expects else -total))

    def _release(self, it: Mbarrier, scope: ops.Scope, sem: str, threads: Numbers) -> None:
        """What an operation of threads, and their fences before it, hand on to those who wait (9.7.14.15.13)."""
        clocks = self.state.clocks
        threads = np.concatenate((threads, self._leaders.among(threads)))
        it.heads += [head for thread in threads.tolist() for head in self._strong.fenced(thread)]
        for cta in np.unique(clocks.cta[threads]).tolist() if sem == "release" else ():
            here = threads[clocks.cta[threads] == cta]
            it.heads.append(Head(clocks.release_all(here), self._strong.level(scope)))

    def complete(self, place: int, at: int, thread: int, size: int, release: Release) -> None:
        """The end of an asynchronous operation that ``thread`` issued, of ``size`` bytes (9.7.14.15.5)."""
        one = np.array([thread])
        it = self._at(place, at, one)
        self._belongs(it, at, one, late=True)
        self.state.tell("arrive", ("mbarrier", place), it.phase, at, np.array([release.agent]))
        it.late.append(release)
        if self.state.launch.clustered:
            it.late.append(self.state.clocks.issued(one))
        self._change(it, at, thread, Counts(0, -size))

    def arrive_late(self, place: int, at: int, thread: int, increments: bool, releases: Sequence[Release]) -> None:
        """An arrival when copies or products are done (9.7.14.15.15); ``increments``: it is expected from now on."""
        one = np.array([thread])
        it = self._at(place, at, one)
        if increments:
            it.needed.add(self.state, one)
            it.pending += 1
        self._belongs(it, at, one, arrived=not increments, late=True)
        if releases:
            agents = [release.agent for release in releases if release.clock]
            self.state.tell("arrive", ("mbarrier", place), it.phase, at, np.array(agents))
            it.late += releases
        self._change(it, at, thread, Counts(1, 0))

    def wait(self, op: ops.MbarrierWait, at: int, places: Numbers, threads: Numbers) -> None:
        """``mbarrier.test_wait`` and ``try_wait``: who waits goes on when the phase is complete."""
        state = self.state
        for place in np.unique(places).tolist():
            here = threads[places == place]
            it = self._at(place, at, here)
            if op.parity is not None:
                parity = state.sure(state.operand(op.parity, ops.U32, here), at, "the parity of this wait", here)
                if (wrong := np.flatnonzero(parity > 1)).size:
                    raise Stopped("undefined", f"a parity of {parity[wrong[0]]}", at, int(here[wrong[0]]))
                targets = it.phase - (parity.astype(np.int64) != it.phase & 1)
                self._check_parity(it, targets, at, here)
            else:
                targets = self._states(op, it, at, here)
            sure = np.zeros(len(here), np.bool_)
            for target in np.unique(targets).tolist():
                state.tell("wait", ("mbarrier", place), target, at, here[targets == target])
            past = targets < it.phase
            sure[past] = self._knows(it.phase - 1, it.before, here[past])
            decides = not sure.all() and check_retries(state, at, here[~sure])
            self._pass(it, at, here[past])
            waits = here[~past]
            if decides and self._strong.plan.plain and WARP_WAIT not in self._lenient:
                waits = self._fail(op, at, waits, targets[~past])
            if waits.size:
                state.mode[waits] = WAITS
                it.waiting.append((at, waits))

    def _fail(self, op: ops.MbarrierWait, at: int, threads: Numbers, targets: Numbers) -> Numbers:
        """Tell ``threads`` that their phases are not complete yet, but for those, which are given, that have been told
        so here often enough."""
        enough = np.zeros(len(threads), np.bool_)
        for number, (thread, target) in enumerate(zip(threads.tolist(), targets.tolist(), strict=True)):
            times = self._failed.get((thread, at, target), 0)
            enough[number] = times == _FAILURES
            self._failed[thread, at, target] = min(times + 1, _FAILURES)
        self.state.assign(op.dst, threads[~enough], constant(0, 1, int((~enough).sum())))
        return threads[enough]

    def _check_parity(self, it: Mbarrier, targets: Numbers, at: int, threads: Numbers) -> None:
        """The phases before those that the threads wait for are complete in every execution."""
        for target in np.unique(targets).tolist():
            here = threads[targets == target]
            before = it.before if target == it.phase else it.earlier
            if (wrong := np.flatnonzero(~self._knows(target - 1, before, here))).size:
                message = f"which phase of {it.name} this waits for depends on the schedule: an earlier one may do"
                self.state.doubt(message, at, int(here[wrong[0]]))

    def _states(self, op: ops.MbarrierWait, it: Mbarrier, at: int, threads: Numbers) -> Numbers:
        """The phases that states of arrivals are of."""
        assert op.state is not None
        words = self.state.sure(self.state.operand(op.state, ops.B64, threads), at, "the state of this wait")
        found = np.zeros(len(threads), np.int64)
        for number, (word, thread) in enumerate(zip(words.tolist(), threads.tolist(), strict=True)):
            token = self._tokens.get(word)
            if token is None:
                raise Stopped("undecided", "the state of this wait is not followed", at, thread)
            other, phase = token
            if other is not it or phase not in (it.phase, it.phase - 1):
                message = f"a wait for a phase of {it.name} that is neither the current one nor the one before"
                raise Stopped("undefined", message, at, thread)
            found[number] = phase
        return found

    def _knows(self, phase: int, it: Completed, threads: Numbers) -> Flags:
        """Which of ``threads`` come after the completion of a ``phase`` for sure: after a wait for it, or after all
        that it needed."""
        if phase < 0 or not len(threads):
            return np.ones(len(threads), np.bool_)
        found = np.asarray(it.waits.known(self.state, threads, timed=True).any(axis=1))
        found |= it.led.known(self.state, threads).any(axis=1)
        if not it.done.late:
            found |= it.done.known(self.state, threads, timed=True).all(axis=1)
        return found

    def _pass(self, it: Mbarrier, at: int, threads: Numbers) -> None:
        """A wait for the last complete phase returns true."""
        if not len(threads):
            return
        state = self.state
        op = state.body[at]
        assert isinstance(op, ops.MbarrierWait)
        if it.released:
            self._acquire(it, op, threads, at)
        state.tell("pass", ("mbarrier", it.place), it.phase - 1, at, threads)
        it.before.waits.add(state, threads)
        it.before.led.add(state, self._leaders.among(threads))
        it.waited = it.phase - 1
        self._did(it, at, threads)
        state.assign(op.dst, threads, constant(1, 1, len(threads)))

    def _acquire(self, it: Mbarrier, op: ops.MbarrierWait, threads: Numbers, at: int) -> None:
        """What a wait that returns true comes after; a relaxed one through a fence behind it."""
        found = {level: Release(view, it.owner, 0) for level, view in it.released.items()}
        if op.sem == "acquire":
            self.state.clocks.acquire(threads, [found[self._strong.level(op.scope)]])
        elif it.released[CTA] != it.released[CLUSTER]:
            raise Stopped("unsupported", "a relaxed wait for arrivals of other CTAs is not followed yet", at)
        else:
            for thread in threads.tolist():
                self._strong.pend(thread, Head(found[CTA], ALL))

    def _belongs(self, it: Mbarrier, at: int, threads: Numbers, arrived: bool = False, late: bool = False) -> None:
        """What ``threads`` do now counts in the present phase in every execution; ``arrived``, ``late``: see
        ``Moments``."""
        if (wrong := np.flatnonzero(~self._knows(it.phase - 1, it.before, threads))).size:
            message = f"in which phase of {it.name} this counts depends on the schedule: phase {it.phase - 1} may last"
            self.state.doubt(message, at, int(threads[wrong[0]]))
        it.done.add(self.state, threads, arrived)
        it.done.late |= late
        far = threads[self.state.clocks.cta[threads] != self.state.clocks.cta[it.owner]]
        it.far += [(it.phase, thread, int(self.state.clocks.clock[thread]), at) for thread in far.tolist() if not late]
        self._did(it, at, threads, it.phase)

    def _change(self, it: Mbarrier, at: int, thread: int, given: Counts) -> None:
        """Change the counts, and complete the phase if nothing is left."""
        it.pending -= given.arrivals
        it.tx += given.size
        it.bytes += abs(given.size)
        if given.drop:
            it.expected -= given.arrivals
        if it.pending < 0 or it.expected < 0:
            raise Stopped("undefined", f"more arrivals at {it.name} than its phase expects", at, thread)
        if abs(it.tx) > _MOST:
            raise Stopped("undefined", f"the tx-count of {it.name} leaves its range", at, thread)
        if not it.pending and not it.tx:
            if given.no_complete:
                raise Stopped("undefined", f"an arrival with .noComplete completes the phase of {it.name}", at, thread)
            self._complete(it, at, thread)

    def _complete(self, it: Mbarrier, at: int, thread: int) -> None:
        state = self.state
        if not some(it.done, it.done.behind(state, it.needed)).all():
            message = f"in which phase of {it.name} its bytes are counted depends on the schedule"
            self.state.doubt(message, at, thread)
        asked = np.asarray(it.done.behind(state, it.before.waits).any(axis=0))
        if not asked.all():
            # Of lanes that ask together one is enough.
            together = {key for key, known in zip(self._warps(it.before.waits), asked.tolist(), strict=True) if known}
            able = together.issuperset(self._warps(it.before.waits))
            if not able or WARP_WAIT not in self._lenient:
                message = f"phase {it.phase} of {it.name} may be complete before a wait for phase {it.phase - 1} asks"
                self.state.doubt(message, at, thread, frozenset({WARP_WAIT} if able else ()))
        if it.bytes > _MOST or not it.begun:
            self.state.doubt(
                f"how the counts of {it.name} change in phase {it.phase} depends on the schedule", at, thread
            )
        it.earlier, it.before = it.before, Completed(Moments(), it.done)
        it.done, it.needed = Moments(), Moments()
        for level in (CTA, CLUSTER):
            found = [*it.late, *self._strong.usable(it.heads, level, it.owner)]
            before = it.released.get(level, NOTHING)
            it.released[level] = state.clocks.joined(int(state.clocks.cta[it.owner]), before, found)
        it.heads, it.late = [], []
        state.tell("complete", ("mbarrier", it.place), it.phase, at, np.array([thread]))
        it.phase += 1
        it.pending = it.begun = it.expected
        it.tx = it.bytes = 0
        waiting, it.waiting = it.waiting, []
        for wait, threads in waiting:
            state.mode[threads] = RUNS
            self._pass(it, wait, threads)

    def _warps(self, waits: Moments) -> list[tuple[int, int]]:
        """For each of some waits when it was, and in which warp."""
        return [(turn, self.state.warp(lane)) for turn, lane in zip(waits.turns, waits.threads, strict=True)]

    def name(self, place: int) -> str:
        """What the mbarrier at a place is called."""
        memory = self.state.memory
        instance = memory.instances[int(memory.instance_of(np.array([place]))[0])]
        offset = place - instance.start
        return f"mbarrier {instance.variable.name}" + (f"+{offset}" if offset else "")

    def _at(self, place: int, at: int, threads: Numbers) -> Mbarrier:
        """The mbarrier at a place, on which ``threads`` operate: its initialisation precedes that (9.7.14.15.9)."""
        it = self._found.get(place)
        if it is None or it.ended is not None:
            other = None if it is None else it.ended
            ended = "" if other is None else f": line {self._line(other[0])} has invalidated it"
            message = f"{self.name(place)} is not initialised{ended}"
            raise Stopped("undefined", message, at, int(threads[0]), other=other)
        state = self.state
        first = Moments([it.owner, it.made[0]], [it.clock, it.made[1]])
        if (wrong := np.flatnonzero(~first.known(state, threads).any(axis=1))).size:
            message = f"the initialisation of {it.name} on line {self._line(it.at)} does not precede this"
            state.unordered(message, at, int(threads[wrong[0]]), other=(it.at, it.owner))
        return it

    def _line(self, at: int) -> int:
        """The line of an instruction."""
        return self.state.body[at].source.span.line

    def places(self) -> list[int]:
        """Where mbarriers are or have been."""
        return sorted(self._found)

    def lacks(self, thread: int) -> str | None:
        """What a thread waits for at an mbarrier."""
        for it in self._found.values():
            if any(thread in threads for _, threads in it.waiting):
                parts = [f"{it.pending} arrivals"] * (it.pending > 0) + [f"{it.tx} bytes"] * (it.tx > 0)
                lacks = " and ".join(parts) or f"the expectation of {-it.tx} bytes that have come"
                return f"phase {it.phase} of {it.name}, which lacks {lacks}"
        return None

    def check_ends(self) -> None:
        """What others do to an mbarrier is done before its CTA ends (5.1.7)."""
        state = self.state
        for it in self._found.values():
            members = np.flatnonzero(state.cta == state.clocks.cta[it.owner])
            views, size = state.clocks.views(members), len(members)
            for phase, thread, clock, at in it.far:
                given = np.full(size, -1), np.full(size, thread), np.full(size, clock)
                if phase > it.waited and not state.clocks.after(views, *given).any():
                    message = f"the CTA of {it.name} may end before this: nothing in it comes after this (5.1.7)"
                    state.unordered(message, at, thread, other=state.end_of(int(state.clocks.cta[it.owner])))

    def check_end(self) -> None:
        """Raise ``Stopped`` where a phase that is not complete at the end may be so in another execution."""
        for it in self._found.values():
            if it.ended is None and not it.pending and (it.tx < 0 or (it.bytes and not it.begun)):
                message = f"which bytes complete phase {it.phase} of {it.name} depends on the schedule"
                self.state.doubt(message, None, it.owner)


def _computes_with_states(body: Iterable[ops.Op], observed: frozenset[str]) -> bool:
    """Whether the state that an arrival returns is used otherwise than by a wait, or ``observed``."""
    body = tuple(body)
    states = {op.dst.name for op in body if isinstance(op, ops.MbarrierArrive) and op.dst is not None}
    known = 0
    while known < len(states):
        known = len(states)
        for op in body:
            moves = isinstance(op, ops.Select) or (isinstance(op, ops.Alu) and op.op == "mov")
            if any(name in states for name, _ in uses(op)):
                if moves:
                    states |= {name for name, _ in definitions(op)}
                elif not isinstance(op, ops.MbarrierWait):
                    return True
    return bool(states & observed)
