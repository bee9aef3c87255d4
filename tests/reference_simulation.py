"""Barriers of typed PTX for the reference: which arrivals and waits of complete executions are in one phase (A27, A31).

CTA, warp and cluster barriers, mbarriers and asynchronous arrivals run together, one instruction at a time, in every
order. A run in which some thread never passes, or that has no meaning, is dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.test import Test
from ptxmm.ptx import ops
from tests import reference_exchanges
from tests.reference_events import Place, Step
from tests.reference_expressions import Expr, Leaf, substitute

MOST = (1 << 20) - 1

Pairs = frozenset[tuple[int, int]]
Value = Callable[[Expr], int]


class Meeting(Struct, frozen=True):
    """What a run of all barriers decides: the pairs of each kind, what arrivals returned, phases completed, and what
    threads gave each other."""

    barphase: Pairs = frozenset()
    warpphase: Pairs = frozenset()
    cluphase: Pairs = frozenset()
    mbphase: Pairs = frozenset()
    tokens: frozenset[tuple[Leaf, int]] = frozenset()
    completed: frozenset[tuple[Place, int]] = frozenset()
    given: frozenset[tuple[Leaf, Expr]] = frozenset()
    exitphase: Pairs = frozenset()
    late: frozenset[int] = frozenset()  # operations on mbarriers in a phase that is not the first one
    passed: Pairs = frozenset()  # waits, and the operations of the phase after the one that they found complete
    mbnext: Pairs = frozenset()  # an arrival at an mbarrier, and the next operation on it
    mbcount: Pairs = frozenset()  # an operation on an mbarrier, and a later arrival that returned its state

    @property
    def phases(self) -> Pairs:
        """All pairs."""
        return self.barphase | self.warpphase | self.cluphase | self.mbphase | self.mbcount | self.exitphase


class Mbarrier(Struct, frozen=True):
    """The state of an mbarrier; ``epoch``: how often it has been initialised by the program; ``phase``: since then."""

    live: bool = False
    expected: int = 0
    pending: int = 0
    tx: int = 0
    phase: int = 0
    epoch: int = 0


class State(Struct, frozen=True):
    """Where all threads are. ``open``: for each barrier of a CTA or warp, or exchange, its count, its reduction and who
    is there; ``arrived``: the phase of its cluster that a thread has arrived in; ``flying``: arrivals to come;
    ``record``: (event, what, phase); ``number``: phases that a barrier has completed; ``given``: as in ``Meeting``;
    ``left``: barrier, phase and thread of those that had exited without arriving when the phase was complete."""

    at: tuple[int, ...]
    waiting: frozenset[int] = frozenset()
    open: frozenset[tuple[Any, int | None, str, frozenset[int]]] = frozenset()
    number: frozenset[tuple[Any, int]] = frozenset()
    arrived: tuple[int | None, ...] = ()
    mbarriers: frozenset[tuple[Place, Mbarrier]] = frozenset()
    flying: frozenset[tuple[int, Place, int | None]] = frozenset()
    record: frozenset[tuple[int, Any, int]] = frozenset()
    tokens: frozenset[tuple[Leaf, int]] = frozenset()
    given: frozenset[tuple[Leaf, Expr]] = frozenset()
    left: frozenset[tuple[Any, int, int]] = frozenset()
    order: tuple[tuple[int, Any, int], ...] = ()  # of the operations on mbarriers, as they ran, if that is asked for

    def noted(self, entry: tuple[int, Any, int], ordered: bool) -> State:
        """The state with one more operation on an mbarrier."""
        return replace(self, record=self.record | {entry}, order=(*self.order, entry) if ordered else ())


class Simulation:
    """The barriers of one combination of paths; ``value`` gives operands, with the tokens returned so far; ``exits``:
    the exit of each thread; ``ordered``: runs that differ in the order of operations on mbarriers are different."""

    def __init__(
        self,
        test: Test,
        steps: list[list[Step]],
        places: list[dict[str, object]],
        number: Callable[[int, int], int],
        value: Callable[[Expr, dict[Leaf, int]], int],
        exits: dict[int, int],
        ordered: bool = False,
    ) -> None:
        self.test, self.steps, self.places, self.number, self.value = test, steps, places, number, value
        self.exits, self.ordered = exits, ordered
        self.threads = range(len(steps))
        self.place = dict(enumerate(reference_exchanges.lanes(test)))
        self.lanes = {t: lane for t, (_, lane, _) in self.place.items()}
        self.warps = [warp for warp, _, _ in self.place.values()]

    # -- what is in a state

    def exited(self, s: State) -> set[int]:
        return {t for t in self.threads if s.at[t] == len(self.steps[t]) and t not in s.waiting}

    def run(self) -> Iterator[Meeting]:
        """Every way to the end, once."""
        if not reference_exchanges.elected(self.test, itertools.chain(*self.steps)):
            return
        first = State(
            tuple(0 for _ in self.threads),
            arrived=tuple(None for _ in self.threads),
            mbarriers=frozenset(self.declared()),
        )
        found: dict[Meeting, None] = {}
        seen = {first}
        stack = [first]
        while stack:
            settled = self.settle(stack.pop())
            if settled is None:
                continue
            s = settled
            if len(self.exited(s)) == len(self.steps) and not s.flying:
                found.setdefault(self.meeting(s))
            for n in self.moves(s):
                if n not in seen:
                    seen.add(n)
                    stack.append(n)
        yield from found

    def declared(self) -> Iterator[tuple[Place, Mbarrier]]:
        """The mbarriers that are initialised before the program."""
        for item in self.test.objects.values():
            for i, given in enumerate(item.mbarrier):
                if given is not None and item.physical == item.key:
                    pending, tx = given
                    yield (item.key, i * item.type.bytes), Mbarrier(True, max(pending, 1), pending, tx)

    # -- barriers of warps, CTAs and clusters complete as soon as they can

    def settle(self, s: State) -> State | None:
        """All barriers completed that can be; None if that has no meaning."""
        changed = True
        while changed:
            changed = False
            gone = self.exited(s)
            if self.diverged(s, gone):
                return None
            for item in sorted(s.open, key=repr):
                key, count, _, members = item
                if self.complete(key, count, members, gone):
                    phase = dict(s.number).get(key, 0)
                    there = {e for e, k, p in s.record if k == key and p == phase}
                    last = {t: self.steps[t][s.at[t] - 1] for t in members if t in s.waiting}
                    exchange = key[0] in ("exchange", "together")
                    passed = {t for t, step in last.items() if exchange or self.number(t, step.event or 0) in there}
                    waits = {(self.number(t, last[t].wait or 0), (*key, "wait"), phase) for t in passed if not exchange}
                    gave = {t: (s.at[t] - 1, step) for t, step in last.items() if step.gives is not None}
                    given = reference_exchanges.results(gave, self.place)
                    if given is None:
                        return None
                    earlier = dict(s.given)
                    s = replace(
                        s,
                        open=s.open - {item},
                        waiting=s.waiting - passed,
                        number=frozenset({**dict(s.number), key: phase + 1}.items()),
                        record=s.record | waits,
                        given=s.given | {(leaf, substitute(e, earlier)) for leaf, e in given.items()},
                        left=s.left | {(key, phase, t) for t in self.awaited(key, count, members) & gone - members},
                    )
                    changed = True
                    break
            for cluster in dict.fromkeys(p["cluster"] for p in self.places):
                key = ("cluster", cluster)
                phase = dict(s.number).get(key, 0)
                mine = [t for t in self.threads if self.places[t]["cluster"] == cluster]
                here = [t for t in mine if s.arrived[t] == phase]
                if here and all(t in here or t in gone for t in mine):
                    without = {(key, phase, t) for t in set(mine) & gone - set(here)}
                    s = replace(s, number=frozenset({**dict(s.number), key: phase + 1}.items()), left=s.left | without)
                    changed = True
        return s

    def awaited(self, key: Any, count: int | None, members: frozenset[int]) -> set[int]:
        """The threads for which a barrier of a warp or a CTA would have waited if they were still there."""
        if key[0] != "bar":
            return {t for t in self.threads if self.warps[t] == key[1] and key[2] >> self.lanes[t] & 1}
        if count is None:
            return {t for t in self.threads if self.places[t]["cta"] == key[1]}
        return {t for t in self.threads if self.warps[t] in {self.warps[m] for m in members}}

    def diverged(self, s: State, gone: set[int]) -> bool:
        """Whether threads of a named warp have come to different instructions that are .aligned, or one of them has
        left without coming to as many (9.7.14.1, .3)."""
        came = {
            t: [
                (reference_exchanges.qualifiers(step.op), *step.args)
                for step in self.steps[t][: s.at[t]]
                if (getattr(step.op, "aligned", False) or step.kind == "together") and self.place[t][2]
            ]
            for t in self.threads
        }
        pairs = [(t, u) for t in self.threads for u in self.threads if t != u and self.warps[t] == self.warps[u]]
        return any(
            any(a != b for a, b in zip(came[t], came[u], strict=False)) or (u in gone and len(came[u]) < len(came[t]))
            for t, u in pairs
        )

    def complete(self, key: Any, count: int | None, members: frozenset[int], gone: set[int]) -> bool:
        if key[0] in ("warp", "exchange", "together"):
            lanes = {t for t in self.threads if self.warps[t] == key[1] and key[2] >> self.lanes[t] & 1}
            return lanes - gone <= members
        threads = [t for t in self.threads if self.places[t]["cta"] == key[1]]
        alive = [t for t in threads if t not in gone]
        arrived = {self.warps[t] for t in members}
        arrived = {w for w in arrived if all(t in members for t in alive if self.warps[t] == w)}
        if count is None:
            return all(t in members for t in alive)
        return 32 * len(arrived) == count

    # -- moves

    def moves(self, s: State) -> Iterator[State]:
        """The states after one more instruction, or one more asynchronous arrival."""
        tokens, given = dict(s.tokens), dict(s.given)
        for t in self.threads:
            if t in s.waiting or s.at[t] == len(self.steps[t]):
                continue
            step = self.steps[t][s.at[t]]
            try:
                args = tuple(None if a is None else self.value(substitute(a, given), tokens) for a in step.args)
                amounts = [None if a.amount is None else self.value(a.amount, tokens) for a in step.later]
            except Unknown:
                continue  # a token that has not been returned yet
            after = replace(s, at=(*s.at[:t], s.at[t] + 1, *s.at[t + 1 :]))
            if step.later:
                new = {(self.number(t, a.event), a.place, n) for a, n in zip(step.later, amounts, strict=True)}
                after = replace(after, flying=after.flying | new)
            yield from self.execute(s, after, step, args)
        for item in s.flying:
            event, place, amount = item
            state = self.usable(s, place)
            if state is not None:
                moved = arrive(state, 1, 0) if amount is None else transact(state, -amount)
                if moved is not None:
                    after = self.set(replace(s, flying=s.flying - {item}), place, moved)
                    what = "arrive" if amount is None else "tx"
                    yield after.noted(self.entry(event, what, place, state), self.ordered)

    def execute(self, s: State, after: State, step: Step, args: tuple[int | None, ...]) -> Iterator[State]:
        t = step.thread
        match step.kind:
            case "bar":
                reduction = f"{step.op.op}" if isinstance(step.op, ops.BarrierReduction) else ""
                yield from self.join(s, after, step, ("bar", self.places[t]["cta"], args[0]), args[1], reduction)
            case "warp":
                mask = args[0] or 0
                if mask >> self.lanes[t] & 1:
                    yield from self.join(s, after, step, ("warp", self.warps[t], mask), None)
            case "exchange":
                assert isinstance(step.op, ops.WarpExchange)
                name = (step.op.op, step.op.type)
                yield from self.join(s, after, step, ("exchange", self.warps[t], args[0], name), None)
            case "together":  # all lanes of the warp
                yield from self.join(s, after, step, ("together", self.warps[t], -1), None)
            case "cluster.arrive":
                key = ("cluster", self.places[t]["cluster"])
                if s.arrived[t] is None:
                    phase = dict(s.number).get(key, 0)
                    arrived = (*s.arrived[:t], phase, *s.arrived[t + 1 :])
                    new = (self.number(t, step.event or 0), key, phase)
                    yield replace(after, arrived=arrived, record=s.record | {new})
            case "cluster.wait":
                key = ("cluster", self.places[t]["cluster"])
                mine = s.arrived[t]
                if mine is not None and mine < dict(s.number).get(key, 0):
                    arrived = (*s.arrived[:t], None, *s.arrived[t + 1 :])
                    waited = (self.number(t, step.wait or 0), (*key, "wait"), mine)
                    yield replace(after, arrived=arrived, record=s.record | {waited})
            case "issue":
                if step.place is None:
                    yield after
                else:  # cp.async.mbarrier.arrive increments the pending count
                    state = self.usable(s, step.place)
                    if state is not None and state.pending < MOST:
                        yield self.set(after, step.place, replace(state, pending=state.pending + 1))
            case _:
                yield from self.mbarrier(s, after, step, args)

    def join(
        self, s: State, after: State, step: Step, key: Any, count: int | None, reduction: str = ""
    ) -> Iterator[State]:
        """Arrive at a barrier of a CTA or warp; nothing if that has no meaning."""
        there = {k: (c, r, m) for k, c, r, m in s.open}
        before, what, members = there.get(key, (count, reduction, frozenset()))
        if before != count or what != reduction or step.thread in members:
            return
        phase = dict(s.number).get(key, 0)
        exchange = key[0] in ("exchange", "together")  # it makes no events
        arrived = set() if exchange else {(self.number(step.thread, step.event or 0), key, phase)}
        yield replace(
            after,
            open=frozenset(i for i in s.open if i[0] != key) | {(key, count, reduction, members | {step.thread})},
            waiting=s.waiting | ({step.thread} if exchange or step.wait is not None else set()),
            record=s.record | arrived,
        )

    # -- mbarriers

    def usable(self, s: State, place: Place) -> Mbarrier | None:
        """The state of an initialised mbarrier; None: the operation has to wait, or has no meaning."""
        state = dict(s.mbarriers).get(place)
        return state if state is not None and state.live else None

    def set(self, s: State, place: Place, state: Mbarrier) -> State:
        return replace(s, mbarriers=frozenset({**dict(s.mbarriers), place: state}.items()))

    def entry(self, event: int, what: str, place: Place, state: Mbarrier) -> tuple[int, Any, int]:
        return event, ("mbarrier", place, state.epoch, what), state.phase

    def mbarrier(self, s: State, after: State, step: Step, args: tuple[int | None, ...]) -> Iterator[State]:
        assert step.place is not None
        place, op = step.place, step.op
        old = dict(s.mbarriers).get(place, Mbarrier())
        if step.kind == "init":
            count = args[0] or 0
            if not old.live and 1 <= count <= MOST:
                yield self.set(after, place, Mbarrier(True, count, count, 0, 0, old.epoch + 1))
            return
        if not old.live:
            return
        event = self.number(step.thread, step.event) if step.event is not None else -1
        match op:
            case ops.MbarrierInit():
                yield self.set(after, place, replace(old, live=False))
            case ops.MbarrierArrive():
                count, expect = args[0] or 0, args[1] or 0
                if not 1 <= count <= MOST or (op.no_complete and old.pending == count and old.tx + expect == 0):
                    return
                new = arrive(old, count, expect, op.drop)
                if new is not None:
                    token = ((step.thread, step.event or 0), old.phase << 20 | old.pending)
                    s = self.set(after, place, new).noted(self.entry(event, "arrive", place, old), self.ordered)
                    yield replace(s, tokens=s.tokens | ({token} if op.dst is not None else set()))
            case ops.MbarrierTx(kind=kind):
                amount = args[0] or 0
                new = transact(old, amount if kind == "expect_tx" else -amount)
                if new is not None:
                    yield self.set(after, place, new).noted(self.entry(event, "tx", place, old), self.ordered)
            case ops.MbarrierWait():
                state, parity = args
                if state is not None:
                    asked = state >> 20
                    if asked not in (old.phase, old.phase - 1):
                        return
                    true = old.phase > asked
                else:
                    if parity not in (0, 1):
                        return
                    true = old.phase & 1 != parity
                if true == step.result:
                    known = step.event is not None
                    yield after.noted(self.entry(event, "wait", place, old), self.ordered) if known else after

    # -- the result

    def meeting(self, s: State) -> Meeting:
        """The pairs of the phases of a run that has come to its end."""
        done = dict(s.number)

        def same(kind: str) -> Pairs:
            return frozenset(
                (a, w)
                for a, k, p in s.record
                for w, j, q in s.record
                if k[0] == kind and j == (*k, "wait") and p == q and p < done.get(k, 0)
            )

        mbphase = frozenset(
            (a, w)
            for a, k, p in s.record
            for w, j, q in s.record
            if k[0] == j[0] == "mbarrier" and k[1:3] == j[1:3] and (k[3] != "wait", j[3]) == (True, "wait") and p < q
        )
        completed = frozenset((place, m.phase) for place, m in s.mbarriers)
        exitphase = frozenset(
            (self.exits[t], w)
            for k, p, t in s.left
            for w, j, q in s.record
            if t in self.exits and j == (*k, "wait") and p == q
        )
        counted = [(e, k, p) for e, k, p in s.record if k[0] == "mbarrier"]
        late = frozenset(e for e, k, p in counted if k[3] == "arrive" and p)
        passed = frozenset(
            (w, e)
            for w, j, q in counted
            for e, k, p in counted
            if e in late and j[1:3] == k[1:3] and j[3] == "wait" and k[3] == "arrive" and q >= p
        )
        pairs = same("bar"), same("warp"), same("cluster"), mbphase
        latest: dict[Any, int] = {}
        following = set()
        for event, key, _ in s.order:
            if key[1:3] in latest:
                following.add((latest[key[1:3]], event))
            if key[3] != "wait":
                latest[key[1:3]] = event
        returned = {self.number(*leaf) for leaf, _ in s.tokens}
        counted_before = frozenset(
            (a, b)
            for i, (b, key, _) in enumerate(s.order)
            for a, before, _ in s.order[:i]
            if b in returned and before[1:3] == key[1:3] and before[3] != "wait"
        )
        return Meeting(
            *pairs, s.tokens, completed, s.given, exitphase, late, passed, frozenset(following), counted_before
        )


class Unknown(Exception):
    """An operand depends on what an arrival returns that has not happened yet."""


def flip(m: Mbarrier) -> Mbarrier:
    """The next phase, if this one is complete."""
    if m.pending or m.tx:
        return m
    return replace(m, phase=m.phase + 1, pending=m.expected)


def arrive(m: Mbarrier, count: int, expect: int, drop: bool = False) -> Mbarrier | None:
    """After ``expect`` bytes are expected and ``count`` arrivals; None if that has no meaning."""
    if count > m.pending or not -MOST <= m.tx + expect <= MOST:
        return None
    expected = m.expected - count if drop else m.expected
    return flip(replace(m, pending=m.pending - count, tx=m.tx + expect, expected=expected))


def transact(m: Mbarrier, amount: int) -> Mbarrier | None:
    """After ``amount`` more bytes are expected (negative: have been completed)."""
    if not -MOST <= m.tx + amount <= MOST:
        return None
    return flip(replace(m, tx=m.tx + amount))
