"""Z3 as an incremental solver of the formulas of one test."""

from __future__ import annotations

import time
from collections.abc import Sequence
from ctypes import c_void_p
from itertools import islice

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.library import UNKNOWN, UNSATISFIABLE, library
from ptxmm.engines.symbolic.orders import Acyclic, TotalOrder
from ptxmm.errors import Timeout
from ptxmm.events.symbolic.values.lookups import Lookup
from ptxmm.relations.formula import FALSE, TRUE, Clauses, Formula, Formulas

_FEW = 4
"""So many clauses are built term by term after all: a text costs as much as ten."""
_QUICK: tuple[tuple[str, int], ...] = (("rlimit", 100_000), ("timeout", 2**32 - 1))
"""Of a first try, some tenth of a second: a limit that Z3 counts. Its limit of time has a clock, a thread, which costs
more than most searches."""


class Solver:
    """Clauses go to Z3 in the DIMACS format, which costs a fraction of building terms one call at a time."""

    def __init__(
        self,
        formulas: Formulas,
        limits: Limits,
        orders: Sequence[TotalOrder] = (),
        acyclic: Sequence[Acyclic] = (),
        lookups: Sequence[Lookup] = (),
    ) -> None:
        """``orders``, ``acyclic``, ``lookups``: what is not written out."""
        self._z3 = z3 = library()
        self._formulas = formulas
        self._clauses = Clauses(formulas)
        self._limits = limits
        self._orders = orders
        self._acyclic = acyclic
        self._lookups = lookups
        self._kept: list[int] = []
        self._terms: dict[int, int] = {}
        self._parameters: dict[tuple[tuple[str, bool | int | str], ...], int] = {}
        self._declarations: list[tuple[Formula, int]] = []
        self._numbered = 0
        self._values: dict[Formula, bool] = {}
        self._impossible = False
        self._solver = z3.mk_solver_for_logic(z3.mk_string_symbol(b"QF_FD"))
        z3.solver_inc_ref(self._solver)
        self._true = self._keep(z3.mk_true())
        self._set(("ctrl_c", False), *_QUICK)  # else Z3 would take interrupts for itself, and lose some

    def __del__(self) -> None:
        if hasattr(self, "_solver"):
            self._z3.solver_dec_ref(self._solver)
            for term in self._kept:
                self._z3.dec_ref(term)
            for parameters in self._parameters.values():
                self._z3.params_dec_ref(parameters)

    def prefer_true(self) -> None:
        """Try first that variables are true, where an assignment is looked for."""
        self._set(("phase", "always_true"))

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
        goals = [] if goal == TRUE else [self._term(self._clauses.literal(goal))]
        goals += [self._term(self._clauses.literal(item)) for item in assumed if item != TRUE]
        while True:
            self._send()
            if self._impossible or self._check(goals) == UNSATISFIABLE:
                return False
            self._read()
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

    def _check(self, assumptions: list[int]) -> int:
        """Z3's answer. It gets ever longer turns, so that Python sees an interrupt from the keyboard between them."""
        self._limits.check()
        terms = (c_void_p * len(assumptions))(*assumptions)
        answer: int = self._z3.solver_check_assumptions(self._solver, len(terms), terms)
        turn = 500
        while answer == UNKNOWN:
            time.sleep(0.02)  # outside Z3, where an interrupt that came meanwhile is taken
            self._limits.check()
            left = turn
            if self._limits.deadline is not None:
                left = min(turn, max(1, int(1000 * (self._limits.deadline - time.monotonic()))))
            self._set(("rlimit", 0), ("timeout", left))
            answer = self._z3.solver_check_assumptions(self._solver, len(terms), terms)
            if answer == UNKNOWN and b"timeout" not in self._z3.solver_get_reason_unknown(self._solver):
                raise Timeout  # stopped from outside
            self._set(*_QUICK)
            turn = min(2 * turn, 2**30)
        return answer

    def value(self, formula: Formula) -> bool:
        """The value of ``formula`` in the assignment found last."""
        found = self._values.get(abs(formula))
        return self._formulas.evaluate(formula, self._values) if found is None else found == (formula > 0)

    def _send(self) -> None:
        clauses = self._clauses.take()
        if not clauses:
            return
        if [] in clauses:
            self._impossible = True
            return
        if len(clauses) <= _FEW:
            for clause in clauses:
                either = self._z3.mk_or(len(clause), (c_void_p * len(clause))(*map(self._term, clause)))
                self._z3.solver_assert(self._solver, self._keep(either))
            return
        lines = [f"p cnf {len(self._clauses.number)} {len(clauses)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in clauses]
        self._z3.solver_from_string(self._solver, ("\n".join(lines) + "\n").encode())

    def _set(self, *values: tuple[str, bool | int | str]) -> None:
        """Set parameters of the solver."""
        z3 = self._z3
        parameters = self._parameters.get(values)
        if parameters is None:
            parameters = self._parameters[values] = z3.mk_params()
            z3.params_inc_ref(parameters)
            for name, value in values:
                key = z3.mk_string_symbol(name.encode())
                match value:
                    case bool():
                        z3.params_set_bool(parameters, key, value)
                    case int():
                        z3.params_set_uint(parameters, key, value)
                    case str():
                        z3.params_set_symbol(parameters, key, z3.mk_string_symbol(value.encode()))
        z3.solver_set_params(self._solver, parameters)

    def _term(self, literal: int) -> int:
        term = self._terms.get(literal)
        if term is None:
            z3 = self._z3
            made = z3.mk_const(z3.mk_int_symbol(literal), z3.mk_bool_sort()) if literal > 0 else None
            term = self._terms[literal] = self._keep(made or z3.mk_not(self._term(-literal)))
        return term

    def _keep(self, term: int) -> int:
        """``term``, which Z3 keeps as long as this is there."""
        self._z3.inc_ref(term)
        self._kept.append(term)
        return term

    def _read(self) -> None:
        """Read the values of all variables that reached the solver, but for auxiliary ones."""
        z3, formulas, number = self._z3, self._formulas, self._clauses.number
        for node in islice(number, self._numbered, None):
            if formulas.arguments[node] is None and node not in formulas.auxiliary:
                self._declarations.append((node, z3.get_app_decl(self._term(number[node]))))
        self._numbered = len(number)
        model = z3.solver_get_model(self._solver)
        z3.model_inc_ref(model)
        interpretation, true = z3.model_get_const_interp, self._true
        self._values = {node: interpretation(model, declared) == true for node, declared in self._declarations}
        z3.model_dec_ref(model)
