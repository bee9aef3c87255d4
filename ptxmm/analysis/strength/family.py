"""All strengths of a program at once, for every value that memory without an initial value may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.property import Requirement
from ptxmm.analysis.strength.units import aligned
from ptxmm.analysis.uninitialised import settle_uninitialised
from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed, Witness, observing
from ptxmm.engines.symbolic.problem import next_grid
from ptxmm.engines.symbolic.strengths import Strengths, Unwanted
from ptxmm.program.condition import terms
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.shared import convergence
from ptxmm.program.shared.control import control_flow
from ptxmm.program.shared.launches import held
from ptxmm.program.shared.polls import without_repeats
from ptxmm.program.test import Placement, Test, Thread
from ptxmm.program.unspecified.unknown import assignments
from ptxmm.program.variation import Variation
from ptxmm.ptx.ops import Branch, Op


class Shown(Struct, frozen=True):
    """An execution of ``test`` under ``model``, and what is ``unwanted`` of it; the test is a program with
    some values of unknown memory, or with threads that are held back."""

    test: Test
    model: Model
    unwanted: Unwanted
    witness: Witness


class Family:
    """The programs that ``variations`` make of ``test``, one problem for each value that unknown memory may have.

    A problem is made when it is first asked. Two facts are not part of these problems: they have them from ``test``.
    Which instructions a warp executes together, and which stores on the ways of a branch are the same. A program of
    which these facts are others has a problem of its own; so has the strongest, without any switches, since that is
    made in a part of the time, and where it does something unwanted nothing else has to be asked.
    """

    def __init__(
        self,
        test: Test,
        variations: Mapping[Site, Variation],
        model: Model,
        required: Requirement,
        limits: Limits,
    ) -> None:
        self._limits = limits
        self._given = model, required
        self._test, self._variations = test, variations
        shared = aligned(test).keys()
        self.switches = frozenset(switch for v in variations.values() for _, needs in v.forms for switch in needs)
        ways = model.readings.get("dep") == "value"
        self._varied = any(site in shared or (ways and _has_ways(test.threads[site.thread])) for site in variations)
        self._facts = self._told(self.switches) if self._varied else None
        self._parts = tuple(self._problems())
        self._made: dict[int, Strengths] = {}
        self._own: dict[frozenset[Switch], bool] = {}
        """Whether those that have a problem of their own suffice."""

    def suffices(self, on: frozenset[Switch]) -> bool:
        """Whether the program that exactly the switches ``on`` make does nothing unwanted. Raises ``Timeout``."""
        self._limits.check()
        if self._variations and (on == self.switches or (self._varied and self._told(on) != self._facts)):
            if on not in self._own:
                self._own[on] = Family(self._program(on), {}, *self._given, self._limits).suffices(frozenset())
            return self._own[on]
        return self._unwanted(on) is None

    @property
    def ends(self) -> bool:
        """Whether some final state is unwanted."""
        return self._given[1].bad is not None

    def shown(self) -> Shown | None:
        """An unwanted execution of ``test``, which has no variations; None if there is none. Raises ``Timeout``."""
        found = self._unwanted(frozenset())
        if found is None:
            return None
        test, unwanted = self._parts[found[0]]
        return Shown(test, self._given[0], unwanted, found[1])

    def wanted(self) -> Shown | None:
        """An execution of ``test``, which has no variations, that reaches its end in a state that may be, if there is
        one with some values of unknown memory. Raises ``Timeout``."""
        found = ((number, member.wanted()) for number, member in enumerate(self._members()))
        shown = (Shown(self._parts[n][0], self._given[0], self._parts[n][1], w) for n, w in found if w is not None)
        return next(shown, None)

    def reaches_end(self) -> bool:
        """Whether some execution of ``test``, which has no variations, reaches its end. Raises ``Timeout``."""
        return any(member.ends(frozenset()) for member in self._members())

    def more(self, on: frozenset[Switch]) -> frozenset[Switch] | None:
        """A larger set of switches that is not enough, or None if there is none. Raises ``Timeout``."""
        rest = self.switches - on
        for member in self._members() if rest else ():
            found = member.more(on, rest)
            if found is not None:
                return found if not self._varied or not self.suffices(found) else None
        return None

    def _unwanted(self, on: frozenset[Switch]) -> tuple[int, Witness] | None:
        """An unwanted execution of the program that the switches ``on`` make, and the number of the part."""
        found = ((number, member.find(on)) for number, member in enumerate(self._members()))
        return next(((number, witness) for number, witness in found if witness is not None), None)

    def _members(self) -> Iterator[Strengths]:
        model, _ = self._given
        for number, (test, unwanted) in enumerate(self._parts):
            self._limits.check()
            if number not in self._made:
                self._made[number] = Strengths(test, model, self._variations, unwanted, self._limits)
            yield self._made[number]

    def _problems(self) -> Iterator[tuple[Test, Unwanted]]:
        model, required = self._given
        every = bool(self._variations)  # lanes that are alike differ once one is weakened
        unwanted = replace(required.unwanted, proposition=None, deadlock=False)  # of which such executions show nothing
        named = () if required.bad is None else terms(required.bad)
        test = self._test if every else self._shorter(observing(named))
        tests = [assigned.test for assigned in assignments(test, named, every)]
        yield from ((test, required.unwanted) for test in tests)
        yield from ((part, unwanted) for test in tests for part in held(test, next_grid(model)))

    def _shorter(self, named: Observed) -> Test:
        """The program without what makes no difference to it; to a weaker one it may."""
        return settle_uninitialised(without_repeats(self._test, named.registers), self._given[0], self._limits, named)

    def _forms(self, on: frozenset[Switch]) -> dict[Site, Op | None]:
        return {site: variation.at(on) for site, variation in self._variations.items()}

    def _program(self, on: frozenset[Switch]) -> Test:
        """The program that exactly the switches ``on`` make."""
        return edited(self._test, {site: () if op is None else (op,) for site, op in self._forms(on).items()})

    def _told(self, on: frozenset[Switch]) -> tuple[object, ...]:
        """The facts about that program, in places of ``test``."""
        program, absent = self._program(on), {site for site, op in self._forms(on).items() if op is None}
        ways: list[object] = []
        for number, (before, thread) in enumerate(zip(self._test.threads, program.threads, strict=True)):
            kept = [pc for pc in range(len(before.body) + 1) if (number, pc) not in absent]
            if _has_ways(thread):
                flow = control_flow(thread, values=True)
                ways.append({kept[pc]: kept[branch] for pc, branch in flow.twins.items()})
                ways.append({kept[pc]: registers for pc, registers in flow.same.items()})
        return _same(program), ways


def _has_ways(thread: Thread) -> bool:
    return any(isinstance(op, Branch) or op.guard is not None for op in thread.body)


def _same(test: Test) -> list[list[int]]:
    """Which aligned instructions of the threads of each warp are the same: by the number of the first of them."""
    first: dict[tuple[Placement, str], int] = {}
    return [
        [first.setdefault((thread.placement, known[pc]), len(first)) for pc in sorted(known)]
        for thread, known in zip(test.threads, convergence.sites(test), strict=True)
    ]
