"""Growth of whole launches with threads and CTAs: ``python -m tests.benchmarks.whole``.

A sum by a tree in shared memory and barriers of a grid (``tree`` and ``grid`` of ``tests.test_whole``): processor time
and accesses, from the text to the answer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from tests.test_whole import grid, tree

SIZES = [(64, 1), (256, 1), (1024, 1), (256, 8), (1024, 8), (1024, 32), (1024, 64)]
GRIDS = [(256, 8), (1024, 8), (1024, 32), (1024, 64)]


def main() -> None:
    """Print two tables."""
    for kernel, sizes in ((tree, SIZES), (grid, GRIDS)):
        print(f"\n{kernel.__name__}\n")
        print("| threads of a CTA | CTAs | accesses | processor time |\n|---|---|---|---|")
        for threads, ctas in sizes:
            _measure(kernel(threads, ctas), threads, ctas)


def _measure(text: str, threads: int, ctas: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(text, encoding="utf-8")
        start = time.process_time()
        (kernel,) = kernels(path)
        found = whole(kernel, str(path))
        assert found.answer == "race-free", found
        print(f"| {threads} | {ctas} | {found.accesses:,} | {time.process_time() - start:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
