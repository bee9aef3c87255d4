"""Growth of whole launches with threads and CTAs: ``python -m tests.benchmarks.whole``.

A sum by a tree in shared memory and barriers of a grid (``tree`` and ``grid`` of ``tests.test_whole``), and pipelines
(``tests.test_whole_pipelines``): processor time and accesses, from the text to the answer.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from tests.test_whole import grid, tree
from tests.test_whole_pipelines import GROUPS, HEAD, LOADS, RING

PIPELINES = [
    ("mbarriers", 256, 1024, RING.format(tiles=12).replace("st.global.u32 [%d4], %r16", "ld.global.u32 %r16, [%d4]")),
    ("cp.async", 128, 4096, GROUPS),
    ("bulk copies", 160, 2048, LOADS),
]

SIZES = [(64, 1), (256, 1), (1024, 1), (256, 8), (1024, 8), (1024, 32), (1024, 64)]
GRIDS = [(256, 8), (1024, 8), (1024, 32), (1024, 64)]


def main() -> None:
    """Print the tables."""
    for kernel, sizes in ((tree, SIZES), (grid, GRIDS)):
        print(f"\n{kernel.__name__}\n")
        print("| threads of a CTA | CTAs | accesses | processor time |\n|---|---|---|---|")
        for threads, ctas in sizes:
            _measure(kernel(threads, ctas), threads, ctas)
    for name, threads, size, body in PIPELINES:
        print(f"\n{name}\n")
        print("| threads of a CTA | CTAs | accesses | processor time |\n|---|---|---|---|")
        for ctas in (1, 8):
            head = HEAD.format(block=f"{threads}\n// ptxmm: grid = {ctas}", bytes=size)
            _measure(f"{head}{body}    ret;\n}}\n", threads, ctas)


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
