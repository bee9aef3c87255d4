"""Which values the cells of memory may ever hold: an over-approximation, by rounds from the initial values.

No value is made of itself: reads-from with what decides the values and the addresses of writes has no cycle. So a
value passes each write at most once. It starts with a constant; one round for that and one for each write of what
reads decide reach all of them. Whether a write is executed is another matter: a model may let a guard hold because of
what it guards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod

from ptxmm.events.explicit.barriers.exchanges import possible
from ptxmm.events.explicit.interpreter import run
from ptxmm.events.explicit.program import Program
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.relations.execution import initial_value, split
from ptxmm.events.explicit.trace import Cell, Event, Trace
from ptxmm.events.explicit.values.arithmetic import COMPARISONS
from ptxmm.events.explicit.values.node import Node, apply, evaluate, leaves_of
from ptxmm.program.shared.tensors import field_start
from ptxmm.program.test import Test

LIMIT = 4096
"""The largest number of combinations of read values that one expression is evaluated for."""


def traces(
    program: Program,
    domains: Domains | None,
    unroll: int,
    readings: Readings,
    check: Callable[[], None],
    prune: bool = True,
) -> list[Trace]:
    """Every path of a thread, up to the bound, also those that end ``impossible`` with the given ``domains``.

    ``prune``: leave out the branches that ``domains`` rule out.
    """
    found: list[Trace] = []
    work: list[tuple[int, ...]] = [()]
    domain = None if domains is None else domains.values_of
    while work:
        check()
        trace = run(program, work.pop(), domain=domain, unroll=unroll, readings=readings, prune=prune)
        work += trace.forks
        found.append(trace)
    return found


class Domains:
    """The values that memory may hold: of each range that some write writes, those it may write; elsewhere the initial
    ones. ``tear``: a read may mix the bytes of several writes."""

    __slots__ = ("_held", "_overlapping", "_tear", "_test", "_written")

    def __init__(self, test: Test, written: Mapping[Cell, frozenset[int] | None], tear: bool) -> None:
        self._test = test
        self._written = written
        self._tear = tear
        self._held: dict[Cell, frozenset[int] | None] = {}
        self._overlapping: dict[str, list[Cell]] = {}
        for cell in written:
            self._overlapping.setdefault(cell[0], []).append(cell)

    def cell(self, cell: Cell) -> frozenset[int] | None:
        """The values of ``cell``; None where they are too many."""
        if cell not in self._held:
            self._held[cell] = self._values(cell)
        return self._held[cell]

    def _values(self, cell: Cell) -> frozenset[int] | None:
        key, first, size = cell
        end = first + size
        writes = [w for w in self._overlapping.get(key, ()) if w[1] < end and first < w[1] + w[2]]
        initial = initial_value(self._test, cell)
        if not writes:
            return frozenset((initial,))
        if all(w[1] <= first and end <= w[1] + w[2] for w in writes):
            return self._covered(cell, writes, initial)
        # Writes of other sizes: each part between their borders by itself.
        inside = [(key, max(first, w[1]), min(end, w[1] + w[2]) - max(first, w[1])) for w in writes]
        found = frozenset((0,))
        position = first
        for part in [*sorted(split(inside)), (key, end, 0)]:
            gap = part[1] - position
            if gap > 0:
                found = frozenset(v | self._initial(key, position, gap, first) for v in found)
            position = part[1] + part[2]
            if part[2]:
                values = self.cell(part)
                if values is None or len(values) * len(found) > LIMIT:
                    return None
                shift = 8 * (part[1] - first)
                found = frozenset(v | x << shift for v in found for x in values)
        return found

    def _initial(self, key: str, position: int, size: int, first: int) -> int:
        return initial_value(self._test, (key, position, size)) << 8 * (position - first)

    def _covered(self, cell: Cell, writes: Sequence[Cell], initial: int) -> frozenset[int] | None:
        """The values of a cell that each of ``writes`` covers."""
        mask = (1 << 8 * cell[2]) - 1
        found = {initial}
        for w in writes:
            values = self._written[w]
            if values is None:
                return None
            found |= {v >> 8 * (cell[1] - w[1]) & mask for v in values}
        return _mixed(frozenset(found), [(i, i + 1) for i in range(cell[2])]) if self._tear else frozenset(found)

    def _read(self, trace: Trace, number: int) -> frozenset[int] | None:
        read = trace.reads[number]
        if read.kind != "R":
            exchange = trace.exchange_of(number)
            if exchange is None:
                return None  # a token of an mbarrier
            return possible(*exchange, lambda t: self._written.get(exchange[0].cell(t), frozenset()))
        if read.cell is None:
            return frozenset((0,))
        return self._fields(read.cell) if read.reads_map else self.cell(read.cell)

    def _fields(self, cell: Cell) -> frozenset[int] | None:
        """The values of a tensor map, each field as one write left it; as ``cell`` where writes have other sizes."""
        end = cell[1] + cell[2]
        writes = [w for w in self._overlapping.get(cell[0], ()) if w[1] < end and cell[1] < w[1] + w[2]]
        if any(w != cell for w in writes):
            return self.cell(cell)
        found = {initial_value(self._test, cell)}
        for w in writes:
            values = self._written[w]
            if values is None:
                return None
            found |= values
        starts = [*sorted({field_start(byte) for byte in range(cell[2])}), cell[2]]
        return _mixed(frozenset(found), list(pairwise(starts))) if self._tear else frozenset(found)

    def values_of(self, node: Node, trace: Trace, chosen: bool = True) -> frozenset[int] | None:
        """The values of an expression over the reads of ``trace``; None: too many.

        ``chosen``: only with values of its reads that agree with the choices the path has made.
        """
        if node.value is not None:
            return frozenset((node.value,))
        numbers = leaves_of(node)
        possible = {i: self._read(trace, i) for i in numbers}
        choices = [values for values in possible.values() if values is not None]
        if len(choices) < len(numbers) or prod(map(len, choices)) > LIMIT:
            return _loosely(node, possible)
        known = set(numbers)
        constraints = [(c, v) for c, v, _ in trace.constraints if chosen and known.issuperset(leaves_of(c))]
        leaves: list[int | None] = [None] * len(trace.reads)
        found = set()
        for selection in product(*choices):
            for i, value in zip(numbers, selection, strict=True):
                leaves[i] = value
            if all(evaluate(c, leaves) == v for c, v in constraints):
                result = evaluate(node, leaves)
                assert result is not None
                found.add(result)
        return frozenset(found)


def _loosely(node: Node, leaves: Mapping[int, frozenset[int] | None]) -> frozenset[int] | None:
    """The values of ``node`` if each operand had its values independently of the others; None: too many."""
    done: dict[int, frozenset[int] | None] = {}
    stack = [node]
    while stack:
        top = stack[-1]
        waiting = [a for a in top.args if id(a) not in done]
        if id(top) in done:
            stack.pop()
        elif top.value is not None:
            done[id(top)] = frozenset((top.value,))
        elif top.op == "leaf":
            done[id(top)] = leaves[top.number]
        elif waiting:
            stack += waiting
        else:
            done[id(top)] = _combined(top, [done[id(a)] for a in top.args])
    return done[id(node)]


def _combined(node: Node, operands: Sequence[frozenset[int] | None]) -> frozenset[int] | None:
    """The values of an operation for any choice of its operands; None: too many."""
    choices = [values for values in operands if values is not None]
    if len(choices) == len(operands) and prod(map(len, choices)) <= LIMIT:
        return frozenset(v for v in (apply(node, selection) for selection in product(*choices)) if v is not None)
    if node.op in COMPARISONS:
        return frozenset((0, 1))
    if node.op == "and" and any(len(c) == 1 for c in choices):
        mask = next(next(iter(c)) for c in choices if len(c) == 1)
        if mask.bit_count() <= 12:
            return frozenset(_parts(mask))
    return None


def _parts(mask: int) -> Iterator[int]:
    """Every number whose bits are all in ``mask``."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask
    yield 0


def possible_values(
    test: Test, programs: Iterable[Program], unroll: int, readings: Readings, check: Callable[[], None]
) -> Domains:
    """The domains of all memory."""
    programs = tuple(programs)
    cells: dict[Cell, frozenset[int] | None] = {}
    rounds = 0
    while True:
        domains = Domains(test, cells, readings.tear)
        grown: dict[Cell, frozenset[int] | None] = dict(cells)
        found: list[list[Trace]] = []
        for program in programs:
            # Both ways of every branch: what comes after a branch has joined does not depend on it (A21), so its
            # writes may be what the branch reads; and only the model says whether those inside may be.
            paths = traces(program, domains, unroll, readings, check, prune=False)
            found.append(paths)
            for trace in paths:
                _write_all(trace, domains, grown)
                for exchange in trace.exchanges:
                    _grow(exchange.cell(trace.thread), domains.values_of(exchange.operand, trace), grown)
        rounds += 1
        if grown == cells or rounds > _longest(found):
            return Domains(test, grown, readings.tear)
        cells = grown


def _longest(found: Sequence[Sequence[Trace]]) -> int:
    """How many writes of what reads decide, and exchanges, a value may pass at most; ``found``: paths by thread.

    A value stays among the cells that reads and writes of it link. Where addresses are open, these are not known yet,
    and all writes count.
    """
    everything = sum(
        max((t.lost + len(t.exchanges) + sum(map(_open, t.events)) for t in paths), default=0) for paths in found
    )
    events = [e for paths in found for t in paths for e in t.events]
    if any(e.addr for e in events) or any(t.lost or t.exchanges for paths in found for t in paths):
        return everything
    root = _linked(found)
    longest = Counter[Cell]()
    for paths in found:
        most = Counter[Cell]()
        for trace in paths:
            most |= Counter(root(e.cell) for e in trace.events if _open(e) and e.cell is not None)
        longest += most
    return max(longest.values(), default=0)


def _linked(found: Sequence[Sequence[Trace]]) -> Callable[[Cell], Cell]:
    """What stands for all cells that a value may pass between: those that overlap, and those of a write and of the
    reads that it depends on."""
    every = [trace for paths in found for trace in paths]
    ordered = sorted({e.cell for trace in every for e in trace.events if e.cell is not None})
    parent = {cell: cell for cell in ordered}

    def root(cell: Cell) -> Cell:
        while parent[cell] != cell:
            cell = parent[cell]
        return cell

    key, end = "", 0
    for last, cell in pairwise([*ordered[:1], *ordered]):
        if cell[0] == key and cell[1] < end:
            parent[root(cell)] = root(last)
        end = max(end if cell[0] == key else 0, cell[1] + cell[2])
        key = cell[0]
    for trace in every:
        for event in filter(_open, trace.events):
            assert event.cell is not None and event.value is not None
            for number, read in enumerate(trace.reads):
                if event.value.reads >> number & 1 and read.cell is not None:
                    parent[root(read.cell)] = root(event.cell)
    return root


def _open(event: Event) -> bool:
    """Whether ``event`` writes what reads decide, or where."""
    return event.kind == "W" and event.value is not None and (event.value.value is None or event.addr != 0)


def _write_all(trace: Trace, domains: Domains, into: dict[Cell, frozenset[int] | None]) -> None:
    """Add what the writes of ``trace`` may write."""
    for event in trace.events:
        if event.kind != "W" or event.cell is None or event.value is None:
            continue
        _grow(event.cell, domains.values_of(event.value, trace), into)


def _grow(cell: Cell, values: frozenset[int] | None, into: dict[Cell, frozenset[int] | None]) -> None:
    """Add ``values`` to those of ``cell``."""
    held = into.get(cell, frozenset())
    union = None if held is None or values is None else held | values
    into[cell] = None if union is None or len(union) > LIMIT else union


def _mixed(values: frozenset[int] | None, parts: Sequence[tuple[int, int]]) -> frozenset[int] | None:
    """Every value whose parts (first byte, end) each come from one of ``values``; None where they are too many."""
    if values is None:
        return None
    columns = [sorted({v >> 8 * a & ((1 << 8 * (b - a)) - 1) for v in values}) for a, b in parts]
    if prod(map(len, columns)) > LIMIT:
        return None
    starts = [a for a, _ in parts]
    return frozenset(sum(v << 8 * a for v, a in zip(choice, starts, strict=True)) for choice in product(*columns))
