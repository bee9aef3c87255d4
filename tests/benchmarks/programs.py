"""Litmus tests of any size, in the dialect of PTX that Dartagnan reads too, and their twins for AArch64."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Op(NamedTuple):
    """A store (``value`` to ``place``), a load (from ``place`` to the register of number ``value``), or a fence."""

    kind: Literal["store", "load", "fence"]
    place: str = ""
    value: int = 0
    order: Literal["relaxed", "acquire", "release"] = "relaxed"

    def ptx(self) -> str:
        """The instruction in PTX, with gpu scope."""
        match self.kind:
            case "store":
                return f"st.{self.order}.gpu {self.place}, {self.value}"
            case "load":
                return f"ld.{self.order}.gpu r{self.value}, {self.place}"
        return "fence.sc.gpu"

    def aarch64(self, address: str) -> list[str]:
        """The instructions that are at least as strong in AArch64, with the address of ``place`` in a register."""
        match self.kind:
            case "store":
                return [f"MOV W9,#{self.value}", f"{'STLR' if self.order == 'release' else 'STR'} W9,[{address}]"]
            case "load":
                return [f"{'LDAPR' if self.order == 'acquire' else 'LDR'} W{self.value},[{address}]"]
        return ["DMB SY"]


FENCE = Op("fence")


class Program(NamedTuple):
    """Threads, each in a CTA of its own unless there is one for all, and what is asked of them."""

    name: str
    threads: Sequence[Sequence[Op | str]]
    condition: str
    places: Sequence[str] = ()
    """The declarations, if not those of the places of ``threads``, each 0."""
    one_cta: bool = False

    def ptx(self) -> str:
        """The litmus test."""
        declared = self.places or [f"{place} = 0" for place in self._named()]
        head = [f"P{i}@cta {0 if self.one_cta else i},gpu 0" for i in range(len(self.threads))]
        bodies = [[op if isinstance(op, str) else op.ptx() for op in thread] for thread in self.threads]
        return f"PTX {self.name}\n{{\n{'; '.join(declared)};\n}}\n{_rows(head, bodies)}{self.condition}\n"

    def aarch64(self) -> str:
        """The same for herd7: the addresses are in registers from X10 on."""
        start, bodies = "", []
        for i, thread in enumerate(self.threads):
            ops = [op for op in thread if isinstance(op, Op)]
            address = {place: f"X{10 + k}" for k, place in enumerate(_places(ops))}
            start += " ".join(f"{i}:{register}={place};" for place, register in address.items()) + "\n"
            bodies.append([line for op in ops for line in op.aarch64(address.get(op.place, ""))])
        condition = re.sub(r"P(\d+):r(\d+)", r"\1:X\2", self.condition).replace(" == ", "=")
        head = [f"P{i}" for i in range(len(self.threads))]
        return f"AArch64 {self.name}\n{{\n{start}}}\n{_rows(head, bodies)}{condition}\n"

    def has_twin(self) -> bool:
        """Whether it consists of stores, loads and fences alone."""
        return all(isinstance(op, Op) for thread in self.threads for op in thread)

    def synchronizes(self) -> bool:
        """Whether some access has acquire or release semantics."""
        return any(op.order != "relaxed" for thread in self.threads for op in thread if isinstance(op, Op))

    def _named(self) -> list[str]:
        return _places([op for thread in self.threads for op in thread if isinstance(op, Op)])


def _places(ops: Sequence[Op]) -> list[str]:
    return list(dict.fromkeys(op.place for op in ops if op.place))


def _rows(head: list[str], bodies: list[list[str]]) -> str:
    rows = [head, *itertools.zip_longest(*bodies, fillvalue="")]
    return "".join(f" {' | '.join(row)} ;\n" for row in rows)


def shown(threads: Sequence[Sequence[Op]]) -> str:
    """The clause that asks for every register and every place."""
    registers = [f"P{i}:r{op.value}" for i, t in enumerate(threads) for op in t if op.kind == "load"]
    return (
        "locations [" + " ".join(f"{term};" for term in [*registers, *_places([op for t in threads for op in t])]) + "]"
    )


def ring(threads: int) -> Program:
    """Store buffering around a ring with fence.sc: not every thread can read 0."""
    bodies = [[Op("store", f"x{i}", 1), FENCE, Op("load", f"x{(i + 1) % threads}", 0)] for i in range(threads)]
    condition = "exists (" + " /\\ ".join(f"P{i}:r0 == 0" for i in range(threads)) + ")"
    return Program(f"ring-{threads}", bodies, condition)


def readers(count: int) -> Program:
    """Two threads that read one location ``count`` times while a third one writes to it: the number of final states
    grows exponentially."""
    loads = [Op("load", "x", i) for i in range(count)]
    stores = [Op("store", "x", i + 1) for i in range(count)]
    condition = "locations [" + "".join(f"P{t}:r{i}; " for t in range(2) for i in range(count)) + "]"
    return Program(f"readers-{count}", [loads, loads, stores], condition)


def states(places: int) -> Program:
    """One thread stores to every place, two read them all: ``4 ** places`` final states."""
    loads = [Op("load", f"x{i}", i) for i in range(places)]
    threads = [[Op("store", f"x{i}", 1) for i in range(places)], loads, loads]
    return Program(f"states-{4**places}", threads, shown(threads))


def chain(threads: int) -> Program:
    """Message passing along a chain of release-acquire pairs: the last thread sees the data."""
    last = threads - 1
    bodies = [["st.weak data, 1", "st.release.gpu f0, 1"]]
    bodies += [[f"ld.acquire.gpu r0, f{i - 1}", f"st.release.gpu f{i}, r0"] for i in range(1, last)]
    bodies += [[f"ld.acquire.gpu r0, f{last - 1}", "ld.weak r1, data"]]
    condition = f"exists (P{last}:r0 == 1 /\\ P{last}:r1 == 0)"
    return Program(f"chain-{threads}", bodies, condition, ["data = 0", *(f"f{i} = 0" for i in range(last))])


def counter(threads: int) -> Program:
    """Every thread increments a counter once."""
    bodies = [["atom.relaxed.gpu.add r0, c, 1"]] * threads
    return Program(f"counter-{threads}", bodies, f"forall (c == {threads})", ["c = 0"])


_COUNT = ["ld.weak r2, x", "add r3, r2, 1", "st.weak x, r3"]


def cas_lock(threads: int) -> Program:
    """Every thread increments a plain counter once, under a spin lock."""
    body = ["LC00:", "atom.acquire.gpu.cas r0, lock, 0, 1", "bne r0, 0, LC00", *_COUNT, "st.release.gpu lock, 0"]
    return Program(f"cas-lock-{threads}", [body] * threads, f"forall (x == {threads})", ["lock = 0", "x = 0"])


def ticket_lock(threads: int) -> Program:
    """The same under a lock with tickets, which are served in turn."""
    take = ["atom.relaxed.gpu.add r0, in, 1", "LC00:", "ld.acquire.gpu r1, out", "bne r0, r1, LC00"]
    body = [*take, *_COUNT, "add r4, r1, 1", "st.release.gpu out, r4"]
    return Program(
        f"ticket-lock-{threads}", [body] * threads, f"forall (x == {threads})", ["in = 0", "out = 0", "x = 0"]
    )


def arrivals(threads: int, each: int) -> Program:
    """Every thread of a CTA arrives ``each`` times on an mbarrier that waits for one arrival of each of them."""
    body = ["mbarrier.arrive.shared::cta.b64 _, [b]"] * each
    declared = [f".shared .b64 b @ cta 0 = mbarrier({threads})"]
    return Program(f"arrivals-{threads}-{each}", [body] * threads, f"forall (b == {each})", declared, one_cta=True)


# Each thread is a word: W and R are accesses, and the letters after them the places.
SHAPES = {
    "CoRR": "Wx RxRx",
    "MP": "WxWy RyRx",
    "SB": "WxRy WyRx",
    "LB": "RxWy RyWx",
    "R": "WxWy WyRx",
    "S": "WxWy RyWx",
    "2+2W": "WxWy WyWx",
    "WRC": "Wx RxWy RyRx",
    "RWC": "Wx RxRy WyRx",
    "IRIW": "Wx Wy RxRy RyRx",
    "ISA2": "WxWy RyWz RzRx",
    "3.SB": "WxRy WyRz WzRx",
    "3.LB": "RxWy RyWz RzWx",
    "3.2W": "WxWy WyWz WzWx",
}


def shapes() -> list[Program]:
    """The 14 shapes, each with every choice, for each thread of two accesses, of no fence, a fence.sc, or acquire loads
    and release stores: 192 tests."""
    made = []
    for shape, words in SHAPES.items():
        threads = [_accesses(word, i) for i, word in enumerate(words.split())]
        pairs = [i for i, thread in enumerate(threads) if len(thread) == 2]
        for choice in itertools.product(("po", "fence", "acq-rel"), repeat=len(pairs)):
            bodies = list(threads)
            for i, order in zip(pairs, choice, strict=True):
                first, second = threads[i]
                if order == "fence":
                    bodies[i] = [first, FENCE, second]
                elif order == "acq-rel":
                    bodies[i] = [op._replace(order="release" if op.kind == "store" else "acquire") for op in threads[i]]
            made.append(Program("+".join((shape, *choice)), bodies, shown(bodies)))
    return made


def _accesses(word: str, thread: int) -> list[Op]:
    """The accesses of a thread: loads go to the registers 0, 1, stores give each place a value of their own."""
    pairs = re.findall("([WR])([a-z])", word)
    return [
        Op("load", place, i) if kind == "R" else Op("store", place, thread + 1) for i, (kind, place) in enumerate(pairs)
    ]
