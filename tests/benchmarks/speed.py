"""How fast ptxmm is on this machine: ``python -m tests.benchmarks.speed``.

PTXMM_CORPORA names the folder of the public test corpora (default: ../shared/corpora beside the tree).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ptxmm import Limits, PtxmmError, Result, Test, check, load_model, parse, read
from ptxmm.ptx.ops import Branch
from tests.benchmarks.programs import counter, message, ring

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("PTXMM_CORPORA", ROOT.parent / "shared" / "corpora"))


def main() -> None:
    """Print one figure a line, each with the time it should stay under."""
    corpus = CORPORA / "dartagnan"
    if corpus.is_dir():
        straight_line(corpus)
        for path in sorted(corpus.glob("Manual/Ticketlock-*")):
            (test,) = read(path)
            one(f"{path.stem}, verdict", 1.0, test, enumerate_all=False)
            one(f"{path.stem}, all final states", None, test)
    else:
        print(f"no corpus at {corpus}: set PTXMM_CORPORA")
    for limit, text in ((1.0, ring(16)), (0.2, message(18))):
        (test,) = parse(text)
        one(test.name, limit, test, enumerate_all=False)
    (test,) = parse(counter(8))
    one(f"{test.name}, all final states", 2.0, test)
    small = sorted((ROOT / "litmus").rglob("*.litmus"))[:1] or sorted(corpus.rglob("*.litmus"))[:1]
    if small:
        process("check", str(small[0]))
        runs = sorted(process("check", str(small[0])) for _ in range(20))
        figure("`ptxmm check` of one file, new process, median of 20", statistics.median(runs), 0.2)
        told = statistics.median(process("--version") for _ in range(20))
        figure("`ptxmm --version`, new process, median of 20", told, 0.06)
    if corpus.is_dir():
        figure("`ptxmm check` of the whole corpus, --jobs 2", process("check", str(corpus), "--jobs", "2"), 5.0)


def straight_line(corpus: Path) -> None:
    """All final states of every test without branches, in this process."""
    tests = [test for path in sorted(corpus.rglob("*.litmus")) for test in read(path)]
    tests = [t for t in tests if not any(isinstance(op, Branch) for thread in t.threads for op in thread.body)]
    timed(lambda: check(tests[0], load_model(tests[0].default_model)))  # the libraries are loaded
    for all_state in (False, True):
        times: dict[str, float] = {}
        for test in tests:
            model = load_model(test.default_model)
            try:
                times[test.name] = timed(partial(check, test, model, all_state=all_state))
            except PtxmmError as error:
                print(f"    no result for {test.name}: {error.message}")
        what = f"{len(tests)} straight-line tests, all final states{' (--all-state)' if all_state else ''}"
        figure(f"{what}, median", statistics.median(times.values()), None if all_state else 0.005)
        figure(f"{what}, mean", statistics.fmean(times.values()), None if all_state else 0.009)
        slowest = max(times, key=times.__getitem__)
        print(f"    slowest: {slowest} {times[slowest] * 1000:.1f} ms; sum {sum(times.values()):.2f} s")


def one(name: str, limit: float | None, test: Test, enumerate_all: bool = True) -> None:
    """One test under its default model, with the verdict."""
    results: list[Result] = []
    model = load_model(test.default_model)
    deadline = time.monotonic() + 60
    seconds = timed(
        lambda: results.append(
            check(test, model, limits=Limits(deadline=deadline), enumerate_all=enumerate_all),
        )
    )
    result = results[0]
    figure(f"{name}: {result.quantifier} is {result.holds}, {result.status}", seconds, limit)


def timed(action: Callable[[], object]) -> float:
    """The seconds that ``action`` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def process(*arguments: str) -> float:
    """The seconds that a new process of ptxmm takes."""
    command = [sys.executable, "-m", "ptxmm", *arguments]
    # As installed: with compiled modules, whatever this shell says about writing them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", os.path.join(tempfile.gettempdir(), "ptxmm-benchmark-bytecode"))
    quiet = subprocess.DEVNULL
    return timed(lambda: subprocess.run(command, cwd=ROOT, stdout=quiet, stderr=quiet, env=environment))


def figure(name: str, seconds: float, limit: float | None) -> None:
    """One line: the time, the limit and whether it is met."""
    met = "" if limit is None else f"  (limit {limit * 1000:.0f} ms: {'met' if seconds < limit else 'NOT MET'})"
    print(f"{seconds * 1000:9.1f} ms  {name}{met}", flush=True)


if __name__ == "__main__":
    main()
