"""Executions with all their relations, and why two events are in one of them."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.analysis.explain.chains import derived
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.graph import drawn
from ptxmm.analysis.explain.steps import Absence, Edge
from ptxmm.analysis.observe import observed, outcome
from ptxmm.analysis.result import EventView, Execution, Outcome, Status
from ptxmm.analysis.search import Question, final_states, rebuild, values
from ptxmm.cat import Model
from ptxmm.cat.names import RELATIONS
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import Proposition, evaluate, terms
from ptxmm.program.naming import did_you_mean
from ptxmm.program.test import Test


class Derivation(Struct, frozen=True):
    """Why ``relation`` has the pair of ``first`` and ``second``, or (not ``holds``) that it has not.

    ``edges`` is a chain from the one to the other, ``beside`` are edges that hold as well, ``absent`` what a
    definition demands not to be there.
    """

    relation: str
    first: EventView
    second: EventView
    holds: bool
    edges: tuple[Edge, ...] = ()
    beside: tuple[Edge, ...] = ()
    absent: tuple[Absence, ...] = ()

    def __bool__(self) -> bool:
        return self.holds


class Example(Struct, frozen=True, eq=False):
    """An execution that ``model`` allows, with the final state that it ends in; it has been confirmed."""

    outcome: Outcome
    execution: Execution
    model: Model
    views: Views

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of all relations: those of the model, and the base relations."""
        defined = [name for name, node in self.model.definitions.items() if not (node.is_set or node.open)]
        base = [name for name in sorted(RELATIONS) if name not in defined and self._base(name)]
        return (*defined, *base)

    def _base(self, name: str) -> bool:
        return self.views.execution.base(name) is not None

    def numbers(self, name: str) -> list[tuple[int, int]]:
        """The pairs of a relation, by the numbers of the events."""
        rebuilt = self.views.execution
        return list(rebuilt.layout.algebra.pairs(rebuilt.evaluator.value(name)))

    def pairs(self, name: str) -> tuple[tuple[EventView, EventView], ...]:
        """The pairs of a relation, each once."""
        found = ((self.views.event(a), self.views.event(b)) for a, b in self.numbers(name))
        return tuple(dict.fromkeys(found))

    @property
    def events(self) -> tuple[EventView, ...]:
        """All events, those of the threads first."""
        count = len(self.views.execution.layout.events)
        return tuple(dict.fromkeys(self.views.event(number) for number in range(count)))

    def derivation(self, name: str, first: str | EventView, second: str | EventView) -> Derivation:
        """Why the relation ``name`` has a pair of ``first`` and ``second``: events, or labels such as ``P0:12``.

        Of several events with one label those are taken that are related, by the shortest derivation. Raises
        ``PtxmmError`` (kind ``usage``) for a label that no event has.
        """
        one, two = self._named(first), self._named(second)
        related = [(a, b) for a, b in self.numbers(name) if a in one and b in two]
        if not related:
            return Derivation(name, self.views.event(one[0]), self.views.event(two[0]), False)
        a, b, chain = min(
            ((a, b, derived(self.model, self.views, name, a, b)) for a, b in related), key=lambda item: item[2].cost
        )
        return Derivation(name, self.views.event(a), self.views.event(b), True, chain.edges, chain.beside, chain.absent)

    def _named(self, event: str | EventView) -> list[int]:
        views = [self.views.event(n) for n in range(len(self.views.execution.layout.events))]
        found = [n for n, view in enumerate(views) if event in (view, view.label, view.place, str(view))]
        if not found:
            known = list(dict.fromkeys(view.label for view in views))
            hint = did_you_mean(str(event), known) or f"events: {', '.join(known)}"
            raise PtxmmError(f"the execution has no event `{event}`", kind="usage", hint=hint)
        return found


class Examples(Struct, frozen=True):
    """An execution for each final state that was ``found``; all of them iff ``status`` is ``complete``."""

    status: Status
    found: tuple[Example, ...]


def examples(
    test: Test, model: Model, *, state: Proposition | None = None, limits: Limits | None = None, all_state: bool = False
) -> Examples:
    """An execution for each final state of ``test``; with ``state`` for those that it holds in.

    Raises ``PtxmmError`` as ``outcomes.check`` does.
    """
    check_compatible(test, model)
    what = observed(test, all_state)
    if state is not None:
        asked = terms(state)
        whole = observed(test, True)
        what = Observed(
            tuple(t for t in whole.registers if t in what.registers or t in asked),
            tuple(t for t in whole.memory if t in what.memory or t in asked),
        )
    states = final_states(Question(test, model, what, limits or Limits()))
    found = []
    witnesses = states.witnesses(what)
    for row in states.rows:
        if state is None or evaluate(state, row):
            witness = witnesses[values(what, row)]
            assigned, rebuilt = rebuild(states.test, model, witness)
            shown = drawn(assigned, rebuilt)
            found.append(Example(outcome(test, what, row), shown, model, Views(assigned, rebuilt)))
    return Examples(states.status, tuple(found))
