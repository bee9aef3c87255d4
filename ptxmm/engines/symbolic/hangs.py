"""A second opinion on executions that never end, from Z3: for a fair scheduler and programs without barriers.

Each choice of which threads spin, and where, is a program that ends (``spinning``), so it is a problem of its own: does
it have an execution in which the last two rounds of those loops read the same, and nothing that they can't miss for
ever?
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from msgspec.structs import replace

from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.program.condition import RegisterTerm
from ptxmm.program.identity import EventId
from ptxmm.program.shared.convergence import gathers
from ptxmm.program.shared.spinning import SPINS, Spinning, loops, spinning, without_counters
from ptxmm.program.test import Test
from ptxmm.ptx.ops import FAMILIES, Atomic, Type
from ptxmm.relations.formula import Formula
from ptxmm.relations.symbolic import Relation

_Spins = tuple[Spinning | None, ...]
"""For each thread how it spins; None: it ends."""

_BLOCKING = tuple(
    kind for name in ("CTA barrier", "warp", "cluster barrier", "mbarrier", "asynchronous", "grid")
    for kind in FAMILIES[name]
)  # fmt: skip


def covers(test: Test) -> bool:
    """Whether ``test`` has no barrier, no asynchronous operation and no grids that wait for each other."""
    grids = {(t.placement.gpu, t.placement.grid) for t in test.threads if not t.placement.host}
    apart = len(grids) == len({gpu for gpu, _ in grids})
    return apart and not any(isinstance(op, _BLOCKING) or gathers(op) for t in test.threads for op in t.body)


def may_hang(test: Test, model: Model, limits: Limits, everything: bool) -> bool:
    """Whether some execution of ``test``, which ``covers`` allows, never ends under a fair scheduler.

    ``everything``: a read that is repeated for ever sees all writes in the end, not only those that are morally strong
    with it. Raises ``Timeout`` and what building the problem raises.
    """
    base = replace(test, threads=tuple(map(without_counters, test.threads)))
    choices = [[None, *_spins(base, t, limits.unroll)] for t in range(len(base.threads))]
    for spins in product(*choices):
        limits.check()
        if any(spins) and _possible(base, model, limits, spins, everything or "ms" not in model.definitions):
            return True
    return False


def _spins(test: Test, t: int, unroll: int) -> Iterator[Spinning]:
    thread = test.threads[t]
    for loop in loops(thread):
        if loop.may_repeat:
            alike = not loop.again and not loop.carried
            writes = any(isinstance(thread.body[pc], Atomic) for pc in loop.body)
            for arrival in range(1, 2 if alike and not writes else unroll + 2):
                yield spinning(thread, loop, arrival)


def _possible(test: Test, model: Model, limits: Limits, spins: _Spins, everything: bool) -> bool:
    """Whether ``test`` has an execution in which the threads spin as ``spins`` says, and all others end."""
    bodies = tuple(t if s is None else s.thread for t, s in zip(test.threads, spins, strict=True))
    changed = replace(test, threads=bodies, filter=None)
    u32 = Type("u", 32)
    marks = tuple(RegisterTerm(t, SPINS, u32) for t, spin in enumerate(spins) if spin is not None)
    problem = Problem(changed, model, Observed((), ()), limits, marks)
    rounds = _Rounds(problem, spins, everything)
    for formula in rounds.conditions():
        problem.solver.require(formula)
    spinning_now = [problem.domain(mark).get(1) for mark in marks]
    if any(formula is None for formula in spinning_now):
        return False
    goal = problem.formulas.all([problem.program.final, *(f for f in spinning_now if f is not None)])
    return problem.solver.satisfiable(goal)


class _Rounds:
    """The events of the last two rounds of each loop, by number."""

    def __init__(self, problem: Problem, spins: _Spins, everything: bool) -> None:
        self.problem = problem
        self.everything = everything
        self.paired_reads: list[tuple[int, int]] = []
        self.reads: list[int] = []
        self.writes: list[tuple[int, int]] = []
        self.fences: list[tuple[int, int, bool]] = []  # number, thread, of the second round
        events = problem.program.events
        by_id: dict[tuple[EventId, str], list[int]] = {}
        for e in events:
            by_id.setdefault((e.id, e.kind), []).append(e.number)
        for t, spin in enumerate(spins):
            if spin is None:
                continue
            mine = [e for e in events if e.thread == t and spin.rounds(e.id.instruction)]
            self.reads += [e.number for e in mine if e.kind == "R"]
            self.writes += [(e.number, r) for e in mine if e.kind == "W" for r in by_id.get((e.id, "R"), ())]
            self.fences += [(e.number, t, e.id.instruction in spin.second) for e in mine if e.kind == "F"]
            self.paired_reads += [
                (a.number, b.number)
                for a in mine
                for b in mine
                if a.kind == b.kind == "R"
                and a.id.instruction in spin.first
                and b.id.instruction in spin.second
                and spin.original(a.id) == spin.original(b.id)
            ]

    def conditions(self) -> Iterator[Formula]:
        """What must hold of rounds that go on for ever."""
        yield from self._alike()
        yield from self._quiet()
        yield from self._seen()
        yield from self._fenced()

    def _alike(self) -> Iterator[Formula]:
        """Both rounds read the same from the same writes (or from one of a round, that wrote back what it read)."""
        formulas, program = self.problem.formulas, self.problem.program
        idempotent = {w for w, _ in self.writes}
        for a, b in self.paired_reads:
            both = formulas.both(program.presence[a], program.presence[b])
            for readers in program.rf.values():
                for w, taken in readers.get(b, {}).items():
                    if w not in idempotent:
                        first = readers.get(a, {}).get(w)
                        same = -both if first is None else formulas.either(-both, first)
                        yield formulas.either(-taken, same)
            yield formulas.either(-both, self._equal(a, b))

    def _equal(self, a: int, b: int) -> Formula:
        """When two accesses read or write the same value."""
        formulas, events = self.problem.formulas, self.problem.program.events
        ours, theirs = events[a].value, events[b].value
        return formulas.any([formulas.both(when, theirs[v]) for v, when in ours.items() if v in theirs])

    def _quiet(self) -> Iterator[Formula]:
        """No round writes anything but what it has just read."""
        formulas, presence = self.problem.formulas, self.problem.program.presence
        for w, r in self.writes:
            executed = formulas.both(presence[w], presence[r])
            yield formulas.either(-executed, self._equal(w, r))

    def _seen(self) -> Iterator[Formula]:
        """No read misses for ever what it can't miss."""
        problem, formulas = self.problem, self.problem.formulas
        algebra = problem.program.algebra
        fr = problem.base.relation("fr")
        strong = None if self.everything else problem.evaluator.value("ms")
        idempotent = {w for w, _ in self.writes}
        for r in self.reads:
            for event in problem.program.events:
                if event.kind == "W" and event.number not in idempotent:
                    missed = algebra.get(fr, r, event.number)
                    if isinstance(strong, Relation):
                        missed = formulas.both(missed, algebra.get(strong, r, event.number))
                    yield -missed

    def _fenced(self) -> Iterator[Formula]:
        """Infinitely many fences do not all precede one in Fence-SC order."""
        of_rounds = {number: (thread, second) for number, thread, second in self.fences}
        for (a, b), first in self.problem.program.fsc.items():
            mine, theirs = of_rounds.get(a), of_rounds.get(b)
            if mine is not None and (theirs is None or (mine[1] and not theirs[1])):
                yield -first
