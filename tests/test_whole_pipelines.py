"""Whole launches whose threads hand data on by mbarriers and asynchronous copies (PTX ISA 9.7.10.24, 9.7.14.15)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxmm.analysis.progress import progress
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.events.explicit.asynchronous.tensors import _rows
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.program.shared.tensors import Tensor
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Type
from ptxmm.whole.analysis import whole
from ptxmm.whole.execution.asynchronous.tensors import box
from ptxmm.whole.result import WholeResult
from tests import random_pipelines, random_whole
from tests.support import model_named
from tests.test_whole import among


def judged(path: Path, text: str) -> WholeResult:
    path.write_text(text)
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))


def compare(path: Path, text: str, seconds: float) -> bool:
    """The answer about a launch and what the engines say of all its executions; whether there was time."""
    found = judged(path, text)
    (test,) = parse_ptx(text, str(path))
    try:
        return agrees(found, test, text, seconds)
    except Timeout:
        return False


def agrees(found: WholeResult, test: Test, text: str, seconds: float) -> bool:
    model, limits = model_named("ptx-8.5"), Limits(deadline=time.monotonic() + seconds)
    every = races(test, model, limits=limits)
    if every.status == "timeout":
        return False
    ends = progress(test, model, limits=limits).verdict if found.answer in ("race-free", "deadlock") else "unknown"
    match found.answer:
        case "race-free":
            assert every.race_free is True and every.status == "complete", text
            assert ends != "may hang", text
            return ends == "terminates"
        case "race":
            assert among(text, found, every), text
        case "deadlock":
            assert ends != "terminates", text
            return ends == "may hang"
        case "undefined":
            assert every.status == "undefined", text
    return True


MAKERS = [
    random_pipelines.ring,
    random_pipelines.meetings,
    random_pipelines.arrivals,
    random_pipelines.groups,
    random_pipelines.loads,
    random_pipelines.stores,
    random_pipelines.clusters,
]


@pytest.mark.parametrize("make", MAKERS)
def test_random_pipelines(make: random_pipelines.Maker, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 5) for seed in range(7)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_many_random_pipelines(make: random_pipelines.Maker, tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 20) for seed in range(10_000 + shift, 10_300 + shift)) >= 260


ORDERED: list[random_whole.Ordered] = [
    random_whole.flags, random_whole.counters, random_pipelines.ring, random_pipelines.meetings,
    random_pipelines.arrivals, random_pipelines.groups, random_pipelines.loads, random_pipelines.stores,
]  # fmt: skip


def told_alike(make: random_whole.Ordered, seed: int, path: Path) -> int:
    """Of kernels whose threads do the same, wherever that stands in the text, none is free of races if another one has
    something wrong; how many were answered."""
    answers = {order: judged(path, make(seed, 1000 * seed + order if order else 0)).answer for order in range(3)}
    found = {answer == "race-free" for answer in answers.values() if answer not in ("undecided", "unsupported")}
    assert len(found) < 2, (make, seed, answers)
    return len(found)


@pytest.mark.share(2)
@pytest.mark.parametrize("make", ORDERED)
def test_the_order_of_the_text(make: random_whole.Ordered, tmp_path: Path) -> None:
    assert sum(told_alike(make, seed, tmp_path / "k.ptx") for seed in range(6)) >= 4
    for seed in range(3):
        compare(tmp_path / "k.ptx", make(seed, seed + 1), 5)


@pytest.mark.slow
@pytest.mark.parametrize("make", ORDERED)
def test_many_orders_of_the_text(make: random_whole.Ordered, tmp_path: Path) -> None:
    assert sum(told_alike(make, seed, tmp_path / "k.ptx") for seed in range(10_000, 11_000)) >= 800


HEAD = """\
.version 8.6
.target sm_90
.address_size 64
// ptxmm: block = {block}
// ptxmm: args = ["g"]
// ptxmm: [objects]
// ptxmm: g = {{ type = "u32", count = 4096 }}
.visible .entry k(.param .u64 p)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<20>;
    .shared .align 16 .b8 s[{bytes}];
    .shared .align 8 .b64 full[4];
    .shared .align 8 .b64 empty[4];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    mov.u32 %r3, full;
    mov.u32 %r4, empty;
    setp.ne.u32 %p1, %r1, 0;
"""


def kernel(body: str, block: int = 2, size: int = 256) -> str:
    """A kernel with ``body``, one instruction to a line."""
    lines = body.replace("; ", ";\n    ").replace(": ", ":\n    ")
    return HEAD.format(block=block, bytes=size) + f"    {lines}\n    ret;\n}}\n"


_COPY = "cp.async.ca.shared.global [s], [%d1], 4; "
_INIT = "@!%p1 mbarrier.init.shared.b64 [full], 2; bar.sync 0; "
_MEET = "mbarrier.arrive.shared.b64 %d2, [full]; W: mbarrier.test_wait.shared.b64 %p2, [full], %d2; @!%p2 bra W; "


@pytest.mark.parametrize(
    ("body", "word", "reason"),
    [
        (_INIT + _MEET, "race-free", None),
        (_INIT + "st.shared.u32 [s], 1; " + _MEET, "race", None),
        (_INIT + "@%p1 st.shared.u32 [s], 1; " + _MEET + "ld.shared.u32 %r5, [s];", "race-free", None),
        (_INIT + "mbarrier.arrive.shared.b64 %d2, [full]; ld.shared.u32 %r5, [full];", "unsupported", "something else"),
        (
            _INIT + "mbarrier.arrive.shared.b64 %d2, [full]; mbarrier.test_wait.shared.b64 %p2, [full], %d2; "
            "@%p2 st.shared.u32 [s], 1;",
            "race", None,
        ),
        (
            _INIT + "mbarrier.arrive.shared.b64 %d2, [full]; mbarrier.test_wait.shared.b64 %p2, [full], %d2; "
            "@%p2 bra E; @!%p1 st.shared.u32 [s], 1; E: @!%p1 st.shared.u32 [s+4], 1;",
            "undecided", "`@!%p1 st.shared.u32 [s], 1` may come next",
        ),
        (
            _INIT + "mov.u32 %r6, 0; mbarrier.arrive.shared.b64 %d2, [full]; W: add.u32 %r6, %r6, 1; "
            "mbarrier.test_wait.shared.b64 %p2, [full], %d2; @!%p2 bra W; @!%p1 st.shared.u32 [s], %r6;",
            "undecided", "r6 is another one",
        ),
        (
            _INIT + "mov.u32 %r6, 0; mbarrier.arrive.shared.b64 %d2, [full]; W: add.u32 %r6, %r6, 1; "
            "nanosleep.u32 %r6; mbarrier.test_wait.shared.b64 %p2, [full], %d2; @!%p2 bra W; "
            "@!%p1 st.shared.u32 [s], 1;",
            "race-free", None,
        ),
        (
            _INIT + "mbarrier.arrive.shared.b64 %d2, [full]; and.b64 %d2, %d2, -1; "
            "W: mbarrier.test_wait.shared.b64 %p2, [full], %d2; @!%p2 bra W;",
            "undecided", "the state of this wait",
        ),
        (
            _INIT + "mbarrier.arrive.shared.b64 %d2, [full]; st.local.u64 [v], %d2; ld.local.u64 %d2, [v]; "
            "W: mbarrier.test_wait.shared.b64 %p2, [full], %d2; @!%p2 bra W;",
            "undecided", "the state of this wait",
        ),
        ("mbarrier.arrive.shared.b64 %d2, [full];", "undefined", "mbarrier full is not initialised"),
        ("mov.b32 %r6, 0; @!%p1 mbarrier.init.shared.b64 [full], %r6;", "undefined", "is initialised with the count 0"),
        (_INIT + "@!%p1 mbarrier.init.shared.b64 [full], 2;", "undefined",
         "is initialised again without mbarrier.inval, after line "),
        (_INIT + _MEET + "bar.sync 0; @!%p1 mbarrier.inval.shared.b64 [full]; bar.sync 0; "
         "mbarrier.arrive.shared.b64 %d2, [full];", "undefined", " has invalidated it"),
        (_INIT + _MEET + "bar.sync 0; @!%p1 mbarrier.inval.shared.b64 [full]; "
         "@!%p1 mbarrier.init.shared.b64 [full], 2; mbarrier.arrive.shared.b64 %d2, [full];", "undefined",
         "the initialisation of mbarrier full on line "),
        (
            _INIT + "@!%p1 bra A; mbarrier.arrive.shared.b64 %d2, [full]; "
            "W: mbarrier.test_wait.parity.shared.b64 %p2, [full], 1; @!%p2 bra W; bra E; "
            "A: mbarrier.arrive.shared.b64 %d2, [full]; E:",
            "undecided", "phase 0 of mbarrier full may be complete before a wait for phase -1 asks",
        ),
        (
            _INIT + "@%p1 mbarrier.arrive.shared.b64 %d2, [full]; "
            "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 16; "
            "@%p1 mbarrier.complete_tx.relaxed.cta.shared.b64 [full], 16; "
            "@!%p1 mbarrier.arrive.shared.b64 %d2, [full];",
            "undecided", "its bytes are counted depends on the schedule",
        ),
        (_INIT + "mbarrier.arrive.shared.b64 %d2, [full], 2;", "undecided", "phase 0 may last"),
        (_INIT + "@!%p1 mbarrier.arrive.shared.b64 %d2, [full], 3;", "undefined", "more arrivals"),
        (
            _INIT + "mov.b32 %r6, 1048576; @!%p1 mbarrier.arrive.expect_tx.shared.b64 %d2, [full], %r6;",
            "undefined", "the tx-count of mbarrier full leaves its range",
        ),
        (_INIT + "mbarrier.arrive.noComplete.shared.b64 %d2, [full], 1;", "undefined", ".noComplete completes"),
        ("cvta.global.u64 %d3, %d1; @!%p1 mbarrier.init.b64 [%d3], 2;", "undefined", "has to be in .shared::cta"),
        (_INIT + _MEET + "bar.sync 0; @!%p1 mbarrier.inval.shared.b64 [full]; bar.sync 0; "
         "@%p1 mbarrier.init.shared.b64 [full], 1; @%p1 mbarrier.arrive.shared.b64 %d2, [full];", "race-free", None),
        (_INIT + _MEET + "@!%p1 mbarrier.inval.shared.b64 [full];", "undefined", " has invalidated it"),
        (
            _INIT + "mbarrier.arrive.shared.b64 %d2, [full]; bar.sync 0; mbarrier.arrive.shared.b64 %d2, [full];",
            "race-free", None,
        ),
        (
            _INIT + "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 16; mbarrier.arrive.shared.b64 %d2, "
            "[full]; @!%p1 mbarrier.complete_tx.relaxed.cta.shared.b64 [full], 16;",
            "race-free", None,
        ),
        (
            _INIT + "@%p1 bra A; mbarrier.arrive.shared.b64 %d2, [full], 2; bra B; A: "
            "mbarrier.expect_tx.relaxed.cta.shared.b64 [full], 16; "
            "mbarrier.complete_tx.relaxed.cta.shared.b64 [full], 16; B:",
            "undecided", "may last",
        ),
        (_INIT + "@!%p1 mbarrier.arrive_drop.shared.b64 %d2, [full]; @%p1 mbarrier.arrive.shared.b64 %d2, [full]; "
         "bar.sync 0; @%p1 mbarrier.arrive.shared.b64 %d2, [full]; bar.sync 0; "
         "W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 1; @!%p2 bra W;", "race-free", None),
        (  # more groups may be open than there are
            "@%p1 bra E; cp.async.ca.shared.global [s], [%d1], 4; cp.async.commit_group; "
            "cp.async.ca.shared.global [s+4], [%d1], 4; cp.async.commit_group; cp.async.wait_group 3; "
            "ld.shared.u32 %r5, [s]; E:",
            "race", None,
        ),
        # Copies of one group to one place are undefined; those of no group are in no order.
        ("@%p1 bra E; " + _COPY + "cp.async.wait_all; " + _COPY + "cp.async.wait_all; E:", "race-free", None),
        ("@%p1 bra E; " + _COPY + _COPY + "E:", "race", None),
        ("@%p1 bra E; " + _COPY + _COPY + "cp.async.commit_group; E:", "undefined", "two cp.async of this group"),
        (  # the cas comes first in the text and writes nothing; where it comes last it does, beside the copy
            "@%p1 bra A; atom.relaxed.gpu.global.cas.b32 %r5, [%d1], 5, 6; bra E; "
            "A: atom.relaxed.gpu.global.exch.b32 %r6, [%d1], 5; cp.async.ca.shared.global [s], [%d1], 4; "
            "cp.async.wait_all; E:",
            "race", None,
        ),
    ],
)  # fmt: skip
def test_what_is_found(body: str, word: str, reason: str | None, tmp_path: Path) -> None:
    text = kernel(body).replace("    ld.param", "    .local .align 8 .b8 v[8];\n    ld.param", 1)
    found = judged(tmp_path / "k.ptx", text)
    assert (found.answer, reason or "") == (word, reason if reason and reason in (found.reason or "") else ""), found


def test_what_threads_wait_for(tmp_path: Path) -> None:
    body = _INIT + "@%p1 mbarrier.arrive.expect_tx.shared.b64 %d2, [full], 16; W: "
    found = judged(
        tmp_path / "k.ptx", kernel(body + "mbarrier.try_wait.parity.shared.b64 %p2, [full], 0; @!%p2 bra W;")
    )
    reason = "2 threads wait here for ever: for phase 0 of mbarrier full, which lacks 1 arrivals and 16 bytes"
    assert (found.answer, found.reason) == ("deadlock", reason)


RING = """\
    @%p1 bra I;
    mbarrier.init.shared.b64 [full], 128;
    mbarrier.init.shared.b64 [full+8], 128;
    mbarrier.init.shared.b64 [empty], 128;
    mbarrier.init.shared.b64 [empty+8], 128;
I:
    bar.sync 0;
    and.b32 %r5, %r1, 127;
    setp.ge.u32 %p2, %r1, 128;
    mov.u32 %r6, 0;
    mov.u32 %r16, 0;
L:
    and.b32 %r7, %r6, 1;
    shr.u32 %r8, %r6, 1;
    and.b32 %r8, %r8, 1;
    mad.lo.u32 %r9, %r7, 8, %r3;
    mad.lo.u32 %r10, %r7, 8, %r4;
    mad.lo.u32 %r11, %r7, 512, %r2;
    @%p2 bra C;
    xor.b32 %r12, %r8, 1;
P:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r12;
    @!%p3 bra P;
    mad.lo.u32 %r13, %r5, 4, %r11;
    st.shared.u32 [%r13], %r6;
    mbarrier.arrive.shared::cta.b64 _, [%r9];
    bra N;
C:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], %r8;
    @!%p3 bra C;
    xor.b32 %r14, %r5, 127;
    mad.lo.u32 %r13, %r14, 4, %r11;
    ld.shared.u32 %r15, [%r13];
    add.u32 %r16, %r16, %r15;
    mbarrier.arrive.shared::cta.b64 _, [%r10];
N:
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p4, %r6, {tiles};
    @%p4 bra L;
    @!%p2 bra E;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d1, %d3;
    st.global.u32 [%d4], %r16;
E:
"""
"""Warps that fill two buffers in turn and warps that empty them."""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("", "", "race-free"),
        ("    @!%p3 bra P;\n", "", "race"),
        ("xor.b32 %r12, %r8, 1;", "mov.b32 %r12, %r8;", "deadlock"),
        ("[full], 128", "[full], 127", "race"),
        ("[empty], 128", "[empty], 129", "deadlock"),
        ("mad.lo.u32 %r11, %r7, 512, %r2;", "mov.b32 %r11, %r2;", "race"),
    ],
)
def test_a_ring_of_a_whole_block(old: str, new: str, word: str, tmp_path: Path) -> None:
    body = RING.format(tiles=12)
    assert old in body
    text = HEAD.format(block=256, bytes=1024) + body.replace(old, new, 1) + "    ret;\n}\n"
    found = judged(tmp_path / "k.ptx", text)
    assert (found.answer, found.threads) == (word, 256), found


LOADS = """\
    @%p1 bra I;
    mbarrier.init.shared.b64 [full], 1;
    mbarrier.init.shared.b64 [full+8], 1;
    mbarrier.init.shared.b64 [empty], 128;
    mbarrier.init.shared.b64 [empty+8], 128;
    fence.mbarrier_init.release.cluster;
I:
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 128;
    and.b32 %r5, %r1, 127;
    mov.u32 %r6, 0;
    mov.u32 %r16, 0;
    mov.u64 %d5, %d1;
    setp.ne.u32 %p5, %r1, 128;
    @%p2 bra L;
    @%p5 bra E;
L:
    and.b32 %r7, %r6, 1;
    shr.u32 %r8, %r6, 1;
    and.b32 %r8, %r8, 1;
    mad.lo.u32 %r9, %r7, 8, %r3;
    mad.lo.u32 %r10, %r7, 8, %r4;
    mad.lo.u32 %r11, %r7, 1024, %r2;
    @%p2 bra C;
    xor.b32 %r12, %r8, 1;
P:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r10], %r12;
    @!%p3 bra P;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%d5], 1024, [%r9];
    add.u64 %d5, %d5, 1024;
    bra N;
C:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r9], %r8;
    @!%p3 bra C;
    mad.lo.u32 %r13, %r5, 4, %r11;
    ld.shared.u32 %r15, [%r13];
    ld.shared.u32 %r15, [%r13+512];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [%r10];
N:
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p4, %r6, 12;
    @%p4 bra L;
E:
"""
"""Bulk copies fill two buffers in turn, and four warps empty them."""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("", "", "race-free"),
        ("    fence.proxy.async.shared::cta;\n", "", "race"),
        ("    fence.proxy.async.shared::cta;\n", "    fence.proxy.async.global;\n", "race"),
        ("[%r9], 1024;\n    cp", "[%r9], 2048;\n    cp", "deadlock"),
        ("[empty], 128", "[empty], 127", "race"),
        ("ld.shared.u32 %r15, [%r13+512]", "st.shared.u32 [%r13+512], %r6", "race-free"),
        ("@!%p3 bra P;", "", "race"),
        ("mad.lo.u32 %r11, %r7, 1024, %r2", "mov.b32 %r11, %r2", "race"),
    ],
)
def test_bulk_loads_of_a_whole_block(old: str, new: str, word: str, tmp_path: Path) -> None:
    assert old in LOADS
    text = HEAD.replace("count = 4096", "count = 3072").format(block=160, bytes=2048)
    found = judged(tmp_path / "k.ptx", text + LOADS.replace(old, new, 1) + "    ret;\n}\n")
    assert (found.answer, found.threads) == (word, 160), found
    rests = old.startswith("    fence")
    assert [note.kind for note in found.notes] == ["reading"] * rests


GROUPS = """\
    mov.u32 %r6, 0;
    mad.lo.u32 %r10, %r1, 16, %r2;
    mul.wide.u32 %d3, %r1, 16;
    add.u64 %d4, %d1, %d3;
    cp.async.cg.shared.global [%r10], [%d4], 16;
    cp.async.commit_group;
L:
    add.u32 %r7, %r6, 1;
    setp.ge.u32 %p2, %r7, 8;
    @%p2 bra W;
    and.b32 %r8, %r7, 1;
    mad.lo.u32 %r9, %r8, 2048, %r10;
    add.u64 %d4, %d4, 2048;
    cp.async.cg.shared.global [%r9], [%d4], 16;
W:
    cp.async.commit_group;
    cp.async.wait_group 1;
    bar.sync 0;
    and.b32 %r8, %r6, 1;
    mad.lo.u32 %r11, %r8, 2048, %r2;
    xor.b32 %r12, %r1, 127;
    mad.lo.u32 %r11, %r12, 16, %r11;
    ld.shared.u32 %r13, [%r11];
    bar.sync 0;
    mov.u32 %r6, %r7;
    setp.lt.u32 %p3, %r6, 8;
    @%p3 bra L;
"""
"""Two buffers that all threads fill by ``cp.async``, each a part of them."""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("", "", "race-free"),
        ("wait_group 1", "wait_group 2", "race"),
        ("    bar.sync 0;\n    mov", "    mov", "race"),
        ("    cp.async.wait_group 1;\n    bar.sync 0;\n", "    bar.sync 0;\n    cp.async.wait_group 1;\n", "race"),
        ("and.b32 %r8, %r7, 1", "mov.b32 %r8, 0", "race"),
    ],
)
def test_groups_of_a_whole_block(old: str, new: str, word: str, tmp_path: Path) -> None:
    assert old in GROUPS
    text = HEAD.format(block=128, bytes=4096) + GROUPS.replace(old, new, 1) + "    ret;\n}\n"
    found = judged(tmp_path / "k.ptx", text)
    assert (found.answer, found.threads) == (word, 128), found


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_boxes_are_those_of_the_interpreter(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    size = st.tuples(*[st.integers(1, 5)] * rank)
    steps = (1, *data.draw(st.tuples(*[st.integers(1, 3)] * (rank - 1))))
    strides = data.draw(st.tuples(*[st.sampled_from((16, 32, 48, 160))] * (rank - 1)))
    tensor = Tensor(1 << 20, Type("u", 32), data.draw(size), data.draw(size), strides, steps)
    begin = data.draw(st.lists(st.integers(-3, 5), min_size=rank, max_size=rank))
    rows = [(row.begin, row.address, row.size) for row in _rows(tensor, begin)]
    assert list(zip(*(part.tolist() for part in box(tensor, begin)), strict=True)) == rows


_NAMES = "and.b32 %r5, %r1, 7; mad.lo.u32 %r6, %r5, 16, %r2; mad.lo.u32 %r7, %r1, 4, %r2; "
_SAME = "bar.warp.sync -1; setp.ne.u32 %p2, %r8, %r1; @%p2 st.shared.u32 [s+1024], %r1;"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (_NAMES + "st.shared.u32 [%r7], %r1; bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r6]; "
         + _SAME, "race-free"),
        (_NAMES + "st.shared.u32 [%r7], %r1; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r8}, [%r6];", "race"),
        (_NAMES + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r1}; bar.warp.sync -1; ld.shared.u32 %r8, [%r7]; "
         + _SAME, "race-free"),
        (_NAMES + "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r6], {%r1}; bar.warp.sync -1; "
         "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r8}, [%r6]; " + _SAME, "race-free"),
        (_NAMES + "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r6], {%r1}; bar.warp.sync -1; "
         "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r6]; " + _SAME, "outside"),
        ("mad.lo.u32 %r6, %r1, 16, %r2; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r6], {%r1, %r1, %r1, %r1}; "
         "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r8, %r9}, [%r6]; " + _SAME, "race-free"),
        (_NAMES + "@!%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r6];", "unsupported"),
    ],
)  # fmt: skip
def test_matrices(body: str, word: str, tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", kernel(body, 32, 512))
    assert found.answer == word, found


_PART = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
_TILE = "shr.u32 %r5, %r1, 5; mad.lo.u32 %r6, %r5, 1024, %r2; mad.lo.u32 %r7, %r1, 4, %r2; "
_STORE = f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r6], {_PART}"
_LOAD = f"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {_PART}, [%r6]"


@pytest.mark.parametrize(
    ("body", "answer", "reason"),
    [
        (f"{_TILE}{_STORE}; bar.sync 0; ld.shared.u32 %r8, [%r7];", "race-free", None),
        (f"{_TILE}{_STORE}; ld.shared.u32 %r8, [%r7];", "race", None),
        (f"{_TILE}{_STORE}; ld.shared.u32 %r8, [%r6];", "undecided", "which lane of the warp"),
        (f"{_TILE}{_STORE}; bar.warp.sync -1; {_LOAD};", "race-free", None),
        (f"{_TILE}{_STORE}; {_LOAD};", "undecided", "which lane of the warp"),
        (f"{_TILE}mov.u32 %r6, %r2; {_LOAD};", "race-free", None),
        (f"{_TILE}mov.u32 %r6, %r2; {_STORE};", "race", None),
        (f"{_TILE}mad.lo.u32 %r6, %r5, 64, %r2; {_STORE}, 32;", "race-free", None),
        (f"{_TILE}mad.lo.u32 %r6, %r5, 32, %r2; {_STORE}, 32;", "race", None),
        (f"{_TILE}{_STORE}, 8;", "undefined", "a stride of 8 elements"),
        (f"{_TILE}{_STORE}, 17;", "undefined", "a stride of 17 elements"),
        (f"{_TILE}add.u32 %r6, %r6, 16; {_STORE};", "undefined", "no multiple of 32"),
        (f"{_TILE}and.b32 %r8, %r1, 1; mad.lo.u32 %r6, %r8, 32, %r2; {_LOAD};", "undefined", "different matrices"),
        (f"{_TILE}@!%p1 {_LOAD};", "unsupported", "come apart"),
        (f"{_TILE}{_LOAD}; mul.f32 %f0, %f0, %f1; bar.sync 0; {_STORE};", "race-free", None),
        (f"{_TILE}{_LOAD}; cvt.rni.u32.f32 %r8, %f0; ld.shared.u32 %r8, [%r8];", "undecided", "address"),
        (f"{_TILE}add.u32 %r6, %r6, 1024; {_LOAD};", "outside", None),
    ],
)
def test_tiles_of_a_warp(body: str, answer: str, reason: str | None, tmp_path: Path) -> None:
    text = kernel(body, 64, 2048).replace(".reg .pred", ".reg .f32 %f<8>;\n    .reg .pred")
    found = judged(tmp_path / "k.ptx", text)
    assert found.answer == answer and (reason is None or reason in (found.reason or "")), found
