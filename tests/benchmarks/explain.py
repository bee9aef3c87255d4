"""How long ``explain`` takes: ``python -m tests.benchmarks.explain [N]`` (every Nth test of ``litmus/``)."""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from ptxmm.analysis.explain import explain
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from tests.benchmarks.speed import figure

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20


def main(step: int) -> None:
    """Print the median and the slowest, for all tests and for those that are forbidden."""
    seconds: dict[str, float] = {}
    forbidden: dict[str, float] = {}
    tests = [test for path in sorted((ROOT / "litmus").rglob("*.litmus"))[::step] for test in read(path)]
    for test in tests:
        if test.condition is None:
            continue
        model = load(test.default_model)
        limits = Limits(deadline=time.monotonic() + SECONDS)
        try:
            result = explain(test, model, limits=limits)
        except PtxmmError as error:
            print(f"    no result for {test.name}: {error.message}")
            continue
        seconds[test.name] = result.seconds
        if result.verdict == "forbidden":
            forbidden[test.name] = result.seconds
    figure(f"explain, {len(seconds)} tests, median", statistics.median(seconds.values()), 0.1)
    figure(f"explain, {len(forbidden)} forbidden tests, median", statistics.median(forbidden.values()), None)
    slowest = max(seconds, key=seconds.__getitem__)
    print(f"    slowest: {slowest} {seconds[slowest] * 1000:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
