"""The neighbours of a litmus test: one instruction left out, or one word of an instruction changed.

Where a test tells two readings apart, its neighbours lie on both sides of the border.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import write
from ptxmm.program.test import Test
from tests.support import parse_one

CHANGES = {
    "release": ("relaxed", "acq_rel"),
    "acquire": ("relaxed", "acq_rel"),
    "acq_rel": ("relaxed", "sc"),
    "sc": ("acq_rel",),
    "relaxed": ("release", "acquire"),
    "gpu": ("cta", "sys"),
    "cta": ("gpu",),
    "cluster": ("cta",),
    "sys": ("cta",),
}
"""What a qualifier is changed to."""


def neighbours(test: Test) -> Iterator[str]:
    """The texts of those neighbours that are tests."""
    lines = write(test).split("\n")
    first = next((i for i, line in enumerate(lines) if line.startswith(" P")), len(lines))
    for i, line in enumerate(lines[first + 1 :], first + 1):
        if not line.startswith(" "):
            break
        cells = line.rstrip().removesuffix(";").split(" | ")
        for c, cell in enumerate(cells):
            for new in changed(cell.strip()):
                row = " " + " | ".join([*cells[:c], new, *cells[c + 1 :]]) + " ;"
                text = "\n".join([*lines[:i], row, *lines[i + 1 :]])
                if is_test(text):
                    yield text


def changed(instruction: str) -> Iterator[str]:
    """What may stand in place of an instruction."""
    if not instruction or instruction.endswith(":"):
        return
    yield ""
    guard, at, rest = instruction.partition(" ") if instruction.startswith("@") else ("", "", instruction)
    opcode, space, operands = rest.partition(" ")
    parts = opcode.split(".")
    for i, part in enumerate(parts):
        for other in CHANGES.get(part, ()):
            yield guard + at + ".".join([*parts[:i], other, *parts[i + 1 :]]) + space + operands


def is_test(text: str) -> bool:
    try:
        parse_one(text)
    except PtxmmError:
        return False
    return True
