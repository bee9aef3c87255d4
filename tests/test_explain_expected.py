"""Why an allowed state is not forbidden: the circle is one, its gaps are no orders, and a repair closes them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ptxmm.analysis.examples import examples
from ptxmm.analysis.explain import ExplainResult, explain
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.expected import Expected, Link, expected
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import EventView
from ptxmm.cat import Model, left_out_of, load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import questions, read
from ptxmm.program.condition import Proposition
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.render.execution import chained
from ptxmm.render.explain import text
from ptxmm.render.style import Style
from tests.support import ROOT, model_named
from tests.test_explain import litmus_test

FILES = sorted((ROOT / "litmus").rglob("*.litmus"))
NAMES = [path.stem for path in FILES]


def explained(name: str, repaired: bool = False) -> ExplainResult:
    limits = Limits(deadline=time.monotonic() + 30)
    return explain(litmus_test(name), model_named("ptx-8.5"), limits=limits, misses=repaired)


def why(name: str) -> Expected:
    found = explained(name).expected
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "axiom", "missing"),
    [
        ("mp/MP+rel+relaxed", "Causality", {"acquire pattern"}),
        ("mp/MP", "Causality", {"order", "release pattern", "acquire pattern"}),
        ("sb/SB", "Causality", {"fence.sc"}),
        ("scopes/MP+rel.cta+acq.cta-across", "Causality", {"scope"}),
        ("scopes/SB+fence.sc.cta-across", "Causality", {"scope"}),
        ("async/TMA-load-from-fresh-data-no-fence", "Causality", {"proxy fence"}),
        ("aliases/CoWR-alias-no-fence", "Causality", {"proxy fence"}),
        ("bugs/deepep-tma-copy-wait-count-buggy", "Causality", {"wait"}),
        ("bugs/cutlass-gpu-scope-flag-across-gpus-buggy", "Atomicity-RMW", {"scope"}),
        ("bugs/threadfence-block-is-not-a-barrier-buggy", None, {"order"}),
        ("coherence/CoRR-weak", "SC-per-Location", {"order"}),
    ],
)
def test_what_is_missing(name: str, axiom: str | None, missing: set[str]) -> None:
    found = why(name)
    assert found.axiom == axiom
    assert {fail.name for gap in found.gaps for fail in gap.fails} == missing


def test_the_text_shows_the_gap() -> None:
    lines = "\n".join(text(explained("mp/MP+rel+relaxed", True), Style(False)))
    assert "-? reads-from" in lines and "missing between P0:11 and P1:10: synchronization (8.9.4 (4))" in lines
    assert "Forbidden with any of these changes" in lines and "-> ld.acquire.gpu.global.u32 r0, [flag]" in lines


def test_a_witness_begins_with_the_missing_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a kernel too; the execution comes last, named as in the edge, and only what orders threads is told of it."""
    monkeypatch.setenv("PATH", "")  # the PTX beside it is taken, whichever nvcc there is
    (test,) = read(ROOT / "tests" / "cuda" / "spsc_ring_fence.wrong_block_fence.cu")
    lines = text(explain(test, model_named("ptx-8.5"), repaired=False), Style(False))
    (missing,) = (number for number, line in enumerate(lines) if " missing between P0:32:" in line)
    execution = lines.index("The execution")
    assert lines[3] == "Allowed: an execution ends so" and lines[4].startswith("Why not forbidden: ")
    assert missing < execution
    listed = lines[execution:]
    assert any(line.startswith("  P0:32:13: st.volatile.global.u32 [%rd3], %r12  ") for line in listed)
    assert any(line.startswith("  P1:36:13 (round 2): ld.volatile") for line in listed)
    synchronizes = [line for line in listed if line.startswith("    ")]
    assert len(synchronizes) == 2 and not any("Fence-SC" in line for line in synchronizes)


def test_what_a_model_does_not_count_does_not_synchronize() -> None:
    test = litmus_test("mp/MP+rel+acq")
    whole = explain(test, model_named("ptx-8.5"), state=both_read(test), misses=False)
    assert [(item.relation, item.first.label, item.second.label) for item in whole.synchronization] == [
        ("sync-pattern", "P0:11", "P1:10")
    ]
    less = load(left_out_of("ptx-8.5", ("sync-all:1",)))
    assert explain(test, less, state=both_read(test), misses=False).synchronization == ()
    found = explain(test, less, misses=False).expected
    assert found is not None
    assert [(fail.name, fail.text) for gap in found.gaps for fail in gap.fails] == [
        (
            "model",
            "P0:11 is a release pattern, and P1:10 an acquire pattern, but this model does not let them synchronize",
        )
    ]


def both_read(test: Test) -> Proposition:
    return questions.states(test, "P1:r0=1 P1:r1=1", "the state")


@pytest.mark.parametrize("name", ["mp/MP+rel+relaxed", "sb/SB", "bugs/deepep-tma-copy-wait-count-buggy"])
def test_repairs_forbid_the_state(name: str) -> None:
    test, result = litmus_test(name), explained(name, True)
    assert result.searched and 0 < len(result.repairs) <= 3
    for repair in result.repairs:
        edits: dict[Site, tuple[ops.Op, ...]] = {}
        for change in repair.changes:
            assert change.op is not None
            site = Site(change.number, change.index)
            kept = (test.at(site),) if change.kind == "insert" else ()
            edits[site] = (change.op, *kept)
        assert check(edited(test, edits), model_named("ptx-8.5"), engine="enumerate").observation == "never"


def _numbers(views: Views, event: EventView) -> list[int]:
    return [n for n in range(len(views.execution.layout.events)) if views.event(n) == event]


def check_links(views: Views, found: Expected) -> None:
    """The steps lead round in a circle and hold; those with a gap are not in base causality order, but for proxies."""
    links = found.links
    for one, other in zip(links, (*links[1:], links[0]), strict=True):
        assert one.edge.second.same == other.edge.first.same
    algebra, bc = views.execution.layout.algebra, views.execution.evaluator.value("bc")
    for link in links:
        pairs = [(a, b) for a in _numbers(views, link.edge.first) for b in _numbers(views, link.edge.second)]
        if link.edge.relation in ("rf", "co", "fr", "po"):
            value = views.execution.base(link.edge.relation) or 0
            assert any(algebra.has(value, a, b) for a, b in pairs), link
        if link.gap is not None:
            assert link.gap.fails, link
            names = {fail.name for fail in link.gap.fails}
            assert names == {"proxy fence"} or not any(algebra.has(bc, a, b) for a, b in pairs), link
            check_fails(views, link, pairs)


def check_fails(views: Views, link: Link, pairs: list[tuple[int, int]]) -> None:
    """The conditions that are said to fail do."""
    assert link.gap is not None
    execution = views.execution
    for fail in link.gap.fails:
        if fail.name in ("release pattern", "acquire pattern") and link.edge.relation == "rf":
            kind = "REL" if fail.name == "release pattern" else "ACQ"
            ends = {pair[0 if kind == "REL" else 1] for pair in pairs}
            assert not any((execution.base(kind) or 0) >> end & 1 for end in ends), fail


def allowed_executions(test: Test, model: Model) -> Iterator[Views]:
    try:
        found = examples(test, model, limits=Limits(deadline=time.monotonic() + 10))
    except PtxmmError:
        return
    yield from (example.views for example in found.found[:12])


def check_file(path: Path) -> None:
    for test in read(path):
        model = model_named("ptx-8.5")
        test = replace(test, filter=None)
        for views in allowed_executions(test, model):
            found = expected(views)
            assert found is not None and (found.axiom is None or found.links)
            assert all(link.gap is not None and link.gap.fails for link in found.links if found.axiom is None)
            if found.axiom is not None:
                assert found.gaps
                check_links(views, found)
            algebra = views.execution.layout.algebra
            order = views.execution.base("po") or 0
            for name in ("rf", "co", "fr", "rmw"):
                order = algebra.union(order, views.execution.base(name) or 0)
            inside = [n for n, e in enumerate(views.execution.layout.events) if e.asynchronous]
            cyclic = algebra.plus(order) & algebra.identity(algebra.universe())
            if cyclic and not inside:
                assert found.axiom is not None


@pytest.mark.parametrize("path", FILES[2::12], ids=NAMES[2::12])
def test_circles_and_gaps(path: Path) -> None:
    check_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_circles_and_gaps(path: Path) -> None:
    check_file(path)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a", "b")], "a before b"),
        ([("b", "c"), ("a", "b"), ("c", "d")], "a before b before c before d"),
        ([("a", "c"), ("b", "c"), ("c", "d")], "a before c before d, b before c"),
        ([("a", "b"), ("c", "d")], "a before b, c before d"),
    ],
)
def test_orders_as_chains(pairs: list[tuple[str, str]], expected: str) -> None:
    assert chained(pairs) == expected


@pytest.mark.parametrize("width", [20, 40, 79, 80])
def test_text_fits_the_terminal_and_breaks_no_word(width: int) -> None:
    whole = text(explained("mp/MP+rel+relaxed"), Style(True))
    for line in whole:
        fitted = Style(True, width).fit(line)
        assert " ".join(" ".join(fitted).split()) == " ".join(line.split())
        assert all(len(part.split()) == 1 or len(part) <= width + 9 for part in fitted)
    assert Style(False).fit("x" * 500) == ["x" * 500]
    assert Style(False, 10).fit("  ab cdefghijklmnop") == ["  ab", "     cdefghijklmnop"]
