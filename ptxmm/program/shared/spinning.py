"""Threads that go round a loop for ever, as programs that end: two rounds of the loop written out behind the thread.

Whether a thread can spin for ever is asked of a program without that loop: the thread comes to the header of the loop,
goes round it twice in copies of its own (``Spinning.first``, ``Spinning.second``) and stops. An execution in which both
rounds read the same from the same writes stands for the one that goes on so for ever (docs/progress.md says why two
rounds are enough). What is read of a register at the end of a thread plays no part: a thread that does not end has no
final state.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.graph import backward, graph_of, live, natural_loops, reach
from ptxmm.program.identity import EventId
from ptxmm.program.test import Thread
from ptxmm.ptx.isa import PREDICATE, names_read, names_written
from ptxmm.ptx.ops import (
    COMPUTING,
    Alu,
    Atomic,
    Branch,
    Exit,
    Fence,
    Guard,
    Imm,
    Load,
    MbarrierInitFence,
    MbarrierWait,
    Multimem,
    Nothing,
    Op,
    ProxyFence,
    Reg,
    SetPredicate,
    TensormapFence,
    Type,
)

SPINS = "%spins"
"""The register that is 1 iff the thread went twice round the copies of the loop."""

_GATE, _ARRIVALS, _FIRST, _SECOND = "%gate", "%arrivals", "%first.", "%second."
_U32 = Type("u", 32)

_ALIKE = (*COMPUTING, Load, Atomic, Fence, ProxyFence, TensormapFence, MbarrierInitFence, MbarrierWait, Branch, Exit)
"""Instructions of loops whose rounds may all be alike: those that look, and atomics that may write what they read."""


class Loop(Struct, frozen=True):
    """A natural loop: the pc of its ``header``, which dominates all of ``body``, the pcs of the loop (sorted).

    ``carried``: registers that a round may leave different for the next one, in a way that matters to what the thread
    does. ``may_repeat``: rounds may be alike for ever: they have no instruction but those that look, compute, or may
    write back what they have read. ``again``: the thread may come to the loop a second time after it has left it.
    """

    header: int
    body: tuple[int, ...]
    carried: tuple[str, ...]
    may_repeat: bool
    again: bool


class Spinning(Struct, frozen=True):
    """A thread that spins: ``thread`` runs as before until it comes to the header of ``loop`` for the ``arrival``-th
    time, then twice round the loop at the pcs in ``first`` and ``second``, and then stops with 1 in ``SPINS``. A
    run that leaves the loop in these rounds stops with 0 there. ``origin`` has the pc in the original thread of every
    pc (-1: none)."""

    thread: Thread
    loop: Loop
    arrival: int
    first: range
    second: range
    origin: tuple[int, ...]

    def rounds(self, pc: int) -> bool:
        """Whether ``pc`` is in one of the two rounds."""
        return pc in self.first or pc in self.second

    def original(self, event: EventId) -> EventId:
        """``event`` as one of the original thread: the same for both rounds."""
        return event._replace(instruction=self.origin[event.instruction])


def without_counters(thread: Thread) -> Thread:
    """``thread`` without what no memory access, barrier or branch depends on, and with all registers 0 at its end.

    Counters of rounds disappear, so that more loops are seen to be the same in every round. All pcs stay.
    """
    if not any(isinstance(op, Branch | Exit) for op in thread.body):
        return thread
    needed = _needed(thread)
    end = len(thread.body)
    body: list[Op] = []
    for pc, op in enumerate(thread.body):
        dead = isinstance(op, COMPUTING) and not any(name in needed[pc + 1] for name in names_written(op))
        # A branch to the end: there the registers are cleared, while ``exit`` would leave them as they are.
        body.append(Nothing(None, None, op.source) if dead else _stay(op, end))
    return replace(thread, body=(*body, *_clear(thread)))


def loops(thread: Thread) -> tuple[Loop, ...]:
    """The natural loops of ``thread`` (one for each header), innermost first. Loops without a header that dominates
    them are left out."""
    if not backward(thread.body):
        return ()
    graph = graph_of(thread.body)
    bodies: dict[int, set[int]] = {}
    for _, header, nodes in natural_loops(graph):
        bodies.setdefault(header, set()).update(nodes)
    needed = _needed(thread)
    found = []
    for header, pcs in bodies.items():
        ops = [thread.body[pc] for pc in pcs]
        written = {name for op in ops for name in names_written(op)}
        may_repeat = all(isinstance(op, _ALIKE) or (isinstance(op, Multimem) and op.kind == "ld_reduce") for op in ops)
        leaving = {target for pc in pcs for target in graph.after[pc]} - pcs
        again = header in reach(graph.after, leaving)
        found.append(Loop(header, tuple(sorted(pcs)), tuple(sorted(written & needed[header])), may_repeat, again))
    return tuple(sorted(found, key=lambda loop: (len(loop.body), loop.header)))


def spinning(thread: Thread, loop: Loop, arrival: int) -> Spinning:
    """``thread`` (or ``plain`` of it) spinning in ``loop`` from its ``arrival``-th coming to the header on (from 1).

    Both rounds must begin with the same in every register that the loop carries, else the run stops with 0 in
    ``SPINS``.
    """
    source = thread.body[loop.header].source
    code = _Code()
    kept = Guard(_GATE)
    end = len(thread.body)
    for pc, op in enumerate(thread.body):
        code.label(("original", pc))
        if pc == loop.header:
            arrivals = Reg(_ARRIVALS)
            code.add(Alu("add", _U32, arrivals, (arrivals, Imm(1)), source))
            code.add(SetPredicate("eq", _U32, Reg(_GATE), None, arrivals, Imm(arrival), source))
            code.add(Branch(0, None, source, kept), ("first", loop.header))
        code.add(_stay(op, end), ("original", op.target) if isinstance(op, Branch) else None, pc)
        if isinstance(op, Exit):
            code.jump(("original", end))
    code.label(("original", end))
    code.add(Branch(0, None, source), ("end", 0))
    spans = []
    for copy, following in (("first", "second"), ("second", "again")):
        begin = len(code.ops)
        _round(code, thread, loop, copy, following)
        spans.append(range(begin, len(code.ops)))
    code.label(("again", loop.header))
    for name in loop.carried:
        values = Reg(_FIRST + name), Reg(_SECOND + name)
        type_ = thread.registers[name]
        if type_ == PREDICATE:
            code.add(Alu("xor", type_, Reg(_GATE), values, source))
        else:
            bits = Type("b", type_.bits)
            code.add(SetPredicate("ne", bits, Reg(_GATE), None, *values, source))
        code.add(Branch(0, None, source, kept), ("end", 0))
    code.add(Alu("mov", _U32, Reg(SPINS), (Imm(1),), source))
    code.label(("end", 0))
    for op in _clear(thread):
        code.add(op)
    registers = dict(thread.registers) | {SPINS: _U32, _ARRIVALS: _U32, _GATE: PREDICATE}
    for name in loop.carried:
        registers |= {_FIRST + name: thread.registers[name], _SECOND + name: thread.registers[name]}
    body = code.body()
    changed = replace(thread, body=body, registers=registers)
    return Spinning(changed, loop, arrival, spans[0], spans[1], tuple(code.origin))


_Label = tuple[str, int]
"""A place in the new program: which part, and the pc there in the original."""


class _Code:
    """Instructions with jumps to labels that are placed later."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.origin: list[int] = []
        self._targets: dict[int, _Label] = {}
        self._labels: dict[_Label, int] = {}

    def label(self, label: _Label) -> None:
        self._labels[label] = len(self.ops)

    def add(self, op: Op, target: _Label | None = None, origin: int = -1) -> None:
        if isinstance(op, Branch):
            assert target is not None
            self._targets[len(self.ops)] = target
        self.ops.append(op)
        self.origin.append(origin)

    def jump(self, target: _Label) -> None:
        """A jump to ``target`` in place of the instruction added last, with its guard (an ``exit``)."""
        last = self.ops[-1]
        self.ops[-1] = Branch(0, None, last.source, last.guard)
        self._targets[len(self.ops) - 1] = target

    def body(self) -> tuple[Op, ...]:
        return tuple(
            replace(op, target=self._labels[self._targets[i]]) if isinstance(op, Branch) else op
            for i, op in enumerate(self.ops)
        )


def _round(code: _Code, thread: Thread, loop: Loop, copy: str, following: str) -> None:
    """One round of ``loop``: a jump to its header goes to the part ``following``, one out of the loop to the end."""

    def place(pc: int) -> _Label:
        if pc == loop.header:
            return following, pc
        return (copy, pc) if pc in loop.body else ("end", 0)

    # The header comes first, whatever stands before it in the text.
    order = [loop.header, *(pc for pc in loop.body if pc != loop.header)]
    source = thread.body[loop.header].source
    code.label((copy, loop.header))
    for name in loop.carried:
        shadow = Reg((_FIRST if copy == "first" else _SECOND) + name)
        code.add(Alu("mov", thread.registers[name], shadow, (Reg(name),), source))
    for number, pc in enumerate(order):
        op = thread.body[pc]
        if pc != loop.header:
            code.label((copy, pc))
        if isinstance(op, Exit):
            code.add(op)
            code.jump(("end", 0))
        else:
            code.add(op, place(op.target) if isinstance(op, Branch) else None, pc)
        falls = not isinstance(op, Branch | Exit) or op.guard is not None or getattr(op, "condition", None) is not None
        if falls and (number + 1 == len(order) or order[number + 1] != pc + 1):
            code.add(Branch(0, None, op.source), place(pc + 1))


def _stay(op: Op, end: int) -> Op:
    """``op``, an ``exit`` as a jump to the end of the thread's own instructions."""
    return Branch(end, None, op.source, op.guard) if isinstance(op, Exit) else op


def _clear(thread: Thread) -> list[Op]:
    """Instructions that set every register to 0."""
    source = thread.body[-1].source
    return [Alu("mov", type_, Reg(name), (Imm(0),), source) for name, type_ in thread.registers.items()]


def _needed(thread: Thread) -> list[frozenset[str]]:
    """For each pc, and the end, the registers on which some effect or branch from there on depends."""
    written = [frozenset(names_written(op)) for op in thread.body]

    def used(pc: int, after: frozenset[str]) -> frozenset[str]:
        op = thread.body[pc]
        idle = isinstance(op, COMPUTING) and not written[pc] & after
        names = frozenset() if idle else frozenset(names_read(op))
        return names | (after if op.guard is not None else after - written[pc])

    return live(graph_of(thread.body), used)
