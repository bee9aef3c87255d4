"""Rows of matrices in warps with names: which bytes each lane reads with ``ldmatrix`` and writes with ``stmatrix``
(PTX ISA 9.7.15.4.15, .16), where the launch decides the rows; random accesses of fragments."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

import ptxmm.formats
from ptxmm.analysis.observe import observed
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats.modules.extract import skeleton
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from tests import reference
from tests.reference_dependencies import TooSlow
from tests.support import ask, model_named, parse_one

PITCH = 16
"""Elements from one row to the next: a matrix is the left half of each."""

KERNEL = """.version 8.0
.target sm_90
.address_size 64
.shared .align 16 .b16 tile[512];
.visible .entry k()
{{
  .reg .b32 %r<20>;
  .reg .pred %p;
  mov.u32 %r1, %tid.x;
  and.b32 %r1, %r1, 31;
  sub.u32 %r2, 31, %r1;
  shl.b32 %r2, %r2, 5;
  mov.u32 %r3, tile;
  add.u32 %r3, %r3, %r2;
  {}
  ret;
}}
"""
LAUNCH = """// ptxmm: block = {}
// ptxmm: threads = "{}"
// ptxmm: [objects]
// ptxmm: tile = {{ type = "u16", count = 512, init = {} }}
// ptxmm: [check]
"""


AND = r" /\ "


def row(lane: int) -> int:
    """The first element of the row that a lane names: the kernel above turns their order round."""
    return PITCH * (31 - lane)


def held(lane: int, matrix: int, transposed: bool) -> tuple[int, int]:
    """The two elements of ``tile`` that a lane has of a matrix: as in the figures of 9.7.15.4.15 thread 0 has elements
    0 and 1 of row 0, thread 1 elements 2 and 3, ..., thread 4 elements 0 and 1 of row 1; or the same of columns."""
    line, pair = lane // 4, 2 * (lane % 4)
    places = [(pair, line), (pair + 1, line)] if transposed else [(line, pair), (line, pair + 1)]
    first, second = (row(8 * matrix + r) + column for r, column in places)
    return first, second


def forall(parts: Sequence[str]) -> str:
    return f"condition = 'forall ({AND.join(parts)})'"


def launched(body: str, claim: str, block: int = 32, threads: str = "all", initial: object = 0) -> Test:
    text = LAUNCH.format(block, threads, initial) + f"// ptxmm: {claim}\n" + KERNEL.format(body)
    (test,) = ptxmm.formats.parse(text, "k.ptx")
    return test


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_what_each_lane_loads(engine: str, count: int, transposed: bool) -> None:
    vector = ", ".join(f"%r{10 + i}" for i in range(count))
    body = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' * transposed}.shared.b16 {{{vector}}}, [%r3];"
    values = [3 * i + 1 for i in range(512)]
    wanted = []
    for lane in range(32):
        for matrix in range(count):
            low, high = held(lane, matrix, transposed)
            wanted.append(f"P{lane}:%r{10 + matrix} == {values[low] | values[high] << 16}")
    test = launched(body, forall(wanted), initial=values)
    assert check(test, model_named("ptx-8.5"), engine=engine).holds


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_what_each_lane_stores(engine: str, transposed: bool) -> None:
    body = f"""mul.lo.u32 %r10, %r1, 0x20002;
  add.u32 %r10, %r10, 0x20001;
  add.u32 %r11, %r10, 0x640064;
  stmatrix.sync.aligned.m8n8.x2{".trans" * transposed}.shared.b16 [%r3], {{%r10, %r11}};"""
    wanted = {}
    for lane in range(32):
        for matrix in range(2):
            for half, place in enumerate(held(lane, matrix, transposed)):
                wanted[place] = 2 * lane + 1 + half + 100 * matrix
    assert len(wanted) == 128
    test = launched(body, forall([f"tile[{place}] == {value}" for place, value in wanted.items()]))
    assert check(test, model_named("ptx-8.5"), engine=engine).holds


STAGED = """st.shared.u32 [%r3], %r1;
  {}
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r10}}, [%r3];"""


@pytest.mark.parametrize("barrier,free", [("bar.warp.sync -1;", True), ("", False)])
def test_a_lane_reads_rows_that_others_wrote(barrier: str, free: bool) -> None:
    """``.sync`` waits, and orders no memory (9.7.15.4.15: a weak memory operation)."""
    test = launched(STAGED.format(barrier), 'races = "none"', threads="lane 0-7")
    assert races(test, model_named("ptx-8.5")).race_free is free


def test_a_lane_alone_reads_what_it_gets_of_rows_of_lanes_that_do_not_run() -> None:
    test = launched(STAGED.format(""), 'races = "none"', threads="lane 0")
    (thread,) = test.threads
    (op,) = (op for op in thread.body if isinstance(op, ops.LoadMatrix))
    (place,) = op.fragments
    assert isinstance(place.base, ops.Sym)
    assert place.base.offset + place.offset == 2 * row(0)
    assert races(test, model_named("ptx-8.5")).race_free


@pytest.mark.parametrize("transposed", [False, True])
def test_an_extract_has_the_accesses_of_each_lane(transposed: bool) -> None:
    trans = ".trans" * transposed
    body = f"""mul.lo.u32 %r10, %r1, 0x20002;
  stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [%r3], {{%r10}};
  ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{%r11, %r12}}, [%r3];"""
    test = launched(body, forall(["P0:%r11 == 1", "P1:%r12 == 1"]), threads="lane 0-1", initial=[7] * 512)
    other = parse_one(skeleton(test))
    answers = []
    for each in (test, other):
        found = ask("solve", each, model_named("ptx-8.5"), observed=observed(each))
        values = [tuple(dict(state).values()) if isinstance(state, dict) else state for state in found.states]
        answers.append((len(values), found.flags))
        assert check(each, model_named("ptx-8.5")).holds is False
    assert answers[0] == answers[1]


REFUSED = [
    ("ld.shared.u32 %r4, [tile]; add.u32 %r3, %r3, %r4;", 32, "no launch decides where that is"),
    ("add.u32 %r3, %r3, 4;", 32, "which is not known to be 16 aligned bytes of shared memory"),
    ("add.u32 %r3, %r3, 512;", 32, "which is not known to be 16 aligned bytes of shared memory"),
    ("", 4, "there is no such lane"),
    ("setp.gt.u32 %p, %r1, 3; @%p exit;", 32, "that does not execute it with this one"),
]


@pytest.mark.parametrize("before,block,words", REFUSED, ids=[words for *_, words in REFUSED])
def test_rows_that_the_launch_does_not_decide_are_refused(before: str, block: int, words: str) -> None:
    body = before + "\n  ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r3];"
    with pytest.raises(PtxmmError) as caught:
        launched(body, 'races = "none"', block=block, threads="lane 0")
    assert words in caught.value.message
    assert caught.value.line == len(LAUNCH.splitlines()) + 1 + KERNEL.splitlines().index("  {}") + 2


# ---- random programs -------------------------------------------------------------------------------------------------

MODELS = ("ptx-8.5", "ptx-8.5[dep=value]", "ptx-8.5[dep=syn]", "ptx-7.5", "sc")
OPENING = """PTX rows
{ .shared .align 16 .u16 m[8] @ cta 0 = {1, 2, 3, 4}; .global .u32 x = 0; .global .u32 y = 0; }
"""
_FLAGS = ("ld.acquire.cta.global.u32 f, [x]", "ld.relaxed.cta.global.u32 f, [y]", "st.release.cta.global.u32 [x], 1",
          "st.relaxed.cta.global.u32 [y], 1", "fence.acq_rel.cta", "fence.sc.cta")  # fmt: skip
_PLAIN = ("st.shared.u16 [m+{0}], {1}", "st.shared.u32 [m+{2}], {1}", "ld.shared.u16 h, [m+{0}]",
          "ld.shared.u32 g, [m+{2}]", "ld.shared.v2.u16 {{h, i}}, [m+{2}]")  # fmt: skip


def random_program(seed: int) -> Test:
    """Two or three threads, each in a warp with a name, that pass a few elements by rows of matrices and otherwise."""
    rng = random.Random(f"rows/{seed}")
    bodies = [_body(rng) for _ in range(rng.choice((2, 2, 3)))]
    height = max(map(len, bodies))
    names = [f"P{i} @ warp {i}, cta 0, gpu 0" for i in range(len(bodies))]
    lines = [[*body, *[""] * (height - len(body))] for body in bodies]
    table = "".join(f" {' | '.join(cells)} ;\n" for cells in (names, *zip(*lines, strict=True)))
    test = parse_one(f"{OPENING}{table}exists (x == 1)\n")
    threads = (replace(t, body=tuple(_placed(op, rng) for op in t.body)) for t in test.threads)
    return replace(test, threads=tuple(threads))


def _body(rng: random.Random) -> list[str]:
    lines = [f"mov.u32 g, {rng.choice((5, 0x60007))}", "mov.u32 a, 0"]
    for _ in range(rng.randint(2, 4)):
        match rng.randint(0, 3):
            case 0:
                lines.append(rng.choice(_FLAGS))
            case 1:
                number = rng.choice(("9", "g"))
                lines.append(rng.choice(_PLAIN).format(2 * rng.randint(0, 3), number, 4 * rng.randint(0, 1)))
            case kind:
                count, trans = rng.choice((1, 1, 2)), rng.choice(("", ".trans"))
                values = ", ".join(rng.sample(("g", "a"), count))
                name, operands = ("ldmatrix", f"{{{values}}}, [m]") if kind == 2 else ("stmatrix", f"[m], {{{values}}}")
                lines.append(f"{name}.sync.aligned.m8n8.x{count}{trans}.shared.b16 {operands}")
    return lines


def _placed(op: ops.Op, rng: random.Random) -> ops.Op:
    if not isinstance(op, ops.LoadMatrix | ops.StoreMatrix):
        return op
    count = len(op.dst if isinstance(op, ops.LoadMatrix) else op.values) * (1 + op.transposed)
    size = ops.fragment_bytes(op)
    places = [size * n for n in range(8 // size)]
    chosen = rng.sample(places, count) if count <= len(places) else rng.choices(places, k=count)
    found = tuple(ops.Address(ops.Sym(op.address.base.name, place), 0) for place in chosen)  # type: ignore[union-attr]
    return replace(op, address=found[0], fragments=found)


def compare(seeds: range, seconds: float) -> int:
    compared = 0
    for seed in seeds:
        test, model = random_program(seed), MODELS[seed % len(MODELS)]
        about = f"seed {seed}, {model}\n{test.text}"
        try:
            found = frozenset(reference.outcomes(test, model, seconds=seconds))
            _, flags = reference.flagged(test, model, seconds=seconds)
            for engine in ("solve", "enumerate"):
                answer = ask(engine, test, model_named(model), seconds=seconds)
                if not answer.complete:
                    raise Timeout
                assert answer.states == found, about
                assert answer.flags == flags, about
        except (TooSlow, Timeout):
            continue
        compared += 1
    return compared


def test_random_fragments() -> None:
    assert compare(range(25), 2) > 15


@pytest.mark.slow
def test_many_random_fragments(shift: int) -> None:
    assert compare(range(1_000 + shift, 1_300 + shift), 10) > 200
