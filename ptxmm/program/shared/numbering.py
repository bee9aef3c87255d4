"""Registers that hold the same value whichever way a branch goes, and what instructions do, told by such values
(reading dep=value).

Value numbering: two registers have one number if they are copies of one value, the same constant, or the same
instruction made them of values with the same numbers. What comes from memory or from other threads has a number of its
own for each instruction, and so has what meets with another number where paths join.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, NamedTuple, cast

from ptxmm.program.graph import Graph, reach, strong_components
from ptxmm.program.test import Thread
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written

_RESULTS: Mapping[type, tuple[str, ...]] = {
    ops.Alu: ("dst",),
    ops.AluPair: ("dst", "predicate"),
    ops.Convert: ("dst",),
    ops.SetPredicate: ("dst", "complement"),
    ops.Select: ("dst",),
    ops.Pack: ("dst",),
    ops.Unpack: ("dst",),
    ops.Opaque: ("dst", "second"),
}
"""The instructions that give the same results for the same operands, with the fields that name these results."""

_Numbers = dict[str, int]
"""The number of the value of each register."""
_OPPOSITE = {"neu": "eq", "equ": "ne", "geu": "lt", "gtu": "le", "leu": "gt", "ltu": "ge", "nan": "num"}
"""Comparisons of floating-point numbers, and those that hold of the same operands if and only if they do not."""


class Described(NamedTuple):
    """What an instruction does but for its guard, the values of registers in the place of their names, and what holds
    where it does it: the number of a predicate, and whether that is false."""

    what: Hashable
    guard: tuple[int, bool] | None


class Numbering:
    """The value numbering of a thread. ``described``: what its instructions at ``places`` do, told alike of two that do
    the same in one round of all loops."""

    def __init__(self, thread: Thread, graph: Graph, places: Collection[int]) -> None:
        self.thread = thread
        self.graph = graph
        self.terms: dict[Hashable, int] = {}
        self.constants: dict[int, int] = {}
        self.literals: dict[int, tuple[int, bool]] = {}
        """Of predicates that are the same as, or the opposite of, another value: its number, and which of both."""
        self.place = [(component, pc) for pc, component in enumerate(strong_components(graph))]
        """An order in which only branches that lead back, as part of a loop, go against control."""
        self.leaving: dict[int, _Numbers] = {}
        """The numbers after each instruction; where only the next one follows, which none but it comes before, those
        after that one."""
        self.described: dict[int, Described] = {}
        for _, pc in sorted(self.place[:-1]):
            numbers = self.leaving[pc] = self.entering(pc)
            if pc in places:
                self.described[pc] = self.description(thread.body[pc], numbers)
            self.assign(pc, numbers)

    def same_either_way(self, join: Mapping[int, int]) -> dict[int, frozenset[str]]:
        """For each branch the registers that hold the same value at its ``join`` whichever way it goes.

        Where control may come back to an instruction all numbers are new, so that a number stands for one value from
        the branch to the join if there is no loop in between; with one nothing is found.
        """
        graph, place = self.graph, self.place
        found: dict[int, frozenset[str]] = {}
        for pc in (pc for pc in join if isinstance(self.thread.body[pc], ops.Branch)):
            inside = reach(graph.after, graph.after[pc], join[pc])
            if all(place[p] < place[after] for p in (pc, *inside) for after in graph.after[p] if after != join[pc]):
                first, *others = [self.leaving[p] for p in graph.before[join[pc]] if p == pc or p in inside]
                found[pc] = frozenset(n for n, number in first.items() if all(o[n] == number for o in others))
        return found

    def number(self, term: Hashable) -> int:
        return self.terms.setdefault(term, len(self.terms))

    def constant(self, value: int) -> int:
        found = self.number(("constant", value))
        self.constants[found] = value
        return found

    def description(self, op: ops.Op, numbers: _Numbers) -> Described:
        """What ``op`` does; two that write registers do the same only if these have the same names."""
        type_ = getattr(op, "type", None)
        bits = 64 if type_ is None else type_.bits * getattr(op, "packed", 1)
        kept = [(name, getattr(op, name)) for name in op.__struct_fields__ if name not in ("source", "guard")]
        what = (type(op), *(item if name == "dst" else self.told(item, bits, numbers) for name, item in kept))
        return Described(what, None if op.guard is None else self.guard(op.guard, numbers))

    def told(self, item: Any, bits: int, numbers: _Numbers) -> Hashable:
        """``item`` of an instruction on numbers of so many ``bits``, told by its value."""
        if isinstance(item, tuple):
            return tuple(self.told(part, bits, numbers) for part in item)
        if isinstance(item, ops.Address):
            return self.told(item.base, 64, numbers), item.offset
        known = item.value if isinstance(item, ops.Imm) else None
        if isinstance(item, ops.Reg):
            known = self.constants.get(numbers[item.name])
        return self.operand(item, numbers) if known is None else ("constant", known & ((1 << bits) - 1))

    def guard(self, guard: ops.Guard, numbers: _Numbers) -> tuple[int, bool]:
        number, negated = self.literal(numbers[guard.register])
        return number, negated != guard.negated

    def literal(self, number: int) -> tuple[int, bool]:
        return self.literals.get(number, (number, False))

    def entering(self, pc: int) -> _Numbers:
        before = self.graph.before[pc]
        if not pc and not before:
            return {name: self.constant(self.thread.initial.get(name, 0)) for name in self.thread.registers}
        if not before or any(self.place[p] >= self.place[pc] for p in before):
            return {name: self.number((pc, name)) for name in self.thread.registers}
        first, *others = [self.leaving[p] for p in before]
        if others:
            return {n: k if all(o[n] == k for o in others) else self.number((pc, n)) for n, k in first.items()}
        return first if self.graph.after[before[0]] == (pc,) else dict(first)

    def assign(self, pc: int, numbers: _Numbers) -> None:
        """Number what the instruction at ``pc`` gives."""
        op = self.thread.body[pc]
        made = self.made(op, numbers)
        for name in names_written(op):
            new = made.get(name, self.number((pc, name, "given")))
            if op.guard is not None and new != numbers[name]:
                guard = numbers[op.guard.register], op.guard.negated
                new = self.number(("guarded", *guard, new, numbers[name]))
            made[name] = new
        numbers.update(made)

    def made(self, op: ops.Op, numbers: _Numbers) -> _Numbers:
        """The numbers of what ``op`` computes; none of what it gets from elsewhere."""
        results = _RESULTS.get(type(op), ())
        kept = (name for name in op.__struct_fields__ if name not in (*results, "source", "guard")) if results else ()
        given = tuple(self.operand(getattr(op, name), numbers) for name in kept)
        made: _Numbers = {}
        for field in results:
            written = getattr(op, field)
            for i, register in enumerate(written if isinstance(written, tuple) else (written,)):
                if register is not None:
                    bits = self.bits(register)
                    copied = self.copied(op, bits, numbers)
                    made[register.name] = self.number((type(op), field, i, bits, given)) if copied is None else copied
        self.relate(op, made, numbers)
        return made

    def relate(self, op: ops.Op, made: _Numbers, numbers: _Numbers) -> None:
        """Note of the predicates that ``op`` makes what they are the opposite of."""
        if isinstance(op, ops.Alu) and op.op == "not" and isinstance(op.sources[0], ops.Reg) and op.type.kind == "pred":
            number, negated = self.literal(numbers[op.sources[0].name])
            self.literals[made[op.dst.name]] = number, not negated
        if isinstance(op, ops.SetPredicate) and op.boolop is None:
            held, negated = self.comparison(op, numbers)
            self.literals[made[op.dst.name]] = held, negated
            if op.complement is not None:
                self.literals[made[op.complement.name]] = held, not negated

    def comparison(self, op: ops.SetPredicate, numbers: _Numbers) -> tuple[int, bool]:
        """The number of the comparison of these values that ``op`` makes, or of its opposite."""
        cmp, _, mode = op.cmp.partition(".")
        a, b = (self.told(item, op.type.bits, numbers) for item in (op.a, op.b))
        if op.type.kind not in ("f", "bf") and cmp in ("gt", "le"):
            cmp, a, b = {"gt": "lt", "le": "ge"}[cmp], b, a
        opposites = _OPPOSITE if op.type.kind in ("f", "bf") else {"ne": "eq", "ge": "lt"}
        told = opposites.get(cmp, cmp)
        operands: Hashable = frozenset((a, b)) if told in ("eq", "ne") else (a, b)
        return self.number(("compared", told, mode, op.type, operands)), told != cmp

    def operand(self, item: Any, numbers: _Numbers) -> Hashable:
        """What tells apart a field of an instruction: of a register the number of its value."""
        if isinstance(item, tuple):
            return tuple(self.operand(part, numbers) for part in item)
        return (self.bits(item), numbers[item.name]) if isinstance(item, ops.Reg) else cast("Hashable", item)

    def copied(self, op: ops.Op, bits: int, numbers: _Numbers) -> int | None:
        """The number of the value that ``op`` copies as it is to a register of so many bits."""
        if not isinstance(op, ops.Alu) or op.op != "mov" or op.type.bits != bits:
            return None
        (value,) = op.sources
        if isinstance(value, ops.Reg):
            return numbers[value.name] if self.bits(value) == bits else None
        return self.number(value if isinstance(value, ops.Sym) else ("constant", value.value & ((1 << bits) - 1)))

    def bits(self, register: ops.Reg) -> int:
        return self.thread.registers[register.name].bits
