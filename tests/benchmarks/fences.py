"""How long ``fences`` takes on the real bugs: ``python -m tests.benchmarks.fences``."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path

from ptxmm.analysis.fences import fences
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from tests.benchmarks.speed import figure, timed

BUGS = Path(__file__).resolve().parents[2] / "litmus" / "bugs"
SECONDS = 60


def main() -> None:
    """Print the median and the slowest, all repairs and reductions listed."""
    seconds: dict[str, float] = {}
    for path in sorted(BUGS.glob("*.litmus")):
        for test in read(path):
            limits = Limits(deadline=time.monotonic() + SECONDS)
            seconds[test.name] = timed(partial(fences, test, load(test.default_model), most=None, limits=limits))
    slowest = max(seconds, key=seconds.__getitem__)
    figure(f"fences, {len(seconds)} tests of litmus/bugs, median", statistics.median(seconds.values()), 2.0)
    figure(f"fences, the slowest: {slowest}", seconds[slowest], 20.0)


if __name__ == "__main__":
    main()
