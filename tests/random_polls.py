"""Random litmus tests of threads that poll one place again and again, in chains and in loops, before they go on.

What ``polls`` of ``program.shared`` makes of such regions must not change any final state. Some are none: they poll
something else in between, count, leave for another value, or show what they have read.
"""

from __future__ import annotations

import random

from msgspec import Struct, field


class _Maker(Struct):
    """One thread in the making."""

    rng: random.Random
    rows: list[str] = field(default_factory=list)
    count: int = 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def poll(self, order: str, label: str, left: str, value: int, register: str) -> None:
        """A load that leaves for ``left`` where it returns ``value``, or, said the other way round, where not."""
        p = f"p{self.rng.choice((1, 2))}"
        compare = self.rng.choice(("eq", "eq", "ne"))
        self.rows += [
            f"{label}ld.{order}.u32 {register}, [f]",
            f"setp.{compare}.u32 {p}, {register}, {value}",
            f"@{'!' if compare == 'ne' else ''}{p} bra {left}",
        ]

    def waits(self, out: str) -> None:
        """A region: some polls in a row, and a loop of polls at its end."""
        rng = self.rng
        order, value = rng.choice(("relaxed.gpu", "acquire.gpu")), rng.choice((1, 1, 2))
        one = rng.choice(("r1", None))
        for _ in range(rng.choice((1, 1, 2))):
            self.count += 1
            self.poll(self.odd(order), "", out, self.odd_value(value), one or f"r{self.count}")
        if self.chance(0.2):
            self.rows.append("add.u32 n, n, 1")
        if self.chance(0.4):  # a poll that does not lead out
            inner = rng.choice((order, "relaxed.gpu"))
            self.rows += [f"I: ld.{inner}.u32 i, [f]", f"setp.ne.u32 p3, i, {value}", "@p3 bra I"]
        self.rows += [f"H: ld.{order}.u32 h, [f]"] if self.chance(0.5) else [f"H: ld.{order}.u32 r1, [f]"]
        register = self.rows[-1].split()[2].rstrip(",")
        self.rows += [f"setp.ne.u32 p1, {register}, {value}", "@p1 bra H"]
        self.rows.append(f"{out}: {rng.choice(('add.u32 s, r1, 0', 'mov.u32 s, 5'))}")

    def odd(self, order: str) -> str:
        return "relaxed.gpu" if self.chance(0.1) else order

    def odd_value(self, value: int) -> int:
        return 2 if self.chance(0.1) else value

    def access(self, place: str) -> None:
        rng = self.rng
        order = rng.choice(("", ".relaxed.gpu", ".acquire.gpu", ".release.gpu"))
        if self.chance(0.5) and order != ".release.gpu":
            self.rows.append(f"ld{order}.u32 a{len(self.rows)}, [{place}]")
        else:
            order = order.replace("acquire", "release")
            self.rows.append(f"st{order}.u32 [{place}], {rng.choice((1, 1, 2))}")


def program(number: int) -> str:
    """The litmus file with this number."""
    rng = random.Random(number)
    waiting, other = _Maker(rng), _Maker(rng)
    if rng.random() < 0.3:
        waiting.access(rng.choice("fd"))
    waiting.waits("X")
    for _ in range(rng.choice((1, 1, 2))):
        waiting.access(rng.choice("ddf"))
    for _ in range(rng.choice((2, 3))):
        other.access(rng.choice("fd"))
    other.access("f") if rng.random() < 0.5 else other.rows.append("st.release.gpu.u32 [f], 1")
    rows = ["PTX polls", "{", f"  .global .u32 f = {rng.choice((0, 0, 1))};", "  .global .u32 d = 0;", "}"]
    for index, maker in enumerate((waiting, other)):
        rows += [f"P{index} @ cta {index} {{", *(f"  {row};" for row in maker.rows), "}"]
    shown = rng.choice(("d == 0", "d == 0 /\\ P0:s == 1", "f == 1 /\\ P0:r1 == 1"))
    return "\n".join([*rows, f"exists ({shown})", ""])
