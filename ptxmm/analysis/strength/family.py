"""All strengths of a program at once, for every value that memory without an initial value may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ptxmm.analysis.property import Requirement
from ptxmm.cat import Model
from ptxmm.engines.problem import next_grid
from ptxmm.engines.result import Limits
from ptxmm.engines.strengths import Strengths
from ptxmm.events.symbolic.variants import Site, Switch, Variation
from ptxmm.program.launches import held
from ptxmm.program.test import Test
from ptxmm.program.unknown import assignments


class Family:
    """The programs that ``variations`` make of ``test``, one problem for each value that unknown memory may have."""

    def __init__(
        self,
        test: Test,
        variations: Mapping[Site, Variation],
        model: Model,
        required: Requirement,
        limits: Limits,
    ) -> None:
        self._limits = limits
        self.switches = frozenset(switch for v in variations.values() for _, needs in v.forms for switch in needs)
        self._members = [
            Strengths(assigned.test, model, variations, required.unwanted, limits)
            for assigned in assignments(test, every=True)  # lanes that are alike differ once one is weakened
        ]
        unwanted = replace(required.unwanted, proposition=None, deadlock=False)  # of which such executions show nothing
        self._members += [
            Strengths(part, model, variations, unwanted, limits)
            for assigned in assignments(test, every=True)
            for part in held(assigned.test, next_grid(model))
        ]

    def suffices(self, on: frozenset[Switch]) -> bool:
        """Whether the program that exactly the switches ``on`` make does nothing unwanted. Raises ``Timeout``."""
        self._limits.check()
        return all(member.find(on) is None for member in self._members)

    def more(self, on: frozenset[Switch]) -> frozenset[Switch] | None:
        """A larger set of switches that is not enough, or None if there is none. Raises ``Timeout``."""
        rest = self.switches - on
        for member in self._members if rest else ():
            self._limits.check()
            found = member.more(on, rest)
            if found is not None:
                return found
        return None
