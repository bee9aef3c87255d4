"""What a page says of each kind of result: a row of its table, and what stands below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import singledispatch
from html import escape
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.explain import ExplainResult
from ptxmm.analysis.fences import FencesResult
from ptxmm.analysis.races import RacesResult
from ptxmm.analysis.result import Expired, Failure, Outcome, Result
from ptxmm.analysis.told import Reported
from ptxmm.hardware.compare import RunResult
from ptxmm.render import explain, fences, races, run
from ptxmm.render.report.bars import bars
from ptxmm.render.report.steps import trees
from ptxmm.render.style import Style, clean
from ptxmm.render.text import answer as in_a_word
from ptxmm.render.text import note_lines, observed

_WIDTH = 110
"""Of what is told in sentences."""

Report = Result | ExplainResult | RacesResult | FencesResult | RunResult | Failure | Expired


class Answer(Struct, frozen=True):
    """The ``mark`` is the verdict in a word, ``good`` or not (None: neither); ``told``: what the heading adds to the
    model; ``cells``: what else is in the row, by the heads of their columns."""

    mark: str
    good: bool | None = None
    told: str = ""
    cells: Mapping[str, str] = MappingProxyType({})


@singledispatch
def answer(report: Report) -> Answer:
    """What is said of a report in a row. Raises ``TypeError`` for what has no page."""
    raise TypeError(f"there is no page of {type(report).__name__}")


@answer.register
def _(report: Failure) -> Answer:
    return Answer("error", good=False)


@answer.register
def _(report: Expired) -> Answer:
    return Answer(report.status)


@answer.register
def _(report: Result) -> Answer:
    mark = report.conclusion.mark
    cells = {
        "Observation": observed(report),
        "Condition": " ".join(filter(None, (report.quantifier, report.condition))),
        "Holds": in_a_word(report.holds),
        "Expected": report.expected or "",
        "Status": report.status,
    }
    return Answer(mark, {"ok": True, "FAIL": False}.get(mark), observed(report), cells)


@answer.register
def _(report: ExplainResult) -> Answer:
    return Answer(report.verdict, None, report.state, {"State": report.state, "Status": report.status})


@answer.register
def _(report: RacesResult) -> Answer:
    count = f"{len(report.races)}{'' if report.listed else ' or more'}"
    mark = {True: "race-free", False: "race", None: "unknown"}[report.race_free]
    return Answer(mark, report.race_free, "", {"Races": count, "Status": report.status})


@answer.register
def _(report: FencesResult) -> Answer:
    cells = {
        "Property": report.required,
        "Removable or weaker": str(sum(item.verdict in ("removable", "weaker") for item in report.items)),
        "Repairs": "" if report.holds else f"{len(report.repairs)}{' or more' if report.more else ''}",
        "Status": report.status,
    }
    mark = {True: "holds", False: "fails", None: "unknown"}[report.holds]
    return Answer(mark, report.holds, report.required, cells)


@answer.register
def _(report: RunResult) -> Answer:
    cells = {
        "Condition": " ".join(filter(None, (report.quantifier, report.condition))),
        "Met": run.met(report),
        "Instances": f"{report.instances:,}",
        "Placement": report.placement,
        "Status": report.status,
    }
    good = None if report.finding is None or report.verdict == "unseen" else not report.finding
    return Answer(run.in_short(report), good, report.gpu, cells)


@singledispatch
def body(report: Report) -> Iterator[str]:
    """What stands below the picture of a report. Raises ``TypeError`` for what has no page."""
    raise TypeError(f"there is no page of {type(report).__name__}")


@body.register
def _(report: Failure) -> Iterator[str]:
    yield preformatted(report.text.splitlines())


@body.register
def _(report: Expired) -> Iterator[str]:
    yield preformatted(note.text for note in report.notes)


@body.register
def _(report: Result) -> Iterator[str]:
    yield from _states(report.outcomes, report.listed)
    explanation = report.explanation if isinstance(report, Reported) else None
    if explanation is not None and explanation.execution is not None:  # which tells these
        report = replace(report, execution=None, notes=tuple(note for note in report.notes if note.kind != "missing"))
    lines = note_lines(report)
    if explanation is not None:
        lines += explain.text(explanation, Style(False))[2:-2]
    if lines:
        yield preformatted(lines, _WIDTH)
    if explanation is not None:
        yield from trees(explanation)


@body.register
def _(report: ExplainResult) -> Iterator[str]:
    yield preformatted(explain.text(report, Style(False))[2:], _WIDTH)
    yield from trees(report)


@body.register
def _(report: RacesResult) -> Iterator[str]:
    yield preformatted(races.text(report, Style(False))[2:])


@body.register
def _(report: FencesResult) -> Iterator[str]:
    yield preformatted(fences.text(report, Style(False))[2:])


@body.register
def _(report: RunResult) -> Iterator[str]:
    yield from bars(report)
    yield preformatted(run.conclusions(report, Style(False)), _WIDTH)


def preformatted(lines: Iterable[str], width: int = 0) -> str:
    """Lines as they are, but for control characters, or wrapped to a ``width``."""
    style = Style(False, width)
    text = "\n".join(part.rstrip() for line in lines for part in style.fit(clean(line)))
    return f'<div class="scroll" tabindex="0"><pre>{escape(text)}</pre></div>'


def _states(outcomes: Sequence[Outcome], listed: bool) -> Iterator[str]:
    if not outcomes:
        return
    rows = [{**outcome.registers, **outcome.memory} for outcome in outcomes]
    several = f"{len(rows)}{'' if listed else ' or more'} final state{'s' if len(rows) != 1 else ''}"
    heads = "".join(f'<th scope="col">{escape(clean(name))}</th>' for name in ("*", *rows[0]))
    yield f'<div class="scroll" tabindex="0"><table><caption>{several}; * satisfies the condition</caption>'
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for outcome, row in zip(outcomes, rows, strict=True):
        cells = "".join(f"<td>{escape(clean(str(value)))}</td>" for value in row.values())
        marked = ' class="satisfies"' if outcome.satisfies else ""
        yield f"<tr{marked}><td>{'*' if outcome.satisfies else ''}</td>{cells}</tr>"
    yield "</tbody></table></div>"
