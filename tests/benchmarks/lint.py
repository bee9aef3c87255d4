"""How long ``ptxmm lint`` takes for a large source, process included: ``python -m tests.benchmarks.lint [LINES]``."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.speed import figure

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 2.0


def source(lines: int) -> str:
    """A CUDA source of at least ``lines`` lines: the right samples of ``tests/lint`` again and again, every function
    with a name and constants of its own."""
    parts = [path.read_text() for path in sorted((ROOT / "tests" / "lint").glob("right_*.cu"))]
    text, number = "", 0
    while text.count("\n") < lines:
        number += 1
        for part in parts:
            text += re.sub(r"\b(\w+)\((?=[\w:]+[ *&])", rf"\1_{number}(", part).replace("0xffffffff", hex(number))
    return text


def main(lines: int) -> None:
    """Print the time of one run."""
    text = source(lines)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "large.cu")
        file.write_text(text)
        start = time.perf_counter()
        command = [sys.executable, "-m", "ptxmm", "lint", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(done.stdout.strip().split("\n")[-1])
    figure(f"lint, {text.count(chr(10))} lines with {text.count('asm')} asm statements", seconds, LIMIT)
    figure("the same, time of the processor", usage.ru_utime + usage.ru_stime, LIMIT)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
