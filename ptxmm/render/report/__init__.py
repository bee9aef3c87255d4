"""Verdicts as one HTML page: a table with filters, and each test with its text, states, reason and picture.

The page loads nothing. Its style and its script are named by their digests in its Content-Security-Policy, so that
nothing else in it could be run, and all text of tests is escaped. It can be read without the script.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from ptxmm.analysis.result import Expired, Failure, Outcome, Result
from ptxmm.analysis.told import Reported
from ptxmm.render import Entry, Page
from ptxmm.render.explain import text as explanation
from ptxmm.render.pictures.looks import STYLE
from ptxmm.render.pictures.subject import Picture, pictures
from ptxmm.render.pictures.svg import document
from ptxmm.render.style import Style, clean
from ptxmm.render.text import answer, note_lines, observed

Report = Result | Failure | Expired

DRAWN = "ptx-8.5"
"""The model whose execution is drawn, if it was asked for, else the first."""


def page(entries: Iterable[Entry[Report]], page: Page) -> Iterator[str]:
    """The lines of the page."""
    tests: dict[tuple[str, str | None], list[Report]] = {}
    for entry in entries:
        tests.setdefault((entry.report.file, entry.report.test), []).append(entry.report)
    style, script = _asset("page.css") + STYLE, _asset("page.js")
    found = [report for reports in tests.values() for report in reports]
    title = f"{len(found)} verdict{'s' if len(found) != 1 else ''} on {len(tests)} test{'s' if len(tests) != 1 else ''}"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>ptxmm: {title}</title>"
    yield f"<style>{style}</style></head><body><main>"
    yield f"<h1>{title}</h1>"
    counts = Counter(_mark(report) for report in found)
    yield f"<p>{', '.join(f'{count} {escape(mark)}' for mark, count in counts.items()) or 'nothing to do'}</p>"
    yield from _filters(found)
    yield from _table(tests)
    for number, reports in enumerate(tests.values()):
        yield from _test(number, reports)
    yield f"</main><script>{script}</script></body></html>"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _filters(found: Sequence[Report]) -> Iterator[str]:
    """Hidden until the script runs."""
    yield '<form id="filters" hidden>'
    yield '<label>Name <input name="name" type="search" autocomplete="off"></label>'
    yield from _choice("Verdict", "verdict", (_mark(report) for report in found))
    yield from _choice("Model", "model", (report.model or "" for report in found))
    yield '<output name="count" aria-live="polite"></output></form>'


def _choice(title: str, name: str, values: Iterable[str]) -> Iterator[str]:
    options = "".join(f"<option>{escape(value)}</option>" for value in dict.fromkeys(values) if value)
    yield f'<label>{title} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _table(tests: dict[tuple[str, str | None], list[Report]]) -> Iterator[str]:
    yield '<div class="scroll" tabindex="0"><table><caption>Verdicts</caption><thead><tr>'
    heads = ("Verdict", "Test", "Model", "Observation", "Condition", "Holds", "Expected", "Status")
    yield "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead><tbody>"
    for number, ((file, _), reports) in enumerate(tests.items()):
        for report in reports:
            mark, name = _mark(report), _name(report)
            data = {"test": f"t{number}", "verdict": mark, "model": report.model or "", "name": f"{name} {clean(file)}"}
            told = " ".join(f'data-{key}="{escape(value)}"' for key, value in data.items())
            yield f'<tr {told}><td class="{_class(mark)}">{escape(mark)}</td>'
            cells = [f'<a href="#t{number}">{escape(name)}</a>', escape(clean(report.model or ""))]
            if isinstance(report, Result):
                condition = clean(" ".join(filter(None, (report.quantifier, report.condition))))
                cells += map(escape, (observed(report), condition, answer(report.holds)))
                cells += map(escape, (clean(report.expected or ""), report.status))
            yield "".join(f"<td>{cell}</td>" for cell in cells) + "<td></td>" * (len(heads) - 1 - len(cells)) + "</tr>"
    yield "</tbody></table></div>"


def _mark(report: Report) -> str:
    """The verdict in a word, as in text."""
    if isinstance(report, Failure):
        return "error"
    return report.conclusion.mark if isinstance(report, Result) else report.status


def _class(mark: str) -> str:
    return mark if mark in ("ok", "FAIL", "error") else "unsure"


def _name(report: Report) -> str:
    return clean(report.test or report.file)


def _test(number: int, reports: Sequence[Report]) -> Iterator[str]:
    first = reports[0]
    yield f'<section class="test" id="t{number}"><h2>{escape(_name(first))}</h2><p>{escape(clean(first.file))}</p>'
    text = next((report.text for report in reports if isinstance(report, Reported)), "")
    if text:
        yield f"<details><summary>Text</summary>{_lines(_numbered(text))}</details>"
    drawn = next((r for r in reports if r.model == DRAWN and isinstance(r, Result)), first)
    for report in reports:
        yield from _report(report, report is drawn, f"t{number}-picture-")
    yield "</section>"


def _numbered(text: str) -> list[str]:
    lines = text.splitlines()
    width = len(str(len(lines)))
    return [f"{number:{width}}  {line}" for number, line in enumerate(lines, 1)]


def _lines(lines: Iterable[str]) -> str:
    """Lines as they are, but for control characters."""
    text = "\n".join(clean(line).rstrip() for line in lines)
    return f'<div class="scroll" tabindex="0"><pre>{escape(text)}</pre></div>'


def _report(report: Report, drawn: bool, name: str) -> Iterator[str]:
    """A verdict on a test, and what it rests on; open where it is the one whose execution is ``drawn``."""
    if isinstance(report, Failure):
        yield f'<h3 class="error">error</h3>{_lines(report.text.splitlines())}'
        return
    mark = _mark(report)
    under = f"under {clean(report.model)}"
    told = f"{under}: {observed(report)}" if isinstance(report, Result) else under
    head = f'<h3><span class="{_class(mark)}">{escape(mark)}</span> {escape(told)}</h3>'
    yield f"<details{' open' if drawn else ''}><summary>{head}</summary>"
    if isinstance(report, Result):
        shown: list[Picture] = list(pictures(report)) if drawn else []
        if any(picture.scene is not None for picture in shown):
            yield f'<figure class="scroll" tabindex="0">{document(shown, "", name)}</figure>'
        yield from _states(report.outcomes, report.listed)
        lines = note_lines(report)
        if isinstance(report, Reported) and report.explanation is not None:
            lines += explanation(report.explanation, Style(False))[2:-2]
        if lines:
            yield _lines(lines)
    yield "</details>"


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
