"""The solver of few clauses, beside all assignments and beside Z3."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic import sat
from ptxmm.engines.symbolic.dpll import Dpll
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.relations.formula import TRUE, Formula, Formulas


def some(rng: Random, variables: int, size: int) -> list[int]:
    """So many literals, some of them twice or against each other."""
    return [rng.choice((1, -1)) * rng.randint(1, variables) for _ in range(size)]


def meets(values: tuple[bool, ...], clauses: list[list[int]]) -> bool:
    """Whether each clause has a literal that is true."""
    return all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


@pytest.mark.parametrize("seed", range(300))
def test_it_finds_an_assignment_where_there_is_one(seed: int) -> None:
    """Clauses come one after the other; what is assumed begins like what was assumed before, or does not."""
    rng = Random(seed)
    variables = rng.randint(1, 8)
    solver, clauses = Dpll(), list[list[int]]()
    for _ in range(rng.randint(1, 4)):
        new = [some(rng, variables, rng.choice((0, *[1] * 5, *[2, 3, 4] * 9))) for _ in range(rng.randint(0, 8))]
        clauses += new
        solver.add([clause.copy() for clause in new])
        assumed: list[int] = []
        for _ in range(6):
            assumed = assumed[: rng.randint(0, 4)] + some(rng, variables, rng.randint(0, 3))
            among = [*clauses, *([literal] for literal in assumed)]
            expected = any(meets(values, among) for values in product((False, True), repeat=variables))
            assert solver.satisfiable(assumed, variables, 1000, preferred=rng.random() < 0.5) == expected
            if expected:
                assert meets(tuple(v in solver.true for v in range(1, variables + 1)), among)
                assert all((v in solver.true) != (-v in solver.true) for v in range(1, variables + 1))


def test_the_preferred_value_is_tried_first() -> None:
    solver = Dpll()
    solver.add([[1, 2], [-1, -2]])
    assert solver.satisfiable([], 3, 0) and solver.true == {-1, 2, -3}
    assert solver.satisfiable([], 3, 0, preferred=True) and solver.true == {1, -2, 3}


def pigeons(holes: int) -> list[list[int]]:
    """One more than there are holes, each in one, no two in the same."""
    at = [[pigeon * holes + hole + 1 for hole in range(holes)] for pigeon in range(holes + 1)]
    return at + [[-a, -b] for column in zip(*at, strict=True) for a, b in combinations(column, 2)]


def test_it_gives_up_after_so_many_dead_ends() -> None:
    solver = Dpll()
    solver.add(pigeons(5))
    assert solver.satisfiable([], 30, 20) is None
    assert solver.satisfiable([], 30, 10**6) is False


@pytest.mark.parametrize("few", [0, 8, 3000])
@pytest.mark.parametrize("ends", [0, 100])
@pytest.mark.parametrize("seed", range(40))
def test_whoever_solves_them_formulas_have_the_same_solutions(
    few: int, ends: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Z3 takes over what was begun without it."""
    monkeypatch.setattr(sat, "FEW", few)
    monkeypatch.setattr(sat, "_DEAD_ENDS", ends)
    rng, formulas = Random(seed), Formulas()
    variables = [formulas.variable() for _ in range(6)]
    made: list[Formula] = [*variables]
    for _ in range(20):
        made.append(formulas.either(*(rng.choice((1, -1)) * rng.choice(made) for _ in range(2))))
    solver, required = Solver(formulas, Limits(), shown=False), list[Formula]()
    for formula in rng.sample(made, 4):
        solver.require(formula)
        required.append(formula)
        goal, assumed = rng.choice(made), [rng.choice((1, -1)) * rng.choice(variables)]
        asked = [*required, goal, *assumed]
        rows = [dict(zip(variables, row, strict=True)) for row in product((False, True), repeat=6)]
        expected = any(all(formulas.evaluate(f, row.copy()) for f in asked) for row in rows)
        assert solver.satisfiable(goal, assumed) == expected
        assert not expected or all(solver.value(f) for f in asked)
        assert solver.satisfiable(TRUE) == any(all(formulas.evaluate(f, r.copy()) for f in required) for r in rows)
