"""The choices that make an execution: barrier phases, reads-from, Fence-SC order; ``coherence`` has coherence order,
``finals`` what is last in memory.

Each choice is a set of variables with the constraints that hold in any candidate execution, whatever the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, permutations

from ptxmm.events.symbolic.barriers.exchanges import Exchanges, Returned, depends, resolved
from ptxmm.events.symbolic.barriers.scenarios import Scenario, matches
from ptxmm.events.symbolic.barriers.state import members
from ptxmm.events.symbolic.event import Event
from ptxmm.events.symbolic.machine import Machine
from ptxmm.events.symbolic.program import Cell, Program
from ptxmm.events.symbolic.relations.coherence import coherence, exactly_one
from ptxmm.events.symbolic.relations.scopes import in_scope
from ptxmm.events.symbolic.values.domain import Bits, Domain, bits_of
from ptxmm.program.identity import EventId
from ptxmm.ptx.ops import Fence
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas


def choose(
    program: Program,
    machine: Machine,
    found: list[Scenario],
    check: Callable[[], None],
) -> None:
    """Add every choice and its constraints to ``program``; ``found`` are its barrier scenarios.

    ``check`` may raise ``Timeout``.
    """
    _barriers(program, machine, found)
    _exchanges(program)
    _reads_from(program, machine, check)
    coherence(program, machine.reading.direct, machine.setting.known, check)
    _fence_sc(program)


def _barriers(program: Program, machine: Machine, found: list[Scenario]) -> None:
    """Choose a barrier scenario of each group; each thread completes, is cut, spins, or waits at a barrier of its
    scenario."""
    formulas, threads = program.formulas, program.threads
    if not any(t.barriers for t in threads):
        program.constraints += [formulas.any([t.completed, t.cut, t.spun]) for t in threads]
        return
    for number in dict.fromkeys(scenario.group for scenario in found) or (0,):
        _select(program, machine, [scenario for scenario in found if scenario.group == number])
    chosen = program.scenarios
    program.undefined += [(selector, s.misuse) for s, selector in chosen if s.misuse is not None]
    misuse = [selector for scenario, selector in chosen if scenario.misuse is not None]
    for index, thread in enumerate(threads):
        waits = [selector for s, selector in chosen if any(i.thread == index for i in s.waiting)]
        program.constraints.append(formulas.any([thread.completed, thread.cut, thread.spun, *waits, *misuse]))
        for event in thread.barriers:
            program.at_most_one(list((event.tokens or {}).values()))


def _select(program: Program, machine: Machine, group: list[Scenario]) -> None:
    """Choose one of the scenarios of ``group``."""
    formulas = program.formulas
    conditions = [_condition(program, machine, scenario) for scenario in group]
    if len(group) == 1 and conditions[0] == TRUE:
        program.scenarios.append((group[0], TRUE))
        return
    choice = machine.new_choice()
    selectors = [formulas.variable(choice) for _ in group]
    program.scenarios += zip(group, selectors, strict=True)
    program.constraints.append(formulas.any(selectors))
    program.at_most_one(selectors)
    program.constraints += [formulas.either(-s, c) for s, c in zip(selectors, conditions, strict=True)]


def _condition(program: Program, machine: Machine, scenario: Scenario) -> Formula:
    """What a scenario asks of paths, operand values, and what waits and arrivals return."""
    formulas = program.formulas
    happens: dict[tuple[EventId, str], Formula] = {}
    arrivals = {(a.id, a.kind): a for a in scenario.steps}
    tokens = dict(scenario.tokens)
    parts: list[Formula] = []
    for index in scenario.threads:
        for event in program.threads[index].barriers:
            key = (event.id, event.kind)
            arrival = arrivals.get(key)
            when = event.presence
            if arrival is not None:
                when = matches(formulas, event, arrival)
                passes = machine.passes.get((event.id, event.number))
                if passes is not None:
                    parts.append(formulas.either(-when, -passes if event.id in scenario.waiting else passes))
                if event.tokens is not None and event.id in tokens:
                    parts.append(formulas.either(-when, event.tokens.get(tokens[event.id], FALSE)))
            happens[key] = formulas.either(happens.get(key, FALSE), when)
    parts += [when if key in arrivals else -when for key, when in happens.items()]
    waiting = {id_.thread for id_ in scenario.waiting}
    for index in scenario.threads - waiting:
        thread = program.threads[index]
        lost = formulas.both(-thread.completed, -thread.cut)
        parts.append({True: thread.completed, False: thread.cut, None: lost}[scenario.ends[index]])
    return formulas.all(parts)


def _exchanges(program: Program) -> None:
    """What threads get from each other is as the scenario has it; so is what depends on it."""
    formulas = program.formulas
    exchanges = Exchanges(members(program.test), formulas, program.threads)
    if not exchanges.steps:
        return
    found: list[tuple[Formula, list[Returned]]] = []
    for scenario, selector in program.scenarios:
        returned = list(exchanges.returned(scenario))
        found.append((selector, returned))
        for item in returned:
            assert item.event.result is not None
            for value, when in item.domain.items():
                got = item.event.result.get(value, FALSE)
                program.constraints.append(formulas.any([-selector, -item.when, -when, got]))
    for step in (step for thread in program.threads for step in thread.barriers):
        program.at_most_one(list((step.result or {}).values()))
    results = depends(formulas, found)
    for event in program.events:
        event.address, event.data, event.control, event.left = (
            resolved(formulas, reads, results) for reads in (event.address, event.data, event.control, event.left)
        )


def _reads_from(program: Program, machine: Machine, check: Callable[[], None]) -> None:
    """For each cell that a read may access: the write it reads from, and with it its value (8.9.7)."""
    formulas = program.formulas
    writes: dict[Cell, list[int]] = {cell: [event] for cell, event in program.initial.items()}
    for event in program.events:
        if event.kind == "W":
            for cell in dict.fromkeys(c for p in event.places for c in machine.cells(p)):
                writes[cell].append(event.number)
    borders = {} if program.tear else _borders(program)
    for event in program.events:
        if event.kind != "R":
            continue
        check()
        for cell, values in program.read_cells[event.number].items():
            presence = formulas.both(event.presence, program.covers(event.number, cell))
            _read_cell(program, machine, event, cell, presence, writes[cell])
            if not isinstance(values, Bits):
                program.at_most_one(list(values.values()))
        if not program.tear:
            _whole(program, event, borders)


def _borders(program: Program) -> dict[tuple[str, int], list[Formula]]:
    """When an access that is executed begins or ends at an offset of an object."""
    found: dict[tuple[str, int], list[Formula]] = {}
    for event in program.events:
        for place in event.places:
            when = program.formulas.both(event.presence, place.when)
            for point in (place.offset, place.offset + place.size):
                found.setdefault((place.physical, point), []).append(when)
    return found


def _whole(program: Program, read: Event, borders: dict[tuple[str, int], list[Formula]]) -> None:
    """Cells that no access of the execution tells apart are read from the same write."""
    formulas = program.formulas
    for one, other in pairwise(sorted(program.read_cells[read.number])):
        if one[0] != other[0] or one[1] + one[2] != other[1]:
            continue
        divided = formulas.any(borders.get((one[0], other[1]), ()))
        if divided == TRUE:
            continue
        first, second = program.rf[one][read.number], program.rf[other][read.number]
        same = {program.initial[one]: program.initial[other]}
        for write, chosen in first.items():
            after = second.get(same.get(write, write), FALSE)
            program.constraints.append(formulas.any([divided, -chosen, after]))


def _may_give(program: Program, machine: Machine, read: Event, cell: Cell, presence: Formula, write: int) -> Formula:
    """When ``write``, which may be that of the initial value, may give ``cell`` to a ``read`` that is there."""
    never = machine.setting.known.never
    if write >= len(program.events):
        return FALSE if (read.id, None) in never else presence
    event = program.events[write]
    if event.id == read.id or _needs(event, read.number) or (read.id, event.id) in never:
        return FALSE
    return program.formulas.all([presence, event.presence, program.covers(write, cell)])


def _read_cell(
    program: Program, machine: Machine, read: Event, cell: Cell, presence: Formula, writes: list[int]
) -> None:
    formulas = program.formulas
    values = program.read_cells[read.number][cell]
    sources = ((write, _may_give(program, machine, read, cell, presence, write)) for write in writes)
    candidates = [(write, when, program.written(write, cell)) for write, when in sources if when != FALSE]
    makers: dict[int, int] = {}
    for _, _, domain in candidates:
        for value in () if isinstance(domain, Bits) else domain:
            makers[value] = makers.get(value, 0) + 1
    choice = machine.new_choice()
    chosen: dict[int, Formula] = {}
    for write, when, domain in candidates:
        only = next(iter(domain)) if len(domain) == 1 and not isinstance(values, Bits) else None
        if len(candidates) == 1 and when == presence:
            selector = presence
        elif only is not None and makers[only] == 1 and len(values) > 1 and only in values:
            selector = values[only]
        else:
            selector = formulas.variable(choice)
        chosen[write] = selector
        program.constraints.append(formulas.either(-selector, when))
        program.constraints += _holds(formulas, selector, values, domain, 8 * cell[2])
    exactly_one(program, presence, list(chosen.values()))
    program.rf.setdefault(cell, {})[read.number] = chosen
    if not isinstance(values, Bits) and any(len(domain) > 1 for _, _, domain in candidates):
        # Where reads get what others packed beside the values of these reads, all of them could have none.
        program.constraints.append(formulas.any([-presence, *values.values()]))


def _holds(formulas: Formulas, selector: Formula, values: Domain, domain: Domain, width: int) -> Iterator[Formula]:
    """What holds where a read of ``values`` takes the value ``domain`` of a write that is chosen by ``selector``."""
    if isinstance(values, Bits) or isinstance(domain, Bits):
        for read, written in zip(bits_of(formulas, values, width), bits_of(formulas, domain, width), strict=True):
            yield formulas.any([-selector, -read, written])
            yield formulas.any([-selector, read, -written])
        return
    for value, taken in domain.items():
        yield formulas.any([-selector, -taken, values.get(value, FALSE)])


def _needs(write: Event, read: int) -> bool:
    """Whether what ``write`` writes always comes from ``read`` itself, which then can't read from it (8.10.4)."""
    return TRUE in (write.address.get(read), write.data.get(read))


def _fence_sc(program: Program) -> None:
    """Fence-SC order: any set of pairs of fence.sc operations that include each other in their scopes (8.9.3)."""
    formulas = program.formulas
    fences = [e for e in program.events if e.kind == "F" and isinstance(e.op, Fence) and e.op.sem == "sc"]
    for a, b in permutations(fences, 2):
        both = formulas.both(a.presence, b.presence)
        if both != FALSE and in_scope(program.test, a, b) and in_scope(program.test, b, a):
            selector = formulas.variable()
            program.fsc[a.number, b.number] = selector
            if both != TRUE:
                program.constraints.append(formulas.either(-selector, both))
