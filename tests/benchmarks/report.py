"""What was measured, as a table and as curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from tests.benchmarks.measures import Measure, Row

COLOURS = {
    "ptxmm": "#1a6faf",
    "Dartagnan eager": "#8a6d00",
    "Dartagnan lazy": "#c8501e",
    "nvlitmus": "#7d3fa0",
    "herd7": "#3d8f4f",
}
MARKS = ("<!-- measured -->", "<!-- measured until here -->")


def page(text: str, said: str, table: Sequence[Sequence[str]]) -> str:
    """A page with what was measured between its marks."""
    head, *body = table
    rows = [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]
    before, _, rest = text.partition(MARKS[0])
    return before + "\n".join([MARKS[0], said, "", *rows, "", MARKS[1]]) + rest.partition(MARKS[1])[2]


def table(rows: Sequence[Row], found: Sequence[Measure], clock: str) -> list[list[str]]:
    """The lines of the table, its head first."""
    peers = [name for name in COLOURS if name != "ptxmm" and any(m.tool == name for m in found)]
    out = [["work", "ptxmm", *peers, *(["theirs / ours"] if peers else [])]]
    for row in rows:
        here = {m.tool: m for m in found if m.row == row.name}
        if here:
            cells = [cell(here[name], clock) if name in here else "" for name in ("ptxmm", *peers)]
            out.append([row.work, *cells, *([ratio(here, clock)] if peers else [])])
    return out


def cell(found: Measure, clock: str) -> str:
    """Time and memory, and the answers if not all are right."""
    spent = duration(getattr(found, clock))
    parts = [f"over {spent}" if found.over else spent, f"{found.mebibytes:.0f} MiB"]
    total = found.right + found.wrong + found.unknown
    parts += [f"{found.wrong} of {total} wrong"] if found.wrong else []
    parts += [f"{found.unknown} of {total} unknown"] if found.unknown and not found.over else []
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Two digits, with the unit."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.2g} ms"
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.2g} s"


def ratio(here: Mapping[str, Measure], clock: str) -> str:
    """How many times longer the fastest peer takes that knows the answers, or the one that is cut last."""
    ours = here.get("ptxmm")
    peers = [m for m in here.values() if m.tool != "ptxmm"]
    able = [getattr(m, clock) for m in peers if not (m.over or m.unknown)]
    cut = [getattr(m, clock) for m in peers if m.over]
    if ours is None or ours.over or not (able or cut):
        return ""
    mine = getattr(ours, clock)
    return f"{min(able) / mine:.2g}" if able else f"over {min(cut) / mine:.2g}"


# Curves ---------------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 240, 190
LEFT, TOP, RIGHT, BOTTOM = 46, 26, 12, 24


class Panel(NamedTuple):
    """Curves over the same axes: for each tool its points."""

    title: str
    curves: Mapping[str, Sequence[tuple[float, float]]]


def curves(rows: Sequence[Row], found: Sequence[Measure], clock: str) -> str:
    """Time above memory, a panel for each family of rows, all axes logarithmic, as SVG."""
    sizes = {row.name: row for row in rows if row.family}
    families = list(dict.fromkeys(row.family for row in sizes.values()))
    able = [m for m in found if m.row in sizes and not (m.over or m.unknown)]
    families = [family for family in families if any(sizes[m.row].family == family for m in able)]
    panels = []
    for column, unit in ((clock, "s"), ("mebibytes", "MiB")):
        for family in families:
            points: dict[str, list[tuple[float, float]]] = {}
            for m in able:
                if sizes[m.row].family == family:
                    points.setdefault(m.tool, []).append((sizes[m.row].size, getattr(m, column)))
            panels.append(Panel(f"{family}, {unit}", points))
    return svg(panels, len(families)) if panels else ""


def svg(panels: Sequence[Panel], columns: int) -> str:
    """The panels in rows, and a legend."""
    wide, high = columns * WIDTH, len(panels) // columns * HEIGHT + 28
    tools = [tool for tool in COLOURS if any(tool in panel.curves for panel in panels)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        'font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{wide}" height="{high}" fill="#fff"/>',
    ]
    for i, panel in enumerate(panels):
        place = f"{i % columns * WIDTH},{i // columns * HEIGHT}"
        parts.append(f'<g transform="translate({place})">\n{_panel(panel)}\n</g>')
    for i, tool in enumerate(tools):
        x = LEFT + 150 * i
        parts.append(f'<rect x="{x}" y="{high - 18}" width="14" height="4" fill="{COLOURS[tool]}"/>')
        parts.append(f'<text x="{x + 20}" y="{high - 12}">{escape(tool)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Panel) -> str:
    points = [point for curve in panel.curves.values() for point in curve]
    across = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT, 2.0)
    up = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP, 10.0)
    parts = [f'<text x="{LEFT}" y="14" font-weight="bold">{escape(panel.title)}</text>']
    for tick in up.ticks():
        y = up(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in across.ticks():
        x = across(tick)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    for tool, curve in panel.curves.items():
        at = [(f"{across(x):.1f}", f"{up(y):.1f}") for x, y in sorted(curve)]
        line = " ".join(",".join(point) for point in at)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[tool]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{COLOURS[tool]}"/>' for x, y in at]
    return "\n".join(parts)


class Axis:
    """A logarithmic axis over whole powers of ``base``, from ``start`` to ``end`` in the picture."""

    def __init__(self, values: Sequence[float], start: float, end: float, base: float) -> None:
        logs = [math.log(value, base) for value in values]
        self.low = math.floor(min(logs) + 1e-9)
        self.high = max(math.ceil(max(logs) - 1e-9), self.low + 1)
        self.start, self.end, self.base = start, end, base

    def __call__(self, value: float) -> float:
        part = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """The powers."""
        return [self.base**i for i in range(self.low, self.high + 1)]
