"""Random litmus tests of every family in which an instruction accesses what it may not, or is told a wrong size.

``text(number)``: one operand of a program of ``random_families`` is another address. Now and then its threads spin
afterwards, or never end.
"""

from __future__ import annotations

import random
import re

from msgspec.structs import replace

from tests import random_families
from tests.random_programs import Line, Program

_PLACE = re.compile(r"\[([a-z][a-z0-9]*)(\+[0-9]+)?(?=[\],])")
_WINDOWS = ("global", "shared", "local", "const")
_LATER = frozenset(("masked", "zeros"))
"""Families that are younger than the numbers which tests name."""
_NEVER = ".global .u32 zz = 0;"


def text(number: int) -> str:
    """The litmus file with this number."""
    rng = random.Random(f"stray/{number}")
    family = rng.choice(sorted(random_families.makers().keys() - _LATER))
    made = random_families.seeded(family, rng.randrange(3000))
    for _ in range(rng.choice((1, 1, 1, 2))):
        made = _strayed(rng, made)
    if rng.random() < 0.4:
        made = _endless(rng, made)
    return made.text()


def _strayed(rng: random.Random, made: Program) -> Program:
    """``made`` with another address in an instruction."""
    found = [
        (t, i, m)
        for t, thread in enumerate(made.threads)
        for i, line in enumerate(thread)
        for m in _PLACE.finditer(line.tail)
    ]
    if not found:
        return made
    t, i, place = rng.choice(found)
    line = made.threads[t][i]
    names = re.findall(r"[.](?:[bfu][0-9]+|tensormap) ([a-z][a-z0-9]*)", " ".join(made.declarations)) or [place[1]]
    register = f"d{70 + rng.randrange(20)}"
    name = place[1] if rng.random() < 0.6 else rng.choice(names)
    offset = rng.choice(("", "", place[2] or "", "+1", "+2", "+4", "+8", "+400", "+4096"))
    space = next((s for d in made.declarations for s in re.findall(rf"^[.](\w+).* {name}\b", d)), "")
    form = rng.choice(("mov", "mov", f"cvta.{space}")) if space in _WINDOWS else "mov"
    before = [Line(form, f".u64 {register}, {name}")]
    other = f"[{register}{offset}"
    tail = line.tail[: place.start()] + other + line.tail[place.end() :]
    label = [Line("", label=line.label)] if line.label else []
    return made.change(t, i, *label, *before, replace(line, tail=tail, label=""))


def _endless(rng: random.Random, made: Program) -> Program:
    """``made`` with a loop in a thread that it never leaves."""
    t = rng.randrange(len(made.threads))
    if rng.random() < 0.5:
        rows = [Line("", label="ZZ"), Line("bra", " ZZ")]
    else:
        rows = [
            Line("", label="ZZ"),
            Line("ld", ".global.u32 zr, [zz]", "relaxed", "gpu"),
            Line("setp.eq", ".u32 zp, zr, 0"),
            Line("bra", " ZZ", guard="@zp "),
        ]
    threads = list(made.threads)
    at = len(threads[t]) if rng.random() < 0.6 else rng.randrange(len(threads[t]) + 1)
    threads[t] = (*threads[t][:at], *rows, *threads[t][at:])
    return replace(made, declarations=(*made.declarations, _NEVER), threads=tuple(threads))
