"""The models once more, as plain set comprehensions over events and pairs: the third opinion on every outcome.

Written to be read line by line beside the definition of the models (the names are the same) and to be slow and
obvious. It shares nothing with the model language, the relation algebra, the event layers and the engines: it imports
the program and its instructions.

``outcomes(test, "ptx-8.5")`` is the set of all final states, as tuples in the order of ``everything(test)``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping

from ptxmm.engines.result import Observed
from ptxmm.program.condition import MemoryTerm, RegisterTerm, State, evaluate
from ptxmm.program.test import Test
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import Barrier, BarrierReduction, WarpExchange
from tests import reference_barriers
from tests.reference_axioms import Last, Reading, final_writes
from tests.reference_dependencies import TooSlow
from tests.reference_events import Cell, Event, Path, Place
from tests.reference_exchanges import resolved
from tests.reference_expressions import Expr, Impossible, Leaf, const, is_const
from tests.reference_expressions import evaluate as value_of
from tests.reference_frame import Byte, Frame, initial_bytes, instances
from tests.reference_places import computes_with_states
from tests.reference_readings import Readings, read
from tests.reference_relations import Pairs
from tests.reference_simulation import Meeting, Simulation, Unknown
from tests.reference_threads import Walker
from tests.reference_values import possible_values
from tests.reference_values import values as values_of

Final = tuple[int, ...]
ALL_DEPENDENCIES = frozenset(("addr", "data", "ctrl", "rmw"))


# ---- all executions --------------------------------------------------------------------------------------------------


class Undecided(Exception):
    """The value of a read is asked for whose bytes have not been chosen yet."""


class Values(dict[Leaf, int]):
    """The values that reads and arrivals return, computed when asked for.

    ``Undecided`` if one is not chosen yet, ``Unknown`` for an arrival that has not happened.
    """

    def __init__(
        self, x: Frame, stands: dict[tuple[int, Byte], Byte], reading: Reading, tokens: dict[Leaf, int]
    ) -> None:
        super().__init__(tokens)
        self.x, self.stands, self.reading = x, stands, reading

    def __missing__(self, leaf: Leaf) -> int:
        r = self.x.number[leaf]
        cell = self.x.events[r].cell
        if cell is None:
            raise Unknown
        value = 0
        for i in range(cell[2]):
            byte = (cell[0], cell[1] + i)
            source = self.reading.get((r, self.stands[r, byte]))
            if source is None:
                raise Undecided
            value |= self.byte(source, byte) << 8 * i
        self[leaf] = value
        return value

    def byte(self, w: int, byte: Byte) -> int:
        """What the write ``w`` writes to one byte."""
        event = self.x.events[w]
        assert event.value is not None and event.cell is not None
        return value_of(event.value, self) >> 8 * (byte[1] - event.cell[1]) & 255


def standing(x: Frame, cells: Mapping[Cell, frozenset[int] | None], tear: bool) -> dict[tuple[int, Byte], Byte]:
    """For each byte of each read the byte that is read from the same write.

    Bytes of a cell in which no two values of the cell can differ need no choice of their own: other sources for them
    only add edges, and every axiom is antitone in those. Without tearing one choice stands for all bytes of a cell.
    """
    result = {}
    for r in sorted(x.R):
        cell = x.events[r].cell
        assert cell is not None
        for (key, at, size), values in cells.items():
            if key == cell[0] and cell[1] <= at < cell[1] + cell[2]:
                differ = [i for i in range(size) if values is None or len({v >> 8 * i & 255 for v in values}) > 1]
                first = differ[0] if differ else 0
                for i in range(size):
                    result[r, (key, at + i)] = (key, at + (i if tear and i in differ else first))
    return result


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


def states_of(x: Frame, values: Values, lasts: tuple[Last, ...], met: Meeting, tear: bool) -> Iterator[State]:
    """The final states, given for each part of memory the writes that may be last in its cells: each byte is that of
    any of them, as a read after the end would find it; without tearing they come from one where no sizes mix."""
    registers = {(t, r): value_of(e, values) for t, path in enumerate(x.paths) for r, e in path.registers.items()}
    choices: list[list[dict[Byte, int]]] = []
    for here, last in zip(x.here, lasts, strict=True):
        candidates = dict(zip(here.cells, last, strict=True))
        for cells, bytewise in here.units:
            torn = tear and x.events[min(here.writes - x.IW or here.writes)].cell[0] not in x.made_up  # type: ignore[index]
            if bytewise or torn:
                for cell in cells:
                    for byte in sorted(x.bytes_of(cell)):
                        choices.append([{byte: v} for v in {values.byte(w, byte) for w in candidates[cell]}])
            else:
                writes = frozenset().union(*(candidates[c] for c in cells))
                choices.append([{b: values.byte(w, b) for c in cells for b in x.bytes_of(c)} for w in writes])
    completed = dict(met.completed)
    for choice in itertools.product(*choices):
        written = {byte: v for part in choice for byte, v in part.items()}
        yield State(registers, dict(memory_of(x, written, completed)))


def memory_of(x: Frame, written: dict[Byte, int], completed: dict[Place, int]) -> Iterator[tuple[tuple[str, int], int]]:
    """Every element of every object; that of an mbarrier is the number of phases that it has completed."""
    for item in x.test.objects.values():
        image = bytearray(initial_bytes(x.test, item.physical, 0, x.test.objects[item.physical].size))
        for (key, at), v in written.items():
            if key == item.physical:
                image[at] = v
        for i in range(item.count):
            begin = i * item.type.bytes
            value = int.from_bytes(image[begin : begin + item.type.bytes], "little")
            yield (item.key, i), completed.get((item.physical, begin), 0) if item.key in x.mbarriers else value


def restrict(state: State, observed: Observed) -> Final:
    """The observed part of ``state`` as a tuple."""
    return tuple(
        [state.registers[t.thread, t.register] for t in observed.registers]
        + [state.memory[t.key, t.index] for t in observed.memory]
    )


def meetings(x: Frame, values: Values) -> Iterator[Meeting]:
    """Every way in which the barriers may go, given what reads return."""
    places = instances(x.test)
    steps = [list(path.steps) for path in x.paths]
    if not any(steps):
        yield Meeting()
        return
    if x.test.dialect:
        known = [
            [
                reference_barriers.Step(
                    t,
                    s.op,
                    value_of(s.args[0] or ("const", 0), values),
                    None if s.args[1] is None else value_of(s.args[1], values),
                    x.number[t, s.event or 0],
                    None if s.wait is None else x.number[t, s.wait],
                )
                for s in thread
                if isinstance(s.op, Barrier)
            ]
            for t, thread in enumerate(steps)
        ]
        for pairs in reference_barriers.phasings(x.test, known, [p["cta"] for p in places]):
            yield Meeting(barphase=pairs)
        return

    def value(expr: Expr, tokens: dict[Leaf, int]) -> int:
        return value_of(expr, Values(x, values.stands, values.reading, tokens))

    exits = {e.thread: n for n, e in enumerate(x.events) if e.kind == "EX" and e.thread is not None}
    ordered = computes_with_states(x.test.threads) or x.readings["mbarrier"] == "rmw"
    yield from Simulation(x.test, steps, places, lambda t, k: x.number[t, k], value, exits, ordered).run()


Result = tuple[Values, set[tuple[Last, ...]], frozenset[str], Meeting]

EXCHANGES = (BarrierReduction, WarpExchange)


def frames(
    test: Test, model: str, readings: Readings, paths: tuple[Path, ...], dependencies: frozenset[str]
) -> Iterator[tuple[Frame, Meeting | None]]:
    """The frames of one combination of paths: one for each way in which threads may give each other values, with the
    run of the barriers in which they do; a single one where they do not.

    ``NotImplementedError`` if who meets depends on what is read.
    """
    if not any(isinstance(step.op, EXCHANGES) for path in paths for step in path.steps):
        yield Frame(test, model, readings, paths, dependencies), None
        return
    nothing: dict[Leaf, Expr] = {
        (t, k, i): const(0) for t, path in enumerate(paths) for k in range(len(path.steps)) for i in (0, 1)
    }
    x = Frame(test, model, readings, tuple(resolved(path, nothing) for path in paths), dependencies)
    try:
        met = list(meetings(x, Values(x, {}, {}, {})))
    except (Undecided, KeyError):
        raise NotImplementedError("who meets in an exchange depends on reads") from None
    for run in met:
        given = dict(run.given)
        known = tuple(resolved(path, given) for path in paths)
        if all(bool(e[1]) == truth for path in known for e, truth in path.constraints if is_const(e)):
            yield Frame(test, model, readings, known, dependencies), run


def consistent(x: Frame, tear: bool, deadline: float, met: Meeting | None = None) -> Iterator[Result]:
    """Read values, last writes and flags of every consistent execution of one combination of paths; ``met``: with this
    run of the barriers."""
    accesses = {leaf: x.events[n] for leaf, n in x.number.items()}
    initial = {cell: v for iw, v in x.initial.items() if (cell := x.events[iw].cell)}
    leaf_values, cells = possible_values(accesses, initial, tear)
    constraints = [c for path in x.paths for c in path.constraints]
    for expr, truth in constraints:
        may = values_of(expr, leaf_values)
        if may is not None and truth not in {bool(v) for v in may}:
            return
    stands = standing(x, cells, tear)
    slots = sorted({(r, byte) for (r, _), byte in stands.items()})
    may_read = {(r, byte): [w for w in sorted(x.W) if byte in x.bytes_of(w)] for r, byte in slots}

    def possible(values: Values) -> bool:
        """Whether the path is taken, as far as that is decided."""
        for expr, truth in constraints:
            try:
                if bool(value_of(expr, values)) != truth:
                    return False
            except (Undecided, Unknown):
                pass
            except Impossible:
                return False
        return True

    def search(reading: Reading, met: Meeting | None) -> Iterator[Result]:
        if time.monotonic() > deadline:
            raise TooSlow
        if final_writes(x, reading, set(), met or Meeting(), decide=False) is None:
            return
        values = Values(x, stands, reading, dict(met.tokens) if met else {})
        if not possible(values):
            return
        if len(reading) < len(slots):
            slot = slots[len(reading)]
            for w in may_read[slot]:
                yield from search({**reading, slot: w}, met)
            return
        for known in [met] if met else meetings(x, values):
            full = Values(x, stands, reading, dict(known.tokens))
            if not possible(full):
                continue
            for fsc in fence_orders(x):
                found = final_writes(x, reading, fsc, known, decide=True)
                if found is not None:
                    yield full, *found, known

    try:  # most barriers do not depend on what is read
        early: list[Meeting | None] = [met] if met else list(meetings(x, Values(x, stands, {}, {})))
    except Undecided:
        early = [None]
    for met in early:
        yield from search({}, met)


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


def executions(
    test: Test,
    model: str,
    *,
    unroll: int = 3,
    dependencies: frozenset[str] = ALL_DEPENDENCIES,
    seconds: float = 60,
    spins: int = 1,
) -> Iterator[tuple[State, frozenset[str]]]:
    """Final states with the flags of their execution; the rest is as for ``states``. ``spins``: how often the branch of
    a spin loop is taken without a write, which changes no final state, but a race may be in such a round only."""
    deadline = time.monotonic() + seconds
    name, readings = read(model)
    tear = readings["tear"] == "on"
    dependencies = dependencies if readings["rmw-dep"] == "on" else dependencies - {"rmw"}
    paths = [list(Walker(test, t, unroll, readings, spins).paths()) for t in range(len(test.threads))]
    for combination in itertools.product(*paths):
        for x, run in frames(test, name, readings, combination, dependencies):
            for values, lasts, found, met in consistent(x, tear, deadline, run):
                for last in lasts:
                    for state in states_of(x, values, last, met, tear):
                        if test.filter is None or evaluate(test.filter, state):
                            yield state, found


def unfinished(test: Test, model: str, *, unroll: int = 3, seconds: float = 60) -> tuple[set[str], bool] | None:
    """What executions show that do not end: their flags, and whether a thread comes to an instruction that has no
    meaning (an access of memory that it may not access, of nothing at all, or of what another copy of its group
    writes). None if that is not known: barriers and grids decide how far threads come, and a filter what counts."""
    deadline = time.monotonic() + seconds
    name, readings = read(model)
    walkers = [Walker(test, t, unroll, readings, 1) for t in range(len(test.threads))]
    runs = [list(walker.runs()) for walker in walkers]
    ended = [list(filter(None, map(walker.ended, found))) for walker, found in zip(walkers, runs, strict=True)]
    # what came so far, wherever something was made that others may see
    begun = [[run.path() for run in found if not run.events or run.events[-1].kind != "R"] for found in runs]
    cut = [[run.path() for run in walker.cut] for walker in walkers]
    strays = [[run.path() for run in walker.strays] for walker in walkers]
    grids = {t.placement.grid for t in test.threads if not t.placement.host}
    meet = any(path.steps for paths in (*begun, *ended) for path in paths)
    meet = meet or any(isinstance(op, EXCHANGES) for thread in test.threads for op in thread.body)
    if test.filter is not None or len(grids) > 1 or meet:
        return None

    def found(choices: list[list[Path]]) -> Iterator[frozenset[str]]:
        for combination in itertools.product(*choices):
            x = Frame(test, name, readings, combination, ALL_DEPENDENCIES)
            for _, _, flags, _ in consistent(x, readings["tear"] == "on", deadline):
                yield flags

    flags: set[str] = set()
    undefined = False
    for t in range(len(walkers)):  # the first thread that goes round a loop for ever, or once too often
        flags.update(*found([*ended[:t], cut[t], *map(list.__add__, ended[t + 1 :], cut[t + 1 :])]))
        undefined = undefined or next(found([*begun[:t], strays[t], *begun[t + 1 :]]), None) is not None
    return flags, undefined


def beginnings(
    test: Test, model: str, *, unroll: int = 3, seconds: float = 60
) -> Iterator[tuple[Frame, frozenset[str]]]:
    """The events of every consistent beginning of an execution of ``test``, which has no barriers, with its flags: each
    thread stops before any of its instructions. It may never end, and need not be the beginning of one that does."""
    deadline = time.monotonic() + seconds
    name, readings = read(model)
    threads = []
    for t in range(len(test.threads)):
        kept: dict[tuple[Event, ...], list[Path]] = {}
        for begun in Walker(test, t, unroll, readings, 1).runs():
            same = kept.setdefault(begun.events, [])  # only more is asked of it where it goes on without an event
            if not any(begun.constraints[: len(path.constraints)] == path.constraints for path in same):
                same.append(begun.path())
        threads.append([path for same in kept.values() for path in same])
    for combination in itertools.product(*threads):
        for x, run in frames(test, name, readings, combination, ALL_DEPENDENCIES):
            for _, _, found, _ in consistent(x, readings["tear"] == "on", deadline, run):
                yield x, found


def states(
    test: Test,
    model: str,
    *,
    unroll: int = 3,
    dependencies: frozenset[str] = ALL_DEPENDENCIES,
    seconds: float = 60,
) -> Iterator[State]:
    """Every final state, some more than once. ``dependencies``: what ``dep`` of No-Thin-Air is made of; empty: there is
    no such axiom. ``TooSlow`` after ``seconds``."""
    found = executions(test, model, unroll=unroll, dependencies=dependencies, seconds=seconds, spins=0)
    for state, _ in found:
        yield state


def outcomes(
    test: Test,
    model: str,
    observed: Observed | None = None,
    *,
    unroll: int = 3,
    dependencies: frozenset[str] = ALL_DEPENDENCIES,
    seconds: float = 60,
) -> frozenset[Final]:
    """The set of final states under ``model`` (``ptx-6.0``, ``ptx-7.5``, ``ptx-8.5`` or ``sc``; readings that are not
    the default in brackets).

    Each is the tuple of the observed values, registers first; ``observed`` is ``everything(test)`` by default.
    Executions that take a backward branch more than ``unroll`` times are left out, as are those that wait for ever at
    a barrier or access what no object has.
    """
    observed = observed or everything(test)
    found = states(test, model, unroll=unroll, dependencies=dependencies, seconds=seconds)
    return frozenset(restrict(s, observed) for s in found)


def flagged(test: Test, model: str, *, unroll: int = 3, seconds: float = 60) -> tuple[frozenset[Final], frozenset[str]]:
    """The final states, and the names of the flags that hold in some execution that ends."""
    observed = everything(test)
    states: set[Final] = set()
    flags: set[str] = set()
    for state, found in executions(test, model, unroll=unroll, seconds=seconds):
        states.add(restrict(state, observed))
        flags |= found
    return frozenset(states), frozenset(flags)
