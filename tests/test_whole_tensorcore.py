"""Whole launches with tensor memory: what orders accesses of it, who may access it, and when it is there (9.7.16 of PTX
ISA 9.0)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.errors import Timeout
from ptxmm.formats import parse
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult
from tests.random_whole_tensor import programs
from tests.support import model_named

CUDA = Path(__file__).parent / "cuda" / "whole"
RIGHT = sorted(path.stem for path in CUDA.glob("*.cu") if ".wrong_" not in path.stem)
WRONG = {
    "tcgen05_tile.wrong_early_commit": "race of stage_",
    "tcgen05_tile.wrong_freed_early": "race of tensor memory",
    "tcgen05_tile.wrong_never_freed": "not freed before the kernel ends",
    "tcgen05_tile.wrong_no_done_wait": "race of tensor memory",
    "tcgen05_tile.wrong_other_lanes": "accesses lanes 32 to 63 only, not 0",
    "tcgen05_tile.wrong_other_shape": "columns 8 to 39 of tensor memory, which are not allocated",
    "tcgen05_two_stages.wrong_no_after_fence": "no `tcgen05.fence::after_thread_sync`",
    "tcgen05_two_stages.wrong_no_empty_wait": "no wait for phase 0 of mbarrier empty",
    "tcgen05_two_stages.wrong_no_proxy_fence": "no proxy fence between the generic and the async proxy",
    "tcgen05_two_stages.wrong_no_wait_ld": "no `tcgen05.wait::ld`",
    "tcgen05_two_stages.wrong_one_accumulator": "race of tensor memory",
}


def judged(path: Path) -> WholeResult:
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + 60))


def told(found: WholeResult) -> str:
    """What an answer says of itself."""
    places = [f"race of {race.place}: {'; '.join(race.fails)}" for race in found.races]
    return "\n".join([found.answer, found.reason or "", *places])


def test_each_kernel_has_wrong_versions() -> None:
    assert {name.partition(".")[0] for name in WRONG} == set(RIGHT)
    assert sorted(path.stem for path in CUDA.glob("*.wrong_*.cu")) == sorted(WRONG)
    assert all("// WRONG" in (CUDA / f"{name}.cu").read_text() for name in WRONG)


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    found = judged(CUDA / f"{name}.ptx")
    assert (found.answer, [claim.holds for claim in found.claims]) == ("race-free", [True])


@pytest.mark.share(2)
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    found = judged(CUDA / f"{name}.ptx")
    assert found.holds is False
    assert WRONG[name] in told(found)


def test_what_a_commit_frees_rests_on_a_reading(tmp_path: Path) -> None:
    """That a copy overwrites what the copy before has written, behind a commit alone: the arrival of the commit comes
    after the products, which come after that copy, and this is no order of the copies (A35)."""
    text, path = (CUDA / "tcgen05_tile.ptx").read_text(), tmp_path / "k.ptx"
    source = (CUDA / "tcgen05_tile.cu").read_text().replace('// ptxmm: assume = ["issue=closure"]\n', "")
    launch = "\n".join(line for line in source.splitlines() if line.startswith("// ptxmm:"))
    path.write_text(f"{launch}\n{text}")
    found = judged(path)
    assert found.answer == "race" and {race.place.partition(",")[0] for race in found.races} == {"stage_a", "stage_b"}
    assert any("issue=closure gives no race" in note.text for note in found.notes)


# -- the same, in small --

KERNEL = """\
.version 8.6
.target sm_100a
.address_size 64
// ptxmm: block = 128
// ptxmm: grid = {ctas}
.visible .entry k()
{{
    .reg .pred %lead, %p, %q;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    .shared .align 1024 .b8 s[16384];
    .shared .align 8 .b64 m;
    .shared .b32 base, more;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %lead, %r1, 0;
    setp.lt.u32 %p, %r1, 32;
    setp.ne.u32 %q, %r1, %r1;
    and.b32 %r2, %r1, 96;
    shl.b32 %r2, %r2, 16;
    mov.u32 %r4, s;
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %d1, %r4;
    or.b64 %d1, %d1, 0x0000400800080000;
    @%lead mbarrier.init.shared::cta.b64 [m], 1;
    {alloc}
    barrier.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r3, [base];
    add.u32 %r2, %r2, %r3;
    {body}
    tcgen05.wait::ld.sync.aligned;
    tcgen05.wait::st.sync.aligned;
    @%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [m];
L:  mbarrier.try_wait.parity.shared::cta.b64 %p, [m], 0;
    @!%p bra L;
    barrier.sync 0;
    {free}
    ret;
}}
"""
ALLOC = "@%p tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{to}], {columns};"
ONE = ALLOC.format(to="base", columns=32)
FREE = (
    "setp.lt.u32 %p, %r1, 32; tcgen05.fence::after_thread_sync; "
    "@%p tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, {columns};"
)
IDESC, OTHER = 1 << 4 | 2 << 17 | 8 << 24, 1 << 4 | 1 << 17 | 8 << 24
"""Products of 128x16, and 128x8."""
LD = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r10, %r11}, [%r2]; "
ST = "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r10, %r11}; "
MMA = "@%lead tcgen05.mma.cta_group::1.kind::f16 [%r3], %d1, %d1, {}, %q; "
CP, SHIFT = "@%lead tcgen05.cp.cta_group::1.128x256b [%r3], %d1; ", "@%lead tcgen05.shift.cta_group::1.down [%r3]; "
MEET = "tcgen05.fence::before_thread_sync; barrier.sync 0; tcgen05.fence::after_thread_sync; "


def small(
    tmp_path: Path, body: str = "", alloc: str = "", free: str = FREE.format(columns=32), ctas: str = "1"
) -> WholeResult:
    given = alloc or ONE
    path = tmp_path / "k.ptx"
    path.write_text(KERNEL.format(body=body, alloc=given, free=free, ctas=ctas).replace("; ", ";\n    "))
    return judged(path)


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("", "race-free"),
        (MMA.format(IDESC) * 2, "race-free"),
        (MMA.format(IDESC) + MMA.format(OTHER), "race"),  # another shape: no pipeline
        (CP + MMA.format(IDESC), "race-free"),
        (MMA.format(IDESC) + CP, "race"),
        (CP * 2, "race"),
        (SHIFT + MMA.format(IDESC), "race-free"),
        (MMA.format(IDESC) + SHIFT, "race-free"),
        (SHIFT + CP, "race"),
        (ST + MEET + MMA.format(IDESC), "race"),
        (ST + "tcgen05.wait::st.sync.aligned; " + MEET + MMA.format(IDESC), "race-free"),
        (ST + "tcgen05.wait::ld.sync.aligned; " + MEET + MMA.format(IDESC), "race"),
        (ST + "tcgen05.wait::st.sync.aligned; barrier.sync 0; " + MMA.format(IDESC), "race"),
        (LD + "tcgen05.wait::ld.sync.aligned; " + MEET + MMA.format(IDESC), "race-free"),
        (ST + LD, "race"),
        (ST + "tcgen05.wait::st.sync.aligned; " + LD, "race-free"),
        (LD + LD, "race-free"),
        # of a product that leaves all lanes as they are
        (ST + MMA.format(f"{IDESC}, {{-1, -1, -1, -1}}"), "race-free"),
    ],
)  # fmt: skip
def test_order(body: str, answer: str, tmp_path: Path) -> None:
    assert small(tmp_path, body).answer == answer


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"alloc": ALLOC.format(to="base", columns=48)}, "48 columns"),
        ({"alloc": ONE + " " + ALLOC.format(to="more", columns=64)}, "64 columns, more than the 32"),
        (
            {"alloc": "@%p tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; " + ONE},
            "after tcgen05.relinquish_alloc_permit",
        ),
        ({"free": FREE.format(columns=64)}, "are no allocation"),
        ({"free": FREE.format(columns=32) + " " + LD}, "has been freed"),
        ({"free": ""}, "not freed before the kernel ends"),
        ({"body": "add.u32 %r2, %r2, 31; " + LD}, "columns 31 to 32 of tensor memory"),
        ({"body": "add.u32 %r2, %r2, %r1; " + LD}, "lanes of a warp that name different addresses"),
        ({"body": "mov.u32 %r2, %r3; " + LD}, "accesses lanes 32 to 63 only"),
        ({"body": MMA.format(IDESC | 1 << 24)}, "a product of the shape"),
        ({"body": MMA.format(IDESC | 4)}, "sparse matrix"),
        ({"body": "mov.u64 %d1, 0; " + MMA.format(IDESC)}, "has not its constant bits"),
        ({"body": "add.u32 %r3, %r3, 1048576; " + MMA.format(IDESC)}, "a matrix of 128 rows at lane 16"),
    ],
)  # fmt: skip
def test_misuse(given: dict[str, str], text: str, tmp_path: Path) -> None:
    found = small(tmp_path, **given)
    assert found.holds is False
    assert text in (found.reason or "")


def test_tensor_memory_is_of_its_cta(tmp_path: Path) -> None:
    assert small(tmp_path, ST, ctas="3").answer == "race-free"


def test_an_address_that_decides_something(tmp_path: Path) -> None:
    """Where tensor memory is allocated is left open: no answer rests on it."""
    found = small(tmp_path, "setp.eq.u32 %p, %r3, 0; @%p bra M; " + LD + "M: ")
    assert found.answer == "undecided" and "where its variables lie" in (found.reason or "")


def test_what_is_not_followed(tmp_path: Path) -> None:
    for body in ("tcgen05.cp.cta_group::1.4x256b [%r3], %d1; ", MMA.format(IDESC | 1 << 15).replace("f16", "tf32")):
        assert small(tmp_path, body).answer == "unsupported"


# -- all executions --


def compare(path: Path, seed: int, seconds: float) -> bool:
    """The answer about a kernel, and what the engine says of the same as a litmus test; whether there was time."""
    kernel, litmus = programs(seed)
    path.write_text(kernel)
    found = judged(path)
    (test,) = parse(litmus, "k.litmus")
    try:
        every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + seconds))
    except Timeout:
        return False
    if every.status != "complete":
        return False
    assert found.answer in ("race-free", "race"), (kernel, found.reason)
    assert every.race_free is (found.answer == "race-free"), kernel + litmus
    return True


def test_random_programs(tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", seed, 5) for seed in range(12)) >= 10


@pytest.mark.slow
def test_many_random_programs(tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", seed, 20) for seed in range(10_000 + shift, 10_300 + shift)) >= 290
