"""Every axiom, flag, alternative and condition of every shipped model matters to at least one test in ``litmus/``.

``mutants.toml`` names the tests that notice each mutant (``mutants.py``) and ``mutants_exempt.py`` proves for all
others that none can. What the table says is verified here; that no test notices an exempt mutant is the slow share.
"""

from __future__ import annotations

import pytest

from ptxmm.cat import Axiom, Node, index, load, parse_model
from tests.emptiness import may_notice
from tests.mutants import (
    LITMUS,
    Mutant,
    case_named,
    cases,
    mutants,
    notices,
    own_verdict,
    plain,
    statement_text,
    statements,
    verdict,
    with_readings,
)
from tests.mutants_exempt import EXEMPT, exempt
from tests.mutants_table import table

SHIPPED = tuple(index().models)
MODELS = (*SHIPPED, *with_readings())
ALL = [m for model in MODELS for m in mutants(model)]
TABLE = table()
LISTED = [m for m in ALL if not exempt(m)]


def label(mutant: Mutant) -> str:
    return f"{mutant.model}-{mutant.name}"


SHAPES: dict[tuple[object, ...], int] = {}
"""A number for each shape of a node; those of its operands are numbers."""


def shape(axiom: Axiom) -> tuple[object, ...]:
    """An axiom without the numbers of its nodes."""
    known: dict[int, int] = {}

    def of(node: Node | None) -> int | None:
        if node is not None and id(node) not in known:
            key = node.operator, node.name, tuple(of(o) for o in node.operands)
            known[id(node)] = SHAPES.setdefault(key, len(SHAPES))
        return None if node is None else known[id(node)]

    return axiom.name, axiom.kind, axiom.negated, axiom.flag, of(axiom.body)


@pytest.mark.parametrize("model", (*SHIPPED, *MODELS[len(SHIPPED) :: 6]))
def test_text_of_a_model_is_the_model(model: str) -> None:
    """Writing a model out changes nothing (else mutants would mean nothing)."""
    text = f'"{plain(model)}"\n' + "\n".join(map(statement_text, statements(model)))
    again = parse_model(text, f"{plain(model)}.cat", dict(load(model).readings))
    assert [shape(a) for a in again.axioms] == [shape(a) for a in load(model).axioms]


def test_exemptions_name_mutants() -> None:
    names = {(m.model, m.name) for m in ALL} | {("*", m.name) for m in ALL}
    assert set(EXEMPT) <= names


@pytest.mark.parametrize("model", MODELS)
def test_table_is_complete(model: str) -> None:
    """Each mutant is either in the table, with tests that exist, or exempt."""
    rows = TABLE.get(model, {})
    assert set(rows) == {m.name for m in LISTED if m.model == model}
    for tests in rows.values():
        assert tests
        assert all((LITMUS / f"{name}.litmus").is_file() for name in tests)


@pytest.mark.share(3)
@pytest.mark.parametrize("mutant", LISTED, ids=label)
def test_mutant_is_noticed(mutant: Mutant) -> None:
    """Every test that the table names has another verdict, status or flags under the mutant."""
    loaded = mutant.load()
    for name in TABLE[mutant.model][mutant.name]:
        assert notices(name, mutant, loaded), f"litmus/{name} does not notice: {mutant.model} {mutant.name}"


@pytest.mark.parametrize("mutant", LISTED[::15], ids=label)
def test_engines_agree_on_mutants(mutant: Mutant) -> None:
    """The explicit engine says the same of the test and the mutant."""
    name = TABLE[mutant.model][mutant.name][0]
    loaded = mutant.load()
    symbolic, explicit = (verdict(case_named(name), loaded, engine=engine) for engine in ("z3", "enumerate"))
    assert symbolic is not None and symbolic == explicit
    assert symbolic != own_verdict(name, mutant.model)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [m for m in ALL if exempt(m)], ids=label)
def test_exempt_mutant_is_not_noticed(mutant: Mutant, shift: int) -> None:
    """No test in ``litmus/`` notices what is proved to be unnoticeable: each is asked by a sixth of the tests, the
    next one by the next sixth."""
    loaded = mutant.load()
    asked = cases(mutant.model)[(ALL.index(mutant) + shift) % 6 :: 6]
    assert not [name for name in asked if may_notice(name, mutant) and notices(name, mutant, loaded)], exempt(mutant)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", LISTED[::10], ids=label)
def test_what_looks_empty_does_not_matter(mutant: Mutant) -> None:
    """Tests that lack what a mutant is about have the same verdict under it: the search for tests may skip them."""
    loaded = mutant.load()
    skipped = [name for name in cases(mutant.model) if not may_notice(name, mutant)]
    assert not [name for name in skipped[::10] if notices(name, mutant, loaded)]
