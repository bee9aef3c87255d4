"""All smallest repairs, the cheapest first: sets of structural steps, each with the strengths needed beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from msgspec import Struct, field

from ptxmm.analysis.strength.changes import Change, Costs
from ptxmm.analysis.strength.family import Family
from ptxmm.analysis.strength.joint import Agenda, Chosen, Combined, all_changes, combined, groups, projected, subsets
from ptxmm.analysis.strength.known import Executions, Met, Placed, placed
from ptxmm.analysis.strength.likely import Pairs, nearest, separated, unordered
from ptxmm.analysis.strength.structure import Step
from ptxmm.analysis.strength.sufficient import MinimalSets
from ptxmm.analysis.strength.superposition import Superposition, superposition
from ptxmm.analysis.strength.trials import Trials
from ptxmm.cat.ir import Coverage
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation

_LIKELY, _TOGETHER = 24, 3
"""So many of the most likely steps are tried first, and so many of them together."""
_MANY = 20
"""Where so many instructions vary or can be made stronger, some are looked for before the problem of all is made."""


class Repair(Struct, frozen=True):
    """The switches ``added`` to the program of some steps; ``cost`` of all."""

    chosen: Chosen
    added: frozenset[Switch]
    cost: int
    program: Test
    changes: tuple[Change, ...]


class _Open(Struct):
    """A program of some steps, which cost ``cost``. ``alone``: it is to be tried as it is. ``weights``: of the switches
    that can be added; ``sets``: of these, once the problem of all of them is made; ``least``: those accepted."""

    program: Combined
    everything: Superposition
    cost: int
    weights: Mapping[Switch, int]
    alone: bool
    sets: MinimalSets | None = None
    least: list[frozenset[Switch]] = field(default_factory=list)

    @property
    def next(self) -> int | None:
        """What the next repair costs at least; None: there is none."""
        if self.alone:
            return self.cost
        least = min(self.weights.values(), default=None) if self.sets is None else self.sets.cost
        return None if least is None else self.cost + least


class Repairs:
    """The smallest repairs of ``test``.

    ``problem`` gives the problem of a program that so many steps make, and of its variations. ``cost``: no
    repair that is still to be found is cheaper; None: there is none. ``tried``: how many strengths were tried. No more
    than ``most`` steps are made together, and so many sets of several are tried as ``sets`` says; ``missed``: none of
    several that cost so much or more was tried.

    The program of each set of steps is tried as it is; only where that is not enough, and when its turn comes, the
    problem of all its strengths is made, which takes much longer. A set of steps is left out with all larger ones if
    it repairs the program alone, or a part of it does. Of the sets of switches that a larger one needs those are left
    out that have all switches that a smaller one needs. These are cheaper, and known by then, since the search goes on
    where the next repair may be cheapest.
    """

    def __init__(
        self,
        test: Test,
        steps: Sequence[Step],
        coverage: Coverage,
        costs: Costs,
        problem: Callable[[int, Test, Mapping[Site, Variation]], Family],
        check: Callable[[], None],
        most: int | None = None,
        sets: int | None = None,
    ) -> None:
        self._test, self._steps, self._coverage, self._costs = test, steps, coverage, costs
        self._problem, self._check = problem, check
        self._agenda = Agenda(steps, most)
        self._open: dict[Chosen, _Open] = {}
        self._heap: list[tuple[int, Chosen]] = []
        self._several = sets
        self._tried: dict[Chosen, Pairs | None] = {}
        self._known = Executions()
        self._endless: set[Chosen] = set()
        self._wanted: tuple[Met, ...] | None = None
        self._told: set[Chosen] = set()
        self.tried = 0
        self.missed: int | None = None

    def likely(self) -> Iterator[Repair]:
        """Repairs by steps alone that order what is not ordered in an unwanted execution; where one step is not enough,
        the one that leaves least is kept, and an unwanted execution of that program shows the next. They come before
        all others, not by their cost, and are not given again."""
        kept: Chosen = ()
        left = self._unordered(*combined(self._test, self._steps, kept))
        while left and len(kept) < _TOGETHER:
            counts = {n: separated(step, left) for n, step in enumerate(self._steps) if n not in kept}
            order = self._likeliest(kept, sorted((n for n in counts if counts[n]), key=lambda n: (-counts[n], n)))
            short: list[tuple[int, Chosen, Pairs]] = []
            for number in order[:_LIKELY]:
                for program in combined(self._test, self._steps, tuple(sorted((*kept, number)))):
                    rest = self._unordered(program)
                    if rest:
                        short.append((len(rest), program.chosen, rest))
                    elif rest is None and not any(self._enough(part) for part in subsets(program.chosen)):
                        self._told.add(program.chosen)
                        yield self._repair(self._item(program), frozenset())
            if self._told or not short:
                return
            _, kept, left = min(short, key=lambda item: item[:2])

    def _likeliest(self, kept: Chosen, order: Sequence[int]) -> list[int]:
        """The steps ``order``, rather those first that let an execution take place that is wanted: many barriers keep
        their threads from meeting."""
        if len(order) <= 1:
            return [*order]
        (program,) = combined(self._test, self._steps, ())
        if self._wanted is None:
            shown = self._problem(0, program.test, {}).wanted()
            self._wanted = () if shown is None else (Met(placed(program), shown),)
        likely: list[int] = []
        later: list[int] = []
        for number in order:
            if len(likely) == _LIKELY:
                break
            self._check()
            made = combined(self._test, self._steps, tuple(sorted((*kept, number))))
            fits = any(met.fits(placed(program)) for met in self._wanted for program in made)
            (likely if fits else later).append(number)
        return [*likely, *later]

    def likely_orders(self) -> Iterator[Repair]:
        """One by orders, scopes and fences, of a program in which so many instructions vary that the problem of all
        takes long; those come first that are likeliest to order what is not ordered in an unwanted execution. As of
        ``likely``."""
        (program,) = combined(self._test, self._steps, ())
        item = self._item(program)
        many = max(len(item.everything.forms), len(item.weights)) >= _MANY
        left = self._unordered(program) if many else None
        if left is None:
            return
        near = nearest(item.everything, item.weights, left)
        # An execution that is known says nothing of the order of a fence.sc that it does not have; accesses that are
        # made strong do not race, but where no final state is unwanted what they find may be out of order.
        without = ("sc",) if self._problem(0, program.test, {}).ends else ("sc", "strong")
        far = sorted((s for s in item.weights if item.everything.step(s) not in without), key=item.weights.__getitem__)

        def made(on: Collection[Switch]) -> Placed:
            return placed(program, item.everything, item.everything.given.union(on))

        trials = Trials(made, self._known, lambda asked: self._asked((), asked))
        added = trials.least(tuple(dict.fromkeys((*near, *far))))
        if added is not None:
            yield self._repair(item, added)

    def _asked(self, chosen: Chosen, program: Placed) -> Met | None:
        """An unwanted execution of a program of the steps ``chosen``, which is known from now on; so is whether after
        steps alone no execution reaches its end."""
        self._check()
        self.tried += 1
        family = self._problem(len(chosen), program.test, {})
        shown = family.shown()
        if shown is None and chosen and not family.reaches_end():
            self._endless.add(chosen)
        return None if shown is None else self._known.add(program, shown)

    def _is_unwanted(self, chosen: Chosen, program: Placed) -> bool:
        """Whether a program of the steps ``chosen`` has an unwanted execution, or none that reaches its end."""
        known = self._known.of(program) is not None
        return known or self._asked(chosen, program) is not None or chosen in self._endless

    def _enough(self, chosen: Chosen) -> bool:
        """Whether some steps are a repair alone."""
        programs = combined(self._test, self._steps, chosen) if chosen else ()
        return any(self._unordered(program) is None for program in programs)

    def _unordered(self, program: Combined) -> Pairs | None:
        """What is not ordered in an unwanted execution of a program of some steps, in places of the test; None: it has
        none."""
        chosen = program.chosen
        if chosen not in self._tried:
            self._check()
            shown = self._known.of(placed(program))
            if shown is None and (met := self._asked(chosen, placed(program))) is not None:
                shown = met.shown
            left: Pairs = frozenset() if shown is None else unordered(shown.test, shown.model, shown.witness)
            enough = shown is None and chosen not in self._endless
            self._tried[chosen] = None if enough else frozenset(_origins(program, left))
        return self._tried[chosen]

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
        added = self._alone(item) if item.alone else self._strengthened(item)
        return None if added is None else self._repair(item, added)

    def _repair(self, item: _Open, added: frozenset[Switch]) -> Repair:
        on = item.everything.given | added
        cost = item.cost + sum(self._costs.of(item.everything, switch) for switch in added)
        found = all_changes(self._test, item.program, item.everything, on)
        return Repair(item.program.chosen, added, cost, item.everything.program(on), found)

    def accept(self, repair: Repair) -> None:
        """Leave out all larger repairs from now on."""
        smaller = self._open[repair.chosen]
        smaller.least.append(repair.added)
        for item in self._open.values():
            if item.sets is not None and repair.chosen in subsets(item.program.chosen):
                _avoid(item, item.sets, smaller, [repair.added])

    def _begin(self) -> None:
        """Open the programs of the next set of steps."""
        following = self._agenda.pop()
        assert following is not None
        chosen, cost = following
        if len(chosen) > 1 and self._several == 0:
            self.missed = cost
            self._agenda.narrow()
            return
        promising = False
        for program in combined(self._test, self._steps, chosen):
            smaller = [self._open[part] for part in (*subsets(program.chosen), program.chosen) if part in self._open]
            if any(not known for item in smaller for known in item.least):
                continue
            promising = True
            item = self._item(program)
            if program.chosen not in self._told:
                self._push(item)
        if promising and self._several is not None and len(chosen) > 1:
            self._several -= 1
        if promising:
            self._agenda.extend(chosen)

    def _item(self, program: Combined) -> _Open:
        if program.chosen not in self._open:
            everything = superposition(program.test, self._coverage, stronger=True)
            weights = {s: self._costs.of(everything, s) for s in everything.switches - everything.given}
            cost = sum(self._steps[number].cost for number in program.chosen)
            alone = bool(program.chosen) and program.chosen not in self._tried
            self._open[program.chosen] = _Open(program, everything, cost, weights, alone)
        return self._open[program.chosen]

    def _alone(self, item: _Open) -> frozenset[Switch] | None:
        """The steps of a program without any switches, if they are enough."""
        item.alone = False
        if not self._is_unwanted(item.program.chosen, placed(item.program)):
            return frozenset()  # and with switches it is larger
        self._push(item)
        return None

    def _strengthened(self, item: _Open) -> frozenset[Switch] | None:
        """The next set of switches, if it is enough."""
        if item.sets is None:
            everything = item.everything
            strongest = placed(item.program, everything, everything.switches)
            # What does not end does not if it is stronger.
            if item.program.chosen in self._endless or self._is_unwanted(item.program.chosen, strongest):
                item.weights = {}
                return None
            item.sets = self._sets(item)
            for known in item.least:
                item.sets.avoid([frozenset((switch,)) for switch in known])
            for other in (self._open[part] for part in subsets(item.program.chosen) if part in self._open):
                _avoid(item, item.sets, other, other.least)
        added = item.sets.advance() if item.sets.cost is not None else None
        self._push(item)
        return added

    def _sets(self, item: _Open) -> MinimalSets:
        """The smallest sets of switches beside those given; what they are asked about is counted."""
        given = item.everything.given
        family = self._problem(len(item.program.chosen), item.everything.test, item.everything.variations)

        def suffices(added: frozenset[Switch]) -> bool:
            if len(added) == len(item.weights):
                return True  # it was asked before
            self.tried += 1
            return family.suffices(given | added)

        def more(added: frozenset[Switch]) -> frozenset[Switch] | None:
            self.tried += 1
            found = family.more(given | added)
            return None if found is None else found - given

        return MinimalSets(item.weights, suffices, self._check, more)

    def _push(self, item: _Open) -> None:
        if item.next is not None:
            heappush(self._heap, (item.next, item.program.chosen))


def _origins(program: Combined, pairs: Pairs) -> Iterator[tuple[Site, Site]]:
    """Those of ``pairs`` that are of instructions of the test, in its places."""
    for pair in pairs:
        found = [Site(thread, program.origins[thread][index].index or 0) for thread, index in pair]
        if all(program.origins[thread][index].index is not None for thread, index in pair):
            yield found[0], found[1]


def _avoid(item: _Open, sets: MinimalSets, smaller: _Open, least: Sequence[frozenset[Switch]]) -> None:
    projection = projected((item.program, item.everything), (smaller.program, smaller.everything))
    for found in groups(least, projection):
        sets.avoid(found)
