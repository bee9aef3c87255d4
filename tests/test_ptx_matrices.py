"""Matrix instructions: ldmatrix, stmatrix and wgmma; and real PTX that is later than the version of a test."""

from __future__ import annotations

import random

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.ptx import isa, ops
from ptxmm.ptx.ops import Imm, Reg, Type
from ptxmm.ptx.table import Version
from tests.test_ptx_rows import B32, F32, PRED, parsed, plain, printed, resolve

MMA = "wgmma.mma_async.sync.aligned"
SPARSE = "wgmma.mma_async.sp.sync.aligned"
B64 = Type("b", 64)
# The types of A and B that go together, with the k of a dense product and the types of D (PTX ISA 9.7.16.2, .3).
PRODUCTS = [
    ("f16", "f16", 16, ("f16", "f32")),
    ("bf16", "bf16", 16, ("f32",)),
    ("tf32", "tf32", 8, ("f32",)),
    *((a, b, 32, ("f16", "f32")) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")),
    *((a, b, 32, ("s32",)) for a in ("s8", "u8") for b in ("s8", "u8")),
    ("b1", "b1", 256, ("s32",)),
]


def registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"


def product(
    a: str, b: str, d: str, shape: str, *, sparse: bool = False, fragments: bool = False, scale: str = "p"
) -> str:
    """A legal product, from the lines of syntax of 9.7.16.5.2 and 9.7.16.6.4."""
    n = int(shape[4:].partition("k")[0])
    name = f"{SPARSE if sparse else MMA}.{shape}.{d}.{a}.{b}" + (".and.popc" if a == "b1" else "")
    left = registers("a", 4) if fragments else "da"
    parts = [registers("d", n // 4 if d == "f16" else n // 2), left, "db"]
    if sparse:
        parts += ["m", "0"]
    parts.append(scale)
    if d != "s32":
        parts += ["1", "-1"]
        if a in ("f16", "bf16"):
            parts += ["0"] if fragments else ["0", "1"]
    return f"{name} {', '.join(parts)}"


def shapes(k: int, integer: bool) -> list[str]:
    columns = range(8, 257, 8)
    return [f"m64n{n}k{k}" for n in columns if not integer or n <= 32 or n % 16 == 0]


@pytest.mark.parametrize(("a", "b", "k", "accumulators"), PRODUCTS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_product(a: str, b: str, k: int, accumulators: tuple[str, ...], sparse: bool) -> None:
    if sparse and a == "b1":
        return
    depth = 2 * k if sparse else k
    legal = shapes(depth, "s32" in accumulators)
    for d in accumulators:
        for shape in [*random.Random(1).sample(legal, 4), legal[0], legal[-1]]:
            for fragments in (False, True):
                text = product(a, b, d, shape, sparse=sparse, fragments=fragments)
                op = resolve(text)
                assert isinstance(op, ops.Wgmma)
                assert printed(op) == text
                assert plain(resolve(printed(op))) == plain(op)


@pytest.mark.parametrize(("a", "b", "k", "accumulators"), PRODUCTS)
def test_no_other_shape(a: str, b: str, k: int, accumulators: tuple[str, ...]) -> None:
    legal = shapes(k, "s32" in accumulators)
    every = [f"m64n{n}k{depth}" for n in range(8, 257, 8) for depth in (8, 16, 32, 64, 256)]
    for shape in random.Random(2).sample([s for s in every if s not in legal], 20):
        with pytest.raises(PtxmmError, match="shape"):
            resolve(product(a, b, accumulators[0], shape))


def test_the_parts_of_a_product() -> None:
    text = f"@!q {SPARSE}.m64n8k32.f32.f16.f16 {{a, b, c, d}}, {{e, f, e, f}}, db, m, 1, !p, -1, 1, 0"
    assert plain(resolve(text)) == ops.Wgmma(
        dst=tuple(Reg(n) for n in "abcd"),
        a=tuple(Reg(n) for n in "efef"),
        b=Reg("db"),
        scale=Reg("p"),
        type=F32,
        shape=(64, 8, 32),
        multiplicands=("f16", "f16"),
        source=plain(resolve(text)).source,
        guard=ops.Guard("q", True),
        scale_negated=True,
        immediates=(-1, 1, 0),
        metadata=Reg("m"),
        selector=1,
    )
    op = resolve(f"{MMA}.m64n8k32.s32.s8.u8.satfinite {{a, b, c, d}}, da, 4096, 1")
    assert isinstance(op, ops.Wgmma)
    assert (op.saturate, op.b, op.scale, op.type) == (True, Imm(4096), Imm(1), Type("s", 32))
    assert printed(op) == f"{MMA}.m64n8k32.satfinite.s32.s8.u8 {{a, b, c, d}}, da, 4096, 1"


def test_what_a_product_reads_and_writes() -> None:
    op = resolve(f"{MMA}.m64n8k16.f16.f16.f16 {{a, b}}, da, db, p, 1, 1, 0, 0")
    assert isa.definitions(op) == [("a", B32), ("b", B32)]
    assert isa.uses(op) == [("a", B32), ("b", B32), ("da", B64), ("db", B64), ("p", PRED)]
    op = resolve(f"{MMA}.m64n8k8.f32.tf32.tf32 {{a, b, c, d}}, {{e, f, g, h}}, db, 0, 1, 1")
    assert isa.definitions(op) == [(n, F32) for n in "abcd"]
    assert isa.uses(op) == [*((n, B32) for n in "efgh"), ("db", B64)]
    op = resolve(f"{SPARSE}.m64n8k16.f32.tf32.tf32 {{a, b, c, d}}, da, db, m, 0, 0, 1, 1")
    assert isa.uses(op) == [("da", B64), ("db", B64), ("m", B32)]
    op = resolve("@p ldmatrix.sync.aligned.m8n8.x4.b16 {a, _, b, c}, [r+16]")
    assert isa.definitions(op) == [("a", B32), ("b", B32), ("c", B32)]
    assert isa.uses(op) == [("p", PRED), ("r", B64)]
    op = resolve("stmatrix.sync.aligned.m8n8.x2.b16 [r], {a, 7}")
    assert (isa.definitions(op), isa.uses(op)) == ([], [("r", B64), ("a", B32)])


F32_4 = "{a, b, c, d}"
ILLEGAL: list[tuple[str, str, str | None]] = [
    (f"{MMA}.f32.f16.f16 {F32_4}, e, f, p, 1, 1, 0, 0", "`wgmma.mma_async` needs a shape, such as .m64n8k8", None),
    (
        f"{MMA}.m64n12k16.f32.f16.f16 {F32_4}, e, f, p, 1, 1, 0, 0",
        "`wgmma.mma_async` takes no `.m64n12k16`",
        "shapes of `wgmma.mma_async`: .m64n8k8 to .m64n256k256",
    ),
    (
        f"{MMA}.m64n8k16.f16.f16 {F32_4}, e, f, p, 1, 1, 0, 0",
        "`wgmma.mma_async` needs a type of B: .f16 .bf16 .tf32 .e4m3 .e5m2 .s8 .u8 .b1",
        None,
    ),
    ("wgmma.mma_async.aligned.m64n8k16.f32.f16.f16 {a}, e, f, p", "`wgmma.mma_async` needs `.sync`", None),
    ("wgmma.mma_async.sync.m64n8k16.f32.f16.f16 {a}, e, f, p", "`wgmma.mma_async` needs `.aligned`", None),
    (
        f"{MMA}.m64n8k16.f32.f16.bf16 {F32_4}, e, f, p, 1, 1, 0, 0",
        "`wgmma.mma_async` multiplies .f16 by .f16, not by .bf16",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f16.bf16.bf16 {{a, b}}, e, f, p, 1, 1, 0, 0",
        "`wgmma.mma_async` of .bf16 has no accumulator .f16",
        "accumulators of .bf16: .f32",
    ),
    (
        f"{MMA}.m64n8k16.f32.e4m3.e5m2 {F32_4}, e, f, p, 1, 1",
        "`wgmma.mma_async` of .e4m3 has shapes with k32, not .m64n8k16",
        "write .m64n8k32",
    ),
    (
        f"{MMA}.m64n40k32.s32.s8.s8 {F32_4}, e, f, p",
        "`wgmma.mma_async` of .s8 has no shape .m64n40k32",
        "n is 8, 16, 24, 32 or a multiple of 16",
    ),
    (
        f"{MMA}.m64n8k32.satfinite.f32.e4m3.e4m3 {F32_4}, e, f, p, 1, 1",
        "`wgmma.mma_async` of .e4m3 takes no `.satfinite`",
        "only .s8 and .u8 have it",
    ),
    (f"{MMA}.m64n8k256.s32.b1.b1 {F32_4}, e, f, p", "`wgmma.mma_async` of .b1 needs `.and`", "write .b1.b1.and.popc"),
    (f"{MMA}.m64n8k256.s32.b1.b1.xor.popc {F32_4}, e, f, p", "`wgmma.mma_async` takes no `.xor`", None),
    (
        f"{MMA}.m64n8k32.s32.s8.s8.popc {F32_4}, e, f, p",
        "`wgmma.mma_async` of .s8 takes no `.popc`",
        "only .b1 has .and.popc",
    ),
    (
        f"{SPARSE}.m64n8k16.f32.f16.f16 {F32_4}, e, f, m, 0, p, 1, 1, 0, 0",
        "`wgmma.mma_async.sp` of .f16 has shapes with k32, not .m64n8k16",
        "write .m64n8k32",
    ),
    (
        f"{SPARSE}.m64n8k32.s32.b1.b1 {F32_4}, e, f, m, 0, p",
        "`wgmma.mma_async.sp` takes no `.b1`",
        "types of A of `wgmma.mma_async.sp`: .f16 .bf16 .tf32 .e4m3 .e5m2 .s8 .u8",
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {{a, b}}, e, f, p, 1, 1, 0, 0",
        "the accumulator of `.m64n8k16.f32` takes a vector of 4, 2 given",
        None,
    ),
    (f"{MMA}.m64n8k16.f32.f16.f16 a, e, f, p, 1, 1, 0, 0", "expected a vector of 4, found `a`", "write {a, b}"),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {{a, _, b, c}}, e, f, p, 1, 1, 0, 0",
        "expected a destination register, found `_`",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, {{e}}, f, p, 1, 1, 0",
        "the matrix A in registers takes a vector of 4, 1 given",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, f, p, 1, 1, 0",
        "`wgmma.mma_async` takes 8 operands (d, a, b-desc, "
        "scale-d, imm-scale-a, imm-scale-b, imm-trans-a, imm-trans-b), 7 given",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, {F32_4}, f, p, 1, 1, 0, 0",
        "`wgmma.mma_async` takes 7 operands (d, a, b-desc, scale-d, imm-scale-a, imm-scale-b, imm-trans-b), 8 given",
        None,
    ),
    (
        f"{MMA}.m64n8k32.s32.s8.s8 {F32_4}, e, f, p, 1, 1",
        "`wgmma.mma_async` takes 4 operands (d, a, b-desc, scale-d), 6 given",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16",
        "`wgmma.mma_async` takes 8 operands (d, a, b-desc, scale-d, imm-scale-a, "
        "imm-scale-b, imm-trans-a, imm-trans-b), 0 given",
        None,
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, x, p, 1, 1, 0, 0",
        "`wgmma.mma_async` can't use the variable `x`",
        "mov.u64 rd, x takes the address, ld reads the value",
    ),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, [f], p, 1, 1, 0, 0",
        "expected a register or a constant, found a memory operand",
        None,
    ),
    (f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, f, 2, 1, 1, 0, 0", "`scale-d` is a predicate, 0 or 1, not 2", None),
    (f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, f, p, 0, 1, 0, 0", "`imm-scale-a` is -1 or 1, not 0", None),
    (
        f"{MMA}.m64n8k16.f32.f16.f16 {F32_4}, e, f, p, 1, 1, 0, q",
        "`imm-trans-b` must be an integer constant, found `q`",
        None,
    ),
    (
        f"{SPARSE}.m64n8k32.f32.f16.f16 {F32_4}, e, f, 5, 0, p, 1, 1, 0, 0",
        "expected a register with the sparsity metadata, found `5`",
        None,
    ),
    (f"{SPARSE}.m64n8k32.f32.f16.f16 {F32_4}, e, f, m, 2, p, 1, 1, 0, 0", "`sp-sel` is 0 or 1, not 2", None),
    (f"{SPARSE}.m64n8k64.s32.s8.s8 {F32_4}, e, f, m, 1, p", "`sp-sel` of .k64 is 0, not 1", None),
    ("wgmma.fence.sync", "`wgmma.fence` needs `.aligned`", None),
    ("wgmma.fence.sync.aligned 0", "`wgmma.fence` takes no operands, 1 given", None),
    (
        "wgmma.mma.sync.aligned",
        "there is no such form of `wgmma`",
        "the forms are wgmma.fence, wgmma.commit_group, wgmma.wait_group, wgmma.mma_async, wgmma.mma_async.sp",
    ),
    ("wgmma.mma_asinc.sync.aligned", "`wgmma` has no form `.mma_asinc`", "did you mean `.mma_async`?"),
    ("ldmatrix.sync.aligned.m8n8.b16 {a}, [x]", "`ldmatrix` needs a number of matrices: .x1 .x2 .x4", None),
    ("ldmatrix.sync.aligned.m8n8.x3.b16 {a, b, c}, [x]", "`ldmatrix` has no qualifier `.x3`", None),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 a, [x]", "expected a vector of 1, found `a`", "write {a}"),
    ("ldmatrix.sync.aligned.m8n8.x2.b16 {a}, [x]", "`ldmatrix.x2` takes a vector of 2, 1 given", None),
    ("ldmatrix.sync.aligned.m8n8.x2.b16 {_, _}, [x]", "at least one element of the vector must be a register", None),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 {5}, [x]", "expected a destination register, found `5`", None),
    ("ldmatrix.sync.aligned.m8n8.x1.b16 {a}, x", "expected an address, found `x`", "write [x]"),
    (
        "ldmatrix.sync.aligned.m8n8.x1.shared::cluster.b16 {a}, [x]",
        "`ldmatrix` takes no `.shared::cluster`",
        "state spaces of `ldmatrix`: .shared .shared::cta",
    ),
    ("ldmatrix.sync.m8n8.x1.b16 {a}, [x]", "`ldmatrix` needs `.aligned`", None),
    ("ldmatrix.sync.aligned.m8n8.x1.b32 {a}, [x]", "`ldmatrix` takes no `.b32`", None),
    ("stmatrix.sync.aligned.m8n8.x1.b16 {a}, [x]", "expected an address, found a vector", None),
    ("stmatrix.sync.aligned.m8n8.x2.b16 [x], {a, _}", "expected a register or a constant, found `_`", None),
]


@pytest.mark.parametrize(("text", "message", "hint"), ILLEGAL, ids=[t for t, *_ in ILLEGAL])
def test_illegal_forms(text: str, message: str, hint: str | None) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    error = caught.value
    assert (error.message, error.hint, error.kind) == (message, hint, "isa")
    assert error.column is not None and error.width >= 1


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("wgmma.fence.sync.aligned", Version((8, 0), 90)),
        (product("f16", "f16", "f32", "m64n8k16"), Version((8, 0), 90)),
        (product("s8", "s8", "s32", "m64n8k32"), Version((8, 0), 90)),
        (product("u8", "s8", "s32", "m64n8k32"), Version((8, 4), 90)),
        (product("f16", "f16", "f32", "m64n8k32", sparse=True), Version((8, 2), 90)),
        (product("s8", "u8", "s32", "m64n8k64", sparse=True), Version((8, 4), 90)),
        ("ldmatrix.sync.aligned.m8n8.x1.b16 {a}, [x]", Version((6, 5), 75)),
        ("ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {a}, [x]", Version((7, 8), 75)),
        ("stmatrix.sync.aligned.m8n8.x1.b16 [x], {a}", Version((7, 8), 90)),
    ],
)
def test_first_version(text: str, version: Version) -> None:
    assert isa.requires(parsed(text)) == version


# Real PTX that is later than 8.5 and not supported: what is named, its version, and what is said with that version.
LATER = [
    (
        "tcgen05.ld.sync.aligned.16x64b.x1.b32 {a}, [x]",
        "tcgen05.ld.16x64b",
        "8.6",
        "`.16x64b` is not supported yet (`{}`)",
    ),
    (
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [a]",
        "tcgen05.commit.cta_group::2",
        "8.6",
        "`.cta_group::2` is not supported yet (`{}`)",
    ),
    (
        "tcgen05.mma.sp.cta_group::1.kind::f16 [x], b, c, [y], d, p",
        "tcgen05.mma.sp",
        "8.6",
        "`.sp` is not supported yet (`{}`)",
    ),
    (
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [x], a",
        "tcgen05.cp.32x128b",
        "8.6",
        "`.32x128b` is not supported yet (`{}`)",
    ),
    (
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [x], [y]",
        "clusterlaunchcontrol.try_cancel",
        "8.6",
        "`{}` is not supported yet",
    ),
    (
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {a, b, c, _}, d",
        "clusterlaunchcontrol.query_cancel",
        "8.6",
        "`{}` is not supported yet",
    ),
    (
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {a, b}, [x]",
        "ldmatrix.m16n16",
        "8.6",
        "`.m16n16` is not supported yet (`{}`)",
    ),
    (
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {a}, [x]",
        "ldmatrix.m8n16",
        "8.6",
        "`.m8n16` is not supported yet (`{}`)",
    ),
    (
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [x], {a}",
        "stmatrix.m16n8",
        "8.6",
        "`.m16n8` is not supported yet (`{}`)",
    ),
    (
        "tensormap.replace.tile.swizzle_atomicity.b1024.b32 [x], 1",
        "tensormap.replace.swizzle_atomicity",
        "8.6",
        "`.swizzle_atomicity` is not supported yet (`{}`)",
    ),
    ("redux.sync.min.f32 a, b, 1", "redux.f32", "8.6", "`.f32` is not supported yet (`{}`)"),
    ("st.async.release.gpu.global.u32 [x], a", "st.async.release", "8.7", "`.release` is not supported yet (`{}`)"),
    (
        "ld.global.L2::evict_last.v8.b32 {a, b, c, d, e, f, g, h}, [x]",
        "ld.L2::evict_last",
        "8.8",
        "`.L2::evict_last` is not supported yet (`{}`)",
    ),
]


@pytest.mark.parametrize(("text", "name", "version", "then"), LATER, ids=[t for t, *_ in LATER])
def test_later_and_not_supported(text: str, name: str, version: str, then: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    error = caught.value
    assert error.message == f"`{name}` is PTX ISA {version}, and the version here is 8.5"
    assert (error.hint, error.kind) == (f"it is not supported with --isa {version} either", "isa")
    major, minor = version.split(".")
    for isa_version in ((int(major), int(minor)), (9, 0)):
        with pytest.raises(PtxmmError) as caught:
            resolve(text, isa_version)
        error = caught.value
        assert (error.message, error.hint, error.kind) == (then.format(name), None, "unsupported")


def test_restricted_fences_are_of_8_6() -> None:
    text = "fence.acquire.sync_restrict::shared::cluster.cluster"
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    assert (caught.value.hint, caught.value.kind) == ("--isa 8.6", "isa")
    op = resolve(text, (8, 6))
    assert isinstance(op, ops.Fence) and (op.sem, op.restrict, op.scope) == ("acquire", "shared::cluster", "cluster")


@pytest.mark.parametrize(("sem", "space"), [("release", "shared::cta"), ("acquire", "shared::cluster")])
def test_fences_from_the_generic_to_the_async_proxy(sem: str, space: str) -> None:
    text = f"fence.proxy.async::generic.{sem}.sync_restrict::{space}.cluster"
    with pytest.raises(PtxmmError) as caught:
        resolve(text)
    assert (caught.value.hint, caught.value.kind) == ("--isa 8.6", "isa")
    op = resolve(text, (8, 6))
    assert isinstance(op, ops.GenericToAsyncFence) and (op.sem, op.restrict) == (sem, space)
    other = "shared::cluster" if sem == "release" else "shared::cta"
    for wrong, message in (
        (text.replace(space, other), "there is no such restricted fence"),
        (text.replace(".cluster", ".gpu"), "takes no `.gpu`"),
        (f"fence.proxy.async::generic.{sem}.cluster", "needs a"),
        (f"fence.proxy.async::generic.sync_restrict::{space}.cluster", "needs a memory order"),
    ):
        with pytest.raises(PtxmmError) as caught:
            resolve(wrong, (8, 6))
        assert message in caught.value.message and caught.value.kind == "isa"
