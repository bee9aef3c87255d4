"""Sweeps: what is kept, what is done again, processes that are killed, clusters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from ptxmm.analysis.swept import Swept
from ptxmm.cli.generating import meaningful
from ptxmm.cli.sweeping import ATTEMPTS, Batch, Known, Options, checked, identity, local, program, swept, unit
from ptxmm.errors import PtxmmError
from ptxmm.generate.cycles.cycle import parse
from ptxmm.generate.cycles.family import Family, every, shapes
from ptxmm.generate.cycles.litmus import litmus
from ptxmm.render import schema
from tests.commands import Run
from tests.support import ROOT

OPTIONS = Options("z3", 3, 60.0, None, 1024)
SMALL = Family(orders=("relaxed",), placements=("cta", "gpu"))
CYCLES = list(every(SMALL, list(shapes(SMALL))))
UNITS = [unit(litmus(cycle), cycle.name, "", "ptx-8.5", OPTIONS) for cycle in CYCLES]


def same(row: Swept) -> Swept:
    """A result without what changes from run to run."""
    return replace(row, seconds=0.0, kept=False)


@pytest.fixture(scope="module")
def results() -> dict[str, Swept]:
    with local(2) as (submit, slots):
        return {row.test: same(row) for row in swept(UNITS, OPTIONS, submit, slots, lambda rows: None)}


def test_every_test_has_a_result(results: dict[str, Swept]) -> None:
    assert set(results) == {cycle.name for cycle in CYCLES} and len(results) == 12
    assert {row.said for row in results.values()} == {"allowed"}
    assert all(row.states >= 3 and row.status == "complete" for row in results.values())


def test_a_key_is_of_all_that_a_result_follows_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text, other = litmus(parse("MP")), litmus(parse("SB"))
    own = tmp_path / "own.cat"
    own.write_text('include "part.cat"\n')
    (tmp_path / "part.cat").write_text("acyclic po as Order\n")
    cases = [
        (text, "ptx-8.5", OPTIONS),
        (other, "ptx-8.5", OPTIONS),
        (text, "ptx-6.0", OPTIONS),
        (text, "ptx-8.5[vector=whole]", OPTIONS),
        (text, str(own), OPTIONS),
        (text, "ptx-8.5", replace(OPTIONS, engine="both")),
        (text, "ptx-8.5", replace(OPTIONS, unroll=4)),
        (text, "ptx-8.5", replace(OPTIONS, isa="8.6")),
    ]
    keys = [unit(text, "t", "", model, options).key for text, model, options in cases]
    assert len(set(keys)) == len(keys)
    assert unit(text, "other", "f.litmus", "ptx-8.5", replace(OPTIONS, timeout=1.0)).key == keys[0]
    identity.cache_clear()
    (tmp_path / "part.cat").write_text("acyclic rf as Order\n")
    assert unit(text, "t", "", str(own), OPTIONS).key not in keys
    identity.cache_clear()
    monkeypatch.setattr("ptxmm.cli.sweeping.program", lambda: "another")
    assert unit(text, "t", "", "ptx-8.5", OPTIONS).key not in keys
    identity.cache_clear()
    assert program().startswith("0.1.0+")


@pytest.mark.parametrize("times", [1, 2 * ATTEMPTS])
def test_a_process_that_is_killed_loses_nothing(times: int, results: dict[str, Swept]) -> None:
    killed: list[int] = []

    def kill(process: subprocess.Popen[str]) -> None:
        if len(killed) < times:
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)

    saved: list[Swept] = []
    with ThreadPoolExecutor(2) as pool:
        submit = partial(pool.submit, partial(checked, started=kill))
        rows = list(swept(UNITS, OPTIONS, submit, 2, saved.extend))
    assert len(killed) == times and saved == rows and {row.test for row in rows} == set(results)
    lost = [row for row in rows if row.error is not None]
    assert all(row.error and row.error.kind == "killed" and not row.lasting for row in lost)
    assert [same(row) for row in rows if row.error is None] == [
        results[row.test] for row in rows if row.error is None
    ] and (bool(lost) <= (times > 1))


def test_a_sweep_goes_on_where_it_was(tmp_path: Path, results: dict[str, Swept]) -> None:
    path = tmp_path / "results.jsonl"

    class Ended(Exception):
        pass

    def end(known: Known, rows: list[Swept]) -> None:
        known.add(rows)
        raise Ended

    with pytest.raises(Ended), local(1) as (submit, _):
        list(swept(UNITS, OPTIONS, submit, 1, partial(end, Known(path))))
    with open(path, "ab") as stream:
        stream.write(b'{"analysis":"sweep","key":"cut off')  # as a machine does that is switched off
    known = Known(path)
    missing = [one for one in UNITS if one.key not in known.rows]
    assert 0 < len(known.rows) < len(UNITS) and path.read_bytes().endswith(b"}\n")
    with local(1) as (submit, slots):
        list(swept(missing, OPTIONS, submit, slots, known.add))
    assert {row.test: same(row) for row in Known(path).rows.values()} == results
    assert len(path.read_bytes().splitlines()) == len(UNITS)


def test_what_is_not_lasting_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    row = Swept("k", "", "t", "ptx-8.5", "z3", status="timeout")
    Known(path).add([row, replace(row, key="l", status="complete")])
    assert list(Known(path).rows) == ["l"]
    path.write_text("{}\nno json\n")
    with pytest.raises(PtxmmError, match="no result of a sweep"):
        Known(path)


def test_another_version_elsewhere() -> None:
    with pytest.raises(PtxmmError, match="another version"):
        checked(Batch((UNITS[0],), OPTIONS, "another"))


def test_errors_are_results(results: dict[str, Swept]) -> None:
    """A test that cannot be read, one that the model does not cover, and one that can be checked, in one batch."""
    cluster = litmus(parse("PodWW relaxed.cluster Rfe PodRR Fre"))
    units = [unit(text, "t", "", "ptx-6.0", OPTIONS) for text in ("PTX bad\n", cluster, litmus(parse("MP")))]
    with local(1) as (submit, slots):
        rows = {row.key: row for row in swept(units, OPTIONS, submit, slots, lambda rows: None)}
    bad, uncovered, good = (rows[one.key] for one in units)
    assert bad.error is not None and bad.error.kind == "syntax" and bad.lasting
    assert uncovered.error is not None and uncovered.error.kind == "unsupported"
    assert good.said == "allowed" and good.finding is False


@pytest.mark.slow
def test_both_engines_on_an_exhaustive_family() -> None:
    """All tests of up to four accesses in two threads, weak, relaxed, and acquire or release, in three placements.

    What must be forbidden, in one CTA and in one GPU: 9 each of MP, S and LB, with release and acquire around one
    reads-from and anything elsewhere, and 12 each of CoRR and CoRW, whose first read is strong and from a strong write.
    On two GPUs, which `.gpu` does not span, nothing is.
    """
    family = Family(placements=("cta", "gpu", "sys"), edges=("po", "pos"))
    options = replace(OPTIONS, engine="both")
    cycles = [cycle for cycle in every(family, list(shapes(family))) if meaningful(cycle)]
    units = [unit(litmus(cycle), cycle.name, "", "ptx-8.5", options) for cycle in cycles]
    with local(2) as (submit, slots):
        rows = list(swept(units, options, submit, slots, lambda rows: None))
    assert len({row.key for row in rows}) == len(rows) == 1296
    assert all(row.error is None and row.engine == "both" and row.status == "complete" for row in rows)
    assert Counter(row.said for row in rows) == {"allowed": 1296 - 102, "forbidden": 2 * (3 * 9 + 2 * 12)}


# -- a cluster ---------------------------------------------------------------------------------------------------------


MACHINES = """
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines:
        worker = next(iter(machines.workers.values())).process.process.pid
        print(machines.scheduler_address, worker, flush=True)
        input()
"""


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The address of a scheduler with two workers, and the process of one of these; all in other processes than this
    one, in which distributed would leave threads."""
    pytest.importorskip("distributed")
    script = tmp_path / "machines.py"
    script.write_text(MACHINES)
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        address, worker = process.stdout.readline().split()
        try:
            yield address, int(worker)
        finally:
            process.stdin.write("\n")
            process.stdin.flush()
            process.wait(60)


def test_a_cluster_finds_the_same(dask: tuple[str, int], results: dict[str, Swept], tmp_path: Path) -> None:
    """A worker is killed as soon as there are results."""
    address, worker = dask
    path = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "ptxmm", "sweep", "--orders", "relaxed", "--placements", "cta,gpu", "--json"]
    with subprocess.Popen(
        [*command, "--engine", "z3", "--scheduler", address, "--results", str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not path.exists():
            time.sleep(0.05)
        os.kill(worker, signal.SIGKILL)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    rows = [msgspec.json.decode(line, type=Swept) for line in out.splitlines()]
    assert {row.test: same(row) for row in rows} == results
    assert {row.test: same(row) for row in Known(path).rows.values()} == results


def test_no_scheduler(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "ptxmm", "sweep", "MP", "--scheduler", "tcp://127.0.0.1:9"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 2 and "no scheduler answers there" in ran.stderr and "Traceback" not in ran.stderr


# -- the command -------------------------------------------------------------------------------------------------------


def test_folders(run_command: Run, tmp_path: Path) -> None:
    folder, path = tmp_path / "tests", tmp_path / "results.jsonl"
    assert run_command("generate", "MP", "SB@cta", "-o", str(folder)).code == 0
    (folder / "wrong.litmus").write_text(litmus(parse("LB")).replace("exists", "Expect=ptx-8.5:never\nexists"))
    (folder / "expected.litmus").write_text(litmus(parse("LB")).replace("{\n", "Expect=ptx-8.5:never\n{\n", 1))
    ran = run_command("sweep", str(folder), "--results", str(path), "--jobs", "1", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    lines = Draft202012Validator({**json.loads(schema.text()), "$ref": "#/$defs/Swept"})
    assert [lines.is_valid(row) for row in rows] == [row["analysis"] == "sweep" for row in rows]
    assert lines.is_valid(rows[0]) and not lines.is_valid({**rows[0], "states": "3"})
    assert [Path(row["file"]).name for row in rows] == sorted(p.name for p in folder.iterdir())
    assert {Path(row["file"]).stem: row.get("observation") for row in rows if "error" not in row} == {
        "PodWW+Rfe+PodRR+Fre@gpu": "sometimes", "PodWR+Fre+PodWR+Fre@cta": "sometimes", "expected": "sometimes",
    }  # fmt: skip
    assert ran.code == 2  # a file that can't be read; else the expectation that is contradicted
    again = run_command("sweep", str(folder), "--results", str(path), "--jobs", "1")
    assert ", 3 known before, 1 error" in again.out and "expected never" in again.out and again.code == 2
    assert "wrong.litmus: error: " in again.err
    assert len(path.read_text().splitlines()) == 4


def test_a_table(run_command: Run) -> None:
    ran = run_command("sweep", "--orders", "relaxed,acquire,release", "--placements", "cta", "--model", "ptx-8.5",
                      "--model", "sc", "--jobs", "2")  # fmt: skip
    assert ran.code == 0 and ran.out.splitlines()[0].split() == ["tests", "forbidden", "allowed"]
    table = {tuple(line.split()[:2]): line.split()[2:] for line in ran.out.splitlines()[1:-1]}
    assert table["ptx-8.5", "MP"] == ["16", "4", "12"] and table["sc", "MP"] == ["16", "16", "0"]
    assert ran.out.splitlines()[-1].startswith("156 checked in ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((str(ROOT / "litmus" / "mp"), "--threads", "3"), "files are given, and a family is described"),
        ((str(ROOT / "README.md"),), "a sweep is of .litmus files"),
        (("nowhere",), "`nowhere` is no edge"),
        (("MP", "--model", "ptx-9"), "unknown model"),
    ],
)
def test_bad_usage(run_command: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = run_command("sweep", *arguments)
    assert ran.code == 2 and said in ran.err and not ran.out


def test_without_distributed(run_command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError("no", name=name)

    monkeypatch.setattr("ptxmm.cli.sweeping.import_module", missing)
    ran = run_command("sweep", "MP", "--scheduler", "tcp://127.0.0.1:9")
    assert ran.code == 2 and "pip install 'ptxmm[dask]'" in ran.err
