"""Random litmus tests in the shape of load buffering: every thread reads first, then writes what depends on it.

Dependencies of every kind and those that only look like one: guards, branches with one or two arms, exits, spin loops,
the three operands of a compare-and-swap, computed addresses. The programs tell models apart that differ in No-Thin-Air.
"""

from __future__ import annotations

import random

ORDERS = {
    "ld": ("", "", ".relaxed.gpu", ".relaxed.gpu", ".acquire.gpu"),
    "st": ("", "", ".relaxed.gpu", ".relaxed.gpu", ".release.gpu"),
    "atom": (".relaxed.gpu", ".relaxed.gpu", ".relaxed.cta", ".acq_rel.gpu"),
}
UPDATES = ("add.u32", "and.b32", "or.b32", "max.u32")


class Maker:
    """The state of making one program: ``loaded`` are the registers of the thread that hold what it read."""

    def __init__(self, rng: random.Random, aliases: bool) -> None:
        self.rng = rng
        self.locations = ["x", "y"] if rng.random() < 0.8 else ["x", "y", "z"]
        self.declarations = [f".global .u32 {name} = 0;" for name in self.locations]
        self.plain = list(self.locations)
        self.array = rng.random() < 0.3
        if self.array:
            self.declarations.append(".global .u32 a[2] = {0, 0};")
            self.locations.append("a")
        if aliases and rng.random() < 0.2:
            self.declarations.append("s @ generic aliases x;")
            self.locations.append("s")
            self.plain.append("s")
        self.loaded: list[str] = []
        self.count = 0

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def order(self, head: str) -> str:
        return head + self.rng.choice(ORDERS[head]) + ".global"

    def test(self, register: str) -> tuple[list[str], str]:
        """A predicate on ``register``."""
        p = self.fresh("p")
        other = self.rng.choice(self.loaded) if self.rng.random() < 0.12 else self.rng.choice((0, 1, 1, 2))
        return [f"setp.{self.rng.choice(('eq', 'eq', 'ne', 'lt', 'ge'))}.u32 {p}, {register}, {other}"], p

    def value(self) -> tuple[list[str], str]:
        """Something to store: a constant, what was read, or what is computed from it."""
        rng, roll = self.rng, self.rng.random()
        if roll < 0.3 or not self.loaded:
            return [], str(rng.choice((1, 1, 2, 0)))
        r, a = self.fresh("r"), rng.choice(self.loaded)
        if roll < 0.45:
            return [f"mov.u32 {r}, {rng.choice((1, 1, 2))}"], r
        if roll < 0.7:
            return [], a
        p, k, v = self.fresh("p"), rng.choice((0, 1)), rng.choice((1, 2))
        return rng.choice(
            (
                [f"add.u32 {r}, {a}, {k}"],
                [f"xor.b32 {r}, {a}, {a}", f"add.u32 {r}, {r}, 1"],
                [f"and.b32 {r}, {a}, {k}"],
                [f"or.b32 {r}, {a}, {rng.choice((1, 4294967295))}"],
                [f"min.u32 {r}, {a}, 1"],
                [f"min.u32 {r}, {a}, 0", f"or.b32 {r}, {r}, {v}"],
                [f"and.b32 {r}, {a}, {rng.choice((12, 14))}", f"and.b32 {r}, {r}, 3", f"add.u32 {r}, {r}, {v}"],
                [f"xor.b32 {r}, {a}, {rng.choice(self.loaded)}", f"xor.b32 {r}, {r}, {a}", f"or.b32 {r}, {r}, {k}"],
                [f"setp.ge.u32 {p}, {a}, {k}", f"selp.u32 {r}, {v}, 1, {p}"],
                [f"setp.eq.u32 {p}, {a}, {k}", f"selp.u32 {r}, {v}, {rng.choice((0, 1))}, {p}"],
                [f"mov.u32 {r}, 0", f"setp.ne.u32 {p}, {a}, {k}", f"@{p} mov.u32 {r}, {v}"],
            )
        ), r

    def address(self) -> tuple[list[str], str]:
        """Where to access: a location, or an element that a read chooses."""
        rng = self.rng
        if self.array and self.loaded and rng.random() < 0.45:
            r, d, b = self.fresh("r"), self.fresh("rd"), self.fresh("rd")
            wide = [f"and.b32 {r}, {rng.choice(self.loaded)}, 1", f"cvt.u64.u32 {d}, {r}", f"shl.b64 {d}, {d}, 2"]
            return [*wide, f"mov.u64 {b}, a", f"add.u64 {b}, {b}, {d}"], f"[{b}]"
        name = rng.choice(self.locations)
        return [], f"[{rng.choice(('a', 'a+4')) if name == 'a' else name}]"

    def access(self, weights: tuple[int, ...]) -> tuple[list[str], str | None]:
        """A load, store, compare-and-swap, exchange or other atomic operation, and the register it loads."""
        rng = self.rng
        kind = rng.choices(("ld", "st", "cas", "exch", "update"), weights)[0]
        lines, place = self.address()
        if kind == "ld":
            r = self.fresh("r")
            return [*lines, f"{self.order('ld')}.u32 {r}, {place}"], r
        before, value = self.value()
        lines += before
        if kind == "st":
            return [*lines, f"{self.order('st')}.u32 {place}, {value}"], None
        r = self.fresh("r")
        if kind == "cas":
            compared = rng.choice(self.loaded) if self.loaded and rng.random() < 0.2 else rng.choice((0, 0, 1, 2))
            return [*lines, f"{self.order('atom')}.cas.b32 {r}, {place}, {compared}, {value}"], r
        op = "exch.b32" if kind == "exch" else rng.choice(UPDATES)
        return [*lines, f"{self.order('atom')}.{op} {r}, {place}, {value}"], r

    def branch(self) -> tuple[list[str], str | None]:
        """An access in a branch, now and then with another one in the other arm."""
        rng = self.rng
        before, p = self.test(rng.choice(self.loaded))
        body, loaded = self.access((2, 10, 4, 2, 2))
        if rng.random() < 0.3:
            body.append(f"mov.u32 {rng.choice(self.loaded)}, {rng.choice((1, 2))}")
        end = self.fresh("L")
        lines = [*before, f"{rng.choice(('@', '@!'))}{p} bra {end}", *body]
        if rng.random() < 0.3:
            other, _ = self.access((0, 2, 1, 0, 0)) if rng.random() < 0.7 else (body, None)
            last = self.fresh("L")
            return [*lines, f"bra {last}", f"{end}:", *other, f"{last}:"], loaded
        return [*lines, f"{end}:"], loaded

    def step(self) -> tuple[list[str], str | None]:
        rng, roll = self.rng, self.rng.random()
        if roll < 0.3:
            lines, loaded = self.access((2, 10, 4, 2, 2))
            before, p = self.test(rng.choice(self.loaded))
            guard, opposite = rng.choice((("@", "@!"), ("@!", "@")))
            again = [f"{opposite}{p} {lines[-1]}"] if rng.random() < 0.2 else []
            return [*before, *lines[:-1], f"{guard}{p} {lines[-1]}", *again], loaded
        if roll < 0.62:
            return self.branch()
        if roll < 0.68:
            r, p, label = self.fresh("r"), self.fresh("p"), self.fresh("L")
            load = f"{self.order('ld')}.u32 {r}, [{rng.choice(self.plain)}]"
            lines = [f"{label}:", load, f"setp.eq.u32 {p}, {r}, 0", f"@{p} bra {label}"]
            if rng.random() < 0.3:
                out = self.fresh("L")
                lines[3:] = [f"@!{p} bra {out}", f"bra {label}", f"{out}:"]
            more, _ = self.access((0, 3, 1, 0, 0)) if rng.random() < 0.5 else ([], None)
            return [*lines, *more], r
        if roll < 0.72:
            before, p = self.test(rng.choice(self.loaded))
            return [*before, f"@{p} exit"], None
        return self.access((2, 10, 4, 2, 2))

    def thread(self) -> list[str]:
        self.loaded, self.count = [], 0
        lines, first = self.access((10, 0, 2, 1, 1))
        assert first is not None
        self.loaded.append(first)
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            more, loaded = self.step()
            lines += more
            if loaded is not None:
                self.loaded.append(loaded)
        return lines


def seeded(seed: int, model: str) -> str:
    """The text of program number ``seed`` for ``model``."""
    rng = random.Random(f"dependencies/{model}/{seed}")
    maker = Maker(rng, aliases=model != "ptx-6.0")
    threads = []
    for i in range(rng.choice((2, 2, 2, 3))):
        lines = "".join(f"  {line}{'' if line.endswith(':') else ';'}\n" for line in maker.thread())
        threads.append(f"P{i} @ cta {i if rng.random() < 0.8 else 0} {{\n{lines}}}\n")
    return "\n".join(["PTX random", "{", *maker.declarations, "}", *threads, "exists (x == 1)", ""])
