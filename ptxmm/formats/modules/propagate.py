"""What is known of the registers of one thread of a launch before it runs: constant propagation on its unrolled code.

A node is an instruction together with the round of every loop around it. Each node has an environment, the known
values of registers on entry; where control joins, only what all sides agree on is kept (Kildall 1973). A branch back
to the header of a loop enters the next round, unless no live register that was known there has another value: then it
is a loop of the result, as every loop is that goes on for more than ``MAX_ROUNDS`` rounds (fewer where too many
instructions would be left), or ``MAX_OPEN`` if memory decides whether it goes on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from typing import Literal, get_args

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.evaluate import Generic, Half, Known, Placed, evaluate
from ptxmm.formats.modules.flow import Flow
from ptxmm.formats.modules.lower import Code
from ptxmm.formats.modules.matrices import layouts, placed
from ptxmm.formats.modules.objects import Object
from ptxmm.program.shared.products import feeding, registers
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written

MAX_ROUNDS = 4096
MAX_OPEN = 8
MAX_INSTRUCTIONS = 20_000

Node = tuple[int, tuple[int, ...]]


class Held(Struct, frozen=True):
    """What a thread has stored in local memory, which is its own (PTX ISA 5.1.5): the ``value`` of ``size`` bytes of a
    variable."""

    place: ops.Sym
    size: int
    value: Known

    @property
    def key(self) -> str:
        """Its name in an environment."""
        return f"{_LOCAL}{self.place.name}+{self.place.offset}:{self.size}"

    def meets(self, place: ops.Sym, size: int) -> bool:
        """Whether bytes of the same variable are among its own."""
        start, other = self.place.offset, place.offset
        return self.place.name == place.name and other < start + self.size and start < other + size


class Shown(Struct, frozen=True):
    """A predicate that is true iff ``register`` is ``number`` (or is not, unless ``equal``)."""

    register: str
    number: int
    equal: bool


Fetch = Callable[[int, ops.Sym, int], Known | None]
"""For the pc of a load, a place and a number of bytes there what it returns; None where that is not known."""

Environment = dict[str, Known | Shown | Placed | Held]
"""The known value of a register by its name; by ``=name`` the number that a branch has shown a register to be, which
only other branches make use of; by ``?name`` what a predicate tells of a register; by ``@name`` what a register has in
some layouts of shared memory, which only matrix descriptors make use of; by ``[place`` what is in local memory."""

_FACTS = "=?@"
_LOCAL = "["
_ELSEWHERE = (ops.Load, *get_args(ops.FenceOp), *get_args(ops.BarrierOp), ops.WarpExchange, ops.Branch, ops.Exit)
"""What writes no local memory."""


class Propagation:
    """The fixed point. ``entry``: the environment of each node; ``back``: branches that stay in their round."""

    def __init__(
        self,
        code: Code,
        flow: Flow,
        known: Mapping[str, Known],
        variables: Mapping[str, Object],
        fetch: Fetch = lambda pc, place, size: None,
    ) -> None:
        self.code, self.flow, self.variables, self.fetch = code, flow, variables, fetch
        self.known = known
        self.ways = layouts(code.body, variables)
        # A product may only use them as they were at the last wgmma.fence: what gives them values stays where it is.
        self.stay = feeding(code.body, registers(code.body))
        self.locals = {name for op in code.body for name in symbols(op) if variables[name].space == "local"}
        self.pointed = any(isinstance(op, ops.ConvertAddress) and op.space == "local" for op in code.body)
        self.noted = [f"?{op.dst.name}" for op in code.body if isinstance(op, ops.SetPredicate)]
        self.most: dict[int, int] = {}
        self.rounds = MAX_ROUNDS
        self.begin()

    def begin(self) -> None:
        self.entry: dict[Node, Environment] = {(0, self.context(0)): dict(self.known)}
        self.back: dict[tuple[Node, int], bool] = {}
        self.open: set[tuple[int, tuple[int, ...]]] = set()

    def context(self, pc: int) -> tuple[int, ...]:
        return (0,) * len(self.flow.loops[pc])

    def key(self, node: Node) -> tuple[int, ...]:
        """Before every node that it can lead to, but for the branches back that stay in their round."""
        pc, rounds = node
        order = self.flow.order
        parts: list[int] = []
        for header, number in zip(self.flow.loops[pc], rounds, strict=True):
            parts += (order[header], number)
        return (*parts, order[pc])

    def run(self) -> None:
        start = (0, self.context(0))
        waiting = [(self.key(start), start)]
        queued = {start}
        while waiting:
            node = heapq.heappop(waiting)[1]
            queued.discard(node)
            if len(self.entry) > MAX_INSTRUCTIONS:
                self.shorten()
                start = (0, self.context(0))
                waiting, queued = [(self.key(start), start)], {start}
                continue
            out = self.leave(node)
            for follower, target in self.edges(node, out):
                new = self.met(target, self.shown(node, follower, out), follower)
                if new is not None:
                    self.entry[target] = new
                    if target not in queued:
                        queued.add(target)
                        heapq.heappush(waiting, (self.key(target), target))

    def shorten(self) -> None:
        """Begin anew, the loops with the most rounds being left in the result after fewer of them."""
        rounds: dict[int, int] = {}
        for pc, context in self.entry:
            for header, number in zip(self.flow.loops[pc], context, strict=True):
                rounds[header] = max(rounds.get(header, 0), number + 1)
        longest = max(rounds.values(), default=1)
        if longest == 1:
            span = self.code.body[0].source.span
            message = f"more than {MAX_INSTRUCTIONS} instructions are left for one thread"
            raise PtxmmError(message, kind="unsupported", line=span.line, column=span.column)
        fewer = MAX_OPEN if longest > MAX_OPEN else longest // 2
        self.most.update({header: fewer for header, number in rounds.items() if 2 * number >= longest})
        self.rounds = max(MAX_OPEN, self.rounds // 4)  # of the loops that were not come to: else each may cost a run
        self.begin()

    def met(self, target: Node, out: Environment, pc: int) -> Environment | None:
        """The new environment of ``target``, None if it stays as it is."""
        live = self.flow.live[pc]
        old = self.entry.get(target)
        if old is None:
            return {name: value for name, value in out.items() if name[0] == _LOCAL or name.lstrip(_FACTS) in live}
        new = {name: value for name, value in old.items() if name in out and out[name] == value}
        return new if len(new) < len(old) else None

    def value(self, environment: Environment, operand: ops.Operand | ops.Reg, shown: bool = False) -> Known | None:
        """What is known of an operand; with ``shown`` what branches have shown of a register counts too."""
        match operand:
            case ops.Reg(name):
                found = environment.get(name)
                if found is None and shown:
                    found = environment.get("=" + name)
                return None if isinstance(found, Shown | Held | tuple) else found
            case ops.Imm(number):
                return number & ((1 << 128) - 1)
            case ops.Sym():
                return operand
        return None

    def placed(self, environment: Environment, operand: ops.Operand | ops.Reg) -> Known | Placed | None:
        """What is known of an operand, in some layouts at least."""
        found = environment.get("@" + operand.name) if isinstance(operand, ops.Reg) else None
        return found if isinstance(found, tuple) else self.value(environment, operand)

    def holds(self, environment: Environment, guard: ops.Guard | None) -> bool | None:
        """Whether an instruction with this guard is executed; None if it is not known."""
        if guard is None:
            return True
        value = environment.get(guard.register)
        return None if value is None else (value != 0) != guard.negated

    def leave(self, node: Node) -> Environment:
        """The environment after ``node``."""
        pc = node[0]
        environment = self.entry[node]
        if pc == len(self.code.body):
            return environment
        op = self.code.body[pc]
        written = names_written(op)
        holds = self.holds(environment, op.guard)
        if holds is False:
            return environment
        if self.locals and not isinstance(op, (*_ELSEWHERE, *ops.COMPUTING)):
            environment = self.stored(pc, environment, holds is True)
        if not written:
            return environment
        found = {} if pc in self.code.refused else self.computed(pc, environment)
        out = self.without_facts(environment, written)
        if isinstance(op, ops.SetPredicate) and holds and op.complement is None and op.boolop is None:
            self.note(op, environment, out)
        for name in written:
            value = None if name in self.stay else found.get(name)
            if value is None or (holds is None and environment.get(name) != value):
                out.pop(name, None)
            else:
                out[name] = value & self.mask(name) if isinstance(value, int) else value
        if holds and not found and pc not in self.code.refused:
            out |= self._layouts(op, environment)
        return out

    def stored(self, pc: int, environment: Environment, holds: bool) -> Environment:
        """``environment`` after what the instruction at ``pc`` writes in local memory, if it ``holds`` or perhaps."""
        op = self.code.body[pc]
        out = environment.copy()
        here = [fact for fact in environment.values() if isinstance(fact, Held)]
        for touch in ops.touched(op):
            start = self.local(touch.space, touch.address, environment)
            if start is False:
                continue
            for fact in here:
                if start is None or touch.size is None or fact.meets(start, touch.size) or pc in self.code.refused:
                    out.pop(fact.key, None)
        if isinstance(op, ops.Store) and holds and op.scope is None and pc not in self.code.refused:
            size, start = op.type.bytes, self.local(op.space, op.address, environment)
            for number, operand in enumerate(op.values if start else ()):
                assert start
                value = self.value(environment, operand)
                if isinstance(value, int) and size <= 8:
                    value &= (1 << op.type.bits) - 1
                elif size != 8 or isinstance(value, Half):
                    value = None
                if value is not None:
                    held = Held(ops.Sym(start.name, start.offset + number * size), size, value)
                    out[held.key] = held
        return out

    def local(
        self, space: str | None, address: ops.Address, environment: Environment
    ) -> ops.Sym | Literal[False] | None:
        """The place in local memory that an address of a ``space`` is; False if it is in none, None if it may be in
        any."""
        base = self.value(environment, address.base)
        place = base.place if isinstance(base, Generic) else base
        if isinstance(place, ops.Sym) and place.name not in self.locals:
            return False
        if isinstance(place, ops.Sym) and isinstance(base, Generic) == (space is None):
            return ops.Sym(place.name, place.offset + address.offset)
        return None if space == "local" or (space is None and self.pointed) else False

    def _layouts(self, op: ops.Op, environment: Environment) -> Environment:
        """The registers of which ``op`` makes addresses that are known in some layouts."""
        if not self.ways:
            return {}
        made = placed(op, lambda operand: self.placed(environment, operand), self.variables, self.ways)
        return {"@" + name: tuple(n & self.mask(name) for n in numbers) for name, numbers in made.items()}

    def computed(self, pc: int, environment: Environment) -> dict[str, Known]:
        """The registers that the instruction at ``pc`` gives a known value."""
        op = self.code.body[pc]
        if isinstance(op, ops.Load):
            return self.fetched(pc, op, environment)
        shown = isinstance(op, ops.SetPredicate)
        return evaluate(op, lambda operand: self.value(environment, operand, shown), self.variables) or {}

    def fetched(self, pc: int, op: ops.Load, environment: Environment) -> dict[str, Known]:
        """The registers of the load at ``pc``, if it is known what all of them get."""
        base = self.value(environment, op.address.base)
        start = base.place if isinstance(base, Generic) else base
        if not isinstance(start, ops.Sym) or not self.named(op, base):
            return {}
        found: dict[str, Known] = {}
        size = op.type.bytes
        for number, register in enumerate(op.dst):
            place = ops.Sym(start.name, start.offset + op.address.offset + number * size)
            held = environment.get(Held(place, size, 0).key) if op.scope is None else None
            value = held.value if isinstance(held, Held) else self.fetch(pc, place, size)
            if value is None:
                return {}
            if register is not None:
                sign = 1 << op.type.bits - 1 if op.type.kind == "s" else 0
                found[register.name] = (value ^ sign) - sign if isinstance(value, int) else value
        return found

    def named(self, op: ops.Load, base: Known | None) -> bool:
        """Whether ``op`` takes addresses like ``base``, that of a variable."""
        if op.space is None:
            return isinstance(base, Generic) or (
                isinstance(base, ops.Sym) and self.variables[base.name].space == "global"
            )
        return isinstance(base, ops.Sym) and self.variables[base.name].space == op.space.partition("::")[0]

    def mask(self, name: str) -> int:
        """All bits of a register."""
        return (1 << (self.code.registers[name].bits if name in self.code.registers else 128)) - 1

    def note(self, op: ops.SetPredicate, environment: Environment, out: Environment) -> None:
        """Keep what a comparison of an unknown register with a number would show of it."""
        number = self.value(environment, op.b, True)
        if op.cmp in ("eq", "ne") and isinstance(op.a, ops.Reg) and isinstance(number, int) and op.type.kind in "bsu":
            out["?" + op.dst.name] = Shown(op.a.name, number & ((1 << op.type.bits) - 1), op.cmp == "eq")

    def shown(self, node: Node, follower: int, out: Environment) -> Environment:
        """``out`` with what it shows that control goes from the branch ``node`` to ``follower``."""
        op = self.code.body[node[0]] if node[0] < len(self.code.body) else None
        if not isinstance(op, ops.Branch | ops.Exit) or op.guard is None or self.decided(node):
            return out
        away = op.target if isinstance(op, ops.Branch) else len(self.code.body)
        test = out.get("?" + op.guard.register)
        if away == node[0] + 1 or not isinstance(test, Shown):
            return out
        truth = (follower == away) != op.guard.negated
        return {**out, "=" + test.register: test.number} if truth == test.equal else out

    def choices(self, node: Node) -> list[int]:
        """Where control can go from ``node``."""
        pc = node[0]
        body = self.code.body
        if pc == len(body):
            return []
        op = body[pc]
        if isinstance(op, ops.Branch | ops.Exit):
            holds = self.holds(self.entry[node], op.guard)
            away = op.target if isinstance(op, ops.Branch) else len(body)
            if holds is True:
                return [away]
            if holds is False:
                return [pc + 1]
        return list(self.flow.after[pc])

    def edges(self, node: Node, out: Environment) -> list[tuple[int, Node]]:
        """The instructions that may follow ``node``, each with its node."""
        return [(follower, self.target(node, follower, out)) for follower in self.choices(node)]

    def target(self, node: Node, follower: int, out: Environment) -> Node:
        pc, rounds = node
        loops = self.flow.loops
        current = dict(zip(loops[pc], rounds, strict=True))
        if current and not self.decided(node):
            # Memory decides whether these loops go on.
            for header in {h for s in self.choices(node) for h in current.keys() - set(loops[s])}:
                self.open.add((header, self.outer(node, header)))
        if follower in current:
            here = current[follower]
            # Decided once: what has been followed from there must stay what it is.
            stay = self.back.setdefault((node, follower), self.stays(node, follower, here, out))
            if not stay:
                current[follower] = here + 1
        return follower, tuple(current.get(header, 0) for header in loops[follower])

    def outer(self, node: Node, header: int) -> tuple[int, ...]:
        pc, rounds = node
        position = self.flow.loops[pc].index(header)
        return rounds[:position]

    def decided(self, node: Node) -> bool:
        """Whether it is known where control goes from ``node``."""
        pc = node[0]
        op = self.code.body[pc] if pc < len(self.code.body) else None
        return not isinstance(op, ops.Branch | ops.Exit) or self.holds(self.entry[node], op.guard) is not None

    def stays(self, node: Node, header: int, number: int, out: Environment) -> bool:
        """Whether the branch back from ``node`` to ``header`` is one of a loop that is left in the result."""
        prefix = self.outer(node, header)
        before = self.entry.get((header, (*prefix, number)), {})
        if all(out.get(name) == value for name, value in before.items() if name[0] != _LOCAL):
            return True
        most = self.most.get(header, MAX_OPEN if (header, prefix) in self.open else self.rounds)
        return number + 1 >= most

    def without_facts(self, environment: Environment, written: Collection[str]) -> Environment:
        """``environment`` without what is known of the registers ``written`` beside their values."""
        out = environment.copy()
        for name in written:
            for fact in _FACTS:
                out.pop(fact + name, None)
        for key in self.noted:
            held = out.get(key)
            if isinstance(held, Shown) and held.register in written:
                del out[key]
        return out
