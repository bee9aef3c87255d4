"""Loads, stores and atomic operations of the reference, and the instructions on tensor maps: element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.program.shared.tensors import FIELDS
from ptxmm.program.test import MemoryObject
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests.reference_events import Event, Run
from tests.reference_expressions import Expr, apply, const, is_const, joined_bytes, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

B64 = Type("b", 64)
PROXIES = {"generic": "GEN", "surface": "SUR", "texture": "TEX", "constant": "CON"}
TENSORMAP = 128


def placed(event: Event, item: MemoryObject, offset: int, size: int) -> Event:
    """The event with its physical and its virtual cell."""
    return replace(event, cell=(item.physical, offset, size), vcell=(item.key, offset, size))


def update(op: str, kind: Type, old: Expr, value: Expr, item: MemoryObject, sem: bool = True) -> Expr:
    """What an atomic operation writes; .f32 additions to global memory flush subnormal numbers (9.7.14.5)."""
    if op == "exch":
        return value
    if op == "add" and kind == Type("f", 32) and item.space == "global":
        op = "add.ftz"
    return apply(op, kind, old, value, sem=sem)


def access(
    walker: Walker, run: Run, op: ops.Load | ops.Store | ops.Atomic, taken: Expr, common: Event
) -> Iterator[Run]:
    size = ops.access_bytes(op)
    for fork, item, offset, address in walker.places(run, op.address, size, size):
        here = replace(common, scope=op.scope, proxy=PROXIES[op.proxy], addr=reads(address))
        match op:
            case ops.Load():
                yield load(walker, fork, op, taken, here, item, offset)
            case ops.Store():
                yield store(walker, fork, op, here, item, offset)
            case ops.Atomic():
                yield from atomic(walker, fork, op, taken, here, item, offset)


def pieces(walker: Walker, op: ops.Load | ops.Store, item: MemoryObject, offset: int) -> Iterator[tuple[int, int]]:
    """(first byte from the address, bytes) of each access: an element of a weak vector is divided like the object;
    a vector in one piece is not, but after each 16 bytes."""
    parts, total = ops.elements(op, walker.split), ops.access_bytes(op)
    if walker.whole and len(parts) > 1:
        yield from ((first, min(total - first, 16)) for first in range(0, total, 16))
        return
    for element in parts:
        begin, size = offset + element.offset, element.type.bytes
        divided = len(parts) > 1 and op.scope is None
        for at, length in walker.chunks.of(item.key, begin, size) if divided else [(begin, size)]:
            yield at - offset, length


def put_together(found: list[tuple[Expr, int, int]], first: int, size: int) -> Expr:
    """``size`` bytes from ``first`` on, of which each expression of ``found`` is so many from a place on."""
    parts = [
        (value, max(first, begin) - begin, min(first + size, begin + length) - max(first, begin))
        for value, begin, length in found
        if begin < first + size and first < begin + length
    ]
    same = [value for value, *place in found if place == [first, size]]
    return same[0] if same else joined_bytes(*parts)


def load(walker: Walker, run: Run, op: ops.Load, taken: Expr, common: Event, item: MemoryObject, offset: int) -> Run:
    new: list[Event] = []
    found: list[tuple[Expr, int, int]] = []
    for first, size in pieces(walker, op, item, offset):
        found.append((("read", (walker.index, len(run.events) + len(new))), first, size))
        event = replace(common, kind="R", acq=op.sem == "acquire", part=first)
        new.append(placed(event, item, offset + first, size))
    registers = run.registers
    for which, register in enumerate(op.dst):
        value = put_together(found, which * op.type.bytes, op.type.bytes)
        registers = walker.assign(replace(run, registers=registers), register, value, op.type, taken)
    return replace(run, pc=run.pc + 1, events=(*run.events, *new), registers=registers)


def store(walker: Walker, run: Run, op: ops.Store, common: Event, item: MemoryObject, offset: int) -> Run:
    new = []
    size = op.type.bytes
    values = [(walker.operand(run, value, op.type), i * size, size) for i, value in enumerate(op.values)]
    for first, length in pieces(walker, op, item, offset):
        value = put_together(values, first, length)
        event = replace(common, kind="W", rel=op.sem == "release", value=value, data=reads(value), part=first)
        new.append(placed(event, item, offset + first, length))
    return replace(run, pc=run.pc + 1, events=(*run.events, *new))


def atomic(
    walker: Walker, run: Run, op: ops.Atomic, taken: Expr, common: Event, item: MemoryObject, offset: int
) -> Iterator[Run]:
    rel, acq = op.sem in ("release", "acq_rel"), op.sem in ("acquire", "acq_rel")
    new: list[Event] = []
    found: list[tuple[Expr, int, int]] = []
    parts = ops.elements(op, walker.split)
    packed = len(parts) // len(op.operands)
    for element in parts:
        leaf = (walker.index, len(run.events) + len(new))
        event = replace(common, rel=rel, amo=True, part=element.offset)
        event = placed(event, item, offset + element.offset, element.type.bytes)
        read = replace(event, kind="R", acq=acq, noret=not op.returns)
        write = replace(event, kind="W", read_half=leaf)
        kind = Type("b", 8 * packed * element.type.bytes) if packed > 1 else op.type
        operands = [walker.operand(run, o, kind) for o in op.operands[element.item]]
        if packed > 1:
            operands = [joined_bytes((o, element.shift // 8, element.type.bytes)) for o in operands]
        found.append((("read", leaf), 0, element.type.bytes))
        if op.op == "cas":
            registers = walker.assign(run, op.dst[0] if op.dst else None, ("read", leaf), op.type, taken)
            done = replace(run, pc=run.pc + 1, registers=registers)
            if packed > 1:
                raise NotImplementedError(op)
            compare, value = operands
            equal = walker.apply("eq", op.type, ("read", leaf), compare)
            write = replace(write, value=value, data=reads(value), ctrl=write.ctrl | reads(equal))
            again = replace(write, value=("read", leaf), data=frozenset({leaf}))
            for success in (True, False):
                halves = (read, write) if success else (read,)
                if not success and walker.readings["cas-failure"] == "write":
                    halves = (read, again)
                if is_const(equal) and bool(equal[1]) != success:
                    continue
                constraints = (*run.constraints, (equal, success))
                yield replace(done, events=(*run.events, *halves), constraints=constraints)
            return
        value = update(op.op, op.type, ("read", leaf), operands[0], item, walker.sem)
        new += [read, replace(write, value=value, data=reads(value))]
    registers = run.registers
    for which, register in enumerate(op.dst):
        mine = found[which * packed : (which + 1) * packed]
        value = mine[0][0] if packed == 1 else joined_bytes(*mine)
        kind = op.type if packed == 1 else Type("b", 8 * sum(size for _, _, size in mine))
        registers = walker.assign(replace(run, registers=registers), register, value, kind, taken)
    yield replace(run, pc=run.pc + 1, events=(*run.events, *new), registers=registers)


def zeros(walker: Walker, run: Run, op: ops.StoreBulk, common: Event) -> Iterator[Run]:
    """``st.bulk`` (9.7.9.13 of PTX ISA 9.0)."""
    size, kind = walker.operand(run, op.size, Type("u", 64)), Type("u", 64)
    most = max(item.size for item in walker.test.objects.values())
    others = []
    for number in range(most + 1):
        chosen = walker.apply("eq", kind, size, const(number))
        others.append((chosen, False))
        if is_const(chosen) and not chosen[1]:
            continue
        taken = run if is_const(chosen) else replace(run, constraints=(*run.constraints, (chosen, True)))
        if number % 8:
            walker.strays.append(taken)
            continue
        for fork, item, offset, address in walker.places(taken, op.address, number, 1):
            if offset % 8:
                raise NotImplementedError(op)
            here = replace(common, kind="W", proxy="GEN", addr=reads(address) | reads(size), value=const(0))
            places = walker.chunks.of(item.physical, offset, number) if number else ()
            events = [placed(replace(here, part=at - offset), item, at, length) for at, length in places]
            yield replace(fork, pc=run.pc + 1, events=(*run.events, *events))
    if not any(is_const(chosen) and chosen[1] for chosen, _ in others):
        walker.strays.append(replace(run, constraints=(*run.constraints, *others)))  # beyond every object


def tensormap(
    walker: Walker, run: Run, op: ops.TensormapReplace | ops.TensormapCopyFence, common: Event
) -> Iterator[Run]:
    """A read and a write of 128 bytes, of which a replace changes those of one field."""
    common = replace(common, proxy="GEN")
    leaf = (walker.index, len(run.events))
    if isinstance(op, ops.TensormapReplace):
        for fork, item, offset, address in walker.places(run, op.address, TENSORMAP, 64):
            event = placed(replace(common, addr=reads(address)), item, offset, TENSORMAP)
            first, size = FIELDS[op.field]
            first += size * (op.ordinal or 0)
            new, old = walker.operand(run, op.value, op.type), ("read", leaf)
            parts = [(old, 0, first), (new, 0, size), (old, first + size, TENSORMAP - first - size)]
            value = joined_bytes(*(part for part in parts if part[2]))
            write = replace(event, kind="W", value=value, data=reads(value), read_half=None)
            yield replace(fork, pc=run.pc + 1, events=(*run.events, replace(event, kind="R"), write))
        return
    for fork, source, offset, address in walker.places(run, op.src, TENSORMAP, 64):
        read = placed(replace(common, kind="R", addr=reads(address)), source, offset, TENSORMAP)
        for last, target, at, place in walker.places(fork, op.dst, TENSORMAP, 64):
            write = replace(common, kind="W", addr=reads(place), value=("read", leaf), data=frozenset({leaf}))
            write = placed(write, target, at, TENSORMAP)
            fence = replace(common, kind="TMREL", scope=op.scope)
            yield replace(last, pc=run.pc + 1, events=(*run.events, read, write, fence))
