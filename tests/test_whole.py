"""Whole launches: the answer is that of the engines, for every kernel that is followed; and the parts alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm.analysis.races import RacesResult, races
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.events.explicit.values import arithmetic
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.formats.modules.special import special_values
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import source_types
from ptxmm.whole.analysis import whole
from ptxmm.whole.execution.values import Value, computed
from ptxmm.whole.order.clocks import NOTHING, Clocks, Release
from ptxmm.whole.order.conflicts import Accesses, unordered
from ptxmm.whole.order.strong import ALL, CTA, WEAK
from ptxmm.whole.order.trace import ATOMIC, GENERIC, READ, WRITE
from ptxmm.whole.result import WholeResult
from tests import random_looks, random_loops, random_whole
from tests.commands import Run
from tests.kernels import answered
from tests.support import model_named

CUDA = Path(__file__).parent / "cuda"
GOLDEN = CUDA.parent / "golden"


def answer(path: Path, text: str, seconds: float = 20) -> WholeResult:
    path.write_text(text)
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + seconds))


def among(text: str, found: WholeResult, every: RacesResult) -> bool:
    """Whether each race that is found is one of ``every``. What reads a flag before a loop and in it is one thing to
    the engines, so instructions are told apart by their text."""
    lines = text.split("\n")

    def pairs(result: WholeResult | RacesResult) -> set[frozenset[str]]:
        return {frozenset(lines[end.line - 1].strip() for end in (r.first, r.second)) for r in result.races}

    return pairs(found) <= pairs(every)


def both(path: Path, text: str, seconds: float) -> tuple[WholeResult, RacesResult | None]:
    """The answer about a launch, and what the engine says of all its executions, if there was time."""
    found = answer(path, text)
    (test,) = parse_ptx(text, str(path))
    try:
        every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + seconds))
    except Timeout:
        return found, None
    return found, every


def compare(path: Path, text: str, seconds: float) -> bool:
    """Whether there was time to list all executions of a launch, of which none is other than the answer says."""
    found, every = both(path, text, seconds)
    if every is None or every.status == "timeout":
        return False
    match found.answer:
        case "race-free":
            # A value that is shuffled from a lane that has ended is undefined; here nothing uses it.
            lost = [note for note in every.notes if "shfl from lane" in note.text and "takes no part" in note.text]
            assert (every.race_free is True and every.status == "complete") or lost, text
        case "race":
            assert among(text, found, every), text
        case "deadlock" | "undefined" if " f = {" not in text:
            # What is wrong is wrong in every execution, if it does not race before.
            assert every.race_free is not True, text
        case _:
            pass
    return True


@pytest.mark.parametrize(
    ("make", "count", "least"),
    [
        (random_whole.kernel, 18, 14),
        (random_whole.warps, 20, 14),
        (random_whole.flags, 30, 24),
        (random_whole.counters, 12, 8),
        (random_whole.clusters, 18, 13),
        (random_looks.looks, 24, 20),
        (random_loops.loops, 15, 8),
    ],
)
def test_random_kernels(make: random_whole.Maker, count: int, least: int, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 5) for seed in range(count)) >= least


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        random_whole.kernel,
        random_whole.warps,
        random_whole.flags,
        random_whole.counters,
        random_whole.clusters,
        random_looks.looks,
        random_loops.loops,
    ],
)
def test_many_random_kernels(make: random_whole.Maker, tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 20) for seed in range(10_000 + shift, 10_500 + shift)) >= 400


RACES = {
    "changed_flag",  # it is right in the executions that its condition is about
    "softmax_rows",  # its own launch is about lane 0 of each warp: all lanes of a warp write one element
}
"""Right kernels that race if all threads of their launch are there."""
OTHER_CLAIMS = {"cluster_histogram"}
"""Right kernels whose condition is about the threads that the launch names."""
_WORDS = {True: "yes", False: "no", None: "unknown"}
NO_RACES = {  # another box; volatile accesses; another variable; volatile ones; elements in no order; strong ones
    "tma_tile.wrong_swapped", "warp_reduction.wrong_no_syncwarp", "managed_flag.wrong_device_data",
    "last_block_collective.wrong_block_fence", "mp_packed_flag.wrong_vector", "atomic_max_cas.wrong_store",
    "packet_channel.wrong_old_packet",
}  # fmt: skip
"""Wrong kernels without a race."""


def told(path: Path) -> str:
    """The answer about a kernel of tests/cuda with all threads of its launch, what depends on the schedule, and the
    verdicts on its claims; no right one is wrong, no wrong one free of races."""
    lines = []
    for _, found in answered(path):
        assert found.holds is None or found.holds is (found.answer == "race-free")
        wrong = ".wrong_" in path.stem
        assert wrong or found.holds is not False or path.stem in RACES, (path.stem, found.answer)
        assert not wrong or found.answer != "race-free" or path.stem in NO_RACES, path.stem
        claims = {claim.quantifier: claim.holds for claim in found.claims}
        assert wrong or path.stem in OTHER_CLAIMS or False not in claims.values() or found.holds is False, path.stem
        words = (f"; {name}: {_WORDS[holds]}" for name, holds in claims.items())
        choice = f" ({found.choice.kind})" if found.choice else ""
        lines.append(f"{path.stem} {found.answer}{choice}{''.join(words)}\n")
    return "".join(lines)


def test_some_kernels() -> None:
    known = (GOLDEN / "whole-kernels.txt").read_text().splitlines(keepends=True)
    for path in sorted(CUDA.glob("*.ptx"))[::3]:
        assert told(path) == "".join(line for line in known if line.partition(" ")[0] == path.stem)


@pytest.mark.slow
def test_kernels(golden: Callable[[str, str], None]) -> None:
    golden("whole-kernels.txt", "".join(map(told, sorted(CUDA.glob("*.ptx")))))


@given(grid=st.tuples(*[st.integers(1, 3)] * 3), block=st.tuples(*[st.integers(1, 5)] * 3), cluster=st.booleans())
@settings(max_examples=30, deadline=None)
def test_special_registers_are_of_the_cta_or_of_the_thread(
    grid: tuple[int, int, int], block: tuple[int, int, int], cluster: bool
) -> None:
    """What ``State`` makes of one thread of each CTA and one CTA is what each thread has."""
    launch = Grid(None, grid, block, (grid[0], 1, 1) if cluster else None, 0, (), ())
    first = [special_values(launch, cta, 0) for cta in range(launch.ctas)]
    for cta in range(launch.ctas):
        for thread in range(launch.size):
            found, here = special_values(launch, cta, thread), special_values(launch, 0, thread)
            assert found == {name: first[cta][name] - first[0][name] + here[name] for name in found}


TREE = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {ctas}
// ptxmm: block = {threads}
// ptxmm: args = ["in", "out"]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = {count}, init = 1 }}
// ptxmm: out = {{ type = "u32", count = {ctas} }}
.visible .entry tree(.param .u64 a, .param .u64 b)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<9>;
    .shared .align 16 .b8 s[{bytes}];
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %d3, %r4, 4;
    add.u64 %d4, %d1, %d3;
    ld.global.u32 %r5, [%d4];
    mov.u32 %r6, s;
    mad.lo.u32 %r7, %r1, 4, %r6;
    st.shared.u32 [%r7], %r5;
    bar.sync 0;
L1:
    shr.u32 %r3, %r3, 1;
    setp.ge.u32 %p1, %r1, %r3;
    @%p1 bra L2;
    mad.lo.u32 %r8, %r3, 4, %r7;
    ld.shared.u32 %r9, [%r8];
    ld.shared.u32 %r10, [%r7];
    add.u32 %r10, %r10, %r9;
    st.shared.u32 [%r7], %r10;
L2:
    {barrier}
    setp.gt.u32 %p2, %r3, 1;
    @%p2 bra L1;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra L3;
    ld.shared.u32 %r11, [%r6];
    mul.wide.u32 %d5, %r2, 4;
    add.u64 %d6, %d2, %d5;
    st.global.u32 [%d6], %r11;
L3:
    ret;
}}
"""
"""A sum by a tree in shared memory."""


def tree(threads: int, ctas: int, barrier: str = "bar.sync 0;") -> str:
    return TREE.format(threads=threads, ctas=ctas, count=threads * ctas, bytes=4 * threads, barrier=barrier)


@pytest.mark.parametrize(("threads", "ctas"), [(128, 1), (256, 8)])
def test_a_sum_of_a_whole_block(threads: int, ctas: int, tmp_path: Path) -> None:
    found = answer(tmp_path / "k.ptx", tree(threads, ctas))
    assert (found.answer, found.threads) == ("race-free", threads * ctas)
    found = answer(tmp_path / "k.ptx", tree(threads, ctas, "bar.warp.sync -1;"))
    assert found.answer == "race"
    assert {(race.first.line, race.second.line) for race in found.races} == {(37, 34)}


OPERATIONS = [
    ("add", Type("u", 32)), ("sub", Type("s", 64)), ("mul.lo", Type("u", 32)), ("mul.wide", Type("s", 32)),
    ("mul.wide", Type("u", 16)), ("mad.lo", Type("s", 32)), ("mad.wide", Type("u", 32)), ("mad.wide", Type("s", 16)),
    ("mul.hi", Type("u", 64)), ("and", Type("b", 32)), ("or", Type("b", 64)), ("xor", Type("pred", 1)),
    ("not", Type("pred", 1)), ("not", Type("b", 16)), ("neg", Type("s", 32)), ("shl", Type("b", 32)),
    ("shl", Type("b", 64)), ("shr", Type("u", 32)), ("shr", Type("s", 32)), ("shr", Type("s", 64)),
    ("min", Type("s", 32)), ("min", Type("u", 64)), ("max", Type("s", 16)), ("max", Type("u", 32)),
    ("eq", Type("b", 32)), ("ne", Type("u", 64)), ("lt", Type("s", 32)), ("le", Type("u", 32)), ("gt", Type("s", 64)),
    ("ge", Type("s", 16)), ("abs", Type("s", 32)), ("popc", Type("b", 32)), ("clz", Type("b", 64)),
    ("bfe", Type("u", 32)), ("bfi", Type("b", 32)), ("shf.l.wrap", Type("b", 32)), ("lop3", Type("b", 32)),
]  # fmt: skip
EDGES = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7FFF,
    0x8000,
    0xFFFF,
    1 << 31,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 63,
    (1 << 64) - 1,
]


@pytest.mark.parametrize(("op", "type_"), OPERATIONS, ids=lambda item: item.name if isinstance(item, Type) else item)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_arithmetic_is_that_of_the_interpreter(op: str, type_: Type, data: st.DataObject) -> None:
    """Of many threads at once, whatever lies beyond the width of the type."""
    types = source_types(op, type_) if not arithmetic.is_comparison(op) else (type_, type_)
    numbers = [st.sampled_from(EDGES) | st.integers(0, (1 << 64) - 1)] * len(types)
    drawn = data.draw(st.lists(st.tuples(*numbers), min_size=1))
    rows = [tuple(n & (1 << t.bits) - 1 for n, t in zip(row, types, strict=True)) for row in drawn]
    if op == "lop3":
        rows = [(*row[:-1], row[-1] & 0xFF) for row in rows]
    known = np.array([data.draw(st.booleans()) for _ in rows])
    given_ = [Value(np.array(column, np.uint64), known) for column in zip(*rows, strict=True)]
    found = computed(op, type_, given_)
    for row, sure, word, told in zip(rows, known, found.words, found.known, strict=True):
        assert told == sure
        if sure:
            assert int(word) == arithmetic.compute(op, type_, *row), (row, int(word))


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_neighbours_are_enough(data: st.DataObject) -> None:
    """Some pair of accesses of a cell conflicts and is not ordered iff some neighbours are not."""
    size, ctas = 3, 2
    clocks = Clocks(size * ctas, size)
    rows: list[tuple[int, ...]] = []
    for _ in range(data.draw(st.integers(2, 25))):
        if data.draw(st.integers(0, 2)) == 0:
            first = size * data.draw(st.integers(0, ctas - 1))
            who = sorted(data.draw(st.sets(st.integers(first, first + size - 1), min_size=1)))
            waits = np.array([t for t in who if data.draw(st.booleans())], np.int64)
            clocks.acquire(waits, [clocks.release_all(np.setdiff1d(who, waits))] if len(waits) < len(who) else [])
            clocks.synchronize(waits)
        else:
            thread, cell = data.draw(st.integers(0, size * ctas - 1)), data.draw(st.integers(0, 1))
            kind = data.draw(st.integers(READ, ATOMIC))
            instruction = data.draw(st.integers(int(kind == ATOMIC), 2))
            now = int(clocks.clock[thread]), int(clocks.views(np.array([thread]))[0])
            rows.append((cell, cell, 1, thread, *now, kind, instruction, 0, 0))
    columns = np.array(sorted(rows, key=lambda row: row[0]), np.int64).reshape(-1, 10).T
    found = Accesses(*np.vstack((columns, np.arange(len(rows)))))
    levels = np.array([WEAK, CTA, ALL])
    wrong = set(unordered(found, clocks, levels, np.arange(2), [GENERIC], np.full(len(found), -1)))

    def conflict(a: int, b: int) -> bool:
        if found.cell[a] != found.cell[b] or found.kind[a] == found.kind[b] == READ:
            return False
        near = found.agent[a] // size == found.agent[b] // size
        level = min(found.instruction[a], found.instruction[b])
        return not (level == 2 or (level == 1 and near))

    def ordered(a: int, b: int) -> bool:
        one = [column[[a]] for column in columns]
        return bool(clocks.after(columns[5][[b]], columns[3][[b]], one[3], one[4])[0])

    every = {(a, b) for b in range(len(found)) for a in range(b) if conflict(a, b) and not ordered(a, b)}
    assert wrong <= every
    assert bool(wrong) == bool(every)


class Graph:
    """Base causality order as a graph of steps, beside the clocks of the same operations."""

    def __init__(self, size: int, ctas: int) -> None:
        self.clocks = Clocks(size * ctas, size)
        self.before: list[set[int]] = []
        self.last: dict[int, set[int]] = {}
        self.fences: list[tuple[int, int]] = []
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.releases: list[tuple[Release, int]] = []

    def step(self, agent: int, *after: int) -> int:
        known = {item for step in (*self.last.get(agent, ()), *after) for item in (step, *self.before[step])}
        self.before.append(known)
        self.last[agent] = {len(self.before) - 1}
        return len(self.before) - 1

    def access(self, agent: int, proxy: int) -> None:
        now = int(self.clocks.clock[agent]), int(self.clocks.views(np.array([agent]))[0])
        before = self.last.get(agent, set())
        self.rows.append((self.step(agent), agent, *now, proxy))
        if agent >= self.clocks.threads:  # what it does has no order of its own
            self.last[agent] = before

    def synchronize(self, agents: list[int]) -> None:
        arrivals = [self.step(agent) for agent in agents]
        for agent in agents:
            self.step(agent, *arrivals)
        self.clocks.synchronize(np.array(agents, np.int64))

    def fence(self, agent: int) -> None:
        self.fences.append((self.step(agent), int(self.clocks.cta[agent])))
        self.clocks.fence(np.array([agent]), "surface")

    def release(self, agent: int) -> None:
        before = self.last.get(agent, set())
        own = [row[0] for row in self.rows if row[1] == agent]
        self.releases.append((self.clocks.release(agent), self.step(agent, *own)))
        if agent >= self.clocks.threads:
            self.last[agent] = before

    def acquire(self, agent: int, chosen: list[int]) -> None:
        self.step(agent, *(self.releases[at][1] for at in chosen))
        self.clocks.acquire(np.array([agent]), [self.releases[at][0] for at in chosen])

    def ordered(self, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        """Proxy-preserved base causality order (8.9.5), by its definition."""
        one, other = int(self.clocks.cta[a[1]]), int(self.clocks.cta[b[1]])
        if a[4] == b[4] and (not a[4] or one == other):
            return a[0] in self.before[b[0]]
        left = [step for step, cta in self.fences if cta == one and a[0] in self.before[step]] if a[4] else [a[0]]
        entered = [step for step, cta in self.fences if cta == other and step in self.before[b[0]]] if b[4] else [b[0]]
        return any(step in self.before[end] for step in left for end in entered)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_clocks_are_base_causality_order(data: st.DataObject) -> None:
    """Of threads and asynchronous operations, with and without proxy fences, between CTAs as well."""
    graph = Graph(2, 3)
    for _ in range(data.draw(st.integers(4, 30))):
        agent = data.draw(st.integers(0, len(graph.clocks.clock) - 1))
        match data.draw(st.sampled_from("aaaasffrqqn")):
            case "a":
                graph.access(agent, int(agent >= 6) or data.draw(st.sampled_from((0, 0, 1))))
            case "s":
                who = data.draw(st.lists(st.integers(0, 5), min_size=1, unique=True))
                graph.synchronize(who)
            case "f" if agent < graph.clocks.threads:
                graph.fence(agent)
            case "r":
                graph.release(agent)
            case "q" if graph.releases:
                graph.acquire(agent, data.draw(st.lists(st.integers(0, len(graph.releases) - 1), max_size=3)))
            case "n":
                graph.clocks.add_component(data.draw(st.integers(0, 2)))
    for number, b in enumerate(graph.rows):
        for a in graph.rows[:number]:
            columns = np.array([(0, 0, 1, *row[1:4], WRITE, 0, row[4]) for row in (a, b)], np.int64).T
            found = list(
                unordered(
                    Accesses(*np.vstack((columns, np.zeros((1, 2), np.int64), np.arange(2)))),
                    graph.clocks,
                    np.array([0]),
                    np.arange(3),
                    [GENERIC, "surface"],
                    np.full(2, -1),
                )
            )
            assert (not found) == graph.ordered(a, b), (a, b)


def test_nothing_of_what_an_agent_comes_after_is_handed_on() -> None:
    clocks = Clocks(2, 1)
    first = clocks.release(0)
    agent = clocks.add_component(0)
    clocks.acquire(np.array([agent]), [first])
    clocks.acquire(np.array([1]), [Release(NOTHING, agent, int(clocks.clock[agent]))])
    seen = clocks.views(np.array([1, 1]))
    assert clocks.after(seen, np.array([1, 1]), np.array([agent, 0]), np.array([1, 1])).tolist() == [True, False]


SHARED = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = 64
// ptxmm: args = []
.visible .entry k()
{{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .f32 %f<4>;
    .shared .align 16 .b8 s[256];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mad.lo.u32 %r3, %r1, 4, %r2;
    {body}
    ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "word", "reason"),
    [
        ("st.shared.u32 [%r3], 1; bar.sync 0; ld.shared.u32 %r4, [%r2];", "race-free", None),
        ("st.shared.u32 [%r3], 1; bar.warp.sync -1; ld.shared.u32 %r4, [%r2];", "race", None),
        ("st.shared.u32 [%r3+4], 1;", "outside", "an access outside of all variables"),
        ("st.shared.u32 [%r3+2], 1;", "undefined", "an address that is no multiple of 4"),
        ("ld.shared.u32 %r4, [%r3]; ld.shared.u32 %r5, [%r4];", "undecided", "the address depends on a value"),
        ("ld.shared.u32 %r4, [%r3]; setp.eq.u32 %p1, %r4, 0; @%p1 exit;", "undecided", "whether this is executed"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; L:", "race-free", None),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 barrier.sync 1, 64;", "deadlock", "a thread waits for ever"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 barrier.sync 1, 64;", "deadlock", "32 threads wait here for ever"),
        ("setp.ge.u32 %p1, %r1, 8; @%p1 bra L; bar.sync 0; L:", "undefined", "not all threads of a warp"),
        ("and.b32 %r4, %r1, 1; bar.sync %r4;", "undefined", "not all threads of a warp"),
        ("and.b32 %r4, %r1, 1; bar.arrive %r4, 64;", "undefined", "not all threads of a warp"),
        ("and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 0; bar.red.or.pred %p2, %r4, %p1;", "undefined", "not all"),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra L; bar.sync 1; L: bar.sync 0;", "undefined", "not all threads of a warp"),
        ("and.b32 %r4, %r1, 1; barrier.sync %r4;", "deadlock", "64 threads wait here for ever"),
        ("shr.u32 %r4, %r1, 5; bar.sync %r4, 32;", "race-free", None),
        ("barrier.sync 1, 32;", "undecided", "in which phase of the barrier"),
        ("L: ld.volatile.shared.u32 %r4, [%r2]; setp.eq.u32 %p1, %r1, 99; @!%p1 bra L;", "unsupported", "waits for"),
        ("atom.shared.add.u32 %r4, [%r2], 1; setp.eq.u32 %p1, %r4, 0; @%p1 exit;", "undecided", None),
        ("red.shared.add.u32 [%r2], 1;", "race-free", None),
        ("red.shared.add.noftz.bf16x2 [%r2], %r1;", "race-free", None),
        ("atom.shared.add.noftz.bf16x2 %r4, [%r2], %r1; bar.sync 0; ld.shared.u32 %r5, [%r2];", "race-free", None),
        ("red.shared.add.noftz.bf16x2 [%r2], %r1; ld.shared.u32 %r5, [%r2];", "race", None),
        ("red.shared.add.noftz.bf16x2 [%r2], %r1; fence.acq_rel.cta;", "unsupported", "atomic operations on vectors"),
        (
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 5; bar.sync 0; red.shared.add.u32 [%r2], 1; "
            "bar.sync 0; ld.shared.u32 %r5, [%r2]; setp.ne.u32 %p2, %r5, 69; @%p2 st.shared.u32 [%r2], 1;",
            "race-free",
            None,
        ),
        (
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 5; bar.sync 0; red.shared.add.u32 [%r2], 1; "
            "red.shared.max.u32 [%r2], 1; bar.sync 0; ld.shared.u32 %r5, [%r2]; setp.ne.u32 %p2, %r5, 69; "
            "@%p2 st.shared.u32 [%r2], 1;",
            "undecided",
            None,
        ),
        (
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.relaxed.cta.shared.u32 [%r2], 5; @!%p1 red.shared.add.u32 [%r2], 1; "
            "bar.sync 0; ld.shared.u32 %r5, [%r2]; setp.ne.u32 %p2, %r5, 68; @%p2 st.shared.u32 [%r2], 1;",
            "race",
            None,
        ),
        ("fence.acq_rel.gpu; st.shared.u32 [%r2], 1;", "race", None),
        ("sin.approx.f32 %f1, 0f3F800000; setp.gt.f32 %p1, %f1, 0f00000000; @%p1 exit;", "undecided", None),
        ("L: bra L;", "unsupported", None),
        (
            "setp.eq.u32 %p1, %r1, %r1; setp.lt.u32 %p2, %r1, 32; @%p2 bra A; bar.red.popc.u32 %r5, 0, %p1; bra B; "
            "A: bar.red.popc.u32 %r5, 0, %p1; B: setp.eq.u32 %p3, %r5, 64; @%p3 st.shared.u32 [%r2], 1;",
            "race",
            None,
        ),
        (
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 0; bar.sync 0; @%p1 red.shared.max.s32 [%r2], 1; "
            "@!%p1 red.shared.max.u32 [%r2], -1; bar.sync 0; ld.shared.u32 %r5, [%r2]; setp.eq.u32 %p2, %r5, 1; "
            "@%p2 exit;",
            "undecided",
            "whether this is executed",
        ),
        (
            "setp.lt.u32 %p1, %r1, 16; setp.ge.u32 %p2, %r1, 32; or.pred %p1, %p1, %p2; @%p1 barrier.sync 1, 32;",
            "undecided",
            "in which phase of the barrier",
        ),
        ("mov.b32 %r5, 48; barrier.sync 1, %r5;", "undefined", "no multiple of 32"),
        ("mov.b32 %r5, 17; barrier.sync %r5;", "undefined", "there is no barrier 17"),
        ("bar.sync 0; setp.eq.u32 %p1, %r1, 0; @%p1 trap;", "undecided", "a trap is executed"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; barrier.sync 1, 64; bra B; A: barrier.sync 1; B:", "unsupported", None),
    ],
)  # fmt: skip
def test_what_is_found(body: str, word: str, reason: str | None, tmp_path: Path) -> None:
    found = answer(tmp_path / "k.ptx", SHARED.format(body=body.replace("; ", ";\n    ")))
    assert (found.answer, reason or "") == (word, reason if reason and reason in (found.reason or "") else ""), found


PLACES = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: block = 1
// ptxmm: cluster = 2
// ptxmm: threads = "all"
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 8, align = 16 }}
// ptxmm: s = {{ init = 0 }}
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %d<9>;
    .local .align 8 .b8 l[16];
    .shared .align 16 .b8 s[32];
    .shared .align 8 .b64 m;
    ld.param.u64 %d1, [p];
    mov.u64 %d2, s;
    cvta.shared.u64 %d3, %d2;
    mov.u64 %d4, l;
    cvta.local.u64 %d5, %d4;
    mov.u32 %r1, %cluster_ctarank;
    cvt.u32.u64 %r2, %d2;
    mov.u32 %r3, m;
    xor.b32 %r6, %r1, 1;
    mapa.shared::cluster.u32 %r4, %r2, %r1;
    mapa.shared::cluster.u32 %r5, %r3, %r1;
    mapa.u64 %d6, %d3, %r6;
    st.shared.u32 [s+28], 1;
    mbarrier.init.shared.b64 [m], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    {body}
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}}
"""
"""%d1 to %d6: generic addresses of global memory, shared memory (%d2: not generic), local memory, and that of the other
CTA; %r4 and %r5: a variable and an mbarrier of the own CTA."""
COUNTED = (
    "mbarrier.arrive.expect_tx.shared.b64 _, [m], {}; {} "
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0; @!%p1 bra W;"
)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("ld.u32 %r7, [%d3]; ld.u32 %r7, [%d5]; ld.u32 %r7, [%d6];", None),
        ("atom.relaxed.gpu.add.u32 %r7, [%d3], 1;", None),
        ("red.relaxed.gpu.add.u32 [%d5], 1;", "this is .local memory"),
        ("st.relaxed.gpu.u32 [%d5], 1;", "this is .local memory"),
        ("st.u32 [%d5], 1;", None),
        ("ld.global.u32 %r7, [%d3];", "this is .shared memory"),
        ("cp.async.ca.shared.global [s+16], [%d1], 4; cp.async.wait_all;", None),
        ("cp.async.ca.shared.global [s+16], [%d3], 4; cp.async.wait_all;", "this is .shared memory"),
        (COUNTED.format(4, "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], 7, [%r5];"),
         "which has to be that of another one"),
        (COUNTED.format(4, "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], 7, "
                        "[%r5];"), "which has to be that of another one"),
        ("fence.proxy.async; " + COUNTED.format(16, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
         "bytes [%r4], [s+16], 16, [%r5];"), "which has to be that of another one"),
    ],
)  # fmt: skip
def test_memory_that_an_instruction_may_access(body: str, says: str | None, tmp_path: Path) -> None:
    text = PLACES.format(body=body.replace("; ", ";\n    "))
    found = answer(tmp_path / "k.ptx", text)
    assert (found.answer, (says or "") in (found.reason or "")) == ("undefined" if says else "race-free", True), found
    (test,) = parse_ptx(text, "k.ptx")
    every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 20))
    assert every.status == ("undefined" if says else "complete"), every


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("setp.lt.u64 %p1, %d1, %d2; @%p1 bra E; st.global.u32 [%d1], 1;", "undecided"),
        ("setp.gt.u64 %p1, %d1, %d2; @%p1 bra E; st.global.u32 [%d1], 1;", "race"),
        ("and.b64 %d3, %d1, 256; setp.ne.u64 %p1, %d3, 256; @%p1 bra E; st.global.u32 [%d1], 1;", "undecided"),
        *(
            (f"and.b64 %d3, %d1, {mask}; setp.{how}.u64 %p1, %d3, 0; @%p1 bra E; st.global.u32 [%d1], 1;", word)
            for mask in (0x1000, 0x7000, 0x800000, 0x200000000)
            for how, word in (("eq", "undecided"), ("ne", "race"))
        ),
        *(  # bits of addresses, and of differences, that are the same in the standard layout and another one
            (f"{given} and.b64 %d3, %d3, {1 << bit}; setp.{how}.u64 %p1, %d3, 0; @%p1 bra E; st.global.u32 [%d1], 1;",
             None)
            for given, bits in (
                ("mov.b64 %d3, %d1;", (8, 23, 24, 31, 44, 45, 46)), ("sub.u64 %d3, %d2, %d1;", (8, 12, 23, 24, 25, 46)),
                ("mov.u64 %d3, s;", (10, 11, 14, 17)),
            )
            for bit in bits
            for how in ("eq", "ne")
        ),
        ("sub.u64 %d3, %d2, %d1; setp.lt.s64 %p1, %d3, 0; @%p1 bar.sync 0;", "undecided"),
        ("st.local.u64 [v], %d1; ld.local.u32 %r4, [v]; and.b32 %r4, %r4, 256; setp.ne.u32 %p1, %r4, 256; @%p1 bra E; "
         "st.global.u32 [%d1], 1;", "undecided"),
        ("and.b64 %d3, %d1, 15; setp.ne.u64 %p1, %d3, 0; @%p1 bra E; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%d1];",
         "race-free"),
        ("add.u64 %d3, %d1, 16; L: ld.global.u32 %r4, [%d1]; add.u64 %d1, %d1, 4; setp.ne.u64 %p1, %d1, %d3; "
         "@%p1 bra L;", "race-free"),
    ],
)  # fmt: skip
def test_where_variables_lie_is_left_open(body: str, word: str, tmp_path: Path) -> None:
    """An execution tells only of launches that do the same wherever their variables lie."""
    head = SHARED.replace("args = []", 'args = ["a", "b"]\n// ptxmm: [objects]\n' + "".join(
        f'// ptxmm: {name} = {{{{ type = "u32", count = 64 }}}}\n' for name in "ab"
    ).rstrip())  # fmt: skip
    head = head.replace("k()", "k(.param .u64 p, .param .u64 q)").replace(
        "    mov.u32 %r1", "    .reg .b64 %d<4>;\n    .local .align 8 .b8 v[8];\n    ld.param.u64 %d1, [p];\n"
        "    ld.param.u64 %d2, [q];\n    mov.u32 %r1",
    )  # fmt: skip
    found = answer(tmp_path / "k.ptx", head.format(body=body).replace("    ret;", "E: ret;"))
    assert found.answer in ((word,) if word else ("race", "undecided")), found.reason
    assert any("layouts were tried" in note.text for note in found.notes) is (word == "race-free")


_WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p3, [{where}], {parity}; @!%p3 bra W; "
_ARRIVE = "mbarrier.arrive.shared.b64 _, [s+16]; "


@pytest.mark.parametrize(
    ("gives", "takes", "word"),
    [
        (_ARRIVE, _WAIT.format(where="s+16", parity=0), "race-free"),
        (_ARRIVE, "selp.u32 %r5, 16, 24, %p2; add.u32 %r5, %r5, %r2; " + _WAIT.format(where="%r5", parity=0),
         "undecided"),
        (_ARRIVE, "selp.u32 %r5, 16, 16, %p2; add.u32 %r5, %r5, %r2; " + _WAIT.format(where="%r5", parity=0),
         "race-free"),
        (_ARRIVE, "selp.u32 %r5, 0, 1, %p2; " + _WAIT.format(where="s+16", parity="%r5"), "undecided"),
        (_ARRIVE, "@%p2 bra W; bra X; " + _WAIT.format(where="s+16", parity=0) + "X: ", "undecided"),
        ("mbarrier.expect_tx.relaxed.cta.shared.b64 [s+16], 4; mbarrier.complete_tx.relaxed.cta.shared.b64 [s+16], 4; "
         + _ARRIVE, _WAIT.format(where="s+16", parity=0), "race-free"),
        ("barrier.arrive 1, 64; barrier.arrive 2, 64; ", "selp.u32 %r5, 1, 1, %p2; barrier.sync %r5, 64; ",
         "race-free"),
        ("selp.u32 %r5, 1, 2, %p2; barrier.sync %r5, 32; ", "", "race"),
        ("fence.acq_rel.gpu; @%p2 fence.sc.gpu; " + _ARRIVE, _WAIT.format(where="s+16", parity=0), "undecided"),
    ],
)  # fmt: skip
def test_what_synchronizes_where_variables_lie_elsewhere(gives: str, takes: str, word: str, tmp_path: Path) -> None:
    """A bit of an address, 0 in the first layout, decides what is waited for, while the accesses are the same."""
    body = (
        "and.b32 %r4, %r2, 4096; setp.eq.u32 %p2, %r4, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra I; "
        "mbarrier.init.shared.b64 [s+16], 32; mbarrier.init.shared.b64 [s+24], 32; I: bar.sync 0; "
        "setp.ge.u32 %p0, %r1, 32; @%p0 bra C; mbarrier.arrive.shared.b64 _, [s+24]; @%p1 bra M; st.shared.u32 [s], 7; "
        f"M: {gives} bra E; C: {takes} ld.shared.u32 %r6, [s];"
    )
    found = answer(tmp_path / "k.ptx", SHARED.format(body=body.replace("; ", ";\n    ")).replace("    ret;", "E: ret;"))
    assert found.answer == word, found


@pytest.mark.parametrize("first", ["setp.eq.and.u32 %p3, %r5, 0, %p2;", "@!%p2 bra W; setp.eq.u32 %p3, %r5, 0;"])
@pytest.mark.parametrize(("mask", "word"), [(4096, "undecided"), (0, "race-free")])
def test_choices_where_variables_lie_elsewhere(mask: int, word: str, first: str, tmp_path: Path) -> None:
    """Who does not wait is the first one at a counter, if a bit of an address is set: as these come, nobody."""
    body = (
        f"and.b32 %r4, %r2, {mask}; setp.ne.u32 %p2, %r4, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra I; "
        "mbarrier.init.shared.b64 [s+16], 1; st.shared.u32 [s+32], 0; I: bar.sync 0; and.b32 %r4, %r1, 31; "
        "setp.ne.u32 %p0, %r4, 0; @%p0 bra E; atom.relaxed.cta.shared.add.u32 %r5, [s+32], 1; @%p1 bra C; "
        "st.shared.u32 [s], 7; mbarrier.arrive.shared.b64 _, [s+16]; bra E; "
        f"C: {first} @%p3 bra X; " + _WAIT.format(where="s+16", parity=0) + "X: "
        "ld.shared.u32 %r6, [s];"
    )
    found = answer(tmp_path / "k.ptx", SHARED.format(body=body.replace("; ", ";\n    ")).replace("    ret;", "E: ret;"))
    assert found.answer == word, found


GRID = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {ctas}
// ptxmm: block = {threads}
// ptxmm: args = ["a", "b", "count"]
// ptxmm: [objects]
// ptxmm: a = {{ type = "u32", count = {ctas} }}
// ptxmm: b = {{ type = "u32", count = {ctas} }}
// ptxmm: count = "u32"
.visible .entry grid(.param .u64 a, .param .u64 b, .param .u64 count)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<30>;
    .reg .b64 %d<20>;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    ld.param.u64 %d3, [count];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    setp.eq.u32 %p2, %r2, 0;
    mov.u32 %r4, -2147483647;
    sub.u32 %r5, %r4, %r3;
    selp.b32 %r6, %r5, 1, %p2;
    mul.wide.u32 %d4, %r2, 4;
    add.u64 %d5, %d1, %d4;
    add.u64 %d6, %d2, %d4;
    mov.u32 %r7, 0;
L1:
    @!%p1 st.global.u32 [%d5], %r7;
    bar.sync 0;
    @%p1 bra L3;
    atom.add.release.gpu.global.u32 %r8, [%d3], {step};
L2:
    ld.acquire.gpu.global.u32 %r9, [%d3];
    xor.b32 %r10, %r9, %r8;
    setp.gt.s32 %p3, %r10, -1;
    @%p3 bra L2;
L3:
    bar.sync 0;
    sub.u32 %r11, %r3, %r2;
    sub.u32 %r11, %r11, 1;
    mul.wide.u32 %d7, %r11, 4;
    add.u64 %d8, %d1, %d7;
    ld.global.u32 %r12, [%d8];
    @!%p1 st.global.u32 [%d6], %r12;
    mov.b64 %d9, %d1;
    mov.b64 %d1, %d2;
    mov.b64 %d2, %d9;
    mov.b64 %d9, %d5;
    mov.b64 %d5, %d6;
    mov.b64 %d6, %d9;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p4, %r7, {rounds};
    @%p4 bra L1;
    ret;
}}
"""
"""Barriers of a grid, as those of cooperative groups; in each round what the round before has read is written."""


def grid(threads: int, ctas: int, rounds: int = 1, step: str = "%r6") -> str:
    return GRID.format(threads=threads, ctas=ctas, rounds=rounds, step=step)


def test_barriers_of_a_grid(tmp_path: Path) -> None:
    found = answer(tmp_path / "k.ptx", grid(64, 8))
    assert (found.answer, found.threads) == ("race-free", 512), found
    assert answer(tmp_path / "k.ptx", grid(64, 8, step="1")).answer == "deadlock"
    weak = grid(64, 8).replace("ld.acquire.gpu", "ld.relaxed.gpu")
    assert answer(tmp_path / "k.ptx", weak).answer == "race"


def test_the_command(tmp_path: Path, run_command: Run) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(SHARED.format(body="st.shared.u32 [%r2], 1;"))
    ran = run_command("check", "--whole", str(path))
    assert ran.code == 1
    assert "Launch 1 CTAs, 64 threads, 64 accesses" in ran.out
    assert "Race of s, byte 0 and 62 other pairs\n  line 15: st.shared.u32 [%r2], 1 (CTA 0, thread 0)" in ran.out
    ran = run_command("check", "--whole", "--json", str(path))
    (entry,) = json.loads(ran.out)["results"]
    assert (ran.code, entry["answer"], entry["holds"], entry["threads"]) == (1, "race", False, 64)
    path.write_text(SHARED.format(body="griddepcontrol.launch_dependents; griddepcontrol.wait;"))
    ran = run_command("check", "--whole", str(path))
    assert ran.code == 0 and "Answer race-free" in ran.out
    name = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster"
    path.write_text(SHARED.format(body=f"{name};").replace(".version 8.5", ".version 8.6"))
    ran = run_command("check", "--whole", str(path))
    assert ran.code == 3 and f"`{name}` is not followed in a whole launch yet" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(CUDA.parent.parent / "litmus" / "sb" / "SB.litmus")], "this is no kernel"),
        (["--bundled"], "it takes no --bundled"),
        (["--engine", "both"], "it takes no --engine"),
        (["--all-state"], "it takes no --engine, --all-state"),
        (["--all-readings"], "--all-state or --all-readings"),
        (["--format", "dot", str(CUDA / "matrix_mul.ptx")], "dot"),
        (["nowhere.cu"], "no such file or folder"),
    ],
)
def test_what_the_command_refuses(arguments: list[str], message: str, run_command: Run) -> None:
    ran = run_command("check", "--whole", *arguments)
    assert ran.code == 2 and message in ran.err


def test_a_launch_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    text = SHARED.format(body="st.shared.u32 [%r2], 1;").replace("block = 64", "grid = 32768\n// ptxmm: block = 64")
    path.write_text(text.replace("s[256]", "s[65536]"))
    (kernel,) = kernels(path)
    with pytest.raises(PtxmmError, match="the variables of this launch have 2147483648 bytes"):
        whole(kernel, "k.ptx")
