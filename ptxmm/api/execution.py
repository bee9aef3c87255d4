"""Executions that show themselves, with their relations."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import Struct, to_builtins

from ptxmm.analysis import result
from ptxmm.analysis.examples import Derivation, Example
from ptxmm.analysis.result import CoherentWrites, EventView, ExecutionGraph, OrderedFences, Outcome, ThreadSteps
from ptxmm.api.names import Named
from ptxmm.api.shown import Displayed, Tabular, accesses
from ptxmm.render.document import taken
from ptxmm.render.execution import execution_lines
from ptxmm.render.explain import derivation_lines
from ptxmm.render.pictures.scene import scene
from ptxmm.render.pictures.subject import Picture
from ptxmm.render.pictures.svg import document
from ptxmm.render.style import Style, clean
from ptxmm.words import number_of


class Why(Displayed, Derivation, frozen=True):
    __doc__ = Derivation.__doc__

    def _text(self, style: Style) -> str:
        return "\n".join(derivation_lines(self, style))


class Relation(Tabular, Struct, frozen=True, eq=False):
    """A relation of an execution: its pairs of events, in which it can be iterated."""

    name: str
    pairs: tuple[tuple[EventView, EventView], ...]
    _example: Example

    def why(self, first: str | EventView, second: str | EventView) -> Why:
        """Why ``first`` is related to ``second``: each an event, or its label, such as ``P0:12``. What comes back is
        false where they are not. Raises ``PtxmmError`` (kind ``usage``) for a label that no event has."""
        return taken(Why, self._example.derivation(self.name, first, second))

    def rows(self) -> list[dict[str, object]]:
        """A row for each pair."""
        return [{"first": str(first), "second": str(second)} for first, second in self.pairs]

    def _text(self, style: Style) -> str:
        return "\n".join([self._title, *(f"  {clean(str(a))} -> {clean(str(b))}" for a, b in self.pairs)])

    @property
    def _title(self) -> str:
        return f"{self.name}: {number_of(len(self.pairs), 'pair')}"

    def __repr__(self) -> str:
        return f"<Relation {self._title}>"

    def __iter__(self) -> Iterator[tuple[EventView, EventView]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class Relations(Named[Relation]):
    """The relations of an execution by name: those of the model, and the base relations."""

    _WHAT = "relation"

    def __init__(self, example: Example) -> None:
        self._example = example

    def _names(self) -> tuple[str, ...]:
        return self._example.relations

    def _make(self, name: str) -> Relation:
        return Relation(name, self._example.pairs(name), self._example)


class Execution(Tabular, Struct, frozen=True, eq=False):
    """An execution of ``test`` that ``model`` allows and that ends in ``state``: what each of the ``threads`` executes,
    the orders among their writes and fences, and all of it as a ``graph``."""

    test: str
    model: str
    state: Outcome
    threads: tuple[ThreadSteps, ...]
    coherence: tuple[CoherentWrites, ...]
    fence_sc: tuple[OrderedFences, ...]
    graph: ExecutionGraph | None
    _example: Example

    @property
    def events(self) -> tuple[EventView, ...]:
        """All events, those of the threads first: what ``why`` takes."""
        return self._example.events

    @property
    def relations(self) -> Relations:
        """Its relations by name, those of the model and the base relations."""
        return Relations(self._example)

    def why(self, relation: str, first: str | EventView, second: str | EventView) -> Why:
        """As ``relations[relation].why(first, second)``."""
        return self.relations[relation].why(first, second)

    def rows(self) -> list[dict[str, object]]:
        """A row for each access."""
        return accesses(self)

    def to_json(self) -> str:
        """The state and the execution, with the names of the attributes as keys."""
        names = {"test": self.test, "model": self.model, "state": to_builtins(self.state)}
        return json.dumps({**names, **to_builtins(self._plain)}, indent=2)

    @property
    def _plain(self) -> result.Execution:
        return self._example.execution

    def _text(self, style: Style) -> str:
        return "\n".join([clean(str(self.state)), *execution_lines(self._plain)])

    def _repr_svg_(self) -> str:
        title, state = f"{self.test} under {self.model}", f"ends with {self.state}"
        return document([Picture(clean(title), (clean(state),), None if self.graph is None else scene(self.graph))])

    def __repr__(self) -> str:
        return f"<Execution {clean(str(self.state))}>"


def shown(example: Example, model: str) -> Execution:
    """``example``, an execution under what the user calls ``model``, as one that shows itself."""
    plain, test = example.execution, example.views.test.name
    return Execution(test, model, example.outcome, plain.threads, plain.coherence, plain.fence_sc, plain.graph, example)
