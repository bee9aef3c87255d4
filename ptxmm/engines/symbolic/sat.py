"""An incremental solver of the formulas of one test."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.dpll import Dpll
from ptxmm.engines.symbolic.orders import Acyclic, TotalOrder
from ptxmm.engines.symbolic.z3 import Z3
from ptxmm.events.symbolic.values.lookups import Lookup
from ptxmm.relations.formula import FALSE, TRUE, Clauses, Formula, Formulas

FEW = 3000
"""So many clauses are tried without Z3, which takes longer to be set up than they to be solved."""
_DEAD_ENDS = 100
"""So many of them in one search tell that it is one for Z3."""


class Solver:
    """What is required, as clauses; few and simple ones never reach Z3."""

    def __init__(
        self,
        formulas: Formulas,
        limits: Limits,
        orders: Sequence[TotalOrder] = (),
        acyclic: Sequence[Acyclic] = (),
        lookups: Sequence[Lookup] = (),
        *,
        shown: bool = True,
    ) -> None:
        """``orders``, ``acyclic``, ``lookups``: what is not written out. ``shown``: what is found is shown, or leads to
        what is, so that Z3 is to find it; else any assignment will do."""
        self._formulas = formulas
        self._clauses = Clauses(formulas)
        self._limits = limits
        self._orders = orders
        self._acyclic = acyclic
        self._lookups = lookups
        self._preferred = False
        self._small = None if shown else Dpll()
        self._z3: Z3 | None = None
        self._required: list[list[int]] = []
        """Clauses that Z3 does not have."""
        self._nodes: list[Formula] = []
        self._variables: list[int] = []
        """The formulas whose values are read, and their variables."""
        self._numbered = 0
        self._values: dict[Formula, bool] = {}
        self._impossible = False

    def prefer_true(self) -> None:
        """Try first that variables are true, where an assignment is looked for; before anything is looked for."""
        self._preferred = True

    def require(self, formula: Formula) -> None:
        """Add ``formula`` for good."""
        if formula == FALSE:
            self._impossible = True
        elif formula != TRUE:
            self._clauses.require(formula)

    def exclude(self, a: Formula, b: Formula) -> None:
        """Add for good that ``a`` and ``b`` do not hold together, whatever simplification makes of that."""
        self._clauses.exclude(a, b)

    def satisfiable(self, goal: Formula, assumed: Sequence[Formula] = ()) -> bool:
        """Whether an assignment meets all that is required, ``goal`` and what is ``assumed``; ``value`` then reads one.

        Raises ``Timeout`` when the deadline passes first, ``KeyboardInterrupt`` when the user stops it.
        """
        if self._impossible or goal == FALSE:
            return False
        literals = [self._clauses.literal(item) for item in (goal, *assumed) if item != TRUE]
        while True:
            self._limits.check()
            if not self._solved(literals):
                return False
            cycles = [cycle for order in self._orders for cycle in order.settle(self._values)]
            if not cycles:  # the values of all pairs are known
                cycles = [cycle for relation in self._acyclic for cycle in relation.cycles(self.value)]
            lemmas = [-self._formulas.all(cycle) for cycle in cycles]
            if not lemmas:
                found = (lookup.lemma(self._formulas, self.value) for lookup in self._lookups)
                lemmas = [lemma for lemma in found if lemma != TRUE]
            if not lemmas:
                return True
            for lemma in lemmas:
                self._clauses.require(lemma)

    def value(self, formula: Formula) -> bool:
        """The value of ``formula`` in the assignment found last."""
        found = self._values.get(formula if formula > 0 else -formula)
        return self._formulas.evaluate(formula, self._values) if found is None else found == (formula > 0)

    def _solved(self, literals: list[int]) -> bool:
        """Whether an assignment meets the clauses and ``literals``, which is then read: the values of all variables
        that are in a clause, but for auxiliary ones."""
        clauses, number, formulas = self._clauses.take(), self._clauses.number, self._formulas
        self._impossible = self._impossible or [] in clauses
        if self._impossible:
            return False
        for node in islice(number, self._numbered, None):
            if formulas.arguments[node] is None and node not in formulas.auxiliary:
                self._nodes.append(node)
                self._variables.append(number[node])
        self._numbered = len(number)
        self._required += clauses
        if self._small is not None and len(self._required) <= FEW:
            self._small.add(clauses)
            found = self._small.satisfiable(literals, len(number), _DEAD_ENDS, preferred=self._preferred)
            if found:
                true = self._small.true
                self._values = {n: v in true for n, v in zip(self._nodes, self._variables, strict=True)}
            if found is not None:
                return found
        self._small = None
        if self._z3 is None:
            self._z3 = Z3(self._limits, preferred=self._preferred)
        required, self._required = self._required, []
        if not self._z3.satisfiable(literals, required, len(number)):
            return False
        self._values = dict(zip(self._nodes, self._z3.values(self._variables), strict=True))
        return True
