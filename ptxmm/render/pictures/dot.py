"""A picture as a graph of Graphviz (the DOT language), which lays it out itself.

It is written as text: a graph of this kind needs no library, and networkx writes DOT only through another package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ptxmm.render.pictures.boxes import Box, Link, Scene
from ptxmm.render.pictures.looks import COLOURS
from ptxmm.render.pictures.subject import Picture
from ptxmm.render.pictures.words import AMISS

_STYLES: Mapping[str, str] = MappingProxyType(
    {"co": "dashed", "fr": "dashed", "fsc": "dotted", "dependency": "dotted", "absent": "dotted", "race": "dotted"}
)


def digraph(picture: Picture) -> Iterator[str]:
    """The lines of one graph."""
    yield f"digraph {_quoted(picture.title)} {{"
    label = "".join(_line(line) for line in (picture.title, *picture.lines))
    yield f'  graph [label="{label}", labelloc=t, labeljust=l, fontname=monospace, newrank=true];'
    yield "  node [shape=box, fontname=monospace, fontsize=10];"
    yield "  edge [fontname=monospace, fontsize=10];"
    if picture.scene is not None:
        yield from _threads(picture.scene, (), "  ")
        yield from _edges(picture.scene)
    yield "}"


def _threads(scene: Scene, path: tuple[str, ...], indent: str) -> Iterator[str]:
    """The boxes of the threads in ``path``, in a cluster for each of its parts and each thread."""
    seen: set[tuple[str, ...]] = set()
    if not path:
        yield from (f"{indent}{_node(scene, n)}" for n, box in enumerate(scene.boxes) if box.column is None)
    for number, column in enumerate(scene.columns):
        whole = (*scene.paths[number], scene.names[number])
        if whole[: len(path)] != path:
            continue
        inner = whole[: len(path) + 1]
        if inner in seen:
            continue
        seen.add(inner)
        yield f"{indent}subgraph {_quoted('cluster ' + '/'.join(inner))} {{"
        yield f"{indent}  label={_quoted(inner[-1])};"
        if inner == whole:
            boxes = (n for n, box in enumerate(scene.boxes) if box.column == column)
            yield from (f"{indent}  {_node(scene, n)}" for n in boxes)
        else:
            yield from _threads(scene, inner, indent + "  ")
        yield f"{indent}}}"


def _node(scene: Scene, number: int) -> str:
    box = scene.boxes[number]
    late = box.column is None or box.column.asynchronous
    style = "dashed" if late else "solid"
    return f'b{number} [label="{"".join(map(_line, _words(box)))}", style={style}, penwidth={2 if box.marked else 1}];'


def _words(box: Box) -> Iterator[str]:
    number = f"{box.number}  " if box.number else ""
    for n, line in enumerate((*box.lines, *box.told)):
        yield (" " * len(number) if n else number) + line


def _edges(scene: Scene) -> Iterator[str]:
    for link in (*scene.steps, *scene.links):
        yield f"  b{link.first} -> b{link.second} [{', '.join(_attributes(link))}];"


def _attributes(link: Link) -> Iterator[str]:
    yield f"label={_quoted(link.label)}"
    yield f"color={_quoted(COLOURS[link.kind] + ('66' if link.weight == 0 else ''))}"
    yield f"style={_STYLES.get(link.kind, 'solid')}"
    if link.both:
        yield f"dir={'none' if link.kind in AMISS else 'both'}"
    if link.weight == 2:
        yield "penwidth=3"
    if link.kind != "po":
        yield "constraint=false"


def _line(text: str) -> str:
    """A line of a label, on the left."""
    return _escaped(text) + "\\l"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
