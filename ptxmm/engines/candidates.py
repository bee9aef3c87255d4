"""Executions of one choice of paths: every reads-from whose values agree with the paths, judged by the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ptxmm.engines.orders import Judge
from ptxmm.events.domains import Domains
from ptxmm.events.execution import Layout, initial_value
from ptxmm.events.expressions import Node, evaluate
from ptxmm.events.trace import Cell, Trace


@dataclass(frozen=True, slots=True)
class Path:
    """What is executed of a thread's trace: its first ``length`` events (a thread may wait for ever half-way)."""

    trace: Trace
    length: int

    @property
    def constraints(self) -> list[tuple[Node, int]]:
        """What the values must meet for the thread to come this far."""
        return [(node, value) for node, value, position in self.trace.constraints if position <= self.length]


@dataclass(slots=True)
class Candidate:
    """A complete reads-from that the model does not reject outright.

    ``rf`` as a relation; ``sources[r]`` the writes of the chunks of read r; ``values`` by event number; ``leaves`` by
    thread and number of the read; ``co`` coherence order as far as it follows already; ``flagging``: some flag that
    is not known yet may hold.
    """

    rf: int
    sources: dict[int, list[tuple[int, int, int]]]
    values: list[int | None]
    leaves: list[list[int | None]]
    co: int
    flagging: bool


def chunks(layout: Layout, cell: Cell, domains: Domains | None) -> tuple[tuple[int, int], ...]:
    """How a read of ``cell`` may be torn: (first byte, size) of the parts that may come from different writes.

    Where the values of a cell differ in one byte only, the whole is one part: tearing gives nothing new (A11).
    """
    size = cell[2]
    values: set[int] = set()
    for w in layout.writes[cell]:
        event = layout.events[w]
        if event.value is None or event.value.value is not None:
            value = initial_value(layout.scene.test, cell) if event.value is None else event.value.value
            values.add(value or 0)
        else:
            possible = None if domains is None else domains.cell(cell)
            if possible is None:
                return tuple((i, 1) for i in range(size))
            values |= possible
    first = next(iter(values))
    varying = [i for i in range(size) if any((v ^ first) >> 8 * i & 255 for v in values)]
    borders = [0, *varying[1:], size]
    return tuple((a, b - a) for a, b in pairwise(borders))


class Candidates:
    """The search for reads-from, read by read, part by part."""

    __slots__ = ("_constraints", "_items", "_judge", "_layout", "_makes_values", "_open", "_options", "_values")

    def __init__(
        self, layout: Layout, paths: Sequence[Path], judge: Judge, tear: bool, domains: Domains | None
    ) -> None:
        self._layout = layout
        self._judge = judge
        self._constraints = [(t, node, value) for t, path in enumerate(paths) for node, value in path.constraints]
        self._makes_values = layout.makes_values()
        self._items: list[tuple[int, int, int]] = []
        self._options: list[list[int]] = []
        for r in layout.reads:
            cell = layout.events[r].cell
            assert cell is not None
            parts = chunks(layout, cell, domains) if tear and len(layout.writes[cell]) > 1 else ((0, cell[2]),)
            own = layout.numbers.get((layout.events[r].id, "W"))
            for first, size in parts:
                self._items.append((r, first, size))
                self._options.append([w for w in layout.writes[cell] if w != own])
        self._open: list[tuple[int, int, Node]] = []  # writes of values that reads decide
        self._values: list[int | None] = [None] * len(layout.events)
        for i, e in enumerate(layout.events):
            if e.op is None and e.cell is not None:
                self._values[i] = initial_value(layout.scene.test, e.cell)
            elif e.kind == "W" and e.value is not None:
                self._values[i] = e.value.value
                if e.value.value is None:
                    self._open.append((i, layout.thread_of[i], e.value))

    def search(self, found_flags: set[str]) -> Iterator[Candidate]:
        """Every candidate. ``found_flags``: flags known already (read while the search runs)."""
        self._drop_impossible()
        leaves: list[list[int | None]] = [[None] * len(reads) for reads in self._layout.leaves]
        state = Candidate(0, {}, self._values.copy(), leaves, 0, False)
        if self._meets(state):
            yield from self._extend(0, state, found_flags)

    def _drop_impossible(self) -> None:
        """Leave out writes that no reads-from at all can take: with two reads the search itself is as quick."""
        n = self._layout.algebra.n
        if len(self._items) > 2:
            for (r, _, _), options in zip(self._items, self._options, strict=True):
                options[:] = [w for w in options if self._judge.partial(1 << (w * n + r)) is not None]

    def _extend(self, k: int, state: Candidate, found_flags: set[str]) -> Iterator[Candidate]:
        self._judge.check()
        if not self._items:
            judged = self._judge.partial(0)
            if judged is not None:
                state.co, state.flagging = judged[0], self._judge.may_flag(judged[1], found_flags)
                yield state
            return
        r, first, size = self._items[k]
        n = self._layout.algebra.n
        for w in self._options[k]:
            rf = state.rf | 1 << (w * n + r)
            if rf != state.rf and not self._layout.algebra.acyclic(rf | self._makes_values):
                continue
            sources = {**state.sources, r: [*state.sources.get(r, ()), (first, size, w)]}
            following = Candidate(rf, sources, state.values.copy(), [x.copy() for x in state.leaves], 0, False)
            self._propagate(following)
            if not self._meets(following):
                continue
            judged = self._judge.partial(rf)
            if judged is None:
                continue
            if k + 1 < len(self._items):
                yield from self._extend(k + 1, following, found_flags)
            else:
                following.co, following.flagging = judged[0], self._judge.may_flag(judged[1], found_flags)
                yield following

    def _propagate(self, state: Candidate) -> None:
        """Give values to the reads whose sources have some, and to the writes that follow."""
        layout = self._layout
        changed = True
        while changed:
            changed = False
            for t, reads in enumerate(layout.leaves):
                for i, r in enumerate(reads):
                    if state.values[r] is None and r in state.sources and self._complete(r, state):
                        value = self._read_value(r, state)
                        if value is not None:
                            state.values[r] = state.leaves[t][i] = value
                            changed = True
            if changed:
                for i, t, node in self._open:
                    if state.values[i] is None:
                        state.values[i] = evaluate(node, state.leaves[t])

    def _complete(self, r: int, state: Candidate) -> bool:
        event = self._layout.events[r]
        return event.cell is not None and sum(s for _, s, _ in state.sources[r]) == event.cell[2]

    def _read_value(self, r: int, state: Candidate) -> int | None:
        value = 0
        for first, size, w in state.sources[r]:
            written = state.values[w]
            if written is None:
                return None
            value |= (written >> 8 * first & ((1 << 8 * size) - 1)) << 8 * first
        return value

    def _meets(self, state: Candidate) -> bool:
        """Whether no constraint fails that can be decided yet."""
        for t, node, expected in self._constraints:
            value = evaluate(node, state.leaves[t])
            if value is not None and value != expected:
                return False
        return True
