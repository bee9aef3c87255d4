"""Kernels with products of warpgroups whose matrices are found by descriptors (PTX ISA 9.7.16.5.1.2.7): both engines,
the reference and the execution of the whole launch say the same."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.extract import skeleton
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.program.condition import MemoryTerm
from ptxmm.program.test import Test
from ptxmm.whole.analysis import whole
from tests import reference
from tests.reference_dependencies import TooSlow
from tests.support import ENGINES, ask, model_named

MODEL = "ptx-8.5"
KERNEL = """\
.version 8.5
.target sm_90a
.address_size 64
// ptxmm: block = 128
// ptxmm: threads = ["cta 0 thread 0", "cta 0 thread 101"]
// ptxmm: args = ["out"]
// ptxmm: [objects]
// ptxmm: out = {{ type = "u32", count = 128 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 a)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .f32 %f<9>;
    .reg .b64 %d<20>;
    .shared .align 4 .b32 before;
    .shared .align {align} .b8 s[{bytes}];
    .shared .align 4 .b32 flag;
    ld.param.u64 %d1, [a];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d2, %d1, %d2;
    setp.eq.u32 %p1, %r1, 0;
    setp.eq.u32 %p2, %r1, 101;
    mov.u32 %r2, s;
    shr.u32 %r3, %r2, 4;
    cvt.u64.u32 %d3, %r3;
    or.b64 %d4, %d3, {layout};
    mov.b32 %r9, 0;
    mov.f32 %f0, 0f00000000;
    {body}
    ret;
}}
"""
"""Two threads of two warps of a warpgroup. %d4: the descriptor of a matrix of the layout at the begin of ``s``."""

PLAIN = 0x0000001000080000
"""No swizzling; core matrices 128 bytes apart along K, and 256 bytes along N."""
WIDE = 0x4000004000010000
"""The pattern of 128 bytes, eight rows of which are 1024 bytes."""
OPCODE, INTO = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "{{%f0, %f1, %f2, %f3}}"
PRODUCT = OPCODE + f" {INTO}, " + "{{%r9, %r9, %r9, %r9}}, {}, 0, 1, 1, 0;"
FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
PROXY, MEET = "fence.proxy.async;", "bar.sync 0;"


def done(pending: int = 0) -> str:
    return f"wgmma.wait_group.sync.aligned {pending};"


def store(thread: int, offset: int, value: int = 1) -> str:
    return f"@%p{thread} st.shared.u32 [%r2+{offset}], {value};"


def text(*body: str, layout: int = PLAIN, size: int = 256, align: int = 128) -> str:
    return KERNEL.format(body="\n    ".join(body), bytes=size, align=align, layout=layout)


def parsed(*body: str, layout: int = PLAIN, size: int = 256, align: int = 128) -> Test:
    (test,) = parse_ptx(text(*body, layout=layout, size=size, align=align), "k.ptx")
    return test


def seen(test: Test) -> Observed:
    """What two threads leave in shared memory, without the results of products."""
    items = [test.objects[key] for key in test.objects if test.objects[key].space == "shared"]
    return Observed((), tuple(MemoryTerm(o.key, i, o.type) for o in items for i in range(o.count)))


def verdicts(test: Test) -> dict[str, str]:
    """What each engine says, and the reference."""
    found = {}
    model = model_named(MODEL)
    for engine in ENGINES:
        said = ask(engine, test, model, observed=seen(test), seconds=60)
        assert said.complete
        found[engine] = "undefined" if said.undefined else "race" if said.flags else "race-free"
    if "undefined" not in found.values():
        with suppress(TooSlow):
            _, flags = reference.flagged(test, MODEL, seconds=20)
            found["reference"] = "race" if flags else "race-free"
    return found


def executed(source: str, tmp_path: Path) -> str:
    path = tmp_path / "k.ptx"
    path.write_text(source)
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 60)).answer


RIGHT = (store(1, 0), PROXY, MEET, FENCE, PRODUCT.format("%d4"), COMMIT, done())


def without(*parts: str) -> list[str]:
    return [part for part in RIGHT if part not in parts]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("body", "layout", "expected"),
    [
        (RIGHT, PLAIN, "race-free"),
        (without(PROXY), PLAIN, "race"),
        (without(MEET), PLAIN, "race"),
        (without(FENCE), PLAIN, "undefined"),
        (without(COMMIT), PLAIN, "race-free"),
        # The fences of the thread that stores, or of all behind the barrier.
        ((store(1, 0), MEET, PROXY, *RIGHT[3:]), PLAIN, "race-free"),
        ((store(1, 0), PROXY, FENCE, MEET, *RIGHT[4:]), PLAIN, "race"),
        # What has been read is written again: by another thread that knows from its own wait.
        ((*RIGHT, store(2, 4)), PLAIN, "race-free"),
        ((*RIGHT[:-1], store(2, 4), done()), PLAIN, "race"),
        ((*RIGHT[:-1], done(1), store(2, 4), done()), PLAIN, "race"),
        ((*RIGHT[:-1], COMMIT, done(1), store(2, 4), done()), PLAIN, "race-free"),
        ((*RIGHT[:-2], done(), store(2, 4), COMMIT, done()), PLAIN, "race"),
        # Which bytes are read: 256 of them without a pattern, of the rows of 128 bytes the first two chunks.
        ((*RIGHT[:-1], store(2, 252), done()), PLAIN, "race"),
        ((*RIGHT[:-1], store(2, 28), done()), WIDE, "race"),
        ((*RIGHT[:-1], store(2, 32), done()), WIDE, "race-free"),
        ((*RIGHT[:-1], store(2, 2 * 128 + 32), done()), WIDE, "race"),
        ((*RIGHT[:-1], store(2, 2 * 128), done()), WIDE, "race-free"),
        ((*RIGHT[:-1], store(2, 7 * 128 + 96), done()), WIDE, "race"),
        ((*RIGHT[:-1], store(2, 7 * 128 + 64), done()), WIDE, "race-free"),
    ],
)  # fmt: skip
def test_products(body: tuple[str, ...], layout: int, expected: str, tmp_path: Path) -> None:
    options = {"layout": layout, "size": 256 if layout == PLAIN else 1024, "align": 1024}
    found = verdicts(parsed(*body, **options)) | {"whole": executed(text(*body, **options), tmp_path)}
    assert set(found.values()) == {expected}, found


SHARED = OPCODE + f" {INTO}, " + "%d5, {b}, 1, 1, 1, {ta}, {tb};"


@pytest.mark.parametrize(
    ("product", "offset", "expected"),
    [
        (SHARED.format(b="%d4", ta=0, tb=0), 1024 + 2044, "race"),
        (SHARED.format(b="%d4", ta=0, tb=0), 1024 + 2048, "race-free"),
        # Transposed: 16 rows of K, eight chunks of 8 elements along M, 128 and 256 bytes apart.
        (SHARED.format(b="%d4", ta=1, tb=0), 1024 + 2044, "race"),
        (SHARED.format(b="%d4", ta=1, tb=1), 252, "race"),
        (SHARED.format(b="%d4", ta=1, tb=1), 256, "race-free"),
    ],
)
def test_both_matrices_in_shared_memory(product: str, offset: int, expected: str, tmp_path: Path) -> None:
    body = (
        "add.u64 %d5, %d4, 64; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;",
        *RIGHT[:3], FENCE, product, COMMIT, store(2, offset), done(),
    )  # fmt: skip
    options = {"size": 4096, "align": 1024}
    found = verdicts(parsed(*body, **options)) | {"whole": executed(text(*body, **options), tmp_path)}
    assert set(found.values()) == {expected}, found


STEP = "add.u64 %d4, %d4, 2; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 4; @%p3 bra L;"


@pytest.mark.share(3)
@pytest.mark.parametrize(("offset", "expected"), [(96, "race"), (7 * 128, "race"), (1024, "race-free")])
def test_a_loop_that_steps_along_k(offset: int, expected: str, tmp_path: Path) -> None:
    body = ("mov.u32 %r4, 0;", *RIGHT[:4], "L:", PRODUCT.format("%d4"), STEP, COMMIT, store(2, offset), done())
    options = {"layout": WIDE, "size": 2048, "align": 1024}
    found = verdicts(parsed(*body, **options)) | {"whole": executed(text(*body, **options), tmp_path)}
    assert set(found.values()) == {expected}, found


@pytest.mark.parametrize(
    ("body", "options", "message"),
    [
        (RIGHT, {"layout": WIDE, "size": 2048, "align": 128}, "depends on where its variable lies"),
        (("ld.global.u64 %d4, [%d1];", *RIGHT), {}, "that the launch does not decide"),
        (("mov.u64 %d4, 64;", *RIGHT), {}, "that the launch does not decide"),
        (("or.b64 %d4, %d4, 0x2000000000000;", *RIGHT), {}, "base offset"),
        (("add.u64 %d4, %d4, 0x1000;", *RIGHT), {}, "begins in no variable"),
    ],
)
def test_descriptors_that_are_not_followed(body: tuple[str, ...], options: dict[str, int], message: str) -> None:
    with pytest.raises(PtxmmError, match=message) as error:
        parsed(*body, **options)
    assert error.value.kind == "unsupported" and error.value.line


def test_a_matrix_that_ends_behind_its_variable() -> None:
    with pytest.raises(PtxmmError, match=r"s\+0 of 256 bytes is outside s") as error:
        parsed(*RIGHT, size=240)
    assert error.value.line


@pytest.mark.parametrize("engine", ENGINES)
def test_results_are_not_worked_out(engine: str) -> None:
    test = parsed(*RIGHT, "st.global.f32 [%d2], %f0;")
    out = Observed((), (MemoryTerm("out", 0, test.objects["out"].type),))
    with pytest.raises(PtxmmError, match="not worked out"):
        ask(engine, test, model_named(MODEL), observed=out)
    assert ask(engine, test, model_named(MODEL), observed=seen(test)).complete


def test_no_litmus_test_is_made_of_it() -> None:
    with pytest.raises(PtxmmError, match="can't say which bytes"):
        skeleton(parsed(*RIGHT))


def drawn(seed: int) -> list[str]:
    """Random steps of a warpgroup: two threads write some words of what products read."""
    rng = random.Random(seed)
    body: list[str] = [FENCE] * rng.choice((0, 1, 1, 1))
    for _ in range(rng.randint(4, 9)):
        thread, offset = rng.choice((1, 2)), 4 * rng.choice((0, 1, 7, 8, 32, 40, 63))
        body.append(rng.choice((
            store(thread, offset), PROXY, MEET, MEET, FENCE, PRODUCT.format("%d4"), COMMIT + " " + done(), done(1),
            COMMIT + " " + COMMIT + " " + done(1), "@%p1 " + PROXY, RIGHT[1] + RIGHT[2] + RIGHT[3],
        )))  # fmt: skip
    return [*body, COMMIT, done()]


@pytest.mark.parametrize("seed", range(12))
def test_random_kernels(seed: int, tmp_path: Path) -> None:
    agree(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 220))
def test_more_random_kernels(seed: int, tmp_path: Path) -> None:
    agree(seed, tmp_path)


def agree(seed: int, tmp_path: Path) -> None:
    body, layout = drawn(seed), PLAIN if seed % 2 else WIDE
    options = {"layout": layout, "size": 1024, "align": 1024}
    found = verdicts(parsed(*body, **options)) | {"whole": executed(text(*body, **options), tmp_path)}
    assert len(set(found.values())) == 1, (found, body)
