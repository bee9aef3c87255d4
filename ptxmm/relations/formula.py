"""Propositional formulas as a shared graph, and their conversion to clauses.

A formula is a non-zero integer: ``TRUE``, ``FALSE``, a variable or an and-node, negated by the sign. Equal formulas are
the same integer, so that most relations of a litmus test, which are decided before any solver starts, cost a
dictionary look-up. Variables may belong to a *choice*: at most one variable of a choice is ever true, which the
constructors use to simplify (the solver is told so by the caller).
"""

from __future__ import annotations

from collections.abc import Iterable

Formula = int

TRUE: Formula = 1
FALSE: Formula = -1

FLAT = 8
"""Conjunctions of up to so many parts are one node, so that the conditions of paths show their contradictions."""


class Formulas:
    """A table of formulas. Node 1 is the constant true; every other node is a variable or an and-node."""

    def __init__(self) -> None:
        self.arguments: list[tuple[Formula, ...] | None] = [None, None]
        self.auxiliary: set[Formula] = set()
        """Variables whose values nobody asks for."""
        self._choice: dict[Formula, int] = {}
        self._nodes: dict[tuple[Formula, ...], Formula] = {}
        self._pairs: dict[tuple[Formula, Formula], Formula] = {}

    def copy(self) -> Formulas:
        """A table with the same formulas, to which others can be added apart."""
        result = Formulas()
        result.arguments, result.auxiliary = self.arguments.copy(), self.auxiliary.copy()
        result._choice, result._nodes, result._pairs = self._choice.copy(), self._nodes.copy(), self._pairs.copy()
        return result

    def variable(self, choice: int | None = None) -> Formula:
        """A new variable; of those with the same ``choice`` at most one is true."""
        node = len(self.arguments)
        self.arguments.append(None)
        if choice is not None:
            self._choice[node] = choice
        return node

    def helper(self) -> Formula:
        """A new variable that only constraints are about: its value is not asked for."""
        node = self.variable()
        self.auxiliary.add(node)
        return node

    def both(self, a: Formula, b: Formula) -> Formula:
        """``a`` and ``b``."""
        if a == b or b == TRUE:
            return a
        if a == TRUE:
            return b
        if a == FALSE or b == FALSE or a == -b:
            return FALSE
        if a > b:
            a, b = b, a
        found = self._pairs.get((a, b))
        if found is None:
            found = self._pairs[a, b] = self._simplified(a, b)
        return found

    def either(self, a: Formula, b: Formula) -> Formula:
        """``a`` or ``b``."""
        return -self.both(-a, -b)

    def all(self, items: Iterable[Formula]) -> Formula:
        """The conjunction of ``items``."""
        unique = set(items)
        unique.discard(TRUE)
        if not unique:
            return TRUE
        if FALSE in unique:
            return FALSE
        if len(unique) == 1:
            return unique.pop()
        if len(unique) == 2:
            return self.both(*unique)
        return self._conjunction(unique)

    def any(self, items: Iterable[Formula]) -> Formula:
        """The disjunction of ``items``."""
        return -self.all([-item for item in items])

    def evaluate(self, formula: Formula, values: dict[Formula, bool]) -> bool:
        """The value of ``formula``; ``values`` holds those of variables (default false) and takes those of nodes."""
        values[1] = True
        stack = [abs(formula)]
        while stack:
            node = stack[-1]
            if node in values:
                stack.pop()
                continue
            arguments = self.arguments[node]
            if arguments is None:
                values[node] = False
                stack.pop()
                continue
            open_ = [abs(a) for a in arguments if abs(a) not in values]
            if open_:
                stack.extend(open_)
                continue
            values[node] = all(values[abs(a)] == (a > 0) for a in arguments)
            stack.pop()
        return values[abs(formula)] == (formula > 0)

    def _node(self, arguments: tuple[Formula, ...]) -> Formula:
        found = self._nodes.get(arguments)
        if found is None:
            found = self._nodes[arguments] = len(self.arguments)
            self.arguments.append(arguments)
        return found

    def _simplified(self, a: Formula, b: Formula) -> Formula:
        arguments, choices = self.arguments, self._choice
        first, second = arguments[abs(a)], arguments[abs(b)]
        for one, other, inner in ((a, b, first), (b, a, second)):
            if inner is None:
                continue
            if one > 0:
                if other in inner:
                    return one
                if -other in inner:
                    return FALSE
                choice = choices.get(other)
                if choice is not None and any(choices.get(i) == choice for i in inner):
                    return FALSE
            else:
                if -other in inner:
                    return other
                if other in inner and len(inner) == 2:
                    return self.both(other, -inner[0] if inner[1] == other else -inner[1])
        # What each is the conjunction of.
        parts = {a} if first is None or a < 0 else set(first)
        parts.update((b,) if second is None or b < 0 else second)
        if len(parts) > FLAT:
            return self._node((a, b))
        return self._conjunction(parts)

    def _conjunction(self, parts: set[Formula]) -> Formula:
        """The node of several formulas, none of them constant, unless two of them exclude each other."""
        choices = self._choice
        chosen: dict[int, Formula] | None = None
        for part in parts:
            if -part in parts:
                return FALSE
            if part in choices:
                if chosen is None:
                    chosen = {choices[part]: part}
                elif chosen.setdefault(choices[part], part) != part:
                    return FALSE
        return self._node(tuple(sorted(parts)))


class Clauses:
    """Clauses equisatisfiable with formulas, as the polarity-aware definitions of Plaisted and Greenbaum (1986).

    Variables of the clauses are numbered from 1 in ``number``, which maps formula nodes to them.
    """

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.number: dict[Formula, int] = {}
        self.clauses: list[list[int]] = []
        self._defined: set[Formula] = set()

    def take(self) -> list[list[int]]:
        """The clauses that were added since the last call."""
        clauses, self.clauses = self.clauses, []
        return clauses

    def literal(self, formula: Formula) -> int:
        """The literal that is true only if ``formula`` holds (defined in that direction)."""
        number, arguments, defined = self.number, self.formulas.arguments, self._defined
        if formula in defined:
            return number[formula] if formula > 0 else -number[-formula]
        stack = [formula]
        while stack:
            item = stack.pop()
            if item in defined:
                continue
            defined.add(item)
            node = abs(item)
            name = number.setdefault(node, len(number) + 1)
            if node == 1:
                self.clauses.append([name])
                continue
            inner = arguments[node]
            if inner is None:
                continue
            if item > 0:
                for part in inner:
                    self.clauses.append([-name, self._name(part)])
                stack += inner
            else:
                clause = [name]
                for part in inner:
                    clause.append(self._name(-part))
                    stack.append(-part)
                self.clauses.append(clause)
        return self._name(formula)

    def require(self, formula: Formula) -> None:
        """Add clauses that make ``formula`` hold."""
        stack = [formula]
        while stack:
            item = stack.pop()
            if item == TRUE:
                continue
            inner = self.formulas.arguments[abs(item)]
            if item == FALSE:
                self.clauses.append([])
            elif inner is None:
                self.clauses.append([self.literal(item)])
            elif item > 0:
                stack.extend(inner)
            else:
                self.clauses.append([self.literal(-part) for part in inner])

    def exclude(self, a: Formula, b: Formula) -> None:
        """Add the clause that ``a`` and ``b`` do not hold together, unsimplified."""
        self.clauses.append([self.literal(-a), self.literal(-b)])

    def _name(self, formula: Formula) -> int:
        name = self.number.setdefault(abs(formula), len(self.number) + 1)
        return name if formula > 0 else -name
