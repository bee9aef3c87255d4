"""A sweep of generated tests in processes of this machine, and on a Dask cluster of as many workers, one of which is
killed on the way: how many tests a second, and whether the results are the same.

python -m tests.benchmarks.sweep [TESTS [WORKERS]]
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib import import_module
from itertools import islice
from typing import Any

from msgspec.structs import replace

from ptxmm.analysis.swept import Swept
from ptxmm.cli.sweeping import Options, Submit, Unit, cluster, local, swept, unit
from ptxmm.generate.cycles.family import Family, drawn, shapes
from ptxmm.generate.cycles.litmus import litmus

FAMILY = Family(2, 4, ("weak", "relaxed", "acquire", "release"), ("cta", "gpu", "sys"), ("cta", "gpu"))
OPTIONS = Options("both", 3, 60.0, None, None)


def units(count: int) -> list[Unit]:
    """So many tests of the family, which has 21,756."""
    cycles = islice(drawn(FAMILY, list(shapes(FAMILY)), 1), count)
    return [unit(litmus(cycle), cycle.name, "", "ptx-8.5", OPTIONS) for cycle in cycles]


def timed(tests: list[Unit], submit: Submit, slots: int, victim: int | None = None) -> tuple[dict[str, Swept], float]:
    """The results by their keys, and tests a second. The process ``victim`` is killed when half of them are there."""
    start, found = time.perf_counter(), {}
    for row in swept(tests, OPTIONS, submit, slots, lambda rows: None):
        found[row.key] = replace(row, seconds=0.0)
        if victim is not None and 2 * len(found) > len(tests):
            os.kill(victim, signal.SIGKILL)
            victim = None
    return found, len(found) / (time.perf_counter() - start)


def main() -> None:
    count, workers = (*(int(word) for word in sys.argv[1:]), *(1000, 2)[len(sys.argv) - 1 :])
    tests = units(count)
    with local(workers) as (submit, slots):
        here, rate = timed(tests, submit, slots)
    errors = sum(row.error is not None for row in here.values())
    print(f"{len(here)} tests in {workers} processes: {rate:.0f} a second, {errors} errors")
    distributed: Any = import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as machines,
        cluster(machines.scheduler_address) as (submit, slots),
    ):
        victim = next(iter(machines.workers.values())).process.process.pid
        there, rate = timed(tests, submit, slots, victim)
    print(f"{len(there)} tests on {workers} workers, one killed: {rate:.0f} a second")
    print("the results are the same" if here == there else "THE RESULTS DIFFER")


if __name__ == "__main__":
    main()
