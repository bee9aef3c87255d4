"""Operands, registers and events of one thread: what the execution of every instruction is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ptxmm.events.symbolic.event import Event, Operation, Place, SyncEvent
from ptxmm.events.symbolic.machine import Machine, State
from ptxmm.events.symbolic.values.arithmetic import compute
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.domain import (
    Bits,
    Domain,
    Reads,
    Value,
    above,
    apply,
    field,
    is_many,
    merge,
    only,
    supported,
    width_of,
)
from ptxmm.events.symbolic.values.expressions import result_bits
from ptxmm.events.symbolic.values.lookups import looked_up
from ptxmm.program.identity import EventId
from ptxmm.program.shared.legality import refusal, rule
from ptxmm.program.shared.windows import described, entered, named, outside
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx.ops import Address, Imm, Op, Operand, Reg, Role, Sym, Type
from ptxmm.relations.formula import FALSE, TRUE, Formula

ADDRESS = Type("u", 64)
PREDICATE = Type("pred", 1)
AMOUNT = Type("u", 32)
PREDICATES = ("and", "or", "vote.all", "vote.any", "vote.uni")
"""The reductions and votes that return a predicate, the same to all who meet, by how they begin."""

Start = tuple[MemoryObject, int]
"""Where an access begins: an object and the byte offset in it."""

Located = list[tuple[Formula, MemoryObject, int]]
"""Where an access may begin: when, the object and the byte offset in it."""


Effects = Mapping[type, Callable[["Executor", Any], None]]
"""What executes each operation that a module has."""


class Executor:
    """Executes the instructions of one thread, each on each of its paths.

    ``headers``: pcs where an iteration of a spin loop begins; ``aligned``: the instructions that the threads of its
    warp execute together, as in ``convergence.sites``. The rest is of the instruction that is executed: ``op`` as
    ``here`` on the path ``state``. ``condition``: when its guard holds; ``presence``: when it is executed; ``control``:
    the reads that decide it; ``left``: those that decided that the loops before it were left; ``twin``: as in
    ``ControlFlow.twins``; ``blind``: nothing sees what it gives registers and memory.
    """

    op: Op
    here: EventId
    state: State

    def __init__(
        self, machine: Machine, index: int, thread: Thread, headers: Collection[int], idempotent: Collection[int]
    ) -> None:
        self.machine = machine
        self.formulas = machine.formulas
        self.index = index
        self.thread = thread
        self.headers = headers
        self.idempotent = idempotent
        self.aligned = machine.setting.aligned[index]
        self.barriers: list[SyncEvent] = []
        self.stopped: list[tuple[Formula, Mapping[str, Value]]] = []
        self.condition = self.presence = TRUE
        self.control: Reads = {}
        self.left: Reads = {}
        self.twin: int | None = None
        self.blind = False

    # -- values --

    def operand(self, operand: Operand, type_: Type) -> Value:
        """The value of ``operand`` as one of ``type_``."""
        mask = (1 << type_.bits) - 1
        if isinstance(operand, Reg):
            value = self.state.registers[operand.name]
            if self.blind:
                return value
            if self.machine.expressions.values and self.width(operand.name) > type_.bits:
                return self.cut(value, 0, type_.bits)
            if width_of(value.domain) <= type_.bits:
                return value
            if isinstance(value.domain, Bits):
                return value.holding(field(self.formulas, value.domain, 0, type_.bits))
            return value.holding(apply(self.formulas, lambda v: v & mask, value.domain))
        if isinstance(operand, Imm):
            number = operand.value & mask
        else:
            item = self.machine.test.objects[operand.name]
            number = (named(item, self.thread.placement, self.index) + operand.offset) & mask
        return self.constant(number)

    def predicate(self, register: Reg, negated: bool) -> Value:
        """A predicate, or its negation."""
        value = self.state.registers[register.name]
        return self.negated(value) if negated else value

    def negated(self, predicate: Value) -> Value:
        """The negation of ``predicate``."""
        return self.operation("xor", PREDICATE, [predicate, self.constant(1)])

    def width(self, name: str) -> int:
        """How many bits the register ``name`` has."""
        type_ = self.thread.registers.get(name)
        return 1 if type_ is None else type_.bits

    def cut(self, value: Value, shift: int, width: int) -> Value:
        """The ``width`` bits of ``value`` from bit ``shift`` on."""
        mask = (1 << width) - 1
        name = ("field", shift, width)
        return self.function(name, lambda v: v >> shift & mask, [value], "cut", Type("b", width), shift, width)

    def field(self, value: Value, shift: int, width: int) -> Value:
        """As ``cut``, but ``value`` itself where that is the same, and dependencies are not on values."""
        if shift == 0 and not self.machine.expressions.values and width_of(value.domain) <= width:
            return value
        return self.cut(value, shift, width)

    def join(self, parts: Iterable[tuple[int, Value]]) -> Value:
        """``parts`` put together, in ascending order each from its bit on; 0 where there is none."""
        whole: Value | None = None
        for shift, value in parts:
            if whole is None and shift == 0:
                whole = value
                continue
            values = [whole or self.constant(0), value]
            whole = self.function(("pack", shift), partial(above, shift), values, "join", Type("b", 128), shift)
        return whole or self.constant(0)

    def constant(self, number: int) -> Value:
        """The value of a constant."""
        return Value(only(number), self.machine.expressions.constant(number), {})

    def operation(self, op: str, type_: Type, values: list[Value]) -> Value:
        """``op`` of integers, with its expression."""
        expression = self.machine.expressions.operation(op, type_, [v.expression for v in values])
        domain = self.applied(Computation(op, type_, (), lambda *vs: compute(op, type_, list(vs))), values)
        return self.value(domain, expression, values)

    def function(
        self,
        name: Sequence[object],
        function: Callable[..., int],
        values: list[Value],
        kind: str = "",
        type_: Type = ADDRESS,
        *arguments: object,
    ) -> Value:
        """``function`` of ``values``; ``name`` identifies it among expressions. Of constants it is a constant.

        ``kind``: the name of a ``Computation`` with these ``arguments``; without, nothing is known of it but
        that its result has the width of ``type_``.
        """
        expressions = self.machine.expressions
        domain = self.applied(Computation(kind, type_, (), function, arguments), values)
        known = [expressions.value_of(v.expression) for v in values]
        if None not in known:
            expression = expressions.constant(function(*known))
        else:
            operands = [v.expression for v in values]
            if kind:
                expression = expressions.made(tuple(name), operands, kind, type_, function, *arguments)
            else:
                expression = expressions.leaf(type_.bits, *name, *operands)
        return self.value(domain, expression, values)

    def look(self) -> None:
        """From here on to the next instruction, work out values only if something sees what this one gives registers
        and memory."""
        unseen = self.machine.setting.unseen
        self.blind = bool(unseen.instructions) and self.here.instruction in unseen.instructions[self.index]

    def applied(self, how: Computation, values: Sequence[Value]) -> Domain:
        """The domain of what ``how`` gives for ``values``; any value stands for those that nothing sees."""
        if self.blind:
            return only(0)
        domains = [value.domain for value in values]
        if any(isinstance(domain, Bits) for domain in domains) or (self.machine.setting.wide and is_many(domains)):
            from ptxmm.events.symbolic.values.circuits import circuit  # with Z3's modules, which take time to load

            found = circuit(self.formulas, self.machine.definitions, how, domains)
            if found is None:
                found = looked_up(self.formulas, self.machine.lookups, how.function, domains, result_bits(how))
            return found
        return apply(self.formulas, how.function, *domains)

    def listed(self, value: Value) -> Domain:
        """The cases of an operand that are looked at one by one. Raises ``TooMany``."""
        return Domain(dict(value.domain.items())) if isinstance(value.domain, Bits) else value.domain

    def value(self, domain: Domain, expression: int, values: list[Value]) -> Value:
        """The value of ``expression`` over ``values``, with the reads that occur in it."""
        if self.machine.expressions.value_of(expression) is not None:
            return Value(supported(domain), expression, {})
        for value in values:
            if value.expression == expression:
                return value.holding(supported(domain, value.domain))
        if self.machine.expressions.transparent(expression):
            sources: dict[int, Reads] = {}
            for value in values:
                for leaf, reads in value.sources.items():
                    sources[leaf] = self.machine.union(sources[leaf], reads) if leaf in sources else reads
            return self.made_of(domain, expression, sources)
        return Value(domain, expression, self.machine.all_reads(v.reads for v in values))

    def made_of(self, domain: Domain, expression: int, sources: Mapping[int, Reads]) -> Value:
        """The value of ``expression``, in whose leaves are the reads ``sources``."""
        return Value(domain, expression, lambda: self._depends(expression, sources), sources)

    def _depends(self, expression: int, sources: Mapping[int, Reads]) -> Reads:
        """The reads in those leaves of an expression that make a difference to it."""
        if not sources:
            return {}
        kept = self.machine.expressions.essential(expression)
        return self.machine.all_reads(reads for leaf, reads in sources.items() if leaf in kept)

    def one_of(self, arms: list[tuple[Formula, Value]]) -> Value:
        """The value that is that of each arm where the arm's formula holds."""
        if len(arms) == 1:
            return arms[0][1]
        domain = merge(self.formulas, [(when, value.domain) for when, value in arms])
        leaf = self.machine.expressions.leaf(64, "one of", *(value.expression for _, value in arms))
        return self.value(domain, leaf, [value for _, value in arms])

    def address(self, address: Address, space: str | None = None) -> Value:
        """The generic address of ``[base+offset]``, which the instruction takes for one in the window of ``space``."""
        base = address.base
        if isinstance(base, Sym):
            return self.constant(self.machine.test.objects[base.name].address + base.offset + address.offset)
        value = self.operand(base, ADDRESS)
        if address.offset:
            value = self.operation("add", ADDRESS, [value, self.operand(Imm(address.offset), ADDRESS)])
        return self.unwindowed(value, space)

    def unwindowed(self, value: Value, space: str | None) -> Value:
        """``value`` with addresses in the window of ``space`` as generic ones (6.4.1.1)."""
        if space is None:
            return value
        objects, place, index = self.machine.test.objects, self.thread.placement, self.index
        return value.holding(apply(self.formulas, lambda v: entered(objects, place, index, space, v), value.domain))

    def described(self, value: Value) -> Value:
        """The generic addresses of the matrices that the descriptors ``value`` stand for."""
        objects, place, index = self.machine.test.objects, self.thread.placement, self.index
        return value.holding(apply(self.formulas, lambda v: described(objects, place, index, v), value.domain))

    def assign(self, name: str, value: Value) -> None:
        """Write a register, under the instruction's own guard."""
        registers, guard = self.state.registers, self.op.guard
        if guard is None:
            registers[name] = value
            return
        predicate, old = registers[guard.register], registers[name]
        known = self.machine.expressions.value_of(predicate.expression)
        domain = merge(self.formulas, [(self.condition, value.domain), (-self.condition, old.domain)])
        if known is not None:
            registers[name] = (value if bool(known) != guard.negated else old).holding(domain)
            return
        arms = [old, value, predicate] if guard.negated else [value, old, predicate]
        expression = self.machine.expressions.operation(
            "select", self.thread.registers[name], [a.expression for a in arms]
        )
        registers[name] = self.value(domain, expression, arms)

    def absent(self, name: str) -> None:
        """A result that no execution gives here still makes its register depend on the guard."""
        if self.op.guard is not None:
            self.condition = FALSE
            self.assign(name, Value(only(0), self.machine.expressions.leaf(self.width(name), "absent", self.here), {}))

    # -- events --

    def controlling(self, reads: Reads) -> Reads:
        """``reads`` of the guard and those of the branches that are open, but of no ``twin`` of the instruction."""
        for control in self.state.controls.values():
            for branch, decided in control.reads.items():
                if branch != self.twin:
                    reads = self.machine.union(reads, decided)
        return reads

    def event(
        self,
        kind: str,
        presence: Formula | None = None,
        id_: EventId | None = None,
        operation: Operation | None = None,
    ) -> Event:
        """A new event of the instruction; one of those that perform the asynchronous ``operation``."""
        when = self.presence if presence is None else presence
        number, id_ = len(self.machine.events), id_ or self.here
        event = Event(number, kind, self.index, id_, when, self.op, control=self.control, left=self.left)
        self.machine.events.append(event)
        if operation is not None:
            event.operation = operation.number
            operation.events.append(number)
        return event

    def located(
        self,
        address: Value,
        size: int,
        presence: Formula | None = None,
        alignment: int | None = None,
        role: Role = "data",
        mbarrier: bool = False,
        multimem: bool = False,
    ) -> tuple[Located, Formula]:
        """Where ``size`` bytes at ``address`` may lie, and when that is outside every object, misaligned, or nothing
        that the thread may access with the operand that has this ``role``.

        An mbarrier is opaque: what is no operation on one (``mbarrier``) must not meet it either (9.7.14.15.1).
        Operations on multimem addresses (``multimem``) are for those, and nothing else is (8.2.3).

        ``alignment``: what the address has to be a multiple of, ``size`` by default. No bytes (``size`` 0, with an
        ``alignment``) may also lie at the end of an object.
        """
        found: Located = []
        wrongs: list[Formula] = []
        presence = self.presence if presence is None else presence
        held = rule(self.op, role)
        for number, when in address.domain.items():
            place = self.machine.test.locate(number)
            if place is None and not size and (last := self.machine.test.locate(number - 1)) is not None:
                place = (last[0], last[1] + 1)
            if place is None or place[1] + size > place[0].size:
                why: str | None = outside(self.machine.test.objects, number)
            elif place[1] % (alignment or size):
                why = f"misaligned access (address {number:#x})"
            elif (why := refusal(held, self.thread.placement, self.index, place[0])) is not None:
                pass
            elif size and not mbarrier and place[0].physical in self.machine.setting.mbarriers:
                why = f"access to an mbarrier (address {number:#x})"
            elif size and multimem != (place[0].replicas != ()):
                wrong = "multimem operation on another address" if multimem else "access to a multimem address"
                why = f"{wrong} (address {number:#x})"
            if why is None and place is not None:
                found.append((when, *place))
                continue
            wrongs.append(when)
            self.misuse(self.formulas.both(presence, when), why or "")
        return found, self.formulas.both(presence, self.formulas.any(wrongs))

    def misuse(self, presence: Formula, why: str) -> None:
        """Note that the instruction has no defined behaviour when ``presence`` holds; ``why``: without the place."""
        text = f"{self.thread.name} line {self.op.source.span.line}: {why}"
        self.machine.misuses.append((self.index, presence, text))

    def wrote(self, presence: Formula | None = None) -> None:
        """Note for spin loops that the thread writes when ``presence`` holds."""
        presence, wrote = self.presence if presence is None else presence, self.state.wrote
        for header in self.headers:
            wrote[header] = self.formulas.either(wrote.get(header, FALSE), presence)

    # -- steps in the simulation of barriers --

    def step(self, kind: str, presence: Formula | None = None, id_: EventId | None = None) -> SyncEvent:
        """A new step, whose operands are to be added."""
        when = self.presence if presence is None else presence
        step = SyncEvent(id_ or self.here, kind, self.op, when, self.machine.new_step())
        self.barriers.append(step)
        return step

    def exchanged(self, step: SyncEvent, operands: list[Value], bits: int) -> Value:
        """What ``step`` gets from the threads that it meets, by the scenario; ``operands`` occur in it too.

        It depends on the reads in what they give. These are not known yet; the number of the step, below 0, stands for
        them. As long as nothing is known of the result it is 0, so that the simulation comes to what needs it; a
        predicate may be either, also where guards are free.
        """
        known = self.machine.assumed.results.get(step.id)
        if step.operation.startswith(PREDICATES):
            self.machine.either.add(step.number)
            known = {0: 0, 1: 0} if self.machine.free or not known else known
        step.result = self.machine.one_of(known or {0: 0})
        leaf = self.machine.expressions.leaf(bits, "exchange", step.id, *(v.expression for v in operands))
        return Value(step.result, leaf, self.machine.all_reads([{-step.number: TRUE}, *(v.reads for v in operands)]))

    def passes(self, step: SyncEvent) -> Formula:
        """When the thread goes on after ``step``, which may block it or be undefined; its path ends there otherwise."""
        if step.id not in self.machine.assumed.waiting:
            return step.presence
        passes = self.formulas.variable()
        self.machine.passes[step.id, step.number] = passes
        if self.machine.test.filter is not None:
            self.stopped.append((self.formulas.both(step.presence, -passes), dict(self.state.registers)))
        self.state.guard = self.formulas.both(self.state.guard, self.formulas.either(passes, -step.presence))
        return self.formulas.both(step.presence, passes)


def place_at(when: Formula, item: MemoryObject, offset: int, size: int) -> Place:
    """The place of ``size`` bytes at ``offset`` in ``item``."""
    return Place(when, item.physical, item.virtual, offset, size)
