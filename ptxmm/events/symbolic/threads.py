"""Symbolic execution of threads: every path up to the unrolling bound, merged where paths join.

A thread becomes numbered events, each with the formula under which it is executed. What reads return is left open
as variables over the possible values of their locations; ``program`` ties them to writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.values import (
    Domain,
    Expressions,
    Reads,
    Value,
    apply,
    compute,
    convert,
    extend,
    merge,
    only,
    update,
)
from ptxmm.program.control import ControlFlow, control_flow, live_operands
from ptxmm.program.test import EventId, MemoryObject, Test, Thread
from ptxmm.ptx.ops import (
    Alu,
    Atomic,
    Barrier,
    Branch,
    Convert,
    Exit,
    Fence,
    Imm,
    Load,
    Op,
    Operand,
    ProxyFence,
    Reg,
    Select,
    SetPredicate,
    Store,
    Type,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula, Formulas

ADDRESS = Type("u", 64)
PREDICATE = Type("pred", 1)
AMOUNT = Type("u", 32)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory event may act: the object by its virtual and physical key and the byte range in it."""

    when: Formula
    physical: str
    virtual: str
    offset: int
    size: int

    def contains(self, cell: tuple[str, int, int]) -> bool:
        """Whether all bytes of ``cell`` (physical key, offset, size) are of this place."""
        key, offset, size = cell
        return key == self.physical and self.offset <= offset and offset + size <= self.offset + self.size


@dataclass(slots=True)
class Event:
    """An event of a thread. ``kind``: R W F PF AF BA BW. ``value``: what a write writes (of the access's width).

    ``address``, ``data``, ``control`` are the reads it depends on.
    """

    number: int
    kind: str
    thread: int
    id: EventId
    presence: Formula
    op: Op
    places: list[Place] = field(default_factory=list)
    value: Domain = field(default_factory=lambda: Domain({}))
    address: Reads = field(default_factory=dict)
    data: Reads = field(default_factory=dict)
    control: Reads = field(default_factory=dict)


@dataclass(slots=True)
class BarrierEvent:
    """A barrier instruction on some path: its events and the possible barrier ids and counts."""

    id: EventId
    op: Barrier
    presence: Formula
    barrier: Domain
    count: Domain | None
    arrive: int


@dataclass(slots=True)
class ThreadEvents:
    """What one thread may do: when it ends (``completed``, or ``cut`` by the bound) and with which registers."""

    barriers: list[BarrierEvent]
    completed: Formula
    cut: Formula
    registers: dict[str, Domain]


@dataclass(frozen=True, slots=True)
class _Control:
    """Open branches with one join, where the registers ``assigned`` come to depend on ``reads``."""

    assigned: frozenset[str]
    reads: Reads


@dataclass(slots=True)
class _State:
    guard: Formula
    registers: dict[str, Value]
    controls: dict[int, _Control] = field(default_factory=dict)
    wrote: dict[int, Formula] = field(default_factory=dict)


class Machine:
    """Executes the threads of ``test``; events are numbered across threads. ``check`` may raise ``Timeout``.

    ``possible`` gives the values that a read may find in a cell (physical key, offset, size) with their support,
    ``cells`` how a range splits into cells. ``free``: guards that depend on reads may go either way, to see what would
    be written if they did. ``stuck`` are the barrier instructions at which a thread may wait for ever.
    """

    def __init__(
        self,
        test: Test,
        formulas: Formulas,
        unroll: int,
        simplify: bool,
        possible: Callable[[tuple[str, int, int], EventId], dict[int, int]],
        free: bool,
        split: frozenset[str],
        stuck: frozenset[EventId],
        check: Callable[[], None],
    ) -> None:
        self.check = check
        self.test = test
        self.formulas = formulas
        self.unroll = unroll
        self.expressions = Expressions(simplify)
        self.possible = possible
        self.free = free
        self.split = split
        self.stuck = stuck
        self.events: list[Event] = []
        self.read_cells: dict[int, dict[tuple[str, int, int], Domain]] = {}
        self.outside: list[tuple[Formula, int, Op, Domain]] = []
        self.passes: dict[tuple[EventId, int], Formula] = {}
        self._choices = 0
        self._zero = Value(only(0), self.expressions.constant(0), {})

    def cells(self, place: Place) -> list[tuple[str, int, int]]:
        """The cells of the byte range of ``place``."""
        if place.physical in self.split:
            return [(place.physical, place.offset + i, 1) for i in range(place.size)]
        return [(place.physical, place.offset, place.size)]

    def new_choice(self) -> int:
        """A fresh number for a set of mutually exclusive variables."""
        self._choices += 1
        return self._choices

    def run(self, index: int) -> ThreadEvents:
        """Execute the thread with ``index``."""
        return _Run(self, index, self.test.threads[index]).run()


class _Run:
    def __init__(self, machine: Machine, index: int, thread: Thread) -> None:
        self.machine = machine
        self.formulas = machine.formulas
        self.index = index
        self.thread = thread
        self.flow: ControlFlow = control_flow(thread)
        self.barriers: list[BarrierEvent] = []
        self.ends: list[_State] = []
        self.cut: list[Formula] = []
        self.backward = {pc: i for i, pc in enumerate(sorted(self.flow.backward))}
        self.headers = set(self.flow.spin.values())
        self.operands = live_operands(thread) if self.flow.join or self.flow.backward else []

    def run(self) -> ThreadEvents:
        zero = self.machine._zero
        registers = dict.fromkeys(self.thread.registers, zero)
        for name, initial in self.thread.initial.items():
            registers[name] = Value(only(initial), self.machine.expressions.constant(initial), {})
        start = _State(TRUE, registers)
        counts = (0,) * len(self.backward)
        waiting: dict[tuple[int, int, tuple[int, ...]], list[_State]] = {(0, 0, counts): [start]}
        queue = [(0, 0, counts)]
        while queue:
            self.machine.check()
            node = heappop(queue)
            taken, pc, counts = node
            for state in self._merged(pc, taken, waiting.pop(node)):
                if pc >= len(self.thread.body):
                    self.ends.append(state)
                    continue
                for target, successor in self._step(pc, taken, counts, state):
                    if successor.guard == FALSE:
                        continue
                    key = target
                    if key not in waiting:
                        waiting[key] = []
                        heappush(queue, key)
                    waiting[key].append(successor)
        registers_at_end = {
            name: merge(self.formulas, [(s.guard, s.registers[name].domain) for s in self.ends])
            if len(self.ends) > 1
            else self.ends[0].registers[name].domain
            for name in (registers if self.ends else ())
        }
        return ThreadEvents(
            self.barriers,
            self.formulas.any([s.guard for s in self.ends]),
            self.formulas.any(self.cut),
            registers_at_end,
        )

    def _merged(self, pc: int, taken: int, states: list[_State]) -> list[_State]:
        """Close the branches that join at ``pc``, then merge the states that no later rewrite can tell apart."""
        for state in states:
            closing = state.controls.get(pc)
            if closing is None:
                continue
            state.controls = {join: c for join, c in state.controls.items() if join != pc}
            for name in closing.assigned:
                value = state.registers[name]
                leaf = self.machine.expressions.number("join", pc, taken, name)
                state.registers[name] = Value(value.domain, leaf, self._union(value.reads, closing.reads))
        if len(states) == 1:
            return states
        groups: dict[object, list[_State]] = {}
        for state in states:
            key = (
                tuple(sorted((join, sorted(c.assigned)) for join, c in state.controls.items())),
                tuple(state.registers[name].expression for name in self.operands[pc]),
            )
            groups.setdefault(str(key), []).append(state)
        return [self._merge(group) if len(group) > 1 else group[0] for group in groups.values()]

    def _merge(self, states: list[_State]) -> _State:
        formulas = self.formulas
        registers: dict[str, Value] = {}
        first = states[0]
        for name, value in first.registers.items():
            values = [s.registers[name] for s in states]
            if all(v is value for v in values):
                registers[name] = value
                continue
            domain = merge(formulas, [(s.guard, v.domain) for s, v in zip(states, values, strict=True)])
            reads = self._under([(s.guard, v.reads) for s, v in zip(states, values, strict=True)])
            registers[name] = Value(domain, value.expression, reads)
        controls = {
            join: _Control(c.assigned, self._under([(s.guard, s.controls[join].reads) for s in states]))
            for join, c in first.controls.items()
        }
        wrote = {
            header: formulas.any([formulas.both(s.guard, s.wrote.get(header, FALSE)) for s in states])
            for header in self.headers
        }
        return _State(formulas.any([s.guard for s in states]), registers, controls, wrote)

    def _under(self, arms: list[tuple[Formula, Reads]]) -> Reads:
        found: dict[int, list[Formula]] = {}
        for guard, reads in arms:
            for read, when in reads.items():
                found.setdefault(read, []).append(self.formulas.both(guard, when))
        return {read: self.formulas.any(when) for read, when in found.items()}

    def _union(self, a: Reads, b: Reads) -> Reads:
        if not b or a is b:
            return a
        if not a:
            return b
        result = dict(a)
        for read, when in b.items():
            result[read] = self.formulas.either(result[read], when) if read in result else when
        return result

    def _step(
        self, pc: int, taken: int, counts: tuple[int, ...], state: _State
    ) -> list[tuple[tuple[int, int, tuple[int, ...]], _State]]:
        op = self.thread.body[pc]
        if pc in self.headers:
            state.wrote = {**state.wrote, pc: FALSE}
        condition: Formula = TRUE
        reads: Reads = {}
        known = True
        if op.guard is not None:
            predicate = state.registers[op.guard.register]
            condition = predicate.domain.get(0 if op.guard.negated else 1, FALSE)
            known = self.machine.expressions.value_of(predicate.expression) is not None
            reads = {} if known else predicate.reads
            condition = self._either_way(condition, reads)
        here: EventId = (self.index, pc, taken)
        following = (taken, pc + 1, counts)
        if isinstance(op, Branch):
            if op.condition is not None:
                compared = self._operation(
                    op.condition.cmp,
                    op.condition.type,
                    [
                        self._operand(state, op.condition.a, op.condition.type),
                        self._operand(state, op.condition.b, op.condition.type),
                    ],
                )
                condition = self.formulas.both(condition, compared.domain.get(1, FALSE))
                if self.machine.expressions.value_of(compared.expression) is None:
                    reads, known = self._union(reads, compared.reads), False
                    condition = self._either_way(condition, reads)
            return self._branch(pc, op, condition, reads, known, counts, taken, state)
        if isinstance(op, Exit):
            ends = replace(state, guard=self.formulas.both(state.guard, condition))
            if ends.guard != FALSE:
                self.ends.append(ends)
            left = self.formulas.both(state.guard, -condition)
            stays = replace(state, guard=left, registers=dict(state.registers))
            return [(following, self._open(pc, stays, reads, known))]
        self._execute(op, here, state, condition, reads, known)
        return [(following, state)]

    def _either_way(self, condition: Formula, reads: Reads) -> Formula:
        return self.formulas.variable() if self.machine.free and reads else condition

    def _open(self, pc: int, state: _State, reads: Reads, known: bool) -> _State:
        """``state`` after the conditional branch at ``pc``, inside its region of control."""
        if pc not in self.flow.join or known or not reads:
            return state
        join, assigned = self.flow.join[pc], self.flow.assigned[pc]
        if join in state.controls:
            assigned, reads = assigned | state.controls[join].assigned, self._union(state.controls[join].reads, reads)
        return replace(state, controls={**state.controls, join: _Control(assigned, reads)})

    def _branch(
        self,
        pc: int,
        op: Branch,
        condition: Formula,
        reads: Reads,
        known: bool,
        counts: tuple[int, ...],
        taken: int,
        state: _State,
    ) -> list[tuple[tuple[int, int, tuple[int, ...]], _State]]:
        formulas = self.formulas
        jump = replace(state, guard=formulas.both(state.guard, condition), registers=dict(state.registers))
        stay = replace(state, guard=formulas.both(state.guard, -condition), registers=dict(state.registers))
        jump, stay = (self._open(pc, s, reads, known) for s in (jump, stay))
        result = [((taken, pc + 1, counts), stay)]
        if pc not in self.backward:
            return [*result, ((taken, op.target, counts), jump)]
        header = self.flow.spin.get(pc)
        if header is not None:
            jump.guard = formulas.both(jump.guard, state.wrote.get(header, FALSE))
            if jump.guard == FALSE:
                return result
        which = self.backward[pc]
        if counts[which] >= self.machine.unroll:
            self.cut.append(jump.guard)
            return result
        more = (*counts[:which], counts[which] + 1, *counts[which + 1 :])
        return [*result, ((taken + 1, op.target, more), jump)]

    def _operand(self, state: _State, operand: Operand, type_: Type) -> Value:
        """The value of ``operand`` as one of ``type_``."""
        mask = (1 << type_.bits) - 1
        if isinstance(operand, Reg):
            value = state.registers[operand.name]
            if all(v <= mask for v in value.domain):
                return value
            return Value(apply(self.formulas, lambda v: v & mask, value.domain), value.expression, value.reads)
        if isinstance(operand, Imm):
            number = operand.value & mask
        else:
            number = (self.machine.test.objects[operand.name].address + operand.offset) & mask
        return Value(only(number), self.machine.expressions.constant(number), {})

    def _operation(self, op: str, type_: Type, values: list[Value]) -> Value:
        expression = self.machine.expressions.operation(op, type_, [v.expression for v in values])
        domain = apply(self.formulas, lambda *vs: compute(op, type_, list(vs)), *(v.domain for v in values))
        return self._value(domain, expression, values)

    def _value(self, domain: Domain, expression: int, values: list[Value]) -> Value:
        if self.machine.expressions.value_of(expression) is not None:
            return Value(Domain(domain), expression, {})
        reads: Reads = {}
        for value in values:
            if value.expression == expression:
                return Value(Domain(domain, value.domain.support), expression, value.reads)
            reads = self._union(reads, value.reads)
        return Value(domain, expression, reads)

    def _assign(self, state: _State, name: str, value: Value, condition: Formula, op: Op) -> None:
        """Write a register, under the instruction's own guard."""
        if op.guard is None:
            state.registers[name] = value
            return
        predicate, old = state.registers[op.guard.register], state.registers[name]
        known = self.machine.expressions.value_of(predicate.expression)
        domain = merge(self.formulas, [(condition, value.domain), (-condition, old.domain)])
        if known is not None:
            arm = value if bool(known) != op.guard.negated else old
            state.registers[name] = Value(domain, arm.expression, arm.reads)
            return
        arms = [old, value] if op.guard.negated else [value, old]
        expression = self.machine.expressions.operation(
            "select", self.thread.registers[name], [a.expression for a in arms] + [predicate.expression]
        )
        state.registers[name] = self._value(domain, expression, [*arms, predicate])

    def _execute(self, op: Op, here: EventId, state: _State, condition: Formula, reads: Reads, known: bool) -> None:
        presence = self.formulas.both(state.guard, condition)
        if isinstance(op, Load | Store | Atomic):
            if presence == FALSE:
                self._skipped(op, here, state)
                return
            self._access(op, here, state, presence, condition, reads)
        elif isinstance(op, Fence | ProxyFence):
            if presence != FALSE:
                kind = "F" if isinstance(op, Fence) else "AF" if op.kind == "alias" else "PF"
                self._event(kind, op, here, presence, self._control(state, reads))
        elif isinstance(op, Barrier):
            if presence != FALSE:
                self._barrier(op, here, state, presence, self._control(state, reads))
        else:
            for name, value in self._computed(op, state):
                self._assign(state, name, value, condition, op)

    def _skipped(self, op: Load | Store | Atomic, here: EventId, state: _State) -> None:
        """An access that no execution performs here still makes its register depend on its guard."""
        if not isinstance(op, Store) and op.dst is not None and op.guard is not None:
            absent = Value(only(0), self.machine.expressions.number("absent", here), {})
            self._assign(state, op.dst.name, absent, FALSE, op)

    def _computed(self, op: Op, state: _State) -> list[tuple[str, Value]]:
        """The registers that an instruction without events writes, with their new values."""
        match op:
            case Alu(name, type_, dst, sources):
                types = [type_] * len(sources)
                if name in ("shl", "shr"):
                    types[1] = AMOUNT if isinstance(sources[1], Imm) else self._register_type(sources[1], AMOUNT)
                if name == "mad.wide":
                    types[2] = Type(type_.kind, 2 * type_.bits)
                values = [self._operand(state, s, t) for s, t in zip(sources, types, strict=True)]
                result = values[0] if name == "mov" else self._operation(name, type_, values)
                return [(dst.name, result)]
            case Convert(dst, source, to, frm, saturate):
                value = self._operand(state, source, frm)
                bits = max(to.bits, self.thread.registers[dst.name].bits)
                domain = apply(self.formulas, lambda v: extend(convert(v, to, frm, saturate), to, bits), value.domain)
                known = self.machine.expressions.value_of(value.expression)
                expressions = self.machine.expressions
                expression = (
                    expressions.constant(extend(convert(known, to, frm, saturate), to, bits))
                    if known is not None
                    else expressions.number("cvt", to, frm, saturate, value.expression)
                )
                return [(dst.name, self._value(domain, expression, [value]))]
            case SetPredicate(cmp, type_, dst, complement, a, b):
                return self._set_predicate(op, cmp, type_, dst, complement, a, b, state)
            case Select(type_, dst, a, b, predicate):
                arms = [self._operand(state, a, type_), self._operand(state, b, type_)]
                values = [*arms, state.registers[predicate.name]]
                known = self.machine.expressions.value_of(values[2].expression)
                result = self._operation("select", type_, values)
                if known is not None:
                    arm = values[0] if known else values[1]
                    result = Value(Domain(result.domain, arm.domain.support), arm.expression, arm.reads)
                return [(dst.name, result)]
        raise PtxmmError(f"the symbolic engine does not know {type(op).__name__}", kind="internal")

    def _set_predicate(
        self,
        op: SetPredicate,
        cmp: str,
        type_: Type,
        dst: Reg,
        complement: Reg | None,
        a: Operand,
        b: Operand,
        state: _State,
    ) -> list[tuple[str, Value]]:
        result = self._operation(cmp, type_, [self._operand(state, a, type_), self._operand(state, b, type_)])
        negation = self._operation("xor", PREDICATE, [result, self._operand(state, Imm(1), PREDICATE)])
        found = [(dst.name, result)]
        if complement is not None:
            found.append((complement.name, negation))
        if op.boolop is None or op.c is None:
            return found
        other = state.registers[op.c.name]
        if op.c_negated:
            other = self._operation("xor", PREDICATE, [other, self._operand(state, Imm(1), PREDICATE)])
        return [(name, self._operation(op.boolop, PREDICATE, [value, other])) for name, value in found]

    def _register_type(self, operand: Operand, default: Type) -> Type:
        return self.thread.registers[operand.name] if isinstance(operand, Reg) else default

    def _control(self, state: _State, reads: Reads) -> Reads:
        for control in state.controls.values():
            reads = self._union(reads, control.reads)
        return reads

    def _event(self, kind: str, op: Op, here: EventId, presence: Formula, control: Reads) -> Event:
        machine = self.machine
        event = Event(len(machine.events), kind, self.index, here, presence, op, control=control)
        machine.events.append(event)
        return event

    def _barrier(self, op: Barrier, here: EventId, state: _State, presence: Formula, control: Reads) -> None:
        type_ = self.thread_type()
        barrier = self._operand(state, op.barrier, type_).domain
        count = None if op.count is None else self._operand(state, op.count, type_).domain
        arrive = self._event("BA", op, here, presence, control)
        self.barriers.append(BarrierEvent(here, op, presence, barrier, count, arrive.number))
        if op.kind != "sync":
            return
        if here in self.machine.stuck:
            passes = self.formulas.variable()
            self.machine.passes[here, arrive.number] = passes
            state.guard = self.formulas.both(state.guard, self.formulas.either(passes, -presence))
            presence = self.formulas.both(presence, passes)
        self._event("BW", op, here, presence, control)

    def thread_type(self) -> Type:
        """The type of barrier operands: 64-bit in the dialect, 32-bit in PTX."""
        return ADDRESS if self.machine.test.dialect else AMOUNT

    def _places(self, op: Load | Store | Atomic, address: Value, presence: Formula) -> tuple[list[Place], Formula]:
        """Where ``op`` may act, and when it acts outside every object."""
        places: list[Place] = []
        outside: list[Formula] = []
        for number, when in address.domain.items():
            found = self.machine.test.locate(number)
            if found is None or found[1] + op.type.bytes > found[0].size:
                outside.append(when)
                continue
            item, offset = found
            places.append(Place(when, item.physical, item.virtual, offset, op.type.bytes))
        wrong = self.formulas.both(presence, self.formulas.any(outside))
        if wrong != FALSE:
            self.machine.outside.append((wrong, self.index, op, address.domain))
        return places, wrong

    def _access(
        self,
        op: Load | Store | Atomic,
        here: EventId,
        state: _State,
        presence: Formula,
        condition: Formula,
        guard: Reads,
    ) -> None:
        base = self._operand(state, op.address.base, ADDRESS)
        address = base
        if op.address.offset:
            offset = self._operand(state, Imm(op.address.offset), ADDRESS)
            address = self._operation("add", ADDRESS, [base, offset])
        places, wrong = self._places(op, address, presence)
        inside = self.formulas.both(presence, -wrong)
        control = self._control(state, guard)
        if isinstance(op, Store):
            value = self._operand(state, op.value, op.type)
            if inside != FALSE:
                event = self._event("W", op, here, inside, control)
                event.places, event.value = places, value.domain
                event.address, event.data = address.reads, value.reads
            return
        read = self._event("R", op, here, inside, control)
        read.places, read.address = places, address.reads
        returned = self._returned(read, places, wrong)
        read.value = returned
        leaf = self.machine.expressions.number("read", read.number)
        result = Value(returned, leaf, {read.number: TRUE})
        if isinstance(op, Atomic):
            self._write_half(op, here, state, read, result, address, control)
        if op.dst is None:
            return
        bits = self.thread.registers[op.dst.name].bits
        if bits > op.type.bits:
            domain = apply(self.formulas, lambda v: extend(v, op.type, bits), returned)
            result = Value(domain, leaf, result.reads)
        self._assign(state, op.dst.name, result, condition, op)

    def _write_half(
        self, op: Atomic, here: EventId, state: _State, read: Event, old: Value, address: Value, control: Reads
    ) -> None:
        operands = [self._operand(state, o, op.type) for o in op.operands]
        if op.op == "cas":
            compared, new = operands
            success = apply(self.formulas, lambda a, b: int(a == b), old.domain, compared.domain).get(1, FALSE)
            success = self._either_way(success, old.reads)
            presence = self.formulas.both(read.presence, success)
            control = self._union(self._union(control, old.reads), compared.reads)
            value, data = new.domain, new.reads
        else:
            presence = read.presence
            value = apply(self.formulas, lambda a, b: update(op.op, op.type, a, b), old.domain, operands[0].domain)
            data = operands[0].reads if op.op == "exch" else self._union(old.reads, operands[0].reads)
        for header in self.headers:
            state.wrote[header] = self.formulas.either(state.wrote.get(header, FALSE), presence)
        if presence == FALSE:
            return
        write = self._event("W", op, here, presence, control)
        write.places, write.value = read.places, value
        write.address, write.data = address.reads, data

    def _returned(self, read: Event, places: list[Place], outside: Formula) -> Domain:
        """The domain of what a read returns: variables over the values its cells may hold."""
        machine, formulas = self.machine, self.formulas
        cells: dict[tuple[str, int, int], Domain] = {}
        arms: list[tuple[Formula, Domain]] = []
        for place in places:
            parts = []
            for cell in machine.cells(place):
                if cell not in cells:
                    support = machine.possible(cell, read.id)
                    choice = machine.new_choice()
                    one = len(support) == 1
                    cells[cell] = Domain({v: TRUE if one else formulas.variable(choice) for v in support}, support)
                parts.append(cells[cell])
            whole = parts[0]
            for i, part in enumerate(parts[1:], 1):
                whole = apply(formulas, lambda low, high, shift=8 * i: low | high << shift, whole, part)
            arms.append((place.when, whole))
        machine.read_cells[read.number] = cells
        if outside != FALSE:
            arms.append((outside, only(0)))
        if not arms:
            return only(0)
        return arms[0][1] if len(arms) == 1 else merge(formulas, arms)


def initial_values(item: MemoryObject) -> bytes:
    """The bytes of ``item`` before the program, little-endian."""
    return b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)


__all__ = ["BarrierEvent", "Event", "Machine", "Place", "ThreadEvents", "initial_values"]
