"""The edges of a cycle and the accesses between them: what there is, and how each is written."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from ptxmm.errors import PtxmmError

LEVELS = ("cta", "cluster", "gpu", "sys")
"""Scopes, the narrowest first; and how far two threads are from each other: in one CTA, in one cluster, ..."""

ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel")
"""Orders of accesses (8.4 Table 19), the weakest first."""

FENCES = ("fence.acq_rel", "fence.sc")
"""Fences that have a scope, the weaker first."""

SCOPED = ("relaxed", "acquire", "release", "acq_rel")
_LEGAL = {"R": ("weak", "volatile", "relaxed", "acquire"), "W": ("weak", "volatile", "relaxed", "release")}


class Kind(Struct, frozen=True):
    """A kind of edge. ``external``: to another thread. ``between``: the directions that it has, where only one pair is
    possible. ``same``: from and to one location; None: that is written in the edge. ``follows``: it says what its
    ends have to do with each other, so that a cycle of one location is not broken at it."""

    about: str
    external: bool = False
    between: str | None = None
    same: bool | None = True
    follows: bool = True


KINDS: Mapping[str, Kind] = {
    "Rfe": Kind("a read takes its value from a write of another thread", True, "WR"),
    "Fre": Kind("a write of another thread overwrites what was read", True, "RW"),
    "Coe": Kind("a write of another thread comes later in coherence order", True, "WW"),
    "Rfi": Kind("as Rfe, in one thread", False, "WR"),
    "Fri": Kind("as Fre, in one thread", False, "RW"),
    "Coi": Kind("as Coe, in one thread", False, "WW"),
    "Po": Kind("program order", same=None, follows=False),
    "Rmw": Kind("the read and the write of an atomic operation", False, "RW"),
    "Vec": Kind("two elements of one vector access", same=False),
    "Bar": Kind("`bar.sync` of both threads, which are the only ones of their CTA", True, same=None, follows=False),
    "Cluster": Kind("`barrier.cluster` of both threads, the only ones of their cluster", True, None, None, False),
    "Mbar": Kind("an arrival on an mbarrier, and a wait for it in another thread", True, None, None, False),
}
BARRIERS = ("Bar", "Cluster", "Mbar")
"""The kinds that make one thread wait for another."""

DEPENDENCIES = ("addr", "data", "ctrl")
_EDGE = re.compile(r"([A-Z][a-z]+?)([sd]?)([RW]{2})?(?:\.(.+))?")
_INTERNAL = {"WR": "Rfi", "RW": "Fri", "WW": "Coi"}


class Edge(Struct, frozen=True, order=True):
    """``between``: the directions of its ends, as ``WR``. ``via``: what stands between them: a fence with its scope,
    ``proxy`` (``fence.proxy.alias``), a dependency; of ``Rmw`` the order and scope."""

    kind: str
    same: bool
    between: str
    via: str = ""

    @property
    def external(self) -> bool:
        """Whether it leads to another thread."""
        return KINDS[self.kind].external

    def __str__(self) -> str:
        known = KINDS[self.kind]
        where = "" if known.same is not None else "s" if self.same else "d"
        between = "" if known.between else self.between
        return f"{self.kind}{where}{between}" + (f".{self.via}" if self.via else "")


class Access(Struct, frozen=True, order=True):
    """The order and scope of an access; ``alias``: by a second address of its location; ``wide``: of 64 bits."""

    order: str = "weak"
    scope: str = ""
    alias: bool = False
    wide: bool = False

    def __str__(self) -> str:
        order = self.order if self != Access() else ""
        words = (order, self.scope, "alias" if self.alias else "", "b64" if self.wide else "")
        return ".".join(word for word in words if word)


def edge(text: str) -> Edge:
    """The edge that is written so. Raises ``PtxmmError`` (kind ``usage``)."""
    match = _EDGE.fullmatch(text)
    if match is None or match[1] not in KINDS:
        hint = f"edges are {', '.join(KINDS)}; PodWR is program order from a write to a read of a different location"
        raise PtxmmError(f"`{text}` is no edge and no order", kind="usage", hint=hint)
    name, where, between, via = match[1], match[2], match[3], match[4] or ""
    known = KINDS[name]
    if bool(where) == (known.same is not None):
        written = f"{name}{'' if where else 'd'}{between or 'WR'}"
        raise PtxmmError(f"`{text}`: is it of one location (s) or not (d)?", kind="usage", hint=f"e.g. {written}")
    if bool(between) == bool(known.between) or (name == "Vec" and between not in ("WW", "RR")):
        wanted = f"{name} has no directions" if known.between else f"{name}{where} needs two directions"
        raise PtxmmError(f"`{text}`: {wanted}", kind="usage", hint="W for a write, R for a read")
    found = Edge(name, where == "s" if known.same is None else known.same, between or known.between or "", via)
    fault = via_fault(found)
    if fault is not None:
        is_order = via.partition(".")[0] in (*ORDERS, *LEVELS)
        mend = "the order of an access stands before its edge: PodWW release.gpu Rfe" if is_order else None
        raise PtxmmError(f"`{text}`: {fault}", kind="usage", hint=mend)
    if name == "Rmw" and not via:
        return Edge(name, True, "RW", "relaxed.gpu")
    return found


def via_fault(one: Edge) -> str | None:
    """What is wrong with what stands in an edge."""
    if not one.via:
        return None
    if one.kind == "Rmw":
        order, _, scope = one.via.partition(".")
        return None if order in SCOPED and scope in LEVELS else f"`{one.via}` is no order and scope of an atomic"
    if one.external or one.kind == "Vec":
        return f"nothing stands in {one.kind}"
    fence, _, scope = one.via.rpartition(".")
    if one.via == "proxy" or (fence in FENCES and scope in LEVELS):
        return None
    if one.via not in DEPENDENCIES:
        return f"`{one.via}` is none of fence.acq_rel.SCOPE, fence.sc.SCOPE, proxy, addr, data, ctrl"
    if one.between[0] != "R" or (one.via == "data" and one.between[1] != "W"):
        return f"nothing of this depends on a value that was read: {one.via} is from a read" + (
            " to a write" if one.via == "data" else ""
        )
    return None


def access(text: str) -> Access:
    """The access that is written so. Raises ``PtxmmError`` (kind ``usage``)."""
    order, *words = text.split(".")
    scope = words.pop(0) if order in SCOPED and words and words[0] in LEVELS else ""
    alias, wide = ((words.pop(0), True)[1] if words[:1] == [word] else False for word in ("alias", "b64"))
    if words:
        hint = f"an order is followed by its scope ({', '.join(LEVELS)}), and then by alias or b64"
        raise PtxmmError(f"`{text}` is no order of an access", kind="usage", hint=hint)
    if order in SCOPED and not scope:
        hint = ", ".join(f"{order}.{level}" for level in LEVELS)
        raise PtxmmError(f"`{text}` has no scope", kind="usage", hint=hint)
    return Access(order, scope, alias, wide)


def access_fault(one: Access, direction: str) -> str | None:
    """What is wrong with an access of this direction, R or W."""
    if one.order in _LEGAL[direction]:
        return None
    return f"{'a read' if direction == 'R' else 'a write'} is not {one.order}"


def internal(one: Edge) -> Edge:
    """Program order between accesses of one location, named by what it says of them."""
    return Edge(_INTERNAL[one.between], True, one.between, one.via) if one.between in _INTERNAL else one
