"""The search of Davis, Logemann and Loveland (1962) for small sets of clauses, with two watched literals for each
(Moskewicz et al. 2001). Most litmus tests leave some ten variables open, for which Z3 takes longer to be set up than
this to be done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

Literal = int
"""A variable, numbered from 1, or minus one: its negation."""


class Dpll:
    """An incremental solver. ``true`` has the literals that hold in the assignment found last: of each variable up to
    the number that was asked for, one."""

    def __init__(self) -> None:
        self.true: set[Literal] = set()
        self._trail: list[Literal] = []
        self._looked_at = 0
        self._lasting = 0
        """So many of ``_trail`` follow from the clauses alone, and so many have been looked at."""
        self._levels: list[tuple[Literal, int]] = []
        """What was assumed last, and how long ``_trail`` was with each."""
        self._watched: defaultdict[Literal, list[list[Literal]]] = defaultdict(list)
        """The clauses of which a literal is one of the first two."""
        self._implied: defaultdict[Literal, list[Literal]] = defaultdict(list)
        """Of the clauses of two literals, the other ones of each."""
        self._impossible = False

    def add(self, clauses: Iterable[Sequence[Literal]]) -> None:
        """Require clauses for good."""
        self._undo(self._lasting)
        self._levels.clear()
        true, watched = self.true, self._watched
        for clause in clauses:
            if not true.isdisjoint(clause):
                continue
            open_ = [literal for literal in clause if -literal not in true]
            if len(open_) == 2:
                self._implied[open_[0]].append(open_[1])
                self._implied[open_[1]].append(open_[0])
            elif len(open_) > 2:
                watched[open_[0]].append(open_)
                watched[open_[1]].append(open_)
            elif open_:
                true.add(open_[0])
                self._trail.append(open_[0])
            else:
                self._impossible = True
        self._impossible = self._impossible or not self._follow()
        self._lasting = len(self._trail)

    def satisfiable(
        self, assumed: Sequence[Literal], variables: int, most: int, *, preferred: bool = False
    ) -> bool | None:
        """Whether an assignment of ``variables`` meets all clauses and ``assumed``; None after ``most`` dead ends.

        ``preferred``: the value that is tried first.
        """
        if self._impossible or not self._assume(assumed):
            return False
        true, trail = self.true, self._trail
        decided: list[tuple[int, int]] = []
        variable = 1
        while variable <= variables:
            if variable in true or -variable in true:
                variable += 1
                continue
            decided.append((len(trail), variable))
            consistent = self._holds(variable if preferred else -variable)
            while not consistent:
                if not decided:
                    return False
                most -= 1
                if most < 0:
                    return None
                size, variable = decided.pop()
                self._undo(size)
                consistent = self._holds(-variable if preferred else variable)
        return True

    def _assume(self, assumed: Sequence[Literal]) -> bool:
        """Let ``assumed`` hold, and nothing but what follows; whether that can be."""
        levels, same = self._levels, 0
        while same < len(levels) and same < len(assumed) and levels[same][0] == assumed[same]:
            same += 1
        del levels[same:]
        self._undo(levels[-1][1] if levels else self._lasting)
        for literal in assumed[same:]:
            if not self._holds(literal):
                return False
            levels.append((literal, len(self._trail)))
        return True

    def _holds(self, literal: Literal) -> bool:
        """Let ``literal`` hold, and all that follows by clauses that have one literal left; whether that can be."""
        if literal in self.true:
            return True
        if -literal in self.true:
            return False
        self.true.add(literal)
        self._trail.append(literal)
        return self._follow()

    def _follow(self) -> bool:
        true, trail, watched, implied = self.true, self._trail, self._watched, self._implied
        while self._looked_at < len(trail):
            false = -trail[self._looked_at]
            self._looked_at += 1
            for other in implied.get(false, ()):
                if other not in true:
                    if -other in true:
                        return False
                    true.add(other)
                    trail.append(other)
            clauses = watched.get(false)
            if not clauses:
                continue
            kept = watched[false] = []
            for i, clause in enumerate(clauses):
                if clause[0] == false:
                    clause[0], clause[1] = clause[1], false
                other = clause[0]
                if other not in true:
                    for k in range(2, len(clause)):
                        if -clause[k] not in true:
                            clause[1], clause[k] = clause[k], false
                            watched[clause[1]].append(clause)
                            break
                    else:
                        if -other in true:
                            kept += clauses[i:]
                            return False
                        true.add(other)
                        trail.append(other)
                        kept.append(clause)
                    continue
                kept.append(clause)
        return True

    def _undo(self, size: int) -> None:
        """Take back all but the first ``size`` of what holds."""
        trail = self._trail
        self.true.difference_update(trail[size:])
        del trail[size:]
        self._looked_at = size
