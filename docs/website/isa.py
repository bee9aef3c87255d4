"""A Markdown extension: every section of the PTX ISA that a page names is a link to it.

The titles are those of ``tests/sections.toml``, from which the anchors follow; where NVIDIA's are others they stand in
``ANCHORS``. The document that is linked is the newest, whose numbers may be others: the title of the link says what is
meant.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

DOCUMENT = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
VERSION = "8.5"
ANCHORS = {
    "8.1": "scope-and-applicability",
    "8.1.1": "limitations-system-scope-atomicity",
    "8.3": "memory-consistency-state-spaces",
    "8.9.1.1": "program-order-async-operations",
    "8.10.1": "coherence-axiom",
    "8.10.2": "fence-sc-axiom",
    "8.10.3": "atomicity-axiom",
    "8.10.4": "no-thin-air-axiom",
    "8.10.5": "sc-per-loc-axiom",
    "8.10.6": "causality-axiom",
    "9.7.10.13": "data-movement-and-conversion-instructions-multimem",
    "9.7.10.24.5": "data-movement-and-conversion-instructions-cp-async-wait-group",
}
"""Of PTX ISA 8.5: anchors that are not made from the title."""

# Numbers of two components are versions as well. They are sections behind `section`, and alone in parentheses.
_NUMBER = re.compile(
    r"(?<![\w.-])((?:[4-9]|1[01])(?:\.\d{1,2}){2,})(?![\w-]|\.\d)"
    r"|(?:(?<=\bsection )|(?<=\bsections )|(?<=\((?=[\d.]+(?:[),]| \())))((?:[4-9]|1[01])\.[1-9]\d?)(?![\w-]|\.\d)"
)
# Of the memory model they also are where the first cell of a row begins with one.
_FIRST = re.compile(rf"\A(8\.[1-9]\d?)(?=\Z| )|{_NUMBER.pattern}")
_LEFT = frozenset({"a", "code", "pre", "script", "style", "h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS = frozenset({"p", "li", "td", "th", "dd", "dt", "div", "blockquote"})
_TABLE = Path(__file__).resolve().parents[2] / "tests" / "sections.toml"
_VERSION = re.compile(r"(?:PTX(?: ISA)?|[Vv]ersion) (\d\.\d)\b(?!\.)")


def sections() -> dict[str, dict[str, str]]:
    """For each version of the ISA the titles by number."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {version: dict(titles) for version, titles in table.items()}


def target(number: str, text: str, listed: dict[str, dict[str, str]]) -> tuple[str, str] | None:
    """Where a section is and what it is called; None for what is no section.

    ``text`` is what stands before the number in its paragraph: the last version that it names and that has the section
    is meant, or else 8.5, or else whichever has it.
    """
    named = [version for version in reversed(_VERSION.findall(text)) if number in listed.get(version, {})]
    for version in (*named[:1], VERSION, *listed):
        if title := listed.get(version, {}).get(number):
            anchor = ANCHORS.get(number) if version == VERSION else None
            slug = anchor or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
            return f"{DOCUMENT}#{slug}", f"PTX ISA {version}, section {number}: {title}"
    return None


class _Sections(Treeprocessor):  # type: ignore[misc] # Markdown has no types
    """Makes links of the numbers in text; code, links and headings stay as they are."""

    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self._listed = sections()

    def run(self, root: ElementTree.Element) -> None:
        """Change the tree of a page."""
        self._inside(root, "", _NUMBER)

    def _inside(self, element: ElementTree.Element, before: str, pattern: re.Pattern[str]) -> str:
        """``before`` and the text of an element, whose numbers become links."""
        if element.tag in _LEFT:
            return before + "".join(element.itertext())
        if element.tag in _BLOCKS:
            before = ""
        children = list(element)
        element[:] = []
        element.text, before = self._links(element, element.text or "", before, pattern)
        for n, child in enumerate(children):
            tail, child.tail = child.tail or "", None
            element.append(child)
            before = self._inside(child, before, _FIRST if child.tag == "td" and n == 0 else _NUMBER)
            child.tail, before = self._links(element, tail, before, _NUMBER)
        return before

    def _links(self, parent: ElementTree.Element, text: str, before: str, pattern: re.Pattern[str]) -> tuple[str, str]:
        """Append the links in ``text`` to ``parent``: what stands before the first, and all text so far."""
        first, end, link = "", 0, None
        for number in pattern.finditer(text):
            found = target(number[0], before + text[: number.start()], self._listed)
            if found is None:
                continue
            if link is None:
                first = text[: number.start()]
            else:
                link.tail = text[end : number.start()]
            link = ElementTree.SubElement(parent, "a", {"href": found[0], "title": found[1]})
            link.text, end = number[0], number.end()
        if link is None:
            return text, before + text
        link.tail = text[end:]
        return first, before + text


class Sections(Extension):  # type: ignore[misc]
    """What ``mkdocs.yml`` names."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Behind all that makes elements of the text, before the table of contents."""
        md.treeprocessors.register(_Sections(md), "isa", 15)


def makeExtension(**options: Any) -> Sections:
    """Called by Markdown."""
    return Sections(**options)
