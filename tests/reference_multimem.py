"""Operations on multimem addresses for the reference: each location by itself, as ``ld``, ``st`` and ``red``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxmm.program.test import MemoryObject
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests.reference_events import Event, Run
from tests.reference_expressions import Expr, apply, joined_bytes, reads

if TYPE_CHECKING:
    from tests.reference_threads import Walker

REPLICA = 1 << 20  # more than the bytes of a vector


def perform(walker: Walker, run: Run, op: ops.Multimem, taken: Expr, common: Event) -> Iterator[Run]:
    size = ops.access_bytes(op)
    for fork, item, offset, address in walker.places(run, op.address, size, size, multimem=True):
        here = replace(common, scope=op.scope, proxy="GEN", addr=reads(address))
        here = replace(here, acq=op.sem == "acquire", rel=op.sem == "release")
        if op.kind == "ld_reduce":
            yield load(walker, fork, op, taken, here, item, offset)
        else:
            yield change(walker, fork, op, here, item, offset)


def accesses(
    walker: Walker, op: ops.Multimem, element: ops.Element, common: Event, item: MemoryObject, offset: int
) -> Iterator[tuple[int, int, Event]]:
    """(location, first byte in the element, event without kind and value), one for each access of the element."""
    begin, size = offset + element.offset, element.type.bytes
    divided = op.scope is None and len(ops.elements(op)) > 1
    for number, key in enumerate(item.replicas):
        for at, length in walker.chunks.of(key, begin, size) if divided else [(begin, size)]:
            part = number * REPLICA + at - offset
            cell, vcell = (key, at, length), (f"{item.key}/{number}", at, length)
            yield number, at - begin, replace(common, cell=cell, vcell=vcell, part=part)


def load(
    walker: Walker, run: Run, op: ops.Multimem, taken: Expr, common: Event, item: MemoryObject, offset: int
) -> Run:
    """Read every location, then reduce element by element."""
    assert op.op is not None
    new: list[Event] = []
    parts: dict[int, list[tuple[Expr, int, int]]] = {}
    for element in ops.elements(op):
        found: dict[int, list[tuple[Expr, int, int]]] = {}
        for number, _, event in accesses(walker, op, element, common, item, offset):
            leaf: Expr = ("read", (walker.index, len(run.events) + len(new)))
            assert event.cell is not None
            found.setdefault(number, []).append((leaf, 0, event.cell[2]))
            new.append(replace(event, kind="R"))
        values = [p[0][0] if len(p) == 1 else joined_bytes(*p) for p in found.values()]
        result = values[0]
        for value in values[1:]:
            result = apply(op.op, element.type, result, value, sem=walker.sem)
        parts.setdefault(element.item, []).append((result, 0, element.type.bytes))
    registers = run.registers
    for which, pieces in parts.items():
        whole = pieces[0][0] if len(pieces) == 1 else joined_bytes(*pieces)
        registers = walker.assign(replace(run, registers=registers), op.dst[which], whole, register(op), taken)
    return replace(run, pc=run.pc + 1, events=(*run.events, *new), registers=registers)


def change(walker: Walker, run: Run, op: ops.Multimem, common: Event, item: MemoryObject, offset: int) -> Run:
    """Write every location; ``red`` reads it before."""
    new: list[Event] = []
    for element in ops.elements(op):
        whole = walker.operand(run, op.values[element.item], register(op))
        for _, first, event in accesses(walker, op, element, common, item, offset):
            assert event.cell is not None
            length, value = event.cell[2], whole
            if length != register(op).bytes:
                value = joined_bytes((whole, element.shift // 8 + first, length))
            if op.kind == "st":
                new.append(replace(event, kind="W", value=value, data=reads(value)))
                continue
            assert op.op is not None
            leaf = (walker.index, len(run.events) + len(new))
            value = apply(op.op, element.type, ("read", leaf), value, sem=walker.sem)
            read = replace(event, kind="R", amo=True, noret=True)
            write = replace(event, kind="W", amo=True, value=value, data=reads(value), read_half=leaf)
            new += [read, write]
    return replace(run, pc=run.pc + 1, events=(*run.events, *new))


def register(op: ops.Multimem) -> Type:
    """The type of one register of the operand."""
    return op.type if op.packed == 1 else Type("b", op.packed * op.type.bits)
