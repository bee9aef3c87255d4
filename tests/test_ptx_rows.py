"""Every row of the table: a legal form, its canonical text, what it resolves to, and its first version."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.program.shared import convergence
from ptxmm.program.symbols import addresses
from ptxmm.ptx import isa, ops
from ptxmm.ptx.ops import Address, Imm, Op, Reg, Source, Sym, Type
from ptxmm.ptx.parser import parse_statements
from ptxmm.ptx.printer import instruction_text
from ptxmm.ptx.syntax import Instruction
from ptxmm.ptx.table import Version
from ptxmm.ptx.typed_text import mnemonic

VARIABLES = {"x", "y"}
PREDICATES = {"p", "q"}
HERE = Source(span=None, text="")  # type: ignore[arg-type]
A, B, C, D, P, Q = (Reg(n) for n in "abcdpq")
X, Y, AT_A, AT_B = Address(Sym("x")), Address(Sym("y")), Address(A), Address(B)
U16, U32, U64, S32 = Type("u", 16), Type("u", 32), Type("u", 64), Type("s", 32)
B16, B32, B64, B128 = Type("b", 16), Type("b", 32), Type("b", 64), Type("b", 128)
F16, BF16, F32, F64 = Type("f", 16), Type("bf", 16), Type("f", 32), Type("f", 64)
PRED = Type("pred", 1)


def parsed(text: str) -> Instruction:
    (item,) = parse_statements(text)
    assert isinstance(item, Instruction)
    return item


def resolve(text: str, version: tuple[int, int] = (8, 5)) -> Op:
    return isa.resolve(parsed(text), dialect=False, variables=VARIABLES, labels={}, isa=version, predicates=PREDICATES)


def plain(op: Op) -> Op:
    """``op`` without its place in the input."""
    return replace(op, source=HERE)


def printed(op: Op) -> str:
    return instruction_text(op, True, lambda index: "L", variables=VARIABLES)


# A form and its canonical text; None: the same.
LEGAL: list[tuple[str, str | None]] = [
    ("ld.v2.u32 {a, b}, [x]", None),
    ("ld.relaxed.gpu.global.v4.b32 {a, b, c, _}, [x+16]", None),
    ("ld.acquire.sys.b128 d, [x]", None),
    ("ld.volatile.shared.v2.f64 {a, b}, [x]", None),
    ("ld.f32 d, [x]", None),
    ("ld.u32 d, [x].unified", "ld.u32 d, [x]"),
    ("ld.param::func.b32 d, [a]", None),
    ("ld.global.L1::evict_last.L2::cache_hint.L2::64B.f64 d, [x], c", "ld.global.f64 d, [x]"),
    ("st.v4.f32 [x], {a, 1.0, -2.5, 0f3F800000}", "st.v4.f32 [x], {a, 0f3F800000, 0fC0200000, 0f3F800000}"),
    ("st.global.v2.b64 [x], {a, 7}", None),
    ("st.release.cluster.shared::cluster.b128 [x], a", None),
    ("st.f64 [x], 0d3FF0000000000000", None),
    ("st.b32 [x], 0f40000000", "st.b32 [x], 1073741824"),
    ("ld.u32 {d}, [x]", "ld.u32 d, [x]"),  # ptxas takes a vector of one
    ("st.global.f32 [x], {1.0}", "st.global.f32 [x], 0f3F800000"),
    ("ld.global.nc.v4.f32 {a, b, c, d}, [x]", None),
    ("ld.global.ca.nc.L2::128B.b8 d, [x]", "ld.global.nc.b8 d, [x]"),
    ("ldu.global.v2.b32 {a, b}, [x]", "ld.global.nc.v2.b32 {a, b}, [x]"),
    ("ldu.u64 d, [a]", None),
    ("atom.add.f32 d, [x], 1.0", "atom.relaxed.gpu.add.f32 d, [x], 0f3F800000"),
    ("atom.global.add.noftz.f16 d, [x], a", "atom.relaxed.gpu.global.add.noftz.f16 d, [x], a"),
    ("atom.add.noftz.bf16x2 d, [x], a", "atom.relaxed.gpu.add.noftz.bf16x2 d, [x], a"),
    ("atom.acquire.gpu.global.add.v2.f32 {a, _}, [x], {c, d}", None),
    (
        "atom.global.v8.f16.max.noftz {a, b, c, d, e, f, g, h}, [x], {a, b, c, d, e, f, g, h}",
        "atom.relaxed.gpu.global.max.noftz.v8.f16 {a, b, c, d, e, f, g, h}, [x], {a, b, c, d, e, f, g, h}",
    ),
    (
        "atom.global.v4.bf16x2.min.noftz _, [x], {a, b, c, d}",
        "atom.relaxed.gpu.global.min.noftz.v4.bf16x2 _, [x], {a, b, c, d}",
    ),
    ("atom.exch.b128 d, [x], a", "atom.relaxed.gpu.exch.b128 d, [x], a"),
    ("atom.shared.acq_rel.cta.cas.b128 d, [x], a, b", "atom.acq_rel.cta.shared.cas.b128 d, [x], a, b"),
    ("atom.global.exch.L2::cache_hint.b32 d, [x], a, c", "atom.relaxed.gpu.global.exch.b32 d, [x], a"),
    ("red.global.add.noftz.f16x2 [x], a", "red.relaxed.gpu.global.add.noftz.f16x2 [x], a"),
    ("red.release.sys.global.add.v4.f32 [x], {a, b, c, d}", None),
    ("red.add.f64 [x], a", "red.relaxed.gpu.add.f64 [x], a"),
    (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [a], {b, 3}, [c]",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [a], {b, 3}, [c]",
    ),
    ("st.async.weak.mbarrier::complete_tx::bytes.f64 [a+8], b, [c]", None),
    ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.min.s32 [a], b, [c]", None),
    ("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.and.b32 [a], 3, [c]", None),
    ("multimem.ld_reduce.add.u32 d, [x]", "multimem.ld_reduce.weak.add.u32 d, [x]"),
    ("multimem.ld_reduce.acquire.sys.global.add.acc::f32.v2.f16x2 {a, _}, [b+8]", None),
    ("multimem.ld_reduce.relaxed.gpu.min.v8.bf16 {a, b, c, d, a, b, c, d}, [x]", None),
    ("multimem.st.global.v4.f32 [x], {a, 1.0, b, c}", "multimem.st.weak.global.v4.f32 [x], {a, 0f3F800000, b, c}"),
    ("multimem.st.release.cta.b64 [x], 3", None),
    ("multimem.red.add.f16x2 [x], a", "multimem.red.relaxed.sys.add.f16x2 [x], a"),
    ("multimem.red.release.max.s64 [x], a", "multimem.red.release.sys.max.s64 [x], a"),
    ("multimem.red.gpu.global.xor.b32 [x], 1", "multimem.red.relaxed.gpu.global.xor.b32 [x], 1"),
    ("mapa.shared::cluster.u64 d, x+4, 1", None),
    ("mapa.u64 d, a, b", None),
    ("getctarank.shared::cluster.u64 d, x", None),
    ("getctarank.u32 d, a", None),
    ("isspacep.shared::cluster p, a", None),
    ("isspacep.param p, a", None),
    ("cvta.shared::cta.u64 d, x+4", None),
    ("cvta.to.local.u64 d, a", None),
    ("cvta.param.u64 d, x", None),
    ("cvta.global.u64 d, x", "mov.u64 d, x"),
    ("cvta.to.global.u64 d, a", "mov.u64 d, a"),
    ("cvta.shared.u64 d, a", None),
    ("mov.b32 d, x+4", None),
    ("mapa.shared::cluster.u32 d, x, a", None),
    ("fence.proxy.async", None),
    ("fence.proxy.async.shared::cluster", None),
    ("membar.proxy.async.global", "fence.proxy.async.global"),
    ("fence.proxy.tensormap::generic.release.gpu", None),
    ("@p fence.proxy.tensormap::generic.acquire.sys [a], 128", None),
    ("fence.mbarrier_init.release.cluster", None),
    ("bar.red.popc.u32 d, 0, !p", "barrier.cta.red.popc.aligned.u32 d, 0, !p"),
    ("barrier.cta.red.or.aligned.pred q, a, 64, p", "barrier.cta.red.or.aligned.pred q, a, 64, p"),
    ("barrier.red.and.pred q, 1, p", "barrier.cta.red.and.pred q, 1, p"),
    ("bar.warp.sync 0xffffffff", "bar.warp.sync 4294967295"),
    ("bar.warp.sync a", None),
    ("barrier.cluster.arrive", "barrier.cluster.arrive.release"),
    ("barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.relaxed.aligned"),
    ("barrier.cluster.wait.acquire", None),
    ("mbarrier.init.shared::cta.b64 [x], 12", None),
    ("mbarrier.init.b64 [a], b", None),
    ("mbarrier.inval.shared.b64 [x]", None),
    ("mbarrier.arrive.b64 d, [a]", "mbarrier.arrive.release.cta.b64 d, [a]"),
    ("mbarrier.arrive.shared.b64 _, [x], 3", "mbarrier.arrive.release.cta.shared.b64 _, [x], 3"),
    ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a], b", None),
    (
        "mbarrier.arrive.expect_tx.shared::cta.b64 d, [x], 16",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 d, [x], 16",
    ),
    ("mbarrier.arrive.noComplete.release.cta.b64 d, [a], 2", None),
    ("mbarrier.arrive_drop.b64 d, [a]", "mbarrier.arrive_drop.release.cta.b64 d, [a]"),
    (
        "mbarrier.arrive_drop.expect_tx.shared::cta.release.cta.b64 d, [a], b",
        "mbarrier.arrive_drop.expect_tx.release.cta.shared::cta.b64 d, [a], b",
    ),
    ("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [a], 512", None),
    ("mbarrier.expect_tx.b64 [a], b", "mbarrier.expect_tx.relaxed.cta.b64 [a], b"),
    ("mbarrier.complete_tx.shared.b64 [x], 32", "mbarrier.complete_tx.relaxed.cta.shared.b64 [x], 32"),
    ("mbarrier.test_wait.shared.b64 p, [x], a", "mbarrier.test_wait.acquire.cta.shared.b64 p, [x], a"),
    ("mbarrier.test_wait.parity.acquire.cluster.b64 p, [a], 1", None),
    ("mbarrier.try_wait.b64 p, [x], a, 100", "mbarrier.try_wait.acquire.cta.b64 p, [x], a"),
    (
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [x], b, c",
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [x], b",
    ),
    ("mbarrier.pending_count.b64 d, a", None),
    ("griddepcontrol.wait", None),
    ("griddepcontrol.launch_dependents", None),
    ("setmaxnreg.dec.sync.aligned.u32 40", None),
    ("wgmma.commit_group.sync.aligned", None),
    ("wgmma.wait_group.sync.aligned 1", None),
    ("wgmma.fence.sync.aligned", None),
    ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {a, b, c, d}, e, f, p, 1, -1, 0, 1", None),
    ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {a, b}, e, f, c, 1, 0, 1, 1, 0, 0", None),
    ("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {a, _}, [x+16]", None),
    ("stmatrix.sync.aligned.m8n8.x1.b16 [a], {b}", None),
    ("wmma.load.a.sync.aligned.row.m8n8k32.shared::cta.s4 {a}, [x+16], 64", None),
    (
        "wmma.load.c.sync.aligned.m8n8k32.col.s32 {a, _}, [x], d",
        "wmma.load.c.sync.aligned.col.m8n8k32.s32 {a, _}, [x], d",
    ),
    ("wmma.store.d.sync.aligned.row.m8n8k32.s32 [x], {a, 5}", None),
    ("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {a, b}, {c}, {d}, {1, c}", None),
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {a, b, c, d}, {a, b, c, d}, {a, b}, {a, b, c, 0f00000000}",
        None,
    ),
    (
        "mma.sync.aligned.row.col.m8n8k128.xor.popc.s32.b1.b1.s32 {a, b}, {c}, {d}, {1, c}",
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {a, b}, {c}, {d}, {1, c}",
    ),
    ("div.approx.ftz.f32 d, a, 0f40000000", None),
    ("div.full.f32 d, a, b", None),
    *((f"{name}.approx.ftz.f32 d, a", None) for name in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2")),
    *((f"{name}.approx.ftz.f64 d, a", None) for name in ("rcp", "rsqrt")),
    ("tanh.approx.f32 d, a", None),
    *(
        (f"{instruction.replace('T', half)}", None)
        for half in ("f16", "f16x2", "bf16", "bf16x2")
        for instruction in (
            "add.T d, a, b",
            "sub.rn.T d, a, b",
            "mul.T d, a, b",
            "fma.rn.relu.T d, a, b, c",
            "neg.T d, a",
            "abs.T d, a",
            "min.NaN.T d, a, b",
            "max.xorsign.abs.T d, a, b",
            "tanh.approx.T d, a",
            "setp.ltu.or.T p, a, b, !q",
            "set.num.T.T d, a, b",
        )
    ),
    *((f"ex2.approx.{half} d, a", None) for half in ("f16", "f16x2", "ftz.bf16", "ftz.bf16x2")),
    ("setp.eq.f16x2 p|q, a, b", None),
    ("setp.eq.bf16x2 _|q, a, b", None),
    ("setp.eq.bf16x2 p|_, a, b", "setp.eq.bf16x2 p, a, b"),
    ("set.lt.and.ftz.u16.f16 d, a, b, p", None),
    *(
        (f"cvt.{instruction}", None)
        for instruction in (
            "rn.relu.f16.f32 d, a",
            "rz.satfinite.f16.f32 d, a",
            "rn.relu.satfinite.bf16.f32 d, 0f3F800000",
            "rz.satfinite.bf16.f32 d, a",
            "rn.relu.f16x2.f32 d, a, b",
            "rz.bf16x2.f32 d, a, b",
            "rna.satfinite.tf32.f32 d, a",
            "rn.satfinite.e4m3x2.f32 d, a, b",
            "rn.satfinite.relu.e5m2x2.f32 d, a, b",
            "rn.satfinite.e4m3x2.f16x2 d, a",
            "rn.relu.f16x2.e5m2x2 d, a",
        )
    ),
    ("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [x], a", None),
    ("tensormap.replace.tile.rank.global.b1024.b32 [x], 2", None),
    ("tensormap.replace.tile.box_dim.b1024.b32 [a], 0, b", None),
    ("tensormap.replace.tile.global_stride.b1024.b64 [a], 1, 64", None),
    ("tensormap.replace.tile.swizzle_mode.b1024.b32 [a], 3", None),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [x], [y], 128", None),
    ("cp.async.ca.shared.global [x], [y], 4", None),
    (
        "cp.async.cg.shared::cta.global.L2::cache_hint.L2::64B [a], [b+16], 16, 8, c",
        "cp.async.cg.shared.global [a], [b+16], 16, 8",
    ),
    ("cp.async.ca.shared.global [x], [y], 8, !p", None),
    ("cp.async.ca.shared.global [x], [y], 8, q", None),
    ("cp.async.cg.shared.global [x], [y], 16, a", None),
    ("cp.async.commit_group", None),
    ("cp.async.wait_group 2", None),
    ("cp.async.wait_all", None),
    ("cp.async.mbarrier.arrive.b64 [a]", None),
    ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [x]", None),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [x], [y], 64, [a]", None),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [x], [y], "
        "a, [b], 3, c",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [x], [y], a, [b], 3",
    ),
    ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [a], [x], 16, [b]", None),
    (
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [x], [y], a, c",
        "cp.async.bulk.global.shared::cta.bulk_group [x], [y], a",
    ),
    ("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [a], [x], 16, [b]", None),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [x], [y], 32", None),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.min.f16 [x], [y], a, c",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.f16 [x], [y], a",
    ),
    ("cp.async.bulk.prefetch.L2.global.L2::cache_hint [x], 16, c", "nanosleep.u32 0"),
    ("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [x], [a, {0}], [b]", None),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [x], [y, {a, "
        "-1}], [b], c",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [x], [y, "
        "{a, -1}], [b], c",
    ),
    (
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[x], [a, {0, 1, 2, 3, b}], [b], {1, c, 2}, d",
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [x], [a, {0, 1, 2, 3, b}], "
        "[b], {1, c, 2}",
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [a, {b}], [x]",
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [a, {b}], [x]",
    ),
    ("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [a, {b, c, d}], [x]", None),
    ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [a, {b}], [x]", None),
    ("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [a, {0, 0, 0}], {1}", "nanosleep.u32 0"),
    ("cp.async.bulk.commit_group", None),
    ("cp.async.bulk.wait_group 0", None),
    ("cp.async.bulk.wait_group.read 1", None),
    ("shfl.sync.up.b32 d|p, a, 1, 0, 0xffffffff", "shfl.sync.up.b32 d|p, a, 1, 0, 4294967295"),
    ("shfl.sync.idx.b32 d, a, b, c, e", None),
    ("vote.sync.all.pred p, !q, 3", None),
    ("vote.sync.ballot.b32 d, q, a", None),
    ("match.any.sync.b64 d, a, b", None),
    ("match.all.sync.b32 _|p, 5, b", None),
    ("activemask.b32 d", None),
    ("redux.sync.add.s32 d, a, 3", None),
    ("redux.sync.xor.b32 d, a, b", None),
    ("elect.sync _|p, 0xffffffff", "elect.sync _|p, 4294967295"),
    ("discard.global.L2 [x], 128", None),
    ("prefetch.global.L2::evict_last [x]", "nanosleep.u32 0"),
    ("prefetch.tensormap [a]", "nanosleep.u32 0"),
    ("prefetchu.L1 [a]", "nanosleep.u32 0"),
    ("applypriority.global.L2::evict_normal [x], 128", "nanosleep.u32 0"),
    (
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 d, [x], 16, 32",
        "createpolicy.fractional.L2::evict_normal.b64 d",
    ),
    (
        "createpolicy.fractional.L2::evict_unchanged.L2::evict_unchanged.b64 d, 0.5",
        "createpolicy.fractional.L2::evict_normal.b64 d",
    ),
    ("createpolicy.cvt.L2.b64 d, a", "createpolicy.fractional.L2::evict_normal.b64 d"),
    ("nanosleep.u32 a", "nanosleep.u32 0"),
    ("mov.f32 d, 1.5", "mov.f32 d, 0f3FC00000"),
    ("mov.f64 d, 0f3FC00000", "mov.f64 d, 0d3FF8000000000000"),
    ("mov.f32 d, 1e40", "mov.f32 d, 0f7F800000"),
    ("mov.b64 d, {a, b}", None),
    ("mov.b32 d, {a, 1, b, c}", None),
    ("mov.b128 {a, _}, d", None),
    ("mov.b16 {a, b}, 0x102", "mov.b16 {a, b}, 258"),
    ("selp.f32 d, a, -0.5, p", "selp.f32 d, a, 0fBF000000, p"),
]


@pytest.mark.parametrize(("text", "canonical"), LEGAL, ids=[t for t, _ in LEGAL])
def test_legal_forms_and_their_canonical_text(text: str, canonical: str | None) -> None:
    op = resolve(text)
    assert printed(op) == (canonical or text)
    assert plain(resolve(printed(op))) == plain(op)
    for name, typ in (*isa.definitions(op), *isa.uses(op)):
        assert name in "abcdefghpq" and (typ == PRED) == (name in "pq"), text


@pytest.mark.parametrize(
    "text",
    [
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [a], 32",
        "tcgen05.alloc.cta_group::1.sync.aligned.b32 [a], b",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 a, 32",
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
        "tcgen05.shift.cta_group::1.down [a+8]",
        "tcgen05.mma.cta_group::1.kind::f16 [a], c, d, b, {a, b, a, 1}, p, 3",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [a], h",
    ],
)
def test_legal_forms_of_tensor_memory(text: str) -> None:
    op = resolve(text, (8, 6))
    assert printed(op) == text
    assert plain(resolve(printed(op), (8, 6))) == plain(op)


def bulk(**more: Any) -> Op:
    plain_copy: dict[str, Any] = {
        "dst": X, "dst_space": "shared::cluster", "src": Y, "src_space": "global", "size": Imm(64), "mbarrier": None,
        "mask": None, "reduction": None, "type": None, "tensormap": None, "coordinates": (), "source": HERE,
    }  # fmt: skip
    return ops.BulkCopy(**(plain_copy | more))


def arrive(**more: Any) -> Op:
    default: dict[str, Any] = {
        "dst": D, "address": X, "count": None, "expect": None, "sem": "release", "scope": "cta", "drop": False,
        "no_complete": False, "space": None, "source": HERE,
    }  # fmt: skip
    return ops.MbarrierArrive(**(default | more))


TX = "mbarrier::complete_tx::bytes"
RESOLVED: list[tuple[str, Op]] = [
    ("ld.v2.u32 {a, _}, [x]", ops.Load((A, None), X, U32, "weak", None, None, HERE)),
    ("ld.global.nc.b128 d, [x]", ops.Load((D,), X, B128, "weak", None, "global", HERE, nc=True)),
    ("ldu.f32 d, [x]", ops.Load((D,), X, F32, "weak", None, None, HERE, nc=True)),
    ("st.v2.f32 [x], {a, 1.0}", ops.Store(X, (A, Imm(0x3F800000)), F32, "weak", None, None, HERE)),
    ("st.f64 [x], -2.0", ops.Store(X, (Imm(0xC000000000000000),), F64, "weak", None, None, HERE)),
    (
        "atom.add.noftz.bf16x2 d, [x], a",
        ops.Atomic((D,), "add", X, ((A,),), BF16, "relaxed", "gpu", None, True, HERE, packed=2),
    ),
    (
        "atom.global.add.v2.f32 _, [x], {a, b}",
        ops.Atomic((None, None), "add", X, ((A,), (B,)), F32, "relaxed", "gpu", "global", True, HERE),
    ),
    (
        "red.release.cta.global.min.noftz.v2.f16 [x], {a, b}",
        ops.Atomic((), "min", X, ((A,), (B,)), F16, "release", "cta", "global", False, HERE),
    ),
    ("atom.cas.b128 d, [x], a, b", ops.Atomic((D,), "cas", X, ((A, B),), B128, "relaxed", "gpu", None, True, HERE)),
    (
        f"st.async.shared::cluster.{TX}.v2.u32 [a], {{b, 3}}, [x]",
        ops.AsyncStore(AT_A, (B, Imm(3)), U32, X, None, HERE, None, "shared::cluster"),
    ),
    (f"red.async.relaxed.cluster.{TX}.inc.u32 [a], b, [x]", ops.AsyncStore(AT_A, (B,), U32, X, "inc", HERE)),
    (
        "multimem.ld_reduce.acquire.gpu.global.add.acc::f32.v2.bf16x2 {a, _}, [x]",
        ops.Multimem("ld_reduce", "add", (A, None), X, (), BF16, "acquire", "gpu", "global", HERE, None, 2, True),
    ),
    ("multimem.st.f64 [a], b", ops.Multimem("st", None, (), AT_A, (B,), F64, "weak", None, None, HERE)),
    ("multimem.red.add.u32 [x], 1", ops.Multimem("red", "add", (), X, (Imm(1),), U32, "relaxed", "sys", None, HERE)),
    ("mapa.shared::cluster.u64 d, x+4, 1", ops.Mapa(D, U64, Sym("x", 4), Imm(1), "shared::cluster", HERE)),
    ("mapa.shared::cluster.u32 d, x, 1", ops.Mapa(D, U32, Sym("x"), Imm(1), "shared::cluster", HERE)),
    ("getctarank.u64 d, a", ops.CtaRank(D, U64, A, HERE)),
    ("mov.u32 d, x+4", ops.Alu("mov", U32, D, (Sym("x", 4),), HERE)),
    ("cvta.shared::cta.u64 d, a", ops.ConvertAddress(D, U64, A, "shared::cta", HERE)),
    ("isspacep.shared p, a", ops.IsSpace(P, "shared", A, HERE)),
    ("cvta.global.u64 d, x", ops.Alu("mov", U64, D, (Sym("x"),), HERE)),
    ("cvta.to.shared.u64 d, a", ops.ConvertAddress(D, U64, A, "shared", HERE, None, True)),
    ("cvta.const.u64 d, x", ops.ConvertAddress(D, U64, Sym("x"), "const", HERE)),
    ("cvta.to.global.u64 d, a", ops.Alu("mov", U64, D, (A,), HERE)),
    ("fence.proxy.async.shared::cta", ops.ProxyFence("async", HERE, None, "shared::cta")),
    ("fence.proxy.tensormap::generic.release.cta", ops.TensormapFence("release", "cta", None, HERE)),
    ("fence.proxy.tensormap::generic.acquire.gpu [x], 128", ops.TensormapFence("acquire", "gpu", X, HERE)),
    ("fence.mbarrier_init.release.cluster", ops.MbarrierInitFence(HERE)),
    ("bar.red.popc.u32 d, 1, !p", ops.BarrierReduction("popc", D, Imm(1), None, P, True, HERE, aligned=True)),
    ("barrier.red.and.pred q, a, 64, p", ops.BarrierReduction("and", Q, A, Imm(64), P, False, HERE)),
    ("bar.warp.sync a", ops.WarpBarrier(A, HERE)),
    ("barrier.cluster.arrive", ops.ClusterBarrier("arrive", "release", HERE)),
    ("barrier.cluster.arrive.relaxed", ops.ClusterBarrier("arrive", "relaxed", HERE)),
    ("@p barrier.cluster.wait", ops.ClusterBarrier("wait", "acquire", HERE, ops.Guard("p"))),
    ("mbarrier.init.shared.b64 [x], 2", ops.MbarrierInit(X, Imm(2), HERE, None, "shared")),
    ("mbarrier.inval.b64 [x]", ops.MbarrierInit(X, None, HERE)),
    ("mbarrier.arrive.b64 d, [x]", arrive()),
    (
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [x], a",
        arrive(dst=None, count=A, scope="cluster", space="shared::cluster"),
    ),
    ("mbarrier.arrive.expect_tx.b64 d, [x], 16", arrive(expect=Imm(16))),
    ("mbarrier.arrive.noComplete.b64 d, [x], 1", arrive(count=Imm(1), no_complete=True)),
    ("mbarrier.arrive_drop.b64 d, [x]", arrive(drop=True)),
    ("mbarrier.expect_tx.b64 [x], 8", ops.MbarrierTx("expect_tx", X, Imm(8), "cta", None, HERE)),
    (
        "mbarrier.complete_tx.relaxed.cluster.shared.b64 [x], a",
        ops.MbarrierTx("complete_tx", X, A, "cluster", "shared", HERE),
    ),
    ("mbarrier.test_wait.b64 p, [x], a", ops.MbarrierWait("test_wait", P, X, A, None, "acquire", "cta", HERE)),
    (
        "mbarrier.try_wait.parity.acquire.cluster.b64 p, [x], 1, 100",
        ops.MbarrierWait("try_wait", P, X, None, Imm(1), "acquire", "cluster", HERE),
    ),
    ("mbarrier.pending_count.b64 d, a", ops.PendingCount(D, A, HERE)),
    ("cp.async.ca.shared.global [x], [y], 8, 4", ops.CopyAsync(X, Y, 8, Imm(4), None, False, HERE)),
    ("cp.async.cg.shared.global [x], [y], 16, p", ops.CopyAsync(X, Y, 16, None, P, False, HERE)),
    ("cp.async.cg.shared.global [x], [y], 16, !p", ops.CopyAsync(X, Y, 16, None, P, True, HERE)),
    ("cp.async.mbarrier.arrive.noinc.b64 [x]", ops.CopyAsyncArrive(X, True, HERE)),
    ("cp.async.commit_group", ops.AsyncCommit("cp.async", HERE)),
    ("cp.async.bulk.commit_group", ops.AsyncCommit("bulk", HERE)),
    ("wgmma.commit_group.sync.aligned", ops.AsyncCommit("wgmma", HERE)),
    ("cp.async.wait_group 1", ops.AsyncWait("cp.async", 1, False, HERE)),
    ("cp.async.wait_all", ops.AsyncWait("cp.async", None, False, HERE)),
    ("cp.async.bulk.wait_group.read 0", ops.AsyncWait("bulk", 0, True, HERE)),
    ("wgmma.wait_group.sync.aligned 0", ops.AsyncWait("wgmma", 0, False, HERE)),
    ("wgmma.fence.sync.aligned", ops.WgmmaFence(HERE)),
    (
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {a, a, a, a}, b, c, p",
        ops.Wgmma((A, A, A, A), B, C, P, S32, (64, 8, 32), ("s8", "s8"), HERE),
    ),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {a, _}, [x]", ops.LoadMatrix((A, None), X, "shared", False, HERE)),
    ("stmatrix.sync.aligned.m8n8.x1.trans.b16 [x], {5}", ops.StoreMatrix(X, (Imm(5),), None, True, HERE)),
    (
        "wmma.load.b.sync.aligned.row.m8n32k16.s8 {a, b, c, d}, [x], 48",
        ops.WmmaLoad(
            (A, B, C, D), X, B32, ops.Tile(16, 32, 8, 16), "b", Imm(48), None, ("row", "m8n32k16", "s8"), HERE
        ),
    ),
    (
        "wmma.store.d.sync.aligned.col.m8n8k32.global.s32 [x], {a, 5}",
        ops.WmmaStore(X, (A, Imm(5)), S32, ops.Tile(8, 8, 32, 8), None, "global", ("col", "m8n8k32", "s32"), HERE),
    ),
    (
        "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {a, b}, {c}, {d}, {a, 5}",
        ops.Wmma(
            (A, B),
            (C,),
            (D,),
            (A, Imm(5)),
            (S32, B32, B32, S32),
            ("sync", "aligned", "row", "col", "m8n8k32", "s32", "s4", "s4", "s32"),
            HERE,
        ),
    ),
    (
        "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.u8.s32 {a, b}, {c}, {d}, {a, 5}",
        ops.Wmma(
            (A, B),
            (C,),
            (D,),
            (A, Imm(5)),
            (S32, B32, B32, S32),
            ("sync", "aligned", "m8n8k16", "row", "col", "satfinite", "s32", "s8", "u8", "s32"),
            HERE,
            instruction="mma",
        ),
    ),
    ("ex2.approx.f32 d, 0f3F800000", ops.Opaque("ex2.approx.f32", F32, (F32,), D, None, (Imm(0x3F800000),), HERE)),
    (
        "setp.lt.and.f16x2 p|_, a, b, !q",
        ops.Opaque("setp.lt.and.f16x2", PRED, (B32, B32, PRED), P, None, (A, B, Q), HERE, negated=True),
    ),
    ("setp.lt.bf16x2 _|q, a, b", ops.Opaque("setp.lt.bf16x2", PRED, (B32, B32), None, Q, (A, B), HERE)),
    ("set.lt.bf16.u64 d, a, 3", ops.Opaque("set.lt.bf16.u64", BF16, (U64, U64), D, None, (A, Imm(3)), HERE)),
    ("cvt.rn.relu.f16x2.e4m3x2 d, a", ops.Opaque("cvt.rn.relu.f16x2.e4m3x2", B32, (B16,), D, None, (A,), HERE)),
    (f"cp.async.bulk.shared::cluster.global.{TX} [x], [y], 64, [a]", bulk(mbarrier=AT_A)),
    (
        f"cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [x], [y], b, [a], 3",
        bulk(size=B, mbarrier=AT_A, mask=Imm(3)),
    ),
    ("cp.async.bulk.global.shared::cta.bulk_group [x], [y], 64", bulk(dst_space="global", src_space="shared::cta")),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [x], [y], 64",
        bulk(dst_space="global", src_space="shared::cta", reduction="add", type=F16),
    ),
    (
        f"cp.async.bulk.tensor.2d.shared::cluster.global.{TX} [x], [y, {{a, 1}}], [b]",
        bulk(src=None, size=None, mbarrier=AT_B, tensormap=Y, coordinates=(A, Imm(1))),
    ),
    (
        f"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.{TX} [x], [y, {{0, 0, 0}}], [b], {{c}}",
        bulk(
            src=None, size=None, mbarrier=AT_B, tensormap=Y, coordinates=(Imm(0),) * 3, load_mode="im2col", offsets=(C,)
        ),
    ),
    (
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.max.bulk_group [y, {a}], [x]",
        bulk(
            dst=None,
            dst_space="global",
            src=X,
            src_space="shared::cta",
            size=None,
            reduction="max",
            tensormap=Y,
            coordinates=(A,),
        ),
    ),
    (
        "tensormap.replace.tile.global_address.global.b1024.b64 [x], a",
        ops.TensormapReplace("global_address", X, None, A, B64, "global", HERE),
    ),
    ("tensormap.replace.tile.box_dim.b1024.b32 [x], 1, a", ops.TensormapReplace("box_dim", X, 1, A, B32, None, HERE)),
    (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sys.sync.aligned [x], [y], 128",
        ops.TensormapCopyFence(X, Y, "sys", HERE),
    ),
    ("griddepcontrol.wait", ops.GridControl("wait", HERE)),
    ("setmaxnreg.inc.sync.aligned.u32 256", ops.SetMaxRegisters("inc", 256, HERE)),
    ("discard.global.L2 [x], 128", ops.Discard(X, 128, HERE, None, "global")),
    ("createpolicy.fractional.L2::evict_first.b64 d", ops.Nothing(D, B64, HERE)),
    ("@p nanosleep.u32 100", ops.Nothing(None, None, HERE, ops.Guard("p"))),
    (
        "shfl.sync.down.b32 d|p, a, 1, 31, 3",
        ops.WarpExchange("shfl.down", B32, D, P, (A, Imm(1), Imm(31), Imm(3)), HERE),
    ),
    ("vote.sync.any.pred p, !q, 3", ops.WarpExchange("vote.any", PRED, P, None, (Q, Imm(3)), HERE, negated=True)),
    ("match.all.sync.b64 d|p, a, b", ops.WarpExchange("match.all", B64, D, P, (A, B), HERE)),
    ("activemask.b32 d", ops.WarpExchange("activemask", B32, D, None, (), HERE)),
    ("redux.sync.min.s32 d, a, 3", ops.WarpExchange("redux.min", S32, D, None, (A, Imm(3)), HERE)),
    ("elect.sync _|p, a", ops.WarpExchange("elect", PRED, None, P, (A,), HERE)),
    ("mov.b64 d, {a, b}", ops.Pack(D, B64, (A, B), HERE)),
    ("mov.b128 {a, _}, d", ops.Unpack((A, None), B128, D, HERE)),
    ("mov.f32 d, 0.1", ops.Alu("mov", F32, D, (Imm(0x3DCCCCCD),), HERE)),
    ("mov.f64 d, 0fBF800000", ops.Alu("mov", F64, D, (Imm(0xBFF0000000000000),), HERE)),
    ("mov.b32 d, 0f3F800000", ops.Alu("mov", B32, D, (Imm(0x3F800000),), HERE)),
]


@pytest.mark.parametrize(("text", "expected"), RESOLVED, ids=[t for t, _ in RESOLVED])
def test_what_it_accesses_is_said_of_each_address(text: str, expected: Op) -> None:
    assert {touch.address for touch in ops.touched(expected)} == set(addresses(expected))


@pytest.mark.parametrize(("text", "expected"), RESOLVED, ids=[t for t, _ in RESOLVED])
def test_resolved(text: str, expected: Op) -> None:
    assert plain(resolve(text)) == expected


@pytest.mark.parametrize(("text", "expected"), RESOLVED, ids=[t for t, _ in RESOLVED])
def test_what_a_warp_executes_together_is_known(text: str, expected: Op) -> None:
    assert convergence.aligned(expected) == ("aligned" in mnemonic(expected).split("."))


def test_every_operation_of_typed_ptx_is_resolved_here() -> None:
    elsewhere = {ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Branch, ops.Exit, ops.Fence, ops.Barrier}
    later = {ops.GenericToAsyncFence, ops.StoreBulk, *ops.FAMILIES["tensor memory"]}  # than PTX ISA 8.5
    assert {type(op) for _, op in RESOLVED} | elsewhere | later == set(Op.__args__)


@pytest.mark.parametrize(
    ("text", "defined", "used"),
    [
        ("ld.v2.f32 {a, _}, [b]", [("a", F32)], [("b", B64)]),
        ("atom.add.noftz.f16x2 d, [b], a", [("d", B32)], [("b", B64), ("a", B32)]),
        ("atom.global.add.v2.f32 {c, d}, [x], {a, b}", [("c", F32), ("d", F32)], [("a", F32), ("b", F32)]),
        ("atom.cas.b128 d, [x], a, b", [("d", B128)], [("a", B128), ("b", B128)]),
        ("multimem.ld_reduce.add.f16x2 d, [b]", [("d", B32)], [("b", B64)]),
        ("multimem.st.v2.f16x2 [b], {a, c}", [], [("b", B64), ("a", B32), ("c", B32)]),
        (f"st.async.{TX}.u32 [a], b, [c]", [], [("a", B64), ("c", B64), ("b", U32)]),
        ("bar.red.popc.u32 d, a, b, p", [("d", U32)], [("a", U32), ("b", U32), ("p", PRED)]),
        ("bar.red.or.pred q, 0, p", [("q", PRED)], [("p", PRED)]),
        ("mbarrier.init.b64 [a], b", [], [("a", B64), ("b", U32)]),
        ("mbarrier.arrive.expect_tx.b64 d, [a], b", [("d", B64)], [("a", B64), ("b", U32)]),
        ("mbarrier.expect_tx.b64 [a], b", [], [("a", B64), ("b", U32)]),
        ("mbarrier.try_wait.b64 p, [a], b", [("p", PRED)], [("a", B64), ("b", B64)]),
        ("mbarrier.try_wait.parity.b64 p, [a], b", [("p", PRED)], [("a", B64), ("b", U32)]),
        ("mbarrier.pending_count.b64 d, a", [("d", U32)], [("a", B64)]),
        ("cp.async.ca.shared.global [a], [b], 4, c", [], [("a", B64), ("b", B64), ("c", U32)]),
        ("cp.async.ca.shared.global [a], [b], 4, p", [], [("a", B64), ("b", B64), ("p", PRED)]),
        (
            f"cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster [a], [b], c, [d], e",
            [],
            [("a", B64), ("b", B64), ("d", B64), ("c", U32), ("e", U16)],
        ),
        (
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [a, {b, c}], [d]",
            [],
            [("a", B64), ("d", B64), ("b", S32), ("c", S32)],
        ),
        ("tensormap.replace.tile.rank.b1024.b32 [a], b", [], [("a", B64), ("b", B32)]),
        ("fence.proxy.tensormap::generic.acquire.gpu [a], 128", [], [("a", B64)]),
        ("mapa.u64 d, a, b", [("d", U64)], [("a", U64), ("b", U32)]),
        ("getctarank.u64 d, a", [("d", U32)], [("a", U64)]),
        ("cvta.shared::cluster.u64 d, a", [("d", U64)], [("a", U64)]),
        ("isspacep.global p, a", [("p", PRED)], [("a", B64)]),
        (
            "shfl.sync.up.b32 d|p, a, b, c, e",
            [("d", B32), ("p", PRED)],
            [("a", B32), ("b", U32), ("c", U32), ("e", U32)],
        ),
        ("vote.sync.ballot.b32 d, p, a", [("d", B32)], [("p", PRED), ("a", U32)]),
        ("match.all.sync.b64 d|q, a, b", [("d", B32), ("q", PRED)], [("a", B64), ("b", U32)]),
        ("elect.sync d|p, a", [("d", B32), ("p", PRED)], [("a", U32)]),
        ("redux.sync.add.s32 d, a, b", [("d", S32)], [("a", S32), ("b", U32)]),
        ("createpolicy.cvt.L2.b64 d, a", [("d", B64)], []),
        ("setp.gt.or.bf16x2 p|q, a, b, p", [("p", PRED), ("q", PRED)], [("a", B32), ("b", B32), ("p", PRED)]),
        ("cvt.rn.f16x2.f32 d, a, b", [("d", B32)], [("a", F32), ("b", F32)]),
        ("fma.rn.bf16 d, a, b, c", [("d", BF16)], [("a", BF16), ("b", BF16), ("c", BF16)]),
        (
            "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {a, b, c, d}, {a, b}, {d}, {a, b, c, d}",
            [(name, F32) for name in "abcd"],
            [("a", B32), ("b", B32), ("d", B32), *((name, F32) for name in "abcd")],
        ),
        ("mov.b64 d, {a, b}", [("d", B64)], [("a", B32), ("b", B32)]),
        ("mov.b64 {a, b, _, c}, d", [("a", B16), ("b", B16), ("c", B16)], [("d", B64)]),
    ],
)
def test_definitions_and_uses(text: str, defined: list[tuple[str, Type]], used: list[tuple[str, Type]]) -> None:
    op = resolve(text)
    assert (isa.definitions(op), isa.uses(op)) == (defined, used)


def test_a_predicate_that_is_not_known_is_a_size() -> None:
    (item,) = parse_statements("cp.async.ca.shared.global [x], [y], 4, p")
    assert isinstance(item, Instruction)
    op = isa.resolve(item, dialect=False, variables=VARIABLES, labels={})
    assert isinstance(op, ops.CopyAsync) and (op.source_size, op.ignore) == (P, None)


def test_the_predicates_of_a_thread() -> None:
    text = """setp.lt.u32 a|b, x, 1; @c mov.u32 x, y; mbarrier.try_wait.parity.b64 d, [x], 0; selp.u32 x, 1, 2, y;
    elect.sync e|f, 1; setp.eq.u32 g, x, 1; and.pred h, a, b; vote.sync.any.pred i, !j, 1; isspacep.global k, x"""
    found = isa.predicate_names(s for s in parse_statements(text) if isinstance(s, Instruction))
    assert found == set("abcdfghijk")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("ld.b128 d, [x]", Version((8, 3), 70)),
        ("ld.relaxed.sys.b128 d, [x]", Version((8, 4), 70)),
        ("ld.global.nc.u32 d, [x]", Version((3, 1), 32)),
        ("ldu.u32 d, [x]", Version((2, 0))),
        ("atom.add.f32 d, [x], a", Version((2, 0), 20)),
        ("atom.add.f64 d, [x], a", Version((5, 0), 60)),
        ("atom.add.noftz.f16x2 d, [x], a", Version((6, 2), 60)),
        ("atom.add.noftz.bf16 d, [x], a", Version((7, 8), 90)),
        ("atom.global.add.v2.f32 {a, b}, [x], {a, b}", Version((8, 1), 90)),
        ("atom.cas.b128 d, [x], a, b", Version((8, 3), 90)),
        (f"st.async.{TX}.u32 [a], b, [c]", Version((8, 1), 90)),
        ("multimem.st.u32 [x], b", Version((8, 1), 90)),
        ("multimem.ld_reduce.add.acc::f32.f16x2 d, [x]", Version((8, 2), 90)),
        ("fence.proxy.async", Version((8, 0), 90)),
        ("fence.proxy.tensormap::generic.release.gpu", Version((8, 3), 90)),
        ("fence.mbarrier_init.release.cluster", Version((8, 0), 90)),
        ("fence.acquire.gpu", Version((8, 6), 70)),
        ("bar.warp.sync 1", Version((6, 0), 30)),
        ("bar.red.popc.u32 d, 0, p", Version((2, 0), 20)),
        ("barrier.cluster.arrive", Version((7, 8), 90)),
        ("barrier.cluster.arrive.relaxed", Version((8, 0), 90)),
        ("mbarrier.init.b64 [x], 1", Version((7, 0), 80)),
        ("mbarrier.arrive.b64 d, [x]", Version((7, 0), 80)),
        ("mbarrier.arrive.release.cluster.b64 d, [x]", Version((8, 0), 90)),
        ("mbarrier.arrive.release.cta.b64 d, [x]", Version((8, 0), 80)),
        ("mbarrier.arrive.b64 _, [x]", Version((7, 1), 80)),
        ("mbarrier.arrive.b64 d, [x], 1", Version((7, 8), 90)),
        ("mbarrier.arrive.noComplete.b64 d, [x], 1", Version((7, 0), 80)),
        ("cp.async.ca.shared.global [x], [y], 4, !p", Version((7, 5), 80)),
        ("ld.u32 d, [x].unified", Version((8, 0), 90)),
        ("mbarrier.arrive.relaxed.cta.b64 d, [x]", Version((8, 6), 90)),
        ("mbarrier.test_wait.parity.b64 p, [x], 0", Version((7, 1), 80)),
        ("mbarrier.try_wait.b64 p, [x], a", Version((7, 8), 90)),
        ("cp.async.ca.shared.global [x], [y], 4", Version((7, 0), 80)),
        ("cp.async.bulk.global.shared::cta.bulk_group [x], [y], 16", Version((8, 0), 90)),
        (f"cp.async.bulk.shared::cta.global.{TX} [x], [y], 16, [a]", Version((8, 6), 90)),
        ("tensormap.replace.tile.rank.b1024.b32 [x], 1", Version((8, 3), 90)),
        ("griddepcontrol.wait", Version((7, 8), 90)),
        ("setmaxnreg.inc.sync.aligned.u32 32", Version((8, 0), 90)),
        ("mapa.u64 d, a, 1", Version((7, 8), 90)),
        ("isspacep.param p, a", Version((7, 7), 70)),
        ("elect.sync d|p, a", Version((8, 0), 90)),
        ("redux.sync.add.u32 d, a, b", Version((7, 0), 80)),
        ("discard.L2 [x], 128", Version((7, 4), 80)),
        ("rcp.approx.ftz.f64 d, a", Version((2, 1), 20)),
        ("tanh.approx.f32 d, a", Version((7, 0), 75)),
        ("add.f16 d, a, b", Version((4, 2), 53)),
        ("add.rn.bf16x2 d, a, b", Version((7, 8), 90)),
        ("fma.rn.f16 d, a, b, c", Version((4, 2), 53)),
        ("fma.rn.relu.f16 d, a, b, c", Version((7, 0), 80)),
        ("fma.rn.oob.bf16 d, a, b, c", Version((8, 1), 90)),
        ("max.xorsign.abs.f16 d, a, b", Version((7, 2), 86)),
        ("set.eq.u32.f16x2 d, a, b", Version((6, 5), 53)),
        ("cvt.rna.tf32.f32 d, a", Version((7, 0), 80)),
        ("cvt.rn.tf32.f32 d, a", Version((7, 8), 90)),
        ("cvt.rn.satfinite.f16.f32 d, a", Version((8, 1))),
        ("cvt.rn.satfinite.bf16.f32 d, a", Version((8, 1), 80)),
        ("cvt.rn.f16x2.e4m3x2 d, a", Version((7, 8), 89)),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {a, b}, {c}, {d}, {a, b}", Version((7, 0), 80)),
        ("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {a, b}, {c}, {d}, {a, b}", Version((7, 1), 80)),
    ],
)
def test_first_version(text: str, version: Version) -> None:
    assert isa.requires(parsed(text)) == version


NEWER = [
    ("fence.acquire.gpu", 6, "`fence.acquire`", "8.6"),
    ("fence.release.sync_restrict::shared::cta.cluster", 6, "`fence.release`", "8.6"),
    ("fence.acquire.sync_restrict::shared::cluster.cluster", 6, "`fence.acquire`", "8.6"),
    ("mbarrier.arrive.relaxed.cta.b64 d, [x]", 16, "`mbarrier.arrive.relaxed`", "8.6"),
    ("mbarrier.test_wait.relaxed.cluster.b64 p, [x], a", 19, "`mbarrier.test_wait.relaxed`", "8.6"),
    (f"cp.async.bulk.shared::cta.global.{TX} [x], [y], 16, [a]", 14, f"`cp.async.bulk.shared::cta.global.{TX}`", "8.6"),
    ("ld.global.v8.f32 {a, b, c, d, e, f, g, h}, [x]", 10, "`ld.v8.f32`", "8.8"),
    ("st.v4.u64 [x], {a, b, c, d}", 3, "`st.v4.u64`", "8.8"),
]


@pytest.mark.parametrize(("text", "column", "name", "version"), NEWER, ids=[t for t, *_ in NEWER])
def test_later_versions_are_refused_and_named(text: str, column: int, name: str, version: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    message = f"{name} is PTX ISA {version}, and the version here is 8.5"
    error = caught.value
    assert (error.column, error.message, error.hint, error.kind) == (column, message, f"--isa {version}", "isa")
    major, minor = version.split(".")
    op = resolve(text, (int(major), int(minor)))
    again = isa.resolve(
        parsed(printed(op)), dialect=False, variables=VARIABLES, labels={}, isa=(int(major), int(minor))
    )
    assert plain(again) == plain(op)


def test_an_older_version_refuses_what_came_later() -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve("barrier.cluster.arrive", (7, 5))
    assert caught.value.message == "`barrier.cluster.arrive` is PTX ISA 7.8, and the version here is 7.5"
    with pytest.raises(PtxmmError) as caught:
        resolve("fence.sc.cluster", (7, 5))
    assert caught.value.message == "`fence.cluster` is PTX ISA 7.8, and the version here is 7.5"
    with pytest.raises(PtxmmError) as caught:
        resolve("mbarrier.arrive.b64 d, [x], 3", (7, 5))
    what = "a count without `.noComplete` (`mbarrier.arrive`)"
    assert caught.value.message == f"{what} is PTX ISA 7.8, and the version here is 7.5"
    assert isinstance(resolve("fence.sc.gpu", (7, 5)), ops.Fence)
