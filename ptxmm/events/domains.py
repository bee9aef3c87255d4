"""Which values the cells of memory may ever hold: an over-approximation, by rounds from the initial values.

Values out of thin air are excluded (PTX ISA 8.10.4), so a value passes each write at most once and as many rounds as
there are writes reach all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod

from ptxmm.events.execution import initial_value
from ptxmm.events.expressions import Node, evaluate, leaves_of
from ptxmm.events.interpreter import Cell, Event, Program, Trace, run
from ptxmm.program.test import Test

LIMIT = 4096
"""The largest number of combinations of read values that one expression is evaluated for."""


def traces(
    program: Program, domains: Domains | None, unroll: int, simplify: bool, check: Callable[[], None]
) -> list[Trace]:
    """Every path of a thread, up to the bound; ``domains`` leaves out paths whose choices no value makes."""
    found: list[Trace] = []
    work: list[tuple[int, ...]] = [()]
    domain = None if domains is None else domains.values_of
    while work:
        check()
        trace = run(program, work.pop(), domain=domain, unroll=unroll, simplify=simplify)
        work += trace.forks
        if not trace.impossible:
            found.append(trace)
    return found


class Domains:
    """The values that each cell may hold; a cell that nothing writes holds its initial value."""

    __slots__ = ("_cells", "_test")

    def __init__(self, test: Test, cells: Mapping[Cell, frozenset[int]]) -> None:
        self._test = test
        self._cells = cells

    def cell(self, cell: Cell) -> frozenset[int]:
        """The values of ``cell``."""
        found = self._cells.get(cell)
        return frozenset((initial_value(self._test, cell),)) if found is None else found

    def values_of(self, node: Node, reads: Sequence[Event]) -> frozenset[int] | None:
        """The values of an expression over ``reads``; None where they are too many."""
        if node.value is not None:
            return frozenset((node.value,))
        numbers = leaves_of(node)
        choices = [self.cell(reads[i].cell) for i in numbers]  # type: ignore[arg-type]
        if prod(map(len, choices)) > LIMIT:
            return None
        leaves: list[int | None] = [None] * len(reads)
        found = set()
        for selection in product(*choices):
            for i, value in zip(numbers, selection, strict=True):
                leaves[i] = value
            result = evaluate(node, leaves)
            assert result is not None
            found.add(result)
        return frozenset(found)


def possible_values(
    test: Test, programs: Iterable[Program], unroll: int, simplify: bool, tear: bool, check: Callable[[], None]
) -> Domains:
    """The domains of all cells. ``tear``: a read may mix the bytes of several writes.

    A cell whose values can't be listed (an expression with too many) is not in the result as such: it gets None of
    ``values_of`` through ``LIMIT`` again where it matters.
    """
    programs = tuple(programs)
    domains = Domains(test, {})
    cells: dict[Cell, frozenset[int]] = {}
    rounds = 0
    while True:
        grown: dict[Cell, set[int]] = {cell: set(values) for cell, values in cells.items()}
        writes = 0
        for program in programs:
            paths = traces(program, domains, unroll, simplify, check)
            writes += max((sum(e.kind == "W" for e in t.events) for t in paths), default=0)
            for trace in paths:
                for event in trace.events:
                    if event.kind != "W" or event.cell is None or event.value is None:
                        continue
                    values = domains.values_of(event.value, trace.reads)
                    into = grown.setdefault(event.cell, {initial_value(test, event.cell)})
                    into.update(values if values is not None else ())
        result = {cell: frozenset(_mixed(v, cell[2]) if tear else v) for cell, v in grown.items()}
        rounds += 1
        if result == cells or rounds > writes:
            return Domains(test, result)
        cells = result
        domains = Domains(test, cells)


def _mixed(values: set[int], size: int) -> set[int]:
    """Every value whose bytes each come from one of ``values``, if these are not too many."""
    columns = [sorted({v >> 8 * i & 255 for v in values}) for i in range(size)]
    if prod(map(len, columns)) > LIMIT:
        return values
    return {sum(b << 8 * i for i, b in enumerate(choice)) for choice in product(*columns)}
