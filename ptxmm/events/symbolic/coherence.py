"""Coherence order and the writes that final values come from (8.9.6, A5, A6, A7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise, permutations

from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.program.condition import MemoryTerm
from ptxmm.relations.formula import FALSE, TRUE, Formula

Pair = tuple[int, int]


def coherence(program: Program, direct: bool, check: Callable[[], None]) -> None:
    """Coherence order: a strict partial order on overlapping writes, initial writes first (8.9.6).

    Writes that do not overlap are related only through others that do: where accesses overlap partially, two pieces
    of a location are ordered through a write of both. ``direct``: the order need not be transitive, and relates no
    others. ``check`` may raise ``Timeout``.
    """
    formulas = program.formulas
    overlap = _overlaps(program)
    neighbours: dict[int, set[int]] = {}
    for a, b in overlap:
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    pairs = dict.fromkeys(overlap)
    if not direct:
        pairs.update(dict.fromkeys(_apart(program, overlap, neighbours)))
    for a, b in pairs:
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
    for b, around in neighbours.items() if not direct else ():
        check()
        for a, c in permutations(around, 2):
            beyond = program.co.get((a, c))
            if beyond is not None:
                program.constraints.append(formulas.any([-program.co[a, b], -program.co[b, c], beyond]))


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


def final_writes(program: Program, observed: tuple[MemoryTerm, ...]) -> None:
    """For each observed range of writes the one, maximal in coherence order, that its final value comes from (A7).

    It is chosen once for the whole range, but for each byte where writes overlap partially.
    """
    wanted = [(program.test.objects[t.key].physical, t.index * t.type.bytes, t.type.bytes) for t in observed]
    ranges = dict.fromkeys((p.physical, p.offset, p.size) for e in program.events if e.kind == "W" for p in e.places)
    for group in _groups(ranges):
        key, start = group[0][:2]
        end = max(o + n for _, o, n in group)
        if len(group) == 1:
            if any(key == k and start < o + n and o < end for k, o, n in wanted):
                _choose_last(program, group[0])
            continue
        chosen = [
            (key, byte, 1) for byte in range(start, end) if any(key == k and o <= byte < o + n for k, o, n in wanted)
        ]
        for cell in chosen:
            _choose_last(program, cell)
        _tie(program, group, chosen)
    for key, offset, size in wanted:
        for start, length in _gaps(offset, size, [(o, n) for k, o, n in ranges if k == key]):
            program.last[key, start, length] = {-1: TRUE}


def _groups(ranges: dict[Cell, None]) -> list[list[Cell]]:
    """The ranges, those that overlap directly or through others together."""
    groups: list[list[Cell]] = []
    end = 0
    for cell in sorted(ranges):
        if groups and groups[-1][0][0] == cell[0] and cell[1] < end:
            groups[-1].append(cell)
            end = max(end, cell[1] + cell[2])
        else:
            groups.append([cell])
            end = cell[1] + cell[2]
    return groups


def _choose_last(program: Program, cell: Cell) -> None:
    """The write that the final value of ``cell`` comes from; -1: the initial one, if there is no other."""
    formulas = program.formulas
    writes = {
        e.number: formulas.both(e.presence, program.covers(e.number, cell))
        for e in program.events
        if e.kind == "W" and any(p.contains(cell) for p in e.places)
    }
    options = {-1: formulas.all([-when for when in writes.values()])}
    for write, when in writes.items():
        if len(writes) > 1:
            # Pairs that do not overlap here may be related at another place, for which `b` must cover this one.
            later = [
                -formulas.both(program.co[write, b], covers) for b, covers in writes.items() if (write, b) in program.co
            ]
            selector = formulas.variable()
            program.constraints += [formulas.either(-selector, f) for f in [when, *later]]
        else:
            selector = when
        options[write] = selector
    if options[-1] == FALSE:
        del options[-1]
    exactly_one(program, TRUE, list(options.values()))
    program.last[cell] = options


def _tie(program: Program, group: list[Cell], chosen: list[Cell]) -> None:
    """Bytes that the same writes cover have one final write in an execution where no two writes overlap partially."""
    formulas = program.formulas
    writes = [
        (e.number, formulas.both(e.presence, p.when), (p.physical, p.offset, p.size))
        for e in program.events
        if e.kind == "W"
        for p in e.places
        if (p.physical, p.offset, p.size) in group
    ]
    partial: list[Formula] = []
    for (_, one, a), (_, other, b) in combinations(writes, 2):
        if a != b and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]:
            partial.append(formulas.both(one, other))
    mixed = formulas.any(partial)
    if mixed == TRUE:
        return
    for byte, after in pairwise(chosen):
        for write, when, (_, offset, size) in writes:
            if offset <= byte[1] and after[1] < offset + size:
                first, second = program.last[byte][write], program.last[after][write]
                program.constraints.append(formulas.any([mixed, -when, -first, second]))
                program.constraints.append(formulas.any([mixed, -when, first, -second]))


def exactly_one(program: Program, presence: Formula, options: list[Formula]) -> None:
    """At most one of ``options``; one, if ``presence`` holds."""
    program.constraints.append(program.formulas.any([-presence, *options]))
    program.at_most_one(options)


def _gaps(offset: int, size: int, covered: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts (start, length) of a byte range that none of the ranges in ``covered`` reach."""
    start = offset
    for begin, length in sorted(covered):
        if start < min(begin, offset + size):
            yield start, min(begin, offset + size) - start
        start = max(start, begin + length)
    if start < offset + size:
        yield start, offset + size - start
