"""Pictures as GraphML, for programs that work on graphs: one graph for each picture, an edge for each relation.

Source: U. Brandes, M. Eiglsperger, J. Lerner, C. Pich: Graph Markup Language (GraphML), 2013.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ptxmm.render.pictures.boxes import Box, Link, Scene
from ptxmm.render.pictures.subject import Picture

_KEYS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "graph": {"title": "string", "about": "string"},
        "node": {"thread": "string", "line": "string", "text": "string", "does": "string", "asynchronous": "boolean"},
        "edge": {"relation": "string", "label": "string", "about": "string", "weight": "int", "causal": "boolean"},
    }
)
"""What is told of each, and its type."""

Told = str | int | bool


def graphml(pictures: Iterable[Picture]) -> Iterator[str]:
    """The lines of one document."""
    root = Element("graphml", {"xmlns": "http://graphml.graphdrawing.org/xmlns"})
    for kind, names in _KEYS.items():
        for name, type_ in names.items():
            named = {"id": f"{kind}.{name}", "for": kind, "attr.name": name, "attr.type": type_}
            SubElement(root, "key", named)
    for number, picture in enumerate(pictures):
        _graph(root, f"g{number}", picture)
    indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield tostring(root, encoding="unicode")


def _graph(root: Element, name: str, picture: Picture) -> None:
    graph = SubElement(root, "graph", {"id": name, "edgedefault": "directed"})
    _tell(graph, "graph", {"title": picture.title, "about": "\n".join(picture.lines)})
    if picture.scene is None:
        return
    for number, box in enumerate(picture.scene.boxes):
        node = SubElement(graph, "node", {"id": f"{name}.b{number}"})
        _tell(node, "node", _told(box, picture.scene))
    for link in (*picture.scene.steps, *picture.scene.links):
        for first, second in [(link.first, link.second), (link.second, link.first)][: 1 + link.both]:
            _edges(graph, link, f"{name}.b{first}", f"{name}.b{second}")


def _told(box: Box, scene: Scene) -> dict[str, Told]:
    """What is told of a box; an initial write is of no thread."""
    thread, late = "", False
    if box.column is not None:
        number, late = scene.columns.index(box.column), box.column.asynchronous
        thread = "/".join((*scene.paths[number], scene.names[number]))
    lines, does = "\n".join(box.lines), "\n".join(box.told)
    return {"thread": thread, "line": box.number, "text": lines, "does": does, "asynchronous": late}


def _edges(graph: Element, link: Link, first: str, second: str) -> None:
    for item in link.relations:
        edge = SubElement(graph, "edge", {"source": first, "target": second})
        told: dict[str, Told] = {"relation": item.kind, "label": item.label, "about": item.text}
        _tell(edge, "edge", told | {"weight": link.weight, "causal": link.causal})


def _tell(element: Element, kind: str, told: Mapping[str, Told]) -> None:
    for name, value in told.items():
        data = SubElement(element, "data", {"key": f"{kind}.{name}"})
        data.text = str(value).lower() if isinstance(value, bool) else str(value)
