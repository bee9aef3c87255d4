"""What one instruction does to the state of a path, and the events it gives (PTX ISA chapter 9)."""

from __future__ import annotations

from collections.abc import Collection

from ptxmm.errors import PtxmmError
from ptxmm.events.symbolic.event import BarrierEvent, Event, Place
from ptxmm.events.symbolic.machine import Machine, State
from ptxmm.events.symbolic.values import (
    Domain,
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
from ptxmm.program.test import EventId, Thread
from ptxmm.ptx.ops import (
    Alu,
    Atomic,
    Barrier,
    Convert,
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
from ptxmm.relations.formula import FALSE, TRUE, Formula

ADDRESS = Type("u", 64)
PREDICATE = Type("pred", 1)
AMOUNT = Type("u", 32)


class Instructions:
    """Executes instructions of one thread. ``headers``: pcs where an iteration of a spin loop begins."""

    def __init__(self, machine: Machine, index: int, thread: Thread, headers: Collection[int]) -> None:
        self.machine = machine
        self.formulas = machine.formulas
        self.index = index
        self.thread = thread
        self.headers = headers
        self.barriers: list[BarrierEvent] = []

    def operand(self, state: State, operand: Operand, type_: Type) -> Value:
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

    def operation(self, op: str, type_: Type, values: list[Value]) -> Value:
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
            reads = self.machine.union(reads, value.reads)
        return Value(domain, expression, reads)

    def _assign(self, state: State, name: str, value: Value, condition: Formula, op: Op) -> None:
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

    def execute(self, op: Op, here: EventId, state: State, condition: Formula, reads: Reads) -> None:
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

    def _skipped(self, op: Load | Store | Atomic, here: EventId, state: State) -> None:
        """An access that no execution performs here still makes its register depend on its guard."""
        if not isinstance(op, Store) and op.dst is not None and op.guard is not None:
            absent = Value(only(0), self.machine.expressions.number("absent", here), {})
            self._assign(state, op.dst.name, absent, FALSE, op)

    def _computed(self, op: Op, state: State) -> list[tuple[str, Value]]:
        """The registers that an instruction without events writes, with their new values."""
        match op:
            case Alu(name, type_, dst, sources):
                types = [type_] * len(sources)
                if name in ("shl", "shr"):
                    types[1] = AMOUNT if isinstance(sources[1], Imm) else self._register_type(sources[1], AMOUNT)
                if name == "mad.wide":
                    types[2] = Type(type_.kind, 2 * type_.bits)
                values = [self.operand(state, s, t) for s, t in zip(sources, types, strict=True)]
                result = values[0] if name == "mov" else self.operation(name, type_, values)
                return [(dst.name, result)]
            case Convert(dst, source, to, frm, saturate):
                value = self.operand(state, source, frm)
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
                arms = [self.operand(state, a, type_), self.operand(state, b, type_)]
                values = [*arms, state.registers[predicate.name]]
                known = self.machine.expressions.value_of(values[2].expression)
                result = self.operation("select", type_, values)
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
        state: State,
    ) -> list[tuple[str, Value]]:
        result = self.operation(cmp, type_, [self.operand(state, a, type_), self.operand(state, b, type_)])
        negation = self.operation("xor", PREDICATE, [result, self.operand(state, Imm(1), PREDICATE)])
        found = [(dst.name, result)]
        if complement is not None:
            found.append((complement.name, negation))
        if op.boolop is None or op.c is None:
            return found
        other = state.registers[op.c.name]
        if op.c_negated:
            other = self.operation("xor", PREDICATE, [other, self.operand(state, Imm(1), PREDICATE)])
        return [(name, self.operation(op.boolop, PREDICATE, [value, other])) for name, value in found]

    def _register_type(self, operand: Operand, default: Type) -> Type:
        return self.thread.registers[operand.name] if isinstance(operand, Reg) else default

    def _control(self, state: State, reads: Reads) -> Reads:
        for control in state.controls.values():
            reads = self.machine.union(reads, control.reads)
        return reads

    def _event(self, kind: str, op: Op, here: EventId, presence: Formula, control: Reads) -> Event:
        machine = self.machine
        event = Event(len(machine.events), kind, self.index, here, presence, op, control=control)
        machine.events.append(event)
        return event

    def _barrier(self, op: Barrier, here: EventId, state: State, presence: Formula, control: Reads) -> None:
        type_ = self._barrier_type()
        barrier = self.operand(state, op.barrier, type_).domain
        count = None if op.count is None else self.operand(state, op.count, type_).domain
        arrive = self._event("BA", op, here, presence, control)
        self.barriers.append(BarrierEvent(here, op, presence, barrier, count, arrive.number))
        if here in self.machine.stuck:
            passes = self.formulas.variable()
            self.machine.passes[here, arrive.number] = passes
            state.guard = self.formulas.both(state.guard, self.formulas.either(passes, -presence))
            presence = self.formulas.both(presence, passes)
        if op.kind == "sync":
            self._event("BW", op, here, presence, control)

    def _barrier_type(self) -> Type:
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
                stray = f"line {op.source.span.line}: access outside every object (address {number:#x})"
                self.machine.outside.append((self.formulas.both(presence, when), f"{self.thread.name} {stray}"))
                continue
            item, offset = found
            places.append(Place(when, item.physical, item.virtual, offset, op.type.bytes))
        return places, self.formulas.both(presence, self.formulas.any(outside))

    def _access(
        self,
        op: Load | Store | Atomic,
        here: EventId,
        state: State,
        presence: Formula,
        condition: Formula,
        guard: Reads,
    ) -> None:
        base = self.operand(state, op.address.base, ADDRESS)
        address = base
        if op.address.offset:
            offset = self.operand(state, Imm(op.address.offset), ADDRESS)
            address = self.operation("add", ADDRESS, [base, offset])
        places, wrong = self._places(op, address, presence)
        inside = self.formulas.both(presence, -wrong)
        control = self._control(state, guard)
        if isinstance(op, Store):
            value = self.operand(state, op.value, op.type)
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
        self, op: Atomic, here: EventId, state: State, read: Event, old: Value, address: Value, control: Reads
    ) -> None:
        operands = [self.operand(state, o, op.type) for o in op.operands]
        if op.op == "cas":
            compared, new = operands
            success = apply(self.formulas, lambda a, b: int(a == b), old.domain, compared.domain).get(1, FALSE)
            success = self.machine.either_way(success, old.reads)
            presence = self.formulas.both(read.presence, success)
            control = self.machine.union(self.machine.union(control, old.reads), compared.reads)
            value, data = new.domain, new.reads
        else:
            presence = read.presence
            written = self._updated(op, old, operands[0])
            value, data = written.domain, written.reads
        for header in self.headers:
            state.wrote[header] = self.formulas.either(state.wrote.get(header, FALSE), presence)
        if presence == FALSE:
            return
        write = self._event("W", op, here, presence, control)
        write.places, write.value = read.places, value
        write.address, write.data = address.reads, data

    def _updated(self, op: Atomic, old: Value, operand: Value) -> Value:
        """What an atomic operation other than cas writes."""
        if op.op == "exch":
            return operand
        if op.op not in ("inc", "dec"):
            return self.operation(op.op, op.type, [old, operand])
        expression = self.machine.expressions.number(op.op, old.expression, operand.expression)
        domain = apply(self.formulas, lambda a, b: update(op.op, op.type, a, b), old.domain, operand.domain)
        return self._value(domain, expression, [old, operand])

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
