"""Whole launches beside SentryWard: ``python -m tests.benchmarks.sentryward PATH/TO/sentryward [NAME...]``.

SentryWard (PyPI, 0.1.1) decides the synchronization and the races of a kernel with all threads of its launch; fences
and the memory model of PTX are not modelled there. It is installed in an environment of its own. Both get the PTX of
each kernel of tests/cuda, or of those with these names, and its launch; SentryWard no values of arguments. Prints a row
for each kernel that it does not refuse, and how many there are of each kind.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ptxmm.engines.result import Limits
from ptxmm.formats.modules.kernel import Kernel
from ptxmm.formats.modules.read import kernels
from ptxmm.whole.analysis import whole

CUDA = Path(__file__).resolve().parent.parent / "cuda"
SECONDS = 60
REFUSED = ("unsupported", "invalid_input", "timeout", "error", "inconclusive")


def theirs(command: str, path: Path, kernel: Kernel, folder: Path) -> tuple[str, float]:
    """What SentryWard answers, and how many seconds it takes."""
    grid = kernel.grid
    launch = {
        "grid_dim": grid.grid,
        "block_dim": grid.block,
        "cluster_dim": grid.cluster or (1, 1, 1),
        "dynamic_shared_bytes": grid.shared,
    }
    given = {"schema": "spverify.kernel-input/v1", "launch": launch, "arguments": []}
    (folder / "input.json").write_text(json.dumps(given), encoding="utf-8")
    start = time.perf_counter()
    arguments = [command, str(path), "--input", str(folder / "input.json"), "--timeout", str(SECONDS)]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    try:
        return str(json.loads(ran.stdout)["result"]), seconds
    except (json.JSONDecodeError, KeyError):
        return "error", seconds


def main(command: str, names: list[str]) -> None:
    """Print the table."""
    counts: Counter[tuple[str, str, str]] = Counter()
    print("| kernel | SentryWard | seconds | ptxmm | seconds |\n|---|---|---:|---|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(CUDA.glob("*.ptx")):
            if names and path.stem not in names:
                continue
            for launched in kernels(path):
                if len(launched) > 1:
                    continue
                answer, seconds = theirs(command, path, launched[0], Path(folder))
                start = time.perf_counter()
                ours: str = whole(launched, str(path), Limits(deadline=time.monotonic() + SECONDS)).answer
                own = time.perf_counter() - start
                kind = "wrong" if ".wrong_" in path.stem else "right"
                counts[kind, answer, ours] += 1
                if answer not in REFUSED:
                    print(f"| `{path.stem}` | {answer} | {seconds:.2f} | {ours} | {own:.2f} |", flush=True)
    print("\n| kernels of tests/cuda | SentryWard | ptxmm | how many |\n|---|---|---|---:|")
    for (kind, answer, ours), count in sorted(counts.items()):
        print(f"| {kind} | {answer} | {ours} | {count} |")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
