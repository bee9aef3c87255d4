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

from ptxmm.analysis.result import Failure
from ptxmm.hardware.compare import RunResult
from ptxmm.render import Entry, Page
from ptxmm.render.pictures.looks import STYLE
from ptxmm.render.pictures.subject import Picture, pictures
from ptxmm.render.pictures.svg import document
from ptxmm.render.report.answers import Answer, Report, answer, body, preformatted
from ptxmm.render.style import clean
from ptxmm.words import number_of

DRAWN = "ptx-8.5"
"""The model whose execution is drawn, if it was asked for, else the first."""


def page(entries: Iterable[Entry[Report]], page: Page) -> Iterator[str]:
    """The lines of the page."""
    tests: dict[tuple[str, str | None], list[Entry[Report]]] = {}
    for entry in entries:
        tests.setdefault((entry.report.file, entry.report.test), []).append(entry)
    style, script = _asset("page.css") + STYLE, _asset("page.js")
    found = [entry.report for several in tests.values() for entry in several]
    title = f"{number_of(len(found), 'verdict')} on {number_of(len(tests), 'test')}"
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield f"<title>ptxmm: {title}</title>"
    yield f"<style>{style}</style></head><body><main>"
    yield f"<h1>{title}</h1>"
    counts = Counter(answer(report).mark for report in found)
    yield f"<p>{', '.join(f'{count} {escape(mark)}' for mark, count in counts.items()) or 'nothing to do'}</p>"
    yield from _filters(found)
    yield from _table(tests)
    for number, several in enumerate(tests.values()):
        yield from _test(number, several, page.each)
    yield f"</main><script>{script}</script></body></html>"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _filters(found: Sequence[Report]) -> Iterator[str]:
    """Hidden until the script runs."""
    yield '<form id="filters" hidden>'
    yield '<label>Name <input name="name" type="search" autocomplete="off"></label>'
    yield from _choice("Verdict", "verdict", (answer(report).mark for report in found))
    yield from _choice("Model", "model", (report.model or "" for report in found))
    yield '<output name="count" aria-live="polite"></output></form>'


def _choice(title: str, name: str, values: Iterable[str]) -> Iterator[str]:
    options = "".join(f"<option>{escape(value)}</option>" for value in dict.fromkeys(values) if value)
    yield f'<label>{title} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _table(tests: dict[tuple[str, str | None], list[Entry[Report]]]) -> Iterator[str]:
    rows = [
        (f"t{number}", entry.report, answer(entry.report))
        for number, entries in enumerate(tests.values())
        for entry in entries
    ]
    own = list(dict.fromkeys(head for *_, told in rows for head in told.cells))
    yield '<div class="scroll" tabindex="0"><table><caption>Verdicts</caption><thead><tr>'
    yield (
        "".join(f'<th scope="col">{head}</th>' for head in ("Verdict", "Test", "Model", *own)) + "</tr></thead><tbody>"
    )
    for place, report, told in rows:
        name, model = _name(report), clean(report.model or "")
        data = {
            "test": place,
            "verdict": told.mark,
            "model": report.model or "",
            "name": f"{name} {clean(report.file)}",
        }
        attributes = " ".join(f'data-{key}="{escape(value)}"' for key, value in data.items())
        cells = [f'<a href="#{place}">{escape(name)}</a>', escape(model)]
        cells += [escape(clean(told.cells.get(head, ""))) for head in own]
        yield f'<tr {attributes}><td class="{_class(told)}">{escape(told.mark)}</td>'
        yield "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _class(told: Answer) -> str:
    return {True: "good", False: "bad", None: "unsure"}[told.good]


def _name(report: Report) -> str:
    return clean(report.test or report.file)


def _test(number: int, entries: Sequence[Entry[Report]], each: bool) -> Iterator[str]:
    first = entries[0].report
    yield f'<section class="test" id="t{number}"><h2>{escape(_name(first))}</h2><p>{escape(clean(first.file))}</p>'
    text = entries[0].text
    if text:
        yield f"<details><summary>Text</summary>{preformatted(_numbered(text))}</details>"
    drawn = next((entry.report for entry in entries if entry.report.model == DRAWN), first)
    for entry in entries:
        report = entry.report
        shown = list(pictures(report, each)) if report is drawn and not isinstance(report, Failure | RunResult) else []
        yield from _report(report, report is drawn, shown, f"t{number}-picture-")
    yield "</section>"


def _numbered(text: str) -> list[str]:
    lines = text.splitlines()
    width = len(str(len(lines)))
    return [f"{number:{width}}  {line}" for number, line in enumerate(lines, 1)]


def _report(report: Report, drawn: bool, shown: Sequence[Picture], name: str) -> Iterator[str]:
    """A verdict on a test, and what it rests on; open where it is the one whose execution is ``drawn``."""
    told = answer(report)
    if isinstance(report, Failure):
        yield f'<h3 class="{_class(told)}">{escape(told.mark)}</h3>'
        yield from body(report)
        return
    heading = clean(": ".join(filter(None, (f"under {report.model}", told.told))))
    head = f'<h3><span class="{_class(told)}">{escape(told.mark)}</span> {escape(heading)}</h3>'
    yield f"<details{' open' if drawn else ''}><summary>{head}</summary>"
    if any(picture.scene is not None for picture in shown):
        yield f'<figure class="scroll" tabindex="0">{document(list(shown), "", name)}</figure>'
    yield from body(report)
    yield "</details>"
