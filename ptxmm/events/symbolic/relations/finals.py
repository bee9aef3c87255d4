"""The writes that final values come from (decisions A7, A11): what a read after the end may return (8.9.4, 8.10.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import combinations, pairwise
from operator import or_

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.events.symbolic.relations.coherence import exactly_one
from ptxmm.events.symbolic.values.domain import Bits, bits_of, differ
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.shared.undetermined import untorn_finals
from ptxmm.relations.formula import FALSE, TRUE, Formula

_PAIRS = 1 << 12
"""So many pairs of values of two writes are looked at one by one."""


def final_writes(program: Program, observed: tuple[MemoryTerm, ...], ordered: Callable[[Event, Event], bool]) -> None:
    """For each observed range of writes the one, maximal in coherence order, that its final value comes from.

    It is chosen once for the whole range, but for each byte where writes overlap partially, or where values may be torn
    and that makes a difference: where two writes that are not always ``ordered`` by coherence differ in several bytes.
    """
    wanted = [(program.test.objects[t.key].physical, t.index * t.type.bytes, t.type.bytes) for t in observed]
    ranges = dict.fromkeys((p.physical, p.offset, p.size) for e in program.events if e.kind == "W" for p in e.places)
    untorn = untorn_finals(program.test)
    for group in _groups(ranges):
        key = group[0][0]
        shown = [(offset, offset + size) for k, offset, size in wanted if k == key]
        torn = program.tear and key not in untorn
        if len(group) == 1:
            cells = _divided(program, group[0], ordered) if torn and _reaches(group[0], shown) else group
        else:
            cells = [(key, byte, 1) for byte in range(group[0][1], max(o + n for _, o, n in group))]
        chosen = [cell for cell in cells if _reaches(cell, shown)]
        for cell in chosen:
            _choose_last(program, cell)
        if len(group) > 1 and not torn:
            _tie(program, group, chosen)
    for key, offset, size in wanted:
        for start, length in _gaps(offset, size, [(o, n) for k, o, n in ranges if k == key]):
            program.last[key, start, length] = {-1: TRUE}


def _reaches(cell: Cell, shown: list[tuple[int, int]]) -> bool:
    """Whether ``cell`` has bytes of one of the ranges ``shown``."""
    _, start, size = cell
    return any(start < last and first < start + size for first, last in shown)


def _divided(program: Program, cell: Cell, ordered: Callable[[Event, Event], bool]) -> list[Cell]:
    """``cell`` before each byte but the first in which two writes may differ that differ in several."""
    key, offset, size = cell
    writes = [e for e in program.events if e.kind == "W" and any(p.contains(cell) for p in e.places)]
    differing: set[int] = set()
    for a, b in combinations(writes, 2):
        if program.formulas.both(a.presence, b.presence) != FALSE and not ordered(a, b):
            for difference in _differences(program, cell, a, b):
                found = _bytes(difference, size)
                if len(found) > 1:
                    differing.update(found)
    return [(key, offset + first, last - first) for first, last in pairwise([0, *sorted(differing)[1:], size])]


def _differences(program: Program, cell: Cell, a: Event, b: Event) -> Iterator[int]:
    """The bits in which two writes to ``cell`` may differ: of each pair of their values, or of all together."""
    mine, theirs = program.written(a.number, cell), program.written(b.number, cell)
    if isinstance(mine, Bits) or isinstance(theirs, Bits):
        columns = zip(*(bits_of(program.formulas, values, 8 * cell[2]) for values in (mine, theirs)), strict=True)
        unlike = [differ(program.formulas, one, other) for one, other in columns]
        yield sum(1 << i for i, when in enumerate(unlike) if when != FALSE)
    elif len(mine) * len(theirs) > _PAIRS:
        first = next(iter(mine))
        yield reduce(or_, (first ^ v for v in (*mine, *theirs)))
    else:
        yield from (v ^ w for v in mine for w in theirs)


def _bytes(bits: int, size: int) -> list[int]:
    """The bytes, of ``size``, that have some of ``bits``."""
    return [i for i in range(size) if bits >> 8 * i & 0xFF]


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


def _gaps(offset: int, size: int, covered: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts (start, length) of a byte range that none of the ranges in ``covered`` reach."""
    start = offset
    for begin, length in sorted(covered):
        if start < min(begin, offset + size):
            yield start, min(begin, offset + size) - start
        start = max(start, begin + length)
    if start < offset + size:
        yield start, offset + size - start
