"""From a test to its symbolic program: events of all threads, who may read from whom, and the constraints.

Values out of thin air are excluded (PTX ISA 8.10.4), so that the possible values of a location are a fixpoint that is
reached after as many rounds as there are writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, permutations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.events.symbolic.barriers.exchanges import Exchanges
from ptxmm.events.symbolic.barriers.scenarios import Scenario, scenarios
from ptxmm.events.symbolic.choices import choose
from ptxmm.events.symbolic.event import Event, ThreadEvents
from ptxmm.events.symbolic.machine import Assumed, Known, Machine, Reading, Setting, setting
from ptxmm.events.symbolic.program import Program
from ptxmm.events.symbolic.refusals import refuse_noncoherent_loads
from ptxmm.events.symbolic.threads import Outline, outline, run
from ptxmm.events.symbolic.values.domain import TooMany
from ptxmm.events.symbolic.values.possible import Possible, rounds
from ptxmm.program.condition import RegisterTerm, Term
from ptxmm.program.identity import TENSORMAP, EventId
from ptxmm.program.latest import Latest
from ptxmm.program.shared.broadcasts import quiet
from ptxmm.program.shared.control import SPINS
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.shared.tensors import field_borders
from ptxmm.program.shared.undetermined import Place, readable
from ptxmm.program.shared.unseen import NOTHING, open_results, unseen
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import has_unknown
from ptxmm.ptx.ops import (
    COMPUTING,
    Alu,
    Atomic,
    Barrier,
    BarrierReduction,
    Branch,
    Exit,
    Fence,
    Load,
    MbarrierArrive,
    Op,
    Opaque,
    Store,
    TensormapCopyFence,
    TensormapReplace,
    WarpBarrier,
    WarpExchange,
    WmmaLoad,
)
from ptxmm.relations.closures import closure
from ptxmm.relations.formula import FALSE, TRUE
from ptxmm.relations.symbolic import SymbolicAlgebra

_FORMULAS = 1 << 15
"""Larger programs are not kept."""
_latest: Latest[Program] = Latest(8)


def build(
    test: Test,
    observed: Iterable[Term],
    reading: Reading,
    check: Callable[[], None],
    untorn: frozenset[str] | None = frozenset(),
    known: Known | None = None,
) -> Program:
    """The program of ``test``, read as ``reading`` says.

    ``untorn``: the objects (None: all) at which no read is torn although reads may be torn; those where it makes a
    difference are ``torn`` in the result. ``known``: what need not be found out.
    ``observed``: the registers and memory elements whose final values matter. Raises ``PtxmmError`` for what is not
    modelled.
    """
    terms = list(dict.fromkeys(observed))
    asked = {(t.thread, t.register) for t in terms if isinstance(t, RegisterTerm)}
    shown = frozenset(asked.intersection(_states(test)))
    seen = readable(test, terms) if has_unknown(test) else None
    known = known or Known()
    hidden = open_results(test, terms)
    if hidden is NOTHING and ((_asks_nothing(terms) and _is_large(test)) or _calculates(test)):
        hidden = unseen(test, terms)
    key: tuple[object, ...] = shown, seen, reading, untorn, known, hidden
    kept = _latest.get(test, key)
    if kept is not None:
        return kept.copy()
    around = replace(setting(test, reading, shown, check, known), unseen=hidden)
    try:
        program = _build(around, seen, untorn)
    except TooMany:
        if hidden is not NOTHING:
            raise
        key = *key, frozenset(terms)
        kept = _latest.get(test, key)
        if kept is not None:
            return kept.copy()
        program = _build(replace(around, unseen=unseen(test, terms)), seen, untorn)
    if len(program.formulas.arguments) <= _FORMULAS:
        _latest.keep(test, key, program.copy())
    return program


_LARGE = 1_000
"""Of more instructions than these, values that nothing sees are not worked out where none is asked for."""


_CALCULATIONS = 16
"""Of more floating-point calculations than these, those that nothing sees are not worked out: no value of a sum comes
twice."""


def _is_large(test: Test) -> bool:
    return sum(len(thread.body) for thread in test.threads) > _LARGE


def _calculates(test: Test) -> bool:
    calculations = (op for t in test.threads for op in t.body if isinstance(op, Alu) and op.type.kind in ("f", "bf"))
    return sum(1 for _ in calculations) > _CALCULATIONS


def _asks_nothing(terms: Iterable[Term]) -> bool:
    """Whether no final value is asked for: a register without a name only tells its thread from others."""
    return all(isinstance(term, RegisterTerm) and not term.register for term in terms)


def _states(test: Test) -> Iterator[tuple[int, str]]:
    """The registers that the states of mbarriers go to: of others it makes no difference whether they are asked for."""
    for number, thread in enumerate(test.threads):
        for op in thread.body:
            if isinstance(op, MbarrierArrive) and op.dst is not None:
                yield number, op.dst.name


def _build(around: Setting, seen: set[Place] | None, untorn: frozenset[str] | None) -> Program:
    last, found, torn = _execute(around, untorn, seen)
    machine = last.machine
    refuse_noncoherent_loads(machine)
    program = _program(last, torn)
    for index, when, text in machine.misuses:
        wrong = program.formulas.both(when, program.begun(index))
        if wrong != FALSE:
            program.undefined.append((wrong, text))
    program.constraints += machine.definitions
    choose(program, machine, found, around.check)
    return program


def skeleton(test: Test, reading: Reading, check: Callable[[], None]) -> Program | None:
    """The program of ``test`` before any value is known: its events, which may read from which, and coherence order,
    without constraints. None where it may depend on values what is accessed, who comes to a barrier or how they meet.

    Every execution of ``test`` is one of it: guards may go either way.
    """
    if not all(_plain(op) for thread in test.threads for op in thread.body):
        return None
    around = setting(test, reading, (), check)
    last = _run(Machine(around, Possible(test).of, True, Assumed()), _outlines(around), None)
    machine = last.machine
    if _borders(machine) or not all(_settled(event) for event in machine.events):
        return None
    program = _program(last, frozenset())
    meetings = _only_meetings(test, last, check)
    if meetings is None:
        return None
    program.scenarios += [(scenario, TRUE) for scenario in meetings]
    for cell, initial in program.initial.items():
        at = [e for e in machine.events if any(p.contains(cell) for p in e.places)]
        writes = [initial, *(e.number for e in at if e.kind == "W")]
        program.rf[cell] = {r.number: {w: machine.formulas.variable() for w in writes} for r in at if r.kind == "R"}
        for pair in permutations(writes[1:], 2):
            program.co[pair] = machine.formulas.variable()
    return program


def _only_meetings(test: Test, last: _Run, check: Callable[[], None]) -> list[Scenario] | None:
    """How the threads meet at barriers, if they all come there and there is one way; else None."""
    steps = [step for thread in last.threads for step in thread.barriers]
    if any(step.presence != TRUE for step in steps):
        return None
    found = scenarios(test, last.machine.formulas, last.threads, check) if steps else []
    one_way = len({scenario.group for scenario in found}) == len(found)
    return found if one_way and not any(scenario.misuse or scenario.waiting for scenario in found) else None


_PLAIN = (
    *(Load, Store, Atomic, Fence, Branch, Exit, *COMPUTING),
    *(Barrier, BarrierReduction, WarpBarrier, WarpExchange),
)


def _plain(op: Op) -> bool:
    """Whether an instruction can be executed before it is known which results nothing sees."""
    return isinstance(op, _PLAIN) and (not isinstance(op, Opaque) or op.free)


def _settled(event: Event) -> bool:
    """Whether the place of an access depends on nothing."""
    return event.kind not in ("R", "W") or (
        not event.address and len(event.places) == 1 and event.places[0].when == TRUE
    )


def _program(last: _Run, torn: frozenset[str]) -> Program:
    """The events of ``last``, without the choices that make an execution of them."""
    machine = last.machine
    formulas, reading = machine.formulas, machine.reading
    cells = dict.fromkeys(c for e in machine.events for p in e.places for c in machine.cells(p))
    initial = {cell: len(machine.events) + i for i, cell in enumerate(cells)}
    presence = [e.presence for e in machine.events] + [TRUE] * len(initial)
    return Program(
        machine.test,
        formulas,
        SymbolicAlgebra(formulas, presence),
        machine.events,
        presence,
        initial,
        last.threads,
        machine.read_cells,
        machine.cells,
        tear=reading.tear,
        next_grid=reading.next_grid,
        mbarriers=mbarriers(machine.test.threads, machine.test.objects),
        mixed=frozenset(_borders(machine)),
        operations=machine.operations,
        torn=torn,
        unseen=machine.setting.unseen,
        lookups=machine.lookups,
        chosen=machine.chosen,
    )


def _execute(
    around: Setting, untorn: frozenset[str] | None, seen: set[Place] | None
) -> tuple[_Run, list[Scenario], frozenset[str]]:
    """Execute all threads until what one execution supposes is what it leads to; the barrier scenarios, and the objects
    at which reads are not torn though it would make a difference.

    What is supposed is the possible values of all locations, how they are divided, the steps that can block, and the
    states that mbarrier arrivals return and threads get from each other.
    """
    test, reading = around.test, around.reading
    possible, assumed, turns = Possible(test, around.known.never, around.unseen.objects), Assumed(), 0
    outlines = _outlines(around)
    while True:
        last, *free = _runs(around, assumed, possible, outlines)
        torn = _torn(last.machine, possible, seen) if reading.tear else {}
        kept = frozenset(torn if untorn is None else untorn & torn.keys())
        grown = _grown(assumed, _borders(last.machine), {key: torn[key] for key in torn if key not in kept})
        if grown:
            for key in grown:
                possible.forget(key)
            assumed = replace(assumed, borders={**assumed.borders, **grown})
            continue
        if not any(t.barriers for t in last.threads):
            return last, [], kept
        met = [_met(around, last, reading.ordered)]
        # Whom a thread meets may owe its value to what a thread does that reads it, as a write may.
        met += [_met(around, ran, False) for ran in free if ran.machine.freed and _values_matter(last.threads)]
        found = met[0][0]
        waiting = assumed.waiting.union(*(s.waiting for s in found))
        tokens = _tokens(assumed, [scenario for known, _ in met for scenario in known])
        # A value goes through each step once at most, so that all are known after as many turns as there are steps.
        results = _results(assumed, met) if turns <= max(len(e.steps) for _, e in met) else assumed.results
        turns += results != assumed.results
        if (waiting, tokens, results) == (assumed.waiting, assumed.tokens, assumed.results):
            return last, found, kept
        assumed = replace(assumed, waiting=waiting, tokens=tokens, results=results)


def _outlines(around: Setting) -> list[Outline]:
    """The outline of each thread."""
    test, reading = around.test, around.reading
    known = zip(test.threads, quiet(test, SPINS, reading.told and not reading.cas_writes), strict=True)
    return [outline(thread, found.accesses, reading.values, found.rounds) for thread, found in known]


class _Run(Struct):
    """One execution of all threads, and whether what is ``possible`` grew by it."""

    machine: Machine
    threads: list[ThreadEvents]
    news: bool


def _runs(around: Setting, assumed: Assumed, possible: Possible, outlines: list[Outline]) -> list[_Run]:
    """The execution in which all possible values are known. Where what is executed depends on values, that is found
    with guards that may go either way: then that execution comes after the one without."""
    guarded = any(_guarded(op) for thread in around.test.threads for op in thread.body)
    executions = apart = 0
    while True:
        around.check()
        last = _run(Machine(around, possible.of, guarded, assumed), outlines, possible, apart)
        executions += 1
        if not last.news:
            break
        if executions > rounds(last.machine):
            if not around.wide:
                break
            possible.widen()
        apart = _apart(last.machine)
    return [_run(Machine(around, possible.of, False, assumed), outlines, None), last] if guarded else [last]


def _run(machine: Machine, outlines: list[Outline], possible: Possible | None, apart: int = 0) -> _Run:
    """Execute all threads, from which ``possible`` learns; what the threads ``apart`` (bits) write, those after them
    know."""
    threads: list[ThreadEvents] = []
    news = False
    later: list[Event] = []
    for index, known in enumerate(outlines):
        first = len(machine.events)
        threads.append(run(machine, index, known))
        if possible is not None and apart >> index & 1:
            news = possible.learn(machine, machine.events[first:]) or news
        else:
            later += machine.events[first:]
    if possible is not None:
        news = possible.learn(machine, later) or news
        news = possible.learn_dependent(machine) or news
    return _Run(machine, threads, news)


def _apart(machine: Machine) -> int:
    """The threads, as bits, whose writes no value comes from that they read themselves."""
    never = machine.setting.known.never
    readers: dict[str, list[Event]] = {}
    rows = [0] * len(machine.test.threads)
    for event in machine.events:
        if event.kind == "R":
            for place in event.places:
                readers.setdefault(place.physical, []).append(event)
    for event in machine.events:
        if event.kind == "W":
            for read in (r for place in event.places for r in readers.get(place.physical, ())):
                if read.thread != event.thread and (read.id, event.id) not in never:
                    rows[event.thread] |= 1 << read.thread
    return sum(1 << t for t, row in enumerate(closure(rows)) if not row >> t & 1)


def _met(around: Setting, ran: _Run, ordered: bool) -> tuple[list[Scenario], Exchanges]:
    """How the threads meet at barriers, and what they give each other there."""
    formulas, threads = ran.machine.formulas, ran.threads
    found = scenarios(around.test, formulas, threads, around.check, ordered)
    return found, Exchanges(around.members, formulas, threads)


def _grown(assumed: Assumed, *found: dict[str, set[int]]) -> dict[str, tuple[int, ...]]:
    """The borders of the objects that are to be divided otherwise than supposed so far."""
    grown: dict[str, tuple[int, ...]] = {}
    for key in dict.fromkeys(key for borders in found for key in borders):
        known = assumed.borders.get(key, ())
        points = set(known).union(*(borders.get(key, ()) for borders in found))
        if len(points) > len(known):
            grown[key] = tuple(sorted(points))
    return grown


def _torn(machine: Machine, possible: Possible, seen: set[Place] | None) -> dict[str, set[int]]:
    """Where reads of each object may be torn so that it makes a difference; not inside of a field of a tensor map."""
    torn = possible.torn()
    for key, base in {(p.physical, p.offset) for e in machine.events if _reads_map(e) for p in e.places}:
        if key in torn:
            torn[key] = field_borders(torn[key], base)
    return {k: inside for k, points in torn.items() if (inside := _inside_reads(machine, k, points, seen))}


def _values_matter(threads: list[ThreadEvents]) -> bool:
    """Whether some step returns a value that depends on what other threads do."""
    return any(
        step.result is not None or (step.tokens is not None and step.counted)
        for thread in threads
        for step in thread.barriers
    )


def _tokens(assumed: Assumed, found: list[Scenario]) -> dict[EventId, tuple[int, ...]]:
    """The states that mbarrier arrivals may return: those supposed so far and those of the scenarios."""
    tokens = {id_: set(values) for id_, values in assumed.tokens.items()}
    for scenario in found:
        for id_, value in scenario.tokens:
            tokens.setdefault(id_, set()).add(value)
    return {id_: tuple(sorted(values)) for id_, values in tokens.items()}


def _results(assumed: Assumed, met: list[tuple[list[Scenario], Exchanges]]) -> dict[EventId, dict[int, int]]:
    """What steps may get from other threads, with the support of it: as supposed so far and in the scenarios."""
    results = {id_: dict(values) for id_, values in assumed.results.items()}
    for found, exchanges in met:
        for scenario in found:
            for item in exchanges.returned(scenario):
                known = results.setdefault(item.event.id, {})
                for value in item.domain:
                    through = item.domain.support.get(value, 0)
                    known[value] = known.get(value, through) & through
    return results


def _borders(machine: Machine) -> dict[str, set[int]]:
    """Where the accesses begin and end, for every object in which two may overlap partially."""
    ranges: dict[str, set[tuple[int, int]]] = {}
    for event in machine.events:
        for place in event.places:
            ranges.setdefault(place.physical, set()).add((place.offset, place.offset + place.size))
    return {
        key: {point for one in found for point in one}
        for key, found in ranges.items()
        if len(found) > 1 and any(b[0] < a[1] for a, b in pairwise(sorted(found)))
    }


def _inside_reads(machine: Machine, key: str, points: set[int], seen: set[Place] | None) -> set[int]:
    """Those of ``points`` that lie inside a read of ``key``: nothing else is torn. Of a matrix that is loaded, nothing
    is seen, nor of bytes outside ``seen`` (None: all are in it): those are not told apart."""
    ranges = {
        (p.offset, p.offset + p.size)
        for e in machine.events
        if e.kind == "R" and not isinstance(e.op, WmmaLoad)
        for p in e.places
        if p.physical == key
    }
    if seen is not None:
        points = {point for point in points if (key, point) in seen or (key, point - 1) in seen}
    return {point for point in points if any(first < point < end for first, end in ranges)}


def _reads_map(event: Event) -> bool:
    """Whether ``event`` reads a tensor map, whose fields are not torn."""
    return event.kind == "R" and (
        isinstance(event.op, TensormapReplace | TensormapCopyFence) or event.id.operand == TENSORMAP
    )


def _guarded(op: Op) -> bool:
    """Whether what is executed may depend on values: then a write may owe its existence to a read of itself."""
    return (
        op.guard is not None
        or (isinstance(op, Branch) and op.condition is not None)
        or (isinstance(op, Atomic) and op.op == "cas")
    )
