"""One thread at a time for the reference: its paths, with the value of every read left open as a leaf.

Nothing here knows another thread or a memory model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Imm, Operand, Reg, Sym, Type
from ptxmm.ptx.ops.signatures import result_type, source_types
from tests import (
    reference_accesses,
    reference_asynchronous,
    reference_exchanges,
    reference_floats,
    reference_matrices,
    reference_multimem,
    reference_products,
    reference_synchronization,
    reference_tensorcore,
    reference_undetermined,
)
from tests.reference_dependencies import settled
from tests.reference_events import Event, Open, Path, Run, Step
from tests.reference_expressions import (
    Expr,
    Leaf,
    apply,
    as_typed,
    call,
    clamp,
    const,
    guessed,
    is_const,
    joined_bytes,
    mask,
    reads,
    result_bits,
)
from tests.reference_flow import Flow
from tests.reference_legality import may, operand_of
from tests.reference_places import Division
from tests.reference_readings import Readings
from tests.reference_windows import convert, name_of, starts, whole

CALCULATES = (
    ops.Alu, ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Pack, ops.Unpack, ops.PendingCount,
    ops.Nothing, ops.Mapa, ops.CtaRank, ops.IsSpace, ops.ConvertAddress, ops.Wmma,
    ops.SetMaxRegisters, ops.Opaque,
)  # fmt: skip
BARRIERS = (ops.Barrier, ops.BarrierReduction, ops.WarpBarrier, ops.ClusterBarrier)
PRED = Type("pred", 1)
U32 = Type("u", 32)
TRUTHS = ("and", "or", "vote.all", "vote.any", "vote.uni")
"""Exchanges that give a predicate."""
B64 = Type("b", 64)


class Walker:
    """Enumerates the paths of one thread of a test."""

    def __init__(self, test: Test, thread: int, unroll: int, readings: Readings, spins: int = 0) -> None:
        self.test, self.index, self.unroll, self.spins, self.readings = test, thread, unroll, spins, readings
        self.whole, self.split = readings["vector"] == "whole", readings["b128"] == "split"
        self.sem, self.values = readings["dep"] != "syn", readings["dep"] == "value"
        self.thread = test.threads[thread]
        self.flow = Flow(self.thread, self.values)
        self.chunks = Division(test, self.split, self.whole)
        self.products = any(isinstance(op, ops.Wgmma) for op in self.thread.body)
        self.shared = reference_exchanges.shared(test)[thread]
        self.exits = any(isinstance(op, BARRIERS) for t in test.threads for op in t.body) and not test.dialect
        self.strays: list[Run] = []  # where an instruction has come next that has no meaning
        self.cut: list[Run] = []  # where a loop would be gone round once too often

    def runs(self) -> Iterator[Run]:
        """All that the thread comes to, also where it is cut or spins next: before each instruction, and the end."""
        start = {r: const(self.thread.initial.get(r, 0)) for r in self.thread.registers}
        stack = [Run(0, start, (), (), (), {}, {})]
        while stack:
            run = self.close_guards(stack.pop())
            yield run
            if run.pc < len(self.thread.body):
                writes = sum(e.kind == "W" for e in run.events)
                run = replace(run, writes_at={**run.writes_at, run.pc: writes})
                stack.extend(self.allowed(run))

    def paths(self) -> Iterator[Path]:
        """All paths to the end; none for executions that are cut at the unrolling bound or spin."""
        yield from filter(None, map(self.ended, self.runs()))

    def ended(self, run: Run) -> Path | None:
        """The path of a run, if it is at the end."""
        if run.pc < len(self.thread.body):
            return None
        exits = Event(self.index, "EX", ctrl=run.missed, left=run.left, step=len(run.events))
        return replace(run.path(), events=(*run.events, exits) if self.exits else run.events, left=run.left)

    def allowed(self, run: Run) -> Iterator[Run]:
        """The runs after one more instruction that do not misuse the registers of a product."""
        if not self.products:
            yield from self.step(run)
            return
        op = self.thread.body[run.pc]
        taken = self.predicate(run, op)
        calculates = isinstance(op, CALCULATES)
        if calculates and not is_const(taken):
            raise NotImplementedError(op)
        for after in self.step(run):
            events = after.events[len(run.events) :]
            executed = bool(taken[1]) if calculates else bool(events)
            if executed:
                after = replace(after, executed=(*run.executed, (op, events)))
            if not executed or not reference_products.misused(after.executed, self.readings["wgmma-mov"] == "free"):
                yield after
            else:
                self.strays.append(run)

    def close_guards(self, run: Run) -> Run:
        registers, still_open = dict(run.registers), []
        for guard in reversed(run.guards):
            if guard.join != run.pc:
                still_open.append(guard)
            elif guard.reads:
                for r in guard.assigned:
                    registers[r] = ("joined", self.settled(run, registers[r]), guard.reads, (r, guard.mark))
        return replace(run, registers=registers, guards=tuple(reversed(still_open)))

    # -- operands

    def operand(self, run: Run, item: Operand, kind: Type) -> Expr:
        """The operand as a bit pattern of ``kind``."""
        match item:
            case Imm(value):
                return const(mask(value, kind.bits))
            case Sym(name, offset):
                return const(mask(name_of(self.test, self.index, self.test.objects[name]) + offset, kind.bits))
        expr, bits = run.registers[item.name], self.thread.registers[item.name].bits
        return self.settled(run, expr if bits <= kind.bits else self.resize(expr, Type("u", bits), kind.bits))

    def settled(self, run: Run, expr: Expr) -> Expr:
        """``expr`` without the reads that make no difference to it."""
        return settled(expr, lambda source: self.width(run, source)) if self.values else expr

    def width(self, run: Run, source: Expr) -> int:
        """How many bits a source of an expression has."""
        match source[0]:
            case "read":
                cell = run.events[source[1][1]].cell
                return 8 * cell[2] if cell else 64
            case "absent":
                return int(source[1])
            case "joined":
                what, *rest = source[3]
                if what == "wait":
                    return 1
                return self.thread.registers[what].bits if what in self.thread.registers else int(rest[1])
            case "given":
                op = run.steps[source[1][1]].op
                truth = source[1][2] == 1 or getattr(op, "op", "") in TRUTHS
                return 1 if truth else 32
            case "token" | "call":
                return 64
        return result_bits(source[0], source[1])

    def resize(self, expr: Expr, frm: Type, bits: int) -> Expr:
        """``expr`` of type ``frm``, truncated or extended by its sign or zeros to ``bits``."""
        if frm.bits == bits or (is_const(expr) and not frm.signed and frm.bits < bits):
            return expr
        return const(mask(as_typed(expr[1], frm), bits)) if is_const(expr) else ("extend", frm, bits, expr)

    def assign(self, run: Run, dst: Reg | None, expr: Expr, kind: Type, taken: Expr = ("const", 1)) -> dict[str, Expr]:
        """The registers after ``dst = expr`` under the guard value ``taken``."""
        if dst is None:
            return run.registers
        new = self.resize(expr, kind, self.thread.registers[dst.name].bits) if expr[0] != "absent" else expr
        if taken != const(1):
            new = self.apply("select", self.thread.registers[dst.name], taken, new, run.registers[dst.name])
        return {**run.registers, dst.name: new}

    def apply(self, op: str, kind: Type, *args: Expr) -> Expr:
        return apply(op, kind, *args, sem=self.sem)

    def predicate(self, run: Run, op: ops.Op) -> Expr:
        """The truth value of the guard ``@p`` (and of the condition of a dialect branch)."""
        expr = const(1)
        if op.guard is not None:
            expr = self.settled(run, run.registers[op.guard.register])
            expr = self.apply("not", PRED, expr) if op.guard.negated else expr
        if isinstance(op, ops.Branch) and op.condition is not None:
            c = op.condition
            other = self.apply(c.cmp, c.type, self.operand(run, c.a, c.type), self.operand(run, c.b, c.type))
            expr = other if expr == const(1) else self.apply("and", PRED, expr, other)
        return self.settled(run, expr)

    # -- steps

    def step(self, run: Run) -> Iterator[Run]:
        """The runs after one more instruction."""
        op = self.thread.body[run.pc]
        taken = self.predicate(run, op)
        gathers = self.shared and reference_exchanges.gathers(op)
        if isinstance(op, CALCULATES) and not gathers:
            yield self.calculate(run, op, taken)
            return
        if isinstance(op, BARRIERS):
            run = replace(run, missed=run.missed | reads(taken))
        for value in (True, False):
            if is_const(taken) and bool(taken[1]) != value:
                continue
            fork = run if is_const(taken) else replace(run, constraints=(*run.constraints, (taken, value)))
            if isinstance(op, ops.Branch | ops.Exit):
                yield from self.jump(fork, op, taken, value)
            elif isinstance(op, CALCULATES):
                yield self.calculate(self.gather(fork, op) if value else fork, op, taken)
            elif value:
                fork = self.gather(fork, op) if gathers else fork
                yield from (self.without(len(run.events), done) for done in self.perform(fork, op, taken))
            else:
                for dst in written(op):
                    nothing = ("absent", 0 if dst is None else self.thread.registers[dst.name].bits)
                    fork = replace(fork, registers=self.assign(fork, dst, nothing, PRED, taken))
                yield replace(fork, pc=run.pc + 1)

    def gather(self, run: Run, op: ops.Op) -> Run:
        """The thread waits for those of its warp."""
        return replace(run, steps=(*run.steps, Step(self.index, "together", op)))

    def without(self, first: int, run: Run) -> Run:
        """The run in which the writes from the event ``first`` on have no value in them that makes no difference."""
        events = list(run.events)
        for k, event in enumerate(events[first:], first):
            if event.kind == "W" and event.value is not None and event.data == reads(event.value):
                value = self.settled(run, event.value)
                events[k] = replace(event, value=value, data=reads(value))
        return replace(run, events=tuple(events))

    def jump(self, run: Run, op: ops.Branch | ops.Exit, taken: Expr, value: bool) -> Iterator[Run]:
        if run.pc in self.flow.join:
            decided = self.flow.decided(run.pc)
            guard = Open(self.flow.join[run.pc], reads(taken), decided, (run.pc, sum(run.taken.values())))
            run = replace(run, guards=(*run.guards, guard))
            if run.pc in self.flow.leaving:
                run = replace(run, left=run.left | guard.reads)
            if run.pc in self.flow.skipping:
                run = replace(run, missed=run.missed | guard.reads)
        if not value:
            yield replace(run, pc=run.pc + 1)
            return
        target = op.target if isinstance(op, ops.Branch) else len(self.thread.body)
        if run.pc in self.flow.backward:
            header = self.flow.spin.get(run.pc)
            # a round of a spin loop without a write: its last round stands for all, as far as final states go
            idle = header is not None and run.writes_at[header] == run.writes_at[run.pc]
            counted, most = (~run.pc, self.spins) if idle else (run.pc, self.unroll)
            taken_before = run.taken.get(counted, 0)
            if taken_before >= most:
                self.cut.append(run)
                return
            run = replace(run, taken={**run.taken, counted: taken_before + 1})
        yield replace(run, pc=target)

    def calculate(self, run: Run, op: ops.Op, taken: Expr) -> Run:
        """Instructions on registers only."""
        apply_, operand = self.apply, self.operand
        match op:
            case ops.Alu(op=name, type=t, dst=dst, sources=src):
                given = [operand(run, s, k) for s, k in zip(src, source_types(name, t), strict=True)]
                kind = result_type(name, t)
                if name == "mov":
                    expr = given[0]
                elif name in ("mad.lo", "mad.hi", "mad.wide"):
                    expr = apply_("add", kind, apply_("mul" + name.removeprefix("mad"), t, *given[:2]), given[2])
                else:
                    expr = apply_(name, t, *given)
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, kind, taken))
            case ops.AluPair(op=name, second=second, type=t, dst=dst, predicate=p, sources=src):
                given = [operand(run, s, k) for s, k in zip(src, source_types(second, t), strict=True)]
                truth = apply_(second, t, *given)
                if dst is not None:
                    expr = apply_(name, t, *given[: len(source_types(name, t))])
                    run = replace(run, registers=self.assign(run, dst, expr, t, taken))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, p, truth, PRED, taken))
            case ops.Convert(dst=dst, value=value, to=to, frm=frm, saturate=saturate):
                expr = operand(run, value, frm)
                if to.kind in ("f", "bf") or frm.kind in ("f", "bf"):
                    modes = (saturate, op.rounding, op.flush)
                    expr = call(lambda v: mask(reference_floats.convert(v, to, frm, *modes), to.bits), expr)
                elif saturate and is_const(expr):
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
            case ops.Pack(dst=dst, type=t, sources=src):
                width = t.bits // len(src)
                if width % 8:
                    raise NotImplementedError(op)
                parts = [(operand(run, a, Type("b", width)), 0, width // 8) for a in src]
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, joined_bytes(*parts), t, taken))
            case ops.Unpack(dst=dsts, type=t, value=value):
                expr, width = operand(run, value, t), t.bits // len(dsts)
                if width % 8:
                    raise NotImplementedError(op)
                for i, part in enumerate(dsts):
                    piece = joined_bytes((expr, i * width // 8, width // 8))
                    run = replace(run, registers=self.assign(run, part, piece, Type("b", width), taken))
                return replace(run, pc=run.pc + 1)
            case ops.Opaque():
                given = [operand(run, a, t) for a, t in zip(op.sources, op.given, strict=True)]
                registers = run.registers
                for n, (register, t) in enumerate(((op.dst, op.result), (op.second, PRED))):
                    if register is not None:
                        made = call(partial(guessed, op.name, n, t.bits), *given)
                        registers = self.assign(replace(run, registers=registers), register, made, t, taken)
                return replace(run, pc=run.pc + 1, registers=registers)
            case ops.Wmma():
                return reference_undetermined.product(self, run, op, taken)
            case ops.PendingCount(dst=dst, state=state):
                expr = apply_("and", B64, operand(run, state, B64), const((1 << 20) - 1))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, B64, taken))
            case ops.SetMaxRegisters():
                return replace(run, pc=run.pc + 1)
            case ops.Nothing(dst=dst):
                registers = run.registers
                if dst is not None and op.type is not None:
                    registers = self.assign(run, dst, const(0), op.type, taken)
                return replace(run, pc=run.pc + 1, registers=registers)
            case ops.Mapa(dst=dst, type=t, value=value, rank=rank):
                expr = call(
                    lambda a, r: mask(self.mapped(whole(self.test, self.index, op, a), r, op), t.bits),
                    operand(run, value, t),
                    operand(run, rank, U32),
                )
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, t, taken))
            case ops.ConvertAddress(dst=dst, type=t, value=value):
                expr = call(lambda a: convert(self.test, self.index, op, a), operand(run, value, t))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, t, taken))
            case ops.CtaRank(dst=dst, type=t, value=value):
                expr = call(lambda a: self.rank(whole(self.test, self.index, op, a)), operand(run, value, t))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, U32, taken))
            case ops.IsSpace(dst=dst, space=space, value=value):
                expr = call(lambda a: self.in_space(a, space), operand(run, value, B64))
                return replace(run, pc=run.pc + 1, registers=self.assign(run, dst, expr, PRED, taken))
        raise NotImplementedError(op)

    # -- addresses

    def owner(self) -> tuple[int, int, int | None, int | None]:
        p = self.thread.placement
        return (p.gpu, p.grid, p.cluster, p.cta)

    def sibling(self, item: MemoryObject, rank: int) -> MemoryObject | None:
        """The variable of the same name in the CTA with this rank of the cluster."""
        if item.owner is None:
            return None
        for other in self.test.objects.values():
            if other.name == item.name and other.owner == (*item.owner[:3], rank) and other.virtual == other.key:
                return other
        return None

    def mapped(self, address: int, rank: int, op: ops.Mapa) -> int:
        place = self.test.locate(address)
        found = self.sibling(place[0], rank) if place else None
        if found is None or place is None:
            return 0
        return (found.address if op.space is None and op.type.bits == 64 else found.mapped) + place[1]

    def rank(self, address: int) -> int:
        place = self.test.locate(address)
        return (place[0].owner[3] or 0) if place and place[0].owner else 0

    def in_space(self, address: int, space: str) -> int:
        place = self.test.locate(address)
        if place is None:
            return 0
        item = place[0]
        if space == "shared::cluster":
            return int(item.owner is not None and item.owner[:3] == self.owner()[:3])
        if space in ("shared", "shared::cta"):
            return int(item.owner is not None and item.owner == self.owner())
        return int(item.space == space)

    def places(
        self, run: Run, address: ops.Address, size: int, align: int, multimem: bool = False
    ) -> Iterator[tuple[Run, MemoryObject, int, Expr]]:
        """Every aligned place of ``size`` bytes that the address may name: the run that assumes it, object, offset."""
        operand = operand_of(self.thread.body[run.pc], address)
        if isinstance(address.base, Sym):  # the variable itself
            item = self.test.objects[address.base.name]
            expr = const(item.address + address.base.offset + address.offset)
            yield from self.at(run, expr, size, align, operand, multimem, named=True)
            return
        expr = self.operand(run, address.base, B64)
        if address.offset:
            expr = self.apply("add", B64, expr, const(mask(address.offset, 64)))
        yield from self.at(run, expr, size, align, operand, multimem)

    def at(
        self, run: Run, expr: Expr, size: int, align: int, operand: str, multimem: bool = False, named: bool = False
    ) -> Iterator[tuple[Run, MemoryObject, int, Expr]]:
        """``operand``: which one of the instruction it is; what it may not access is left out. ``named``: the address
        is the generic one of a variable that is named. Multimem addresses are for ``multimem`` operations."""
        op, elsewhere = self.thread.body[run.pc], []
        for item in self.test.objects.values():
            if item.virtual != item.key or bool(item.replicas) != multimem:
                continue
            if not may(self.test, self.index, op, operand, item):
                continue
            bases = [item.address] if named else starts(self.test, self.index, op, operand, item)
            for offset in range(-item.address % align, item.size - size + 1, align):
                for base in bases:
                    here = self.apply("eq", B64, expr, const(base + offset))
                    if is_const(here) and not here[1]:
                        continue
                    elsewhere.append((here, False))
                    fork = run if is_const(here) else replace(run, constraints=(*run.constraints, (here, True)))
                    yield fork, item, offset, expr
        if not any(is_const(here) for here, _ in elsewhere):
            self.strays.append(replace(run, constraints=(*run.constraints, *elsewhere)))

    # -- events

    def perform(self, run: Run, op: ops.Op, taken: Expr) -> Iterator[Run]:
        """Instructions that make events, once for each cell that the address may name and each way a cas may go."""
        twin = self.flow.twins.get(run.pc)
        own = frozenset() if twin == run.pc else reads(taken)
        ctrl = own.union(*(g.reads for g in run.guards if g.mark[0] != twin))
        common = Event(self.index, "", ctrl=ctrl, left=run.left, step=len(run.events))
        match op:
            case ops.Load() | ops.Store() | ops.Atomic():
                yield from reference_accesses.access(self, run, op, taken, common)
            case ops.CopyAsync() | ops.CopyAsyncArrive() | ops.AsyncCommit() | ops.AsyncWait() | ops.BulkCopy():
                yield from reference_asynchronous.perform(self, run, op, common)
            case ops.AsyncStore():
                yield from reference_asynchronous.perform(self, run, op, common)
            case ops.TensormapReplace() | ops.TensormapCopyFence():
                yield from reference_accesses.tensormap(self, run, op, common)
            case ops.Multimem():
                yield from reference_multimem.perform(self, run, op, taken, common)
            case (
                ops.TensorFence() | ops.TensorWait() | ops.TensorLoad() | ops.TensorStore() | ops.TensorCopy()
                | ops.TensorProduct() | ops.TensorCommit()
            ):  # fmt: skip
                yield from reference_tensorcore.perform(self, run, op, taken, common)
            case ops.LoadMatrix() | ops.StoreMatrix() | ops.WgmmaFence() | ops.Wgmma():
                yield from reference_matrices.perform(self, run, op, taken, common)
            case ops.StoreBulk():
                yield from reference_accesses.zeros(self, run, op, common)
            case ops.Discard() | ops.WmmaLoad() | ops.WmmaStore():
                yield from reference_undetermined.perform(self, run, op, taken, common)
            case _:
                yield from reference_synchronization.perform(self, run, op, taken, common)


def written(op: ops.Op) -> tuple[Reg | None, ...]:
    """The registers that a predicated instruction with events would write."""
    loads = ops.Load | ops.Atomic | ops.LoadMatrix | ops.Wgmma | ops.Multimem | ops.TensorLoad | ops.WmmaLoad
    if isinstance(op, loads):
        return op.dst
    if isinstance(op, ops.WarpExchange):
        return op.dst, op.predicate
    if isinstance(op, ops.BarrierReduction):
        return (op.dst,)
    return (op.dst,) if isinstance(op, ops.MbarrierArrive | ops.MbarrierWait) else ()


def after(run: Run, *events: Event) -> Run:
    """The run after an instruction with these events."""
    return replace(run, pc=run.pc + 1, events=(*run.events, *events))


def leaf(run: Run, thread: int, index: int) -> Leaf:
    """The event that comes ``index`` after the last one of the run."""
    return (thread, len(run.events) + index)
