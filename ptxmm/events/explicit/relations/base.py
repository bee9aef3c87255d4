"""Every base set and relation of the model language for one concrete execution, by name.

What does not depend on the witness (reads-from, coherence, Fence-SC order, phases) is computed once
for a choice of paths, lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxmm.events.explicit.relations.barriers import PHASES
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom
from ptxmm.events.explicit.relations.structure import BUILDERS

WITNESS = frozenset(("rf", "co", "fr", "fsc", "sync_fence"))
"""The base relations that the order-finding part of a witness decides."""


def precomputed(layout: Layout, name: str) -> int | None:
    """The base set or relation ``name`` if the witness does not decide it; None if it is unknown."""
    found = layout.known.get(name)
    if found is None:
        found = _computed(layout, name)
        if found is not None:
            layout.known[name] = found
    return found


def _computed(layout: Layout, name: str) -> int | None:
    if name in layout.sets:
        return layout.sets[name]
    algebra = layout.algebra
    if name == "id":
        return algebra.identity(algebra.universe())
    if name == "sr":
        strong = layout.sets["STRONG"]
        scoped = get(layout, "inscope")
        return algebra.restrict(strong, scoped & algebra.inverse(scoped), strong)
    if name == "po-loc":
        return get(layout, "po") & get(layout, "loc")
    if name == "ext":
        return algebra.product(algebra.universe(), algebra.universe()) & ~get(layout, "int")
    build = BUILDERS.get(name)
    return None if build is None else algebra.from_rows(build(layout))


def get(layout: Layout, name: str) -> int:
    """``precomputed`` of a name that is known."""
    value = precomputed(layout, name)
    assert value is not None
    return value


def scoped_fences(layout: Layout) -> int:
    """Two fence.sc events that are mutually in scope: those Fence-SC order may relate."""
    algebra = layout.algebra
    scoped, fences = get(layout, "inscope"), get(layout, "FSC")
    both = algebra.restrict(fences, scoped & algebra.inverse(scoped), fences)
    return algebra.difference(both, algebra.identity(fences))


def fence_sc_pairs(layout: Layout) -> list[tuple[int, int]]:
    """The pairs (a < b) of ``scoped_fences``."""
    return [(a, b) for a, b in layout.algebra.pairs(scoped_fences(layout)) if a < b]


def makes_values(layout: Layout) -> int:
    """``addr | data``: what with reads-from makes the values of an execution, so that it can't be cyclic.

    Whether ``ctrl`` and ``rmw`` can be is for the model to say (PTX ISA 8.10.4).
    """
    return get(layout, "addr") | get(layout, "data")


def base_of(layout: Layout, rf: ReadsFrom, co: int, fsc: int, phases: Mapping[str, int]) -> Callable[[str], int | None]:
    """The base sets and relations of an execution, by name."""

    def lookup(name: str) -> int | None:
        if name == "rf":
            return rf.union
        if name == "co":
            return co
        if name == "fr":
            return layout.fr(rf, co)
        if name in ("fsc", "sync_fence"):
            return fsc
        return phases.get(name, 0) if name in PHASES else precomputed(layout, name)

    return lookup
