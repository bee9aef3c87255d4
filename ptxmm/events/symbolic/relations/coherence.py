"""Coherence order (8.9.6, A5, A6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product

from ptxmm.events.symbolic.machine import Known
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.relations.formula import FALSE, TRUE, Formula

Pair = tuple[int, int]


def coherence(program: Program, direct: bool, known: Known, check: Callable[[], None]) -> None:
    """Coherence order: a strict partial order on overlapping writes, initial writes first (8.9.6).

    Writes that do not overlap are related only through others that do: where accesses overlap partially, two pieces
    of a location are ordered through a write of both. ``direct``: the order need not be transitive, and relates no
    others. ``known``: which need not be found out. ``check`` may raise ``Timeout``.
    """
    formulas = program.formulas
    overlap = _overlaps(program)
    neighbours: dict[int, set[int]] = {}
    for a, b in overlap:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    pairs = dict.fromkeys(overlap)
    settled = set(known.ordered())
    if not direct:
        pairs.update(dict.fromkeys(_apart(program, overlap, neighbours)))
    for a, b in pairs:
        one, other = (program.events[write].id for write in (a, b))
        if (one, other) in settled or (other, one) in settled:
            forth, back = (TRUE, FALSE) if (one, other) in settled else (FALSE, TRUE)
        else:
            forth, back = formulas.variable(), formulas.variable()
        program.co[a, b], program.co[b, a] = forth, back
        program.constraints.append(formulas.either(-forth, -back))
        neighbours[a].add(b)
        neighbours[b].add(a)
    for a, b in pairs:
        both = overlap.get((a, b), FALSE)
        between = neighbours[a] & neighbours[b] if _mixed(program, a) and not direct else ()
        for x, y in ((a, b), (b, a)):
            through = [formulas.both(program.co[x, m], program.co[m, y]) for m in between]
            program.constraints.append(formulas.any([-program.co[x, y], both, *through]))
    if not direct:
        _transitive(program, neighbours, check)


def _transitive(program: Program, neighbours: dict[int, set[int]], check: Callable[[], None]) -> None:
    """Require that coherence order is transitive."""
    co, formulas = program.co, program.formulas
    for b, around in neighbours.items():
        check()
        before = [a for a in around if co[a, b] != FALSE]
        after = [c for c in around if co[b, c] != FALSE]
        for a, c in product(before, after):
            beyond = co.get((a, c), TRUE)
            if beyond != TRUE:
                program.constraints.append(formulas.any([-co[a, b], -co[b, c], beyond]))


def _overlaps(program: Program) -> dict[Pair, Formula]:
    """The pairs of writes that may overlap, the lower number first, and when they are both executed and do."""
    formulas = program.formulas
    cells: dict[Cell, list[int]] = {}
    for event in program.events:
        if event.kind == "W":
            for cell in dict.fromkeys(c for p in event.places for c in program.cells_of(p)):
                cells.setdefault(cell, []).append(event.number)
    overlap: dict[Pair, Formula] = {}
    for cell, writes in cells.items():
        for a, b in combinations(writes, 2):
            both = formulas.all(
                [program.presence[a], program.presence[b], program.covers(a, cell), program.covers(b, cell)]
            )
            if both != FALSE:
                overlap[a, b] = formulas.either(overlap.get((a, b), FALSE), both)
    return overlap


def _mixed(program: Program, write: int) -> bool:
    """Whether a write may overlap others partially."""
    return any(p.physical in program.mixed for p in program.events[write].places)


def _apart(program: Program, overlap: dict[Pair, Formula], neighbours: dict[int, set[int]]) -> Iterator[Pair]:
    """The pairs of writes that never overlap but may be related through others."""
    seen: set[int] = set()
    for start in neighbours:
        if start in seen or not _mixed(program, start):
            continue
        component, stack = {start}, [start]
        while stack:
            for other in neighbours[stack.pop()] - component:
                component.add(other)
                stack.append(other)
        seen |= component
        for a, b in combinations(sorted(component), 2):
            if (a, b) not in overlap and program.formulas.both(program.presence[a], program.presence[b]) != FALSE:
                yield a, b


def exactly_one(program: Program, presence: Formula, options: list[Formula]) -> None:
    """At most one of ``options``; one, if ``presence`` holds."""
    program.constraints.append(program.formulas.any([-presence, *options]))
    program.at_most_one(options)
