"""A picture as SVG. All text is escaped, and nothing is loaded; it looks right alone, in a page and on paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from xml.sax.saxutils import escape
from zlib import crc32

from ptxmm.render.pictures.boxes import Link, Relation, Scene
from ptxmm.render.pictures.layout import Frame, Line, Point, Text, layout
from ptxmm.render.pictures.looks import CAUSAL, CHARACTER, LINE, MARGIN, STYLE
from ptxmm.render.pictures.subject import Picture
from ptxmm.render.pictures.words import AMISS, columns, wrapped

_NARROWEST = 480.0
"""The width of the smallest picture, so that its words have room."""
_ROUND = 6.0
"""The radius of corners."""
_SAMPLE = 28.0
"""The length of a line in the legend."""


def document(shown: Sequence[Picture], style: str = STYLE, name: str | None = None) -> str:
    """One SVG document with these pictures, one below the other; ``style``: none in a page
    that has it. ``name``: of the document in a page; None: one that is made of what it shows."""
    parts: list[str] = []
    y, width = MARGIN, _NARROWEST
    for number, picture in enumerate(shown):
        drawn = _Drawing(picture)
        parts += [f'<g transform="translate({_n(MARGIN)} {_n(y)})">', *drawn.parts, "</g>"]
        y += drawn.height + (2 * MARGIN if number < len(shown) - 1 else 0.0)
        width = max(width, drawn.width)
    size = width + 2 * MARGIN, y + MARGIN
    title = "; ".join(picture.title for picture in shown) or "no execution"
    about = " ".join(_about(picture) for picture in shown)
    body = "\n".join(parts)
    name = name or f"p{crc32(body.encode('utf-8')):08x}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ptxmm" width="{_n(size[0])}" height="{_n(size[1])}" '
            f'viewBox="0 0 {_n(size[0])} {_n(size[1])}" role="img" aria-labelledby="{name}t {name}d">',
            f'<title id="{name}t">{escape(title)}</title>',
            f'<desc id="{name}d">{escape(about)}</desc>',
            f"<style>{style}</style>" if style else "",
            f'<rect class="page" width="{_n(size[0])}" height="{_n(size[1])}" rx="6"/>',
            body,
            "</svg>",
        )
    )


class _Drawing:
    """The elements of one picture, and how large it is."""

    def __init__(self, picture: Picture) -> None:
        self.parts: list[str] = []
        scene = picture.scene
        found = None if scene is None else layout(scene)
        wish = min(max(len(line) for line in (picture.title, *picture.lines)) * CHARACTER["code"], 640.0)
        self.width = max(_NARROWEST, wish, 0.0 if found is None else found.width)
        y = self._words(picture)
        if found is not None and scene is not None:
            y += LINE
            self.parts.append(f'<g transform="translate(0 {_n(y)})">')
            causal = [line for line in found.lines if line.link.causal]
            self.parts += [_frame(frame) for frame in found.frames if frame.style.startswith("level")]
            self.parts += [f'<path class="band" d="{_path(line)}"/>' for line in causal]
            self.parts += [_frame(frame) for frame in found.frames if not frame.style.startswith("level")]
            self.parts += [_line(line, scene) for line in sorted(found.lines, key=lambda line: line.link.weight)]
            self.parts += [_text(text) for text in found.texts]
            self.parts.append("</g>")
            y = self._legend(scene, y + found.height + LINE)
        self.height = y

    def _words(self, picture: Picture) -> float:
        y = 0.0
        for style, line in (("title", picture.title), *(("code", line) for line in picture.lines)):
            for part in wrapped(line, "  ", int(self.width / CHARACTER[style])):
                y += LINE + (4.0 if style == "title" else 0.0)
                self._put(0.0, y, part, style + " words")
        return y

    def _put(self, x: float, y: float, text: str, style: str) -> float:
        """Add text; where it ends."""
        width = columns(text.strip(" ")) * CHARACTER[style.split()[0]]
        indent = (columns(text) - columns(text.lstrip(" "))) * CHARACTER[style.split()[0]]
        self.parts.append(_text(Text(x + indent, y, text.strip(" "), style, width)))
        return x + indent + width

    def _legend(self, scene: Scene, y: float) -> float:
        """What the lines stand for, and what is left out."""
        known: dict[str, Relation] = {}
        for link in (*scene.steps, *scene.links):
            for item in link.relations:
                known.setdefault(item.label, item)
        if any(link.causal for link in (*scene.steps, *scene.links)):
            known["bc"] = Relation("", "band", CAUSAL)
        x = 0.0
        for item in known.values():
            text = f"{item.label}: {item.text}" if item.label else item.text
            needed = _SAMPLE + 6.0 + columns(text) * CHARACTER["label"]
            if x and x + needed > self.width:
                x, y = 0.0, y + LINE
            band = item.kind == "band"
            inset = 5.0 if band else 0.0
            sample = f"M{_n(x + inset)} {_n(y - 4.0)}H{_n(x + _SAMPLE - inset)}"
            shape = f'<path class="{"band" if band else "line"}" d="{sample}"/>'
            self.parts.append(f'<g class="link {item.kind} weight1">{shape}</g>')
            self._put(x + _SAMPLE + 6.0, y, text, "label words")
            x += needed + 18.0
        for note in scene.notes:
            y += LINE
            self._put(0.0, y, note, "label words")
        return y


def _frame(frame: Frame) -> str:
    place = f'x="{_n(frame.x)}" y="{_n(frame.y)}" width="{_n(frame.width)}" height="{_n(frame.height)}"'
    about = f"<title>{escape(frame.about)}</title>" if frame.about else ""
    return f'<rect class="{frame.style}" {place} rx="4">{about}</rect>'


def _text(text: Text) -> str:
    """Its width is given, so that it takes the room that is meant for it in whatever font there is."""
    return (
        f'<text class="{text.style}" x="{_n(text.x)}" y="{_n(text.y)}" textLength="{_n(text.width)}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text.text)}</text>'
    )


def _line(line: Line, scene: Scene) -> str:
    link = line.link
    heads = [_head(line.points[-2], line.points[-1], link.weight)] if not _open(link) else []
    if link.both and not _open(link):
        heads.append(_head(line.points[1], line.points[0], link.weight))
    title = f"<title>{escape(_told(link, scene))}</title>"
    drawn = "".join((title, f'<path class="line" d="{_path(line)}"/>', *heads))
    return f'<g class="link {link.style}">{drawn}</g>'


def _open(link: Link) -> bool:
    """Whether it is without direction."""
    return link.both and link.kind in AMISS


def _head(before: Point, end: Point, weight: int) -> str:
    """The head of an arrow that ends at a point."""
    length, half = (10.0, 4.2) if weight == 2 else (8.0, 3.5)
    distance = hypot(end[0] - before[0], end[1] - before[1]) or 1.0
    dx, dy = (end[0] - before[0]) / distance, (end[1] - before[1]) / distance
    x, y = end[0] - length * dx, end[1] - length * dy
    corners = (end, (x - half * dy, y + half * dx), (x + half * dy, y - half * dx))
    return f'<path class="head" d="M{"L".join(f"{_n(a)} {_n(b)}" for a, b in corners)}Z"/>'


def _path(line: Line) -> str:
    points = line.points
    if line.curved:
        (x0, y0), (x1, y1), (x2, y2), (x3, _) = points
        middle = (x1 + x2) / 2
        curve = f"C{_n(middle)} {_n(y1)} {_n(middle)} {_n(y2)} {_n(x2)} {_n(y2)}"
        return f"M{_n(x0)} {_n(y0)}H{_n(x1)}{curve}H{_n(x3)}"
    found = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        a, b = _near(corner, before), _near(corner, after)
        found.append(f"L{_n(a[0])} {_n(a[1])}Q{_n(corner[0])} {_n(corner[1])} {_n(b[0])} {_n(b[1])}")
    found.append(f"L{_n(points[-1][0])} {_n(points[-1][1])}")
    return "".join(found)


def _near(corner: Point, other: Point) -> Point:
    """The point on the way from a corner to another where the corner begins to be round."""
    distance = hypot(other[0] - corner[0], other[1] - corner[1])
    share = min(_ROUND, distance / 2) / distance if distance else 0.0
    return corner[0] + share * (other[0] - corner[0]), corner[1] + share * (other[1] - corner[1])


def _about(picture: Picture) -> str:
    """The picture in words."""
    found = [f"{picture.title}.", *(f"{line}." for line in picture.lines)]
    scene = picture.scene
    if scene is not None:
        found += [f"{box.name}{' (marked)' if box.marked else ''}." for box in scene.boxes]
        found += [f"{_told(link, scene)}." for link in scene.links]
        found += [f"{note}." for note in scene.notes]
    return " ".join(found)


def _told(link: Link, scene: Scene) -> str:
    words = " and ".join(item.text for item in link.relations)
    first, second = (scene.boxes[n].name.split(": ")[0] for n in (link.first, link.second))
    way = "between" if link.both else "from"
    told = f"{words} {way} {first} {'and' if link.both else 'to'} {second}"
    return told + (", which is in base causality order" if link.causal and link.kind != "po" else "")


def _n(value: float) -> str:
    """A number of pixels, to a tenth."""
    return f"{round(value, 1) + 0.0:.9g}"
