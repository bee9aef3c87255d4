"""Which way each link of a picture goes, and so how much room there has to be."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct, field

from ptxmm.render.pictures.boxes import Link, Scene
from ptxmm.render.pictures.looks import CHARACTER, LANE, PAD
from ptxmm.render.pictures.words import columns


class Gap(Struct):
    """What is left of a column, or right of the last one. Widths, from left to right: of labels, of the lanes of the
    column before, of borders, of the free part, of borders, of the lanes of the column behind, of labels."""

    before: float = 0.0
    loops: list[int] = field(default_factory=list)
    closing: float = 0.0
    lanes: list[int] = field(default_factory=list)
    near: int = 0
    opening: float = 0.0
    back: list[int] = field(default_factory=list)
    behind: float = 0.0
    x: float = 0.0

    @property
    def free(self) -> float:
        curves = 34.0 + 6.0 * min(self.near, 8) if self.near else 0.0
        return max(curves, 12.0) + LANE * len(self.lanes)

    @property
    def start(self) -> float:
        """Where the free part begins."""
        return self.x + self.before + LANE * len(self.loops) + self.closing

    @property
    def end(self) -> float:
        return self.start + self.free

    @property
    def width(self) -> float:
        return self.end - self.x + self.opening + LANE * len(self.back) + self.behind

    def lane(self, link: int) -> float:
        """Where a link goes up or down."""
        if link in self.loops:
            return self.x + self.before + LANE * (self.loops.index(link) + 0.5)
        if link in self.back:
            return self.end + self.opening + LANE * (self.back.index(link) + 0.5)
        return self.start + 6.0 + LANE * (self.lanes.index(link) + 0.5)


class Ends(Struct):
    """The sides at which a link leaves one box and comes to the other: -1 left, 1 right, 0 below (an initial write)."""

    first: int
    second: int
    form: str


class Routes:
    """``place``: the column and the row of each box, None of an initial write. ``ends``: of each link. ``ports``: the
    links at each side of a box, from above. ``gaps``: left of each column, and right of the last. ``aisles``: above
    each row, and below the last, the links that cross columns there; ``top``: those that do so below the initial
    writes. Links are known by their numbers."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        index = {column: n for n, column in enumerate(scene.columns)}
        self.place: list[tuple[int, int] | None] = [
            None if b.column is None else (index[b.column], b.row) for b in scene.boxes
        ]
        rows = max((b.row for b in scene.boxes if b.column is not None), default=-1) + 1
        self.ends = [self._ends(link) for link in scene.links]
        self.ports: dict[tuple[int, int], list[int]] = {}
        self.gaps = [Gap() for _ in range(len(scene.columns) + 1)]
        self.aisles: list[list[int]] = [[] for _ in range(rows + 1)]
        self.top: list[int] = []
        self._attach()
        self._channels()
        self._borders()

    def _ends(self, link: Link) -> Ends:
        first, second = self.place[link.first], self.place[link.second]
        if first is None or second is None:
            return Ends(0 if first is None else -1, 0 if second is None else -1, "initial")
        a, b = first[0], second[0]
        if a == b:
            side = -1 if a == 0 and len(self.scene.columns) > 1 else 1
            return Ends(side, side, "loop")
        side = 1 if a < b else -1
        return Ends(side, -side, "near" if abs(a - b) == 1 else "far")

    def _attach(self) -> None:
        """The ports of each side of a box, from above; of links to what is above first."""
        for number, (link, ends) in enumerate(zip(self.scene.links, self.ends, strict=True)):
            self.ports.setdefault((link.first, ends.first), []).append(number)
            self.ports.setdefault((link.second, ends.second), []).append(number)

        for (box, _), links in self.ports.items():
            links.sort(key=lambda number: self._towards(number, box))

    def _towards(self, number: int, box: int) -> tuple[float, ...]:
        """Orders the ports of a side so that few lines cross."""
        link = self.scene.links[number]
        other = self.place[link.second if link.first == box else link.first]
        own = self.place[box]
        if own is None:
            return (other[0] if other else 0, other[1] if other else 0, number)
        if other is None:
            return (-1, 0, link.first)
        away = abs(other[0] - own[0])
        return (other[1], away if other[1] > own[1] else -away, number)

    def _channels(self) -> None:
        """The lanes that links take through the gaps, and the aisles."""
        for number, (link, ends) in enumerate(zip(self.scene.links, self.ends, strict=True)):
            first, second = self.place[link.first], self.place[link.second]
            match ends.form:
                case "initial":
                    self.top.append(number)
                    target = second or first
                    if target is not None:
                        self.gaps[target[0]].lanes.append(number)
                case "loop" if first is not None:
                    gap = self.gaps[first[0] + (ends.first > 0)]
                    (gap.loops if ends.first > 0 else gap.back).append(number)
                case "near" if first is not None and second is not None:
                    self.gaps[max(first[0], second[0])].near += 1
                case "far" if first is not None and second is not None:
                    self.gaps[first[0] + (ends.first > 0)].lanes.append(number)
                    self.gaps[second[0] + (ends.second > 0)].lanes.append(number)
                    self.aisles[self._aisle(first[1], second[1])].append(number)
        for gap in self.gaps:
            gap.loops.sort(key=self._span)
            gap.back.sort(key=self._span, reverse=True)

    def _span(self, number: int) -> int:
        link = self.scene.links[number]
        return abs(self.scene.boxes[link.first].row - self.scene.boxes[link.second].row)

    def _aisle(self, first: int, second: int) -> int:
        """Above which row a link between these rows goes: where there are few."""
        low, high = min(first, second), max(first, second)
        return min(range(low, high + 2), key=lambda n: (len(self.aisles[n]), abs(2 * n - low - high - 1)))

    def _borders(self) -> None:
        """The room that the labels, and the boxes of CTAs and so on, take in the gaps."""
        for link, ends in zip(self.scene.links, self.ends, strict=True):
            for box, side, label in ((link.first, ends.first, link.label), (link.second, ends.second, "")):
                at = self.place[box]
                if at is None or side == 0:
                    continue
                if ends.form == "initial" and box == link.second:
                    label = ""
                width = columns(label) * CHARACTER["label"] + inset(link) + 5.0 if label else 12.0
                gap = self.gaps[at[0] + (side > 0)]
                if side > 0:
                    gap.before = max(gap.before, width)
                else:
                    gap.behind = max(gap.behind, width)
        paths = [(), *self.scene.paths, ()]
        for gap, (left, right) in zip(self.gaps, pairwise(paths), strict=True):
            same = common(left, right)
            gap.closing = 12.0 + PAD * (len(left) - same - 1) if len(left) > same else 0.0
            gap.opening = 12.0 + PAD * (len(right) - same - 1) if len(right) > same else 0.0


def inset(link: Link) -> float:
    """How far from its box a label begins: behind the head of an arrow, if there is one."""
    return 14.0 if link.both else 5.0


def common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many levels two paths share."""
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same
