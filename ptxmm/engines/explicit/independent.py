"""The search for reads-from where the model does not tell them apart: reads of different places are independent.

Racy reads that synchronize nothing are like that. Each group of reads that can make values of each other is searched
by itself, for the values its reads may have; executions are then put together from one execution of each group.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from ptxmm.engines.explicit.candidates import Candidate, Candidates, Part
from ptxmm.engines.explicit.orders import Independent
from ptxmm.events.explicit.relations.execution import ReadsFrom

_FEWEST = 4
"""With fewer parts of reads the ordinary search is as quick."""

_MOST = 4096
"""Groups with more choices of sources than this are left to the ordinary search."""

_Sources = dict[Part, int]


def independent_candidates(search: Candidates, start: Candidate, found_flags: set[str]) -> Iterator[Candidate] | None:
    """A candidate for every combination of values that reads may have, or None where the model decides more.

    ``start``: ``search.start()``; ``found_flags``: flags known already.
    """
    if len(search.parts) < _FEWEST:
        return None
    everything = ReadsFrom()
    for part, options in zip(search.parts, search.options, strict=True):
        for w in options:
            everything = search.added(everything, part, w)
    common = search.judge.independent(everything, found_flags)
    if common is None:
        return None
    chains = (search.makes_values, *common.chains)
    groups = _groups(search, chains)
    if any(prod(len(search.options[k]) for k in group) > _MOST for group in groups):
        return None
    return _combined(search, start, common, [list(_solutions(search, start, group, chains)) for group in groups])


def _groups(search: Candidates, chains: tuple[int, ...]) -> list[list[int]]:
    """The numbers of the parts, those together whose reads may be on one cycle or make values of each other."""
    algebra = search.layout.algebra
    parent = list(range(algebra.n))

    def root(x: int) -> int:
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    fed = set()
    for chain in chains:
        for a, b in algebra.pairs(chain):
            parent[root(a)] = root(b)
            fed.add(b)
    for part, options in zip(search.parts, search.options, strict=True):
        for w in options:
            if w in fed:
                parent[root(w)] = root(part.read)
    groups: dict[int, list[int]] = {}
    for k, part in enumerate(search.parts):
        groups.setdefault(root(part.read), []).append(k)
    return list(groups.values())


def _solutions(search: Candidates, start: Candidate, group: list[int], chains: tuple[int, ...]) -> Iterator[_Sources]:
    """Sources of the parts of ``group``: for each combination of values of its relevant reads the first that has it."""
    algebra = search.layout.algebra
    reads = [r for r in dict.fromkeys(search.parts[k].read for k in group) if r in search.relevant]
    known: set[tuple[int | None, ...]] = set()

    def extend(j: int, rf: int, sources: _Sources) -> Iterator[_Sources]:
        search.judge.check()
        if j == len(group):
            state = _with_sources(search, start, sources)
            key = tuple(state.values[r] for r in reads)
            if key not in known and search.meets(state):
                known.add(key)
                yield sources
            return
        part = search.parts[group[j]]
        for w in search.options[group[j]]:
            more = rf | 1 << (w * algebra.n + part.read)
            if more == rf or all(algebra.acyclic(more | chain) for chain in chains):
                yield from extend(j + 1, more, {**sources, part: w})

    return extend(0, 0, {})


def _with_sources(search: Candidates, start: Candidate, sources: _Sources) -> Candidate:
    """``start`` with these sources, and the values that follow."""
    by_read: dict[int, _Sources] = {}
    for part, w in sources.items():
        by_read.setdefault(part.read, {})[part] = w
    leaves = [numbers.copy() for numbers in start.leaves]
    state = Candidate(ReadsFrom(), by_read, start.values.copy(), leaves, 0, False)
    search.propagate(state)
    return state


def _combined(
    search: Candidates, start: Candidate, common: Independent, groups: list[list[_Sources]]
) -> Iterator[Candidate]:
    for selection in product(*groups):
        search.judge.check()
        sources = {part: w for chosen in selection for part, w in chosen.items()}
        state = _with_sources(search, start, sources)
        if search.meets(state):
            for part, w in sources.items():
                state.rf = search.added(state.rf, part, w)
            state.co, state.flagging = common.co, common.flagging
            yield state
