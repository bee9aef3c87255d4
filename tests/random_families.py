"""Random litmus tests of the instructions beyond scalar accesses, family by family, as text.

``seeded(family, number)`` gives the same small program each time; programs are made so that their threads communicate.
What the families share is here; they themselves are in ``random_memory``, ``random_mbarriers``, ``random_bulk`` and
``random_copies``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from tests.random_programs import Line, Program

T = TypeVar("T")
SCOPES = ("cta", "cluster", "gpu", "sys")


class Kit(Struct):
    """The thread in the making: its lines, and the registers that hold what it has loaded, by type."""

    rng: random.Random
    lines: list[Line] = field(default_factory=list)
    loaded: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0

    def fresh(self, prefix: str = "r") -> str:
        """A register of its own; what is first written decides its type."""
        self.count += 1
        return f"{prefix}{self.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, items: Sequence[T]) -> T:
        return self.rng.choice(items)

    def add(self, head: str, tail: str = "", sem: str | None = None, scope: str | None = None) -> None:
        self.lines.append(Line(head, tail, sem, scope))

    def load(self, kind: str, place: str, sem: str = "weak", scope: str | None = None, space: str = "") -> str:
        """``ld``; the register that it writes."""
        register = self.fresh()
        self.add("ld", f"{space}.{kind} {register}, [{place}]", sem, scope if sem != "weak" else None)
        self.loaded.setdefault(kind, []).append(register)
        return register

    def store(
        self, kind: str, place: str, value: object, sem: str = "weak", scope: str | None = None, space: str = ""
    ) -> None:
        self.add("st", f"{space}.{kind} [{place}], {value}", sem, scope if sem != "weak" else None)

    def fence(self, scopes: Sequence[str], sems: Sequence[str] = ("acq_rel", "acq_rel", "sc")) -> None:
        self.add("fence", "", self.pick(sems), self.pick(scopes))

    def async_fence(self, spaces: Sequence[str] = ("", "", ".global", ".shared::cta")) -> None:
        self.add(f"fence.proxy.async{self.pick(spaces)}")

    def publish(self, flag: str, scope: str, space: str = ".global") -> None:
        """Set a flag, in most cases with a release pattern."""
        roll = self.rng.random()
        if roll < 0.3:
            self.fence((scope,))
        self.store("u32", flag, 1, "relaxed" if roll < 0.45 else "release", scope, space)

    def subscribe(self, flag: str, scope: str, space: str = ".global", guarded: bool = False) -> str | None:
        """Read a flag, in most cases with an acquire pattern; the label to jump to if it is not set, or None."""
        roll = self.rng.random()
        register = self.load("u32", flag, "relaxed" if roll < 0.45 else "acquire", scope, space)
        if roll < 0.3:
            self.fence((scope,))
        if not guarded:
            return None
        p, label = self.fresh("p"), self.fresh("L")
        self.add("setp.eq", f".u32 {p}, {register}, 0")
        self.lines.append(Line("bra", f" {label}", guard=f"@{p} "))
        return label

    def label(self, name: str | None) -> None:
        """The end of what a branch jumps over."""
        if name is not None:
            self.lines.append(Line("", label=name))

    def guard(self, predicate: str, negated: bool = False) -> None:
        """Predicate the last line."""
        self.lines[-1] = replace(self.lines[-1], guard=f"@{'!' if negated else ''}{predicate} ")

    def take(self) -> tuple[Line, ...]:
        """The lines of the thread; the next one starts anew."""
        lines, self.lines, self.loaded, self.count = tuple(self.lines), [], {}, 0
        return lines


Threads = Iterable[tuple[str, tuple[Line, ...]]]


def program(declarations: Iterable[str], threads: Threads, condition: str) -> Program:
    """A program of threads given as (placement, lines)."""
    placed = list(threads)
    return Program(
        False,
        tuple(declarations),
        tuple(f"P{i}" for i in range(len(placed))),
        tuple(p for p, _ in placed),
        tuple(lines for _, lines in placed),
        condition,
        True,
    )


def seeded(family: str, number: int) -> Program:
    """Program ``number`` of a family; it reads and prints the same on every machine. Each third one is twisted."""
    rng = random.Random(f"{family}/{number}")
    made = makers()[family](rng)
    return twisted(rng, made) if number % 3 == 2 else made


def twisted(rng: random.Random, source: Program) -> Program:
    """``source`` with an address in a register, or an instruction that is predicated on what was loaded before it."""
    places = [
        (t, i)
        for t, thread in enumerate(source.threads)
        for i, line in enumerate(thread)
        if line.head and not line.guard and not line.label and line.head not in ("exit", "bra")
    ]
    rng.shuffle(places)
    for t, i in places:
        line, thread = source.threads[t][i], source.threads[t]
        if rng.random() < 0.5:
            named = re.search(r"\[([a-z])([+][0-9]+)?\]", line.tail)
            if named and not line.head.startswith(("tensormap", "fence", "tcgen05", "cp.async.bulk.tensor")):
                register = f"d{90 + i}"
                address = Line("mov", f".u64 {register}, {named[1]}")
                tail = line.tail.replace(named[0], f"[{register}{named[2] or ''}]", 1)
                return source.change(t, i, address, replace(line, tail=tail))
        else:
            loaded = [m[1] for before in thread[:i] if (m := re.search(r"\.u32 (r[0-9]+), \[", before.tail))]
            loaded = [r for r in loaded if not any(r in before.tail for before in thread[:i] if before.guard)]
            arriving = ("mbarrier.arrive", "mbarrier.expect_tx", "mbarrier.complete_tx", "bar.arrive")
            arrives = line.head.startswith(arriving)
            other = "barrier" in line.head or line.head.startswith(("bar.", "mov", "setp"))
            if loaded and (arrives or not other):
                p = f"p{90 + i}"
                test = Line(f"setp.{rng.choice(('eq', 'ne'))}", f".u32 {p}, {rng.choice(loaded)}, 0")
                return source.change(t, i, test, replace(line, guard=f"@{p} "))
    return source


def makers() -> dict[str, Callable[[random.Random], Program]]:
    """The makers of all families."""
    from tests import (
        random_accesses,
        random_addresses,
        random_aligned,
        random_arrivals,
        random_atomics,
        random_bulk,
        random_copies,
        random_exchanges,
        random_fences,
        random_matrices,
        random_mbarriers,
        random_memory,
        random_multimem,
        random_restricted,
        random_tensorcore,
        random_tensors,
        random_together,
        random_torn,
        random_undetermined,
    )

    return {
        "vectors": random_memory.vectors,
        "mixed_sizes": random_memory.mixed_sizes,
        "cluster": random_memory.cluster,
        "warps": random_memory.warps,
        "zeros": random_memory.zeros,
        "grids": random_memory.grids,
        "mbarriers": random_mbarriers.mbarriers,
        "bulk": random_bulk.bulk,
        "masked": random_bulk.masked,
        "cp_async": random_copies.cp_async,
        "tensormaps": random_copies.tensormaps,
        "exchanges": random_exchanges.exchanges,
        "together": random_together.together,
        "matrices": random_matrices.matrices,
        "addresses": random_addresses.addresses,
        "tensors": random_tensors.tensors,
        "multimem": random_multimem.multimem,
        "restricted": random_restricted.restricted,
        "tcgen05": random_tensorcore.tcgen05,
        "undetermined": random_undetermined.undetermined,
        "accesses": random_accesses.accesses,
        "arrivals": random_arrivals.arrivals,
        "torn": random_torn.torn,
        "atomics": random_atomics.atomics,
        "aligned": random_aligned.aligned,
        "fences": random_fences.fences,
    }


NAMES = (
    "vectors",
    "mixed_sizes",
    "cluster",
    "warps",
    "grids",
    "mbarriers",
    "bulk",
    "cp_async",
    "tensormaps",
    "exchanges",
    "together",
    "matrices",
    "addresses",
    "tensors",
    "multimem",
    "restricted",
    "tcgen05",
    "undetermined",
    "accesses",
    "arrivals",
    "torn",
    "atomics",
    "aligned",
    "zeros",
    "masked",
    "fences",
)


def renamed(source: Program, table: dict[str, str]) -> Program:
    """``source`` with its variables and registers renamed: variables by ``table``, ``r1`` to ``r71``."""

    def rename(match: re.Match[str]) -> str:
        word = match[0]
        if word in table:
            return table[word]
        return f"{word[0]}7{word[1:]}" if re.fullmatch(r"[rpktdq][0-9]+", word) else word

    def apply(text: str) -> str:
        return re.sub(r"(?<![.\w])(?<!::)[A-Za-z_]\w*", rename, text)

    return replace(
        source,
        declarations=tuple(apply(d) for d in source.declarations),
        threads=tuple(tuple(replace(i, tail=apply(i.tail), guard=apply(i.guard)) for i in t) for t in source.threads),
        condition=apply(source.condition),
    )
