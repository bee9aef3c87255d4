"""Where everything in a picture is: columns of boxes, and lines that run between them, never through text.

Boxes of one row lie side by side. Beside a box is room for the labels of the lines that begin there; between that of
two columns is a gap that has no text, in which lines go up and down; above each row is an aisle that has none, in which
they go from gap to gap. A line begins and ends at a height of its own, so that it meets no label but passes under its
own one.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.render.pictures.boxes import Box, Link, Scene
from ptxmm.render.pictures.looks import CHARACTER, LANE, LEVEL, LINE, PAD, PORT, STEP
from ptxmm.render.pictures.routes import Routes, common, inset
from ptxmm.render.pictures.words import columns

Point = tuple[float, float]


class Text(Struct, frozen=True):
    """A line of text from ``x`` on, on the base line ``y``. ``style`` begins with its size."""

    x: float
    y: float
    text: str
    style: str
    width: float


class Frame(Struct, frozen=True):
    """A rectangle. ``about``: what it is, for who points at it."""

    x: float
    y: float
    width: float
    height: float
    style: str
    about: str = ""


class Line(Struct, frozen=True):
    """A link through ``points``: a curve from the second to the third if ``curved``, else with rounded corners."""

    points: tuple[Point, ...]
    curved: bool
    link: Link


class Layout(Struct, frozen=True):
    """A picture of ``width`` and ``height`` in pixels."""

    width: float
    height: float
    frames: tuple[Frame, ...]
    texts: tuple[Text, ...]
    lines: tuple[Line, ...]


def layout(scene: Scene) -> Layout:
    """The picture of ``scene``, from its own upper left corner on."""
    return _Plan(scene).drawn()


class _Plan:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.routes = Routes(scene)
        self.place, self.gaps, self.ports = self.routes.place, self.routes.gaps, self.routes.ports
        self.frames: list[Frame] = []
        self.texts: list[Text] = []
        self.height = [self._height(n) for n in range(len(scene.boxes))]
        self.depth = max(map(len, scene.paths), default=0)
        self.widths = list(self._widths())
        self._across()
        self._down()

    # -- how large everything is --

    def _widths(self) -> Iterator[float]:
        """The width of each column: of its widest box, its name, and the names of what begins there."""
        scene = self.scene
        for n, (name, path) in enumerate(zip(scene.names, scene.paths, strict=True)):
            begun = path[common(scene.paths[n - 1] if n else (), path) :]
            boxes = (box for box, at in zip(scene.boxes, self.place, strict=True) if at is not None and at[0] == n)
            named = columns(name) * CHARACTER["code"] + 2 * PAD
            levels = (columns(level) * CHARACTER["label"] + 2 * PAD for level in begun)
            yield max((named, *levels, *map(_width, boxes)))

    def _across(self) -> None:
        """Where the gaps and the columns begin."""
        self.left: list[float] = []
        x = 0.0
        for gap, width in zip(self.gaps, [*self.widths, 0.0], strict=True):
            gap.x = x
            x += gap.width
            self.left.append(x)
            x += width
        self.width = x

    def _down(self) -> None:
        """Where the rows begin, and the aisles above them; above all the initial writes, and the lines from there."""
        routes = self.routes
        self.initial = max((self.height[b] for b, at in enumerate(self.place) if at is None), default=0.0)
        self.tracks = self.initial + (LINE if routes.top else 0.0)
        self.head = self.tracks + LANE * len(routes.top) + (12.0 if self.initial else 0.0)
        y = self.head + LEVEL * self.depth + LEVEL
        self.aisle: list[float] = []
        self.row: list[float] = []
        for row, links in enumerate(routes.aisles):
            self.aisle.append(y + 5.0)
            last = row == len(routes.aisles) - 1
            y += LANE * len(links) + (4.0 if row == 0 or last else STEP)
            if not last:
                self.row.append(y)
                y += max((self.height[b] for b, at in enumerate(self.place) if at and at[1] == row), default=0.0)
        self.bottom = y

    def _height(self, box: int) -> float:
        ports = max(len(self.ports.get((box, side), ())) for side in (-1, 1))
        return max(len((*self.scene.boxes[box].lines, *self.scene.boxes[box].told)) * LINE + 10.0, ports * PORT + 8.0)

    # -- where it is --

    def drawn(self) -> Layout:
        """Everything at its place."""
        self._levels()
        self.corner = list(self._boxes())
        steps = [self._step(link) for link in self.scene.steps]
        lines = [self._line(number) for number in range(len(self.scene.links))]
        width = max([self.width, *(frame.x + frame.width for frame in self.frames)])
        height = self.bottom + PAD * self.depth + PAD
        return Layout(width, height, tuple(self.frames), tuple(self.texts), (*steps, *lines))

    def _levels(self) -> None:
        """The boxes of CTAs, clusters and so on, and the names of threads."""
        paths = self.scene.paths
        for level in range(self.depth):
            n = 0
            while n < len(paths):
                end = n + 1
                while end < len(paths) and paths[n][: level + 1] == paths[end][: level + 1]:
                    end += 1
                if level < len(paths[n]):
                    self._level(level, n, end - 1)
                n = end
        for n, name in enumerate(self.scene.names):
            width = columns(name) * CHARACTER["code"]
            x = self.left[n] + (self.widths[n] - width) / 2
            self.texts.append(Text(x, self.head + LEVEL * self.depth + 14.0, name, "code name", width))

    def _level(self, level: int, first: int, last: int) -> None:
        paths = self.scene.paths
        before, behind = self.gaps[first], self.gaps[last + 1]
        inner = len(paths[first]) - 1 - level, len(paths[last]) - 1 - level
        left = self.left[first] - before.behind - LANE * len(before.back) - 6.0 - PAD * inner[0]
        right = self.left[last] + self.widths[last] + behind.before + LANE * len(behind.loops) + 6.0 + PAD * inner[1]
        top = self.head + LEVEL * level
        bottom = self.bottom + PAD * (self.depth - level)
        self.frames.append(Frame(left, top, right - left, bottom - top, f"level level{level % 3}"))
        name = paths[first][level]
        self.texts.append(Text(left + 6.0, top + 14.0, name, "label level", columns(name) * CHARACTER["label"]))

    def _boxes(self) -> Iterator[Point]:
        x = max(0.0, self.left[0]) if self.left else 0.0
        for n, (box, at) in enumerate(zip(self.scene.boxes, self.place, strict=True)):
            if at is None:
                corner, width = (x, self.initial - self.height[n]), max(_width(box), self._below(n))
                x += width + 2 * PAD
            else:
                corner, width = (self.left[at[0]], self.row[at[1]]), self.widths[at[0]]
            late = box.column is not None and box.column.asynchronous
            style = "initial" if at is None else "late" if late else "left-out" if box.left_out else "box"
            self.frames.append(
                Frame(*corner, width, self.height[n], style + (" marked" if box.marked else ""), box.name)
            )
            self.texts += self._words(box, corner)
            yield corner

    def _words(self, box: Box, corner: Point) -> Iterator[Text]:
        """The text in a box."""
        x, y = corner[0] + PAD, corner[1] + 17.0
        size = CHARACTER["code"]
        if box.number:
            yield Text(x, y, box.number, "code number", columns(box.number) * size)
        x += _gutter(box) * size
        for line, style in (*((line, "code") for line in box.lines), *((line, "code told") for line in box.told)):
            text = line.lstrip(" ")
            yield Text(x + (columns(line) - columns(text)) * size, y, text, style, columns(text) * size)
            y += LINE

    def _below(self, box: int) -> float:
        """The room that the labels below an initial write take."""
        links = self.ports.get((box, 0), ())
        return sum(columns(self.scene.links[n].label) * CHARACTER["label"] + 14.0 for n in links) + PAD

    def _port(self, number: int, box: int, side: int) -> Point:
        """Where a link meets a box."""
        x, y = self.corner[box]
        ports = self.ports[box, side]
        at = self.place[box]
        if at is None:
            for other in ports[: ports.index(number)]:
                x += columns(self.scene.links[other].label) * CHARACTER["label"] + 14.0
            return x + PAD, y + self.height[box]
        first = y + (self.height[box] - PORT * (len(ports) - 1)) / 2 + 4.0
        return x + (self.widths[at[0]] if side > 0 else 0.0), first + PORT * ports.index(number)

    def _step(self, link: Link) -> Line:
        (x, y), (_, below) = self.corner[link.first], self.corner[link.second]
        at = self.place[link.first]
        x += self.widths[at[0]] / 2 if at is not None else 0.0
        return Line(((x, y + self.height[link.first]), (x, below)), False, link)

    def _line(self, number: int) -> Line:
        link, ends = self.scene.links[number], self.routes.ends[number]
        start = self._port(number, link.first, ends.first)
        end = self._port(number, link.second, ends.second)
        self._label(link, start, ends.first)
        first, second = self.place[link.first], self.place[link.second]
        if ends.form == "initial":
            track = self.tracks + LANE * (self.routes.top.index(number) + 0.5)
            target = second or first or (0, 0)
            lane = self.gaps[target[0]].lane(number)
            if first is None:
                return Line((start, (start[0], track), (lane, track), (lane, end[1]), end), False, link)
            return Line((start, (lane, start[1]), (lane, track), (end[0], track), end), False, link)
        assert first is not None and second is not None
        if ends.form == "loop":
            lane = self.gaps[first[0] + (ends.first > 0)].lane(number)
            return Line((start, (lane, start[1]), (lane, end[1]), end), False, link)
        if ends.form == "near":
            gap = self.gaps[max(first[0], second[0])]
            sides = (gap.start, gap.end) if ends.first > 0 else (gap.end, gap.start)
            return Line((start, (sides[0], start[1]), (sides[1], end[1]), end), True, link)
        row = next(n for n, links in enumerate(self.routes.aisles) if number in links)
        track = self.aisle[row] + LANE * (self.routes.aisles[row].index(number) + 0.5)
        leave = self.gaps[first[0] + (ends.first > 0)].lane(number)
        enter = self.gaps[second[0] + (ends.second > 0)].lane(number)
        points = (start, (leave, start[1]), (leave, track), (enter, track), (enter, end[1]), end)
        return Line(points, False, link)

    def _label(self, link: Link, start: Point, side: int) -> None:
        width = columns(link.label) * CHARACTER["label"]
        style = f"label {link.kind} weight{link.weight}"
        margin = inset(link)
        if side == 0:
            self.texts.append(Text(start[0] + 4.0, start[1] + 12.0, link.label, style, width))
        else:
            x = start[0] + margin if side > 0 else start[0] - margin - width
            self.texts.append(Text(x, start[1] - 5.0, link.label, style, width))


def _width(box: Box) -> float:
    text = max(map(columns, (*box.lines, *box.told)), default=0)
    return (_gutter(box) + text) * CHARACTER["code"] + 2 * PAD


def _gutter(box: Box) -> int:
    """The columns that the line number takes."""
    return columns(box.number) + 2 if box.number else 0
