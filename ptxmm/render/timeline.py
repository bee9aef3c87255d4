"""The timeline of a launch with all its threads as a picture: warps as rows, and the phases of barriers as boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from ptxmm.analysis.result import Failure
from ptxmm.render import Entry, Page
from ptxmm.render.style import Style, clean
from ptxmm.render.whole import text
from ptxmm.whole.analysis import Drawn
from ptxmm.whole.explain.timeline import Mark, Row, Span, Timeline

_LEFT, _COLUMN, _ROW, _LANE, _HEAD = 190.0, 18.0, 26.0, 18.0, 24.0
_CHARACTER = 6.2
_MARKS: dict[Mark, tuple[str, str]] = {
    "read": ("#0f7b3f", "reads shared or tensor memory"),
    "write": ("#b35900", "writes shared or tensor memory"),
    "product": ("#8a4b08", "multiplies matrices"),
    "arrive": ("#7a3fb8", "arrives"),
    "copy": ("#1d5fc4", "issues a copy"),
    "commit": ("#1d5fc4", "commits a group"),
    "fence": ("#0b7285", "fence"),
}
_LETTERS: dict[Mark, str] = {
    "read": "R", "write": "W", "product": "M", "arrive": "A", "copy": "C", "commit": "G", "fence": "F",
}  # fmt: skip
_STYLE = (
    "text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}.title{font-weight:bold;font-size:13px}"
    ".quiet{fill:#57606a}.mark{fill:#fff;font-size:9px;text-anchor:middle}.line{stroke:#d0d7de}"
    ".run{fill:#eaeef2;stroke:#d0d7de}.wait{fill:#f5c2c7;stroke:#c1121f}.phase{fill:#d8ecf0;stroke:#0b7285}"
    ".race{stroke:#c1121f;stroke-width:2.5;fill:none}.page{fill:#fff}"
)


def drawn(entries: Iterable[Entry[Drawn]], page: Page) -> Iterator[str]:
    """One SVG document with the timelines of all launches, one below the other."""
    parts: list[str] = []
    y, width = 12.0, 480.0
    for entry in entries:
        if isinstance(entry.report, Failure):
            continue
        found, size = _picture(entry.report, y)
        parts += found
        y, width = y + size[1] + 16.0, max(width, size[0])
    about = f'width="{width:.0f}" height="{y:.0f}" viewBox="0 0 {width:.0f} {y:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {about}>'
    yield f'<style>{_STYLE}</style><rect class="page" width="100%" height="100%"/>'
    yield from parts
    yield "</svg>"


def page(entries: Iterable[Entry[Drawn]], page: Page) -> Iterator[str]:
    """One HTML page with the answers and the timelines. It loads nothing."""
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ptxmm: whole launches</title>'
    style = "body{font:14px sans-serif;margin:1.5em}pre{white-space:pre-wrap}figure{overflow:auto;margin:0}"
    yield f"<style>{style}</style></head><body>"
    for entry in entries:
        if isinstance(entry.report, Failure):
            yield f"<pre>{escape(clean(entry.report.text))}</pre>"
            continue
        yield f"<h2>{escape(clean(entry.report.result.test))}</h2>"
        yield f"<pre>{escape(chr(10).join(text(entry.report.result, Style(False))))}</pre>"
        yield f"<figure>{''.join(drawn([entry], page))}</figure>"
    yield "</body></html>"


def _picture(report: Drawn, top: float) -> tuple[list[str], tuple[float, float]]:
    """The elements of one timeline, from ``top`` on, and its width and height."""
    line, result = report.timeline, report.result
    width = _LEFT + max(line.columns, 30) * _COLUMN + 24.0
    title = f"{result.test}: {result.answer}, {result.ctas} CTAs, {result.threads} threads"
    parts = [_text(12.0, top + 14.0, title, "title")]
    y = top + 24.0
    for note in (*_races(report), *line.left_out):
        y += 15.0
        width = max(width, 24.0 + len(note) * 6.8)
        parts.append(_text(12.0, y, note, "quiet"))
    y += 10.0
    places: dict[tuple[int, int], float] = {}
    for number, group in enumerate(line.groups):
        y += _HEAD
        parts += [
            _text(12.0, y - 7.0, group.name, "title"),
            f'<path class="line" d="M12 {y - 2:.1f}H{width - 12:.1f}"/>',
        ]
        for at, row in enumerate(group.rows):
            parts += _row(row, y, line)
            places[number, at] = y
            y += _ROW
        for name, spans in group.phases:
            parts.append(_text(24.0, y + 12.5, name[-24:], "quiet", name))
            parts += [_box(span, y + 2.0, _LANE - 4.0, "phase") for span in spans]
            y += _LANE
    for one, other in line.races:
        ends = [(_x(column) + _COLUMN / 2, places[group, row] + _ROW / 2) for group, row, column in (one, other)]
        (x0, y0), (x1, y1) = ends
        parts.append(f'<path class="race" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>')
        parts += [f'<circle class="race" cx="{x:.1f}" cy="{at:.1f}" r="9"/>' for x, at in ends]
    parts.append(_legend(y + 20.0))
    return parts, (max(width, 1200.0), y + 32.0 - top)


def _races(report: Drawn) -> list[str]:
    """Each race that is marked, in a line."""
    found = report.result.races[: len(report.timeline.races)]
    lines = [f"race of {race.place}: {race.first} and {race.second}" for race in found]
    rest = len(report.result.races) - len(found)
    return lines[:4] + ([f"{rest + max(0, len(lines) - 4)} other races"] if rest or len(lines) > 4 else [])


def _row(row: Row, y: float, line: Timeline) -> Iterator[str]:
    yield _text(24.0, y + 17.0, row.name[:26], "", row.name)
    end = line.columns if row.ends is None else row.ends + 1
    width = max(end, 1) * _COLUMN
    yield f'<rect class="run" x="{_LEFT:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="{_ROW - 10:.1f}"/>'
    yield from (_box(span, y + 3.0, _ROW - 6.0, "wait") for span in row.waits)
    for tick in row.ticks:
        colour, said = _MARKS[tick.mark]
        about = escape(clean(f"line {tick.line}: {tick.text} ({said})"))
        x = _x(tick.column)
        yield (
            f'<g><title>{about}</title><rect x="{x + 1:.1f}" y="{y + 6:.1f}" width="{_COLUMN - 2:.1f}" '
            f'height="{_ROW - 12:.1f}" rx="2" fill="{colour}"/><text class="mark" x="{x + _COLUMN / 2:.1f}" '
            f'y="{y + 16.5:.1f}">{_LETTERS[tick.mark]}</text></g>'
        )


def _box(span: Span, y: float, height: float, style: str) -> str:
    """A span with its text where that has room."""
    x, width = _x(span.first), (span.last - span.first + 1) * _COLUMN
    where = f"line {span.line}: " if span.line else ""
    about = f"<title>{escape(clean(where + span.text))}</title>"
    short = span.text if len(span.text) * _CHARACTER < width - 4 else span.text.rpartition(" ")[2]
    label = _text(x + 3.0, y + height / 2 + 4.0, short, "") if len(short) * _CHARACTER < width else ""
    rect = f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'
    return f"<g>{about}{rect}{label}</g>"


def _legend(y: float) -> str:
    x, parts = 12.0, []
    for mark, (colour, said) in _MARKS.items():
        parts.append(f'<rect x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12" rx="2" fill="{colour}"/>')
        parts.append(f'<text class="mark" x="{x + 6:.1f}" y="{y:.1f}">{_LETTERS[mark]}</text>')
        parts.append(_text(x + 16.0, y, said, "quiet"))
        x += 26.0 + len(said) * 6.8
    for style, said in (("wait", "waits"), ("phase", "phase")):
        parts.append(f'<rect class="{style}" x="{x:.1f}" y="{y - 10:.1f}" width="12" height="12"/>')
        parts.append(_text(x + 16.0, y, said, "quiet"))
        x += 26.0 + len(said) * 6.8
    return "".join(parts)


def _x(column: int) -> float:
    return _LEFT + column * _COLUMN


def _text(x: float, y: float, said: str, style: str, about: str = "") -> str:
    title = f"<title>{escape(clean(about))}</title>" if about else ""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{title}{escape(clean(said))}</text>'
