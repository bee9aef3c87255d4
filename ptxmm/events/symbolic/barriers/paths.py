"""The paths of a thread through its barriers: which steps it takes there, and with which operands.

A thread is a graph whose nodes are steps with concrete operands. Paths that can't be told apart by what follows share
their nodes, so that a thread with many waits stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.event import Mbarrier, SyncEvent, ThreadEvents
from ptxmm.program.identity import EventId
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

DEPTH = 6
"""How deep conditions are simplified by what a path has decided; it is only a matter of speed."""


class Step(Struct, frozen=True):
    """A step of a thread at a barrier or an mbarrier, with the values that its operands have.

    The fields are those of ``SyncEvent``; ``outcome`` is what a wait returned (None: it did not run), ``result`` what a
    reduction or a vote did (None: that makes no difference to what follows), ``token`` tells whether an arrival writes
    its token to a register and ``counted`` whether the pending count in that token matters.
    """

    id: EventId
    kind: str
    barrier: int = 0
    count: int | None = None
    instance: int | None = None
    mask: int = 0
    place: Mbarrier | None = None
    amount: int = 0
    parity: int | None = None
    state: int | None = None
    state_of: EventId | None = None
    outcome: bool | None = None
    result: int | None = None
    token: bool = False
    counted: bool = False
    no_complete: bool = False
    asynchronous: bool = False
    operation: str = ""
    operands: tuple[int, ...] = ()
    aligned: str | None = None


def _operands(event: SyncEvent) -> dict[str, Mapping[Any, Formula]]:
    """The operands of ``event`` that a ``Step`` has one value of, by the names of its fields."""
    found: dict[str, Mapping[Any, Formula] | None] = {
        "barrier": event.barrier,
        "mask": event.mask,
        "amount": event.amount,
        "count": event.count,
        "parity": event.parity,
        "state": event.state if event.state_of is None else None,
        "place": event.place,
    }
    return {name: domain for name, domain in found.items() if domain is not None}


def arrivals(formulas: Formulas, event: SyncEvent) -> Iterator[tuple[Step, Formula]]:
    """What ``event`` may be if it is executed, with the formulas under which it is; outcomes are left open."""
    operands = _operands(event)
    same = Step(
        event.id,
        event.kind,
        instance=event.instance,
        state_of=event.state_of,
        token=event.tokens is not None,
        counted=event.tokens is not None and event.counted,
        no_complete=event.no_complete,
        asynchronous=event.asynchronous,
        operation=event.operation,
        aligned=event.aligned,
    )
    for items in product(*(domain.items() for domain in (*operands.values(), *event.operands))):
        when = formulas.all([formula for _, formula in items])
        if when != FALSE:
            values = [value for value, _ in items]
            named = dict(zip(operands, values, strict=False))
            yield replace(same, **named, operands=tuple(values[len(operands) :])), when


def matches(formulas: Formulas, event: SyncEvent, arrival: Step) -> Formula:
    """When ``event`` is executed and is ``arrival``; FALSE where it is another step."""
    if (event.id, event.kind, event.state_of) != (arrival.id, arrival.kind, arrival.state_of):
        return FALSE
    if event.operation != arrival.operation or len(event.operands) != len(arrival.operands):
        return FALSE
    parts = [event.presence]
    parts += [domain.get(getattr(arrival, name), FALSE) for name, domain in _operands(event).items()]
    parts += [d.get(v, FALSE) for d, v in zip(event.operands, arrival.operands, strict=True)]
    if arrival.outcome is not None:
        parts.append(event.outcome if arrival.outcome else -event.outcome)
    if arrival.result is not None:
        parts.append(_results(event).get(arrival.result, FALSE))
    return formulas.all(parts)


Object = tuple[object, ...]
"""What steps act on: two steps on different objects don't depend on each other."""


SAME = ("and", "or", "popc", "vote", "redux")
"""Reductions and votes that return the same to all who meet in them (9.7.14.1, .10, .12), by how they begin."""

RESULTS = 4
"""Of how many results at most each is followed apart."""


def _results(event: SyncEvent) -> Mapping[int, Formula]:
    """What ``event`` may return, if all who meet it get the same and these are few."""
    if event.result is None or event.operation.partition(".")[0] not in SAME or not 1 < len(event.result) <= RESULTS:
        return {}
    return event.result


class Node(Struct, frozen=True, eq=False):
    """A step of a thread and what may follow it, by the outcome of a wait, or by what all get who meet in the step
    where that makes a difference to what follows (None for other steps).

    ``step`` is None where the path is at its end: ``ends`` tells whether the thread reaches its end or the bound;
    None: neither, it goes round a spin loop for ever. ``may_exit``: whether the thread may be at its end right after
    this step. ``touches``: the objects that this step and those below act on; ``may_init``, ``must_init``: the
    mbarriers that are initialised on some path or on all paths from here; ``refers``: the arrivals whose tokens are
    used from here on. ``results``: of a step with such results, all that its thread may get there.
    """

    number: int
    step: Step | None
    ends: bool | None
    after: dict[int | None, tuple[Node, ...]]
    may_exit: bool
    touches: frozenset[Object]
    may_init: frozenset[Mbarrier]
    must_init: frozenset[Mbarrier]
    refers: frozenset[EventId]
    results: frozenset[int] = frozenset()

    @property
    def exited(self) -> bool:
        """Whether the thread has reached its end."""
        return self.step is None and self.ends is True


def paths(
    formulas: Formulas, thread: ThreadEvents, object_of: Callable[[Step], Object], check: Callable[[], None]
) -> tuple[Node, ...]:
    """Where the paths of a thread through its barriers begin. ``object_of``: what a step acts on."""
    return _Paths(formulas, thread, object_of, check).starts()


_Conditions = tuple[Formula, ...]
"""What is left of the conditions of all later events, and of the ends, given what a path has decided so far."""


class _Edge(Struct, frozen=True):
    """A way from the conditions before an event to those after it; ``step`` is None if the event does not happen."""

    step: Step | None
    outcome: int | None
    target: _Conditions


class _Paths:
    """Follows all paths at once, event by event; paths with the same conditions ahead are one."""

    def __init__(
        self,
        formulas: Formulas,
        thread: ThreadEvents,
        object_of: Callable[[Step], Object],
        check: Callable[[], None],
    ) -> None:
        self.formulas = formulas
        self.events = thread.barriers
        self.object_of = object_of
        self.check = check
        lost = formulas.both(-thread.completed, -thread.cut)
        self.ends = (thread.completed, thread.cut, lost)
        self.choices = [list(arrivals(formulas, event)) for event in self.events]
        self.results = [_results(event) for event in self.events]
        self.nodes: dict[object, Node] = {}

    def starts(self) -> tuple[Node, ...]:
        """The first steps of the thread."""
        first = [
            c
            for event, found, results in zip(self.events, self.choices, self.results, strict=True)
            for c in (event.presence, event.outcome, *(when for _, when in found), *results.values())
        ] + list(self.ends)
        layers: list[dict[_Conditions, list[_Edge]]] = []
        layer: dict[_Conditions, None] = {tuple(first): None}
        for index in range(len(self.events)):
            self.check()
            edges = {conditions: list(self._edges(index, conditions)) for conditions in layer}
            layers.append(edges)
            layer = dict.fromkeys(edge.target for found in edges.values() for edge in found)
        below = {
            conditions: tuple(
                self._node(None, ends, {})
                for ends, when in zip((True, False, None), conditions, strict=True)
                if when != FALSE
            )
            for conditions in layer
        }
        for edges, results in zip(reversed(layers), reversed(self.results), strict=True):
            self.check()
            all_ = frozenset(results)
            below = {conditions: self._branches(found, below, all_) for conditions, found in edges.items()}
        return below[tuple(first)]

    def _edges(self, index: int, conditions: _Conditions) -> Iterator[_Edge]:
        choices, results = self.choices[index], self.results[index]
        skip = 2 + len(choices) + len(results)
        absent = self._assume(conditions, -conditions[0])
        if absent is not None:
            yield _Edge(None, None, absent[skip:])
        present = self._assume(conditions, conditions[0])
        if present is None:
            return
        for place, (arrival, _) in enumerate(choices, 2):
            self.check()
            here = self._assume(present, present[place])
            if here is None:
                continue
            ways: dict[int, Formula] = {}
            if arrival.kind == "mb.wait":
                ways = {True: here[1], False: -here[1]}
            elif results:
                ways = dict(zip(results, here[2 + len(choices) :], strict=False))
            following = {way: there[skip:] for way, when in ways.items() if (there := self._assume(here, when))}
            if arrival.kind != "mb.wait" and len({*following.values()}) < 2:
                yield _Edge(arrival, None, next(iter(following.values()), here[skip:]))
                continue
            yield from (_Edge(arrival, way, target) for way, target in following.items())

    def _branches(
        self, edges: list[_Edge], below: dict[_Conditions, tuple[Node, ...]], results: frozenset[int]
    ) -> tuple[Node, ...]:
        found: dict[Node, None] = {}
        after: dict[Step, dict[int | None, tuple[Node, ...]]] = {}
        for edge in edges:
            if edge.step is None:
                found.update(dict.fromkeys(below[edge.target]))
            elif below[edge.target]:
                after.setdefault(edge.step, {})[edge.outcome] = below[edge.target]
        for step, following in after.items():
            found[self._node(step, None, following, frozenset() if None in following else results)] = None
        return tuple(found)

    def _node(
        self,
        step: Step | None,
        ends: bool | None,
        after: dict[int | None, tuple[Node, ...]],
        results: frozenset[int] = frozenset(),
    ) -> Node:
        key = (step, ends, tuple((o, tuple(n.number for n in nodes)) for o, nodes in after.items()))
        if key in self.nodes:
            return self.nodes[key]
        below = [n for nodes in after.values() for n in nodes]
        exits = any(n.exited or (n.step is not None and n.step.asynchronous and n.may_exit) for n in below)
        touches = frozenset[Object]().union(*(n.touches for n in below))
        may = frozenset[Mbarrier]().union(*(n.may_init for n in below))
        must = below[0].must_init.intersection(*(n.must_init for n in below)) if below else frozenset[Mbarrier]()
        refers = frozenset[EventId]().union(*(n.refers for n in below))
        if step is not None:
            touches |= {self.object_of(step)}
            if step.kind == "mb.init" and step.place is not None:
                may, must = may | {step.place}, must | {step.place}
            if step.state_of is not None:
                refers |= {step.state_of}
        node = self.nodes[key] = Node(len(self.nodes), step, ends, after, exits, touches, may, must, refers, results)
        return node

    def _assume(self, conditions: _Conditions, condition: Formula) -> _Conditions | None:
        """What is left of ``conditions`` where ``condition`` holds, or None if it can't."""
        if condition == TRUE:
            return conditions
        if condition == FALSE:
            return None
        inner = self.formulas.arguments[condition] if condition > 0 else None
        decided = {condition, *(inner or ())}
        table: dict[Formula, Formula] = {}
        return tuple(self._left(c, decided, table, DEPTH) for c in conditions)

    def _left(self, formula: Formula, decided: set[Formula], table: dict[Formula, Formula], depth: int) -> Formula:
        """``formula`` where all of ``decided`` holds."""
        if formula in decided:
            return TRUE
        if -formula in decided:
            return FALSE
        node = abs(formula)
        if node == TRUE or depth == 0:
            return formula
        if node not in table:
            inner = self.formulas.arguments[node]
            if inner is not None:
                table[node] = self.formulas.all([self._left(i, decided, table, depth - 1) for i in inner])
            else:  # variables of one choice exclude each other
                excluded = any(self.formulas.both(other, node) == FALSE for other in decided)
                table[node] = FALSE if excluded else node
        return table[node] if formula > 0 else -table[node]
