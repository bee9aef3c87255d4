"""A test and a model as one propositional problem, whose assignments are the executions of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from typing import cast

from msgspec.structs import replace

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Axiom, Model
from ptxmm.cat.names import SELDOM, absent
from ptxmm.cat.polarity import lower_bounds
from ptxmm.cat.shipped import is_shipped
from ptxmm.engines.arrivals import in_order
from ptxmm.engines.result import Limits, Observed, Source, Witness
from ptxmm.engines.symbolic.demand import Demand
from ptxmm.engines.symbolic.numbering import break_symmetry, known_before
from ptxmm.engines.symbolic.orders import Acyclic, total_fence_orders
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.engines.symbolic.tearing import never_torn, rule
from ptxmm.engines.symbolic.unread import never_read
from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.barriers.scenarios import Scenario
from ptxmm.events.symbolic.build import build
from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.machine import Known, Reading
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.events.symbolic.relations.base import Base
from ptxmm.events.symbolic.relations.finals import final_writes
from ptxmm.events.symbolic.symmetry import interchangeable
from ptxmm.events.symbolic.values.domain import Bits, Domain, chosen, compared, only
from ptxmm.events.symbolic.variants import NONE, alternatives
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
    Term,
    comparison_type,
    holds,
    terms,
)
from ptxmm.program.identity import EventId, Site
from ptxmm.program.shared.stopped import known_filter
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import MbarrierArrive, MbarrierWait
from ptxmm.relations.checks import acyclicity, cyclic, non_empty, reflexive
from ptxmm.relations.formula import FALSE, TRUE, Formula
from ptxmm.relations.symbolic import EventSet, Relation

_GROUPS = 1 << 14
"""So many tuples of sources are there once."""


class Problem:
    """Every execution of ``test`` that ``model`` allows, up to the bound of ``limits``.

    ``named``: what may be asked about beyond ``observed`` and the test's filter. ``variations``: instructions that
    take one of several forms. ``axioms``: False takes every execution, whatever the checks of the model say.
    ``shown``: as of ``Solver``.
    ``alike``: groups of threads of which one stands for another.
    ``program``, ``base`` and ``evaluator`` have the events, the base relations and those of the model; ``flags`` when
    each flag of the model is raised.
    """

    def __init__(
        self,
        test: Test,
        model: Model,
        observed: Observed,
        limits: Limits,
        named: Iterable[Term] = (),
        *,
        variations: Mapping[Site, Variation] | None = None,
        axioms: bool = True,
        shown: bool = True,
    ) -> None:
        self.test = test
        self.observed = observed
        named = [*named, *(terms(test.filter) if test.filter is not None else ())]
        memory = tuple(dict.fromkeys([*observed.memory, *(t for t in named if isinstance(t, MemoryTerm))]))
        reading = read_as(model.readings, limits.unroll, in_order(test, model))
        reading = replace(reading, told=axioms and not variations and is_shipped(model))
        asked = (*memory, *observed.registers, *named, *test.compared)
        observable = {term.thread for term in asked if isinstance(term, RegisterTerm)}
        exact = axioms and not variations  # every execution is one of ``test`` under ``model``
        self.alike = interchangeable(test, observable) if exact else []
        known = known_before(test, model, reading, self.alike, limits.check)
        if exact:
            known = replace(known, never=known.never | never_read(test, model, reading, limits.check))
        program, base, evaluator = _program(test, model, asked, reading, limits, variations or {}, known)
        self.program, self.base, self.evaluator = program, base, evaluator
        orders = total_fence_orders(model, program, base, evaluator) if exact else []
        program.algebra.orders = [dict(order.pairs()) for order in orders]
        self.formulas = program.formulas
        algebra = program.algebra
        break_symmetry(program, base, evaluator, self.alike, known)
        final_writes(program, memory, _ordered(model, program, base, evaluator))
        self.elements = {term: program.element(term) for term in memory}
        self._left: list[dict[int, dict[int, Formula]]] = []
        program.constraints += acyclicity(
            algebra, reduce(algebra.union, [base.relation(name) for name in ("rf", "addr", "data")]), self._left
        )
        if reading.direct:
            program.constraints += acyclicity(algebra, base.relation("co"), self._left)
        self.flags: list[tuple[str, Formula]] = []
        self._check(model, axioms, limits)
        if variations:
            self._fences_only()
        if "sync_fence" in model.names():
            self._total_fence_order()
        # What witnesses have in common is there once.
        self._sources: dict[tuple[Cell, int], tuple[Source]] = {}
        self._groups: dict[tuple[Source, ...], tuple[Source, ...]] = {}
        self._unroll = limits.unroll
        self._passing = self._filtered()
        shown = shown or bool(program.undefined)  # of which one is told
        self.solver = Solver(self.formulas, limits, orders, [*map(Acyclic, self._left)], program.lookups, shown=shown)
        for formula in program.constraints:
            self.solver.require(formula)
        for a, b in program.exclusive:
            self.solver.exclude(a, b)

    def _check(self, model: Model, axioms: bool, limits: Limits) -> None:
        """Require the axioms of ``model``, if they count, and say when its flags are raised."""
        demand = Demand(self.evaluator, self.program.algebra)
        for axiom in model.axioms:
            limits.check()
            if axiom.flag:
                self.flags.append((axiom.name, self._holds(axiom, demand.value(axiom))[0]))
            elif axioms:
                self.program.constraints += self._holds(axiom, demand.value(axiom))

    def _filtered(self) -> Formula:
        """Require the filter of finished executions; whether others may pass it however they would go on."""
        program, early = self.program, known_filter(self.test)
        if self.test.filter is None or early is None:
            return TRUE
        program.constraints.append(self.formulas.either(-program.finished, self.formula(self.test.filter)))
        return self.formulas.either(program.finished, self.formula(early))

    @property
    def misuses(self) -> list[tuple[Formula, str]]:
        """When the program does what has no meaning, and what that is; where threads go no further, only if the filter
        is not false however they would go on."""
        return [(self.formulas.both(when, self._passing), text) for when, text in self.program.undefined]

    @property
    def counts(self) -> Formula:
        """When flags count: nothing undefined happens, and what is executed is an execution that passes the filter, or
        the beginning of one that may."""
        return self.formulas.both(self.program.beginning, self._passing)

    def _register(self, term: RegisterTerm) -> Domain:
        return self.program.threads[term.thread].registers.get(term.register, only(0))

    def domain(self, term: Term) -> Domain:
        """The final values of ``term``, and when it has each."""
        assert self.program.unseen.sees(term), f"{term} was not asked for"
        match term:
            case RegisterTerm():
                return self._register(term)
            case MemoryTerm():
                return self.elements[term]
            case IntegerTerm(number):
                return only(number)
        return only(term.address)

    def formula(self, item: Proposition) -> Formula:
        """When ``item`` holds of the final state."""
        formulas = self.formulas
        match item:
            case Comparison(_, left, right):
                type_ = comparison_type(item)
                domains = self.domain(left), self.domain(right)
                if any(isinstance(domain, Bits) for domain in domains):
                    return self._compared(item, *domains)
                return formulas.any(
                    [
                        formulas.both(a, b)
                        for x, a in domains[0].items()
                        for y, b in domains[1].items()
                        if holds(item, x, y, type_)
                    ]
                )
            case Conjunction(items):
                return formulas.all([self.formula(i) for i in items])
            case Disjunction(items):
                return formulas.any([self.formula(i) for i in items])
            case Negation(inner):
                return -self.formula(inner)

    def _compared(self, item: Comparison[Term], left: Domain, right: Domain) -> Formula:
        """When ``item`` holds of values that are given by their bits."""
        type_ = comparison_type(item)
        assert type_ is not None
        addresses = [term for term in (item.left, item.right) if isinstance(term, AddressTerm)]
        if addresses:
            (term,), other = addresses, right if item.left in addresses else left
            same = self.formulas.any(other.get(address, FALSE) for address in (term.address, *term.others))
            if item.op in ("==", "!="):
                return same if item.op == "==" else -same
        return compared(self.formulas, item.op, left, right, type_)

    def _holds(self, axiom: Axiom, value: EventSet | Relation) -> list[Formula]:
        """Formulas that all hold iff the check of ``axiom`` does."""
        algebra = self.program.algebra
        if axiom.kind == "empty":
            some = non_empty(algebra, value)
        else:
            assert isinstance(value, Relation)
            if axiom.kind == "acyclic" and not axiom.negated and not axiom.flag:
                if axiom.body.is_base("fsc"):  # what is in no total order, of which the solver takes care
                    value = algebra.relation(p for p in algebra.pairs(value) if not algebra.ordered(p[0], p[1]))
                return acyclicity(algebra, value, self._left)
            some = cyclic(algebra, value) if axiom.kind == "acyclic" else reflexive(algebra, value)
        return [some if axiom.negated else -some]

    def _returns(self, identity: EventId) -> bool:
        """Whether an instruction is a wait at an mbarrier, or an arrival whose state a register takes."""
        op = self.test.threads[identity.thread].body[identity.instruction]
        return isinstance(op, MbarrierWait) or (isinstance(op, MbarrierArrive) and op.dst is not None)

    def _mutual_fences(self) -> Relation:
        """fence.sc operations in each other's scopes."""
        fences = cast(EventSet, self.base("FSC"))
        return self.program.algebra.restrict(fences, self.base.relation("sr"), fences)

    def _fences_only(self) -> None:
        """Where instructions take one of several forms, Fence-SC order relates those that are fence.sc operations in
        each other's scopes."""
        both = self._mutual_fences()
        for (a, b), first in self.program.fsc.items():
            related = self.program.algebra.get(both, a, b)
            self.program.constraints.append(self.formulas.either(-first, related))

    def _total_fence_order(self) -> None:
        """A model that names ``sync_fence`` gets an acyclic order that is total on fences in each other's scopes."""
        program = self.program
        related = self._mutual_fences()
        for (a, b), first in program.fsc.items():
            if a < b:
                needed = program.algebra.get(related, a, b)
                program.constraints.append(self.formulas.any([-needed, first, program.fsc[b, a]]))
        program.constraints += acyclicity(program.algebra, self.base.relation("fsc"))

    def witness(self) -> Witness:
        """The execution that the solver found last."""
        value, program = self.solver.value, self.program
        events = program.events

        def pairs(order: Mapping[tuple[int, int], Formula]) -> frozenset[tuple[EventId, EventId]]:
            return frozenset((events[a].id, events[b].id) for (a, b), when in order.items() if value(when))

        reads = [e for e in events if e.kind == "R" and value(e.presence)]
        scenarios = [scenario for scenario, selector in program.scenarios if value(selector)]
        blind = reads if program.unseen.instructions else ()
        return Witness(
            self._values(reads, scenarios),
            self._read(reads),
            pairs(program.co),
            pairs(program.fsc),
            dict(step for scenario in scenarios for step in scenario.phases),
            self._shared(s for cell, writers in program.last.items() for s in self._taken(cell, writers, value)),
            frozenset(i for scenario in scenarios for i in scenario.waiting),
            tuple(step for scenario in scenarios for step in scenario.order),
            None if value(self._final) else self._unroll,
            any(scenario.misuse is not None for scenario in scenarios),
            frozenset(e.id for e in blind if program.unseen.returned(e.id, [p.physical for p in e.places])),
        )

    @cached_property
    def _final(self) -> Formula:
        """``final`` of the program, which is complete when there is a witness."""
        return self.program.final

    def _read(self, reads: Iterable[Event]) -> dict[EventId, tuple[Source, ...]]:
        """Where each read takes its bytes from."""
        taken: dict[int, list[Source]] = {e.number: [] for e in reads}
        for cell, readers in self.program.rf.items():
            for number in readers.keys() & taken.keys():
                taken[number] += self._taken(cell, readers[number], self.solver.value)
        return {self.program.events[number].id: self._shared(found) for number, found in taken.items()}

    def _values(self, reads: Iterable[Event], scenarios: Iterable[Scenario]) -> dict[EventId, int]:
        """What reads, arrivals and waits return, and predicates that may be either."""
        values = {e.id: self.chosen(e.value) for e in reads}
        value = self.solver.value
        values |= {i: int(value(holds)) for i, when, holds in self.program.chosen if value(when)}
        for scenario in scenarios:
            values.update(scenario.tokens)
            values.update((s.id, int(s.outcome)) for s in scenario.steps if s.outcome is not None)
            if scenario.misuse is not None:  # whatever a misused operation returns
                values.update((i, 0) for i in scenario.waiting if self._returns(i) and i not in values)
        return values

    def chosen(self, domain: Domain) -> int:
        """The value of ``domain`` in the execution that the solver found last."""
        found = chosen(domain, self.solver.value)
        if found is None:
            raise PtxmmError("no value is chosen for a register or location", kind="internal")
        return found

    def _shared(self, sources: Iterable[Source]) -> tuple[Source, ...]:
        """``sources``, as one tuple for all witnesses."""
        found = tuple(sources)
        if len(self._groups) > _GROUPS:  # of a long list, of which none may be kept
            self._groups.clear()
        return self._groups.setdefault(found, found)

    def _taken(
        self, cell: Cell, writers: Mapping[int, Formula], value: Callable[[Formula], bool]
    ) -> tuple[Source, ...]:
        """The write of a cell that the solver has chosen, if any; an initial one has no identity."""
        for write, taken in writers.items():
            if value(taken):
                found = self._sources.get((cell, write))
                if found is None:
                    events = self.program.events
                    made = Source(*cell, events[write].id if 0 <= write < len(events) else None)
                    found = self._sources[cell, write] = (made,)
                return found
        return ()


def read_as(given: Mapping[str, str], unroll: int, ordered: bool = False) -> Reading:
    """How events are made under the readings ``given``; the rest as in ``Reading``."""
    return Reading(
        unroll=unroll,
        tear=given.get("tear") == "on",
        simplify=given.get("dep") != "syn",
        values=given.get("dep") == "value",
        split128=given.get("b128") == "split",
        whole=given.get("vector") == "whole",
        cas_writes=given.get("cas-failure") == "write",
        direct=given.get("co") == "direct",
        ordered=ordered,
        next_grid=given.get("griddep", "direct") == "direct",
        copies=given.get("wgmma-mov") == "free",
    )


def next_grid(model: Model) -> bool:
    """Whether ``griddepcontrol.wait`` waits for the grid before its own only (A50)."""
    return read_as(model.readings, 0).next_grid


def _program(
    test: Test,
    model: Model,
    observed: Iterable[Term],
    reading: Reading,
    limits: Limits,
    variations: Mapping[Site, Variation],
    known: Known,
) -> tuple[Program, Base, Evaluator[EventSet, Relation]]:
    """The program of ``test`` and the values of the relations of ``model`` in it.

    Accesses are divided into bytes only where the model may allow a read to be torn: at first nowhere, then wherever
    that has not been shown impossible.
    """
    axioms = rule(model) if reading.tear else None
    untorn: frozenset[str] | None = frozenset() if axioms is None else None
    while True:
        program = build(test, observed, reading, limits.check, untorn, known)
        base = Base(program, alternatives(program.formulas, variations) if variations else NONE)
        none = program.algebra.empty_relation()
        empty = absent(base.empty_sets(), {name for name in SELDOM if base.relation(name) == none})
        evaluator: Evaluator[EventSet, Relation] = Evaluator(model, program.algebra, base, empty)
        if axioms is None or not program.torn:
            return program, base, evaluator
        untorn = never_torn(program, base, evaluator, axioms, program.torn)
        if untorn == program.torn:
            return program, base, evaluator


def _ordered(
    model: Model, program: Program, base: Base, evaluator: Evaluator[EventSet, Relation]
) -> Callable[[Event, Event], bool]:
    """Whether coherence order always relates two writes that overlap, as axioms say that bound it from below."""
    bounds = [evaluator.value(node) for _, node, _ in lower_bounds(model, "co")] if program.tear else []
    get, either, overlap = program.algebra.get, program.formulas.either, base.relation("ovl")

    def ordered(a: Event, b: Event) -> bool:
        together = get(overlap, a.number, b.number)
        return any(
            isinstance(bound, Relation) and either(-together, get(bound, x, y)) == TRUE
            for bound in bounds
            for x, y in ((a.number, b.number), (b.number, a.number))
        )

    return ordered
