"""Time limits, interrupts and processes that end too soon."""

from __future__ import annotations

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
from ptxmm.cli.options import Engine, Settings
from ptxmm.cli.workers import GRACE
from ptxmm.engines.result import Limits
from ptxmm.engines.sat import Solver
from ptxmm.relations.formula import TRUE, Formulas
from tests.benchmarks.programs import readers

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def settings(timeout: float) -> Settings:
    return Settings(timeout=timeout)


def test_the_solver_gives_up_at_an_interrupt() -> None:
    formulas = Formulas()
    solver = Solver(formulas, Limits(deadline=time.monotonic() + 30))
    holes = 14
    pigeons = [[formulas.variable() for _ in range(holes)] for _ in range(holes + 1)]
    for row in pigeons:
        solver.require(formulas.any(row))
    for column in zip(*pigeons, strict=True):
        for a, b in combinations(column, 2):
            solver.exclude(a, b)
    alarm = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    alarm.start()
    start = time.monotonic()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.satisfiable(TRUE)
    finally:
        signal.signal(signal.SIGINT, before)
    alarm.join()
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("engine", [Engine.z3, Engine.enumerate])
def test_engines_notice_their_deadline(engine: Engine) -> None:
    (test,) = parse(readers(12))
    start = time.monotonic()
    report = tasks.run(Checking(engine, False, "all"), Job(test, "ptx-8.5", None, False), settings(1.0))
    assert isinstance(report, Result)
    assert report.status == "timeout"
    assert time.monotonic() - start < 1.0 + GRACE


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_everything_quietly(tmp_path: Path, jobs: str) -> None:
    for name in "ab":
        (tmp_path / f"{name}.litmus").write_text(readers(12))
    command = [sys.executable, "-m", "ptxmm", "outcomes", "a.litmus", "b.litmus", "--jobs", jobs]
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(2.5)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, "", "interrupted\n")
