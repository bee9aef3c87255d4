"""Values that come from other threads: barriers with a reduction, exchanges of a warp; and products of matrices."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ptxmm.engines.explicit.witness import Confirmer, Unconfirmed
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.identity import EventId
from tests.random_exchanges import text as random_text
from tests.reference import everything
from tests.support import ENGINES as BOTH
from tests.support import Answer, ask, model_named, parse_one, run

OBJECTS = """
  .global .u32 x = 0;
  .global .u32 y = 0;
  .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4};
  .shared .align 16 .u32 g[4] @ cta 0 = {5, 6, 7, 8};
"""
SET = "setp.eq.u32 q, 0, 0"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {f0, f1, f2, f3}, ra, rb, 1, 1, 1, 0, 0"


def text(*threads: str, warp: bool = True, condition: str = "exists (x == 0)") -> str:
    """A test whose threads are lanes of one warp, or (``warp`` false) each of its own."""
    place = "cta 0, warp 0" if warp else "cta 0"
    blocks = "".join(f"P{i} @ {place} {{ {body}; }}\n" for i, body in enumerate(threads))
    return f"PTX t\n{{{OBJECTS}}}\n{blocks}{condition}\n"


def ends(*threads: str, warp: bool = True) -> list[dict[str, int]]:
    """The final registers of each execution, by ``t:name``."""
    test = parse_one(text(*threads, warp=warp))
    found = run("enumerate", test, model_named("ptx-8.5"), everything(test), Limits())
    for item in found.found:
        Confirmer(test, model_named("ptx-8.5")).confirm(everything(test), item.witness)
    assert not found.undefined and not found.deadlock
    return [{f"{t}:{name}": v for (t, name), v in item.state.registers.items()} for item in found.found]


def answer(*threads: str, warp: bool = True) -> Answer:
    return ask("enumerate", parse_one(text(*threads, warp=warp)), model_named("ptx-8.5"))


def lanes(count: int, body: str) -> list[str]:
    """The same code for each lane; ``#`` is the number of the lane, ``@@`` 10 more than it."""
    return [body.replace("#", str(i)).replace("@@", str(10 + i)) for i in range(count)]


@pytest.mark.parametrize(
    ("mode", "b", "c", "expected"),
    [
        ("idx", 2, 31, [(12, 1)] * 4),
        ("up", 1, 0, [(10, 0), (10, 1), (11, 1), (12, 1)]),
        ("down", 1, 3, [(11, 1), (12, 1), (13, 1), (13, 0)]),
        ("bfly", 1, 31, [(11, 1), (10, 1), (13, 1), (12, 1)]),
        ("bfly", 2, 1, [(10, 0), (11, 0), (10, 1), (11, 1)]),
        ("idx", 1, 0x1E00 | 1, [(11, 1), (11, 1), (13, 1), (13, 1)]),  # halves of two lanes
        ("idx", 33, 31, [(11, 1)] * 4),  # only five bits count
    ],
)
def test_shuffles(mode: str, b: int, c: int, expected: list[tuple[int, int]]) -> None:
    (end,) = ends(*lanes(4, f"shfl.sync.{mode}.b32 a|p, @@, {b}, {c}, 0xf; selp.u32 c, 1, 0, p"))
    assert [(end[f"{i}:a"], end[f"{i}:c"]) for i in range(4)] == expected


def test_votes_and_matches() -> None:
    body = (
        "setp.ge.u32 q, #, 1; vote.sync.all.pred a, q, 0x7; vote.sync.any.pred b, q, 7; vote.sync.uni.pred c, !q, 7; "
        "vote.sync.ballot.b32 d, q, 0xffffffff; selp.u32 e, 3, 4, q; match.any.sync.b32 f, e, 7; "
        "match.all.sync.b32 k|l, e, 7; match.all.sync.b32 m|n, 9, 7"
    )
    (end,) = ends(*lanes(3, body))
    assert [end[f"{i}:{r}"] for i in range(3) for r in "abcd"] == [0, 1, 0, 0b110] * 3
    assert [end[f"{i}:f"] for i in range(3)] == [0b001, 0b110, 0b110]
    assert [end[f"{i}:{r}"] for i in range(3) for r in "klmn"] == [0, 0, 0b111, 1] * 3


def test_reductions_of_a_warp() -> None:
    body = "sub.u32 v, #, 1; " + "; ".join(
        f"redux.sync.{op}.{t} r{i}, v, 3"
        for i, (op, t) in enumerate(
            [("add", "u32"), ("min", "s32"), ("min", "u32"), ("max", "u32"), ("and", "b32"), ("xor", "b32")]
        )
    )
    (end,) = ends(*lanes(2, body))
    ones = 0xFFFFFFFF
    assert [end[f"1:r{i}"] for i in range(6)] == [ones, ones, 0, ones, 0, ones]


def test_leaders_and_masks() -> None:
    (end,) = ends(*lanes(2, "elect.sync r|p, 3; activemask.b32 m"))
    assert [end[f"{i}:{r}"] for i in range(2) for r in "rpm"] == [0, 1, 3, 0, 0, 3]
    (end,) = ends("elect.sync _|p, 0xffffffff; activemask.b32 m", warp=False)
    assert (end["0:p"], end["0:m"]) == (1, 0xFFFFFFFF)


def test_barriers_count_whole_warps_or_lanes() -> None:
    body = (
        "setp.eq.u32 q, #, 1; barrier.red.popc.u32 r, 0, q; barrier.red.and.pred a, 0, q; barrier.red.or.pred b, 0, !q"
    )
    (end,) = ends(*lanes(2, body), warp=False)
    assert [end[f"{i}:{r}"] for i in range(2) for r in "rab"] == [32, 0, 1] * 2
    (end,) = ends(*lanes(2, body))
    assert [end[f"{i}:{r}"] for i in range(2) for r in "rab"] == [1, 0, 1] * 2


def test_lanes_that_have_ended_give_nothing() -> None:
    (end,) = ends("setp.eq.u32 q, 0, 0; vote.sync.all.pred a, !q, 3; redux.sync.add.u32 r, 5, 3", "mov.u32 r, 1")
    assert (end["0:a"], end["0:r"]) == (0, 5)
    found = answer("shfl.sync.idx.b32 r, 1, 1, 31, 3", "mov.u32 r, 1")
    assert found.undefined and not found.states


MASKED = (
    "bar.warp.sync MASK", "shfl.sync.bfly.b32 r, 1, 0, 31, MASK", "vote.sync.all.pred p, q, MASK",
    "vote.sync.ballot.b32 r, q, MASK", "match.any.sync.b32 r, 1, MASK", "match.all.sync.b32 r|p, 1, MASK",
    "redux.sync.add.u32 r, 1, MASK", "elect.sync r|p, MASK",
)  # fmt: skip
"""The instructions with a membermask (9.7.10.6, 9.7.14.2, .9, .10, .12, .14)."""


@pytest.mark.parametrize("engine", BOTH)
@pytest.mark.parametrize("code", MASKED)
def test_membermasks(code: str, engine: str) -> None:
    """A thread that is not in its own mask is undefined, wherever the mask comes from. Threads wait for others with the
    same mask only, until these exit."""

    def said(*masks: str, warp: bool = True, after: str = "") -> Answer:
        bodies = [f"{SET}; mov.u32 m, 1; {code.replace('MASK', mask)}{after}" for mask in masks]
        return ask(engine, parse_one(text(*bodies, warp=warp)), model_named("ptx-8.5"))

    for masks in (("3", "1"), ("2", "2"), ("0", "3"), ("m", "m")):
        assert said(*masks).undefined, masks
    assert said("2", warp=False).undefined  # a thread alone in its warp is lane 0
    assert said("1", warp=False).states and not said("1", warp=False).undefined
    assert said("3", "3").states and not said("3", "3").undefined
    other = said("3", "2", after="; barrier.sync 0")
    assert (other.states, other.deadlock, other.undefined) == (frozenset(), True, False)


def test_misuse_and_deadlock() -> None:
    for code in ("shfl.sync.idx.b32 r, 1, 2, 31, 7", "shfl.sync.idx.b32 r, 1, 1, 31, 1", "vote.sync.any.pred q, q, 2"):
        assert answer(f"{SET}; {code}").undefined
    found = answer("redux.sync.add.u32 r, 5, 3", "redux.sync.add.s32 r, 5, 3")
    assert found.deadlock and not found.undefined and not found.states
    found = answer(f"{SET}; vote.sync.any.pred q, q, 3", "bar.warp.sync 3")
    assert found.deadlock and not found.states
    mixed = f"{SET}; barrier.red.popc.u32 r, 0, q", f"{SET}; barrier.red.or.pred q, 0, q"
    assert answer(*mixed, warp=False).undefined


def test_what_is_made_of_a_value_depends_on_it() -> None:
    """Load buffering through a shuffle: no value comes out of thin air, and the order is kept."""
    load, give = "ld.relaxed.gpu.global.u32 r, [{}]", "shfl.sync.idx.b32 v, r, {}, 31, 3"
    first = f"{load.format('x')}; {give.format(1)}; st.relaxed.gpu.global.u32 [x], v"
    second = f"{load.format('y')}; {give.format(0)}; st.relaxed.gpu.global.u32 [y], v"
    assert ends(first, second) == [{"0:r": 0, "0:v": 0, "1:r": 0, "1:v": 0}]


def test_a_confirmed_value_is_that_of_the_exchange() -> None:
    test = parse_one(text(*lanes(2, "ld.global.u32 r, [x]; shfl.sync.bfly.b32 v, r, 1, 31, 3; st.global.u32 [y], v")))
    model, what = model_named("ptx-8.5"), everything(test)
    (found,) = run("enumerate", test, model, what, Limits()).found
    assert Confirmer(test, model).confirm(what, found.witness).registers[0, "v"] == 0
    wrong = {**found.witness.values, EventId(0, 1): 5}
    with pytest.raises(Unconfirmed):
        Confirmer(test, model).confirm(what, replace(found.witness, values=wrong))


@pytest.mark.parametrize("share", range(4))
def test_random_programs(share: int) -> None:
    for seed in range(share * 40, share * 40 + 40):
        test = parse_one(random_text(seed))
        first, second = (ask(engine, test, model_named("ptx-8.5")) for engine in BOTH)
        assert first.comparable() == second.comparable(), f"seed {seed}\n{random_text(seed)}"


# Matrices.


def product(before: str, after: str = "", registers: str = "mov.u64 ra, s; mov.u64 rb, g") -> list[int]:
    """What a product sees of the first word of its matrix B, which is written before it."""
    body = f"{registers}; {before}; {PRODUCT}; {after}mov.b32 r, 0"
    return sorted({end["0:f0"] for end in ends(body, warp=False)})


def test_a_product_reads_in_the_async_proxy() -> None:
    write = "st.shared.u32 [g], 9"
    assert product(f"{write}; wgmma.fence.sync.aligned") == [5, 9]
    assert product(f"{write}; fence.proxy.async; wgmma.fence.sync.aligned") == [9]
    assert product(f"wgmma.fence.sync.aligned; {write}; fence.proxy.async") == [9]
    assert product(f"fence.proxy.async; wgmma.fence.sync.aligned; {write}") == [5, 9]
    done = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.shared.u32 [g], 9; "
    assert product("wgmma.fence.sync.aligned", done) == [5]
    assert product("wgmma.fence.sync.aligned", "st.shared.u32 [g], 9; ") == [5, 9]


def test_descriptors_are_multiples_of_16() -> None:
    for offset in (0, 8):
        registers = f"mov.u64 ra, s; mov.u64 rb, g; add.u64 rb, rb, {offset}"
        found = answer(f"{registers}; wgmma.fence.sync.aligned; {PRODUCT}", warp=False)
        assert found.undefined == (offset == 8)
    assert answer(f"mov.u64 ra, s; mov.u64 rb, 64; {PRODUCT}", warp=False).undefined


def test_rows_of_matrices() -> None:
    code = "ldmatrix.sync.aligned.m8n8.x2{}.shared.b16 {{r, q}}, [s]"
    (end,) = ends(code.format(""), warp=False)
    assert (end["0:r"], end["0:q"]) == (1, 1)
    (end,) = ends(code.format(".trans"), warp=False)
    assert end["0:r"] == 0x10001
    store = "mov.u32 r, 9; stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {r}; ld.shared.u32 q, [s+12]"
    (end,) = ends(store, warp=False)
    assert end["0:q"] == 9
    for refused in (code.format(""), store):
        with pytest.raises(PtxmmError, match="warp with a name is not supported"):
            ends(refused)
    with pytest.raises(PtxmmError, match="more than one matrix"):
        ends("mov.u32 r, 9; stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {r, r}", warp=False)


# What is undefined.


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("mov.u64 a, s; add.u64 a, a, 2; ld.shared.u32 r, [a]", "misaligned access (address 0x"),
        ("mov.u64 a, s; add.u64 a, a, 4; st.shared.v2.u32 [a], {1, 2}", "misaligned access (address 0x"),
        ("mov.u64 a, s; add.u64 a, a, 2; atom.shared.add.u32 r, [a], 1", "misaligned access (address 0x"),
        (
            "mov.u64 a, s; add.u64 a, a, 8; cp.async.bulk.global.shared::cta.bulk_group [h], [a], 16",
            "access outside every object (address 0x",
        ),
        (
            "mov.u64 a, t; add.u64 a, a, 8; cp.async.bulk.global.shared::cta.bulk_group [h], [a], 16",
            "misaligned access (address 0x",
        ),
        (
            "mov.u32 n, 8; cp.async.bulk.global.shared::cta.bulk_group [h], [s], n",
            "a bulk copy of 8 bytes, which is no multiple of 16",
        ),
        ("mov.u32 n, 8; cp.async.ca.shared.global [s], [h], 4, n", "cp.async reads 8 bytes of 4"),
    ],
)
def test_undefined_accesses(code: str, reason: str) -> None:
    more = " .global .align 16 .u32 h[4] = {0}; .shared .align 16 .u32 t[8] @ cta 0 = {0};"
    test = parse_one(text(code, warp=False).replace("PTX t\n{", "PTX t\n{" + more))
    found = run("enumerate", test, model_named("ptx-8.5"), everything(test), Limits())
    assert found.undefined is not None and f": {reason}" in found.undefined and not found.found


def test_a_copy_of_nothing_has_no_accesses_and_completes() -> None:
    code = (
        "mov.u32 n, 0; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [h], n, [b]; "
        "mbarrier.arrive.shared.b64 _, [b]; mbarrier.try_wait.parity.shared.b64 p, [b], 0; ld.shared.u32 r, [s]"
    )
    more = " .global .align 16 .u32 h[4] = {0}; .shared .b64 b @ cta 0 = mbarrier(1);"
    test = parse_one(text(code, warp=False).replace("PTX t\n{", "PTX t\n{" + more))
    found = ask("enumerate", test, model_named("ptx-8.5"))
    assert len(found.states) == 1 and not found.undefined


LATER = """PTX t
{ .global .u32 x = 0; }
P0 @ cta 0, warp 0 {
  ld.relaxed.gpu.global.u32 r1, [x];
  shfl.sync.idx.b32 r2|p2, r1, r1, 31, 3;
}
P1 @ cta 0, warp 0 {
  shfl.sync.idx.b32 r2|p2, 5, 1, 31, 3;
  st.relaxed.gpu.global.u32 [x], 2;
}
exists (x == 2)
"""


@pytest.mark.parametrize("engine", ["solve", "enumerate"])
def test_what_comes_after_a_misuse_is_no_reason_for_it(engine: str) -> None:
    """Lane 2, which is not there, could only be read from a store that comes after the shuffle; before it, it can."""
    test = parse_one(LATER)
    found = run(engine, test, model_named("ptx-8.5"), everything(test), Limits())
    assert found.undefined is None and len(found.found) == 1
    first = parse_one(LATER.replace("  shfl.sync.idx.b32 r2|p2, 5, 1, 31, 3;\n", "").replace(
        "[x], 2;", "[x], 2;\n  shfl.sync.idx.b32 r2|p2, 5, 1, 31, 3;"))  # fmt: skip
    found = run(engine, first, model_named("ptx-8.5"), everything(first), Limits())
    assert found.undefined is not None and "shfl from lane 2, which takes no part" in found.undefined
