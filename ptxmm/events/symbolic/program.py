"""A whole program on the symbolic side: its events and the choices that make an execution of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise

from msgspec import Struct
from msgspec import field as default
from msgspec.structs import replace

from ptxmm.events.symbolic.barriers.scenarios import Scenario
from ptxmm.events.symbolic.event import Event, Mbarrier, Operation, Place, ThreadEvents
from ptxmm.events.symbolic.values.domain import Domain, assemble, field, merge, only
from ptxmm.events.symbolic.values.lookups import Lookup
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.identity import EventId
from ptxmm.program.shared.unseen import NOTHING, Unseen
from ptxmm.program.test import Placement, Test
from ptxmm.relations.formula import Formula, Formulas
from ptxmm.relations.symbolic import SymbolicAlgebra

PAIRWISE = 16
"""Of up to so many formulas each pair is told to exclude each other."""

Cell = tuple[str, int, int]
"""A byte range that reads and writes take as a unit: physical key, offset, size."""


class Program(Struct):
    """Every execution of a test up to the bound, as formulas over choices.

    Events 0 .. len(events)-1 belong to threads; ``initial[cell]`` is the number of the initial write of a cell.
    ``rf[cell][r][w]``, ``co[w1, w2]``, ``fsc[f1, f2]``, ``last[range][w]`` (w = -1: initial) are the choices;
    ``scenarios`` pairs the barrier scenarios with the formula that selects each. ``constraints`` all hold in an
    execution, and no two formulas of an ``exclusive`` pair (apart, since formulas are simplified by what is in it).
    ``tear``: cells may be read from different writes wherever they meet. ``next_grid``: a grid waits for the one before
    it only (reading griddep). ``mbarriers``: the objects that are
    mbarriers. ``mixed``: the objects in which accesses may overlap partially. ``torn``: those where reads might be torn
    if that had not been ruled out. ``unseen``: what has no values; ``lookups``: values
    that are worked out when they are met. ``chosen``: predicates that may be either, on each path on which they are
    made, when that is and when they are true.
    """

    test: Test
    formulas: Formulas
    algebra: SymbolicAlgebra
    events: list[Event]
    presence: list[Formula]
    initial: dict[Cell, int]
    threads: list[ThreadEvents]
    read_cells: dict[int, dict[Cell, Domain]]
    cells_of: Callable[[Place], list[Cell]]
    rf: dict[Cell, dict[int, dict[int, Formula]]] = default(default_factory=dict)
    co: dict[tuple[int, int], Formula] = default(default_factory=dict)
    fsc: dict[tuple[int, int], Formula] = default(default_factory=dict)
    last: dict[Cell, dict[int, Formula]] = default(default_factory=dict)
    scenarios: list[tuple[Scenario, Formula]] = default(default_factory=list)
    constraints: list[Formula] = default(default_factory=list)
    exclusive: list[tuple[Formula, Formula]] = default(default_factory=list)
    undefined: list[tuple[Formula, str]] = default(default_factory=list)
    tear: bool = True
    next_grid: bool = True
    mbarriers: frozenset[str] = frozenset()
    mixed: frozenset[str] = frozenset()
    operations: list[Operation] = default(default_factory=list)
    torn: frozenset[str] = frozenset()
    unseen: Unseen = NOTHING
    lookups: list[Lookup] = default(default_factory=list)
    chosen: list[tuple[EventId, Formula, Formula]] = default(default_factory=list)

    def copy(self) -> Program:
        """The same program, to which constraints, choices and formulas can be added apart."""
        formulas = self.formulas.copy()
        return replace(
            self,
            formulas=formulas,
            algebra=SymbolicAlgebra(formulas, self.presence),
            co=self.co.copy(),
            fsc=self.fsc.copy(),
            last=self.last.copy(),
            constraints=self.constraints.copy(),
            exclusive=self.exclusive.copy(),
        )

    def operation(self, event: Event) -> Operation:
        """The asynchronous operation that ``event`` belongs to."""
        return self.operations[event.operation]

    def at_most_one(self, options: Sequence[Formula]) -> None:
        """Require that no two of ``options`` hold; of many, through a chain of variables that tell what was passed."""
        if len(options) <= PAIRWISE:
            self.exclusive += combinations(options, 2)
            return
        either, passed = self.formulas.either, [self.formulas.helper() for _ in options]
        for option, here in zip(options, passed, strict=True):
            self.constraints.append(either(-option, here))
        for (here, after), option in zip(pairwise(passed), options[1:], strict=True):
            self.constraints += [either(-here, after), either(-here, -option)]

    @property
    def finished(self) -> Formula:
        """When every thread reaches its end."""
        stuck = [-s for scenario, s in self.scenarios if scenario.waiting]
        return self.formulas.all([*(t.completed for t in self.threads), *stuck])

    @property
    def final(self) -> Formula:
        """When every thread reaches its end and nothing undefined happened."""
        return self.formulas.all([self.finished, *(-f for f, _ in self.undefined)])

    def begun(self, thread: int) -> Formula:
        """When all those threads have ended whose end ``thread`` waits for (CUDA API synchronization, 9.7.14.13)."""
        mine, length = self.test.threads[thread].placement, len(self.test.threads[thread].body)
        before = [
            (other.placement.grid, ends.completed)
            for other, ends in zip(self.test.threads, self.threads, strict=True)
            if _before(other.placement, mine)
        ]
        parts = []
        for event in self.events:
            pc = event.id.instruction
            if event.kind == "API" and event.thread == thread and pc < length and (pc >= 0 or not mine.overlap):
                last = max((grid for grid, _ in before), default=0) if pc >= 0 and self.next_grid else 0
                ended = self.formulas.all([completed for grid, completed in before if grid >= last])
                parts.append(self.formulas.either(-event.presence, ended))
        return self.formulas.all(parts)

    @property
    def all_begun(self) -> Formula:
        """When no thread is executed that waits for one that does not end."""
        return self.formulas.all([self.begun(thread) for thread in range(len(self.threads))])

    @property
    def beginning(self) -> Formula:
        """When nothing undefined happened, and what is executed is all of an execution or the beginning of one."""
        return self.formulas.all([self.all_begun, *(-f for f, _ in self.undefined)])

    @property
    def defined(self) -> Formula:
        """When nothing undefined happened."""
        return self.formulas.all([-f for f, _ in self.undefined])

    @property
    def cut(self) -> Formula:
        """When some thread would take a backward branch more often than the bound."""
        return self.formulas.both(self.formulas.any([t.cut for t in self.threads]), self.defined)

    @property
    def loops(self) -> list[tuple[tuple[int, int], Formula]]:
        """The backward branches, as (thread, index in its body), each with when it would pass the bound."""
        defined = self.defined
        return [
            ((number, pc), self.formulas.both(cut, defined))
            for number, thread in enumerate(self.threads)
            for pc, cut in thread.loops.items()
        ]

    @property
    def deadlock(self) -> Formula:
        """When some thread waits for ever at a barrier although no other was cut by the bound or spins."""
        formulas = self.formulas
        waits = formulas.any([s for scenario, s in self.scenarios if scenario.waiting])
        rest = [-f for t in self.threads for f in (t.cut, t.spun)] + [-f for f, _ in self.undefined]
        return formulas.all([waits, *rest])

    def covers(self, event: int, cell: Cell) -> Formula:
        """When the thread event accesses all of ``cell`` (given that it is executed)."""
        return self.formulas.any([p.when for p in self.events[event].places if p.contains(cell)])

    def element(self, term: MemoryTerm) -> Domain:
        """The final value of a memory element."""
        item = self.test.objects[term.key]
        if term.key in self.mbarriers:
            return self._completed((item.physical, term.index * item.type.bytes))
        start = byte = term.index * item.type.bytes
        end = start + item.type.bytes
        parts = []
        while byte < end:
            cell = (item.physical, byte, end - byte)
            if cell not in self.last:
                cell = next(c for c in self.last if c[0] == item.physical and c[1] <= byte < c[1] + c[2])
            skip, step = 8 * (byte - cell[1]), min(cell[1] + cell[2], end) - byte
            whole = merge(self.formulas, [(when, self.written(w, cell)) for w, when in self.last[cell].items()])
            parts.append((8 * (byte - start), field(self.formulas, whole, skip, 8 * step)))
            byte += step
        return assemble(self.formulas, parts, True)

    def _completed(self, mbarrier: Mbarrier) -> Domain:
        """How many phases an mbarrier has completed in the end."""
        own = {scenario.group for scenario, _ in self.scenarios if mbarrier in dict(scenario.completed)}
        arms = [
            (selector, only(dict(scenario.completed).get(mbarrier, 0)))
            for scenario, selector in self.scenarios
            if scenario.group in own and scenario.misuse is None and not scenario.waiting
        ]
        return merge(self.formulas, arms) if arms else only(0)

    def written(self, write: int, cell: Cell) -> Domain:
        """What a write (or the initial write) writes to ``cell``."""
        if not 0 <= write < len(self.events):
            return only(initial_value(self.test, cell, self.unseen.objects))
        event = self.events[write]
        arms: list[tuple[Formula, Domain]] = []
        for place in event.places:
            if place.contains(cell):
                part = event.value
                if cell[1:] != (place.offset, place.size):
                    part = field(self.formulas, part, 8 * (cell[1] - place.offset), 8 * cell[2])
                arms.append((place.when, part))
        return merge(self.formulas, arms)


def _before(one: Placement, other: Placement) -> bool:
    """Whether the grid of a thread is before that of another on the same GPU."""
    return not one.host and not other.host and one.gpu == other.gpu and one.grid < other.grid


def initial_value(test: Test, cell: Cell, hidden: frozenset[str]) -> int:
    """The value of ``cell`` before the program; 0 stands for any in objects that are ``hidden``."""
    key, offset, size = cell
    return 0 if key in hidden else test.objects[key].initial_value(offset, size)
