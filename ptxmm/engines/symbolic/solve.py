"""The Z3 engine: the final states of a test, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ptxmm.cat.ir import Model
from ptxmm.engines.result import Found, Limits, Observed, Search
from ptxmm.engines.symbolic.problem import Problem, chosen, next_grid
from ptxmm.errors import Timeout
from ptxmm.program.condition import Proposition, State, terms
from ptxmm.program.shared.launches import held
from ptxmm.program.test import Test
from ptxmm.relations.formula import TRUE, Formula


def search(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Search:
    """The final states of ``test`` under ``model``, distinct on ``observed``.

    With ``proposition`` at most two: one that satisfies it and one that does not. Raises ``PtxmmError`` for what the
    engine can't model; a deadline that passes is reported in the result.
    """
    return next(stages(test, model, observed, limits, proposition))


def stages(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Iterator[Search]:
    """As ``search``; with ``proposition`` all final states after that, the first ones among them, from the same
    problem. A search that the deadline ends is the last."""
    result = Search()
    try:
        problem = Problem(test, model, observed, limits, terms(proposition) if proposition is not None else ())
        for part in held(test, next_grid(model)):
            _look_at(Problem(part, model, Observed((), ()), limits), result)
        _look_at(problem, result)
        _look_at_ends(problem, result)
        if proposition is not None:
            holds = problem.formula(proposition)
            for goal in (holds, -holds):
                _next(problem, result, goal)
            yield replace(result, found=result.found.copy())
        while len(result.found) != limits.states:
            limits.check()
            if not _next(problem, result, TRUE):
                result.exhausted = True
                break
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


def _next(problem: Problem, result: Search, goal: Formula) -> bool:
    """Add one more final state that meets ``goal`` to ``result``, if there is one."""
    solver = problem.solver
    if not solver.satisfiable(goal):
        return False
    registers: dict[tuple[int, str], int] = {}
    memory: dict[tuple[str, int], int] = {}
    different: list[Formula] = []
    for register in problem.observed.registers:
        domain = problem.domain(register)
        registers[register.thread, register.register] = number = chosen(domain, solver.value)
        different.append(-domain[number])
    for element in problem.observed.memory:
        domain = problem.domain(element)
        memory[element.key, element.index] = number = chosen(domain, solver.value)
        different.append(-domain[number])
    result.found.append(Found(State(registers, memory), problem.witness()))
    solver.require(problem.formulas.any(different))
    return True


__all__ = ["search", "stages"]
