"""An execution graph as boxes, one for each instruction that was executed, and the links between them."""

from __future__ import annotations

from msgspec import Struct


class Column(Struct, frozen=True):
    """Where the boxes of a thread are, or (``asynchronous``) those of its asynchronous operations."""

    thread: int
    asynchronous: bool


class Box(Struct, frozen=True):
    """An instruction, what an asynchronous operation does, or (``column`` None) an initial write.

    ``number``: the line of the file, or nothing; ``lines``: the text, and behind that ``told``, what it does. ``name``:
    all of it for who can't see it. ``row``: its place in the column. ``left_out``: it stands for so many others.
    """

    column: Column | None
    row: int
    number: str
    lines: tuple[str, ...]
    told: tuple[str, ...]
    name: str
    marked: bool = False
    left_out: int = 0


class Relation(Struct, frozen=True):
    """What a link stands for: a short ``label``, one of ``words.KINDS``, and in words."""

    label: str
    kind: str
    text: str


class Link(Struct, frozen=True):
    """The relations between two boxes, of which the first gives the link its look. ``both``: they hold each way;
    ``causal``: so does base causality order; ``strong``: they are morally strong; ``weight``: 2 for what breaks an
    axiom, 0 for what has no part in that, else 1."""

    first: int
    second: int
    relations: tuple[Relation, ...]
    both: bool
    causal: bool
    weight: int
    strong: bool = False

    @property
    def label(self) -> str:
        """What stands on it; nothing on a step of program order."""
        return " ".join(item.label for item in self.relations if item.kind != "po")

    @property
    def kind(self) -> str:
        """What it looks like."""
        return self.relations[0].kind

    @property
    def style(self) -> str:
        """Its kind and its weight, and what else it stands for."""
        others = {f"has-{item.kind}" for item in self.relations if item.kind != self.kind}
        others |= {f"has-{item.label}" for item in self.relations if item.label == "obs"}
        return " ".join((self.kind, f"weight{self.weight}", *sorted(others), *(("strong",) if self.strong else ())))


class Scene(Struct, frozen=True):
    """What a picture shows. ``names`` and ``paths``: of the threads of the columns, and what they are in. ``steps``:
    links of program order between neighbours in a column. ``notes``: what is left out."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    boxes: tuple[Box, ...]
    links: tuple[Link, ...]
    steps: tuple[Link, ...]
    notes: tuple[str, ...]
