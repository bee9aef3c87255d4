"""The state of one thread on one path: registers, choices made, events and steps so far.

What each instruction does with it is in ``accesses``, ``asynchronous``, ``synchronization`` and ``compute``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ptxmm.events.explicit.matrices.products import products
from ptxmm.events.explicit.program import Program, Spot
from ptxmm.events.explicit.readings import Readings
from ptxmm.events.explicit.trace import Cell, Event, Exchange, Step, Trace
from ptxmm.events.explicit.values.expressions import Expressions
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.identity import EventId
from ptxmm.program.shared.legality import rule
from ptxmm.program.shared.refusals import refused
from ptxmm.program.shared.windows import named
from ptxmm.ptx.ops import Address, Op, Operand, Reg, Role, Sym, Type

PRED = Type("pred", 1)
ADDRESS = Type("u", 64)
_TRUTHS = ("red.and", "red.or", "vote.all", "vote.any", "vote.uni")
U32 = Type("u", 32)


class Undecided(Exception):
    """A run without domains came to an address or a barrier operand that is open."""


class Impossible(Exception):
    """No value of its domain is left for a choice."""


class Missing(Exception):
    """A run with given values came to a read that has none."""


class Unmet(Exception):
    """A run with given values came to an exchange with other threads whose result is not given."""


Domain = Callable[[Node, Trace, bool], frozenset[int] | None]
"""The values that an expression over the reads of a path so far may take, given the choices made (if the last
argument says so); None: not known."""


class Given(Struct, frozen=True):
    """What a run is given (see ``interpreter.run``)."""

    values: Mapping[EventId, int] | None = None
    exchanged: Mapping[EventId, tuple[int, int]] = field(default_factory=dict)
    domain: Domain | None = None
    unroll: int = 3
    readings: Readings = field(default_factory=Readings)
    spinning: bool = False
    prune: bool = True


class Copy(Struct, frozen=True):
    """An asynchronous operation in its trace: the events that finish its reads, and those that finish all of it."""

    read: tuple[int, ...]
    done: tuple[int, ...]


Effects = Mapping[type, Callable[["Machine", Any], None]]
"""What each operation that a module has does where it happens."""


class Machine:
    """The state of a run."""

    __slots__ = (
        "alone",
        "changes",
        "control",
        "ctrl",
        "decided",
        "decisions",
        "expressions",
        "given",
        "groups",
        "guard",
        "guards",
        "last_write",
        "left",
        "missed",
        "objects",
        "pc",
        "products",
        "program",
        "registers",
        "round",
        "rounds",
        "spins",
        "step_count",
        "taken",
        "thread",
        "trace",
        "visited",
    )  # fmt: skip

    def __init__(self, program: Program, decisions: tuple[int, ...], given: Given) -> None:
        thread = program.test.threads[program.thread]
        self.program = program
        self.thread = thread
        self.objects = program.test.objects
        self.decisions = decisions
        self.given = given
        self.expressions = Expressions(given.readings.simplify, given.readings.essential)
        self.trace = Trace(program.thread)
        self.registers: dict[str, Node] = {n: self.expressions.constant(v) for n, v in thread.initial.items()}
        self.taken: list[int] = []
        self.decided: dict[int, int] = {}
        self.guards: list[tuple[int, int, int]] = []  # open guards: join, reads, pc of the branch
        self.ctrl = 0
        self.left = 0  # reads on which leaving the loops so far has depended
        self.missed = 0  # reads that decided so far whether to come to a barrier
        self.pc = 0
        self.step_count = 0
        self.last_write = -1
        self.changes: list[tuple[int, Node]] = []
        self.visited: dict[int, int] = {}
        self.rounds: dict[int, int] = {}
        self.spins: dict[int, int] = {}
        # Asynchronous operations by kind: those in no group yet, and the groups in order.
        self.alone: dict[str, list[Copy]] = {}
        self.groups: dict[str, list[list[Copy]]] = {}
        self.products = products(thread.body, given.readings.copies) if program.products else None
        # Of the instruction that is being executed:
        self.guard: Node | None = None
        self.control = 0
        self.round = 0

    # Registers and operands.

    def register(self, name: str) -> Node:
        """What the register ``name`` holds."""
        node = self.registers.get(name)
        return self.expressions.constant(0) if node is None else node

    def width(self, name: str) -> int:
        """How many bits the register ``name`` has."""
        type_ = self.thread.registers.get(name)
        return 1 if type_ is None else type_.bits

    def operand(self, operand: Operand, type_: Type) -> Node:
        """The value of an operand of ``type_``."""
        if isinstance(operand, Reg):
            return self.register(operand.name)
        if isinstance(operand, Sym):
            address = named(self.objects[operand.name], self.thread.placement, self.program.thread) + operand.offset
            return self.expressions.constant(address & ((1 << type_.bits) - 1))
        return self.expressions.constant(operand.value & ((1 << type_.bits) - 1))

    def assign(self, register: Reg, node: Node) -> None:
        """Give ``register`` a value, if the guard of the instruction holds."""
        if self.guard is not None:
            node = self.expressions.select(self.guard, node, self.register(register.name))
        self.registers[register.name] = node

    def returned(self, register: Reg, type_: Type, node: Node) -> None:
        """Give ``register`` a value of ``type_`` that an access returns: sign- or zero-extended (PTX ISA 9.4.1)."""
        bits = self.thread.registers[register.name].bits
        self.assign(register, node if bits == type_.bits else self.expressions.convert(node, Type("b", bits), type_))

    def stored(self, operand: Operand, type_: Type) -> Node:
        """An operand of a memory instruction; a register may be wider than its type (PTX ISA 9.4.1)."""
        node = self.operand(operand, type_)
        if isinstance(operand, Reg):
            held = self.thread.registers[operand.name]
            if held.bits > type_.bits:
                node = self.expressions.convert(node, type_, held)
            return self.expressions.settled(node)
        elif node.value is not None and node.value >> type_.bits:
            return self.expressions.constant(node.value & ((1 << type_.bits) - 1))
        return node

    # Choices.

    def decide(self, node: Node, choices: Sequence[int] | None, what: str = "") -> int:
        """The value of ``node`` on this path; ``choices`` None: its domain."""
        node = self.expressions.settled(node)
        if node.value is not None:
            return node.value
        if node.op == "not" and node.type == PRED:
            return 1 - self.decide(node.args[0], (0, 1))
        earlier = self.decided.get(id(node))
        if earlier is not None:
            return earlier
        if len(self.taken) >= len(self.decisions):
            choices = self._possible(node, choices, what)
        value = self.fork(choices or ())
        self.decided[id(node)] = value
        self.trace.constraints.append((node, value, self.trace.position))
        return value

    def _possible(self, node: Node, choices: Sequence[int] | None, what: str) -> Sequence[int]:
        """The choices for ``node`` that its domain allows."""
        domain, prune = self.given.domain, self.given.prune
        possible = None
        if domain is not None and (prune or choices is None):
            possible = domain(node, self.trace, True)
            if possible is not None and not possible and not prune:
                # Not yet, it seems; what follows may be what makes it so, if it does not depend on this access.
                possible = domain(node, self.trace, False)
        if possible is not None:
            return [v for v in sorted(possible) if choices is None or v in choices]
        if choices is None:
            if domain is None:
                raise Undecided
            raise refused(f"the {what} may take too many values", self.program.test, self.op)
        return choices

    def fork(self, choices: Sequence[int]) -> int:
        """The next decision of this path; where none is given, the first of ``choices``."""
        position = len(self.taken)
        if position < len(self.decisions):
            value = self.decisions[position]
        else:
            if not choices:
                raise Impossible
            value = choices[0]
            prefix = tuple(self.taken)
            self.trace.forks += [(*prefix, other) for other in choices[1:]]
        self.taken.append(value)
        return value

    def number(self, operand: Operand, type_: Type, what: str) -> tuple[int, int]:
        """The value of an operand that must be known on a path, and the reads it depends on."""
        node = self.stored(operand, type_)
        return self.decide(node, None, what), node.reads

    # Events.

    @property
    def op(self) -> Op:
        """The instruction that is being executed."""
        return self.thread.body[self.pc]

    def identity(self, offset: int = 0, operand: int = 0) -> EventId:
        """The id of an event of the instruction that is being executed."""
        return EventId(self.trace.thread, self.pc, self.round, operand, offset)

    def add(self, kind: str, offset: int = 0, operand: int = 0, **fields: Any) -> Event:
        """Add an event of the instruction that is being executed."""
        ctrl = fields.pop("ctrl", self.control)
        identity = self.identity(offset, operand)
        event = Event(identity, kind, self.op, ctrl=ctrl, left=self.left, turn=self.step_count, **fields)
        self.trace.events.append(event)
        return event

    def step(self, kind: str, operand: int = 0, **fields: Any) -> None:
        """Add a step of the instruction that is being executed, before its events."""
        self.trace.steps.append(Step(self.identity(0, operand), kind, event=len(self.trace.events), **fields))

    def undefined(self, reason: str) -> None:
        """Note that the instruction that is being executed has no meaning; the path goes on without its effect."""
        if self.trace.outside is None:
            line = self.op.source.span.line
            self.trace.outside = (f"{self.thread.name} line {line}: {reason}", self.trace.position)

    def address(
        self,
        address: Address,
        size: int,
        what: str = "address of this access",
        *,
        role: Role = "data",
        alignment: int = 0,
        memory: bool = True,
        multimem: bool = False,
    ) -> tuple[Spot | None, int]:
        """Where ``address``, the operand of the instruction with this ``role``, is, and the reads it depends on.

        The instruction says whether it is generic or one in the window of a state space (PTX ISA 6.4.1.1); the name of
        a variable is the variable. None if it is outside every object, or no multiple of ``alignment`` (0: of
        ``size``), or where the thread or the instruction has no access to, or, where bytes are accessed as ``memory``,
        in an mbarrier; or if it is a ``multimem`` address against the instruction.
        """
        base = address.base
        if isinstance(base, Sym):
            where = self.objects[base.name].address + base.offset + address.offset
            return self.spot(where, size, alignment or size, role=role, memory=memory, multimem=multimem), 0
        node = self.expressions.settled(self.operand(base, ADDRESS))
        where = self.decide(node, None, what) + address.offset & (1 << ADDRESS.bits) - 1
        where = self.program.from_window(where, rule(self.op, role).form)
        return self.spot(where, size, alignment or size, role=role, memory=memory, multimem=multimem), node.reads

    def spot(
        self,
        address: int,
        size: int,
        alignment: int = 1,
        *,
        role: Role = "data",
        memory: bool = True,
        multimem: bool = False,
    ) -> Spot | None:
        """Where an access of ``size`` bytes at ``address`` is; None, and a reason why, if it has no meaning (6.4.1).

        Bytes of an mbarrier are no ``memory``: it is an opaque object (9.7.14.15.1). Multimem operations are for
        multimem addresses, and those for nothing else (8.2.3).
        """
        found = self.program.spot(address & (1 << 64) - 1, size, alignment, self.op, role, memory, multimem)
        if isinstance(found, Spot):
            return found
        self.undefined(found)
        return None

    def read(
        self, cells: tuple[Cell, Cell] | None, addr: int, offset: int = 0, operand: int = 0, **fields: Any
    ) -> Node:
        """Add a read, which returns a leaf; outside every object there is no event, and 0 is returned."""
        if cells is None and (self.given.prune or not addr):
            return self.expressions.constant(0)
        number = len(self.trace.reads)
        bits = 8 * cells[0][2] if cells is not None else 64
        identity = self.identity(offset, operand)
        leaf = self.expressions.leaf(number, self._value(identity), bits)
        if cells is not None:
            fields |= {"cell": cells[0], "place": cells[1], "value": leaf, "leaf": number, "addr": addr}
            event = self.add("R", offset, operand, **fields)
        else:
            event = Event(identity, "R", self.op, value=leaf, leaf=number, addr=addr)
        self.trace.reads.append(event)
        return leaf

    def write(
        self, cells: tuple[Cell, Cell], value: Node, addr: int, offset: int = 0, operand: int = 0, **fields: Any
    ) -> Event:
        """Add a write."""
        value = self.expressions.settled(value)
        fields |= {"cell": cells[0], "place": cells[1], "value": value, "addr": addr, "data": value.reads}
        return self.add("W", offset, operand, **fields)

    def token(self, event: Event) -> Node:
        """What the arrival ``event`` returns: a state that the simulation of barriers gives."""
        node = self.returned_by(event, self._value(event.id))
        self.trace.tokens[event.id] = event.leaf
        return node

    def returned_by(self, event: Event, value: int | None) -> Node:
        """What an operation on an mbarrier returns: a value that depends on it, as on a read (None: still open)."""
        number = event.leaf = len(self.trace.reads)
        self.trace.reads.append(event)
        return self.expressions.leaf(number, value, 64 if event.kind == "MBA" else 1)

    def exchange(self, results: Sequence[bool], **fields: Any) -> list[Node]:
        """Give a value to other threads, after the step for it; ``results``: which of value and predicate are wanted.

        Raises ``Unmet`` where values are given but this one's are not.
        """
        numbers, nodes, identity = [], [], self.identity()
        given = self.given.exchanged.get(identity)
        fields["operand"] = self.expressions.settled(fields["operand"])
        widths = (1 if fields["name"] in _TRUTHS else 32), 1
        for value, wanted, bits in zip(given or (None, None), results, widths, strict=True):
            number = len(self.trace.reads) if wanted else -1
            numbers.append(number)
            nodes.append(self.expressions.leaf(number, value, bits) if wanted else self.expressions.constant(0))
            if wanted:
                self.trace.reads.append(Event(identity, "X", self.op, leaf=number))
                if value is not None:
                    self.trace.given[number] = value
        fields["where"] = f"{self.thread.name} line {self.op.source.span.line}"
        fields["step"] = len(self.trace.steps) - 1
        self.trace.exchanges.append(Exchange(identity, numbers=(numbers[0], numbers[1]), **fields))
        if given is None and self.given.values is not None and any(results):
            raise Unmet
        return nodes

    def wait_result(self) -> int:
        """The result of a wait on an mbarrier on this path."""
        return self.either(self.identity())

    def either(self, identity: EventId) -> int:
        """What may be true or false on this path, by what nobody else decides."""
        given = self._value(identity)
        result = self.fork((1, 0)) if given is None else int(given != 0)
        self.trace.waits[identity] = result
        return result

    def _value(self, identity: EventId) -> int | None:
        if self.given.values is None:
            return None
        value = self.given.values.get(identity)
        if value is None:
            raise Missing(identity)
        return value

    def lose(self) -> None:
        """A write outside every object or misaligned; while the domains are computed it may become another one."""
        self.trace.lost += 1
        if not self.given.prune:
            self.last_write = self.step_count
