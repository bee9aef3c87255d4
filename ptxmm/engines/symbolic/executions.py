"""The executions of a program that a model forbids, one after the other, each with other facts than those excluded."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ptxmm.cat.ir import Model, Node
from ptxmm.engines.result import Limits, Observed, Witness
from ptxmm.engines.symbolic.problem import Problem
from ptxmm.program.condition import Proposition, terms
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.relations.formula import FALSE, Formula, Formulas
from ptxmm.relations.symbolic import Relation

ThreadEvent = tuple[EventId, str]
"""An event of a thread and its kind (R, W, F, ...)."""

InitialWrite = tuple[str, int, int]
"""The initial write of a byte range: physical key, offset, size."""


class Fact(Struct, frozen=True):
    """That ``relation`` (a node of the model, or the name of a base relation) relates ``first`` to ``second``, or,
    where not ``holds``, does not. Without ``second``, that the set ``relation`` has ``first``."""

    relation: str | Node
    first: ThreadEvent | InitialWrite
    second: ThreadEvent | InitialWrite | None
    holds: bool = True


class Executions:
    """The executions of ``test`` in which ``proposition`` holds of the final state, allowed by the model or not.

    They differ in what reads read from, coherence, Fence-SC order, paths and phases of barriers. Only executions of
    ``test`` that reach its end and have a meaning are found.
    """

    def __init__(
        self, test: Test, model: Model, proposition: Proposition | None, limits: Limits, observed: Observed
    ) -> None:
        named = terms(proposition) if proposition is not None else ()
        problem = self._problem = Problem(test, model, observed, limits, named, axioms=False)
        self._numbers: dict[ThreadEvent, list[int]] = {}
        for event in problem.program.events:
            self._numbers.setdefault((event.id, event.kind), []).append(event.number)
        problem.solver.require(problem.program.final)
        if proposition is not None:
            problem.solver.require(problem.formula(proposition))

    def next(self, having: Iterable[Fact] = (), lacking: Iterable[Iterable[Fact]] = ()) -> Witness | None:
        """An execution that none of the exclusions so far is about, or None: one with all the facts ``having``, and
        without one at least of each of ``lacking``. Raises ``Timeout``."""
        assumed = [self._formula(fact) for fact in having]
        assumed += [-self._formulas.all([self._formula(fact) for fact in facts]) for facts in lacking]
        if self._problem.solver.satisfiable(self._problem.program.final, assumed):
            return self._problem.witness()
        return None

    def exclude(self, facts: Iterable[Fact]) -> None:
        """From now on, find no execution in which all of ``facts`` are true."""
        self._problem.solver.require(-self._formulas.all([self._formula(fact) for fact in facts]))

    @property
    def _formulas(self) -> Formulas:
        return self._problem.formulas

    def _formula(self, fact: Fact) -> Formula:
        """When ``fact`` is true. Events are known by the same ids on both sides; the initial write of a range stands
        for those of all parts of it."""
        problem, formulas, relation = self._problem, self._problem.formulas, fact.relation
        value = problem.base(relation) if isinstance(relation, str) else problem.evaluator.value(relation)
        firsts = self._found(fact.first)
        if isinstance(value, Relation):
            assert fact.second is not None
            seconds = self._found(fact.second)
            when = formulas.any([problem.program.algebra.get(value, a, b) for a in firsts for b in seconds])
        else:
            when = formulas.any([_member(value.must, value.may, a) for a in firsts])
        if fact.holds:
            return when
        present = [formulas.any([problem.program.presence[e] for e in firsts])]
        if fact.second is not None:
            present.append(formulas.any([problem.program.presence[e] for e in self._found(fact.second)]))
        return formulas.all([*present, -when])

    def _found(self, event: ThreadEvent | InitialWrite) -> list[int]:
        if len(event) == 2:
            return self._numbers.get(event, [])
        key, offset, size = event
        return [
            number
            for (other, start, length), number in self._problem.program.initial.items()
            if other == key and start < offset + size and offset < start + length
        ]


def _member(must: int, may: dict[int, Formula], event: int) -> Formula:
    return -FALSE if must >> event & 1 else may.get(event, FALSE)
