"""The models once more, as plain set comprehensions over events and pairs: the third opinion on every outcome.

Written to be read line by line beside the definition of the models (the names are the same) and to be slow and
obvious. It shares nothing with the model language, the relation algebra, the event layers and the engines: it imports
the program and its instructions, and the control-flow facts of a thread.

``outcomes(test, "ptx-8.5")`` is the set of all final states, as tuples in the order of ``everything(test)``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ptxmm.engines.result import Observed
from ptxmm.program.condition import MemoryTerm, RegisterTerm, State, evaluate
from ptxmm.program.test import Test
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import Barrier
from tests.reference_barriers import Step, phasings
from tests.reference_expressions import Expr, Impossible, Leaf
from tests.reference_expressions import evaluate as value_of
from tests.reference_frame import (
    Frame,
    Here,
    Pairs,
    acyclic,
    closure,
    initial_bytes,
    instances,
    inv,
    irreflexive,
    seq,
)
from tests.reference_threads import Cell, Walker
from tests.reference_values import possible_values
from tests.reference_values import values as values_of

Final = tuple[int, ...]
ALL_DEPENDENCIES = frozenset(("addr", "data", "ctrl", "rmw"))


class TooSlow(Exception):
    """The reference gave up: the program is not a small one."""


# ---- what follows from who reads from whom, the Fence-SC order and the barrier phases --------------------------------


def observation(x: Frame, rf: Pairs) -> Pairs:
    """``let rec obs = (ms & rf) | (obs; rmw; obs)``"""
    obs = x.ms & rf
    while True:
        more = obs | seq(obs, x.rmw, obs)
        if more == obs:
            return obs
        obs = more


def causality(x: Frame, rf: Pairs, fsc: Pairs, barphase: Pairs) -> tuple[Pairs, Pairs]:
    """Base causality order and causality order."""
    obs = observation(x, rf)
    sync_ra = x.ms & seq(x.relpat, obs, x.acqpat)
    po, ovl, vovl, GEN, M = x.po, x.ovl, x.vovl, x.GEN, x.M
    if x.model == "ptx-6.0":
        sw = sync_ra | fsc | barphase
        po_ = po | {(e, e) for e in x.E}
        bc = closure(seq(po_, sw, po_))
        return bc, bc | seq(obs, bc | (po & ovl))
    bc = closure(po | sync_ra | fsc | barphase)
    generic = {(e, e) for e in M & GEN}
    xit = generic | {(m, f) for m, f in bc if m in M - GEN and (f, m) in x.pfl}
    ent = generic | {(f, m) for f, m in bc if m in M - GEN and (f, m) in x.pfl}
    ppbc = {(a, b) for a, b in bc & vovl if a in M & GEN and b in M & GEN}
    ppbc |= {(a, b) for a, b in bc & vovl & x.same_proxy & x.scta if a in M and b in M}
    ppbc |= vovl & seq(xit, bc, ent)
    ppbc |= ovl & seq(xit, {(a, f) for a, f in bc if f in x.AF}, bc, ent)
    return bc, ppbc | seq(obs, ppbc)


def coherent(x: Frame | Here, rf: Pairs, cause: Pairs, co: Pairs) -> bool:
    """The axioms that speak of coherence order, for a ``co`` that may still leave pairs open."""
    if not irreflexive(co):
        return False
    fr = {(r, w) for r, w in seq(inv(rf), co) if r != w}
    if any((w, r) in cause for r, w in fr):  # Causality, of fr (that of rf is checked once for all)
        return False
    if not x.rmw.isdisjoint(seq(x.ms & fr, x.ms & co)):  # Atomicity
        return False
    if x.model == "ptx-8.5":
        if not x.rmw.isdisjoint(seq(x.amo_ms & fr, x.amo_ms & co)):  # MixedSizeRMW
            return False
        if any((w, r) in rf for r, w in fr & x.ms):  # SingleCopyAtomicity
            return False
    return acyclic((x.ms & (rf | co | fr)) | x.po_loc)  # SC-per-Location


def orders(co: Pairs, pairs: list[tuple[int, int]], accept: Callable[[Pairs], bool]) -> Iterator[Pairs]:
    """The least coherence orders above ``co`` that relate each of ``pairs`` and that ``accept`` accepts."""
    if not accept(co):
        return
    still_open = [(a, b) for a, b in pairs if (a, b) not in co and (b, a) not in co]
    if not still_open:
        yield co
        return
    a, b = still_open[0]
    for pair in ((a, b), (b, a)):
        yield from orders(closure(co | {pair}), still_open[1:], accept)


def final_writes(x: Frame, rf: Pairs, fsc: Pairs, barphase: Pairs, decide: bool) -> set[tuple[int, ...]]:
    """Which writes may be last, one for each cell in the order of ``x.IW``; empty if an axiom fails.

    With ``decide`` false only what is forced already is in ``co`` and Fence-SC order is not asked to be complete: all
    axioms are antitone in ``rf``, ``co`` and ``fsc``, so failing then is failing for good.
    """
    if not acyclic(rf | x.makes_values):  # no axiom: there is no such value
        return set()
    if x.model == "sc":
        return sequentially_consistent(x, rf, barphase, decide)
    if x.dependencies and not acyclic(rf | x.dep):  # No-Thin-Air
        return set()
    bc, cause = causality(x, rf, fsc, barphase)
    if not acyclic(fsc):  # FenceSC-order
        return set()
    if x.model == "ptx-6.0":
        if not irreflexive(seq(fsc, cause)):  # Fence-SC
            return set()
    elif decide and any(a in x.FSC and b in x.FSC and (a, b) not in fsc for a, b in bc & x.ms):  # Fence-SC
        return set()
    if any((r, w) in cause for w, r in rf):  # Causality, of rf
        return set()
    each = []
    for iw in sorted(x.IW):  # each axiom on co speaks of one location: take them one by one
        here = x.here[iw]
        rf_here = {(w, r) for w, r in rf if w in here.events}
        writes = here.events & x.W
        # Coherence: the initial write is first, and causality order is in co
        co = closure({(iw, w) for w in writes if w != iw} | {(a, b) for a, b in cause if a in writes and b in writes})
        lasts: set[int] = set()
        for order in orders(co, here.co_total if decide else [], partial(coherent, here, rf_here, cause)):
            lasts |= writes - {a for a, _ in order}
        if not lasts:
            return set()
        each.append(sorted(lasts))
    return set(itertools.product(*each))


def sequentially_consistent(x: Frame, rf: Pairs, barphase: Pairs, decide: bool) -> set[tuple[int, ...]]:
    """Sequential consistency: co is total on each location; program order, barriers, rf, co and fr fit one order."""

    def accept(co: Pairs) -> bool:
        fr = {(r, w) for r, w in seq(inv(rf), co) if r != w}
        return irreflexive(co) and x.rmw.isdisjoint(seq(fr, co)) and acyclic(x.po | barphase | rf | co | fr)

    co = {(a, b) for a, b in x.ovl if a in x.IW and b in x.W - x.IW}
    pairs = sorted((a, b) for a, b in x.ovl if a < b and a in x.W - x.IW and b in x.W - x.IW) if decide else []
    results = set()
    for order in orders(co, pairs, accept):
        earlier = {a for a, _ in order}
        results.add(tuple(min(w for w in x.here[iw].events & x.W if w not in earlier) for iw in sorted(x.IW)))
    return results


# ---- all executions --------------------------------------------------------------------------------------------------


Slot = tuple[int, int]
"""A read and one of its bytes."""


class Values(dict[Leaf, int]):
    """The values that reads return, computed when asked for; KeyError if one is not decided yet."""

    def __init__(self, x: Frame, slots: list[Slot], sources: dict[Slot, int]) -> None:
        super().__init__()
        self.x, self.slots, self.sources = x, slots, sources

    def __missing__(self, leaf: Leaf) -> int:
        r = self.x.number[leaf]
        own = [i for n, i in self.slots if n == r]
        cell = self.x.events[r].cell
        assert cell is not None
        value = 0
        for i in range(cell[2]):  # bytes without a slot of their own follow the first that has one
            value |= self.written(self.sources[r, i if i in own else own[0]]) & 255 << 8 * i
        self[leaf] = value
        return value

    def written(self, w: int) -> int:
        expr = self.x.events[w].value
        assert expr is not None
        return value_of(expr, self)


def read_slots(x: Frame, cells: Mapping[Cell, frozenset[int] | None], tear: bool) -> list[Slot]:
    """The bytes of reads for which a write is to be chosen, read by read.

    Bytes in which no two values of the location can differ need no choice of their own: other sources for them only
    add edges, and every axiom is antitone in those. Without tearing one choice stands for all bytes.
    """
    slots: list[Slot] = []
    for r in sorted(x.R):
        cell = x.events[r].cell
        assert cell is not None
        values = cells[cell]
        differ = [i for i in range(cell[2]) if values is None or len({v >> 8 * i & 255 for v in values}) > 1]
        slots += [(r, i) for i in differ] if tear and differ else [(r, 0)]
    return slots


def everything(test: Test) -> Observed:
    """All registers that the threads write, and all elements of all plain objects."""
    registers: dict[tuple[int, str], RegisterTerm] = {}
    for t, thread in enumerate(test.threads):
        for op in thread.body:
            for name, _ in definitions(op):
                registers.setdefault((t, name), RegisterTerm(t, name, thread.registers[name]))
    memory = tuple(
        MemoryTerm(o.key, i, o.type) for o in test.objects.values() if o.physical == o.key for i in range(o.count)
    )
    return Observed(tuple(registers.values()), memory)


def state_of(x: Frame, values: Values, last: dict[Cell, int]) -> State:
    """The final state, given the last write of each cell that is accessed."""
    registers = {(t, r): value_of(e, values) for t, path in enumerate(x.paths) for r, e in path.registers.items()}
    memory = {}
    for item in x.test.objects.values():
        image = bytearray(initial_bytes(x.test, item.physical, 0, x.test.objects[item.physical].size))
        for (key, offset, size), w in last.items():
            if key == item.physical:
                image[offset : offset + size] = values.written(w).to_bytes(size, "little")
        for i in range(item.count):
            memory[item.key, i] = int.from_bytes(image[i * item.type.bytes : (i + 1) * item.type.bytes], "little")
    return State(registers, memory)


def restrict(state: State, observed: Observed) -> Final:
    """The observed part of ``state`` as a tuple."""
    return tuple(
        [state.registers[t.thread, t.register] for t in observed.registers]
        + [state.memory[t.key, t.index] for t in observed.memory]
    )


def consistent(x: Frame, tear: bool, deadline: float) -> Iterator[tuple[Values, dict[Cell, int]]]:
    """Read values and last writes of every consistent execution of one combination of paths."""
    accesses = {leaf: x.events[n] for leaf, n in x.number.items()}
    initial = {cell: v for iw, v in x.initial.items() if (cell := x.events[iw].cell)}
    leaf_values, cells = possible_values(accesses, initial, tear)
    constraints = [c for path in x.paths for c in path.constraints]
    for expr, truth in constraints:
        may = values_of(expr, leaf_values)
        if may is not None and truth not in {bool(v) for v in may}:
            return
    slots = read_slots(x, cells, tear)
    may_read = {r: [w for w in sorted(x.W) if (w, r) in x.ovl] for r in x.R}
    steps = [barrier_steps(x, t) for t in range(len(x.test.threads))]
    cta_of = [place["cta"] for place in instances(x.test)]

    def search(sources: dict[Slot, int]) -> Iterator[tuple[Values, dict[Cell, int]]]:
        if time.monotonic() > deadline:
            raise TooSlow
        rf = {(w, r) for (r, _), w in sources.items()}
        if not final_writes(x, rf, set(), set(), decide=False):
            return
        values = Values(x, slots, sources)
        for expr, truth in constraints:
            try:
                if bool(value_of(expr, values)) != truth:
                    return
            except KeyError:
                pass
            except Impossible:
                return
        if len(sources) < len(slots):
            slot = slots[len(sources)]
            for w in may_read[slot[0]]:
                yield from search({**sources, slot: w})
            return
        known = [
            [
                Step(t, op, value_of(b, values), None if c is None else value_of(c, values), a, w)
                for t, op, b, c, a, w in thread
            ]
            for thread in steps
        ]
        for barphase in phasings(x.test, known, cta_of):
            for fsc in fence_orders(x):
                for lasts in final_writes(x, rf, fsc, set(barphase), decide=True):
                    yield values, dict(zip(initial, lasts, strict=True))

    yield from search({})


def fence_orders(x: Frame) -> Iterator[Pairs]:
    """FenceSC-total: each pair of morally strong fence.sc in one of its directions, that of program order if it has
    one (the other always closes a cycle with it)."""
    if x.model == "sc":
        yield set()
        return
    for directions in itertools.product((True, False), repeat=len(x.fsc_pairs)):
        fsc = {(a, b) if d else (b, a) for d, (a, b) in zip(directions, x.fsc_pairs, strict=True)}
        if not any((b, a) in x.po for a, b in fsc):
            yield fsc


def barrier_steps(x: Frame, thread: int) -> list[tuple[int, Barrier, Expr, Expr | None, int, int | None]]:
    """The barrier instructions of a thread with their operands still open."""
    result: list[tuple[int, Barrier, Expr, Expr | None, int, int | None]] = []
    for k, event in enumerate(x.paths[thread].events):
        if event.kind == "BA" and event.barrier is not None:
            op, barrier, count = event.barrier
            n = x.number[thread, k]
            result.append((thread, op, barrier, count, n, n + 1 if op.kind == "sync" else None))
    return result


def states(
    test: Test,
    model: str,
    *,
    unroll: int = 3,
    tear: bool | None = None,
    sem: bool = True,
    dependencies: frozenset[str] = ALL_DEPENDENCIES,
    seconds: float = 60,
) -> Iterator[State]:
    """Every final state, some more than once. ``dependencies``: what ``dep`` of No-Thin-Air is made of; empty: there is
    no such axiom. ``TooSlow`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    tear = model == "ptx-8.5" if tear is None else tear
    paths = [list(Walker(test, t, unroll, sem).paths()) for t in range(len(test.threads))]
    for combination in itertools.product(*paths):
        x = Frame(test, model, combination, dependencies)
        for values, last in consistent(x, tear, deadline):
            state = state_of(x, values, last)
            if test.filter is None or evaluate(test.filter, state):
                yield state


def outcomes(
    test: Test,
    model: str,
    observed: Observed | None = None,
    *,
    unroll: int = 3,
    dependencies: frozenset[str] = ALL_DEPENDENCIES,
    seconds: float = 60,
) -> set[Final]:
    """The set of final states under ``model`` (``ptx-6.0``, ``ptx-7.5``, ``ptx-8.5`` or ``sc``).

    Each is the tuple of the observed values, registers first; ``observed`` is ``everything(test)`` by default.
    Executions that take a backward branch more than ``unroll`` times are left out, as are those that wait for ever at
    a barrier or access what no object has.
    """
    observed = observed or everything(test)
    found = states(test, model, unroll=unroll, dependencies=dependencies, seconds=seconds)
    return {restrict(s, observed) for s in found}
