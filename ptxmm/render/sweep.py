"""What a sweep found: a table by shape or folder, and each test on a line of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import get_args

from ptxmm.analysis.swept import Said, Swept
from ptxmm.render import Entry, Page
from ptxmm.render.document import line
from ptxmm.render.style import clean
from ptxmm.words import number_of


def table(entries: Iterable[Entry[Swept]], page: Page) -> Iterator[str]:
    """How many tests of each group are forbidden, allowed, ...; before it, those that contradict what they expect."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    kept = total = errors = 0
    for entry in entries:
        report = entry.report
        if not isinstance(report, Swept):
            errors += 1
            continue
        total += 1
        kept += report.kept
        counts.setdefault((report.model, group(report)), Counter())[report.said] += 1
        if report.finding:
            yield page.style.paint(f"{clean(report.test)}  {report.model}  expected {report.expected}", "red")
    yield from _rows(counts)
    seconds = time.perf_counter() - page.start
    rate = f": {(total - kept) / seconds:.0f} a second" if total > kept else ""
    known = f", {kept} known before" if kept else ""
    wrong = f", {number_of(errors, 'error')}" if errors else ""
    yield f"{total} checked in {seconds:.1f} s{rate}{known}{wrong}"


def _rows(counts: Mapping[tuple[str, str], Counter[str]]) -> Iterator[str]:
    """The tests of each model and group, and of all if there are several."""
    words = [word for word in get_args(Said) if any(count[word] for count in counts.values())]
    named = list(counts.items())
    if len(counts) > 1:
        named.append((("all", ""), sum(counts.values(), Counter())))
    rows = [("", "", "tests", *words)] if counts else []
    rows += [(*name, str(count.total()), *(str(count[word]) for word in words)) for name, count in named]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [f"{c:{w}}" if k < 2 else f"{c:>{w}}" for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        yield "  ".join(cells).rstrip()


def group(report: Swept) -> str:
    """The shape of a generated test; the folder of a file."""
    if report.file:
        return clean(str(Path(report.file).parent))
    from ptxmm.generate.cycles.cycle import named, parse

    cycle = parse(report.test)
    return named(cycle) or f"{len(cycle.threads)} threads, {len(cycle.edges)} accesses"


def lines(entries: Iterable[Entry[Swept]], page: Page) -> Iterator[str]:
    """Each as JSON on a line of its own."""
    for entry in entries:
        yield line(entry.report)
