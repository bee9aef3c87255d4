"""Whole launches with branches on data that nobody works out, of which both ways only compute: whichever is taken, the
thread comes to where they meet, and what either gives a register is not known there."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult
from tests.support import model_named

KERNEL = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = 64
// ptxmm: args = ["x", "flag", 7]
// ptxmm: objects.x = {{ type = "f32", count = 64, init = [{ones}] }}
// ptxmm: objects.flag = "u32"
// ptxmm: threads = "cta 0 thread 0,32"
.visible .entry k(.param .u64 x, .param .u64 flag, .param .u32 n)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<40>;
    .reg .b64 %d<9>;
    .reg .f32 %f<9>;
    .shared .align 16 .b8 s[512];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, s;
    shr.u32 %r3, %r1, 5;
    mad.lo.u32 %r4, %r1, 4, %r2;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d3, [flag];
    mad.wide.u32 %d2, %r1, 4, %d1;
    ld.global.f32 %f0, [%d2];
    ex2.approx.f32 %f0, %f0;
    setp.gt.f32 %p8, %f0, 0f3F800000;
    setp.ne.u32 %p7, %r3, 0;
    mov.u32 %r30, 0;
    {body}
E:  ret;
}}
"""
"""A predicate %p8 that holds in all threads, but is not worked out."""
BEFORE = "@%p8 bra T; {way} T: {after}"


def judged(tmp_path: Path, body: str) -> tuple[WholeResult, str]:
    text = KERNEL.format(body=body, ones=", ".join(["1.5"] * 64))
    path = tmp_path / "k.ptx"
    path.write_text(text)
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 20)), text


@pytest.mark.parametrize(
    ("way", "after", "word"),
    [
        ("add.u32 %r30, %r30, 4; ", "", "race-free"),
        ("@%p8 bra T; add.u32 %r30, %r30, 4; ", "", "race-free"),
        ("ld.param.u32 %r9, [n]; ", "", "race-free"),
        ("nanosleep.u32 20; ", "", "race-free"),
        ("add.u32 %r30, %r30, 4; bra U; ", "bra V; U: add.u32 %r30, %r30, 8; V: ", "race-free"),
        ("", "@%p8 add.u32 %r30, %r30, 4; ", "race-free"),
        ("@%p7 add.u32 %r30, %r30, 4; ", "mov.u32 %r30, 4; add.u32 %r31, %r4, %r30; st.shared.u32 [%r31], 1; ",
         "race-free"),
        # It makes a difference afterwards.
        ("add.u32 %r30, %r30, 4; ", "add.u32 %r31, %r4, %r30; st.shared.u32 [%r31], 1; ", "undecided"),
        ("setp.ne.u32 %p7, %r3, 1; ", "@%p7 st.shared.u32 [%r2], 1; ", "undecided"),
        ("", "@%p8 add.u32 %r30, %r30, 4; bar.sync %r30; ", "undecided"),
        ("add.u32 %r30, %r30, 4; ", "shfl.sync.idx.b32 %r31, %r4, %r30, 31, -1; st.shared.u32 [%r31], 1; ",
         "undecided"),
        # More than computation.
        ("st.shared.u32 [%r4], 1; ", "", "undecided"),
        ("ld.shared.u32 %r30, [%r4]; ", "", "undecided"),
        ("atom.shared.add.u32 %r30, [%r4], 1; ", "", "undecided"),
        ("bar.sync 0; ", "", "undecided"),
        ("bar.warp.sync -1; ", "", "undecided"),
        ("fence.acq_rel.cta; ", "", "undecided"),
        ("vote.sync.any.pred %p6, %p7, -1; ", "", "undecided"),
        ("shfl.sync.idx.b32 %r31, %r1, 0, 31, -1; ", "", "undecided"),
        ("elect.sync _|%p6, -1; ", "", "undecided"),
        ("activemask.b32 %r31; ", "", "undecided"),
        ("U: add.u32 %r30, %r30, 4; setp.lt.u32 %p6, %r30, 40; @%p6 bra U; ", "", "undecided"),
        ("exit; ", "", "undecided"),
        ("@%p7 exit; ", "", "undecided"),
        ("bra E; ", "st.shared.u32 [%r4], 1; ", "undecided"),
        ("trap; ", "", "undecided"),
        ("ld.param.u32 %r30, [n+100]; ", "", "undecided"),
        ("", "@%p8 st.shared.u32 [%r4], 1; ", "undecided"),
        ("", "@%p8 bar.sync 0; ", "undecided"),
        ("", "@%p8 exit; ", "undecided"),
    ],
)  # fmt: skip
def test_branches_on_data_that_nobody_works_out(way: str, after: str, word: str, tmp_path: Path) -> None:
    found, _ = judged(tmp_path, BEFORE.format(way=way, after=after))
    assert found.answer == word, found


def test_a_race_behind_it_stays_one(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, BEFORE.format(way="add.u32 %r30, %r30, 4; ", after="st.shared.u32 [%r2], %r1; "))
    assert found.answer == "race", found


def test_what_is_stored_is_not_known(tmp_path: Path) -> None:
    """A flag that depends on it tells nothing of what precedes it."""
    way = "add.u32 %r30, %r30, 1; "
    after = (
        "@%p7 bra W; st.shared.u32 [s+8], 5; st.release.gpu.global.u32 [%d3], {flag}; bra E; "
        "W: ld.acquire.gpu.global.u32 %r9, [%d3]; setp.ne.u32 %p6, %r9, 1; @%p6 bra W; ld.shared.u32 %r9, [s+8]; "
    )
    head = "bar.warp.sync -1; and.b32 %r9, %r1, 31; setp.ne.u32 %p5, %r9, 0; @%p5 bra E; "
    assert judged(tmp_path, head + BEFORE.format(way=way, after=after.format(flag=1)))[0].answer == "race-free"
    assert judged(tmp_path, head + BEFORE.format(way=way, after=after.format(flag="%r30")))[0].answer == "undecided"


def drawn(chosen: random.Random) -> str:
    """A program of two threads: detours, accesses that need or do not need what they leave, barriers."""
    parts = []
    for number in range(chosen.randrange(3, 8)):
        register = f"%r{30 + chosen.randrange(3)}"
        compute = f"add.u32 {register}, {register}, 4; "
        place = chosen.choice(("%r2", "%r4", "%r4", "%r4+128"))
        access = chosen.choice((f"st.shared.u32 [{place}], %r1; ", f"ld.shared.u32 %r20, [{place}]; "))
        guard = chosen.choice(("@%p8 ", "@!%p8 "))
        parts.append(
            chosen.choice((
                f"{guard}bra T{number}; {compute} T{number}: ",
                f"{guard}bra T{number}; {compute} bra U{number}; T{number}: mov.u32 {register}, 8; U{number}: ",
                guard + compute,
                access, access, access,
                f"@%p7 {access}",
                "barrier.sync 0; ", "barrier.sync 0; ",
                f"mov.u32 {register}, 0; ",
                f"add.u32 %r21, %r4, {register}; st.shared.u32 [%r21], 1; ",
                f"{guard}bra T{number}; {access} T{number}: ",
            ))
        )  # fmt: skip
    return "mov.u32 %r31, 0; mov.u32 %r32, 0; and.b32 %r9, %r1, 31; setp.ne.u32 %p5, %r9, 0; @%p5 bra E; " + "".join(
        parts
    )


def compared(tmp_path: Path, seed: int) -> str:
    found, text = judged(tmp_path, drawn(random.Random(seed)))
    if found.answer in ("race-free", "race"):
        (test,) = parse_ptx(text, "k.ptx")
        every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 20))
        assert (found.answer == "race") == bool(every.races), (seed, found, every)
    return found.answer


def test_random_detours_agree_with_all_executions(tmp_path: Path) -> None:
    words = [compared(tmp_path, seed) for seed in range(16)]
    assert {"race-free", "race"} <= set(words), words


@pytest.mark.slow
def test_more_random_detours(tmp_path: Path, shift: int) -> None:
    words = [compared(tmp_path, shift * 1000 + seed) for seed in range(300)]
    assert {"race-free", "race", "undecided"} <= set(words), words
