"""What pictures there are of a result: which executions, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from types import MappingProxyType

from msgspec import Struct

from ptxmm.analysis.explain import ExplainResult
from ptxmm.analysis.explain.expected import Expected
from ptxmm.analysis.fences import FencesResult
from ptxmm.analysis.races import RacesResult
from ptxmm.analysis.result import Execution, Expired, Note, Outcome, Result
from ptxmm.analysis.strength.changes import ChangeEntry
from ptxmm.analysis.told import Reported
from ptxmm.render.pictures.boxes import Scene
from ptxmm.render.pictures.scene import Remarks, scene
from ptxmm.render.style import clean, section

_REPAIRS = 3
"""So many repairs are shown where they go."""


class Picture(Struct, frozen=True):
    """``title``, what is said below it, and the execution, if there is one to show."""

    title: str
    lines: tuple[str, ...]
    scene: Scene | None


@singledispatch
def pictures(result: object, each: bool = False) -> Iterator[Picture]:
    """The pictures of a result, at least one: of the execution that decides, or (``each``) of every one that it has
    with a graph. Raises ``TypeError`` for what has no pictures."""
    raise TypeError(f"there are no pictures of {type(result).__name__}")


@pictures.register
def _(result: Reported, each: bool = False) -> Iterator[Picture]:
    shown = [] if result.explanation is None else list(pictures(result.explanation, each))
    yield from shown if any(picture.scene is not None for picture in shown) else _verdict(result, each)


@pictures.register
def _verdict(result: Result, each: bool = False) -> Iterator[Picture]:
    shown = [outcome for outcome in result.outcomes if outcome.execution is not None]
    if result.execution is not None and result.execution.graph is not None:
        lines = (f"{result.condition}: refuted by this execution", *_remarks(result.notes))
        yield Picture(_title(result), tuple(map(clean, lines)), _scene(result.execution))
    elif shown:
        for outcome in shown if each else [_deciding(shown)]:
            yield Picture(_title(result), (_ends(result, outcome),), _scene(outcome.execution))
    else:
        words = "its executions are not given as graphs" if result.outcomes else f"no execution ends ({result.status})"
        yield _words(result, words, result.notes)


def _deciding(outcomes: list[Outcome]) -> Outcome:
    """The first that satisfies the condition; else one in which most is handed over between threads."""
    return next((o for o in outcomes if o.satisfies), max(outcomes, key=_exchanged))


def _exchanged(outcome: Outcome) -> int:
    graph = None if outcome.execution is None else outcome.execution.graph
    if graph is None:
        return 0
    pairs = (
        pair for item in graph.relations if item.relation not in ("co", "fr", "bc", "cause") for pair in item.pairs
    )
    threads = ((graph.events[a].thread, graph.events[b].thread) for a, b in pairs)
    return sum(a is not None and a != b for a, b in threads)


def _ends(result: Result, outcome: Outcome) -> str:
    state = str(outcome)
    if result.condition is None:
        return f"ends with {state}"
    does = "satisfies" if outcome.satisfies else "does not satisfy"
    return clean(f"ends with {state}, which {does} {result.condition} ({result.observation or result.status})")


@pictures.register
def _(result: ExplainResult, each: bool = False) -> Iterator[Picture]:
    if result.execution is not None:
        word = "Allowed" if result.verdict == "allowed" else "Without meaning"
        lines = (f"{word}: {result.state}", *_gaps(result.expected))
        yield Picture(_title(result), tuple(map(clean, lines)), _scene(result.execution, expected=result.expected))
        return
    count = sum(len(group.reasons) for group in result.groups)
    number = 0
    for group in result.groups:
        for reason in group.reasons:
            number += 1
            which = f" (reason {number} of {count})" if count > 1 else ""
            lines = (f"Forbidden: {result.state}{which}", f"{reason.axiom}{section(reason.section)}: {reason.text}")
            graph = None if reason.execution is None else reason.execution.graph
            shown = None if graph is None else scene(graph, reason)
            yield Picture(_title(result), tuple(map(clean, lines)), shown)
            if not each:
                return
    if not count:
        word = "Unknown" if result.verdict == "unknown" else "Forbidden: no execution ends so, whatever the axioms say"
        yield _words(result, f"{word}: {result.state}", result.notes)


def _gaps(found: Expected | None) -> Iterator[str]:
    """Why it is not forbidden, and what is missing."""
    if found is None:
        return
    yield found.sentence
    if found.axiom is not None:
        for gap in found.gaps:
            fails = "; ".join(f"{fail.name}: {fail.text}" for fail in gap.fails)
            yield f"missing between {gap.first} and {gap.second}: {gap.text}{section(gap.section)}; {fails}"


@pictures.register
def _(result: RacesResult, each: bool = False) -> Iterator[Picture]:
    for race in result.races:
        kind = "Mixed-size data race" if race.mixed else "Data race"
        lines = [f"{kind} of {race.first.place} and {race.second.place}"]
        lines += [f"{item.name}{section(item.section)}: {item.text}" for item in race.fails]
        graph = race.execution.graph
        shown = None if graph is None else scene(graph, race=(race.first, race.second))
        yield Picture(_title(result), tuple(map(clean, lines)), shown)
        if not each:
            return
    if not result.races:
        free = {True: "race-free", None: f"unknown ({result.status})"}.get(result.race_free, "")
        yield _words(result, free, result.notes)


@pictures.register
def _(result: FencesResult, each: bool = False) -> Iterator[Picture]:
    verdict = {True: "holds", False: "fails", None: f"not decided ({result.status})"}[result.holds]
    lines = [f"Property {result.required}: {verdict}"]
    bad = result.bad
    if bad is not None:
        lines.append(f"Allowed {bad}")
    repairs = [repair for repair in result.repairs[:_REPAIRS] if repair.changes] if bad is not None else []
    remarks: dict[tuple[str, int], list[str]] = {}
    for number, repair in enumerate(repairs, 1):
        lines.append(f"Repair {number}: {'; '.join(map(_change, repair.changes))}")
        for change in repair.changes:
            where = repair.source.threads[change.number].name, change.index
            remarks.setdefault(where, []).append(f"repair {number}: {_changed(change)}")
    shown = None if bad is None else _scene(bad.execution, remarks=remarks)
    yield Picture(_title(result), tuple(map(clean, (*lines, *_remarks(result.notes)))), shown)


@pictures.register
def _(result: Expired, each: bool = False) -> Iterator[Picture]:
    yield _words(result, result.status, result.notes)


def _change(change: ChangeEntry) -> str:
    return f"{change.thread}:{change.line}: {_changed(change)}"


def _changed(change: ChangeEntry) -> str:
    """A change, as it is said at its instruction."""
    if change.old is None:
        return f"{change.new} {'after' if change.after else 'before'} it"
    return f"{change.new} in its place" if change.new is not None else "without it"


def _words(result: Result | ExplainResult | RacesResult | Expired, line: str, notes: tuple[Note, ...]) -> Picture:
    """In place of a picture where there is no execution to show."""
    return Picture(_title(result), tuple(map(clean, (line, *_remarks(notes)))), None)


def _remarks(notes: tuple[Note, ...]) -> Iterator[str]:
    return (note.text for note in notes)


def _title(result: Result | ExplainResult | RacesResult | FencesResult | Expired) -> str:
    return clean(f"{result.test} under {result.model}")


def _scene(
    execution: Execution | None, expected: Expected | None = None, remarks: Remarks = MappingProxyType({})
) -> Scene | None:
    if execution is None or execution.graph is None:
        return None
    return scene(execution.graph, expected=expected, remarks=remarks)
