"""How long a picture takes: ``python -m tests.benchmarks.pictures``.

The picture of the explanation of every litmus test that has a condition, from the result to the text of the SVG.
"""

from __future__ import annotations

import statistics
import time

from ptxmm import explain, read
from ptxmm.errors import PtxmmError
from ptxmm.render.pictures import svg
from tests.benchmarks.speed import ROOT
from tests.support import model_named


def main() -> None:
    """Print the median and the worst, in milliseconds."""
    found: list[tuple[float, str]] = []
    for path in sorted((ROOT / "litmus").rglob("*.litmus")):
        for test in read(path):
            if test.condition is None:
                continue
            try:
                result = explain(test, model_named(test.default_model), misses=False, graphs=True)
            except PtxmmError:
                continue
            start = time.perf_counter()
            svg(result)
            found.append((1000 * (time.perf_counter() - start), test.name))
    median, (worst, name) = statistics.median(spent for spent, _ in found), max(found)
    print(f"{len(found)} pictures: median {median:.1f} ms, worst {worst:.1f} ms ({name})")


if __name__ == "__main__":
    main()
