"""Random litmus tests as text, so that reading and printing are exercised with everything else.

``program(rng, model)`` gives a small structure, ``Program.text()`` its litmus file. The structure keeps order and scope
of every instruction apart from the rest, for the tests that strengthen them. ``programs(model)`` is the same for
hypothesis.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

MODELS = ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc")
ORDERS = {
    "ld": ("weak", "relaxed", "acquire"),
    "st": ("weak", "relaxed", "release"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
    "fence": ("acq_rel", "sc"),
}
STRONGER: dict[str, dict[str, tuple[str, ...]]] = {
    "ld": {"weak": ("relaxed",), "relaxed": ("acquire",)},
    "st": {"weak": ("relaxed",), "relaxed": ("release",)},
    "atom": {"relaxed": ("acquire", "release"), "acquire": ("acq_rel",), "release": ("acq_rel",)},
    "red": {"relaxed": ("release",)},
    "fence": {"acq_rel": ("sc",)},
}
FAMILY = {
    "ld": "ld", "suld": "ld", "tld": "ld", "cold": "ld", "multimem.ld_reduce": "ld", "st": "st", "sust": "st",
    "multimem.st": "st", "multimem.red": "red",
}  # fmt: skip


class Line(Struct, frozen=True):
    """An instruction ``guard head.sem.scope tail``, or a bare label."""

    head: str
    tail: str = ""
    sem: str | None = None
    scope: str | None = None
    guard: str = ""
    label: str = ""

    @property
    def family(self) -> str | None:
        """The row of ``ORDERS`` that the instruction belongs to, if its order can be chosen."""
        family = FAMILY.get(self.head, self.head)
        return family if self.sem is not None and family in ORDERS else None

    def text(self) -> str:
        dots = "".join(f".{q}" for q in (self.sem, self.scope) if q)
        body = f"{self.guard}{self.head}{dots}{self.tail}" if self.head else ""
        return f"{self.label}: {body}".strip() if self.label else body


class Program(Struct, frozen=True):
    """A litmus test before printing; ``placements[i]`` and ``threads[i]`` are those of the thread ``names[i]``."""

    dialect: bool
    declarations: tuple[str, ...]
    names: tuple[str, ...]
    placements: tuple[str, ...]
    threads: tuple[tuple[Line, ...], ...]
    condition: str
    blocks: bool = False
    isa: str = ""

    def text(self) -> str:
        """The litmus file."""
        version = [f"ISA={self.isa}"] if self.isa else []
        lines = ["PTX random", *version, "{", *(f"  {d}" for d in self.declarations), "}"]
        heads = [f"{n}@{p}" if p else n for n, p in zip(self.names, self.placements, strict=True)]
        if self.blocks:
            for head, thread in zip(heads, self.threads, strict=True):
                lines.append(f"{head} {{")
                lines += ["  " + (i.text() if not i.head else i.text() + ";") for i in thread]
                lines.append("}")
        else:
            columns = [[head, *(i.text() for i in thread)] for head, thread in zip(heads, self.threads, strict=True)]
            for row in range(max(map(len, columns))):
                cells = [c[row] if row < len(c) else "" for c in columns]
                lines.append(" " + " | ".join(cells) + " ;")
        return "\n".join([*lines, f"exists ({self.condition})", ""])

    def change(self, thread: int, index: int, *new: Line) -> Program:
        """This program with one instruction replaced by ``new``."""
        body = self.threads[thread]
        body = (*body[:index], *new, *body[index + 1 :])
        return replace(self, threads=(*self.threads[:thread], body, *self.threads[thread + 1 :]))

    def rename(self, names: Callable[[str], str]) -> Program:
        """This program with every identifier that is a register or location (not part of a qualifier) renamed."""

        def apply(text: str) -> str:
            return re.sub(r"(?<![.\w])([a-z]+[0-9]+|[xyzsta])\b", lambda m: names(m[0]), text)

        return replace(
            self,
            declarations=tuple(re.sub(r"(?<![.\w])([xyzsta])\b", lambda m: names(m[0]), d) for d in self.declarations),
            threads=tuple(tuple(replace(i, tail=apply(i.tail), guard=apply(i.guard)) for i in t) for t in self.threads),
            condition=apply(self.condition),
        )

    def permute(self, order: list[int]) -> Program:
        """This program with its columns in another order; the threads keep their names."""
        return replace(
            self,
            names=tuple(self.names[i] for i in order),
            placements=tuple(self.placements[i] for i in order),
            threads=tuple(self.threads[i] for i in order),
        )


class Maker(Struct):
    """The state of making one program."""

    rng: random.Random
    model: str
    dialect: bool
    type: str
    locations: list[str]
    scopes: list[str]
    values: list[int]
    space: str = ".global"
    aliased: bool = False
    array: bool = False
    proxies: bool = False
    loaded: list[str] = field(default_factory=list)
    count: int = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count - 1}"

    @property
    def bits(self) -> str:
        return self.type[1:]

    def order(self, family: str) -> tuple[str, str | None]:
        orders = ORDERS[family]
        if self.dialect and family == "red":
            orders = ORDERS["atom"]
        sem = self.rng.choice(orders)
        return sem, None if sem == "weak" else self.rng.choice(self.scopes)

    def value(self, lines: list[Line]) -> str:
        """A constant or a register, with the arithmetic that makes it appended to ``lines``."""
        if not self.loaded or self.rng.random() < 0.6:
            return str(self.rng.choice(self.values))
        old, kind = self.rng.choice(self.loaded), self.rng.randrange(8)
        if kind < 2:
            return old
        new = self.fresh("r")
        if self.dialect:
            ops = ("add", "xor", "and", "add" if self.model == "ptx-8.5" else "sub", "add", "mul")
            lines.append(Line(ops[kind - 2], f" {new}, {old}, {self.pick(kind, old)}"))
        elif kind == 7:
            lines.append(self.arithmetic(new, old))
        elif kind == 6:
            p = self.fresh("p")
            lines.append(Line("setp.eq", f".{self.type} {p}, {old}, {self.rng.choice((0, 1))}"))
            arms = self.rng.choice([(1, 2), (1, 1), (2, old)])
            lines.append(Line("selp", f".{self.type} {new}, {arms[0]}, {arms[1]}, {p}"))
        else:
            op = ("add", "xor", "and", "sub")[kind - 2]
            if op == "sub" and self.model == "ptx-8.5":  # negative values tear into very many mixtures
                op = "xor"
            suffix = f"b{self.bits}" if op in ("xor", "and") else self.type
            lines.append(Line(op, f".{suffix} {new}, {old}, {self.pick(kind, old)}"))
        if self.rng.random() < 0.5:
            self.loaded.append(new)
        return new

    def arithmetic(self, new: str, old: str) -> Line:
        """One of the rarer instructions, often one whose result does not depend on ``old``."""
        t, bits, other = self.type, self.bits, self.rng.choice([*self.loaded, "1", "2"])
        forms = [
            ("min", f".{t} {new}, {old}, {other}"),
            ("max", f".{t} {new}, {old}, {other}"),
            ("shl", f".b{bits} {new}, {old}, {self.rng.choice((0, 1, bits))}"),
            ("shr", f".{t} {new}, {old}, {self.rng.choice((1, bits))}"),
            ("mad.lo", f".{t} {new}, {old}, {self.rng.choice((0, 1, 2))}, {other}"),
            ("mul.lo", f".{t} {new}, {old}, {self.rng.choice((0, 1, old))}"),
        ]
        if self.model != "ptx-8.5":  # values of many bytes tear into very many mixtures
            forms += [("not", f".b{bits} {new}, {old}"), ("or", f".b{bits} {new}, {old}, -1")]
        head, tail = self.rng.choice(forms)
        return Line(head, tail)

    def pick(self, kind: int, old: str) -> str:
        """The second operand: one that may cancel the first, or a constant, or another register."""
        if kind in (3, 5):
            return self.rng.choice([old, old, "1"])
        if kind == 4:
            return self.rng.choice(["0", "1", old])
        return self.rng.choice(["1", self.rng.choice(self.loaded)])

    def address(self, lines: list[Line]) -> str:
        """``[x]`` (``x`` in the dialect), possibly by way of a register."""
        name = self.rng.choice(self.locations)
        if self.dialect:
            return name
        if self.array and self.loaded and self.rng.random() < 0.4:
            index, rd, at = self.fresh("r"), self.fresh("rd"), self.fresh("rd")
            size = int(self.bits) // 8
            lines.append(Line("and", f".b{self.bits} {index}, {self.rng.choice(self.loaded)}, 1"))
            if self.bits == "32":
                lines.append(Line("mul.wide.u32", f" {rd}, {index}, {size}"))
            else:
                lines.append(Line("shl.b64", f" {rd}, {index}, 3"))
            base = self.fresh("rd")
            lines.append(Line("mov.u64", f" {base}, a"))
            lines.append(Line("add.u64", f" {at}, {rd}, {base}"))
            return f"[{at}]"
        if self.rng.random() < 0.12:
            rd = self.fresh("rd")
            lines.append(Line("mov.u64", f" {rd}, {name}"))
            if self.loaded and self.rng.random() < 0.5:
                zero, at = self.fresh("rd"), self.fresh("rd")
                old = self.rng.choice(self.loaded)
                lines.append(Line(f"cvt.u64.u{self.bits}" if self.bits == "32" else "mov.u64", f" {zero}, {old}"))
                lines.append(Line("xor.b64", f" {at}, {zero}, {zero}"))
                out = self.fresh("rd")
                lines.append(Line("add.u64", f" {out}, {rd}, {at}"))
                return f"[{out}]"
            return f"[{rd}]"
        return f"[a+{self.rng.choice((0, int(self.bits) // 8))}]" if name == "a" else f"[{name}]"

    def dots(self, op: str = "", kind: str | None = None) -> str:
        """The qualifiers after order and scope."""
        if self.dialect:
            return f".{op}" if op else ""
        space = self.space if self.rng.random() < 0.7 else ""
        return space + (f".{op}" if op else "") + f".{kind or self.type}"

    def access(self) -> list[Line]:
        rng, lines = self.rng, []  # type: ignore[var-annotated]
        kind = rng.choices(
            ["ld", "st", "atom", "red", "cas", "volatile"], [38, 38, 12, 5, 5, 0 if self.dialect else 2]
        )[0]
        address = self.address(lines)
        if kind == "volatile":
            r = self.fresh("r")
            lines.append(Line("ld.volatile", f"{self.dots()} {r}, {address}"))
            self.loaded.append(r)
        elif kind == "ld":
            sem, scope = self.order("ld")
            head, address = self.proxied("ld", address)
            r = self.fresh("r")
            lines.append(Line(head, f"{self.dots()} {r}, {address}", sem, scope))
            self.loaded.append(r)
        elif kind == "st":
            value = self.value(lines)
            sem, scope = self.order("st")
            head, address = self.proxied("st", address)
            lines.append(Line(head, f"{self.dots()} {address}, {value}", sem, scope))
        else:
            b = f"b{self.bits}"
            sem, scope = self.order("red" if kind == "red" else "atom")
            if kind == "cas":
                tail = f"{self.dots('cas', b)} {{}}{address}, {rng.choice([0, 0, 1])}, {self.value(lines)}"
            else:
                ops = ["add", "exch", "and", "or", "xor", "min", "max"] + (["inc", "dec"] if self.type == "u32" else [])
                if kind == "red":
                    ops.remove("exch")
                if self.dialect:
                    ops = ["add"] + (["exch"] if kind == "atom" else [])
                    ops += [] if self.model == "ptx-8.5" else ["sub"]
                if self.type == "s64":
                    ops = [o for o in ops if o != "add"] or ops
                op = rng.choices(ops, [6, *[1] * (len(ops) - 1)])[0]
                how = b if op in ("exch", "and", "or", "xor") else self.type
                tail = f"{self.dots(op, how)} {{}}{address}, {self.value(lines)}"
            if kind == "red":
                lines.append(Line("red", tail.format(""), sem, scope))
            else:
                r = self.fresh("r")
                lines.append(Line("atom", tail.format(f"{r}, "), sem, scope))
                self.loaded.append(r)
        return lines

    def proxied(self, head: str, address: str) -> tuple[str, str]:
        """In the dialect, now and then an access through the surface or texture of ``x``."""
        if not self.proxies or self.rng.random() < 0.4:
            return head, address
        if head == "st":
            return "sust", "s"
        return self.rng.choice([("suld", "s"), ("suld", "s"), ("tld", "t")])

    def fence(self) -> Line:
        kinds = ["fence"] * 8 + ([] if self.dialect else ["membar"])
        kinds += ["alias"] * (6 if self.aliased else 0) + ["proxy"] * (8 if self.proxies else 0)
        kind = self.rng.choice(kinds)
        if kind == "alias":
            return Line("fence.proxy.alias")
        if kind == "proxy":
            return Line(f"fence.proxy.{self.rng.choice(['surface', 'surface', 'texture'])}")
        if kind == "membar":
            return Line(f"membar.{self.rng.choice(['cta', 'gl', 'sys'])}")
        sem, _ = self.order("fence")
        return Line("fence", "", sem, self.rng.choice(self.scopes))

    def guarded(self) -> list[Line]:
        """Something conditional: a branch over an access, or a predicated access."""
        old = self.rng.choice(self.loaded)
        wanted, before = self.rng.choice((0, 1)), list(self.loaded)
        inside = self.access()
        if self.dialect:
            label = self.fresh("L")
            lines = [
                Line(self.rng.choice(["beq", "bne"]), f" {old}, {wanted}, {label}"),
                *inside,
                Line("", label=label),
            ]
        else:
            p = self.fresh("p")
            setp = Line(f"setp.{self.rng.choice(['eq', 'ne', 'lt'])}", f".{self.type} {p}, {old}, {wanted}")
            if self.rng.random() < 0.1:
                lines = [setp, Line("exit", guard=f"@{p} "), *inside]
            elif self.rng.random() < 0.5 and len(inside) == 1:
                lines = [setp, replace(inside[0], guard=self.rng.choice(["@", "@!"]) + p + " ")]
            else:
                label = self.fresh("L")
                lines = [setp, Line("bra", f" {label}", guard=f"@{p} "), *inside, Line("", label=label)]
        if self.rng.random() < 0.3:
            self.loaded = before
        return lines

    def spin(self) -> list[Line]:
        """A loop that waits for a value, or that takes a lock."""
        name, r, label = self.rng.choice(self.locations), self.fresh("r"), self.fresh("L")
        sem, scope = self.order("ld")
        self.loaded.append(r)
        if self.rng.random() < 0.3:
            op = self.rng.choice(["cas", "cas", "exch"])
            sem, scope = self.order("atom")
            new = "0, 1" if op == "cas" else "1"
            at = name if self.dialect else f"[{name}]"
            take = Line("atom", f"{self.dots(op, 'b' + self.bits)} {r}, {at}, {new}", sem, scope, label=label)
            if self.dialect:
                return [take, Line("bne", f" {r}, 0, {label}")]
            p = self.fresh("p")
            again = Line("bra", f" {label}", guard=f"@{p} ")
            return [take, Line("setp.ne", f".{self.type} {p}, {r}, 0"), again]
        if self.dialect:
            return [
                Line("ld", f" {r}, {name}", sem, scope, label=label),
                Line("beq", f" {r}, 0, {label}"),
            ]
        p = self.fresh("p")
        return [
            Line("ld", f"{self.dots()} {r}, [{name}]", sem, scope, label=label),
            Line("setp.eq", f".{self.type} {p}, {r}, 0"),
            Line("bra", f" {label}", guard=f"@{p} "),
        ]

    def thread(self, size: int, loops: bool) -> list[Line]:
        self.loaded, self.count, lines = [], 0, []
        for _ in range(size):
            roll = self.rng.random()
            if roll < 0.16:
                lines.append(self.fence())
            elif roll < 0.24 and self.loaded:
                lines += self.guarded()
            elif roll < 0.34 and loops:
                lines += self.spin()
            else:
                lines += self.access()
        return lines


def placements(rng: random.Random, count: int, model: str) -> tuple[str, ...]:
    """Where the threads are: together, apart, or anywhere in between."""
    kind = rng.randrange(8)
    if kind <= 1:
        return tuple("cta 0" for _ in range(count))
    if kind <= 3:
        return tuple(f"cta {i}" for i in range(count))
    if kind == 4:
        return tuple(f"cta {rng.randrange(2)}, gpu {rng.randrange(2)}" for _ in range(count))
    if kind == 5 and model == "ptx-8.5":
        return tuple(f"cta {i}, cluster {rng.randrange(2)}" for i in range(count))
    if kind == 6:
        return tuple("warp 0, cta 0" if i < 2 else "cta 0" for i in range(count))
    return tuple(f"cta {rng.randrange(2)}" for _ in range(count))


def barriers(rng: random.Random, program: Program) -> Program:
    """``program`` with barriers in its threads, mostly such that all get through."""
    kind = rng.randrange(5)
    threads = []
    for i, thread in enumerate(program.threads):
        lines = list(thread)
        if program.dialect:
            texts = [
                ["bar.cta.sync 1"],
                ["bar.cta.sync 1, 0"],
                ["bar.cta.arrive 1" if i == 0 else "bar.cta.sync 1"],
                ["bar.cta.sync 1, 1, 2"],
                ["bar.cta.sync 1", "bar.cta.sync 2"],
            ][kind]
        else:
            size = 32 * len(program.threads)
            texts = [
                ["bar.sync 0"],
                [f"bar.sync 1, {size}"],
                [f"bar.arrive 0, {size}" if i == 0 else f"bar.sync 0, {size}"],
                ["bar.sync 0, 64"],
                ["bar.sync 0", "barrier.cta.sync 0"],
            ][kind]
        if rng.random() < 0.05:
            texts = texts[1:]
        places = sorted(rng.randrange(len(lines) + 1) for _ in texts)
        for text, place in reversed(list(zip(texts, places, strict=True))):
            if place < len(lines) and lines[place].head.startswith(("bra", "b")):
                place = 0
            lines.insert(place, Line(text))
        threads.append(tuple(lines))
    return replace(program, threads=tuple(threads))


def program(rng: random.Random, model: str, *, size: tuple[int, int] = (2, 4), loops: bool = True) -> Program:
    """A program of 2 or 3 threads that ``model`` covers; ``size`` bounds the instructions that make events."""
    dialect = rng.random() < 0.2
    count = rng.choice((2, 2, 3))
    places = placements(rng, count, model)
    kind = "s64" if dialect else rng.choice(("u32", "u32", "u32", "s32", "u64"))
    scopes = ["cta", "gpu", "gpu", "sys"] + (["cluster"] if model == "ptx-8.5" else [])
    values = [1, 2, 3] if rng.random() < 0.95 or dialect else [0x101, 0x100, 0x1]
    locations = ["x", "y"] if rng.random() < 0.8 else ["x"] if rng.random() < 0.5 else ["x", "y", "z"]
    maker = Maker(rng, model, dialect, kind, locations, scopes, values)
    declarations = [f"{n} = 0;" if dialect else f".global .{kind} {n} = 0;" for n in locations]
    together = len({p.removeprefix("warp 0, ") for p in places}) == 1
    if not dialect and together and rng.random() < 0.2:
        maker.space = ".shared"
        owner = places[0].removeprefix("warp 0, ")
        declarations = [f".shared .{kind} {n} @ {owner} = 0;" for n in locations]
    elif model != "ptx-6.0" and rng.random() < 0.25:
        maker.aliased = True
        declarations.append(
            "s @ generic aliases x;" if not (dialect and model == "ptx-7.5") else "z @ generic aliases x;"
        )
        if dialect and model == "ptx-7.5":
            declarations = [d for d in declarations if not d.startswith("z =")]
            maker.locations = [n for n in locations if n != "z"] + ["z"]
        else:
            maker.locations = [*locations, "s"]
    elif not dialect and rng.random() < 0.1:
        maker.array = True
        declarations.append(f".global .{kind} a[2] = {{0, 0}};")
        maker.locations = [*locations, "a"]
    if dialect and model == "ptx-7.5" and rng.random() < 0.6:
        maker.proxies = True
        declarations += ["s @ surface aliases x;", "t @ texture aliases x;"]
    low, high = size
    if count == 3:
        high = min(high, 3) if rng.random() < 0.5 else high
    with_loops = loops and rng.random() < 0.15
    threads = tuple(tuple(maker.thread(rng.randint(low, high), with_loops)) for _ in range(count))
    if not dialect and maker.space == ".global" and rng.random() < 0.03 and all(n.family for t in threads for n in t):
        places = (*places[:-1], "host")
        threads = (*threads[:-1], tuple(replace(i, scope="sys") if i.scope else i for i in threads[-1]))
    names = tuple(f"P{i}" for i in range(count))
    result = Program(dialect, tuple(declarations), names, places, threads, f"{locations[0]} == 1", rng.random() < 0.3)
    if together and "host" not in places and rng.random() < 0.3:
        result = barriers(rng, result)
    return result


def seeded(seed: int, model: str) -> Program:
    """The program number ``seed`` for ``model``."""
    return program(random.Random(f"{model}/{seed}"), model)


def programs(model: str) -> st.SearchStrategy[Program]:
    """Programs for hypothesis."""
    return st.integers(0, 1_000_000).map(lambda seed: seeded(seed, model))
