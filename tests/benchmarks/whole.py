"""Growth of whole launches with threads, CTAs and tiles: ``python -m tests.benchmarks.whole [FILE.svg]``.

A sum by a tree in shared memory and barriers of a grid (``tree`` and ``grid`` of ``tests.test_whole``), and pipelines
(``tests.test_whole_pipelines``): processor time from the text to the answer and the most memory of the process that
does it, by the number of accesses. ``FILE.svg`` gets the curves, over thousands of accesses.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole
from tests.benchmarks.report import Panel, svg
from tests.test_whole import grid, tree
from tests.test_whole_pipelines import GROUPS, HEAD, LOADS, RING

SIZES = [(64, 1), (256, 1), (1024, 1), (256, 8), (1024, 8), (1024, 32), (1024, 64)]
GRIDS = [(256, 8), (1024, 8), (1024, 32), (1024, 64)]
PIPELINES = [("cp.async", 128, 4096, GROUPS), ("bulk copies", 160, 2048, LOADS)]
CTAS = (1, 8, 32)
TILES = (12, 48, 192, 768)
Row = tuple[str, int, float, float]
"""The size in words, the accesses, processor seconds, mebibytes."""


def families() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What is measured: launches of growing size, each with its size in words."""
    for name, kernel, sizes in (("tree", tree, SIZES), ("barriers of a grid", grid, GRIDS)):
        yield name, [(f"{threads} x {ctas}", kernel(threads, ctas)) for threads, ctas in sizes]
    ring = RING.replace("st.global.u32 [%d4], %r16", "ld.global.u32 %r16, [%d4]")
    yield "mbarriers", [(f"256 x 2, {tiles} tiles", _text(256, 2, 1024, ring.format(tiles=tiles))) for tiles in TILES]
    for name, threads, size, body in PIPELINES:
        yield name, [(f"{threads} x {ctas}", _text(threads, ctas, size, body)) for ctas in CTAS]


def _text(threads: int, ctas: int, size: int, body: str) -> str:
    head = HEAD.format(block=f"{threads}\n// ptxmm: grid = {ctas}", bytes=size)
    return f"{head}{body}    ret;\n}}\n"


def main(*arguments: str) -> None:
    """Print the table, and write the curves."""
    panels: tuple[list[Panel], list[Panel]] = ([], [])
    print("| launch | threads x CTAs | accesses | processor time | memory |\n|---|---|---:|---:|---:|")
    for name, launches in families():
        rows = [(size, *_measured(text)) for size, text in launches]
        for size, accesses, seconds, memory in rows:
            print(f"| {name} | {size} | {accesses:,} | {seconds:.2f} s | {memory:.0f} MiB |", flush=True)
        panels[0].append(Panel(f"{name}, s", {"ptxmm": [(row[1] / 1000, row[2]) for row in rows]}))
        panels[1].append(Panel(f"{name}, MiB", {"ptxmm": [(row[1] / 1000, row[3]) for row in rows]}))
    for path in arguments:
        Path(path).write_text(svg([*panels[0], *panels[1]], len(panels[0])), encoding="utf-8")


def _measured(text: str) -> tuple[int, float, float]:
    """The accesses, the processor time and the memory of one launch, in a process of its own."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(_one, (text,))


def _one(text: str) -> tuple[int, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(text, encoding="utf-8")
        start = time.process_time()
        (launched,) = kernels(path)
        found = whole(launched, str(path))
        assert found.answer == "race-free", found
        seconds = time.process_time() - start
    return found.accesses, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
