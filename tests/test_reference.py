# ruff: noqa: E501 (one row a case)
"""The reference itself, on programs whose verdict is derived by hand: it is the judge of the engines, so it is tried
first. Each case says which part of the model decides it."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmm import cat, formats
from ptxmm.analysis.expectation import expectations
from ptxmm.events.explicit.values import floats
from ptxmm.events.symbolic.values import floats as symbolic_floats
from ptxmm.program.condition import evaluate
from ptxmm.program.unspecified.unknown import assignments
from ptxmm.ptx.ops import Type
from tests import reference, reference_floats
from tests.reference_dependencies import TooSlow
from tests.support import parse_one

V = {"g": "gpu", "c": "cta", "s": "sys"}
ALL = "ptx-6.0 ptx-7.5 ptx-8.5"
NEW = "ptx-7.5 ptx-8.5"


def short(text: str) -> str:
    """``st.rlx.g x,1`` as typed PTX: the shorthand of the table below."""
    opcode, _, operands = text.partition(" ")
    parts = opcode.split(".")
    words = {"rlx": "relaxed", "acq": "acquire", "rel": "release", "ar": "acq_rel", **V}
    quals = [words.get(p, p) for p in parts[1:]]
    args = [a.strip() for a in operands.split(",")] if operands else []
    match parts[0]:
        case "ld":
            return f"ld{dots(quals)}.u32 {args[0]}, [{args[1]}]"
        case "st":
            return f"st{dots(quals)}.u32 [{args[0]}], {args[1]}"
        case "atom" | "red" as head:
            op = next(q for q in quals if q in ("add", "exch", "cas"))
            quals = [q for q in quals if q != op]
            kind = "b32" if op in ("exch", "cas") else "u32"
            dst = f"{args.pop(0)}, " if head == "atom" else ""
            return f"{head}{dots(quals)}.{op}.{kind} {dst}[{args[0]}], {', '.join(args[1:])}"
    return parts[0] + dots(quals) + (" " + operands if operands else "")


def dots(quals: list[str]) -> str:
    return "".join(f".{q}" for q in quals)


def litmus(threads: str, condition: str, declarations: str = "", shorthand: bool = True) -> str:
    """A litmus file from ``instructions @placement || ...``; placements are CTAs of one GPU."""
    blocks, names = (
        [],
        sorted(set("abdfgxyz") & set(threads.replace(",", " ").replace("[", " ").replace("]", " ").split())),
    )
    for i, thread in enumerate(threads.split("||")):
        body, _, cta = thread.rpartition("@")
        lines = [short(t.strip()) if shorthand else t.strip() for t in body.split(";") if t.strip()]
        blocks.append(f"P{i} @ cta {'ABCD'.index(cta.strip())} {{\n  " + ";\n  ".join(lines) + ";\n}")
    lines = [f".global .u32 {n} = 0;" for n in names if f" {n} @" not in f" {declarations}"]
    return "\n".join(["PTX case", "{", *lines, declarations, "}", *blocks, f"exists ({condition})"])


# (name, threads, condition, models in which it is allowed, models in which it is forbidden, declarations)
CASES = [
    ("A1", "st d,1; fence.ar.g; st.rlx.g f,1 @A || ld.rlx.g r0,f; fence.ar.g; ld r1,d @B",
     "P1:r0 == 1 /\\ P1:r1 == 0", "", ALL, ""),
    ("A3 D-SPL", "st x,4; st.rlx.c x,1; ld.rlx.g r1,x @A || st x,3; st.rlx.g x,2 @B || ld.rlx.g r2,x; ld.rlx.g r3,x @A",
     "P0:r1 == 3 /\\ P2:r2 == 2 /\\ P2:r3 == 4", "", ALL, ""),
    ("A5", "st x,1; st.rlx.g x,2 @A || st.rlx.g x,3; ld r2,x @B", "x == 3 /\\ P1:r2 == 1", "", ALL, ""),
    ("A7 weak", "st x,1 @A || ld r0,x; st x,2 @B", "P1:r0 == 1 /\\ x == 1", ALL, "", ""),
    ("A7 strong", "st.rlx.g x,1 @A || ld.rlx.g r0,x; st.rlx.g x,2 @B", "P1:r0 == 1 /\\ x == 1", "", ALL, ""),
    ("A9 i", "st d,1; st.rel.g a,1; st.rlx.g b,2 @A || ld.rlx.g r0,b; ld.acq.g r1,a; ld r2,d @B",
     "P1:r0 == 2 /\\ P1:r2 == 0", NEW, "", "b @ generic aliases a;"),
    ("A9 ii", "st a,1; st.rel.g f,1 @A || ld.acq.g r9,f; fence.proxy.alias; st.rel.g g,1 @C || ld.acq.g r0,g; ld r1,b @B",
     "P1:r9 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0", "", NEW, "b @ generic aliases a;"),
    ("A9 without a fence", "st a,1; ld r1,b @A", "P0:r1 == 0", NEW, "", "b @ generic aliases a;"),
    ("A9 with a fence", "st a,1; fence.proxy.alias; ld r1,b @A", "P0:r1 == 0", "", NEW, "b @ generic aliases a;"),
    ("A14 failing cas", "st d,1; st.rel.g f,1 @A || atom.cas.rlx.c r9,f,7,8 @B || ld.acq.g r0,f; ld r1,d @C",
     "P1:r9 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0", "", ALL, ""),
    ("A14 failing release", "st d,1; atom.cas.rel.g r9,f,7,8; st.rlx.g f,2 @A || ld.acq.g r0,f; ld r1,d @B",
     "P0:r9 == 0 /\\ P1:r0 == 2 /\\ P1:r1 == 0", "", ALL, ""),
    ("A15 link", "st x,42; st.rel.g f,1 @A || red.add.rlx.g f,1 @B || ld.acq.g r0,f; ld r1,x @C",
     "P2:r0 == 2 /\\ P2:r1 == 0", "", ALL, ""),
    ("A15 red is no read", "st x,42; st.rel.g f,1 @A || red.add.rlx.s f,1; fence.ar.g; ld r1,x @B",
     "P1:r1 == 0 /\\ f == 2", ALL, "", ""),
    ("A15 atom is one", "st x,42; st.rel.g f,1 @A || atom.add.rlx.s r9,f,1; fence.ar.g; ld r1,x @B",
     "P1:r9 == 1 /\\ P1:r1 == 0 /\\ f == 2", "", ALL, ""),
    ("A17 middle", "st d,1; st.rel.g x,1; st.rlx.c x,2 @A || atom.add.rlx.g r9,x,1 @A || ld.acq.g r0,x; ld r1,d @B",
     "P2:r0 == 3 /\\ P2:r1 == 0", "", ALL, ""),
    ("A17 ends", "st d,1; st.rel.c x,1; st.rlx.g x,2 @A || ld.acq.g r0,x; ld r1,d @B", "P1:r0 == 2 /\\ P1:r1 == 0", ALL, "", ""),
    ("A18", "st d,1; fence.sc.g; st.rlx.g f,1 @A || ld.acq.g r0,f; ld r1,d @B", "P1:r0 == 1 /\\ P1:r1 == 0", "", ALL, ""),
    ("A19", "st x,1; membar.gl; ld r0,y @A || st y,1; membar.gl; ld r1,x @B", "P0:r0 == 0 /\\ P1:r1 == 0", "", ALL, ""),
    ("SB acq_rel", "st x,1; fence.ar.g; ld r0,y @A || st y,1; fence.ar.g; ld r1,x @B", "P0:r0 == 0 /\\ P1:r1 == 0", ALL, "", ""),
    ("A21 false dependency", "ld r0,x; xor.b32 r1, r0, r0; add.u32 r2, r1, 1; st y,r2 @A || ld r1,y; st x,r1 @B",
     "P0:r0 == 1 /\\ P1:r1 == 1", ALL, "", ""),
    ("A21 dependency", "ld r0,x; st y,r0 @A || ld r1,y; st x,r1 @B", "P0:r0 != 0", "", ALL, ""),
    ("A21 constants", "ld r0,x; st y,1 @A || ld r1,y; st x,1 @B", "P0:r0 == 1 /\\ P1:r1 == 1", ALL, "", ""),
    ("A21 rmw", "ld.rlx.g r0,x; st.rlx.g y,r0 @A || atom.exch.rlx.g r1,y,1 @B || ld.rlx.g r2,y; st.rlx.g x,r2 @C",
     "P0:r0 == 1 /\\ P1:r1 == 1 /\\ P2:r2 == 1", "", ALL, ""),
    ("A23", "st.volatile x,1; st.volatile y,1 @A || ld.volatile r0,y; ld.volatile r1,x @B",
     "P1:r0 == 1 /\\ P1:r1 == 0", ALL, "", ""),
    ("A27 old", "bar.sync 0; st x,1; bar.sync 0 @A || bar.sync 0; ld r0,x; bar.sync 0 @A", "P1:r0 == 0", ALL, "", ""),
    ("A27 new", "bar.sync 0; st x,1; bar.sync 0 @A || bar.sync 0; ld r0,x; bar.sync 0 @A", "P1:r0 == 1", ALL, "", ""),
    ("A27 ordered", "st x,1; bar.sync 0 @A || bar.sync 0; ld r0,x @A", "P1:r0 == 0", "", ALL + " sc", ""),
    ("A28 arrive does not wait", "bar.arrive 0, 64; st x,1 @A || bar.sync 0, 64; ld r0,x @A", "P1:r0 == 1", ALL, "", ""),
    ("A28 arrive releases", "st x,1; bar.arrive 0, 64 @A || bar.sync 0, 64; ld r0,x @A", "P1:r0 == 0", "", ALL, ""),
    ("A11 tearing", "st x,65537 @A || ld r0,x @B", "P1:r0 == 1", "ptx-8.5", "ptx-6.0 ptx-7.5 sc", ""),
    ("A11 strong reads", "st.rlx.g x,65537 @A || ld.rlx.g r0,x @B", "P1:r0 == 1", "", ALL, ""),
    ("CoRR", "st.rlx.g x,1 @A || ld.rlx.g r0,x; ld.rlx.g r1,x @B", "P1:r0 == 1 /\\ P1:r1 == 0", "", ALL, ""),
    ("CoRR weak", "st x,1 @A || ld r0,x; ld r1,x @B", "P1:r0 == 1 /\\ P1:r1 == 0", ALL, "sc", ""),
    ("Litmus Test 1", "atom.add.rlx.s r0,x,1 @A || atom.add.rlx.s r0,x,1 @B", "x != 2", "", ALL, ""),
    ("Litmus Test 2", "atom.add.rlx.c r0,x,1 @A || atom.add.rlx.g r0,x,1 @B", "x == 1", ALL, "sc", ""),
    ("SB", "st x,1; ld r0,y @A || st y,1; ld r1,x @B", "P0:r0 == 0 /\\ P1:r1 == 0", ALL, "sc", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("threads", "condition", "allowed", "forbidden", "declarations"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_derived_verdicts(threads: str, condition: str, allowed: str, forbidden: str, declarations: str) -> None:
    test = parse_one(litmus(threads, condition, declarations))
    assert test.condition is not None
    for model in [*allowed.split(), *forbidden.split()]:
        states = list(reference.states(test, model))
        assert states, "no execution"
        found = any(evaluate(test.condition.proposition, s) for s in states)
        assert found == (model in allowed.split()), model


def test_litmus_2_final_values() -> None:
    """Two atomic operations that are not morally strong: 1 or 2 may remain, nothing else."""
    test = parse_one(litmus("atom.add.rlx.c r0,x,1 @A || atom.add.rlx.g r0,x,1 @B", "x == 1"))
    assert {s.memory["x", 0] for s in reference.states(test, "ptx-8.5")} == {1, 2}


def test_bounded_loops_are_cut() -> None:
    """A loop that is no spin loop is taken as often as asked."""
    text = litmus("A: add.u32 r0, r0, 1; setp.lt.u32 p0, r0, 5; @p0 bra A @A", "P0:r0 == 5", shorthand=False)
    test = parse_one(text.replace("A: add", "LOOP: add").replace("bra A", "bra LOOP"))
    assert not list(reference.states(test, "sc", unroll=3))
    assert [s.registers[0, "r0"] for s in reference.states(test, "sc", unroll=4)] == [5]


def test_deadlock_has_no_final_state() -> None:
    test = parse_one(litmus("bar.sync 0, 64 @A || ld r0,x @A", "P1:r0 == 0"))
    assert not list(reference.states(test, "ptx-8.5"))


ROOT = Path(__file__).resolve().parent.parent / "litmus"
NEW_FOLDERS = (
    "async", "atomics", "barriers", "cluster", "cp-async", "grids", "host", "mbarrier", "mixed-sizes", "restrict", "tcgen05", "tensormap", "vectors", "warps"
)  # fmt: skip
LITMUS = [path for folder in NEW_FOLDERS for path in sorted((ROOT / folder).glob("*.litmus"))]
OTHERS = sorted(set(ROOT.glob("*/*.litmus")) - set(LITMUS))


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.share(2)
@pytest.mark.parametrize("path", LITMUS, ids=named)
def test_litmus_files(path: Path) -> None:
    """The verdicts that the files of the newer instructions state, derived by hand or printed in the PTX ISA."""
    check_file(path, 20)


@pytest.mark.slow
@pytest.mark.parametrize("path", OTHERS, ids=named)
def test_other_litmus_files(path: Path) -> None:
    """Those of all other files; locks are too big."""
    try:
        check_file(path, 5)
    except TooSlow:
        pytest.skip("too slow for the reference")


def check_file(path: Path, seconds: float) -> None:
    """What ``Expect=`` says of the models, also under other readings."""
    (test,) = formats.read(path)
    assert test.condition is not None
    for model, expected in expectations(test, tuple(cat.index().models)).items():
        try:
            every = [assigned.test for assigned in assignments(test)]
            found = [one for each in every for one in reference.executions(each, model, seconds=seconds)]
        except NotImplementedError:
            pytest.skip("an instruction that the reference does not know")
        holds = {evaluate(test.condition.proposition, state) for state, _ in found}
        flags = {name for _, names in found for name in names}
        observation = {(): "none", (True,): "always", (False,): "never"}.get(tuple(holds), "sometimes")
        more = reference.unfinished(test, model, seconds=seconds) if expected.word == "undefined" else (set(), False)
        flags |= more[0] if more else set()
        if (more and more[1]) or flags & {"mixed-size-race", "mbarrier-before-init"}:
            observation = "undefined"
        if more is None and observation != "undefined":
            pytest.skip("misuse of a barrier, which ends a run of the reference without a word")
        if expected.word != "holds":
            assert observation == expected.word, model


FLOATS = {"f16": ("<e", "<H", Type("f", 16)), "f32": ("<f", "<I", Type("f", 32)), "f64": ("<d", "<Q", Type("f", 64))}


@pytest.mark.parametrize("name", FLOATS)
@given(data=st.data())
def test_float_addition(name: str, data: st.DataObject) -> None:
    """Against the arithmetic of the machine, which rounds the same way."""
    real, bits, kind = FLOATS[name]
    width = kind.bits
    a, b = (data.draw(st.floats(width=width, allow_nan=False, allow_infinity=False)) for _ in range(2))  # type: ignore[arg-type]
    x, y = (struct.unpack(bits, struct.pack(real, v))[0] for v in (a, b))
    try:
        expected = struct.unpack(bits, struct.pack(real, a + b))[0]
    except OverflowError:
        return
    assert reference_floats.compute("add", kind, [x, y]) == expected
    if a == a and a != b:
        least = struct.unpack(bits, struct.pack(real, min(a, b)))[0]
        assert reference_floats.compute("min", kind, [x, y]) == least


def test_special_floats() -> None:
    f32, bf16 = Type("f", 32), Type("bf", 16)
    infinity, nan = 0x7F800000, 0x7FFFFFFF
    assert reference_floats.compute("add", f32, [infinity, infinity | 1 << 31]) == nan
    assert reference_floats.compute("add", f32, [0x7F7FFFFF, 0x7F7FFFFF]) == infinity
    assert reference_floats.compute("add", f32, [1, 1]) == 2
    assert reference_floats.compute("add.ftz", f32, [1, 1 << 31 | 1]) == 0
    assert reference_floats.compute("add.ftz", f32, [1 << 31 | 1, 1 << 31 | 1]) == 1 << 31
    assert reference_floats.compute("min", f32, [0, 1 << 31]) == 1 << 31
    assert reference_floats.compute("max", f32, [nan, 0x3F800000]) == 0x3F800000
    assert reference_floats.compute("add", bf16, [0x3F80, 0x3B80]) == 0x3F80  # 1 + 2**-8: a tie, to even


def test_tensor_map_is_read_first() -> None:
    """A copy that wrote by a new map read it before: sequentially no load before the change of the map sees that."""
    text = """PTX tensor
{
  .global .align 64 .b8 m[128] = tensormap(g, u64, 2);
  .global .align 16 .u64 g[2] = {7, 0};
  .global .align 16 .u64 c[2] = {9, 0};
  .shared .align 16 .u64 s[2] @ cta 0 = {0, 0};
  .shared .b64 b @ cta 0 = mbarrier(0, 16);
  P0:rd = c;
}
P0 @ cta 0 {
  cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [m, {0}], [b];
  ld.shared.u64 r0, [s];
  tensormap.replace.tile.global_address.global.b1024.b64 [m], rd;
}
exists (P0:r0 == 9)
"""
    test = parse_one(text)
    assert test.condition is not None
    assert {s.registers[0, "r0"] for s in reference.states(test, "sc")} == {0, 7}
    assert {s.registers[0, "r0"] for s in reference.states(test, "ptx-8.5")} == {0, 7, 9}


def lanes(count: int, body: str, condition: str = "x == 0") -> str:
    """Lanes of one warp that do the same; ``#`` is the number of the lane."""
    declared = ".global .u32 x = 0; .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 3, 4};"
    threads = "".join(f"P{i} @ warp 0, cta 0 {{ {body.replace('#', str(i))}; }}\n" for i in range(count))
    return f"PTX lanes\n{{ {declared} }}\n{threads}exists ({condition})\n"


def ends(text: str, *registers: str) -> set[tuple[int, ...]]:
    """What the registers of all threads hold in each final state, thread by thread."""
    test = parse_one(text)
    threads = range(len(test.threads))
    return {tuple(s.registers[t, r] for t in threads for r in registers) for s in reference.states(test, "ptx-8.5")}


EXCHANGES = [  # three lanes with r1 = 10, 11, 12 and p1 = (lane > 0); what r2 and r3 hold
    ("shfl.sync.up.b32 r2|p2, r1, 1, 0, 7; selp.u32 r3, 1, 0, p2", (10, 0, 10, 1, 11, 1)),
    ("shfl.sync.down.b32 r2|p2, r1, 1, 2, 7; selp.u32 r3, 1, 0, p2", (11, 1, 12, 1, 12, 0)),
    ("shfl.sync.bfly.b32 r2|p2, r1, 2, 2, 7; selp.u32 r3, 1, 0, p2", (12, 1, 11, 0, 10, 1)),  # lane 3 is above 2
    ("shfl.sync.idx.b32 r2|p2, r1, 34, 31, 7; selp.u32 r3, 1, 0, p2", (12, 1, 12, 1, 12, 1)),  # 34 mod 32
    ("shfl.sync.idx.b32 r2|p2, r1, 0, 0x1e1f, 7; selp.u32 r3, 1, 0, p2", (10, 1, 10, 1, 12, 1)),  # pairs of lanes
    ("vote.sync.all.pred p2, p1, 7; vote.sync.any.pred p3, p1, 7; selp.u32 r2, 1, 0, p2; selp.u32 r3, 1, 0, p3",
     (0, 1, 0, 1, 0, 1)),
    ("vote.sync.uni.pred p2, p1, 7; vote.sync.ballot.b32 r3, !p1, 0xffffffff; selp.u32 r2, 1, 0, p2",
     (0, 1, 0, 1, 0, 1)),
    ("match.any.sync.b32 r2, r4, 7; match.all.sync.b32 r3, r4, 7", (1, 0, 6, 0, 6, 0)),
    ("match.all.sync.b32 r2|p2, 5, 7; selp.u32 r3, 1, 0, p2", (7, 1, 7, 1, 7, 1)),
    ("redux.sync.add.u32 r2, r1, 7; redux.sync.min.s32 r3, r4, 7", (33, 2, 33, 2, 33, 2)),
    ("redux.sync.xor.b32 r2, r1, 7; redux.sync.and.b32 r3, r1, 7", (13, 8, 13, 8, 13, 8)),
    ("barrier.red.popc.u32 r2, 0, p1; barrier.red.or.pred p2, 0, p1; selp.u32 r3, 1, 0, p2", (2, 1, 2, 1, 2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), EXCHANGES, ids=[code.partition(" ")[0] for code, _ in EXCHANGES])
def test_exchanges(code: str, expected: tuple[int, ...]) -> None:
    before = "add.u32 r1, #, 10; setp.gt.u32 p1, #, 0; selp.u32 r4, 3, 2, p1"
    assert ends(lanes(3, f"{before}; {code}"), "r2", "r3") == {expected}


def test_elections() -> None:
    """Any lane, the same for the same mask every time (9.7.14.14)."""
    code = "elect.sync r2|p2, 7; selp.u32 r3, 1, 0, p2"
    assert ends(lanes(3, code), "r2", "r3") == {(0, 1, 0, 0, 0, 0), (1, 0, 1, 1, 1, 0), (2, 0, 2, 0, 2, 1)}
    twice = "elect.sync r2|p2, 3; elect.sync r3|p2, {}"
    assert ends(lanes(2, twice.format(3)), "r2", "r3") == {(0, 0, 0, 0), (1, 1, 1, 1)}
    assert len(ends(lanes(2, twice.format(7)), "r2", "r3")) == 4


def test_exchanges_without_meaning() -> None:
    assert not ends(lanes(2, "shfl.sync.idx.b32 r1, #, 2, 31, 7"), "r1")  # lane 2 is not there
    assert not ends(lanes(2, "vote.sync.any.pred p1, p1, 1"), "p1")  # lane 1 is not in the mask
    assert not ends(lanes(2, "redux.sync.add.u32 r1, #, 3; redux.sync.add.s32 r1, #, 1"), "r1")


def test_products_read_in_the_async_proxy() -> None:
    """A product sees what is written before it only through a proxy fence (A33, A35)."""
    product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {t1, t2, t3, t4}, {k1, k2, k3, k4}, d1, 0, 1, 1, 0"
    zero = "mov.b32 k1, 0; mov.b32 k2, 0; mov.b32 k3, 0; mov.b32 k4, 0; mov.u64 d1, s"
    for fences, seen in (
        ("wgmma.fence.sync.aligned", {(1,), (9,)}),
        ("fence.proxy.async; wgmma.fence.sync.aligned", {(9,)}),
        ("fence.proxy.async", set()),  # without wgmma.fence it is undefined
    ):
        text = lanes(1, f"{zero}; st.shared.u32 [s], 9; {fences}; {product}").replace("warp 0, ", "")
        assert ends(text, "t1") == seen


def test_rows_of_matrices() -> None:
    text = lanes(
        1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r1}, [s]; ldmatrix.sync.aligned.m8n8.x1.trans.b16 {r2}, [s]"
    )
    assert ends(text.replace("warp 0, ", ""), "r1", "r2") == {(1, 0x10001)}


HALVES = (Type("f", 16), Type("bf", 16))  # only these have atomic minima and maxima (9.7.14.5)


@pytest.mark.parametrize(
    ("op", "kind"),
    [("add", k) for k in (*HALVES, Type("f", 32), Type("f", 64))] + [(op, k) for op in ("min", "max") for k in HALVES],
    ids=lambda v: v if isinstance(v, str) else v.name,
)
def test_both_engines_calculate_alike(op: str, kind: Type) -> None:
    """Infinities, subnormal numbers and not-a-numbers: no result depends on the machine."""
    exponents, digits = reference_floats.FORMATS[kind.kind, kind.bits]
    top = (1 << exponents) - 1
    mantissas = {0, 1, (1 << digits) - 1, 1 << digits - 1, (1 << digits - 1) + 1}
    patterns = [
        sign << kind.bits - 1 | exponent << digits | mantissa
        for sign in (0, 1)
        for exponent in (0, 1, top // 2, top - 1, top)
        for mantissa in mantissas
    ]
    for a, b in itertools.product(patterns, patterns):
        expected = reference_floats.compute(op, kind, [a, b])
        assert floats.operate(op, kind, a, b) == expected
        assert symbolic_floats.compute_float(op, kind, [a, b]) == expected
        if op == "add" and kind.bits == 32:
            flushed = reference_floats.compute("add.ftz", kind, [a, b])
            assert floats.operate("add.ftz", kind, a, b) == flushed
            assert symbolic_floats.compute_float("add.ftz", kind, [a, b]) == flushed
