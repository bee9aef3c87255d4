"""Executions as graphs: the events, and the relations between them that are shown."""

from __future__ import annotations

from msgspec import to_builtins

from ptxmm import Test, check, explain, fences, load_model, parse, races, robust
from ptxmm.analysis.result import Execution, ExecutionGraph

HANDED = """PTX handed
{ .global .u32 x = 0; .global .u32 y = 0; }
 P0 @ cluster 1, cta 0           | P1 @ cluster 1, cta 1            ;
 st.weak.u32 [x], 1              | ld.acquire.gpu.u32 r0, [y]       ;
 st.release.gpu.u32 [y], 1       | ld.weak.u32 r1, [x]              ;
exists (P1:r0 == 1 /\\ P1:r1 == 1)
"""
FORBIDDEN = HANDED.replace("r1 == 1", "r1 == 0")
RACY = HANDED.replace(".release.gpu", ".relaxed.gpu")


def _test(text: str) -> Test:
    (test,) = parse(text)
    return test


def _graph(execution: Execution | None) -> ExecutionGraph:
    assert execution is not None and execution.graph is not None
    return execution.graph


def _named(graph: ExecutionGraph) -> dict[str, set[tuple[str, str]]]:
    """The relations between instructions, by their places."""
    places = [event.view.place for event in graph.events]
    return {item.relation: {(places[a], places[b]) for a, b in item.pairs} for item in graph.relations}


def test_the_graph_of_a_state() -> None:
    result = check(_test(HANDED), load_model("ptx-8.5"), graphs=True)
    (found,) = (outcome for outcome in result.outcomes if outcome.satisfies)
    graph = _graph(found.execution)
    assert [(t.thread, t.path) for t in graph.threads] == [
        ("P0", ("cluster 1", "CTA 0")),
        ("P1", ("cluster 1", "CTA 1")),
    ]
    told = [(e.thread, e.kind, e.location, e.value) for e in graph.events]
    assert told[:4] == [(0, "W", "x", 1), (0, "W", "y", 1), (1, "R", "y", 1), (1, "R", "x", 1)]
    assert [(thread, value) for thread, _, _, value in told[4:]] == [(None, 0), (None, 0)]
    x, y = "initial value of x", "initial value of y"
    assert _named(graph) == {
        "po": {("P0:4", "P0:5"), ("P1:4", "P1:5")},
        "rf": {("P0:5", "P1:4"), ("P0:4", "P1:5")},
        "co": {(x, "P0:4"), (y, "P0:5")},
        "obs": {("P0:5", "P1:4")},
        "sync-pattern": {("P0:5", "P1:4")},
        "bc": {("P0:4", "P0:5"), ("P1:4", "P1:5"), ("P0:5", "P1:4"), ("P0:4", "P1:5")},
        "cause": {("P0:4", "P1:5"), ("P0:5", "P1:4")},
    }
    places = [event.view.place for event in graph.events]
    assert {(places[c.first], places[c.second]): c.fails for c in graph.conflicts} == {
        ("P0:4", "P1:5"): ("P0:4 and P1:5 are weak, and program order does not relate them (8.7 (1))",),
        ("P0:5", "P1:4"): (),
    }


def test_each_reason_has_the_execution_that_it_forbids() -> None:
    result = explain(_test(FORBIDDEN), load_model("ptx-8.5"), graphs=True)
    (reason,) = (reason for group in result.groups for reason in group.reasons)
    graph = _graph(reason.execution)
    views = {event.view for event in graph.events}
    assert all(edge.first in views and edge.second in views for edge in reason.edges)
    assert ("P1:5", "P0:4") in _named(graph)["fr"]


def test_allowed_states_races_and_properties_have_graphs() -> None:
    test, model = _test(RACY), load_model("ptx-8.5")
    assert _graph(explain(test, model, graphs=True).execution)
    (race,) = races(test, model, graphs=True).races
    assert _graph(race.execution)
    bad = fences(test, model, graphs=True).bad
    assert bad is not None and _graph(bad.execution)
    extra = robust(_test(RACY.replace("P1:r1 == 1", "P1:r1 == 0")), model, graphs=True).extra
    assert extra and all(_graph(item.execution) for item in extra)


def test_nothing_has_graphs_that_are_not_asked_for() -> None:
    test, model = _test(RACY), load_model("ptx-8.5")
    for result in (check(test, model), explain(test, model), races(test, model), explain(_test(FORBIDDEN), model)):
        assert "'graph'" not in repr(to_builtins(result))
    assert "'execution'" not in repr(to_builtins(check(test, model).outcomes))
