"""Loads, stores and atomics, element by element (PTX ISA 8.2.3, 8.2.4, 9.7.10, 9.7.14; decisions A13, A14)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.events.explicit.machine import Effects, Machine
from ptxmm.events.explicit.program import Spot
from ptxmm.events.explicit.values.node import Node
from ptxmm.program.shared.refusals import refused
from ptxmm.ptx.ops import (
    BULK_UNIT,
    Atomic,
    Discard,
    Element,
    Load,
    Operand,
    Store,
    StoreBulk,
    Type,
    access_bytes,
    elements,
)
from ptxmm.ptx.ops.basic import U64


def load(machine: Machine, op: Load) -> None:
    """One read for each element, or for each of its chunks, or of all of them in one piece."""
    spot, addr = machine.address(op.address, access_bytes(op))
    parts: list[list[tuple[Node, int, int, int]]] = [[] for _ in op.dst]
    pieced = False
    for lane, (element, offset, size) in enumerate(_pieces(machine, op, spot)):
        cells = None if spot is None else spot.cells(offset, size)
        leaf = machine.read(cells, addr, offset, lane=lane)
        if element.items > 1:
            pieced = True
            for k in range(element.items):
                parts[element.item + k].append((leaf, k * op.type.bits, op.type.bits, 0))
            continue
        position = element.shift + 8 * (offset - element.offset)
        parts[element.item].append((leaf, 0, 8 * size, position))
    for register, found in zip(op.dst, parts, strict=True):
        if register is not None:
            plain = len(found) == 1 and not pieced
            machine.returned(register, op.type, found[0][0] if plain else machine.expressions.fields(found))


def store(machine: Machine, op: Store) -> None:
    """One write for each element, or for each of its chunks, or of all of them in one piece."""
    spot, addr = machine.address(op.address, access_bytes(op))
    values = [machine.stored(v, op.type) for v in op.values]
    if spot is None:
        for _ in _pieces(machine, op, spot):
            machine.lose()
        return
    for lane, (element, offset, size) in enumerate(_pieces(machine, op, spot)):
        if element.items > 1:
            own = values[element.item : element.item + element.items]
            value = machine.expressions.fields([(v, 0, op.type.bits, k * op.type.bits) for k, v in enumerate(own)])
            machine.write(spot.cells(offset, size), value, addr, offset, lane=lane, stage=1)
            continue
        value = part_of(machine, values[element.item], op.type, element.shift + 8 * (offset - element.offset), size)
        machine.write(spot.cells(offset, size), value, addr, offset, lane=lane, stage=1)


def part_of(machine: Machine, value: Node, type_: Type, first: int, size: int) -> Node:
    """``size`` bytes of a value of ``type_`` from its bit ``first`` on."""
    if first == 0 and 8 * size == type_.bits:
        return value
    return machine.expressions.fields([(value, first, 8 * size, 0)])


def _pieces(machine: Machine, op: Load | Store, spot: Spot | None) -> Iterator[tuple[Element, int, int]]:
    """The accesses of ``op``: the element each belongs to, its offset from the address, its size.

    The elements of a weak vector, and of a weak .b128 access that is split, are divided where the other accesses of the
    test are narrower (A12); those of a strong one are scalars and stay whole (8.2.4, 8.10.3), as does a
    vector in one piece.
    """
    found = elements(op, machine.given.readings.split, machine.given.readings.whole)
    for element in found:
        if spot is None or len(found) == 1 or op.scope is not None or element.items > 1:
            yield element, element.offset, element.type.bytes
            continue
        first = spot.offset + element.offset
        for offset, size in machine.program.chunks.of(spot.item.physical, first, element.type.bytes):
            yield element, offset - spot.offset, size


def atomic(machine: Machine, op: Atomic) -> None:
    """A read and a write for each element; the read alone where a compare-and-swap fails."""
    spot, addr = machine.address(op.address, access_bytes(op))
    name = operation(op.op, op.type, spot)
    parts: list[list[tuple[Node, int, int, int]]] = [[] for _ in op.dst]
    for lane, element in enumerate(elements(op, machine.given.readings.split)):
        operands = [_element_operand(machine, op, element, o) for o in op.operands[element.item]]
        cells = None if spot is None else spot.cells(element.offset, element.type.bytes)
        old = machine.read(cells, addr, element.offset, lane=lane)
        new, control = _new_value(machine, name, element.type, old, operands)
        if new is not None:
            if cells is None:
                machine.lose()
            else:
                ctrl = machine.control | control
                machine.write(cells, new, addr, element.offset, lane=lane, stage=1, ctrl=ctrl)
                if machine.pc in machine.program.control.idempotent:
                    changed = machine.expressions.operation("ne", element.type, new, old)
                    machine.changes.append((machine.step_count, changed))
                else:
                    machine.last_write = machine.step_count
        if op.dst:
            parts[element.item].append((old, 0, element.type.bits, element.shift))
    for register, found in zip(op.dst, parts, strict=True):
        if register is None:
            continue
        if len(found) == 1:
            machine.returned(register, op.type, found[0][0])
        else:
            whole = Type("b", sum(bits for _, _, bits, _ in found))
            machine.returned(register, whole, machine.expressions.fields(found))


def discard(machine: Machine, op: Discard) -> None:
    """``discard``: a weak write of undetermined values to ``.global`` memory, one for each chunk of its bytes."""
    spot, addr = machine.address(op.address, op.size)
    if spot is None:
        machine.lose()
        return
    chunks = machine.program.chunks.of(spot.item.physical, spot.offset, op.size)
    for lane, (position, size) in enumerate(chunks):
        value = machine.expressions.constant(op.content.value(spot.item.physical, position, size))
        offset = position - spot.offset
        machine.write(spot.cells(offset, size), value, addr, offset, lane=lane)


def store_bulk(machine: Machine, op: StoreBulk) -> None:
    """``st.bulk``: weak writes of zeros, one for each chunk of its bytes."""
    size, sizes = machine.number(op.size, U64, "size of this store")
    if size % BULK_UNIT:
        machine.undefined(f"st.bulk of {size} bytes, which is no multiple of {BULK_UNIT}")
        machine.lose()
        return
    spot, addr = machine.address(op.address, size, alignment=1)
    if spot is None:
        machine.lose()
        return
    if spot.offset % BULK_UNIT:
        raise refused(op.misaligned, machine.program.test, op)
    zero = machine.expressions.constant(0)
    for lane, (position, length) in enumerate(machine.program.chunks.of(spot.item.physical, spot.offset, size)):
        offset = position - spot.offset
        machine.write(spot.cells(offset, length), zero, addr | sizes, offset, lane=lane)


def operation(op: str, type_: Type, spot: Spot | None) -> str:
    """The operation that ``op`` is at ``spot``: addition of .f32 flushes subnormal numbers in .global memory."""
    flushes = op == "add" and type_.kind == "f" and type_.bits == 32 and spot is not None
    return "add.ftz" if flushes and spot is not None and spot.item.space == "global" else op


def _element_operand(machine: Machine, op: Atomic, element: Element, operand: Operand) -> Node:
    whole = Type(op.type.kind, op.type.bits) if op.packed == 1 else Type("b", op.packed * op.type.bits)
    return part_of(machine, machine.stored(operand, whole), whole, element.shift, element.type.bytes)


def _new_value(machine: Machine, name: str, type_: Type, old: Node, operands: list[Node]) -> tuple[Node | None, int]:
    """What an atomic operation writes (None: nothing), and the reads that decide whether it does."""
    expressions = machine.expressions
    if name == "exch":
        return operands[0], 0
    if name != "cas":
        return expressions.operation(name, type_, old, *operands), 0
    equal = expressions.settled(expressions.operation("eq", type_, old, operands[0]))
    if machine.decide(equal, (0, 1)):
        return operands[1], equal.reads
    return (old if machine.given.readings.failing_writes else None), equal.reads


EFFECTS: Effects = {Load: load, Store: store, Atomic: atomic, Discard: discard, StoreBulk: store_bulk}
