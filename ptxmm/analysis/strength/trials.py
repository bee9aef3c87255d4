"""Strengths that are tried one program at a time, in the light of the unwanted executions that were met before.

The problem of all strengths of a kernel takes long to make; one of a single program is small, and an execution that is
known is looked for before (``known``). So the smallest steps that exclude all executions known are added, a program of
these is asked for another one, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import partial

from ptxmm.analysis.strength.known import Executions, Met, Placed
from ptxmm.program.identity import Switch


class Trials:
    """The programs that ``program`` gives for switches beside those given. ``known`` are unwanted executions, which
    ``asked`` adds to: it gives one of a program, or None where it has none, and may raise ``Timeout``."""

    def __init__(
        self,
        program: Callable[[Collection[Switch]], Placed],
        known: Executions,
        asked: Callable[[Placed], Met | None],
    ) -> None:
        self._program, self._known, self._asked = program, known, asked

    def least(self, switches: Sequence[Switch]) -> frozenset[Switch] | None:
        """Some of ``switches`` that suffice, of which none can be left out, rather the first of them; None where all
        of them do not exclude an execution that was met."""
        chosen: list[Switch] = []
        while (met := self._asked(self._program(chosen))) is not None:
            more = _least(switches, partial(self._excludes, met, tuple(chosen)))
            if more is None:
                return None
            chosen += more
        for switch in reversed(chosen[:]):
            rest = self._program([other for other in chosen if other != switch])
            if self._known.of(rest) is None and self._asked(rest) is None:
                chosen.remove(switch)
        return frozenset(chosen)

    def _excludes(self, met: Met, one: Sequence[Switch], two: Sequence[Switch]) -> bool:
        return met.in_(self._program((*one, *two))) is None


def _least(switches: Sequence[Switch], enough: Callable[[Sequence[Switch]], bool]) -> list[Switch] | None:
    """The first of ``switches`` that are ``enough``, none of which can be left out; None if all are not."""
    if not enough(switches):
        return None
    chosen: list[Switch] = []
    while not enough(chosen):
        last = bisect_left(range(len(switches)), True, key=lambda n: enough((*chosen, *switches[: n + 1])))
        chosen.append(switches[last])
        switches = switches[:last]
    return chosen
