"""The axioms of the models for the reference, beside the names of their definition.

A reading is a dict from (read, byte) to the write that this byte comes from; only bytes that stand for their cell are
in it. All axioms are antitone in reads-from, coherence, Fence-SC order and the phases of barriers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from tests import reference_tensorcore
from tests.reference_frame import Byte, Frame, Here
from tests.reference_relations import Pairs, acyclic, closure, irreflexive, seq
from tests.reference_simulation import Meeting

Reading = dict[tuple[int, Byte], int]

Last = tuple[frozenset[int], ...]
"""For each cell of a part of memory the writes that may be last there."""


def observation(x: Frame, rf: Pairs) -> Pairs:
    """``let rec obs = (ms & rf) | (obs; rmw; obs)``"""
    obs = x.ms & rf
    while True:
        more = obs | seq(obs, x.rmw, obs)
        if more == obs:
            return obs
        obs = more


def causality(x: Frame, rf: Pairs, fsc: Pairs, met: Meeting) -> tuple[Pairs, Pairs]:
    """Base causality order and causality order."""
    obs = observation(x, rf)
    sync_ra = x.ms & seq(x.relpat, observed(x, obs, x.acqpat))
    warp = met.warpphase if x.readings["warpsync"] == "on" else frozenset()
    if x.model == "ptx-6.0":
        sw = sync_ra | fsc | met.barphase | warp
        po_ = x.po | {(e, e) for e in x.E}
        bc = closure(seq(po_, sw, po_))
        return bc, bc | seq(obs, bc | (x.po & x.ovl))
    sync = sync_ra | fsc | met.barphase | warp | x.api | x.triggered
    if x.model != "ptx-8.5":
        bc = closure(x.po | sync)
        ppbc = preserved(x, bc, x.M - x.GEN)
        return bc, ppbc | seq(obs, ppbc)
    if x.readings["mbarrier"] == "rmw":  # arrivals are observed one through the other
        met = replace(met, mbphase=met.mbphase & closure(x.ms & met.mbnext))
    sync_tm = tensormap_pairs(x, obs)
    step = steps(x, sync if x.readings["tensormap-sync"] == "tensormap" else sync | sync_tm, met)
    bc, bt = base_causality(x, obs, step, sync_tm, met)
    other = {m for m in x.M if x.events[m].proxy in ("ASY", "TMP")}
    ppbc = preserved(x, bc, other)
    # a map that was written generically is read by a copy after a release and an acquire fence of its proxy
    into = x.tmcov & x.inner & bt
    ppbc |= x.vovl & seq(
        {(m, f) for m, f in bt if m in x.M & x.GEN and f in x.TMREL}, {(f, a) for f, a in bt if a in x.TMACQ}, into
    )
    end = x.M if x.readings["api-tensormap"] == "on" else x.M - x.TMP
    ppbc |= x.ovl & seq({(m, a) for m, a in bc if a in x.API}, {(a, m) for a, m in bc if m in end})
    # a generic read that is made before an asynchronous write
    overwrites = {(a, b) for a, b in x.vovl if a in x.R & x.GEN and b in x.W and x.events[b].proxy == "ASY"}
    war = bc & overwrites
    ppbc |= reference_tensorcore.preserved(x, step, obs, met)
    for key, own in restricted(x, obs, step, met).items():
        on = {m for m in x.M if (cell := x.events[m].cell) and cell[0] == key}
        more = preserved(x, own, other, key) | one_way(x, own, obs, met, key)
        ppbc |= {(a, b) for a, b in more if a in on and b in on}
        war |= {(a, b) for a, b in own & overwrites if a in on and b in on}
        # an mbarrier is such an object as well
        bc |= {(a, b) for a, b in own if a in x.MBI and (place := x.events[a].place) and place[0] == key}
    return bc, ppbc | seq(obs, ppbc) | (war if x.readings["proxy-war"] == "free" else set())


def observed(x: Frame, obs: Pairs, acquire: Pairs) -> Pairs:
    """From the write of a release pattern to the end of an acquire pattern that observes it."""
    found = seq(obs, acquire)
    return found if x.readings["middle"] == "any" else found & x.ms


def leaving(x: Frame, bc: Pairs, other: set[int]) -> Pairs:
    """From an access to itself, if it is generic, or to a proxy fence after it that is for its proxy."""
    return {(e, e) for e in x.M & x.GEN} | {(m, f) for m, f in bc if m in other and (f, m) in x.pfl}


def preserved(x: Frame, bc: Pairs, other: set[int], key: str = "") -> Pairs:
    """What a base causality order preserves across proxies; ``other``: the accesses that are not generic; ``key``: for
    which object the order is, if not for all."""
    same, out = {(e, e) for e in x.M & x.GEN}, leaving(x, bc, other)
    into = {(f, m) for f, m in bc if m in other - x.TMP and (f, m) in x.pfl}
    ent = same | into
    if key and x.readings["proxy-restrict"] == "single":
        ent |= {(f, m) for f, m in bc & x.local if f in x.ASACQ and x.events[m].proxy == "ASY"}
        ent |= {(f, m) for f, m in bc if f in x.ASREL and x.covers(f, key) and x.events[m].proxy == "ASY"}
    result = {(a, b) for a, b in bc & x.vovl if a in x.M & x.GEN and b in x.M & x.GEN}
    result |= {(a, b) for a, b in bc & x.vovl & x.same_proxy & x.scta if a in x.M}
    if x.model == "ptx-8.5" and x.readings["proxy-locality"] == "thread":
        # the first fence after the one access, or the last before the other, is in its thread
        out_own, out_last = out & x.int, seq(out - same, bc & x.int)
        result |= x.vovl & (seq(out_own, bc, same) | seq(out_last, same) | seq(out_own, bc, into & x.int))
        result |= x.vovl & seq(same, bc & x.int, into)
    else:
        result |= x.vovl & seq(out, bc, ent)
    ends = x.readings["alias-fence"] == "ends"
    before = {(a, f) for a, f in bc if f in x.AF}
    through = seq(before & x.int, bc) | seq(before, bc & x.int) if ends else seq(before, bc)
    return result | (x.ovl & seq(out, through, ent))


def tensormap_pairs(x: Frame, obs: Pairs) -> Pairs:
    """A release and an acquire fence of the tensormap proxy."""
    return x.ms & seq(
        {(f, w) for f, w in x.po if f in x.TMREL and w in x.W & x.STRONG},
        obs,
        {(r, f) for r, f in x.po if r in x.start and f in x.TMACQ},
    )


def steps(x: Frame, sync: Pairs, met: Meeting) -> Pairs:
    """The steps of base causality order of 1.5."""
    clu = {(a, w) for a, w in met.cluphase if w in x.ACQ}
    releasing = {(a, a) for a in x.CA & x.REL} | {(f, a) for f, a in x.po if f in x.F_REL and a in x.CA}
    if x.readings["cluster-relaxed"] == "literal":
        clu, releasing = set(met.cluphase), {(a, a) for a in x.CA}
    sync_clu = x.ms & seq(releasing, clu)
    waits = {(w, w) for w in x.MBW & x.ACQ} | {(w, f) for w, f in x.po if w in x.MBW - x.ACQ and f in x.F_ACQ}
    sync_mb = x.ms & seq(
        {(a, a) for a in x.MBA & x.REL} | {(f, a) for f, a in x.po if f in x.F_REL and a in x.MBA}, met.mbphase, waits
    )
    inside = x.aord if x.readings["tmwar"] == "on" else {(a, b) for a, b in x.aord if a not in x.R & x.TMP}
    issue = x.issue if x.readings["issue"] == "closure" else set()
    return x.po | inside | x.acomp | sync | sync_clu | sync_mb | issue


def base_causality(x: Frame, obs: Pairs, step: Pairs, sync_tm: Pairs, met: Meeting) -> tuple[Pairs, Pairs]:
    """``bc`` and ``bt`` of 1.5."""
    strong_w = x.W & x.STRONG
    bc0 = closure(step)
    bt0 = closure(step | sync_tm)
    reads = x.acqpat | {(r, f) for r, f in x.po if r in x.start and f in x.FRA}
    mbi_s = x.ms & (
        seq({(f, a) for f, a in x.po if f in x.FMBI and a in x.CA}, {(a, w) for a, w in met.cluphase if w in x.ACQ})
        | seq({(f, w) for f, w in x.po if f in x.FMBI and w in strong_w}, obs, reads)
    )
    bc_mbi = seq({(i, f) for i, f in x.po if i in x.MBI}, mbi_s)
    before = bc0 | bc_mbi | seq(bc_mbi, bc0)
    return before | x.issue | seq(before, x.issue), bt0 | x.issue | seq(bt0, x.issue)


# ---- PTX 8.6: fences that are for objects in shared memory only ------------------------------------------------------


def hands_over(x: Frame, released: set[int], acquired: set[int], obs: Pairs, met: Meeting, sem: bool) -> Pairs:
    """From fences of ``released`` to fences of ``acquired`` by a flag, an mbarrier or the barrier of the cluster
    between them; ``sem``: also from and to what releases and acquires for all memory."""
    strong_w = x.W & x.STRONG
    first = {(f, e) for f, e in x.po if f in released and e in strong_w | x.MBA | x.CA}
    last = {(e, f) for e, f in x.po if e in x.start | x.MBW | x.CW and f in acquired}
    if sem:
        last = {(e, f) for e, f in last if e not in (x.MBW & x.ACQ) | x.CW}
        first |= x.relpat | {(e, e) for e in (x.MBA | x.CA) & x.REL}
        first |= {(f, e) for f, e in x.po if f in x.F_REL and e in x.MBA | x.CA}
        last |= x.acqpat | {(w, w) for w in (x.MBW | x.CW) & x.ACQ}
        last |= {(w, f) for w, f in x.po if w in x.MBW - x.ACQ and f in x.F_ACQ}
    flags = observed(x, obs, last) if sem else seq(obs, last)
    counted = met.mbphase if sem else x.ms & met.mbphase
    return x.ms & seq(first, flags | seq(counted | met.cluphase, last))


def restricted(x: Frame, obs: Pairs, step: Pairs, met: Meeting) -> dict[str, Pairs]:
    """For each object in shared memory, what base causality order is for it with the restricted fences that are."""
    result = {}
    if x.FRR or x.FRA or x.ASREL or x.ASACQ:
        for key, item in x.test.objects.items():
            if item.space == "shared":
                good = {f for f in x.FRR | x.FRA if x.covers(f, key)}
                own = closure(step | hands_over(x, good & x.FRR, good & x.FRA, obs, met, True))
                result[key] = own | x.issue | seq(own, x.issue)
    return result


def one_way(x: Frame, bc: Pairs, obs: Pairs, met: Meeting, key: str) -> Pairs:
    """From the generic to the async proxy, by a release and an acquire fence that are for an object."""
    into = {(f, m) for f, m in bc & x.inner if f in x.ASACQ and x.events[m].proxy == "ASY"}
    out = seq(leaving(x, bc, x.M - x.GEN), {(a, f) for a, f in bc if f in x.ASREL and x.covers(f, key)})
    return x.vovl & seq(out, bc | hands_over(x, x.ASREL, x.ASACQ, obs, met, False), into)


def from_reads(here: Here, reading: Reading, co: Pairs) -> Pairs:
    """``fr``: byte by byte, to the writes that cover the byte and come after the one that it is read from."""
    later: dict[int, set[int]] = {}
    for a, b in co:
        later.setdefault(a, set()).add(b)
    return {
        (r, w) for (r, byte), source in reading.items() for w in later.get(source, set()) & here.covers[byte] if w != r
    }


def coherent(here: Here, rf: Pairs, reading: Reading, cause: Pairs, co: Pairs) -> bool:
    """The axioms that speak of coherence order, for a ``co`` that may still leave pairs open."""
    if not acyclic(co):
        return False
    fr = from_reads(here, reading, co)
    if any((w, r) in cause for r, w in fr):  # Causality, of fr (that of rf is checked once for all)
        return False
    if not here.rmw.isdisjoint(seq(here.ms & fr, here.ms & co)):  # Atomicity
        return False
    if here.model == "ptx-8.5":
        if not here.rmw.isdisjoint(seq(here.amo_ms & fr, here.amo_ms & co)):  # MixedSizeRMW
            return False
        if any((w, r) in rf for r, w in fr & here.ms):  # SingleCopyAtomicity
            return False
    com = here.ms & (rf | co | fr)
    match here.readings["scploc"]:  # SC-per-Location
        case "global":
            return acyclic(com | here.po_loc)
        case "clique":
            return irreflexive(seq(here.ms & here.po_loc, com | seq(com, com)))
    return True


def orders(
    co: Pairs, pairs: list[tuple[int, int]], accept: Callable[[Pairs], bool], direct: bool = False
) -> Iterator[Pairs]:
    """The least coherence orders above ``co`` that relate each of ``pairs`` and that ``accept`` accepts; ``direct``:
    they need not be transitive."""
    co = co if direct else closure(co)
    if not accept(co):
        return
    still_open = [(a, b) for a, b in pairs if (a, b) not in co and (b, a) not in co]
    if not still_open:
        yield co
        return
    a, b = still_open[0]
    for pair in ((a, b), (b, a)):
        yield from orders(co | {pair}, still_open[1:], accept, direct)


def lasts(x: Frame, here: Here, order: Pairs) -> Last:
    """For each cell the writes that no other one on it comes after."""
    result = []
    for cell in here.cells:
        covering = {w for w in here.writes if (cell, w) in here.ovl or w == cell}
        result.append(frozenset(covering - {a for a, b in order if a in covering and b in covering}))
    return tuple(result)


def final_writes(
    x: Frame, reading: Reading, fsc: Pairs, met: Meeting, decide: bool
) -> tuple[set[tuple[Last, ...]], frozenset[str]] | None:
    """Which writes may be last in each part of memory, and the flags; None if an axiom fails.

    With ``decide`` false only what is forced already is in ``co`` and Fence-SC order is not asked to be complete: all
    axioms are antitone in ``rf``, ``co`` and ``fsc``, so failing then is failing for good.
    """
    rf = {(w, r) for (r, _), w in reading.items()}
    if not acyclic(rf | x.makes_values):  # no axiom: there is no such value
        return None
    if x.model == "sc":
        return sequentially_consistent(x, reading, met, decide)
    if x.dependencies and not acyclic(rf | x.dep | met.phases | x.api | x.passed):  # No-Thin-Air
        return None
    bc, cause = causality(x, rf, fsc, met)
    if not acyclic(fsc):  # FenceSC-order
        return None
    if x.model == "ptx-6.0":
        if not irreflexive(seq(fsc, cause)):  # Fence-SC
            return None
    elif decide and any(a in x.FSC and b in x.FSC and (a, b) not in fsc for a, b in bc & x.ms):  # Fence-SC
        return None
    first = precedes(x, cause)
    if any((r, w) in first for w, r in rf):  # Causality, of rf
        return None
    each = []
    for here in x.here:  # each axiom on co speaks of accesses that overlap: take them part by part
        mine = {(r, byte): w for (r, byte), w in reading.items() if r in here.events}
        rf_here = {(w, r) for (r, _), w in mine.items()}
        # Coherence: the initial write is first, and causality order is in co
        initial = {(iw, w) for iw, w in here.ovl if iw in x.IW and w in here.writes and w != iw}
        co = initial | {(a, b) for a, b in cause & here.ovl if a in here.writes and b in here.writes}
        accept = partial(coherent, here, rf_here, mine, cause)
        direct = x.readings["co"] == "direct"
        found = {lasts(x, here, order) for order in orders(co, here.co_total if decide else [], accept, direct)}
        if not found:
            return None
        each.append(found)
    return set(itertools.product(*each)) if decide else set(), flags(x, rf, bc, cause, met) if decide else frozenset()


def precedes(x: Frame, cause: Pairs) -> Pairs:
    """An atomic is one operation (8.2): it precedes what its write does."""
    return cause | seq(x.rmw, cause) if x.readings["atomic"] == "operation" else cause


def flags(x: Frame, rf: Pairs, bc: Pairs, cause: Pairs, met: Meeting) -> frozenset[str]:
    """Data races and the use of mbarriers that are not ordered after their initialisation (8.7.1, 6.4)."""
    found = set()
    if x.model == "ptx-6.0":  # bare program order is no cause, but what follows in it does not race
        cause = cause | x.po | seq(observation(x, rf), x.po)
    cause = precedes(x, cause)
    race = {
        (a, b)
        for a, b in x.ovl
        if a != b and (a in x.W or b in x.W) and a not in x.IW and b not in x.IW
        if (a, b) not in cause and (b, a) not in cause and (a, b) not in x.ms
    }
    if race:
        found.add("data-race")
    if race - x.loc:
        found.add("mixed-size-race")
    # not by what a wait synchronizes with itself: a poll before that found no mbarrier
    before = x.po | seq(bc, x.po | x.issue_all)
    initialised = {e for i, e in x.mbobj & before}
    if x.MBX - initialised or any((i, e) not in before and (e, i) not in before for i, e in x.mbobj):
        found.add("mbarrier-before-init")
    # at least one wait has returned true for a phase before there is an arrival of the next one
    passing = closure(bc | seq(bc, x.issue_all)) if met.late else bc
    if met.late - {e for w, e in met.passed & passing}:
        found.add("mbarrier-phase-skipped")
    if x.model == "ptx-8.5":
        return frozenset(found)
    partial = {(a, b) for a, b in x.ovl - x.loc if not {a, b} & x.IW and {a, b} & x.W}
    return frozenset(found & {"mixed-size-race"} | ({"mixed-sizes"} if partial else set()))


def sequentially_consistent(
    x: Frame, reading: Reading, met: Meeting, decide: bool
) -> tuple[set[tuple[Last, ...]], frozenset[str]] | None:
    """Sequential consistency: co is total on each location; program order, barriers, rf, co and fr fit one order, in
    which the reads of values come before what other threads make of them."""
    rf = {(w, r) for (r, _), w in reading.items()}
    fixed = x.po | met.phases | x.api | x.trigger | x.issue | x.issue_all | x.aord | x.acomp | rf

    def accept(co: Pairs) -> bool:
        fr: Pairs = set()
        for here in x.here:
            mine = {(r, byte): w for (r, byte), w in reading.items() if r in here.events}
            fr |= from_reads(here, mine, co)
        order = fixed | co | fr
        if not irreflexive(co) or not x.rmw.isdisjoint(seq(fr, co)) or not acyclic(order):
            return False
        products = reference_tensorcore.of(x, "mma")
        piped = reference_tensorcore.pipelines(x, closure(order)) if products else set()
        return acyclic(order | piped | x.given)

    co = {(a, b) for a, b in x.ovl if a in x.IW and b in x.W - x.IW}
    pairs = sorted((a, b) for a, b in x.ovl if a < b and a in x.W - x.IW and b in x.W - x.IW) if decide else []
    found = {tuple(lasts(x, here, order) for here in x.here) for order in orders(co, pairs, accept)}
    return (found, frozenset()) if found else None
