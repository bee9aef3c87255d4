"""The Z3 engine: the final states of a test, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ptxmm.cat.ir import Model
from ptxmm.engines.result import Found, Limits, Observed, Search
from ptxmm.engines.symbolic.problem import Problem, next_grid
from ptxmm.errors import Timeout
from ptxmm.program.condition import Proposition, State, Term, terms
from ptxmm.program.shared.launches import held
from ptxmm.program.test import Test
from ptxmm.relations.formula import TRUE, Formula

FEW = 16
"""So many final states are each excluded by a clause."""


def search(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Search:
    """The final states of ``test`` under ``model``, distinct on ``observed``.

    With ``proposition`` at most two: one that satisfies it and one that does not. Raises ``PtxmmError`` for what the
    engine can't model; a deadline that passes is reported in the result.
    """
    return next(stages(test, model, observed, limits, proposition))


def stages(
    test: Test,
    model: Model,
    observed: Observed,
    limits: Limits,
    proposition: Proposition | None = None,
    *,
    each: bool = False,
    shown: bool = True,
) -> Iterator[Search]:
    """As ``search``; with ``proposition`` all final states after that, the first ones among them, from the same
    problem; ``each``: one at a time, without the first ones, and at last none. ``shown``: whether executions are
    shown, or any will do. A search that the deadline ends is the last."""
    result = Search()
    try:
        named = terms(proposition) if proposition is not None else ()
        problem = Problem(test, model, observed, limits, named, shown=shown)
        for part in held(test, next_grid(model)):
            _look_at(Problem(part, model, Observed((), ()), limits, shown=shown), result)
        _look_at(problem, result)
        _look_at_ends(problem, result)
        listing = _Listing(problem, result)
        if proposition is not None:
            holds = problem.formula(proposition)
            for goal in (holds, -holds):
                listing.next(goal)
            yield replace(result, found=result.found.copy())
        if each:
            result.found.clear()
        for _ in listing.rest(limits):
            if each:
                yield replace(result, found=[result.found.pop()])
    except Timeout:
        result.timeout = True
    yield result


def _look_at_ends(problem: Problem, result: Search) -> None:
    """Ask for executions that do not end, then require that they do."""
    program, solver = problem.program, problem.solver
    result.deadlock = solver.satisfiable(program.deadlock)
    result.bounded = solver.satisfiable(program.cut)
    if result.bounded:
        loops = {loop for loop, cut in program.loops if solver.satisfiable(cut)}
        alike = {(other, pc) for thread, pc in loops for group in problem.alike if thread in group for other in group}
        result.loops = loops | alike
    solver.require(program.final)


def _look_at(problem: Problem, result: Search) -> None:
    """Ask for what counts in executions that do not end, too: misuse and flags."""
    solver, formulas, counts = problem.solver, problem.formulas, problem.counts
    if result.undefined is None and solver.satisfiable(formulas.any([f for f, _ in problem.misuses])):
        result.undefined = next(text for f, text in problem.misuses if solver.value(f))
    for name, formula in problem.flags:
        if name not in result.flags and solver.satisfiable(formulas.both(formula, counts)):
            result.flags.add(name)


class _Listing:
    """Adds the final states of ``problem`` to ``result``, each once."""

    def __init__(self, problem: Problem, result: Search) -> None:
        self._problem = problem
        self._result = result
        self._count = 0
        observed = problem.observed
        self._registers = [(term.thread, term.register) for term in observed.registers]
        self._memory = [(term.key, term.index) for term in observed.memory]
        asked: tuple[Term, ...] = (*observed.registers, *observed.memory)
        self._domains = [problem.domain(term) for term in asked]
        self._values: list[int] = []
        """Those of the state that was added last."""

    def next(self, goal: Formula) -> bool:
        """Add one that meets ``goal``, if there is one more."""
        solver = self._problem.solver
        if not solver.satisfiable(goal):
            return False
        solver.require(-self._problem.formulas.all(self._take()))
        return True

    def rest(self, limits: Limits) -> Iterator[None]:
        """Add all others, one after the other, or as many as ``limits`` has it."""
        while self._count != limits.states:
            limits.check()
            if self._count >= FEW:
                yield from self._go_through(limits)
                return
            if not self.next(TRUE):
                self._result.exhausted = True
                return
            yield

    def _go_through(self, limits: Limits) -> Iterator[None]:
        """As ``rest``.

        None is excluded by a clause: what is observed is fixed one after the other, and of each the values that have
        been tried are assumed not to be taken.
        """
        satisfiable = self._problem.solver.satisfiable
        domains = self._domains
        path: list[Formula] = []
        tried: list[list[Formula]] = [[] for _ in domains]
        more = satisfiable(TRUE)
        while more:
            path += self._take(len(path))
            yield
            if self._count == limits.states:
                return
            limits.check()
            more = False
            while path and not more:
                level = len(path) - 1
                tried[level].append(path.pop())
                if len(tried[level]) < len(domains[level]):
                    more = satisfiable(TRUE, [*path, *(-value for value in tried[level])])
                if not more:
                    tried[level].clear()
        self._result.exhausted = True

    def _take(self, same: int = 0) -> list[Formula]:
        """Add the one that the solver has found; when each term that is observed has its value, without the first
        terms, the ``same`` number, whose values are those of the state before."""
        chosen, count = self._problem.chosen, len(self._registers)
        domains = self._domains[same:]
        found = [chosen(domain) for domain in domains]
        self._values[same:] = found
        registers = dict(zip(self._registers, self._values[:count], strict=True))
        memory = dict(zip(self._memory, self._values[count:], strict=True))
        self._result.found.append(Found(State(registers, memory), self._problem.witness()))
        self._count += 1
        return [domain[value] for domain, value in zip(domains, found, strict=True)]


__all__ = ["search", "stages"]
