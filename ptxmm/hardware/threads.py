"""The body of a thread as one ``asm`` block: its instructions as they were checked, each address opaque to ptxas.

ptxas merges, drops and reorders accesses whose addresses it can tell to be the same or to be different. So every access
has an address operand of its own, and what it is made of is not known before the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields, replace

from ptxmm.hardware.refusal import refused
from ptxmm.hardware.seats import Seat, Seating
from ptxmm.program.shared.windows import in_window
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op, Type
from ptxmm.ptx.spelling import Spelling, refuse
from ptxmm.ptx.typed_text import typed_text

LOOPS = 1024
"""A thread gives up once it has gone back so often; where each time may wait (``try_wait``), ``WAITS``."""
WAITS = 32

_RUN: tuple[type, ...] = (
    ops.Load, ops.Store, ops.Atomic, ops.AsyncStore, ops.Nothing, ops.Fence, ops.ProxyFence, ops.GenericToAsyncFence,
    ops.MbarrierInitFence, ops.Barrier, ops.ClusterBarrier, ops.MbarrierInit, ops.MbarrierArrive, ops.MbarrierTx,
    ops.MbarrierWait, ops.PendingCount, ops.CopyAsync, ops.CopyAsyncArrive, ops.AsyncCommit, ops.AsyncWait,
    ops.BulkCopy, ops.Alu, ops.AluPair, ops.Convert, ops.SetPredicate, ops.Select, ops.Pack, ops.Unpack, ops.Opaque,
    ops.Mapa, ops.CtaRank, ops.ConvertAddress, ops.Branch, ops.Exit,
)  # fmt: skip


class Places(Struct, frozen=True):
    """The objects of a test that have memory of their own. ``numbers``: of each, by its physical key; ``offsets``: of
    shared ones in the shared memory of an instance; ``barriers``: the numbers of named barriers, in order."""

    objects: tuple[MemoryObject, ...]
    numbers: Mapping[str, int]
    offsets: Mapping[str, int]
    shared_bytes: int
    aliases: Mapping[str, int]
    barriers: tuple[int, ...]


class Block(Struct):
    """An ``asm`` block in the making. ``inputs``: its address operands as C++; ``lines``: its PTX."""

    inputs: list[tuple[str, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def operand(self, expression: str, letter: str = "l") -> str:
        """The placeholder of a new operand."""
        self.inputs.append((letter, expression))
        return f"%[q{len(self.inputs) - 1}]"


class _Spelling(Spelling, frozen=True):
    """Registers have names that nothing else has; operands of the block are as they are."""

    def register(self, register: ops.Reg | ops.Guard) -> str:
        name = register.name if isinstance(register, ops.Reg) else register.register
        return name if name.startswith("%") else spelled(name)


def spelled(register: str) -> str:
    """The name of a register of the test in the block."""
    return f"v_{register.replace('.', '_').replace('%', '_')}"


def check_ops(test: Test) -> None:
    """Raise ``PtxmmError`` (kind ``unsupported``) at the first instruction that is not run on a GPU yet."""
    for site, op in test.instructions:
        if not isinstance(op, _RUN):
            raise refuse(op, "this instruction is not run on a GPU yet")
        if isinstance(op, ops.BulkCopy) and (op.tensormap or op.byte_mask):
            what = "of a tensor" if op.tensormap else "with a byte mask"
            raise refuse(op, f"a copy {what} is not run on a GPU yet")
        if isinstance(op, ops.Load | ops.Store | ops.Atomic) and op.proxy != "generic":
            raise refuse(op, f"a {op.proxy} access is not run on a GPU yet")
        body = test.threads[site[0]].body
        if isinstance(op, ops.Barrier | ops.ClusterBarrier):
            if op.guard is not None or any(isinstance(other, ops.Branch | ops.Exit) for other in body):
                raise refuse(op, "a barrier in a thread with branches is not run: 32 instances share its warp")
            if isinstance(op, ops.Barrier) and not isinstance(op.barrier, ops.Imm):
                raise refuse(op, "a barrier whose number is in a register is not run yet")


class Body(Struct, frozen=True):
    """A thread as C++: ``inputs``: its operands; ``lines`` of PTX; ``shown``: the registers that are logged, by the
    numbers of their values; ``kept``: those that are only read to be there."""

    inputs: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    shown: tuple[tuple[int, str], ...]
    kept: tuple[str, ...]


def body(test: Test, number: int, seats: Seating, places: Places, shown: Mapping[str, int], first: int) -> Body:
    """The thread with this number. ``shown``: the registers to log, each with the number of its value; ``first``: the
    number of its first access.

    Raises ``PtxmmError`` (kind ``unsupported``) for what cannot be run.
    """
    thread = test.threads[number]
    block = Block()
    made = _Maker(test, thread, seats.seats[number], seats, places, block, first)
    for name, typ in thread.registers.items():
        block.lines.append(f".reg .{_declared(typ)} {spelled(name)};")
    block.lines.append(".reg .pred p_; .reg .b16 h_; .reg .b32 n_, w_, t_; .reg .b64 a_, lo_, hi_;")
    block.lines.append("mov.b32 n_, 0; mov.b32 w_, 0;")
    block.lines += [made.initial(name, typ) for name, typ in thread.registers.items()]
    block.lines += _instructions(thread, made)
    logged = [name for name in thread.registers if name in shown]
    kept = [name for name, typ in thread.registers.items() if typ.kind != "pred" and name not in shown]
    for position, name in enumerate((*logged, *kept)):
        block.lines.append(_out(f"%[o{position}]", spelled(name), thread.registers[name]))
    block.lines.append("mov.b32 %[w], w_;")
    return Body(tuple(block.inputs), tuple(block.lines), tuple((shown[name], name) for name in logged), tuple(kept))


def _instructions(thread: Thread, made: _Maker) -> Iterator[str]:
    """The instructions of a thread with their labels; a loop that goes on for too long ends the thread."""
    targets = {op.target for op in thread.body if isinstance(op, ops.Branch)}
    loops = [i for i, op in enumerate(thread.body) if isinstance(op, ops.Branch) and op.target <= i]
    bound = WAITS if any(isinstance(op, ops.MbarrierWait) and op.kind == "try_wait" for op in thread.body) else LOOPS
    for index, op in enumerate(thread.body):
        if index in targets:
            yield f"L_{index}:"
        if index in loops:
            yield f"add.u32 n_, n_, 1; setp.ge.u32 p_, n_, {bound}; @p_ bra L_lost;"
        yield from made.instruction(op)
    if len(thread.body) in targets:
        yield f"L_{len(thread.body)}:"
    if loops:
        yield from ("bra.uni L_end;", "L_lost:", "mov.b32 w_, 1;")
    yield "L_end:"


def _declared(typ: Type) -> str:
    return "b16" if typ.bits == 8 else typ.name if typ.kind in ("pred", "f") and typ.bits != 16 else f"b{typ.bits}"


def _out(operand: str, name: str, typ: Type) -> str:
    """A register as 64 bits."""
    match typ:
        case Type("pred"):
            return f"selp.b64 {operand}, 1, 0, {name};"
        case Type("f", 32):
            return f"mov.b32 t_, {name}; cvt.u64.u32 {operand}, t_;"
        case Type(_, 8):
            return f"and.b16 h_, {name}, 255; cvt.u64.u16 {operand}, h_;"
        case Type(_, 128):
            return f"mov.b128 {{lo_, hi_}}, {name}; xor.b64 {operand}, lo_, hi_;"
        case Type(_, 64):
            return f"mov.b64 {operand}, {name};"
        case _:
            return f"cvt.u64.u{typ.bits} {operand}, {name};"


class _Maker(Struct, frozen=True):
    """What makes the instructions of one thread."""

    test: Test
    thread: Thread
    seat: Seat
    seats: Seating
    places: Places
    block: Block
    first: int

    @property
    def access(self) -> int:
        """The number of the next access."""
        return self.first + len(self.block.inputs)

    def initial(self, name: str, typ: Type) -> str:
        """The value of a register before the thread."""
        value, register = self.thread.initial.get(name, 0), spelled(name)
        if typ.kind == "pred":
            return f"setp.ne.u32 {register}, {value}, 0;"
        if typ.bits == 128:
            low, high = value & (1 << 64) - 1, value >> 64
            return f"mov.b64 lo_, {low}; mov.b64 hi_, {high}; mov.b128 {register}, {{lo_, hi_}};"
        if value and typ.bits in (32, 64) and in_window(self.test.objects, value) is not None:
            raise refused(self.test, name, "an initial value that is an address of shared memory is not run yet")
        found = self.test.locate(value) if typ.bits == 64 and value else None
        if found is not None:
            return f"mov.b64 {register}, {self.address_of(found[0], found[1], None)};"
        return f"mov.b{max(16, typ.bits)} {register}, {value};"

    def instruction(self, op: Op) -> list[str]:
        """``op`` with operands of the block as its addresses."""
        if isinstance(op, ops.Exit):
            return [f"{self.guard(op.guard)}bra L_end;"]
        spelling = _Spelling(lambda index: f"L_{index}", str, ())
        before: list[str] = []
        forms = {touch.address: touch.rule.form for touch in ops.touched(op)}
        changed: dict[str, Any] = {}
        for one in fields(op):
            item = getattr(op, one.name)
            if isinstance(item, ops.Address):
                changed[one.name] = self.address(op, item, forms[item], before)
            elif isinstance(item, ops.Sym) or (isinstance(item, tuple) and any(isinstance(i, ops.Sym) for i in item)):
                items = item if isinstance(item, tuple) else (item,)
                found = tuple(self.taken(op, i) if isinstance(i, ops.Sym) else i for i in items)
                changed[one.name] = found if isinstance(item, tuple) else found[0]
        if isinstance(op, ops.Barrier):
            return [self.barrier(op)]
        if isinstance(op, ops.Branch) and op.condition is not None:
            test = op.condition
            a, b = spelling.operand(test.a), spelling.operand(test.b)
            before.append(f"setp.{test.cmp}.{test.type.name} p_, {a}, {b};")
            return [*before, f"@p_ bra L_{op.target};"]
        return [*before, f"{self.guard(op.guard)}{typed_text(replace(op, **changed), spelling)};"]

    def guard(self, guard: ops.Guard | None) -> str:
        """``@!p`` with a blank, or nothing."""
        return "" if guard is None else f"@{'!' if guard.negated else ''}{spelled(guard.register)} "

    def barrier(self, op: ops.Barrier) -> str:
        """A named barrier of the team: all of its lanes are other instances."""
        assert isinstance(op.barrier, ops.Imm)
        if op.instance is not None:
            raise refuse(op, "a barrier of the untyped dialect has no exact counterpart in PTX")
        name = self.block.operand(f"c.barrier({self.places.barriers.index(op.barrier.value)})", "r")
        warps = sum(seat.cta == self.seat.cta for seat in self.seats.seats)
        if op.count is not None and not isinstance(op.count, ops.Imm):
            raise refuse(op, "a barrier whose count is in a register is not run yet")
        count = op.count.value if op.count is not None else 32 * warps
        aligned = ".aligned" if op.aligned else ""
        return f"barrier.cta.{op.kind}{aligned} {name}, {count};"

    def address(self, op: Op, address: ops.Address, form: str | None, before: list[str]) -> ops.Address:
        """``address`` with an operand in the place of its variable, or with an opaque 0 added to its register."""
        base = address.base
        if isinstance(base, ops.Sym):
            name = self.address_of(self.test.objects[base.name], base.offset, form, op)
            return replace(address, base=ops.Reg(name))
        if isinstance(base, ops.Imm):
            raise refuse(op, "an access at a constant address is not run on a GPU")
        if self.thread.registers[base.name].bits != 64:
            return address
        zero = self.block.operand(f"c.constant(0, {self.access})")
        copy = f"%%a{len(self.block.inputs)}_"
        before += [f".reg .b64 {copy};", f"add.u64 {copy}, {spelled(base.name)}, {zero};"]
        return replace(address, base=ops.Reg(copy))

    def taken(self, op: Op, item: ops.Sym) -> ops.Reg:
        """The address of a variable as a value."""
        found = self.test.objects[item.name]
        if found.space != "global":
            raise refuse(op, f"the address of a variable in .{found.space} memory as a value is not run yet")
        return ops.Reg(self.address_of(found, item.offset, None, op))

    def address_of(self, item: MemoryObject, offset: int, form: str | None, op: Op | None = None) -> str:
        """The operand for the byte at ``offset`` of an object, as an address in the state space ``form`` (None: a
        generic one)."""
        access, plus = self.access, f" + {offset}" if offset else ""
        if item.space == "global":
            place, alias = self.places.numbers[item.physical], self.places.aliases[item.virtual]
            return self.block.operand(f"c.global({place}, {alias}, {access}){plus}")
        at, owner = self.places.offsets[item.physical], self.seats.owner(item)
        if owner.cta == self.seat.cta:
            what = "generic" if form is None else "shared"
            return self.block.operand(f"c.{what}({at}, {access}){plus}")
        if form not in (None, "shared::cluster") and op is not None:
            raise refuse(op, f"`{item.name}` is memory of another CTA")
        what = "remote_generic" if form is None else "remote"
        return self.block.operand(f"c.{what}({at}, {owner.rank}, {access}){plus}")
