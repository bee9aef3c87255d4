"""ptxmm beside Dartagnan, nvlitmus and herd7 on one machine.

A process of each tool at a time is given the same tests. What is measured is the whole process: seconds, and the memory
that it or one of its children held at most. Every answer is compared with the known one, and lists of final states with
each other. Each peer is a folder with its sources, built as its README says; without any, ptxmm is measured alone:

    python -m tests.benchmarks.peers --dartagnan ~/Dat3M --nvlitmus ~/mixedproxy --herd ~/herdtools7 \\
        --write docs/performance.md
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.benchmarks import programs, report, tools
from tests.benchmarks.measures import Limit, Measure, Row, measured
from tests.benchmarks.programs import Program
from tests.benchmarks.tools import ROOT, Sample

CORPORA = Path(os.environ.get("PTXMM_CORPORA", ROOT.parent / "shared" / "corpora"))
DARTAGNAN = ("Dartagnan eager", "Dartagnan lazy")
PASSES = 3
UNTIMED = ("--timeout", "86400")
"""The limit is that of ``--limit`` for everybody."""
FAMILIES: tuple[tuple[str, str, Callable[[int], Program], bool, tuple[int, ...]], ...] = (
    ("ring", "store, fence.sc, load in a ring of {} threads", programs.ring, False, (8, 16, 32, 64, 96, 128)),
    ("chain", "release/acquire chain through {} threads", programs.chain, False, (16, 64, 256)),
    ("counter", "{} atomic adds on one location", programs.counter, True, (4, 8, 16, 32, 64)),
    ("cas-lock", "CAS lock, {} threads", programs.cas_lock, True, (2, 4, 6, 8, 12)),
    ("ticket-lock", "ticket lock, {} threads", programs.ticket_lock, True, (2, 4, 6, 8, 16)),
)
"""What grows: its name, the program of each size, and whether its condition holds."""
CONTRADICTED = "Release_acquire_pattern"
"""The one expectation of nvlitmus that the text of the ISA contradicts: its model gives fences no proxy, so that they
are never morally strong (NVlabs/mixedproxy, issue 4); 8.10.6 calls such fences so, which forbids the outcome."""


def rows(dat3m: Path | None, mixedproxy: Path | None) -> list[Row]:
    """All rows, with the tests of the peers that are there."""
    corpus, files = partial(dartagnan_tests, dat3m), partial(nvlitmus_tests, mixedproxy)
    one = ("--jobs", "1", *UNTIMED)
    checked, listed = ("check", "--json", *one), ("outcomes", "--json", *one)
    whole = (*checked, "--model", "ptx-7.5")
    several = partial(copies, corpus)
    found = [
        Row("corpus", "Dartagnan's rows of v7.5, one process, one core", corpus, DARTAGNAN, whole, cores=1),
        Row("median", "the same, median of one, third pass", several, DARTAGNAN, whole, cores=1, passes=PASSES),
        Row("shell", "one file, from the shell", one_file, (*DARTAGNAN, "herd7"), checked, processes=10),
        Row("nvlitmus", "nvlitmus' files, all queries", files, ("nvlitmus",), ("check", *one)),
        Row("shapes", "192 tests of 14 shapes, all states, one process", shapes, ("herd7",), listed),
        row("list-ring", "ring of 8, all 255 states", programs.ring(8), None, 255, listed, "herd7"),
        row("list-8", "256 states of three threads", programs.states(4), None, 4**4, listed, "herd7"),
        row("list-12", "4,096 states of three threads", programs.states(6), None, 4**6, listed, "herd7"),
        row("list-16", "65,536 states of three threads", programs.states(8), None, 4**8, listed, "herd7"),
        Row("litmus", "`litmus/`, all verdicts, `-j 2`", bundled, (), ("check", "--jobs", "2", *UNTIMED)),
        row(
            "mbarrier", "mbarrier, 4 threads with 8 arrivals each", programs.arrivals(4, 8), True, None, ("check", *one)
        ),
    ]
    for family, work, program, holds, sizes in FAMILIES:
        for size in sizes:
            samples = partial(samples_of, program(size), (holds,), None)
            name, peers = f"{family}-{size}", DARTAGNAN[1:]
            found.append(Row(name, work.format(size), samples, peers, ("check", *one), family, size))
    return found


def row(
    name: str, work: str, program: Program, holds: bool | None, states: int | None, ours: tuple[str, ...], *peers: str
) -> Row:
    """A row of one program."""
    return Row(name, work, partial(samples_of, program, () if holds is None else (holds,), states), peers, ours)


def samples_of(program: Program, holds: tuple[bool, ...], states: int | None, folder: Path) -> list[Sample]:
    """The program as a file, with its twin if it has one."""
    file, twin = folder / f"{program.name}.litmus", None
    file.write_text(program.ptx())
    if program.has_twin():
        twin = folder / f"{program.name}.aarch64.litmus"
        twin.write_text(program.aarch64())
    return [Sample(file, holds, states, twin, not program.synchronizes())]


def shapes(folder: Path) -> list[Sample]:
    """The 192 tests of 14 shapes."""
    return [sample for program in programs.shapes() for sample in samples_of(program, (), None, folder)]


def one_file(folder: Path) -> list[Sample]:
    """Store buffering with fences."""
    return samples_of(programs.ring(2), (False,), 3, folder)


def dartagnan_tests(dat3m: Path | None, folder: Path) -> list[Sample]:
    """Dartagnan's tests with the verdicts that it expects of PTX ISA 7.5: all, or those of the corpora."""
    if dat3m:
        lines = (dat3m / "dartagnan/src/test/resources/PTXv7_5-expected.csv").read_text().split()
        return [Sample(dat3m / name, (holds == "1",)) for name, holds in (line.split(",") for line in lines)]
    listed = CORPORA / "dartagnan" / "expected.csv"
    lines = listed.read_text().split()[1:] if listed.is_file() else []
    expected = [line.split(",") for line in lines]
    return [Sample(listed.parent / e[0], (e[3] == "1",)) for e in expected if e[1:3] == ["ptx-7.5", "safety"]]


def copies(tests: Callable[[Path], list[Sample]], folder: Path) -> list[Sample]:
    """The same three times over, each time by another name."""
    samples = []
    for number in range(PASSES):
        for i, sample in enumerate(tests(folder)):
            file = folder / f"pass-{number}-{i}.litmus"
            shutil.copyfile(sample.file, file)
            samples.append(sample._replace(file=file))
    return samples


def nvlitmus_tests(mixedproxy: Path | None, folder: Path) -> list[Sample]:
    """The files of nvlitmus, each with as many questions as its template has rows: all are as it expects but one."""
    samples = []
    for file in sorted((mixedproxy / "tests" if mixedproxy else CORPORA / "nvlitmus").glob("*.test")):
        rows = [line for line in file.read_text().partition("$$")[2].split("\n") if line.strip()]
        samples.append(Sample(file, (file.stem != CONTRADICTED,) * max(1, len(rows))))
    return samples


def bundled(folder: Path) -> list[Sample]:
    """The tests that come with ptxmm; they say themselves what is expected."""
    return [Sample(ROOT / "litmus")]


def machine() -> str:
    """The processor, the cores and the memory."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text()) if info.is_file() else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write what was asked for."""
    options = parsed(arguments)
    every = rows(options.dartagnan, options.nvlitmus)
    chosen = [
        r for r in every if not options.only or any(fnmatch.fnmatch(r.name, p) or r.family == p for p in options.only)
    ]
    if not chosen:
        print("the rows are: " + " ".join(r.name for r in every), file=sys.stderr)
        return 2
    called = [tools.ptxmm()]
    called += [tools.dartagnan(options.dartagnan, method) for method in ("eager", "lazy") if options.dartagnan]
    called += [tools.nvlitmus(options.nvlitmus)] if options.nvlitmus else []
    called += [tools.herd(options.herd)] if options.herd else []
    versions = dict.fromkeys(f"{tool.name.split(' ')[0]} {tool.version}" for tool in called)
    results = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "versions": "; ".join(versions)}
    found: dict[tuple[str, str], Measure] = {}
    if options.json and options.json.is_file():
        kept = json.loads(options.json.read_text())
        results = kept["results"] if options.kept else results
        found = {(m["row"], m["tool"]): Measure(**m) for m in kept["measures"]}
    # The memory of a process counts as no less than that of its parent, which grows by the longest list.
    chosen.sort(key=lambda one: one.name == "list-16")
    for measure, unlike in () if options.kept else measured(chosen, called, Limit(options.limit, options.clock)):
        found[measure.row, measure.tool] = measure
        print(
            "\n".join([f"{measure.row:16} {measure.tool:16} {report.cell(measure, options.clock)}", *unlike]),
            file=sys.stderr,
        )
        if options.json:
            options.json.write_text(
                json.dumps({"results": results, "measures": [asdict(m) for m in found.values()]}, indent=1)
            )
    measures = list(found.values())
    lines = report.table(every, measures, options.clock)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    if options.write:
        of = "the clock" if options.clock == "seconds" else "the processor"
        said = f"{results['date']}; {results['machine']}; {results['versions']}. Seconds are those of {of}."
        options.write.write_text(report.page(options.write.read_text(), said, lines))
        options.write.with_suffix(".svg").write_text(report.curves(every, measures, options.clock))
    return 1 if any(m.tool == "ptxmm" and m.wrong for m in measures) else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    said, told = (__doc__ or "").split("\n\n")[:2]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers", description=said, epilog=told)
    add = parser.add_argument
    for name, what in (("dartagnan", "Dat3M"), ("nvlitmus", "mixedproxy"), ("herd", "herdtools7")):
        variable = f"PTXMM_{name.upper()}"
        built = Path(os.environ[variable]) if variable in os.environ else None
        add(f"--{name}", type=Path, default=built, metavar="DIR", help=f"{what}, built [default: ${variable}]")
    add("--only", action="append", metavar="ROW", help="a row, a family of rows or a pattern; may be repeated")
    add("--limit", type=float, default=60.0, metavar="SECONDS", help="for one process [default: %(default)s]")
    add(
        "--clock",
        choices=("seconds", "cpu"),
        default="seconds",
        help="the time that is limited and shown: of the clock, or of the processor",
    )
    add(
        "--json", type=Path, metavar="FILE", help="where figures are kept; those of rows that are not measured now stay"
    )
    add("--kept", action="store_true", help="measure nothing, show what is kept")
    add("--write", type=Path, metavar="FILE.md", help="a page to write the table into, and the curves beside it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
