"""All minimal sets of steps that suffice, the cheapest first.

A set suffices or not, and more steps never make it fail. Every set that does not suffice lacks something that each
sufficient one has: the sets that suffice hit the complement of every largest one that does not. The cheapest hitting
set of the complements known is tried next; it either suffices, and is then minimal, or shows one more complement.
Source: the duality of minimal unsatisfiable and minimal correction sets, used in this order by Ignatiev, Previti,
Liffiton and Marques-Silva, "Smallest MUS extraction with minimal hitting set dualization" (CP 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ptxmm.program.identity import Switch


def minimal_sets(
    costs: Mapping[Switch, int], suffices: Callable[[frozenset[Switch]], bool], check: Callable[[], None]
) -> Iterator[frozenset[Switch]]:
    """The minimal sets of the switches of ``costs`` (each at least 1) that suffice, in the order of their cost.

    ``check`` may raise ``Timeout``, and so may ``suffices``.
    """
    sets = MinimalSets(costs, suffices, check)
    while sets.cost is not None:
        found = sets.advance()
        if found is not None:
            yield found


class MinimalSets:
    """The same, step by step. ``cost``: no set that is still to be found is cheaper; None: there is none.

    ``more``, if given, gives a larger set that does not suffice either, or None where there is none.
    """

    def __init__(
        self,
        costs: Mapping[Switch, int],
        suffices: Callable[[frozenset[Switch]], bool],
        check: Callable[[], None],
        more: Callable[[frozenset[Switch]], frozenset[Switch] | None] | None = None,
    ) -> None:
        self._costs, self._suffices, self._check, self._more = costs, suffices, check, more
        self._everything = frozenset(costs)
        self._hitting = _Hitting(costs)
        self._next: frozenset[Switch] | None = frozenset() if suffices(self._everything) else None

    @property
    def cost(self) -> int | None:
        return None if self._next is None else sum(self._costs[switch] for switch in self._next)

    def avoid(self, groups: Collection[frozenset[Switch]]) -> None:
        """Leave out the sets that have some switch of each of ``groups``."""
        self._hitting.avoid(groups)
        if self._next is not None and all(group & self._next for group in groups):
            self._next = self._hitting.cheapest()

    def advance(self) -> frozenset[Switch] | None:
        """Try the cheapest set that may suffice: it is given if it does; if not, another one is the next."""
        chosen = self._next
        assert chosen is not None
        self._check()
        enough = self._suffices(chosen)
        if enough:
            self._hitting.avoid([frozenset((switch,)) for switch in chosen])
        else:
            self._hitting.hit(self._everything - self._grown(chosen))
        self._next = self._hitting.cheapest()
        return chosen if enough else None

    def _grown(self, chosen: frozenset[Switch]) -> frozenset[Switch]:
        """A largest set that contains ``chosen`` and does not suffice."""
        if self._more is None:
            return _grown(chosen, self._everything, self._suffices, self._check)
        while (larger := self._more(chosen)) is not None:
            chosen = larger
        return chosen


def _grown(
    chosen: frozenset[Switch],
    everything: frozenset[Switch],
    suffices: Callable[[frozenset[Switch]], bool],
    check: Callable[[], None],
) -> frozenset[Switch]:
    """A largest set that contains ``chosen`` and does not suffice. Halves of what is left are tried before single
    switches, since most of them do not matter."""
    stack = [sorted(everything - chosen)]
    while stack:
        check()
        more = stack.pop()
        if not more:
            continue
        if not suffices(chosen.union(more)):
            chosen = chosen.union(more)
        elif len(more) > 1:
            middle = len(more) // 2
            stack += [more[middle:], more[:middle]]
    return chosen


class _Hitting:
    """Cheapest sets that hit some sets and avoid others, by Z3's optimizer."""

    def __init__(self, costs: Mapping[Switch, int]) -> None:
        import z3

        self._z3 = z3
        self._optimizer = z3.Optimize()
        self._variables = {switch: z3.Bool("_".join(map(str, switch))) for switch in costs}
        for switch, variable in self._variables.items():
            self._optimizer.add_soft(z3.Not(variable), costs[switch])

    def hit(self, switches: Collection[Switch]) -> None:
        self._optimizer.add(self._z3.Or([self._variables[s] for s in switches]))

    def avoid(self, groups: Collection[frozenset[Switch]]) -> None:
        """No set has some switch of each of ``groups``."""
        none = [self._z3.And([self._z3.Not(self._variables[s]) for s in group]) for group in groups]
        self._optimizer.add(self._z3.Or(none))

    def cheapest(self) -> frozenset[Switch] | None:
        if self._optimizer.check() != self._z3.sat:
            return None
        model = self._optimizer.model()
        return frozenset(s for s, variable in self._variables.items() if self._z3.is_true(model[variable]))
