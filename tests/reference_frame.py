"""One combination of paths for the reference: its events, and the relations that all its executions share.

The definitions of the models that do not depend on who reads from whom, as plain set comprehensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct, field

from ptxmm.program.test import Placement, Test
from ptxmm.ptx.ops import GridControl
from tests import reference_tensorcore
from tests.reference_events import Event, Owner, Path
from tests.reference_expressions import Leaf, const
from tests.reference_places import made_up, mbarriers
from tests.reference_readings import Readings
from tests.reference_relations import Pairs, inv

Byte = tuple[str, int]
"""A byte of a physical object."""


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


def instance_of(owner: Owner) -> dict[str, object]:
    """The same for a CTA."""
    cluster = ("own", owner) if owner[2] is None else owner[:3]
    return {"cta": owner, "cluster": cluster, "gpu": owner[0], "sys": 0}


def initial_bytes(test: Test, key: str, offset: int, size: int) -> bytes:
    """The initial contents of a piece of a physical object."""
    item = test.objects[key]
    return b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)[offset : offset + size]


class Here(Struct):
    """The relations of a frame on accesses that overlap, directly or through others."""

    model: str
    readings: Readings
    events: set[int]
    writes: set[int]
    ms: Pairs
    amo_ms: Pairs
    rmw: Pairs
    po_loc: Pairs
    ovl: Pairs
    co_total: list[tuple[int, int]]  # the pairs of writes that co has to relate
    cells: list[int]  # the initial writes, one for each cell
    units: list[tuple[list[int], bool]]  # cells of which the last write is chosen together, or byte by byte
    covers: dict[Byte, set[int]]


# ---- one choice of a path for every thread: what does not depend on who reads from whom ------------------------------


class Frame(Struct, dict=True):
    """The events of one combination of paths, and the relations that are the same in all its executions."""

    test: Test
    model: str
    readings: Readings
    paths: tuple[Path, ...]
    dependencies: frozenset[str]  # which of addr, data, ctrl, rmw are in dep
    events: list[Event] = field(default_factory=list)
    number: dict[Leaf, int] = field(default_factory=dict)
    initial: dict[int, int] = field(default_factory=dict)  # the value of an initial write
    ends: dict[int, tuple[int, int]] = field(default_factory=dict)  # the API events of a thread

    def __post_init__(self) -> None:
        grids = {(t.placement.gpu, t.placement.grid) for t in self.test.threads if not t.placement.host}
        waits = any(isinstance(op, GridControl) and op.kind == "wait" for t in self.test.threads for op in t.body)
        launches = waits or len(grids) > len({gpu for gpu, _ in grids})
        for t, path in enumerate(self.paths):
            api = launches and not self.test.threads[t].placement.host
            if api:
                self.events.append(Event(t, "API", step=-1))
            first = len(self.events) - 1
            for k, event in enumerate(path.events):
                self.number[t, k] = len(self.events)
                self.events.append(event)
            if api:
                self.ends[t] = (first, len(self.events))
                self.events.append(Event(t, "API", left=path.left, step=len(path.events)))
        self.borders()
        self.sets()
        self.relations()
        self.asynchronous()
        reference_tensorcore.order(self)
        self.parts()

    @cached_property
    def mbarriers(self) -> set[str]:
        """The variables that are mbarriers."""
        return mbarriers(self.test.threads, self.test.objects)

    @cached_property
    def made_up(self) -> set[str]:
        """The objects that are written with values that are left open, which stay whole."""
        return made_up(self.test.threads, self.test.objects)

    def borders(self) -> None:
        """Initial writes: one for each piece of an object that no access divides."""
        cells = {e.cell for e in self.events if e.cell}
        for key in sorted({c[0] for c in cells}):
            points = sorted({p for k, at, size in cells if k == key for p in (at, at + size)})
            for low, high in itertools.pairwise(points):
                if any(k == key and at <= low < at + size for k, at, size in cells):
                    cell = (key, low, high - low)
                    self.initial[len(self.events)] = int.from_bytes(initial_bytes(self.test, *cell), "little")
                    self.events.append(Event(None, "W", cell=cell, value=const(self.initial[len(self.events)])))

    def sets(self) -> None:
        ev = self.events
        every = range(len(ev))

        def kind(*names: str) -> set[int]:
            return {e for e in every if ev[e].kind in names}

        self.E = set(every)
        self.R, self.W = kind("R"), kind("W")
        self.IW = set(self.initial)
        self.M = self.R | self.W
        self.FSC = kind("FSC")
        both = ("FSC", "FAR") if self.readings["sc-acqrel"] == "on" else ("FAR",)
        self.F_REL, self.F_ACQ = kind("FL", *both), kind("FA", *both)
        self.PF, self.AF = kind("PF"), kind("AF")
        self.BW, self.CA, self.CW = kind("BW"), kind("CA"), kind("CW")
        self.MBA, self.MBW, self.MBI, self.FMBI = kind("MBA"), kind("MBW"), kind("MBI"), kind("FMBI")
        self.TMREL, self.TMACQ = kind("TMREL"), kind("TMACQ")
        self.FRR, self.FRA = kind("FRR"), kind("FRA")
        self.ASREL, self.ASACQ = kind("ASREL"), kind("ASACQ")
        self.TCB, self.TCA = kind("TCB"), kind("TCA")
        self.ISS, self.API, self.AW = kind("ISS"), kind("API"), kind("AW")
        self.STRONG = {e for e in every if ev[e].scope is not None}
        self.REL = {e for e in every if ev[e].rel}
        self.ACQ = {e for e in every if ev[e].acq}
        self.NORET = {e for e in self.R if ev[e].noret}
        self.AMO = {e for e in self.M if ev[e].amo}
        self.GEN = {e for e in every if ev[e].proxy == "GEN"}
        self.TMP = {e for e in every if ev[e].proxy == "TMP"}

    def bytes_of(self, e: int) -> set[Byte]:
        key, at, size = self.events[e].cell or ("", 0, 0)
        return {(key, at + i) for i in range(size)}

    def relations(self) -> None:
        ev, E, M, IW, STRONG = self.events, self.E, self.M, self.IW, self.STRONG
        place = instances(self.test)
        self.po = {
            (a, b)
            for a in E - IW
            for b in E - IW
            if a < b
            and ev[a].thread == ev[b].thread
            and ev[a].sync
            and ev[b].sync
            and (ev[a].step != ev[b].step or ev[a].part == ev[b].part or ev[a].part is None or ev[b].part is None)
        }
        self.rmw = {(self.number[half], w) for w in E if (half := ev[w].read_half) is not None}
        parts = {
            kind: {(self.number[leaf], e) for e in E for leaf in getattr(ev[e], kind)}
            for kind in ("addr", "data", "ctrl", "left")
        }
        # A loop is left only once what decides it is read; loops that read weakly may be left before
        parts["ctrl"] |= {(r, e) for r, e in parts["left"] if not (r in self.R and ev[r].scope is None)}
        self.makes_values = parts["addr"] | parts["data"]
        parts["rmw"] = self.rmw
        self.dep = {pair for kind in self.dependencies for pair in parts[kind]}
        values = parts["addr"] | parts["data"] | parts["ctrl"]
        self.given = {(a, b) for a, b in values if ev[a].thread != ev[b].thread}
        owners = {e: instance_of(o) if (o := ev[e].owner) is not None else place[ev[e].thread or 0] for e in E - IW}
        inscope = {
            (a, b) for a in STRONG for b in E - IW if owners[a][ev[a].scope or ""] == owners[b][ev[a].scope or ""]
        }
        cta = {e: place[ev[e].thread or 0]["cta"] for e in E - IW}
        self.scta = {(a, b) for a in cta for b in cta if cta[a] == cta[b]}
        # each byte by itself: what intersects, and what is exactly the same
        touched = {e: self.bytes_of(e) for e in M}
        self.ovl = {(a, b) for a in M for b in M if touched[a] & touched[b]}
        self.loc = {
            (a, b)
            for a, b in self.ovl
            if touched[a] == touched[b]
            or (a in IW and touched[a] <= touched[b])
            or (b in IW and touched[b] <= touched[a])
        }
        seen = {e: (ev[e].vcell or ("",))[0] for e in M}  # the virtual object; physical bytes tell the rest
        self.vovl = {(a, b) for a, b in self.ovl if seen[a] == seen[b] or a in IW or b in IW}
        self.vloc = self.vovl & self.loc
        complete = self.vloc if self.model != "ptx-6.0" else self.loc
        po, incl = self.po, {(a, b) for a, b in inscope if (b, a) in inscope}
        fences = "free" if self.model == "ptx-6.0" else self.readings["fence-proxy"]
        self.same_proxy = {
            (a, b)
            for a in E
            for b in E
            if (ev[a].proxy is not None and ev[a].proxy == ev[b].proxy and (fences != "none" or {a, b} <= M))
            or (fences == "free" and not {a, b} <= M)
            or self.model == "ptx-6.0"
        }
        # morally strong: (1) po or both strong and mutually in scope, (2) same proxy, (3) complete overlap if in M
        related = (po | inv(po) | incl) & self.same_proxy
        self.ms = {(a, b) for a, b in related if a != b and (not (a in M and b in M) or (a, b) in complete)}
        same = related if self.readings["reduce-proxy"] == "literal" else po | inv(po) | incl
        self.amo_ms = {(a, b) for a, b in same & self.vovl if a in self.AMO and b in self.AMO and a != b}
        # release patterns and acquire patterns, from their first to their last event
        strong_w = self.W & STRONG
        same = po & (complete if self.readings["pattern-location"] == "virtual" else self.loc)
        releases = self.REL if self.readings["release-read"] == "on" else self.REL & self.W
        self.relpat = (
            {(w, w) for w in releases & strong_w}
            | {(a, w) for a, w in same if a in releases and w in strong_w}
            | {(f, w) for f, w in po if f in self.F_REL and w in strong_w}
        )
        self.start = self.R & STRONG
        if self.readings["red"] == "link":
            self.start -= self.NORET
        self.acqpat = (
            {(r, r) for r in self.start & self.ACQ}
            | {(r, a) for r, a in same if r in self.start and a in self.ACQ}
            | {(r, f) for r, f in po if r in self.start and f in self.F_ACQ}
        )
        self.po_loc = po & self.vovl & self.same_proxy
        if self.model == "ptx-6.0":
            self.po_loc = po & self.ovl
        elif self.model == "ptx-7.5" and self.readings["po-proxy"] == "all":
            self.po_loc = po & self.vovl
        self.fsc_pairs = sorted((a, b) for a in self.FSC for b in self.FSC if a < b and (a, b) in self.ms)

    def asynchronous(self) -> None:
        """What orders asynchronous operations, proxies and grids (docs/cat.md)."""
        ev, M = self.events, self.M
        one = {
            (a, b)
            for a in self.E - self.IW
            for b in self.E - self.IW
            if a != b and ev[a].thread == ev[b].thread and ev[a].step == ev[b].step and not ev[b].sync
        }
        subs = {(a, b) for a, b in one if not ev[a].sync}
        reads = {e for e in self.R if not ev[e].sync}
        writes = {e for e in self.W if not ev[e].sync}
        pfr = {e for e in self.PF if ev[e].after == "reads"}
        pfw = {e for e in self.PF if ev[e].after == "writes"}
        ends = {e for e in self.MBA if not ev[e].sync}
        self.issue = {(a, b) for a, b in one if a in self.ISS and b in M}
        self.issue_all = {(a, b) for a, b in one if a in self.ISS}
        # a product is issued after wgmma.fence and fence.proxy.async of its thread, and after nothing else (A35)
        self.issue |= {
            (f, r)
            for r in self.R
            if ev[r].fences == "wgmma"
            for f in self.ISS | self.PF
            if ev[f].thread == ev[r].thread and ev[f].step < ev[r].step and ev[f].sync
            if ev[f].fences == ("wgmma" if f in self.ISS else "ASY")
        }
        self.aord = {
            (a, b)
            for a, b in subs
            if (a in reads and b in writes | pfr | pfw) or (a in writes and b in pfw | ends) or (a in pfw and b in ends)
        }
        self.aord |= {  # cp.async.mbarrier.arrive comes after all earlier cp.async of its thread
            (w, e)
            for e in ends
            if ev[e].fences == "cp.async"
            for w in writes
            if ev[w].thread == ev[e].thread and ev[w].step < ev[e].step and ev[w].proxy == "GEN" and self.is_copy(w)
        }
        bulk = {(ev[e].thread, ev[e].step) for e in pfw}
        self.acomp = {
            (a, w)
            for w in self.AW
            for a in (pfr if ev[w].read else pfw | {e for e in writes if (ev[e].thread, ev[e].step) not in bulk})
            if ev[a].thread == ev[w].thread and ev[a].step in ev[w].done
        }
        if self.test.claims is not None:  # a group of products is one of the four warps of a warpgroup (9.7.16.7.2)
            places = [thread.placement for thread in self.test.threads]
            group = [(p.gpu, p.grid, p.cluster, p.cta, p.warp and p.warp // 4) for p in places]
            self.acomp |= {
                (a, w)
                for a in pfw
                for w in self.AW
                if 0 <= ev[a].group < ev[w].group
                if (t := ev[a].thread) is not None and (u := ev[w].thread) is not None
                if group[t] == group[u] and group[t][-1] is not None
            }
        self.acomp |= {
            (a, end)
            for thread, (_, end) in self.ends.items()
            for a in self.E - self.IW
            if ev[a].thread == thread and not ev[a].sync
        }
        self.pfence = {
            (f, m) for f in self.PF for m in M if not ev[f].after and ev[f].fences == ev[m].proxy and self.covered(f, m)
        }
        self.pfence |= {(f, m) for f, m in subs if f in pfr and m in reads}
        self.pfence |= {(f, m) for f, m in subs if f in pfw and m in reads | writes}
        everywhere = {(a, b) for a in self.E for b in self.E}
        self.int = {(a, b) for a, b in everywhere if ev[a].thread == ev[b].thread}
        locality = self.readings["proxy-locality"] if self.model == "ptx-8.5" else "cta"
        self.local = self.scta if locality == "cta" else everywhere  # of a proxy fence and what it is for
        self.inner = self.int if locality == "thread" else self.local
        fences = self.PF if self.readings["read-fence"] == "on" else self.PF - pfr
        self.pfl = {(f, m) for f, m in self.pfence & self.local if f in fences}
        # what comes after a barrier, an asynchronous operation with all that belongs to it
        started = {(a, c) for a, b in self.po if b in self.ISS for i, c in self.issue_all if i == b}
        self.passed = {(a, b) for a, b in self.po | started if a in self.BW | self.CW | self.API}
        self.tmcov = {
            (f, r)
            for f in self.TMACQ
            for r in self.R & self.TMP
            if (fence := ev[f].covers) and (cell := ev[r].cell)
            if fence[0] == cell[0] and fence[1] <= cell[1] and cell[1] + cell[2] <= fence[1] + fence[2]
        }
        used = {e for e in self.E if ev[e].kind in ("MBA", "MBW", "MBP", "MBV")}
        self.mbobj = {(i, e) for i in self.MBI for e in used if ev[i].place == ev[e].place}
        declared = {
            (o.key, i * o.type.bytes)
            for o in self.test.objects.values()
            for i, given in enumerate(o.mbarrier)
            if given is not None
        }
        self.MBX = {e for e in used if ev[e].place not in declared}

        def waits(t: int, u: int) -> bool:
            return self.readings["griddep"] == "all" or self.next_to(t, u)

        self.api = {
            (end, start)
            for t, (_, end) in self.ends.items()
            for u, (first, last) in self.ends.items()
            for start in self.API
            if ev[start].thread == u and start != last and self.before(t, u)
            if (waits(t, u) if start != first else not self.test.threads[u].placement.overlap)
        }

        # the first launch_dependents of a thread: further ones have no effect
        first = {ev[g].thread: g for g in sorted((e for e in self.E if ev[e].kind == "GD"), reverse=True)}
        self.trigger = {
            (g, start)
            for t, g in first.items()
            for u, (start, _) in self.ends.items()
            if t is not None and self.before(t, u) and self.next_to(t, u) and self.test.threads[u].placement.overlap
        }
        self.triggered = {
            (f, e)
            for g, start in self.trigger
            for f, other in self.po
            if other == g and f in self.F_REL and ev[f].scope in ("gpu", "sys")
            for begin, e in self.po
            if begin == start
        }

    def is_copy(self, w: int) -> bool:
        """Whether an asynchronous generic write is that of a ``cp.async``: it has no completion of its own."""
        ev = self.events
        if (ev[w].fences or "").startswith("tcgen05"):
            return False
        return not any(ev[e].thread == ev[w].thread and ev[e].step == ev[w].step for e in self.MBA)

    def next_to(self, t: int, u: int) -> bool:
        """Whether no grid of their GPU lies between those of the two threads (9.7.14.13, direct prerequisites)."""
        return not any(self.before(t, v) and self.before(v, u) for v in range(len(self.test.threads)))

    def before(self, t: int, u: int) -> bool:
        """Whether the grid of thread ``t`` is an earlier one of the same GPU than that of ``u``."""
        p, q = self.test.threads[t].placement, self.test.threads[u].placement
        return p.gpu == q.gpu and p.grid < q.grid

    def covered(self, f: int, m: int) -> bool:
        """Whether the object that ``m`` accesses lies in the state space of the proxy fence ``f``."""
        cell = self.events[m].cell
        assert cell is not None
        return self.covers(f, cell[0])

    def covers(self, f: int, key: str) -> bool:
        """Whether an object lies in the state space that the fence ``f`` is for."""
        space, item = self.events[f].space, self.test.objects[key]
        if space is None:
            return True
        if space == "shared::cta":
            p = self.test.threads[self.events[f].thread or 0].placement
            return item.owner == (p.gpu, p.grid, p.cluster, p.cta)
        return item.space == space.partition("::")[0]

    def parts(self) -> None:
        """The accesses divided into those that overlap, directly or through others."""
        todo, self.here = set(self.M), []
        while todo:
            group = {min(todo)}
            while more := {b for a, b in self.ovl if a in group and b not in group}:
                group |= more
            todo -= group
            self.here.append(self.restricted(group))

    def restricted(self, here: set[int]) -> Here:
        def on(r: Pairs) -> Pairs:
            return {(a, b) for a, b in r if a in here and b in here}

        writes = here & self.W
        strong = on(self.ms | self.amo_ms) if self.model == "ptx-8.5" else on(self.ms)
        total = sorted((a, b) for a, b in strong if a < b and a in writes and b in writes)
        covers: dict[Byte, set[int]] = {}
        for e in here:
            for byte in self.bytes_of(e):
                covers.setdefault(byte, set()).add(e)
        cells = sorted(here & self.IW)
        return Here(
            self.model,
            self.readings,
            here,
            writes,
            on(self.ms),
            on(self.amo_ms),
            on(self.rmw),
            on(self.po_loc),
            on(self.ovl),
            total,
            cells,
            list(self.units(writes, cells)),
            covers,
        )

    def units(self, writes: set[int], cells: list[int]) -> Iterator[tuple[list[int], bool]]:
        """The cells that are written, by groups of writes that overlap; byte by byte if their sizes are mixed."""
        todo = writes - self.IW
        while todo:
            group = {min(todo)}
            while more := {b for a, b in self.ovl if a in group and b in todo - group}:
                group |= more
            todo -= group
            ranges = {self.events[w].cell for w in group}
            yield [c for c in cells if any((c, w) in self.ovl for w in group)], len(ranges) > 1
