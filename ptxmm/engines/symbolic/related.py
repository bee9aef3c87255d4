"""The pairs of instructions that a relation of a model relates in some execution that it allows."""

from __future__ import annotations

from collections.abc import Sequence

from ptxmm.cat.ir import Model, Node
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.program.condition import RegisterTerm
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Type
from ptxmm.relations.formula import Formula
from ptxmm.relations.symbolic import Relation

SitePair = tuple[Site, Site]
"""Two instructions of threads, the one that comes first in the test first; they may be the same."""

_U32 = Type("u", 32)


class RelatedSites:
    """Which instructions each of ``relations`` relates, over all executions of ``test`` that ``model`` allows.

    Those count too that never end: a relation that later events take no pair from, such as a data race, has the pair in
    the beginning of such a one as well (see ``Problem.counts``). Only accesses of memory count: events of no thread,
    fences and barriers are left out.

    ``bounded``, ``undefined``, ``flags``: as in ``engines.result.Search``. ``ends``: some execution
    reaches its end and meets the test's filter; ``left_out``: the first relation may relate events that are left out.
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
        self.bounded = solver.satisfiable(program.cut)
        self.ends = solver.satisfiable(program.final)
        solver.require(problem.counts)
        self.flags = frozenset(name for name, formula in problem.flags if solver.satisfiable(formula))
        found = [_by_site(problem, node, limits) for node in relations]
        self._when = [when for when, _ in found]
        self.left_out = found[0][1]

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


def _by_site(problem: Problem, node: Node, limits: Limits) -> tuple[dict[SitePair, list[Formula]], bool]:
    """When a relation relates accesses of two instructions; and whether it may relate other events too."""
    program = problem.program
    value = problem.evaluator.value(node)
    assert isinstance(value, Relation)
    found: dict[SitePair, list[Formula]] = {}
    left_out = False
    for a, b, when in program.algebra.pairs(value):
        if max(a, b) >= len(program.events) or {program.events[a].kind, program.events[b].kind} - {"R", "W"}:
            left_out = True
            continue
        limits.check()
        x, y = program.events[a].id.site, program.events[b].id.site
        executed = [when, program.presence[a], program.presence[b]]
        found.setdefault((min(x, y), max(x, y)), []).append(problem.formulas.all(executed))
    return found, left_out
