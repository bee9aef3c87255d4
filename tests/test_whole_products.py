"""Whole launches with products of warpgroups: what they read, and who knows that they are done (PTX ISA 9.7.16)."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxmm.analysis.result import Failure
from ptxmm.cli import tasks
from ptxmm.cli.checking import Checking
from ptxmm.cli.options import Engine
from ptxmm.cli.settings import Settings
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.program.shared.descriptors import decoded, pieces
from ptxmm.whole.analysis import whole
from ptxmm.whole.order.clocks import NOTHING, Clocks, Release
from ptxmm.whole.result import WholeResult

MODES = {1: 0, 8: 1, 4: 2, 2: 3}
"""For each width of a row of the pattern, in chunks of 16 bytes, the swizzling mode."""


def descriptor(start: int, leading: int, stride: int, span: int, base: int = 0) -> int:
    encoded = (start >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32
    return encoded | base << 49 | MODES[span] << 62


def test_the_fields_of_a_descriptor() -> None:
    found = decoded(descriptor(0x3FFF0, 0x120, 0x3F00, 4, 5))
    assert (found.start, found.leading, found.stride, found.base, found.span) == (0x3FFF0, 0x120, 0x3F00, 5, 4)


def elements(start: int, leading: int, stride: int, span: int, lines: int, width: int, transposed: bool) -> set[int]:
    """The bytes of a matrix, element by element: ``lines`` of M or N, 32 bytes of K, of elements of ``width`` bytes."""
    found: set[int] = set()
    row = span * 16
    for line, deep in product(range(lines), range(32 // width)):
        if not transposed:  # core matrices of 8 lines; along K the next one is beside it in the row of the pattern
            at, chunk = deep * width % 16, deep * width // 16
            beside = chunk * (leading if span == 1 else 16)
            place = start + line // 8 * stride + line % 8 * row + beside + at
        else:  # rows of the pattern run along M or N; eight of them, of K, are one pattern
            each = row // width
            far, down = (stride, leading) if span == 1 else (leading, stride)
            place = start + line // each * far + line % each * width + deep // 8 * down + deep % 8 * row
        place ^= ((place // 128) % span) * 16
        found.update(range(place, place + width))
    return found


@given(st.data())
def test_the_bytes_of_a_matrix(data: st.DataObject) -> None:
    span = data.draw(st.sampled_from(sorted(MODES)))
    transposed = data.draw(st.booleans())
    width = 2 if transposed else data.draw(st.sampled_from((1, 2, 4)))
    lines = data.draw(st.integers(1, 32)) * 8 if not transposed or span == 1 else data.draw(st.integers(1, 4)) * 64
    start, leading, stride = (16 * data.draw(st.integers(0, 255)) for _ in range(3))
    matrix = decoded(descriptor(start, leading, stride, span))
    found: set[int] = set()
    for place, size in pieces(matrix, lines, transposed):
        assert not found & set(range(place, place + size))
        found.update(range(place, place + size))
    assert found == elements(start, leading, stride, span, lines, width, transposed)


def test_what_several_views_have_in_common() -> None:
    clocks = Clocks(8, 4)
    one, two, three = clocks.release(0), clocks.release(1), clocks.release(4)
    clocks.acquire(np.array([2]), [one, two])
    clocks.acquire(np.array([3]), [two, three])
    view = clocks.common(clocks.views(np.array([2, 3])))
    clocks.acquire(np.array([5]), [Release(view, 5, 0)])
    seen, own = clocks.views(np.array([5, 5, 5])), np.array([5, 5, 5])
    assert clocks.after(seen, own, np.array([0, 1, 4]), np.array([1, 1, 1])).tolist() == [False, True, False]
    assert clocks.common(clocks.views(np.array([2, 6]))) in (NOTHING, int(clocks.views(np.array([6]))[0]))


KERNEL = """\
.version 8.5
.target sm_90a
.address_size 64
// ptxmm: grid = 2
// ptxmm: block = {block}
// ptxmm: args = ["in", "out"]
// ptxmm: assume = [{assume}]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = 4096, align = 128 }}
// ptxmm: out = {{ type = "u32", count = 2048, align = 128 }}
.visible .entry k(.param .u64 a, .param .u64 b)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<40>;
    .reg .f32 %f<9>;
    .reg .b64 %d<20>;
    .shared .align 1024 .b8 s[{bytes}];
    .shared .align 8 .b64 full[2];
    .shared .align 8 .b64 empty[2];
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mov.u32 %r3, full;
    mov.u32 %r4, empty;
    mad.lo.u32 %r5, %r1, 64, %r2;
    shr.u32 %r6, %r2, 4;
    cvt.u64.u32 %d3, %r6;
    or.b64 %d4, %d3, 0x4000004000010000;
    mov.u32 %r7, %ctaid.x;
    mad.lo.u32 %r7, %r7, {block}, %r1;
    mul.wide.u32 %d5, %r7, 4;
    add.u64 %d6, %d2, %d5;
    mov.u32 %r10, 0;
    {body}
    ret;
}}
"""
"""A is a matrix of 64 rows, of 128 bytes of which a product reads 32, in the first 8192 bytes of ``s`` (128-byte
swizzle); %d4 its descriptor, and that of the first eight rows as B."""

FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
DONE = "wgmma.wait_group.sync.aligned 0;"
ONE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d4, 0, 1, 1, 0, 0; "
FILL = "st.shared.v4.u32 [%r5], {%r1, %r1, %r1, %r1}; "
PROXY, MEET = "fence.proxy.async.shared::cta; ", "bar.sync 0; "
WRITE = "st.global.f32 [%d6], %f0; "
PLAIN = FILL + PROXY + MEET + FENCE + " " + ONE + COMMIT + " " + DONE + " " + WRITE


HALVES = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r20, %r21}, {%r22, %r23, %r24, %r25}, %d4, 0, 1, 1, 0; "
"""A product with its fragment of A in registers."""
ZEROS = "".join(f"mov.u32 %r{i}, 0; " for i in range(20, 28))


SPARSE = PLAIN.replace(
    ONE,
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d4, %d4, %r10, 0, 0, 1, 1, 0, 0; ",
)


def stored(body: str, at: int) -> str:
    """One thread stores so many bytes behind the start, without a proxy fence."""
    one = f"setp.ne.u32 %p1, %r1, 0; @%p1 bra M; st.shared.u32 [%r2+{at}], 1; M: "
    return body.replace(MEET, MEET + one)


def judged(tmp_path: Path, body: str, block: int = 128, size: int = 8192, assume: str = "") -> WholeResult:
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL.format(block=block, bytes=size, assume=assume, body=body.replace("; ", ";\n    ")))
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))


@pytest.mark.parametrize(
    ("body", "word", "reason"),
    [
        (PLAIN, "race-free", None),
        (PLAIN.replace(WRITE, ""), "race-free", None),
        (PLAIN.replace(PROXY, ""), "race", None),
        (PLAIN.replace(MEET, ""), "race", None),
        (PLAIN.replace(PROXY + MEET, MEET + PROXY), "race-free", None),
        # The barrier comes after the last fence that a product is ordered after.
        (PLAIN.replace(PROXY + MEET + FENCE, PROXY + FENCE + " " + MEET.strip()), "race", None),
        (PLAIN.replace(FENCE, ""), "undefined", "no wgmma.fence before it"),
        (PLAIN.replace(DONE, ""), "undefined", "no wgmma.wait_group"),
        (PLAIN.replace(COMMIT, ""), "undefined", "no wgmma.wait_group"),
        (PLAIN.replace(DONE, "wgmma.wait_group.sync.aligned 1;"), "undefined", "no wgmma.wait_group"),
        (PLAIN.replace(FENCE, FENCE + " mov.f32 %f1, 0f00000000;"), "undefined", "register f1"),
        (PLAIN.replace(FENCE, "mov.f32 %f1, 0f00000000; " + FENCE), "race-free", None),
        # What was read may be written again when it is known that the product is done.
        (PLAIN + MEET + FILL, "race-free", None),
        (PLAIN.replace(DONE, MEET + FILL + DONE), "race", None),
        (PLAIN.replace(DONE, DONE + " " + MEET + FILL), "race-free", None),
        # The elected lane executes the proxy fence for what it has written.
        ("elect.sync _|%p1, -1; setp.lt.u32 %p2, %r1, 32; and.pred %p3, %p1, %p2; @!%p3 bra E; st.shared.u32 [%r2], 1; "
         + PROXY + "E: " + MEET + PLAIN.removeprefix(FILL + PROXY + MEET), "race-free", None),
        ("elect.sync _|%p1, -1; setp.lt.u32 %p2, %r1, 32; and.pred %p3, %p1, %p2; @!%p3 bra E; st.shared.u32 [%r2], 1; "
         "E: " + MEET + PLAIN.removeprefix(FILL + PROXY + MEET), "race", None),
        # One thread that waits for the group knows of all of the warpgroup.
        (PLAIN + "setp.ne.u32 %p1, %r1, 5; @%p1 bra L; mbarrier.init.shared.b64 [full], 1; st.shared.u32 [%r2], 1; "
         "st.shared.u32 [%r2+4096], 1; L:", "race-free", None),
        # Rows of which the product reads other parts: the fill writes 64 bytes for each thread, of which 16.
        (PLAIN.replace(MEET, MEET + "st.shared.u32 [%r2+64], 1; "), "race", None),
        (PLAIN.replace(MEET, MEET + "setp.ne.u32 %p1, %r1, 0; @%p1 bra M; st.shared.u32 [%r2+64], 1; M: "),
         "race-free", None),
        (PLAIN.replace(MEET, MEET + "setp.ne.u32 %p1, %r1, 0; @%p1 bra M; st.shared.u32 [%r2+16], 1; M: "), "race",
         None),
        # Row 2 has its first two chunks in place of the third and fourth.
        (PLAIN.replace(MEET, MEET + "setp.ne.u32 %p1, %r1, 0; @%p1 bra M; st.shared.u32 [%r2+288], 1; M: "), "race",
         None),
        (PLAIN.replace(MEET, MEET + "setp.ne.u32 %p1, %r1, 0; @%p1 bra M; st.shared.u32 [%r2+256], 1; M: "),
         "race-free", None),
        # A matrix that goes on behind the end of its variable.
        (PLAIN.replace("%d4, %d4", "%d7, %d4").replace(FENCE, "add.u64 %d7, %d4, 16; " + FENCE), "outside", None),
        (PLAIN.replace("%d4, %d4", "%d7, %d4").replace(FENCE, "cvt.u64.u32 %d7, %r1; add.u64 %d7, %d7, %d4; " + FENCE),
         "undefined", "descriptors that are not the same"),
        (PLAIN.replace("%d4, %d4", "%d7, %d4").replace(FENCE, "ld.shared.u64 %d7, [full]; " + FENCE), "undecided",
         "the descriptor"),
        # All threads of a warpgroup execute it.
        (PLAIN.replace(FENCE, "setp.lt.u32 %p1, %r1, 32; @%p1 bra Z; " + FENCE) + "Z:", "undefined",
         "not all threads of the warpgroup"),
        (PLAIN.replace(FENCE, "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; " + FENCE + " bra B; A: " + FENCE + " B:"),
         "undefined", "not all threads of the warpgroup"),
        ("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bra B; A: setmaxnreg.dec.sync.aligned.u32 40; B:", "undefined",
         "not all threads of the warpgroup"),
        ("setmaxnreg.dec.sync.aligned.u32 40;", "race-free", None),
        # Warps of one warpgroup that wait for each other between.
        (PLAIN.replace(FENCE, "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; " + FENCE + " bar.sync 1, 128; bra B; "
                       "A: bar.sync 1, 128; " + FENCE + " B:"), "unsupported", "wait for each other"),
    ],
)  # fmt: skip
def test_products(body: str, word: str, reason: str | None, tmp_path: Path) -> None:
    found = judged(tmp_path, body)
    assert (found.answer, reason if reason and reason in (found.reason or "") else None) == (word, reason), found


@pytest.mark.parametrize(
    ("at", "dense", "sparse"),
    [
        (0, "race", "race"),
        (32, "race-free", "race"),  # of B twice as much is read in a row
        (48, "race-free", "race"),
        (64, "race-free", "race-free"),
        (1024 + 16, "race", "race"),
        (1024 + 32, "race-free", "race-free"),  # of A as much
    ],
)
def test_what_a_sparse_product_reads(at: int, dense: str, sparse: str, tmp_path: Path) -> None:
    assert judged(tmp_path, stored(PLAIN, at)).answer == dense
    assert judged(tmp_path, stored(SPARSE, at)).answer == sparse


def test_sparse_products(tmp_path: Path) -> None:
    assert judged(tmp_path, SPARSE).answer == "race-free"
    assert judged(tmp_path, SPARSE.replace(PROXY, "")).answer == "race"
    assert judged(tmp_path, SPARSE.replace(FENCE, "")).answer == "undefined"
    narrow = SPARSE.replace(FENCE, "or.b64 %d4, %d4, 0x8000000000000000; " + FENCE)  # a pattern of 32 bytes in a row
    found = judged(tmp_path, narrow)
    assert (found.answer, "deeper than its swizzling pattern" in str(found.reason)) == ("unsupported", True)


@pytest.mark.parametrize(
    ("between", "second", "word"),
    [
        ("", "{%r26, %r27}, {%r20, %r21, %r24, %r25}", "undefined"),  # the accumulators are the next fragment
        (f"{COMMIT} {FENCE} ", "{%r26, %r27}, {%r20, %r21, %r24, %r25}", "undefined"),
        (f"{COMMIT} wgmma.wait_group.sync.aligned 1; {FENCE} ", "{%r26, %r27}, {%r20, %r21, %r24, %r25}", "undefined"),
        (f"{COMMIT} {DONE} {FENCE} ", "{%r26, %r27}, {%r20, %r21, %r24, %r25}", "race-free"),
        (f"{COMMIT} {FENCE} ", "{%r24, %r25}, {%r22, %r23, %r26, %r27}", "undefined"),  # the fragment is an accumulator
        (f"{COMMIT} {DONE} {FENCE} ", "{%r24, %r25}, {%r22, %r23, %r26, %r27}", "race-free"),
        ("", "{%r26, %r27}, {%r22, %r23, %r24, %r25}", "race-free"),  # both read the fragment
        ("", "{%r20, %r21}, {%r22, %r23, %r24, %r25}", "race-free"),
    ],
)
def test_a_register_of_a_product_that_goes_on(between: str, second: str, word: str, tmp_path: Path) -> None:
    first, again = HALVES, HALVES.replace("{%r20, %r21}, {%r22, %r23, %r24, %r25}", second)
    found = judged(
        tmp_path, PLAIN.replace(FENCE, ZEROS + FENCE).replace(ONE, first + between + again).replace(WRITE, "")
    )
    assert found.answer == word, found


COPIES = "mov.f32 %f5, 0f00000000; mov.f32 %f0, %f5; mov.f32 %f1, %f0; mov.f32 %f2, 0f00000000; mov.f32 %f3, %f1; "


def test_copies_behind_a_fence(tmp_path: Path) -> None:
    """As compilers place them (A63): undefined by the letter; what is computed there is so in any case."""
    copies = PLAIN.replace(FENCE, FENCE + " " + COPIES)
    found = judged(tmp_path, copies)
    assert (found.answer, [note.text.partition(":")[0] for note in found.notes]) == (
        "undefined",
        ["rests on wgmma-mov"],
    )
    found = judged(tmp_path, copies, assume='"wgmma-mov=free"')
    assert (found.answer, found.model) == ("race-free", "ptx-8.5[wgmma-mov=free]"), found
    assert not any(note.kind == "reading" for note in found.notes)
    for wrong in (
        copies.replace("mov.f32 %f0, %f5; ", "add.f32 %f5, %f5, %f5; mov.f32 %f0, %f5; "),
        copies.replace("mov.f32 %f3, %f1; ", "add.f32 %f3, %f1, %f1; "),
        copies.replace(DONE, "mov.f32 %f5, %f0; " + DONE),
        copies.replace(COMMIT, COMMIT + " mov.f32 %f0, 0f00000000;"),
    ):
        found = judged(tmp_path, wrong)
        assert (found.answer, found.notes) == ("undefined", ()), found
        assert judged(tmp_path, wrong, assume='"wgmma-mov=free"').answer == "undefined"


RING = """\
setp.ne.u32 %p1, %r1, 0; @%p1 bra I; mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1; \
mbarrier.init.shared.b64 [empty], {count}; mbarrier.init.shared.b64 [empty+8], {count}; I: bar.sync 0; \
setp.lt.u32 %p2, %r1, 128; @%p2 bra C; setp.ne.u32 %p1, %r1, 128; @%p1 bra Z; \
P: {slot} shr.u32 %r12, %r10, {shift}; and.b32 %r12, %r12, 1; xor.b32 %r13, %r12, {first}; \
mad.lo.u32 %r14, %r11, 8, %r4; mad.lo.u32 %r15, %r11, 8, %r3; mad.lo.u32 %r16, %r11, 8192, %r2; \
E: mbarrier.try_wait.parity.shared.b64 %p3, [%r14], %r13; @!%p3 bra E; \
mbarrier.arrive.expect_tx.shared.b64 _, [%r15], 8192; \
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r16], [%d1], 8192, [%r15]; \
add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 5; @%p4 bra P; bra Z; \
C: {slot} shr.u32 %r12, %r10, {shift}; and.b32 %r12, %r12, 1; mad.lo.u32 %r14, %r11, 8, %r4; \
mad.lo.u32 %r15, %r11, 8, %r3; mul.lo.u32 %r17, %r11, 512; cvt.u64.u32 %d8, %r17; add.u64 %d9, %d4, %d8; \
{full} {fence} wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d9, %d9, 1, 1, 1, 0, 0; \
{commit} {wait} {free} \
add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 5; @%p4 bra C; wgmma.wait_group.sync.aligned 0; {write} Z:"""
"""Slots that one thread fills by copies, and a warpgroup reads by products, one after the other."""
RIGHT = {
    "count": "1", "slot": "and.b32 %r11, %r10, 1;", "shift": "1", "first": "1",
    "full": "F: mbarrier.try_wait.parity.shared.b64 %p5, [%r15], %r12; @!%p5 bra F;", "fence": FENCE, "commit": COMMIT,
    "wait": DONE, "free": "setp.eq.u32 %p6, %r1, 7; @%p6 mbarrier.arrive.shared.b64 _, [%r14];",
    "write": "st.global.f32 [%d6], %f0;",
}  # fmt: skip
LATER = "setp.eq.u32 %p7, %r10, 0; @%p7 bra N; xor.b32 %r20, %r11, 1; mad.lo.u32 %r21, %r20, 8, %r4; {free} N:"


@pytest.mark.parametrize(
    ("changed", "word", "reason"),
    [
        ({}, "race-free", None),
        ({"count": "128", "free": "mbarrier.arrive.shared.b64 _, [%r14];"}, "race-free", None),
        ({"slot": "mov.u32 %r11, 0;", "shift": "0"}, "race-free", None),
        # One product goes on while the next slot is waited for; then the slot before is free.
        ({"wait": "wgmma.wait_group.sync.aligned 1;", "free": LATER.format(free=RIGHT["free"]).replace("%r14", "%r21")},
         "race-free", None),
        ({"wait": "wgmma.wait_group.sync.aligned 1;"}, "race", None),
        ({"wait": "wgmma.wait_group.sync.aligned 2;", "free": LATER.format(free=RIGHT["free"]).replace("%r14", "%r21")},
         "race", None),
        ({"wait": ""}, "race", None),
        ({"commit": ""}, "undefined", None),
        ({"fence": ""}, "undefined", "no wgmma.fence"),
        ({"full": ""}, "race", None),
        ({"full": "", "fence": FENCE + " " + RIGHT["full"]}, "race", None),
        ({"fence": FENCE + " " + FENCE}, "race-free", None),
        ({"full": RIGHT["full"].replace("%r12; @", "%r13; @").replace("F:", "xor.b32 %r13, %r12, 1; F:")}, None, None),
        ({"first": "0"}, "deadlock", None),
        ({"free": ""}, "deadlock", None),
        ({"write": "", "full": RIGHT["full"] + " st.global.f32 [%d6], %f0;"}, "race-free", None),
        ({"wait": "wgmma.wait_group.sync.aligned 1;", "free": LATER.format(free=RIGHT["free"]).replace("%r14", "%r21"),
          "full": RIGHT["full"] + " st.global.f32 [%d6], %f0;"}, "undefined", "register f0"),
        # One stage too few: the parity of two slots with one.
        ({"slot": "mov.u32 %r11, 0;"}, None, None),
    ],
)  # fmt: skip
def test_pipelines_of_products(changed: dict[str, str], word: str | None, reason: str | None, tmp_path: Path) -> None:
    found = judged(tmp_path, RING.format(**RIGHT | changed), 160, 16384)
    if word is None:
        assert found.answer in ("race", "deadlock", "undefined"), found
    else:
        assert (found.answer, reason if reason and reason in (found.reason or "") else None) == (word, reason), found


STRUCTURE = """\
.version 8.5
.target sm_90a
.address_size 64
// ptxmm: block = 32
// ptxmm: args = [{{ fields = [{{ u32 = 7 }}, {{ tensormap = "map" }}, {{ u64 = "in" }}] }}]
// ptxmm: [objects]
// ptxmm: in = {{ type = "u32", count = 64, init = 3, align = 128 }}
// ptxmm: map = {{ tensormap = {{ target = "in", type = "u32", box = [32], dims = [64] }} }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .align 64 .b8 p[256])
{{
    .reg .pred %p<4>;
    .reg .b32 %r<9>;
    .reg .b64 %d<9>;
    .shared .align 128 .b8 s[128];
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    mov.b64 %d1, p;
    add.u64 %d1, %d1, {offset};
    cvta.param.u64 %d2, %d1;
    ld.param.u64 %d3, [p+192];
    ld.param.u32 %r3, [p];
    @%p1 bra L;
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 128;
    mov.u32 %r2, 0;
    cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d2, {{%r2}}], [full];
L:
    bar.sync 0;
W:
    mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra W;
    ld.shared.u32 %r4, [s];
    ld.global.u32 %r5, [%d3];
    ret;
}}
"""


@pytest.mark.parametrize(("offset", "word"), [(64, "race-free"), (0, "unsupported"), (72, "undefined")])
def test_a_tensor_map_in_a_structure(offset: int, word: str, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(STRUCTURE.format(offset=offset))
    (kernel,) = kernels(path)
    assert whole(kernel, str(path), Limits(deadline=time.monotonic() + 20)).answer == word
    with pytest.raises(PtxmmError, match="by `check --whole` only"):
        parse_ptx(path.read_text(), str(path))
    path.write_text(path.read_text().replace("block = 32", "block = 16"))  # of so few executions are listed first
    told: list[Any] = list(tasks._file(Checking(Engine.auto, False, "none"), Settings(), path, 0))
    plan, *reports = told
    if word == "race-free":
        assert [(report.engine, report.holds) for report in reports] == [("whole", True)]
    else:
        assert all(isinstance(report, Failure) for report in (*plan, *reports))


def test_a_tensor_map_in_a_structure_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(STRUCTURE.format(offset=64).replace('{ tensormap = "map" }', '{ tensormap = "in" }'))
    with pytest.raises(PtxmmError, match="`in` is no tensor map"):
        kernels(path)
