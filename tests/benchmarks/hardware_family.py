"""Writes the tests that are run on a GPU beside those of ``litmus/``: ten shapes by order, scope and placement.

python -m tests.benchmarks.hardware_family FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

Access = tuple[str, str, int]
"""W or R, the location, and the value that is written or the number of the register."""

SHAPES: dict[str, tuple[list[list[Access]], str]] = {
    "MP": ([[("W", "x", 1), ("W", "y", 1)], [("R", "y", 0), ("R", "x", 1)]], "P1:r0 == 1 /\\ P1:r1 == 0"),
    "SB": ([[("W", "x", 1), ("R", "y", 0)], [("W", "y", 1), ("R", "x", 0)]], "P0:r0 == 0 /\\ P1:r0 == 0"),
    "LB": ([[("R", "x", 0), ("W", "y", 1)], [("R", "y", 0), ("W", "x", 1)]], "P0:r0 == 1 /\\ P1:r0 == 1"),
    "R": ([[("W", "x", 1), ("W", "y", 1)], [("W", "y", 2), ("R", "x", 0)]], "y == 2 /\\ P1:r0 == 0"),
    "S": ([[("W", "x", 2), ("W", "y", 1)], [("R", "y", 0), ("W", "x", 1)]], "P1:r0 == 1 /\\ x == 2"),
    "2+2W": ([[("W", "x", 1), ("W", "y", 2)], [("W", "y", 1), ("W", "x", 2)]], "x == 1 /\\ y == 1"),
    "WRC": (
        [[("W", "x", 1)], [("R", "x", 0), ("W", "y", 1)], [("R", "y", 0), ("R", "x", 1)]],
        "P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0",
    ),
    "RWC": (
        [[("W", "x", 1)], [("R", "x", 0), ("R", "y", 1)], [("W", "y", 1), ("R", "x", 0)]],
        "P1:r0 == 1 /\\ P1:r1 == 0 /\\ P2:r0 == 0",
    ),
    "ISA2": (
        [[("W", "x", 1), ("W", "y", 1)], [("R", "y", 0), ("W", "z", 1)], [("R", "z", 0), ("R", "x", 1)]],
        "P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0",
    ),
    "IRIW": (
        [[("W", "x", 1)], [("R", "x", 0), ("R", "y", 1)], [("W", "y", 1)], [("R", "y", 0), ("R", "x", 1)]],
        "P1:r0 == 1 /\\ P1:r1 == 0 /\\ P3:r0 == 1 /\\ P3:r1 == 0",
    ),
}
PLACES = {"CTA": "@ cta 0", "cluster": "@ cta {}, cluster 0", "grid": "@ cta {}"}
SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = ("relaxed", "release-acquire", "fence.acq_rel", "fence.sc")


def family() -> Iterator[tuple[str, str]]:
    """The name and the text of each test."""
    for shape, (threads, condition) in SHAPES.items():
        for place, where in PLACES.items():
            for order, scope in [("weak", ""), *((order, scope) for order in ORDERS for scope in SCOPES)]:
                name = f"{shape}+{order}{f'.{scope}' if scope else ''}+{place}"
                yield name, _text(name, threads, condition, where, order, scope)


def _text(name: str, threads: list[list[Access]], condition: str, where: str, order: str, scope: str) -> str:
    names = sorted({access[1] for thread in threads for access in thread})
    lines = [f"PTX {name}", "{", *(f"  .global .u32 {one} = 0;" for one in names), "}"]
    for number, thread in enumerate(threads):
        lines.append(f"P{number} {where.format(number)} {{")
        for position, (kind, location, value) in enumerate(thread):
            if position and order.startswith("fence"):
                lines.append(f"  {order}.{scope};")
            lines.append(f"  {_access(kind, location, value, position, order, scope)};")
        lines.append("}")
    return "\n".join([*lines, f"exists ({condition})", ""])


def _access(kind: str, location: str, value: int, position: int, order: str, scope: str) -> str:
    qualifier = f".relaxed.{scope}" if scope else ".weak"
    if order == "release-acquire":
        qualifier = f".release.{scope}" if kind == "W" else f".acquire.{scope}"
    if kind == "W":
        return f"st{qualifier}.global.u32 [{location}], {value}"
    return f"ld{qualifier}.global.u32 r{value}, [{location}]"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in family():
        (folder / f"{name}.litmus").write_text(text, encoding="utf-8")
