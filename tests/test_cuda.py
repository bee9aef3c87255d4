"""The CUDA sources of tests/cuda: right ones verify, wrong ones are refused with the line that is wrong, none is lint.

``X.cu`` is right and ``X.wrong_Y.cu`` is X with a fault, in the line (or two) that ends in ``// WRONG``. What is
checked is the PTX beside them, which nvcc has printed (tests/cuda/compile.py): only some of the slow tests need nvcc.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxmm.analysis.claims import HOLDS, RACES, ROBUST, limits_of
from ptxmm.analysis.lint import lint
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result
from ptxmm.cli.app import run
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from ptxmm.program.shared.refusals import OPAQUE
from ptxmm.ptx.module import parse_module
from ptxmm.render.text import note_lines
from tests.decided import decided
from tests.support import ROOT, model_named
from tests.tally import Tally

CUDA = ROOT / "tests" / "cuda"
SOURCES = sorted(path.stem for path in CUDA.glob("*.cu"))
RIGHT = [name for name in SOURCES if ".wrong_" not in name]
WRONG = [name for name in SOURCES if ".wrong_" in name]
SLOW = frozenset({
    "barrier_tx.wrong_no_bytes", "block_lock.wrong_no_sync", "cg_tile_exchange.wrong_other_tile", "cub_block_reduce",
    "cub_block_reduce.wrong_no_barrier", "cuda_barrier_device.wrong_block_scope",
    "cuda_barrier_split.wrong_arrive_first", "cuda_counting_semaphore.wrong_block_scope", "cuda_pipeline_shared",
    "cuda_pipeline_shared.wrong_early_release",
    "cuda_semaphore", "cuda_semaphore.wrong_early_release", "dsmem_bulk_copy.wrong_no_proxy_fence",
    "dsmem_bulk_copy.wrong_no_wait", "grid_barrier_generation.wrong_late_reset", "persistent_loop",
    "persistent_loop.wrong_one_barrier", "ping_pong", "ping_pong.wrong_early_pass", "red_async.wrong_late_start",
    "reduce_single_pass.wrong_no_acquire",
    "st_async.wrong_expects_nothing", "tile_scheduler", "tile_scheduler.wrong_early_empty",
    "tma_load_pipeline.wrong_no_full_wait", "tma_load_pipeline.wrong_parity", "tma_multicast.wrong_one_release",
    "tma_store.wrong_fence_too_early", "tma_store.wrong_no_proxy_fence",
    "tma_tensor_load.wrong_syncthreads_instead", "treiber_stack.wrong_relaxed_push",
    "warp_reduction.wrong_no_syncwarp",
})  # fmt: skip
"""Those that take more than about 2 s, where others of their idiom are left."""
SMALL = (
    "block_vote", "cluster_reduction", "hash_map_insert", "host_doorbell", "last_block.wrong_no_fence",
    "mp_atomic_exch", "mp_atomic_exch.wrong_no_fence", "mp_fence_relaxed", "mp_packed_flag", "mp_red_counter",
    "seqlock.wrong_no_reader_fence", "warp_exchange",
)  # fmt: skip
"""Those that both engines decide without ``slow``."""
SECONDS = 300
BOTH = 20
"""Seconds for each launch where both engines are asked: some are beyond the explicit one."""
PLACE = re.compile(r"P\d+(?::| line )(\d+)")
CALLS = re.compile(r"called on line ([0-9, ]+)")
RELEASE = re.compile(r"Cuda compilation tools, release \S+, (V\S+)")
OPTIONS = (("-O3",), ("-O3", "-G", "-dopt=on"), ("-Xcicc", "-O0"), ("-O0", "-G"))
"""Optimized and not, without and with debug information; ``-G`` alone compiles for the device at -O0."""


@pytest.fixture
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)


def shares(names: list[str]) -> list[object]:
    """``names`` as parameters, those of ``SLOW`` with the marker."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names]


def named_lines(results: list[Result]) -> set[int]:
    """The lines of the source that the reports of contradicted claims name."""
    rows = [row for result in results if result.conclusion == "contradicted" for row in note_lines(result)]
    places = {int(line) for row in rows for line in PLACE.findall(row)}
    return places | {int(line) for row in rows for lines in CALLS.findall(row) for line in re.findall(r"\d+", lines)}


def planted(name: str) -> set[int]:
    """The lines of a wrong source that are wrong."""
    rows = (CUDA / f"{name}.cu").read_text().splitlines()
    return {number for number, row in enumerate(rows, 1) if row.rstrip().endswith("// WRONG")}


def test_every_idiom_has_a_wrong_version() -> None:
    wrong = defaultdict(list)
    for name in WRONG:
        wrong[name.partition(".wrong_")[0]].append(name)
    assert len(RIGHT) >= 40
    assert sorted(wrong) == RIGHT
    assert [name for name in SOURCES if not (CUDA / f"{name}.ptx").is_file()] == []
    assert [name for name in WRONG if not planted(name)] == []
    assert set(SLOW) | set(SMALL) <= set(SOURCES)


@pytest.mark.share(2)
@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", shares(RIGHT))
def test_right(name: str) -> None:
    results = decided(CUDA / f"{name}.cu", SECONDS)
    assert results
    assert [(r.test, r.quantifier, r.status) for r in results if r.conclusion != "expected"] == []
    assert all(r.execution is None for r in results)
    # An answer within bounds would say so; these loops have none that matters.
    assert {r.status for r in results} == {"complete"}


@pytest.mark.share(2)
@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", shares(WRONG))
def test_wrong(name: str) -> None:
    results = decided(CUDA / f"{name}.cu", SECONDS)
    assert "contradicted" in {r.conclusion for r in results}
    assert named_lines(results) & planted(name)


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", SMALL)
def test_both_engines(name: str) -> None:
    results = [r for r in decided(CUDA / f"{name}.cu", SECONDS, "both") if r.quantifier not in (RACES, ROBUST)]
    expected = "contradicted" if name in WRONG else "expected"
    assert results and {(r.engine, r.conclusion) for r in results} == {("both", expected)}


@pytest.mark.slow
@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in SMALL])
def test_both_engines_on_all(name: str, tally: Tally) -> None:
    """A disagreement is an error of ``check``. What one engine doesn't decide in ``BOTH`` seconds is not compared, nor
    the final states that have results of functions which are not worked out: the summary counts what was and what was
    not, and a kernel of which nothing was is a test that is skipped."""
    model, statuses = model_named("ptx-8.5"), list[str]()
    for test in read(CUDA / f"{name}.cu"):
        limits = limits_of(test, Limits(unroll=3, deadline=time.monotonic() + BOTH))
        try:
            statuses.append(check(test, model, engine="both", limits=limits, expectation=HOLDS).status)
        except PtxmmError as error:
            assert error.kind == "unsupported" and error.message.startswith(OPAQUE), error
            statuses.append("refused")
    undecided, refused = statuses.count("timeout"), statuses.count("refused")
    tally.counts["launches of tests/cuda compared"] += len(statuses) - undecided - refused
    tally.counts[f"launches of tests/cuda not decided by both engines in {BOTH} s"] += undecided
    tally.counts["launches of tests/cuda with results that are not worked out"] += refused
    if undecided + refused == len(statuses):
        pytest.skip(f"not decided in {BOTH} s" if undecided else OPAQUE)


@pytest.mark.parametrize("name", RIGHT)
def test_no_lint(name: str) -> None:
    result = lint(CUDA / f"{name}.cu")
    assert [(finding.rule, finding.line) for finding in result.findings] == []


# -- with nvcc -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def nvcc() -> str:
    """nvcc of the version that has printed the PTX."""
    path = shutil.which("nvcc")
    if path is None:
        pytest.skip("nvcc was not found")
    printed = RELEASE.search((CUDA / f"{RIGHT[0]}.ptx").read_text())
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    here = RELEASE.search(version)
    assert printed is not None
    if here is None or here[1] != printed[1]:
        pytest.skip(f"the PTX is of nvcc {printed[1]}, here is {'another' if here is None else here[1]}")
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("nvcc")
def test_the_ptx_is_what_nvcc_prints() -> None:
    done = subprocess.run(
        [sys.executable, str(CUDA / "compile.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_every_module_parses(options: tuple[str, ...], nvcc: str, tmp_path: Path, tally: Tally) -> None:
    def printed(name: str) -> Path:
        made = tmp_path / f"{name}.ptx"
        command = [nvcc, "-ptx", *arch(name), "-lineinfo", *options, "-o", str(made), f"{name}.cu"]
        if "-G" in options:
            command.remove("-lineinfo")
        done = subprocess.run(command, cwd=CUDA, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return made

    with ThreadPoolExecutor(2) as pool:
        for made in pool.map(printed, RIGHT):
            assert parse_module(made.read_text(), made.name).functions
            made.unlink()
    tally.notes.append(f"modules of nvcc {' '.join(options)}: {len(RIGHT)} parse")


def arch(name: str) -> list[str]:
    """The architecture of a source: sm_90 unless its first line says another."""
    first = (CUDA / f"{name}.cu").read_text().splitlines()[0]
    return first.partition("// nvcc:")[2].split() or ["-arch=sm_90"]


@pytest.mark.slow
@pytest.mark.usefixtures("nvcc")
@pytest.mark.parametrize("name", ["mp_fence_relaxed", "ticket_lock.wrong_relaxed_poll", "tma_load_pipeline"])
def test_check_compiles(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``ptxmm check X.cu`` with nvcc says what it says of the PTX beside it."""
    answers = []
    for suffix in ("cu", "ptx"):
        with pytest.raises(SystemExit) as ended:
            run(["check", str(CUDA / f"{name}.{suffix}"), "--json"])
        out, err = capsys.readouterr()
        assert (ended.value.code or 0, err) == (int(name in WRONG), "")
        results = json.loads(out)["results"]
        assert not any("nvcc was not found" in note["text"] for r in results for note in r["notes"])
        answers.append([(r["quantifier"], r["holds"], r["status"]) for r in results])
    assert answers[0] == answers[1]
