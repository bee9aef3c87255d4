"""The looks of pictures: every kind of link has a colour and a pattern of its own, in light and in dark."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CHARACTER = {"title": 8.4, "code": 7.2, "label": 6.6}
"""The width of a character of each size of text, in pixels; the fonts are 14, 12 and 11 pixels high."""

LINE, PORT, LANE = 16.0, 18.0, 9.0
PAD, MARGIN = 8.0, 16.0
LEVEL = 20.0
STEP = 20.0
"""The heights of a line of text, of a port and of the name of a level; the distances of lanes, and of boxes."""

CAUSAL = "base causality order (8.9.5)"

DASHES: Mapping[str, str] = MappingProxyType(
    {
        "po": "",
        "rf": "",
        "co": "9 3",
        "fr": "4 3",
        "sync": "12 3 2 3",
        "fsc": "2 3",
        "phase": "14 4",
        "asynchronous": "7 2 2 2 2 2",
        "dependency": "1.5 3.5",
        "absent": "3 5",
        "race": "3 5",
        "other": "6 6",
    }
)
"""The pattern of each kind of link: lengths of strokes and of gaps, in pixels; none: an unbroken line."""

COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "po": "#57606a",
        "rf": "#0f7b3f",
        "co": "#1d5fc4",
        "fr": "#b35900",
        "sync": "#7a3fb8",
        "fsc": "#0b7285",
        "phase": "#0b7285",
        "asynchronous": "#8a6d00",
        "dependency": "#6e5494",
        "absent": "#c1121f",
        "race": "#c1121f",
        "other": "#444c56",
    }
)
"""The colour of each kind of link, on a light page."""

_DARK = {
    "po": "#9aa4ae",
    "rf": "#56d38a",
    "co": "#79b0ff",
    "fr": "#f5a65b",
    "sync": "#c9a1ff",
    "fsc": "#66d3e3",
    "phase": "#66d3e3",
    "asynchronous": "#e3c65b",
    "dependency": "#c3b1e1",
    "absent": "#ff7b81",
    "race": "#ff7b81",
    "other": "#b8c0c8",
}


def _colours(
    colours: Mapping[str, str], page: str, ink: str, quiet: str, told: str, box: str, band: str, levels: str
) -> str:
    rules = [
        f".ptxmm .page{{fill:{page}}}",
        f".ptxmm text{{fill:{ink}}}",
        f".ptxmm text.level,.ptxmm text.number{{fill:{quiet}}}",
        f".ptxmm text.told{{fill:{told}}}",
        f".ptxmm rect.box,.ptxmm rect.late,.ptxmm rect.initial,.ptxmm rect.left-out{{fill:{box};stroke:{quiet}}}",
        f".ptxmm rect.marked{{stroke:{ink}}}",
        f".ptxmm rect.level{{fill:{levels};stroke:{quiet}}}",
        f".ptxmm .band{{stroke:{band}}}",
    ]
    for kind, colour in colours.items():
        rules.append(f".ptxmm .{kind} .line{{stroke:{colour}}}")
        rules.append(f".ptxmm .{kind} .head,.ptxmm text.{kind}{{fill:{colour}}}")
    return "".join(rules)


STYLE = (
    '.ptxmm text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px}'
    ".ptxmm text.title{font-size:14px;font-weight:bold}.ptxmm text.label{font-size:11px}"
    ".ptxmm text.name,.ptxmm text.weight2{font-weight:bold}"
    ".ptxmm rect{stroke-width:1}.ptxmm rect.page{stroke:none}.ptxmm rect.marked{stroke-width:2.2}"
    ".ptxmm rect.late{stroke-dasharray:5 3}.ptxmm rect.initial{stroke-dasharray:2 2}"
    ".ptxmm rect.level{fill-opacity:0.5}.ptxmm rect.level1{stroke-dasharray:8 3}"
    ".ptxmm rect.level2{stroke-dasharray:3 3}"
    ".ptxmm path{fill:none;stroke-linejoin:round}.ptxmm .line{stroke-width:1.5}"
    ".ptxmm .weight2 .line{stroke-width:2.8}.ptxmm .weight0,.ptxmm text.weight0{opacity:0.5}"
    ".ptxmm .band{stroke-width:9;stroke-linecap:round}"
    + "".join(f".ptxmm .{kind} .line{{stroke-dasharray:{dash}}}" for kind, dash in DASHES.items() if dash)
    + _colours(COLOURS, "#ffffff", "#1f2328", "#6b7480", "#0a4a75", "#ffffff", "#ffe9a8", "#eef2f6")
    + "@media (prefers-color-scheme:dark){"
    + _colours(_DARK, "#0d1117", "#e6edf3", "#8b949e", "#9ecbff", "#161b22", "#4a3f12", "#1b222b")
    + "}"
)
"""The style sheet of a picture, which touches nothing else in a page."""
