"""``ptxmm fences --whole``: what each instruction that orders is for a launch with all its threads, and repairs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from ptxmm.whole.fences.search import Found, Judged, WholeFences, WholeRepair, searched
from ptxmm.whole.fences.variants import edited, units, without
from tests.commands import Run
from tests.kernel_mutations import mutants
from tests.test_whole_mutations import CUDA, GOLDEN, free

SHARE = ["arrive_wait_counter", "mma_stages", "mp_release_acquire_sys", "tma_copy", "mbarrier_pipeline"]


def answer(path: Path) -> WholeFences:
    """The result, which has what was found on the way."""
    (launched,) = kernels(path)
    *found, result = searched(launched, str(path), Limits(deadline=time.monotonic() + 60))
    assert isinstance(result, WholeFences)
    told = [item.what for item in found if isinstance(item, Found)]
    assert [item for item in told if isinstance(item, Judged)] == list(result.items)
    assert {item for item in told if isinstance(item, WholeRepair)} == set(result.repairs)
    return result


def check_removals(name: str) -> int:
    """What can be left out is what whole launches call free of races when it is not in the text (``tests/
    kernel_mutations``), and the other way round; how many there are."""
    path = CUDA / f"{name}.ptx"
    known = set((GOLDEN / "whole-mutants.txt").read_text().splitlines())
    dropped: dict[int, bool] = {}
    for mutant in mutants(path.read_text()):
        if mutant.kind == "drop":
            dropped[mutant.line] = f"{name} {mutant}" in known
    found = answer(path)
    assert found.holds and found.status == "complete"
    count = 0
    for item in found.items:
        if item.line in dropped and "barrier.cluster" not in item.text:  # that goes with its wait
            assert (item.verdict == "removable") == dropped[item.line], item
            count += 1
        assert (item.verdict == "weaker") == bool(item.weaker)
        assert item.why or item.verdict in ("removable", "weaker")
    return count


def test_what_can_go() -> None:
    assert sum(map(check_removals, SHARE)) > 25


@pytest.mark.slow
def test_what_can_go_of_every_kernel() -> None:
    assert sum(map(check_removals, free())) > 350


WEAKER = {
    "mp_fence_relaxed": [["fence.acquire.gpu"], ["fence.release.gpu"]],
    "mp_release_acquire_sys": [["ld.acquire.gpu.global.u32 %r2, [%rd3]"], ["st.release.gpu.global.u32 [%rd3], %r4"]],
}


@pytest.mark.parametrize("name", WEAKER)
def test_what_can_be_weaker(name: str) -> None:
    found = answer(CUDA / f"{name}.ptx")
    assert sorted(list(item.weaker) for item in found.items if item.weaker) == sorted(WEAKER[name])


REPAIRS = {
    "mp_fence_relaxed.wrong_no_producer_fence": (2, "st.release.gpu.global.u32 [%rd3], %r4"),
    "tma_load_pipeline.wrong_no_proxy_fence": (4, "fence.proxy.async"),
    "cub_block_reduce.wrong_no_barrier": (8, "barrier.cta.sync 0"),
    "tma_store_reuse.wrong_wait_count": (4, "cp.async.bulk.wait_group.read 0"),
    "named_barrier.wrong_early_empty": None,
}
"""What the cheapest repair costs, and one of its changes; None: there is none of at most two steps."""


@pytest.mark.share(2)
@pytest.mark.parametrize("name", REPAIRS)
def test_repairs(name: str) -> None:
    found = answer(CUDA / f"{name}.ptx")
    assert found.holds is False and not found.items
    wanted = REPAIRS[name]
    if wanted is None:
        assert not found.repairs
        return
    costs = [repair.cost for repair in found.repairs]
    assert costs == sorted(costs) and costs[0] == wanted[0]
    assert wanted[1] in {change.new for repair in found.repairs for change in repair.changes if repair.cost == costs[0]}


def test_both_accesses_strong_is_no_repair() -> None:
    """It would be none: what the reader finds is not ordered."""
    found = answer(CUDA / "mp_fence_relaxed.wrong_no_producer_fence.ptx")
    changed = {change.old for repair in found.repairs for change in repair.changes if change.kind == "replace"}
    assert changed and not any(old and old.startswith(("st.global", "ld.global")) for old in changed)


def test_a_launch_of_which_a_claim_fails_is_not_repaired(tmp_path: Path) -> None:
    name = "mp_fence_relaxed.wrong_no_producer_fence"
    for suffix in (".cu", ".ptx"):
        (tmp_path / f"k{suffix}").write_text((CUDA / f"{name}{suffix}").read_text().replace("out == 42", "out == 43"))
    found = answer(tmp_path / "k.ptx")
    assert found.holds is False and found.tried > 10 and not found.repairs


def test_a_change_that_is_not_decided_may_be_enough() -> None:
    """Whole launches do not decide a lock whose release is of the right scope; `fences` without --whole finds it."""
    found = answer(CUDA / "spin_lock_exch.wrong_cta_unlock.ptx")
    (text,) = (note.text for note in found.notes if note.kind == "repair")
    assert not found.repairs and "none is known to be enough" in text and text.endswith("they may be")


def test_no_repair_is_stronger_than_another_one() -> None:
    """Where an acquire is enough an acq_rel is none."""
    found = answer(CUDA / "last_block.wrong_no_second_fence.ptx")
    strong = [change.new for repair in found.repairs for change in repair.changes if change.kind == "replace"]
    assert strong == ["atom.acquire.gpu.global.inc.u32 %r12, [%rd12], %r11"] and len(found.repairs) > 1


def test_a_repair_of_which_all_claims_are_decided_is_preferred() -> None:
    """A barrier behind the read of the table makes the launch free of races, and what is read wrong."""
    found = answer(CUDA / "cuda_latch.wrong_early_count.ptx")
    places = [[(change.line, change.after) for change in repair.changes] for repair in found.repairs]
    assert places == [[(80, False), (106, True)]] and not any(note.kind == "claims" for note in found.notes)


def test_branches_go_where_they_went() -> None:
    """A launch without an instruction that has no effect is answered as it is."""
    (launched,) = kernels(CUDA / "tma_load_pipeline.ptx")
    fence = next(unit for unit in units(launched) if unit.text.startswith("fence.mbarrier_init"))
    less = without(launched, fence)
    assert less is not None
    (changed,) = edited(launched, less.edits)
    assert len(changed.code.body) == len(launched[0].code.body) - 1
    assert whole((changed,), "k.ptx").accesses == whole(launched, "k.ptx").accesses


def test_what_is_not_decided_is_no_verdict() -> None:
    found = answer(CUDA / "block_histogram.ptx")
    unknown = [(item.line, item.why) for item in found.items if item.verdict == "unknown"]
    why = "whether this is ordered depends on the schedule"
    assert unknown == [(61, why)]
    found = answer(CUDA / "spin_lock_cas.ptx")
    assert (found.holds, found.status, found.items) == (None, "inconclusive", ())
    assert found.reason


def test_command(run_command: Run) -> None:
    path = str(CUDA / "mp_fence_relaxed.cu")
    ran = run_command("fences", "--whole", path)
    assert ran.code == 0
    said = "line 31: fence.acq_rel.gpu (called on line 43)  can be weaker: fence.acquire.gpu  (without it: race of"
    assert said in ran.out
    ran = run_command("fences", "--whole", path, "--json")
    (entry,) = json.loads(ran.out)["results"]
    assert (ran.code, entry["analysis"], entry["holds"], len(entry["items"])) == (0, "whole-fences", True, 4)
    ran = run_command("fences", "--whole", str(CUDA / "mp_fence_relaxed.wrong_no_producer_fence.ptx"))
    assert ran.code == 1 and "Found after" in ran.out and "\n 1. cost 2\n" in ran.out
    ran = run_command("fences", "--whole", path, "--property", "races")
    assert ran.code == 2 and "it takes no --property" in ran.err
