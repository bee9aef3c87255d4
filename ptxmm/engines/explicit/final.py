"""Final values of memory: which writes an observed element may show, and its value for a choice of last writes.

A final value is what a read after the end may return (8.9.4, 8.10.6): each byte that of any co-maximal write that
covers it. Where reads are not torn, the bytes of a location come from one write unless writes of several sizes
overlap. That of an mbarrier is the number of phases it has completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import MappingProxyType

from msgspec import Struct

from ptxmm.engines.explicit.kept import Kept
from ptxmm.events.explicit.relations.execution import Layout, initial_value
from ptxmm.events.explicit.trace import Cell
from ptxmm.program.condition import MemoryTerm, Proposition, State, terms
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.shared.undetermined import untorn_finals
from ptxmm.program.test import Test

_MOST = 1 << 12
"""The most final memories that are remembered."""

Completed = Mapping[tuple[str, int], int]
"""How many phases each mbarrier (physical object and offset) has completed."""


class Piece(Struct, frozen=True):
    """Bytes of an observed element: the slot that they are chosen with, None if no thread writes them."""

    slot: Cell | None
    key: str
    offset: int
    size: int


def element(test: Test, term: MemoryTerm) -> Cell:
    """The physical bytes that ``term`` shows."""
    item = test.objects[term.key]
    return item.physical, term.index * item.type.bytes, item.type.bytes


def pieces(cell: Cell, slots: Iterable[Cell]) -> tuple[Piece, ...]:
    """``cell`` cut at the borders of the slots, in ascending order."""
    key, first, size = cell
    end = first + size
    found: list[Piece] = []
    position = first
    for other in sorted(c for c in slots if c[0] == key and c[1] < end and first < c[1] + c[2]):
        start, stop = max(first, other[1]), min(end, other[1] + other[2])
        if position < start:
            found.append(Piece(None, key, position, start - position))
        found.append(Piece(other, key, start, stop - start))
        position = stop
    if position < end:
        found.append(Piece(None, key, position, end - position))
    return tuple(found)


def choices(layout: Layout, torn: Callable[[str], bool]) -> dict[Cell, tuple[int, ...]]:
    """The bytes whose last write is chosen at once, each with the writes of threads that cover them: one by one where
    there are several writes, of objects of which values may be ``torn``."""
    ranges: dict[Cell, list[int]] = {}
    for i in range(layout.initial_first):
        event = layout.events[i]
        if event.kind == "W" and event.cell is not None:
            ranges.setdefault(event.cell, []).append(i)
    found: dict[Cell, tuple[int, ...]] = {}
    for group in _touching(sorted(ranges)):
        if len(group) == 1 and not (len(ranges[group[0]]) > 1 and torn(group[0][0])):
            found[group[0]] = tuple(ranges[group[0]])
            continue
        key, first = group[0][:2]
        for byte in range(first, max(c[1] + c[2] for c in group)):
            covering = [w for c in group if c[1] <= byte < c[1] + c[2] for w in ranges[c]]
            found[key, byte, 1] = tuple(covering)
    return found


def _touching(ordered: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Groups of ranges that overlap, directly or through others."""
    group: list[Cell] = []
    end = 0
    for cell in ordered:
        if group and (cell[0] != group[0][0] or cell[1] >= end):
            yield group
            group = []
        end = max(end, cell[1] + cell[2]) if group else cell[1] + cell[2]
        group.append(cell)
    if group:
        yield group


class Finals:
    """The final memory of the executions of one layout, as far as ``wanted`` shows it.

    ``pieces`` gives the parts of each wanted element; ``slots`` the bytes chosen at once that matter, each with the
    writes that cover them. ``tear``: a value may be torn. ``known``: the final memory for what decides it.
    """

    __slots__ = ("_layout", "_mbarriers", "known", "pieces", "slots", "test")

    def __init__(self, test: Test, layout: Layout, wanted: Iterable[MemoryTerm], tear: bool) -> None:
        self.test = test
        self._layout = layout
        self.known: Kept[object, dict[tuple[str, int], int]] = Kept(_MOST)
        wanted = tuple(wanted)
        known = mbarriers(test.threads, test.objects) if any(_is_word(test, t) for t in wanted) else frozenset()
        self._mbarriers = [t for t in wanted if t.key in known]
        untorn = untorn_finals(test) if tear else frozenset()
        slots = choices(layout, lambda key: tear and key not in untorn)
        self.pieces = {t: pieces(element(test, t), slots) for t in wanted if t.key not in known}
        self.slots: dict[Cell, tuple[int, ...]] = {}
        for parts in self.pieces.values():
            for part in parts:
                if part.slot is not None:
                    self.slots.setdefault(part.slot, slots[part.slot])

    def options(self, co: int) -> dict[Cell, list[int]]:
        """For each slot the writes that may be its last: no other one that covers it is after them in ``co``."""
        known: dict[tuple[int, ...], list[int]] = {}
        found = {}
        for slot, writes in self.slots.items():
            if writes not in known:
                mask = 0
                for w in writes:
                    mask |= 1 << w
                known[writes] = [w for w in writes if not self._layout.algebra.successors(co, w) & mask]
            found[slot] = known[writes]
        return found

    def distinct(
        self, options: Mapping[Cell, Sequence[int]], values: Sequence[int | None]
    ) -> dict[Cell, Sequence[int]]:
        """``options``, but of those that leave the same value in a slot only one."""
        found = {}
        for slot, writes in options.items():
            if len(writes) > 1:
                by_value: dict[int, int] = {}
                for w in writes:
                    by_value.setdefault(self.value(slot, w, values), w)
                writes = list(by_value.values())
            found[slot] = writes
        return found

    def lasts(
        self, options: Mapping[Cell, Sequence[int]], chosen: Mapping[Cell, int] = MappingProxyType({})
    ) -> Iterator[dict[Cell, int]]:
        """Every choice of last writes among ``options`` with those of ``chosen``."""
        still_open = {slot: writes for slot, writes in options.items() if slot not in chosen}
        for selection in product(*still_open.values()):
            yield {**chosen, **dict(zip(still_open, selection, strict=True))}

    def value(self, slot: Cell, w: int, values: Sequence[int | None]) -> int:
        """What the write ``w`` leaves in ``slot``; ``values`` by event number."""
        of = self._layout.events[w].cell
        assert of is not None
        return (values[w] or 0) >> 8 * (slot[1] - of[1]) & ((1 << 8 * slot[2]) - 1)

    def memory(
        self, last: Mapping[Cell, int], values: Sequence[int | None], completed: Completed
    ) -> dict[tuple[str, int], int]:
        """The value of every wanted element for a choice of last writes."""
        result = {}
        for term, parts in self.pieces.items():
            value, shift = 0, 0
            for part in parts:
                if part.slot is None:
                    piece = initial_value(self.test, (part.key, part.offset, part.size))
                else:
                    held = self.value(part.slot, last[part.slot], values)
                    piece = held >> 8 * (part.offset - part.slot[1]) & ((1 << 8 * part.size) - 1)
                value |= piece << shift
                shift += 8 * part.size
            result[term.key, term.index] = value
        for term in self._mbarriers:
            result[term.key, term.index] = completed.get(element(self.test, term)[:2], 0)
        return result


def _is_word(test: Test, term: MemoryTerm) -> bool:
    """Whether ``term`` may be an mbarrier at all."""
    item = test.objects[term.key]
    return item.space == "shared" and item.type.bytes == 8


def memory_terms(*propositions: Proposition | None) -> list[MemoryTerm]:
    """The memory elements that propositions name."""
    return [t for p in propositions if p is not None for t in terms(p) if isinstance(t, MemoryTerm)]


def restrict(state: State, registers: Iterable[tuple[int, str]], memory: Iterable[tuple[str, int]]) -> State:
    """``state`` with only the given registers and elements."""
    return State({r: state.registers[r] for r in registers}, {m: state.memory[m] for m in memory})
