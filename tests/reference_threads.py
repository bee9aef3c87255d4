"""One thread at a time for the reference: its paths, with the value of every read left open as a leaf.

Nothing here knows another thread or a memory model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxmm.program.control import ControlFlow, control_flow
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Imm, Operand, Reg, Sym, Type
from tests.reference_expressions import NOTHING, Expr, Leaf, apply, as_typed, clamp, const, is_const, mask, reads

Cell = tuple[str, int, int]

PRED = Type("pred", 1)
U32 = Type("u", 32)
B64 = Type("b", 64)
PROXIES = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}


@dataclass(frozen=True, slots=True)
class Event:
    """A read, write, fence or barrier half; ``cell`` is (physical object, offset, size), ``vcell`` the virtual one."""

    thread: int | None
    kind: str  # R W FSC FAR PF AF BA BW, or X for a fence without effect
    scope: str | None = None  # of strong operations only
    proxy: str | None = None
    rel: bool = False
    acq: bool = False
    amo: bool = False
    noret: bool = False
    cell: Cell | None = None
    vcell: Cell | None = None
    value: Expr | None = None
    addr: frozenset[Leaf] = NOTHING
    data: frozenset[Leaf] = NOTHING
    ctrl: frozenset[Leaf] = NOTHING
    read_half: Leaf | None = None  # of the write of an atomic
    barrier: tuple[ops.Barrier, Expr, Expr | None] | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A way through a thread: its events, the predicates that must be true or false for it, the final registers."""

    events: tuple[Event, ...]
    constraints: tuple[tuple[Expr, bool], ...]
    registers: dict[str, Expr]


# ---- the paths of one thread -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Open:
    """A guard that is open until ``join``: the reads it depends on, the registers written meanwhile, a unique mark."""

    join: int
    reads: frozenset[Leaf]
    assigned: frozenset[str]
    mark: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Run:
    """A thread in the middle of a path."""

    pc: int
    registers: dict[str, Expr]
    events: tuple[Event, ...]
    constraints: tuple[tuple[Expr, bool], ...]
    guards: tuple[Open, ...]
    taken: dict[int, int]
    writes_at: dict[int, int]  # the number of writes when the thread was last at this pc


class Walker:
    """Enumerates the paths of one thread of a test."""

    def __init__(self, test: Test, thread: int, unroll: int, sem: bool) -> None:
        self.test, self.index, self.unroll, self.sem = test, thread, unroll, sem
        self.thread = test.threads[thread]
        self.flow: ControlFlow = control_flow(self.thread)

    def paths(self) -> Iterator[Path]:
        """All paths to the end; none for executions that are cut at the unrolling bound or spin."""
        start = {r: const(self.thread.initial.get(r, 0)) for r in self.thread.registers}
        stack = [Run(0, start, (), (), (), {}, {})]
        while stack:
            run = self.close_guards(stack.pop())
            if run.pc >= len(self.thread.body):
                yield Path(run.events, run.constraints, run.registers)
            else:
                writes = sum(e.kind == "W" for e in run.events)
                run = replace(run, writes_at={**run.writes_at, run.pc: writes})
                stack.extend(self.step(run))

    def close_guards(self, run: Run) -> Run:
        registers, still_open = dict(run.registers), []
        for guard in reversed(run.guards):
            if guard.join != run.pc:
                still_open.append(guard)
            elif guard.reads:
                for r in guard.assigned:
                    registers[r] = ("joined", registers[r], guard.reads, (r, guard.mark))
        return replace(run, registers=registers, guards=tuple(reversed(still_open)))

    # -- operands

    def operand(self, run: Run, item: Operand, kind: Type) -> Expr:
        """The operand as a bit pattern of ``kind``."""
        match item:
            case Imm(value):
                return const(mask(value, kind.bits))
            case Sym(name, offset):
                return const(mask(self.test.objects[name].address + offset, kind.bits))
        expr, bits = run.registers[item.name], self.thread.registers[item.name].bits
        return expr if bits <= kind.bits else self.resize(expr, Type("u", bits), kind.bits)

    def resize(self, expr: Expr, frm: Type, bits: int) -> Expr:
        """``expr`` of type ``frm``, truncated or extended by its sign or zeros to ``bits``."""
        if frm.bits == bits or (is_const(expr) and not frm.signed and frm.bits < bits):
            return expr
        return const(mask(as_typed(expr[1], frm), bits)) if is_const(expr) else ("extend", frm, bits, expr)

    def assign(self, run: Run, dst: Reg | None, expr: Expr, kind: Type, taken: Expr = ("const", 1)) -> dict[str, Expr]:
        """The registers after ``dst = expr`` under the guard value ``taken``."""
        if dst is None:
            return run.registers
        new = self.resize(expr, kind, self.thread.registers[dst.name].bits) if expr != ("absent",) else expr
        width = self.thread.registers[dst.name]
        return {**run.registers, dst.name: self.apply("select", width, taken, new, run.registers[dst.name])}

    def apply(self, op: str, kind: Type, *args: Expr) -> Expr:
        return apply(op, kind, *args, sem=self.sem)

    def predicate(self, run: Run, op: ops.Op) -> Expr:
        """The truth value of the guard ``@p`` (and of the condition of a dialect branch)."""
        expr = const(1)
        if op.guard is not None:
            expr = run.registers[op.guard.register]
            expr = self.apply("not", PRED, expr) if op.guard.negated else expr
        if isinstance(op, ops.Branch) and op.condition is not None:
            c = op.condition
            other = self.apply(c.cmp, c.type, self.operand(run, c.a, c.type), self.operand(run, c.b, c.type))
            expr = other if expr == const(1) else self.apply("and", PRED, expr, other)
        return expr

    # -- steps

    def step(self, run: Run) -> Iterator[Run]:
        """The runs after one more instruction."""
        op = self.thread.body[run.pc]
        taken = self.predicate(run, op)
        if isinstance(op, ops.Alu | ops.Convert | ops.SetPredicate | ops.Select):
            yield self.calculate(run, op, taken)
            return
        for value in (True, False):
            if is_const(taken) and bool(taken[1]) != value:
                continue
            fork = run if is_const(taken) else replace(run, constraints=(*run.constraints, (taken, value)))
            if isinstance(op, ops.Branch | ops.Exit):
                yield from self.jump(fork, op, taken, value)
            elif value:
                yield from self.perform(fork, op, taken)
            else:
                dst = op.dst if isinstance(op, ops.Load | ops.Atomic) else None
                registers = run.registers if dst is None else self.assign(run, dst, ("absent",), PRED, taken)
                yield replace(fork, pc=run.pc + 1, registers=registers)

    def jump(self, run: Run, op: ops.Branch | ops.Exit, taken: Expr, value: bool) -> Iterator[Run]:
        if run.pc in self.flow.join:
            guard = Open(
                self.flow.join[run.pc], reads(taken), self.flow.assigned[run.pc], (run.pc, sum(run.taken.values()))
            )
            run = replace(run, guards=(*run.guards, guard))
        if not value:
            yield replace(run, pc=run.pc + 1)
            return
        target = op.target if isinstance(op, ops.Branch) else len(self.thread.body)
        if run.pc in self.flow.backward:
            header = self.flow.spin.get(run.pc)
            if header is not None and run.writes_at[header] == run.writes_at[run.pc]:
                return  # a round of a spin loop without a write: its last round stands for all
            taken_before = run.taken.get(run.pc, 0)
            if taken_before >= self.unroll:
                return
            run = replace(run, taken={**run.taken, run.pc: taken_before + 1})
        yield replace(run, pc=target)

    def calculate(self, run: Run, op: ops.Op, taken: Expr) -> Run:
        """Instructions on registers only."""
        apply_, operand = self.apply, self.operand
        match op:
            case ops.Alu(op=name, type=t, dst=dst, sources=src):
                if name == "mov":
                    expr, kind = operand(run, src[0], t), t
                elif name.startswith("mad"):
                    how = name.removeprefix("mad")
                    kind = Type(t.kind, 2 * t.bits) if how == ".wide" else t
                    product = apply_("mul" + how, t, operand(run, src[0], t), operand(run, src[1], t))
                    expr = apply_("add", kind, product, operand(run, src[2], kind))
                elif name in ("shl", "shr"):
                    expr, kind = apply_(name, t, operand(run, src[0], t), operand(run, src[1], U32)), t
                else:
                    kind = Type(t.kind, 2 * t.bits) if name == "mul.wide" else t
                    expr = apply_(name, t, *(operand(run, s, t) for s in src))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, kind, taken))
            case ops.Convert(dst=dst, value=value, to=to, frm=frm, saturate=saturate):
                expr = operand(run, value, frm)
                if saturate and is_const(expr):
                    expr = const(mask(clamp(expr[1], frm, to), to.bits))
                elif saturate:
                    expr = ("saturate", frm, to, expr)
                else:
                    expr = self.resize(expr, frm, to.bits)
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, to, taken))
            case ops.Select(type=t, dst=dst, a=a, b=b, predicate=p):
                expr = apply_("select", t, run.registers[p.name], operand(run, a, t), operand(run, b, t))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, t, taken))
            case ops.SetPredicate():
                truth = apply_(op.cmp, op.type, operand(run, op.a, op.type), operand(run, op.b, op.type))
                results = [(op.dst, truth)]
                if op.complement is not None:
                    results.append((op.complement, apply_("not", PRED, truth)))
                if op.boolop is not None and op.c is not None:
                    c = run.registers[op.c.name]
                    c = apply_("not", PRED, c) if op.c_negated else c
                    results = [(r, apply_(op.boolop, PRED, e, c)) for r, e in results]
                registers = run.registers
                for r, e in results:
                    registers = self.assign(replace(run, registers=registers), r, e, PRED, taken)
                return replace(run, pc=run.pc + 1, registers=registers)
        raise NotImplementedError(op)

    def perform(self, run: Run, op: ops.Op, taken: Expr) -> Iterator[Run]:
        """Instructions that make events, once for each cell that the address may name and each way a cas may go."""
        ctrl = reads(taken).union(*(g.reads for g in run.guards))
        events = run.events
        match op:
            case ops.Fence(sem=sem, scope=scope):
                new = [Event(self.index, "FSC" if sem == "sc" else "FAR", scope, "GEN", ctrl=ctrl)]
                yield replace(run, pc=run.pc + 1, events=(*events, *new))
            case ops.ProxyFence(kind=kind):
                label = {"alias": "AF", "generic": "X"}.get(kind, "PF")
                new = [Event(self.index, label, None, PROXIES.get(kind) if label == "PF" else None, ctrl=ctrl)]
                yield replace(run, pc=run.pc + 1, events=(*events, *new))
            case ops.Barrier():
                wide = B64 if self.test.dialect else U32
                count = None if op.count is None else self.operand(run, op.count, wide)
                info = (op, self.operand(run, op.barrier, wide), count)
                halves = ("BA", "BW") if op.kind == "sync" else ("BA",)
                new = [Event(self.index, half, ctrl=ctrl, barrier=info) for half in halves]
                yield replace(run, pc=run.pc + 1, events=(*events, *new))
            case ops.Load() | ops.Store() | ops.Atomic():
                yield from self.access(run, op, taken, ctrl)
            case _:
                raise NotImplementedError(op)

    def access(
        self, run: Run, op: ops.Load | ops.Store | ops.Atomic, taken: Expr, ctrl: frozenset[Leaf]
    ) -> Iterator[Run]:
        address = self.operand(run, op.address.base, B64)
        address = self.apply("add", B64, address, const(mask(op.address.offset, 64))) if op.address.offset else address
        for at, vcell, cell in self.cells(op.type.bytes):
            here = self.apply("eq", B64, address, const(at))
            if is_const(here) and not here[1]:
                continue
            fork = run if is_const(here) else replace(run, constraints=(*run.constraints, (here, True)))
            leaf = (self.index, len(run.events))
            common = Event(
                self.index, "R", op.scope, PROXIES[op.proxy], cell=cell, vcell=vcell, addr=reads(address), ctrl=ctrl
            )
            if isinstance(op, ops.Load):
                new = (replace(common, acq=op.sem == "acquire"),)
                registers = self.assign(run, op.dst, ("read", leaf), op.type, taken)
                yield replace(fork, pc=run.pc + 1, events=(*run.events, *new), registers=registers)
            elif isinstance(op, ops.Store):
                value = self.operand(run, op.value, op.type)
                new = (replace(common, kind="W", rel=op.sem == "release", value=value, data=reads(value)),)
                yield replace(fork, pc=run.pc + 1, events=(*run.events, *new))
            else:
                yield from self.atomic(fork, op, common, leaf, taken)

    def atomic(self, run: Run, op: ops.Atomic, common: Event, leaf: Leaf, taken: Expr) -> Iterator[Run]:
        rel, acq = op.sem in ("release", "acq_rel"), op.sem in ("acquire", "acq_rel")
        read = replace(common, rel=rel, acq=acq, amo=True, noret=not op.returns)
        write = replace(common, kind="W", rel=rel, amo=True, read_half=leaf)
        registers = self.assign(run, op.dst, ("read", leaf), op.type, taken)
        after = replace(run, pc=run.pc + 1, registers=registers)
        operands = [self.operand(run, o, op.type) for o in op.operands]
        if op.op == "cas":
            compare, new = operands
            equal = self.apply("eq", op.type, ("read", leaf), compare)
            write = replace(write, value=new, data=reads(new), ctrl=write.ctrl | reads(equal))
            for success in (True, False):
                halves = (read, write) if success else (read,)
                if is_const(equal) and bool(equal[1]) != success:
                    continue
                yield replace(after, events=(*run.events, *halves), constraints=(*run.constraints, (equal, success)))
            return
        value = operands[0] if op.op == "exch" else self.apply(op.op, op.type, ("read", leaf), operands[0])
        write = replace(write, value=value, data=reads(value))
        yield replace(after, events=(*run.events, read, write))

    def cells(self, size: int) -> Iterator[tuple[int, Cell, Cell]]:
        """Every aligned place of ``size`` bytes: its address, its virtual and its physical cell."""
        for item in self.test.objects.values():
            if item.virtual == item.key:
                for offset in range(0, item.size - size + 1, size):
                    yield item.address + offset, (item.key, offset, size), (item.physical, offset, size)
