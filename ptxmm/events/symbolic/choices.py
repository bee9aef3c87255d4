"""The choices that make an execution: barrier phases, reads-from, coherence, Fence-SC order and final writes.

Each choice is a set of variables with the constraints that hold in any candidate execution, whatever the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations

from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.machine import Machine
from ptxmm.events.symbolic.phases import Scenario, scenarios
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.events.symbolic.scopes import in_scope
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.test import EventId
from ptxmm.ptx.ops import Fence
from ptxmm.relations.formula import FALSE, TRUE, Formula


def choose(program: Program, machine: Machine, observed: tuple[MemoryTerm, ...], check: Callable[[], None]) -> None:
    """Add every choice and its constraints to ``program``; ``check`` may raise ``Timeout``."""
    _barriers(program, machine, check)
    _reads_from(program, machine, check)
    _coherence(program, check)
    _fence_sc(program)
    _last(program, observed)


def _barriers(program: Program, machine: Machine, check: Callable[[], None]) -> None:
    """Choose one barrier scenario; each thread completes, is cut, or waits at a barrier of the scenario."""
    formulas, threads = program.formulas, program.threads
    if not any(t.barriers for t in threads):
        program.constraints += [formulas.either(t.completed, t.cut) for t in threads]
        return
    found = scenarios(program.test, formulas, threads, check)
    conditions = [_condition(program, machine, scenario) for scenario in found]
    if len(found) == 1 and conditions[0] == TRUE:
        program.scenarios = [(found[0], TRUE)]
    else:
        choice = machine.new_choice()
        program.scenarios = [(scenario, formulas.variable(choice)) for scenario in found]
        selectors = [s for _, s in program.scenarios]
        program.constraints.append(formulas.any(selectors))
        program.exclusive += combinations(selectors, 2)
        program.constraints += [formulas.either(-s, c) for s, c in zip(selectors, conditions, strict=True)]
    for scenario, selector in program.scenarios:
        if scenario.undefined is not None:
            program.undefined.append((selector, scenario.undefined))
    misuse = [s for scenario, s in program.scenarios if scenario.undefined is not None]
    for index, thread in enumerate(threads):
        waits = [s for scenario, s in program.scenarios if any(i[0] == index for i in scenario.stuck)]
        program.constraints.append(formulas.any([thread.completed, thread.cut, *waits, *misuse]))


def _condition(program: Program, machine: Machine, scenario: Scenario) -> Formula:
    """What a scenario asks of paths and operand values."""
    formulas = program.formulas
    happens: dict[EventId, Formula] = {}
    arrivals = {a.id: a for a in scenario.arrivals}
    parts: list[Formula] = []
    for thread in program.threads:
        for event in thread.barriers:
            arrival = arrivals.get(event.id)
            when = event.presence
            if arrival is not None:
                count = TRUE if event.count is None else event.count.get(arrival.count or 0, FALSE)
                when = formulas.all([when, event.barrier.get(arrival.barrier, FALSE), count])
                passes = machine.passes.get((event.id, event.arrive))
                if passes is not None:
                    parts.append(formulas.either(-when, -passes if event.id in scenario.stuck else passes))
            happens[event.id] = formulas.either(happens.get(event.id, FALSE), when)
    parts += [when if id_ in arrivals else -when for id_, when in happens.items()]
    waiting = {id_[0] for id_ in scenario.stuck}
    for index, thread in enumerate(program.threads):
        if index not in waiting:
            lost = formulas.both(-thread.completed, -thread.cut)
            parts.append({True: thread.completed, False: thread.cut, None: lost}[scenario.ends[index]])
    return formulas.all(parts)


def _exactly_one(program: Program, presence: Formula, options: list[Formula]) -> None:
    """At most one of ``options``; one, if ``presence`` holds."""
    formulas = program.formulas
    program.constraints.append(formulas.any([-presence, *options]))
    program.exclusive += combinations(options, 2)


def _reads_from(program: Program, machine: Machine, check: Callable[[], None]) -> None:
    """For each cell that a read may access: the write it reads from, and with it its value (8.9.7)."""
    formulas = program.formulas
    writes: dict[Cell, list[int]] = {cell: [event] for cell, event in program.initial.items()}
    for event in program.events:
        if event.kind == "W":
            for cell in dict.fromkeys(c for p in event.places for c in machine.cells(p)):
                writes[cell].append(event.number)
    for event in program.events:
        if event.kind != "R":
            continue
        check()
        for cell, values in program.read_cells[event.number].items():
            presence = formulas.both(event.presence, program.covers(event.number, cell))
            _read_cell(program, machine, event, cell, presence, writes[cell])
            if len(values) > 1:
                program.exclusive += combinations(values.values(), 2)


def _read_cell(
    program: Program, machine: Machine, read: Event, cell: Cell, presence: Formula, writes: list[int]
) -> None:
    formulas = program.formulas
    values = program.read_cells[read.number][cell]
    candidates: list[tuple[int, Formula, dict[int, Formula]]] = []
    for write in writes:
        if write < len(program.events):
            event = program.events[write]
            if event.id == read.id or _needs(event, read.number):
                continue
            when = formulas.all([presence, event.presence, program.covers(write, cell)])
        else:
            when = presence
        if when != FALSE:
            candidates.append((write, when, program.written(write, cell)))
    makers: dict[int, int] = {}
    for _, _, domain in candidates:
        for value in domain:
            makers[value] = makers.get(value, 0) + 1
    choice = machine.new_choice()
    chosen: dict[int, Formula] = {}
    for write, when, domain in candidates:
        only = next(iter(domain)) if len(domain) == 1 else None
        if len(candidates) == 1 and when == presence:
            selector = presence
        elif only is not None and makers[only] == 1 and len(values) > 1 and only in values:
            selector = values[only]
        else:
            selector = formulas.variable(choice)
        chosen[write] = selector
        program.constraints.append(formulas.either(-selector, when))
        for value, taken in domain.items():
            program.constraints.append(formulas.any([-selector, -taken, values.get(value, FALSE)]))
    _exactly_one(program, presence, list(chosen.values()))
    program.rf.setdefault(cell, {})[read.number] = chosen


def _needs(write: Event, read: int) -> bool:
    """Whether what ``write`` writes always comes from ``read`` itself, which then can't read from it (8.10.4)."""
    return TRUE in (write.address.get(read), write.data.get(read))


def _coherence(program: Program, check: Callable[[], None]) -> None:
    """Coherence order: a strict partial order on overlapping writes, initial writes first (8.9.6)."""
    formulas = program.formulas
    cells: dict[Cell, list[int]] = {}
    for event in program.events:
        if event.kind == "W":
            for cell in dict.fromkeys(c for p in event.places for c in program.cells_of(p)):
                cells.setdefault(cell, []).append(event.number)
    overlap: dict[tuple[int, int], Formula] = {}
    for cell, writes in cells.items():
        for a, b in combinations(writes, 2):
            both = formulas.all(
                [
                    program.presence[a],
                    program.presence[b],
                    program.covers(a, cell),
                    program.covers(b, cell),
                ]
            )
            if both != FALSE:
                overlap[a, b] = formulas.either(overlap.get((a, b), FALSE), both)
    neighbours: dict[int, set[int]] = {}
    for (a, b), both in overlap.items():
        forth, back = formulas.variable(), formulas.variable()
        program.co[a, b], program.co[b, a] = forth, back
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
        program.constraints += [
            formulas.either(-forth, -back),
            formulas.either(-forth, both),
            formulas.either(-back, both),
        ]
    for b, around in neighbours.items():
        check()
        for a, c in permutations(around, 2):
            direct = program.co.get((a, c))
            first, second = program.co[a, b], program.co[b, c]
            if direct is not None:
                program.constraints.append(formulas.any([-first, -second, direct]))


def _fence_sc(program: Program) -> None:
    """Fence-SC order: any set of pairs of fence.sc operations that include each other in their scopes (8.9.3)."""
    formulas = program.formulas
    fences = [e for e in program.events if e.kind == "F" and isinstance(e.op, Fence) and e.op.sem == "sc"]
    for a, b in permutations(fences, 2):
        both = formulas.both(a.presence, b.presence)
        if both != FALSE and in_scope(program.test, a, b.thread) and in_scope(program.test, b, a.thread):
            selector = formulas.variable()
            program.fsc[a.number, b.number] = selector
            if both != TRUE:
                program.constraints.append(formulas.either(-selector, both))


def _last(program: Program, observed: tuple[MemoryTerm, ...]) -> None:
    """For each observed range of writes the one, maximal in coherence order, that its final value comes from (A7)."""
    formulas = program.formulas
    wanted = [(program.test.objects[t.key].physical, t.index * t.type.bytes, t.type.bytes) for t in observed]
    ranges = dict.fromkeys((p.physical, p.offset, p.size) for e in program.events if e.kind == "W" for p in e.places)
    for key, offset, size in ranges:
        if not any(key == k and offset < o + n and o < offset + size for k, o, n in wanted):
            continue
        written = (key, offset, size)
        writes = {
            e.number: formulas.both(e.presence, program.covers(e.number, written))
            for e in program.events
            if e.kind == "W" and any(p.contains(written) for p in e.places)
        }
        options = {-1: formulas.all([-when for when in writes.values()])}
        for write, when in writes.items():
            later = [-co for (a, b), co in program.co.items() if a == write and b in writes]
            if len(writes) > 1:
                selector = formulas.variable()
                program.constraints += [formulas.either(-selector, f) for f in [when, *later]]
            else:
                selector = when
            options[write] = selector
        if options[-1] == FALSE:
            del options[-1]
        _exactly_one(program, TRUE, list(options.values()))
        program.last[written] = options
    for key, offset, size in wanted:
        for start, length in _gaps(offset, size, [(o, n) for k, o, n in ranges if k == key]):
            program.last[key, start, length] = {-1: TRUE}


def _gaps(offset: int, size: int, covered: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The parts (start, length) of a byte range that none of the ranges in ``covered`` reach."""
    start = offset
    for begin, length in sorted(covered):
        if start < min(begin, offset + size):
            yield start, min(begin, offset + size) - start
        start = max(start, begin + length)
    if start < offset + size:
        yield start, offset + size - start
