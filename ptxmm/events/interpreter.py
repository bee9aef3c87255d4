"""Runs one thread on plain integers, or with the values of its reads left open.

With the values given (``values``) this is an ordinary interpreter. With open values registers hold expressions, and
the run forks only where it must know one: at a branch, a predicated memory access, an address, the comparison of a
``cas``, an operand of a barrier. Each choice becomes a constraint that the values must meet in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ptxmm.errors import PtxmmError
from ptxmm.events.expressions import Expressions, Node
from ptxmm.events.trace import Cell, Event, Trace
from ptxmm.program.control import SPINS, ControlFlow, around, control_flow
from ptxmm.program.test import EventId, Test
from ptxmm.ptx.ops import (
    Address,
    Alu,
    Atomic,
    Barrier,
    Branch,
    Convert,
    Exit,
    Fence,
    Load,
    Op,
    Operand,
    ProxyFence,
    Reg,
    Select,
    SetPredicate,
    Store,
    Sym,
    Type,
)

PRED = Type("pred", 1)
ADDRESS = Type("u", 64)
U32 = Type("u", 32)

class Undecided(Exception):
    """A run without domains came to an address or a barrier operand that is open."""


class _Impossible(Exception):
    """No value of its domain is left for a choice."""


class Missing(Exception):
    """A run with given values came to a read that has none."""


Domain = Callable[[Node, Trace, bool], frozenset[int] | None]
"""The values that an expression over the reads of a path so far may take, given the choices made (if the last
argument says so); None: not known."""


@dataclass(frozen=True, slots=True)
class Program:
    """A thread ready to run: its number, its control flow (``around``: which backward branches are around each
    instruction) and where addresses lie."""

    test: Test
    thread: int
    control: ControlFlow
    around: list[tuple[int, ...]]
    ranges: tuple[tuple[int, int, str, str], ...]

    def locate(self, address: int, size: int) -> tuple[Cell, Cell] | None:
        """The physical and the virtual cell of ``size`` bytes at the virtual ``address``, or None outside objects."""
        for first, end, virtual, physical in self.ranges:
            if first <= address and address + size <= end:
                return (physical, address - first, size), (virtual, address - first, size)
        return None


def programs(test: Test) -> tuple[Program, ...]:
    """Every thread of ``test``, ready to run."""
    ranges = tuple(
        (o.address, o.address + o.size, o.key, o.physical) for o in test.objects.values() if o.virtual == o.key
    )
    return tuple(Program(test, i, control_flow(t), around(t), ranges) for i, t in enumerate(test.threads))


def run(
    program: Program,
    decisions: tuple[int, ...] = (),
    *,
    values: Mapping[EventId, int] | None = None,
    domain: Domain | None = None,
    unroll: int = 3,
    simplify: bool = True,
    spinning: bool = False,
    prune: bool = True,
) -> Trace:
    """One path of ``program``: the one that takes ``decisions``, and the first choice where they end.

    ``values``: what each read returns (then nothing is open). ``domain`` narrows choices, and is needed where an
    address or a barrier operand is open (else ``Undecided``). ``unroll``: bound of each backward branch.
    ``simplify``: dep=sem. ``spinning``: go round spin loops as well. ``prune``: narrow choices between true and false
    by ``domain`` too; without, what a read outside every object returns stays open as well, since ``domain`` may not
    have its address yet. Raises ``Missing`` where ``values`` lacks a read.
    """
    machine = _Machine(program, decisions, values, domain, unroll, simplify, spinning, prune)
    return machine.run()


class _Machine:
    """The state of a run."""

    def __init__(
        self,
        program: Program,
        decisions: tuple[int, ...],
        values: Mapping[EventId, int] | None,
        domain: Domain | None,
        unroll: int,
        simplify: bool,
        spinning: bool,
        prune: bool,
    ) -> None:
        thread = program.test.threads[program.thread]
        self.program = program
        self.thread = thread
        self.objects = program.test.objects
        self.decisions = decisions
        self.values = values
        self.domain = domain
        self.unroll = unroll
        self.spinning = spinning
        self.prune = prune
        self.expressions = Expressions(simplify)
        self.trace = Trace(program.thread)
        self.registers: dict[str, Node] = {n: self.expressions.constant(v) for n, v in thread.initial.items()}
        self.taken: list[int] = []
        self.decided: dict[int, int] = {}
        self.guards: list[tuple[int, int, int]] = []  # open guards: join, reads, pc of the branch
        self.ctrl = 0
        self.pc = 0
        self.step = 0
        self.last_write = -1
        self.visited: dict[int, int] = {}
        self.rounds: dict[int, int] = {}
        self.spins: dict[int, int] = {}

    def run(self) -> Trace:
        trace = self.trace
        try:
            self._run()
        except _Impossible:
            trace.end = "impossible"
        trace.registers = {name: self._register(name) for name in self.thread.registers}
        return trace

    def _run(self) -> None:
        body = self.thread.body
        headers = frozenset(self.program.control.spin.values())
        while self.pc < len(body):
            self.step += 1
            if self.guards:
                self._close_guards()
            if self.pc in headers:
                self.visited[self.pc] = self.step
            op = body[self.pc]
            if isinstance(op, Branch | Exit):
                if not self._jump(op):
                    break
            else:
                self._execute(op)
                self.pc += 1

    # Registers and operands.

    def _register(self, name: str) -> Node:
        node = self.registers.get(name)
        return self.expressions.constant(0) if node is None else node

    def _operand(self, operand: Operand, type_: Type) -> Node:
        if isinstance(operand, Reg):
            return self._register(operand.name)
        if isinstance(operand, Sym):
            return self.expressions.constant(self.objects[operand.name].address + operand.offset)
        return self.expressions.constant(operand.value & ((1 << type_.bits) - 1))

    def _guard(self, op: Op) -> Node | None:
        if op.guard is None:
            return None
        node = self._register(op.guard.register)
        return self.expressions.operation("not", PRED, node) if op.guard.negated else node

    def _assign(self, register: Reg, node: Node, guard: Node | None) -> None:
        if guard is not None:
            node = self.expressions.select(guard, node, self._register(register.name))
        self.registers[register.name] = node

    # Choices.

    def _decide(self, node: Node, choices: Sequence[int] | None, what: str = "") -> int:
        """The value of ``node`` on this path; ``choices`` None: its domain."""
        if node.value is not None:
            return node.value
        if node.op == "not" and node.type == PRED:
            return 1 - self._decide(node.args[0], (0, 1))
        earlier = self.decided.get(id(node))
        if earlier is not None:
            return earlier
        position = len(self.taken)
        if position < len(self.decisions):
            value = self.decisions[position]
        else:
            possible = None
            if self.domain is not None and (self.prune or choices is None):
                possible = self.domain(node, self.trace, True)
                if possible is not None and not possible and not self.prune:
                    # Not yet, it seems; what follows may be what makes it so, if it does not depend on this access.
                    possible = self.domain(node, self.trace, False)
            if possible is not None:
                choices = [v for v in sorted(possible) if choices is None or v in choices]
            if choices is None:
                if self.domain is None:
                    raise Undecided
                raise PtxmmError(f"the {what} may take too many values", kind="unsupported")
            if not choices:
                raise _Impossible
            value = choices[0]
            prefix = tuple(self.taken)
            self.trace.forks += [(*prefix, other) for other in choices[1:]]
        self.taken.append(value)
        self.decided[id(node)] = value
        self.trace.constraints.append((node, value, len(self.trace.events)))
        return value

    # Control.

    def _close_guards(self) -> None:
        """At the join of branches: what they assigned depends on their guards from here on."""
        closing = [g for g in self.guards if g[0] == self.pc]
        if not closing:
            return
        self.guards = [g for g in self.guards if g[0] != self.pc]
        added: dict[str, int] = {}
        for _, reads, branch in closing:
            for name in self.program.control.assigned[branch]:
                added[name] = added.get(name, 0) | reads
        for name, reads in added.items():
            self.registers[name] = self.expressions.joined(self._register(name), reads)
        self.ctrl = 0
        for _, reads, _ in self.guards:
            self.ctrl |= reads

    def _jump(self, op: Branch | Exit) -> bool:
        """Go on after a branch or exit; false at the end of the run."""
        node = self._guard(op)
        if isinstance(op, Branch) and op.condition is not None:
            c = op.condition
            test = self.expressions.operation(c.cmp, c.type, self._operand(c.a, c.type), self._operand(c.b, c.type))
            node = test if node is None else self.expressions.operation("and", PRED, node, test)
        taken = node is None or self._decide(node, (0, 1)) != 0
        if node is not None and node.reads:
            self.guards.append((self.program.control.join[self.pc], node.reads, self.pc))
            self.ctrl |= node.reads
        if not taken:
            self.pc += 1
            return True
        if isinstance(op, Exit):
            return False
        if op.target <= self.pc and not self._go_back(op.target):
            return False
        self.pc = op.target
        return True

    def _go_back(self, target: int) -> bool:
        """Count a backward branch; false if the run ends here."""
        spin = self.program.control.spin.get(self.pc)
        if spin is not None and not self.spinning and self.last_write < self.visited[spin]:
            count = self.spins.get(self.pc, 0)
            if count >= SPINS:
                self.trace.end = "spin"
                return False
            self.spins[self.pc] = count + 1
            return True
        count = self.rounds.get(self.pc, 0)
        if count >= self.unroll:
            self.trace.end = "cut"
            return False
        self.rounds[self.pc] = count + 1
        return True

    # Instructions.

    def _execute(self, op: Op) -> None:
        guard = self._guard(op)
        if guard is not None and guard.constant:
            if not guard.value:
                return
            guard = None
        expressions = self.expressions
        if isinstance(op, Alu):
            self._assign(op.dst, self._alu(op), guard)
        elif isinstance(op, Convert):
            value = expressions.convert(self._operand(op.value, op.frm), op.to, op.frm, op.saturate)
            self._assign(op.dst, value, guard)
        elif isinstance(op, SetPredicate):
            self._set_predicate(op, guard)
        elif isinstance(op, Select):
            a, b = self._operand(op.a, op.type), self._operand(op.b, op.type)
            self._assign(op.dst, expressions.select(self._register(op.predicate.name), a, b), guard)
        else:
            self._effect(op, guard)

    def _alu(self, op: Alu) -> Node:
        sources = [self._source(op, i, s) for i, s in enumerate(op.sources)]
        if op.op == "mov":
            return sources[0]
        if not op.op.startswith("mad."):
            return self.expressions.operation(op.op, op.type, *sources)
        # In two steps, so that the rewrites see the product: r0 * 0 + 1 does not depend on r0.
        factors = self.expressions.operation("mul" + op.op[3:], op.type, *sources[:2])
        type_ = Type(op.type.kind, 2 * op.type.bits) if op.op == "mad.wide" else op.type
        return self.expressions.operation("add", type_, factors, sources[2])

    def _source(self, op: Alu, position: int, operand: Operand) -> Node:
        if op.op in ("shl", "shr") and position == 1:
            return self._operand(operand, U32)
        wide = op.op == "mad.wide" and position == 2
        return self._operand(operand, Type(op.type.kind, 2 * op.type.bits) if wide else op.type)

    def _set_predicate(self, op: SetPredicate, guard: Node | None) -> None:
        expressions = self.expressions
        node = expressions.operation(op.cmp, op.type, self._operand(op.a, op.type), self._operand(op.b, op.type))
        results = [node] if op.complement is None else [node, expressions.operation("not", PRED, node)]
        if op.boolop is not None and op.c is not None:
            c = self._register(op.c.name)
            c = expressions.operation("not", PRED, c) if op.c_negated else c
            results = [expressions.operation(op.boolop, PRED, r, c) for r in results]
        self._assign(op.dst, results[0], guard)
        if op.complement is not None:
            self._assign(op.complement, results[1], guard)

    def _effect(self, op: Op, guard: Node | None) -> None:
        """An instruction with events, which exist only if its guard holds."""
        if guard is not None and not self._decide(guard, (0, 1)):
            dst = op.dst if isinstance(op, Load | Atomic) else None
            if dst is not None and guard.reads:
                self.registers[dst.name] = self.expressions.joined(self._register(dst.name), guard.reads)
            return
        ctrl = self.ctrl | (0 if guard is None else guard.reads)
        around = self.program.around[self.pc]
        identity = (self.trace.thread, self.pc, sum(self.rounds.get(b, 0) + self.spins.get(b, 0) for b in around))
        if isinstance(op, Load):
            cells, reads = self._address(op, op.address, op.type.bytes)
            value = self._read(identity, op, cells, reads, ctrl)
            self._assign(op.dst, self._returned(op.dst, op.type, value), guard)
        elif isinstance(op, Store):
            cells, reads = self._address(op, op.address, op.type.bytes)
            value = self._stored(op.value, op.type)
            if cells is not None:
                self._add(Event(identity, "W", op, *cells, value=value, addr=reads, data=value.reads, ctrl=ctrl))
            else:
                self._lose()
        elif isinstance(op, Atomic):
            self._atomic(op, guard, identity, ctrl)
        elif isinstance(op, Barrier):
            self._barrier(op, identity, ctrl)
        elif isinstance(op, Fence | ProxyFence):
            self._add(Event(identity, "F", op, ctrl=ctrl))
        else:
            raise PtxmmError(f"no such instruction: {type(op).__name__}", kind="internal")

    def _atomic(self, op: Atomic, guard: Node | None, identity: EventId, ctrl: int) -> None:
        cells, addr = self._address(op, op.address, op.type.bytes)
        operands = [self._stored(o, op.type) for o in op.operands]
        old = self._read(identity, op, cells, addr, ctrl)
        expressions = self.expressions
        writes = True
        if op.op == "cas":
            equal = expressions.operation("eq", op.type, old, operands[0])
            writes = self._decide(equal, (0, 1)) != 0
            new, ctrl = operands[1], ctrl | equal.reads
        else:
            new = operands[0] if op.op == "exch" else expressions.operation(op.op, op.type, old, *operands)
        if writes:
            if cells is not None:
                self._add(Event(identity, "W", op, *cells, value=new, addr=addr, data=new.reads, ctrl=ctrl))
                self.last_write = self.step
            else:
                self._lose()
        if op.dst is not None:
            self._assign(op.dst, self._returned(op.dst, op.type, old), guard)

    def _barrier(self, op: Barrier, identity: EventId, ctrl: int) -> None:
        number = self._decide(self._operand(op.barrier, U32), None, "number of this barrier")
        count = None if op.count is None else self._decide(self._operand(op.count, U32), None, "count of this barrier")
        self._add(Event(identity, "BA", op, ctrl=ctrl, barrier=(number, count)))
        if op.kind == "sync":
            self._add(Event(identity, "BW", op, ctrl=ctrl, barrier=(number, count)))

    def _address(self, op: Op, address: Address, size: int) -> tuple[tuple[Cell, Cell] | None, int]:
        """The cells that ``address`` is on this path (None outside every object), and the reads it depends on."""
        node = self._operand(address.base, ADDRESS)
        value = (self._decide(node, None, "address of this access") + address.offset) & ((1 << 64) - 1)
        cells = self.program.locate(value, size)
        if cells is None and self.trace.outside is None:
            line = op.source.span.line
            reason = f"{self.thread.name} line {line}: access outside every object (address {value:#x})"
            self.trace.outside = (reason, len(self.trace.events))
        return cells, node.reads

    def _read(
        self, identity: EventId, op: Load | Atomic, cells: tuple[Cell, Cell] | None, addr: int, ctrl: int
    ) -> Node:
        """Add a read, which returns a leaf; outside every object there is no event, and 0 is returned."""
        if cells is None and (self.prune or not addr):
            return self.expressions.constant(0)
        value = None
        if self.values is not None:
            value = self.values.get(identity)
            if value is None:
                raise Missing(identity)
        number = len(self.trace.reads)
        leaf = self.expressions.leaf(number, value)
        cell, place = (None, None) if cells is None else cells
        event = Event(identity, "R", op, cell, place, leaf, number, addr, 0, ctrl)
        self.trace.reads.append(event)
        if cells is not None:
            self._add(event)
        return leaf

    def _returned(self, register: Reg, type_: Type, node: Node) -> Node:
        """A value of ``type_`` as its destination register holds it: sign- or zero-extended (PTX ISA 9.4.1)."""
        bits = self.thread.registers[register.name].bits
        return node if bits == type_.bits else self.expressions.convert(node, Type("b", bits), type_)

    def _stored(self, operand: Operand, type_: Type) -> Node:
        """An operand of a memory instruction; a register may be wider than its type (PTX ISA 9.4.1)."""
        node = self._operand(operand, type_)
        if isinstance(operand, Reg):
            held = self.thread.registers[operand.name]
            if held.bits > type_.bits:
                return self.expressions.convert(node, type_, held)
        elif node.value is not None and node.value >> type_.bits:
            return self.expressions.constant(node.value & ((1 << type_.bits) - 1))
        return node

    def _lose(self) -> None:
        """A write outside every object. While the domains are computed it may be one inside in the end."""
        self.trace.lost += 1
        if not self.prune:
            self.last_write = self.step

    def _add(self, event: Event) -> None:
        self.trace.events.append(event)
