"""A moment in the simulation of barriers, and who shares which barrier."""

from __future__ import annotations

from msgspec import Struct

from ptxmm.events.symbolic.barriers.facts import Fact
from ptxmm.events.symbolic.barriers.mbarrier import Counts
from ptxmm.events.symbolic.barriers.paths import Node, Object, Step
from ptxmm.events.symbolic.event import Mbarrier
from ptxmm.program.identity import EventId
from ptxmm.program.shared.convergence import warpgroup_mates
from ptxmm.program.test import Test

Key = tuple[object, ...]
"""A CTA, a warp or a cluster; or a barrier, as ``paths.Object``."""


def cta_key(test: Test, thread: int) -> Key:
    """The CTA of a thread: its whole path, or the thread itself where none is named."""
    place = test.threads[thread].placement
    if place.host or place.cta is None:
        return ("own", thread)
    return place.path


class Members(Struct, frozen=True):
    """The CTA, the warp and the cluster of each thread; ``warps``: the threads of each warp, its lanes in order;
    ``warpgroup_mates``: those of the other warps of its warpgroup."""

    ctas: tuple[Key, ...]
    warp_of: tuple[Key, ...]
    clusters: tuple[Key, ...]
    hosts: tuple[bool, ...]
    warps: dict[Key, tuple[int, ...]]
    test: Test
    warpgroup_mates: tuple[tuple[int, ...], ...] = ()

    def object_of(self, thread: int, step: Step) -> Object:
        """What ``step`` of ``thread`` acts on. A wait leaves its mbarrier as it is, so it has an object of its own."""
        if step.kind.startswith("mb."):
            return ("mb wait" if step.kind == "mb.wait" else "mb", step.place)
        if step.kind.startswith("cluster."):
            return ("cluster", self.clusters[thread])
        if step.kind.startswith("warp."):
            return ("warp", self.warp_of[thread], step.mask, step.operation)
        return ("bar", self.ctas[thread], step.barrier)

    def lanes(self, thread: int) -> tuple[int, ...]:
        """The threads of the warp of ``thread``, in the order of its lanes."""
        return self.warps[self.warp_of[thread]]

    def named(self, thread: int) -> bool:
        """Whether the warp of ``thread`` has a name; a thread without one stands for a whole warp."""
        return "warp" in self.warp_of[thread]


def members(test: Test) -> Members:
    """Who shares which CTA, warp and cluster."""
    ctas = [cta_key(test, t) for t in range(len(test.threads))]
    warps: list[Key] = []
    clusters: list[Key] = []
    for index, thread in enumerate(test.threads):
        place = thread.placement
        warps.append((*ctas[index], "warp", place.warp) if place.warp is not None else (*ctas[index], "thread", index))
        named = not place.host and place.cluster is not None
        clusters.append(("cluster", place.gpu, place.grid, place.cluster) if named else ctas[index])
    lanes: dict[Key, tuple[int, ...]] = {}
    for index, warp in enumerate(warps):
        lanes[warp] = (*lanes.get(warp, ()), index)
    hosts = tuple(t.placement.host for t in test.threads)
    return Members(tuple(ctas), tuple(warps), tuple(clusters), hosts, lanes, test, warpgroup_mates(test))


class Barrier(Struct, frozen=True):
    """The phase that a barrier of a CTA collects arrivals for: the warps that arrived, its count, its reduction."""

    phase: int = 0
    arrived: frozenset[Key] = frozenset()
    count: int | None = None
    operation: str = ""


Turn = tuple[int, tuple[object, ...], bool]
"""An instruction that the threads of a warp execute together: where it is, what tells it from others, and whether those
of the warpgroup do."""


class State(Struct, frozen=True):
    """A moment of a run.

    ``nodes``: the next step of each thread, or the one where it waits, at the barrier ``waits``. ``ctas``: the
    barriers of CTAs; ``pending``: (thread, arrival) whose warp has not arrived as a whole. ``warps``: how many phases
    warp barriers completed. ``rounds``: how often each thread arrived at and waited for its cluster. ``places``: the
    mbarriers; ``flying``: asynchronous arrivals to come; ``tokens``: those that a later wait tests.
    ``together``: the instructions that each thread has come to of those that the threads of its warp execute
    together; empty where there are none.
    """

    nodes: tuple[Node, ...]
    waits: tuple[Object | None, ...]
    ctas: frozenset[tuple[Object, Barrier]] = frozenset()
    pending: frozenset[tuple[int, Step]] = frozenset()
    warps: frozenset[tuple[Object, int]] = frozenset()
    rounds: tuple[int, ...] = ()
    places: tuple[Counts, ...] = ()
    flying: frozenset[Step] = frozenset()
    tokens: frozenset[tuple[EventId, int]] = frozenset()
    together: tuple[tuple[Turn, ...], ...] = ()

    def exited(self, thread: int) -> bool:
        """Whether ``thread`` has reached its end."""
        return self.nodes[thread].exited

    def step(self, thread: int) -> Step:
        """The next step of ``thread``, or the one where it waits."""
        step = self.nodes[thread].step
        assert step is not None
        return step


class Scenario(Struct, frozen=True):
    """One way the barriers of a program turn out.

    ``steps``: the steps that happen, asynchronous ones from their issue on, with their operands and the outcomes
    of waits. ``phases``: the phase of each; mbarriers' have the number of initialisations in the bits from 20 on, a
    wait has how many phases were complete. Missing or None: it takes part in none. ``tokens``: what each arrival that
    writes a register returns. ``completed``: how many phases each mbarrier completed since it was initialised last.
    ``waiting``: where threads wait for ever. ``ends``: for each thread whether its path reaches its end, or the bound,
    or (None) neither; True if it waits. ``misuse``: why the program has no meaning, or None; then ``waiting`` is
    where threads were (never an asynchronous step), and only the steps before it have phases. ``next``: pairs of an
    arrival at an mbarrier and an arrival or a successful wait, the first such one after it or no arrival between them,
    and ``order``: all operations on mbarriers in an order in which they ran so; both only if that is asked for.
    ``threads``: those that it is about. An execution has one scenario for each group of threads that share barriers;
    ``group`` is its number.
    """

    steps: frozenset[Step]
    phases: tuple[tuple[EventId, int | None], ...]
    waiting: frozenset[EventId]
    ends: tuple[bool | None, ...]
    misuse: str | None = None
    tokens: tuple[tuple[EventId, int], ...] = ()
    completed: tuple[tuple[Mbarrier, int], ...] = ()
    next: tuple[tuple[EventId, EventId], ...] = ()
    order: tuple[EventId, ...] = ()
    threads: frozenset[int] = frozenset()
    group: int = 0


class Log(Struct):
    """What happened in one step, as the bits that ``table`` gives to facts.

    ``loose`` are facts that may be replaced by equally good ones of other runs; so is ``order``, the operations on
    mbarriers in the order they ran.
    """

    table: dict[Fact, int]
    facts: int = 0
    loose: int = 0
    order: tuple[EventId, ...] = ()

    def add(self, *facts: Fact) -> None:
        """Note facts."""
        for fact in facts:
            self.facts |= 1 << self.table.setdefault(fact, len(self.table))

    def add_loose(self, fact: Fact) -> None:
        """Note a fact that may be replaced."""
        self.loose |= 1 << self.table.setdefault(fact, len(self.table))

    def copy(self) -> Log:
        """A log that goes on from here."""
        return Log(self.table, self.facts, self.loose, self.order)
