"""The rules of barriers, step by step and in every order: a simulation without any reduction, to compare others with.

CTA barriers (decision A27), warp barriers (A29), cluster barriers (A30), mbarriers (A31, A32; PTX ISA 9.7.14.15).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy

from msgspec import Struct, field

from ptxmm.events.explicit.relations.scopes import Place
from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId

LIMIT = 2**20
CHAINED = ("mb.arrive", "mb.drop", "mb.expect", "mb.complete")

Ending = tuple[object, ...]
"""Reached, phases, tokens, waiting, completed phases, misuse, all as values; what was reached before the misuse."""


Chain = frozenset[tuple[EventId, EventId]]


class Object(Struct):
    """An mbarrier."""

    ready: bool
    expected: int
    pending: int
    tx: int = 0
    phase: int = 0
    inits: int = 0


class World(Struct):
    """Everything at one moment. ``inside``: the threads in each CTA barrier's phase with the count they gave and
    the reduction."""

    at: list[int]
    waits: dict[int, object] = field(default_factory=dict)
    floats: set[tuple[int, int]] = field(default_factory=set)
    inside: dict[object, dict[int, tuple[int | None, str]]] = field(default_factory=dict)
    generation: dict[object, int] = field(default_factory=dict)
    objects: dict[tuple[str, int], Object] = field(default_factory=dict)
    phases: dict[EventId, int] = field(default_factory=dict)
    tokens: dict[object, int] = field(default_factory=dict)
    order: list[Step] = field(default_factory=list)

    def key(self) -> str:
        """A text that is equal for equal worlds."""
        parts = (
            self.at, sorted(self.waits), sorted(self.floats), sorted(map(repr, self.inside.items())),
            sorted(map(repr, self.generation.items())), sorted(map(repr, self.objects.items())),
            sorted(map(repr, self.phases.items())), sorted(map(repr, self.tokens.items())),
            [s.id for s in self.order],
        )  # fmt: skip
        return repr(parts)


def chain(order: Sequence[Step], phases: Mapping[EventId, int]) -> Chain:
    """Pairs of an arrival and what comes next at its mbarrier, by initialisation."""
    latest: dict[object, EventId] = {}
    found = set()
    for step in order:
        key = step.place, phases[step.id] // LIMIT
        if key in latest:
            found.add((latest[key], step.id))
        if step.kind in CHAINED:
            latest[key] = step.id
    return frozenset(found)


class Undefined(Exception):
    """The step has no meaning."""


class NotNow(Exception):
    """The step can't happen now: ``blocked``, ``never`` (another result) or ``early`` (before the init)."""


class Program(Struct):
    """The steps of each thread. ``ordered``: gather ``orders`` too: phases, and what is next to what at mbarriers."""

    places: Sequence[Place]
    steps: Sequence[Sequence[Step]]
    ended: Sequence[bool]
    initial: dict[tuple[str, int], Object]
    ordered: bool = False
    orders: set[tuple[frozenset[tuple[EventId, int]], Chain]] = field(default_factory=set)

    def endings(self) -> set[Ending]:
        """Every end of every order."""
        used = {step.place for mine in self.steps for step in mine}
        world = World([0] * len(self.steps), objects={p: deepcopy(o) for p, o in self.initial.items() if p in used})
        for mine in self.steps:
            for step in mine:
                if step.place is not None:
                    world.objects.setdefault(step.place, Object(False, 0, 0))
        self.settle(world)
        seen = {world.key()}
        stack = [world]
        found: set[Ending] = set()
        while stack:
            world = stack.pop()
            moved, never, early = False, False, []
            for t, i, floating in list(self.candidates(world)):
                after = deepcopy(world)
                try:
                    self.perform(after, t, i, floating)
                except Undefined as reason:
                    moved = True
                    found.add(self.ending(world, [(t, floating)], str(reason)))
                    continue
                except NotNow as reason:
                    never = never or str(reason) == "never"
                    if str(reason) == "early":
                        early.append((t, floating))
                    continue
                moved = True
                self.settle(after)
                if after.key() not in seen:
                    seen.add(after.key())
                    stack.append(after)
            if not moved and not never:
                found.add(self.ending(world, early, "early" if early else None))
                if not early and self.ordered:
                    self.orders.add((frozenset(world.phases.items()), chain(world.order, world.phases)))
        return found

    def candidates(self, world: World) -> Iterator[tuple[int, int, bool]]:
        for t, i in enumerate(world.at):
            if t not in world.waits and i < len(self.steps[t]):
                yield t, i, False
        for t, i in sorted(world.floats):
            yield t, i, True

    def ending(self, world: World, failed: list[tuple[int, bool]], reason: str | None) -> Ending:
        reached, waiting = list(world.at), set(world.waits)
        before = tuple(reached)
        for t, i, floating in self.candidates(world):
            if not floating and self.steps[t][i].kind == "cluster.wait" and (t, False) not in failed:
                try:
                    self.perform(deepcopy(world), t, i, False)
                except NotNow:
                    reached[t] += 1
                    waiting.add(t)
                except Undefined:
                    pass
        for t, floating in failed:
            if not floating:
                reached[t] += 1
                waiting.add(t)
        done = frozenset((place, o.phase) for place, o in world.objects.items())
        phases, tokens = frozenset(world.phases.items()), frozenset(world.tokens.items())
        return tuple(reached), phases, tokens, frozenset(waiting), done, reason, before

    def perform(self, world: World, t: int, i: int, floating: bool) -> None:
        step = self.steps[t][i]
        place = self.places[t]
        if step.kind in ("bar.sync", "bar.arrive", "bar.red"):
            self.arrive_cta(world, t, step)
        elif step.kind in ("warp.sync", "warp.exchange"):
            lane = [u for u in range(len(self.steps)) if self.places[u].warp == place.warp].index(t)
            if not step.number & 2**lane:
                raise Undefined("not in its membermask")
            key = "warp", place.warp, step.number, step.operation
            world.waits[t] = key
            if step.kind == "warp.sync":
                world.phases[step.id] = world.generation.get(key, 0)
        elif step.kind == "cluster.arrive":
            if self.count(t, i, "cluster.arrive") != self.count(t, i, "cluster.wait"):
                raise Undefined("arrives twice")
            world.phases[step.id] = self.count(t, i, "cluster.arrive")
        elif step.kind == "cluster.wait":
            if self.count(t, i, "cluster.arrive") == self.count(t, i, "cluster.wait"):
                raise Undefined("without having arrived")
            mine = self.count(t, i, "cluster.arrive")
            for u, other in enumerate(self.places):
                missing = other.cluster == place.cluster and not self.gone(world, u)
                if missing and self.count(u, world.at[u], "cluster.arrive") < mine:
                    raise NotNow("blocked")
            world.phases[step.id] = mine - 1
        else:
            self.mbarrier(world, t, step, floating)
            if self.ordered and (step.kind in CHAINED or (step.kind == "mb.wait" and step.number)):
                world.order.append(step)
        if floating:
            world.floats.remove((t, i))
        else:
            world.at[t] += 1

    def count(self, t: int, before: int, kind: str) -> int:
        return sum(s.kind == kind for s in self.steps[t][:before])

    def gone(self, world: World, t: int) -> bool:
        return self.ended[t] and world.at[t] == len(self.steps[t]) and t not in world.waits

    def whole(self, world: World, t: int, present: Mapping[int, object]) -> bool:
        """Whether the warp of t has arrived."""
        warp = [u for u in range(len(self.steps)) if self.places[u].warp == self.places[t].warp]
        return any(u in present for u in warp) and all(u in present or self.gone(world, u) for u in warp)

    def arrive_cta(self, world: World, t: int, step: Step) -> None:
        key = "bar", self.places[t].cta, step.number
        present = world.inside.setdefault(key, {})
        if present:
            if t in present or self.whole(world, t, present):
                raise Undefined("two arrivals of one warp")
            if (step.count, step.operation) not in present.values():
                same = any(count == step.count for count, _ in present.values())
                raise Undefined(f"in one phase of barrier {step.number}" if same else "two different thread counts")
        present[t] = step.count, step.operation
        world.phases[step.id] = world.generation.get(key, 0)
        if step.kind != "bar.arrive":
            world.waits[t] = key

    def mbarrier(self, world: World, t: int, step: Step, floating: bool) -> None:
        assert step.place is not None
        o = world.objects[step.place]
        if step.kind == "mb.init":
            if o.ready:
                raise Undefined("initialised again")
            if step.number not in range(1, LIMIT):
                raise Undefined("with the count")
            world.objects[step.place] = Object(True, step.number, step.number, inits=o.inits + 1)
            world.phases[step.id] = 0
            return
        if not o.ready:
            for u, mine in enumerate(self.steps):
                for s in mine[world.at[u] :]:
                    if s.kind == "mb.init" and s.place == step.place and (u != t or floating):
                        raise NotNow("early")
            raise Undefined("not initialised")
        now = o.inits * LIMIT + o.phase
        if step.kind == "mb.inval":
            o.ready = False
            return
        if step.kind == "mb.wait":
            if step.parity is None:
                token = step.state
                if isinstance(token, tuple):
                    if token not in world.phases:
                        raise NotNow("never")
                    token = world.phases[token] % LIMIT * LIMIT
                assert isinstance(token, int)
                if token // LIMIT not in (o.phase, o.phase - 1):
                    raise Undefined("a wait for a phase")
                result = o.phase != token // LIMIT
            else:
                result = o.phase % 2 != step.parity
            if result != step.number:
                raise NotNow("never")
            world.phases[step.id] = now
            return
        if step.kind == "mb.increment":
            o.pending += 1
            return
        if step.kind in ("mb.arrive", "mb.drop"):
            if step.number not in range(1, LIMIT):
                raise Undefined("arrivals at once")
            world.tokens[step.id] = o.phase * LIMIT + o.pending
            o.tx += step.expect
            o.pending -= step.number
            if step.kind == "mb.drop":
                o.expected -= step.number
        o.tx += step.number if step.kind == "mb.expect" else -step.number if step.kind == "mb.complete" else 0
        world.phases[step.id] = now
        if not -LIMIT < o.tx < LIMIT:
            raise Undefined("tx-count")
        if o.pending < 0:
            raise Undefined("more arrivals")
        if o.pending == 0 and o.tx == 0:
            if step.no_complete:
                raise Undefined(".noComplete")
            if o.expected < 0:
                raise Undefined("dropped")
            o.phase += 1
            o.pending = o.expected

    def settle(self, world: World) -> None:
        """Whatever happens by itself."""
        before = ""
        while before != (before := world.key()):
            for t, mine in enumerate(self.steps):
                while t not in world.waits and world.at[t] < len(mine) and mine[world.at[t]].asynchronous:
                    world.floats.add((t, world.at[t]))
                    world.at[t] += 1
            for key, present in world.inside.items():
                if present and self.full(world, present):
                    world.generation[key] = world.generation.get(key, 0) + 1
                    for t in present:
                        if world.waits.get(t) == key:
                            del world.waits[t]
                    present.clear()
                    break
            else:
                self.release_warps(world)

    def full(self, world: World, present: Mapping[int, tuple[int | None, str]]) -> bool:
        some = next(iter(present))
        count, _ = present[some]
        if count is None:
            cta = [u for u in range(len(self.steps)) if self.places[u].cta == self.places[some].cta]
            return all(u in present or self.gone(world, u) for u in cta)
        warps = {self.places[u].warp: u for u in present}
        return 32 * sum(self.whole(world, u, present) for u in warps.values()) >= count

    def release_warps(self, world: World) -> None:
        for key in list(world.waits.values()):
            kind, warp, mask = key[:3]  # type: ignore[index]
            if kind != "warp":
                continue
            lanes = [u for u in range(len(self.steps)) if self.places[u].warp == warp]
            asked = [u for lane, u in enumerate(lanes) if mask & 2**lane]
            if all(world.waits.get(u) == key or self.gone(world, u) for u in asked):
                world.generation[key] = world.generation.get(key, 0) + 1
                for u in asked:
                    world.waits.pop(u, None)
                return
