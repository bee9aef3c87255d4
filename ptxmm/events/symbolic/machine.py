"""What the execution of all threads has in common, and the state of one path."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations, pairwise

from msgspec import Struct, field

from ptxmm.events.symbolic.barriers.state import Members, members
from ptxmm.events.symbolic.event import Event, Operation, Place
from ptxmm.events.symbolic.values.domain import Bits, Domain, Reads, Value, only
from ptxmm.events.symbolic.values.expressions import Expressions
from ptxmm.events.symbolic.values.lookups import Lookup
from ptxmm.program.identity import EventId
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.control import exits_matter
from ptxmm.program.shared.convergence import sites
from ptxmm.program.shared.mbarriers import opaque
from ptxmm.program.shared.unseen import NOTHING, Unseen
from ptxmm.program.test import Test
from ptxmm.ptx.ops import GridControl, Wgmma
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas


class Control(Struct, frozen=True):
    """Open branches with one join, where the registers ``assigned`` come to depend on ``reads``, by branch."""

    assigned: frozenset[str]
    reads: Mapping[int, Reads]


Queue = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]
"""The committed groups of asynchronous operations, oldest first, and the operations that are in no group yet."""


class Assumed(Struct, frozen=True):
    """What an execution of the program supposes, until later executions know better.

    ``borders``: for an object whose accesses are divided, the offsets where. ``waiting``: the steps at which a thread
    may wait for ever. ``tokens``: for each mbarrier arrival the states that it may return. ``results``: for each step
    that gets a value from other threads those that it may get, with their support.
    """

    borders: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    waiting: frozenset[EventId] = frozenset()
    tokens: Mapping[EventId, tuple[int, ...]] = field(default_factory=dict)
    results: Mapping[EventId, Mapping[int, int]] = field(default_factory=dict)


class Reading(Struct, frozen=True):
    """How a program is read: ``unroll`` bounds loops, ``tear`` splits accesses into bytes where that may be seen (A11),
    ``simplify`` drops dependencies (A21), ``values`` those on values that make no difference too (A55), ``split128``
    makes two accesses of 16 bytes (A13), ``whole`` one of a vector (A57), by ``cas_writes`` a compare-and-swap that
    fails writes the old value (A14), by ``direct`` coherence order is not transitive (A5), ``ordered`` tells executions
    apart by the order of the operations on an mbarrier (A31), ``next_grid``: a grid waits for the one before it only
    (A50), ``copies``: a copy of a register is no access of those of products (A63), ``told``: a load
    does not miss what a phase of a barrier orders before it (8.10.6)."""

    unroll: int
    tear: bool
    simplify: bool
    split128: bool = False
    cas_writes: bool = False
    direct: bool = False
    ordered: bool = False
    values: bool = False
    whole: bool = False
    next_grid: bool = True
    copies: bool = False
    told: bool = False


class Known(Struct, frozen=True):
    """What is known of all executions before any value is.

    ``numbered``: for each group of interchangeable threads the writes, one of each thread, that coherence orders as
    they stand there. ``never``: reads, each with a write that it does not read from (None: the initial one).
    """

    numbered: tuple[tuple[EventId, ...], ...] = ()
    never: frozenset[tuple[EventId, EventId | None]] = frozenset()

    def ordered(self) -> Iterator[tuple[EventId, EventId]]:
        """The pairs of writes that coherence orders so."""
        return chain.from_iterable(combinations(writes, 2) for writes in self.numbered)


_NOTHING = Known()

Use = tuple[str, object]
"""A register and who has used it: ``thread``, ``fragment`` or the kind of product that it was an accumulator of."""


class Products(Struct, frozen=True):
    """A moment of a path with ``wgmma``: when there was a ``wgmma.fence`` (``fenced``), when a register has been used
    since the last one (``used``), and when a product, by its number, has not been waited for (``running``)."""

    fenced: Formula = FALSE
    used: Mapping[Use, Formula] = field(default_factory=dict)
    running: Mapping[int, Formula] = field(default_factory=dict)


class State(Struct):
    """One path: when it is taken, what it knows. ``queues``: for each kind its groups of asynchronous operations.
    ``left``: the reads that decided that the loops so far were left; ``missed``: those that decided whether it came to
    the barriers so far. ``products``: in threads with ``wgmma``."""

    guard: Formula
    registers: dict[str, Value]
    controls: dict[int, Control] = field(default_factory=dict)
    wrote: dict[int, Formula] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    left: Reads = field(default_factory=dict)
    missed: Reads = field(default_factory=dict)
    products: Products | None = None


class Setting(Struct, frozen=True):
    """What all executions of a test have in common.

    ``shown``: the registers, by thread, whose final values are asked for. ``check`` may raise ``Timeout``. ``chunks``
    divides copies (``shared.chunks``). ``api``: whether starts and ends of threads matter; ``exits``: whether their
    ends do. ``aligned``: as in ``convergence.sites``. ``mbarriers``: the objects that are such. ``known``: what need
    not be found out. ``unseen``: what has no values. ``expressions``: those of all executions.
    """

    test: Test
    reading: Reading
    shown: Collection[tuple[int, str]]
    check: Callable[[], None]
    chunks: Callable[..., tuple[tuple[int, int], ...]]
    api: bool
    exits: bool
    members: Members
    aligned: Sequence[Mapping[int, str]]
    mbarriers: frozenset[str]
    known: Known
    expressions: Expressions
    unseen: Unseen = NOTHING

    @property
    def wide(self) -> bool:
        """Whether too many values are given by their bits."""
        return self.unseen is not NOTHING


def setting(
    test: Test,
    reading: Reading,
    shown: Collection[tuple[int, str]],
    check: Callable[[], None],
    known: Known = _NOTHING,
) -> Setting:
    """What all executions of ``test`` have in common."""
    hidden = frozenset(test.objects[key].physical for key in opaque(test.threads, test.objects))
    chunks = _chunks(test, reading)
    grids, exits = _several_grids(test), exits_matter(test)
    made = Expressions(reading.simplify, reading.values)
    return Setting(test, reading, shown, check, chunks, grids, exits, members(test), sites(test), hidden, known, made)


class Machine:
    """One execution of all threads along all paths; events are numbered across threads.

    ``possible`` gives the values that a read may find in a cell (physical key, offset, size) with their support; None
    for any. ``definitions`` are formulas that hold anyway, about variables that stand for others, and ``lookups`` what
    other variables are to be. ``chosen``: predicates that may be either, when they are made and when
    they are true; an instruction has one on each of its paths.
    ``free``: guards that depend on reads may go either way, to see what would be written if they did; ``either``: the
    steps, by number, whose results may be either predicate then.
    """

    def __init__(
        self,
        setting: Setting,
        possible: Callable[[tuple[str, int, int], EventId], dict[int, int] | None],
        free: bool,
        assumed: Assumed,
    ) -> None:
        self.setting = setting
        self.test = setting.test
        self.reading = setting.reading
        self.possible = possible
        self.free = free
        self.assumed = assumed
        self.formulas = Formulas()
        self.expressions = setting.expressions
        self.events: list[Event] = []
        self.operations: list[Operation] = []
        self.products: dict[int, Wgmma] = {}
        self.read_cells: dict[int, dict[tuple[str, int, int], Domain]] = {}
        self.misuses: list[tuple[int, Formula, str]] = []
        self.passes: dict[tuple[EventId, int], Formula] = {}
        self.freed = False
        self.either: set[int] = set()
        self.chosen: list[tuple[EventId, Formula, Formula]] = []
        self.definitions: list[Formula] = []
        self.lookups: list[Lookup] = []
        self._choices = 0
        self._steps = 0
        self.zero = Value(only(0), self.expressions.constant(0), {})

    def cells(self, place: Place) -> list[tuple[str, int, int]]:
        """The cells of the byte range of ``place``."""
        key, start, end = place.physical, place.offset, place.offset + place.size
        borders = self.assumed.borders.get(key)
        if borders is None:
            return [(key, start, place.size)]
        points = [start, *(b for b in borders if start < b < end), end]
        return [(key, a, b - a) for a, b in pairwise(points)]

    def new_step(self) -> int:
        """A fresh number for a step of the simulation of barriers."""
        self._steps += 1
        return self._steps

    def new_choice(self) -> int:
        """A fresh number for a set of mutually exclusive variables."""
        self._choices += 1
        return self._choices

    def one_of(self, support: Mapping[int, int]) -> Domain:
        """A domain of these values with their support, of which it is open which one is taken."""
        choice, alone = self.new_choice(), len(support) == 1
        return Domain({value: TRUE if alone else self.formulas.variable(choice) for value in support}, support)

    def any_of(self, width: int) -> Domain:
        """Any value of ``width`` bits."""
        return Bits(self.formulas, [self.formulas.variable() for _ in range(width)])

    def union(self, a: Reads, b: Reads) -> Reads:
        """The reads of ``a`` and those of ``b``."""
        if not b or a is b:
            return a
        if not a:
            return b
        result = dict(a)
        for read, when in b.items():
            result[read] = self.formulas.either(result[read], when) if read in result else when
        return result

    def all_reads(self, parts: Iterable[Reads]) -> Reads:
        """The reads of all ``parts``."""
        return reduce(self.union, parts, {})

    def either_way(self, condition: Formula, reads: Reads) -> Formula:
        """``condition``, or where it depends on ``reads`` and guards are free, a new variable.

        What arrivals and waits at mbarriers return is free anyway, and so is what the steps ``either`` return, which is
        the same for all threads that meet there.
        """
        if not self.free or not any(
            -read not in self.either if read < 0 else self.events[read].kind == "R" for read in reads
        ):
            return condition
        self.freed = True
        return self.formulas.variable()


def _chunks(test: Test, reading: Reading) -> Callable[..., tuple[tuple[int, int], ...]]:
    """How the test divides copies and vectors, worked out when it is first asked for."""
    made: list[Chunks] = []

    def of(key: str, offset: int, size: int, unit: int = 0) -> tuple[tuple[int, int], ...]:
        if not made:
            made.append(Chunks(test, reading.split128, reading.whole))
        return made[0].of(key, offset, size, unit)

    return of


def _several_grids(test: Test) -> bool:
    """Whether starts and ends of threads matter: some GPU runs several grids, or a thread waits for those before it."""
    places = [t.placement for t in test.threads if not t.placement.host]
    return len({(p.gpu, p.grid) for p in places}) > len({p.gpu for p in places}) or any(
        isinstance(op, GridControl) and op.kind == "wait" for t in test.threads for op in t.body
    )
