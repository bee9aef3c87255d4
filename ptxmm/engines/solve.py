"""The Z3 engine: all executions of a test as one propositional problem, its final states one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import combinations

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model
from ptxmm.engines.result import Found, Limits, Observed, Search, Source, Witness
from ptxmm.engines.sat import Solver
from ptxmm.engines.whole import never_torn, rule
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.events.symbolic.base import Base
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.machine import Reading
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.symmetry import interchangeable
from ptxmm.events.symbolic.values import Domain, only
from ptxmm.program.condition import (
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
    State,
    Term,
    compare,
    comparison_type,
    terms,
)
from ptxmm.program.test import EventId, Test
from ptxmm.relations.checks import acyclicity, cyclic, non_empty, reflexive
from ptxmm.relations.formula import TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation


def search(
    test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None = None
) -> Search:
    """The final states of ``test`` under ``model``, distinct on ``observed``.

    With ``proposition`` at most two: one that satisfies it and one that does not. Raises ``PtxmmError`` for what the
    engine can't model; a deadline that passes is reported in the result.
    """
    result = Search()
    try:
        _Problem(test, model, observed, limits, proposition).run(result)
    except Timeout:
        result.timeout = True
    return result


class _Problem:
    def __init__(
        self, test: Test, model: Model, observed: Observed, limits: Limits, proposition: Proposition | None
    ) -> None:
        self.test = test
        self.observed = observed
        self.limits = limits
        self.proposition = proposition
        named = [t for p in (proposition, test.filter) if p is not None for t in terms(p)]
        memory = tuple(dict.fromkeys([*observed.memory, *(t for t in named if isinstance(t, MemoryTerm))]))
        reading = Reading(
            unroll=limits.unroll,
            tear=model.readings.get("tear") == "on",
            simplify=model.readings.get("dep") != "syn",
            split128=model.readings.get("b128") == "split",
            cas_writes=model.readings.get("cas-failure") == "write",
            direct=model.readings.get("co") == "direct",
            ordered="mbnext" in model.names(),
        )
        program, base, evaluator = _program(test, model, (*memory, *observed.registers, *named), reading, limits)
        self.program = program
        self.formulas = program.formulas
        self.elements = {term: program.element(term) for term in memory}
        algebra = program.algebra
        program.constraints += acyclicity(
            algebra, reduce(algebra.union, [base.relation(name) for name in ("rf", "addr", "data")])
        )
        if reading.direct:
            program.constraints += acyclicity(algebra, base.relation("co"))
        self.flags: list[tuple[str, Formula]] = []
        for axiom, value in evaluator.axioms():
            limits.check()
            if axiom.flag:
                self.flags.append((axiom.name, self._holds(axiom, value)[0]))
            else:
                program.constraints += self._holds(axiom, value)
        if "sync_fence" in model.names():
            self._total_fence_order(base)
        if test.filter is not None:
            program.constraints.append(self.formulas.either(-program.finished, self._formula(test.filter)))
        self._break_symmetry(named)
        self.solver = Solver(self.formulas, limits)
        for formula in program.constraints:
            self.solver.require(formula)
        for a, b in program.exclusive:
            self.solver.exclude(a, b)

    def run(self, result: Search) -> None:
        """Ask the solver for everything that ``Search`` reports."""
        program, solver = self.program, self.solver
        misuse = self.formulas.any([f for f, _ in program.undefined])
        if solver.satisfiable(misuse):
            result.undefined = next(text for f, text in program.undefined if solver.value(f))
        result.deadlock = solver.satisfiable(program.deadlock)
        result.bounded = solver.satisfiable(program.cut)
        solver.require(program.final)
        for name, formula in self.flags:
            if solver.satisfiable(formula):
                result.flags.add(name)
        if self.proposition is None:
            while len(result.found) != self.limits.states:
                self.limits.check()
                if not self._next(result, TRUE):
                    result.exhausted = True
                    break
        else:
            holds = self._formula(self.proposition)
            self._next(result, holds)
            self._next(result, -holds)

    def _next(self, result: Search, goal: Formula) -> bool:
        """Add one more final state that meets ``goal`` to ``result``, if there is one."""
        if not self.solver.satisfiable(goal):
            return False
        value = self.solver.value
        registers: dict[tuple[int, str], int] = {}
        memory: dict[tuple[str, int], int] = {}
        different: list[Formula] = []
        for register in self.observed.registers:
            domain = self._register(register)
            registers[register.thread, register.register] = number = _chosen(domain, value)
            different.append(-domain[number])
        for element in self.observed.memory:
            domain = self.elements[element]
            memory[element.key, element.index] = number = _chosen(domain, value)
            different.append(-domain[number])
        result.found.append(Found(State(registers, memory), self._witness(value)))
        self.solver.require(self.formulas.any(different))
        return True

    def _register(self, term: RegisterTerm) -> Domain:
        return self.program.threads[term.thread].registers.get(term.register, only(0))

    def _domain(self, term: Term) -> Domain:
        match term:
            case RegisterTerm():
                return self._register(term)
            case MemoryTerm():
                return self.elements[term]
            case IntegerTerm(number):
                return only(number)
        return only(term.address)

    def _formula(self, item: Proposition) -> Formula:
        formulas = self.formulas
        match item:
            case Comparison(op, left, right):
                type_ = comparison_type(item)
                return formulas.any(
                    [
                        formulas.both(a, b)
                        for x, a in self._domain(left).items()
                        for y, b in self._domain(right).items()
                        if compare(op, x, y, type_)
                    ]
                )
            case Conjunction(items):
                return formulas.all([self._formula(i) for i in items])
            case Disjunction(items):
                return formulas.any([self._formula(i) for i in items])
            case Negation(inner):
                return -self._formula(inner)

    def _holds(self, axiom: Axiom, value: EventSet | Relation) -> list[Formula]:
        """Formulas that all hold iff the check of ``axiom`` does."""
        algebra = self.program.algebra
        if axiom.kind == "empty":
            some = non_empty(algebra, value)
        else:
            assert isinstance(value, Relation)
            if axiom.kind == "acyclic" and not axiom.negated and not axiom.flag:
                return acyclicity(algebra, value)
            some = cyclic(algebra, value) if axiom.kind == "acyclic" else reflexive(algebra, value)
        return [some if axiom.negated else -some]

    def _total_fence_order(self, base: Base) -> None:
        """A model that names ``sync_fence`` gets an acyclic order that is total on fences in each other's scopes."""
        program = self.program
        for (a, b), first in program.fsc.items():
            if a < b:
                executed = self.formulas.both(program.presence[a], program.presence[b])
                program.constraints.append(self.formulas.any([-executed, first, program.fsc[b, a]]))
        program.constraints += acyclicity(program.algebra, base.relation("fsc"))

    def _break_symmetry(self, named: Iterable[Term]) -> None:
        """Of executions that differ in the order of interchangeable threads keep one.

        Coherence is a partial order, so the threads of a group can be numbered along it: no first write of a
        later thread comes before the first write of an earlier one.
        """
        seen = {t.thread for t in (*named, *self.observed.registers) if isinstance(t, RegisterTerm)}
        first: dict[tuple[int, EventId], int] = {}
        for event in self.program.events:
            if event.kind == "W":
                first.setdefault((event.thread, (0, *event.id[1:])), event.number)
        for group in interchangeable(self.test, seen):
            shared = [k for t, k in first if t == group[0] and all((u, k) in first for u in group)]
            if not shared:
                continue
            for a, b in combinations(group, 2):
                later = self.program.co.get((first[b, shared[0]], first[a, shared[0]]))
                if later is not None:
                    self.program.constraints.append(-later)

    def _witness(self, value: Callable[[Formula], bool]) -> Witness:
        program = self.program
        events = program.events

        def id_of(number: int) -> EventId | None:
            return events[number].id if 0 <= number < len(events) else None

        values: dict[EventId, int] = {}
        reads: dict[EventId, list[Source]] = {}
        for event in events:
            if event.kind == "R" and value(event.presence):
                values[event.id] = _chosen(event.value, value)
                reads[event.id] = []
        for cell, readers in program.rf.items():
            for read, writers in readers.items():
                if not value(program.presence[read]):
                    continue
                for write, chosen in writers.items():
                    if value(chosen):
                        reads[events[read].id].append(Source(*cell, id_of(write)))
        phases: dict[EventId, int | None] = {}
        deadlocked: frozenset[int] = frozenset()
        order: tuple[EventId, ...] = ()
        for scenario, selector in program.scenarios:
            if value(selector):
                phases = dict(scenario.phases)
                values.update(scenario.tokens)
                values.update((s.id, int(s.outcome)) for s in scenario.arrivals if s.outcome is not None)
                deadlocked, order = frozenset(i[0] for i in scenario.stuck), scenario.order
        return Witness(
            values,
            {read: tuple(sources) for read, sources in reads.items()},
            frozenset((events[a].id, events[b].id) for (a, b), f in program.co.items() if value(f)),
            frozenset((events[a].id, events[b].id) for (a, b), f in program.fsc.items() if value(f)),
            phases,
            tuple(
                Source(*cell, id_of(write))
                for cell, writers in program.last.items()
                for write, chosen in writers.items()
                if value(chosen)
            ),
            deadlocked,
            order,
        )


def _program(
    test: Test, model: Model, observed: Iterable[Term], reading: Reading, limits: Limits
) -> tuple[Program, Base, Evaluator[EventSet, Relation]]:
    """The program of ``test`` and the values of the relations of ``model`` in it.

    Accesses are divided into bytes only where the model may allow a read to be torn: at first nowhere, then wherever
    that has not been shown impossible.
    """
    axioms = rule(model) if reading.tear else None
    whole: frozenset[str] | None = None
    while True:
        kept = whole
        program = build(
            test,
            observed,
            reading,
            limits.check,
            lambda key, kept=kept: axioms is not None and (kept is None or key in kept),  # type: ignore[misc]
        )
        base = Base(program)
        evaluator: Evaluator[EventSet, Relation] = Evaluator(model, program.algebra, base)
        if axioms is None or not program.torn:
            return program, base, evaluator
        whole = never_torn(program, base, evaluator, axioms, program.torn)
        if whole == program.torn:
            return program, base, evaluator


def _chosen(domain: Domain, value: Callable[[Formula], bool]) -> int:
    for number, when in domain.items():
        if value(when):
            return number
    raise PtxmmError("no value is chosen for a register or location", kind="internal")


__all__ = ["search"]
