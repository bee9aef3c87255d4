"""Which values each read may return: a fixpoint over what the writes of a program may write.

Values out of thin air are excluded (PTX ISA 8.10.4). So a value is made by a chain of distinct writes, and no write
passes on to a read a value made from what that read returned: the fixpoint needs no more rounds than there are writes
that compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.machine import Machine
from ptxmm.events.symbolic.program import Cell, initial_value
from ptxmm.events.symbolic.values.domain import Bits
from ptxmm.program.identity import EventId
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Imm, Store, Sym, elements
from ptxmm.relations.formula import TRUE


class Possible:
    """The values found so far: for each cell those of each write to it, the initial write's under None.

    Each value comes with its support: the writes, as bits, that every chain of reads and writes to it goes through.
    """

    def __init__(
        self,
        test: Test,
        never: frozenset[tuple[EventId, EventId | None]] = frozenset(),
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        """``never``: reads, each with a write that it does not read from (None: the initial one); ``hidden``: objects
        whose contents nothing sees."""
        self._test = test
        self._hidden = hidden
        self._known = never
        self._values: dict[Cell, dict[EventId | None, dict[int, int]]] = {}
        self._never = never
        self._any: set[Cell] = set()
        self._widening = False
        self._bits: dict[EventId, int] = {}
        for index, thread in enumerate(test.threads):
            for pc, op in enumerate(thread.body):
                if not isinstance(op, Store) or len(op.values) > 1 or not isinstance(op.address.base, Sym):
                    continue
                if isinstance(op.values[0], Imm) and len(elements(op, True)) == 1:
                    item = test.objects[op.address.base.name]
                    offset = op.address.base.offset + op.address.offset
                    if item.physical in hidden:
                        continue
                    if 0 <= offset <= item.size - op.type.bytes:
                        value = op.values[0].value & ((1 << op.type.bits) - 1)
                        site = EventId(index, pc)
                        self._cell((item.physical, offset, op.type.bytes))[site] = {value: self._bit(site)}

    def of(self, cell: Cell, read: EventId) -> dict[int, int] | None:
        """The values that the read ``read`` may find in ``cell``, in ascending order, each with its support; None where
        it may find any."""
        if cell in self._any:
            return None
        found: dict[int, int] = {}
        for write, values in self._cell(cell).items():
            if write != read and (read, write) not in self._never:
                for value, through in values.items():
                    found[value] = found.get(value, through) & through
        return dict(sorted(found.items()))

    def widen(self) -> None:
        """From now on a cell for which another value is found may hold any value: it is known by its bits."""
        self._widening = True

    def forget(self, key: str) -> None:
        """Drop what is known of the object ``key``, whose cells changed."""
        for cell in [c for c in self._values if c[0] == key]:
            del self._values[cell]
        self._any = {cell for cell in self._any if cell[0] != key}

    def torn(self) -> dict[str, set[int]]:
        """Where to divide the cells whose values differ from each other in more than one byte, for each object.

        If they differ in one byte only, it makes no difference whether accesses are torn (A11).
        """
        found: dict[str, set[int]] = {}
        for key, offset, size in self._any:
            found.setdefault(key, set()).update(range(offset + 1, offset + size))
        for (key, offset, size), writes in self._values.items():
            values = {v for w in writes.values() for v in w}
            first = next(iter(values))
            differing = 0
            for value in values:
                differing |= value ^ first
            if differing & (differing - 1):
                places = [offset + i for i in range(size) if differing >> 8 * i & 0xFF]
                if len(places) > 1:
                    found.setdefault(key, set()).update(places[1:])
        return found

    def learn(self, machine: Machine, events: Iterable[Event]) -> bool:
        """Take in what the writes among ``events`` of ``machine`` may write; whether that was news.

        A write does not make a value that only a chain through the write itself leads to.
        """
        news = False
        for event in events:
            if event.kind != "W":
                continue
            bit = self._bit(event.id)
            for place in event.places:
                for cell in machine.cells(place):
                    shift, mask = 8 * (cell[1] - place.offset), (1 << 8 * cell[2]) - 1
                    if cell in self._any:
                        continue
                    if isinstance(event.value, Bits):
                        self._any.add(cell)
                        news = True
                        continue
                    known = self._cell(cell).setdefault(event.id, {})
                    for value in event.value:
                        through = event.value.support.get(value, 0)
                        if through & bit:
                            continue
                        part, through = value >> shift & mask, through | bit
                        if self._widening and part not in known:
                            self._any.add(cell)
                            news = True
                        elif part not in known or known[part] & through != known[part]:
                            known[part] = known.get(part, through) & through
                            news = True
        return news

    def learn_dependent(self, machine: Machine) -> bool:
        """Take in which writes of ``machine`` depend on which reads; whether that was news."""
        known, self._never = self._never, self._known | _dependent(machine.events)
        return known != self._never

    def _bit(self, write: EventId) -> int:
        return self._bits.setdefault(write, 1 << len(self._bits))

    def _cell(self, cell: Cell) -> dict[EventId | None, dict[int, int]]:
        if cell not in self._values:
            self._values[cell] = {None: {initial_value(self._test, cell, self._hidden): 0}}
        return self._values[cell]


def rounds(machine: Machine) -> int:
    """After how many executions every value is known that is not out of thin air.

    It goes through each write once at most, from object to object where writes depend on reads.
    """
    events = machine.events
    dependent = [e for e in events if e.kind == "W" and (e.data or e.address)]
    makers: Counter[str] = Counter()
    onward: dict[str, set[str]] = {}
    for event in dependent:
        here = {place.physical for place in event.places}
        makers.update(here)
        reads = {*event.data, *event.address}
        stack = list(reads)
        while stack:
            read = stack.pop()
            if read < 0 or events[read].kind != "R":  # what threads give each other may come from anywhere
                return 2 + len(dependent)
            for place in events[read].places:
                onward.setdefault(place.physical, set()).update(here)
            stack += events[read].address.keys() - reads
            reads |= events[read].address.keys()
    return 2 + max((sum(makers[key] for key in _reached(onward, start)) for start in makers), default=0)


def _reached(onward: Mapping[str, set[str]], start: str) -> set[str]:
    """What ``start`` leads to, and itself."""
    found, stack = {start}, [start]
    while stack:
        more = onward.get(stack.pop(), set()) - found
        found |= more
        stack += more
    return found


def _dependent(events: list[Event]) -> set[tuple[EventId, EventId | None]]:
    """(read, write) where the write depends on the read whenever both are executed."""
    reads: dict[int, set[EventId]] = {}
    found: dict[EventId, set[EventId]] = {}
    for event in events:
        if event.kind not in ("R", "W"):
            continue
        certain = (r for part in (event.address, event.data) for r, when in part.items() if when == TRUE)
        direct = [r for r in certain if 0 <= r != event.number]  # below 0: what another thread read
        below = {events[r].id for r in direct}.union(*(reads.get(r, set()) for r in direct))
        reads[event.number] = below
        if event.kind == "W":
            found[event.id] = found[event.id] & below if event.id in found else set(below)
    return {(read, write) for write, below in found.items() for read in below}
