"""An execution as a graph: its events, and the relations between them that are shown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from ptxmm.analysis.execution import execution, location, shown_at
from ptxmm.analysis.explain.events import MOST_BYTES, Views
from ptxmm.analysis.explain.synchronization import relations
from ptxmm.analysis.explain.words import EDGES, ORDERS, Words
from ptxmm.analysis.morally_strong import conditions
from ptxmm.analysis.result import Conflict, Execution, ExecutionGraph, GraphEvent, PlacedThread, Related
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.test import Placement, Test

_OBSERVATION = Words("observation", "8.9.2")
_CAUSALITY = Words("base causality order", "8.9.5")
_MOST_CONFLICTS = 60


def drawn(test: Test, rebuilt: Rebuilt) -> Execution:
    """The execution ``rebuilt`` in plain values and as a graph."""
    return replace(execution(test, rebuilt), graph=graph(test, rebuilt))


def graph(test: Test, rebuilt: Rebuilt) -> ExecutionGraph:
    """The graph of the execution ``rebuilt``; values are shown as those of ``test``."""
    views = Views(test, rebuilt)
    events = tuple(_event(views, number) for number in range(len(rebuilt.layout.events)))
    conflicts = tuple(islice(_conflicts(test, rebuilt), _MOST_CONFLICTS))
    return ExecutionGraph(_placed(test), events, tuple(_related(rebuilt)), conflicts)


def _event(views: Views, number: int) -> GraphEvent:
    rebuilt = views.execution
    event = rebuilt.layout.events[number]
    thread = event.id.thread if number < rebuilt.layout.initial_first else None
    view = views.event(number)
    if event.cell is None or event.kind not in ("R", "W"):
        return GraphEvent(view, thread, event.kind, event.asynchronous)
    where, what = location(views.test, *event.cell), shown_at(views.test, rebuilt, number)
    return GraphEvent(
        view, thread, event.kind, event.asynchronous, where, what if event.cell[2] <= MOST_BYTES else None
    )


def _placed(test: Test) -> tuple[PlacedThread, ...]:
    places = [thread.placement for thread in test.threads]
    return tuple(PlacedThread(t.name, tuple(_path(t.name, t.placement, places))) for t in test.threads)


def _path(name: str, place: Placement, others: list[Placement]) -> Iterator[str]:
    """What a thread is in, where that tells it from ``others``; its CTA in any case."""
    if place.host:
        yield "host"
        return
    device = [other for other in others if not other.host]
    if len({other.gpu for other in device}) > 1 or len(device) < len(others):
        yield f"GPU {place.gpu}"
    if len({other.grid for other in device if other.gpu == place.gpu}) > 1:
        yield f"grid {place.grid}"
    if place.cluster is not None:
        yield f"cluster {place.cluster}"
    yield f"CTA of {name}" if place.cta is None else f"CTA {place.cta}"
    if place.warp is not None:
        yield f"warp {place.warp}"


def _related(rebuilt: Rebuilt) -> Iterator[Related]:
    """Every relation that relates anything, base causality order last."""
    algebra = rebuilt.layout.algebra
    shown = 0
    for name, words, value in _values(rebuilt):
        if value:
            shown |= value
            yield _relation(rebuilt, name, words, value)
    if shown and "bc" in rebuilt.evaluator.model.definitions:
        causality = algebra.intersection(rebuilt.evaluator.value("bc"), shown)
        yield _relation(rebuilt, "bc", _CAUSALITY, causality)

    if {"cause", "conflict"} <= rebuilt.evaluator.model.definitions.keys():
        causality = algebra.intersection(rebuilt.evaluator.value("cause"), rebuilt.evaluator.value("conflict"))
        if causality:
            yield _relation(rebuilt, "cause", ORDERS["cause"], causality)


def _conflicts(test: Test, rebuilt: Rebuilt) -> Iterator[Conflict]:
    definitions = rebuilt.evaluator.model.definitions
    if not {"conflict", "ms"} <= definitions.keys():
        return
    algebra, events = rebuilt.layout.algebra, rebuilt.layout.events
    strong = rebuilt.evaluator.value("ms")
    for a, b in algebra.pairs(rebuilt.evaluator.value("conflict")):
        if a < b and events[a].id.thread != events[b].id.thread:
            failing = () if algebra.has(strong, a, b) else conditions(test, rebuilt, a, b)
            yield Conflict(a, b, tuple(f"{item.text} ({item.section})" for item in failing))


def _values(rebuilt: Rebuilt) -> Iterator[tuple[str, Words, int]]:
    algebra, evaluator = rebuilt.layout.algebra, rebuilt.evaluator
    base = {name: rebuilt.base(name) or 0 for name in ("po", "rf", "co", "fr", "fsc", "ctrl")}

    def but(value: int, *through: int) -> int:
        """``value`` without the pairs that two steps lead to."""
        return algebra.difference(value, algebra.sequence(*through))

    neighbours = {
        "po": but(base["po"], base["po"], base["po"]),
        "rf": base["rf"],
        "co": but(base["co"], base["co"], base["co"]),
        "fr": but(base["fr"], base["fr"], base["co"]),
        "addr": rebuilt.base("addr") or 0,
        "data": rebuilt.base("data") or 0,
        "ctrl": but(base["ctrl"], base["ctrl"], base["po"]),
        "exitphase": rebuilt.base("exitphase") or 0,
        "issue-all": rebuilt.base("issue-all") or 0,
    }
    for name, value in neighbours.items():
        yield name, EDGES[name], value
    if "obs" in evaluator.model.definitions:
        yield "obs", _OBSERVATION, algebra.intersection(evaluator.value("obs"), base["rf"])
    for name, words, value in relations(rebuilt):
        yield name, words, but(value, value, value) if name == "fsc" else value


def _relation(rebuilt: Rebuilt, name: str, words: Words, value: int) -> Related:
    algebra = rebuilt.layout.algebra
    pairs = tuple((a, b) for a, row in enumerate(algebra.rows(value)) for b in algebra.members(row))
    return Related(name, words.text, words.section, pairs)
