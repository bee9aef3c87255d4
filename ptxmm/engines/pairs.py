"""The pairs of instructions that a relation of a model relates in some execution that it allows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ptxmm.cat import index
from ptxmm.cat.ir import Model, Node
from ptxmm.engines.problem import Problem
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.events.symbolic.variants import Site
from ptxmm.program.condition import RegisterTerm
from ptxmm.program.control import control_flow
from ptxmm.program.convergence import gathers
from ptxmm.program.silent import silent
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.ops import FAMILIES, Alu, Barrier, BarrierReduction, Branch, Imm, Op, Reg, Type
from ptxmm.relations.formula import FALSE, Formula
from ptxmm.relations.symbolic import Relation

SitePair = tuple[Site, Site]
"""Two instructions of threads, the one that comes first in the test first; they may be the same."""

_STOPS = "%stops"
"""The register that is 1 iff its thread stopped in the middle of a spin loop."""

_U32 = Type("u", 32)

_MEETINGS = (*FAMILIES["CTA barrier"], *FAMILIES["warp"], *FAMILIES["cluster barrier"])
"""Instructions that wait for other threads, but not for those that have exited."""

_BARRIERS = range(16)

_MORE = 1024
"""More threads than ever come to a barrier at which only those wait that stop."""


class Pairs:
    """Which instructions each of ``relations`` relates, over all executions of ``test`` that ``model`` allows and that
    reach their end. Only their accesses of memory count: events of no thread, fences and barriers are left out.

    ``bounded``, ``deadlock``, ``undefined``, ``flags``: as in ``engines.result.Search``. ``ends``: some execution
    reaches its end and meets the test's filter; ``others``: the first relation may relate events that are left out.
    Raises ``Timeout``, and ``PtxmmError`` for what the symbolic side can't model.
    """

    def __init__(self, test: Test, model: Model, relations: Sequence[Node], limits: Limits) -> None:
        # A thread with a register that is asked for changes places with no other: each pair is looked for by itself.
        asked = [RegisterTerm(number, "", _U32) for number in range(len(test.threads))]
        self._problem = problem = Problem(test, model, Observed((), ()), limits, asked)
        program, solver = problem.program, problem.solver
        self.undefined: str | None = None
        if solver.satisfiable(problem.formulas.any([f for f, _ in problem.misuses])):
            self.undefined = next(text for f, text in problem.misuses if solver.value(f))
        self.deadlock = solver.satisfiable(program.deadlock)
        self.bounded = solver.satisfiable(program.cut)
        counts, undefined = problem.counts, index().undefined
        flags = [(name, problem.formulas.both(formula, counts)) for name, formula in problem.flags if name in undefined]
        misuse = {name for name, formula in flags if solver.satisfiable(formula)}
        solver.require(program.final)
        self.ends = solver.satisfiable(program.final)
        self.flags = misuse.union(name for name, formula in problem.flags if solver.satisfiable(formula))
        found = [_by_site(problem, node, limits) for node in relations]
        self._when = [when for when, _ in found]
        self.others = found[0][1]

    @property
    def candidates(self) -> list[SitePair]:
        """The pairs of instructions that the first relation may relate, in the order of the test."""
        return sorted(self._when[0])

    def find(self, pair: SitePair, number: int = 0) -> Witness | None:
        """An execution in which the relation ``number`` relates the instructions of ``pair``, in whatever direction, or
        None. Raises ``Timeout``."""
        formulas = self._problem.formulas
        when = formulas.any(self._when[number].get(pair, ()))
        return self._problem.witness() if self._problem.solver.satisfiable(when) else None


def spins(test: Test) -> bool:
    """Whether some thread has a loop in which it may spin for ever without an effect."""
    return any(control_flow(thread, quiet).spin for thread, quiet in zip(test.threads, silent(test), strict=True))


def endless(
    test: Test, model: Model, relation: Node, limits: Limits, known: Collection[SitePair]
) -> Iterator[SitePair]:
    """The pairs beside ``known`` that ``relation`` relates in an execution that never ends: some thread spins, or waits
    for ever at a barrier. Raises as ``Pairs`` does.

    The executions are those of a program whose threads may stop after each round of a spin loop. What such a one has
    executed is the beginning of one of ``test``, since a read may return again what it has returned; a relation
    that later events of the threads take no pair from, such as a data race, has the pair there as well. One round of
    each loop is enough (``program.control``), but a thread stops too where it goes round again after a ``cas`` that
    has succeeded: what it does after that is searched only if it ends. Where other grids wait for such a thread, or
    all barriers of a CTA are in use, it counts as one that has exited, so that there may be pairs too many.
    """
    barrier, quiet = _own_barrier(test), silent(test)
    threads = tuple(_stopping(t, barrier, atomics) for t, atomics in zip(test.threads, quiet, strict=True))
    changed = replace(test, threads=threads, filter=None)
    marks = [RegisterTerm(number, _STOPS, _U32) for number in range(len(test.threads))]
    problem = Problem(changed, model, Observed((), ()), limits, marks)
    program, solver, formulas = problem.program, problem.solver, problem.formulas
    for formula in (*(t.cut for t in program.threads), *(f for f, _ in program.undefined)):
        solver.require(-formula)
    stopped = [problem.domain(mark).get(1, FALSE) for mark in marks]
    solver.require(formulas.any([*stopped, *(s for scenario, s in program.scenarios if scenario.stuck)]))
    for pair, when in sorted(_by_site(problem, relation, limits)[0].items(), key=lambda item: item[0]):
        if pair not in known and solver.satisfiable(formulas.any(when)):
            yield pair


def _own_barrier(test: Test) -> tuple[int, int | None] | None:
    """The number of a barrier that ``test`` does not use, and its instance (see ``Barrier``); None where it has no
    barriers at all, or all are in use."""
    ops = [op for thread in test.threads for op in thread.body]
    barriers = [op for op in ops if isinstance(op, Barrier | BarrierReduction)]
    meets = any(isinstance(op, _MEETINGS) or gathers(op) for op in ops)
    if not meets or not all(isinstance(op.barrier, Imm) for op in barriers):
        return None
    instances = {op.instance for op in barriers if isinstance(op, Barrier) and op.instance is not None}
    if instances:
        number = max(instances) + 1
        return number, number
    used = {op.barrier.value for op in barriers if isinstance(op.barrier, Imm)}
    return next(((number, None) for number in reversed(_BARRIERS) if number not in used), None)


def _stopping(thread: Thread, barrier: tuple[int, int | None] | None, quiet: frozenset[int]) -> Thread:
    """``thread`` with 1 in ``_STOPS`` at its end where it would have gone round a spin loop once more, instead of that;
    it waits for ever at ``barrier`` there, if one is given. The indices of its instructions stay."""
    spin = control_flow(thread, quiet).spin
    if not spin:
        return thread
    end, source = len(thread.body), thread.body[-1].source
    stop: list[Op] = [Alu("mov", _U32, Reg(_STOPS), (Imm(1),), source)]
    if barrier is not None and not thread.placement.host:
        stop.append(Barrier("sync", Imm(barrier[0]), Imm(_MORE), barrier[1], source))
    body = [
        replace(op, target=end + 1) if index in spin and isinstance(op, Branch) else op
        for index, op in enumerate(thread.body)
    ]
    body += [Branch(end + 1 + len(stop), None, source), *stop]
    return replace(thread, body=tuple(body), registers=dict(thread.registers) | {_STOPS: _U32})


def _by_site(problem: Problem, node: Node, limits: Limits) -> tuple[dict[SitePair, list[Formula]], bool]:
    """When a relation relates accesses of two instructions; and whether it may relate other events too."""
    program = problem.program
    value = problem.evaluator.value(node)
    assert isinstance(value, Relation)
    found: dict[SitePair, list[Formula]] = {}
    others = False
    for a, b, when in program.algebra.pairs(value):
        if max(a, b) >= len(program.events) or {program.events[a].kind, program.events[b].kind} - {"R", "W"}:
            others = True
            continue
        limits.check()
        x, y = program.events[a].id[:2], program.events[b].id[:2]
        executed = [when, program.presence[a], program.presence[b]]
        found.setdefault((min(x, y), max(x, y)), []).append(problem.formulas.all(executed))
    return found, others
