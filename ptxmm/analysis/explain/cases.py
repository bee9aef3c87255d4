"""Reasons as a tree of cases: which of them holds, by the order or the reads-from that tells executions apart.

A case is split by a fact of a reason that some of its executions have and others have not: those that have it, and all
others. Every execution is in one of the two, and a case ends where all its executions have the same reason; so the
cases are exhaustive, and each has been asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.phrases import placed
from ptxmm.analysis.explain.reasons import Found, NamedFact, Search, applies, numbered
from ptxmm.analysis.explain.steps import Edge
from ptxmm.analysis.explain.words import EDGES as EDGE_WORDS
from ptxmm.cat.derivation import EDGES
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.engines.result import Limits

MOST = 12
"""Of more reasons than this there is no tree: it would be longer than they are."""

_TELLING = ("fsc", "sync_fence", "co", "rf")
"""The relations that cases are told apart by, the first of these that does."""

_ORDERS = ("fsc", "sync_fence", "co")


class Case(Struct, frozen=True):
    """Some of the executions that end in the states asked about: those of which ``text`` says what tells them apart,
    which is the ``step`` (None: they have none of the steps of the cases before). All of them have the reason of this
    number, counted from 1 through all ``groups``, or (None) are in one of ``cases``."""

    text: str
    step: Edge | None
    reason: int | None
    cases: tuple[Case, ...] = ()


class Split(Struct, frozen=True):
    """The executions that have ``fact``, or (None) none of the facts of the cases before it; all of them have the
    reason ``found``, or (None) are in one of ``cases``."""

    fact: NamedFact | None
    found: Found | None
    cases: tuple[Split, ...] = ()


class _Part(Struct, frozen=True):
    """The executions that have all the facts ``having`` and none of ``lacking``."""

    having: tuple[NamedFact, ...] = ()
    lacking: tuple[NamedFact, ...] = ()

    @property
    def excluded(self) -> list[frozenset[NamedFact]]:
        return [frozenset((fact,)) for fact in self.lacking]

    def has(self, execution: Rebuilt) -> bool:
        return applies(frozenset(self.having), execution) and not any(applies(f, execution) for f in self.excluded)


def split(search: Search, limits: Limits, found: Sequence[Found]) -> tuple[Split, ...]:
    """The cases of the reasons ``found``, which are exhaustive for the executions of ``search``; none where these can't
    be told apart by an order or by what reads read. Raises ``Timeout``."""
    if not 1 < len(found) <= MOST:
        return ()
    ranked = sorted(found, key=lambda item: item.rank)
    cases = _Cases(search, limits, ranked, [item.execution for item in found])
    return cases.of(_Part()) or ()


def used(splits: Iterable[Split], found: Found) -> bool:
    """Whether a case has this reason."""
    return any(item.found is found or used(item.cases, found) for item in splits)


class _Cases(Struct):
    """Splits parts of the executions of ``search``; ``known``: those that have been met."""

    search: Search
    limits: Limits
    found: Sequence[Found]
    known: list[Rebuilt]

    def of(self, part: _Part) -> tuple[Split, ...] | None:
        """The cases of a part whose executions do not all have one reason; None if nothing tells them apart."""
        cases: list[Split] = []
        while (one := self._reason(part)) is None:
            fact = self._telling(part)
            if fact is None:
                return None
            chosen = _Part((*part.having, fact), part.lacking)
            case = self._case(fact, chosen)
            if case is None:
                return None
            cases.append(case)
            part = _Part(part.having, (*part.lacking, fact))
            if not self._some(part):
                return tuple(cases)
            other = self._instead(part, fact)
            if other is not None:
                case = self._case(other, _Part((*part.having, other), part.lacking))
                return None if case is None else (*cases, case)
        return (*cases, Split(None, one))

    def _case(self, fact: NamedFact, part: _Part) -> Split | None:
        one = self._reason(part)
        if one is not None:
            return Split(fact, one)
        cases = self.of(part)
        return None if cases is None else Split(fact, None, cases)

    def _reason(self, part: _Part) -> Found | None:
        """The first reason that all executions of ``part`` have."""
        for item in self.found:
            if not self._some(part, (item.named,)):
                return item
        return None

    def _telling(self, part: _Part) -> NamedFact | None:
        """A fact that some executions of ``part`` have and others have not; of the reason that has fewest such."""
        candidates = []
        for number, item in enumerate(self.found):
            facts = [f for f in item.named if f[3] and f[0] in EDGES and self._some(part, (frozenset((f,)),))]
            if self._some(_Part((*part.having, *item.named), part.lacking)):
                candidates.append((len(facts), number, facts))
        for _, _, facts in sorted(candidates, key=lambda item: item[:2]):
            telling = [fact for fact in facts if fact[0] in _TELLING]
            if telling:
                return min(telling, key=lambda fact: (_TELLING.index(str(fact[0])), repr(fact[1:])))
        return None

    def _instead(self, part: _Part, fact: NamedFact) -> NamedFact | None:
        """What all executions of ``part`` have in place of ``fact``: the opposite order, or what is read instead."""
        relation, first, second, _ = fact
        assert second is not None
        others: list[NamedFact] = []
        if relation in _ORDERS:
            others.append((relation, second, first, True))
        else:
            every = (f for item in self.found for f in item.named)
            others += [f for f in every if (f[0], f[2]) == (relation, second) and f != fact]
        return next((f for f in others if not self._some(part, (frozenset((f,)),))), None)

    def _some(self, part: _Part, lacking: tuple[frozenset[NamedFact], ...] = ()) -> bool:
        """Whether some execution of ``part`` lacks a fact of each of ``lacking``."""
        for execution in self.known:
            if part.has(execution) and not any(applies(facts, execution) for facts in lacking):
                return True
        self.limits.check()
        met = self.search.next(part.having, (*part.excluded, *lacking))
        if met is None:
            return False
        self.known.append(met[1])
        return True


def cases(
    splits: Iterable[Split], views: Sequence[Views], number: Callable[[Found], int], path: tuple[Edge, ...] = ()
) -> tuple[Case, ...]:
    """``splits`` in words, after the steps on the ``path`` to them. ``views``: executions that have the events;
    ``number``: of the reason."""
    told = []
    for item in splits:
        step = None if item.fact is None else _step(item.fact, views)
        taken = path if step is None else (*path, step)
        text = "in all other executions" if step is None else placed(taken)
        inner = cases(item.cases, views, number, taken)
        told.append(Case(text, step, None if item.found is None else number(item.found), inner))
    return tuple(told)


def _step(fact: NamedFact, views: Sequence[Views]) -> Edge:
    relation, first, second, _ = fact
    assert second is not None
    words = EDGE_WORDS[str(relation)]
    for view in views:
        a, b = numbered(view.execution, first), numbered(view.execution, second)
        if a is not None and b is not None:
            return Edge(str(relation), words.text, words.section, view.event(a), view.event(b))
    raise AssertionError(fact)
