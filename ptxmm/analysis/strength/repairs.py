"""All smallest repairs, the cheapest first: sets of structural steps, each with the strengths needed beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush

from msgspec import Struct, field

from ptxmm.analysis.strength.changes import Change, Costs
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.joint import Agenda, Chosen, Combined, all_changes, combined, groups, projected, subsets
from ptxmm.analysis.strength.structure import Step
from ptxmm.analysis.strength.sufficient import MinimalSets
from ptxmm.analysis.strength.superposition import Superposition, superposition
from ptxmm.cat.ir import Coverage
from ptxmm.program.identity import Switch
from ptxmm.program.test import Test


class Repair(Struct, frozen=True):
    """The switches ``added`` to the program of some steps; ``cost`` of all."""

    chosen: Chosen
    added: frozenset[Switch]
    cost: int
    program: Test
    changes: tuple[Change, ...]


class _Open(Struct, frozen=True):
    """A program of some steps, which cost ``cost``; ``sets`` of its switches, ``least`` those that were accepted."""

    program: Combined
    everything: Superposition
    cost: int
    sets: MinimalSets
    least: list[frozenset[Switch]] = field(default_factory=list)


class Repairs:
    """The smallest repairs of ``test``.

    ``problem`` gives the problem of all strengths of a program that some steps make (first their number). ``cost``: no
    repair that is still to be found is cheaper; None: there is none. ``tried``: how many strengths were tried. No more
    than ``most`` steps are made together, and so many sets of several are tried as ``sets`` says; ``missed``: none of
    several that cost so much or more was tried.

    A set of steps is left out with all larger ones if it repairs the program alone, or a part of it does. Of the sets
    of switches that a larger one needs those are left out that have all switches that a smaller one needs. These are
    cheaper, and known by then, since the search goes on where the next repair may be cheapest.
    """

    def __init__(
        self,
        test: Test,
        steps: Sequence[Step],
        coverage: Coverage,
        costs: Costs,
        problem: Callable[[int, Superposition], Family],
        check: Callable[[], None],
        most: int | None = None,
        sets: int | None = None,
    ) -> None:
        self._test, self._steps, self._coverage, self._costs = test, steps, coverage, costs
        self._problem, self._check = problem, check
        self._agenda = Agenda(steps, most)
        self._open: dict[Chosen, _Open] = {}
        self._heap: list[tuple[int, Chosen]] = []
        self._left = sets
        self.tried = 0
        self.missed: int | None = None

    @property
    def cost(self) -> int | None:
        costs = [item[0] for item in self._heap[:1]] + [cost for cost in (self._agenda.cost,) if cost is not None]
        return min(costs, default=None)

    def advance(self) -> Repair | None:
        """Go on where the next repair may be cheapest; it is given if there is one."""
        self._check()
        if not self._heap or (self._agenda.cost is not None and self._agenda.cost <= self._heap[0][0]):
            self._begin()
            return None
        _, chosen = heappop(self._heap)
        item = self._open[chosen]
        added = item.sets.advance() if item.sets.cost is not None else None
        self._push(item)
        if added is None:
            return None
        on = item.everything.given | added
        cost = item.cost + sum(self._costs.of(item.everything, switch) for switch in added)
        found = all_changes(self._test, item.program, item.everything, on)
        return Repair(chosen, added, cost, item.everything.program(on), found)

    def accept(self, repair: Repair) -> None:
        """Leave out all larger repairs from now on."""
        smaller = self._open[repair.chosen]
        smaller.least.append(repair.added)
        for item in self._open.values():
            if repair.chosen != item.program.chosen and repair.chosen in subsets(item.program.chosen):
                _avoid(item, smaller, [repair.added])

    def _begin(self) -> None:
        """Open the programs of the next set of steps."""
        following = self._agenda.pop()
        assert following is not None
        chosen, cost = following
        if len(chosen) > 1 and self._left == 0:
            self.missed = cost
            self._agenda.narrow()
            return
        promising = False
        for program in combined(self._test, self._steps, chosen):
            smaller = [self._open[part] for part in subsets(program.chosen) if part in self._open]
            if any(not known for item in smaller for known in item.least):
                continue
            promising = True
            everything = superposition(program.test, self._coverage, stronger=True)
            weights = {s: self._costs.of(everything, s) for s in everything.switches - everything.given}
            sets = self._sets(weights, self._problem(len(chosen), everything), everything.given)
            item = self._open[program.chosen] = _Open(program, everything, cost, sets)
            for other in smaller:
                _avoid(item, other, other.least)
            self._push(item)
        if promising and self._left is not None and len(chosen) > 1:
            self._left -= 1
        if promising:
            self._agenda.extend(chosen)

    def _sets(self, weights: Mapping[Switch, int], family: Family, given: frozenset[Switch]) -> MinimalSets:
        """The smallest sets of switches beside ``given``; what they are asked about is counted."""

        def suffices(added: frozenset[Switch]) -> bool:
            self.tried += 1
            return family.suffices(given | added)

        def more(added: frozenset[Switch]) -> frozenset[Switch] | None:
            self.tried += 1
            found = family.more(given | added)
            return None if found is None else found - given

        return MinimalSets(weights, suffices, self._check, more)

    def _push(self, item: _Open) -> None:
        if item.sets.cost is not None:
            heappush(self._heap, (item.cost + item.sets.cost, item.program.chosen))


def _avoid(item: _Open, smaller: _Open, least: Sequence[frozenset[Switch]]) -> None:
    projection = projected((item.program, item.everything), (smaller.program, smaller.everything))
    for found in groups(least, projection):
        item.sets.avoid(found)
