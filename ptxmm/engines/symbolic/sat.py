"""Z3 as an incremental solver of the formulas of one test."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.relations.formula import FALSE, TRUE, Clauses, Formula, Formulas


class Solver:
    """Clauses go to Z3 in the DIMACS format, which costs a fraction of building terms one call at a time."""

    def __init__(self, formulas: Formulas, limits: Limits) -> None:
        import z3

        self._z3 = z3
        self._formulas = formulas
        self._clauses = Clauses(formulas)
        self._limits = limits
        self._context = z3.main_ctx().ref()
        self._solver = z3.SolverFor("QF_FD")
        self._solver.set("ctrl_c", False)  # else Z3 would take interrupts for itself, and lose some
        self._declarations: dict[int, object] = {}
        self._values: dict[Formula, bool] = {}
        self._impossible = False

    def prefer_true(self) -> None:
        """Try first that variables are true, where an assignment is looked for."""
        self._solver.set("phase", "always_true")

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
        self._send()
        if self._impossible:
            return False
        answer = self._check(goals)
        if answer == self._z3.unsat:
            return False
        self._read()
        return True

    def _check(self, assumptions: list[object]) -> object:
        """Z3's answer. It gets ever longer turns, so that Python sees an interrupt from the keyboard between them."""
        turn = 500
        while True:
            self._limits.check()
            left = turn
            if self._limits.deadline is not None:
                left = min(turn, max(1, int(1000 * (self._limits.deadline - time.monotonic()))))
            self._solver.set("timeout", left)
            answer = self._solver.check(*assumptions)
            if answer != self._z3.unknown:
                return answer
            if "timeout" not in self._solver.reason_unknown():
                raise Timeout  # stopped from outside
            time.sleep(0.02)  # outside Z3, where an interrupt that came meanwhile is taken
            turn = min(2 * turn, 2**30)

    def value(self, formula: Formula) -> bool:
        """The value of ``formula`` in the assignment found last."""
        return self._formulas.evaluate(formula, self._values)

    def _send(self) -> None:
        clauses = self._clauses.take()
        if not clauses:
            return
        if [] in clauses:
            self._impossible = True
            return
        lines = [f"p cnf {len(self._clauses.number)} {len(clauses)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in clauses]
        self._solver.from_string("\n".join(lines) + "\n")

    def _constant(self, name: int) -> object:
        core = self._z3.z3core
        symbol = core.Z3_mk_int_symbol(self._context, name)
        return self._z3.BoolRef(core.Z3_mk_const(self._context, symbol, self._z3.BoolSort().ast))

    def _term(self, literal: int) -> object:
        constant = self._constant(abs(literal))
        return constant if literal > 0 else self._z3.Not(constant)

    def _read(self) -> None:
        """Read the values of all variables that reached the solver."""
        core, context = self._z3.z3core, self._context
        model = self._solver.model().model
        values: dict[Formula, bool] = {}
        for node, name in self._clauses.number.items():
            if self._formulas.arguments[node] is not None:
                continue
            declaration = self._declarations.get(node)
            if declaration is None:
                declaration = self._declarations[node] = self._constant(name).decl().ast  # type: ignore[attr-defined]
            value = core.Z3_model_get_const_interp(context, model, declaration)
            values[node] = bool(value) and core.Z3_get_bool_value(context, value) == 1
        self._values = values
