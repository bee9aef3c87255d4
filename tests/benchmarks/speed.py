"""How fast ptxmm is on this machine, in one process: ``python -m tests.benchmarks.speed``.

PTXMM_CORPORA names the folder of the public test corpora (default: ../shared/corpora beside the tree).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ptxmm import PtxmmError, check, load_model, read
from ptxmm.ptx.ops import Branch

ROOT = Path(__file__).resolve().parents[2]
CORPORA = Path(os.environ.get("PTXMM_CORPORA", ROOT.parent / "shared" / "corpora"))


def main() -> None:
    """All final states of every test without branches."""
    corpus = CORPORA / "dartagnan"
    tests = [test for path in sorted(corpus.rglob("*.litmus")) for test in read(path)]
    tests = [t for t in tests if not any(isinstance(op, Branch) for thread in t.threads for op in thread.body)]
    if not tests:
        print(f"no corpus at {corpus}: set PTXMM_CORPORA")
        return
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


def timed(action: Callable[[], object]) -> float:
    """The seconds that ``action`` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def figure(name: str, seconds: float, limit: float | None) -> None:
    """One line: the time, the limit and whether it is met."""
    met = "" if limit is None else f"  (limit {limit * 1000:.0f} ms: {'met' if seconds < limit else 'NOT MET'})"
    print(f"{seconds * 1000:9.1f} ms  {name}{met}", flush=True)


if __name__ == "__main__":
    main()
