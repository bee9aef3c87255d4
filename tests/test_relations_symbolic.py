"""The symbolic carrier against plain sets of pairs: for any assignment of its variables, both must say the same."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ptxmm.relations.checks import acyclicity, cyclic, non_empty, reflexive
from ptxmm.relations.closures import closure
from ptxmm.relations.formula import FALSE, TRUE, Clauses, Formula, Formulas
from ptxmm.relations.symbolic import EventSet, Relation, SymbolicAlgebra

SIZE = 5
VARIABLES = 4

Pairs = frozenset[tuple[int, int]]


class World:
    """Variables, an algebra in which some events are executed only sometimes, and one assignment."""

    def __init__(self, assignment: tuple[bool, ...]) -> None:
        self.formulas = Formulas()
        self.variables = [self.formulas.variable() for _ in range(VARIABLES)]
        presence = [TRUE] * (SIZE - 1) + [self.variables[0]]
        self.algebra = SymbolicAlgebra(self.formulas, presence)
        self.values = dict(zip(self.variables, assignment, strict=True))
        self.present = frozenset(e for e, p in enumerate(presence) if self.holds(p))

    def holds(self, formula: Formula) -> bool:
        return self.formulas.evaluate(formula, dict(self.values))

    def formula(self, code: int) -> Formula:
        """0: false, 1: true, then variables and their negations, then conjunctions of two."""
        if code < 2:
            return TRUE if code else FALSE
        code -= 2
        literal = self.variables[code % VARIABLES]
        if code < VARIABLES:
            return literal
        if code < 2 * VARIABLES:
            return -literal
        return self.formulas.both(literal, -self.variables[(code + 1) % VARIABLES])

    def relation(self, codes: dict[tuple[int, int], int]) -> Relation:
        presence = [self.algebra.universe().may.get(e, TRUE) for e in range(SIZE)]
        return self.algebra.relation(
            (x, y, self.formulas.all([self.formula(c), presence[x], presence[y]])) for (x, y), c in codes.items()
        )

    def set(self, codes: dict[int, int]) -> EventSet:
        presence = [self.algebra.universe().may.get(e, TRUE) for e in range(SIZE)]
        return self.algebra.event_set((e, self.formulas.both(self.formula(c), presence[e])) for e, c in codes.items())

    def pairs(self, relation: Relation) -> Pairs:
        return frozenset((x, y) for x, y, f in self.algebra.pairs(relation) if self.holds(f))

    def members(self, events: EventSet) -> frozenset[int]:
        return frozenset(e for e in range(SIZE) if events.must >> e & 1 or self.holds(events.may.get(e, FALSE)))


CODE = st.integers(0, 3 * VARIABLES + 1)
PAIR = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1))
RELATION = st.dictionaries(PAIR, CODE, max_size=14)
SET = st.dictionaries(st.integers(0, SIZE - 1), CODE)
ASSIGNMENT = st.tuples(*[st.booleans()] * VARIABLES)


def sequence(a: Pairs, b: Pairs) -> Pairs:
    return frozenset((x, z) for x, y in a for w, z in b if y == w)


def plus(a: Pairs) -> Pairs:
    total = a
    while not sequence(total, a) <= total:
        total |= sequence(total, a)
    return total


@settings(max_examples=400, deadline=None)
@example({(0, 2): 3, (1, 2): 1, (1, 3): 3, (2, 1): 3}, {}, {}, {}, (False, True, False, False))  # into a cycle of one
@given(RELATION, RELATION, SET, SET, ASSIGNMENT)
def test_operators_agree_with_sets_of_pairs(
    first: dict[tuple[int, int], int],
    second: dict[tuple[int, int], int],
    left: dict[int, int],
    right: dict[int, int],
    assignment: tuple[bool, ...],
) -> None:
    world = World(assignment)
    algebra = world.algebra
    a, b, s, t = world.relation(first), world.relation(second), world.set(left), world.set(right)
    pa, pb, ms, mt = world.pairs(a), world.pairs(b), world.members(s), world.members(t)
    identity = frozenset((e, e) for e in world.present)
    assert world.pairs(algebra.union(a, b)) == pa | pb
    assert world.pairs(algebra.intersection(a, b)) == pa & pb
    assert world.pairs(algebra.difference(a, b)) == pa - pb
    assert world.pairs(algebra.sequence(a, b)) == sequence(pa, pb)
    assert world.pairs(algebra.plus(a)) == plus(pa)
    assert world.pairs(algebra.star(a)) == plus(pa) | identity
    assert world.pairs(algebra.optional(a)) == pa | identity
    assert world.pairs(algebra.inverse(a)) == {(y, x) for x, y in pa}
    assert world.pairs(algebra.identity(s)) == {(e, e) for e in ms}
    assert world.pairs(algebra.product(s, t)) == set(product(ms, mt))
    assert world.pairs(algebra.restrict(s, a, t)) == {(x, y) for x, y in pa if x in ms and y in mt}
    assert world.pairs(algebra.restrict(None, a, t)) == {(x, y) for x, y in pa if y in mt}
    assert world.members(algebra.domain(a)) == {x for x, _ in pa}
    assert world.members(algebra.range(a)) == {y for _, y in pa}
    assert world.members(algebra.set_union(s, t)) == ms | mt
    assert world.members(algebra.set_intersection(s, t)) == ms & mt
    assert world.members(algebra.set_difference(s, t)) == ms - mt
    assert world.members(algebra.universe()) == world.present
    assert algebra.same(a, a)
    assert world.holds(non_empty(algebra, a)) == bool(pa)
    assert world.holds(reflexive(algebra, a)) == any(x == y for x, y in pa)
    assert world.holds(cyclic(algebra, a)) == any(x == y for x, y in plus(pa))


ORDERED = range(3)
"""Events of a total order; all of them are always executed."""


@settings(max_examples=600, deadline=None)
@given(
    RELATION,
    st.sets(st.sampled_from([(a, b) for a, b in product(ORDERED, ORDERED) if a != b])),
    ASSIGNMENT,
    st.permutations(ORDERED),
    st.booleans(),
)
def test_closures_of_total_orders(
    codes: dict[tuple[int, int], int],
    chosen: set[tuple[int, int]],
    assignment: tuple[bool, ...],
    line: list[int],
    fixed: bool,
) -> None:
    """With ``chosen`` pairs of a total order, and others; two events may be ordered whatever the order is."""
    world = World(assignment)
    algebra, order = world.algebra, dict[tuple[int, int], Formula]()
    for a, b in combinations(ORDERED, 2):
        before = TRUE if fixed and (a, b) == (0, 1) and line.index(0) < line.index(1) else world.formulas.variable()
        order[a, b], order[b, a] = before, -before
        if before != TRUE:
            world.values[before] = line.index(a) < line.index(b)
    algebra.orders = [order]
    others = {pair: code for pair, code in codes.items() if pair not in order}
    relation = algebra.union(world.relation(others), algebra.relation((a, b, order[a, b]) for a, b in chosen))
    assert world.pairs(algebra.plus(relation)) == plus(world.pairs(relation))


@settings(max_examples=200, deadline=None)
@given(RELATION, ASSIGNMENT)
def test_acyclicity_is_satisfiable_exactly_on_acyclic_relations(
    codes: dict[tuple[int, int], int], assignment: tuple[bool, ...]
) -> None:
    z3 = pytest.importorskip("z3")
    world = World(assignment)
    relation = world.relation(codes)
    clauses = Clauses(world.formulas)
    for formula in acyclicity(world.algebra, relation):
        clauses.require(formula)
    for variable, value in world.values.items():
        clauses.require(variable if value else -variable)
    solver = z3.Solver()
    for clause in clauses.take():
        solver.add(z3.Or([z3.Bool(str(n)) if n > 0 else z3.Not(z3.Bool(str(-n))) for n in clause]))
    acyclic = not any(x == y for x, y in plus(world.pairs(relation)))
    assert (solver.check() == z3.sat) == acyclic


@settings(deadline=None, max_examples=200)
@given(
    st.permutations(range(12)), st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30), st.booleans()
)
@example(list(range(12)), {(0, 2), (0, 1), (1, 2), (2, 5)}, True)
def test_closures_of_rows(places: list[int], drawn: set[tuple[int, int]], forward: bool) -> None:
    """Of relations with cycles, and of those that go ``forward`` in some order of their events."""
    pairs = {(places[a], places[b]) for a, b in drawn if a < b or not forward}
    found = closure([sum(1 << y for y in range(12) if (x, y) in pairs) for x in range(12)])
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    assert {(x, y) for x in range(12) for y in range(12) if found[x] >> y & 1} == pairs


def test_constants_and_complements_simplify() -> None:
    formulas = Formulas()
    a, b = formulas.variable(), formulas.variable()
    assert formulas.both(a, -a) == FALSE
    assert formulas.either(a, -a) == TRUE
    assert formulas.both(a, formulas.either(a, b)) == a
    assert formulas.either(a, formulas.both(a, b)) == a
    assert formulas.both(a, formulas.either(-a, b)) == formulas.both(a, b)
    assert formulas.all([a, b, TRUE]) == formulas.both(b, a)
    assert formulas.any([]) == FALSE


def test_variables_of_one_choice_exclude_each_other() -> None:
    formulas = Formulas()
    a, b, other = formulas.variable(choice=1), formulas.variable(choice=1), formulas.variable(choice=2)
    assert formulas.both(a, b) == FALSE
    assert formulas.both(a, other) != FALSE
    assert formulas.all([a, other, b]) == FALSE
    assert formulas.both(formulas.both(a, other), b) == FALSE


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(CODE, CODE, st.booleans()), max_size=8), ASSIGNMENT)
def test_clauses_hold_exactly_where_the_formula_does(
    steps: list[tuple[int, int, bool]], assignment: tuple[bool, ...]
) -> None:
    z3 = pytest.importorskip("z3")
    world = World(assignment)
    formula = TRUE
    for x, y, conjunction in steps:
        part = world.formulas.either(world.formula(x), -world.formula(y))
        formula = world.formulas.both(formula, part) if conjunction else world.formulas.either(-formula, part)
    clauses = Clauses(world.formulas)
    clauses.require(formula)
    for variable, value in world.values.items():
        clauses.require(variable if value else -variable)
    solver = z3.Solver()
    for clause in clauses.take():
        solver.add(z3.Or([z3.Bool(str(n)) if n > 0 else z3.Not(z3.Bool(str(-n))) for n in clause]))
    assert (solver.check() == z3.sat) == world.holds(formula)
