"""Results made of values of several threads: barriers with a reduction, and exchanges of a warp.

PTX ISA 9.7.14.1, 9.7.10.6, 9.7.14.9 to 9.7.14.12, 9.7.14.14; decision A27. They order no memory of themselves; what is
computed from a result depends on the reads in the operands of all threads whose values are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from itertools import product
from math import prod

from msgspec import Struct

from ptxmm.events.explicit.trace import Exchange, Trace
from ptxmm.events.explicit.values.arithmetic import compute
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.identity import EventId

Links = Mapping[tuple[int, int], "Link"]
"""What each result stands for, by thread and number of its leaf."""

Values = frozenset[int] | None
"""The values that something may have; None: too many to list."""


class Link(Struct, frozen=True):
    """The result ``number`` of an exchange of a thread: the value (``which`` 0) or the predicate (1).

    ``sources``: thread and operand of those whose values are in it; ``lanes``: the lane of each (or, for a barrier, as
    how many threads it counts).
    """

    thread: int
    number: int
    which: int
    exchange: Exchange
    sources: tuple[tuple[int, Node], ...]
    lanes: tuple[int, ...]

    def value(self, operands: Sequence[int]) -> int:
        """The result for given values of the sources."""
        return results(self.exchange, list(zip(self.lanes, operands, strict=True)))[self.which]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The operands that are in it."""
        return tuple(node for _, node in self.sources)

    @property
    def shape(self) -> tuple[object, ...]:
        """What relations know of it: equal for two runs that differ in values only."""
        return self.thread, self.number, tuple((t, node.reads) for t, node in self.sources)


_Given = Sequence[tuple[int, int]]
"""The lane and the operand of each thread that takes part (of a barrier, as how many threads it counts)."""


def _all_equal(given: _Given) -> bool:
    return len({value for _, value in given}) < 2


def _lanes(given: _Given, chosen: Callable[[int], object]) -> int:
    """The lanes whose values are ``chosen``, as a mask."""
    return sum(1 << lane for lane, value in given if chosen(value))


_VALUES: Mapping[str, Callable[[Exchange, _Given], int]] = {
    "red.popc": lambda _, given: sum(count for count, value in given if value),
    "red.and": lambda _, given: int(all(value for _, value in given)),
    "red.or": lambda _, given: int(any(value for _, value in given)),
    "vote.all": lambda _, given: int(all(value for _, value in given)),
    "vote.any": lambda _, given: int(any(value for _, value in given)),
    "vote.uni": lambda _, given: int(_all_equal(given)),
    "vote.ballot": lambda _, given: _lanes(given, bool),
    "match.any": lambda this, given: _lanes(given, dict(given)[this.lane].__eq__),
    "match.all": lambda _, given: _lanes(given, lambda _: True) if _all_equal(given) else 0,
}
"""The value that an exchange gives, by its name; the others are ``redux`` and shuffles."""


def results(this: Exchange, given: _Given) -> tuple[int, int]:
    """The value and the predicate that ``this`` gives; ``given``: lane and operand of each thread that takes part."""
    if this.name in _VALUES:
        return _VALUES[this.name](this, given), int(this.name == "match.all" and _all_equal(given))
    values = [value for _, value in given]
    if this.name.startswith("redux."):
        return reduce(partial(compute, this.name.removeprefix("redux."), this.type), values), 0
    # A shuffle: of its source alone; from the thread's own lane where that is out of range.
    return (values[0] if values else 0), 1


def resolve(
    traces: Sequence[Trace], passed: Sequence[int], phases: Mapping[EventId, int | None]
) -> tuple[dict[tuple[int, int], Link], str | None]:
    """The results of an execution, and why the first that has no meaning has none (or None).

    ``passed``: how many steps of its path each thread completes; ``phases``: of the barriers. Threads of a warp meet
    in the order of their exchanges of one kind; a lane that has ended takes no part.
    """
    groups: dict[tuple[object, ...], list[tuple[int, Exchange]]] = {}
    counts: dict[tuple[object, ...], int] = {}
    for t, trace in enumerate(traces):
        for x in trace.exchanges:
            if x.step < passed[t]:
                phase = phases.get(x.id)
                if not x.barrier:
                    phase = counts[t, x.key] = counts.get((t, x.key), 0) + 1
                groups.setdefault((x.key, phase), []).append((t, x))
    links: dict[tuple[int, int], Link] = {}
    problem: str | None = None
    for group in groups.values():
        for t, x in group:
            members = [(u, y) for u, y in group if x.source_lane < 0 or u == x.source]
            if not members:
                problem = problem or f"{x.where}: shfl from lane {x.source_lane}, which takes no part"
            for which, number in enumerate(x.numbers):
                if number >= 0:
                    sources, lanes = tuple((u, y.operand) for u, y in members), tuple(y.lane for _, y in members)
                    links[t, number] = Link(t, number, which, x, sources, lanes)
    return links, problem


# What results may be at all.

_LIMIT = 4096


def possible(this: Exchange, which: int, operand: Callable[[int], Values]) -> Values:
    """The values that a result may have; ``operand``: those of the operand of a thread in such an exchange."""
    name = this.name
    if which == 1 or name in ("red.and", "red.or", "vote.all", "vote.any", "vote.uni"):
        return frozenset((0, 1))
    if name == "red.popc":
        return _sums(count for _, count in this.threads)
    if name == "vote.ballot" or name.startswith("match."):
        return _sums(1 << lane for _, lane in this.threads)
    if name.startswith("shfl."):
        values = operand(this.source)
        return None if values is None else values | {0}  # 0 where the source has ended
    return _combined(this, [operand(t) for t, _ in this.threads])


def _combined(this: Exchange, held: Sequence[Values]) -> Values:
    """What ``this`` may make of operands that may have these values."""
    lists = [v for v in held if v is not None]
    if len(lists) < len(held) or prod(len(v) + 1 for v in lists) > _LIMIT:
        return None
    choices = ([v for v in choice if v is not None] for choice in product(*([*v, None] for v in lists)))  # None: ended
    found = frozenset(results(this, [(0, v) for v in values])[0] for values in choices if values)
    return found or frozenset((0,))  # of a thread that is not in its own mask: any value will do


def _sums(parts: Iterable[int]) -> Values:
    """The sums of some of ``parts``."""
    found = {0}
    for part in parts:
        found |= {total + part for total in found}
        if len(found) > _LIMIT:
            return None
    return frozenset(found)
