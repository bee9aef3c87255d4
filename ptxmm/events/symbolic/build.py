"""From a test to its symbolic program: events of all threads, who may read from whom, and the constraints.

Values out of thin air are excluded (PTX ISA 8.10.4), so that the possible values of a location are a fixpoint that is
reached after as many rounds as there are writes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from ptxmm.events.symbolic.choices import choose
from ptxmm.events.symbolic.event import ThreadEvents
from ptxmm.events.symbolic.machine import Machine
from ptxmm.events.symbolic.phases import scenarios
from ptxmm.events.symbolic.possible import Possible, rounds
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.threads import outline, run
from ptxmm.program.accesses import partial_overlap
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.test import EventId, Test
from ptxmm.ptx.ops import Atomic, Branch, Op
from ptxmm.relations.formula import FALSE, TRUE, Formulas
from ptxmm.relations.symbolic import SymbolicAlgebra


def build(
    test: Test,
    observed: tuple[MemoryTerm, ...],
    *,
    unroll: int,
    tear: bool,
    simplify: bool,
    check: Callable[[], None],
) -> Program:
    """The program of ``test`` with loops unrolled ``unroll`` times.

    ``observed``: the memory elements whose final values matter. ``tear``: single accesses may be torn into bytes
    (A11). ``simplify``: apply the dependency rewrites (A21). Raises ``PtxmmError`` for mixed sizes.
    """
    machine, threads = _execute(test, unroll, tear, simplify, check)
    formulas = machine.formulas
    cells = dict.fromkeys(c for e in machine.events for p in e.places for c in machine.cells(p))
    initial = {cell: len(machine.events) + i for i, cell in enumerate(cells)}
    presence = [e.presence for e in machine.events] + [TRUE] * len(initial)
    program = Program(
        test,
        formulas,
        SymbolicAlgebra(formulas, presence),
        machine.events,
        presence,
        initial,
        threads,
        machine.read_cells,
        machine.cells,
    )
    program.undefined += [(wrong, text) for wrong, text in machine.outside if wrong != FALSE]
    choose(program, machine, observed, check)
    return program


def _execute(
    test: Test, unroll: int, tear: bool, simplify: bool, check: Callable[[], None]
) -> tuple[Machine, list[ThreadEvents]]:
    """Execute all threads until the possible values of all locations and the barriers that can block are known."""
    possible = Possible(test)
    split: frozenset[str] = frozenset()
    stuck: frozenset[EventId] = frozenset()
    executions = 0
    outlines = [outline(thread) for thread in test.threads]
    guarded = any(_guarded(op) for thread in test.threads for op in thread.body)
    while True:
        check()
        if guarded:
            free = Machine(test, Formulas(), unroll, simplify, possible.of, True, split, stuck, check)
            for index, known in enumerate(outlines):
                run(free, index, known)
            executions += 1
            if possible.learn(free) and executions <= rounds(free):
                continue
        machine = Machine(test, Formulas(), unroll, simplify, possible.of, False, split, stuck, check)
        threads = [run(machine, i, known) for i, known in enumerate(outlines)]
        executions += 1
        if not guarded and possible.learn(machine) and executions <= rounds(machine):
            continue
        _refuse_mixed_sizes(machine)
        torn = possible.differ_in_several_bytes() - split if tear else set()
        if torn:
            for key in torn:
                possible.forget(key)
            split, executions = split | torn, 0
            continue
        if any(t.barriers for t in threads):
            blocked = frozenset(
                s for scenario in scenarios(test, machine.formulas, threads, check) for s in scenario.stuck
            )
            if blocked - stuck:
                stuck, executions = stuck | blocked, 0
                continue
        return machine, threads


def _guarded(op: Op) -> bool:
    """Whether what is executed may depend on values: then a write may owe its existence to a read of itself."""
    return (
        op.guard is not None
        or (isinstance(op, Branch) and op.condition is not None)
        or (isinstance(op, Atomic) and op.op == "cas")
    )


def _refuse_mixed_sizes(machine: Machine) -> None:
    """Raise an error if two accesses may overlap partially."""
    ranges: dict[str, dict[tuple[int, int], Op]] = {}
    for event in machine.events:
        for place in event.places:
            ranges.setdefault(place.physical, {}).setdefault((place.offset, place.size), event.op)
    for key, found in ranges.items():
        ordered = sorted(found)
        for (offset, size), (other, other_size) in combinations(ordered, 2):
            if other < offset + size:
                raise partial_overlap(machine.test, key, found[offset, size], found[other, other_size])
