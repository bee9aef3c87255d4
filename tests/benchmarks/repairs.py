"""How long ``fences`` takes to the first repair of wrong kernels: ``python -m tests.benchmarks.repairs [N]``.

The first ``N`` (20) of ``tests/cuda/*.wrong_*.ptx`` by their names; processor time, as other work may go on beside it.
"""

from __future__ import annotations

import resource
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1] / "cuda"
SECONDS = 40
"""Of processor time for a kernel, its compilation and the loading of ptxmm left out."""


def main() -> None:
    """Print a row of a table for each kernel."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print("| kernel | first repair (s) | its cost | its steps |\n|---|---:|---:|---|")
    for path in sorted(KERNELS.glob("*.wrong_*.ptx"))[:count]:
        print(f"| `{path.stem}` | {measured(path)} |", flush=True)


def measured(path: Path) -> str:
    """What the row of a kernel says, found in a process of its own."""
    context = get_context("spawn")
    receiving, sending = context.Pipe(False)
    process = context.Process(target=_search, args=(path, sending))
    process.start()
    sending.close()
    try:
        row: str = receiving.recv()
    except EOFError:
        row = f"none in {SECONDS} | |"
    process.join()
    return row


def _search(path: Path, connection: Connection) -> None:
    from ptxmm.analysis.fences import searched
    from ptxmm.cat import load
    from ptxmm.formats import read

    (test, *_) = read(path)
    model = load("ptx-8.5")
    begin = _used()
    resource.setrlimit(resource.RLIMIT_CPU, (int(begin) + SECONDS, int(begin) + SECONDS))
    search = searched(test, model)
    try:
        found = next(search).found
    except StopIteration as end:
        connection.send(f"{_used() - begin:.1f}: {_none(end.value.holds)} | |")
        return
    steps = "; ".join(dict.fromkeys(f"{c.new}" for c in found.changes))
    connection.send(f"{_used() - begin:.1f} | {found.cost} | `{steps}`")


def _none(holds: bool | None) -> str:
    return {True: "it holds", False: "no repair", None: "not decided"}[holds]


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
