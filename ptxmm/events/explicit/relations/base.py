"""Every base set and relation of the model language for one concrete execution, by name.

What does not depend on the witness (reads-from, coherence, Fence-SC order, phases) is computed once
for a choice of paths, lazily.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ptxmm.events.explicit.relations.barriers import PHASES
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom
from ptxmm.events.explicit.relations.structure import BUILDERS

WITNESS = frozenset(("rf", "co", "fr", "fsc", "sync_fence", "same-value"))
"""The base relations that the order-finding part of a witness decides, also by the values that it makes."""


def precomputed(layout: Layout, name: str) -> int | None:
    """The base set or relation ``name`` if the witness does not decide it; None if it is unknown."""
    found = layout.known.get(name)
    if found is None:
        found = _computed(layout, name)
        if found is not None:
            layout.known[name] = found
    return found


def _computed(layout: Layout, name: str) -> int | None:
    found = layout.sets.get(name)
    if found is not None:
        return found
    algebra = layout.algebra
    if name in ("vloc", "vovl") and not layout.aliased:
        return get(layout, name[1:])
    match name:
        case "ovl" if layout.simple:
            return get(layout, "loc")
        case "vovl" if layout.simple:
            return get(layout, "vloc")
        case "id":
            return algebra.identity(algebra.universe())
        case "sr":
            strong = layout.sets["STRONG"]
            scoped = get(layout, "inscope")
            return algebra.restrict(strong, scoped & algebra.inverse(scoped), strong)
        case "po-loc":
            return get(layout, "po") & get(layout, "loc")
        case "ext":
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


def same_value(layout: Layout, values: Sequence[int | None]) -> int:
    """The writes that may race with each other, of which each two hold the same in the same bytes; ``values``: what is
    written, by number."""
    test = layout.scene.test
    groups: dict[object, int] = {}
    for i, event in enumerate(layout.events[: layout.initial_first] if test.same_value is not None else ()):
        if event.kind == "W" and event.cell is not None and values[i] is not None and test.may_race(event.id.site):
            groups[event.cell, values[i]] = groups.get((event.cell, values[i]), 0) | 1 << i
    algebra = layout.algebra
    whole = 0
    for group in groups.values():
        whole |= algebra.product(group, group)
    return algebra.difference(whole, get(layout, "id"))


def base_of(
    layout: Layout, rf: ReadsFrom, co: int, fsc: int, phases: Mapping[str, int], values: Sequence[int | None] = ()
) -> Callable[[str], int | None]:
    """The base sets and relations of an execution, by name. ``values``: what is written, by number; nothing is the same
    as long as that is not known."""

    own = {**phases, "rf": rf.union, "co": co, "fsc": fsc, "sync_fence": fsc}
    own["same-value"] = same_value(layout, values) if values else 0

    def lookup(name: str) -> int | None:
        found = own.get(name)
        if found is not None:
            return found
        if name == "fr":
            return layout.fr(rf, co)
        return 0 if name in PHASES else precomputed(layout, name)

    return lookup
