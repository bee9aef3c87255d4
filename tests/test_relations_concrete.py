"""Every operation of the bitset carrier against plain sets of pairs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm.relations import concrete
from ptxmm.relations.concrete import Concrete

Pairs = set[tuple[int, int]]


@st.composite
def universes(draw: st.DrawFn) -> tuple[int, Pairs, Pairs, set[int], set[int]]:
    n = draw(st.integers(0, 7))
    events = st.integers(0, n - 1) if n else st.nothing()
    pairs = st.sets(st.tuples(events, events), max_size=2 * n)
    members = st.sets(events)
    return n, draw(pairs), draw(pairs), draw(members), draw(members)


def closure(pairs: Pairs) -> Pairs:
    result = set(pairs)
    while True:
        more = {(a, d) for a, b in result for c, d in result if b == c} - result
        if not more:
            return result
        result |= more


@pytest.mark.parametrize("large", [64, 0])
def test_operations_are_those_of_sets_of_pairs(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concrete, "_LARGE", large)
    check_operations()


@settings(max_examples=300, deadline=None)
@given(universes())
def check_operations(case: tuple[int, Pairs, Pairs, set[int], set[int]]) -> None:
    n, a, b, s, t = case
    k = Concrete(n)
    ra, rb, ss, tt = k.relation(a), k.relation(b), k.set_of(s), k.set_of(t)
    identity = {(i, i) for i in range(n)}

    def pairs(r: int) -> Pairs:
        return set(k.pairs(r))

    def members(m: int) -> set[int]:
        return set(k.members(m))

    assert pairs(ra) == a
    assert members(ss) == s
    assert members(k.universe()) == set(range(n))
    assert members(k.empty_set()) == set()
    assert pairs(k.empty_relation()) == set()
    assert members(k.set_union(ss, tt)) == s | t
    assert members(k.set_intersection(ss, tt)) == s & t
    assert members(k.set_difference(ss, tt)) == s - t
    assert pairs(k.union(ra, rb)) == a | b
    assert pairs(k.intersection(ra, rb)) == a & b
    assert pairs(k.difference(ra, rb)) == a - b
    assert pairs(k.sequence(ra, rb)) == {(x, z) for x, y in a for w, z in b if y == w}
    assert pairs(k.plus(ra)) == closure(a)
    assert pairs(k.star(ra)) == closure(a) | identity
    assert pairs(k.optional(ra)) == a | identity
    assert pairs(k.inverse(ra)) == {(y, x) for x, y in a}
    assert pairs(k.identity(ss)) == {(x, x) for x in s}
    assert pairs(k.product(ss, tt)) == {(x, y) for x in s for y in t}
    assert members(k.domain(ra)) == {x for x, _ in a}
    assert members(k.range(ra)) == {y for _, y in a}
    assert pairs(k.restrict(ss, ra, tt)) == {(x, y) for x, y in a if x in s and y in t}
    assert pairs(k.restrict(None, ra, tt)) == {(x, y) for x, y in a if y in t}
    assert pairs(k.restrict(ss, ra, None)) == {(x, y) for x, y in a if x in s}
    assert k.same(ra, rb) == (a == b)
    assert all(k.has(ra, x, y) == ((x, y) in a) for x in range(n) for y in range(n))
    assert all(members(k.successors(ra, x)) == {y for w, y in a if w == x} for x in range(n))
    assert k.from_rows([k.successors(ra, x) for x in range(n)]) == ra
    assert list(k.pairs(ra)) == sorted(a)


@settings(max_examples=300, deadline=None)
@given(universes())
def test_predicates(case: tuple[int, Pairs, Pairs, set[int], set[int]]) -> None:
    n, a, _, _, _ = case
    k = Concrete(n)
    r = k.relation(a)
    reach = closure(a)
    assert k.irreflexive(r) == all(x != y for x, y in a)
    assert k.acyclic(r) == all(x != y for x, y in reach)


def test_satisfies() -> None:
    k = Concrete(3)
    loop, line = k.relation([(0, 1), (1, 0)]), k.relation([(0, 1), (1, 2)])
    assert k.satisfies("acyclic", False, line)
    assert not k.satisfies("acyclic", False, loop)
    assert k.satisfies("acyclic", True, loop)
    assert k.satisfies("irreflexive", False, loop)
    assert not k.satisfies("irreflexive", True, loop)
    assert k.satisfies("empty", False, 0)
    assert k.satisfies("empty", True, line)
    assert not k.satisfies("empty", True, 0)


def test_a_large_universe() -> None:
    k = Concrete(300)
    ring = k.relation([(i, (i + 1) % 300) for i in range(300)])
    assert k.plus(ring) == k.product(k.universe(), k.universe())
    assert not k.acyclic(ring) and k.acyclic(k.difference(ring, k.relation([(299, 0)])))


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 31, 70, 257, 300])
def test_relations_are_taken_apart_and_put_together(n: int) -> None:
    algebra, chance = Concrete(n), random.Random(n)
    rows = [chance.getrandbits(n) & chance.getrandbits(n) for _ in range(n)]
    relation = algebra.from_rows(rows)
    assert algebra.rows(relation) == rows == [algebra.successors(relation, x) for x in range(n)]
    assert relation == algebra.relation((x, y) for x, row in enumerate(rows) for y in algebra.members(row))


@pytest.mark.parametrize("seed", range(6))
def test_many_events(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes relations apart gives the same as what does not."""
    n = 70
    algebra, chance = Concrete(n), random.Random(seed)
    count = (40, 90, 400)[seed % 3]
    pairs = [(chance.randrange(n), chance.randrange(n)) for _ in range(2 * count)]
    ordered = [(min(p), max(p)) for p in pairs if p[0] != p[1]]
    a, b = (algebra.relation(part) for part in ((ordered[:count], pairs[count:]) if seed < 3 else (pairs, ordered)))
    found = []
    for large in (n, 0):
        monkeypatch.setattr(concrete, "_LARGE", large)
        fresh = Concrete(n)
        found.append(
            [
                [fresh.plus(x), fresh.acyclic(x), fresh.inverse(x), fresh.sequence(x, a), fresh.sequence(x, b)]
                for x in (a, b, a | b)
            ]
        )
    assert found[0] == found[1]
