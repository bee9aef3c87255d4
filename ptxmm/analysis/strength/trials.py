"""Strengths that are tried one program at a time, in the light of the unwanted executions that were met before.

The problem of all strengths of a kernel takes long to make; one of a single program is small, and whether an execution
that is known is one of another program too takes a hundredth of that: it is only rebuilt. So the smallest steps that
exclude all executions known are added, a program of these is asked for another one, and so on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from functools import partial

from ptxmm.analysis.strength.family import Shown
from ptxmm.analysis.strength.superposition import Superposition
from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Nothing, Op


class Trials:
    """The programs of the switches of ``everything`` with those given. ``shown`` gives an unwanted execution of a
    program, or None where it has none, and may raise ``Timeout``."""

    def __init__(self, everything: Superposition, shown: Callable[[Test], Shown | None]) -> None:
        self._everything, self._shown = everything, shown
        self._known: list[tuple[Shown, frozenset[str]]] = []
        """Unwanted executions with the flags that they raise."""

    def least(self, switches: Sequence[Switch]) -> frozenset[Switch] | None:
        """Some of ``switches`` that suffice, of which none can be left out, rather the first of them; None where all
        of them do not exclude an execution that was met."""
        chosen: list[Switch] = []
        while (found := self._unwanted(chosen)) is not None:
            more = _least(switches, partial(self._excludes, found, tuple(chosen)))
            if more is None:
                return None
            chosen += more
        for switch in reversed(chosen[:]):
            rest = [other for other in chosen if other != switch]
            if not any(self._is_in(rest, known) for known in self._known) and self._unwanted(rest) is None:
                chosen = rest
        return frozenset(chosen)

    def _unwanted(self, on: Collection[Switch]) -> tuple[Shown, frozenset[str]] | None:
        """An unwanted execution of the program with the switches ``on``, which is known from now on."""
        shown = self._shown(self._program(self._everything.test, on))
        if shown is None:
            return None
        self._known.append((shown, _raised(shown.test, shown) or frozenset()))
        return self._known[-1]

    def _is_in(self, on: Collection[Switch], known: tuple[Shown, frozenset[str]]) -> bool:
        """Whether the program with the switches ``on`` has an execution that is ``known``, as far as can be told, and
        it is unwanted there for the same reason."""
        shown, before = known
        raised = _raised(self._program(shown.test, on), shown)
        return raised is not None and (bool(raised) or not before)

    def _excludes(self, known: tuple[Shown, frozenset[str]], one: Sequence[Switch], two: Sequence[Switch]) -> bool:
        return not self._is_in((*one, *two), known)

    def _program(self, test: Test, on: Collection[Switch]) -> Test:
        """``test``, some program of the superposition, with the switches ``on`` beside those given. What is not there
        is an instruction without effect, so that all of them have the same places."""
        everything = self._everything
        steps = everything.given.union(on)
        edits: dict[Site, tuple[Op, ...]] = {}
        for site, forms in everything.forms.items():
            here, form = test.at(site), everything.form(site, steps)
            # A thread that is held back has another instruction here.
            if isinstance(here, Nothing) or any(here == other for other, _ in forms.forms):
                edits[site] = (Nothing(None, None, here.source) if form is None else form,)
        return edited(test, edits)


def _raised(test: Test, shown: Shown) -> frozenset[str] | None:
    """The unwanted flags that the execution ``shown`` raises in ``test``; None if that has no such execution."""
    try:
        rebuilt = Confirmer(test, shown.model).rebuild(shown.witness)
    except Unconfirmed:
        return None
    if next(rebuilt.violated(), None) is not None:
        return None
    satisfies, axioms = rebuilt.layout.algebra.satisfies, rebuilt.evaluator.axioms()
    asked = ((axiom, value) for axiom, value in axioms if axiom.flag and axiom.name in shown.unwanted.flags)
    return frozenset(axiom.name for axiom, value in asked if satisfies(axiom.kind, axiom.negated, value))


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
