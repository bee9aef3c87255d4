"""Executions of one choice of paths: every reads-from whose values agree with the paths, judged by the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from ptxmm.cat.evaluate import Evaluator
from ptxmm.engines.explicit.cases import Path
from ptxmm.engines.explicit.final import Finals
from ptxmm.engines.explicit.orders import Judge
from ptxmm.events.explicit.domains import Domains
from ptxmm.events.explicit.relations.base import makes_values
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom, initial_value
from ptxmm.events.explicit.trace import Cell
from ptxmm.events.explicit.values.node import Node, evaluate, leaves_of
from ptxmm.program.identity import EventId
from ptxmm.program.shared.tensors import field_start


class Part(Struct, frozen=True):
    """Bytes of a read that come from one write: ``size`` bytes from ``offset`` of the object on, in ``cell``."""

    read: int
    cell: Cell
    offset: int
    size: int


class Candidate(Struct):
    """A complete reads-from that the model does not reject outright.

    ``rf`` as relations; ``sources[r]`` the writes of the parts of read r; ``values`` by event number; ``leaves`` by
    thread and number of the leaf; ``co`` coherence order as far as it follows already; ``flagging``: some flag that
    is not known yet may hold.
    """

    rf: ReadsFrom
    sources: dict[int, dict[Part, int]]
    values: list[int | None]
    leaves: list[list[int | None]]
    co: int
    flagging: bool


_Judged = tuple[int, Evaluator[int, int]]
"""Coherence order so far, and an evaluator, of reads-from so far."""

_Alike = tuple[Part, Sequence[int]]
"""Bytes of a read, and writes that all hold the same value there."""


def value_in(value: int, of: Cell, first: int, size: int) -> int:
    """``size`` bytes from ``first`` on (in the object) of a ``value`` of the bytes ``of``."""
    return value >> 8 * (first - of[1]) & ((1 << 8 * size) - 1)


def chunks(layout: Layout, cell: Cell, domains: Domains | None) -> tuple[tuple[int, int], ...]:
    """How a read of ``cell`` may be torn: (first byte, size) of the parts that may come from different writes.

    Where the values of a cell differ in one byte only, the whole is one part: tearing gives nothing new (A11).
    """
    size = cell[2]
    values: set[int] = set()
    for w in layout.writes[cell]:
        event = layout.events[w]
        assert event.cell is not None
        if event.value is None:
            values.add(initial_value(layout.scene.test, cell))
        elif event.value.value is not None:
            values.add(value_in(event.value.value, event.cell, cell[1], size))
        else:
            possible = None if domains is None else domains.cell(cell)
            if possible is None:
                return tuple((i, 1) for i in range(size))
            values |= possible
    first = next(iter(values))
    varying = [i for i in range(size) if any((v ^ first) >> 8 * i & 255 for v in values)]
    borders = [0, *varying[1:], size]
    return tuple((a, b - a) for a, b in pairwise(borders))


def _fields(parts: tuple[tuple[int, int], ...], base: int) -> tuple[tuple[int, int], ...]:
    """The parts of a cell ``base`` bytes into a tensor map, divided between its fields only."""
    end = sum(parts[-1])
    starts = {max(0, field_start(base + first) - base) for first, _ in parts}
    return tuple((a, b - a) for a, b in pairwise((*sorted(starts), end)))


def relevant_reads(
    layout: Layout, finals: Finals, paths: Sequence[Path], registers: Sequence[tuple[int, str]]
) -> frozenset[int]:
    """The reads whose values decide the paths, the observed registers or the observed memory, or whether writes are of
    the same value, directly or through writes."""
    work: list[tuple[int, Node]] = [(t, node) for t, path in enumerate(paths) for node, _ in path.constraints]
    work += [(t, paths[t].trace.registers[name]) for t, name in registers if name in paths[t].trace.registers]
    seen_writes = {w for writes in finals.slots.values() for w in writes}
    test = layout.scene.test
    if test.same_value is not None:
        events = enumerate(layout.events[: layout.initial_first])
        seen_writes |= {w for w, e in events if e.kind == "W" and test.may_race(e.id.site)}
    work += _values_of(layout, seen_writes)
    found: set[int] = set()
    linked: list[set[int]] = [set() for _ in paths]
    while work:
        t, node = work.pop()
        for number in leaves_of(node):
            link = layout.links.get((t, number))
            if link is not None and number not in linked[t]:
                linked[t].add(number)
                work += link.sources
            r = layout.leaves[t][number] if number < len(layout.leaves[t]) else -1
            if r < 0 or r in found:
                continue
            found.add(r)
            new = {w for cell in layout.made_of[r] for w in layout.writes[cell][1:]} - seen_writes
            seen_writes |= new
            work += _values_of(layout, new)
    return frozenset(found)


def _values_of(layout: Layout, writes: Iterable[int]) -> Iterator[tuple[int, Node]]:
    """The threads of writes, and what they write."""
    for w in writes:
        value = layout.events[w].value
        if value is not None:
            yield layout.thread_of[w], value


class Candidates:
    """The search for reads-from, read by read, part by part; first for values, then for the writes that hold them.

    ``tokens``: what arrivals on mbarriers return. ``relevant``: the reads that decide what is asked for; they come
    first, and once they have values ``worthwhile`` says of a candidate, whose other reads have no sources yet, whether
    to go on.
    """

    __slots__ = (
        "_constraints", "_decided", "_open", "_tokens", "_values", "_worthwhile", "judge", "layout", "makes_values",
        "options", "parts", "relevant",
    )  # fmt: skip

    def __init__(
        self,
        layout: Layout,
        paths: Sequence[Path],
        judge: Judge,
        tear: bool,
        domains: Domains | None,
        tokens: Mapping[EventId, int],
        relevant: Collection[int],
        worthwhile: Callable[[Candidate, Evaluator[int, int]], bool],
    ) -> None:
        self.layout = layout
        self.judge = judge
        self._constraints = [(t, node, value) for t, path in enumerate(paths) for node, value in path.constraints]
        self.makes_values = makes_values(layout)
        self._tokens = [(t, number, tokens[id_]) for t, number, id_ in layout.tokens if id_ in tokens]
        self.parts: list[Part] = []
        self.options: list[list[int]] = []
        self._worthwhile = worthwhile
        self.relevant = relevant
        self._divide(tear, domains)
        self._decided = sum(part.read in relevant for part in self.parts)
        self._open: list[tuple[int, int, Node]] = []  # writes of values that reads decide
        self._values: list[int | None] = [None] * len(layout.events)
        for i, e in enumerate(layout.events):
            if i >= layout.initial_first:
                assert e.cell is not None
                self._values[i] = initial_value(layout.scene.test, e.cell)
            elif e.kind == "W" and e.value is not None:
                self._values[i] = e.value.value
                if e.value.value is None:
                    self._open.append((i, layout.thread_of[i], e.value))

    def _divide(self, tear: bool, domains: Domains | None) -> None:
        """Find the parts of reads, the relevant ones first, and what each may be read from."""
        layout = self.layout
        divided: dict[Cell, tuple[tuple[int, int], ...]] = {}
        maps = {e.cell[0]: e.cell[1] for e in layout.events if e.reads_map and e.cell is not None}
        for r in sorted(layout.reads, key=lambda r: r not in self.relevant):
            own = layout.numbers.get((layout.events[r].id, "W"))
            for cell in layout.made_of[r]:
                torn = tear and len(layout.writes[cell]) > 1
                if torn and cell not in divided:
                    divided[cell] = chunks(layout, cell, domains)
                    if cell[0] in maps:
                        divided[cell] = _fields(divided[cell], cell[1] - maps[cell[0]])
                for first, size in divided[cell] if torn else ((0, cell[2]),):
                    self.parts.append(Part(r, cell, cell[1] + first, size))
                    self.options.append([w for w in layout.writes[cell] if w != own])

    def start(self) -> Candidate | None:
        """The reads-from without any source; None if what is known already contradicts the paths.

        It drops options that no reads-from at all can take.
        """
        self._drop_impossible()
        leaves: list[list[int | None]] = [[None] * len(numbers) for numbers in self.layout.leaves]
        state = Candidate(ReadsFrom(), {}, self._values.copy(), leaves, 0, False)
        for t, number, value in self._tokens:
            leaves[t][number] = value
        if self._tokens or self.layout.links:
            self._evaluate_writes(state)
        return state if self.meets(state) else None

    def search(self, state: Candidate, found_flags: set[str]) -> Iterator[Candidate]:
        """Every candidate from ``start()`` on. ``found_flags``: flags known already (read while the search runs)."""
        judged = self.judge.partial(state.rf)
        if judged is not None:
            state.co = judged[0]
            yield from self._extend(0, state, judged, (), found_flags)

    def added(self, rf: ReadsFrom, part: Part, w: int) -> ReadsFrom:
        """``rf`` with ``part`` read from the write ``w``."""
        pair = 1 << (w * self.layout.algebra.n + part.read)
        if self.layout.simple:
            return ReadsFrom(rf.union | pair)
        return ReadsFrom(rf.union | pair, {**rf.cells, part.cell: rf.cells.get(part.cell, 0) | pair})

    def _drop_impossible(self) -> None:
        """Leave out writes that no reads-from at all can take: with two reads the search itself is as quick."""
        if len(self.parts) > 2:
            for part, options in zip(self.parts, self.options, strict=True):
                options[:] = [w for w in options if self.judge.partial(self.added(ReadsFrom(), part, w)) is not None]

    def _extend(
        self, k: int, state: Candidate, judged: _Judged, alike: tuple[_Alike, ...], found_flags: set[str]
    ) -> Iterator[Candidate]:
        """Choose a source for part ``k`` and those after it, or several that hold the same value (``alike``)."""
        self.judge.check()
        if k == len(self.parts):
            yield from self._settle(0, state, judged, alike, found_flags)
            return
        part = self.parts[k]
        for writes in self._by_value(k, state):
            single = len(writes) == 1
            rf = self.added(state.rf, part, writes[0]) if single else state.rf
            if rf.union != state.rf.union and not self.layout.algebra.acyclic(rf.union | self.makes_values):
                continue
            sources = {**state.sources, part.read: {**state.sources.get(part.read, {}), part: writes[0]}}
            following = Candidate(rf, sources, state.values.copy(), [x.copy() for x in state.leaves], judged[0], False)
            self.propagate(following)
            if not self.meets(following):
                continue
            now = self.judge.partial(rf) if single else judged
            if now is None:
                continue
            following.co = now[0]
            rest = alike if single else (*alike, (part, writes))
            more = k + 1 < len(self.parts) or bool(rest)
            if k + 1 < self._decided or not more or self._worthwhile(following, now[1]):
                yield from self._extend(k + 1, following, now, rest, found_flags)

    def _settle(
        self, j: int, state: Candidate, judged: _Judged, alike: tuple[_Alike, ...], found_flags: set[str]
    ) -> Iterator[Candidate]:
        """With all values known, choose one of the writes that hold them."""
        self.judge.check()
        if j == len(alike):
            state.flagging = self.judge.may_flag(judged[1], found_flags)
            yield state
            return
        part, writes = alike[j]
        for w in writes:
            if not self._worthwhile(state, judged[1]):
                return
            rf = self.added(state.rf, part, w)
            if rf.union != state.rf.union and not self.layout.algebra.acyclic(rf.union | self.makes_values):
                continue
            now = self.judge.partial(rf)
            if now is not None:
                sources = {**state.sources, part.read: {**state.sources[part.read], part: w}}
                following = Candidate(rf, sources, state.values, state.leaves, now[0], False)
                yield from self._settle(j + 1, following, now, alike, found_flags)

    def _by_value(self, k: int, state: Candidate) -> list[list[int]]:
        """The writes that part ``k`` may come from, those together that are known to hold the same value there."""
        part, options = self.parts[k], self.options[k]
        if len(options) < 2:
            return [[w] for w in options]
        found: dict[tuple[str, int], list[int]] = {}
        for w in options:
            value, of = state.values[w], self.layout.events[w].cell
            known = value is not None and of is not None
            key = ("value", value_in(value, of, part.offset, part.size)) if known else ("write", w)  # type: ignore[arg-type]
            found.setdefault(key, []).append(w)
        return list(found.values())

    def propagate(self, state: Candidate) -> None:
        """Give values to the reads whose sources have some, and to the writes that follow."""
        layout = self.layout
        changed = True
        while changed:
            changed = False
            for t, reads in enumerate(layout.leaves):
                for i, r in enumerate(reads):
                    if r >= 0 and state.values[r] is None and r in state.sources and self._complete(r, state):
                        value = self._read_value(r, state)
                        if value is not None:
                            state.values[r] = state.leaves[t][i] = value
                            changed = True
            if changed:
                self._evaluate_writes(state)

    def _evaluate_writes(self, state: Candidate) -> None:
        changed = bool(self.layout.links)
        while changed:
            changed = False
            for (t, number), link in self.layout.links.items():
                if state.leaves[t][number] is None:
                    operands = [evaluate(node, state.leaves[u]) for u, node in link.sources]
                    known = [v for v in operands if v is not None]
                    if len(known) == len(operands):
                        state.leaves[t][number] = link.value(known)
                        changed = True
        for i, t, node in self._open:
            if state.values[i] is None:
                state.values[i] = evaluate(node, state.leaves[t])

    def _complete(self, r: int, state: Candidate) -> bool:
        cell = self.layout.events[r].cell
        return cell is not None and sum(part.size for part in state.sources[r]) == cell[2]

    def _read_value(self, r: int, state: Candidate) -> int | None:
        cell = self.layout.events[r].cell
        assert cell is not None
        value = 0
        for part, w in state.sources[r].items():
            written, of = state.values[w], self.layout.events[w].cell
            if written is None or of is None:
                return None
            value |= value_in(written, of, part.offset, part.size) << 8 * (part.offset - cell[1])
        return value

    def meets(self, state: Candidate) -> bool:
        """Whether no constraint fails that can be decided yet."""
        for t, node, expected in self._constraints:
            value = evaluate(node, state.leaves[t])
            if value is not None and value != expected:
                return False
        return True
