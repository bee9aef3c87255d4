"""``ptxmm explain``: golden explanations, and properties of the reasons for every forbidden test of ``litmus/``."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.explain import ExplainResult, explain
from ptxmm.analysis.explain.miss import Miss
from ptxmm.analysis.explain.reasons import Found, Search, fewest, reasons
from ptxmm.analysis.explain.steps import Edge
from ptxmm.analysis.outcomes import check
from ptxmm.cat import Model, parse_model
from ptxmm.cat.derivation import EDGES, BaseFact, Derivations
from ptxmm.cat.derivation_bounds import Recheck, informative
from ptxmm.cli.app import run
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from ptxmm.program.condition import Comparison, Conjunction, IntegerTerm, Negation, Proposition, Term
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import assignments
from ptxmm.render.explain import text
from ptxmm.render.style import Style
from tests.documents import entry
from tests.random_programs import seeded
from tests.reference import everything
from tests.support import ROOT, ask, model_named, parse_one

Golden = Callable[[str, str], None]
MODELS = ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc")
FILES = sorted((ROOT / "litmus").rglob("*.litmus"))
NAMES = [path.stem for path in FILES]


def litmus_test(name: str) -> Test:
    """A test of ``litmus/``."""
    (test,) = read(ROOT / "litmus" / f"{name}.litmus")
    return test


def explained(name: str, model: str = "ptx-8.5") -> ExplainResult:
    """The explanation of the condition of a test of ``litmus/``."""
    return explain(litmus_test(name), model_named(model), limits=Limits(deadline=time.monotonic() + 30))


def lines_of(result: ExplainResult) -> str:
    """The text of a result, without the time."""
    return "\n".join(line for line in text(result, Style(False)) if not line.startswith("Time ")) + "\n"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("mp/MP+rel+acq", "ptx-8.5"),
        ("mp/MP+rel+acq", "ptx-6.0"),
        ("mp/MP+fence+relaxed-then-acq", "ptx-8.5"),
        ("mp/MP+rel+relaxed", "ptx-8.5"),
        ("sb/ISA-SB", "ptx-8.5"),
        ("sb/ISA-SB", "sc"),
        ("coherence/ISA-CoRR", "ptx-7.5"),
        ("iriw/IRIW+fence.sc", "ptx-8.5"),
        ("async/TMA-load", "ptx-8.5"),
        ("async/TMA-store-epilogue", "ptx-8.5"),
        ("aliases/ISA-CoWR", "ptx-8.5"),
        ("rmw/atom.add+st", "ptx-8.5"),
        ("barriers/BAR-MP", "ptx-8.5"),
        ("lb/LB+datas", "ptx-8.5"),
        ("cp-async/wait-and-barrier", "ptx-8.5"),
        ("thin-air/arrival-guarded", "ptx-6.0"),
        ("thin-air/mbarrier-count", "ptx-8.5"),
    ],
)
def test_text(golden: Golden, name: str, model: str) -> None:
    golden(f"explain-{name.replace('/', '-')}-{model}.txt", lines_of(explained(name, model)))


def test_json(golden: Golden) -> None:
    result = replace(explained("mp/MP+fence+relaxed-then-acq"), file="mp/MP+fence+relaxed-then-acq.litmus", seconds=0.0)
    found = entry("explain", result)
    golden("explain.json", json.dumps(found, indent=2) + "\n")


# ---- every forbidden test --------------------------------------------------------------------------------------------


def question(test: Test) -> Proposition | None:
    """What ``explain`` explains by default."""
    if test.condition is None:
        return None
    proposition = test.condition.proposition
    return Negation(proposition) if test.condition.kind == "forall" else proposition


def forbidden(test: Test, model: Model, proposition: Proposition) -> bool | None:
    """Whether no final state meets ``proposition``; None where the check does not say."""
    try:
        check_compatible(test, model)
        assert test.condition is not None
        condition = replace(test.condition, kind="exists", proposition=proposition)
        limits = Limits(deadline=time.monotonic() + 20)
        result = check(replace(test, condition=condition), model, enumerate_all=False, limits=limits)
    except PtxmmError:
        return None
    return None if result.holds is None else not result.holds


def proves(found: Found, model: Model) -> None:
    """The facts of a reason prove it, and none of them can be left out."""
    recheck = Recheck(model, found.execution.layout.algebra, found.execution.base)
    axiom = found.violation.axiom
    assert recheck.violated(axiom, found.facts)
    edges = [f for f in found.facts if f.holds and f.relation in EDGES]
    for fact in filter(informative, found.facts):
        assert not recheck.violated(axiom, [f for f in found.facts if f is not fact])
    assert len(edges) <= found.violation.cost


def check_reasons(test: Test, model: Model) -> int:
    """How many reasons there are for what ``test`` forbids, each of which is a proof; -1 if it is not forbidden."""
    proposition = question(test)
    if proposition is None or not forbidden(test, model, proposition):
        return -1
    limits = Limits(deadline=time.monotonic() + 60)
    count = 0
    for assigned in assignments(test):
        every = list(reasons(Search(assigned.test, model, proposition, limits), limits))
        for found in every:
            proves(found, model)
        chosen = fewest(Search(assigned.test, model, proposition, limits), limits, every)
        assert set(chosen) <= set(every)
        assert bool(chosen) is bool(every)
        count += len(chosen)
    return count


@pytest.mark.parametrize("path", FILES[::15], ids=NAMES[::15])
def test_reasons_are_proofs(path: Path) -> None:
    for test in read(path):
        check_reasons(test, model_named(test.default_model))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_reasons_are_proofs(path: Path) -> None:
    for test in read(path):
        for model in MODELS:
            check_reasons(test, model_named(model))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_explanations_agree_with_check(path: Path) -> None:
    agrees(path)


@pytest.mark.parametrize("path", FILES[7::23], ids=NAMES[7::23])
def test_explanations_agree_with_check(path: Path) -> None:
    agrees(path)


def agrees(path: Path) -> None:
    """The verdict of ``explain`` is that of ``check``."""
    for test in read(path):
        model = model_named(test.default_model)
        proposition = question(test)
        verdict = None if proposition is None else forbidden(test, model, proposition)
        if verdict is not None:
            result = explain(test, model, misses=False, limits=Limits(deadline=time.monotonic() + 60))
            assert result.verdict in (("forbidden", "impossible") if verdict else ("allowed",))
            assert (result.verdict == "forbidden") is bool(result.groups)
            entry("explain", result)


@pytest.mark.parametrize(
    "name",
    ["mp/MP+rel+acq", "sb/ISA-SB", "coherence/ISA-CoRR", "coherence/CoWW", "rmw/atom.add+st", "aliases/ISA-CoWR"],
)
def test_no_fewer_edges_prove_anything(name: str) -> None:
    """Of all edges of an execution, no set smaller than the reason proves that any axiom is violated."""
    test, model = litmus_test(name), model_named("ptx-8.5")
    proposition = question(test)
    assert proposition is not None
    limits = Limits(deadline=time.monotonic() + 60)
    for found in reasons(Search(test, model, proposition, limits), limits):
        layout, base = found.execution.layout, found.execution.base
        recheck = Recheck(model, layout.algebra, base)
        facts = [
            BaseFact(name, x, y) for name in sorted(EDGES) for x, y in layout.algebra.pairs(base(name) or 0)
            if name not in ("po-loc", "sync_fence")
        ]  # fmt: skip
        axioms = [a for a in model.axioms if not a.flag]
        edges = sum(f.holds and f.relation in EDGES for f in found.facts)
        for size in range(edges):
            for some in combinations(facts, size):
                known = recheck.known(some)
                for axiom in axioms:
                    violated = not layout.algebra.satisfies(axiom.kind, False, known(axiom.body)[0])
                    assert not violated or absence(axiom.body.operator, size, found), (axiom.name, some)


def absence(operator: str, size: int, found: Found) -> bool:
    """Whether a proof of ``size`` edges rests on an absence as well, which counts as an edge."""
    return operator == "difference" and size + 1 >= found.violation.cost


# ---- nearest misses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("mp/MP+rel+acq", {"order", "scope"}),
        ("sb/ISA-SB", {"order"}),
        ("coherence/ISA-CoRR", {"order"}),
        ("rmw/atom.add+st", {"order", "scope"}),
        ("aliases/ISA-CoWR", {"removal"}),
        ("async/TMA-load-from-fresh-data", {"removal"}),
        ("barriers/BAR-MP", {"removal"}),
        ("cp-async/wait-and-barrier", {"removal"}),
        ("async/TMA-store-epilogue", {"order", "scope", "removal"}),
        ("grids/order-two-CTAs", {"placement"}),
        ("coherence/CoRW1", set()),
    ],
)
def test_nearest_misses(name: str, kinds: set[str]) -> None:
    result = explained(name)
    assert result.searched
    assert {miss.kind for miss in result.misses} == kinds
    assert len({miss.distance for miss in result.misses}) <= 1
    test = litmus_test(name)
    for miss in result.misses:
        if miss.move is None:
            assert allowed(test, miss), miss


def test_a_miss_of_a_kernel_is_a_change_of_its_source() -> None:
    """The lock that both threads take by the same instruction is weakened for both."""
    (test,) = read(ROOT / "tests" / "cuda" / "spin_lock_acquire.ptx")
    result = explain(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 60))
    changes = [change for miss in result.misses for change in miss.changes]
    assert len(changes) == len(result.misses) == 4
    assert {(change.thread, (change.old or "").partition(" ")[0]) for change in changes} == {
        ("P0-P1", "atom.acquire.gpu.global.cas.b32"), ("P0-P1", "st.release.gpu.global.u32"),
    }  # fmt: skip


def allowed(test: Test, miss: Miss) -> bool:
    """Whether the changed test ends in the state, says the other engine."""
    edits = {Site(c.number, c.index): () if c.op is None else (c.op,) for c in miss.changes}
    model, proposition = model_named("ptx-8.5"), question(test)
    changed = edited(test, edits)
    assert proposition is not None and changed.condition is not None
    changed = replace(changed, condition=replace(changed.condition, kind="exists", proposition=proposition))
    return check(changed, model, engine="enumerate").holds is True


MIXED = """PTX mixed
{{ .global .u32 x = 0; {declarations} }}
P0 @ cta 0 {{
  st.relaxed.gpu.global.u32 [x], 0x010101;
  bar.sync 0;
  st.global.u8 [x+3], 7;
}}
P1 @ cta 0 {{
  st.relaxed.gpu.global.u32 [x], 0x020202;
  bar.sync 0;
}}
{more}
exists ({condition})
"""


@pytest.mark.parametrize(("model", "axiom"), [("ptx-8.5", "CoTotalMS"), ("sc", "Coherence")])
def test_an_order_that_alone_forbids_is_the_reason(model: str, axiom: str) -> None:
    """The last bytes are those of two writes of four bytes: nothing forbids that but that one comes after the other."""
    test = parse_one(MIXED.format(condition="x == 0x07010201", declarations="", more=""))
    result = explain(test, model_named(model))
    ((found,),) = (group.reasons for group in result.groups)
    assert (result.verdict, found.axiom, found.absent[0].text) == ("forbidden", axiom, "coherence order")
    assert {(found.edges[0].first.label), (found.edges[0].second.label)} == {"P0:4", "P1:9"}
    assert axiom not in {item.axiom for item in result.assumed}
    expected = {"st.global.u32 [x], 0x010101", "st.global.u32 [x], 0x020202"} if model != "sc" else set()
    assert {change.new for miss in result.misses for change in miss.changes} == expected


def test_the_other_orders_are_kept() -> None:
    """The fences have to be ordered as well, which is no reason: it could be kept."""
    more = "P2 @ cta 1 { fence.sc.gpu; }\nP3 @ cta 2 { fence.sc.gpu; }"
    test = parse_one(MIXED.format(condition="x == 0x07010201", declarations="", more=more))
    result = explain(test, model_named("ptx-8.5"), misses=False)
    assert {r.axiom for g in result.groups for r in g.reasons} == {"CoTotalMS"}
    assert {item.axiom for item in result.assumed} <= {"FenceSC-total", "FenceSC-order"}


def test_nearest_misses_of_all_values_of_unknown_memory() -> None:
    """That the load sees the unknown value, and that it sees 0, have the same reason and the same misses."""
    test = parse_one(
        """PTX unset
{ .global .u32 s; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [s], 1; st.release.gpu.global.u32 [f], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [s]; }
exists (P1:r0 == 1 /\\ P1:r1 != 1)
"""
    )
    result = explain(test, model_named("ptx-8.5"))
    ((_,),) = (group.reasons for group in result.groups)
    assert {(miss.kind, miss.distance) for miss in result.misses} == {("order", 1), ("scope", 1)}
    assert len(result.misses) == len(set(result.misses)) == 4


@pytest.mark.parametrize("isa", ["8.5", "8.6"])
def test_fences_that_go_one_way(isa: str) -> None:
    """In PTX 8.6 a fence may lose one of its two directions; each of these needs one only."""
    test = parse_one(
        f"""PTX MP
ISA={isa}
{{ .global .u32 x = 0; .global .u32 y = 0; }}
P0 @ cta 0 {{ st.global.u32 [x], 1; fence.acq_rel.cta; st.relaxed.gpu.global.u32 [y], 1; }}
P1 @ cta 0 {{ ld.relaxed.gpu.global.u32 r0, [y]; fence.acq_rel.cta; ld.global.u32 r1, [x]; }}
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
    )
    result = explain(test, model_named("ptx-8.5"))
    changes = {(change.thread, change.new) for miss in result.misses for change in miss.changes}
    if isa == "8.6":
        assert {("P0", "fence.acquire.cta"), ("P1", "fence.release.cta")} <= changes
    else:
        assert not {new for _, new in changes if new is not None and new.startswith("fence")}


# ---- other states and models -----------------------------------------------------------------------------------------

CORR = """PTX CoRR
{
  .global .u32 x = 0;
}
 P0 @ cta 0                       | P1 @ cta 1                        ;
 st.relaxed.gpu.global.u32 [x], 1 | ld.relaxed.gpu.global.u32 r0, [x] ;
                                  | ld.relaxed.gpu.global.u32 r1, [x] ;
"""


def test_every_edge_is_in_the_text_once() -> None:
    (group,) = explained("mp/MP+fence+relaxed-then-acq").groups
    (reason,) = group.reasons
    assert reason.closed
    assert reason.length == len(leaves(reason.edges))
    assert reason.edges[0].first == reason.edges[-1].second


def leaves(edges: tuple[Edge, ...]) -> list[Edge]:
    return [leaf for edge in edges for leaf in (leaves(edge.inner) if edge.inner else [edge])]


def test_a_user_model() -> None:
    model = parse_model("acyclic po | rf | co | fr as mine", "mine.cat")
    result = explain(litmus_test("sb/SB"), model)
    assert result.verdict == "forbidden"
    assert {r.axiom for g in result.groups for r in g.reasons} == {"mine"}
    assert "acyclic in line 1 of mine.cat" in lines_of(result)


def test_a_recursive_model() -> None:
    model = parse_model("let rec a = rf | (b; rf) and b = a; po\nirreflexive (fr; co?; b; po?) as mine", "mine.cat")
    result = explain(litmus_test("mp/MP"), model)
    assert result.verdict in ("allowed", "forbidden")


def test_negated_checks_are_refused() -> None:
    model = parse_model("~empty co as mine", "mine.cat")
    with pytest.raises(PtxmmError, match="negated check") as caught:
        explain(litmus_test("mp/MP+rel+acq"), model)
    assert caught.value.kind == "unsupported"


def test_neither_condition_nor_state() -> None:
    with pytest.raises(PtxmmError, match="no condition") as caught:
        explain(parse_one(CORR), model_named("ptx-8.5"))
    assert caught.value.kind == "usage"


def test_time_limit() -> None:
    limits = Limits(deadline=time.monotonic())
    result = explain(litmus_test("locks/cas-spinlock"), model_named("ptx-8.5"), limits=limits)
    assert (result.status, result.verdict, result.finding) == ("timeout", "unknown", None)


def test_no_meaning() -> None:
    result = explained("mixed-sizes/A12-mixed-size-race")
    assert (result.status, result.verdict, result.finding) == ("undefined", "unknown", None)


LOOP = """PTX LOOP
{
  .global .u32 x = 0;
}
 P0 @ cta 0 {
 again:
   atom.add.relaxed.gpu.global.u32 r0, [x], 1;
   setp.lt.u32 p, r0, 100;
   @p bra again;
 }
exists (x == 101)
"""


def test_bounded() -> None:
    result = explain(parse_one(LOOP), model_named("ptx-8.5"), limits=Limits(unroll=2))
    assert (result.status, result.verdict, result.finding) == ("bounded", "impossible", None)
    assert [note.kind for note in result.notes] == ["bound"]


def test_values_that_are_never_there() -> None:
    result = explained("lb/LB+datas")
    assert result.verdict == "impossible"
    assert [(i.state, i.values, i.unwritten) for i in result.impossible] == [
        ("P0:r0 == 1", {"P0:r0": (0,)}, 1),
        ("P1:r1 == 1", {"P1:r1": (0,)}, 1),
    ]


def test_a_filter_that_lets_nothing_through() -> None:
    source = CORR + "filter (P1:r0 == 5)\nexists (P1:r1 == 0)\n"
    result = explain(parse_one(source), model_named("ptx-8.5"))
    assert [(i.state, i.values, i.filtered) for i in result.impossible] == [("P1:r0 == 5", {"P1:r0": (0, 1)}, True)]
    lines = lines_of(result)
    assert "no execution that the filter lets through ends so" in lines
    assert "reaches its end" not in lines


def test_instructions_in_one_line_have_columns() -> None:
    result = explain(
        parse_one(
            """PTX line
{ .global .u32 x = 0; .global .u32 y = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [y]; ld.global.u32 r1, [x]; }
exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""
        ),
        model_named("ptx-8.5"),
        misses=False,
    )
    details = [edge.detail for group in result.groups for r in group.reasons for edge in r.chain if edge.detail]
    assert details == ["release pattern P0:3:36, acquire pattern P1:4:14"]


@pytest.mark.parametrize(
    ("axiom", "expected"),
    [
        ("empty (M \\ domain(rf)) & R as Q", "  but P1:6 is not as the axiom demands"),
        ("empty R \\ range(co) as Q", "  but P1:6 is not as the axiom demands"),
        ("empty R as Q", "  P1:6: ld.relaxed.gpu.global.u32 r0, [x]  (reads x = 1)"),
    ],
)
def test_an_axiom_about_a_set(axiom: str, expected: str) -> None:
    test = parse_one(CORR + "exists (P1:r0 == 1)\n")
    result = explain(test, parse_model(axiom, "mine.cat"), misses=False)
    lines = lines_of(result)
    assert expected in lines
    (group,) = entry("explain", result)["groups"]
    (found,) = group["reasons"]
    assert found["member"]["instruction"]["thread"] == "P1"


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of ``ptxmm explain``."""
    with pytest.raises(SystemExit) as caught:
        run(["explain", *arguments])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("P1:r0=1 P1:r1=0", 0, "State P1:r0 == 1 /\\ P1:r1 == 0\nForbidden"),
        ("P1:r0=1, P1:r1=1", 0, "State P1:r0 == 1 /\\ P1:r1 == 1\nAllowed"),
        ("P1:r0=1 \\/ x=7", 0, "State P1:r0 == 1 \\/ x == 7\nAllowed"),
        ("P1:r0=5 x=1", 0, "P1:r0 may be 0, 1"),
        ("P1:r7=5", 2, "P1 has no register `r7`"),
        ("P1:r0=", 2, "--state:1:7: error"),
        ("", 2, "--state is empty"),
    ],
)
def test_state(tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str, code: int, expected: str) -> None:
    path = tmp_path / "corr.litmus"
    path.write_text(CORR)
    found, out, err = command(capsys, str(path), "--state", state)
    assert found == code
    assert expected in out + err


def test_json_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "corr.litmus"
    path.write_text(CORR)
    code, out, _ = command(capsys, str(path), "--state", "P1:r0=1 P1:r1=0", "--json", "--no-misses")
    found = json.loads(out)["results"][0]
    assert code == 0
    assert (found["analysis"], found["verdict"], found["searched"]) == ("explain", "forbidden", False)
    assert [e["relation"] for e in found["groups"][0]["reasons"][0]["edges"]] == ["rf", "po", "fr"]


def test_derivations_of_relations_by_name() -> None:
    """A pair that a model relates has a derivation for every definition of the model."""
    test, model = litmus_test("mp/MP+rel+acq"), model_named("ptx-8.5")
    proposition = question(test)
    assert proposition is not None
    limits = Limits(deadline=time.monotonic() + 30)
    found = next(reasons(Search(test, model, proposition, limits), limits))
    evaluator, algebra = found.execution.evaluator, found.execution.layout.algebra
    derivations = Derivations(algebra, evaluator.value)
    for node in model.definitions.values():
        if not node.is_set:
            assert all(derivations.pair(node, x, y) is not None for x, y in algebra.pairs(evaluator.value(node)))


# ---- random programs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [seed for seed in range(0, 120, 6) if seed != 36])  # 36 takes long
def test_random_programs(seed: int) -> None:
    agrees_on(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000))
def test_more_random_programs(seed: int) -> None:
    agrees_on(seed)


def agrees_on(seed: int) -> None:
    """Of states of a random program, ``explain`` allows those that the other engine finds, and its reasons for the
    others are proofs."""
    rng = random.Random(seed)
    model = model_named(MODELS[seed % len(MODELS)])
    test = parse_one(seeded(seed, model.name).text())
    what = everything(test)
    named: tuple[Term, ...] = (*what.registers, *what.memory)
    try:
        check_compatible(test, model)
        found = ask("enumerate", test, model, observed=what)
    except PtxmmError as error:
        pytest.skip(error.message)
    if found.undefined or not found.complete or not named:
        pytest.skip("no meaning, no end, or nothing to name")
    limits = Limits(deadline=time.monotonic() + 60)
    for _ in range(6):
        terms = rng.sample(range(len(named)), min(len(named), rng.randint(1, 3)))
        values = [rng.choice(sorted({0, 1, *(state[i] for state in found.states)})) for i in terms]
        state = Conjunction(
            tuple(Comparison("==", named[i], IntegerTerm(v)) for i, v in zip(terms, values, strict=True))
        )
        expected = any(all(s[i] == v for i, v in zip(terms, values, strict=True)) for s in found.states)
        result = explain(test, model, state=state, limits=limits, misses=False)
        assert result.verdict in (("allowed",) if expected else ("forbidden", "impossible"))
        if result.verdict == "forbidden":
            for reason in reasons(Search(test, model, state, limits), limits):
                proves(reason, model)
