"""Growth of whole launches with threads and CTAs: ``python -m tests.benchmarks.whole``.

A sum by a tree in shared memory (``tests.test_whole.tree``): processor time and accesses, from the text to the answer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from tests.test_whole import tree

SIZES = [(64, 1), (256, 1), (1024, 1), (256, 8), (1024, 8), (1024, 32), (1024, 64)]


def main() -> None:
    """Print a table."""
    print("| threads of a CTA | CTAs | accesses | processor time |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.ptx"
        for threads, ctas in SIZES:
            path.write_text(tree(threads, ctas), encoding="utf-8")
            start = time.process_time()
            (kernel,) = kernels(path)
            found = whole(kernel, str(path))
            assert found.answer == "race-free"
            print(f"| {threads} | {ctas} | {found.accesses:,} | {time.process_time() - start:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
