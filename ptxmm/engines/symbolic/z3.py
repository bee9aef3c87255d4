"""Z3 as an incremental solver of clauses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from ctypes import c_void_p

from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.library import UNKNOWN, UNSATISFIABLE, library
from ptxmm.errors import Timeout

_FEW = 4
"""So many clauses are built term by term after all: a text costs as much as ten."""
_QUICK: tuple[tuple[str, int], ...] = (("rlimit", 100_000), ("timeout", 2**32 - 1))
"""Of a first try, some tenth of a second: a limit that Z3 counts. Its limit of time has a clock, a thread, which costs
more than most searches."""


class Z3:
    """Clauses go to Z3 in the DIMACS format, which costs a fraction of building terms one call at a time."""

    def __init__(self, limits: Limits, *, preferred: bool) -> None:
        """``preferred``: the value of variables that is tried first; False leaves it to Z3."""
        self._z3 = z3 = library()
        self._limits = limits
        self._kept: list[int] = []
        self._terms: dict[int, int] = {}
        self._declarations: list[int] = []
        self._parameters: dict[tuple[tuple[str, bool | int | str], ...], int] = {}
        self._solver = z3.mk_solver_for_logic(z3.mk_string_symbol(b"QF_FD"))
        z3.solver_inc_ref(self._solver)
        self._true = self._keep(z3.mk_true())
        self._set(("ctrl_c", False), *_QUICK)  # else Z3 would take interrupts for itself, and lose some
        if preferred:
            self._set(("phase", "always_true"))

    def __del__(self) -> None:
        if hasattr(self, "_solver"):
            self._z3.solver_dec_ref(self._solver)
            for term in self._kept:
                self._z3.dec_ref(term)
            for parameters in self._parameters.values():
                self._z3.params_dec_ref(parameters)

    def _add(self, clauses: Sequence[Sequence[int]], variables: int) -> None:
        if not clauses:
            return
        if len(clauses) <= _FEW:
            for clause in clauses:
                either = self._z3.mk_or(len(clause), (c_void_p * len(clause))(*map(self._term, clause)))
                self._z3.solver_assert(self._solver, self._keep(either))
            return
        lines = [f"p cnf {variables} {len(clauses)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in clauses]
        self._z3.solver_from_string(self._solver, ("\n".join(lines) + "\n").encode())

    def satisfiable(self, assumed: Iterable[int], clauses: Sequence[Sequence[int]], variables: int) -> bool:
        """Whether an assignment of so many variables meets ``assumed`` and all clauses: ``clauses``, of which none is
        empty, and those of the calls before.

        Z3 gets ever longer turns, so that Python sees an interrupt from the keyboard between them. Raises ``Timeout``
        and ``KeyboardInterrupt``.
        """
        assumptions = [*map(self._term, assumed)]
        self._add(clauses, variables)
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
        return answer != UNSATISFIABLE

    def values(self, variables: Sequence[int]) -> list[bool]:
        """The values of ``variables`` (those of the last call first) in the assignment found last."""
        z3, declarations = self._z3, self._declarations
        declarations += [z3.get_app_decl(self._term(v)) for v in variables[len(declarations) :]]
        model = z3.solver_get_model(self._solver)
        z3.model_inc_ref(model)
        interpretation, true = z3.model_get_const_interp, self._true
        found = [interpretation(model, declared) == true for declared in declarations]
        z3.model_dec_ref(model)
        return found

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
