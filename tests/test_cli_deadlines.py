"""Time limits, interrupts and processes that end too soon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import combinations
from pathlib import Path

import pytest

import ptxmm.cli.tasks as tasks
from ptxmm import parse
from ptxmm.analysis.result import Result
from ptxmm.cli.checking import Checking
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Engine
from ptxmm.cli.settings import Settings
from ptxmm.engines.result import Limits
from ptxmm.engines.symbolic.library import library
from ptxmm.engines.symbolic.sat import Solver
from ptxmm.relations.formula import TRUE, Formulas
from tests.benchmarks.programs import counter, readers, ring
from tests.moments import ENVIRONMENT, Moment, at
from tests.support import finished, watched

MP = Path(__file__).parents[1] / "litmus" / "mp" / "MP.litmus"


def settings(timeout: float) -> Settings:
    return Settings(timeout=timeout)


def test_the_solver_gives_up_at_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    formulas = Formulas()
    solver = Solver(formulas, Limits(deadline=time.monotonic() + 30))
    holes = 14
    pigeons = [[formulas.variable() for _ in range(holes)] for _ in range(holes + 1)]
    for row in pigeons:
        solver.require(formulas.any(row))
    for column in zip(*pigeons, strict=True):
        for a, b in combinations(column, 2):
            solver.exclude(a, b)
    asked, check = threading.Event(), library().solver_check_assumptions

    def checking(*goals: object) -> object:
        asked.set()
        return check(*goals)

    def interrupt() -> None:
        asked.wait()
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(library(), "solver_check_assumptions", checking)
    user = threading.Thread(target=interrupt)
    user.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.satisfiable(TRUE)
    finally:
        signal.signal(signal.SIGINT, before)
    user.join()


@pytest.mark.parametrize("engine", [Engine.z3, Engine.enumerate])
def test_engines_notice_their_deadline(engine: Engine) -> None:
    (test,) = parse(readers(12).ptx())
    with watched():
        report = finished(tasks.run(Checking(engine, False, "all"), Job(test, "ptx-8.5", None, False), settings(1.0)))
    assert isinstance(report, Result)
    assert report.status == "timeout"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_everything_quietly(tmp_path: Path, jobs: str) -> None:
    for name in "ab":
        (tmp_path / f"{name}.litmus").write_text(readers(12).ptx())
    moment = Moment("worker", 20_000, signal.SIGINT, "group")  # as a terminal does: to every process of the group
    found = at(moment, tmp_path, "outcomes", "a.litmus", "b.litmus", "--jobs", jobs)
    assert (found.came, found.code, found.out, found.err) == (True, 130, "", "interrupted\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_limit_that_strikes_anywhere_costs_its_test_only(tmp_path: Path, jobs: str) -> None:
    """Whatever Z3 was doing, the tests after it are decided, and the document is whole."""
    for name, text in (
        ("a", readers(12).ptx()),
        ("b", ring(16).ptx()),
        ("c", counter(8).ptx()),
        ("e", readers(13).ptx()),
        ("f", ring(17).ptx()),
    ):
        (tmp_path / f"{name}.litmus").write_text(text)
    for name in ("d", "g"):
        (tmp_path / f"{name}.litmus").write_bytes(MP.read_bytes())
    command = [sys.executable, "-m", "ptxmm", "outcomes", ".", "--json", "--jobs", jobs, "--model", "ptx-8.5"]
    done = subprocess.run([*command, "--timeout", "1.5"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    found = {entry["file"][0]: entry.get("status", "error") for entry in json.loads(done.stdout)["results"]}
    assert (done.returncode, done.stderr) == (3, "")
    assert set(found) == set("abcdefg") and "error" not in found.values()
    assert found["a"] == found["e"] == "timeout" and found["d"] == found["g"] == "complete"
