"""The instruction table: what every instruction resolves to, and the exact text of every refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.ptx import isa, ops
from ptxmm.ptx.isa import ADDRESS, PREDICATE, S64
from ptxmm.ptx.ops import Address, Imm, Op, Reg, Source, Sym, Type
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.qualifiers import row_of
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import DIALECT, FORMS, Form, Version
from ptxmm.ptx.tables.wording import named

B8, B16, B32, B64, PRED = Type("b", 8), Type("b", 16), Type("b", 32), Type("b", 64), PREDICATE
U8, U16, U32, U64 = Type("u", 8), Type("u", 16), Type("u", 32), Type("u", 64)
S8, S16, S32 = Type("s", 8), Type("s", 16), Type("s", 32)
VARIABLES = {"x", "y"}
LABELS = {"L": 3, "done": 9}
X = Address(Sym("x"))
HERE = Source(span=None, text="")  # type: ignore[arg-type]
A, B, C, D, P, Q = (Reg(n) for n in ("a", "b", "c", "d", "p", "q"))


def parsed(text: str) -> Instruction:
    (item,) = parse_statements(text)
    assert isinstance(item, Instruction)
    return item


def resolve(text: str, dialect: bool = False) -> Op:
    return isa.resolve(parsed(text), dialect=dialect, variables=VARIABLES, labels=LABELS)


def plain(op: Op) -> Op:
    """``op`` without its place in the input."""
    return replace(op, source=HERE)


def load(typ: Type, sem: str = "weak", scope: ops.Scope | None = None, space: str | None = None, **more: Any) -> Op:
    return ops.Load((D,), X, typ, sem, scope, space, HERE, **more)


def store(typ: Type, sem: str = "weak", scope: ops.Scope | None = None, space: str | None = None, **more: Any) -> Op:
    return ops.Store(X, (A,), typ, sem, scope, space, HERE, **more)


def atom(
    op: str, typ: Type, *values: ops.Operand, sem: str = "relaxed", scope: ops.Scope = "gpu", dst: Reg | None = D
) -> Op:
    return ops.Atomic((dst,), op, X, (values,), typ, sem, scope, None, True, HERE)


def red(op: str, typ: Type, *values: ops.Operand, sem: str = "relaxed", scope: ops.Scope = "gpu") -> Op:
    return ops.Atomic((), op, X, (values,), typ, sem, scope, None, False, HERE)


def alu(op: str, typ: Type, *sources: ops.Operand) -> Op:
    return ops.Alu(op, typ, D, sources, HERE)


TYPED: list[tuple[str, Op]] = [
    ("ld.u32 d, [x]", load(U32)),
    ("ld.weak.global.s64 d, [x]", load(S64, space="global")),
    ("ld.const.b8 d, [x]", load(B8, space="const")),
    ("ld.local.u16 d, [x]", load(U16, space="local")),
    ("ld.param.u32 d, [x]", load(U32, space="param")),
    ("ld.relaxed.gpu.u32 d, [x]", load(U32, "relaxed", "gpu")),
    ("ld.acquire.cluster.shared::cluster.b64 d, [x]", load(B64, "acquire", "cluster", "shared::cluster")),
    ("ld.global.acquire.sys.u32 d, [x]", load(U32, "acquire", "sys", "global")),
    ("ld.u32.sys.global.acquire d, [x]", load(U32, "acquire", "sys", "global")),
    ("ld.volatile.shared.u32 d, [x]", load(U32, "relaxed", "sys", "shared", volatile=True)),
    ("ld.mmio.relaxed.sys.global.u32 d, [x]", load(U32, "relaxed", "sys", "global", mmio=True)),
    ("ld.global.cv.u32 d, [x]", load(U32, space="global")),
    ("ld.L1::evict_last.L2::128B.u32 d, [x]", load(U32)),
    ("ld.relaxed.gpu.L1::no_allocate.L2::cache_hint.u32 d, [x], c", load(U32, "relaxed", "gpu")),
    ("st.u32 [x], a", store(U32)),
    ("st.global.wt.b16 [x], a", store(B16, space="global")),
    ("st.relaxed.cta.u32 [x], a", store(U32, "relaxed", "cta")),
    ("st.release.gpu.global.u32 [x], a", store(U32, "release", "gpu", "global")),
    ("st.volatile.u64 [x], a", store(U64, "relaxed", "sys", volatile=True)),
    ("st.mmio.relaxed.sys.u32 [x], a", store(U32, "relaxed", "sys", mmio=True)),
    ("atom.add.u32 d, [x], 1", atom("add", U32, Imm(1))),
    ("atom.add.s32 d, [x], -1", atom("add", S32, Imm(-1))),
    ("atom.acquire.cta.add.u64 d, [x], a", atom("add", U64, A, sem="acquire", scope="cta")),
    ("atom.inc.u32 d, [x], 7", atom("inc", U32, Imm(7))),
    ("atom.dec.u32 d, [x], 7", atom("dec", U32, Imm(7))),
    ("atom.and.b32 d, [x], a", atom("and", B32, A)),
    ("atom.or.b64 d, [x], a", atom("or", B64, A)),
    ("atom.xor.b32 d, [x], a", atom("xor", B32, A)),
    ("atom.min.s64 d, [x], a", atom("min", S64, A)),
    ("atom.max.u32 d, [x], a", atom("max", U32, A)),
    ("atom.release.exch.b64 d, [x], a", atom("exch", B64, A, sem="release")),
    ("atom.acq_rel.sys.cas.b16 d, [x], 0, a", atom("cas", B16, Imm(0), A, sem="acq_rel", scope="sys")),
    ("atom.add.acq_rel.gpu.u32 _, [x], 1", atom("add", U32, Imm(1), sem="acq_rel", dst=None)),
    ("red.add.u32 [x], 1", red("add", U32, Imm(1))),
    ("red.release.cluster.min.s32 [x], a", red("min", S32, A, sem="release", scope="cluster")),
    ("fence.sys", ops.Fence("acq_rel", "sys", HERE)),
    ("fence.acq_rel.cluster", ops.Fence("acq_rel", "cluster", HERE)),
    ("fence.sc.gpu", ops.Fence("sc", "gpu", HERE)),
    ("fence.gpu.sc", ops.Fence("sc", "gpu", HERE)),
    ("membar.cta", ops.Fence("sc", "cta", HERE)),
    ("membar.gl", ops.Fence("sc", "gpu", HERE)),
    ("membar.sys", ops.Fence("sc", "sys", HERE)),
    ("fence.proxy.alias", ops.ProxyFence("alias", HERE)),
    ("fence.proxy.surface", ops.ProxyFence("surface", HERE)),
    ("membar.proxy.alias", ops.ProxyFence("alias", HERE)),
    ("bar.sync 0", ops.Barrier("sync", Imm(0), None, None, HERE, aligned=True)),
    ("bar.cta.sync 15, 64", ops.Barrier("sync", Imm(15), Imm(64), None, HERE, aligned=True)),
    ("bar.arrive a, b", ops.Barrier("arrive", A, B, None, HERE, aligned=True)),
    ("barrier.cta.sync.aligned 1", ops.Barrier("sync", Imm(1), None, None, HERE, aligned=True)),
    ("barrier.arrive 1, 32", ops.Barrier("arrive", Imm(1), Imm(32), None, HERE)),
    ("mov.u32 d, a", alu("mov", U32, A)),
    ("mov.u64 d, x", alu("mov", U64, Sym("x"))),
    ("mov.b64 d, x+4", alu("mov", B64, Sym("x", 4))),
    ("mov.pred d, 5", alu("mov", PRED, Imm(1))),
    ("add.s32 d, a, -1", alu("add", S32, A, Imm(-1))),
    ("sub.u16 d, a, b", alu("sub", U16, A, B)),
    ("mul.lo.u32 d, a, b", alu("mul.lo", U32, A, B)),
    ("mul.hi.s64 d, a, b", alu("mul.hi", S64, A, B)),
    ("mul.wide.s32 d, a, b", alu("mul.wide", S32, A, B)),
    ("mad.lo.s32 d, a, b, c", alu("mad.lo", S32, A, B, C)),
    ("mad.hi.u32 d, a, b, c", alu("mad.hi", U32, A, B, C)),
    ("mad.wide.u16 d, a, b, c", alu("mad.wide", U16, A, B, C)),
    ("and.b32 d, a, b", alu("and", B32, A, B)),
    ("or.pred d, a, b", alu("or", PRED, A, B)),
    ("xor.b64 d, a, 0xff", alu("xor", B64, A, Imm(255))),
    ("not.b16 d, a", alu("not", B16, A)),
    ("neg.s32 d, a", alu("neg", S32, A)),
    ("abs.s64 d, a", alu("abs", S64, A)),
    ("shl.b32 d, a, b", alu("shl", B32, A, B)),
    ("shr.s32 d, a, 1", alu("shr", S32, A, Imm(1))),
    ("min.u64 d, a, b", alu("min", U64, A, B)),
    ("max.s16 d, a, b", alu("max", S16, A, B)),
    ("setp.eq.b32 p, a, 1", ops.SetPredicate("eq", B32, P, None, A, Imm(1), HERE)),
    ("setp.lt.s32 p|q, a, b", ops.SetPredicate("lt", S32, P, Q, A, B, HERE)),
    ("setp.ge.u32 p|_, a, b", ops.SetPredicate("ge", U32, P, None, A, B, HERE)),
    ("setp.lt.u32 _|q, a, b", ops.SetPredicate("ge", U32, Q, None, A, B, HERE)),
    ("setp.lo.u32 p, a, b", ops.SetPredicate("lt", U32, P, None, A, B, HERE)),
    ("setp.hs.u64 p, a, b", ops.SetPredicate("ge", U64, P, None, A, B, HERE)),
    ("setp.ne.or.u16 p, a, b, c", ops.SetPredicate("ne", U16, P, None, A, B, HERE, None, "or", C)),
    ("setp.ne.and.u16 p, a, b, !c", ops.SetPredicate("ne", U16, P, None, A, B, HERE, None, "and", C, True)),
    ("selp.s32 d, a, -1, p", ops.Select(S32, D, A, Imm(-1), P, HERE)),
    ("cvt.u64.u32 d, a", ops.Convert(D, A, U64, U32, False, HERE)),
    ("cvt.sat.u8.s32 d, a", ops.Convert(D, A, U8, S32, True, HERE)),
    ("bra L", ops.Branch(3, None, HERE)),
    ("@p bra.uni done", ops.Branch(9, None, HERE, ops.Guard("p"))),
    ("@!%p bra L", ops.Branch(3, None, HERE, ops.Guard("p", True))),
    ("ret", ops.Exit(HERE)),
    ("@p exit", ops.Exit(HERE, ops.Guard("p"))),
    ("ld.u32 d, [b+8]", ops.Load((D,), Address(B, 8), U32, "weak", None, None, HERE)),
    ("ld.u32 d, [x-4]", ops.Load((D,), Address(Sym("x"), -4), U32, "weak", None, None, HERE)),
    ("ld.u32 d, [64]", ops.Load((D,), Address(Imm(64)), U32, "weak", None, None, HERE)),
    ("@%y exit", ops.Exit(HERE, ops.Guard("y"))),
    ("ld.u32 d, [%x]", ops.Load((D,), Address(Reg("x")), U32, "weak", None, None, HERE)),
]

UNTYPED: list[tuple[str, Op]] = [
    ("ld d, x", load(S64)),
    ("ld.weak d, [x]", load(S64)),
    ("ld.acquire.gpu d, x", load(S64, "acquire", "gpu")),
    ("ld.weak d, [64]", ops.Load((D,), Address(Imm(64)), S64, "weak", None, None, HERE)),
    ("st.weak [64], 1", ops.Store(Address(Imm(64)), (Imm(1),), S64, "weak", None, None, HERE)),
    ("ld.weak d, b", ops.Load((D,), Address(B), S64, "weak", None, None, HERE)),
    ("ld.weak d, b+8", ops.Load((D,), Address(B, 8), S64, "weak", None, None, HERE)),
    ("ld.weak d, x+8", ops.Load((D,), Address(Sym("x"), 8), S64, "weak", None, None, HERE)),
    ("tld.weak d, x", ops.Load((D,), X, S64, "weak", None, None, HERE, None, "texture")),
    ("suld.weak d, x", ops.Load((D,), X, S64, "weak", None, None, HERE, None, "surface")),
    ("cold.weak d, x", ops.Load((D,), X, S64, "weak", None, None, HERE, None, "constant")),
    ("st.weak x, a", store(S64)),
    ("st.release.sys x, a", store(S64, "release", "sys")),
    ("st.weak x, &y", ops.Store(X, (Sym("y"),), S64, "weak", None, None, HERE)),
    ("sust.weak x, 2", ops.Store(X, (Imm(2),), S64, "weak", None, None, HERE, None, "surface")),
    ("atom.relaxed.gpu.cas d, x, 0, 1", atom("cas", S64, Imm(0), Imm(1))),
    ("atom.acq_rel.sys.sub d, x, 1", atom("sub", S64, Imm(1), sem="acq_rel", scope="sys")),
    ("atom.add.acq_rel.gpu d, [x], 1", atom("add", S64, Imm(1), sem="acq_rel")),
    ("red.acq_rel.gpu.add x, 1", red("add", S64, Imm(1), sem="acq_rel")),
    ("red.acquire.gpu.add x, 1", red("add", S64, Imm(1), sem="acquire")),
    (
        "suatom.relaxed.gpu.exch d, x, 1",
        ops.Atomic((D,), "exch", X, ((Imm(1),),), S64, "relaxed", "gpu", None, True, HERE, None, "surface"),
    ),
    (
        "sured.relaxed.gpu.add x, 1",
        ops.Atomic((), "add", X, ((Imm(1),),), S64, "relaxed", "gpu", None, False, HERE, None, "surface"),
    ),
    ("fence.sc.gpu", ops.Fence("sc", "gpu", HERE)),
    ("fence.proxy.texture", ops.ProxyFence("texture", HERE)),
    ("fence.proxy.generic", ops.ProxyFence("generic", HERE)),
    ("bar.cta.sync 1", ops.Barrier("sync", Imm(1), None, 1, HERE)),
    ("bar.cta.sync 1, b", ops.Barrier("sync", B, None, 1, HERE)),
    ("bar.cta.arrive 1, 2, 3", ops.Barrier("arrive", Imm(2), Imm(3), 1, HERE)),
    ("mov d, &x", alu("mov", S64, Sym("x"))),
    ("mov d, x+8", alu("mov", S64, Sym("x", 8))),
    ("add d, a, 1", alu("add", S64, A, Imm(1))),
    ("sub d, a, b", alu("sub", S64, A, B)),
    ("mul d, a, b", alu("mul.lo", S64, A, B)),
    ("mad d, a, b, c", alu("mad.lo", S64, A, B, C)),
    ("and d, a, b", alu("and", S64, A, B)),
    ("or d, a, b", alu("or", S64, A, B)),
    ("xor d, a, a", alu("xor", S64, A, A)),
    ("not d, a", alu("not", S64, A)),
    ("neg d, a", alu("neg", S64, A)),
    ("abs d, a", alu("abs", S64, A)),
    ("shl d, a, 2", alu("shl", S64, A, Imm(2))),
    ("shr d, a, 2", alu("shr", S64, A, Imm(2))),
    ("min d, a, b", alu("min", S64, A, B)),
    ("max d, a, b", alu("max", S64, A, B)),
    ("goto L", ops.Branch(3, None, HERE)),
    *(
        (f"b{cmp} a, 1, done", ops.Branch(9, ops.Compare(cmp, S64, A, Imm(1)), HERE))
        for cmp in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    ("exit", ops.Exit(HERE)),
]


@pytest.mark.parametrize(("text", "expected"), TYPED, ids=[t for t, _ in TYPED])
def test_typed_instructions(text: str, expected: Op) -> None:
    assert plain(resolve(text)) == expected


@pytest.mark.parametrize(("text", "expected"), UNTYPED, ids=[t for t, _ in UNTYPED])
def test_untyped_instructions(text: str, expected: Op) -> None:
    assert plain(resolve(text, dialect=True)) == expected


@pytest.mark.parametrize(
    ("text", "dialect"), [(t, False) for t, _ in TYPED] + [(t, True) for t, _ in UNTYPED], ids=lambda v: str(v)
)
def test_printing_and_parsing_again_changes_nothing(text: str, dialect: bool) -> None:
    op = resolve(text, dialect)
    labels = {index: name for name, index in LABELS.items()}
    printed = instruction_text(op, not dialect, labels.__getitem__, variables=VARIABLES)
    again = resolve(printed, dialect)
    assert plain(again) == plain(op)
    assert instruction_text(again, not dialect, labels.__getitem__, variables=VARIABLES) == printed


def test_every_row_of_the_table_is_resolved_here() -> None:
    def rows(cases: list[tuple[str, Op]], dialect: bool) -> set[str]:
        return {row_of(parsed(text), dialect).form.opcode for text, _ in cases}

    from tests.test_computation import TEXTS
    from tests.test_ptx_rows import LEGAL

    later = {opcode for opcode in FORMS if opcode.startswith(("tcgen05.", "fence.proxy.async::", "st.bulk"))}  # PTX 8.6
    resolved = rows(TYPED, False) | {
        row_of(parsed(text), False).form.opcode for text in (*(t for t, _ in LEGAL), *TEXTS)
    }
    assert resolved == set(FORMS) - later
    assert rows(UNTYPED, True) >= set(DIALECT) - {"membar", "membar.proxy", "ret"}


def test_the_source_is_kept() -> None:
    op = isa.resolve(
        next(s for s in parse_statements("L: st.u32  [x], 1", 4, 2) if isinstance(s, Instruction)),
        dialect=False,
        variables=VARIABLES,
        labels={},
    )
    assert op.source.text == "st.u32 [x], 1" and (op.source.span.line, op.source.span.column) == (4, 5)


SCOPES = ".cta .cluster .gpu .sys"
REFUSED = [
    ("st.acquire.gpu.u32 [x], 1", 3, "`st` takes no `.acquire`", "a store can release; a load can acquire"),
    ("ld.release.gpu.u32 d, [x]", 3, "`ld` takes no `.release`", "a load can acquire; a store can release"),
    (
        "ld.sc.gpu.u32 d, [x]",
        3,
        "`ld` takes no `.sc`",
        "PTX has no sequentially consistent load: use fence.sc before it",
    ),
    ("ld.relaxed.u32 d, [x]", 1, f"`ld.relaxed` needs a scope: {SCOPES}", None),
    ("st.relaxed.u32 [x], 1", 1, f"`st.relaxed` needs a scope: {SCOPES}", None),
    ("st.release.global.u32 [x], 1", 1, f"`st.release` needs a scope: {SCOPES}", None),
    ("ld.weak.gpu.u32 d, [x]", 8, "`ld.weak` takes no scope: `.gpu`", "a weak access has no scope; .relaxed has one"),
    (
        "ld.gpu.u32 d, [x]",
        3,
        "`ld` is weak without a memory order, and a weak access has no scope: `.gpu`",
        "memory orders that take a scope: .relaxed .acquire",
    ),
    ("ld.relaxed.gpu.sys.u32 d, [x]", 15, "`.gpu` and `.sys` are both scopes: give one", None),
    ("ld.relaxed.acquire.gpu.u32 d, [x]", 11, "`.relaxed` and `.acquire` are both memory orders: give one", None),
    ("ld.global.global.u32 d, [x]", 10, "`.global` is there twice", None),
    ("ld.u32.s32 d, [x]", 7, "one type too many: `.s32`", None),
    (
        "ld.volatile.sys.u32 d, [x]",
        12,
        "`ld.volatile` takes no scope: `.sys`",
        "a volatile access is relaxed at .sys scope",
    ),
    (
        "ld.volatile.ca.u32 d, [x]",
        12,
        "`ld.volatile` takes no cache operator: `.ca`",
        "a volatile access may not be cached",
    ),
    (
        "st.volatile.L1::evict_last.u32 [x], 1",
        12,
        "`st.volatile` takes no eviction priority: `.L1::evict_last`",
        "eviction priorities belong to weak, relaxed, acquire and release accesses",
    ),
    (
        "ld.acquire.gpu.cg.u32 d, [x]",
        15,
        "`ld.acquire` takes no cache operator: `.cg`",
        "cache operators belong to weak accesses",
    ),
    (
        "ld.ca.L1::evict_first.u32 d, [x]",
        6,
        "`.ca` and `.L1::evict_first` exclude each other",
        "give a cache operator or an eviction priority",
    ),
    (
        "ld.relaxed.gpu.local.u32 d, [x]",
        15,
        "`ld.relaxed` can't access .local",
        "state spaces of strong accesses: .global .shared .shared::cta .shared::cluster",
    ),
    ("ld.mmio.u32 d, [x]", 3, "`ld.mmio` must be .relaxed", "write ld.mmio.relaxed.sys{.global}.type"),
    (
        "ld.mmio.acquire.sys.u32 d, [x]",
        8,
        "`ld.mmio.acquire` is PTX ISA 9.3, and the version here is 8.5",
        "it is not supported with --isa 9.3 either",
    ),
    ("st.mmio.relaxed.gpu.u32 [x], 1", 16, "`st.mmio` must have .sys scope", "write st.mmio.relaxed.sys{.global}.type"),
    (
        "ld.mmio.relaxed.sys.shared.u32 d, [x]",
        20,
        "`ld.mmio` can't access .shared",
        "write ld.mmio.relaxed.sys{.global}.type",
    ),
    ("ld.relaxed.gpu d, [x]", 1, "`ld.relaxed` needs a type, such as .u32", None),
    ("ld.u33 d, [x]", 3, "`.u33` is no type of PTX", "did you mean `.u32`?"),
    ("ld.aquire.gpu.u32 d, [x]", 3, "`ld` has no qualifier `.aquire`", "did you mean `.acquire`?"),
    ("ld.wb.u32 d, [x]", 3, "`ld` takes no `.wb`", "cache operators of `ld`: .ca .cg .cs .lu .cv"),
    ("ld.u32 x, [x]", 8, "expected a destination register, found the variable `x`", None),
    ("ld.u32 5, [x]", 8, "expected a destination register, found `5`", None),
    ("ld.u32 _, [x]", 8, "expected a destination register, found `_`", None),
    ("ld.u32 d, x", 11, "expected an address, found `x`", "write [x]"),
    ("ld.u32 d, x+4", 11, "expected an address, found `x+4`", "write [x+4]"),
    ("ld.u32 d, 4", 11, "expected an address, found `4`", None),
    ("ld.u32 d, [x+0x80000000]", 11, "the offset of an address has 32 bits", None),
    ("ld.u32 d, [x], [y]", 16, "`ld` takes 2 operands (d, [a]), 3 given", None),
    ("ld.u32 d", 1, "`ld` takes 2 operands (d, [a]), 1 given", None),
    ("ld.u32", 1, "`ld` takes 2 operands (d, [a]), 0 given", None),
    ("st.u32 [x]", 1, "`st` takes 2 operands ([a], b), 1 given", None),
    ("st.const.u32 [x], 1", 3, "`st` takes no `.const`", "stores to .const are illegal"),
    ("st.u64 [x], y", 13, "`st` can't use the variable `y`", "mov.u64 rd, y takes the address, ld reads the value"),
    ("st.u32 [x], [y]", 13, "expected a register or a constant, found a memory operand", None),
    ("st.u32 [x], a+1", 13, "`a+1`: a register plus a constant is an address only, in [ ]", None),
    ("atom.u32 d, [x], 1", 1, "`atom` needs an operation: .add .inc .dec .and .or .xor .min .max .exch .cas", None),
    ("atom.add d, [x], 1", 1, "`atom.add` needs a type, such as .u32", None),
    ("atom.and d, [x], 1", 1, "`atom.and` needs a type: .b32 .b64", None),
    ("atom.inc.u32 d, [x]", 1, "`atom.inc` takes 3 operands (d, [a], b), 2 given", None),
    ("atom.cas.b32 d, [x], 1", 1, "`atom.cas` takes 4 operands (d, [a], b, c), 3 given", None),
    ("atom.add.u32 d, [x], 1, 2", 25, "`atom.add` takes 3 operands (d, [a], b), 4 given", None),
    (
        "atom.add.b32 d, [x], 1",
        9,
        "`atom.add` has no type .b32",
        "types of `atom.add`: .u32 .s32 .u64 .f32 .f64 .f16 .f16x2 .bf16 .bf16x2",
    ),
    (
        "atom.add.s64 d, [x], 1",
        9,
        "`atom.add` has no type .s64",
        "types of `atom.add`: .u32 .s32 .u64 .f32 .f64 .f16 .f16x2 .bf16 .bf16x2",
    ),
    ("atom.and.u32 d, [x], 1", 9, "`atom.and` has no type .u32", "types of `atom.and`: .b32 .b64"),
    ("atom.exch.u32 d, [x], 1", 10, "`atom.exch` has no type .u32", "types of `atom.exch`: .b32 .b64 .b128"),
    ("atom.inc.u64 d, [x], 1", 9, "`atom.inc` has no type .u64", "types of `atom.inc`: .u32"),
    ("atom.cas.u32 d, [x], 1, 2", 9, "`atom.cas` has no type .u32", "types of `atom.cas`: .b16 .b32 .b64 .b128"),
    ("atom.sub.u32 d, [x], 1", 5, "`atom` takes no `.sub`", "add the negative value with .add"),
    ("atom.weak.add.u32 d, [x], 1", 5, "`atom` takes no `.weak`", "atomics are strong; the default is .relaxed.gpu"),
    (
        "atom.sc.add.u32 d, [x], 1",
        5,
        "`atom` takes no `.sc`",
        "the strongest order of an atomic is .acq_rel; put fence.sc before it",
    ),
    (
        "atom.local.add.u32 d, [x], 1",
        5,
        "`atom` takes no `.local`",
        "state spaces of `atom`: .global .shared .shared::cta .shared::cluster",
    ),
    (
        "red.acquire.gpu.add.u32 [x], 1",
        4,
        "`red` takes no `.acquire`",
        "red returns nothing, so it can't acquire; use atom",
    ),
    (
        "red.acq_rel.gpu.add.u32 [x], 1",
        4,
        "`red` takes no `.acq_rel`",
        "red returns nothing, so it can't acquire; use atom",
    ),
    ("red.cas.b32 [x], 1, 2", 4, "`red` takes no `.cas`", "red has no .cas; use atom.cas"),
    ("red.add.u32 d, [x], 1", 21, "`red.add` takes 2 operands ([a], b), 3 given", None),
    ("fence.sc", 1, f"`fence.sc` needs a scope: {SCOPES}", None),
    ("fence", 1, f"`fence` needs a scope: {SCOPES}", None),
    ("fence.gpu 1", 11, "`fence` takes no operands, 1 given", None),
    ("fence.acquire.gpu", 6, "`fence.acquire` is PTX ISA 8.6, and the version here is 8.5", "--isa 8.6"),
    ("fence.relaxed.gpu", 6, "`fence` takes no `.relaxed`", "a fence is .sc or .acq_rel (the default)"),
    ("fence.gl", 6, "`fence` takes no `.gl`", "the scope of membar.gl is called .gpu"),
    ("membar.gpu", 7, "`membar` takes no `.gpu`", "the level of .gpu scope is called .gl: membar.gl"),
    (
        "membar.cluster",
        7,
        "`membar` takes no `.cluster`",
        "membar has the levels .cta .gl .sys; .cluster needs fence.sc.cluster",
    ),
    ("membar", 1, "`membar` needs a level: .cta .gl .sys", None),
    ("fence.proxy", 1, "`fence.proxy` needs a kind: .alias .async .surface .texture .constant", None),
    ("fence.proxy.alias.gpu", 18, "`fence.proxy` takes no `.gpu`", None),
    (
        "fence.proxy.generic",
        12,
        "`fence.proxy` takes no `.generic`",
        "in PTX the kind names the other proxy, such as .alias",
    ),
    ("bar.sync 16", 10, "a CTA has the barriers 0 to 15, not 16", None),
    ("bar.sync", 1, "`bar.sync` takes 1 to 2 operands (a, b), 0 given", None),
    ("bar.arrive 0", 1, "`bar.arrive` takes 2 operands (a, b), 1 given", None),
    (
        "bar.sync 0, 33",
        13,
        "the number of threads at a barrier is a multiple of 32, not 33",
        "every warp that arrives counts as 32 threads",
    ),
    ("bar 0", 1, "`bar` needs a kind: .sync .arrive", None),
    ("bar.sync.aligned 0", 9, "`bar` takes no `.aligned`", None),
    ("mov.u16 d, x", 12, "the address of `x` has 64 bits", "write mov.u64 rd, x"),
    ("mov.u64 d, &x", 12, "`&` is not PTX", "mov.u64 rd, x takes the address"),
    (
        "mov.u8 d, a",
        4,
        "`mov` takes no `.u8`",
        "types of `mov`: .pred .b16 .b32 .b64 .b128 .u16 .u32 .u64 .s16 .s32 .s64 .f32 .f64",
    ),
    ("mul.u32 d, a, b", 1, "`mul` needs a mode: .lo .hi .wide", None),
    ("mul.wide.u64 d, a, b", 9, "`mul.wide` has no type .u64", "types of `mul.wide`: .u16 .u32 .s16 .s32"),
    ("add.b32 d, a, b", 4, "`add` takes no `.b32`", "types of `add`: .u16 .u32 .u64 .s16 .s32 .s64 .u16x2 .s16x2"),
    ("and.u32 d, a, b", 4, "`and` takes no `.u32`", "types of `and`: .pred .b16 .b32 .b64"),
    ("setp.u32 p, a, b", 1, "`setp` needs a comparison: .eq .ne .lt .le .gt .ge .lo .ls .hi .hs", None),
    ("setp.lt.b32 p, a, b", 8, "`setp.lt` has no type .b32", "types of `setp.lt`: .u16 .u32 .u64 .s16 .s32 .s64"),
    ("setp.eq.u32 p|p, a, b", 13, "the two destinations of `setp` must differ", None),
    ("setp.eq.u32 p, a, b, c", 22, "`setp` takes 3 operands (p, a, b), 4 given", None),
    ("setp.eq.and.u32 p, a, b", 1, "`setp` takes 4 operands (p, a, b, c), 3 given", None),
    ("selp.u32 d, a, b, !p", 19, "expected a predicate register, found `!p`", None),
    ("cvt.u32 d, a", 1, "`cvt` needs two types: the new one and the old one, such as .u64.u32", None),
    ("cvt.u64.u32.u16 d, a", 12, "one type too many: `.u16`", None),
    ("bra %L", 5, "expected a label, found `%L`", None),
    ("bra", 1, "`bra` takes 1 operand (label), 0 given", None),
    ("ret d", 5, "`ret` takes no operands, 1 given", None),
    ("@x ret", 2, "expected a predicate register, found the variable `x`", None),
    ("lod.u32 d, [x]", 1, "unknown instruction `lod`", "did you mean `ld`?"),
    ("LD.u32 d, [x]", 1, "unknown instruction `LD`", "did you mean `ld`?"),
    ("frobnicate", 1, "unknown instruction `frobnicate`", None),
    ("goto L", 1, "`goto` is an instruction of the untyped dialect, not of PTX", "write bra"),
    (
        "bne a, 1, L",
        1,
        "`bne` is an instruction of the untyped dialect, not of PTX",
        "write setp.ne.type p, a, b; @p bra label",
    ),
    (
        "cold.weak d, x",
        1,
        "`cold` is an instruction of the untyped dialect, not of PTX",
        "surface, texture and constant accesses are in the dialect only",
    ),
]

REFUSED_UNTYPED = [
    ("ld.relaxed d, x", 1, f"`ld.relaxed` needs a scope: {SCOPES}", None),
    ("fence.sc", 1, f"`fence.sc` needs a scope: {SCOPES}", None),
    ("ld.weak.u32 d, x", 8, "`.u32`: the untyped dialect has no types", "leave the type out, or type every access"),
    ("@p ld.weak d, x", 1, "the untyped dialect has no guard predicates", "branch around the instruction"),
    ("setp.eq.u32 p, a, b", 1, "`setp` is not part of the untyped dialect", "use beq, bne, blt, ble, bgt or bge"),
    ("ld.weak d, &x", 12, "`&` is not used here", "the location is written x"),
    ("bar.cta.sync a", 14, "the instance of a barrier must be an integer constant, found `a`", None),
    ("bar.cta.sync 1, x", 17, "expected a register or a constant, found the location `x`", None),
    ("bar.cta.sync 1, 1, 0", 20, "the quorum of a barrier is at least 1, not 0", None),
    ("shl d, a, b", 11, "a shift amount of the untyped dialect must be an integer constant, found `b`", None),
    ("atom.add d, x", 1, "`atom.add` takes 3 operands (d, a, b), 2 given", None),
    ("atom d, x, 1", 1, "`atom` needs an operation: .add .inc .dec .and .or .xor .min .max .exch .cas .sub", None),
    ("bge a, L", 1, "`bge` takes 3 operands (a, b, label), 2 given", None),
    ("ld.weak x, y", 9, "expected a destination register, found the variable `x`", None),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(text: str, column: int, message: str, hint: str | None) -> None:
    _check_refusal(text, False, (column, message, hint, "isa"))


@pytest.mark.parametrize(("text", "column", "message", "hint"), REFUSED_UNTYPED, ids=[r[0] for r in REFUSED_UNTYPED])
def test_refused_in_the_dialect(text: str, column: int, message: str, hint: str | None) -> None:
    _check_refusal(text, True, (column, message, hint, "isa"))


def _check_refusal(text: str, dialect: bool, expected: tuple[int, str, str | None, str]) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text, dialect)
    error = caught.value
    assert (error.column, error.message, error.hint, error.kind) == expected
    assert error.line == 1 and error.width >= 1


def test_names_that_do_not_exist() -> None:
    _check_refusal("bra don", False, (5, "no label `don` in this thread", "did you mean `done`?", "name"))
    _check_refusal("goto zzz", True, (6, "no label `zzz` in this thread", None, "name"))
    _check_refusal("mov d, &z", True, (9, "no location is named `z`", None, "name"))


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("add.f32x2 d, a, b", 4, "`.f32x2` is not supported yet (`add.f32x2`)"),
        ("cvt.rn.e2m1x2.f32 d, a, b", 7, "`.e2m1x2` is not supported yet (`cvt.e2m1x2`)"),
        ("vadd.s32.s32.s32 d, a, b", 1, "`vadd.s32` is not supported yet"),
        ("mma.sp.sync.aligned {a, b}, {c}, {d}, {e, f}, g, 0", 4, "`.sp` is not supported yet (`mma.sp`)"),
        ("sust.b.1d.b32 x, a", 1, "`sust.b` is not supported yet"),
        ("mov.u32 d, %tid.x", 12, "a litmus test has no launch that gives `%tid.x` a value"),
        ("mov.u32 d, %laneid", 12, "a litmus test has no launch that gives `%laneid` a value"),
        ("mov.u32 d, a.x", 12, "the vector element `a.x` is not supported yet"),
    ],
)
def test_real_ptx_that_is_not_supported_yet(text: str, column: int, what: str) -> None:
    hint = "write the number itself: each thread has its own program; in kernels (.ptx, .cu) it is known"
    _check_refusal(text, False, (column, what, hint if "%" in what else None, "unsupported"))


def test_the_tables_do_not_contradict_each_other() -> None:
    for form in (*FORMS.values(), *DIALECT.values()):
        # What only the place among the qualifiers tells from another one.
        ordered = ("src", "secondary", "blayout", "atype", "btype", "ctype")
        spellings = [s for name, group in form.groups.items() if name not in ordered for s in group]
        assert len(spellings) == len(set(spellings)), f"{form.opcode}: one qualifier in two groups"
        assert not set(spellings) & set(form.later), form.opcode
        assert set(form.required) <= set(form.groups), form.opcode
        assert all(named(form, group) for group in form.groups), form.opcode
        if form.types_by is not None:
            group, types = form.types_by
            assert set(types) == set(form.groups[group])


def names(pairs: list[tuple[str, Type]]) -> list[tuple[str, str]]:
    return [(name, typ.name) for name, typ in pairs]


@pytest.mark.parametrize(
    ("text", "defined", "used"),
    [
        ("@q ld.u16 d, [b]", [("d", "u16")], [("q", "pred"), ("b", ADDRESS.name)]),
        ("st.u32 [b], a", [], [("b", "b64"), ("a", "u32")]),
        ("atom.cas.b32 d, [b], a, c", [("d", "b32")], [("b", "b64"), ("a", "b32"), ("c", "b32")]),
        ("atom.add.u32 _, [x], a", [], [("a", "u32")]),
        ("red.add.u32 [x], 1", [], []),
        ("bar.sync a, b", [], [("a", "u32"), ("b", "u32")]),
        ("mov.u32 d, a", [("d", "u32")], [("a", "u32")]),
        ("mul.wide.s32 d, a, b", [("d", "s64")], [("a", "s32"), ("b", "s32")]),
        ("mad.wide.u16 d, a, b, c", [("d", "u32")], [("a", "u16"), ("b", "u16"), ("c", "u32")]),
        ("shl.b64 d, a, b", [("d", "b64")], [("a", "b64"), ("b", "u32")]),
        ("cvt.u64.s32 d, a", [("d", "u64")], [("a", "s32")]),
        ("setp.eq.or.u32 p|q, a, b, c", [("p", "pred"), ("q", "pred")], [("a", "u32"), ("b", "u32"), ("c", "pred")]),
        ("selp.u32 d, a, b, p", [("d", "u32")], [("a", "u32"), ("b", "u32"), ("p", "pred")]),
        ("@p bra L", [], [("p", "pred")]),
        ("fence.sc.gpu", [], []),
    ],
)
def test_definitions_and_uses(text: str, defined: list[tuple[str, str]], used: list[tuple[str, str]]) -> None:
    op = resolve(text)
    assert (names(isa.definitions(op)), names(isa.uses(op))) == (defined, used)


def test_definitions_and_uses_of_the_dialect() -> None:
    branch, barrier = resolve("beq a, b, L", True), resolve("bar.cta.sync 1, a, b", True)
    assert names(isa.uses(branch)) == names(isa.uses(barrier)) == [("a", "s64"), ("b", "s64")]
    assert isa.definitions(branch) == isa.definitions(barrier) == []


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("ld.u32 d, [x]", True),
        ("ld.v2.f16x2 d, [x]", True),
        ("ld.weak d, x", False),
        ("atom.add.acq_rel.gpu d, [x], 1", False),
        ("suld.weak d, x", False),
        ("fence.sc.gpu", None),
        ("add d, a, b", None),
    ],
)
def test_is_typed(text: str, typed: bool | None) -> None:
    assert isa.is_typed(parsed(text)) is typed


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("ld.u32 d, [x]", Version((1, 0))),
        ("ld.relaxed.gpu.u32 d, [x]", Version((6, 0), 70)),
        ("ld.acquire.cluster.shared::cluster.u32 d, [x]", Version((7, 8), 90)),
        ("st.mmio.relaxed.sys.u32 [x], 1", Version((8, 2), 70)),
        ("fence.sc.gpu", Version((6, 0), 70)),
        ("fence.sc.cluster", Version((7, 8), 90)),
        ("fence.proxy.alias", Version((7, 5), 70)),
        ("membar.gl", Version((1, 4))),
        ("membar.sys", Version((2, 0), 20)),
        ("atom.cas.b16 d, [x], 0, 1", Version((6, 3), 70)),
        ("atom.add.u32 d, [x], 1", Version((1, 1), 11)),
        ("atom.sys.min.s64 d, [x], 1", Version((5, 0), 60)),
        ("red.or.b64 [x], 1", Version((3, 1), 32)),
        ("bar.cta.arrive 0, 32", Version((7, 8), 20)),
        ("ld.L2::256B.u32 d, [x]", Version((7, 4), 80)),
    ],
)
def test_first_version(text: str, version: Version) -> None:
    assert isa.requires(parsed(text)) == version


@pytest.mark.parametrize(
    ("text", "to_typed", "message"),
    [
        ("beq a, b, L", True, "PTX has no compare-and-branch instruction"),
        ("atom.relaxed.gpu.sub d, x, 1", True, "PTX has no `atom.sub`"),
        ("red.acq_rel.gpu.add x, 1", True, "PTX has no `red.acq_rel`"),
        ("atom.relaxed.gpu.inc d, x, 1", True, "`atom.inc` has no type .s64"),
        ("bar.cta.sync 1", True, "a barrier of the untyped dialect has no exact counterpart in PTX"),
        ("sust.weak x, 1", True, "a surface access has no counterpart in typed PTX here"),
        ("fence.proxy.generic", True, "`fence.proxy.generic` is not PTX"),
        ("ld.u32 d, [x]", False, "the untyped dialect has 64-bit signed values only, not .u32"),
        ("setp.eq.s64 p, a, b", False, "the untyped dialect has no predicates and no conversions"),
        ("@p ld.s64 d, [x]", False, "the untyped dialect has no guard predicates"),
        ("bar.sync 0", False, "a barrier of PTX has no exact counterpart in the untyped dialect"),
        ("mul.hi.s64 d, a, b", False, "the untyped dialect has no `mul.hi`"),
        ("shr.s64 d, a, b", False, "a shift amount of the untyped dialect is a constant"),
        ("ld.local.s64 d, [x]", False, "the untyped dialect has no .local"),
        ("ld.mmio.relaxed.sys.s64 d, [x]", False, "the untyped dialect has no .mmio"),
    ],
)
def test_the_printer_refuses_what_the_other_language_cannot_say(text: str, to_typed: bool, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        instruction_text(resolve(text, dialect=to_typed), to_typed, lambda index: "L")
    assert (caught.value.message, caught.value.kind) == (message, "unsupported")
    assert (caught.value.line, caught.value.column) == (1, 1)


def test_the_printer_translates_64_bit_operations() -> None:
    def typed(text: str) -> str:
        return instruction_text(resolve(text, dialect=True), True, lambda index: "L", lambda key: f"{key}_")

    assert typed("ld.acquire.gpu d, x") == "ld.acquire.gpu.s64 d, [x_]"
    assert typed("atom.acq_rel.sys.add d, x, -1") == "atom.acq_rel.sys.add.u64 d, [x_], -1"
    assert typed("atom.relaxed.gpu.exch d, x, 1") == "atom.relaxed.gpu.exch.b64 d, [x_], 1"
    assert typed("and d, a, b") == "and.b64 d, a, b"
    assert typed("mul d, a, b") == "mul.lo.s64 d, a, b"
    assert typed("mov d, &x+8") == "mov.s64 d, x_+8"
    assert typed("goto L") == "bra L"


SPELLINGS = sorted(
    {s for f in (*FORMS.values(), *DIALECT.values()) for s in (*(q for g in f.groups.values() for q in g), *f.later)}
)
OPCODES = sorted({*FORMS, *DIALECT, "mbarrier", "nonsense"})
OPERANDS = ["d", "a", "%p", "x", "[x]", "[a+4]", "[x-8]", "[64]", "&x", "&z", "x+4", "a+4", "0", "-1", "33", "0xff"]
OPERANDS += ["p|q", "_|q", "!p", "_", "{a, b}", "L", "%tid.x", "[x].unified", "18446744073709551615"]
OPERANDS += ["1.0", "0f3F800000", "{a, 1.5, _, x}", "[a, {b}]", "[x+4, {1, b}]", "128", "16"]
SLOTS = {"[a]": ["[x]", "[a+4]", "x"], "size": ["16", "128", "a"], "p": ["p", "p|q"], "d|p": ["d|p", "d", "_|p"]}
ANY = ["a", "1", "d", "L", "p", "_", "{a, b}", "0f3F800000", "16", "!p"]
TENSORS = ["[a, {b}]", "[x, {1, b}]", "[a, {b, c, d}]"]


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(OPCODES),
    st.lists(st.sampled_from(SPELLINGS), max_size=5),
    st.lists(st.sampled_from(OPERANDS), max_size=4),
    st.sampled_from(["", "@p ", "@!%x "]),
    st.booleans(),
)
def test_any_instruction_resolves_or_is_refused(
    opcode: str, qualifiers: list[str], operands: list[str], guard: str, dialect: bool
) -> None:
    _check_any(guard + ".".join([opcode, *qualifiers]) + " " + ", ".join(operands), dialect)


def _check_any(text: str, dialect: bool) -> None:
    """``text`` is refused with a place, or survives printing."""
    try:
        op = resolve(text, dialect)
    except PtxmmError as error:
        assert error.kind in ("isa", "name", "type", "unsupported")
        assert error.line == 1 and error.column is not None and 1 <= error.column <= len(text)
        return
    isa.definitions(op)
    isa.uses(op)
    labels = {index: name for name, index in LABELS.items()}
    printed = instruction_text(op, not dialect, labels.__getitem__, variables=VARIABLES)
    assert plain(resolve(printed, dialect)) == plain(op)


def _operands(form: Form, slot: str) -> list[str]:
    """What to write for ``slot``, mostly legal."""
    if slot in SLOTS:
        return SLOTS[slot]
    if slot.startswith("["):
        return ["[x]", "[a+4]", *(TENSORS if "tensor" in form.opcode else [])]
    return ANY


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_legal_instructions_survive_printing(data: st.DataObject) -> None:
    """As above, with qualifiers of the opcode's own row, so that most examples are legal."""
    dialect = data.draw(st.booleans())
    form = data.draw(st.sampled_from(list((DIALECT if dialect else FORMS).values())))
    needed = set(form.required)
    chosen = [
        data.draw(st.sampled_from(spellings))
        for group, spellings in form.groups.items()
        if group in needed or data.draw(st.booleans())
    ]
    slots = [slot for slot in form.slots if not slot.endswith("?") or data.draw(st.booleans())]
    operands = [data.draw(st.sampled_from(_operands(form, slot.removesuffix("?")))) for slot in slots]
    _check_any(".".join([form.opcode, *chosen]) + " " + ", ".join(operands), dialect)


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.relaxed.sys.u32 %r0, [x]",
        "st.global.relaxed.sys.u32 [x], %r1",
        "ld.global.u32 %r1, [x]",
        "st.global.u32 [x], 42",
        "atom.sys.exch.b32 %r0, [x], 1",
        "atom.cta.inc.u32 %r0, [x], 1",
        "fence.sys",
        "fence.sc.sys",
        "fence.acq_rel.sys",
        "fence.cluster.acq_rel",
        "fence.proxy.alias",
        "atom.global.sys.add.u32 d, [a], 1",
        "atom.global.acquire.sys.inc.u32 ans, [gbl], %r0",
        "@p atom.global.cas.b32 d,[p],my_val,my_new_val",
    ],
)
def test_spellings_of_the_document(text: str) -> None:
    resolve(text)


def test_a_dialect_load_of_a_constant_is_a_move() -> None:
    (statement,) = parse_statements("ld.weak r0, 5", dialect=True)
    assert isinstance(statement, Instruction)
    op = isa.resolve(statement, dialect=True, variables=(), labels={})
    assert isinstance(op, ops.Alu)
    assert (op.op, op.dst, op.sources) == ("mov", ops.Reg("r0"), (ops.Imm(5),))
