"""Values that nothing sees: what no address, branch, barrier operand, misuse or final state that is asked for depends
on. This is slicing (Weiser 1984), over registers and whole objects, without the order of instructions.

Where a value would have too many cases these need none: any value stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ptxmm.program.condition import MemoryTerm, RegisterTerm, Term
from ptxmm.program.identity import EventId
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.shared.pointers import known_addresses
from ptxmm.program.shared.undetermined import locations
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import Address, Op, Reg, Sym

_Node = tuple[int, str]
"""A register of a thread, or (thread -1) the contents of a physical object."""


class Unseen(Struct, frozen=True):
    """``instructions``: by thread those whose results nothing sees; ``objects``: the physical objects whose contents
    nothing sees; ``terms``: what may be asked for, None if that is all."""

    instructions: tuple[frozenset[int], ...]
    objects: frozenset[str] = frozenset()
    terms: frozenset[Term] | None = None

    def sees(self, term: Term) -> bool:
        """Whether ``term`` may be asked for."""
        return self.terms is None or term in self.terms or not isinstance(term, RegisterTerm | MemoryTerm)

    def returned(self, read: EventId, objects: Iterable[str]) -> bool:
        """Whether nothing sees what a read of ``objects`` returned."""
        if not self.instructions:
            return False
        return read.instruction in self.instructions[read.thread] or not self.objects.isdisjoint(objects)


NOTHING = Unseen(())


def unseen(test: Test, asked: Iterable[Term]) -> Unseen:
    """What nothing sees of ``test`` where the final values ``asked`` for count."""
    terms = frozenset(asked)
    flow = _Flow(test)
    seen = flow.seen(terms)
    hidden = flow.everything - seen
    blind = (
        frozenset(pc for pc, given in flow.gives[number].items() if not any(node in seen for node in given))
        for number in range(len(test.threads))
    )
    return Unseen(tuple(blind), frozenset(name for thread, name in hidden if thread < 0), terms)


class _Flow:
    """What each register and object may be made of. ``gives``: for each thread the instructions that may go unseen,
    with what they give values; ``sinks``: what is seen whatever is asked for."""

    def __init__(self, test: Test) -> None:
        self.test = test
        self.everything = {(-1, key) for item in test.objects.values() for key in locations(item)}
        self.makers: dict[_Node, set[_Node]] = defaultdict(set)
        self.sinks: set[_Node] = set()
        self.gives: list[dict[int, list[_Node]]] = [{} for _ in test.threads]
        for number, (thread, kept) in enumerate(zip(test.threads, idempotent_atomics(test), strict=True)):
            self._number, self._known = number, known_addresses(thread, test.objects)
            for pc, op in enumerate(thread.body):
                self._add(pc, op, pc in kept)

    def seen(self, terms: Iterable[Term]) -> set[_Node]:
        """What is seen if ``terms`` are asked for."""
        found = set(self.sinks)
        for term in terms:
            if isinstance(term, RegisterTerm):
                found.add((term.thread, term.register))
            elif isinstance(term, MemoryTerm):
                found.update((-1, key) for key in locations(self.test.objects[term.key]))
        waiting = list(found)
        while waiting:
            more = self.makers[waiting.pop()] - found
            found |= more
            waiting += more
        return found

    def _add(self, pc: int, op: Op, compared: bool) -> None:
        results = [(self._number, name) for name, _ in definitions(op)]
        read = [(self._number, name) for name, _ in uses(op)]
        match op:
            case ops.Alu(op="div" | "rem" | "fns"):  # some operands have no result
                self.sinks.update(read)
            case (
                ops.Alu()
                | ops.AluPair()
                | ops.Convert()
                | ops.SetPredicate()
                | ops.Select()
                | ops.Pack()
                | ops.Unpack()
            ):
                self.gives[self._number][pc] = results
                self._made(results, read)
            case ops.Load():
                self.gives[self._number][pc] = results
                self._made(results, self._at(op.address))
                self.sinks.update(self._deciding(op))
            case ops.Store():
                self._made(self._at(op.address), read)
                self.sinks.update(self._deciding(op))
            case ops.Atomic() if op.op != "cas" and not compared:
                places = self._at(op.address)
                self.gives[self._number][pc] = [*results, *places]
                self._made([*results, *places], [*places, *read])
                self.sinks.update(self._deciding(op))
            case ops.Atomic():  # what it compares decides whether it writes
                self.sinks.update(read, self._at(op.address))
            case (
                ops.CopyAsync() | ops.BulkCopy(tensormap=None, reduction=None, mask=None, dst=Address(), src=Address())
            ) if op.dst is not None and op.src is not None:
                self._made(self._at(op.dst), self._at(op.src))
                self.sinks.update(read)
            case ops.Branch() | ops.Exit():
                self.sinks.update(read)
            case _ if isinstance(op, ops.Addressless | ops.MbarrierOp) and not isinstance(op, ops.Wgmma):
                self.sinks.update(read)
            case _:
                self.sinks.update(read, self.everything)

    def _made(self, results: Iterable[_Node], of: Iterable[_Node]) -> None:
        given = set(of)
        for node in results:
            self.makers[node] |= given

    def _deciding(self, op: ops.Load | ops.Store | ops.Atomic) -> Iterator[_Node]:
        """The guard and the base of the address."""
        if op.guard is not None:
            yield self._number, op.guard.register
        if isinstance(op.address.base, Reg):
            yield self._number, op.address.base.name

    def _at(self, address: Address) -> set[_Node]:
        """The objects that may be at ``address``: all, if it is not that of one variable."""
        base = address.base
        if isinstance(base, Reg):
            base = self._known.get(base.name, base)
        if isinstance(base, Sym):
            item = self.test.objects[base.name]
            if 0 <= base.offset + address.offset < item.size:
                return {(-1, key) for key in locations(item)}
        return self.everything
