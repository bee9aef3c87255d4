"""Writes the tests that are run on a GPU beside those of ``litmus/``: ten shapes by order, scope and placement.

python -m tests.benchmarks.hardware_family FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from ptxmm.generate.cycles.cycle import Cycle, parse
from ptxmm.generate.cycles.edges import Access
from ptxmm.generate.cycles.litmus import litmus

SHAPES = ("MP", "SB", "LB", "R", "S", "2+2W", "WRC", "RWC", "ISA2", "IRIW")
PLACES = {"CTA": "cta", "cluster": "cluster", "grid": "gpu"}
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = ("relaxed", "release-acquire", "fence.acq_rel", "fence.sc")


def family() -> Iterator[tuple[str, str]]:
    """The name and the text of each test."""
    for shape in SHAPES:
        for place, where in PLACES.items():
            for order, scope in [("weak", ""), *((order, scope) for order in ORDERS for scope in SCOPES)]:
                name = f"{shape}+{order}{f'.{scope}' if scope else ''}+{place}"
                yield name, litmus(ordered(parse(f"{shape}@{where}"), order, scope), name)


def ordered(cycle: Cycle, order: str, scope: str) -> Cycle:
    """The cycle with every access of this order, or relaxed and with a fence wherever program order is."""
    if order == "weak":
        return cycle
    kinds = {"W": "release", "R": "acquire"} if order == "release-acquire" else {"W": "relaxed", "R": "relaxed"}
    fence = f"{order}.{scope}" if order.startswith("fence") else ""
    return replace(
        cycle,
        edges=tuple(replace(edge, via=fence) if edge.kind == "Po" else edge for edge in cycle.edges),
        accesses=tuple(Access(kinds[direction], scope) for direction in cycle.directions),
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in family():
        (folder / f"{name}.litmus").write_text(text, encoding="utf-8")
