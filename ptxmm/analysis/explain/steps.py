"""What a reason is made of: steps between instructions, each with those that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ptxmm.analysis.result import EventView, Execution


class Edge(Struct, frozen=True):
    """One step of a chain: ``relation`` is the name of a base relation or a definition of the model, ``text`` and
    ``section`` (of PTX ISA 8.5, with the clause) say what it is. ``inner``: the chain that a definition stands for;
    ``also``: what else it demands of these events; ``detail``: the patterns that synchronize. ``whole``: where one
    level is shown, it is one step, else ``inner`` stands for it. ``backwards``: the chain goes against its direction;
    then ``first`` is where the chain comes from all the same. ``strong``: the derivation needs the two to be morally
    strong (8.7)."""

    relation: str
    text: str
    section: str | None
    first: EventView
    second: EventView
    inner: tuple[Edge, ...] = ()
    detail: str | None = None
    backwards: bool = False
    strong: bool = False
    whole: bool = True
    also: tuple[Edge, ...] = ()


def chain(edges: Iterable[Edge]) -> Iterator[Edge]:
    """The steps of ``edges`` on the first level."""
    for edge in edges:
        if edge.whole:
            yield edge
        else:
            yield from chain(edge.inner)


def every_step(edges: Iterable[Edge]) -> Iterator[Edge]:
    """All steps of ``edges``, on every level."""
    for edge in edges:
        yield edge
        yield from every_step((*edge.inner, *edge.also))


class Absence(Struct, frozen=True):
    """That ``first`` does not come before ``second`` (None: is not in a set) in the order that ``text`` names, nor
    (``unrelated``) the other way round. ``text`` None: in what the axiom demands. ``section`` of PTX ISA 8.5."""

    text: str | None
    section: str | None
    unrelated: bool
    first: EventView
    second: EventView | None


class Reason(Struct, frozen=True, omit_defaults=True):
    """Why the model forbids an execution: ``axiom`` with what it says and its section (of PTX ISA 8.5), and the
    contradiction in a ``sentence``.

    ``edges`` is a chain, which ``closed`` makes a cycle; ``beside`` are edges that hold as well, ``absent`` what
    the axiom demands and the execution does not have. ``member``: the event, where the axiom is about a set.
    ``length``: how many base edges and absences that are. ``execution``: one that it forbids, where that is asked for.
    """

    axiom: str
    text: str
    section: str | None
    sentence: str
    length: int
    closed: bool
    edges: tuple[Edge, ...]
    beside: tuple[Edge, ...]
    absent: tuple[Absence, ...]
    member: EventView | None
    execution: Execution | None = None

    @property
    def chain(self) -> tuple[Edge, ...]:
        """The steps on the first level."""
        return tuple(chain(self.edges))

    @property
    def steps(self) -> tuple[Edge, ...]:
        """All steps, on every level, and those beside them."""
        return tuple(every_step((*self.edges, *self.beside)))

    @property
    def shape(self) -> tuple[object, ...]:
        """What equal reasons of different events have in common."""
        return self.axiom, _shape(self.edges), _shape(self.beside), tuple(a.text for a in self.absent)


def _shape(edges: tuple[Edge, ...]) -> tuple[object, ...]:
    return tuple((e.relation, e.backwards, _shape(e.inner)) for e in edges)


class Chain(Struct, frozen=True):
    """A chain of ``edges``, with what is ``beside`` it and what is ``absent`` (see ``Reason``). ``cost``: how many base
    edges and absences that are."""

    edges: tuple[Edge, ...]
    beside: tuple[Edge, ...]
    absent: tuple[Absence, ...]
    cost: int
