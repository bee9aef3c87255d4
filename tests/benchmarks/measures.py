"""What tools need for tests: seconds, memory, and how many of their answers are right."""

from __future__ import annotations

import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from tests.benchmarks.tools import ROOT, Answer, Sample, Tool


@dataclass(frozen=True)
class Row:
    """Work that tools are given."""

    name: str
    work: str
    samples: Callable[[Path], list[Sample]]
    """The tests, those that are generated in a folder."""
    peers: tuple[str, ...]
    ours: tuple[str, ...]
    family: str = ""
    size: int = 0
    cores: int | None = None
    passes: int = 1
    """More than one: how long a test takes in the last pass over all, the median, as the tools report it."""
    processes: int = 1
    """More than one: the median of so many processes."""


@dataclass(frozen=True)
class Measure:
    """What one tool needs for one row of the table."""

    row: str
    tool: str
    seconds: float
    """Of the clock."""
    cpu: float
    """Of the processor, all threads and children."""
    mebibytes: float
    right: int = 0
    wrong: int = 0
    unknown: int = 0
    over: bool = False
    """The time limit ended it."""


class Limit(NamedTuple):
    """How many seconds a process may take, of the clock or (on Linux) of the processor."""

    seconds: float
    clock: Literal["seconds", "cpu"]


class Process(NamedTuple):
    """What became of a process."""

    seconds: float
    cpu: float
    mebibytes: float
    output: str
    over: bool


def process(command: Sequence[str], limit: Limit, cores: int | None, environment: Mapping[str, str]) -> Process:
    """Run a command to its end, or to the limit, on some of the processors."""
    if cores is not None and hasattr(os, "sched_setaffinity"):
        pinned = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
        command = ["taskset", "-c", pinned, *command]
    over = threading.Event()
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        running = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            process_group=0,
        )

        def end() -> None:
            over.set()
            os.killpg(running.pid, signal.SIGKILL)

        timer = threading.Timer(limit.seconds if limit.clock == "seconds" else 60 * limit.seconds, end)
        timer.start()
        if limit.clock == "cpu":
            resource.prlimit(running.pid, resource.RLIMIT_CPU, (math.ceil(limit.seconds),) * 2)
        try:
            _, status, usage = os.wait4(running.pid, 0)
        except BaseException:
            end()
            raise
        finally:
            timer.cancel()
        seconds, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
        running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
            over.set()
        output.seek(0)
        # In bytes on macOS, in KiB elsewhere.
        peak = usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
        if over.is_set():
            seconds, cpu = (limit.seconds, cpu) if limit.clock == "seconds" else (seconds, limit.seconds)
        return Process(seconds, cpu, peak, output.read(), over.is_set())


def measured(rows: Sequence[Row], tools: Sequence[Tool], limit: Limit) -> Iterator[tuple[Measure, list[str]]]:
    """Row by row what each tool needs, the first tool on all of them, and where its lists of final states differ from
    those of the first. A tool that is over the limit is not asked for the larger sizes of the family."""
    beyond: set[tuple[str, str]] = set()
    for row in rows:
        with tempfile.TemporaryDirectory() as folder:
            samples = row.samples(Path(folder))
            first: list[list[Answer]] = []
            for tool in tools if samples else ():
                if (tool is not tools[0] and tool.name not in row.peers) or (row.family, tool.name) in beyond:
                    continue
                found, answers = measure(tool, row, samples, limit)
                if found.over and row.family:
                    beyond.add((row.family, tool.name))
                first = first or answers
                unlike = differences(samples, first, answers)
                yield replace(found, right=found.right - len(unlike), wrong=found.wrong + len(unlike)), unlike


def measure(tool: Tool, row: Row, samples: Sequence[Sample], limit: Limit) -> tuple[Measure, list[list[Answer]]]:
    """One tool on one row, and its answers to each sample."""
    runs: list[Process] = []
    answers: list[list[Answer]] = []
    for part in [samples] if tool.many else [[sample] for sample in samples]:
        command = tool.command(part, row.ours)
        runs += [process(command, limit, row.cores, tool.environment) for _ in range(row.processes)]
        answers += tool.answers(runs[-1].output, part) if not runs[-1].over else [[] for _ in part]
    average = sum if row.processes == 1 else statistics.median
    seconds, cpu = float(average(run.seconds for run in runs)), float(average(run.cpu for run in runs))
    last = [answer.seconds for found in answers[-(len(answers) // row.passes) :] for answer in found]
    if row.passes > 1 and last:
        seconds = cpu = statistics.median(last)
    right, wrong, unknown = judged(samples, answers)
    peak, over = max(run.mebibytes for run in runs), any(run.over for run in runs)
    if limit.clock == "cpu" and unknown and max(run.cpu for run in runs) > 0.85 * limit.seconds:
        over, cpu = True, limit.seconds  # it ended a child, whose parent says that there is no answer
    return Measure(row.name, tool.name, seconds, cpu, peak, right, wrong, unknown, over), answers


def judged(samples: Sequence[Sample], answers: Sequence[Sequence[Answer]]) -> tuple[int, int, int]:
    """How many answers are right, wrong and unknown. Nothing being known of them, a list of final states is right."""
    said: list[bool | None] = []
    for sample, given in zip(samples, answers, strict=True):
        if sample.file.is_dir():  # whose files say what is expected
            said += [answer.holds for answer in given]
        elif sample.holds:
            told = [answer.holds for answer in given] + [None] * len(sample.holds)
            said += [None if b is None else b is a for a, b in zip(sample.holds, told, strict=False)]
        else:
            listed = given[0].states if given else None
            said.append(None if listed is None else sample.states in (None, len(listed)))
    return said.count(True), said.count(False), said.count(None)


def differences(
    samples: Sequence[Sample], ours: Sequence[Sequence[Answer]], theirs: Sequence[Sequence[Answer]]
) -> list[str]:
    """The tests whose lists of final states do not fit: they are to be the same, or theirs a part of ours."""
    out = []
    for sample, given, other in zip(samples, ours, theirs, strict=True):
        for a, b in zip(given, other, strict=False):
            if a.states is None or b.states is None or a.states == b.states:
                continue
            if sample.same or not a.states >= b.states:
                out.append(f"{sample.file.stem}: {len(a.states)} final states, and {len(b.states)}")
    return out
