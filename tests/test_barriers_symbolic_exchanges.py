"""Barriers with a reduction and exchanges in a warp on the symbolic side: what they return, and what depends on it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from ptxmm import cat
from ptxmm.engines.result import Limits, Search
from ptxmm.engines.symbolic.solve import search
from ptxmm.events.symbolic.barriers.lanes import source_lane
from ptxmm.formats.litmus import parse
from tests.reference import everything


def solved(text: str, *, unroll: int = 3, dep: str = "value") -> Search:
    """All final states."""
    test = parse(text, "test.litmus")[0]
    return search(test, cat.load("ptx-8.5", {"dep": dep}), everything(test), Limits(unroll=unroll))


def threads(*bodies: str, places: str = "@ warp 0, cta 0", declarations: str = "") -> str:
    text = "".join(f" P{i} {places} {{ {body} }}\n" for i, body in enumerate(bodies))
    return f"PTX t\n{{ .global .u32 x = 0; .global .u32 y = 0; {declarations} }}\n{text}"


def values(result: Search, *names: str) -> set[tuple[int, ...]]:
    """The values of registers, as P0:r, in the final states."""
    keys = [(int(n[1 : n.index(":")]), n.partition(":")[2]) for n in names]
    assert result.exhausted and result.undefined is None and not result.deadlock
    return {tuple(f.state.registers[key] for key in keys) for f in result.found}


def one(result: Search, *names: str) -> tuple[int, ...]:
    (found,) = values(result, *names)
    return found


# ---- barriers with a reduction ---------------------------------------------------------------------------------------

RED = "mov.u32 v, {v}; setp.ne.u32 p, v, 0; barrier.red.popc.u32 n, 0, {neg}p; barrier.red.and.pred a, 0, p; \
barrier.red.or.pred o, 0, {neg}p;"


def test_reductions_over_whole_warps() -> None:
    text = threads(*(RED.format(v=v, neg="") for v in (1, 0, 1)), places="@ cta 0")
    assert one(solved(text), *(f"P{i}:{r}" for i in range(3) for r in "nao")) == (64, 0, 1) * 3


def test_reductions_over_the_threads_of_named_warps() -> None:
    text = threads(RED.format(v=1, neg=""), RED.format(v=1, neg="!"))
    assert one(solved(text), *(f"P{i}:{r}" for i in range(2) for r in "nao")) == (1, 1, 1) * 2


def test_reductions_of_negated_predicates() -> None:
    text = threads(RED.format(v=0, neg="!"), RED.format(v=1, neg="!"), places="@ cta 0")
    assert one(solved(text), "P0:n", "P0:a", "P0:o") == (32, 0, 1)


def test_an_exited_thread_contributes_nothing() -> None:
    text = threads(RED.format(v=1, neg=""), "exit;", places="@ cta 0")
    assert one(solved(text), "P0:n", "P0:a", "P0:o") == (32, 1, 1)


def test_a_reduction_of_what_was_read() -> None:
    reader = "ld.relaxed.cta.global.u32 v, [x]; setp.ne.u32 p, v, 0; barrier.red.popc.u32 n, 0, p;"
    text = threads("mov.u32 v, 0; setp.ne.u32 p, v, 0; st.relaxed.cta.global.u32 [x], 1; barrier.red.popc.u32 n, 0, p;",
                   reader, reader, places="@ cta 0")  # fmt: skip
    assert values(solved(text), "P0:n", "P1:n", "P2:n", "P1:v", "P2:v") == {
        (32 * (a + b),) * 3 + (a, b) for a in (0, 1) for b in (0, 1)
    }


def test_a_branch_on_a_reduction() -> None:
    body = (
        "ld.relaxed.cta.global.u32 v, [x]; setp.ne.u32 p, v, 0; barrier.red.or.pred q, 0, p; "
        "@q st.relaxed.cta.global.u32 [y], {n};"
    )
    text = threads("st.relaxed.cta.global.u32 [x], 1; " + body.format(n=1), body.format(n=2), places="@ cta 0")
    result = solved(text)
    assert {(f.state.registers[1, "v"], f.state.memory["y", 0]) for f in result.found} == {
        (v, y) for v in (0, 1) for y in (1, 2)
    }


def test_reductions_do_not_mix() -> None:
    pred = "mov.u32 v, 1; setp.ne.u32 p, v, 0; "
    red = pred + "barrier.red.{op} r, 0, p;"
    both = solved(threads(red.format(op="popc.u32"), red.format(op="and.pred"), places="@ cta 0"))
    assert both.undefined is not None and "two different reductions" in both.undefined
    arrive = solved(threads(pred + "barrier.red.popc.u32 r, 0, 64, p;", "barrier.arrive 0, 64;", places="@ cta 0"))
    assert arrive.undefined is not None and "plain" in arrive.undefined
    after = solved(threads(red.format(op="popc.u32") + " barrier.sync 0;", "barrier.sync 0; barrier.sync 0;",
                           places="@ cta 0"))  # fmt: skip
    assert after.undefined is not None


def test_a_reduction_waits() -> None:
    text = threads(RED.format(v=1, neg=""), "barrier.sync 1;", places="@ cta 0")
    assert solved(text).deadlock


# ---- shuffles --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "b", "c", "source"),
    [
        ("up", 1, 0, {0: (0, False), 1: (0, True), 31: (30, True)}),
        ("down", 2, 31, {0: (2, True), 29: (31, True), 30: (30, False), 31: (31, False)}),
        ("bfly", 1, 31, {0: (1, True), 7: (6, True)}),
        ("idx", 5, 31, {0: (5, True), 9: (5, True)}),
        ("idx", 5, 31 | 24 << 8, {0: (5, True), 9: (13, True)}),  # segments of eight lanes
        ("up", 1, 24 << 8, {8: (8, False), 9: (8, True)}),
        ("down", 1, 31 | 24 << 8, {7: (7, False), 6: (7, True)}),
        ("bfly", 8, 31 | 24 << 8, {0: (0, False), 8: (0, True)}),
        ("idx", 5, 3, {0: (0, False), 1: (1, False)}),  # above the clamp
        ("idx", 33, 31, {4: (1, True)}),
    ],
)
def test_source_lanes(mode: str, b: int, c: int, source: dict[int, tuple[int, bool]]) -> None:
    assert {lane: source_lane(mode, lane, b, c) for lane in source} == source


def test_shuffles() -> None:
    body = (
        "mov.u32 v, {v}; shfl.sync.up.b32 a|p, v, 1, 0, 7; shfl.sync.down.b32 b|q, v, 1, 2, 7; "
        "shfl.sync.idx.b32 c, v, 2, 31, 7;"
    )
    result = solved(threads(*(body.format(v=v) for v in (5, 6, 7))))
    assert one(result, *(f"P{i}:{r}" for i in range(3) for r in "apbqc")) == (
        5, 0, 6, 1, 7,
        5, 1, 7, 1, 7,
        6, 1, 7, 0, 7,
    )  # fmt: skip


def test_shuffles_one_after_the_other() -> None:
    body = (
        "mov.u32 v, {v}; shfl.sync.bfly.b32 a, v, 1, 31, 15; add.u32 v, v, a; "
        "shfl.sync.bfly.b32 a, v, 2, 31, 15; add.u32 v, v, a;"
    )
    result = solved(threads(*(body.format(v=1 << i) for i in range(4))))
    assert one(result, *(f"P{i}:v" for i in range(4))) == (15,) * 4


def test_a_sum_of_what_four_lanes_read() -> None:
    body = (
        "ld.relaxed.cta.global.u32 v, [x]; shfl.sync.bfly.b32 a, v, 1, 31, 15; add.u32 v, v, a; "
        "shfl.sync.bfly.b32 a, v, 2, 31, 15; add.u32 v, v, a;"
    )
    text = threads(*[body] * 4) + " P4 @ cta 1 { st.relaxed.gpu.global.u32 [x], 1; }\n"
    assert values(solved(text), *(f"P{i}:v" for i in range(4))) == {(n,) * 4 for n in range(5)}


@pytest.mark.parametrize("lane", [2, 3])
def test_a_shuffle_from_a_lane_that_is_not_there(lane: int) -> None:
    body = f"mov.u32 v, 1; shfl.sync.idx.b32 a, v, {lane}, 31, {{mask}};"
    result = solved(threads(*[body.format(mask=11)] * 2))
    assert result.undefined is not None and f"shfl from lane {lane}" in result.undefined and not result.found


def test_a_shuffle_from_a_lane_that_has_exited() -> None:
    result = solved(threads("mov.u32 v, 1; shfl.sync.idx.b32 a, v, 1, 31, 3;", "exit;"))
    assert result.undefined is not None and "shfl from lane 1" in result.undefined and not result.deadlock
    assert one(solved(threads("mov.u32 v, 9; shfl.sync.idx.b32 a, v, 0, 31, 3;", "exit;")), "P0:a") == (9,)


def test_a_shuffle_waits_for_the_other_lanes() -> None:
    shuffle = "mov.u32 v, 1; shfl.sync.idx.b32 a, v, 0, 31, 3;"
    assert solved(threads(shuffle, "barrier.sync 1, 64;")).deadlock
    assert (
        solved(
            threads(
                shuffle,
                "mov.u32 v, 1; shfl.sync.up.b32 a, v, 0, 31, 3;",
            )
        ).undefined
        is None
    )
    other = solved(
        threads(
            shuffle,
            shuffle.replace("idx", "down"),
        )
    )
    assert not other.found and other.deadlock


def test_own_lane_not_in_the_mask() -> None:
    result = solved(
        threads("mov.u32 v, 1; shfl.sync.idx.b32 a, v, 1, 31, 2;", "mov.u32 v, 1; shfl.sync.idx.b32 a, v, 1, 31, 2;")
    )
    assert result.undefined is not None and "not in its own mask" in result.undefined


def test_a_thread_alone_is_lane_0() -> None:
    result = solved(threads("mov.u32 v, 4; shfl.sync.idx.b32 a|p, v, 0, 31, 0xffffffff;", places="@ cta 0"))
    assert one(result, "P0:a", "P0:p") == (4, 1)


# ---- the other exchanges ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", list(itertools.product((0, 1), repeat=3)))
def test_votes(bits: tuple[int, ...]) -> None:
    body = (
        "mov.u32 v, {v}; setp.ne.u32 p, v, 0; vote.sync.all.pred a, p, 7; vote.sync.any.pred b, p, 7; "
        "vote.sync.uni.pred c, p, 7; vote.sync.ballot.b32 d, p, 7; vote.sync.ballot.b32 e, !p, 7;"
    )
    result = solved(threads(*(body.format(v=v) for v in bits)))
    ballot = sum(b << i for i, b in enumerate(bits))
    wanted = (int(all(bits)), int(any(bits)), int(len(set(bits)) == 1), ballot, 7 ^ ballot)
    assert one(result, *(f"P{i}:{r}" for i in range(3) for r in "abcde")) == wanted * 3


def test_matches() -> None:
    body = "mov.u32 v, {v}; match.any.sync.b32 a, v, 7; match.all.sync.b32 b|p, v, 7;"
    result = solved(threads(*(body.format(v=v) for v in (4, 9, 4))))
    assert one(result, *(f"P{i}:a" for i in range(3)), "P0:b", "P0:p") == (5, 2, 5, 0, 0)
    same = solved(threads(*(body.format(v=4) for _ in range(3))))
    assert one(same, "P0:a", "P1:b", "P2:p") == (7, 7, 1)


def test_reductions_in_a_warp() -> None:
    body = (
        "mov.u32 v, {v}; redux.sync.add.u32 a, v, 7; redux.sync.min.s32 b, v, 7; redux.sync.max.u32 c, v, 7; "
        "redux.sync.xor.b32 d, v, 7;"
    )
    result = solved(threads(*(body.format(v=v) for v in (1, 4294967295, 6))))
    assert one(result, "P1:a", "P1:b", "P1:c", "P1:d") == (6, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFF8)


def test_leaders_and_active_lanes() -> None:
    body = "elect.sync l|p, 6; activemask.b32 a;"
    result = solved(threads("activemask.b32 a;", body, body))
    assert one(result, "P1:l", "P1:p", "P2:l", "P2:p", "P0:a") == (1, 1, 1, 0, 7)
    assert one(solved(threads("activemask.b32 a;", places="@ cta 0")), "P0:a") == (0xFFFFFFFF,)


def test_an_exchange_under_a_predicate() -> None:
    body = "mov.u32 v, {v}; setp.ne.u32 p, v, 0; mov.u32 a, 8; @p shfl.sync.idx.b32 a, v, 1, 31, 6;"
    result = solved(threads(*(body.format(v=v) for v in (0, 5, 6))))
    assert one(result, "P0:a", "P1:a", "P2:a") == (8, 5, 5)


# ---- dependencies ----------------------------------------------------------------------------------------------------


def load_buffering(given: str, taken: str) -> Search:
    """P1 stores 1 in what ends in a dependency on what it gets; P2 stores 1 in what depends on what it reads (under
    ``dep=sem``, whatever the values)."""
    one_more = "min.u32 t, r, 0; add.u32 t, t, 1;"
    return solved(
        threads(f"ld.relaxed.gpu.global.u32 v, [x]; {given}", f"{taken} {one_more} st.relaxed.gpu.global.u32 [y], t;")
        + f" P2 @ cta 1 {{ ld.relaxed.gpu.global.u32 r, [y]; {one_more} st.relaxed.gpu.global.u32 [x], t; }}\n",
        dep="sem",
    )


def test_a_value_of_another_lane_carries_its_dependency() -> None:
    give = "shfl.sync.idx.b32 r, v, {lane}, 31, 3;"
    found = load_buffering(give.format(lane=0), "mov.u32 v, 0; " + give.format(lane=0))
    assert values(found, "P0:v", "P2:r") == {(0, 0), (0, 1), (1, 0)}
    own = load_buffering(give.format(lane=1), "mov.u32 v, 0; " + give.format(lane=1))
    assert values(own, "P0:v", "P2:r") == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_dependency_through_two_exchanges() -> None:
    found = load_buffering(
        "shfl.sync.idx.b32 w, v, 0, 31, 3; setp.ne.u32 p, v, 0; vote.sync.ballot.b32 w, p, 3;",
        "mov.u32 v, 0; shfl.sync.idx.b32 v, v, 0, 31, 3; setp.ne.u32 p, v, 0; vote.sync.ballot.b32 r, p, 3;",
    )
    assert values(found, "P0:v", "P2:r") == {(0, 0), (0, 1), (1, 0)}


def test_a_control_dependency_on_a_value_of_another_lane() -> None:
    vote = "setp.ge.u32 p, v, 0; vote.sync.all.pred q, p, 3;"
    body = threads(
        f"ld.relaxed.gpu.global.u32 v, [x]; {vote}",
        f"mov.u32 v, 0; {vote} @q st.relaxed.gpu.global.u32 [y], 1;",
    )
    text = body + " P2 @ cta 1 { ld.relaxed.gpu.global.u32 r, [y]; st.relaxed.gpu.global.u32 [x], r; }\n"
    assert values(solved(text, dep="sem"), "P0:v", "P2:r") == {(0, 0), (0, 1)}


def test_values_that_would_grow_for_ever() -> None:
    """Each lane adds one to what the other has read: values come only from chains of distinct writes."""
    body = (
        "ld.relaxed.gpu.global.u32 v, [x]; shfl.sync.bfly.b32 r, v, 1, 31, 3; add.u32 r, r, 1; "
        "st.relaxed.gpu.global.u32 [x], r;"
    )
    found = values(solved(threads(body, body)), "P0:v", "P1:v")
    assert found == {(0, 0)}  # each read comes before the shuffle, and both writes after it


def test_a_loop_around_an_exchange() -> None:
    body = "mov.u32 i, 0; again: add.u32 i, i, 1; shfl.sync.bfly.b32 r, i, 1, 31, 3; setp.lt.u32 p, r, 3; @p bra again;"
    assert one(solved(threads(body, body)), "P0:i", "P1:i") == (3, 3)


# ---- what needs a result before it is known --------------------------------------------------------------------------


def test_a_result_decides_which_barrier_comes_next() -> None:
    body = "mov.u32 v, {v}; shfl.sync.idx.b32 a, v, 1, 31, 3; barrier.sync a;"
    result = solved(threads(body.format(v=2), body.format(v=3)))
    assert one(result, "P0:a", "P1:a") == (3, 3)


def test_a_token_decides_how_often_a_thread_arrives() -> None:
    text = threads(
        "mbarrier.arrive.shared::cta.b64 t, [b]; mbarrier.pending_count.b64 c, t; sub.u32 c, c, 1; "
        "mbarrier.arrive.shared::cta.b64 _, [b], c;",
        places="@ cta 0",
        declarations=".shared .b64 b @ cta 0 = mbarrier(3);",
    )
    result = solved(text)
    assert one(result, "P0:c") == (2,) and result.found[0].state.memory["b", 0] == 1


def test_a_result_that_owes_its_value_to_who_reads_it() -> None:
    """P0 counts 1 only if P1 has exited, which it does only if it reads that 1: out of thin air (8.10.4)."""
    text = threads(
        "mov.u32 v, 1; setp.ne.u32 p, v, 0; barrier.red.popc.u32 r, 0, p; st.relaxed.cta.global.u32 [x], r;",
        "ld.relaxed.cta.global.u32 v, [x]; setp.eq.u32 p, v, 1; @p exit; barrier.red.popc.u32 r, 0, !p;",
    )
    assert values(solved(text), "P0:r", "P1:v") == {(2, 0)}


# ---- random exchanges against a plain calculation --------------------------------------------------------------------

WORD = (1 << 32) - 1


def random_exchange(rng: random.Random, lanes: int) -> tuple[str, Callable[[list[int]], list[int] | None]]:
    """An exchange that puts its result into r, and what it makes of the values of v; None: undefined."""
    mask = (1 << lanes) - 1
    kind = rng.choice(("shfl", "shfl", "shfl", "vote", "match", "redux"))
    if kind == "shfl":
        mode, b, c = rng.choice(("up", "down", "bfly", "idx")), rng.randrange(4), rng.choice((0, 1, 31, 31 | 30 << 8))

        def shuffle(vs: list[int]) -> list[int] | None:
            sources = [source_lane(mode, lane, b, c)[0] for lane in range(lanes)]
            return None if max(sources) >= lanes else [vs[source] for source in sources]

        return f"shfl.sync.{mode}.b32 r, v, {b}, {c}, {mask};", shuffle
    if kind == "vote":
        mode = rng.choice(("all", "any", "uni"))
        choose: dict[str, Callable[[list[bool]], bool]]
        choose = {"all": all, "any": any, "uni": lambda bits: len(set(bits)) == 1}
        text = f"setp.gt.u32 p, v, 1; vote.sync.{mode}.pred p, p, {mask}; selp.u32 r, 1, 0, p;"
        return text, lambda vs: [int(choose[mode]([v > 1 for v in vs]))] * lanes
    if kind == "match":
        return (
            f"match.any.sync.b32 r, v, {mask};",
            lambda vs: [sum(1 << i for i, other in enumerate(vs) if other == v) for v in vs],
        )
    op = rng.choice(("add", "min", "max"))
    reduced: dict[str, Callable[[list[int]], int]]
    reduced = {"add": lambda vs: sum(vs) & WORD, "min": min, "max": max}
    return f"redux.sync.{op}.u32 r, v, {mask};", lambda vs: [reduced[op](vs)] * lanes


@pytest.mark.parametrize("seed", range(40))
def test_random_exchanges(seed: int) -> None:
    rng = random.Random(f"exchanges/{seed}")
    lanes = rng.choice((2, 2, 3))
    steps = [random_exchange(rng, lanes) for _ in range(rng.choice((1, 2, 2)))]
    adds = [rng.random() < 0.5 for _ in steps]
    texts = [
        text + (" add.u32 v, v, r;" if add else " mov.u32 v, r;") for (text, _), add in zip(steps, adds, strict=True)
    ]
    bodies = [f"ld.relaxed.gpu.global.u32 v, [x]; add.u32 v, v, {lane}; {' '.join(texts)}" for lane in range(lanes)]
    result = solved(threads(*bodies) + f" P{lanes} @ cta 1 {{ st.relaxed.gpu.global.u32 [x], 1; }}\n")
    expected: set[tuple[int, ...]] = set()
    undefined = False
    for read in itertools.product((0, 1), repeat=lanes):
        values_now: list[int] = [lane + r for lane, r in enumerate(read)]
        for (_, function), add in zip(steps, adds, strict=True):
            returned = function(values_now)
            if returned is None:
                undefined = True
                break
            values_now = [(v + r) & WORD if add else r for v, r in zip(values_now, returned, strict=True)]
        else:
            expected.add(tuple(values_now))
    assert (result.undefined is not None) == undefined
    if not undefined:
        assert values(result, *(f"P{i}:v" for i in range(lanes))) == expected
