"""The evaluator over the bitset carrier against a direct reading of the syntax tree over sets of pairs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm import cat
from ptxmm.cat import names, syntax
from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.parser import parse
from ptxmm.errors import PtxmmError
from ptxmm.relations.concrete import Concrete

Value = frozenset[Any]
SETS = ("A", "B")
RELATIONS = ("r", "s", "t")
# Base names that the random expressions use under short names.
HEADER = "let A = R\nlet B = W\nlet r = po\nlet s = rf\nlet t = co\n"


def naive(node: syntax.Expression, scope: Mapping[str, Value], n: int) -> Value:
    """The value of an expression without functions and conditionals, by the definitions of the operators."""
    identity = frozenset((i, i) for i in range(n))
    if isinstance(node, syntax.Name):
        if node.name == "_":
            return frozenset(range(n))
        return identity if node.name == "id" else scope[node.name]
    if isinstance(node, syntax.Call):
        (argument,) = (naive(a, scope, n) for a in node.arguments)
        return frozenset(pair[0 if node.name == "domain" else 1] for pair in argument)
    assert isinstance(node, syntax.Operation)
    values = [naive(operand, scope, n) for operand in node.operands]
    result = values[0]
    match node.operator:
        case "|" | "&" | "\\" | ";":
            for value in values[1:]:
                if node.operator == ";":
                    result = frozenset((a, d) for a, b in result for c, d in value if b == c)
                else:
                    operations = {"|": result.union, "&": result.intersection, "\\": result.difference}
                    result = operations[node.operator](value)
            return result
        case "*":
            return frozenset((a, b) for a in values[0] for b in values[1])
        case "+" | "star":
            while True:
                more = result | {(a, d) for a, b in result for c, d in result if b == c}
                if more == result:
                    return result | identity if node.operator == "star" else result
                result = more
        case "?":
            return result | identity
        case "^-1":
            return frozenset((b, a) for a, b in result)
        case "[]":
            return frozenset((a, a) for a in result)
        case "~":
            everything = frozenset(range(n))
            pairs = frozenset((a, b) for a in everything for b in everything)
            is_set = isinstance(node.operands[0], syntax.Name) and node.operands[0].name in (*SETS, "_")
            return (everything if is_set else pairs) - result
    raise AssertionError(node.operator)


set_expressions = st.sampled_from((*SETS, "_", "~A"))
relation_expressions = st.recursive(
    st.one_of(
        st.sampled_from((*RELATIONS, "id")),
        set_expressions.map("[{}]".format),
        st.tuples(set_expressions, set_expressions).map(lambda p: f"({p[0]} * {p[1]})"),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("|&\\;"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from("|&\\;"), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(("+", "*", "?", "^-1"))).map(lambda p: f"({p[0]}){p[1]}"),
        inner.map("(domain({}) * A)".format),
        inner.map("[range({}) & B]".format),
        inner.map(lambda e: f"~({e})" if "*" in e or e in RELATIONS else e),
    ),
    max_leaves=8,
)


def execution(n: int, seed: int) -> tuple[Concrete, dict[str, int], dict[str, Value]]:
    """Random base sets and relations, in both forms."""
    rng = random.Random(seed)
    algebra = Concrete(n)
    base: dict[str, int] = {}
    plain: dict[str, Value] = {}
    for name in sorted(names.SETS):
        chosen = frozenset(i for i in range(n) if rng.random() < 0.5)
        plain[name], base[name] = chosen, algebra.set_of(chosen)
    for name in sorted(names.RELATIONS):
        pairs = frozenset((i, j) for i in range(n) for j in range(n) if rng.random() < 0.25)
        plain[name], base[name] = pairs, algebra.relation(pairs)
    return algebra, base, plain


def shorthand(plain: Mapping[str, Value]) -> dict[str, Value]:
    return {"A": plain["R"], "B": plain["W"], "r": plain["po"], "s": plain["rf"], "t": plain["co"]}


@settings(max_examples=300, deadline=None)
@given(relation_expressions, st.integers(1, 5), st.integers(0, 10**6))
def test_random_expressions(text: str, n: int, seed: int) -> None:
    algebra, base, plain = execution(n, seed)
    model = cat.parse_model(f"{HEADER}let x = {text}\nempty x as e")
    statement = parse(f"let x = {text}", "<text>").statements[0]
    assert isinstance(statement, syntax.Let)
    wanted = naive(statement.definitions[0].body, shorthand(plain), n)
    found = Evaluator(model, algebra, base.get).value("x")
    assert set(algebra.pairs(found)) == wanted


RECURSIVE = (
    "x = r | (x; s; x)",
    "x = (x; s; x) | r | t",
    "x = r | (x; x)",
    "x = r | (x; s)",
    "x = r | (s; x) | t",
    "x = r | (s; x) | (x; t)",
    "x = r | (x; s; x) | (x; t; x)",
    "x = r | ([A]; x; s) | (x; t; s; x)",
    "x = (r & (s; x)) | t",
    "x = r | x^-1 | (x; s)",
    "x = r | (y; s) and y = t | (x; x)",
    "x = y and y = r | (x; t) | x?",
    "x = r | (x; s; x) | (x; t)",
    "x = x | r",
    "x = (x; x)",
    "x = r; s",
)


@pytest.mark.parametrize("text", RECURSIVE)
@pytest.mark.parametrize("seed", range(8))
def test_recursive_definitions_are_least_fixpoints(text: str, seed: int) -> None:
    n = 2 + seed % 4
    algebra, base, plain = execution(n, seed)
    model = cat.parse_model(f"{HEADER}let rec {text}\nempty x as e")
    statement = parse(f"let rec {text}", "<text>").statements[0]
    assert isinstance(statement, syntax.Let)
    scope = shorthand(plain) | {d.name: frozenset() for d in statement.definitions}
    while True:
        following = scope | {d.name: naive(d.body, scope, n) for d in statement.definitions}
        if following == scope:
            break
        scope = following
    evaluator = Evaluator(model, algebra, base.get)
    for definition in statement.definitions:
        assert set(algebra.pairs(evaluator.value(definition.name))) == scope[definition.name]


@pytest.mark.parametrize("name", ["ptx-6.0", "ptx-7.5", "ptx-8.5", "sc"])
@pytest.mark.parametrize("changes", [("rf", "fr"), ("co", "fr"), ("fsc",), ("po",), ("W",)])
def test_changed_keeps_only_what_may_be_kept(name: str, changes: tuple[str, ...]) -> None:
    model = cat.load(name)
    for seed in range(5):
        algebra, before, _ = execution(6, seed)
        _, other, _ = execution(6, seed + 100)
        after = before | {key: other[key] for key in changes}
        evaluator = Evaluator(model, algebra, before.get)
        first = [value for _, value in evaluator.axioms()]
        second = [value for _, value in evaluator.changed(changes, after.get).axioms()]
        fresh = [value for _, value in Evaluator(model, algebra, after.get).axioms()]
        assert second == fresh
        assert first == [value for _, value in evaluator.axioms()]


@pytest.mark.parametrize("name", ["ptx-7.5", "ptx-8.5", "recursive"])
def test_a_chain_of_small_changes_keeps_what_is_the_same(name: str) -> None:
    """Each evaluator is asked for some of its values only, before and after another one is made of it."""
    text = f"{HEADER}let rec x = r | (x; s; x) let y = x & t let z = y | r^-1\nempty y as a\nacyclic z as b"
    model = cat.parse_model(text) if name == "recursive" else cat.load(name)
    names = ("rf", "co", "po") if name == "recursive" else ("rf", "co", "fsc", "po", "barphase")
    for seed in range(8):
        chance = random.Random(seed)
        algebra, base, _ = execution(5, seed)
        evaluator = Evaluator(model, algebra, base.get)
        for _ in range(6):
            for axiom in chance.sample(model.axioms, chance.randrange(len(model.axioms))):
                evaluator.value(axiom.body)
            changes = chance.sample(names, 2)
            following = base | {key: base[key] ^ (1 << chance.randrange(25)) for key in changes}
            later = evaluator.changed(changes, following.get)
            fresh = Evaluator(model, algebra, following.get)
            assert [value for _, value in later.axioms()] == [value for _, value in fresh.axioms()]
            evaluator, base = later.changed(changes, following.get), following


def test_evaluation_is_lazy_and_asks_for_each_base_name_once() -> None:
    asked: list[str] = []
    algebra = Concrete(3)

    def base(name: str) -> int:
        asked.append(name)
        return 0

    model = cat.parse_model("let a = po | rf let b = a; a let c = co\nempty b as x\nempty a as y\nempty c as z")
    evaluator = Evaluator(model, algebra, base)
    evaluator.value("b")
    assert sorted(asked) == ["po", "rf"]
    list(evaluator.axioms())
    assert sorted(asked) == ["co", "po", "rf"]


def test_an_unknown_base_name() -> None:
    model = cat.parse_model("empty po as x")
    evaluator = Evaluator[int, int](model, Concrete(1), lambda name: None)
    with pytest.raises(PtxmmError) as caught:
        list(evaluator.axioms())
    assert str(caught.value) == "error: the events of an execution have no set or relation `po`"
    assert caught.value.kind == "model"


def test_names_of_values() -> None:
    algebra, base, _ = execution(4, 1)
    evaluator = Evaluator(cat.parse_model("let co = co+\nempty co as x"), algebra, base.get)
    assert evaluator.value("co") == algebra.plus(base["co"])
    assert evaluator.value("rf") == base["rf"]
    assert evaluator.value("_") == evaluator.value("E") == algebra.universe()
    assert evaluator.value("id") == algebra.identity(algebra.universe())
    assert evaluator.value("0") == evaluator.value("emptyset") == 0
