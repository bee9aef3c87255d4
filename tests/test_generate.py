"""Programs of a vocabulary: none missing, none twice, and the search over all of them at once finds what each shows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise, product

import networkx as nx
import pytest

from ptxmm.analysis import separate as separating
from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.observe import observed
from ptxmm.analysis.search import Question, final_states, values
from ptxmm.cat import Model, load, names, parse_model
from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.errors import PtxmmError
from ptxmm.formats.writer import same, write
from ptxmm.generate import executions
from ptxmm.generate.problem import Candidate, Separation
from ptxmm.generate.realize import canonical_name, realize, written_values
from ptxmm.generate.skeleton import Skeleton, Slot, belongs, canonical, programs, weaker
from ptxmm.generate.space import Space
from ptxmm.generate.vocabulary import Form, Vocabulary, thread_sizes, vocabulary
from ptxmm.relations.formula import FALSE
from ptxmm.relations.symbolic import Relation
from tests.support import parse_one

SMALL = {
    "accesses": vocabulary(("ld", "st"), ("cta", "gpu"), ("weak", "relaxed")),
    "atomics": vocabulary(("ld", "atom", "red"), ("gpu", "sys"), ("weak", "acq_rel", "release")),
    "fences": vocabulary(("st", "fence", "alias"), ("cta", "gpu", "sys"), ("weak", "sc")),
    "one scope": vocabulary(("ld", "st"), ("cta",), ("weak", "relaxed")),
    "no tree": vocabulary(("ld", "st"), ("sys",), ("relaxed",)),
    "wide": vocabulary(("ld", "st"), ("cta", "gpu"), ("relaxed",), narrow=False),
}


def every_program(words: Vocabulary, size: int) -> Iterator[Skeleton]:
    """All programs with numbered threads, locations and places, however they are numbered."""
    for threads in range(1, size + 1):
        for ends in combinations(range(1, size), threads - 1):
            borders = (0, *ends, size)
            addresses = [(x, n) for x in range(size // 2) for n in ((0, 1) if words.aliases else (0,))]
            slots = [Slot(form, *at) for form in words.forms for at in (addresses if form.accesses else [(-1, 0)])]
            for chosen in product(slots, repeat=size):
                bodies = tuple(chosen[a:b] for a, b in pairwise(borders))
                for flat in product(product(range(threads), repeat=len(words.levels)), repeat=threads):
                    skeleton = Skeleton(bodies, flat)
                    if belongs(skeleton, words):
                        yield skeleton


def graph(skeleton: Skeleton) -> nx.DiGraph:
    """A program as a labelled graph: isomorphic iff the programs are the same up to names."""
    found = nx.DiGraph()
    for t, body in enumerate(skeleton.threads):
        found.add_node(("thread", t), label="thread")
        for i, slot in enumerate(body):
            found.add_node((t, i), label=str(slot.form))
            found.add_edge((t, i), ("thread", t), label="in")
            if i:
                found.add_edge((t, i - 1), (t, i), label="next")
            if slot.location >= 0:
                location, address = ("location", slot.location), ("address", slot.location, slot.name)
                found.add_node(location, label="location")
                found.add_node(address, label="address")
                found.add_edge(address, location, label="of")
                found.add_edge((t, i), address, label="at")
        outer: tuple[str, object] = ("thread", t)
        for depth in range(len(skeleton.places[t]), 0, -1):
            group = ("place", skeleton.places[t][:depth])
            found.add_node(group, label=f"place {depth}")
            found.add_edge(outer, group, label="inside")
            outer = group
    return found


def classes(skeletons: Iterator[Skeleton]) -> list[Skeleton]:
    """One of each class up to isomorphism."""
    buckets: dict[tuple[object, ...], list[tuple[nx.DiGraph, Skeleton]]] = {}
    seen: set[Skeleton] = set()
    for skeleton in skeletons:
        if skeleton in seen:
            continue
        seen.add(skeleton)
        one = graph(skeleton)
        degrees = sorted((one.nodes[n]["label"], one.in_degree(n), one.out_degree(n)) for n in one)
        bucket = buckets.setdefault(tuple(degrees), [])
        match = {"node_match": _equal, "edge_match": _equal}
        if not any(nx.is_isomorphic(one, other, **match) for other, _ in bucket):
            bucket.append((one, skeleton))
    return [skeleton for bucket in buckets.values() for _, skeleton in bucket]


def _equal(a: dict[str, str], b: dict[str, str]) -> bool:
    return a["label"] == b["label"]


@pytest.mark.parametrize(("name", "size"), [*((n, 2) for n in SMALL), ("one scope", 3), ("no tree", 3), ("wide", 3)])
def test_no_program_is_missing_or_twice(name: str, size: int) -> None:
    words = SMALL[name]
    expected = classes(every_program(words, size))
    wanted = {canonical(s) for s in expected}
    found = list(programs(words, size))
    assert len(wanted) == len(expected)
    assert len(set(found)) == len(found) == len(expected)
    assert set(found) == wanted


def sample(rng: random.Random, words: Vocabulary, count: int) -> list[Skeleton]:
    found = list(programs(words, 3))
    return rng.sample(found, min(count, len(found)))


@pytest.mark.parametrize("name", SMALL)
def test_canonical_forms_do_not_depend_on_names(name: str) -> None:
    rng = random.Random(name)
    for skeleton in sample(rng, SMALL[name], 40):
        threads = list(range(len(skeleton.threads)))
        rng.shuffle(threads)
        swap, shift = rng.random() < 0.5, rng.randrange(1, 4)
        other = Skeleton(
            tuple(
                tuple(
                    slot if slot.location < 0 else Slot(slot.form, 7 - slot.location, slot.name ^ swap)
                    for slot in skeleton.threads[t]
                )
                for t in threads
            ),
            tuple(tuple(n + shift for n in skeleton.places[t]) for t in threads),
        )
        assert canonical(other) == skeleton


@pytest.mark.parametrize(("name", "size"), [(n, s) for n in SMALL for s in (2, 3) if (n, s) != ("fences", 3)])
def test_the_space_has_exactly_the_programs(name: str, size: int) -> None:
    words = SMALL[name]
    found: set[Skeleton] = set()
    for sizes in thread_sizes(size):
        space = Space(words, sizes, size // 2)
        solver = Solver(space.formulas, Limits())
        for formula in space.constraints:
            solver.require(formula)
        for pair in space.exclusive:
            solver.exclude(*pair)
        seen: set[Skeleton] = set()
        while solver.satisfiable(space.formulas.all(())):
            skeleton = space.skeleton(solver.value)
            assert skeleton not in seen
            assert belongs(skeleton, words)
            seen.add(skeleton)
            solver.require(-space.is_program(skeleton))
        found |= {canonical(s) for s in seen}
    assert found == set(programs(words, size))


@pytest.mark.parametrize("name", SMALL)
def test_programs_read_back(name: str) -> None:
    rng = random.Random(name)
    words = SMALL[name]
    for skeleton in sample(rng, words, 60):
        test = realize(skeleton, words, canonical_name(skeleton))
        assert same(parse_one(write(test)), test)


def test_every_scope_and_kind_reads_back() -> None:
    rng = random.Random(1)
    words = vocabulary(("ld", "st", "atom", "red", "fence", "alias"), ("cta", "cluster", "gpu", "sys"))
    for _ in range(100):
        bodies = tuple(tuple(_slot(rng, words) for _ in range(rng.randrange(1, 4))) for _ in range(3))
        places = tuple(tuple(rng.randrange(2) for _ in words.levels) for _ in bodies)
        skeleton = canonical(Skeleton(bodies, places))
        test = realize(skeleton, words, canonical_name(skeleton))
        check_compatible(test, load("ptx-8.5"))
        assert same(parse_one(write(test)), test)


def _slot(rng: random.Random, words: Vocabulary) -> Slot:
    form = rng.choice(words.forms)
    return Slot(form, rng.randrange(3), rng.randrange(2)) if form.accesses else Slot(form)


@pytest.mark.parametrize("reds", range(9))
def test_values_tell_writes_apart(reds: int) -> None:
    forms = [Form("red", "relaxed", "gpu")] * reds + [Form("st", "weak")] * (8 - reds)
    skeleton = Skeleton((tuple(Slot(f, 0) for f in forms),), ((0,),))
    found = written_values(skeleton)
    sums = set()
    steps = [found[0, i] for i in range(reds)]
    stored = [0, *(found[0, i] for i in range(reds, 8))]
    for start in stored:
        for chosen in product((0, 1), repeat=reds):
            sums.add(start + sum(step for step, taken in zip(steps, chosen, strict=True) if taken))
    assert len(sums) == len(stored) * 2**reds
    assert max(sums) < 256


def test_weaker_forms() -> None:
    words = vocabulary(("ld", "st", "atom"), ("cta", "gpu"))
    skeleton = Skeleton(((Slot(Form("atom", "release", "cta"), 0), Slot(Form("st", "weak"), 0)),), ((0,),))
    names = [str(s.threads[0][0].form) for s in weaker(skeleton, (0, 0), words)]
    assert names[:2] == ["ld.weak", "st.weak"]
    assert names[-2:] == ["atom.acquire.cta", "atom.acquire.gpu"]
    assert list(weaker(skeleton, (0, 1), words)) == []


# -- the search --

PAIRS = [
    ("ptx-8.5", "sc", "accesses", 3),
    ("ptx-8.5", "sc", "fences", 3),
    pytest.param("ptx-7.5", "ptx-7.5[co=direct]", "no tree", 4, marks=pytest.mark.slow),
    pytest.param("ptx-6.0", "ptx-6.0[scploc=none]", "accesses", 3, marks=pytest.mark.slow),
    ("ptx-6.0", "ptx-6.0[scploc=none]", "one scope", 3),
    ("ptx-6.0", "sc", "atomics", 2),
    ("ptx-8.5", "ptx-8.5[red=read]", "atomics", 2),
]


def final(skeleton: Skeleton, words: Vocabulary, model: Model, engine: str) -> set[tuple[int, ...]]:
    test = realize(skeleton, words, "test")
    what = observed(test, True)
    states = final_states(Question(test, model, what, Limits(), (engine,)))
    assert states.search.exhausted
    return {values(what, state) for state in states.rows}


@pytest.mark.parametrize(("one", "other", "name", "size"), PAIRS)
def test_the_search_finds_every_program_that_separates(one: str, other: str, name: str, size: int) -> None:
    """All programs compared one by one by the explicit engine, against all that the space finds."""
    words, models = SMALL[name], (load(one), load(other))
    wanted = {
        skeleton
        for skeleton in programs(words, size)
        if final(skeleton, words, models[0], "enumerate") != final(skeleton, words, models[1], "enumerate")
    }
    found: set[Skeleton] = set()
    for sizes in thread_sizes(size):
        for allowing, forbidding in (models, models[::-1]):
            problem = Separation(words, sizes, allowing, forbidding, Limits())
            while (candidate := problem.next()) is not None:
                skeleton = canonical(candidate.skeleton)
                found.add(skeleton)
                if skeleton in wanted:
                    problem.skip()
                else:  # what refutes it must not leave out a program that separates
                    refute(problem, candidate, words, forbidding)
    assert wanted <= found
    for skeleton in found - wanted:
        assert final(skeleton, words, models[0], "z3") == final(skeleton, words, models[1], "z3")


def refute(problem: Separation, candidate: Candidate, words: Vocabulary, forbidding: Model) -> None:
    test = realize(candidate.skeleton, words, "test")
    what = observed(test, True)
    witnesses = separating.states_of(test, forbidding, what, Limits())
    witness = witnesses.get(values(what, separating.final_state(candidate, test)))
    assert witness is not None
    problem.refute(separating.orders_of(candidate.skeleton, witness))


def test_candidates_are_executions_of_the_model_that_allows_them() -> None:
    words, models = SMALL["accesses"], (load("ptx-8.5"), load("sc"))
    count = 0
    for sizes in thread_sizes(3):
        problem = Separation(words, sizes, *models, Limits())
        while (candidate := problem.next()) is not None:
            states = final(candidate.skeleton, words, models[0], "z3")
            registers = [candidate.returned[at] for at in sorted(candidate.returned)]
            assert (*registers, *(candidate.last.get(x, 0) for x in range(1))) in states
            problem.skip()
            count += 1
    assert count > 10


def test_every_base_relation_is_defined_or_empty_in_all_programs() -> None:
    """A row that the described table gets has to say what it is here."""
    assert executions.RELATIONS.keys() | executions.EMPTY == names.RELATIONS
    assert executions.RELATIONS.keys().isdisjoint(executions.EMPTY)
    space = Space(
        vocabulary(("ld", "st", "atom", "red", "fence", "alias"), ("cta", "cluster", "gpu", "sys")), (2, 2), 2
    )
    none = names.absent({name for name in names.SETS if all(when == FALSE for when in space.tagged(name))})
    assert none | {"addr", "data", "ctrl", "lives", "same-value", "syncbar", "sync_barrier"} >= executions.EMPTY
    base = executions.Base(executions.Choices(space))
    assert all(isinstance(base(name), Relation) for name in names.RELATIONS)


def test_a_base_relation_without_a_definition_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "RELATIONS", names.RELATIONS | {"scluster"})
    base = executions.Base(executions.Choices(Space(SMALL["accesses"], (1, 1), 1)))
    with pytest.raises(PtxmmError, match="`scluster` is not defined"):
        base("scluster")


def test_a_model_of_ones_own_has_every_name() -> None:
    """What no program of a vocabulary has is empty, and no base name is unknown."""
    lines = [f"empty {name} \\ {name} as n{number}" for number, name in enumerate(sorted(names.SETS | names.RELATIONS))]
    text = "\n".join(['"all names"', *lines])
    model = parse_model(text, "names.cat")
    words = vocabulary(("ld", "st", "atom", "red", "fence", "alias"), ("cta", "cluster", "gpu", "sys"))
    assert Separation(words, (2, 1), model, model, Limits()).next() is None
