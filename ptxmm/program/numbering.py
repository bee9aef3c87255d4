"""Registers that hold the same value whichever way a branch goes (reading dep=value).

Value numbering: two registers have one number if they are copies of one value, the same constant, or the same
instruction made them of values with the same numbers. What comes from memory or from other threads has a number of its
own for each instruction, and so has what meets with another number where paths join.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any, cast

from ptxmm.program.graph import Graph, reach, strong_components
from ptxmm.program.test import Thread
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import Alu, AluPair, Branch, Convert, Op, Pack, Reg, Select, SetPredicate, Sym, Unpack

_RESULTS: Mapping[type, tuple[str, ...]] = {
    Alu: ("dst",),
    AluPair: ("dst", "predicate"),
    Convert: ("dst",),
    SetPredicate: ("dst", "complement"),
    Select: ("dst",),
    Pack: ("dst",),
    Unpack: ("dst",),
}
"""The instructions that give the same results for the same operands, with the fields that name these results."""

_Numbers = dict[str, int]
"""The number of the value of each register."""


def same_either_way(thread: Thread, graph: Graph, join: Mapping[int, int]) -> dict[int, frozenset[str]]:
    """For each branch the registers that hold the same value at its ``join`` whichever way it goes.

    Where control may come back to an instruction all numbers are new, so that a number stands for one value from the
    branch to the join if there is no loop in between; with one nothing is found.
    """
    branches = [pc for pc in join if isinstance(thread.body[pc], Branch)]
    if not branches:
        return {}
    numbering = _Numbering(thread, graph)
    leaving, place = numbering.run(), numbering.place
    found: dict[int, frozenset[str]] = {}
    for pc in branches:
        inside = reach(graph.after, graph.after[pc], join[pc])
        if all(place[p] < place[after] for p in (pc, *inside) for after in graph.after[p] if after != join[pc]):
            first, *others = [leaving[p] for p in graph.before[join[pc]] if p == pc or p in inside]
            found[pc] = frozenset(n for n, number in first.items() if all(o[n] == number for o in others))
    return found


class _Numbering:
    def __init__(self, thread: Thread, graph: Graph) -> None:
        self.thread = thread
        self.graph = graph
        self.terms: dict[Hashable, int] = {}
        self.place = [(component, pc) for pc, component in enumerate(strong_components(graph))]
        """An order in which only branches that lead back, as part of a loop, go against control."""

    def run(self) -> dict[int, _Numbers]:
        """The numbers after each instruction; where only the next one follows, which none but it comes before, they
        are those after that one."""
        leaving: dict[int, _Numbers] = {}
        for _, pc in sorted(self.place[:-1]):
            leaving[pc] = self.entering(pc, leaving)
            self.assign(pc, leaving[pc])
        return leaving

    def number(self, term: Hashable) -> int:
        return self.terms.setdefault(term, len(self.terms))

    def entering(self, pc: int, leaving: Mapping[int, _Numbers]) -> _Numbers:
        before = self.graph.before[pc]
        if not pc and not before:
            return {name: self.number(("constant", self.thread.initial.get(name, 0))) for name in self.thread.registers}
        if not before or any(self.place[p] >= self.place[pc] for p in before):
            return {name: self.number((pc, name)) for name in self.thread.registers}
        first, *others = [leaving[p] for p in before]
        if others:
            return {n: k if all(o[n] == k for o in others) else self.number((pc, n)) for n, k in first.items()}
        return first if self.graph.after[before[0]] == (pc,) else dict(first)

    def assign(self, pc: int, numbers: _Numbers) -> None:
        """Number what the instruction at ``pc`` gives."""
        op = self.thread.body[pc]
        made = self.made(op, numbers)
        for name, _ in definitions(op):
            new = made.get(name, self.number((pc, name, "given")))
            if op.guard is not None and new != numbers[name]:
                guard = numbers[op.guard.register], op.guard.negated
                new = self.number(("guarded", *guard, new, numbers[name]))
            made[name] = new
        numbers.update(made)

    def made(self, op: Op, numbers: _Numbers) -> _Numbers:
        """The numbers of what ``op`` computes; none of what it gets from elsewhere."""
        results = _RESULTS.get(type(op), ())
        kept = (f.name for f in fields(op) if f.name not in (*results, "source", "guard")) if results else ()
        given = tuple(self.operand(getattr(op, name), numbers) for name in kept)
        made: _Numbers = {}
        for field in results:
            written = getattr(op, field)
            for i, register in enumerate(written if isinstance(written, tuple) else (written,)):
                if register is not None:
                    bits = self.bits(register)
                    copied = self.copied(op, bits, numbers)
                    made[register.name] = self.number((type(op), field, i, bits, given)) if copied is None else copied
        return made

    def operand(self, item: Any, numbers: _Numbers) -> Hashable:
        """What tells apart a field of an instruction: of a register the number of its value."""
        if isinstance(item, tuple):
            return tuple(self.operand(part, numbers) for part in item)
        return (self.bits(item), numbers[item.name]) if isinstance(item, Reg) else cast("Hashable", item)

    def copied(self, op: Op, bits: int, numbers: _Numbers) -> int | None:
        """The number of the value that ``op`` copies as it is to a register of so many bits."""
        if not isinstance(op, Alu) or op.op != "mov" or op.type.bits != bits:
            return None
        (value,) = op.sources
        if isinstance(value, Reg):
            return numbers[value.name] if self.bits(value) == bits else None
        return self.number(value if isinstance(value, Sym) else ("constant", value.value & ((1 << bits) - 1)))

    def bits(self, register: Reg) -> int:
        return self.thread.registers[register.name].bits
