"""One problem for all strengths that instructions of a program may have: which of them forbid what is not wanted?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from ptxmm.cat.ir import Model
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.program.condition import Proposition, terms
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.relations.formula import FALSE, Formula


class Unwanted(Struct, frozen=True):
    """What an execution must not do: end in a state that ``proposition`` holds of, raise one of ``flags``, have no
    meaning (``undefined``), or leave threads waiting for ever (``deadlock``)."""

    proposition: Proposition | None = None
    flags: frozenset[str] = frozenset()
    undefined: bool = False
    deadlock: bool = False


class Strengths:
    """Every program that the forms of some instructions make of a test, each under one model.

    ``test`` has the instructions in their strongest form. An order that is stronger and a scope that is
    wider forbid more; ``find`` does not depend on that.
    """

    def __init__(
        self,
        test: Test,
        model: Model,
        variations: Mapping[Site, Variation],
        unwanted: Unwanted,
        limits: Limits,
        observed: Observed | None = None,
    ) -> None:
        named = terms(unwanted.proposition) if unwanted.proposition is not None else ()
        self._problem = Problem(test, model, observed or Observed((), ()), limits, named, variations=variations)
        self._problem.solver.prefer_true()  # so that ``more`` finds large sets
        self._switches: Mapping[Switch, Formula] = self._problem.base.alternatives.switches
        proposition = unwanted.proposition
        self._bad = FALSE if proposition is None else self._problem.formula(proposition)
        self._unwanted = self._formula(unwanted)

    @property
    def switches(self) -> tuple[Switch, ...]:
        """All switches, by thread and instruction."""
        return tuple(sorted(self._switches))

    def find(self, on: Collection[Switch]) -> Witness | None:
        """An unwanted execution of the program in which exactly the switches ``on`` are on, or None.

        Raises ``Timeout``.
        """
        assumed = [formula if switch in on else -formula for switch, formula in self._switches.items()]
        return self._problem.witness() if self._problem.solver.satisfiable(self._unwanted, assumed) else None

    def ends(self, on: Collection[Switch]) -> bool:
        """Whether that program has an execution that reaches its end. Raises ``Timeout``."""
        assumed = [formula if switch in on else -formula for switch, formula in self._switches.items()]
        return self._problem.solver.satisfiable(self._problem.program.final, assumed)

    def wanted(self) -> Witness | None:
        """An execution of the strongest program that reaches its end, in a state that may be, or None. Raises
        ``Timeout``."""
        goal = self._problem.formulas.both(self._problem.program.final, -self._bad)
        return self._problem.witness() if self._problem.solver.satisfiable(goal) else None

    def more(self, on: Collection[Switch], among: Collection[Switch]) -> frozenset[Switch] | None:
        """The switches that are on in some program with an unwanted execution, all of ``on`` and at least one of
        ``among`` being on; None if there is no such program. Raises ``Timeout``."""
        formulas, solver = self._problem.formulas, self._problem.solver
        goal = formulas.both(self._unwanted, formulas.any([self._switches[switch] for switch in among]))
        if not solver.satisfiable(goal, [self._switches[switch] for switch in on]):
            return None
        return frozenset(on).union(s for s, formula in self._switches.items() if solver.value(formula))

    def _formula(self, unwanted: Unwanted) -> Formula:
        problem, formulas = self._problem, self._problem.formulas
        raised = formulas.any([formula for name, formula in problem.flags if name in unwanted.flags])
        misuse = [f for f, _ in problem.misuses] if unwanted.undefined else [FALSE]
        if unwanted.deadlock:
            misuse.append(problem.program.deadlock)
        reached = formulas.both(problem.program.final, self._bad)
        return formulas.any([*misuse, reached, formulas.both(problem.counts, raised)])
