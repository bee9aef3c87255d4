"""What the simulation of barriers knows beforehand: which there are, who uses them, and which depend on others.

Barriers fall into *classes*. Two steps on barriers of different classes commute; the steps of a *free* class commute
with all others, and the phase that each counts in is known: all threads wait for all, so that no order is special.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate, chain, compress, count
from operator import attrgetter, or_

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.relations.scopes import Place
from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId
from ptxmm.program.shared.convergence import warpgroup_mates, wide
from ptxmm.program.test import Test
from ptxmm.ptx.ops import MbarrierArrive

_Key = tuple[str, tuple[object, ...], int]
"""A barrier: ``bar`` with CTA and id, ``warp`` with warp and mask (and the operation of an exchange), ``cluster``, or
``mb`` with object and offset."""

_BARRIERS = 16
_WARP = 32

ARRIVALS = ("mb.arrive", "mb.drop")

CHANGES = (*ARRIVALS, "mb.expect", "mb.complete")
"""The steps whose events are in ``MBA``."""


class Slot(Struct, frozen=True):
    """A step of a thread: its number among all, where it is, what it is.

    ``barrier``: the number of the barrier; ``group``: the class of that, as a bit. ``phase``: where it is known
    beforehand (warp and cluster barriers). ``misuse``: why it is undefined whatever the others do. ``token``: the
    number of the arrival whose phase a wait by state waits for, or -1. ``recorded``: whether the result has its phase.
    ``told``: whether states that differ in its phase are told apart; ``observed``: in the token it returns.
    ``chained``: it is an arrival, or a wait that returns true, at an mbarrier; their order may matter.
    """

    number: int
    thread: int
    index: int
    step: Step
    barrier: int
    group: int
    phase: int = -1
    misuse: str | None = None
    token: int = -1
    recorded: bool = True
    told: bool = True
    observed: bool = False
    chained: bool = False


class Plan(Struct, frozen=True):
    """The steps of all threads and their barriers.

    ``slots``: all steps, thread by thread; ``first[t]``: the number of the first one of t; ``lengths``: how many each
    thread has; ``floating``: the asynchronous ones. ``later[t][i]``: the classes of the steps of t from i on.
    ``users[b]``: the steps at barrier b. ``free``: the free classes; ``mbarrier_only``: those of an mbarrier alone.
    ``bars``, ``mbarriers``: the positions in a state of CTA barriers and mbarriers, by number. ``mates``: for each
    thread the threads of its warp, ``ctas`` of its CTA, ``clusters`` of its cluster, as bits. ``lanes[b]``: the threads
    in the mask of a warp barrier. ``arrived[t][i]``: how often t has arrived at its cluster's barrier before its step
    i. ``aligned[t]``: the steps of t that the threads of its warp do together, ``wide[t]`` those of its warpgroup,
    whose threads in other warps are ``warpgroup_mates[t]``, as bits. ``ended``: the threads that exit after their
    steps, as bits. ``ordered``: the order of chained steps is told apart.
    """

    keys: tuple[_Key, ...]
    slots: tuple[Slot, ...]
    first: tuple[int, ...]
    lengths: tuple[int, ...]
    floating: tuple[Slot, ...]
    later: tuple[tuple[int, ...], ...]
    users: tuple[tuple[Slot, ...], ...]
    free: int
    mbarrier_only: int
    bars: Mapping[int, int]
    mbarriers: Mapping[int, int]
    mates: tuple[int, ...]
    ctas: tuple[int, ...]
    clusters: tuple[int, ...]
    lanes: Mapping[int, int]
    arrived: tuple[tuple[int, ...], ...]
    ended: int
    ordered: bool
    aligned: tuple[tuple[Slot, ...], ...]
    wide: tuple[tuple[Slot, ...], ...]
    warpgroup_mates: tuple[int, ...]

    def slot(self, thread: int, index: int) -> Slot:
        """The step of ``thread`` at ``index``."""
        return self.slots[self.first[thread] + index]


def plan(
    test: Test,
    places: Sequence[Place],
    steps: Sequence[Sequence[Step]],
    ended: Sequence[bool],
    observed: Collection[EventId] | None,
    ordered: bool = False,
    told: bool = False,
) -> Plan:
    """The plan for the steps of each thread.

    ``observed``: the arrivals whose tokens matter; then phases of mbarriers where nobody waits do not. None: all that
    return a token to a register, and all phases. ``ordered``: the order at each mbarrier matters; ``told``: all phases
    do.
    """
    named = [[_key(place, step) for step in mine] for place, mine in zip(places, steps, strict=True)]
    keys = {key: number for number, key in enumerate(dict.fromkeys(chain.from_iterable(named)))}
    at = [[keys[key] for key in mine] for mine in named]
    mates = _together(map(attrgetter("warp"), places))
    first = [0, *accumulate(len(mine) for mine in steps)]
    groups, sequenced = _classes(places, steps, ended, keys)
    slots = _slots(test, steps, at, groups, mates, observed, ordered or told)
    bars, mbarriers, warps = (_of_kind(keys, kind) for kind in ("bar", "mb", "warp"))
    aligned, wide_, beside = _aligned(test, steps, slots)
    return Plan(
        keys=tuple(keys),
        slots=tuple(slots),
        first=tuple(first),
        lengths=tuple(map(len, steps)),
        floating=tuple(s for s in slots if s.step.asynchronous),
        later=tuple(_later([groups[b] for b in mine]) for mine in at),
        users=_grouped(slots, len(keys), lambda s: s.barrier),
        free=_union(g for g in groups if not g & sequenced),
        mbarrier_only=_union({groups[b] for b in mbarriers} - {groups[b] for b in keys.values() if b not in mbarriers}),
        bars=bars,
        mbarriers=mbarriers,
        mates=mates,
        ctas=_together(map(attrgetter("cta"), places)),
        clusters=_together(map(attrgetter("cluster"), places)),
        lanes={b: _lanes(mates, slots, b) for b in warps},
        arrived=tuple(map(_arrivals, steps)),
        ended=_union(1 << t for t in compress(count(), ended)),
        ordered=ordered,
        aligned=aligned,
        wide=wide_,
        warpgroup_mates=beside,
    )


def _of_kind(keys: Mapping[_Key, int], kind: str) -> dict[int, int]:
    """The barriers of a kind, each with its number among them."""
    return {b: i for i, b in enumerate(b for key, b in keys.items() if key[0].split()[0] == kind)}


def _grouped(slots: Sequence[Slot], most: int, of: Callable[[Slot], int]) -> tuple[tuple[Slot, ...], ...]:
    return tuple(tuple(s for s in slots if of(s) == number) for number in range(most))


def _aligned(
    test: Test, steps: Sequence[object], slots: Sequence[Slot]
) -> tuple[tuple[tuple[Slot, ...], ...], tuple[tuple[Slot, ...], ...], tuple[int, ...]]:
    """``aligned``, ``wide`` and ``warpgroup_mates`` of a plan."""
    aligned = [s for s in slots if s.step.aligned]
    wide_ = [s for s in aligned if wide(test, s.thread, s.step.id.instruction)]
    beside = tuple(_union(1 << u for u in rest) for rest in warpgroup_mates(test)) if wide_ else (0,) * len(steps)
    return _grouped(aligned, len(steps), lambda s: s.thread), _grouped(wide_, len(steps), lambda s: s.thread), beside


def _arrivals(steps: Sequence[Step]) -> tuple[int, ...]:
    """How often a thread has arrived at the barrier of its cluster before each step."""
    return tuple(accumulate((s.kind == "cluster.arrive" for s in steps), initial=0))


def _slots(
    test: Test,
    steps: Sequence[Sequence[Step]],
    at: Sequence[Sequence[int]],
    groups: Sequence[int],
    mates: Sequence[int],
    observed: Collection[EventId] | None,
    told: bool,
) -> list[Slot]:
    """The steps of all threads; ``at``: the barrier of each, ``groups``: its class."""
    everything = list(chain.from_iterable(steps))
    arrivals = {step.id: number for number, step in enumerate(everything) if step.kind in ARRIVALS}
    awaited = {wanted for s in everything if s.kind == "mb.wait" for wanted in (s.place, s.state)}
    slots: list[Slot] = []
    for t, mine in enumerate(steps):
        for i, (step, (phase, misuse)) in enumerate(zip(mine, _known(test, t, mates[t], mine), strict=True)):
            slots.append(
                Slot(
                    number=len(slots),
                    thread=t,
                    index=i,
                    step=step,
                    barrier=at[t][i],
                    group=groups[at[t][i]],
                    phase=phase,
                    misuse=misuse,
                    token=_token(step, arrivals),
                    recorded=step.kind not in ("mb.inval", "mb.increment", "warp.exchange"),
                    told=told or observed is None or step.place is None or step.place in awaited or step.id in awaited,
                    observed=step.kind in ARRIVALS
                    and (_returns(test, step.id) if observed is None else step.id in observed),
                    chained=step.kind in CHANGES or (step.kind == "mb.wait" and step.number == 1),
                )
            )
    return slots


def _later(groups: Sequence[int]) -> tuple[int, ...]:
    """For each step of a thread, and its end, the union of the classes from there on."""
    return tuple(reversed(list(accumulate(reversed(groups), or_, initial=0))))


def _key(place: Place, step: Step) -> _Key:
    """The barrier that ``step`` of a thread at ``place`` is about."""
    kind = step.kind.split(".")[0]
    if kind == "mb":
        assert step.place is not None
        return "mb", (step.place[0],), step.place[1]
    if kind == "cluster":
        return "cluster", place.cluster, 0
    if kind == "bar":
        return kind, place.cta, step.number
    return f"warp {step.operation}".rstrip(), place.warp, step.number


def _together(found: Iterable[object]) -> tuple[int, ...]:
    """For each position the positions with the same value, as bits."""
    values = list(found)
    return tuple(_union(1 << u for u, other in enumerate(values) if other == value) for value in values)


def _union(bits: Iterable[int]) -> int:
    return reduce(or_, bits, 0)


def _lane(mates: int, thread: int) -> int:
    """The lane of ``thread``: its position among the threads of its warp (A29)."""
    return (mates & ((1 << thread) - 1)).bit_count()


def _lanes(mates: Sequence[int], slots: Sequence[Slot], barrier: int) -> int:
    """The threads that a warp barrier is for."""
    slot = next(s for s in slots if s.barrier == barrier)
    warp = mates[slot.thread]
    return _union(1 << t for t in range(len(mates)) if warp >> t & 1 and slot.step.number >> _lane(warp, t) & 1)


def _returns(test: Test, event: EventId) -> bool:
    """Whether an arrival returns a token to a register, as far as its instruction is known."""
    body = test.threads[event.thread].body
    op = body[event.instruction] if event.instruction < len(body) else None
    return op is None or (isinstance(op, MbarrierArrive) and op.dst is not None)


def _token(step: Step, arrivals: Mapping[EventId, int]) -> int:
    """The number of the arrival that a wait by state waits for, or -1."""
    if step.kind != "mb.wait" or not isinstance(step.state, EventId):
        return -1
    number = arrivals.get(step.state)
    if number is None:
        raise PtxmmError(f"a wait for the state of {step.state}, which is no arrival", kind="internal")
    return number


def _known(test: Test, thread: int, mates: int, steps: Sequence[Step]) -> list[tuple[int, str | None]]:
    """What the thread's own steps decide: phases of warp and cluster barriers (9.7.14.2, .3), and misuse."""
    host = test.threads[thread].placement.host
    result: list[tuple[int, str | None]] = []
    warp: dict[tuple[str, int], int] = {}
    arrived = waited = 0
    for step in steps:
        phase, misuse = -1, _operand_misuse(step)
        if step.kind in ("warp.sync", "warp.exchange"):
            phase = warp.get((step.operation, step.number), 0)
            warp[step.operation, step.number] = phase + 1
            if not step.number >> _lane(mates, thread) & 1:
                name = step.operation.split(".")[0] + ".sync" if step.operation else "bar.warp.sync"
                misuse = f"a thread at {name} is not in its membermask"
        elif step.kind == "cluster.arrive":
            phase = arrived
            arrived += 1
            if arrived > waited + 1:
                misuse = "a thread arrives twice in one phase of barrier.cluster"
        elif step.kind == "cluster.wait":
            phase = waited
            waited += 1
            if waited > arrived:
                misuse = "a thread waits at barrier.cluster without having arrived"
        if phase >= 0 and host:
            misuse = "a host thread has no warp and no cluster"
        result.append((phase, misuse))
    return result


def _operand_misuse(step: Step) -> str | None:
    """Why an operand that a register gives has no meaning (9.7.14.1, 9.7.14.15.16); constants are refused before."""
    if step.kind.startswith("bar."):
        if step.number not in range(_BARRIERS):
            return f"barrier {step.number}, but a CTA has the barriers 0 to {_BARRIERS - 1}"
        if step.count == 0:
            return f"0 threads at a barrier, which is no positive multiple of {_WARP}"
        if step.count is not None and step.count % _WARP:
            return f"{step.count} threads at a barrier, which is no multiple of {_WARP}"
    if step.parity is not None and step.parity not in (0, 1):
        return f"the parity {step.parity} of a wait, which is not 0 or 1"
    return None


def _classes(
    places: Sequence[Place], steps: Sequence[Sequence[Step]], ended: Sequence[bool], keys: Mapping[_Key, int]
) -> tuple[list[int], int]:
    """The class of each barrier, as a bit, and the classes in which the order of steps matters."""
    counted = _counted(places, steps)
    group = list(range(len(keys)))
    for one, other in _dependent(places, steps, ended, keys, bool(counted)):
        group = [group[other] if g == group[one] else g for g in group]
    ordered = (n for n, key in enumerate(keys) if key[0] == "mb" or (key[0] == "bar" and key[1] in counted))
    return [1 << g for g in group], _union(1 << group[number] for number in ordered)


def _dependent(
    places: Sequence[Place],
    steps: Sequence[Sequence[Step]],
    ended: Sequence[bool],
    keys: Mapping[_Key, int],
    counted: bool,
) -> Iterator[tuple[int, int]]:
    """Pairs of barriers whose steps depend on each other; ``counted``: the order matters at some barrier of a CTA."""
    first: dict[tuple[object, ...], int] = {}
    for key, number in keys.items():
        if key[0] == "bar":
            yield number, first.setdefault(key[1], number)
    # A thread that ends counts as arrived at the barriers around it. Its last step, or the one that lets it go on from
    # there, is therefore one of theirs.
    for t, mine in enumerate(steps) if counted else ():
        if mine and ended[t]:
            around = (places[t].cta, places[t].warp, places[t].cluster)
            last = next((s for s in reversed(mine) if not s.asynchronous), mine[-1])
            for key, number in keys.items():
                if key[0] != "mb" and key[1] in around:
                    yield number, keys[_key(places[t], last)]
    # A wait can't come before the arrival that returned its token, which may be another thread's at another mbarrier.
    arrivals = {s.id: _key(places[t], s) for t, mine in enumerate(steps) for s in mine if s.kind in ARRIVALS}
    for t, mine in enumerate(steps):
        for step in mine:
            if step.kind == "mb.wait" and isinstance(step.state, EventId) and step.state in arrivals:
                yield keys[arrivals[step.state]], keys[_key(places[t], step)]


def _counted(places: Sequence[Place], steps: Sequence[Sequence[Step]]) -> set[tuple[object, ...]]:
    """The CTAs with a barrier where not all arrivals wait for all that ever arrive at it, or for all of the CTA."""
    counts: dict[_Key, set[int | None]] = {}
    operations: dict[_Key, set[str]] = {}
    users: dict[_Key, set[object]] = {}
    found: set[tuple[object, ...]] = set()
    for place, mine in zip(places, steps, strict=True):
        for step in mine:
            if step.kind not in ("bar.sync", "bar.arrive", "bar.red"):
                continue
            key = _key(place, step)
            counts.setdefault(key, set()).add(step.count)
            operations.setdefault(key, set()).add(step.operation)
            users.setdefault(key, set()).add(place.warp)
            if step.kind == "bar.arrive":
                found.add(place.cta)
    for key, values in counts.items():
        if len(operations[key]) > 1 or (values != {None} and values != {32 * len(users[key])}):
            found.add(key[1])
    return found
