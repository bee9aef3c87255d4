"""All minimal sets of steps that suffice, the cheapest first.

A set suffices or not, and more steps never make it fail. Every set that does not suffice lacks something that each
sufficient one has: the sets that suffice hit the complement of every largest one that does not. The cheapest hitting
set of the complements known is tried next; it either suffices, and is then minimal, or shows one more complement.
Source: the duality of minimal unsatisfiable and minimal correction sets, used in this order by Ignatiev, Previti,
Liffiton and Marques-Silva, "Smallest MUS extraction with minimal hitting set dualization" (CP 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from ptxmm.events.symbolic.variants import Switch


def minimal_sets(
    costs: Mapping[Switch, int],
    suffices: Callable[[frozenset[Switch]], bool],
    check: Callable[[], None],
    excluded: Collection[frozenset[Switch]] = (),
) -> Iterator[frozenset[Switch]]:
    """The minimal sets of the switches of ``costs`` (each at least 1) that suffice, in the order of their cost.

    Sets that contain one of ``excluded`` are left out. ``check`` may raise ``Timeout``, and so may ``suffices``.
    """
    everything = frozenset(costs)
    if not suffices(everything):
        return
    hitting = _Hitting(costs)
    for known in excluded:
        hitting.avoid(known)
    while True:
        check()
        chosen = hitting.cheapest()
        if chosen is None:
            return
        if suffices(chosen):
            yield chosen
            hitting.avoid(chosen)
        else:
            hitting.hit(everything - _grown(chosen, everything, suffices, check))


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
    """Cheapest sets that hit some sets and contain none of others, by Z3's optimizer."""

    def __init__(self, costs: Mapping[Switch, int]) -> None:
        import z3

        self._z3 = z3
        self._optimizer = z3.Optimize()
        self._variables = {switch: z3.Bool("_".join(map(str, switch))) for switch in costs}
        for switch, variable in self._variables.items():
            self._optimizer.add_soft(z3.Not(variable), costs[switch])

    def hit(self, switches: Collection[Switch]) -> None:
        self._optimizer.add(self._z3.Or([self._variables[s] for s in switches]))

    def avoid(self, switches: Collection[Switch]) -> None:
        self._optimizer.add(self._z3.Or([self._z3.Not(self._variables[s]) for s in switches]))

    def cheapest(self) -> frozenset[Switch] | None:
        if self._optimizer.check() != self._z3.sat:
            return None
        model = self._optimizer.model()
        return frozenset(s for s, variable in self._variables.items() if self._z3.is_true(model[variable]))
