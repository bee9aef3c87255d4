"""Random litmus tests of two or three threads with loops that spin on atomics which write back what they read.

``while (atomicExch(&f, 1) != 0);``, ``while (atomicAdd(&f, 0) == 0);`` and their like, over one or two flags and a word
of data, with stores and loads of all kinds around and in them: what ``idempotent`` and ``control`` of
``program.shared`` leave out of such loops must not change any final state.
"""

from __future__ import annotations

import random

from msgspec import Struct, field

_LOOPS = (
    ("exch.b32", "1", "ne", 0), ("exch.b32", "1", "ne", 0), ("add.u32", "0", "eq", 0), ("or.b32", "0", "ne", 1),
    ("cas.b32", "0, 1", "ne", 0), ("max.u32", "1", "ne", 1), ("and.b32", "1", "eq", 0),
)  # fmt: skip
"""What a round does, and the comparison with which it goes round again."""


class _Maker(Struct):
    """One thread in the making. ``scopes``: those of its strong operations."""

    rng: random.Random
    scopes: tuple[str, ...]
    flags: tuple[str, ...]
    rows: list[str] = field(default_factory=list)
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"r{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def strong(self, *orders: str) -> str:
        return f"{self.rng.choice(orders)}.{self.rng.choice(self.scopes)}"

    def access(self, place: str, weak: float) -> None:
        """A load or a store of ``place``, with a scope unless it is ``weak`` with this share."""
        if self.chance(0.5):
            order = "" if self.chance(weak) else f".{self.strong('relaxed', 'acquire')}"
            self.rows.append(f"ld{order}.u32 {self.fresh()}, [{place}]")
            return
        order = "" if self.chance(weak) else f".{self.strong('relaxed', 'release')}"
        self.rows.append(f"st{order}.u32 [{place}], {self.rng.choice((0, 1, 1, 2))}")

    def spin(self) -> None:
        """A loop, perhaps with a fence or a load of the data in it."""
        op, operands, again, number = self.rng.choice(_LOOPS)
        label, register, flag = f"L{len(self.rows)}", self.fresh(), self.rng.choice(self.flags)
        order = self.strong("relaxed", "acquire", "acq_rel", "acq_rel")
        self.rows.append(f"{label}: atom.{order}.{op} {register}, [{flag}], {operands}")
        if self.chance(0.15):
            self.access("d", 0.5) if self.chance(0.3) else self.rows.append(f"fence.{self.strong('acq_rel', 'sc')}")
        self.rows += [f"setp.{again}.u32 p, {register}, {number}", f"@p bra {label}"]

    def step(self) -> None:
        kind, flag = self.rng.random(), self.rng.choice(self.flags)
        if kind < 0.4:
            self.access("d", 0.7)
        elif kind < 0.75:
            self.access(flag, 0.15)
        elif kind < 0.85:
            self.rows.append(f"fence.{self.strong('acq_rel', 'sc')}")
        elif kind < 0.95:
            order = self.strong("relaxed", "release", "acq_rel")
            self.rows.append(f"atom.{order}.add.u32 {self.fresh()}, [{flag}], {self.rng.choice((0, 1))}")
        else:
            self.rows.append(f"ld.relaxed.gpu.u16 h{self.count}, [{flag}]")


def program(number: int) -> str:
    """The litmus file with this number."""
    rng = random.Random(number)
    flags = ("f", "g") if rng.random() < 0.35 else ("f",)
    together = rng.random() < 0.25
    scopes = ("gpu", "gpu", "gpu", "cta", "sys") if together or rng.random() < 0.2 else ("gpu",)
    threads: list[list[str]] = []
    for spins in rng.choice(((1, 0), (1, 1), (1, 0, 0))):
        maker = _Maker(rng, scopes, flags)
        before, after = rng.choice(((0, 1), (1, 1), (1, 2), (2, 1))) if spins else (0, rng.choice((2, 3, 4)))
        if spins == 0 and len(threads) == 2:
            after = 2
        for _ in range(before):
            maker.step()
        if spins:
            maker.spin()
        for _ in range(after):
            maker.step()
        threads.append(maker.rows)
    rows = ["PTX spins", "{", *(f"  .global .align 4 .u32 {name} = {rng.choice((0, 0, 1))};" for name in flags)]
    rows += ["  .global .u32 d = 0;", "}"]
    for index, body in enumerate(threads):
        cta = 0 if together and index < 2 else index
        rows += [f"P{index} @ cta {cta} {{", *(f"  {row};" for row in body), "}"]
    return "\n".join([*rows, "exists (d == 0)", ""])
