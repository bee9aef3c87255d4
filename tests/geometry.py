"""What is wrong in a picture, read from its SVG: text that overlaps, lines through text, lines that end nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from xml.etree import ElementTree

from msgspec import Struct

SIZES = {"title": 14.0, "code": 12.0, "label": 11.0}
SLACK = 0.3
"""Pixels that do not matter."""
_SVG = "{http://www.w3.org/2000/svg}"
_PART = re.compile(r"([MHVLCQZ])([^MHVLCQZ]*)")

Point = tuple[float, float]


class Area(Struct, frozen=True):
    """A rectangle, and what is in it."""

    left: float
    top: float
    right: float
    bottom: float
    what: str

    def meets(self, other: Area) -> bool:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide > SLACK and high > SLACK

    def near(self, other: Area) -> bool:
        return not (
            self.right < other.left or other.right < self.left or self.bottom < other.top or other.bottom < self.top
        )

    def holds(self, x: float, y: float) -> bool:
        return self.left - SLACK <= x <= self.right + SLACK and self.top - SLACK <= y <= self.bottom + SLACK

    def crossed(self, a: Point, b: Point) -> bool:
        """Whether the line from ``a`` to ``b`` goes through the inside (Liang and Barsky's clipping)."""
        low, high = 0.0, 1.0
        for delta, near, far in (
            (b[0] - a[0], self.left + SLACK - a[0], self.right - SLACK - a[0]),
            (b[1] - a[1], self.top + SLACK - a[1], self.bottom - SLACK - a[1]),
        ):
            if near > far:
                return False
            if delta == 0.0:
                if near > 0.0 or far < 0.0:
                    return False
                continue
            one, two = sorted((near / delta, far / delta))
            low, high = max(low, one), min(high, two)
        return low < high


class Drawing(Struct):
    """The parts of a picture: ``boxes`` have instructions, ``lines`` are links as many short pieces."""

    size: Area
    texts: list[Area]
    boxes: list[Area]
    lines: list[list[Point]]
    heads: list[list[Point]]
    ends: list[Point]


def drawing(svg: str) -> Drawing:
    """The parts of an SVG document. Raises ``ParseError`` where it is no XML."""
    root = ElementTree.fromstring(svg)
    assert root.tag == _SVG + "svg" and root.get("role") == "img"
    names = {child.get("id"): child for child in root if child.get("id")}
    assert [names[name].tag for name in root.get("aria-labelledby", "").split()] == [_SVG + "title", _SVG + "desc"]
    _, _, width, height = map(float, root.get("viewBox", "").split())
    found = Drawing(Area(0, 0, width, height, "picture"), [], [], [], [], [])
    _walk(root, 0.0, 0.0, False, found)
    return found


def _walk(element: ElementTree.Element, x: float, y: float, link: bool, found: Drawing) -> None:
    classes = element.get("class", "").split()
    if (moved := re.match(r"translate\((\S+) (\S+)\)", element.get("transform", ""))) is not None:
        x, y = x + float(moved[1]), y + float(moved[2])
    if element.tag == _SVG + "text":
        left, line, width = (float(element.get(name, "")) for name in ("x", "y", "textLength"))
        size = SIZES[classes[0]]
        assert element.text and "  " not in element.text  # blanks are drawn as one
        found.texts.append(
            Area(x + left, y + line - 0.78 * size, x + left + width, y + line + 0.22 * size, element.text or "")
        )
    if element.tag == _SVG + "rect" and not {"page", "level"} & set(classes):
        left, top, width, height = (float(element.get(name, "")) for name in ("x", "y", "width", "height"))
        found.boxes.append(Area(x + left, y + top, x + left + width, y + top + height, "box"))
    if element.tag == _SVG + "path":
        points = [(x + a, y + b) for a, b in _points(element.get("d", ""))]
        (found.heads if "head" in classes else found.lines).append(points)
        if link and "line" in classes:
            found.ends += (points[0], points[-1])
    for child in element:
        _walk(child, x, y, "link" in classes and element.find(_SVG + "title") is not None, found)


def _points(path: str) -> Iterator[Point]:
    """Points on a path, near enough to each other for straight lines between them."""
    start = at = (0.0, 0.0)
    for command, text in _PART.findall(path):
        n = [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text)]
        match command:
            case "M":
                start = at = (n[0], n[1])
            case "H":
                at = (n[0], at[1])
            case "L":
                at = (n[0], n[1])
            case "Z":
                at = start
            case "C" | "Q":
                controls = [at, *zip(n[::2], n[1::2], strict=True)]
                yield from (_bezier(controls, step / 24) for step in range(1, 24))
                at = controls[-1]
            case _:
                raise AssertionError(command)
        yield at


def _bezier(points: Sequence[Point], t: float) -> Point:
    while len(points) > 1:
        points = [(a + t * (c - a), b + t * (d - b)) for (a, b), (c, d) in pairwise(points)]
    return points[0]


def _around(points: Sequence[Point]) -> Area:
    xs, ys = zip(*points, strict=True)
    return Area(min(xs), min(ys), max(xs), max(ys), "line")


def faults(svg: str) -> Iterator[str]:
    """What is wrong in a picture, in words."""
    found = drawing(svg)
    for one, other in combinations(found.texts, 2):
        if one.meets(other):
            yield f"the texts `{one.what}` and `{other.what}` overlap"
    for one, other in combinations(found.boxes, 2):
        if one.meets(other):
            yield "two boxes overlap"
    for points in (*found.lines, *found.heads):
        around = _around(points)
        for area in (*found.texts, *found.boxes):
            if around.near(area) and any(area.crossed(a, b) for a, b in pairwise(points)):
                yield f"a line runs through `{area.what}`"
        if not (found.size.holds(around.left, around.top) and found.size.holds(around.right, around.bottom)):
            yield "a line leaves the picture"
    for point in found.ends:
        if not any(box.holds(*point) for box in found.boxes):
            yield "a line ends at no box"
    for area in (*found.texts, *found.boxes):
        if not (found.size.holds(area.left, area.top) and found.size.holds(area.right, area.bottom)):
            yield f"`{area.what}` leaves the picture"
