"""What the execution of all threads has in common, and the state of one path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ptxmm.events.symbolic.event import Event, Place
from ptxmm.events.symbolic.values import Domain, Expressions, Reads, Value, only
from ptxmm.program.test import EventId, Test
from ptxmm.relations.formula import Formula, Formulas


@dataclass(frozen=True, slots=True)
class Control:
    """Open branches with one join, where the registers ``assigned`` come to depend on ``reads``."""

    assigned: frozenset[str]
    reads: Reads


@dataclass(slots=True)
class State:
    guard: Formula
    registers: dict[str, Value]
    controls: dict[int, Control] = field(default_factory=dict)
    wrote: dict[int, Formula] = field(default_factory=dict)


class Machine:
    """Executes the threads of ``test``; events are numbered across threads. ``check`` may raise ``Timeout``.

    ``possible`` gives the values that a read may find in a cell (physical key, offset, size) with their support,
    ``cells`` how a range splits into cells. ``free``: guards that depend on reads may go either way, to see what would
    be written if they did. ``stuck`` are the barrier instructions at which a thread may wait for ever.
    """

    def __init__(
        self,
        test: Test,
        formulas: Formulas,
        unroll: int,
        simplify: bool,
        possible: Callable[[tuple[str, int, int], EventId], dict[int, int]],
        free: bool,
        split: frozenset[str],
        stuck: frozenset[EventId],
        check: Callable[[], None],
    ) -> None:
        self.check = check
        self.test = test
        self.formulas = formulas
        self.unroll = unroll
        self.expressions = Expressions(simplify)
        self.possible = possible
        self.free = free
        self.split = split
        self.stuck = stuck
        self.events: list[Event] = []
        self.read_cells: dict[int, dict[tuple[str, int, int], Domain]] = {}
        self.outside: list[tuple[Formula, str]] = []
        self.passes: dict[tuple[EventId, int], Formula] = {}
        self._choices = 0
        self.zero = Value(only(0), self.expressions.constant(0), {})

    def cells(self, place: Place) -> list[tuple[str, int, int]]:
        """The cells of the byte range of ``place``."""
        if place.physical in self.split:
            return [(place.physical, place.offset + i, 1) for i in range(place.size)]
        return [(place.physical, place.offset, place.size)]

    def new_choice(self) -> int:
        """A fresh number for a set of mutually exclusive variables."""
        self._choices += 1
        return self._choices

    def union(self, a: Reads, b: Reads) -> Reads:
        """The reads of ``a`` and those of ``b``."""
        if not b or a is b:
            return a
        if not a:
            return b
        result = dict(a)
        for read, when in b.items():
            result[read] = self.formulas.either(result[read], when) if read in result else when
        return result

    def either_way(self, condition: Formula, reads: Reads) -> Formula:
        """``condition``, or where it depends on ``reads`` and guards are free, a new variable."""
        return self.formulas.variable() if self.free and reads else condition
