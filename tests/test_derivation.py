"""Derivations: their cost against a plain relaxation of costs, and that their facts prove what they should."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm import cat
from ptxmm.analysis.explain.words import EDGES as EDGE_WORDS
from ptxmm.analysis.explain.words import STATIC
from ptxmm.cat import names
from ptxmm.cat.derivation import EDGES, BaseFact, Derivations, Violation, base_facts
from ptxmm.cat.derivation_bounds import Recheck, informative, reduce
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Model, Node
from ptxmm.relations.concrete import Concrete

SIZE = 4
SETS = ("R", "W")
ORDERS = ("po", "rf", "co")
STATIC_NAMES = ("loc", "ext")

Costs = dict[Any, float]


def model_of(text: str) -> Model:
    """A model without a title."""
    return cat.parse_model(text, "test.cat")


def naive(node: Node, base: dict[str, int], known: dict[int, Costs]) -> Costs:
    """The least cost of each pair (or member) of a node, by relaxing until nothing changes."""
    if node.index in known:
        return known[node.index]
    found = known[node.index] = _naive(node, base, known)
    return found


def _naive(node: Node, base: dict[str, int], known: dict[int, Costs]) -> Costs:
    everything = range(SIZE)
    if node.operator == "base":
        if node.is_set:
            return {x: 0 for x in everything if base[node.name] >> x & 1}
        cost = 1 if node.name in EDGES else 0
        return {(x, y): cost for x in everything for y in everything if base[node.name] >> (x * SIZE + y) & 1}
    if node.operator == "fixpoint":
        return _fixpoint(node, base, known)
    parts = [None if o is None else naive(o, base, known) for o in node.operands]
    a: Costs = parts[0] if parts and parts[0] is not None else {}
    b: Costs = parts[1] if len(parts) > 1 and parts[1] is not None else {}
    match node.operator:
        case "universe":
            return dict.fromkeys(everything, 0)
        case "empty_set" | "empty_relation":
            return {}
        case "set_union" | "union":
            return {k: min(a.get(k, inf), b.get(k, inf)) for k in {*a, *b}}
        case "set_intersection" | "intersection":
            return {k: a[k] + b[k] for k in a if k in b}
        case "set_difference" | "difference":
            right = node.operands[1]
            assert right is not None
            return {k: c + (1 if right.depends & EDGES else 0) for k, c in a.items() if k not in b}
        case "sequence":
            return _joined(a, b)
        case "plus" | "star":
            result = dict(a)
            while True:
                more = {k: min(result.get(k, inf), _joined(result, a).get(k, inf)) for k in _joined(result, a)} | {}
                following = {k: min(result.get(k, inf), more.get(k, inf)) for k in {*result, *more}}
                if following == result:
                    break
                result = following
            return result | {(x, x): 0 for x in everything} if node.operator == "star" else result
        case "optional":
            return a | {(x, x): 0 for x in everything}
        case "inverse":
            return {(y, x): c for (x, y), c in a.items()}
        case "identity":
            return {(x, x): c for x, c in a.items()}
        case "product":
            return {(x, y): c + d for x, c in a.items() for y, d in b.items()}
        case "restrict":
            left, inner, right_set = parts
            assert inner is not None
            return {
                (x, y): c + (0 if left is None else left[x]) + (0 if right_set is None else right_set[y])
                for (x, y), c in inner.items()
                if (left is None or x in left) and (right_set is None or y in right_set)
            }
        case "domain" | "range":
            ends: Costs = {}
            for (x, y), c in a.items():
                end = x if node.operator == "domain" else y
                ends[end] = min(c, ends.get(end, inf))
            return ends
    raise AssertionError(node.operator)


def _joined(a: Costs, b: Costs) -> Costs:
    found: Costs = {}
    for (x, y), c in a.items():
        for (z, w), d in b.items():
            if y == z:
                found[x, w] = min(c + d, found.get((x, w), inf))
    return found


def _fixpoint(node: Node, base: dict[str, int], known: dict[int, Costs]) -> Costs:
    half = len(node.operands) // 2
    variables = [o for o in node.operands[:half] if o is not None]
    bodies = [o for o in node.operands[half:] if o is not None]
    values: list[Costs] = [{} for _ in variables]
    while True:
        inside = dict(known)
        inside.update({v.index: value for v, value in zip(variables, values, strict=True)})
        following = [naive(body, base, inside) for body in bodies]
        if following == values:
            return values[int(node.name)]
        values = following


def expression(rng: random.Random, depth: int, is_set: bool = False) -> str:
    """A random expression over the names above; the right side of a difference is a base relation."""
    if is_set:
        if depth == 0:
            return rng.choice((*SETS, "_"))
        one, two = (expression(rng, depth - 1, True) for _ in range(2))
        inner = expression(rng, depth - 1)
        choices = [f"({one} | {two})", f"({one} & {two})", f"({one} \\ R)", f"domain({inner})", f"range({inner})"]
        return rng.choice(choices)
    if depth == 0:
        return rng.choice((*ORDERS, *STATIC_NAMES))
    one, two = (expression(rng, depth - 1) for _ in range(2))
    left, right = (expression(rng, depth - 1, True) for _ in range(2))
    return rng.choice(
        [
            f"({one} | {two})", f"({one} | {two})", f"({one} & {two})", f"({one}; {two})", f"({one}; {two})",
            f"({one})+", f"({one})*", f"({one})?", f"({one})^-1", f"([{left}]; {one})", f"({one}; [{right}])",
            f"({one} \\ {rng.choice(ORDERS)})", f"({one} \\ id)", f"({one} \\ (co | co^-1))",
            f"({one} & ({left} * {right}))",
        ]
    )  # fmt: skip


def random_base(rng: random.Random) -> dict[str, int]:
    """Values for the names above: sparse relations."""
    found = {name: rng.getrandbits(SIZE) for name in SETS}
    for name in (*ORDERS, *STATIC_NAMES):
        found[name] = sum(1 << i for i in range(SIZE * SIZE) if rng.random() < 0.25)
    return found


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_costs_are_least_and_facts_prove(seed: int) -> None:
    rng = random.Random(seed)
    lines = []
    if rng.random() < 0.5:
        one, two, three = (expression(rng, 1) for _ in range(3))
        lines.append(f"let rec a = {one} | (a; {two}; b) and b = {three} | a")
        body = f"(a | {expression(rng, 1)})"
    else:
        body = expression(rng, rng.randint(1, 4))
    lines.append(f"{rng.choice(('acyclic', 'irreflexive', 'empty'))} {body} as check")
    model = model_of("\n".join(lines))
    (axiom,) = model.axioms
    base, algebra = random_base(rng), Concrete(SIZE)
    evaluator: Evaluator[int, int] = Evaluator(model, algebra, base.get)
    derivations = Derivations(algebra, evaluator.value)
    costs = naive(axiom.body, base, {})
    for x in range(SIZE):
        for y in range(SIZE):
            proof = derivations.pair(axiom.body, x, y)
            assert (None if proof is None else proof.cost) == costs.get((x, y))
    violation = derivations.violation(axiom)
    holds = algebra.satisfies(axiom.kind, False, evaluator.value(axiom.body))
    assert (violation is None) is holds
    if violation is None:
        return
    if axiom.kind == "empty":
        assert violation.cost == min(costs.values())
    elif axiom.kind == "irreflexive":
        assert violation.cost == min(costs[x, x] for x in range(SIZE) if (x, x) in costs)
    else:
        closed = _closure(costs)
        assert violation.cost == min(closed[x, x] for x in range(SIZE) if (x, x) in closed)
    recheck = Recheck(model, algebra, base.get)
    facts = base_facts(violation)
    assert recheck.violated(axiom, facts)
    kept = reduce(recheck, axiom, facts)
    assert recheck.violated(axiom, kept)
    for fact in kept:
        if informative(fact):
            assert not recheck.violated(axiom, [f for f in kept if f is not fact])


def _closure(costs: Costs) -> Costs:
    result = dict(costs)
    for z in range(SIZE):
        for x in range(SIZE):
            for y in range(SIZE):
                if (x, z) in result and (z, y) in result:
                    result[x, y] = min(result.get((x, y), inf), result[x, z] + result[z, y])
    return result


def violation_of(text: str, **relations: list[tuple[int, int]]) -> tuple[Model, Violation, Recheck]:
    """The violation of the only check of a model over four events."""
    model, algebra = model_of(text), Concrete(SIZE)
    base = {name: algebra.relation(pairs) for name, pairs in relations.items()}
    evaluator: Evaluator[int, int] = Evaluator(model, algebra, lambda name: base.get(name, 0))
    found = Derivations(algebra, evaluator.value).violation(model.axioms[0])
    assert found is not None
    return model, found, Recheck(model, algebra, lambda name: base.get(name, 0))


def test_the_shortest_of_two_cycles() -> None:
    _, found, _ = violation_of("acyclic po | rf as c", po=[(0, 1), (1, 2), (2, 3)], rf=[(3, 0), (2, 1)])
    assert found.cost == 2
    assert {(f.relation, f.first, f.second) for f in base_facts(found)} == {("po", 1, 2), ("rf", 2, 1)}


def test_a_difference_rests_on_an_absence() -> None:
    model, found, recheck = violation_of("empty po \\ (co | co^-1) as c", po=[(0, 1)], co=[(2, 3)])
    facts = base_facts(found)
    (absent,) = [f for f in facts if not f.holds]
    assert (absent.first, absent.second) == (0, 1)
    assert recheck.violated(model.axioms[0], facts)
    assert not recheck.violated(model.axioms[0], [f for f in facts if f is not absent])


def test_a_fact_that_is_not_needed_is_dropped() -> None:
    model, found, recheck = violation_of("acyclic po as c", po=[(0, 1), (1, 0), (2, 3)])
    facts = (*base_facts(found), BaseFact("po", 2, 3))
    assert len(facts) == 3
    assert set(reduce(recheck, model.axioms[0], facts)) == set(base_facts(found))


@pytest.mark.parametrize("name", sorted(names.RELATIONS))
def test_every_base_relation_has_a_name_in_words(name: str) -> None:
    assert (name in EDGE_WORDS) is (name in EDGES)
    assert (name in EDGE_WORDS) is not (name in STATIC)
