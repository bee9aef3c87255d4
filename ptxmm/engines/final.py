"""Final values of memory: which accessed cells an observed element shows, and its value for a choice of last writes.

A final value is that of any co-maximal write, chosen once for each cell (semantics A7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ptxmm.events.execution import Layout, initial_value
from ptxmm.events.trace import Cell
from ptxmm.program.condition import MemoryTerm, Proposition, State, terms
from ptxmm.program.test import Test


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of an observed element: ``cell`` is the accessed cell they lie in, None if nothing accesses them."""

    cell: Cell | None
    key: str
    offset: int
    size: int


def element(test: Test, term: MemoryTerm) -> Cell:
    """The physical bytes that ``term`` shows."""
    item = test.objects[term.key]
    return item.physical, term.index * item.type.bytes, item.type.bytes


def pieces(cell: Cell, accessed: Iterable[Cell]) -> tuple[Piece, ...]:
    """``cell`` cut at the borders of the accessed cells, in ascending order."""
    key, first, size = cell
    end = first + size
    found: list[Piece] = []
    position = first
    for other in sorted(c for c in accessed if c[0] == key and c[1] < end and first < c[1] + c[2]):
        start, stop = max(first, other[1]), min(end, other[1] + other[2])
        if position < start:
            found.append(Piece(None, key, position, start - position))
        found.append(Piece(other, key, start, stop - start))
        position = stop
    if position < end:
        found.append(Piece(None, key, position, end - position))
    return tuple(found)


class Finals:
    """The final memory of the executions of one layout, as far as ``wanted`` shows it.

    ``pieces`` gives the parts of each wanted element; ``cells`` are the accessed cells that matter.
    """

    __slots__ = ("cells", "pieces", "test")

    def __init__(self, test: Test, layout: Layout, wanted: Iterable[MemoryTerm]) -> None:
        self.test = test
        self.pieces = {t: pieces(element(test, t), layout.cells) for t in wanted}
        found: dict[Cell, None] = {}
        for parts in self.pieces.values():
            for part in parts:
                if part.cell is not None:
                    found.setdefault(part.cell)
        self.cells: tuple[Cell, ...] = tuple(found)

    def memory(self, values: Mapping[Cell, int]) -> dict[tuple[str, int], int]:
        """The value of every wanted element, given that of each of ``cells``."""
        result = {}
        for term, parts in self.pieces.items():
            value, shift = 0, 0
            for part in parts:
                if part.cell is None:
                    piece = initial_value(self.test, (part.key, part.offset, part.size))
                else:
                    piece = values[part.cell] >> 8 * (part.offset - part.cell[1]) & ((1 << 8 * part.size) - 1)
                value |= piece << shift
                shift += 8 * part.size
            result[term.key, term.index] = value
        return result


def memory_terms(*propositions: Proposition | None) -> list[MemoryTerm]:
    """The memory elements that propositions name."""
    return [t for p in propositions if p is not None for t in terms(p) if isinstance(t, MemoryTerm)]


def restrict(state: State, registers: Iterable[tuple[int, str]], memory: Iterable[tuple[str, int]]) -> State:
    """``state`` with only the given registers and elements."""
    return State({r: state.registers[r] for r in registers}, {m: state.memory[m] for m in memory})
