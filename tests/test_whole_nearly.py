"""What whole launches say of a race: what almost orders it, and what of that fails; who waits for what."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult
from tests.kernels import answered

CUDA = Path(__file__).parent / "cuda"


def answer(name: str) -> WholeResult:
    ((_, found),) = answered(CUDA / f"{name}.ptx")
    return found


NEARLY = {
    "mp_fence_relaxed.wrong_no_producer_fence": (
        ["st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32"],
        ["no release pattern (8.8): `st.relaxed.gpu.global.u32 [%rd3], %r4` is no release, and no memory fence"],
    ),
    "mp_release_acquire_cta.wrong_relaxed_poll": (
        ["st.release.cta.global.u32", "ld.relaxed.cta.global.u32"],
        ["no acquire pattern (8.8): `ld.relaxed.cta.global.u32 %r2, [%rd3]` is no acquire"],
    ),
    "mp_release_acquire_cta.wrong_other_cta": (
        ["st.release.cta.global.u32", "ld.acquire.cta.global.u32"],
        ["the scope .cta of `st.release.cta", "the scope .cta of `ld.acquire.cta"],
    ),
    "spsc_ring_fence.wrong_block_fence": (
        ["st.volatile.global.u32", "ld.volatile.global.u32"],
        ["the scope .cta of `membar.cta` does not include the threads of CTA 1", "the scope .cta of `membar.cta`"],
    ),
    "tma_load_pipeline.wrong_no_proxy_fence": ([], ["no proxy fence between the generic and the async proxy"]),
    "tma_store_reuse.wrong_no_wait": ([], ["no wait for the group of this copy by its thread comes before"]),
    "tma_store_reuse.wrong_wait_count": (["cp.async.bulk.wait_group.read 1"], ["leaves the group of this copy open"]),
    "cuda_pipeline.wrong_wait_prior": (["cp.async.wait_group 2"], ["leaves the group of this copy open"]),
    "cp_async_double_buffer.wrong_no_barrier": (["bar.sync 0"], ["no wait for phase 0 of barrier 0 comes before"]),
    "tma_copy.wrong_no_wait": (["cp.async.bulk"], ["no wait for phase 0 of mbarrier full comes before"]),
    "st_async.wrong_expects_nothing": (
        ["st.async.", "mbarrier.try_wait.parity"],
        ["the wait (by parity) passes with phase 0 of mbarrier full, and this counts in phase 1"],
    ),
    "grid_sync.wrong_early_reuse": (["atom.add.release.gpu.u32"], ["comes before line 137, not after it"]),
    "grid_sync.wrong_block_sync": ([], ["no flag, mbarrier or barrier of the cluster or the grid is between"]),
}
"""The instructions of the first race that almost order it, and what is said of them."""


@pytest.mark.parametrize("name", NEARLY)
def test_what_almost_orders(name: str) -> None:
    steps, fails = NEARLY[name]
    race = answer(name).races[0]
    assert len(race.steps) == len(steps) and len(race.fails) == len(fails)
    assert all(spot.text.startswith(text) for spot, text in zip(race.steps, steps, strict=True)), race.steps
    assert all(text in found for found, text in zip(race.fails, fails, strict=True)), race.fails


@pytest.mark.share(3)
@pytest.mark.parametrize("path", sorted(CUDA.glob("*.wrong_*.ptx")), ids=lambda path: path.stem)
def test_every_race_says_something(path: Path) -> None:
    """The steps are of the two threads' launch, and lie in the file."""
    lines = path.read_text().count("\n")
    for grids, found in answered(path):
        for race in found.races:
            assert race.fails
            for spot in (race.first, race.second, *race.steps):
                assert 0 < spot.line <= lines
                if spot.part.startswith("H"):
                    continue
                grid = grids[int(spot.part.removeprefix("grid ") or 0)]
                assert 0 <= spot.cta < grid.ctas and 0 <= spot.thread < grid.size
                x, y, z = spot.thread_index
                assert x + grid.block[0] * (y + grid.block[1] * z) == spot.thread


COUNTING = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = 2
// ptxmm: block = 1
// ptxmm: args = ["x"]
// ptxmm: objects = { x = "u32" }
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    red.relaxed.SCOPE.global.add.u32 [%rd1], 1;
    ret;
}
"""


@pytest.mark.parametrize(("scope", "fails"), [("cta", 2), ("gpu", 0)])
def test_strong_accesses_out_of_scope(tmp_path: Path, scope: str, fails: int) -> None:
    """Neither is what almost orders the other: they need no order in a scope that includes both."""
    path = tmp_path / "k.ptx"
    path.write_text(COUNTING.replace("SCOPE", scope))
    (kernel,) = kernels(path)
    found = whole(kernel, str(path))
    assert len(found.races) == (fails > 0)
    for race in found.races:
        text = "the scope .cta of `red.relaxed.cta.global.add.u32 [%rd1], 1` does not include the threads of CTA"
        assert race.steps == () and race.fails == (f"{text} 1 (8.5)", f"{text} 0 (8.5)")


MEETING = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: block = [16, 4]
// ptxmm: args = []
.visible .entry k()
{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.y;
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra L;
    bar.sync 1;
    bra E;
L:
    bar.sync 2;
E:
    ret;
}
"""


def test_who_waits_for_what(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(MEETING)
    (kernel,) = kernels(path)
    found = whole(kernel, str(path))
    assert found.answer == "deadlock"
    first, second = found.waiting
    assert (first.threads, second.threads) == (32, 32)
    assert first.lacks == "barrier 2, to which 32 threads have come" and first.spot.text == "bar.sync 2"
    assert second.lacks == "barrier 1, to which 32 threads have come" and second.spot.where == "CTA 0, thread (0, 2, 0)"
    assert [(spot.text, spot.where) for spot in first.missing] == [("bar.sync 1", "CTA 0, thread (0, 2, 0)")]


def test_who_waits_at_an_mbarrier() -> None:
    found = answer("tma_load_pipeline.wrong_no_full_wait")
    assert found.answer == "deadlock"
    lacks = "phase 1 of mbarrier empty+8, which lacks 1 arrivals"
    assert [(item.spot.cta, item.threads, item.lacks) for item in found.waiting] == [(0, 1, lacks), (1, 1, lacks)]
