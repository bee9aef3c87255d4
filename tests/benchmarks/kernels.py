"""Time and memory for each right idiom of tests/cuda: ``python -m tests.benchmarks.kernels [NAME ...]``.

Each is read (from the PTX beside its source) and all its claims are decided, in a process of its own on one core.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ptxmm.errors import PtxmmError
from tests.benchmarks.speed import ROOT, figure

CUDA = ROOT / "tests" / "cuda"
SECONDS = 300
PIPELINE = "tma_load_pipeline"
"""Two CTAs of two warps, two stages."""
LIMIT = 10.0


def main(arguments: list[str]) -> None:
    """Print the time and the memory of each idiom, the slowest last, then the median and the worst."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(one(CUDA / f"{arguments[1]}.ptx")))
        return
    sources = sorted(path.stem for path in CUDA.glob("*.cu") if ".wrong_" not in path.name)
    names = [name for name in sources if not arguments or name in arguments]
    found = {name: measured(name) for name in names}
    for name in sorted(names, key=lambda name: found[name][0]):
        seconds, mebibytes, answer = found[name]
        figure(f"{mebibytes:6.0f} MiB  {name}: {answer}", seconds, LIMIT if name == PIPELINE else None)
    if len(names) > 1:
        times = {name: found[name][0] for name in names}
        peaks = {name: found[name][1] for name in names}
        for column, unit, values in (("time", "s", times), ("memory", "MiB", peaks)):
            worst = max(values, key=values.__getitem__)
            print(
                f"{len(names)} idioms, {column}: median {statistics.median(values.values()):.2f} {unit}, "
                f"worst {values[worst]:.2f} {unit} ({worst})"
            )


def measured(name: str) -> tuple[float, float, str]:
    """The seconds, the MiB at most and the answer of a process that decides one idiom."""
    command = [sys.executable, "-m", "tests.benchmarks.kernels", "--one", name]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    seconds, mebibytes, answer = json.loads(done.stdout)
    return float(seconds), float(mebibytes), str(answer)


def one(path: Path) -> tuple[float, float, str]:
    """The seconds for all claims of one kernel, the MiB that this process has held at most, and the answer."""
    from tests.decided import decided

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.perf_counter()
    try:
        results = decided(path, SECONDS)
        answer = ", ".join(dict.fromkeys(f"{r.conclusion} ({r.status})" for r in results))
    except PtxmmError as error:
        answer = error.message
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In bytes on macOS, in KiB elsewhere.
    return seconds, peak / (1 << 20 if sys.platform == "darwin" else 1 << 10), answer


if __name__ == "__main__":
    main(sys.argv[1:])
