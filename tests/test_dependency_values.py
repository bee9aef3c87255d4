"""Reading dep=value (PTX ISA 8.10.4): which reads make a difference to what is stored, where, and whether it is.

Each case is derived by hand. A load can return what its own thread stores, by way of another thread, iff the store does
not depend on it.
"""

from __future__ import annotations

import random
from functools import reduce
from itertools import product

import pytest
import z3

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.events.explicit.values import circuits, essence
from ptxmm.events.explicit.values.arithmetic import COMPARISONS, compute
from ptxmm.events.explicit.values.circuits import _Circuits
from ptxmm.events.explicit.values.diagrams import Diagrams, number
from ptxmm.events.explicit.values.expressions import Expressions
from ptxmm.events.explicit.values.node import Node, Undecidable
from ptxmm.events.explicit.values.node import evaluate as value_of
from ptxmm.events.symbolic.values.bitvectors import vector as in_z3
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.expressions import Expressions as Numbers
from ptxmm.program.condition import evaluate
from ptxmm.program.shared.control import control_flow
from ptxmm.ptx.ops import Type
from ptxmm.ptx.ops.signatures import source_types
from tests import reference
from tests.reference_dependencies import TooSlow
from tests.reference_dependencies import settled as reference_settled
from tests.reference_expressions import Expr, apply, const, reads
from tests.support import ask, parse_one

U32, S32, PRED = Type("u", 32), Type("s", 32), Type("pred", 1)
U16 = Type("u", 16)
LOAD, STORE = "ld.relaxed.gpu.global.u32", "st.relaxed.gpu.global.u32"

# name; which of r0 and r1 the store of r2 depends on; how r2 is made of r0 and r1. Where what is to be stored may be 0,
# an `or` sets the lowest bit that no part of the case is about.
VALUES = (
    ("an unsigned number is not negative", "", "setp.lt.u32 p, r0, 0; selp.u32 r2, 5, 7, p"),
    ("minimum with the least", "", "min.u32 r2, r0, 0; add.u32 r2, r2, 1"),
    ("maximum with the greatest", "", "max.u32 r2, r0, 0xffffffff"),
    ("minimum with the least, signed", "", "min.s32 r2, r0, 0x80000000"),
    ("minimum with another", "0", "min.u32 r2, r0, 1; add.u32 r2, r2, 1"),
    ("disjoint masks", "", "and.b32 r2, r0, 0xf0; and.b32 r2, r2, 0x0f; add.u32 r2, r2, 1"),
    ("a mask of a mask", "0", "and.b32 r2, r0, 0xf0; and.b32 r2, r2, 0x1f; add.u32 r2, r2, 1"),
    ("shifted out after a mask", "", "and.b32 r2, r0, 15; shr.u32 r2, r2, 4; add.u32 r2, r2, 1"),
    ("shifted, but not out", "0", "and.b32 r2, r0, 15; shr.u32 r2, r2, 3; add.u32 r2, r2, 1"),
    ("shifted out in two steps", "", "shr.u32 r2, r0, 31; shr.u32 r2, r2, 1; add.u32 r2, r2, 1"),
    ("the sign goes on", "0", "shr.s32 r2, r0, 31; shr.s32 r2, r2, 1; add.u32 r2, r2, 1"),
    ("a number with a bit set is not 0", "", "or.b32 r2, r0, 1; setp.ne.u32 p, r2, 0; selp.u32 r2, 5, 7, p"),
    ("the lowest bit of the double", "", "mul.lo.u32 r2, r0, 2; and.b32 r2, r2, 1; add.u32 r2, r2, 1"),
    ("the next bit of the double", "0", "mul.lo.u32 r2, r0, 2; and.b32 r2, r2, 2; add.u32 r2, r2, 1"),
    ("a number and its negative", "", "neg.s32 r2, r0; add.u32 r2, r2, r0; add.u32 r2, r2, 1"),
    ("a number and its complement", "", "not.b32 r2, r0; or.b32 r2, r2, r0"),
    ("the difference of a number and a copy", "", "mov.u32 r3, r0; sub.u32 r2, r3, r0; add.u32 r2, r2, 1"),
    ("a difference by a detour", "", "add.u32 r3, r0, 1; sub.u32 r2, r3, r0"),
    ("a quotient by more than there is", "", "and.b32 r2, r0, 7; div.u32 r2, r2, 8; add.u32 r2, r2, 1"),
    ("a remainder of 1", "", "rem.u32 r2, r0, 1; add.u32 r2, r2, 1"),
    ("a bit that no remainder of 2 has", "", "rem.u32 r2, r0, 2; and.b32 r2, r2, 2; add.u32 r2, r2, 1"),
    ("a remainder of 3", "0", "rem.u32 r2, r0, 3; add.u32 r2, r2, 1"),
    ("equal arms", "", "setp.eq.u32 p, r0, 3; selp.u32 r2, 5, 5, p"),
    ("arms that are equal by another way", "", "setp.eq.u32 p, r0, 3; add.u32 r3, r1, r1; shl.b32 r2, r1, 1;"
     " selp.u32 r2, r2, r3, p; and.b32 r2, r2, 0; or.b32 r2, r2, 1"),
    ("which of two equal values", "1", "setp.eq.u32 p, r0, 3; add.u32 r3, r1, r1; shl.b32 r2, r1, 1;"
     " selp.u32 r2, r2, r3, p; or.b32 r2, r2, 1"),
    ("p or not p", "", "setp.eq.u32 p, r0, 3; setp.ne.u32 q, r0, 3; or.pred p, p, q; selp.u32 r2, 5, 7, p"),
    ("p and not p", "", "setp.eq.u32 p, r0, 3; not.pred q, p; and.pred p, p, q; selp.u32 r2, 5, 7, p"),
    ("p or another", "01", "setp.eq.u32 p, r0, 3; setp.ne.u32 q, r1, 3; or.pred p, p, q; selp.u32 r2, 5, 7, p"),
    ("one of two, the other twice", "1", "xor.b32 r2, r0, r1; xor.b32 r2, r2, r0; or.b32 r2, r2, 1"),
    ("both", "01", "xor.b32 r2, r0, r1; or.b32 r2, r2, 1"),
    ("neither", "", "xor.b32 r2, r0, r1; xor.b32 r3, r1, r0; xor.b32 r2, r2, r3; or.b32 r2, r2, 1"),
    ("a sum without one of its parts", "1", "add.u32 r2, r0, r1; sub.u32 r2, r2, r0; or.b32 r2, r2, 1"),
    ("narrowed and widened", "", "and.b32 r2, r0, 0xff00; cvt.u8.u32 rs1, r2; cvt.u32.u8 r2, rs1; or.b32 r2, r2, 1"),
    ("narrowed with what is left", "0",
     "and.b32 r2, r0, 0xff0; cvt.u8.u32 rs1, r2; cvt.u32.u8 r2, rs1; or.b32 r2, r2, 1"),
    ("a field of what was cleared", "", "and.b32 r2, r0, 0xff; bfe.u32 r2, r2, 8, 8; or.b32 r2, r2, 1"),
    ("a field of what was left", "0", "and.b32 r2, r0, 0x1fe; bfe.u32 r2, r2, 8, 8; or.b32 r2, r2, 2"),
    ("bytes of the other register", "1", "prmt.b32 r2, r0, r1, 0x7654; or.b32 r2, r2, 1"),
    ("a table that looks at the second operand only", "1", "lop3.b32 r2, r0, r1, r1, 0xcc; or.b32 r2, r2, 1"),
    ("a table of ones", "", "lop3.b32 r2, r0, r1, r1, 0xff"),
    ("a comparison out of range", "", "and.b32 r2, r0, 255; setp.gt.u32 p, r2, 255; selp.u32 r2, 5, 7, p"),
    ("a floating-point product by 0 and a mask", "0",
     "mov.b32 f1, r0; sub.f32 f2, f1, f1; mov.b32 r2, f2; or.b32 r2, r2, 1"),
    ("of the same floating-point number the same is taken away", "",
     "mov.b32 f1, r0; add.f32 f2, f1, 0f3f800000; mov.b32 r3, f2; xor.b32 r2, r3, r3; or.b32 r2, r2, 1"),
    ("a floating-point number of what makes no difference", "",
     "min.u32 r2, r0, 0; mov.b32 f1, r2; add.f32 f2, f1, 0f3f800000; mov.b32 r2, f2"),
)  # fmt: skip

# The store of 1, and which of r0 and r1 it depends on.
STORES = (
    ("a guard that always holds", "", f"setp.ge.u32 p, r0, 0; @p {STORE} [y], 1"),
    ("a guard that holds or not", "0", f"setp.ge.u32 p, r0, 1; @!p {STORE} [y], 1"),
    ("a branch that is always taken", "",
     f"setp.ge.u32 p, r0, 0; @p bra K; {STORE} [y], 2; bra J; K: {STORE} [y], 1; J: mov.u32 r4, 0"),
    ("an exit that never is", "", f"setp.lt.u32 p, r0, 0; @p exit; {STORE} [y], 1"),
    ("a loop that is left at once", "", f"L: {LOAD} r1, [z]; setp.lt.u32 p, r1, 0; @p bra L; {STORE} [y], 1"),
    ("the same store with opposite guards", "", f"setp.eq.u32 p, r0, 1; @p {STORE} [y], 1; @!p {STORE} [y], 1"),
    ("the same, with something in between", "",
     f"setp.eq.u32 p, r0, 1; @!p {STORE} [y], 1; add.u32 r4, r1, 1; @p {STORE} [y], 1"),
    ("with a fence in between", "0",
     f"setp.eq.u32 p, r0, 1; @!p {STORE} [y], 1; fence.acq_rel.gpu; @p {STORE} [y], 1"),
    ("with a guard that has changed", "0",
     f"setp.eq.u32 p, r0, 0; @p {STORE} [y], 1; setp.eq.u32 p, r1, 0; @!p {STORE} [y], 1"),
    ("stores of two strengths", "0", f"setp.eq.u32 p, r0, 1; @p {STORE} [y], 1; @!p st.global.u32 [y], 1"),
    ("the same store on both arms", "",
     f"setp.eq.u32 p, r0, 1; @p bra K; {STORE} [y], 1; bra J; K: {STORE} [y], 1; J: mov.u32 r4, 0"),
    ("the same on both arms, but of another value", "0",
     f"mov.u32 r4, 1; setp.eq.u32 p, r0, 1; @p bra K; mov.u32 r4, 2; {STORE} [y], r4; bra J; K: {STORE} [y], r4;"
     " J: mov.u32 r4, 0"),
    ("both arms in a branch of another", "1",
     f"setp.eq.u32 q, r1, 0; @!q bra J; setp.eq.u32 p, r0, 1; @p bra K; {STORE} [y], 1; bra J; K: {STORE} [y], 1;"
     " J: mov.u32 r4, 0"),
    ("an address to which nothing is added", "",
     f"and.b32 r2, r0, 1; shl.b32 r2, r2, 31; shl.b32 r2, r2, 1; cvt.u64.u32 rd1, r2; mov.u64 rd2, y;"
     f" add.u64 rd2, rd2, rd1; {STORE} [rd2], 1"),
)  # fmt: skip

P = "setp.eq.u32 p, r0, 1; setp.eq.u32 q, r1, 1; "

# What a branch on r0 decides of r2, which holds 1 unless something else is said; and of others that r2 is made of.
ARMS = (
    ("the same constant as before the branch", "", f"{P} mov.u32 r2, 1; @p bra K; mov.u32 r2, 1; K:"),
    ("another constant", "0", f"{P} mov.u32 r2, 2; @p bra K; mov.u32 r2, 1; K:"),
    ("the initial value", "", f"{P} @p bra K; mov.u32 r3, 0; K: add.u32 r2, r3, 1"),
    ("another than the initial value", "0", f"{P} @p bra K; mov.u32 r3, 2; K: add.u32 r2, r3, 1"),
    ("one constant on both arms", "", f"{P} @p bra K; mov.u32 r2, 1; bra J; K: mov.b32 r2, 0x1; J:"),
    ("one on each", "0", f"{P} @p bra K; mov.u32 r2, 1; bra J; K: mov.u32 r2, 3; J:"),
    ("the same computation on both arms", "1", f"{P} @p bra K; or.b32 r2, r1, 1; bra J; K: or.b32 r2, r1, 1; J:"),
    ("the same in two steps, by other registers", "1",
     f"{P} @p bra K; mov.u32 r3, r1; or.b32 r2, r3, 1; bra J; K: mov.u32 r4, r1; or.b32 r2, r4, 1; J:"),
    ("a computation of a register that one arm changes", "0",
     f"{P} mov.u32 r3, 4; @p bra K; mov.u32 r3, 2; or.b32 r2, r3, 1; bra J; K: or.b32 r2, r3, 1; J:"),
    ("the same operation in other types", "0",
     f"{P} mov.u32 r3, 4; @p bra K; shr.u32 r2, r3, 1; bra J; K: shr.s32 r2, r3, 1; J:"),
    ("two arms of one value inside of an arm", "",
     f"{P} mov.u32 r2, 1; @p bra J; @q bra K; mov.u32 r2, 1; bra L; K: mov.u32 r2, 1; L: mov.u32 r3, 2; J:"),
    ("two arms of two values inside of an arm", "01",
     f"{P} mov.u32 r2, 1; @p bra J; @q bra K; mov.u32 r2, 1; bra L; K: mov.u32 r2, 2; L: mov.u32 r3, 2; J:"),
    ("two branches with one join, of which the inner one changes nothing", "0",
     f"{P} mov.u32 r2, 2; @p bra K; mov.u32 r2, 1; @q bra K; mov.u32 r2, 1; K:"),
    ("two branches with one join, of which the inner one decides another register", "0",
     f"{P} mov.u32 r2, 2; @p bra K; mov.u32 r2, 1; @q bra K; mov.u32 r3, 1; K:"),
    ("two branches with one join that change nothing", "",
     f"{P} mov.u32 r2, 1; @p bra K; mov.u32 r2, 1; @q bra K; mov.u32 r2, 1; K:"),
    ("the same guarded computation", "1",
     f"{P} mov.u32 r2, 2; @p bra K; @q mov.u32 r2, 1; bra J; K: @q mov.u32 r2, 1; J:"),
    ("guards that differ", "01", f"{P} mov.u32 r2, 2; @p bra K; @q mov.u32 r2, 1; bra J; K: @!q mov.u32 r2, 1; J:"),
    ("a guard that does not matter inside of an arm", "", f"{P} mov.u32 r2, 1; @p bra K; @q mov.u32 r2, 1; K:"),
    ("what is loaded on both arms", "0",
     f"{P} @p bra K; {LOAD} r2, [x]; bra J; K: {LOAD} r2, [x]; J: or.b32 r2, r2, 1"),
    ("one constant on both arms, behind loads", "",
     f"{P} @p bra K; {LOAD} r3, [x]; mov.u32 r2, 1; bra J; K: {LOAD} r4, [z]; mov.u32 r2, 1; J:"),
    ("a loop in an arm", "0",
     f"{P} mov.u32 r2, 2; @p bra K; mov.u32 r3, 0; L: add.u32 r3, r3, 1; setp.lt.u32 s, r3, 2; @s bra L;"
     " mov.u32 r2, 1; K:"),
    ("arms within a round of a loop", "",
     f"{P} mov.u32 r3, 0; L: add.u32 r3, r3, 1; @p bra K; mov.u32 r2, r3; bra J; K: mov.u32 r2, r3; J:"
     " setp.lt.u32 s, r3, 2; @s bra L"),
    ("arms within a round that keep what the round before left", "0",
     f"{P} mov.u32 r2, 1; mov.u32 r3, 0; L: add.u32 r3, r3, 1; @p bra K; mov.u32 r2, r3; K:"
     " setp.lt.u32 s, r3, 2; @s bra L"),
    ("an arm that stands before the branch", "",
     f"{P} bra B; A: mov.u32 r2, 1; bra J; B: @p bra A; mov.u32 r2, 1; J:"),
    ("floating-point numbers", "1",
     f"{P} mov.b32 f1, r1; @p bra K; add.f32 f2, f1, 0f3f800000; bra J; K: add.f32 f2, f1, 0f3f800000; J:"
     " mov.b32 r2, f2; or.b32 r2, r2, 1"),
)  # fmt: skip


def program(body: str) -> str:
    lines = "; ".join((f"{LOAD} r0, [x]", f"{LOAD} r1, [z]", body))
    return (
        "PTX values\n{ .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0; }\n"
        f"P0 @ cta 0 {{ {lines}; }}\n"
        f"P1 @ cta 1 {{ {LOAD} r8, [y]; {STORE} [x], r8; }}\n"
        f"P2 @ cta 2 {{ {LOAD} r9, [y]; {STORE} [z], r9; }}\nexists (P0:r{{}} != 0)\n"
    )


CASES = [(name, which, f"{how}; {STORE} [y], r2") for name, which, how in VALUES] + list(STORES)
CASES += [(name, which, f"{how}{'' if how.endswith(':') else ';'} {STORE} [y], r2") for name, which, how in ARMS]


@pytest.mark.parametrize(("which", "body"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_a_store_depends_on(which: str, body: str) -> None:
    for register in "01":
        test = parse_one(program(body).replace("r{}", f"r{register}"))
        assert test.condition is not None
        for engine in ("z3", "enumerate"):
            found = check(test, load("ptx-8.5"), engine=engine).observation == "sometimes"
            assert found is (register not in which), (engine, register)
        try:
            found = any(evaluate(test.condition.proposition, s) for s in reference.states(test, "ptx-8.5"))
        except TooSlow:
            continue
        assert found is (register not in which), ("reference", register)


WARP = """PTX vote
{ .global .u32 x = 0; .global .u32 y = 0; }
P0 @ cta 0, warp 0 { ld.relaxed.gpu.global.u32 r0, [x]; SETP; vote.sync.any.pred q, p, 0x3;
  @q st.relaxed.gpu.global.u32 [y], 1; }
P1 @ cta 0, warp 0 { SETQ; vote.sync.any.pred q, p, 0x3; }
P2 @ cta 1 { ld.relaxed.gpu.global.u32 r1, [y]; st.relaxed.gpu.global.u32 [x], r1; }
exists (P0:r0 == 1)
"""


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("setp.ge.u32 p, r0, 0", "setp.eq.u32 p, 0, 1", "sometimes"),
        ("setp.ge.u32 p, r0, 1", "setp.eq.u32 p, 0, 1", "never"),
        # of the other lane's predicate, which always holds, the vote is taken all the same
        ("setp.ge.u32 p, r0, 1", "setp.eq.u32 p, 1, 1", "never"),
    ],
)
def test_votes_depend_on_what_their_operands_do(own: str, other: str, expected: str) -> None:
    test = parse_one(WARP.replace("SETP", own).replace("SETQ", other))
    assert test.condition is not None
    for engine in ("z3", "enumerate"):
        assert check(test, load("ptx-8.5"), engine=engine).observation == expected
    found = any(evaluate(test.condition.proposition, s) for s in reference.states(test, "ptx-8.5"))
    assert found == (expected == "sometimes")


@pytest.mark.parametrize("dep", ["sem", "syn"])
def test_other_readings_keep_them(dep: str) -> None:
    _, which, body = CASES[1]
    assert not which
    test = parse_one(program(body).replace("r{}", "r0"))
    for engine in ("z3", "enumerate"):
        assert check(test, load("ptx-8.5", {"dep": dep}), engine=engine).observation == "never"


# ---- random expressions ----------------------------------------------------------------------------------------------

TWO = ("add", "sub", "and", "or", "xor", "min", "max", "mul.lo", "eq", "lt", "ge", "shl", "shr")
ONE = ("not", "neg", "cnot")
WIDTHS = (3, 3, 2)


class Three:
    """One expression in the three forms."""

    def __init__(self, node: Node, number: int, expr: Expr) -> None:
        self.node, self.number, self.expr = node, number, expr


def build(rng: random.Random, nodes: Expressions, numbers: Numbers, leaves: list[Three], depth: int) -> Three:
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.7:
            return rng.choice(leaves)
        value = rng.choice((0, 1, 2, 4, 7, 31, 0xFFFFFFFF, 0xFFFFFFF8))
        return Three(nodes.constant(value), numbers.constant(value), const(value))
    one, other, third = (build(rng, nodes, numbers, leaves, depth - 1) for _ in range(3))
    type_ = rng.choice((U32, S32))
    roll = rng.random()
    if roll < 0.15:
        op = rng.choice(ONE)
        made = nodes.operation(op, type_, one.node), numbers.operation(op, type_, [one.number])
        return Three(*made, apply(op, type_, one.expr))
    if roll < 0.25:
        truth = nodes.operation("ne", U32, one.node, nodes.constant(0))
        number = numbers.operation("ne", U32, [one.number, numbers.constant(0)])
        expr = apply("ne", U32, one.expr, const(0))
        node = nodes.select(truth, other.node, third.node)
        return Three(
            node,
            numbers.operation("select", U32, [other.number, third.number, number]),
            apply("select", U32, expr, other.expr, third.expr),
        )
    op = rng.choice(TWO)
    made = nodes.operation(op, type_, one.node, other.node), numbers.operation(op, type_, [one.number, other.number])
    return Three(*made, apply(op, type_, one.expr, other.expr))


def by_trying(node: Node, leaves: list[Three]) -> set[int]:
    """The sources that make a difference, by every value of all."""
    table = {v: value_of(node, list(v)) for v in product(*(range(1 << w) for w in WIDTHS))}
    return {i for i in range(len(leaves)) for v, result in table.items() if table[(*v[:i], 0, *v[i + 1 :])] != result}


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions(seed: int) -> None:
    """The explicit side, Z3 and the reference find what trying all values finds."""
    rng = random.Random(f"essential/{seed}")
    nodes, numbers = Expressions(True, True), Numbers(True, True)
    leaves = [Three(nodes.leaf(i, None, w), numbers.leaf(w, "leaf", i), ("read", (0, i))) for i, w in enumerate(WIDTHS)]
    for _ in range(4):
        made = build(rng, nodes, numbers, leaves, 3)
        expected = by_trying(made.node, leaves)
        found = nodes.settled(made.node).reads
        assert {i for i in range(3) if found >> i & 1} == expected
        known = numbers.essential(made.number)
        assert {i for i, leaf in enumerate(leaves) if leaf.number in known} == expected
        try:
            settled = reference_settled(made.expr, lambda source: WIDTHS[source[1][1]])
        except TooSlow:
            continue
        assert {i for _, i in reads(settled)} == expected


BITS = Type("b", 32), Type("b", 64)
BOTH = tuple(Type(kind, bits) for kind in "us" for bits in (16, 32, 64))
OPERATIONS = (
    *product(("add", "sub", "mul.lo", "mul.hi", "and", "or", "xor", "not", "cnot", "neg", "abs", "shl", "shr"), BOTH),
    *product(("min", "max", "div", "rem", "sad", "eq", "ne", "lt", "le", "gt", "ge"), BOTH),
    *product(("bfe", "mul.wide"), (U32, S32)),
    *product(("bfi", "popc", "clz", "brev"), BITS),
    *product(("lop3", "lop3.and", "shf.l.clamp", "shf.l.wrap", "shf.r.clamp", "shf.r.wrap", "prmt"), BITS[:1]),
    *product(("slct.s32", "set.lt.and.u32", "set.ge.f32", "set.ne.xor_not.u32"), (U32, S32)),
)


@pytest.mark.parametrize(("op", "type_"), OPERATIONS, ids=lambda item: item if isinstance(item, str) else item.name)
def test_operations_bit_by_bit(op: str, type_: Type) -> None:
    """Diagrams and bit vectors compute what the interpreter and the values of the symbolic side do."""
    rng = random.Random(f"{op} {type_.name}")
    types = source_types(op, type_) if op not in COMPARISONS else (type_, type_)
    circuits = _Circuits(Diagrams())
    for _ in range(8):
        corners = 0, 1, -1, rng.randrange(70)
        given = [rng.choice((rng.getrandbits(64), rng.getrandbits(64), *corners)) & (1 << t.bits) - 1 for t in types]
        expected = compute(op, type_, *given)
        vector = circuits.of(_operation(op, type_, len(given)), [number(v, 128) for v in given])
        assert sum(bit << i for i, bit in enumerate(vector)) == expected
        made = Computation(op, type_, (), lambda: 0)
        assert z3.simplify(in_z3(made, [z3.BitVecVal(v, 128) for v in given])).as_long() == expected


def _operation(op: str, type_: Type, count: int) -> Node:
    return Node(op, type_, tuple(Node("leaf", None, (), 0, None) for _ in range(count)), 0, None)


def test_what_is_too_much_is_said() -> None:
    """Two products of three numbers in two orders are equal, which no diagram of a few nodes tells."""
    nodes = Expressions(True, True)
    a, b, c = (nodes.leaf(i, None, 32) for i in range(3))
    one = nodes.operation("mul.lo", U32, nodes.operation("mul.lo", U32, a, b), c)
    other = nodes.operation("mul.lo", U32, a, nodes.operation("mul.lo", U32, b, c))
    with pytest.raises(Undecidable):
        nodes.settled(nodes.operation("sub", U32, one, other))


def test_what_is_too_much_is_refused_with_its_place() -> None:
    body = (
        "mul.lo.u32 r2, r0, r1; mul.lo.u32 r2, r2, r1; mul.lo.u32 r3, r1, r1; mul.lo.u32 r3, r0, r3;"
        f" sub.u32 r2, r2, r3; {STORE} [y], r2"
    )
    test = parse_one(program(body).replace("r{}", "r0"))
    with pytest.raises(PtxmmError, match="too much to decide") as caught:
        ask("enumerate", test, load("ptx-8.5"))
    assert caught.value.kind == "unsupported" and caught.value.line is not None
    assert "dep=sem" in (caught.value.hint or "")


# ---- stores on both sides --------------------------------------------------------------------------------------------


def twins(body: str) -> dict[int, int]:
    declared = ".global .u32 x = 0; .global .u32 y = 0; P0:r0 = 0; P0:r1 = 0; .reg .u32 P0:r1; .reg .u32 P0:r2;"
    test = parse_one(f"PTX t\n{{ {declared} }}\nP0 @ cta 0 {{ {body}; }}\nexists (x == 0)\n")
    return dict(control_flow(test.threads[0], values=True).twins)


def test_twins() -> None:
    p = "setp.eq.u32 p, r0, 1; "
    assert twins(p + "@p st.global.u32 [x], r1; @!p st.global.u32 [x], r1") == {1: 1, 2: 2}
    assert twins(p + "mov.u32 r2, 1; @p st.global.u32 [x], r1; @!p st.global.u32 [x], r2") == {}
    assert twins(p + "@p st.global.u32 [x], r1; @!p st.global.u32 [y], r1") == {}
    assert twins(p + "@p st.global.u32 [x], r1; @p st.global.u32 [x], r1") == {}
    twice = "@p st.global.u32 [x], r1; @p st.global.u32 [x], r1; @!p st.global.u32 [x], r1"
    assert twins(p + twice) == {1: 1, 3: 3}, "the second is made if p holds only"
    assert twins(f"{p}{twice}; {twice.split(';')[2]}") == {1: 1, 2: 2, 3: 3, 4: 4}
    assert twins(p + "@p st.global.u32 [x], r1; mov.u32 r1, 2; @!p st.global.u32 [x], r1") == {}
    # two ways to the second store
    assert twins(p + "@p st.global.u32 [x], r1; L: @!p st.global.u32 [x], r1; setp.eq.u32 q, r0, 0; @q bra L") == {}
    arms = p + "@p bra K; {} bra J; K: {} J: mov.u32 r2, 0"
    store = "st.global.u32 [x], r1;"
    assert twins(arms.format(store, store)) == {2: 1, 4: 1}
    assert twins(arms.format(store, store + store)) == {2: 1, 4: 1}
    assert twins(arms.format("mov.u32 r1, 3; " + store, store)) == {}
    assert twins(arms.format("mov.u32 r3, 3; " + store, store)) == {3: 1, 5: 1}
    assert twins(arms.format("bar.sync 0; " + store, store)) == {}
    assert twins(p + "@p bra J; st.global.u32 [x], r1; J: mov.u32 r2, 0") == {}
    # what arrives, and an atomic
    assert twins(arms.format("bar.sync 0;", "bar.sync 0;")) == {2: 1, 4: 1}
    assert twins(arms.format(store + "bar.arrive 1, 64; " + store, "bar.arrive 1, 64; " + store)) == {3: 1, 6: 1}
    assert twins(arms.format("bar.sync 0;", "bar.sync 1;")) == {}
    red = "red.relaxed.gpu.global.add.u32 [x], r1;"
    assert twins(p + f"@p {red} @!p {red[:-1]}") == {1: 1, 2: 2}
    assert twins(p + f"@p {red} fence.acq_rel.gpu; @!p {red[:-1]}") == {}
    # the same values in other registers
    assert twins(arms.format("mov.u32 r1, 3; " + store, "mov.u32 r2, 3; " + store.replace("r1", "r2"))) == {3: 1, 6: 1}
    assert twins(arms.format("add.u32 r1, r0, 3; " + store, "add.u32 r1, r0, 3; " + store)) == {3: 1, 6: 1}
    assert twins(arms.format("add.u32 r1, r0, 3; " + store, "add.u32 r1, r0, 4; " + store)) == {}
    assert twins(arms.format("ld.global.u32 r1, [y]; " + store, "ld.global.u32 r1, [y]; " + store)) == {}
    assert twins(arms.format("st.global.u32 [x], -1;", "st.global.u32 [x], 4294967295;")) == {2: 1, 4: 1}
    half = "red.relaxed.gpu.global.add.noftz.f16x2 [x], r1;"
    assert twins(arms.format("mov.u32 r1, 0x10001; " + half, "mov.u32 r1, 1; " + half)) == {}


GUARDS = (
    # the second predicate, from r0 and r1, where the first is `setp.lt.u32 p, r0, r1`; whether it is the opposite
    ("setp.ge.u32 q, r0, r1;", True),
    ("setp.le.u32 q, r1, r0;", True),
    ("setp.hs.u32 q, r0, r1;", True),
    ("not.pred q, p;", True),
    ("not.pred s, p; mov.pred q, s;", True),
    ("mov.u32 r2, r0; setp.ge.u32 q, r2, r1;", True),
    ("setp.gt.u32 q, r0, r1;", False),
    ("setp.ge.s32 q, r0, r1;", False),
    ("setp.ge.u32 q, r1, r0;", False),
    ("setp.lt.u32 q, r0, r1;", False),
    ("not.pred s, p; not.pred q, s;", False),
    ("setp.ge.and.u32 q, r0, r1, p;", False),
    ("add.u32 r2, r0, 0; setp.ge.u32 q, r2, r1;", False),
    ("@p setp.ge.u32 q, r0, r1;", False),
)


@pytest.mark.parametrize(("second", "opposite"), GUARDS)
def test_opposite_guards(second: str, opposite: bool) -> None:
    store = "st.global.u32 [x], r0;"
    first = "ld.global.u32 r0, [x]; ld.global.u32 r1, [y]; setp.lt.u32 p, r0, r1;"
    place = 3 + second.count(";")
    found = twins(f"{first} {second} @p {store} @q {store[:-1]}")
    assert found == ({place: place, place + 1: place + 1} if opposite else {})
    same = twins(f"{first} {second} @p {store} @!q {store[:-1]}")
    alike = not opposite and second in ("setp.lt.u32 q, r0, r1;", "not.pred s, p; not.pred q, s;")
    assert same == ({place: place, place + 1: place + 1} if alike else {})


def test_opposite_guards_of_one_comparison() -> None:
    stores = "@p st.global.u32 [x], 1; @q st.global.u32 [x], 1"
    assert twins("setp.eq.u32 p|q, r0, 1; " + stores) == {1: 1, 2: 2}
    assert twins("setp.eq.u32 p, r0, 1; setp.ne.u32 q, 1, r0; " + stores) == {2: 2, 3: 3}
    assert twins("setp.eq.u32 s, r1, 1; setp.eq.or.u32 p|q, r0, 1, s; " + stores) == {}
    floats = "ld.global.f32 f0, [x]; ld.global.f32 f1, [y]; mov.u32 r0, 1; "
    floats += "setp.{}.f32 p, f0, f1; setp.{}.f32 q, f0, f1; " + stores
    for cmp, opposite in (("lt", "geu"), ("eq", "neu"), ("num", "nan"), ("gtu", "le")):
        assert twins(floats.format(cmp, opposite)) == {5: 5, 6: 6}, cmp
    for cmp, other in (("lt", "ge"), ("eq", "ne"), ("lt", "ltu"), ("ltu", "geu")):
        assert twins(floats.format(cmp, other)) == {}, cmp


def test_sums_are_told_by_their_factors() -> None:
    """Sums and differences of a few numbers, as diagrams have it; and one of a hundred, which no diagram tells."""
    rng, mixed = random.Random(7), 0
    for _ in range(60):
        nodes = Expressions(True, True)
        leaves = [nodes.leaf(i, None, 16) for i in range(3)]
        parts = list(leaves)
        for _ in range(rng.randint(2, 6)):
            op = rng.choice(("add", "add", "sub", "sub", "neg"))
            parts.append(nodes.operation(op, U16, *(rng.choice(parts) for _ in range(1 if op == "neg" else 2))))
        order, sources = essence._parts(parts[-1])
        if not order or parts[-1].constant:
            continue
        found = essence._summed(order, sources)
        assert found == circuits.essential(order, sources)
        mixed += 0 < len(found) < len(sources)
    assert mixed >= 5
    nodes = Expressions(True, True)
    leaves = [nodes.leaf(i, None, 32) for i in range(100)]
    total = reduce(lambda a, b: nodes.operation("add", U32, a, b), leaves)
    order, sources = essence._parts(nodes.operation("sub", U32, total, leaves[40]))
    found = essence._summed(order, sources)
    assert found is not None and [s.number for i, s in enumerate(sources) if i not in found] == [40]
