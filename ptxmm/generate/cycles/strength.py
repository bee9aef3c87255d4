"""Cycles with one thing stronger, and with everything as weak as it can be."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ptxmm.generate.cycles.cycle import Cycle, canonical, fault
from ptxmm.generate.cycles.edges import FENCES, LEVELS, SCOPED, Access, Edge

_STRONGER = {
    "weak": ("relaxed", "acquire", "release"),
    "volatile": ("acquire", "release"),
    "relaxed": ("acquire", "release", "acq_rel"),
    "acquire": ("acq_rel",),
    "release": ("acq_rel",),
    "acq_rel": (),
}


def stronger(cycle: Cycle) -> Iterator[Cycle]:
    """The cycles in which one order is stronger, one scope is wider, or one fence is there or is stronger, the least
    changes first; each in canonical form."""
    found: dict[Cycle, None] = {}
    for i, at in enumerate(cycle.accesses):
        if cycle.edges[i].kind not in ("Rmw", "Vec") and cycle.edges[i - 1].kind not in ("Rmw", "Vec"):
            for more in _accesses(at):
                found[replace(cycle, accesses=(*cycle.accesses[:i], more, *cycle.accesses[i + 1 :]))] = None
    for i, one in enumerate(cycle.edges):
        for via in _vias(one):
            changed = replace(one, via=via)
            found[replace(cycle, edges=(*cycle.edges[:i], changed, *cycle.edges[i + 1 :]))] = None
    for made in found:
        if fault(made) is None:
            yield canonical(made)


def _accesses(at: Access) -> Iterator[Access]:
    for scope in _wider(at.scope):
        yield replace(at, scope=scope)
    for order in _STRONGER[at.order]:
        if order != "acq_rel":
            for scope in [at.scope] if at.scope else ["sys"] if at.order == "volatile" else LEVELS:
                yield replace(at, order=order, scope=scope)


def _vias(one: Edge) -> Iterator[str]:
    name, _, scope = one.via.rpartition(".")
    if one.kind == "Rmw":
        yield from (f"{name}.{wider}" for wider in _wider(scope))
        yield from (f"{order}.{scope}" for order in _STRONGER[name])
    elif one.kind == "Vec" or one.external:
        return
    elif not one.via:
        yield from (f"{fence}.{level}" for fence in FENCES for level in LEVELS)
        yield "proxy"
    elif name in FENCES:
        yield from (f"{name}.{wider}" for wider in _wider(scope))
        yield from (f"{fence}.{scope}" for fence in FENCES[FENCES.index(name) + 1 :])


def _wider(scope: str) -> tuple[str, ...]:
    return LEVELS[LEVELS.index(scope) + 1 :] if scope else ()


def weakest(cycle: Cycle) -> Cycle:
    """The cycle with no order, fence, dependency, alias or size, and an access of its own for each element of a vector;
    where an atomic operation needs an order and a scope, with the weakest ones."""
    return canonical(Cycle(tuple(map(_plain, cycle.edges)), (Access(),) * len(cycle.edges), cycle.places))


def _plain(one: Edge) -> Edge:
    if one.kind == "Vec":
        return Edge("Po", False, one.between)
    return replace(one, via=f"{SCOPED[0]}.{LEVELS[0]}" if one.kind == "Rmw" else "")
