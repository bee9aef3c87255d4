"""One combination of paths for the reference: its events, and the relations that all its executions share.

The definitions of the models that do not depend on who reads from whom, as plain set comprehensions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ptxmm.program.test import Placement, Test
from tests.reference_expressions import Leaf, const
from tests.reference_threads import Event, Path

Pairs = set[tuple[int, int]]


# ---- relations as sets of pairs --------------------------------------------------------------------------------------


def seq(*relations: Iterable[tuple[int, int]]) -> Pairs:
    """``r ; s ; ...``"""
    result = set(relations[0])
    for relation in relations[1:]:
        after: dict[int, list[int]] = {}
        for b, c in relation:
            after.setdefault(b, []).append(c)
        result = {(a, c) for a, b in result for c in after.get(b, ())}
    return result


def inv(relation: Iterable[tuple[int, int]]) -> Pairs:
    """``r^-1``"""
    return {(b, a) for a, b in relation}


def closure(relation: Iterable[tuple[int, int]]) -> Pairs:
    """``r+``"""
    after: dict[int, set[int]] = {}
    for a, b in relation:
        after.setdefault(a, set()).add(b)
    result = set()
    for a in after:
        seen: set[int] = set()
        todo = list(after[a])
        while todo:
            b = todo.pop()
            if b not in seen:
                seen.add(b)
                todo.extend(after.get(b, ()))
        result |= {(a, b) for b in seen}
    return result


def irreflexive(relation: Iterable[tuple[int, int]]) -> bool:
    return all(a != b for a, b in relation)


def acyclic(relation: Iterable[tuple[int, int]]) -> bool:
    after: dict[int, set[int]] = {}
    degree: dict[int, int] = {}
    for a, b in set(relation):
        after.setdefault(a, set()).add(b)
        degree[b] = degree.get(b, 0) + 1
    ready = [a for a in after if a not in degree]
    while ready:
        for b in after.get(ready.pop(), ()):
            degree[b] -= 1
            if not degree[b]:
                ready.append(b)
    return not any(degree.values())


# ---- places of threads -----------------------------------------------------------------------------------------------


def instances(test: Test) -> list[dict[str, object]]:
    """For each thread the CTA, cluster and GPU that it is in; a host thread is alone in each of them."""
    result = []
    for i, thread in enumerate(test.threads):
        p: Placement = thread.placement
        if p.host:
            result.append({"cta": ("host", i), "cluster": ("host", i), "gpu": ("host", i), "sys": 0})
            continue
        cta = (p.gpu, p.grid, p.cluster, ("own", i) if p.cta is None else p.cta)
        cluster = ("own", cta) if p.cluster is None else (p.gpu, p.grid, p.cluster)
        result.append({"cta": cta, "cluster": cluster, "gpu": p.gpu, "sys": 0})
    return result


@dataclass(slots=True)
class Here:
    """The relations of a frame on the accesses of one location."""

    model: str
    events: set[int]
    ms: Pairs
    amo_ms: Pairs
    rmw: Pairs
    po_loc: Pairs
    co_total: list[tuple[int, int]]  # the pairs of writes that co has to relate


def initial_bytes(test: Test, key: str, offset: int, size: int) -> bytes:
    """The initial contents of a piece of a physical object."""
    item = test.objects[key]
    return b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)[offset : offset + size]


# ---- one choice of a path for every thread: what does not depend on who reads from whom ------------------------------


@dataclass
class Frame:
    """The events of one combination of paths, and the relations that are the same in all its executions."""

    test: Test
    model: str
    paths: tuple[Path, ...]
    dependencies: frozenset[str]  # which of addr, data, ctrl, rmw are in dep
    events: list[Event] = field(default_factory=list)
    number: dict[Leaf, int] = field(default_factory=dict)
    initial: dict[int, int] = field(default_factory=dict)  # the value of an initial write

    def __post_init__(self) -> None:
        for t, path in enumerate(self.paths):
            for k, event in enumerate(path.events):
                self.number[t, k] = len(self.events)
                self.events.append(event)
        for cell in sorted({e.cell for e in self.events if e.cell}):
            for other in (e.cell for e in self.events if e.cell):
                if (
                    cell != other
                    and cell[0] == other[0]
                    and cell[1] < other[1] + other[2]
                    and other[1] < cell[1] + cell[2]
                ):
                    raise NotImplementedError("mixed-size accesses")
            self.initial[len(self.events)] = int.from_bytes(initial_bytes(self.test, *cell), "little")
            self.events.append(Event(None, "W", cell=cell, value=const(self.initial[len(self.events)])))
        self.sets()
        self.relations()

    def sets(self) -> None:
        ev = self.events
        every = range(len(ev))
        self.E = set(every)
        self.R = {e for e in every if ev[e].kind == "R"}
        self.W = {e for e in every if ev[e].kind == "W"}
        self.IW = set(self.initial)
        self.M = self.R | self.W
        self.FSC = {e for e in every if ev[e].kind == "FSC"}
        self.FAR = {e for e in every if ev[e].kind == "FAR"}
        self.F = self.FSC | self.FAR
        self.PF = {e for e in every if ev[e].kind == "PF"}
        self.AF = {e for e in every if ev[e].kind == "AF"}
        self.BA = {e for e in every if ev[e].kind == "BA"}
        self.BW = {e for e in every if ev[e].kind == "BW"}
        self.STRONG = {e for e in every if ev[e].scope is not None}
        self.REL = {e for e in every if ev[e].rel}
        self.ACQ = {e for e in self.R if ev[e].acq}
        self.NORET = {e for e in self.R if ev[e].noret}
        self.AMO = {e for e in self.M if ev[e].amo}
        self.GEN = {e for e in self.M | self.F if ev[e].proxy == "GEN"}

    def relations(self) -> None:
        ev, E, M, IW, STRONG = self.events, self.E, self.M, self.IW, self.STRONG
        place = instances(self.test)
        self.po = {(a, b) for a in E - IW for b in E - IW if a < b and ev[a].thread == ev[b].thread}
        self.rmw = {(self.number[half], w) for w in E if (half := ev[w].read_half) is not None}
        parts = {
            kind: {(self.number[leaf], e) for e in E for leaf in getattr(ev[e], kind)}
            for kind in ("addr", "data", "ctrl")
        }
        self.makes_values = parts["addr"] | parts["data"]
        parts["rmw"] = self.rmw
        self.dep = {pair for kind in self.dependencies for pair in parts[kind]}
        inscope = {
            (a, b)
            for a in STRONG
            for b in E - IW
            if place[ev[a].thread or 0][ev[a].scope or ""] == place[ev[b].thread or 0][ev[a].scope or ""]
        }
        cta = {e: place[ev[e].thread or 0]["cta"] for e in E - IW}
        self.scta = {(a, b) for a in cta for b in cta if cta[a] == cta[b]}
        self.ovl = {(a, b) for a in M for b in M if ev[a].cell == ev[b].cell}  # = loc: partial overlap is refused
        self.vovl = {(a, b) for a, b in self.ovl if ev[a].vcell == ev[b].vcell or a in IW or b in IW}
        vloc = self.vovl if self.model != "ptx-6.0" else self.ovl
        po, incl = self.po, {(a, b) for a, b in inscope if (b, a) in inscope}
        self.same_proxy = {
            (a, b)
            for a in E
            for b in E
            if self.model == "ptx-6.0" or (ev[a].proxy is not None and ev[a].proxy == ev[b].proxy)
        }
        # morally strong: (1) po or both strong and mutually in scope, (2) same proxy, (3) complete overlap if in M
        self.ms = {
            (a, b)
            for a, b in (po | inv(po) | incl) & self.same_proxy
            if a != b and (not (a in M and b in M) or (a, b) in vloc)
        }
        self.amo_ms = {(a, b) for a, b in (po | inv(po) | incl) & self.vovl if a in self.AMO and b in self.AMO}
        # release patterns and acquire patterns, from their first to their last event
        strong_w = self.W & STRONG
        same = po & vloc
        f_rel = f_acq = self.F  # fence.sc included
        self.relpat = (
            {(w, w) for w in self.REL & strong_w}
            | {(a, w) for a, w in same if a in self.REL and w in strong_w}
            | {(f, w) for f, w in po if f in f_rel and w in strong_w}
        )
        start = (self.R & STRONG) - self.NORET
        self.acqpat = (
            {(r, r) for r in start & self.ACQ}
            | {(r, a) for r, a in same if r in start and a in self.ACQ}
            | {(r, f) for r, f in po if r in start and f in f_acq}
        )
        self.po_loc = po & (self.ovl if self.model == "ptx-6.0" else self.vovl & self.same_proxy)
        self.fsc_pairs = sorted((a, b) for a in self.FSC for b in self.FSC if a < b and (a, b) in self.ms)
        self.here = {iw: self.restricted(iw) for iw in IW}
        self.pfl = {(f, m) for f in self.PF for m in M if ev[f].proxy == ev[m].proxy} & self.scta

    def restricted(self, iw: int) -> Here:
        here = {m for m in self.M if (iw, m) in self.ovl}

        def on(r: Pairs) -> Pairs:
            return {(a, b) for a, b in r if a in here and b in here}

        strong = on(self.ms | self.amo_ms) if self.model == "ptx-8.5" else on(self.ms)
        total = sorted((a, b) for a, b in strong if a < b and a in self.W and b in self.W)
        return Here(self.model, here, on(self.ms), on(self.amo_ms), on(self.rmw), on(self.po_loc), total)
