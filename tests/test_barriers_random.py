"""Random steps of barriers: the simulation of the explicit side against one without reductions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ptxmm.events.explicit.barriers import EPOCH, Meeting, meetings
from ptxmm.events.explicit.relations.scopes import Place, places
from ptxmm.events.explicit.trace import Step
from ptxmm.program.identity import EventId
from ptxmm.program.test import Placement
from tests.barrier_steps import B, C, make_test, numbered, step, wait
from tests.brute_barriers import CHAINED, Chain, Ending, Object, Program, chain

_PLACES = (
    (Placement(cta=0, cluster=0), Placement(cta=0, cluster=0), Placement(cta=1, cluster=0)),
    (Placement(cta=0, warp=0), Placement(cta=0, warp=0), Placement(cta=0)),
    (Placement(cta=0), Placement(cta=0), Placement(cta=0)),
    (Placement(cta=0, warp=0, cluster=1), Placement(cta=0, cluster=1), Placement(cta=0, warp=0, cluster=1)),
)


_TAME = (
    ("mb.arrive", "mb.arrive", "mb.wait"),
    ("mb.arrive", "mb.wait", "bar.sync"),
    ("mb.arrive", "mb.wait", "mb.wait", "mb.expect", "mb.complete", "mb.complete"),
    ("mb.arrive", "mb.wait", "mb.wait", "mb.drop", "mb.increment", "cluster.arrive"),
)


def tame_step(rng: random.Random, kinds: Sequence[str], mine: Sequence[Step], thread: int) -> Step:
    """A step that makes sense after those of its thread, mostly."""
    kind, place = rng.choice(kinds), rng.choice((B, B, B, C))
    if kind in ("bar.sync", "cluster.arrive"):
        waits = kind == "cluster.arrive" and sum(s.kind.startswith("cluster") for s in mine) % 2
        return step("cluster.wait") if waits else step(kind)
    if kind in ("mb.expect", "mb.complete"):
        return step(kind, 8, place=place, asynchronous=kind == "mb.complete" and rng.random() < 0.5)
    if kind != "mb.wait":
        return step(kind, place=place, asynchronous=kind == "mb.arrive" and rng.random() < 0.2)
    own = [i for i, s in enumerate(mine) if s.kind in ("mb.arrive", "mb.drop") and s.place == place]
    if own and rng.random() < 0.6:
        return wait(rng.choice((0, 1, 1)), state=EventId(thread, own[-1]), place=place)
    return wait(rng.choice((0, 1, 1)), parity=rng.choice((0, 0, 0, 1)), place=place)


def random_step(rng: random.Random, kinds: Sequence[str], arrivals: Sequence[EventId]) -> Step:
    kind = rng.choice(kinds)
    place = rng.choice((B, B, C))
    if kind.startswith("bar."):
        count = rng.choice((64, 64, 96) if kind == "bar.arrive" else (None, 64, 64, 32))
        reduction = rng.choice(("red.and", "red.and", "red.or")) if kind == "bar.red" else ""
        return step(kind, rng.choice((0, 0, 1)), count=count, operation=reduction)
    if kind in ("warp.sync", "warp.exchange"):
        exchange = rng.choice(("vote.any.pred", "shfl.idx.b32")) if kind == "warp.exchange" else ""
        return step(kind, rng.choice((3, 3, 3, 1, 2, 7)), operation=exchange)
    if kind.startswith("cluster."):
        return step(kind)
    if kind == "mb.wait":
        if rng.random() < 0.5:
            return wait(rng.choice((0, 1, 1)), parity=rng.choice((0, 0, 1)), place=place)
        state: EventId | int = rng.choice(arrivals) if arrivals and rng.random() < 0.7 else rng.choice((0, 0, EPOCH))
        return wait(rng.choice((0, 1, 1)), state=state, place=place)
    if kind == "mb.init":
        return step(kind, rng.choice((1, 2, 2)), place=place)
    loose = kind in ("mb.arrive", "mb.complete") and rng.random() < 0.3
    number = rng.choice((1, 1, 1, 2)) if kind in ("mb.arrive", "mb.drop", "mb.increment") else rng.choice((8, 8, 16))
    expect = rng.choice((0, 0, 0, 8)) if kind in ("mb.arrive", "mb.drop") else 0
    hold = kind in ("mb.arrive", "mb.drop") and rng.random() < 0.1
    return step(kind, number, place=place, expect=expect, no_complete=hold, asynchronous=loose)


_OTHERS = ("mb.expect", "mb.complete", "mb.drop", "mb.increment")
_MB = ("mb.arrive", "mb.arrive", "mb.arrive", "mb.wait", "mb.wait", *_OTHERS)
_KINDS = (
    (*_MB, "mb.init", "mb.inval"),
    ("mb.arrive", "mb.arrive", "mb.arrive", "mb.wait", "mb.wait", "mb.wait"),
    (*_MB, "bar.sync", "bar.sync", "cluster.arrive", "cluster.wait"),
    ("mb.arrive", "mb.wait", "bar.sync", "bar.arrive", "warp.sync", "cluster.arrive", "cluster.wait"),
    ("bar.sync", "bar.sync", "bar.arrive", "warp.sync"),
    ("bar.red", "bar.red", "bar.red", "bar.sync", "bar.arrive"),
    ("bar.red", "bar.red", "warp.exchange", "mb.arrive"),
    ("warp.exchange", "warp.exchange", "warp.exchange", "warp.sync", "cluster.arrive", "bar.sync"),
    ("cluster.arrive", "cluster.wait", "warp.sync", "bar.sync"),
)


def check_random(seed: int) -> None:
    """All ends that a simulation without reductions finds, and no others; for misuse, up to what others do before."""
    rng = random.Random(f"barriers/{seed}")
    placement = rng.choice(_PLACES)[: rng.choice((2, 2, 3))]
    tame = rng.random() < 0.5
    kinds = rng.choice(_TAME if tame else _KINDS)
    threads: list[list[Step]] = []
    arrivals: list[EventId] = []
    for t in range(len(placement)):
        mine: list[Step] = []
        for i in range(rng.randint(0, 4 if len(placement) == 2 else 3)):
            mine.append(tame_step(rng, kinds, mine, t) if tame else random_step(rng, kinds, arrivals))
            if mine[-1].kind in ("mb.arrive", "mb.drop"):
                arrivals.append(EventId(t, i))
        threads.append(mine)
    counts: dict[str, tuple[int, int] | None]
    counts = {"b": rng.choice(((1, 0), (2, 0), (2, 0), (3, 0), (0, 8), (1, 8), None)), "c": rng.choice(((2, 0), None))}
    if tame:
        counts = {"b": rng.choice(((1, 0), (2, 0), (3, 0), (4, 0), (1, 8))), "c": rng.choice(((1, 0), (2, 0)))}
    ended = [rng.random() < 0.8 for _ in placement]
    test = make_test(placement, counts)
    steps = numbered(threads)
    where = places(test)
    wanted = brute(where, steps, ended, counts)
    found = list(meetings(test, where, steps, ended, lambda: None))
    keys = [key(m) for m in found]
    assert len(set(keys)) == len(keys), f"seed {seed}: one of them twice"
    assert {k for k in keys if k[5] is None} == {e[:6] for e in wanted if e[5] is None}, f"seed {seed}"
    misused = [e for e in wanted if e[5] is not None]
    for m in found:
        if m.misuse is not None:
            assert any(e[5] in m.misuse or e[5] == "early" for e in misused if covers(key(m), e)), f"seed {seed}: {m}"  # type: ignore[operator]
    for e in misused:
        assert any(covers(k, e) for k in keys if k[5] is not None), f"seed {seed}: {e}"
    for m in found[:10]:
        if m.misuse is None:
            fixed = meetings(test, where, steps, ended, lambda: None, dict(m.phases), tokens=dict(m.tokens))
            assert m in list(fixed), f"seed {seed}"
    without = [m for m in meetings(test, where, steps, ended, lambda: None, observed=()) if m.misuse is None]
    told = {told_apart(m, steps) for m in found if m.misuse is None}
    assert {told_apart(m, steps) for m in without} == told, f"seed {seed}"
    assert len(without) == len(told), f"seed {seed}: one of them twice"
    assert {key(m) for m in without} <= set(keys), f"seed {seed}: phases or tokens of no order"


def told_apart(m: Meeting, steps: Sequence[Sequence[Step]]) -> tuple[object, ...]:
    """What is told apart when no tokens are observed: phases, but for those at mbarriers that nobody waits for."""
    waits = [s for mine in steps for s in mine if s.kind == "mb.wait"]
    awaited = {s.place for s in waits} | {s.state for s in waits}
    told = {s.id for mine in steps for s in mine if s.place is None or s.place in awaited or s.id in awaited}
    phases = frozenset((i, phase) for i, phase in m.phases.items() if i in told)
    return m.reached, phases, m.waiting, frozenset(m.completed.items())


def brute(
    where: Sequence[Place],
    steps: Sequence[Sequence[Step]],
    ended: Sequence[bool],
    counts: dict[str, tuple[int, int] | None],
) -> set[Ending]:
    objects = {(k, 0): Object(True, max(c[0], 1), *c) for k, c in counts.items() if c is not None}
    return Program(where, steps, ended, objects).endings()


def key(m: Meeting) -> Ending:
    completed, tokens = frozenset(m.completed.items()), frozenset(m.tokens.items())
    return m.reached, frozenset(m.phases.items()), tokens, m.waiting, completed, m.misuse


def covers(mine: Ending, other: Ending) -> bool:
    """Whether the execution ``mine`` goes at least as far as ``other`` does before its misuse."""
    far = all(a >= b for a, b in zip(mine[0], other[6], strict=True))  # type: ignore[call-overload]
    return far and other[1] <= mine[1]  # type: ignore[operator]


def check_order(seed: int) -> None:
    """Every order at the mbarriers is found, and no other; each can be asked for."""
    rng = random.Random(f"order/{seed}")
    placement = rng.choice(_PLACES)[: rng.choice((2, 3))]
    kinds = rng.choice((*_TAME, ("mb.arrive", "mb.arrive", "mb.wait", "mb.init", "mb.inval", "mb.expect")))
    threads: list[list[Step]] = []
    for t in range(len(placement)):
        threads.append([])
        for _ in range(rng.randint(0, 3)):
            threads[-1].append(tame_step(rng, kinds, threads[-1], t))
    counts: dict[str, tuple[int, int] | None] = {"b": rng.choice(((1, 0), (2, 0), (3, 0), (2, 8))), "c": (1, 0)}
    test, steps, ended = make_test(placement, counts), numbered(threads), [True] * len(placement)
    where = places(test)
    objects = {(k, 0): Object(True, max(c[0], 1), *c) for k, c in counts.items() if c is not None}
    wanted = Program(where, steps, ended, objects, ordered=True)
    wanted.endings()
    by_id = {s.id: s for mine in steps for s in mine if s.kind != "mb.increment"}
    found = [m for m in meetings(test, where, steps, ended, lambda: None, ordered=True) if m.misuse is None]
    orders = [(frozenset(m.phases.items()), chain_of(m, by_id)) for m in found]
    assert set(orders) == wanted.orders, f"seed {seed}"
    for m, ordered in zip(found[:20], orders, strict=False):
        same = meetings(test, where, steps, ended, lambda: None, dict(m.phases), tokens=dict(m.tokens), order=m.order)
        assert {(frozenset(x.phases.items()), chain_of(x, by_id)) for x in same} == {ordered}, f"seed {seed}"


def chain_of(m: Meeting, steps: dict[EventId, Step]) -> Chain:
    chained = [s for s in (steps[i] for i in m.order) if s.kind in CHAINED or (s.kind == "mb.wait" and s.number)]
    return chain(chained, {i: p or 0 for i, p in m.phases.items()})


@pytest.mark.parametrize("share", range(4))
def test_random_orders(share: int) -> None:
    for seed in range(share * 75, share * 75 + 75):
        check_order(seed)


@pytest.mark.parametrize("share", range(4))
def test_random_steps(share: int) -> None:
    for seed in range(share * 200, share * 200 + 200):
        check_random(seed)


@pytest.mark.slow
def test_many_random_steps() -> None:
    for seed in range(10_000, 20_000):
        check_random(seed)
